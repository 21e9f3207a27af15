//! Reads what people write into files: a misspelt key is an error that names the key that was meant, and never a
//! setting that silently keeps its default.
//!
//! Types that people write refuse unknown keys themselves (`serde(deny_unknown_fields)`), whoever reads them. Here
//! the refusal gets its suggestion.

mod once;

use serde::de::DeserializeOwned;

pub use once::{NameTwice, name_twice};

/// Why a text does not hold the settings that it should.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// A key that nothing reads.
    #[error("unknown key `{found}` at line {line} column {column}; {}", suggestion(found, known))]
    UnknownKey {
        /// The key.
        found: String,
        /// The keys that may be there.
        known: Vec<String>,
        /// Line of the text, counted from 1, where reading stopped.
        line: usize,
        /// Column of that line, counted from 1.
        column: usize,
    },
    /// A name that an object has twice.
    #[error("expected each name of an object once, found {0}")]
    NameTwice(NameTwice),
    /// No JSON, or not of the kind that is wanted.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// Reads JSON that a person wrote, such as a [`PromptTemplate`](crate::PromptTemplate) or a
/// [`PromptFamily`](crate::prompted::PromptFamily): as `serde_json::from_str`, but where a key is not
/// known the error has the nearest name that is, and a name that an object has twice is an error.
///
/// ```
/// use judge_core::{PromptTemplate, settings::settings_from_json};
///
/// let text = r#"{"chat": {"messages": [{"role": "user", "content": "Rate: {response}"}], "prefil": "score: "}}"#;
/// let error = settings_from_json::<PromptTemplate>(text).unwrap_err();
/// assert_eq!(error.to_string(), "unknown key `prefil` at line 1 column 81; did you mean `prefill`?");
/// ```
///
/// # Errors
/// [`SettingsError::UnknownKey`] and [`SettingsError::NameTwice`], and [`SettingsError::Json`] for everything else that is wrong.
pub fn settings_from_json<T: DeserializeOwned>(text: &str) -> Result<T, SettingsError> {
    let read = serde_json::from_str(text).map_err(|error| match unknown_key(&error) {
        Some((found, known)) => SettingsError::UnknownKey { found, known, line: error.line(), column: error.column() },
        None => error.into(),
    })?;
    name_twice(text).map_or(Ok(read), |twice| Err(SettingsError::NameTwice(twice)))
}

/// The known name that a misspelt one was most likely meant to be: the one with fewest letters left out, added,
/// replaced or exchanged with their neighbours, capitals and `-` for `_`
/// aside, if these are at most a third of its letters, or one; ties go to the first.
#[must_use]
pub fn nearest_name<'k>(found: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let plain = |name: &str| name.to_lowercase().replace('-', "_").chars().collect::<Vec<char>>();
    let found = plain(found);
    let near = known.into_iter().filter_map(|name| {
        let known = plain(name);
        let distance = distance(&found, &known);
        (distance <= (known.len() / 3).max(1)).then_some((distance, name))
    });
    near.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

fn suggestion(found: &str, known: &[String]) -> String {
    match nearest_name(found, known.iter().map(String::as_str)) {
        Some(name) => format!("did you mean `{name}`?"),
        None if known.is_empty() => "there are none".to_owned(),
        None => {
            let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
            format!("expected {}", known.join(", "))
        }
    }
}

/// The key and those that are expected, from serde's own words: "unknown field `a`, expected one of `b`, `c`", which
/// the error keeps as text only.
fn unknown_key(error: &serde_json::Error) -> Option<(String, Vec<String>)> {
    let message = error.to_string();
    let (found, expected) = message.strip_prefix("unknown field `")?.split_once("`, ")?;
    let known = expected.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    Some((found.to_owned(), known))
}

/// Edits that make `b` of `a`: optimal string alignment, O(|a| · |b|).
fn distance(a: &[char], b: &[char]) -> usize {
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::{
        Message, PromptTemplate, Want,
        fit::{LayerWeightFit, Plateau},
        prompted::PromptFamily,
        request::{Generation, LabelRead, Sampling},
    };

    #[test]
    fn the_nearest_name_is_the_one_that_was_meant() {
        let nearest = |found| nearest_name(found, ["messages", "template_args", "prefill", "trusted_prefill", "k"]);
        for (found, meant) in [
            ("prefil", Some("prefill")),
            ("Prefill", Some("prefill")),
            ("prefilll", Some("prefill")),
            ("perfill", Some("prefill")),
            ("template-arg", Some("template_args")),
            ("trustedprefill", Some("trusted_prefill")),
            ("message", Some("messages")),
            ("temperature", None),
            ("", Some("k")),
            ("content", None),
        ] {
            assert_eq!(nearest(found), meant, "{found}");
        }
        assert_eq!(nearest_name("a", []), None);
        assert_eq!(nearest_name("ab", ["ac", "bb"]), Some("ac"));
    }

    fn wrong<T: DeserializeOwned + std::fmt::Debug>(text: &str) -> String {
        settings_from_json::<T>(text).unwrap_err().to_string()
    }

    #[test]
    fn a_misspelt_key_is_refused_wherever_people_write_one() {
        let template = |inside: &str| wrong::<PromptTemplate>(inside);
        let chat = |rest: &str| {
            template(&format!(r#"{{"chat": {{"messages": [{{"role": "user", "content": "{{x}}"}}]{rest}}}}}"#))
        };
        let family = |key: &str| {
            let mut file = serde_json::to_value(PromptFamily::built_in("pair").unwrap()).unwrap();
            file[key] = "x".into();
            wrong::<PromptFamily>(&file.to_string())
        };
        for (message, meant) in [
            (chat(r#", "prefil": "score: ""#), "`prefil` at line 1 column 68; did you mean `prefill`?"),
            (chat(r#", "template_arg": {}"#), "; did you mean `template_args`?"),
            (template(r#"{"raw": "{x}", "default": {"x": "y"}}"#), "; did you mean `defaults`?"),
            (template(r#"{"chat": {"messages": [{"rol": "user"}]}}"#), "; did you mean `role`?"),
            (template(r#"{"messages": []}"#), "; expected `raw`, `chat`, `defaults`"),
            (family("closng"), "did you mean `closing`?"),
            (family("max_tokens"), "did you mean `max_new_tokens`?"),
            (
                wrong::<Generation>(r#"{"max_new_tokens": 1, "sampling": "greedy", "stops": []}"#),
                "did you mean `stop`?",
            ),
            (
                wrong::<Sampling>(r#"{"random": {"temperature": 1, "topk": 5, "seed": 1, "stream": 0}}"#),
                "did you mean `top_k`?",
            ),
            (wrong::<Want>(r#"{"continuation": ["a"]}"#), "did you mean `continuations`?"),
            (wrong::<LabelRead>(r#"{"label_masses": true}"#), "did you mean `label_mass`?"),
            (wrong::<Plateau>(r#"{"factor": 0.5, "patient": 1}"#), "did you mean `patience`?"),
            (wrong::<LayerWeightFit>(r#"{"epoch": 1}"#), "did you mean `epochs`?"),
        ] {
            assert!(message.starts_with("unknown key `") && message.ends_with(meant), "{message}");
        }
        let mut family = serde_json::to_value(PromptFamily::built_in("pair").unwrap()).unwrap();
        family["scale"][0]["lable"] = "x".into();
        assert!(wrong::<PromptFamily>(&family.to_string()).ends_with("did you mean `label`?"));
    }

    /// The last of two would count, and nobody would see that there was another.
    #[test]
    fn a_name_that_appears_twice_is_refused_wherever_people_write_one() {
        let criteria = r#"{"q": {"type": "choice", "criteria": {"a": null, "b": null, "a": "x"}}}"#;
        let twice = "expected each name of an object once, found";
        assert_eq!(wrong::<crate::decision::Questions>(criteria), format!("{twice} \"a\" twice in q.criteria"));
        let labels = r#"{"labels": {"noul": ["Y", "N"]}, "labels": {}}"#;
        assert_eq!(wrong::<serde_json::Value>(labels), format!("{twice} \"labels\" twice"));
    }

    #[test]
    fn data_of_others_keep_their_further_keys() {
        let turn: Message =
            settings_from_json(r#"{"role": "user", "content": "a", "name": "Ann", "weight": 0}"#).unwrap();
        assert_eq!(turn, Message::user("a"));
    }

    #[test]
    fn other_faults_keep_their_own_words() {
        assert!(wrong::<PromptTemplate>("{").starts_with("EOF while parsing"));
        let neither = wrong::<PromptTemplate>(r#"{"defaults": {}}"#);
        assert!(neither.contains("expected one of the keys `raw` and `chat`, found neither"), "{neither}");
        let both = wrong::<PromptTemplate>(r#"{"raw": "a", "chat": {"messages": []}}"#);
        assert!(both.contains("expected one of the keys `raw` and `chat`, found both"), "{both}");
        assert!(wrong::<PromptTemplate>(r#"{"raw": "a", "raw": "b"}"#).contains("duplicate field `raw`"));
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Nothing {}
        assert_eq!(wrong::<Nothing>(r#"{"a": 1}"#), "unknown key `a` at line 1 column 4; there are none");
    }
}
