use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::{Value, json};

use crate::atomic::with_suffix;
use crate::journal::{Head, Journal};
use crate::lock::Locking;
use crate::output::target;
use crate::run::{Opened, Resolved, RunStart, finish_interrupted};
use crate::{
    Counts, Difference, Error, InputFile, Layout, OutputFile, Program, RunRecord, Settings, SyncEvery, check_outputs,
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
/// Everything here but paths, command and options decides about the rows: an interrupted run is resumed, and a finished one recognised, only if
/// program and version, number of rows, content of the inputs, seed and settings are the same.
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
    /// Everything else that was chosen, also which model: see [`open`](Self::open).
    pub settings: Settings,
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
            layout: Layout::Lines,
            options: WriteOptions::default(),
            started: SystemTime::now(),
            clock: SystemTime::now,
        }
    }

    /// Takes the output's lock and says what is there: nothing, an interrupted run, or a finished one. Call it before the model is loaded.
    ///
    /// A finished run is recognised by what this plan says, without its model. So let the settings say which model is meant: its path or
    /// name, its revision, and, where a folder may change under its name, a fingerprint of it.
    ///
    /// Beside `FILE` a run uses `FILE.partial`, `FILE.partial.sorted` and `FILE.run.json`.
    ///
    /// # Errors
    /// [`Error::Output`] if the output cannot be written or is one of the inputs; [`Error::OutputExists`] if a finished output was made otherwise, or nothing says
    /// how, and [`WriteOptions::overwrite`] is not set; [`Error::SettingsDiffer`] if unfinished rows were made otherwise; [`Error::Locked`] if
    /// another process is writing; [`Error::NoLocks`]; [`Error::Partial`] if `FILE.partial` is not a journal of this version; [`Error::Io`].
    pub fn open(self) -> Result<Opened, Error> {
        check_outputs(self.inputs.iter().map(|input| &input.path), [&self.output])?;
        let target = target(&self.output)?;
        let partial = with_suffix(&target, ".partial");
        // Where a folder can be read and not written to, a finished run is still recognised.
        if !partial.exists()
            && let Ok(Some(record)) = self.finished()
        {
            return Ok(Opened::Complete(Box::new(record)));
        }
        let open = || Journal::open(partial.clone(), self.options.locking, self.options.sync);
        let mut journal = open()?;
        if let Some(remaining) = journal.to_finish().map(<[u8]>::to_vec) {
            let layout = journal.head().map_or(self.layout, |head| layout_of(&head.run));
            finish_interrupted(&target, journal, &remaining, layout)?;
            journal = open()?;
        }
        if let Some(record) = self.finished()? {
            return Ok(Opened::Complete(Box::new(record)));
        }
        if let Some(head) = journal.head().filter(|_| journal.resumed().rows > 0) {
            self.refuse_other_run(&partial, head, &self.draft(), false)?;
        }
        Ok(Opened::Ready(Box::new(RunStart { plan: self, target, journal })))
    }

    /// The record of a finished output that was made as planned; `None` if there is no output yet, or an empty file without a record, or one that may
    /// be overwritten. For outputs that are not written by a [`Run`](crate::Run), too.
    ///
    /// # Errors
    /// [`Error::Output`] if the output cannot be written; [`Error::OutputExists`] as for [`open`](Self::open); [`Error::Io`]; as [`load`] for a record that
    /// cannot be read.
    pub fn finished(&self) -> Result<Option<RunRecord>, Error> {
        let target = target(&self.output)?;
        let path = record_path(&target);
        let length = fs::metadata(&target).ok().map(|metadata| metadata.len());
        if !path.exists() {
            return match length {
                None | Some(0) => Ok(None),
                Some(_) if self.options.overwrite => Ok(None),
                Some(_) => Err(Error::OutputExists { path: self.output.clone(), differences: Vec::new() }),
            };
        }
        let record: RunRecord = match load(&path) {
            Err(_) if self.options.overwrite => return Ok(None),
            record => record?,
        };
        let mut differences = self.differences(record.counts.rows(), &record, &self.draft(), false);
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

    /// The record of a run that was written by other means than a [`Run`](crate::Run), e.g. a [`StatesWriter`](crate::StatesWriter), and is finished now. Save it
    /// at [`record_path`], last of all.
    pub fn record(&self, resolved: Resolved, counts: Counts, outputs: Vec<OutputFile>) -> RunRecord {
        let Resolved { model, template, settings } = resolved;
        RunRecord { model, template, resolved: settings, counts, outputs, finished: Some(self.now()), ..self.draft() }
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

    pub(super) fn now(&self) -> String {
        rfc3339((self.clock)())
    }

    /// Refuses unfinished rows that were made otherwise. What is resolved is compared too if it is known.
    pub(super) fn refuse_other_run(
        &self,
        path: &Path,
        head: &Head,
        now: &RunRecord,
        resolved: bool,
    ) -> Result<(), Error> {
        let differences = self.differences(head.rows, &head.run, now, resolved);
        if differences.is_empty() {
            Ok(())
        } else {
            Err(Error::SettingsDiffer { path: path.to_path_buf(), differences })
        }
    }

    fn differences(&self, rows: usize, before: &RunRecord, now: &RunRecord, resolved: bool) -> Vec<Difference> {
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
        found.extend(Difference::between(&before.settings, &now.settings));
        if resolved {
            found.extend(Difference::within("model", &model(before), &model(now)));
            found.extend(Difference::within("template", &json!(before.template), &json!(now.template)));
            found.extend(Difference::between(&before.resolved, &now.resolved));
        }
        found
    }
}

fn rfc3339(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}

const LAYOUT: &str = "output.layout";
const ARRAY: &str = "array";

fn layout_of(record: &RunRecord) -> Layout {
    match record.settings.get(LAYOUT) {
        Some(layout) if layout == ARRAY => Layout::Array,
        _ => Layout::Lines,
    }
}

/// What decides about a model's numbers: not how it is called.
fn model(record: &RunRecord) -> Value {
    let mut model = json!(record.model);
    if let Value::Object(fields) = &mut model {
        fields.remove("name");
        fields.remove("revision");
    }
    model
}
