//! What a row is where it is written: one JSON object on one line, with each of its keys once.

mod problem;

use std::collections::HashSet;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::Error;
use crate::rows::row::describe;

pub use problem::BodyProblem;

/// A row as JSON text, without the end of its line. Whatever writes rows takes them from here.
///
/// # Errors
/// [`Error::Serialize`] for a value without a JSON form, [`Error::Body`] for one that is no row.
pub(crate) fn body<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, Error> {
    let json = serde_json::to_vec(value).map_err(Error::serialize)?;
    let found = || describe(&String::from_utf8_lossy(&json));
    let problem = if json.first() != Some(&b'{') {
        Some(BodyProblem::NotAnObject { found: found() })
    } else if json.contains(&b'\n') {
        Some(BodyProblem::LineBreak { found: found() })
    } else {
        let Keys(repeated) = serde_json::from_slice(&json).map_err(Error::serialize)?;
        repeated.map(|key| BodyProblem::KeyTwice { key })
    };
    match problem {
        None => Ok(json),
        Some(problem) => Err(Error::Body { problem }),
    }
}

/// The first key of an object that was there before.
struct Keys(Option<String>);

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Keys;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
                let (mut seen, mut repeated) = (HashSet::new(), None);
                while let Some((key, IgnoredAny)) = map.next_entry::<String, IgnoredAny>()? {
                    if repeated.is_none() && seen.contains(&key) {
                        repeated = Some(key);
                    } else {
                        seen.insert(key);
                    }
                }
                Ok(Keys(repeated))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::RawValue;

    use super::*;

    fn problem<T: Serialize + ?Sized>(value: &T) -> BodyProblem {
        match body(value) {
            Err(Error::Body { problem }) => problem,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_row_is_an_object_on_one_line() {
        assert_eq!(body(&json!({"a": "x\ny", "b": {"a": 1}})).unwrap(), br#"{"a":"x\ny","b":{"a":1}}"#);
        for (value, found) in [(json!([1]), "list [1]"), (json!("{}"), "string \"{}\""), (json!(null), "null")] {
            assert_eq!(problem(&value), BodyProblem::NotAnObject { found: found.into() });
        }
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        assert!(matches!(problem(&raw("{\"a\":\n1}")), BodyProblem::LineBreak { .. }));
        assert_eq!(problem(&raw(r#"{"a":1,"b":{"b":1},"\u0061":2}"#)), BodyProblem::KeyTwice { key: "a".into() });
        let said = body(&raw(r#"{"a":1,"a":2}"#)).unwrap_err().to_string();
        assert_eq!(said, "a row cannot be written: expected each key once, found \"a\" twice");
    }
}
