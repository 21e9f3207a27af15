//! What is written of an unfinished output: rows in the order in which they came, and how far they are safe.

mod line;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::files::atomic::remove;
use crate::files::lock::{self, Locking};
use crate::rows::body::body;
use crate::run::journal::line::Line;
use crate::{Counts, Error, Fate, Layout, Place, RunRecord, files::fault};

pub(crate) use line::short_hash;

const FORMAT: &str = "judge-journal";
const VERSION: u64 = 1;
/// How the first line begins, whole or torn.
const OPENING: &[u8] = br#"{"format":"judge-journal""#;

/// What should be there at first, in words.
const BEGINNING: &str = "the beginning of an unfinished output";

/// When rows are brought to the disk, so that they survive a loss of power and not only a kill: when this many rows or bytes were written
/// since the last time. What a loss of power damages is noticed and done again in any case; this bounds how much it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncEvery {
    /// Rows.
    pub rows: usize,
    /// Bytes, those of hidden states included.
    pub bytes: u64,
}

impl Default for SyncEvery {
    /// 8192 rows or 64 MiB.
    fn default() -> Self {
        Self { rows: 8192, bytes: 64 << 20 }
    }
}

/// What was found of an interrupted run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resumed {
    /// Rows that are done.
    pub rows: usize,
    /// Bytes of lines that a kill or a loss of power has damaged; their rows are to be done again.
    pub torn_bytes: usize,
}

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Head {
    format: String,
    version: u64,
    /// Rows that the output will have.
    pub(crate) rows: usize,
    /// What was known of the run when it began.
    pub(crate) run: RunRecord,
}

/// The file `FILE.partial`: the run it belongs to, then lines that each carry a check.
///
/// A damaged line is skipped and its row done again, wherever it is; of a row that is there twice the last one counts.
/// Memory is 9 bytes per row.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    head: Option<Head>,
    /// Where each row's JSON starts; 0, where none can, means not yet written.
    starts: Vec<u64>,
    /// Each row's fate, by its place in `known`.
    fates: Vec<u8>,
    known: Vec<Fate>,
    end: u64,
    resumed: Resumed,
    resumes: usize,
    finishing: Option<Box<[u8]>>,
    /// Rows with attachments since the last sync, and the hash that these must have.
    unsure: BTreeMap<usize, String>,
    /// Whether the file is empty and may go with this.
    unused: bool,
    sync: SyncEvery,
    since_sync: (usize, u64),
}

impl Journal {
    /// Opens the journal at `path` under its lock, and reads what is there. A new one is empty, and removed again if it is dropped so.
    pub(crate) fn open(path: PathBuf, locking: Locking, sync: SyncEvery) -> Result<Self, Error> {
        let file = lock::open(&path, locking)?;
        let mut this = Self {
            path,
            file,
            head: None,
            starts: Vec::new(),
            fates: Vec::new(),
            known: Vec::new(),
            end: 0,
            resumed: Resumed::default(),
            resumes: 0,
            finishing: None,
            unsure: BTreeMap::new(),
            unused: false,
            sync,
            since_sync: (0, 0),
        };
        if this.read_head()? {
            this.read_back()?;
        } else {
            this.unused = true;
        }
        Ok(this)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The run that was begun here; `None` if none was.
    pub(crate) fn head(&self) -> Option<&Head> {
        self.head.as_ref()
    }

    pub(crate) fn resumed(&self) -> Resumed {
        self.resumed
    }

    /// How often it was resumed, this time included.
    pub(crate) fn resumes(&self) -> usize {
        self.resumes
    }

    pub(crate) fn rows(&self) -> usize {
        self.starts.len()
    }

    pub(crate) fn is_done(&self, row: usize) -> bool {
        self.starts.get(row).is_some_and(|&start| start > 0)
    }

    pub(crate) fn pending(&self) -> impl Iterator<Item = usize> {
        self.starts.iter().enumerate().filter(|&(_, &start)| start == 0).map(|(row, _)| row)
    }

    pub(crate) fn counts(&self) -> Counts {
        let mut rows = vec![0; self.known.len()];
        let done = self.starts.iter().zip(&self.fates).filter(|&(&start, _)| start > 0);
        done.for_each(|(_, &fate)| rows[usize::from(fate)] += 1); // fates are places in `known`
        let mut counts = Counts::default();
        self.known.iter().zip(rows).for_each(|(&fate, rows)| counts.add(fate, rows));
        counts
    }

    /// What was noted by [`finishing`](Self::finishing) if all rows are there.
    pub(crate) fn to_finish(&self) -> Option<&[u8]> {
        self.finishing.as_deref().filter(|_| self.pending().next().is_none())
    }

    /// Rows whose attachments may be lost, with the hash that they must have. Afterwards none are.
    pub(crate) fn take_unsure(&mut self) -> BTreeMap<usize, String> {
        std::mem::take(&mut self.unsure)
    }

    /// Begins a run of so many rows; whatever was there is gone.
    pub(crate) fn begin(&mut self, rows: usize, run: RunRecord) -> Result<(), Error> {
        let head = Head { format: FORMAT.to_owned(), version: VERSION, rows, run };
        let mut line = serde_json::to_vec(&head).map_err(Error::serialize)?;
        line.push(b'\n');
        self.file.set_len(0).map_err(Error::io("empty", &self.path))?;
        (self.starts, self.fates) = (vec![0; rows], vec![0; rows]);
        (self.end, self.resumed, self.resumes, self.finishing) = (0, Resumed::default(), 0, None);
        self.unsure.clear();
        fault::point();
        self.append(&line)?;
        (self.head, self.unused) = (Some(head), false);
        fault::point();
        self.file.sync_data().map_err(Error::io("write", &self.path))
    }

    /// Notes that the run goes on here.
    pub(crate) fn note_resumed(&mut self) -> Result<(), Error> {
        self.resumes += 1;
        self.append(&line::resumed())
    }

    /// Writes a row, a JSON object, which is in the hands of the operating system afterwards.
    /// `attached` is the short hash of what belongs to it elsewhere, and its
    /// length in bytes. Of a row that is there already the new one counts.
    pub(crate) fn push<T: Serialize + ?Sized>(
        &mut self,
        row: usize,
        value: &T,
        fate: Fate,
        attached: Option<(&str, u64)>,
    ) -> Result<(), Error> {
        let json = body(value)?;
        let (line, json_at) = line::row(row, fate, attached.map(|(hash, _)| hash), &json);
        let start = self.end + json_at as u64;
        fault::point();
        self.append(&line)?;
        self.note(row, start, fate);
        self.since_sync.0 += 1;
        self.since_sync.1 += line.len() as u64 + attached.map_or(0, |(_, bytes)| bytes);
        Ok(())
    }

    /// Whether it is time to [`sync`](Self::sync).
    pub(crate) fn is_sync_due(&self) -> bool {
        self.since_sync.0 >= self.sync.rows || self.since_sync.1 >= self.sync.bytes
    }

    /// Waits until every line is on the disk. What is attached to them must be there already.
    pub(crate) fn sync(&mut self) -> Result<(), Error> {
        self.file.sync_data().map_err(Error::io("write", &self.path))?;
        fault::point();
        self.since_sync = (0, 0);
        self.append(&line::synced())
    }

    /// Notes that all rows are safe and what remains to be done, before any of it is done. After an error `sorted` is gone.
    pub(crate) fn note_finishing<T: Serialize>(&mut self, remaining: &T, sorted: &Path) -> Result<(), Error> {
        let json = serde_json::to_vec(remaining).map_err(Error::serialize);
        let noted = json.and_then(|json| self.append(&line::finishing(&json)));
        let safe = noted.and_then(|()| self.file.sync_data().map_err(Error::io("write", &self.path)));
        // The first error is the one to be told.
        safe.inspect_err(|_| _ = fs::remove_file(sorted))
    }

    /// Forgets a row that was found when this was opened; it may then be written again.
    pub(crate) fn forget(&mut self, row: usize) -> Result<(), Error> {
        if self.is_done(row) {
            self.append(&line::forgotten(row))?;
            self.starts[row] = 0;
            self.resumed.rows -= 1; // it was counted when it was found
        }
        Ok(())
    }

    /// Reads a row back; `None` if it is not written yet.
    pub(crate) fn read<T: DeserializeOwned>(&self, row: usize) -> Result<Option<T>, Error> {
        let Some(&start) = self.starts.get(row).filter(|&&start| start > 0) else { return Ok(None) };
        let mut line = Vec::new();
        let mut file = &self.file;
        file.seek(SeekFrom::Start(start)).map_err(Error::io("read", &self.path))?;
        BufReader::new(file).read_until(b'\n', &mut line).map_err(Error::io("read", &self.path))?;
        let value = serde_json::from_slice(&line);
        value.map(Some).map_err(|source| Error::Document { path: self.path.clone(), source })
    }

    /// Writes all rows in order to `sorted`, on the disk afterwards; gives its length and hash.
    /// Nothing is left of it after an error, so that a
    /// disk that was full is not kept full.
    pub(crate) fn assemble(&self, sorted: &Path, layout: Layout) -> Result<(u64, String), Error> {
        let mut pending = self.pending();
        if let Some(first) = pending.next() {
            return Err(Error::Incomplete { missing: 1 + pending.count(), rows: self.rows(), first });
        }
        // The first error is the one to be told.
        self.write_sorted(sorted, layout).inspect_err(|_| _ = fs::remove_file(sorted))
    }

    fn write_sorted(&self, sorted: &Path, layout: Layout) -> Result<(u64, String), Error> {
        let read_failed = || Error::io("read", &self.path);
        let write_failed = || Error::io("write", sorted);
        let mut file = &self.file;
        file.seek(SeekFrom::Start(0)).map_err(read_failed())?;
        let mut source = BufReader::new(file);
        // A name of its own, under this journal's lock: what a kill leaves of it is overwritten by the next try.
        let mut target = BufWriter::new(File::create(sorted).map_err(write_failed())?);
        fault::point();
        let mut hasher = blake3::Hasher::new();
        let mut write = |bytes: &[u8]| {
            hasher.update(bytes);
            target.write_all(bytes).map_err(write_failed())
        };
        let (mut at, mut line) = (0_u64, Vec::new());
        if layout == Layout::Array {
            write(b"[\n")?;
        }
        for (row, &start) in self.starts.iter().enumerate() {
            // A relative seek keeps the buffer where rows lie in order, as most do. Offsets of a file fit i64.
            source.seek_relative(start.cast_signed() - at.cast_signed()).map_err(read_failed())?;
            line.clear();
            at = start + source.read_until(b'\n', &mut line).map_err(read_failed())? as u64;
            if layout == Layout::Array && row + 1 < self.starts.len() {
                line.pop();
                line.extend(b",\n");
            }
            write(&line)?;
        }
        if layout == Layout::Array {
            write(b"]\n")?;
        }
        let written = (hasher.count(), hasher.finalize().to_hex().to_string());
        let target = target.into_inner().map_err(|e| write_failed()(e.into_error()))?;
        target.sync_all().map_err(write_failed())?;
        fault::point();
        Ok(written)
    }

    /// Removes the file: the run is over.
    pub(crate) fn remove(self) -> Result<(), Error> {
        remove(&self.path)
    }

    fn append(&mut self, line: &[u8]) -> Result<(), Error> {
        if let Err(source) = self.file.write_all(line) {
            // Whatever part of the line did get there must not stand before the next one.
            self.file.set_len(self.end).map_err(Error::io("repair", &self.path))?;
            return Err(Error::io("write", &self.path)(source));
        }
        self.end += line.len() as u64;
        Ok(())
    }

    fn note(&mut self, row: usize, start: u64, fate: Fate) {
        let place = self.known.iter().position(|&known| known == fate).unwrap_or_else(|| {
            self.known.push(fate);
            self.known.len() - 1
        });
        self.starts[row] = start; // callers have checked the row
        self.fates[row] = place as u8; // there are fewer reasons than 128
    }

    /// Whether a run was begun here. What a kill left of a first line is emptied.
    fn read_head(&mut self) -> Result<bool, Error> {
        let mut text = Vec::new();
        BufReader::new(&self.file).read_until(b'\n', &mut text).map_err(Error::io("read", &self.path))?;
        if text.last() != Some(&b'\n') {
            // The first line is on the disk before the second is written, so there are no rows to lose.
            let torn = OPENING.starts_with(&text) || text.starts_with(OPENING) || text.iter().all(|&byte| byte == 0);
            if !torn {
                return Err(self.broken(1, BEGINNING, "something else"));
            }
            self.file.set_len(0).map_err(Error::io("empty", &self.path))?;
            return Ok(false);
        }
        #[derive(Deserialize)]
        struct Version {
            format: String,
            version: u64,
        }
        match serde_json::from_slice::<Version>(&text) {
            Ok(Version { format, version }) if format == FORMAT => {
                if version != VERSION {
                    let expected = format!("an unfinished output of version {VERSION}");
                    return Err(self.broken(1, expected, format!("version {version}")));
                }
            }
            _ => return Err(self.broken(1, BEGINNING, "something else")),
        }
        let head: Head =
            serde_json::from_slice(&text).map_err(|source| Error::Document { path: self.path.clone(), source })?;
        (self.starts, self.fates) = (vec![0; head.rows], vec![0; head.rows]);
        self.end = text.len() as u64;
        self.head = Some(head);
        Ok(true)
    }

    /// Reads all lines after the first. Afterwards the file ends with a good one.
    fn read_back(&mut self) -> Result<(), Error> {
        let mut file = self.file.try_clone().map_err(Error::io("read", &self.path))?;
        file.seek(SeekFrom::Start(self.end)).map_err(Error::io("read", &self.path))?;
        let mut reader = BufReader::new(file);
        let (mut at, mut text) = (self.end, Vec::new());
        for number in 2.. {
            text.clear();
            let length = reader.read_until(b'\n', &mut text).map_err(Error::io("read", &self.path))?;
            if length == 0 {
                break;
            }
            let start = at;
            at += length as u64;
            let Some(line) = Line::parse(&text) else {
                self.resumed.torn_bytes += length;
                continue;
            };
            self.end = at;
            self.finishing = None; // nothing is written after it, unless what it says had become untrue
            match line {
                Line::Synced => self.unsure.clear(),
                Line::Resumed => self.resumes += 1,
                Line::Finishing { json } => self.finishing = Some(json.into()),
                Line::Forgotten { row } => {
                    self.unsure.remove(&row);
                    if self.is_done(row) {
                        self.starts[row] = 0;
                        self.resumed.rows -= 1;
                    }
                }
                Line::Row { row, fate, attached, json_at } => {
                    let rows = self.rows();
                    if row >= rows {
                        return Err(self.broken(number, format!("a row below {rows}"), format!("row {row}")));
                    }
                    let Some(fate) = line::fate(fate) else {
                        return Err(self.broken(number, "`scored` or a reason", format!("{fate:?}")));
                    };
                    self.resumed.rows += usize::from(!self.is_done(row));
                    self.note(row, start + json_at as u64, fate);
                    self.unsure.remove(&row);
                    self.unsure.extend(attached.map(|hash| (row, hash.to_owned())));
                }
            }
        }
        self.file.set_len(self.end).map_err(Error::io("repair", &self.path))
    }

    fn broken(&self, line: usize, expected: impl Into<String>, found: impl Into<String>) -> Error {
        let place = Place { path: self.path.clone(), line };
        Error::Partial { place, expected: expected.into(), found: found.into() }
    }
}

/// Whether a file begins as a journal does, be it one whose first line a kill has torn.
pub(crate) fn is_journal(path: &Path) -> Result<bool, Error> {
    let mut start = Vec::new();
    let file = File::open(path).map_err(Error::io("open", path))?;
    file.take(OPENING.len() as u64).read_to_end(&mut start).map_err(Error::io("read", path))?;
    Ok(OPENING.starts_with(&start) || start.iter().all(|&byte| byte == 0))
}

impl Drop for Journal {
    fn drop(&mut self) {
        if self.unused {
            // Nobody is left to be told, and an empty file is harmless.
            let _ = fs::remove_file(&self.path);
        }
        // Closing the file would not do while a process that was just started has a copy of it, between its fork and its own program.
        let _ = self.file.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_journal_is_free_although_a_copy_of_its_file_is_open() {
        let _alone = crate::kill_tests::alone();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.partial");
        fs::write(&path, "").unwrap();
        let open = || Journal::open(path.clone(), Locking::Exclusive, SyncEvery::default());
        let mut journal = open().unwrap();
        journal.unused = false;
        let copy = journal.file.try_clone().unwrap();
        assert!(matches!(open(), Err(Error::Locked { .. })));
        drop(journal);
        open().unwrap();
        drop(copy);
    }
}
