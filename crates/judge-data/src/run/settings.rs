//! The settings of a run, and how two runs differ in them.

use std::collections::BTreeMap;
use std::fmt;

use judge_core::lager::Variant;
use serde_json::Value;

/// The settings that an output depends on, by name. Put everything in that changes a row and is not told otherwise: the
/// layers, the labels, the flags.
pub type Settings = BTreeMap<String, Value>;

/// Names a run by what may change a row of it: the first 16 hexadecimal digits of the BLAKE3 hash of the settings as JSON, with all
/// keys in order and no white space. Leave out of them what changes no row, such as paths, threads and the device.
///
/// ```
/// use judge_data::{Settings, run_id};
///
/// let settings: Settings = [("dtype".to_owned(), "bf16".into()), ("points".to_owned(), 5.into())].into();
/// assert_eq!(run_id(&settings).len(), 16);
/// ```
#[must_use]
pub fn run_id(settings: &Settings) -> String {
    let mut json = Value::Object(settings.clone().into_iter().collect());
    json.sort_all_objects();
    blake3::hash(json.to_string().as_bytes()).to_hex()[..16].to_owned()
}

/// The setting of a run that says how LAGER scores.
pub(crate) const LAGER: &str = "lager";

/// The settings with the variant of LAGER that scores, where it was left to the default: a run that names the default is of the same judge.
#[must_use]
pub fn with_variant(mut settings: Settings) -> Settings {
    if let Some(Value::Object(lager)) = settings.get_mut(LAGER)
        && lager.get("variant").is_some_and(Value::is_null)
    {
        let has_weights = lager.get("weights").is_some_and(|weights| !weights.is_null());
        lager.insert("variant".to_owned(), Variant::default_for(has_weights).as_str().into());
    }
    settings
}

/// One setting in which two runs differ: a single value, with the path to it where it lies in an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The setting, e.g. `want.labels.lens`.
    pub key: String,
    /// Its value in the run before; `None` if it was not set.
    pub before: Option<Value>,
    /// Its value now; `None` if it is not set.
    pub now: Option<Value>,
}

impl Difference {
    /// The settings in which the two differ, by name: objects are compared field by field, lists as a whole unless they are lists of as
    /// many objects.
    pub fn between(before: &Settings, now: &Settings) -> Vec<Self> {
        let mut found = Vec::new();
        let keys = before.keys().chain(now.keys().filter(|key| !before.contains_key(*key)));
        keys.for_each(|key| compare(key.clone(), before.get(key), now.get(key), &mut found));
        found
    }

    /// The values in which one setting differs.
    pub(crate) fn within(key: &str, before: &Value, now: &Value) -> Vec<Self> {
        let mut found = Vec::new();
        compare(key.to_owned(), Some(before), Some(now), &mut found);
        found
    }
}

fn compare(key: String, before: Option<&Value>, now: Option<&Value>, found: &mut Vec<Difference>) {
    match (before, now) {
        (before, now) if before == now => {}
        (Some(Value::Object(before)), Some(Value::Object(now))) => {
            let keys = before.keys().chain(now.keys().filter(|key| !before.contains_key(*key)));
            keys.for_each(|inner| compare(format!("{key}.{inner}"), before.get(inner), now.get(inner), found));
        }
        (Some(Value::Array(before)), Some(Value::Array(now)))
            if before.len() == now.len() && before.iter().chain(now).all(Value::is_object) =>
        {
            let pairs = before.iter().zip(now).enumerate();
            pairs.for_each(|(index, (before, now))| {
                compare(format!("{key}[{index}]"), Some(before), Some(now), found);
            });
        }
        (before, now) => found.push(Difference { key, before: before.cloned(), now: now.cloned() }),
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What hashes are, nobody can read from them.
        if let (Some(Value::String(_)), Some(Value::String(_)), Some(of)) = (&self.before, &self.now, hashed(&self.key))
        {
            return write!(f, "the content of {of} has changed");
        }
        write!(f, "{} was {}, is {}", self.key, show(self.before.as_ref()), show(self.now.as_ref()))
    }
}

/// What a setting is the hash of: `inputs[0]` of `inputs[0].blake3`.
fn hashed(key: &str) -> Option<&str> {
    key.strip_suffix("blake3").map(|of| of.trim_end_matches(['.', '_'])).filter(|of| !of.is_empty())
}

/// A value as JSON, cut where it is long.
fn show(value: Option<&Value>) -> String {
    const SHOWN: usize = 80;
    let Some(value) = value else { return "unset".into() };
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]), // a boundary of characters
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn another_content_is_told_without_its_hash() {
        let settings = |hash: &str| Settings::from([("inputs".to_owned(), json!([{"rows": 2, "blake3": hash}]))]);
        let found = Difference::between(&settings("ab"), &settings("cd"));
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), ["the content of inputs[0] has changed"]);
        let none = Difference { key: "probe_blake3".to_owned(), before: None, now: Some(json!("ab")) };
        assert_eq!(none.to_string(), "probe_blake3 was unset, is \"ab\"");
    }

    /// A variant that is left to the default is the one that it comes to: with weights that of weights.
    #[test]
    fn the_default_variant_is_one_that_is_named() {
        let variant =
            |lager: Value| with_variant(Settings::from([(LAGER.to_owned(), lager)]))[LAGER]["variant"].clone();
        assert_eq!(variant(json!({"weights": null, "variant": null})), "e_score");
        assert_eq!(variant(json!({"weights": [0.5, 0.5], "variant": null})), "lager_w");
        assert_eq!(variant(json!({"weights": [0.5, 0.5], "variant": "lager_wo"})), "lager_wo");
        assert_eq!(with_variant(Settings::new()), Settings::new());
    }

    fn between(before: Value, now: Value) -> Vec<String> {
        let settings = |value: Value| value.as_object().unwrap().clone().into_iter().collect::<Settings>();
        Difference::between(&settings(before), &settings(now)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_run_is_named_by_the_content_of_its_settings() {
        let settings = |text: &str| serde_json::from_str::<Settings>(text).unwrap();
        let one = settings(r#"{"b": {"y": [1, {"d": 0, "c": 1}], "x": 0.5}, "a": null}"#);
        let canonical = r#"{"a":null,"b":{"x":0.5,"y":[1,{"c":1,"d":0}]}}"#;
        assert_eq!(run_id(&one), blake3::hash(canonical.as_bytes()).to_hex()[..16]);
        assert_eq!(run_id(&one), run_id(&settings(canonical)));
        assert_ne!(run_id(&one), run_id(&settings(r#"{"a": null}"#)));
    }

    #[test]
    fn only_the_values_that_differ_are_named() {
        let before = json!({"want": {"labels": {"lens": "raw", "layers": [1, 2]}, "generate": null}, "dtype": "f32"});
        let now =
            json!({"want": {"labels": {"lens": "normed", "layers": [1, 3]}, "generate": {"max": 5}}, "dtype": "f32"});
        assert_eq!(
            between(before, now),
            [
                r#"want.labels.lens was "raw", is "normed""#,
                "want.labels.layers was [1,2], is [1,3]",
                r#"want.generate was null, is {"max":5}"#,
            ]
        );
        assert_eq!(
            between(json!({"a": {"b": 1}}), json!({"a": {"c": 1}})),
            ["a.b was 1, is unset", "a.c was unset, is 1"]
        );
        assert_eq!(between(json!({"a": [{"b": 1}, {}]}), json!({"a": [{"b": 2}, {}]})), ["a[0].b was 1, is 2"]);
        assert_eq!(between(json!({"a": [{}]}), json!({"a": [{}, {}]})), ["a was [{}], is [{},{}]"]);
        assert!(between(json!({"a": 1.0, "b": {"c": []}}), json!({"b": {"c": []}, "a": 1.0})).is_empty());
        let long = between(json!({"a": "ä".repeat(500)}), json!({}));
        assert!(long[0].chars().count() < 120 && long[0].ends_with("…, is unset"), "{long:?}");
    }
}
