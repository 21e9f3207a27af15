//! The adapter of a decision model: how the settings beside the model name its folder.

use std::path::Path;

use serde_json::Value;

use super::{file, stays_inside};

/// The adapter that a file of settings names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NamedAdapter<'a> {
    /// Its folder, inside the model's.
    pub(crate) name: &'a str,
    /// Whether the file names it. JEV's is called `adapter` where the file says nothing, if there is such a folder.
    pub(crate) is_stated: bool,
}

/// The field of `decision.json` or `judge_config.json` that names the adapter.
pub(crate) fn adapter_field(name: &str) -> &'static str {
    if name == file::JEV { "adapter_subfolder" } else { "adapter" }
}

/// The adapter that the settings in the file `name` are about: `decision.json` or `judge_config.json`. `null` and an empty name are none.
///
/// # Errors
/// The field's value where it is no name of a folder inside the model's.
pub(crate) fn adapter_of<'a>(name: &str, settings: &'a Value) -> Result<Option<NamedAdapter<'a>>, &'a Value> {
    match settings.get(adapter_field(name)) {
        None if name == file::JEV => Ok(Some(NamedAdapter { name: "adapter", is_stated: false })),
        None | Some(Value::Null) => Ok(None),
        Some(found) => match found.as_str() {
            Some("") => Ok(None),
            Some(name) if stays_inside(Path::new(name)) => Ok(Some(NamedAdapter { name, is_stated: true })),
            _ => Err(found),
        },
    }
}
