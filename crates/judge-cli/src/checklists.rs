//! Checklists: read from files, and what a judge says of their criteria.

use std::path::Path;

use anyhow::{Context, Result};
use judge_core::Score;
use judge_core::decision::Checklist;
use judge_core::settings::settings_from_json;
use serde_json::{Map, Value};

/// A list of criteria from a file.
///
/// # Errors
/// If it cannot be read, or is no checklist.
pub fn read_checklist(path: &Path) -> Result<Checklist> {
    settings_from_json(&judge_data::read_text(path)?).with_context(|| path.display().to_string())
}

/// The probability that each criterion is met, by name.
pub fn criteria(score: &Score) -> Map<String, Value> {
    score.parts.iter().filter_map(|part| Some((part.name.clone(), part.verdict.value()?.into()))).collect()
}
