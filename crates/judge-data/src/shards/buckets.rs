//! Records sorted by their beginnings, with memory for a part of them only.

use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use crate::{Error, RowHash};

/// Temporary files, by the first byte of a record. Records begin with hashes, so the files are alike in size.
const BUCKETS: usize = 256;

/// Records of `N` bytes in temporary files, which the system removes with the process.
pub(super) struct Buckets<const N: usize> {
    folder: PathBuf,
    files: Vec<Option<BufWriter<File>>>,
}

impl<const N: usize> Buckets<N> {
    /// None so far; their files lie in the system's temporary folder.
    pub(super) fn new() -> Self {
        Self { folder: std::env::temp_dir(), files: (0..BUCKETS).map(|_| None).collect() }
    }

    /// Adds a record.
    pub(super) fn push(&mut self, record: &[u8; N]) -> Result<(), Error> {
        let file = &mut self.files[usize::from(record[0])];
        let file = match file {
            Some(file) => file,
            None => {
                let new = tempfile::tempfile_in(&self.folder).map_err(Error::io("create a file in", &self.folder))?;
                file.insert(BufWriter::new(new))
            }
        };
        file.write_all(record).map_err(Error::io("write to", &self.folder))
    }

    /// All records in order, some at a time: those that begin with the same byte are together.
    pub(super) fn sorted(self) -> impl Iterator<Item = Result<Vec<[u8; N]>, Error>> {
        let Self { folder, files } = self;
        files.into_iter().flatten().map(move |file| {
            let io = || Error::io("read from", &folder);
            let mut file = file.into_inner().map_err(|error| io()(error.into_error()))?;
            file.seek(SeekFrom::Start(0)).map_err(io())?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(io())?;
            let mut records = bytes.as_chunks::<N>().0.to_vec();
            records.sort_unstable();
            Ok(records)
        })
    }
}

impl Buckets<24> {
    /// Adds the id of a row with its place.
    pub(super) fn push_id(&mut self, id: RowHash, row: usize) -> Result<(), Error> {
        let mut record = [0; 24];
        record[..16].copy_from_slice(&id.short());
        record[16..].copy_from_slice(&(row as u64).to_be_bytes());
        self.push(&record)
    }

    /// The places of rows with an id that was there before, at most so many, each behind that of the first.
    pub(super) fn repeated(self, most: usize) -> Result<Vec<[usize; 2]>, Error> {
        let row = |record: &[u8; 24]| u64::from_be_bytes(std::array::from_fn(|at| record[16 + at])) as usize;
        let mut found = Vec::new();
        for records in self.sorted() {
            for same in records?.chunk_by(|a, b| a[..16] == b[..16]) {
                found.extend(same[1..].iter().map(|again| [row(&same[0]), row(again)]).take(most - found.len()));
            }
            if found.len() == most {
                break;
            }
        }
        Ok(found)
    }
}
