//! The secret of a service, in a type that does not show it.
//!
//! `transport` takes the header from here. `answer` passes everything that a service said through
//! `ApiKey::redact` or `ApiKey::redact_json` before it can reach an error, a file or a judge.

use std::fmt;

use super::problem::{ApiError, KeyProblem};

/// What stands for a key wherever it would show.
const REDACTED: &str = "[key]";

/// Shorter keys than this, in bytes, are taken for placeholders such as `none`, for servers that
/// ask for no key. `ApiKey::redact_json` does not look for them in what a model writes, where they
/// would be found by chance.
const SECRET: usize = 8;

/// The key of a service, without white space around it: visible ASCII characters, at least one.
///
/// It leaves this type for the `Authorization` header alone: it has no `Display`, its `Debug` shows
/// nothing, and it is not serialised.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// A key from its text. White space around it, such as the newline at the end of a file, is
    /// dropped.
    ///
    /// # Errors
    /// [`ApiError::Key`] for a text that is empty or has characters other than visible ASCII.
    pub fn new(text: &str) -> Result<Self, ApiError> {
        let key = text.trim();
        if key.is_empty() {
            return Err(ApiError::Key { problem: KeyProblem::Empty });
        }
        match key.chars().position(|c| !c.is_ascii_graphic()) {
            Some(index) => Err(ApiError::Key { problem: KeyProblem::Character { index } }),
            None => Ok(Self(key.to_owned())),
        }
    }

    /// The key that an environment variable holds.
    ///
    /// # Errors
    /// [`ApiError::Key`] if the variable is not set, or if [`new`](Self::new) rejects its value.
    pub fn from_env(name: &str) -> Result<Self, ApiError> {
        let not_set = || ApiError::Key { problem: KeyProblem::NotSet { name: name.to_owned() } };
        Self::new(&std::env::var_os(name).ok_or_else(not_set)?.to_string_lossy())
    }

    /// The value of the `Authorization` header: `Bearer` and the key.
    pub(super) fn authorization(&self) -> String {
        format!("Bearer {}", self.0)
    }

    /// The text with `[key]` in the place of each occurrence of this key, however short the key is.
    /// For what errors quote of an answer.
    pub(super) fn redact(&self, text: &str) -> String {
        text.replace(&self.0, REDACTED)
    }

    /// Replaces this key in every string of a JSON value, except in the names of fields. Does
    /// nothing for a key shorter than [`SECRET`]. For completions, whose texts judges read.
    pub(super) fn redact_json(&self, value: &mut serde_json::Value) {
        use serde_json::Value;
        if self.0.len() < SECRET {
            return;
        }
        match value {
            Value::String(text) if text.contains(&self.0) => *text = self.redact(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.redact_json(value)),
            Value::Object(fields) => fields.values_mut().for_each(|value| self.redact_json(value)),
            _ => {}
        }
    }
}

impl fmt::Debug for ApiKey {
    /// Shows the type's name alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_key_does_not_show() {
        let key = ApiKey::new(" sk-very-secret\n").unwrap();
        assert_eq!(format!("{key:?} {:#?}", Some(&key)), "ApiKey Some(\n    ApiKey,\n)");
        assert_eq!(key.redact("no sk-very-secret, sk-very-secret!"), "no [key], [key]!");
        let mut said = json!({"a": ["sk-very-secret", 1], "b": {"c": "so sk-very-secret"}});
        key.redact_json(&mut said);
        assert_eq!(said, json!({"a": ["[key]", 1], "b": {"c": "so [key]"}}));
        let mut said = json!("none of them");
        ApiKey::new("none").unwrap().redact_json(&mut said);
        assert_eq!(said, "none of them");
    }

    #[test]
    fn what_is_no_key_is_not_shown_either() {
        let problem = |text: &str| ApiKey::new(text).unwrap_err().to_string();
        assert_eq!(problem(" \n"), "the key of the service: it is empty");
        assert_eq!(problem("sé"), "the key of the service: character 1 is not a visible ASCII character");
        assert_eq!(problem("a b"), "the key of the service: character 1 is not a visible ASCII character");
        let unset = ApiKey::from_env("JUDGE_NO_SUCH_VARIABLE").unwrap_err().to_string();
        assert!(unset.contains("JUDGE_NO_SUCH_VARIABLE is not set"), "{unset}");
    }
}
