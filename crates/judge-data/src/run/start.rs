//! How a run is begun: new, resumed, or found finished.

use std::path::PathBuf;

use crate::files::paths::{target, with_suffix};
use crate::run::beside::refuse_foreign_beside;
use crate::run::journal::Journal;
use crate::run::made_by::made_otherwise;
use crate::run::plan::layout_of;
use crate::run::publish::finish_interrupted;
use crate::{Error, Resolved, Resumed, Run, RunPlan, RunRecord, check_outputs};

/// What [`RunPlan::open`] found.
#[derive(Debug)]
pub enum Opened {
    /// The output is finished, as planned: there is nothing to do.
    Complete(Box<RunRecord>),
    /// There are rows to write, or none but the output is not in place yet.
    Ready(Box<RunStart>),
}

/// A run whose output is locked, before the model is known.
#[derive(Debug)]
pub struct RunStart {
    plan: RunPlan,
    target: PathBuf,
    journal: Journal,
}

impl RunStart {
    /// What was found of an interrupted run.
    pub fn resumed(&self) -> Resumed {
        self.journal.resumed()
    }

    /// Starts writing, or resumes what was interrupted.
    ///
    /// # Errors
    /// [`Error::SettingsDiffer`] if rows are there that were made with another model, template or other settings; [`Error::Io`].
    pub fn begin(mut self, resolved: Resolved) -> Result<Run, Error> {
        let mut record = self.plan.resolved(resolved);
        match self.journal.head() {
            Some(head) if self.journal.resumed().rows > 0 => {
                if record.judges.is_empty() {
                    record.judges.clone_from(&head.run.judges); // `judged_by` compares them
                }
                let mut differences = self.plan.differences(head.rows, &head.run, &record);
                differences.extend(made_otherwise(&head.run, &record));
                if !differences.is_empty() {
                    return Err(Error::SettingsDiffer { path: self.journal.path().to_path_buf(), differences });
                }
                record.started.clone_from(&head.run.started);
                self.journal.note_resumed()?;
            }
            // Settings of a run without rows do not matter.
            _ => self.journal.begin(self.plan.rows, record.clone())?,
        }
        Ok(Run { plan: self.plan, target: self.target, journal: self.journal, record })
    }
}

impl RunPlan {
    /// Takes the output's lock and says what is there: nothing, an interrupted run, or a finished one. Call it before the model is loaded.
    ///
    /// A finished output is complete only if this plan says as much of its model and judges as the record does
    /// ([`made_by`](Self::made_by)), and the same.
    ///
    /// Beside `FILE` a run uses `FILE.partial`, `FILE.partial.sorted` and `FILE.run.json`.
    ///
    /// # Errors
    /// [`Error::Output`] if the output cannot be written or is one of the inputs;
    /// [`Error::OutputExists`] if a finished output was made otherwise, or nothing says
    /// how, and [`overwrite`](crate::WriteOptions::overwrite) is not set;
    /// [`Error::SettingsDiffer`] if unfinished rows were made otherwise; [`Error::Locked`] if
    /// another process is writing; [`Error::NoLocks`]; [`Error::Partial`] if `FILE.partial` is not a journal of this version;
    /// [`Error::Io`].
    pub fn open(self) -> Result<Opened, Error> {
        check_outputs(self.inputs.iter().map(|input| &input.path), [&self.output])?;
        let target = target(&self.output)?;
        let partial = with_suffix(&target, ".partial");
        if !partial.exists() {
            refuse_foreign_beside(&self.output, &target)?;
        }
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
            let mut differences = self.differences(head.rows, &head.run, &self.draft());
            differences.extend(self.made_by.differences(&head.run, false));
            if !differences.is_empty() {
                return Err(Error::SettingsDiffer { path: partial, differences });
            }
        }
        Ok(Opened::Ready(Box::new(RunStart { plan: self, target, journal })))
    }
}
