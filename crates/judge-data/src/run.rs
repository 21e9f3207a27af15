//! A run: rows that come in any order and lose nothing.

pub(crate) mod beside;
pub(crate) mod journal;
pub(crate) mod jsonl;
pub(crate) mod origin;
pub(crate) mod output;
pub(crate) mod outputs;
pub(crate) mod run_record;
pub(crate) mod settings;

mod judge;
mod made_by;
mod plan;
mod publish;
mod start;

use std::path::PathBuf;

use judge_core::Judge;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::run::journal::Journal;
use crate::{Counts, Error, Fate, OutputFile, Resumed, RunRecord};

use made_by::{judged_otherwise, settings_of};
use publish::{publish, sorted_path};

pub(crate) use judge::of_fields;
pub use judge::{Observer, RowItem, RunResult};
pub use made_by::{MadeBy, Resolved};
pub use plan::{RunPlan, WriteOptions};
pub use start::{Opened, RunStart};

/// A JSON lines file whose rows come in any order and survive a kill, with the record of how it was made.
///
/// Rows are appended to `FILE.partial` as they come; each is in the hands of the operating system when [`push`](Self::push) returns, and on
/// the disk from time to time ([`SyncEvery`](crate::SyncEvery)). [`finish`](Self::finish) puts them in input order into `FILE`, with
/// `FILE.run.json` beside it: the bytes that an uninterrupted run would have written. Memory is 9 bytes per row. While it finishes, a run
/// needs about twice the space of its output.
#[derive(Debug)]
pub struct Run {
    plan: RunPlan,
    target: PathBuf,
    journal: Journal,
    record: RunRecord,
}

impl Run {
    /// What was found of an interrupted run when this was opened.
    pub fn resumed(&self) -> Resumed {
        self.journal.resumed()
    }

    /// Number of rows that the output will have.
    pub fn rows(&self) -> usize {
        self.journal.rows()
    }

    /// Whether this row is written. False for a row that does not exist.
    pub fn is_done(&self, row: usize) -> bool {
        self.journal.is_done(row)
    }

    /// The rows that are not written yet, ascending.
    pub fn pending(&self) -> impl Iterator<Item = usize> {
        self.journal.pending()
    }

    /// What became of the rows so far, those of earlier starts included.
    pub fn counts(&self) -> Counts {
        self.journal.counts()
    }

    /// What will be recorded of this run, as far as it is known.
    pub fn record(&self) -> &RunRecord {
        &self.record
    }

    /// Notes which judges make the rows. [`RunStart::judge`] does it;
    /// call it before the first row where you run judges yourself.
    ///
    /// # Errors
    /// [`Error::JudgeSettings`] for a judge that does not say what its verdicts depend on;
    /// [`Error::SettingsDiffer`] if there are rows that others made; [`Error::Io`].
    pub fn judged_by<'j, Item: ?Sized + 'j>(
        &mut self,
        judges: impl IntoIterator<Item = &'j dyn Judge<Item>>,
    ) -> Result<(), Error> {
        let judges = settings_of(judges)?;
        let differences = judged_otherwise(&self.record.judges, &judges);
        if differences.is_empty() {
            return Ok(());
        }
        if self.pending().count() < self.rows() {
            return Err(Error::SettingsDiffer { path: self.journal.path().to_path_buf(), differences });
        }
        self.record.judges = judges;
        self.journal.begin(self.plan.rows, self.record.clone())
    }

    /// Writes a row, by its place in the input from 0; `value` must be a JSON object. A number in it that is not finite is written as null:
    /// check first.
    ///
    /// # Errors
    /// [`Error::RowTwice`], [`Error::NoSuchRow`], [`Error::Body`], [`Error::Serialize`], [`Error::Io`]; the row is then not written.
    pub fn push<T: Serialize + ?Sized>(&mut self, row: usize, value: &T, fate: Fate) -> Result<(), Error> {
        if self.is_done(row) {
            return Err(Error::RowTwice { row });
        }
        self.replace(row, value, fate)
    }

    /// As [`push`](Self::push), but of a row that is there already the new one counts.
    ///
    /// # Errors
    /// [`Error::NoSuchRow`], [`Error::Body`], [`Error::Serialize`], [`Error::Io`]; the row is then as it was.
    pub fn replace<T: Serialize + ?Sized>(&mut self, row: usize, value: &T, fate: Fate) -> Result<(), Error> {
        let rows = self.rows();
        if row >= rows {
            return Err(Error::NoSuchRow { row, rows });
        }
        self.journal.push(row, value, fate, None)?;
        if self.journal.is_sync_due() { self.journal.sync() } else { Ok(()) }
    }

    /// Reads a row back; `None` if it is not written yet.
    ///
    /// # Errors
    /// [`Error::Io`], or [`Error::Document`] if `T` does not read it.
    pub fn read<T: DeserializeOwned>(&self, row: usize) -> Result<Option<T>, Error> {
        self.journal.read(row)
    }

    /// Waits until every row so far is on the disk.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn sync(&mut self) -> Result<(), Error> {
        self.journal.sync()
    }

    /// Puts all rows in order into the output and the record beside it, and removes the partial file. If this is interrupted at any moment,
    /// the next [`RunPlan::open`] completes it, to the same bytes. An earlier record goes before an earlier output is replaced, so that
    /// rows are never beside the record of others.
    ///
    /// # Errors
    /// [`Error::Incomplete`] if rows are missing, [`Error::Io`]. What was written is kept for another try.
    pub fn finish(self) -> Result<RunRecord, Error> {
        let Self { plan, target, mut journal, mut record } = self;
        let sorted = sorted_path(&target);
        let (bytes, blake3) = journal.assemble(&sorted, plan.layout)?;
        record.outputs = vec![OutputFile { path: target.clone(), rows: plan.rows, bytes, blake3: Some(blake3) }];
        record.counts = journal.counts();
        record.resumes = journal.resumes();
        record.finished = Some(plan.now());
        journal.note_finishing(&record, &sorted)?;
        publish(&target, &sorted, &record, journal)?;
        Ok(record)
    }
}
