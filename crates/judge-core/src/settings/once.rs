//! Whether each name appears once in each object of a JSON text.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// Places and names are shown up to so many characters.
const SHOWN: usize = 80;

/// A name that an object has twice. In words it is what was found: `"calm" twice in tone.criteria`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct NameTwice {
    /// The place of its object: names and numbers, from the outside.
    pub path: Vec<Value>,
    /// The name.
    pub name: String,
}

impl fmt::Display for NameTwice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} twice", self.name)?;
        let step = |step: &Value| step.as_str().map_or_else(|| step.to_string(), str::to_owned);
        let place: Vec<String> = self.path.iter().map(step).collect();
        if place.is_empty() { Ok(()) } else { write!(f, " in {}", place.join(".")) }
    }
}

/// The first name that an object of a JSON text has twice, of which readers keep the last and say nothing. What is no JSON is not
/// looked at from there on.
#[must_use]
pub fn name_twice(json: &str) -> Option<NameTwice> {
    if !json.contains('{') {
        return None;
    }
    let mut search = Search::default();
    // That it ends early, or is no JSON, is for whoever reads it.
    let _ = search.deserialize(&mut serde_json::Deserializer::from_str(json));
    let Search { path, name } = search;
    name.map(|name| NameTwice { path, name })
}

/// The names and numbers on the way to where the text is read, and the name that was found, whose object they then lead to.
#[derive(Default)]
struct Search {
    path: Vec<Value>,
    name: Option<String>,
}

impl<'de> DeserializeSeed<'de> for &mut Search {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut Search {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut names: HashSet<String> = HashSet::new();
        while let Some(name) = map.next_key::<String>()? {
            let shown: String = name.chars().take(SHOWN).collect();
            if !names.insert(name) {
                self.name = Some(shown);
                return Err(A::Error::custom("a name appears twice"));
            }
            self.path.push(shown.into());
            map.next_value_seed(&mut *self)?;
            self.path.pop();
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let mut place = 0_u64;
        loop {
            self.path.push(place.into());
            let next = list.next_element_seed(&mut *self)?;
            self.path.pop();
            if next.is_none() {
                return Ok(());
            }
            place += 1;
        }
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
            assert_eq!(name_twice(once), None);
        }
        for (text, path, name, words) in [
            (r#"{"a": 1, "b": 2, "a": 1}"#, json!([]), "a", r#""a" twice"#),
            (
                r#"{"questions": {"q": {"criteria": {"x": null, "y": null, "\u0078": null}}}}"#,
                json!(["questions", "q", "criteria"]),
                "x",
                r#""x" twice in questions.q.criteria"#,
            ),
            (r#"{"state": [0, {"z": 1, "z": 2}]}"#, json!(["state", 1]), "z", r#""z" twice in state.1"#),
        ] {
            let expected = NameTwice { path: path.as_array().unwrap().clone(), name: name.to_owned() };
            assert_eq!((name_twice(text), expected.to_string()), (Some(expected), words.to_owned()), "{text}");
        }
        assert_eq!((name_twice("{\"a\": "), name_twice(&"[".repeat(10_000))), (None, None));
    }
}
