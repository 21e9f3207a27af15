use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use serde_json::json;

use crate::files::lock::Locking;
use crate::files::paths::target;
use crate::results::carry::in_words_of;
use crate::run::outputs::is_of_a_run;
use crate::run::{MadeBy, Resolved};
use crate::{
    Counts, Difference, Error, InputFile, Layout, OutputFile, OutputProblem, Program, RunRecord, Settings, SyncEvery,
    load, record_path,
};

/// How an output is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Whether a finished output that was made otherwise is replaced. What is unfinished is never thrown away.
    pub overwrite: bool,
    /// Whether the unfinished output is protected from a second writer.
    pub locking: Locking,
    /// When rows are brought to the disk.
    pub sync: SyncEvery,
}

/// All that is known of a run before a model is loaded.
///
/// Everything here but paths, command and options decides about the rows:
/// an interrupted run is resumed, and a finished one recognised, only if
/// program and version, number of rows, content of the inputs, seed, settings, model, template and judges are the same.
#[derive(Clone, Debug)]
pub struct RunPlan {
    /// Where the rows go.
    pub output: PathBuf,
    /// How many there will be: those of the input.
    pub rows: usize,
    /// The program.
    pub program: Program,
    /// Its command line, for the record.
    pub command: Vec<String>,
    /// The files that are read.
    pub inputs: Vec<InputFile>,
    /// The seed, if anything is drawn.
    pub seed: Option<u64>,
    /// Everything else that was chosen.
    pub settings: Settings,
    /// The model and the judges, as far as they are known now.
    pub made_by: MadeBy,
    /// Whether the output is JSON lines or one array.
    pub layout: Layout,
    /// How it is written.
    pub options: WriteOptions,
    /// When this start began, for the record.
    pub started: SystemTime,
    /// Tells when the run is finished, for the record.
    pub clock: fn() -> SystemTime,
}

impl RunPlan {
    /// A plan with the command line of this process, without inputs and settings, for JSON lines.
    pub fn new(output: impl Into<PathBuf>, rows: usize, program: Program) -> Self {
        Self {
            output: output.into(),
            rows,
            program,
            command: std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect(),
            inputs: Vec::new(),
            seed: None,
            settings: Settings::new(),
            made_by: MadeBy::default(),
            layout: Layout::Lines,
            options: WriteOptions::default(),
            started: SystemTime::now(),
            clock: SystemTime::now,
        }
    }

    /// The record of a finished output that was made as planned; `None` if there is no output yet, or an empty file without a record, or
    /// one of another run that may be overwritten. For outputs that are not written by a [`Run`](crate::Run), too.
    ///
    /// # Errors
    /// [`Error::Output`] if the output cannot be written or is no run's; [`Error::OutputExists`] as for [`open`](Self::open); [`Error::Io`]; as [`load`]
    /// for a record that cannot be read.
    pub fn finished(&self) -> Result<Option<RunRecord>, Error> {
        let target = target(&self.output)?;
        let path = record_path(&target);
        let length = fs::metadata(&target).ok().map(|metadata| metadata.len());
        if !path.exists() {
            return match length {
                None | Some(0) => Ok(None),
                Some(_) if !is_of_a_run(&target)? => {
                    Err(Error::Output { path: self.output.clone(), problem: OutputProblem::Foreign })
                }
                Some(_) if self.options.overwrite => Ok(None),
                Some(_) => Err(Error::OutputExists { path: self.output.clone(), differences: Vec::new() }),
            };
        }
        let record: RunRecord = match load(&path) {
            Err(_) if self.options.overwrite => return Ok(None),
            record => record?,
        };
        let mut differences = self.differences(record.counts.rows(), &record, &self.draft());
        differences.extend(self.made_by.differences(&record, true));
        let mut missing = false;
        for output in &record.outputs {
            // Folders may have been moved: the names are what counts.
            let file = target.with_file_name(output.path.file_name().unwrap_or_default());
            let is = fs::metadata(&file).ok().map(|metadata| metadata.len());
            missing |= is.is_none();
            if is.is_some_and(|bytes| bytes != output.bytes) {
                let key = format!("bytes of {}", file.display());
                differences.push(Difference {
                    key,
                    before: Some(json!(output.bytes)),
                    now: is.map(|bytes| json!(bytes)),
                });
            }
        }
        // A record of version 1 does not name the output; its own name does.
        missing |= record.outputs.is_empty() && length.is_none();
        match differences.is_empty() {
            _ if missing => Ok(None),
            true => Ok(Some(record)),
            false if self.options.overwrite => Ok(None),
            false => Err(Error::OutputExists { path: self.output.clone(), differences }),
        }
    }

    /// Refuses a finished output that another program, or this one with other settings, has made.
    /// It is for plans whose inputs are made first, by work that would be
    /// in vain; [`open`](Self::open) compares everything.
    ///
    /// # Errors
    /// [`Error::OutputExists`]; as [`load`] for a record that cannot be read.
    pub fn check_settings(&self) -> Result<(), Error> {
        let record = record_path(&self.output);
        if self.options.overwrite || !record.exists() || !self.output.exists() {
            return Ok(());
        }
        let (record, now): (RunRecord, RunRecord) = (load(record)?, self.draft());
        let mut differences = Difference::within("program.name", &json!(record.program.name), &json!(now.program.name));
        differences.extend(Difference::between(&in_words_of(&now.settings, record.settings), &now.settings));
        match differences.is_empty() {
            true => Ok(()),
            false => Err(Error::OutputExists { path: self.output.clone(), differences }),
        }
    }

    /// The record of a run that was written by other means than a [`Run`](crate::Run), e.g.
    /// a [`StatesWriter`](crate::StatesWriter), and is finished now. Save it
    /// at [`record_path`], last of all.
    pub fn record(&self, resolved: Resolved, counts: Counts, outputs: Vec<OutputFile>) -> RunRecord {
        RunRecord { counts, outputs, finished: Some(self.now()), ..self.resolved(resolved) }
    }

    /// What is known now.
    pub(super) fn draft(&self) -> RunRecord {
        let mut settings = self.settings.clone();
        if self.layout == Layout::Array {
            settings.insert(LAYOUT.into(), ARRAY.into());
        }
        RunRecord {
            program: self.program.clone(),
            command: self.command.clone(),
            seed: self.seed,
            settings,
            inputs: self.inputs.clone(),
            started: Some(rfc3339(self.started)),
            ..RunRecord::default()
        }
    }

    /// What is known once the model is.
    pub(super) fn resolved(&self, resolved: Resolved) -> RunRecord {
        let Resolved { model, template, judges, settings } = resolved;
        RunRecord { model, template, judges, resolved: settings, ..self.draft() }
    }

    pub(super) fn now(&self) -> String {
        rfc3339((self.clock)())
    }

    pub(super) fn differences(&self, rows: usize, before: &RunRecord, now: &RunRecord) -> Vec<Difference> {
        let program = |record: &RunRecord, other: &RunRecord| {
            let mut program = record.program.clone();
            // A commit that is not known is no other one.
            program.git_commit = program.git_commit.filter(|_| other.program.git_commit.is_some());
            json!(program)
        };
        let inputs = |record: &RunRecord| {
            json!(record.inputs.iter().map(|input| json!({"blake3": input.blake3})).collect::<Vec<_>>())
        };
        let mut found = Difference::within("rows", &json!(rows), &json!(self.rows));
        found.extend(Difference::within("program", &program(before, now), &program(now, before)));
        found.extend(Difference::within("inputs", &inputs(before), &inputs(now)));
        found.extend(Difference::within("seed", &json!(before.seed), &json!(now.seed)));
        found.extend(Difference::between(&in_words_of(&now.settings, before.settings.clone()), &now.settings));
        found
    }
}

fn rfc3339(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}

const LAYOUT: &str = "output.layout";
const ARRAY: &str = "array";

pub(super) fn layout_of(record: &RunRecord) -> Layout {
    match record.settings.get(LAYOUT) {
        Some(layout) if layout == ARRAY => Layout::Array,
        _ => Layout::Lines,
    }
}
