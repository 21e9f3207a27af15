//! What Python brings to Jinja and minijinja does not: string methods, `%` formatting, the spelling of values.

use std::fmt::Write;

use minijinja::formatting::{FormatStyle, format};
use minijinja::value::{Kwargs, Rest, Tuple, ValueKind, from_args};
use minijinja::{Environment, Error as JinjaError, ErrorKind, State, Value};

/// The function that [`source`](super::source) puts in place of the `%` operator.
pub(super) const MODULO: &str = "__modulo";

pub(super) fn install(environment: &mut Environment<'static>) {
    environment.set_unknown_method_callback(method);
    environment.set_formatter(|out, _, value| {
        let written = match value.as_str() {
            Some(text) => out.write_str(text),
            None => out.write_str(&text(value)),
        };
        written.map_err(JinjaError::from)
    });
    environment.add_filter("string", |value: &Value| match value.as_str() {
        Some(_) => value.clone(),
        None => Value::from(text(value)),
    });
    environment.add_filter("wordcount", |text: &str| text.split_whitespace().count());
    environment.add_function(MODULO, modulo);
}

/// The value if it is a float.
pub(super) fn as_float(value: &Value) -> Option<f64> {
    if value.is_number() && !value.is_integer() { f64::try_from(value.clone()).ok() } else { None }
}

/// Python's `repr` of a float: the shortest digits that read back as the same number, with an exponent from 1e16 up
/// and below 1e-4.
pub(super) fn float_repr(x: f64) -> String {
    if x.is_nan() {
        return "nan".to_owned();
    }
    if x.is_infinite() {
        return if x > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    if x != 0.0 && !(1e-4..1e16).contains(&x.abs()) {
        let shortest = format!("{x:e}");
        // `{:e}` always writes an exponent.
        let (digits, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(positive) => ('-', positive),
            None => ('+', exponent),
        };
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    let text = x.to_string();
    if text.contains('.') { text } else { text + ".0" }
}

/// Python's `str`.
fn text(value: &Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None => repr(value),
    }
}

/// Python's `repr`.
fn repr(value: &Value) -> String {
    let items =
        |value: &Value| -> Vec<String> { value.try_iter().into_iter().flatten().map(|item| repr(&item)).collect() };
    match value.kind() {
        ValueKind::String => string_repr(value.as_str().unwrap_or_default()),
        ValueKind::Number => as_float(value).map_or_else(|| value.to_string(), float_repr),
        ValueKind::Seq if value.is_tuple() => match items(value).as_slice() {
            [one] => format!("({one},)"),
            many => format!("({})", many.join(", ")),
        },
        ValueKind::Seq => format!("[{}]", items(value).join(", ")),
        ValueKind::Map => {
            let fields: Vec<String> = value
                .try_iter()
                .into_iter()
                .flatten()
                .map(|name| format!("{}: {}", repr(&name), repr(&value.get_item(&name).unwrap_or_default())))
                .collect();
            format!("{{{}}}", fields.join(", "))
        }
        _ => value.to_string(),
    }
}

fn string_repr(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for c in text.chars() {
        // Writing to a string cannot fail.
        let _ = match c {
            '\\' => out.write_str("\\\\"),
            '\n' => out.write_str("\\n"),
            '\r' => out.write_str("\\r"),
            '\t' => out.write_str("\\t"),
            c if c == quote => write!(out, "\\{c}"),
            c if is_printable(c) => out.write_char(c),
            c if (c as u32) < 0x100 => write!(out, "\\x{:02x}", c as u32),
            c if (c as u32) < 0x1_0000 => write!(out, "\\u{:04x}", c as u32),
            c => write!(out, "\\U{:08x}", c as u32),
        };
    }
    out.push(quote);
    out
}

/// Python's `str.isprintable`, of which the standard library has no copy but the one in its debug formatting. The
/// leading letter keeps that from escaping combining marks.
fn is_printable(c: char) -> bool {
    !matches!(c, '\u{7f}'..='\u{a0}' | '\u{ad}')
        && (matches!(c, '"' | '\'') || format!("a{c}").escape_debug().skip(1).eq(std::iter::once(c)))
}

/// `left % right`: formatting where `left` is a string, else the remainder with the divisor's sign.
fn modulo(left: &Value, right: &Value) -> Result<Value, JinjaError> {
    if let Some(pattern) = left.as_str() {
        let args = if right.is_tuple() {
            right.try_iter()?.collect()
        } else if right.kind() == ValueKind::Map {
            let mut named = Vec::new();
            for name in right.try_iter()? {
                named.push((name.to_string(), right.get_item(&name)?));
            }
            vec![Value::from(named.into_iter().collect::<Kwargs>())]
        } else {
            vec![right.clone()]
        };
        let args: Vec<Value> = args;
        return format(FormatStyle::Printf, pattern, &args).map(Value::from);
    }
    let fault = || JinjaError::new(ErrorKind::InvalidOperation, format!("cannot divide {left} by {right}"));
    if left.is_integer() && right.is_integer() {
        let (a, b) = (i128::try_from(left.clone())?, i128::try_from(right.clone())?);
        let remainder = a.checked_rem(b).ok_or_else(fault)?;
        let remainder = if remainder != 0 && (remainder < 0) != (b < 0) { remainder + b } else { remainder };
        return Ok(i64::try_from(remainder).map_or_else(|_| Value::from(remainder), Value::from));
    }
    if !left.is_number() || !right.is_number() {
        return Err(fault());
    }
    let (a, b) = (f64::try_from(left.clone())?, f64::try_from(right.clone())?);
    if b == 0.0 {
        return Err(fault());
    }
    let remainder = a % b;
    Ok(Value::from(if remainder != 0.0 && (remainder < 0.0) != (b < 0.0) { remainder + b } else { remainder }))
}

/// Methods of Python's strings and lists that `pycompat` lacks; everything else is its business.
fn method(state: &mut State<'_, '_>, value: &Value, name: &str, args: &[Value]) -> Result<Value, JinjaError> {
    if let (ValueKind::String, Some(text)) = (value.kind(), value.as_str()) {
        match name {
            "partition" => {
                let (separator,) = from_args::<(&str,)>(args)?;
                return tuple(text.split_once(separator), separator, [text, "", ""]);
            }
            "rpartition" => {
                let (separator,) = from_args::<(&str,)>(args)?;
                return tuple(text.rsplit_once(separator), separator, ["", "", text]);
            }
            "removeprefix" => {
                let (prefix,) = from_args::<(&str,)>(args)?;
                return Ok(Value::from(text.strip_prefix(prefix).unwrap_or(text)));
            }
            "removesuffix" => {
                let (suffix,) = from_args::<(&str,)>(args)?;
                return Ok(Value::from(text.strip_suffix(suffix).unwrap_or(text)));
            }
            "rsplit" => {
                let (separator, limit) = from_args::<(Option<&str>, Option<i64>)>(args)?;
                return Ok(rsplit(text, separator, limit));
            }
            "splitlines" if args.is_empty() => {
                let lines = text.replace("\r\n", "\n").replace('\r', "\n");
                return Ok(lines
                    .strip_suffix('\n')
                    .unwrap_or(&lines)
                    .split('\n')
                    .filter(|_| !text.is_empty())
                    .collect());
            }
            "title" => {
                let () = from_args(args)?;
                return Ok(Value::from(title(text)));
            }
            "swapcase" => {
                let () = from_args(args)?;
                let swap = |c: char| {
                    if c.is_uppercase() { c.to_lowercase().to_string() } else { c.to_uppercase().to_string() }
                };
                return Ok(Value::from(text.chars().map(swap).collect::<String>()));
            }
            "zfill" | "ljust" | "rjust" | "center" => return pad(text, name, args),
            "index" | "rindex" => {
                let found = minijinja_contrib::pycompat::unknown_method_callback(
                    state,
                    value,
                    if name == "index" { "find" } else { "rfind" },
                    args,
                )?;
                return if found.as_i64() == Some(-1) {
                    Err(JinjaError::new(ErrorKind::InvalidOperation, "substring not found"))
                } else {
                    Ok(found)
                };
            }
            _ => {}
        }
    }
    if let (ValueKind::Seq, "index") = (value.kind(), name) {
        let (wanted,) = from_args::<(&Value,)>(args)?;
        return match value.try_iter()?.position(|item| item == *wanted) {
            Some(index) => Ok(Value::from(index)),
            None => Err(JinjaError::new(ErrorKind::InvalidOperation, format!("{wanted} is not in the list"))),
        };
    }
    minijinja_contrib::pycompat::unknown_method_callback(state, value, name, args)
}

/// Python's `str.title`: a letter after anything but a letter is upper case, every other one lower case.
fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut inside = false;
    for c in text.chars() {
        if inside {
            out.extend(c.to_lowercase())
        } else {
            out.extend(c.to_uppercase())
        }
        inside = c.is_alphabetic();
    }
    out
}

fn tuple(parts: Option<(&str, &str)>, separator: &str, otherwise: [&str; 3]) -> Result<Value, JinjaError> {
    if separator.is_empty() {
        return Err(JinjaError::new(ErrorKind::InvalidOperation, "empty separator"));
    }
    let parts = parts.map_or(otherwise, |(before, after)| [before, separator, after]);
    Ok(Value::from(Tuple::from(parts.map(Value::from))))
}

fn rsplit(text: &str, separator: Option<&str>, limit: Option<i64>) -> Value {
    let pieces = match limit.and_then(|n| usize::try_from(n).ok()) {
        Some(limit) => limit + 1,
        None => usize::MAX,
    };
    let mut parts: Vec<&str> = match separator {
        Some(separator) => text.rsplitn(pieces, separator).collect(),
        None => {
            let mut parts = Vec::new();
            let mut rest = text.trim_end();
            while !rest.is_empty() && parts.len() + 1 < pieces {
                let start = rest
                    .rfind(char::is_whitespace)
                    .map_or(0, |i| i + rest[i..].chars().next().map_or(0, char::len_utf8));
                parts.push(&rest[start..]);
                rest = rest[..start].trim_end();
            }
            if !rest.is_empty() {
                parts.push(rest);
            }
            parts
        }
    };
    parts.reverse();
    parts.into_iter().map(Value::from).collect()
}

/// `zfill`, `ljust`, `rjust`, `center`.
fn pad(text: &str, name: &str, args: &[Value]) -> Result<Value, JinjaError> {
    /// No template pads further; Python would try and fail for want of memory.
    const WIDEST: usize = 1 << 16;
    let (width, Rest(fill)) = from_args::<(usize, Rest<String>)>(args)?;
    let fill = match (name, fill.as_slice()) {
        ("zfill", []) => "0",
        (_, []) => " ",
        (_, [one]) if one.chars().count() == 1 && name != "zfill" => one,
        _ => return Err(JinjaError::new(ErrorKind::InvalidOperation, format!("{name}: bad arguments"))),
    };
    if width > WIDEST {
        return Err(JinjaError::new(ErrorKind::InvalidOperation, format!("{name}: width {width} is over {WIDEST}")));
    }
    let len = text.chars().count();
    let missing = width.saturating_sub(len);
    let (left, right) = match name {
        "ljust" => (0, missing),
        "rjust" | "zfill" => (missing, 0),
        // Python puts the odd blank left of text if the width is odd, else right of it.
        _ => (missing / 2 + (missing & width & 1), missing - missing / 2 - (missing & width & 1)),
    };
    let (sign, text) = match text.chars().next() {
        Some('+' | '-') if name == "zfill" => text.split_at(1),
        _ => ("", text),
    };
    Ok(Value::from(format!("{sign}{}{text}{}", fill.repeat(left), fill.repeat(right))))
}
