//! What a row is where it is written: one JSON object on one line, with each of its keys once.

use std::collections::HashSet;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserializer as _, Serialize};

use crate::Error;
use crate::rows::row::describe;

/// A row as JSON text, without the end of its line. Whatever writes rows takes them from here. NaN and infinities become null, which
/// serde_json does not report.
///
/// # Errors
/// [`Error::Serialize`] for a map whose keys are no text, [`Error::Body`] for one that is no row.
pub(crate) fn body<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, Error> {
    let json = serde_json::to_vec(value).map_err(Error::serialize)?;
    let found = || describe(&String::from_utf8_lossy(&json));
    if json.first() != Some(&b'{') {
        return Err(Error::Body { expected: "a JSON object", found: found() });
    }
    // Readers would take it for several rows.
    if json.contains(&b'\n') {
        return Err(Error::Body { expected: "an object on one line", found: format!("a line break in {}", found()) });
    }
    let repeated = serde_json::Deserializer::from_slice(&json).deserialize_map(Repeated);
    // They would see one of the values alone.
    match repeated.map_err(Error::serialize)? {
        Some(key) => Err(Error::Body { expected: "each key once", found: format!("{key:?} twice") }),
        None => Ok(json),
    }
}

/// Finds the first key of an object that was there before. Values are passed over without a copy: every row that is written comes by here.
struct Repeated;

impl<'de> Visitor<'de> for Repeated {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<String>, A::Error> {
        let (mut seen, mut repeated) = (HashSet::new(), None);
        while let Some((key, IgnoredAny)) = map.next_entry::<String, IgnoredAny>()? {
            repeated = repeated.or(seen.replace(key));
        }
        Ok(repeated)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::RawValue;

    use super::*;

    fn problem<T: Serialize + ?Sized>(value: &T) -> String {
        body(value).unwrap_err().to_string()
    }

    #[test]
    fn a_row_is_an_object_on_one_line() {
        assert_eq!(body(&json!({"a": "x\ny", "b": {"a": 1}})).unwrap(), br#"{"a":"x\ny","b":{"a":1}}"#);
        for (value, found) in [(json!([1]), "list [1]"), (json!("{}"), "string \"{}\""), (json!(null), "null")] {
            assert_eq!(problem(&value), format!("a row cannot be written: expected a JSON object, found {found}"));
        }
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        assert!(problem(&raw("{\"a\":\n1}")).contains("on one line, found a line break in object"));
        let said = "a row cannot be written: expected each key once, found \"a\" twice";
        assert_eq!(problem(&raw(r#"{"a":1,"b":{"b":1},"\u0061":2}"#)), said);
    }
}
