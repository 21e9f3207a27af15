//! The methods of Python's types that do not change anything, and of Jinja2's own objects.

use std::collections::HashSet;
use std::sync::Arc;

use super::arguments::Call;
use super::budget::{charge, look};
use super::fault::{Result, fault, refuse};
use super::format;
use super::letters::{self, capitalized, is_alphanumeric, is_digit, is_letter, is_numeric, is_printable, title};
use super::python_text::is_space;
use super::value::{Value, View};

/// Calls a method that [`find`](super::attributes::find) found.
pub(crate) fn call(value: &Value, name: &str, call: Call) -> Result<Value> {
    match value {
        Value::Str(text) => of_text(text, name, call),
        Value::List(_) | Value::Tuple(_) | Value::Range(_) => {
            let items = value.iterate()?;
            match name {
                "copy" => {
                    call.required(name, [])?;
                    Value::list(items)
                }
                "count" => {
                    let [wanted] = call.required(name, ["_value"])?;
                    let mut count = 0;
                    for item in items {
                        count += usize::from(item.equals(&wanted)?);
                    }
                    Ok(count.into())
                }
                _ => {
                    let [wanted, start, stop] = call.bind(name, ["_value", "_start", "_stop"])?;
                    let Some(wanted) = wanted else { return fault("index expected at least 1 argument") };
                    let (start, stop) = bounds(&start, &stop, items.len())?;
                    for (i, item) in items.iter().enumerate().take(stop).skip(start) {
                        if item.equals(&wanted)? {
                            return Ok(i.into());
                        }
                    }
                    fault(format!("the value is not in the {}", value.type_name()))
                }
            }
        }
        Value::Dict(dict) => match name {
            "get" => {
                let [key, default] = call.bind(name, ["_key", "_default"])?;
                let Some(key) = key else { return fault("get expected at least 1 argument") };
                Ok(dict.get(&key)?.cloned().or(default).unwrap_or(Value::None))
            }
            _ => {
                call.required(name, [])?;
                Ok(match name {
                    "items" => Value::View(View::Items, dict.clone()),
                    "keys" => Value::View(View::Keys, dict.clone()),
                    "values" => Value::View(View::Values, dict.clone()),
                    _ => value.clone(),
                })
            }
        },
        Value::Bool(_) | Value::Int(_) => {
            call.required(name, [])?;
            let size = value.as_int().unwrap_or(0).unsigned_abs();
            Ok(Value::Int((128 - size.leading_zeros()).into()))
        }
        Value::Float(x) => {
            call.required(name, [])?;
            Ok((x.is_finite() && x.fract() == 0.0).into())
        }
        Value::Loop(variable) => {
            let values = call.unnamed(name)?;
            if name == "cycle" {
                return match values.len() {
                    0 => fault("no items for cycling given"),
                    n => Ok(values[variable.at.get() % n].clone()),
                };
            }
            let asked = Value::tuple(values)?;
            let before = variable.changed.replace(Some(asked.clone()));
            Ok(match before {
                Some(before) => !before.equals(&asked)?,
                None => true,
            }
            .into())
        }
        Value::Cycler(cycler) => {
            call.required(name, [])?;
            look();
            let at = cycler.at.get();
            cycler.at.set(if name == "next" { (at + 1) % cycler.items.len() } else { 0 });
            Ok(if name == "next" { cycler.items[at].clone() } else { Value::None })
        }
        _ => refuse(format!("{name} of a {}", value.type_name())),
    }
}

/// Start and stop as Python's slices take them, within a length.
fn bounds(start: &Option<Value>, stop: &Option<Value>, len: usize) -> Result<(usize, usize)> {
    let place = |value: &Option<Value>, default: usize| match value {
        None | Some(Value::None) => Ok(default),
        Some(value) => {
            let i = value.index("a bound")?;
            let i = if i < 0 { i.saturating_add(len as i64).max(0) } else { i };
            Ok(usize::try_from(i).unwrap_or(usize::MAX))
        }
    };
    Ok((place(start, 0)?, place(stop, len)?.min(len)))
}

/// An argument that must be a text.
fn text_of<'v>(value: &'v Value, what: &str) -> Result<&'v str> {
    match value {
        Value::Str(text) => Ok(text),
        Value::Markup(_) => refuse(format!("a safe text as an argument of {what}")),
        _ => fault(format!("{what}: must be str, not {}", value.type_name())),
    }
}

/// A method of a text.
fn of_text(text: &Arc<str>, name: &str, call: Call) -> Result<Value> {
    charge(text.len())?;
    match name {
        "format" => return format::str_format(text, &call).map(Value::from),
        "format_map" => {
            let [mapping] = call.required(name, ["_mapping"])?;
            let Value::Dict(dict) = &mapping else { return refuse("format_map of anything but a mapping") };
            let mut named = Vec::new();
            for (key, value) in dict.entries() {
                if let Value::Str(key) = key {
                    named.push((key.clone(), value.clone()));
                }
            }
            return format::str_format(text, &Call { positional: Vec::new(), named }).map(Value::from);
        }
        "startswith" | "endswith" => {
            let [parts, start, stop] = call.bind(name, ["_part", "_start", "_stop"])?;
            let Some(parts) = parts else { return fault(format!("{name} expected at least 1 argument")) };
            let parts = match &parts {
                Value::Tuple(_) => parts.iterate()?,
                one => vec![one.clone()],
            };
            let whole = window(text, &start, &stop)?;
            for part in &parts {
                let part = text_of(part, name)?;
                if whole.is_some_and(|w| if name == "startswith" { w.starts_with(part) } else { w.ends_with(part) }) {
                    return Ok(true.into());
                }
            }
            return Ok(false.into());
        }
        "find" | "rfind" | "index" | "rindex" | "count" => return search(text, name, call),
        "split" | "rsplit" => {
            let [separator, limit] = call.bind(name, ["sep", "maxsplit"])?;
            let limit = limit.map_or(Ok(-1), |limit| limit.index("maxsplit"))?;
            let parts = split(text, name == "rsplit", separator.as_ref().filter(|s| !matches!(s, Value::None)), limit)?;
            return Value::list(parts.into_iter().map(Value::from).collect());
        }
        "splitlines" => {
            let [keep] = call.bind(name, ["keepends"])?;
            let keep = keep.is_some_and(|k| k.truth());
            return Value::list(lines(text, keep).into_iter().map(Value::from).collect());
        }
        "expandtabs" => {
            let [size] = call.bind(name, ["tabsize"])?;
            let size = size.map_or(Ok(8), |size| size.index("tabsize"))?;
            if !(0..=1 << 16).contains(&size) {
                return refuse(format!("expandtabs({size})"));
            }
            charge(text.matches('\t').count().saturating_mul(size as usize))?;
            return Ok(Value::from(expanded(text, size as usize)));
        }
        "encode" => return refuse("encode, which makes bytes,"),
        "replace" => {
            let [old, new, count] = call.bind(name, ["_old", "_new", "_count"])?;
            let (Some(old), Some(new)) = (&old, &new) else { return fault("replace expected at least 2 arguments") };
            let count = count.map_or(Ok(-1), |count| count.index("count"))?;
            return replaced(text, text_of(old, name)?, text_of(new, name)?, count).map(Value::from);
        }
        "join" => {
            let [items] = call.required(name, ["_iterable"])?;
            let items = items.iterate()?;
            let parts = items.iter().map(|item| text_of(item, name)).collect::<Result<Vec<_>>>()?;
            return joined(text, &parts).map(Value::from);
        }
        "partition" | "rpartition" => {
            let [separator] = call.required(name, ["_separator"])?;
            let separator = text_of(&separator, name)?;
            if separator.is_empty() {
                return fault("empty separator");
            }
            let (parts, otherwise) = match name {
                "partition" => (text.split_once(separator), [&**text, "", ""]),
                _ => (text.rsplit_once(separator), ["", "", &**text]),
            };
            let parts = parts.map_or(otherwise, |(before, after)| [before, separator, after]);
            return Value::tuple(parts.map(Value::from).to_vec());
        }
        "removeprefix" | "removesuffix" => {
            let [part] = call.required(name, ["_part"])?;
            let part = text_of(&part, name)?;
            let rest = if name == "removeprefix" { text.strip_prefix(part) } else { text.strip_suffix(part) };
            return Ok(rest.map_or_else(|| Value::Str(text.clone()), Value::from));
        }
        "strip" | "lstrip" | "rstrip" => {
            let [chars] = call.bind(name, ["_chars"])?;
            return strip(text, name, &chars).map(Value::from);
        }
        "zfill" | "ljust" | "rjust" | "center" => {
            let [width, fill] = call.bind(name, ["_width", "_fill"])?;
            let Some(width) = width else { return fault(format!("{name} expected at least 1 argument")) };
            return pad(text, name, &width, fill.as_ref()).map(Value::from);
        }
        _ => call.required(name, [])?,
    };
    if ["casefold", "isidentifier"].contains(&name) && !text.is_ascii() {
        return refuse(format!("{name} beyond ASCII"));
    }
    let every = |is: fn(char) -> Result<bool>| -> Result<bool> {
        for c in text.chars() {
            if !is(c)? {
                return Ok(false);
            }
        }
        Ok(true)
    };
    let all = |is| every(is).map(|all| Value::from(all && !text.is_empty()));
    Ok(match name {
        "upper" => letters::upper(text)?.into(),
        "lower" | "casefold" => letters::lower(text)?.into(),
        "capitalize" => capitalized(text)?.into(),
        "title" => title(text)?.into(),
        "swapcase" => letters::swapped(text)?.into(),
        "isascii" => text.is_ascii().into(),
        "isspace" => all(|c| Ok(is_space(c)))?,
        "isprintable" => every(is_printable)?.into(),
        "islower" => letters::is_lower(text)?.into(),
        "isupper" => letters::is_upper(text)?.into(),
        "istitle" => letters::is_title(text)?.into(),
        "isalpha" => all(is_letter)?,
        "isdigit" | "isdecimal" => all(is_digit)?,
        "isnumeric" => all(is_numeric)?,
        "isalnum" => all(is_alphanumeric)?,
        "isidentifier" => {
            let word = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            (word && text.starts_with(|c: char| !c.is_ascii_digit())).into()
        }
        _ => return refuse(format!("{name} of a str")),
    })
}

/// The part of a text between two places in characters; `None` where the start is behind the stop or the text's end.
fn window<'t>(text: &'t str, start: &Option<Value>, stop: &Option<Value>) -> Result<Option<&'t str>> {
    if start.is_none() && stop.is_none() {
        return Ok(Some(text));
    }
    let len = text.chars().count();
    let (start, stop) = bounds(start, stop, len)?;
    let byte = |i: usize| text.char_indices().nth(i).map_or(text.len(), |(at, _)| at);
    Ok(if start > stop || start > len { None } else { Some(&text[byte(start)..byte(stop)]) })
}

/// `find`, `rfind`, `index`, `rindex` and `count`.
fn search(text: &str, name: &str, call: Call) -> Result<Value> {
    let [part, start, stop] = call.bind(name, ["_part", "_start", "_stop"])?;
    let Some(part) = part else { return fault(format!("{name} expected at least 1 argument")) };
    let part = text_of(&part, name)?;
    let within = window(text, &start, &stop)?;
    if name == "count" {
        return Ok(within
            .map_or(0, |w| if part.is_empty() { w.chars().count() + 1 } else { w.matches(part).count() })
            .into());
    }
    let found = within.and_then(|w| {
        let at = if name.starts_with('r') { w.rfind(part) } else { w.find(part) }?;
        // The window is a part of the text: how far in it begins, in bytes.
        let before = w.as_ptr() as usize - text.as_ptr() as usize;
        Some(text[..before + at].chars().count())
    });
    match found {
        Some(i) => Ok(i.into()),
        None if name.ends_with("find") => Ok(Value::Int(-1)),
        None => fault("substring not found"),
    }
}

/// Python's `str.split` and `str.rsplit`. A negative limit is none.
pub(crate) fn split<'t>(
    text: &'t str,
    from_right: bool,
    separator: Option<&Value>,
    limit: i64,
) -> Result<Vec<&'t str>> {
    let pieces = usize::try_from(limit).map_or(usize::MAX, |n| n.saturating_add(1));
    let separator = separator.map(|s| text_of(s, "split")).transpose()?;
    charge(text.len().saturating_mul(size_of::<Value>() / 4))?;
    let mut parts: Vec<&str> = match separator {
        Some("") => return fault("empty separator"),
        Some(separator) if from_right => text.rsplitn(pieces, separator).collect(),
        Some(separator) => text.splitn(pieces, separator).collect(),
        None => {
            let trim =
                |t: &'t str| if from_right { t.trim_end_matches(is_space) } else { t.trim_start_matches(is_space) };
            let mut parts = Vec::new();
            let mut rest = trim(text);
            while !rest.is_empty() && parts.len() + 1 < pieces {
                let (part, tail) = if from_right {
                    let start =
                        rest.char_indices().rev().find(|(_, c)| is_space(*c)).map_or(0, |(i, c)| i + c.len_utf8());
                    (&rest[start..], &rest[..start])
                } else {
                    rest.split_at(rest.find(is_space).unwrap_or(rest.len()))
                };
                parts.push(part);
                rest = trim(tail);
            }
            if !rest.is_empty() {
                // What is left keeps the white space at its far end.
                parts.push(rest);
            }
            parts
        }
    };
    if from_right {
        parts.reverse();
    }
    Ok(parts)
}

/// Python's `str.splitlines`: at every line break that Unicode has.
pub(crate) fn lines(text: &str, keep: bool) -> Vec<&str> {
    let is_break =
        |c| matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(is_break) {
        let length =
            if rest[at..].starts_with("\r\n") { 2 } else { rest[at..].chars().next().map_or(1, char::len_utf8) };
        lines.push(if keep { &rest[..at + length] } else { &rest[..at] });
        rest = &rest[at + length..];
    }
    if !rest.is_empty() {
        lines.push(rest);
    }
    lines
}

/// Python's `str.expandtabs`.
fn expanded(text: &str, size: usize) -> String {
    let mut out = String::new();
    let mut column = 0;
    for c in text.chars() {
        match c {
            '\t' => {
                let spaces = if size == 0 { 0 } else { size - column % size };
                out.extend(std::iter::repeat_n(' ', spaces));
                column += spaces;
            }
            '\n' | '\r' => {
                out.push(c);
                column = 0;
            }
            _ => {
                out.push(c);
                column += 1;
            }
        }
    }
    out
}

/// Python's `str.replace`: at most `count` times, without a limit if that is negative.
pub(crate) fn replaced(text: &str, old: &str, new: &str, count: i64) -> Result<String> {
    let found = if old.is_empty() { text.chars().count() + 1 } else { text.matches(old).count() };
    let times = usize::try_from(count).map_or(found, |n| n.min(found));
    charge(text.len().saturating_add(times.saturating_mul(new.len())))?;
    Ok(text.replacen(old, new, times))
}

/// Texts with a separator between.
pub(crate) fn joined<T: AsRef<str>>(separator: &str, parts: &[T]) -> Result<String> {
    let bytes = parts.iter().fold(0_usize, |sum, part| sum.saturating_add(part.as_ref().len() + separator.len()));
    charge(bytes)?;
    let mut out = String::with_capacity(bytes);
    for (i, part) in parts.iter().enumerate() {
        out.push_str(if i > 0 { separator } else { "" });
        out.push_str(part.as_ref());
    }
    Ok(out)
}

/// Python's `strip`, `lstrip` and `rstrip`: white space, or the characters of a text.
pub(crate) fn strip<'t>(text: &'t str, name: &str, chars: &Option<Value>) -> Result<&'t str> {
    let chars = match chars {
        None | Some(Value::None) => None,
        Some(chars) => Some(text_of(chars, name)?),
    };
    charge(chars.map_or(0, str::len))?;
    let chars: Option<HashSet<char>> = chars.map(|chars| chars.chars().collect());
    let goes = |c: char| chars.as_ref().map_or_else(|| is_space(c), |chars| chars.contains(&c));
    Ok(match name {
        "lstrip" => text.trim_start_matches(goes),
        "rstrip" => text.trim_end_matches(goes),
        _ => text.trim_matches(goes),
    })
}

/// The methods `zfill`, `ljust`, `rjust` and `center`: pads a text to a width in characters with one character, a space by
/// default. `zfill` puts zeros behind a sign.
///
/// # Errors
/// Other arguments, and a width over 65,536.
pub(crate) fn pad(text: &str, name: &str, width: &Value, fill: Option<&Value>) -> Result<String> {
    /// No template pads further; Python would try and fail for want of memory.
    const WIDEST: i64 = 1 << 16;
    let width = width.index("a width")?;
    if width > WIDEST {
        return fault(format!("{name}: width {width} is over {WIDEST}"));
    }
    let fill = match (name, fill) {
        ("zfill", None) => '0',
        (_, None) => ' ',
        (_, Some(fill)) => match (text_of(fill, name)?.chars().next(), fill.len()?) {
            (Some(c), Some(1)) if name != "zfill" => c,
            _ => return fault(format!("{name}: the fill character must be exactly one character long")),
        },
    };
    let width = width.max(0) as usize;
    charge(text.len() + width * fill.len_utf8())?;
    let missing = width.saturating_sub(text.chars().count());
    let (left, right) = match name {
        "ljust" => (0, missing),
        "rjust" | "zfill" => (missing, 0),
        // CPython's `center` puts the odd blank left of the text if the width is odd, else right of it.
        _ => (missing / 2 + (missing & width & 1), missing - missing / 2 - (missing & width & 1)),
    };
    let (sign, text) = match text.chars().next() {
        Some('+' | '-') if name == "zfill" => text.split_at(1),
        _ => ("", text),
    };
    let fill = |n: usize| std::iter::repeat_n(fill, n).collect::<String>();
    Ok(format!("{sign}{}{text}{}", fill(left), fill(right)))
}
