//! What the run record beside a file of verdicts says of the judge that gave them.

use std::path::Path;

use anyhow::Result;
use judge_core::{ModelInfo, model::same_fingerprint};
use judge_data::{RunRecord, load, record_path};

use crate::terminal::console::usage;

/// The record beside a file that an option names; without it, `unknown` is.
pub fn run_record(option: &str, file: &Path, unknown: &str) -> Result<RunRecord> {
    let record = record_path(file);
    if !record.exists() {
        let file = file.display();
        return Err(usage(format!("{option}: {file} has no run record beside it, so nothing says {unknown}")));
    }
    Ok(load(&record)?)
}

/// The name of the model that a record has, if it is not this one.
pub fn other_model<'r>(recorded: Option<&'r ModelInfo>, model: &ModelInfo) -> Option<&'r str> {
    match recorded {
        Some(known) if same_fingerprint(&known.fingerprint, &model.fingerprint) => None,
        known => Some(known.map_or("an unknown model", |known| &known.name)),
    }
}
