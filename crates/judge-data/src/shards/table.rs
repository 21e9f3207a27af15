//! Parquet files, a range of rows at a time.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::basic::Compression;
use parquet::file::metadata::RowGroupMetaData;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::arrow::guarded;

/// Rows that are read at a time.
const BATCH: usize = 1024;
/// What follows the footer: its length, and `PAR1`.
const TAIL: u64 = 8;

/// A Parquet file that is open for reading.
///
/// Texts come as texts, whatever the writer kept them as: the Arrow schema that some writers add is passed over. Every compression of
/// Parquet is read but LZO, which is refused by name. Damage is an error, with one exception: a page that announces
/// more values than there is memory for ends the process, in the library that reads pages.
#[derive(Debug)]
pub struct ParquetTable {
    path: PathBuf,
    file: File,
    bytes: u64,
    footer: String,
    metadata: ArrowReaderMetadata,
}

/// A file of a plan, and what tells whether it is still the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedFile {
    /// Its path, as it was given.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// Its rows.
    pub rows: u64,
    /// BLAKE3 of its footer, in lower-case hexadecimal.
    pub footer: String,
}

impl ParquetTable {
    /// Opens a file and reads its footer.
    ///
    /// # Errors
    /// [`Error::NoParquet`] for what is no Parquet file or is cut, [`Error::Io`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let mut file = File::open(path).map_err(Error::io("open", path))?;
        let bytes = file.metadata().map_err(Error::io("read", path))?.len();
        let wrong = |problem: String| Error::NoParquet { path: path.to_path_buf(), problem };
        let footer = footer(&mut file, bytes).map_err(Error::io("read", path))?;
        let footer = footer.ok_or_else(|| wrong("it does not end with a footer; it may have been cut".to_owned()))?;
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let metadata = guarded(|| ArrowReaderMetadata::load(&file, options).map_err(|error| error.to_string()));
        Ok(Self { path: path.to_path_buf(), file, bytes, footer, metadata: metadata.map_err(wrong)? })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        u64::try_from(self.metadata.metadata().file_metadata().num_rows()).unwrap_or_default()
    }

    /// Its columns.
    pub fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }

    /// What tells whether it is still the same file: its size, and the hash of its footer, which has where each piece of each column lies.
    pub fn identity(&self) -> PlannedFile {
        PlannedFile { path: self.path.clone(), bytes: self.bytes, rows: self.rows(), footer: self.footer.clone() }
    }

    /// Some of its rows, counted from 0, in batches of at most 1,024; of the columns those of these indices. Row groups outside of the
    /// range are not read.
    ///
    /// # Errors
    /// [`Error::NoParquet`], also of a batch: for pages that are damaged or compressed otherwise.
    pub fn batches(
        &self,
        columns: &[usize],
        rows: Range<u64>,
    ) -> Result<impl Iterator<Item = Result<RecordBatch, Error>> + use<>, Error> {
        let (mut groups, mut first, mut start) = (Vec::new(), None, 0);
        for (index, group) in self.metadata.metadata().row_groups().iter().enumerate() {
            let end = start + u64::try_from(group.num_rows()).unwrap_or_default();
            if start < rows.end && rows.start < end {
                self.check_compression(group, columns)?;
                groups.push(index);
                first.get_or_insert(start);
            }
            start = end;
        }
        let size = |rows: u64| usize::try_from(rows).unwrap_or(usize::MAX);
        let (offset, limit) = (size(rows.start - first.unwrap_or(rows.start)), size(rows.end - rows.start));
        let file = self.file.try_clone().map_err(Error::io("open", &self.path))?;
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone());
        let mask = ProjectionMask::roots(self.metadata.parquet_schema(), columns.iter().copied());
        let builder = builder.with_projection(mask).with_row_groups(groups).with_offset(offset).with_limit(limit);
        let path = self.path.clone();
        let wrong = move |problem: String| Error::NoParquet { path: path.clone(), problem };
        let mut reader =
            guarded(|| builder.with_batch_size(BATCH).build().map_err(|error| error.to_string())).map_err(&wrong)?;
        let mut is_done = false;
        let mut due = size(rows.end.min(self.rows()).saturating_sub(rows.start));
        Ok(std::iter::from_fn(move || {
            if is_done {
                return None;
            }
            let batch = guarded(|| reader.next().transpose().map_err(|error| error.to_string())).transpose();
            let batch = match batch {
                None if due > 0 => Some(Err(format!("{due} rows fewer than its footer announces"))),
                Some(Ok(batch)) if batch.num_rows() > due => {
                    Some(Err("more rows than its footer announces".to_owned()))
                }
                batch => batch,
            };
            is_done = !matches!(batch, Some(Ok(_)));
            due -= batch.as_ref().map_or(0, |batch| batch.as_ref().map_or(0, RecordBatch::num_rows));
            batch.map(|batch| batch.map_err(&wrong))
        }))
    }

    /// What is read of some of its rows, some at a time; an error says which they are.
    pub(super) fn read<T, F: Fn(&RecordBatch) -> Result<Vec<T>, Error>>(
        &self,
        columns: &[usize],
        rows: Range<u64>,
        read: F,
    ) -> Result<impl Iterator<Item = Result<Vec<T>, Error>> + use<T, F>, Error> {
        let (path, mut row) = (self.path.clone(), rows.start);
        Ok(self.batches(columns, rows)?.map(move |batch| {
            let (batch, number) = (batch?, row);
            row += batch.num_rows() as u64;
            read(&batch).map_err(|source| {
                let source = Error::InBatch { what: "in the rows from row", number, source: Box::new(source) };
                Error::InFile { path: path.clone(), source: Box::new(source) }
            })
        }))
    }

    /// Refuses columns of a row group that are compressed in a way that is not read.
    fn check_compression(&self, group: &RowGroupMetaData, columns: &[usize]) -> Result<(), Error> {
        let schema = self.metadata.parquet_schema();
        for (leaf, column) in group.columns().iter().enumerate() {
            let is_read = leaf < schema.num_columns() && columns.contains(&schema.get_column_root_idx(leaf));
            if is_read && column.compression() == Compression::LZO {
                let name = column.column_path().string();
                let problem = format!(
                    "the column {name:?} is compressed with LZO; snappy, zstd, gzip, brotli, LZ4 and uncompressed are read"
                );
                return Err(Error::NoParquet { path: self.path.clone(), problem });
            }
        }
        Ok(())
    }
}

impl PlannedFile {
    /// Opens the file.
    ///
    /// # Errors
    /// [`Error::FileChanged`] for another file than the planned one; as [`ParquetTable::open`].
    pub fn open(&self) -> Result<ParquetTable, Error> {
        let table = ParquetTable::open(&self.path)?;
        match table.identity() == *self {
            true => Ok(table),
            false => Err(Error::FileChanged { path: self.path.clone() }),
        }
    }
}

/// The hash of a file's footer; `None` if it has none.
fn footer(file: &mut File, bytes: u64) -> std::io::Result<Option<String>> {
    let Some(tail) = bytes.checked_sub(TAIL) else { return Ok(None) };
    let mut end = [0; TAIL as usize];
    file.seek(SeekFrom::Start(tail))?;
    file.read_exact(&mut end)?;
    let length = u32::from_le_bytes([end[0], end[1], end[2], end[3]]);
    let Some(start) = tail.checked_sub(length.into()).filter(|_| end[4..] == *b"PAR1") else { return Ok(None) };
    file.seek(SeekFrom::Start(start))?;
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file)?;
    Ok(Some(hasher.finalize().to_hex().to_string()))
}
