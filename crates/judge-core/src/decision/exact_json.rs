//! States whose whole numbers stand in a prompt as they were written, however many digits they have.
//!
//! A [`Value`] holds whole numbers of 64 bits and rounds larger ones to floats, so that a prompt would have `1.2345678901234568e22`
//! where Python's JSON has all digits. (The feature `arbitrary_precision` of `serde_json` would change how each number of each type is
//! read, in all crates that use it.) So [`from_text`] makes an object with one field of a name of its own of such a number,
//! and [`to_text`] makes the number of that again. Templates ask [`whole_number`].

use serde_json::{Map, Value};

/// The name of the field.
const FIELD: &str = "$judge::whole_number";

/// Reads JSON. Whole numbers that neither an `i64` nor a `u64` holds are kept with all of their digits.
///
/// # Errors
/// Those of `serde_json`; columns in them are those of a text in which such numbers are longer.
pub fn from_text(json: &str) -> serde_json::Result<Value> {
    let mut exact = String::new();
    let mut copied = 0;
    for (at, number) in whole_numbers(json) {
        if number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
            exact.push_str(&json[copied..at]);
            exact.push_str(&format!("{{\"{FIELD}\":\"{number}\"}}"));
            copied = at + number.len();
        }
    }
    if copied == 0 {
        return serde_json::from_str(json);
    }
    serde_json::from_str(&(exact + &json[copied..]))
}

/// Compact JSON, as `Value::to_string` writes it, with the digits of all whole numbers.
#[must_use]
pub fn to_text(value: &Value) -> String {
    let json = value.to_string();
    // A text has a backslash before each quote, so that this is the beginning of an object and nothing else.
    let begin = format!("{{\"{FIELD}\":\"");
    let mut parts = json.split(&begin);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once("\"}") {
            Some((number, rest)) if is_whole(number) => {
                text.push_str(number);
                text.push_str(rest);
            }
            _ => {
                text.push_str(&begin);
                text.push_str(part);
            }
        }
    }
    text
}

/// The digits of a whole number that [`from_text`] kept, with its sign; `None` for any other value.
#[must_use]
pub fn whole_number(value: &Value) -> Option<&str> {
    let digits = value.as_object().filter(|fields: &&Map<_, _>| fields.len() == 1)?.get(FIELD)?.as_str()?;
    is_whole(digits).then_some(digits)
}

/// Whether a text is a whole number as JSON writes it.
fn is_whole(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_plain && (digits == "0" || !digits.starts_with('0'))
}

/// The numbers without fraction and exponent in a JSON text, each with its place.
fn whole_numbers(json: &str) -> impl Iterator<Item = (usize, &str)> {
    let bytes = json.as_bytes();
    let mut at = 0;
    let numbers = std::iter::from_fn(move || {
        while let Some(&byte) = bytes.get(at) {
            let begin = at;
            at += 1;
            match byte {
                b'"' => {
                    while let Some(&byte) = bytes.get(at) {
                        at += 1 + usize::from(byte == b'\\');
                        if byte == b'"' {
                            break;
                        }
                    }
                }
                b'-' | b'0'..=b'9' => {
                    let rest = bytes[at..].iter();
                    at +=
                        rest.take_while(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')).count();
                    return Some((begin, &json[begin..at]));
                }
                _ => {}
            }
        }
        None
    });
    numbers.filter(|(_, number)| is_whole(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// <https://github.com/rhysd/fixjson/issues/19>, <https://github.com/huggingface/datasets/issues/8365>.
    #[test]
    fn whole_numbers_keep_their_digits() {
        for json in [
            r#"{"a":12345678901234567890123}"#,
            "-170141183460469231731687303715884105729000",
            r#"[18446744073709551615,18446744073709551616,-9223372036854775809,{"b":[99999999999999999999]}]"#,
            r#"{"say \"12345678901234567890123\" \\":"12345678901234567890123","c":1.5}"#,
            r#"{"$judge::whole_number":"x"}"#,
        ] {
            assert_eq!(to_text(&from_text(json).unwrap()), json);
        }
        let spaced = "{\n \"a\" : [ 12345678901234567890123 , 1 ] }";
        assert_eq!(to_text(&from_text(spaced).unwrap()), r#"{"a":[12345678901234567890123,1]}"#);
        let value = from_text("12345678901234567890123").unwrap();
        assert_eq!(whole_number(&value), Some("12345678901234567890123"));
        assert_eq!(whole_number(&from_text("1").unwrap()), None);
        // What is no JSON stays none: leading zeros, a sign alone, an open string.
        for wrong in ["012345678901234567890123", "-", "\"12345678901234567890123", "[12345678901234567890123"] {
            assert!(from_text(wrong).is_err(), "{wrong}");
        }
        // All other numbers are what they were.
        for json in ["1e2", "1.10", "0.1000000000000000055", "12345678901234567890123.0", "[1,2.5]", "\"7\"", "null"] {
            assert_eq!(from_text(json).unwrap(), serde_json::from_str::<Value>(json).unwrap());
        }
    }
}
