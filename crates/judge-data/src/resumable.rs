use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::atomic::{rename, with_suffix};
use crate::{AtomicFile, Difference, Error, PartialProblem, Place, write_atomic};

/// The settings that an output depends on, by name. Put everything in that changes a row: the hash of the input, the
/// model's fingerprint, the template's id, the layers.
pub type Settings = BTreeMap<String, Value>;

/// A JSON lines file whose rows come in any order and survive a kill.
///
/// Rows are appended to `FILE.partial` as they come, beside `FILE.partial.json` with the settings; each is in the hands
/// of the operating system when [`push`](Self::push) returns (and on the disk after [`sync`](Self::sync)).
/// [`finish`](Self::finish) puts them in input order into `FILE`, which appears whole, with the bytes that an
/// uninterrupted run would have written. Memory is 8 bytes per row.
///
/// The same `open` starts a run and goes on with an interrupted one, unless its settings differ.
#[derive(Debug)]
pub struct ResumableJsonl {
    output: PathBuf,
    partial: PathBuf,
    settings_file: PathBuf,
    file: File,
    /// Offset just after each row's index and tab in `partial`; 0, where no row can start, means not yet written.
    starts: Vec<u64>,
    end: u64,
    resumed: Resumed,
}

/// What was found of an interrupted run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resumed {
    /// Rows that are done.
    pub rows: usize,
    /// Bytes of a last line that the kill had cut short; they are gone, its row is to be done again.
    pub torn_bytes: usize,
}

/// Content of `FILE.partial.json`.
#[derive(Serialize, Deserialize)]
struct Head {
    rows: usize,
    settings: Settings,
}

impl ResumableJsonl {
    /// Starts an output of `rows` rows at `output`, or goes on with an interrupted one.
    ///
    /// # Errors
    /// [`Error::SettingsDiffer`] if rows are there that were made with other settings (or for another number of rows,
    /// shown as the setting `rows`), [`Error::Locked`] if another process is at it, [`Error::Partial`] if `FILE.partial` is
    /// not what this type writes, [`Error::Io`].
    pub fn open(output: impl Into<PathBuf>, rows: usize, settings: &Settings) -> Result<Self, Error> {
        let output = output.into();
        let partial = with_suffix(&output, ".partial");
        let settings_file = with_suffix(&output, ".partial.json");
        let file = OpenOptions::new().read(true).append(true).create(true).open(&partial);
        let file = file.map_err(Error::io("open", &partial))?;
        file.try_lock().map_err(|e| match e {
            TryLockError::WouldBlock => Error::Locked { path: partial.clone() },
            TryLockError::Error(source) => Error::io("lock", &partial)(source),
        })?;
        let (starts, resumed) = (vec![0; rows], Resumed::default());
        let mut this = Self { output, partial, settings_file, file, starts, end: 0, resumed };
        if this.file.metadata().map_err(Error::io("read", &this.partial))?.len() == 0 {
            this.write_head(rows, settings)?;
        } else {
            this.check_head(rows, settings)?;
            this.read_back()?;
        }
        Ok(this)
    }

    /// What was found of an interrupted run when this was opened.
    pub fn resumed(&self) -> Resumed {
        self.resumed
    }

    /// Number of rows that the output will have.
    pub fn rows(&self) -> usize {
        self.starts.len()
    }

    /// Whether this row is written. False for a row that does not exist.
    pub fn is_done(&self, row: usize) -> bool {
        self.starts.get(row).is_some_and(|&start| start > 0)
    }

    /// The rows that are not written yet, ascending.
    pub fn pending(&self) -> impl Iterator<Item = usize> {
        self.starts.iter().enumerate().filter(|&(_, &start)| start == 0).map(|(row, _)| row)
    }

    /// Writes a row; `value` must be a JSON object.
    ///
    /// # Errors
    /// [`Error::RowTwice`], [`Error::NoSuchRow`], [`Error::Serialize`], [`Error::Io`]; the row is then not written.
    pub fn push<T: Serialize + ?Sized>(&mut self, row: usize, value: &T) -> Result<(), Error> {
        let rows = self.rows();
        let start = self.starts.get_mut(row).ok_or(Error::NoSuchRow { row, rows })?;
        if *start > 0 {
            return Err(Error::RowTwice { row });
        }
        let mut line = format!("{row}\t").into_bytes();
        let prefix = line.len() as u64;
        serde_json::to_writer(&mut line, value).map_err(Error::serialize)?;
        line.push(b'\n');
        if let Err(source) = self.file.write_all(&line) {
            // Whatever part of the line did get there must not stand before the next one.
            self.file.set_len(self.end).map_err(Error::io("repair", &self.partial))?;
            return Err(Error::io("write", &self.partial)(source));
        }
        *start = self.end + prefix;
        self.end += line.len() as u64;
        Ok(())
    }

    /// Reads a row back; `None` if it is not written yet.
    ///
    /// # Errors
    /// [`Error::Io`], or [`Error::Document`] if `T` does not read it.
    pub fn read<T: DeserializeOwned>(&mut self, row: usize) -> Result<Option<T>, Error> {
        let Some(&start) = self.starts.get(row).filter(|&&start| start > 0) else { return Ok(None) };
        let mut line = Vec::new();
        self.file.seek(SeekFrom::Start(start)).map_err(Error::io("read", &self.partial))?;
        BufReader::new(&self.file).read_until(b'\n', &mut line).map_err(Error::io("read", &self.partial))?;
        let value = serde_json::from_slice(&line);
        value.map(Some).map_err(|source| Error::Document { path: self.partial.clone(), source })
    }

    /// Waits until every row so far is on the disk, to survive a loss of power and not only a kill.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn sync(&self) -> Result<(), Error> {
        self.file.sync_data().map_err(Error::io("write", &self.partial))
    }

    /// Puts all rows in order into the output, which appears whole, and removes the partial files.
    ///
    /// # Errors
    /// [`Error::Incomplete`] if rows are missing, [`Error::Io`]. What was written is kept for another try.
    pub fn finish(self) -> Result<(), Error> {
        self.assemble()?;
        self.remove_partial()
    }

    /// The first half of [`finish`](Self::finish): the output is in place, the partial files are still there.
    pub(crate) fn assemble(&self) -> Result<(), Error> {
        let mut pending = self.pending();
        if let Some(first) = pending.next() {
            return Err(Error::Incomplete { missing: 1 + pending.count(), rows: self.rows(), first });
        }
        // A name of its own, under this output's lock: what a kill leaves of it is overwritten by the next try.
        let sorted = with_suffix(&self.output, ".partial.sorted");
        let read_failed = || Error::io("read", &self.partial);
        let write_failed = || Error::io("write", &sorted);
        let mut source = BufReader::new(File::open(&self.partial).map_err(read_failed())?);
        let mut target = BufWriter::new(File::create(&sorted).map_err(write_failed())?);
        let (mut at, mut line) = (0_u64, Vec::new());
        for &start in &self.starts {
            // A relative seek keeps the buffer where rows lie in order, as most do. Offsets of a file fit i64.
            source.seek_relative(start.cast_signed() - at.cast_signed()).map_err(read_failed())?;
            line.clear();
            at = start + source.read_until(b'\n', &mut line).map_err(read_failed())? as u64;
            target.write_all(&line).map_err(write_failed())?;
        }
        let target = target.into_inner().map_err(|e| write_failed()(e.into_error()))?;
        target.sync_all().map_err(write_failed())?;
        rename(&sorted, &self.output)
    }

    /// The second half: settings last, so that rows are never there without them.
    pub(crate) fn remove_partial(self) -> Result<(), Error> {
        for path in [&self.partial, &self.settings_file] {
            fs::remove_file(path).map_err(Error::io("remove", path))?;
        }
        Ok(())
    }

    /// Forgets all rows.
    pub(crate) fn restart(&mut self) -> Result<(), Error> {
        self.file.set_len(0).map_err(Error::io("empty", &self.partial))?;
        self.starts.fill(0);
        (self.end, self.resumed) = (0, Resumed::default());
        Ok(())
    }

    fn write_head(&self, rows: usize, settings: &Settings) -> Result<(), Error> {
        let head = Head { rows, settings: settings.clone() };
        write_atomic(&self.settings_file, &serde_json::to_vec_pretty(&head).map_err(Error::serialize)?)
    }

    fn check_head(&self, rows: usize, settings: &Settings) -> Result<(), Error> {
        let path = &self.settings_file;
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                return Err(self.broken(1, PartialProblem::NoSettings));
            }
            Err(source) => return Err(Error::io("read", path)(source)),
        };
        let before: Head =
            serde_json::from_slice(&text).map_err(|source| Error::Document { path: path.clone(), source })?;
        let mut differences = Vec::new();
        if before.rows != rows {
            let (before, now) = (Some(before.rows.into()), Some(rows.into()));
            differences.push(Difference { key: "rows".into(), before, now });
        }
        differences.extend(Difference::between(&before.settings, settings));
        if differences.is_empty() {
            Ok(())
        } else {
            Err(Error::SettingsDiffer { path: self.partial.clone(), differences })
        }
    }

    fn read_back(&mut self) -> Result<(), Error> {
        let mut reader = BufReader::new(&self.file);
        let mut text = Vec::new();
        for line in 1.. {
            text.clear();
            let length = reader.read_until(b'\n', &mut text).map_err(Error::io("read", &self.partial))?;
            if text.last() != Some(&b'\n') {
                self.resumed.torn_bytes = length;
                break;
            }
            let (row, prefix) = match parse_line(&text) {
                Some(found) => found,
                None => return Err(self.broken(line, PartialProblem::NotARow)),
            };
            let rows = self.starts.len();
            match self.starts.get_mut(row) {
                None => return Err(self.broken(line, PartialProblem::NoSuchRow { row, rows })),
                Some(0) => {}
                Some(_) => return Err(self.broken(line, PartialProblem::RowTwice { row })),
            }
            self.starts[row] = self.end + prefix as u64; // `get_mut` has just found it
            self.end += length as u64;
            self.resumed.rows += 1;
        }
        self.file.set_len(self.end).map_err(Error::io("repair", &self.partial))
    }

    fn broken(&self, line: usize, problem: PartialProblem) -> Error {
        Error::Partial { place: Place { path: self.partial.clone(), line }, problem }
    }
}

/// Row index and length of what is before the JSON of `index TAB object NEWLINE`.
fn parse_line(line: &[u8]) -> Option<(usize, usize)> {
    let tab = line.iter().position(|&b| b == b'\t')?;
    let (index, json) = (line.get(..tab)?, line.get(tab + 1..)?);
    serde_json::from_slice::<IgnoredAny>(json).ok().filter(|_| json.starts_with(b"{"))?;
    Some((std::str::from_utf8(index).ok()?.parse().ok()?, tab + 1))
}

/// A JSON lines file whose rows come in order; it appears whole when it is finished.
#[derive(Debug)]
pub struct JsonlWriter {
    file: AtomicFile,
}

impl JsonlWriter {
    /// Starts a file; see [`AtomicFile::create`].
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn create(path: impl Into<PathBuf>) -> Result<Self, Error> {
        Ok(Self { file: AtomicFile::create(path)? })
    }

    /// Appends a row.
    ///
    /// # Errors
    /// [`Error::Serialize`], [`Error::Io`].
    pub fn write<T: Serialize + ?Sized>(&mut self, row: &T) -> Result<(), Error> {
        let mut line = serde_json::to_vec(row).map_err(Error::serialize)?;
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
}

/// Reads a whole file as text, for hashing and small documents.
pub(crate) fn read_text(path: &Path) -> Result<String, Error> {
    let mut bytes = Vec::new();
    File::open(path).and_then(|mut f| f.read_to_end(&mut bytes)).map_err(Error::io("read", path))?;
    String::from_utf8(bytes).map_err(|e| {
        let before = &e.as_bytes()[..e.utf8_error().valid_up_to()]; // the index is the standard library's own
        let line = 1 + before.iter().filter(|&&b| b == b'\n').count();
        let column = 1 + before.iter().rev().take_while(|&&b| b != b'\n').count();
        Error::Utf8 { place: Place { path: path.to_path_buf(), line }, column }
    })
}
