//! Python's formatting of texts: the operator `%` (printf) and the method `format`.

use std::sync::Arc;

use super::access::{attribute, item};
use super::arguments::Call;
use super::budget::{Text, charge, read};
use super::fault::{Result, fault, refuse, too_large};
use super::python_text::{exponent_of_python, float_repr, string_repr};
use super::value::Value;

/// Widest field, and longest precision. No template pads further.
const WIDEST: usize = 1 << 16;

/// What stands before a conversion: flags, width and precision.
#[derive(Clone, Default)]
struct Spec {
    fill: Option<char>,
    /// One of `<`, `>`, `^` and `=`.
    align: Option<char>,
    /// `+`, `-` or a space.
    sign: Option<char>,
    alternate: bool,
    zero: bool,
    /// `,` or `_` between groups of digits.
    group: Option<char>,
    width: usize,
    precision: Option<usize>,
}

/// `pattern % argument`. A tuple is the list of arguments, a mapping has them by name, anything else is the one argument.
pub(crate) fn percent(pattern: &str, argument: &Value) -> Result<String> {
    let mut positional = match argument {
        Value::Tuple(items) => items.values.clone(),
        other => vec![other.clone()],
    }
    .into_iter();
    let mut next = || match positional.next() {
        Some(value) => Ok(value),
        None => fault("not enough arguments for format string"),
    };
    let mut named = false;
    let mut out = Text::default();
    let mut rest = pattern;
    while let Some((before, field)) = rest.split_once('%') {
        out.push_str(before)?;
        let mut field = field;
        let mut value = None;
        if let Some(inside) = field.strip_prefix('(') {
            let Some(end) = closing(inside, ['(', ')']) else { return fault("incomplete format key") };
            let Value::Dict(dict) = argument else { return fault("format requires a mapping") };
            let key = &inside[..end];
            let Some(found) = dict.get_str(key) else { return fault(format!("KeyError: '{key}'")) };
            named = true;
            value = Some(found.clone());
            field = &inside[end + 1..];
        }
        let mut spec = Spec::default();
        while let Some(flag) = field.chars().next().filter(|c| "#0- +".contains(*c)) {
            match flag {
                '#' => spec.alternate = true,
                '0' => spec.zero = true,
                '-' => spec.align = Some('<'),
                '+' => spec.sign = Some('+'),
                _ => spec.sign = spec.sign.or(Some(' ')),
            }
            field = &field[1..];
        }
        let mut number = |field: &mut &str| -> Result<Option<i64>> {
            if let Some(tail) = field.strip_prefix('*') {
                *field = tail;
                return match next()?.as_int().map(i64::try_from) {
                    Some(Ok(n)) => Ok(Some(n)),
                    _ => fault("* wants int"),
                };
            }
            Ok(whole(field))
        };
        if let Some(width) = number(&mut field)? {
            if width < 0 {
                spec.align = Some('<');
            }
            spec.width = bounded(width.unsigned_abs())?;
        }
        if let Some(tail) = field.strip_prefix('.') {
            field = tail;
            spec.precision = Some(bounded(number(&mut field)?.unwrap_or(0).max(0) as u64)?);
        }
        let is_plain = field.starts_with('%') && rest[before.len() + 1..].starts_with('%');
        field = field.strip_prefix(['h', 'l', 'L']).unwrap_or(field);
        let Some(code) = field.chars().next() else { return fault("incomplete format") };
        rest = &field[code.len_utf8()..];
        if code == '%' {
            if !is_plain {
                return refuse("%% with flags, a width or a precision");
            }
            out.push('%')?;
            continue;
        }
        let value = match value {
            Some(value) => value,
            None => next()?,
        };
        if spec.align.is_some() {
            spec.zero = false;
        }
        converted(&mut out, &spec, code, &value)?;
    }
    out.push_str(rest)?;
    // A mapping may have fields that are not used; so may, alone, anything that has items.
    let unused = positional.next().is_some();
    if unused && !named && !matches!(argument, Value::Dict(_) | Value::List(_) | Value::Range(_) | Value::Undefined(_))
    {
        return fault("not all arguments converted during string formatting");
    }
    Ok(out.into_string())
}

/// A width or precision, if it is not absurd.
fn bounded(n: u64) -> Result<usize> {
    match usize::try_from(n) {
        Ok(n) if n <= WIDEST => Ok(n),
        _ => fault(format!("a width or precision over {WIDEST}")),
    }
}

/// Where a bracket that was opened just before `text` is closed; `None` if it never is.
fn closing(text: &str, [open, close]: [char; 2]) -> Option<usize> {
    let mut depth = 1;
    text.find(|c: char| {
        depth += i64::from(c == open) - i64::from(c == close);
        depth == 0
    })
}

/// Takes the digits that a text begins with, as a whole number; `i64::MAX` if it is larger than that, `None` if there are no digits.
fn whole(rest: &mut &str) -> Option<i64> {
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, tail) = rest.split_at(digits);
    *rest = tail;
    (!number.is_empty()).then(|| number.parse().unwrap_or(i64::MAX))
}

/// One conversion of `%`.
fn converted(out: &mut Text, spec: &Spec, code: char, value: &Value) -> Result<()> {
    if matches!(code, 's' | 'r' | 'a') {
        let text = match code {
            's' => value.text()?,
            'r' => repr(value)?.into(),
            _ => ascii(value)?.into(),
        };
        let text: String = spec.precision.map_or_else(|| text.to_string(), |n| text.chars().take(n).collect());
        return padded(out, &Spec { zero: false, ..spec.clone() }, '>', "", &text);
    }
    if code == 'c' {
        let text = match (value.as_str(), value.as_int()) {
            (Some(text), _) if text.chars().count() == 1 => text.to_owned(),
            (_, Some(n)) => match u32::try_from(n).ok().and_then(char::from_u32) {
                Some(c) => c.to_string(),
                None => return fault("%c arg not in range(0x110000)"),
            },
            _ => return fault("%c requires int or char"),
        };
        return padded(out, &Spec { zero: false, ..spec.clone() }, '>', "", &text);
    }
    value.defined()?;
    match code {
        'd' | 'i' | 'u' => {
            let n = match (value, value.as_int()) {
                (Value::Float(x), _) => truncated(*x)?,
                (_, Some(n)) => n,
                _ => return fault(format!("%{code} format: a real number is required, not {}", value.type_name())),
            };
            integer(out, spec, 'd', n, spec.precision.unwrap_or(0))
        }
        'o' | 'x' | 'X' => match value.as_int() {
            Some(n) => integer(out, spec, code, n, spec.precision.unwrap_or(0)),
            None => fault(format!("%{code} format: an integer is required, not {}", value.type_name())),
        },
        'e' | 'E' | 'f' | 'F' | 'g' | 'G' => match value.as_number() {
            Some(x) => float(out, spec, code, x),
            None => fault(format!("must be real number, not {}", value.type_name())),
        },
        _ => fault(format!("unsupported format character '{code}'")),
    }
}

/// Python's `int` of a float.
pub(crate) fn truncated(x: f64) -> Result<i128> {
    if !x.is_finite() {
        return fault(format!("cannot convert float {} to integer", float_repr(x)));
    }
    if x.abs() >= 1.7e38 {
        return too_large();
    }
    Ok(x.trunc() as i128)
}

/// `repr(value)`.
pub(crate) fn repr(value: &Value) -> Result<String> {
    let mut out = Text::default();
    value.repr(&mut out)?;
    Ok(out.into_string())
}

/// `ascii(value)`.
fn ascii(value: &Value) -> Result<String> {
    let mut out = String::new();
    for c in repr(value)?.chars() {
        match c as u32 {
            0..0x80 => out.push(c),
            n @ 0..0x100 => out.push_str(&format!("\\x{n:02x}")),
            n @ 0..0x1_0000 => out.push_str(&format!("\\u{n:04x}")),
            n => out.push_str(&format!("\\U{n:08x}")),
        }
    }
    charge(out.len())?;
    Ok(out)
}

/// Appends a whole number in the base of `code`, with at least `digits` digits.
fn integer(out: &mut Text, spec: &Spec, code: char, n: i128, digits: usize) -> Result<()> {
    let size = n.unsigned_abs();
    let body = match code {
        'b' => format!("{size:b}"),
        'o' => format!("{size:o}"),
        'x' => format!("{size:x}"),
        'X' => format!("{size:X}"),
        _ => size.to_string(),
    };
    let body = format!("{body:0>digits$}");
    let body = match spec.group {
        Some(mark) => grouped(&body, mark, if matches!(code, 'b' | 'o' | 'x' | 'X') { 4 } else { 3 }),
        None => body,
    };
    let prefix = match code {
        'b' | 'o' | 'x' | 'X' if spec.alternate => format!("0{code}"),
        _ => String::new(),
    };
    padded(out, spec, '>', &(sign(spec, n < 0) + &prefix), &body)
}

/// The sign of a number.
fn sign(spec: &Spec, negative: bool) -> String {
    match (negative, spec.sign) {
        (true, _) => "-".to_owned(),
        (false, Some(sign @ ('+' | ' '))) => sign.to_string(),
        _ => String::new(),
    }
}

/// Digits with a mark between groups of `size`, from the right.
fn grouped(digits: &str, mark: char, size: usize) -> String {
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(size) {
            out.push(mark);
        }
        out.push(c);
    }
    out
}

/// Appends a float in the notation of `code`.
fn float(out: &mut Text, spec: &Spec, code: char, x: f64) -> Result<()> {
    let precision = spec.precision.unwrap_or(6);
    charge(400 + precision)?;
    let size = x.abs();
    let mut body = if !size.is_finite() {
        if size.is_nan() { "nan" } else { "inf" }.to_owned()
    } else {
        match code.to_ascii_lowercase() {
            'f' => fixed(size, precision, spec.alternate),
            '%' => fixed(size * 100.0, precision, spec.alternate),
            'e' => exponent_of_python(&format!("{size:.precision$e}")),
            _ => general(size, precision.max(1), spec.alternate),
        }
    };
    if let Some(mark) = spec.group {
        let whole = body.find(|c: char| !c.is_ascii_digit()).unwrap_or(body.len());
        body = grouped(&body[..whole], mark, 3) + &body[whole..];
    }
    if code == '%' {
        body.push('%');
    }
    if code.is_ascii_uppercase() {
        body = body.to_ascii_uppercase();
    }
    let spec = Spec { zero: spec.zero && size.is_finite(), ..spec.clone() };
    padded(out, &spec, '>', &sign(&spec, x.is_sign_negative() && !x.is_nan()), &body)
}

fn fixed(x: f64, precision: usize, alternate: bool) -> String {
    format!("{x:.precision$}") + if alternate && precision == 0 { "." } else { "" }
}

/// `%g`: the shorter notation of so many digits, without zeros at the end.
fn general(x: f64, precision: usize, alternate: bool) -> String {
    let scientific = format!("{x:.*e}", precision - 1);
    let exponent: i64 = scientific.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
    let strip = |text: &str| match text.contains('.') && !alternate {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..precision as i64).contains(&exponent) {
        return strip(&format!("{x:.*}", (precision as i64 - 1 - exponent) as usize));
    }
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    exponent_of_python(&format!("{}e{exponent}", strip(digits)))
}

/// Appends `lead` (a sign and a prefix) and `body` with what fills the width. `side` is where text goes without an alignment.
fn padded(out: &mut Text, spec: &Spec, side: char, lead: &str, body: &str) -> Result<()> {
    let missing = spec.width.saturating_sub(lead.chars().count() + body.chars().count());
    let (fill, align) = match (spec.align, spec.zero) {
        (Some(align), zero) => (spec.fill.unwrap_or(if zero { '0' } else { ' ' }), align),
        (None, true) => ('0', '='),
        (None, false) => (spec.fill.unwrap_or(' '), side),
    };
    let (before, between, after) = match align {
        '<' => (0, 0, missing),
        '^' => (missing / 2, 0, missing - missing / 2),
        '=' => (0, missing, 0),
        _ => (missing, 0, 0),
    };
    out.fill(fill, before)?;
    out.push_str(lead)?;
    out.fill(fill, between)?;
    out.push_str(body)?;
    out.fill(fill, after)
}

/// The method `format`.
pub(crate) fn str_format(pattern: &str, call: &Call) -> Result<String> {
    let mut out = Text::default();
    // Whether fields are numbered by hand or in their order, and the next number of the latter.
    let mut numbering: Option<bool> = None;
    let mut count = 0;
    fields(&mut out, pattern, call, &mut numbering, &mut count, 0)?;
    Ok(out.into_string())
}

/// Appends a pattern with its fields filled in. A field's own format may have fields, and so on, as deep as in Python.
fn fields(
    out: &mut Text,
    pattern: &str,
    call: &Call,
    numbering: &mut Option<bool>,
    count: &mut usize,
    depth: usize,
) -> Result<()> {
    if depth > 2 {
        return fault("Max string recursion exceeded");
    }
    let mut rest = pattern;
    while let Some(at) = rest.find(['{', '}']) {
        out.push_str(&rest[..at])?;
        let bracket = &rest[at..=at];
        rest = &rest[at + 1..];
        if let Some(tail) = rest.strip_prefix(bracket) {
            out.push_str(bracket)?;
            rest = tail;
            continue;
        }
        if bracket == "}" {
            return fault("Single '}' encountered in format string");
        }
        let Some(end) = closing(rest, ['{', '}']) else { return fault("expected '}' before end of string") };
        let field = &rest[..end];
        rest = &rest[end + 1..];
        let (name, spec) = match field.find([':', '!', '[']) {
            // A key in brackets may have either mark in it.
            Some(i) if field[i..].starts_with('[') => match field[i..].find(']').map(|n| n + i) {
                Some(close) => match field[close..].find([':', '!']) {
                    Some(n) => field.split_at(close + n),
                    None => (field, ""),
                },
                None => return fault("Missing ']' in format string"),
            },
            Some(i) => field.split_at(i),
            None => (field, ""),
        };
        let value = field_value(name, call, numbering, count)?;
        let (conversion, spec) = match spec.strip_prefix('!') {
            Some(tail) => {
                let mut chars = tail.chars();
                let Some(code) = chars.next() else {
                    return fault("end of string while looking for conversion specifier");
                };
                match (chars.as_str().strip_prefix(':'), chars.as_str()) {
                    (Some(spec), _) => (Some(code), spec),
                    (None, "") => (Some(code), ""),
                    _ => return fault("expected ':' after conversion specifier"),
                }
            }
            None => (None, spec.strip_prefix(':').unwrap_or(spec)),
        };
        let value = match conversion {
            None => value,
            Some('s') => Value::Str(value.text()?),
            Some('r') => Value::from(repr(&value)?),
            Some('a') => Value::from(ascii(&value)?),
            Some(code) => return fault(format!("Unknown conversion specifier {code}")),
        };
        let mut inner = Text::default();
        fields(&mut inner, spec, call, numbering, count, depth + 1)?;
        formatted(out, &value, &inner.into_string())?;
    }
    out.push_str(rest)
}

/// The argument that a field names, such as `0`, `name.attribute` or `[key]`.
fn field_value(name: &str, call: &Call, numbering: &mut Option<bool>, count: &mut usize) -> Result<Value> {
    let end = name.find(['.', '[']).unwrap_or(name.len());
    let (first, mut rest) = name.split_at(end);
    let by_hand = !first.is_empty();
    let position = if by_hand {
        first.parse::<usize>().ok().filter(|_| first.bytes().all(|b| b.is_ascii_digit()))
    } else {
        Some(*count)
    };
    let mut value = match position {
        Some(i) => {
            if numbering.is_some_and(|hand| hand != by_hand) {
                return fault("cannot switch between manual field specification and automatic field numbering");
            }
            *numbering = Some(by_hand);
            *count += usize::from(!by_hand);
            match call.positional.get(i) {
                Some(value) => value.clone(),
                None => return fault(format!("Replacement index {i} out of range for positional args tuple")),
            }
        }
        None => {
            read(size_of_val(&call.named[..]))?;
            match call.named.iter().find(|(n, _)| **n == *first) {
                Some((_, value)) => value.clone(),
                None => return fault(format!("KeyError: '{first}'")),
            }
        }
    };
    while !rest.is_empty() {
        if let Some(tail) = rest.strip_prefix('.') {
            let end = tail.find(['.', '[']).unwrap_or(tail.len());
            value = attribute(&value, &tail[..end])?;
            rest = &tail[end..];
        } else if let Some((key, tail)) = rest.strip_prefix('[').and_then(|tail| tail.split_once(']')) {
            let index = key.parse::<i64>().ok().filter(|_| key.bytes().all(|b| b.is_ascii_digit()));
            value = item(&value, &index.map_or_else(|| Value::from(key), |i| Value::Int(i.into())))?;
            rest = tail;
        } else {
            return fault("Only '.' or '[' may follow ']' in format field specifier");
        }
    }
    Ok(value)
}

/// Appends Python's `format(value, spec)`.
fn formatted(out: &mut Text, value: &Value, spec: &str) -> Result<()> {
    if spec.is_empty() {
        return out.push_str(&value.text()?);
    }
    let (spec, code) = specification(spec)?;
    let unknown =
        |code: char| fault(format!("Unknown format code '{code}' for object of type '{}'", value.type_name()));
    match value {
        Value::Str(text) => {
            if !matches!(code, None | Some('s')) {
                return unknown(code.unwrap_or('s'));
            }
            if spec.sign.is_some() || spec.alternate || spec.group.is_some() || spec.align == Some('=') {
                return fault("this format is not allowed with a text");
            }
            let text: Arc<str> = match spec.precision {
                Some(n) => text.chars().take(n).collect::<String>().into(),
                None => text.clone(),
            };
            // Zeros fill a text from the left side on, where a number would have them behind its sign.
            let align = spec.align.or(Some('<'));
            padded(out, &Spec { align, ..spec }, '<', "", &text)
        }
        Value::Int(_) | Value::Bool(_) => match code {
            None | Some('d') | Some('b' | 'o' | 'x' | 'X') => {
                if spec.precision.is_some() {
                    return fault("Precision not allowed in integer format specifier");
                }
                if spec.group == Some(',') && !matches!(code, None | Some('d')) {
                    return fault("Cannot specify ',' with this code");
                }
                ungrouped_zeros(&spec)?;
                integer(out, &spec, code.unwrap_or('d'), value.as_int().unwrap_or(0), 0)
            }
            Some(code @ ('e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%')) => {
                ungrouped_zeros(&spec)?;
                float(out, &spec, code, value.as_number().unwrap_or(0.0))
            }
            Some(code @ ('c' | 'n')) => refuse(format!("the format code {code} of a whole number")),
            Some(code) => unknown(code),
        },
        Value::Float(x) => match code {
            Some(code @ ('e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%')) => {
                ungrouped_zeros(&spec)?;
                float(out, &spec, code, *x)
            }
            None if spec.precision.is_none() && spec.group.is_none() && !spec.alternate => {
                let spec = Spec { zero: spec.zero && x.is_finite(), ..spec };
                padded(out, &spec, '>', &sign(&spec, x.is_sign_negative() && !x.is_nan()), &float_repr(x.abs()))
            }
            None | Some('n') => refuse("this format of a float"),
            Some(code) => unknown(code),
        },
        Value::Undefined(_) | Value::None | Value::List(_) | Value::Tuple(_) | Value::Dict(_) => {
            fault(format!("unsupported format string passed to {}.__format__", value.type_name()))
        }
        _ => refuse(format!("a format of a {}", value.type_name())),
    }
}

/// Zeros that fill a width are grouped too, which is not done here.
fn ungrouped_zeros(spec: &Spec) -> Result<()> {
    let zeros = spec.zero || spec.fill == Some('0');
    if spec.group.is_some() && zeros && spec.width > 0 { refuse("a format with both groups and zeros") } else { Ok(()) }
}

/// Reads `[[fill]align][sign][#][0][width][group][.precision][code]`.
fn specification(text: &str) -> Result<(Spec, Option<char>)> {
    let mut spec = Spec::default();
    let mut rest = text;
    let mut chars = text.chars();
    let (first, second) = (chars.next(), chars.next());
    let is_align = |c: Option<char>| c.filter(|c| "<>=^".contains(*c));
    if let (Some(fill), Some(align)) = (first, is_align(second)) {
        (spec.fill, spec.align) = (Some(fill), Some(align));
        rest = &rest[fill.len_utf8() + 1..];
    } else if let Some(align) = is_align(first) {
        spec.align = Some(align);
        rest = &rest[1..];
    }
    if let Some(sign) = rest.chars().next().filter(|c| "+- ".contains(*c)) {
        spec.sign = Some(sign);
        rest = &rest[1..];
    }
    if rest.starts_with('z') {
        return refuse("the format option z");
    }
    if let Some(tail) = rest.strip_prefix('#') {
        spec.alternate = true;
        rest = tail;
    }
    if let Some(tail) = rest.strip_prefix('0') {
        spec.zero = true;
        rest = tail;
    }
    let number = |rest: &mut &str| whole(rest).map(|n| bounded(n.unsigned_abs())).transpose();
    spec.width = number(&mut rest)?.unwrap_or(0);
    if let Some(group) = rest.chars().next().filter(|c| ",_".contains(*c)) {
        spec.group = Some(group);
        rest = &rest[1..];
    }
    if let Some(tail) = rest.strip_prefix('.') {
        rest = tail;
        spec.precision = number(&mut rest)?;
        if spec.precision.is_none() {
            return fault("Format specifier missing precision");
        }
    }
    let mut codes = rest.chars();
    match (codes.next(), codes.next()) {
        (code, None) => Ok((spec, code)),
        _ => fault(format!("Invalid format specifier {}", string_repr(text)?)),
    }
}
