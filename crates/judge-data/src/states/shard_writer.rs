use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::files::atomic::{remove, rename};
use crate::files::paths::with_suffix;
use crate::run::journal::{Journal, short_hash};
use crate::states::cut::PARTIAL;
use crate::states::shard::{FileLayout, Shard};
use crate::states::{StatesRow, ids_path};
use crate::{Difference, Error, Fate, Layout, RunRecord, WriteOptions, files::fault};

/// One file of a table while it is written. Rows are those of the file, from 0, and checked by who calls.
///
/// The lines of its ids are a journal. A line has the hash of its row's states: it counts only if both are there.
#[derive(Debug)]
pub(super) struct ShardWriter {
    path: PathBuf,
    partial: PathBuf,
    file: File,
    pub(super) ids: Journal,
    /// Number of rows that are not written yet.
    pub(super) left: usize,
    layout: FileLayout,
    row_bytes: usize,
}

impl ShardWriter {
    /// Starts a file, or resumes one that was interrupted.
    pub(super) fn open(shard: Shard, options: WriteOptions) -> Result<Self, Error> {
        let partial = with_suffix(&shard.path, PARTIAL);
        let layout = shard.layout()?;
        let mut ids = Journal::open(journal_path(&shard.path), options.locking, options.sync)?;
        if let Some(head) = ids.head().filter(|_| ids.resumed().rows > 0) {
            let mut differences = Difference::within("rows", &head.rows.into(), &shard.rows.into());
            differences.extend(Difference::between(&head.run.settings, &shard.settings()));
            if !differences.is_empty() {
                return Err(Error::SettingsDiffer { path: ids.path().to_path_buf(), differences });
            }
        }
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&partial);
        let mut file = file.map_err(Error::io("open", &partial))?;
        let begun = ids.resumed().rows > 0 && layout.is_that_of(&mut file).map_err(Error::io("read", &partial))?;
        if !begun {
            // Never begun, or lost since: rows noted as done have no states.
            let run = RunRecord { settings: shard.settings(), ..RunRecord::default() };
            ids.begin(shard.rows, run)?;
            fault::point();
            layout.begin(&mut file).map_err(Error::io("write", &partial))?;
            fault::point();
        }
        let row_bytes = shard.row_bytes();
        let mut this = Self { path: shard.path, partial, file, ids, left: 0, layout, row_bytes };
        if begun {
            this.forget_lost()?;
            this.ids.note_resumed()?;
        }
        this.left = this.ids.pending().count();
        Ok(this)
    }

    /// Completes a file that was being put in place when a run was interrupted.
    /// Says whether there is one that a run was interrupted in before that.
    pub(super) fn recover(shard: &Shard, options: WriteOptions) -> Result<bool, Error> {
        let journal = journal_path(&shard.path);
        let partial = with_suffix(&shard.path, PARTIAL);
        if !journal.exists() {
            return Ok(partial.exists());
        }
        let ids = Journal::open(journal, options.locking, options.sync)?;
        if ids.to_finish().is_none() || !(partial.exists() || shard.path.exists()) {
            return Ok(true);
        }
        ids.assemble(&sorted_path(&shard.path), Layout::Lines)?;
        publish(&shard.path, ids)?;
        Ok(false)
    }

    /// Writes a row that is not done yet, its states first, so that a row that is noted has them.
    pub(super) fn put(&mut self, row: usize, states: &[f32], line: &StatesRow) -> Result<(), Error> {
        let bytes: Vec<u8> = states.iter().flat_map(|v| v.to_le_bytes()).collect();
        let scored = [u8::from(line.unscored.is_none())];
        self.write_at(self.states_at(row), &bytes)?;
        self.write_at(self.layout.scored_at + row as u64, &scored)?;
        let fate = line.unscored.as_ref().map_or(Fate::SCORED, |unscored| Fate::unscored(unscored.reason));
        let hash = short_hash(&[&bytes, &scored]);
        self.ids.push(row, line, fate, Some((&hash, bytes.len() as u64)))?;
        self.left -= 1; // it was not done, so it was counted
        if self.ids.is_sync_due() {
            self.file.sync_data().map_err(Error::io("write", &self.partial))?;
            self.ids.sync()?;
        }
        Ok(())
    }

    /// Puts the file and its ids in place; no row is left. If this is interrupted, [`recover`](Self::recover) completes it.
    pub(super) fn finish(mut self) -> Result<(), Error> {
        let sorted = sorted_path(&self.path);
        self.ids.assemble(&sorted, Layout::Lines)?;
        self.file.sync_all().map_err(Error::io("write", &self.partial))?;
        fault::point();
        self.ids.note_finishing(&(), &sorted)?;
        publish(&self.path, self.ids)
    }

    /// Forgets the rows whose states a loss of power has taken: those since the last sync that have other bytes than were noted.
    fn forget_lost(&mut self) -> Result<(), Error> {
        let mut bytes = vec![0; self.row_bytes];
        let mut scored = [0];
        for (row, hash) in self.ids.take_unsure() {
            self.read_at(self.states_at(row), &mut bytes)?;
            self.read_at(self.layout.scored_at + row as u64, &mut scored)?;
            if short_hash(&[&bytes, &scored]) != hash {
                self.ids.forget(row)?;
            }
        }
        Ok(())
    }

    fn states_at(&self, row: usize) -> u64 {
        self.layout.states_at() + (row * self.row_bytes) as u64
    }

    fn read_at(&mut self, at: u64, bytes: &mut [u8]) -> Result<(), Error> {
        let read = self.file.seek(SeekFrom::Start(at)).and_then(|_| self.file.read_exact(bytes));
        read.map_err(Error::io("read", &self.partial))
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<(), Error> {
        let written = self.file.seek(SeekFrom::Start(at)).and_then(|_| self.file.write_all(bytes));
        written.map_err(Error::io("write", &self.partial))
    }
}

/// The last step, to be taken as often as it is interrupted. Earlier ids go first, so that states are never beside the ids of others.
fn publish(path: &Path, ids: Journal) -> Result<(), Error> {
    let partial = with_suffix(path, PARTIAL);
    fault::point();
    remove(&ids_path(path))?;
    fault::point();
    if partial.exists() {
        rename(&partial, path)?;
    }
    fault::point();
    rename(&sorted_path(path), &ids_path(path))?;
    fault::point();
    ids.remove()
}

fn journal_path(path: &Path) -> PathBuf {
    with_suffix(&ids_path(path), PARTIAL)
}

fn sorted_path(path: &Path) -> PathBuf {
    with_suffix(&journal_path(path), ".sorted")
}
