//! The fields of `quantization_config`.

use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::Error;

/// The settings of a method of quantisation, as `config.json` has them.
pub(super) struct Settings {
    /// The file.
    pub(super) path: PathBuf,
    /// Where in it they are.
    pub(super) place: String,
    pub(super) fields: Map<String, Value>,
}

impl Settings {
    /// A field that is there and not null.
    pub(super) fn get(&self, field: &str) -> Option<&Value> {
        self.fields.get(field).filter(|value| !value.is_null())
    }

    /// A field's text; empty if it is none.
    pub(super) fn text(&self, field: &str) -> &str {
        self.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// The error of a field whose value is not read.
    pub(super) fn refuse(&self, field: &str, supported: &'static str) -> Error {
        let found = self.get(field).map_or_else(|| "null".to_owned(), Value::to_string);
        Error::Unsupported { path: self.path.clone(), field: format!("{}.{field}", self.place), found, supported }
    }

    /// Fails if a field has something in it: a number, a text, a list that is not empty, or `true`.
    pub(super) fn must_be_off(&self, field: &str, supported: &'static str) -> Result<(), Error> {
        match self.get(field) {
            None | Some(Value::Bool(false)) => Ok(()),
            Some(Value::Array(items)) if items.is_empty() => Ok(()),
            Some(Value::Object(items)) if items.is_empty() => Ok(()),
            Some(_) => Err(self.refuse(field, supported)),
        }
    }

    /// A whole number, or what is taken where the field is absent.
    pub(super) fn number(&self, field: &str, default: i64, supported: &'static str) -> Result<i64, Error> {
        match self.get(field) {
            None => Ok(default),
            Some(value) => value.as_i64().ok_or_else(|| self.refuse(field, supported)),
        }
    }

    /// Warns of fields that are neither read nor known to change no weight.
    pub(super) fn warn_of_unread(&self, known: &[&str]) {
        let unread: Vec<&str> = self
            .fields
            .keys()
            .map(String::as_str)
            .filter(|&key| !known.contains(&key) && self.get(key).is_some())
            .collect();
        if !unread.is_empty() {
            let (place, fields) = (&self.place, unread.join(", "));
            tracing::warn!(place, fields, "fields that are not read; scores are wrong if one changes the weights");
        }
    }
}
