//! JSON in templates, both ways: template arguments become values ([`to_jinja`]), and values become
//! text ([`tojson`], the filter of that name).
//!
//! The reference for text is Python's `json.dumps`, called as transformers' own `tojson` filter
//! calls it. minijinja's own filter escapes for HTML, which this one does not. All text goes
//! through `budget::Text`, so a value that contains itself many times over runs out of budget, not
//! out of memory.

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error as JinjaError, ErrorKind, Value};

use super::budget::{Text, enter};
use super::python;

/// A JSON value as minijinja's. Objects keep the order of their fields. Whole numbers stay whole if
/// they fit an `i64` or a `u64`; all others are `f64`.
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

/// The filter `tojson`: `json.dumps` with the options that transformers lets a template choose. All
/// of them are keyword arguments.
///
/// | option | default | meaning |
/// |---|---|---|
/// | `indent` | none: all in one line | the text of one level, or how many spaces it has (0 to 64; beyond that it is clamped) |
/// | `separators` | `", "` and `": "`; with `indent` `","` and `": "` | a pair of texts: between items, and after a key |
/// | `ensure_ascii` | false | write characters outside printable ASCII as `\uXXXX` |
/// | `sort_keys` | false | sort objects by their keys, numbers by size |
///
/// # Errors
/// Another option, a separator that is no text, a value or key that JSON cannot hold (undefined
/// values, functions), nesting beyond `budget::enter`'s, and a spent budget.
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

/// One of the two `separators`. Only a text will do, as in Python: the spelling of another value
/// could be endless.
fn separator(pair: &Value, index: usize) -> Result<String, JinjaError> {
    let found = pair.get_item_by_index(index)?;
    let kind = found.kind();
    let refused = || JinjaError::new(ErrorKind::InvalidOperation, format!("a separator is a text, not a {kind}"));
    found.as_str().map(str::to_owned).ok_or_else(refused)
}

/// The settings of one call of [`tojson`], with defaults filled in.
struct Dumps {
    /// Escape everything outside `' '..='~'`, not control characters alone.
    ensure_ascii: bool,
    /// Sort the fields of each object by their keys: texts by code points, numbers by size. Python
    /// refuses an object with both; here numbers come first.
    sort_keys: bool,
    /// The text of one level; `None` puts everything in one line, and an empty text gives line
    /// breaks alone.
    indent: Option<String>,
    /// What is between two items or fields.
    item: String,
    /// What is between a key and its value.
    key: String,
}

impl Dumps {
    /// Appends a value at nesting `depth`. Floats are spelt as Python's `repr` does, but for `NaN`,
    /// `Infinity` and `-Infinity`, which are what `json.dumps` writes.
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
                let mut names: Vec<Value> = value.try_iter()?.collect();
                if self.sort_keys {
                    names.sort();
                }
                let mut fields = Vec::with_capacity(names.len());
                for name in names {
                    let field = value.get_item(&name)?;
                    fields.push((key_text(&name)?, field));
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

    /// Appends a list or an object of `len` items at `depth`: brackets, separators and, with
    /// `indent`, line breaks. `item` appends the item of an index. An empty container is `[]` or
    /// `{}`, without a line break.
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

    /// Appends a text in quotes. Quotes, backslashes and control characters below U+0020 are
    /// escaped. So is, with `ensure_ascii`, whatever is not printable ASCII, as one or two UTF-16
    /// units.
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

/// A mapping's key as `json.dumps` spells it: texts as they are; none, booleans and numbers as JSON
/// would. Any other kind of key is an error.
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
