//! Whether a run is a new one, a finished one again, or would replace another's results.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use judge_probe::SavedProbe;
use serde::Deserialize as _;
use serde_json::Value;

use judge_cli::terminal::console::usage;

/// What results depend on, by name.
pub type Settings = BTreeMap<String, Value>;

/// The note of a saved probe, and the entry of the report, that holds the settings.
pub const SETTINGS: &str = "settings";

/// What a folder of results holds.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing of these aspects, or only probes of an interrupted run with the same settings.
    Unfinished,
    /// All of it, with the same settings.
    Finished,
}

/// Looks at what an earlier run left. Of settings, those that are `known` by now are compared.
///
/// # Errors
/// If a file there is of other settings, unless it may be overwritten; the error names what differs.
pub fn look(folder: &Path, aspects: &[&String], known: &Settings, overwrite: bool) -> Result<Found> {
    let report = report_path(folder);
    let mut found = Found::Unfinished;
    let mut earlier: Vec<(PathBuf, Option<Settings>)> = Vec::new();
    if report.exists() {
        let text = fs::read(&report).with_context(|| format!("cannot read {}", report.display()))?;
        let settings = serde_json::from_slice::<Value>(&text).ok();
        let settings = settings.and_then(|report| Settings::deserialize(&report[SETTINGS]).ok());
        earlier.push((report, settings));
        found = Found::Finished;
    }
    for aspect in aspects {
        let path = probe_path(folder, aspect);
        if !path.exists() {
            found = Found::Unfinished;
            continue;
        }
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let note = SavedProbe::from_bytes(&bytes).ok().and_then(|probe| probe.origin().notes.get(SETTINGS).cloned());
        let settings = note.and_then(|note| serde_json::from_str(&note).ok());
        earlier.push((path, settings));
    }
    for (path, settings) in earlier {
        let differences = match settings {
            Some(settings) => differences(&settings, known),
            None => vec!["it does not say with which settings it was made".to_owned()],
        };
        if differences.is_empty() {
            continue;
        }
        if overwrite {
            return Ok(Found::Unfinished);
        }
        return Err(usage(format!(
            "{} is of another run: {}. Repeat that run, choose another --output, or replace it with --overwrite",
            path.display(),
            differences.join("; ")
        )));
    }
    Ok(found)
}

pub fn report_path(folder: &Path) -> PathBuf {
    folder.join("report.json")
}

pub fn probe_path(folder: &Path, aspect: &str) -> PathBuf {
    folder.join(format!("{aspect}.safetensors"))
}

pub fn figure_path(folder: &Path, aspect: &str) -> PathBuf {
    folder.join(format!("{aspect}.svg"))
}

pub fn template_path(folder: &Path, aspect: &str) -> PathBuf {
    folder.join(format!("{aspect}.template.json"))
}

/// Settings that are known and were others before.
fn differences(before: &Settings, known: &Settings) -> Vec<String> {
    // What a run of an earlier version did not know it did not choose either.
    let differing = known.iter().filter(|&(name, now)| before.get(name).unwrap_or(&Value::Null) != now);
    let text = |(name, now): (&String, &Value)| match before.get(name) {
        Some(before) => format!("{name} was {before}, is {now}"),
        None => format!("{name} was not there, is {now}"),
    };
    differing.map(text).collect()
}
