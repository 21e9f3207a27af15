//! What is recorded of a run: by a run record, a plan, and a check.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use judge_core::ModelInfo;
use judge_data::{
    CommandResults, Completeness, Counts, InputFile, Program, RunRecord, Settings, ShardPlan, load, record_path,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What is known of how the rows were made.
#[derive(Default, Serialize)]
pub struct Record {
    /// The run's id, of programs that name it.
    pub run: Option<String>,
    pub program: Option<Program>,
    pub model: Option<ModelInfo>,
    /// Content id of the template.
    pub template: Option<String>,
    pub started: Option<String>,
    pub finished: Option<String>,
    /// From start to end, in seconds, where it was not interrupted.
    pub seconds: Option<u64>,
    pub command: Vec<String>,
    pub settings: Settings,
    /// Hashes of the files that were read, and of those that these were made of.
    #[serde(skip)]
    pub inputs: Vec<String>,
    /// Hashes of the files that were written.
    #[serde(skip)]
    pub outputs: Vec<String>,
    /// Rows that the record counts.
    pub counts: Option<Counts>,
    /// What a check found.
    pub completeness: Option<Check>,
}

/// What a check found.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub enum Check {
    /// Of result rows.
    Rows(Completeness),
    /// Of the results of a command.
    Command(CommandResults),
}

impl Check {
    /// Whether all is there, how many results, and what keeps it from being complete.
    pub fn said(&self) -> (bool, u64, &[String]) {
        match self {
            Self::Rows(found) => (found.complete, found.rows, &found.problems),
            Self::Command(found) => (found.complete, found.rows as u64, &found.problems),
        }
    }
}

impl Record {
    /// Reads what there is: `path`, or else the record beside the input.
    pub fn find(path: Option<&Path>, input: &Path, check: Option<&Path>) -> Result<Self> {
        let mut record = match path {
            Some(path) => Self::read(path)?,
            None => {
                let beside = record_path(input);
                if beside.is_file() { Self::of_run(load(&beside)?) } else { Self::default() }
            }
        };
        if let Some(path) = check {
            let text = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
            let found = serde_json::from_slice(&text);
            let expected = || format!("{}: expected what judge shards check --json writes", path.display());
            record.completeness = Some(found.with_context(expected)?);
        }
        Ok(record)
    }

    /// Either kind of file; its format says which.
    fn read(path: &Path) -> Result<Self> {
        let text = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let value: Value = serde_json::from_slice(&text).with_context(|| format!("{}: no JSON", path.display()))?;
        match value.get("format").and_then(Value::as_str) {
            Some("judge-shard-plan") => Ok(Self::of_plan(load(path)?)),
            Some("judge-run-record") => Ok(Self::of_run(load(path)?)),
            Some("judge-command-plan") => bail!(
                "{} is the plan of a command, whose parts have rows of their own: join them with `judge shards export`, and give the file \
                 that it writes as --input, whose record is found beside it",
                path.display()
            ),
            Some(other) => bail!("{}: expected a plan or a run record, found the format {other:?}", path.display()),
            None => bail!("{}: expected a plan or a run record, found JSON without a format", path.display()),
        }
    }

    fn of_run(mut record: RunRecord) -> Self {
        let run = record.setting("run").and_then(Value::as_str).map(str::to_owned);
        let time = |text: &Option<String>| text.as_deref().and_then(|text| humantime::parse_rfc3339(text).ok());
        let seconds = match (time(&record.started), time(&record.finished)) {
            (Some(started), Some(finished)) if record.resumes == 0 => finished.duration_since(started).ok(),
            _ => None,
        };
        record.settings.extend(record.resolved);
        Self {
            run,
            program: Some(record.program).filter(|program| !program.version.is_empty()),
            model: record.model,
            template: record.template,
            started: record.started,
            finished: record.finished,
            seconds: seconds.map(|time| time.as_secs()),
            command: record.command,
            settings: record.settings,
            inputs: sources(record.inputs),
            outputs: record.outputs.into_iter().filter_map(|output| output.blake3).collect(),
            counts: Some(record.counts).filter(|counts| counts.rows() > 0),
            completeness: None,
        }
    }

    fn of_plan(plan: ShardPlan) -> Self {
        let ShardPlan { run, mut settings, resolved, arguments, items, .. } = plan;
        let model = resolved.get("model").and_then(|model| serde_json::from_value(model.clone()).ok());
        settings.extend(resolved);
        let command = ["judge", "shards", "plan"].into_iter().map(str::to_owned).chain(arguments).collect();
        let template = Some(items.template.id().to_owned());
        Self { run: Some(run), model, template, command, settings, ..Self::default() }
    }

    /// LAGER's weights by layer, where they were used.
    pub fn layer_weights(&self) -> Option<Vec<f64>> {
        serde_json::from_value(self.settings.get("weights")?.clone()).ok()
    }
}

/// Hashes of these files, and of those that they were made of, as far as the records beside them say so.
fn sources(mut files: Vec<InputFile>) -> Vec<String> {
    let mut found = Vec::new();
    while let Some(file) = files.pop() {
        if found.contains(&file.blake3) {
            continue;
        }
        let record: Option<RunRecord> = load(record_path(&file.path)).ok();
        let made_it =
            |record: &RunRecord| record.outputs.iter().any(|output| output.blake3.as_ref() == Some(&file.blake3));
        files.extend(record.filter(made_it).map_or_else(Vec::new, |record| record.inputs));
        found.push(file.blake3);
    }
    found
}
