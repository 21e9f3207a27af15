//! JSON in templates, both ways: template arguments become values ([`to_python`]), and values become
//! text ([`tojson`], the filter of that name).
//!
//! The reference for text is Python's `json.dumps`, called as transformers' own `tojson` filter
//! calls it. Jinja2's own filter escapes for HTML, which transformers' does not. All text goes
//! through `budget::Text`, so a value that contains itself many times over runs out of budget, not
//! out of memory.

use std::rc::Rc;

use super::arguments::Call;
use super::budget::{Text, charge};
use super::fault::{Result, TemplateError, fault, refuse, too_large};
use super::python_text::float_repr;
use super::sorting;
use super::value::{Dict, VISIT, Value};

/// The digits of a JSON value that stands for a whole number of any size; `None` for all others.
pub type WholeNumber = fn(&serde_json::Value) -> Option<&str>;

/// A JSON value as Python's. Objects keep the order of their fields. Whole numbers stay whole if they fit an `i64` or a `u64`, or
/// `whole_number` says so; all others are floats.
///
/// # Errors
/// A whole number of more than 128 bits, and nesting that is too deep.
pub(crate) fn to_python(json: &serde_json::Value, whole_number: WholeNumber) -> Result<Value> {
    if let Some(digits) = whole_number(json) {
        return digits.parse().map_or_else(|_| too_large(), |n| Ok(Value::Int(n)));
    }
    Ok(match json {
        serde_json::Value::Null => Value::None,
        serde_json::Value::Bool(b) => Value::Bool(*b),
        serde_json::Value::Number(n) => match (n.as_i64(), n.as_u64(), n.as_f64()) {
            (Some(n), ..) => Value::Int(n.into()),
            (_, Some(n), _) => Value::Int(n.into()),
            // Without `arbitrary_precision` every other number is an f64.
            (.., n) => Value::Float(n.unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(s) => Value::from(s.as_str()),
        serde_json::Value::Array(items) => {
            Value::list(items.iter().map(|item| to_python(item, whole_number)).collect::<Result<_>>()?)?
        }
        serde_json::Value::Object(fields) => {
            let mut dict = Dict::default();
            for (name, value) in fields {
                dict.insert(name.as_str().into(), to_python(value, whole_number)?)?;
            }
            Value::Dict(Rc::new(dict))
        }
    })
}

/// The filter `tojson`: `json.dumps` with the options that transformers lets a template choose.
///
/// | option | default | meaning |
/// |---|---|---|
/// | `ensure_ascii` | false | write characters outside printable ASCII as `\uXXXX` |
/// | `indent` | none: all in one line | the text of one level, or how many spaces it has (at most 64) |
/// | `separators` | `", "` and `": "`; with `indent` `","` and `": "` | a pair of texts: between items, and after a key |
/// | `sort_keys` | false | sort objects by their keys |
///
/// # Errors
/// Another option, a separator that is no text, a value or key that JSON cannot hold (undefined values, functions), keys of two kinds
/// that are to be sorted, and a spent budget.
pub(crate) fn tojson(value: &Value, call: Call) -> Result<Value> {
    let options = call.bind("tojson", ["ensure_ascii", "indent", "separators", "sort_keys"])?;
    let [ensure_ascii, indent, separators, sort_keys] =
        options.map(|option| option.filter(|o| !matches!(o, Value::None)));
    let indent = match indent {
        None => None,
        Some(Value::Str(text)) => Some(text.to_string()),
        Some(count) => match count.index("indent")? {
            count if count > 64 => return refuse(format!("an indent of {count}")),
            count => Some(" ".repeat(count.max(0) as usize)),
        },
    };
    let (item, key) = match separators {
        Some(pair) => {
            let pair = pair.iterate()?;
            let [item, key] = &pair[..] else { return fault("separators are two") };
            (separator(item)?, separator(key)?)
        }
        None if indent.is_some() => (",".to_owned(), ": ".to_owned()),
        None => (", ".to_owned(), ": ".to_owned()),
    };
    let truth = |option: Option<Value>| option.is_some_and(|o| o.truth());
    let writer = Dumps { ensure_ascii: truth(ensure_ascii), sort_keys: truth(sort_keys), indent, item, key };
    let mut text = Text::default();
    writer.value(&mut text, value, 0)?;
    Ok(Value::from(text.into_string()))
}

/// One of the two `separators`.
fn separator(value: &Value) -> Result<String> {
    match value {
        Value::Str(text) => Ok(text.to_string()),
        _ => fault(format!("a separator is a text, not a {}", value.type_name())),
    }
}

/// The settings of one call of [`tojson`], with defaults filled in.
struct Dumps {
    /// Escape everything outside `' '..='~'`, not control characters alone.
    ensure_ascii: bool,
    /// Sort the fields of each object by their keys: texts by code points, numbers by size.
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
    fn value(&self, out: &mut Text, value: &Value, depth: usize) -> Result<()> {
        charge(VISIT)?;
        match value {
            Value::None => out.push_str("null")?,
            Value::Bool(b) => out.push_str(if *b { "true" } else { "false" })?,
            Value::Int(n) => out.push_str(&n.to_string())?,
            Value::Float(x) => out.push_str(&float_text(*x))?,
            Value::Str(text) | Value::Markup(text) => self.string(out, text)?,
            Value::List(items) | Value::Tuple(items) => {
                let items = &items.values;
                self.container(out, ['[', ']'], items.len(), depth, |out, i| self.value(out, &items[i], depth + 1))?;
            }
            Value::Dict(dict) => {
                let mut fields: Vec<&(Value, Value)> = dict.entries().iter().collect();
                if self.sort_keys {
                    fields = sorting::sorted(fields, |(key, _)| key, false)?;
                }
                self.container(out, ['{', '}'], fields.len(), depth, |out, i| {
                    self.string(out, &key_text(&fields[i].0)?)?;
                    out.push_str(&self.key)?;
                    self.value(out, &fields[i].1, depth + 1)
                })?;
            }
            _ => return fault(format!("Object of type {} is not JSON serializable", value.type_name())),
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
        mut item: impl FnMut(&mut Text, usize) -> Result<()>,
    ) -> Result<()> {
        let new_line = |out: &mut Text, depth: usize| {
            if let Some(indent) = &self.indent {
                out.push('\n')?;
                (0..depth).try_for_each(|_| out.push_str(indent))?;
            }
            Ok::<_, TemplateError>(())
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
    fn string(&self, out: &mut Text, text: &str) -> Result<()> {
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

/// A float as `json.dumps` spells it.
fn float_text(x: f64) -> String {
    match () {
        () if x.is_nan() => "NaN".to_owned(),
        () if x.is_infinite() => if x > 0.0 { "Infinity" } else { "-Infinity" }.to_owned(),
        () => float_repr(x),
    }
}

/// A mapping's key as `json.dumps` spells it: texts as they are; none, booleans and numbers as JSON
/// would. Any other kind of key is an error.
fn key_text(key: &Value) -> Result<String> {
    Ok(match key {
        Value::Str(text) | Value::Markup(text) => text.to_string(),
        Value::None => "null".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Int(n) => n.to_string(),
        Value::Float(x) => float_text(*x),
        _ => return fault(format!("keys must be str, int, float, bool or None, not {}", key.type_name())),
    })
}
