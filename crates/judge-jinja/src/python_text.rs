//! How Python writes floats and strings, and which characters it takes for white space.

use std::fmt::Write;

use super::fault::Result;
use super::letters::is_printable;

/// Python's `repr` of a float: the shortest digits that read back as the same number, with an
/// exponent from 1e16 up and below 1e-4. Whole numbers get `.0`; the others are `nan`, `inf` and
/// `-inf`.
///
/// ```text
/// 1.0 → 1.0   0.1 → 0.1   1e15 → 1000000000000000.0   1e16 → 1e+16   0.00001 → 1e-05
/// ```
pub(crate) fn float_repr(x: f64) -> String {
    if x.is_nan() {
        return "nan".to_owned();
    }
    if x.is_infinite() {
        return if x > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let has_exponent = x != 0.0 && !(1e-4..1e16).contains(&x.abs());
    let shortest = if has_exponent { format!("{x:e}") } else { x.to_string() };
    // Halfway between two shortest texts Python writes the even one, as Rust does where the number of digits is given.
    let digits = shortest.split('e').next().unwrap_or_default();
    let places = digits.split_once('.').map_or(0, |(_, places)| places.len());
    let even = if has_exponent { format!("{x:.places$e}") } else { format!("{x:.places$}") };
    let text = if even.parse::<f64>().is_ok_and(|read| read == x) { even } else { shortest };
    match () {
        () if has_exponent => exponent_of_python(&text),
        () if places == 0 => text + ".0",
        () => text,
    }
}

/// A number in Rust's exponent notation with Python's exponent: a sign and at least two digits.
pub(crate) fn exponent_of_python(text: &str) -> String {
    // `{:e}` always writes an exponent.
    let (digits, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(positive) => ('-', positive),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}

/// Python's `repr` of a text: in single quotes, or in double ones if it has single quotes and no
/// double ones. What is not printable is escaped as `\x`, `\u` or `\U`.
pub(crate) fn string_repr(text: &str) -> Result<String> {
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
            c if is_printable(c)? => out.write_char(c),
            c if (c as u32) < 0x100 => write!(out, "\\x{:02x}", c as u32),
            c if (c as u32) < 0x1_0000 => write!(out, "\\u{:04x}", c as u32),
            c => write!(out, "\\U{:08x}", c as u32),
        };
    }
    out.push(quote);
    Ok(out)
}

/// Python's `str.isspace` of a character: what `strip()`, `split()` and `\s` take as white space.
pub(crate) fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}
