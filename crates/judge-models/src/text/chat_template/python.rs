//! What Python brings to Jinja and minijinja does not: methods of strings, `%` formatting,
//! remainders, and the spelling of values.
//!
//! [`install`] puts it all into an environment. The reference is what a template prints under
//! transformers, that is, CPython's `str`, `repr` and string methods.
//!
//! What can multiply its input charges `budget` first; what makes about as much text as it gets,
//! such as `title`, does not. minijinja's own functions cannot charge, so they are wrapped: a cost
//! function computes an upper bound on the bytes of the result from the arguments alone, that is
//! charged, and then the original runs.
//!
//! | in a template | runs | cost function |
//! |---|---|---|
//! | filter `format`, operator `%` | minijinja's printf formatting | [`formatted`] |
//! | method `format` | `pycompat` | [`str_formatted`] |
//! | filter `indent` | minijinja's filter | [`indented`] |
//! | filter and method `join` | minijinja's filter, `pycompat` | [`listed`] |
//! | filter and method `replace` | minijinja's filter, `pycompat` | [`replaced`] |
//! | operators `~` and `+` | minijinja's operators | [`joined`], [`added`], which charge themselves |
//!
//! A bound may leave out a constant factor (escapes are not counted), but it must grow with the
//! result, or a template could make far more than the budget. A bound that is too high does no harm
//! as long as real templates stay below it.

use std::fmt::Write;

use minijinja::formatting::{FormatStyle, format};
use minijinja::value::{Kwargs, Rest, Tuple, ValueKind, ValueOrKwargs, from_args};
use minijinja::{Environment, Error as JinjaError, ErrorKind, State, Value, filters};

use super::budget::{Text, charge, enter};

/// The function that [`source`](super::source) puts in place of the `%` operator.
pub(super) const MODULO: &str = "__modulo";

/// The filter that [`source`](super::source) puts on the operands of `~`. It spells values as
/// Python does.
pub(super) const JOINED: &str = "__joined";
/// The filter that [`source`](super::source) puts on the operands of `+`. It leaves values as they
/// are.
pub(super) const ADDED: &str = "__added";

/// Sets up an environment: methods, the spelling of what `{{ … }}` writes, and the filters and
/// functions of this module.
///
/// minijinja's filters that are wrapped stay reachable under a name with two underscores before it,
/// by which the wrapper calls them.
pub(super) fn install(environment: &mut Environment<'static>) {
    environment.set_unknown_method_callback(method);
    environment.set_formatter(|out, _, value| {
        let written = match value.as_str() {
            Some(text) => {
                charge(text.len())?;
                out.write_str(text)
            }
            None => out.write_str(&text(value)?),
        };
        written.map_err(JinjaError::from)
    });
    environment.add_filter("string", |value: &Value| match value.as_str() {
        Some(_) => Ok(value.clone()),
        None => text(value).map(Value::from),
    });
    environment.add_filter("wordcount", |text: &str| text.split_whitespace().count());
    environment.add_function(MODULO, modulo);
    environment.add_filter(JOINED, joined);
    environment.add_filter(ADDED, added);

    environment.add_filter("__format", filters::format);
    environment.add_filter("__indent", filters::indent);
    environment.add_filter("__join", filters::join);
    environment.add_filter("__replace", filters::replace);
    for (name, own, cost) in [
        ("format", "__format", formatted as fn(&Value, &[Value]) -> Result<usize, JinjaError>),
        ("indent", "__indent", indented),
        ("join", "__join", listed),
        ("replace", "__replace", replaced),
    ] {
        environment.add_filter(name, move |state: &mut State<'_, '_>, value: &Value, args: Rest<ValueOrKwargs>| {
            let mut all = vec![value.clone()];
            all.extend(args.into_values());
            charge(cost(value, &all[1..])?)?;
            state.apply_filter(own, &all)
        });
    }
}

/// An operand of `~` as the text that it becomes; charges its bytes.
fn joined(value: &Value) -> Result<Value, JinjaError> {
    match value.as_str() {
        Some(text) => charge(text.len()).map(|()| value.clone()),
        None => text(value).map(Value::from),
    }
}

/// An operand of `+`, unchanged. A text costs its bytes, a list the size of its items; a number or
/// anything else without a length costs nothing.
fn added(value: &Value) -> Result<Value, JinjaError> {
    charge(match value.as_str() {
        Some(text) => text.len(),
        None => value.len().unwrap_or(0).saturating_mul(size_of::<Value>()),
    })?;
    Ok(value.clone())
}

/// Upper bound on the bytes of a value that is written out, apart from escapes: the text and its
/// quotes, or the sum of what is inside. `depth` is 0 for the outermost value. Fails beyond the
/// depth of [`enter`].
fn shown(value: &Value, depth: usize) -> Result<usize, JinjaError> {
    enter(depth)?;
    match (value.as_str(), value.kind()) {
        (Some(text), _) => return Ok(text.len() + 4),
        (None, ValueKind::Seq | ValueKind::Map) => {}
        // No number is longer, even with all of its digits written.
        _ => return Ok(400),
    }
    let mut sum = 0_usize;
    for item in value.try_iter()? {
        sum = sum.saturating_add(shown(&item, depth + 1)?);
        if value.kind() == ValueKind::Map {
            sum = sum.saturating_add(shown(&value.get_item(&item)?, depth + 1)?);
        }
    }
    Ok(sum)
}

/// Sum of all whole numbers among arguments, named ones included: a width or a precision is one of
/// them.
fn numbers(args: &[Value]) -> Result<usize, JinjaError> {
    let mut sum = 0_usize;
    for arg in args {
        if arg.kind() == ValueKind::Map {
            for name in arg.try_iter()? {
                sum = sum.saturating_add(arg.get_item(&name)?.as_usize().unwrap_or(0));
            }
        }
        sum = sum.saturating_add(arg.as_usize().unwrap_or(0));
    }
    Ok(sum)
}

/// Cost of `indent`: the text, and for each line the indentation, which is 4 unless an argument
/// says more. Two lines are added for the first and for what follows the last break.
fn indented(text: &Value, args: &[Value]) -> Result<usize, JinjaError> {
    let text = text.as_str().unwrap_or_default();
    let lines = text.matches('\n').count() + 2;
    Ok(text.len().saturating_add(lines.saturating_mul(numbers(args)?.saturating_add(4))))
}

/// Cost of `join`: each item as it is written, and the separator (all of `args`) once for each
/// item.
fn listed(items: &Value, args: &[Value]) -> Result<usize, JinjaError> {
    let mut between = 0_usize;
    for arg in args {
        between = between.saturating_add(shown(arg, 0)?);
    }
    let mut sum = 0_usize;
    for item in items.try_iter()? {
        sum = sum.saturating_add(between).saturating_add(shown(&item, 0)?);
    }
    Ok(sum)
}

/// Cost of `replace`: the text, and the new part once for each place where the old one is. Without
/// both parts the cost is 0, because minijinja refuses the call.
fn replaced(text: &Value, args: &[Value]) -> Result<usize, JinjaError> {
    let (Some(text), [from, to, ..]) = (text.as_str(), args) else { return Ok(0) };
    let times = text.matches(from.as_str().unwrap_or_default()).count();
    Ok(text.len().saturating_add(times.saturating_mul(shown(to, 0)?)))
}

/// Cost of printf formatting, such as `'%-5s|%(name).3f'`: of each field between its `%` and its
/// letter, flags, width and precision. minijinja knows no `*` for either.
fn formatted(pattern: &Value, args: &[Value]) -> Result<usize, JinjaError> {
    let pattern = pattern.as_str().unwrap_or_default();
    let fields = pattern.split('%').skip(1).map(|field| {
        let field = field.strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or(field, |(_, rest)| rest);
        &field[..field.find(|c: char| !"#0123456789-+ .".contains(c)).unwrap_or(field.len())]
    });
    fields_cost(pattern, fields, args)
}

/// Cost of `str.format`, such as `'{0:>10} {name}'`: of each field the part behind its colon.
fn str_formatted(pattern: &Value, args: &[Value]) -> Result<usize, JinjaError> {
    let pattern = pattern.as_str().unwrap_or_default();
    let fields = pattern.split('{').skip(1).map(|field| {
        let field = field.split('}').next().unwrap_or_default();
        field.split_once(':').map_or("", |(_, spec)| spec)
    });
    fields_cost(pattern, fields, args)
}

/// Cost of a formatting: the pattern, and for each field the longest argument and every number in
/// its specification (`specs`), which may be a width or a precision. A number that does not fit a
/// `usize` counts as the largest.
fn fields_cost<'s>(pattern: &str, specs: impl Iterator<Item = &'s str>, args: &[Value]) -> Result<usize, JinjaError> {
    let mut longest = 0;
    for arg in args {
        longest = longest.max(shown(arg, 0)?);
    }
    Ok(specs.fold(pattern.len(), |sum, spec| {
        let digits = spec.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
        // A number too long to be read is too large as well.
        digits
            .map(|digits| digits.parse().unwrap_or(usize::MAX))
            .fold(sum, usize::saturating_add)
            .saturating_add(longest)
    }))
}

/// The value if it is a float; `None` for whole numbers and for anything else.
pub(super) fn as_float(value: &Value) -> Option<f64> {
    if value.is_number() && !value.is_integer() { f64::try_from(value.clone()).ok() } else { None }
}

/// Python's `repr` of a float: the shortest digits that read back as the same number, with an
/// exponent from 1e16 up and below 1e-4. Whole numbers get `.0`; the others are `nan`, `inf` and
/// `-inf`.
///
/// ```text
/// 1.0 → 1.0   0.1 → 0.1   1e15 → 1000000000000000.0   1e16 → 1e+16   0.00001 → 1e-05
/// ```
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

/// Python's `str`: a text as it is, any other value as its [`repr()`].
pub(super) fn text(value: &Value) -> Result<String, JinjaError> {
    let mut out = Text::default();
    match value.as_str() {
        Some(text) => out.push_str(text)?,
        None => repr(&mut out, value, 0)?,
    }
    Ok(out.into_string())
}

/// Appends Python's `repr` of a value at nesting `depth`. A tuple has round brackets, and a comma
/// behind its only item. None and booleans, and anything that Python does not have, are spelt by
/// minijinja.
fn repr(out: &mut Text, value: &Value, depth: usize) -> Result<(), JinjaError> {
    enter(depth)?;
    match value.kind() {
        ValueKind::String => out.push_str(&string_repr(value.as_str().unwrap_or_default())),
        ValueKind::Number => out.push_str(&as_float(value).map_or_else(|| value.to_string(), float_repr)),
        ValueKind::Seq => {
            let [open, close] = if value.is_tuple() { ['(', ')'] } else { ['[', ']'] };
            out.push(open)?;
            let mut count = 0;
            for item in value.try_iter()? {
                out.push_str(if count > 0 { ", " } else { "" })?;
                repr(out, &item, depth + 1)?;
                count += 1;
            }
            out.push_str(if value.is_tuple() && count == 1 { "," } else { "" })?;
            out.push(close)
        }
        ValueKind::Map => {
            out.push('{')?;
            for (i, name) in value.try_iter()?.enumerate() {
                out.push_str(if i > 0 { ", " } else { "" })?;
                repr(out, &name, depth + 1)?;
                out.push_str(": ")?;
                repr(out, &value.get_item(&name).unwrap_or_default(), depth + 1)?;
            }
            out.push('}')
        }
        _ => out.push_str(&value.to_string()),
    }
}

/// Python's `repr` of a text: in single quotes, or in double ones if it has single quotes and no
/// double ones. What is not printable is escaped as `\x`, `\u` or `\U`.
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

/// Python's `str.isprintable`. The standard library's only copy of that table is in its debug
/// formatting. The leading letter keeps that from escaping combining marks.
fn is_printable(c: char) -> bool {
    matches!(c, ' '..='~')
        || !matches!(c, '\u{7f}'..='\u{a0}' | '\u{ad}')
            && (matches!(c, '"' | '\'') || format!("a{c}").escape_debug().skip(1).eq(std::iter::once(c)))
}

/// `left % right`: printf formatting where `left` is a text, else the remainder, with the divisor's
/// sign as in Python.
///
/// For formatting, a tuple `right` is the list of arguments, a mapping has them by name, and
/// anything else is the one argument. Of two whole numbers the remainder is whole, else a float.
///
/// # Errors
/// A zero divisor, or values that are no numbers.
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
        charge(formatted(left, &args)?)?;
        return format(FormatStyle::Printf, pattern, &args).map(Value::from);
    }
    // The message names the kinds, not the values: one that holds itself many times over is short
    // to make and endless to write.
    let fault = || {
        let (left, right) = (left.kind(), right.kind());
        JinjaError::new(ErrorKind::InvalidOperation, format!("cannot divide this {left} by this {right}"))
    };
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

/// What minijinja calls for a method that it does not know itself.
///
/// These are handled here, because `pycompat` lacks them or does not do as Python does; all others
/// are passed on to it.
///
/// | receiver | methods |
/// |---|---|
/// | text | `partition`, `rpartition`, `removeprefix`, `removesuffix`, `rsplit`, `splitlines()`, `title`, `swapcase`, `zfill`, `ljust`, `rjust`, `center`, `index`, `rindex` |
/// | text, charged and then passed on | `format`, `replace`, `join` |
/// | list | `index` |
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
                return match separator {
                    Some("") => Err(empty_separator()),
                    _ => Ok(rsplit(text, separator, limit)),
                };
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
            "format" => charge(str_formatted(value, args)?)?,
            "replace" => charge(replaced(value, args)?)?,
            "join" if !args.is_empty() => charge(listed(&args[0], std::slice::from_ref(value))?)?,
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
            None => {
                Err(JinjaError::new(ErrorKind::InvalidOperation, format!("this {} is not in the list", wanted.kind())))
            }
        };
    }
    minijinja_contrib::pycompat::unknown_method_callback(state, value, name, args)
}

/// Python's `str.title`: a letter after anything but a letter is upper case, every other one lower
/// case.
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

/// What `partition` and `rpartition` return, as a tuple: the text before the separator, the
/// separator, the text after it; `otherwise` if `parts` is `None`, because the separator is not
/// there. An empty separator is an error, as in Python.
fn tuple(parts: Option<(&str, &str)>, separator: &str, otherwise: [&str; 3]) -> Result<Value, JinjaError> {
    if separator.is_empty() {
        return Err(empty_separator());
    }
    let parts = parts.map_or(otherwise, |(before, after)| [before, separator, after]);
    Ok(Value::from(Tuple::from(parts.map(Value::from))))
}

/// What Python says of a separator that is everywhere.
fn empty_separator() -> JinjaError {
    JinjaError::new(ErrorKind::InvalidOperation, "empty separator")
}

/// Python's `str.rsplit`: splits from the right, at most `limit` times; all the way if that is
/// negative or absent. Without a separator it splits at runs of white space and drops empty pieces
/// at the ends. The pieces come in the order of the text.
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

/// The methods `zfill`, `ljust`, `rjust` and `center`: pads a text to a width in characters. An
/// optional second argument is the one character to pad with, a space by default; `zfill` takes
/// none and puts zeros behind a sign.
///
/// # Errors
/// Other arguments, and a width over 65,536.
fn pad(text: &str, name: &str, args: &[Value]) -> Result<Value, JinjaError> {
    /// No template pads further; Python would try and fail for want of memory.
    const WIDEST: usize = 1 << 16;
    let (width, Rest(fill)) = from_args::<(usize, Rest<&str>)>(args)?;
    let fill = match (name, fill.as_slice()) {
        ("zfill", []) => "0",
        (_, []) => " ",
        (_, [one]) if one.chars().count() == 1 && name != "zfill" => one,
        _ => return Err(JinjaError::new(ErrorKind::InvalidOperation, format!("{name}: bad arguments"))),
    };
    if width > WIDEST {
        return Err(JinjaError::new(ErrorKind::InvalidOperation, format!("{name}: width {width} is over {WIDEST}")));
    }
    charge(text.len() + width * fill.len())?;
    let len = text.chars().count();
    let missing = width.saturating_sub(len);
    let (left, right) = match name {
        "ljust" => (0, missing),
        "rjust" | "zfill" => (missing, 0),
        // CPython's `center` puts the odd blank left of the text if the width is odd, else right of
        // it.
        _ => (missing / 2 + (missing & width & 1), missing - missing / 2 - (missing & width & 1)),
    };
    let (sign, text) = match text.chars().next() {
        Some('+' | '-') if name == "zfill" => text.split_at(1),
        _ => ("", text),
    };
    Ok(Value::from(format!("{sign}{}{text}{}", fill.repeat(left), fill.repeat(right))))
}
