//! Whether each name appears once in each object of a body.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// Places and names are shown up to so many characters.
const SHOWN: usize = 80;

/// A name that appears twice.
#[derive(Debug, PartialEq)]
pub(super) struct Twice {
    /// The place of its object: names and numbers, from the outside.
    pub(super) path: Vec<Value>,
    pub(super) name: String,
}

/// Looks for a name that appears twice, and keeps nothing else.
///
/// # Errors
/// If it is no JSON.
pub(super) fn check(text: &str) -> Result<Result<(), Twice>, serde_json::Error> {
    let found = RefCell::new(None);
    let mut json = serde_json::Deserializer::from_str(text);
    let read = Part { path: &RefCell::new(Vec::new()), found: &found }.deserialize(&mut json);
    match (found.into_inner(), read) {
        (Some(twice), _) => Ok(Err(twice)),
        (None, read) => read.map(Ok),
    }
}

/// A value somewhere in the body.
#[derive(Clone, Copy)]
struct Part<'a> {
    path: &'a RefCell<Vec<Value>>,
    found: &'a RefCell<Option<Twice>>,
}

impl Part<'_> {
    fn within<T>(&self, step: Value, read: impl FnOnce() -> T) -> T {
        self.path.borrow_mut().push(step);
        let read = read();
        self.path.borrow_mut().pop();
        read
    }
}

impl<'de> DeserializeSeed<'de> for Part<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Part<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut names: HashSet<String> = HashSet::new();
        while let Some(name) = map.next_key::<String>()? {
            let shown: String = name.chars().take(SHOWN).collect();
            if names.contains(&name) {
                *self.found.borrow_mut() = Some(Twice { path: self.path.borrow().clone(), name: shown });
                return Err(A::Error::custom("a name appears twice"));
            }
            names.insert(name);
            self.within(shown.into(), || map.next_value_seed(self))?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let mut place = 0_u64;
        while self.within(place.into(), || list.next_element_seed(self))?.is_some() {
            place += 1;
        }
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_that_appears_twice_is_found_with_its_place() {
        for once in [r#"{"a": {"a": [{"a": 1}, {"a": 2.5}]}, "b": "a", "c": [null, true, -1]}"#, "[]", "3"] {
            assert_eq!(check(once).unwrap(), Ok(()));
        }
        for (text, path, name) in [
            (r#"{"a": 1, "b": 2, "a": 1}"#, json!([]), "a"),
            (
                r#"{"questions": {"q": {"criteria": {"x": null, "y": null, "\u0078": null}}}}"#,
                json!(["questions", "q", "criteria"]),
                "x",
            ),
            (r#"{"state": [0, {"z": 1, "z": 2}]}"#, json!(["state", 1]), "z"),
        ] {
            let expected = Twice { path: path.as_array().unwrap().clone(), name: name.to_owned() };
            assert_eq!(check(text).unwrap(), Err(expected), "{text}");
        }
        assert!(check("{\"a\": ").is_err() && check(&"[".repeat(10_000)).is_err());
    }
}
