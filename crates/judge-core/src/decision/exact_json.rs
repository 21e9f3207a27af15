//! States whose whole numbers stand in a prompt as they were written, however many digits they have.
//!
//! A [`Value`] holds whole numbers of 64 bits and rounds larger ones to floats, so that a prompt would have `1.2345678901234568e22`
//! where Python's JSON has all digits. (The feature `arbitrary_precision` of `serde_json` would change how each number of each type is
//! read, in all crates that use it.) So [`from_text`] makes an object with one field of a name of its own of such a number,
//! and [`to_text`] makes the number of that again. Templates ask [`whole_number`]. Whoever looks at kinds of values does so too,
//! or calls [`round`] before.

use serde::{Serialize, Serializer, ser::Error as _};
use serde_json::{Map, Value, value::RawValue};

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
        if is_large(number) {
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
    serde_json::to_string(&Written(value)).unwrap_or_default() // any JSON can be written
}

/// JSON for readers, on several lines, with the digits of all whole numbers.
#[must_use]
pub fn to_pretty_text(value: &Value) -> String {
    serde_json::to_string_pretty(&Written(value)).unwrap_or_default() // as above
}

/// Makes of the whole numbers that [`from_text`] kept what `serde_json` reads of them, floats.
///
/// # Errors
/// For a number beyond all floats.
pub fn round(value: &mut Value) -> serde_json::Result<()> {
    if let Some(digits) = whole_number(value) {
        *value = serde_json::from_str(digits)?;
        return Ok(());
    }
    match value {
        Value::Array(list) => list.iter_mut().try_for_each(round),
        Value::Object(fields) => fields.values_mut().try_for_each(round),
        _ => Ok(()),
    }
}

/// A value that is written with the digits of all whole numbers.
struct Written<'a>(&'a Value);

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            number if let Some(digits) = whole_number(number) => {
                RawValue::from_string(digits.to_owned()).map_err(S::Error::custom)?.serialize(serializer)
            }
            Value::Array(list) => serializer.collect_seq(list.iter().map(Written)),
            Value::Object(fields) => serializer.collect_map(fields.iter().map(|(name, value)| (name, Written(value)))),
            other => other.serialize(serializer),
        }
    }
}

/// The digits of a whole number that [`from_text`] kept, with its sign; `None` for any other value.
#[must_use]
pub fn whole_number(value: &Value) -> Option<&str> {
    let digits = value.as_object().filter(|fields: &&Map<_, _>| fields.len() == 1)?.get(FIELD)?.as_str()?;
    is_large(digits).then_some(digits)
}

/// Whether a text is a whole number as JSON writes it that a `Value` does not hold.
fn is_large(text: &str) -> bool {
    is_whole(text) && text.parse::<i64>().is_err() && text.parse::<u64>().is_err()
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
            r#"{"$judge::whole_number":"7"}"#,
        ] {
            assert_eq!(to_text(&from_text(json).unwrap()), json);
        }
        let spaced = "{\n \"a\" : [ 12345678901234567890123 , 1 ] }";
        assert_eq!(to_text(&from_text(spaced).unwrap()), r#"{"a":[12345678901234567890123,1]}"#);
        let value = from_text("12345678901234567890123").unwrap();
        assert_eq!(whole_number(&value), Some("12345678901234567890123"));
        assert_eq!(whole_number(&from_text("1").unwrap()), None);
        let two = from_text("[18446744073709551616,{\"a\":1}]").unwrap();
        assert_eq!(to_pretty_text(&two), "[\n  18446744073709551616,\n  {\n    \"a\": 1\n  }\n]");
        // What is no JSON stays none: leading zeros, a sign alone, an open string.
        for wrong in ["012345678901234567890123", "-", "\"12345678901234567890123", "[12345678901234567890123"] {
            assert!(from_text(wrong).is_err(), "{wrong}");
        }
        // All other numbers are what they were.
        for json in ["1e2", "1.10", "0.1000000000000000055", "12345678901234567890123.0", "[1,2.5]", "\"7\"", "null"] {
            assert_eq!(from_text(json).unwrap(), serde_json::from_str::<Value>(json).unwrap());
        }
    }

    #[test]
    fn rounded_numbers_are_those_of_a_plain_reader() {
        let json =
            r#"{"a":[18446744073709551616,{"b":-99999999999999999999,"c":[1,"x",null]}],"$judge::whole_number":"7"}"#;
        let mut value = from_text(json).unwrap();
        round(&mut value).unwrap();
        assert_eq!(value, serde_json::from_str::<Value>(json).unwrap());
        let mut number = from_text("18446744073709551616").unwrap();
        round(&mut number).unwrap();
        assert!(number.is_f64());
        let mut beyond = from_text(&format!("[{}]", "9".repeat(400))).unwrap();
        assert!(round(&mut beyond).is_err());
    }
}
