use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error as JinjaError, ErrorKind, Value};

use super::budget::{Text, enter};
use super::python;

/// JSON as the values of a template.
pub(super) fn to_jinja(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::from(()),
        serde_json::Value::Bool(b) => Value::from(*b),
        serde_json::Value::Number(n) => match (n.as_i64(), n.as_u64(), n.as_f64()) {
            (Some(n), ..) => Value::from(n),
            (_, Some(n), _) => Value::from(n),
            // Without `arbitrary_precision` every other number is an f64.
            (.., n) => Value::from(n.unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(s) => Value::from(s.as_str()),
        serde_json::Value::Array(items) => items.iter().map(to_jinja).collect(),
        serde_json::Value::Object(fields) => Value::from_pairs(fields.iter().map(|(k, v)| (k.as_str(), to_jinja(v)))),
    }
}

/// Python's `json.dumps` with the settings that transformers lets a template choose. Nothing is escaped for HTML.
pub(super) fn tojson(value: &Value, options: Kwargs) -> Result<Value, JinjaError> {
    let indent: Option<Value> = options.get("indent")?;
    let separators: Option<Value> = options.get("separators")?;
    let indent = match indent.filter(|v| !v.is_none()) {
        None => None,
        Some(text) if text.as_str().is_some() => text.as_str().map(str::to_owned),
        Some(count) => Some(" ".repeat(count.as_i64().unwrap_or(0).clamp(0, 64) as usize)),
    };
    let (item, key) = match separators.filter(|v| !v.is_none()) {
        Some(pair) => (separator(&pair, 0)?, separator(&pair, 1)?),
        None if indent.is_some() => (",".to_owned(), ": ".to_owned()),
        None => (", ".to_owned(), ": ".to_owned()),
    };
    let writer = Dumps {
        ensure_ascii: options.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false),
        sort_keys: options.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
        indent,
        item,
        key,
    };
    options.assert_all_used()?;
    let mut text = Text::default();
    writer.value(&mut text, value, 0)?;
    Ok(Value::from(text.into_string()))
}

/// One of the `separators`, which are texts in Python too.
fn separator(pair: &Value, index: usize) -> Result<String, JinjaError> {
    let found = pair.get_item_by_index(index)?;
    let kind = found.kind();
    let refused = || JinjaError::new(ErrorKind::InvalidOperation, format!("a separator is a text, not a {kind}"));
    found.as_str().map(str::to_owned).ok_or_else(refused)
}

struct Dumps {
    ensure_ascii: bool,
    sort_keys: bool,
    indent: Option<String>,
    item: String,
    key: String,
}

impl Dumps {
    fn value(&self, out: &mut Text, value: &Value, depth: usize) -> Result<(), JinjaError> {
        enter(depth)?;
        match value.kind() {
            ValueKind::None => out.push_str("null")?,
            ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" })?,
            ValueKind::Number => out.push_str(&match python::as_float(value) {
                Some(x) if x.is_nan() => "NaN".to_owned(),
                Some(x) if x.is_infinite() => if x > 0.0 { "Infinity" } else { "-Infinity" }.to_owned(),
                Some(x) => python::float_repr(x),
                None => value.to_string(),
            })?,
            ValueKind::String => self.string(out, value.as_str().unwrap_or_default())?,
            ValueKind::Seq => {
                let items: Vec<Value> = value.try_iter()?.collect();
                self.container(out, ['[', ']'], items.len(), depth, |out, i| self.value(out, &items[i], depth + 1))?;
            }
            ValueKind::Map => {
                let mut fields = Vec::new();
                for name in value.try_iter()? {
                    let field = value.get_item(&name)?;
                    fields.push((key_text(&name)?, field));
                }
                if self.sort_keys {
                    fields.sort_by(|a, b| a.0.cmp(&b.0));
                }
                self.container(out, ['{', '}'], fields.len(), depth, |out, i| {
                    self.string(out, &fields[i].0)?;
                    out.push_str(&self.key)?;
                    self.value(out, &fields[i].1, depth + 1)
                })?;
            }
            other => {
                return Err(JinjaError::new(
                    ErrorKind::BadSerialization,
                    format!("object of type {other} is not JSON serializable"),
                ));
            }
        }
        Ok(())
    }

    fn container(
        &self,
        out: &mut Text,
        [open, close]: [char; 2],
        len: usize,
        depth: usize,
        mut item: impl FnMut(&mut Text, usize) -> Result<(), JinjaError>,
    ) -> Result<(), JinjaError> {
        let new_line = |out: &mut Text, depth: usize| {
            if let Some(indent) = &self.indent {
                out.push('\n')?;
                (0..depth).try_for_each(|_| out.push_str(indent))?;
            }
            Ok::<_, JinjaError>(())
        };
        out.push(open)?;
        for i in 0..len {
            if i > 0 {
                out.push_str(&self.item)?;
            }
            new_line(out, depth + 1)?;
            item(out, i)?;
        }
        if len > 0 {
            new_line(out, depth)?;
        }
        out.push(close)
    }

    fn string(&self, out: &mut Text, text: &str) -> Result<(), JinjaError> {
        out.push('"')?;
        for c in text.chars() {
            match c {
                '"' => out.push_str("\\\"")?,
                '\\' => out.push_str("\\\\")?,
                '\n' => out.push_str("\\n")?,
                '\r' => out.push_str("\\r")?,
                '\t' => out.push_str("\\t")?,
                '\u{8}' => out.push_str("\\b")?,
                '\u{c}' => out.push_str("\\f")?,
                c if c < ' ' || (self.ensure_ascii && !(' '..='~').contains(&c)) => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        out.push_str(&format!("\\u{unit:04x}"))?;
                    }
                }
                c => out.push(c)?,
            }
        }
        out.push('"')
    }
}

/// A mapping's key as `json.dumps` spells it.
fn key_text(key: &Value) -> Result<String, JinjaError> {
    Ok(match key.kind() {
        ValueKind::String => key.to_string(),
        ValueKind::None => "null".to_owned(),
        ValueKind::Bool => if key.is_true() { "true" } else { "false" }.to_owned(),
        ValueKind::Number => python::as_float(key).map_or_else(|| key.to_string(), python::float_repr),
        other => {
            return Err(JinjaError::new(
                ErrorKind::BadSerialization,
                format!("keys must be strings, numbers, booleans or none, not {other}"),
            ));
        }
    })
}
