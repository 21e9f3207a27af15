//! The fields of `quantization_config`, read with one policy for all methods.
//!
//! Null is the same as absent. A field that is read must have a value that is supported, or
//! [`Settings::refuse`] names it. A field that is neither read nor known to leave weights as they
//! are is warned of, not refused: new releases of the writing programs add fields that change
//! nothing.

use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::Error;

/// The settings of a method of quantisation, as `config.json` has them.
pub(super) struct Settings {
    /// `config.json`, for errors.
    pub(super) path: PathBuf,
    /// Where in it the settings are: `quantization_config`, or inside `text_config`.
    pub(super) place: String,
    /// The settings as they are stored, nulls included.
    pub(super) fields: Map<String, Value>,
}

impl Settings {
    /// A field that is there and not null.
    pub(super) fn get(&self, field: &str) -> Option<&Value> {
        self.fields.get(field).filter(|value| !value.is_null())
    }

    /// A field's text; empty if the field is absent, null or no text.
    pub(super) fn text(&self, field: &str) -> &str {
        self.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// [`Error::Unsupported`] for a field whose value is not read, with the value and with what is
    /// `supported`.
    pub(super) fn refuse(&self, field: &str, supported: &'static str) -> Error {
        let found = self.get(field).map_or_else(|| "null".to_owned(), Value::to_string);
        Error::Unsupported { path: self.path.clone(), field: format!("{}.{field}", self.place), found, supported }
    }

    /// Checks that a feature which is not computed here is off: the field is absent, null, `false`,
    /// or an empty list or object.
    pub(super) fn must_be_off(&self, field: &str, supported: &'static str) -> Result<(), Error> {
        match self.get(field) {
            None | Some(Value::Bool(false)) => Ok(()),
            Some(Value::Array(items)) if items.is_empty() => Ok(()),
            Some(Value::Object(items)) if items.is_empty() => Ok(()),
            Some(_) => Err(self.refuse(field, supported)),
        }
    }

    /// A whole number, or `default` where the field is absent or null.
    pub(super) fn number(&self, field: &str, default: i64, supported: &'static str) -> Result<i64, Error> {
        match self.get(field) {
            None => Ok(default),
            Some(value) => value.as_i64().ok_or_else(|| self.refuse(field, supported)),
        }
    }

    /// Warns of fields that are not null and not `known`: the fields that a method reads and those
    /// that are known to change no weight, with white space between them.
    pub(super) fn warn_of_unread(&self, known: &str) {
        let is_known = |key: &str| known.split_whitespace().any(|known| known == key);
        let fields = self.fields.keys().map(String::as_str);
        let unread: Vec<&str> = fields.filter(|&key| !is_known(key) && self.get(key).is_some()).collect();
        if !unread.is_empty() {
            let (place, fields) = (&self.place, unread.join(", "));
            tracing::warn!(place, fields, "fields that are not read; scores are wrong if one changes the weights");
        }
    }
}
