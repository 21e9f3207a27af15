//! What the run record beside a file of verdicts says of the judge that gave them.

use std::path::Path;

use anyhow::{Result, bail};
use judge_core::{ModelInfo, model::same_fingerprint};
use judge_data::{Difference, RunRecord, Settings, load, record_path, with_variant};
use serde_json::Value;

use crate::terminal::console::{tell, usage};

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

/// What decides about the scores of a run, as its record has it.
fn of_scores(record: &RunRecord) -> Settings {
    let RunRecord { model, template, settings, resolved, .. } = record;
    let fields = |value: Option<&Value>| value.and_then(Value::as_object).cloned().into_iter().flatten();
    let settings = &with_variant(settings.clone());
    let mut found = of_judge(settings);
    // The template is told by its id.
    found.extend(fields(resolved.get("origin")));
    found.extend(fields(settings.get("lager")).filter(|(name, _)| name != "template"));
    found.extend(settings.get("probes").map(|probes| ("probes".to_owned(), probes.clone())));
    let model = model.iter().flat_map(|model| [("model", &model.name), ("fingerprint", &model.fingerprint)]);
    let told = model.chain(template.iter().map(|id| ("template", id)));
    found.extend(told.map(|(name, text)| (name.to_owned(), Value::from(text.as_str()))));
    found
}

/// Refuses the scores of a file that are on another scale than this one, where its run record says so. `here` names what is on this one.
///
/// # Errors
/// Both scales; whatever is wrong with the record.
pub fn check_scale(option: &str, file: &Path, scale: &Value, here: &str) -> Result<()> {
    let record = record_path(file);
    let known = if record.exists() { of_scores(&load::<RunRecord>(&record)?).remove("scale") } else { None };
    let Some(known) = known.filter(|known| known != scale) else { return Ok(()) };
    let [known, scale] = [&known, scale].map(|scale| brief(&labels(scale)));
    let file = file.display();
    bail!("{option}: {file} has scores on the scale {known}, and {here} is on {scale}: score both on one scale")
}

/// Refuses scores of two files that are on different scales, and says in what else the judges that gave them differ, as far as both files
/// have a run record beside them.
///
/// # Errors
/// As [`check_scale`].
pub fn check_same_judge(option: &str, file: &Path, other: &Path) -> Result<()> {
    let paths = [other, file].map(record_path);
    if !paths.iter().all(|path| path.exists()) {
        return Ok(());
    }
    let [before, now] = paths.map(|path| load::<RunRecord>(&path).map(|record| of_scores(&record)));
    let (before, now) = (before?, now?);
    if let Some(scale) = before.get("scale") {
        check_scale(option, file, scale, &other.display().to_string())?;
    }
    let differences = Difference::between(&before, &now);
    let other_model = differences.iter().any(|difference| difference.key == "model");
    for Difference { key, before, now } in differences {
        // What one of them does not say is no difference.
        let (Some(before), Some(now)) = (before, now) else { continue };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if key == "fingerprint" && (other_model || same_fingerprint(&text(&before), &text(&now))) {
            continue;
        }
        let [before, now] = [before, now].map(|value| brief(&value.to_string()));
        let (file, other) = (file.display(), other.display());
        tell(format_args!(
            "note: {option}: {file} has scores of another judge than {other}: its {key} is {now}, there {before}"
        ));
    }
    Ok(())
}

/// The labels of a scale.
fn labels(scale: &Value) -> String {
    let label = |point: &Value| point["label"].as_str().unwrap_or_default().to_owned();
    scale.as_array().into_iter().flatten().map(label).collect::<Vec<_>>().join(", ")
}

/// The name of the model that a record has, if it is not this one.
pub fn other_model<'r>(recorded: Option<&'r ModelInfo>, model: &ModelInfo) -> Option<&'r str> {
    match recorded {
        Some(known) if same_fingerprint(&known.fingerprint, &model.fingerprint) => None,
        known => Some(known.map_or("an unknown model", |known| &known.name)),
    }
}
