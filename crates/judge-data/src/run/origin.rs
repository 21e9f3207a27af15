use std::path::Path;

use judge_core::{
    Lens, Scale,
    lager::{Condition, TableOrigin},
};

use crate::{Error, InputFile, RunRecord, load, record_path};

/// The setting of a run record that holds the [`TableOrigin`] of a score file's tables.
pub const ORIGIN: &str = "origin";

const UNRECORDED: &str = "unrecorded:";

/// What the run record beside a score file says of its tables; `None` if there is no record (LAGER's program writes none).
///
/// # Errors
/// [`Error::Content`] if there is one and it says nothing of tables, or whatever is wrong with it.
pub fn recorded_origin(scores: &Path) -> Result<Option<TableOrigin>, Error> {
    let path = record_path(scores);
    if !path.exists() {
        return Ok(None);
    }
    let record: RunRecord = load(&path)?;
    let origin = record.resolved.get(ORIGIN).or_else(|| record.settings.get(ORIGIN));
    let origin = origin.ok_or_else(|| {
        let expected = format!("`{ORIGIN}`, which says what the tables were read from");
        let found = "none; score the rows again, or, in a program of your own, name it by `Resolved::with_origin`";
        Error::content(&path, "settings", expected, found)
    })?;
    let origin = serde_json::from_value(origin.clone()).map_err(|source| Error::Document { path, source })?;
    Ok(Some(origin))
}

/// An origin for tables of which nothing is recorded: the file itself stands for the model.
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
