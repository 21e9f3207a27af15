use std::io::Write;
use std::path::PathBuf;

use serde::Serialize;

use crate::files::document::text_of;
use crate::rows::body::body;
use crate::{AtomicFile, Error, InputFile, OutputFile, RunRecord, record_path};

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

    /// Appends a row, which must be a JSON object. A number in it that is not finite is written as null: check first.
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

impl AtomicFile {
    /// Puts rows in place as [`commit_new`](Self::commit_new) does, and beside them their record, which is told of the file. Whenever this
    /// is interrupted, no file lies without its record, and a record without its file counts for nothing, so whoever wrote them can do it
    /// again.
    ///
    /// # Errors
    /// As there.
    pub fn commit_recorded(self, rows: usize, overwrite: bool, mut record: RunRecord) -> Result<RunRecord, Error> {
        self.commit_beside(overwrite, record_path, |written, target| {
            let InputFile { bytes, blake3, .. } = InputFile::of(written)?;
            record.outputs = vec![OutputFile { path: target.to_owned(), rows, bytes, blake3: Some(blake3) }];
            text_of(&record)
        })?;
        Ok(record)
    }
}
