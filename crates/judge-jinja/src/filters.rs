//! Jinja2's filters, with transformers' own `tojson`.

use std::cmp::Ordering;

use super::access::{attribute, item, slice};
use super::arguments::Call;
use super::attributes::{self, Found};
use super::budget::{charge, step};
use super::checks;
use super::fault::{Result, fault, refuse, too_large};
use super::format::{self, truncated};
use super::json;
use super::letters::{capitalized, is_alphanumeric, lower, upper};
use super::methods::{joined, lines, pad, replaced, strip};
use super::operators;
use super::python_text::is_space;
use super::sorting;
use super::syntax::Operator;
use super::value::{Keys, Value, View};

/// What a filter, called by one of its names, makes of a value and its arguments.
type Filter = fn(&str, &Value, Call) -> Result<Value>;

/// The value of a filter.
pub(crate) fn apply(name: &str, value: &Value, call: Call) -> Result<Value> {
    step()?;
    if let Some(filter) = plain(name) {
        call.required(name, [])?;
        return filter(value);
    }
    match find(name) {
        Some(filter) => filter(name, value, call),
        None => fault(format!("No filter named '{name}'")),
    }
}

/// Whether Jinja2 has a filter of this name.
pub(crate) fn is_filter(name: &str) -> bool {
    plain(name).is_some() || find(name).is_some()
}

/// A filter without arguments.
fn plain(name: &str) -> Option<fn(&Value) -> Result<Value>> {
    let filter: fn(&Value) -> Result<Value> = match name {
        "abs" => |value| match (value.defined()?, value.as_int()) {
            (_, Some(n)) => n.checked_abs().map(Value::Int).map_or_else(too_large, Ok),
            (Value::Float(x), _) => Ok(Value::Float(x.abs())),
            _ => fault(format!("bad operand type for abs(): '{}'", value.type_name())),
        },
        "capitalize" => |value| capitalized(&soft(value)?).map(Value::from),
        "count" | "length" => |value| match value.len()? {
            Some(len) => Ok(len.into()),
            None => fault(format!("object of type '{}' has no len()", value.type_name())),
        },
        "e" | "escape" => |value| match value {
            Value::Markup(_) => Ok(value.clone()),
            _ => escaped(&value.text()?).map(|text| Value::Markup(text.into())),
        },
        "forceescape" => |value| escaped(&value.text()?).map(|text| Value::Markup(text.into())),
        "safe" => |value| value.text().map(Value::Markup),
        "first" => |value| {
            let none = || Value::Undefined("No first item, sequence was empty.".into());
            Ok(value.iterate()?.into_iter().next().unwrap_or_else(none))
        },
        "last" => |value| {
            reversible(value)?;
            let none = || Value::Undefined("No last item, sequence was empty.".into());
            Ok(value.iterate()?.into_iter().next_back().unwrap_or_else(none))
        },
        "items" => |value| match value {
            Value::Undefined(_) => Value::once("generator", Vec::new()),
            Value::Dict(dict) => Value::once("generator", Value::View(View::Items, dict.clone()).iterate()?),
            _ => fault("Can only get item pairs from a mapping."),
        },
        "list" => |value| Value::list(value.iterate()?),
        "lower" => |value| lower(&soft(value)?).map(Value::from),
        "upper" => |value| upper(&soft(value)?).map(Value::from),
        "reverse" => |value| match value {
            Value::Str(_) => slice(value, &[Value::None, Value::None, Value::Int(-1)]),
            Value::Markup(_) => refuse("reverse of a safe text"),
            _ => {
                let mut items = value.iterate()?;
                items.reverse();
                // What cannot be read backwards is made a list first.
                match reversible(value) {
                    Ok(()) => Value::once("reversed", items),
                    Err(_) => Value::list(items),
                }
            }
        },
        "string" => |value| match value {
            Value::Markup(_) => Ok(value.clone()),
            _ => value.text().map(Value::Str),
        },
        "title" => |value| title(&soft(value)?).map(Value::from),
        "urlencode" => urlencode,
        "wordcount" => |value| words(&soft(value)?),
        _ => return None,
    };
    Some(filter)
}

/// A filter that takes arguments.
fn find(name: &str) -> Option<Filter> {
    let filter: Filter = match name {
        "attr" => |name, value, call| {
            let [name] = call.required(name, ["name"])?;
            let Some(name) = name.as_str() else { return fault("attribute name must be string") };
            match value {
                // Fields of a mapping are items, not attributes.
                Value::Dict(_) if !matches!(attributes::find(value, name), Found::Method) => Ok(value.lacks(name)),
                _ => attribute(value, name),
            }
        },
        "batch" | "slice" => batches,
        "center" => |name, value, call| {
            let [width] = call.bind(name, ["width"])?;
            pad(&soft(value)?, name, &width.unwrap_or(Value::Int(80)), None).map(Value::from)
        },
        "d" | "default" => |name, value, call| {
            let [default, boolean] = call.bind(name, ["default_value", "boolean"])?;
            let falls = value.is_undefined() || (boolean.is_some_and(|b| b.truth()) && !value.truth());
            Ok(if falls { default.unwrap_or_else(|| Value::from("")) } else { value.clone() })
        },
        "dictsort" => |_, value, call| dictsort(value, call),
        "filesizeformat" => |_, value, call| filesize(value, call),
        "float" => |name, value, call| {
            let [default] = call.bind(name, ["default"])?;
            match float_of(value)? {
                Some(x) => Ok(Value::Float(x)),
                None => Ok(default.unwrap_or(Value::Float(0.0))),
            }
        },
        "int" => |_, value, call| int(value, call),
        "format" => |_, value, call| {
            let pattern = soft(value)?;
            if !call.positional.is_empty() && !call.named.is_empty() {
                return fault("can't handle positional and keyword arguments at the same time");
            }
            let argument = if call.named.is_empty() {
                Value::tuple(call.positional)?
            } else {
                Value::dict(call.named.into_iter().map(|(name, value)| (Value::Str(name), value)))?
            };
            format::percent(&pattern, &argument).map(Value::from)
        },
        "groupby" => |_, value, call| groupby(value, call),
        "indent" => |_, value, call| indent(value, call),
        "join" => |name, value, call| {
            let [separator, by] = call.bind(name, ["d", "attribute"])?;
            let mut parts = Vec::new();
            for value in value.iterate()? {
                parts.push(subject(&value, by.as_ref())?.text()?);
            }
            let separator = separator.map_or_else(|| Ok("".into()), |s| s.text())?;
            joined(&separator, &parts).map(Value::from)
        },
        "map" => |_, value, call| map(value, call),
        "max" | "min" => |name, value, call| {
            let [case_sensitive, by] = call.bind(name, ["case_sensitive", "attribute"])?;
            let case_sensitive = case_sensitive.is_some_and(|c| c.truth());
            let keyed = keyed(value.iterate()?, by.as_ref(), case_sensitive)?;
            let mut best: Option<(Value, Value)> = None;
            for (key, value) in keyed {
                let better = match &best {
                    None => true,
                    Some((found, _)) if name == "max" => key.order(found)? == Some(Ordering::Greater),
                    Some((found, _)) => key.order(found)? == Some(Ordering::Less),
                };
                if better {
                    best = Some((key, value));
                }
            }
            let none = || Value::Undefined("No aggregated item, sequence was empty.".into());
            Ok(best.map_or_else(none, |(_, value)| value))
        },
        "reject" | "select" | "rejectattr" | "selectattr" => select,
        "replace" => |name, value, call| {
            let [old, new, count] = call.bind(name, ["old", "new", "count"])?;
            let (Some(old), Some(new)) = (old, new) else { return fault("replace missing required arguments") };
            let count = count.filter(|c| !matches!(c, Value::None)).map_or(Ok(-1), |count| count.index("count"))?;
            replaced(&value.text()?, &old.text()?, &new.text()?, count).map(Value::from)
        },
        "round" => |_, value, call| round(value, call),
        "sort" => |name, value, call| {
            let [reverse, case_sensitive, by] = call.bind(name, ["reverse", "case_sensitive", "attribute"])?;
            let case_sensitive = case_sensitive.is_some_and(|c| c.truth());
            let mut all = Vec::new();
            for value in value.iterate()? {
                // Several attributes are compared one after the other.
                let keys = match &by {
                    Some(Value::Str(names)) => {
                        names.split(',').map(|n| path(&value, &n.into(), None)).collect::<Result<Vec<_>>>()?
                    }
                    by => vec![subject(&value, by.as_ref())?],
                };
                let keys = keys.iter().map(|key| folded(key, case_sensitive)).collect::<Result<_>>()?;
                all.push((Value::list(keys)?, value));
            }
            Value::list(sorted(all, backwards(reverse)?)?)
        },
        "sum" => |name, value, call| {
            let [by, start] = call.bind(name, ["attribute", "start"])?;
            let mut sum = start.unwrap_or(Value::Int(0));
            if sum.as_str().is_some() {
                return fault("sum() can't sum strings");
            }
            let mut floats = false;
            for value in value.iterate()? {
                let value = subject(&value, by.as_ref())?;
                floats |= matches!(value, Value::Float(_));
                sum = operators::apply(Operator::Add, &sum, &value)?;
            }
            // Since 3.12 Python adds floats with a correction, so that the last digits depend on its version.
            if floats && !matches!(sum, Value::Float(x) if x.fract() == 0.0 && x.abs() < 1e15) {
                return refuse("the sum of fractions");
            }
            Ok(sum)
        },
        "tojson" => |_, value, call| json::tojson(value, call),
        "trim" => |name, value, call| {
            let [chars] = call.bind(name, ["chars"])?;
            let text = value.text()?;
            charge(text.len())?;
            let text = strip(&text, "strip", &chars)?;
            Ok(if matches!(value, Value::Markup(_)) { Value::Markup(text.into()) } else { text.into() })
        },
        "truncate" => |_, value, call| truncate(value, call),
        "unique" => |name, value, call| {
            let [case_sensitive, by] = call.bind(name, ["case_sensitive", "attribute"])?;
            let mut seen = Keys::default();
            let mut kept = Vec::new();
            for (key, value) in keyed(value.iterate()?, by.as_ref(), case_sensitive.is_some_and(|c| c.truth()))? {
                if seen.find(&key)?.is_none() {
                    seen.add(&key, kept.len());
                    kept.push(value);
                }
            }
            Value::once("generator", kept)
        },
        "xmlattr" => |_, value, call| xmlattr(value, call),
        "pprint" | "random" | "striptags" | "urlize" | "wordwrap" => |name, _, _| refuse(format!("the filter {name}")),
        _ => return None,
    };
    Some(filter)
}

/// `str(value)` for a filter that gives a text again; a safe text would stay safe, which is not done here.
fn soft(value: &Value) -> Result<std::sync::Arc<str>> {
    if matches!(value, Value::Markup(_)) {
        return refuse("a filter that changes a safe text");
    }
    let text = value.text()?;
    charge(text.len())?;
    Ok(text)
}

/// Refuses what Python's `reversed` refuses.
fn reversible(value: &Value) -> Result<()> {
    match value {
        Value::Once(_) | Value::Loop(_) => fault(format!("'{}' object is not reversible", value.type_name())),
        _ => Ok(()),
    }
}

/// An item by its path, such as `function.name` or `0`. What is not there is `default`, if one is given that is not none.
fn path(value: &Value, by: &Value, default: Option<&Value>) -> Result<Value> {
    let parts: Vec<Value> = match by {
        Value::None => Vec::new(),
        Value::Str(path) => path
            .split('.')
            .map(|part| match part.bytes().all(|b| b.is_ascii_digit()) && !part.is_empty() {
                true => part.parse().map_or_else(|_| Value::from(part), Value::Int),
                false => Value::from(part),
            })
            .collect(),
        other => vec![other.clone()],
    };
    let mut value = value.clone();
    for part in &parts {
        value = item(&value, part)?;
        if let (true, Some(default)) = (value.is_undefined(), default.filter(|d| !matches!(d, Value::None))) {
            value = default.clone();
        }
    }
    Ok(value)
}

/// What a filter looks at of a value: an item by its path, or the value itself.
fn subject(value: &Value, by: Option<&Value>) -> Result<Value> {
    by.map_or_else(|| Ok(value.clone()), |by| path(value, by, None))
}

/// A key for comparison: texts in lower case unless case counts.
fn folded(key: &Value, case_sensitive: bool) -> Result<Value> {
    match key {
        Value::Str(text) | Value::Markup(text) if !case_sensitive => {
            charge(text.len())?;
            lower(text).map(Value::from)
        }
        _ => Ok(key.clone()),
    }
}

/// Each value with its key.
fn keyed(values: Vec<Value>, by: Option<&Value>, case_sensitive: bool) -> Result<Vec<(Value, Value)>> {
    values.into_iter().map(|value| Ok((folded(&subject(&value, by)?, case_sensitive)?, value))).collect()
}

/// The values by their keys; see [`sorting::sorted`].
fn sorted(all: Vec<(Value, Value)>, reverse: bool) -> Result<Vec<Value>> {
    Ok(sorting::sorted(all, |(key, _)| key, reverse)?.into_iter().map(|(_, value)| value).collect())
}

/// Python's `reverse` of `sorted`, which must be a whole number or a boolean.
fn backwards(reverse: Option<Value>) -> Result<bool> {
    match reverse.map_or(Ok(0), |reverse| reverse.index("reverse")).map(i32::try_from)? {
        Ok(n) => Ok(n != 0),
        Err(_) => fault("Python int too large to convert to C int"),
    }
}

fn batches(name: &str, value: &Value, call: Call) -> Result<Value> {
    let [count, fill] = call.bind(name, [if name == "batch" { "linecount" } else { "slices" }, "fill_with"])?;
    let Some(count) = count else { return fault(format!("{name} missing its number")) };
    let fill = fill.filter(|f| !matches!(f, Value::None));
    let mut items = value.iterate()?;
    let count = match usize::try_from(count.index("the number")?) {
        Ok(count) if count > 0 && count <= 100_000 => count,
        _ => return refuse(format!("{name} by this number")),
    };
    let mut parts = Vec::new();
    if name == "batch" {
        while !items.is_empty() {
            let rest = items.split_off(count.min(items.len()));
            let mut part = std::mem::replace(&mut items, rest);
            if let Some(fill) = &fill {
                charge(count * size_of::<Value>())?;
                part.resize(count, fill.clone());
            }
            parts.push(Value::list(part)?);
        }
        return Value::once("generator", parts);
    }
    let (each, longer) = (items.len() / count, items.len() % count);
    for i in 0..count {
        let rest = items.split_off(each + usize::from(i < longer));
        let mut part = std::mem::replace(&mut items, rest);
        part.extend(fill.iter().filter(|_| i >= longer).cloned());
        parts.push(Value::list(part)?);
    }
    Value::once("generator", parts)
}

fn dictsort(value: &Value, call: Call) -> Result<Value> {
    let [case_sensitive, by, reverse] = call.bind("dictsort", ["case_sensitive", "by", "reverse"])?;
    let index = match by.as_ref().map(Value::as_str) {
        None | Some(Some("key")) => 0,
        Some(Some("value")) => 1,
        _ => return fault("You can only sort by either \"key\" or \"value\""),
    };
    let Value::Dict(dict) = value.defined()? else {
        return fault(format!("'{}' object has no attribute 'items'", value.type_name()));
    };
    let case_sensitive = case_sensitive.is_some_and(|c| c.truth());
    let mut all = Vec::new();
    for (key, value) in dict.entries() {
        let by = if index == 0 { key } else { value };
        all.push((folded(by, case_sensitive)?, Value::tuple(vec![key.clone(), value.clone()])?));
    }
    Value::list(sorted(all, backwards(reverse)?)?)
}

/// Escapes for HTML, as markupsafe does.
fn escaped(text: &str) -> Result<String> {
    charge(text.len().saturating_mul(6))?;
    Ok(text
        .replace('&', "&amp;")
        .replace('>', "&gt;")
        .replace('<', "&lt;")
        .replace('\'', "&#39;")
        .replace('"', "&#34;"))
}

fn filesize(value: &Value, call: Call) -> Result<Value> {
    let [binary] = call.bind("filesizeformat", ["binary"])?;
    let binary = binary.is_some_and(|b| b.truth());
    let Some(bytes) = float_of(value)? else { return fault("filesizeformat of what is no number") };
    let base: f64 = if binary { 1024.0 } else { 1000.0 };
    if bytes == 1.0 {
        return Ok("1 Byte".into());
    }
    if bytes < base {
        return Ok(format!("{} Bytes", truncated(bytes)?).into());
    }
    let units = ["k", "M", "G", "T", "P", "E", "Z", "Y"];
    let (unit, letter) = (0..8)
        .map(|i| (base.powi(i + 2), units[i as usize]))
        .find(|(unit, _)| bytes < *unit)
        .unwrap_or((base.powi(9), "Y"));
    let suffix = if binary { format!("{}iB", letter.to_uppercase()) } else { format!("{letter}B") };
    let size = format!("{:.1}", base * bytes / unit).to_ascii_lowercase(); // Rust has a capital `NaN`
    Ok(format!("{size} {suffix}").into())
}

/// Python's `float` of a value; `None` where it raises what the filters `int` and `float` catch.
fn float_of(value: &Value) -> Result<Option<f64>> {
    let Some(text) = value.defined()?.as_str() else { return Ok(value.as_number()) };
    charge(text.len())?;
    let text = stripped(text);
    if !text.is_ascii() {
        let other = text.chars().any(|c| !c.is_ascii() && c.is_numeric());
        return if other { refuse("a number in other digits") } else { Ok(None) };
    }
    let plain = plain_digits(text, 10);
    let word = plain.trim_start_matches(['+', '-']).to_ascii_lowercase();
    let is_number =
        word.starts_with(|c: char| c.is_ascii_digit() || c == '.') || ["inf", "infinity", "nan"].contains(&&*word);
    let signs = plain.len() - word.len();
    Ok(if is_number && signs <= 1 && !plain.contains('_') { plain.parse().ok() } else { None })
}

/// A text without the white space that Python lets a number have around it: not all that `strip` takes away.
fn stripped(text: &str) -> &str {
    text.trim_matches(char::is_whitespace)
}

/// A text without underscores that stand between digits, as Python's numbers may have them.
fn plain_digits(text: &str, radix: u32) -> String {
    let bytes = text.as_bytes();
    let digit = |i: Option<usize>| i.and_then(|i| bytes.get(i)).is_some_and(|digit| char::from(*digit).is_digit(radix));
    text.char_indices()
        .filter(|(i, c)| *c != '_' || !digit(i.checked_sub(1)) || !digit(Some(i + 1)))
        .map(|(_, c)| c)
        .collect()
}

fn int(value: &Value, call: Call) -> Result<Value> {
    let [default, base] = call.bind("int", ["default", "base"])?;
    let default = default.unwrap_or(Value::Int(0));
    let base = base.map_or(Ok(10), |base| base.index("base"))?;
    if let Some(text) = value.as_str() {
        charge(text.len())?;
        let text = stripped(text);
        let (sign, digits) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text.strip_prefix('+').unwrap_or(text)),
        };
        let lower = digits.to_ascii_lowercase();
        let prefixes = [("0b", 2), ("0o", 8), ("0x", 16)];
        let found = prefixes.iter().find(|(prefix, radix)| lower.starts_with(prefix) && (base == 0 || base == *radix));
        let (radix, digits) = match (found, base) {
            // An underscore may stand behind the prefix too.
            (Some((prefix, radix)), _) => {
                let digits = &digits[prefix.len()..];
                (*radix, digits.strip_prefix('_').unwrap_or(digits))
            }
            (None, 0) if digits.len() > 1 && digits.starts_with('0') => {
                return refuse("int with base 0 of a text with a leading zero");
            }
            (None, 0) => (10, digits),
            (None, 2..=36) => (base, digits),
            _ => return fault("int() base must be >= 2 and <= 36, or 0"),
        };
        let digits = plain_digits(digits, radix as u32);
        if !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix as u32)) {
            return match i128::from_str_radix(&digits, radix as u32) {
                Ok(n) => Ok(Value::Int(sign * n)),
                Err(_) => too_large(),
            };
        }
    }
    if let Some(n) = value.as_int() {
        return Ok(Value::Int(n));
    }
    match float_of(value)? {
        Some(x) if x.is_finite() => truncated(x).map(Value::Int),
        // Infinity is no whole number, and where it is not written as a text Python raises.
        Some(x) if x.is_infinite() && value.as_str().is_none() => truncated(x).map(Value::Int),
        _ => Ok(default),
    }
}

fn groupby(value: &Value, call: Call) -> Result<Value> {
    let [by, default, case_sensitive] = call.bind("groupby", ["attribute", "default", "case_sensitive"])?;
    let Some(by) = by else { return fault("groupby missing its attribute") };
    let case_sensitive = case_sensitive.is_some_and(|c| c.truth());
    let mut all = Vec::new();
    for value in value.iterate()? {
        let key = folded(&path(&value, &by, default.as_ref())?, case_sensitive)?;
        all.push((key.clone(), Value::tuple(vec![key, value])?));
    }
    let mut groups: Vec<(Value, Vec<Value>)> = Vec::new();
    for pair in sorted(all, false)? {
        let Value::Tuple(pair) = pair else { continue };
        let [key, value] = &pair.values[..] else { continue };
        match groups.last_mut() {
            Some((found, values)) if found.equals(key)? => values.push(value.clone()),
            _ => groups.push((key.clone(), vec![value.clone()])),
        }
    }
    let mut out = Vec::new();
    for (key, values) in groups {
        let key = if case_sensitive { key } else { path(&values[0], &by, default.as_ref())? };
        out.push(Value::group(key, values)?);
    }
    Value::list(out)
}

fn indent(value: &Value, call: Call) -> Result<Value> {
    let [width, first, blank] = call.bind("indent", ["width", "first", "blank"])?;
    let Value::Str(text) = value else {
        return if matches!(value, Value::Markup(_)) {
            refuse("indent of a safe text")
        } else {
            fault("indent of what is no text")
        };
    };
    let (first, blank) = (first.is_some_and(|f| f.truth()), blank.is_some_and(|b| b.truth()));
    let breaks = text.matches(|c: char| c.is_whitespace() || is_space(c)).count() + 2;
    let indention = match &width {
        Some(Value::Str(text)) => {
            charge(breaks.saturating_mul(text.len()))?;
            text.to_string()
        }
        width => {
            let width = width.as_ref().map_or(Ok(4), |w| w.index("width"))?.max(0) as usize;
            charge(breaks.saturating_mul(width))?;
            " ".repeat(width)
        }
    };
    let text = format!("{text}\n");
    charge(text.len())?;
    let mut out = if first { indention.clone() } else { String::new() };
    for (i, line) in lines(&text, false).into_iter().enumerate() {
        if i > 0 {
            out.push('\n');
            out.push_str(if blank || !line.is_empty() { &indention } else { "" });
        }
        out.push_str(line);
    }
    Ok(out.into())
}

fn map(value: &Value, call: Call) -> Result<Value> {
    if !value.truth() {
        return Value::once("generator", Vec::new());
    }
    let items = value.iterate()?;
    let mut out = Vec::with_capacity(items.len());
    if call.positional.is_empty() && call.named.iter().any(|(n, _)| &**n == "attribute") {
        let (mut by, mut default) = (Value::None, None);
        for (name, value) in call.named {
            match &*name {
                "attribute" => by = value,
                "default" => default = Some(value),
                _ => return fault(format!("Unexpected keyword argument '{name}'")),
            }
        }
        for value in &items {
            out.push(path(value, &by, default.as_ref())?);
        }
    } else {
        let Some((name, rest)) = call.positional.split_first() else { return fault("map requires a filter argument") };
        let Some(name) = name.as_str() else { return fault("the name of a filter is a text") };
        for value in &items {
            out.push(apply(name, value, Call { positional: rest.to_vec(), named: call.named.clone() })?);
        }
    }
    Value::once("generator", out)
}

fn select(name: &str, value: &Value, call: Call) -> Result<Value> {
    if !value.truth() {
        return Value::once("generator", Vec::new());
    }
    let mut arguments = call.positional.into_iter();
    let by = if name.ends_with("attr") {
        let Some(by) = arguments.next() else { return fault("Missing parameter for attribute name") };
        Some(by)
    } else {
        None
    };
    let test = arguments.next();
    let rest: Vec<Value> = arguments.collect();
    let mut kept = Vec::new();
    for value in value.iterate()? {
        step()?;
        let looked_at = subject(&value, by.as_ref())?;
        let passes = match &test {
            None => looked_at.truth(),
            Some(test) => {
                let Some(test) = test.as_str() else { return fault("the name of a test is a text") };
                let call = Call { positional: rest.clone(), named: call.named.clone() };
                checks::apply(test, &looked_at, call, is_filter)?
            }
        };
        if passes == name.starts_with("select") {
            kept.push(value);
        }
    }
    Value::once("generator", kept)
}

fn round(value: &Value, call: Call) -> Result<Value> {
    let [precision, method] = call.bind("round", ["precision", "method"])?;
    let method = method.unwrap_or_else(|| Value::from("common"));
    let precision = precision.map_or(Ok(0), |p| p.index("precision"))?;
    let Some(x) = value.defined()?.as_number() else {
        return fault(format!("type {} doesn't define __round__ method", value.type_name()));
    };
    match method.as_str() {
        Some("common") => {
            if let Some(n) = value.as_int() {
                return if precision >= 0 { Ok(Value::Int(n)) } else { refuse("rounding a whole number to tens") };
            }
            if !(0..=300).contains(&precision) {
                return refuse(format!("round({precision})"));
            }
            // Both round the exact value to the nearest, and ties to the even digit.
            let text = format!("{x:.*}", precision as usize);
            Ok(Value::Float(text.parse().unwrap_or(x)))
        }
        Some(method @ ("ceil" | "floor")) => {
            if !(0..=22).contains(&precision) {
                return refuse(format!("round({precision}, '{method}')"));
            }
            let power = 10_f64.powi(precision as i32);
            let scaled = x * power;
            let whole = truncated(if method == "ceil" { scaled.ceil() } else { scaled.floor() })?;
            Ok(Value::Float(whole as f64 / power))
        }
        _ => fault("method must be common, ceil or floor"),
    }
}

/// Jinja2's own title case: the first character of what stands between spaces, hyphens and opening brackets.
fn title(text: &str) -> Result<String> {
    let mut out = String::with_capacity(text.len());
    for word in text.split_inclusive(|c| is_space(c) || matches!(c, '-' | '(' | '{' | '[' | '<')) {
        // The separator at the end has no case.
        let (first, rest) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
        out.push_str(&upper(first)?);
        out.push_str(&lower(rest)?);
    }
    Ok(out)
}

fn truncate(value: &Value, call: Call) -> Result<Value> {
    let [length, killwords, end, leeway] = call.bind("truncate", ["length", "killwords", "end", "leeway"])?;
    let length = length.map_or(Ok(255), |l| l.index("length"))?;
    let leeway = leeway.filter(|l| !matches!(l, Value::None)).map_or(Ok(5), |l| l.index("leeway"))?;
    let end = end.unwrap_or_else(|| Value::from("..."));
    let Value::Str(end) = end else { return refuse("truncate with an end that is no text") };
    let room = length.saturating_sub(end.chars().count() as i64);
    if room < 0 || leeway < 0 {
        return fault("truncate: expected length >= the end's and leeway >= 0");
    }
    match value.len()? {
        // Whatever has a length may be short enough.
        Some(len) if len as i64 <= length.saturating_add(leeway) => return Ok(value.clone()),
        Some(_) => {}
        None => return fault(format!("object of type '{}' has no len()", value.type_name())),
    }
    let text = match value {
        Value::Str(text) => text,
        Value::Markup(_) => return refuse("truncate of a long safe text"),
        _ => return fault(format!("truncate of a long {}", value.type_name())),
    };
    charge(text.len())?;
    let kept: String = text.chars().take(room as usize).collect();
    let kept = if killwords.is_some_and(|k| k.truth()) {
        &*kept
    } else {
        kept.rsplit_once(' ').map_or(&*kept, |(before, _)| before)
    };
    Ok(format!("{kept}{end}").into())
}

/// Percent escapes of a URL, as `urllib.parse.quote` makes them.
fn quoted(value: &Value, query: bool) -> Result<String> {
    let text = value.text()?;
    charge(text.len().saturating_mul(3))?;
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'-' | b'~' => out.push(byte.into()),
            b'/' if !query => out.push('/'),
            b' ' if query => out.push('+'),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    Ok(out)
}

fn urlencode(value: &Value) -> Result<Value> {
    if value.as_str().is_some() || !value.is_iterable() {
        return quoted(value, false).map(Value::from);
    }
    let pairs = match value {
        Value::Dict(dict) => Value::View(View::Items, dict.clone()).iterate()?,
        _ => value.iterate()?,
    };
    let mut parts = Vec::new();
    for pair in pairs {
        let pair = pair.iterate()?;
        let [key, value] = &pair[..] else { return fault("urlencode: a pair has two items") };
        parts.push(format!("{}={}", quoted(key, true)?, quoted(value, true)?));
    }
    joined("&", &parts).map(Value::from)
}

/// How many runs of `\w` a text has.
fn words(text: &str) -> Result<Value> {
    let mut count = 0_usize;
    let mut inside = false;
    for c in text.chars() {
        let is_word = c == '_' || is_alphanumeric(c)?;
        count += usize::from(is_word && !inside);
        inside = is_word;
    }
    Ok(count.into())
}

fn xmlattr(value: &Value, call: Call) -> Result<Value> {
    let [space] = call.bind("xmlattr", ["autospace"])?;
    let Value::Dict(dict) = value else { return fault("xmlattr of what is no mapping") };
    let mut parts = Vec::new();
    for (key, value) in dict.entries() {
        if matches!(value, Value::None | Value::Undefined(_)) {
            continue;
        }
        let Value::Str(key) = key else { return fault("xmlattr: the name of an attribute is a text") };
        if key.contains(|c: char| is_space(c) || matches!(c, '/' | '>' | '=')) {
            return fault(format!("Invalid character in attribute name: {key:?}"));
        }
        let value = if let Value::Markup(text) = value { text.to_string() } else { escaped(&value.text()?)? };
        parts.push(format!("{}=\"{value}\"", escaped(key)?));
    }
    let text = joined(" ", &parts)?;
    let space = space.is_none_or(|s| s.truth()) && !text.is_empty();
    Ok(if space { format!(" {text}") } else { text }.into())
}
