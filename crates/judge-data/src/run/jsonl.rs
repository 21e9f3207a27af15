use std::io::Write;
use std::path::PathBuf;

use serde::Serialize;

use crate::files::body::body;
use crate::{AtomicFile, Error, RunRecord};

/// A JSON lines file whose rows come in order; it appears whole when it is finished. For what is quick:
/// a [`Run`](crate::Run) survives a kill.
#[derive(Debug)]
pub struct JsonlWriter {
    file: AtomicFile,
}

impl JsonlWriter {
    /// Starts a file.
    ///
    /// # Errors
    /// As [`AtomicFile::create`].
    pub fn create(path: impl Into<PathBuf>) -> Result<Self, Error> {
        Ok(Self { file: AtomicFile::create(path)? })
    }

    /// Appends a row, which must be a JSON object.
    ///
    /// # Errors
    /// [`Error::Body`] for anything else, [`Error::Serialize`], [`Error::Io`].
    pub fn write<T: Serialize + ?Sized>(&mut self, row: &T) -> Result<(), Error> {
        let mut line = body(row)?;
        line.push(b'\n');
        self.file.write_all(&line).map_err(Error::io("write", self.file.path()))
    }

    /// Puts the file in place.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn finish(self) -> Result<(), Error> {
        self.file.commit()
    }

    /// Puts the file in place with its record: see [`AtomicFile::commit_recorded`].
    ///
    /// # Errors
    /// As there.
    pub fn finish_recorded(self, rows: usize, overwrite: bool, record: RunRecord) -> Result<RunRecord, Error> {
        self.file.commit_recorded(rows, overwrite, record)
    }
}
