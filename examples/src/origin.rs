//! Which model and settings a score file came from.

use std::path::Path;

use anyhow::{Context, Result};
use judge_core::{Condition, Lens, Scale, TableOrigin};
use judge_data::{InputFile, RunRecord, load, record_path};

/// The setting of a run record that holds the [`TableOrigin`].
pub const ORIGIN: &str = "origin";

const UNRECORDED: &str = "unrecorded:";

/// What the run record beside a score file says of its tables; `None` if there is no record (the reference program
/// writes none).
///
/// # Errors
/// If there is one and it cannot be read, or it records something else.
pub fn recorded_origin(scores: &Path) -> Result<Option<TableOrigin>> {
    let path = record_path(scores);
    if !path.exists() {
        return Ok(None);
    }
    let record: RunRecord = load(&path)?;
    let origin = record.setting(ORIGIN).with_context(|| format!("{} records no `{ORIGIN}`", path.display()))?;
    let origin = serde_json::from_value(origin.clone()).with_context(|| format!("{}: `{ORIGIN}`", path.display()))?;
    Ok(Some(origin))
}

/// An origin for tables that nothing is recorded of: the file itself stands for the model.
#[must_use]
pub fn unrecorded_origin(file: &InputFile, n_layers: usize, scale: &Scale) -> TableOrigin {
    TableOrigin {
        model: format!("not recorded; tables of {}", file.path.display()),
        fingerprint: format!("{UNRECORDED}{}", file.blake3),
        n_layers,
        dtype: "not recorded".to_owned(),
        lens: Lens::Raw,
        scale: scale.clone(),
        template: "not recorded".to_owned(),
        condition: Condition::direct(),
    }
}

/// Whether an origin is [`unrecorded_origin`]'s.
#[must_use]
pub fn is_unrecorded(origin: &TableOrigin) -> bool {
    origin.fingerprint.starts_with(UNRECORDED)
}
