//! A file and the record of the run that made it, put in place together.

use crate::files::document::text_of;
use crate::{AtomicFile, Error, InputFile, OutputFile, RunRecord, record_path};

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
