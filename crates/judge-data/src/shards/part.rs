//! Parts: the results of a shard, which appear whole or not at all, and the records that say what they are.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use super::plan::ShardPlan;
use crate::files::atomic::{remove, sync_folder};
use crate::files::document::text_of;
use crate::files::paths::entries;
use crate::run::beside::is_empty;
use crate::run::outputs::is_document;
use crate::{Document, Error, InputFile, OutputProblem, ResultColumns, ResultRow, ResultTally, load};

/// Rows that are written at a time.
const BATCH: usize = 1024;
/// Rows of a row group, which is in memory until it is written.
const ROW_GROUP: usize = 65_536;

/// What a part is: written beside it, once it is in place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartRecord {
    /// The plan that it is a part of ([`ShardPlan::id`]).
    pub plan: String,
    /// The run that its rows belong to.
    pub run: String,
    /// The number of its shard, from 0.
    pub shard: usize,
    /// What its rows add up to.
    pub tally: ResultTally,
    /// The file: its name in the folder, its size and its hash.
    pub file: InputFile,
    /// What the model ran on.
    pub device: String,
    /// When its scoring began, as RFC 3339 in UTC.
    pub started: String,
    /// When it was finished.
    pub finished: String,
}

impl Document for PartRecord {
    const FORMAT: &'static str = "judge-part-record";
    const VERSION: u64 = 1;
}

/// The name of a part, e.g. `part-00012-of-04096.parquet`, without its extension.
pub(super) fn stem(shard: usize, shards: usize) -> String {
    format!("part-{shard:05}-of-{shards:05}")
}

/// The record of a part of this plan and shard, which `of` reads in it; `None` if there is none.
pub(super) fn recorded<T: Document>(
    path: PathBuf,
    planned: (&str, usize),
    of: impl Fn(&T) -> (&str, usize),
) -> Result<Option<T>, Error> {
    if is_empty(&path)? {
        return Ok(None);
    }
    let record = load(&path)?;
    let found = of(&record);
    if found == planned {
        return Ok(Some(record));
    }
    let in_words = |(plan, shard): (&str, usize)| format!("one of plan {plan}, shard {shard}");
    let found = format!("{}; take a new folder for each plan", in_words(found));
    Err(Error::content(&path, "part", in_words(planned), found))
}

impl PartRecord {
    /// Where the record of a shard's part lies.
    pub fn path(folder: &Path, shard: usize, shards: usize) -> PathBuf {
        folder.join(stem(shard, shards) + ".json")
    }

    /// Where the part itself lies.
    pub fn part_path(folder: &Path, shard: usize, shards: usize) -> PathBuf {
        folder.join(stem(shard, shards) + ".parquet")
    }

    /// The record of a shard that is done; `None` if it is not, be it that its part is gone or has another size.
    ///
    /// # Errors
    /// [`Error::Content`] for a record of another plan, or of another shard.
    pub fn find(folder: &Path, plan: &ShardPlan, shard: usize) -> Result<Option<Self>, Error> {
        Self::finder(folder, plan)(shard)
    }

    /// [`find`](Self::find) for many shards of a plan, whose [id](ShardPlan::id) is computed once.
    pub fn finder(folder: &Path, plan: &ShardPlan) -> impl Fn(usize) -> Result<Option<Self>, Error> {
        let (id, shards) = (plan.id(), plan.shards());
        move |shard| {
            let path = Self::path(folder, shard, shards);
            let record =
                recorded(path.clone(), (id.as_str(), shard), |record: &Self| (record.plan.as_str(), record.shard))?;
            let Some(record) = record else { return Ok(None) };
            match fs::metadata(Self::part_path(folder, shard, shards)) {
                Ok(part) => Ok((part.len() == record.file.bytes).then_some(record)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(Error::io("read", &path)(error)),
            }
        }
    }

    /// Refuses a shard in the place of whose part or record a file of another kind lies.
    /// A part without a record is of an attempt that was killed, if it names the run
    /// of the plan.
    ///
    /// # Errors
    /// [`Error::Output`] for a file of another kind, [`Error::OutputExists`] for a part of another run; [`Error::Io`].
    pub fn refuse_foreign(folder: &Path, plan: &ShardPlan, shard: usize) -> Result<(), Error> {
        let foreign = |path: PathBuf| Err(Error::Output { path, problem: OutputProblem::Foreign });
        let (record, part) = (Self::path(folder, shard, plan.shards()), Self::part_path(folder, shard, plan.shards()));
        if !is_empty(&record)? {
            return if is_document::<Self>(&record) { Ok(()) } else { foreign(record) };
        }
        match run_of(&part) {
            _ if is_empty(&part)? => Ok(()),
            Some(run) if run == plan.run => Ok(()),
            Some(_) => Err(Error::OutputExists { path: part, differences: Vec::new() }),
            None => foreign(part),
        }
    }

    /// Whether the part is the file that this describes, to the byte.
    /// It is not if it was damaged, or if two attempts of devices that round differently have
    /// mixed theirs; then the shard is to be scored again.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn describes(&self, part: &Path) -> Result<bool, Error> {
        let now = InputFile::of(part)?;
        Ok((now.bytes, &now.blake3) == (self.file.bytes, &self.file.blake3))
    }
}

/// Writes the part of a shard. Dropped before [`finish`](Self::finish), it leaves nothing.
pub struct PartWriter {
    folder: PathBuf,
    shard: usize,
    shards: usize,
    columns: ResultColumns,
    file: NamedTempFile,
    writer: ArrowWriter<File>,
    waiting: Vec<ResultRow>,
    tally: ResultTally,
}

impl PartWriter {
    /// Starts the part of a shard in a folder that exists, under a temporary name of its own.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn create(folder: &Path, plan: &ShardPlan, shard: usize) -> Result<Self, Error> {
        let shards = plan.shards();
        let file = temporary(folder, shard, shards)?;
        let sink = file.as_file().try_clone().map_err(Error::io("open", file.path()))?;
        let writer = writer(sink, plan.results.schema(), &plan.run).map_err(written(file.path()))?;
        let (folder, columns) = (folder.to_path_buf(), plan.results);
        Ok(Self { folder, shard, shards, columns, file, writer, waiting: Vec::new(), tally: ResultTally::default() })
    }

    /// Adds a row, in the order of the shard.
    ///
    /// # Errors
    /// [`Error::Io`], e.g. for a full disk.
    pub fn push(&mut self, row: ResultRow) -> Result<(), Error> {
        self.tally.add(&row);
        self.waiting.push(row);
        if self.waiting.len() >= BATCH { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<(), Error> {
        let batch = self.columns.batch(&self.waiting)?;
        self.waiting.clear();
        self.writer.write(&batch).map_err(written(self.file.path()))
    }

    /// Puts the part in place, then its record, and removes what killed attempts at this shard have left. Where another attempt was
    /// faster, its part stays, which is equal.
    ///
    /// # Errors
    /// [`Error::Content`] if the rows are not those of the shard; [`Error::Io`].
    pub fn finish(
        mut self,
        plan: &ShardPlan,
        device: &str,
        started: String,
        finished: impl FnOnce() -> String,
    ) -> Result<PartRecord, Error> {
        self.write()?;
        let Self { folder, shard, shards, file, writer, tally, .. } = self;
        let planned = plan.range(shard);
        if tally.rows != planned.end - planned.start || tally.digests.inputs != plan.inputs[shard] {
            let path = PartRecord::part_path(&folder, shard, shards);
            let expected = format!("the {} of the plan", planned.end - planned.start);
            let found = format!("{} that were scored; an input has changed since", tally.rows);
            return Err(Error::content(&path, "rows", expected, found));
        }
        writer.close().map_err(written(file.path()))?;
        file.as_file().sync_all().map_err(Error::io("write", file.path()))?;
        let part = PartRecord::part_path(&folder, shard, shards);
        // By its handle: the name may be gone, if another attempt was faster.
        let identity = identity(file.as_file(), &part).map_err(Error::io("read", file.path()))?;
        let record = PartRecord {
            plan: plan.id(),
            run: plan.run.clone(),
            shard,
            tally,
            file: identity,
            device: device.to_owned(),
            started,
            finished: finished(),
        };
        let bytes = text_of(&record)?;
        if !place(file, &part)? {
            let theirs = PartRecord::find(&folder, plan, shard)?;
            return theirs.ok_or_else(|| Error::io("replace", &part)(io::ErrorKind::NotFound.into()));
        }
        // The part is ours now, so the record must be: where another attempt cleans up meanwhile, it is written again.
        loop {
            let mut text = temporary(&folder, shard, shards)?;
            let is_written = text.write_all(&bytes).and_then(|()| text.as_file().sync_all());
            is_written.map_err(Error::io("write", text.path()))?;
            if place(text, &PartRecord::path(&folder, shard, shards))? {
                break;
            }
        }
        remove_temporaries(&folder, shard, shards)?;
        Ok(record)
    }
}

/// The run that a part names; `None` if the file is no part.
fn run_of(part: &Path) -> Option<String> {
    let reader = SerializedFileReader::new(File::open(part).ok()?).ok()?;
    let named = reader.metadata().file_metadata().key_value_metadata()?;
    named.iter().find(|entry| entry.key == "run")?.value.clone()
}

/// Size and hash of a file that is open, under the name that it will have in its folder.
fn identity(mut file: &File, path: &Path) -> io::Result<InputFile> {
    file.seek(SeekFrom::Start(0))?;
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file)?;
    let (path, blake3) = (path.file_name().unwrap_or_default().into(), hasher.finalize().to_hex().to_string());
    Ok(InputFile { path, bytes: hasher.count(), blake3, rows: None })
}

/// A file under a name of its own, for whoever may read new files: others of a cluster, as a rule.
fn temporary(folder: &Path, shard: usize, shards: usize) -> Result<NamedTempFile, Error> {
    let prefix = temporary_prefix(shard, shards);
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(".tmp");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder).map_err(Error::io("create a file in", folder))
}

fn temporary_prefix(shard: usize, shards: usize) -> String {
    format!(".{}.", stem(shard, shards))
}

/// Renames a temporary file; `false` if it is gone, since another attempt has ended the shard and cleaned up.
fn place(file: NamedTempFile, path: &Path) -> Result<bool, Error> {
    match file.persist(path) {
        Ok(_) => sync_folder(path).map(|()| true),
        Err(error) if error.error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io("replace", path)(error.error)),
    }
}

/// Removes what attempts at a shard that is done have left, or are writing for nothing.
fn remove_temporaries(folder: &Path, shard: usize, shards: usize) -> Result<(), Error> {
    let prefix = temporary_prefix(shard, shards);
    for path in entries(folder)? {
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix)) {
            remove(&path)?;
        }
    }
    Ok(())
}

fn writer(sink: File, schema: SchemaRef, run: &str) -> Result<ArrowWriter<File>, parquet::errors::ParquetError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(ROW_GROUP))
        .set_key_value_metadata(Some(vec![KeyValue::new("run".to_owned(), run.to_owned())]))
        .build();
    ArrowWriter::try_new(sink, schema, Some(properties))
}

/// What kept rows from being written, with the file.
fn written(path: &Path) -> impl FnOnce(parquet::errors::ParquetError) -> Error {
    let path = path.to_path_buf();
    move |error| match error {
        parquet::errors::ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(source) => Error::io("write", &path)(*source),
            Err(other) => Error::io("write", &path)(io::Error::other(other)),
        },
        other => Error::io("write", &path)(io::Error::other(other.to_string())),
    }
}
