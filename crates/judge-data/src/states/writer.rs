use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use judge_core::{ItemId, Unscored};

use crate::files::paths::target;
use crate::run::beside::is_empty;
use crate::states::cut::Cut;
use crate::states::ids::ids_of;
use crate::states::mapped::MappedStates;
use crate::states::names::refuse_foreign_file;
use crate::states::shard_writer::ShardWriter;
use crate::states::{StatesRow, StatesSpec, StatesWritten, ids_path};
use crate::{Counts, Error, Fate, OutputFile, Resumed, WriteOptions};

/// Streams hidden states into a safetensors file or a set of shards; see [`StatesFile`](crate::StatesFile) for their content.
///
/// Rows come in any order and go straight to their place on the disk. Each file appears with the last of its rows, whole; until then it is
/// called `FILE.safetensors.partial`. Memory does not grow with the states: it is 8 bytes for each row of the files that are begun and not
/// complete, which is one or two where rows come nearly in order.
///
/// A run that was killed at any moment is resumed where it was, because ids and reasons are a journal that is written after the states of
/// each row and has their hash. Files that are complete are kept.
/// After a loss of power, rows whose states did not reach the disk are done again.
#[derive(Debug)]
pub struct StatesWriter {
    cut: Cut,
    options: WriteOptions,
    complete: Vec<bool>,
    begun: BTreeMap<usize, ShardWriter>,
    resumed: Resumed,
    /// Of the complete files.
    counts: Counts,
}

impl StatesWriter {
    /// Starts a table, or resumes one that was interrupted; of one that is complete, no row is left. With
    /// [`Sharding::Whole`](crate::Sharding::Whole) the one file is called `path`, otherwise `x.safetensors` stands for
    /// `x-00001-of-00007.safetensors` and so on.
    ///
    /// # Errors
    /// [`Error::StatesTooLarge`]; [`Error::SettingsDiffer`] if what is there of an interrupted run has another shape or other metadata, or
    /// the table was cut otherwise; [`Error::OutputExists`] if a complete file has and may not be overwritten; [`Error::Output`], also for a
    /// file that is no table's in the place of its ids or of what is unfinished; as [`StatesFile::open`](crate::StatesFile::open) for a
    /// damaged file and as [`StatesFile::ids`](crate::StatesFile::ids) for its ids; [`Error::Locked`], [`Error::NoLocks`],
    /// [`Error::Partial`], [`Error::Io`].
    pub fn open(path: impl Into<PathBuf>, spec: &StatesSpec, options: WriteOptions) -> Result<Self, Error> {
        spec.check()?;
        let cut = Cut::new(target(&path.into())?, spec.clone());
        cut.refuse_others()?;
        (0..cut.len()).try_for_each(|index| refuse_foreign_file(&cut.shard(index).path, options.overwrite))?;
        let complete = vec![false; cut.len()];
        let (begun, resumed, counts) = (BTreeMap::new(), Resumed::default(), Counts::default());
        let mut this = Self { cut, options, complete, begun, resumed, counts };
        for index in 0..this.cut.len() {
            let shard = this.cut.shard(index);
            let interrupted = ShardWriter::recover(&shard, options)?;
            if !is_empty(&shard.path)? {
                let found = MappedStates::open(&shard.path)?;
                let differences = shard.differences(&found);
                if differences.is_empty() {
                    for line in ids_of(&found) {
                        let fate = line?.unscored.map_or(Fate::SCORED, |unscored| Fate::unscored(unscored.reason));
                        this.counts.add(fate, 1);
                    }
                    this.complete[index] = true;
                    this.resumed.rows += shard.rows;
                    continue;
                }
                if !options.overwrite {
                    return Err(Error::OutputExists { path: shard.path, differences });
                }
            }
            if interrupted {
                let Resumed { rows, torn_bytes } = this.begin(index)?;
                this.resumed.rows += rows;
                this.resumed.torn_bytes += torn_bytes;
            }
        }
        // A folder that cannot be written to, or another process at it, is said before there is anything to write.
        if this.begun.is_empty()
            && let Some(next) = this.complete.iter().position(|complete| !complete)
        {
            this.begin(next)?;
        }
        Ok(this)
    }

    /// What was found of an interrupted run when this was opened.
    pub fn resumed(&self) -> Resumed {
        self.resumed
    }

    /// Number of files that the table will have.
    pub fn files(&self) -> usize {
        self.cut.len()
    }

    /// Whether this row is written. False for a row that does not exist.
    pub fn is_done(&self, row: usize) -> bool {
        let shard = self.cut.shard_of(row);
        let begun = || self.begun.get(&shard).is_some_and(|file| file.ids.is_done(row - self.cut.rows_of(shard).start));
        row < self.cut.spec().rows && (self.complete[shard] || begun())
    }

    /// The rows that are not written yet, ascending.
    pub fn pending(&self) -> impl Iterator<Item = usize> {
        let of_shard = move |shard: usize| {
            let rows = self.cut.rows_of(shard);
            let (begun, start) = (self.begun.get(&shard), rows.start);
            let untouched = if begun.is_none() { rows } else { 0..0 };
            begun.into_iter().flat_map(move |file| file.ids.pending().map(move |row| start + row)).chain(untouched)
        };
        (0..self.cut.len()).filter(move |&shard| !self.complete[shard]).flat_map(of_shard)
    }

    /// Writes one row's states, shape `[layers, d_model]`, row-major, finite.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::NonFinite`], [`Error::RowTwice`], [`Error::NoSuchRow`], [`Error::Io`].
    pub fn write(&mut self, row: usize, id: &ItemId, states: &[f32]) -> Result<(), Error> {
        let expected = self.cut.spec().row_values();
        if states.len() != expected {
            return Err(Error::Shape { what: "values of row", index: row, expected, found: states.len() });
        }
        if let Some((index, &value)) = states.iter().enumerate().find(|(_, v)| !v.is_finite()) {
            return Err(Error::NonFinite { what: "states", row, index, value: value.into() });
        }
        self.put(row, states, &StatesRow { id: id.clone(), unscored: None })
    }

    /// Notes that a row could not be read; its states are zero and its `scored` is 0.
    ///
    /// # Errors
    /// [`Error::RowTwice`], [`Error::NoSuchRow`], [`Error::Io`].
    pub fn write_unscored(&mut self, row: usize, id: &ItemId, reason: &Unscored) -> Result<(), Error> {
        // Zeros are there from the start, unless a run was killed after it had written this row and before it noted that.
        let zeros = vec![0.0; self.cut.spec().row_values()];
        self.put(row, &zeros, &StatesRow { id: id.clone(), unscored: Some(reason.clone()) })
    }

    /// What became of the rows so far, those of earlier starts included.
    pub fn counts(&self) -> Counts {
        let mut counts = self.counts.clone();
        self.begun.values().for_each(|file| counts.merge(&file.ids.counts()));
        counts
    }

    /// Makes sure that the table is complete, and says what it is, for a run record.
    ///
    /// # Errors
    /// [`Error::Incomplete`] if rows are missing; what was written is kept for another try. [`Error::Io`].
    pub fn finish(self) -> Result<StatesWritten, Error> {
        let mut pending = self.pending();
        if let Some(first) = pending.next() {
            return Err(Error::Incomplete { missing: 1 + pending.count(), rows: self.cut.spec().rows, first });
        }
        let mut outputs = Vec::new();
        for index in 0..self.cut.len() {
            let shard = self.cut.shard(index);
            for path in [ids_path(&shard.path), shard.path].into_iter().rev() {
                let bytes = fs::metadata(&path).map_err(Error::io("look at", &path))?.len();
                outputs.push(OutputFile { path, rows: shard.rows, bytes, blake3: None });
            }
        }
        Ok(StatesWritten { counts: self.counts.clone(), outputs })
    }

    fn put(&mut self, row: usize, states: &[f32], line: &StatesRow) -> Result<(), Error> {
        let rows = self.cut.spec().rows;
        if row >= rows {
            return Err(Error::NoSuchRow { row, rows });
        }
        let shard = self.cut.shard_of(row);
        if !self.complete[shard] && !self.begun.contains_key(&shard) {
            self.begin(shard)?;
        }
        let local = row - self.cut.rows_of(shard).start;
        match self.begun.get_mut(&shard) {
            Some(file) if !file.ids.is_done(local) => file.put(local, states, line)?,
            _ => return Err(Error::RowTwice { row }),
        }
        self.complete_if_full(shard)
    }

    fn begin(&mut self, shard: usize) -> Result<Resumed, Error> {
        let file = ShardWriter::open(self.cut.shard(shard), self.options)?;
        let resumed = file.ids.resumed();
        self.begun.insert(shard, file);
        self.complete_if_full(shard)?;
        Ok(resumed)
    }

    fn complete_if_full(&mut self, shard: usize) -> Result<(), Error> {
        if self.begun.get(&shard).is_some_and(|file| file.left == 0)
            && let Some(file) = self.begun.remove(&shard)
        {
            let counts = file.ids.counts();
            file.finish()?;
            self.counts.merge(&counts);
            self.complete[shard] = true;
        }
        Ok(())
    }
}
