use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::atomic::{rename, with_suffix};
use crate::states::cut::PARTIAL;
use crate::states::shard::{FileLayout, Shard};
use crate::states::{StatesRow, ids_path};
use crate::{Error, ResumableJsonl, Resumed};

/// One file of a table while it is written. Rows are those of the file, from 0, and checked by who calls.
#[derive(Debug)]
pub(super) struct ShardWriter {
    path: PathBuf,
    partial: PathBuf,
    file: File,
    ids: ResumableJsonl,
    left: usize,
    layout: FileLayout,
}

impl ShardWriter {
    /// Starts a file, or goes on with one that was interrupted.
    pub(super) fn open(shard: Shard) -> Result<Self, Error> {
        let partial = with_suffix(&shard.path, PARTIAL);
        let layout = shard.layout()?;
        let mut ids = ids(&shard)?;
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&partial);
        let mut file = file.map_err(Error::io("open", &partial))?;
        if !layout.is_that_of(&mut file).map_err(Error::io("read", &partial))? {
            // Never begun, or lost since: rows noted as done have no states.
            ids.restart()?;
            layout.begin(&mut file).map_err(Error::io("write", &partial))?;
        }
        let left = ids.pending().count();
        Ok(Self { path: shard.path, partial, file, ids, left, layout })
    }

    /// Whether a run was interrupted while it wrote the file of this name.
    pub(super) fn is_begun(path: &Path) -> bool {
        with_suffix(&ids_path(path), PARTIAL).exists() || with_suffix(path, PARTIAL).exists()
    }

    /// Removes what a kill left beside a complete file.
    pub(super) fn tidy(shard: &Shard) -> Result<(), Error> {
        let journal = with_suffix(&ids_path(&shard.path), PARTIAL);
        if journal.exists() || with_suffix(&journal, ".json").exists() {
            ids(shard)?.remove_partial()?; // under its lock: another process may be just about to
        }
        Ok(())
    }

    /// What was found of an interrupted run.
    pub(super) fn resumed(&self) -> Resumed {
        self.ids.resumed()
    }

    /// Number of rows that are not written yet.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    pub(super) fn is_done(&self, row: usize) -> bool {
        self.ids.is_done(row)
    }

    /// The rows that are not written yet, ascending.
    pub(super) fn pending(&self) -> impl Iterator<Item = usize> {
        self.ids.pending()
    }

    /// Writes a row that is not done yet, its states first, so that a row that is noted has them.
    pub(super) fn put(&mut self, row: usize, states: &[f32], line: &StatesRow) -> Result<(), Error> {
        let bytes: Vec<u8> = states.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.write_at(self.layout.states_at() + (row * bytes.len()) as u64, &bytes)?;
        self.write_at(self.layout.scored_at() + row as u64, &[u8::from(line.unscored.is_none())])?;
        self.ids.push(row, line)?;
        self.left -= 1; // it was not done, so it was counted
        Ok(())
    }

    /// Puts the file and its ids in place; no row is left.
    pub(super) fn finish(self) -> Result<(), Error> {
        // The ids' journal goes last: as long as it is there, a kill in between costs no more than this file.
        self.ids.assemble()?;
        self.file.sync_all().map_err(Error::io("write", &self.partial))?;
        rename(&self.partial, &self.path)?;
        self.ids.remove_partial()
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<(), Error> {
        let written = self.file.seek(SeekFrom::Start(at)).and_then(|_| self.file.write_all(bytes));
        written.map_err(Error::io("write", &self.partial))
    }
}

fn ids(shard: &Shard) -> Result<ResumableJsonl, Error> {
    ResumableJsonl::open(ids_path(&shard.path), shard.rows, &shard.settings())
}
