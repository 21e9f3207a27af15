//! What the run record beside a file of verdicts says of the judge that gave them.

use std::path::Path;

use anyhow::Result;
use judge_core::{ModelInfo, model::same_fingerprint};
use judge_data::{RunRecord, Settings, load, record_path};

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

/// What decides about a verdict, as run records have it.
const JUDGE_SETTINGS: [&str; 6] = ["family", "verdict", "weights", "apart", "reward", "sentences"];

/// What of a run's settings decides about its verdicts.
pub fn of_judge(settings: &Settings) -> Settings {
    let known = JUDGE_SETTINGS.into_iter().filter_map(|name| Some((name.to_owned(), settings.get(name)?.clone())));
    known.collect()
}

/// In what two judges differ, as the end of a sentence about the first; `None` if they are the same.
pub fn other_judge(known: &Settings, here: &Settings) -> Option<String> {
    let name = JUDGE_SETTINGS.into_iter().find(|name| known.get(*name) != here.get(*name))?;
    let text = |settings: &Settings| settings.get(name).map_or_else(|| "none".to_owned(), ToString::to_string);
    Some(format!("its {name} is {}, here {}", brief(&text(known)), brief(&text(here))))
}

/// The beginning of a setting.
fn brief(text: &str) -> String {
    const MOST: usize = 60;
    if text.chars().count() <= MOST { text.to_owned() } else { text.chars().take(MOST).chain(['…']).collect() }
}

/// The name of the model that a record has, if it is not this one.
pub fn other_model<'r>(recorded: Option<&'r ModelInfo>, model: &ModelInfo) -> Option<&'r str> {
    match recorded {
        Some(known) if same_fingerprint(&known.fingerprint, &model.fingerprint) => None,
        known => Some(known.map_or("an unknown model", |known| &known.name)),
    }
}
