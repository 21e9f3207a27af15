//! Packed matrices in a file, so that a model that was loaded once is there at once the next time,
//! and processes that run the same model share one copy of it in memory.
//!
//! `model.rs` opens a [`PackedCache`] where [`LoadOptions::packed_cache`](crate::LoadOptions) names
//! a folder, and finishes it when everything is loaded. `load.rs` asks it for every matrix:
//!
//! ```text
//! no such file   matrix is packed ─► put: appended to a hidden file ─► finish: index, sync, rename
//! a file         take: a part of the mapped file; the checkpoint's numbers are passed over
//! ```
//!
//! All else still comes from the checkpoint: vectors (norms, biases, taps of convolutions), a head of
//! labels, and tables that are looked up on the host. Its headers, names and shapes are checked in
//! any case. That numbers are finite was checked when the file was written.
//!
//! # The file
//!
//! Its name is a hash of all that its content follows from, see [`key`]. Another model, dtype or
//! layout, or weights that were touched since, therefore make another file. Files are never deleted
//! here: the owner of the folder may delete any of them while nobody loads a model, hidden ones that
//! a killed process left behind included.
//!
//! ```text
//! arrays of the matrices, each beginning a cache line │ index, JSON │ its length, u64 │ MAGIC
//! ```
//!
//! Words and length are in the machine's byte order; the magic number reads differently in another.
//! A file gets its name when it is whole and on the disk, so one that is cut off was damaged later.
//! Its content is not checked against a hash: that would read all of it.

use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use judge_kernels::lines::MappedLines;
use judge_kernels::stored::Stored;
use judge_weights::map::map_file;
use memmap2::Mmap;
use serde::{Deserialize, Serialize};

use crate::{Dtype, Error, PackedCacheProblem, WeightForm, WeightsError};

/// Hashed into the name. Change its number whenever the same matrix would be packed otherwise.
const DOMAIN: &str = "judge-models packed matrices 2";

/// The last eight bytes of a file.
const MAGIC: u64 = u64::from_be_bytes(*b"jmPACK\x01\n");

/// What the names of files of weights end with.
const WEIGHTS: [&str; 3] = ["safetensors", "gguf", "bin"];

/// Bytes that matrices begin at multiples of.
const ALIGNMENT: u64 = 64;

/// One array of a matrix in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Entry {
    /// Names of the tensors that the matrix is stacked from, with their rows.
    parts: Vec<(String, usize)>,
    /// Columns.
    d_in: usize,
    /// Bytes before it in the file.
    start: u64,
    /// 32-bit words, with all padding.
    words: usize,
}

/// Where matrices come from, and go to.
pub(crate) enum PackedCache {
    /// Nothing is kept.
    Off,
    /// A file is there.
    Reading(Reader),
    /// A file is being written.
    Writing(Writer),
}

/// A file of matrices, whose arrays are taken in the order in which they were put.
pub(crate) struct Reader {
    /// The file, for errors.
    path: PathBuf,
    /// All of it.
    map: Arc<Mmap>,
    /// Its arrays.
    entries: std::vec::IntoIter<Entry>,
}

/// A file that has no name yet.
pub(crate) struct Writer {
    /// The name that it gets.
    path: PathBuf,
    /// The hidden name that it has.
    partial: PathBuf,
    /// What is written so far.
    file: BufWriter<File>,
    /// Bytes of it.
    end: u64,
    /// Its arrays.
    entries: Vec<Entry>,
}

/// The name of the file for a model: `fingerprint` says what the weights are, as far as a sample of
/// them does, and size and time of the files of weights in `folders` say that they have not been
/// touched; a path among them that is a file counts whatever its name. `is_padded` is the one thing in which kernels pack differently.
///
/// # Errors
/// [`WeightsError::Read`] for a folder that cannot be listed, and for a file of weights that is not there.
pub(crate) fn key<'p>(
    fingerprint: &str,
    dtype: Dtype,
    form: WeightForm,
    is_padded: bool,
    folders: impl IntoIterator<Item = &'p Path>,
) -> Result<String, Error> {
    let mut files = Vec::new();
    let mut add = |path: &Path| -> Result<(), Error> {
        // Through links, as the hub's cache has them.
        let data = fs::metadata(path).map_err(|source| WeightsError::Read { path: path.to_owned(), source })?;
        let changed = data.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        files.push((name, data.len(), changed.map(|time| time.as_nanos())));
        Ok(())
    };
    for folder in folders {
        if folder.is_file() {
            add(folder)?;
            continue;
        }
        let fault = |source| WeightsError::Read { path: folder.to_owned(), source };
        for file in fs::read_dir(folder).map_err(fault)? {
            let path = file.map_err(fault)?.path();
            if WEIGHTS.iter().any(|end| path.extension().is_some_and(|found| found == *end)) {
                add(&path)?;
            }
        }
    }
    files.sort_unstable();
    // A file that is named is in its folder too.
    files.dedup();
    let version = env!("CARGO_PKG_VERSION");
    let (dtype, form) = (dtype.to_string(), form.to_string());
    let content = serde_json::json!([DOMAIN, version, fingerprint, dtype, form, is_padded, format!("{files:?}")]);
    Ok(blake3::hash(content.to_string().as_bytes()).to_hex().to_string())
}

impl PackedCache {
    /// Looks for the file of a key in a folder, which is made if it is not there.
    ///
    /// # Errors
    /// [`Error::PackedCache`] for a file of this name that is damaged, [`Error::Write`] where none
    /// can be made.
    pub(crate) fn open(folder: &Path, key: &str) -> Result<Self, Error> {
        let path = folder.join(format!("{key}.packed"));
        match File::open(&path) {
            Ok(file) => Ok(Self::Reading(Reader::open(path, &file)?)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Ok(Self::Writing(Writer::create(folder, path, key)?))
            }
            Err(source) => Err(WeightsError::Read { path, source }.into()),
        }
    }

    /// The next array, if a file is there; `words` is how long it has to be, and the rest says what
    /// matrix it is of. The caller passes over its tensors in the checkpoint.
    ///
    /// # Errors
    /// [`Error::PackedCache`] if the file has another one in its place.
    pub(super) fn take(
        &mut self,
        parts: &[(String, usize)],
        d_in: usize,
        words: usize,
    ) -> Result<Option<Stored>, Error> {
        let Self::Reading(reader) = self else { return Ok(None) };
        let found =
            reader.entries.next().filter(|entry| entry.parts == parts && entry.d_in == d_in && entry.words == words);
        match found.and_then(|entry| MappedLines::new(Arc::clone(&reader.map), entry.start as usize, words)) {
            Some(lines) => Ok(Some(Stored::Mapped(lines))),
            None => {
                let name = parts.first().map_or_else(String::new, |(name, _)| name.clone());
                let problem = PackedCacheProblem::Matrix { name };
                Err(Error::PackedCache { path: reader.path.clone(), problem })
            }
        }
    }

    /// Keeps an array of a matrix that was packed, where a file is being written.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub(super) fn put(&mut self, parts: &[(String, usize)], d_in: usize, words: &[u32]) -> Result<(), Error> {
        let Self::Writing(writer) = self else { return Ok(()) };
        writer.put(parts, d_in, words).map_err(|source| Error::Write { path: writer.partial.clone(), source })
    }

    /// Gives a file that was written its name.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub(crate) fn finish(self) -> Result<(), Error> {
        let Self::Writing(mut writer) = self else { return Ok(()) };
        writer.finish().map_err(|source| Error::Write { path: writer.path.clone(), source })
    }
}

impl Reader {
    /// Maps a file and reads its index.
    fn open(path: PathBuf, file: &File) -> Result<Self, Error> {
        let read = |source| WeightsError::Read { path: path.clone(), source };
        if file.metadata().map_err(read)?.len() == 0 {
            return Err(Error::PackedCache { path, problem: PackedCacheProblem::Damaged }); // cannot be mapped
        }
        // A file that has this name is never written again: others are renamed over it.
        let map = map_file(file).map_err(read)?;
        let Some(entries) = index(&map) else {
            return Err(Error::PackedCache { path, problem: PackedCacheProblem::Damaged });
        };
        tracing::info!(path = %path.display(), bytes = map.len(), "packed weights are mapped");
        Ok(Self { path, map: Arc::new(map), entries: entries.into_iter() })
    }
}

/// The index of a file, if it ends as it should and all matrices lie before it.
fn index(file: &[u8]) -> Option<Vec<Entry>> {
    let (rest, magic) = file.split_last_chunk::<8>()?;
    let (rest, length) = rest.split_last_chunk::<8>()?;
    let length = usize::try_from(u64::from_ne_bytes(*length)).ok()?;
    let start = rest.len().checked_sub(length)?;
    let entries: Vec<Entry> = serde_json::from_slice(&rest[start..]).ok()?;
    let fits = |entry: &Entry| {
        let end = (entry.words as u64).checked_mul(4).and_then(|bytes| entry.start.checked_add(bytes));
        entry.start.is_multiple_of(ALIGNMENT) && end.is_some_and(|end| end <= start as u64)
    };
    (u64::from_ne_bytes(*magic) == MAGIC && entries.iter().all(fits)).then_some(entries)
}

impl Writer {
    /// Begins a file beside where it will be.
    fn create(folder: &Path, path: PathBuf, key: &str) -> Result<Self, Error> {
        // A name of its own, also among processes of other machines: each key is random.
        let random = RandomState::new().hash_one(std::process::id());
        let partial = folder.join(format!(".{key}.{random:016x}.partial"));
        let file = fs::create_dir_all(folder).and_then(|()| File::create_new(&partial));
        let file = file.map_err(|source| Error::Write { path: partial.clone(), source })?;
        tracing::info!(path = %path.display(), "packed weights are kept for the next start");
        Ok(Self { path, partial, file: BufWriter::new(file), end: 0, entries: Vec::new() })
    }

    /// Appends an array.
    fn put(&mut self, parts: &[(String, usize)], d_in: usize, words: &[u32]) -> std::io::Result<()> {
        let start = self.end.next_multiple_of(ALIGNMENT);
        self.file.write_all(&vec![0; (start - self.end) as usize])?;
        let mut bytes = Vec::with_capacity(1 << 20);
        for some in words.chunks(1 << 18) {
            bytes.clear();
            bytes.extend(some.iter().flat_map(|word| word.to_ne_bytes()));
            self.file.write_all(&bytes)?;
        }
        self.end = start + 4 * words.len() as u64;
        self.entries.push(Entry { parts: parts.to_vec(), d_in, start, words: words.len() });
        Ok(())
    }

    /// Ends the file and gives it its name. A process that writes the same file at the same time writes the
    /// same content.
    fn finish(&mut self) -> std::io::Result<()> {
        let index = serde_json::to_vec(&self.entries)?;
        self.file.write_all(&index)?;
        self.file.write_all(&(index.len() as u64).to_ne_bytes())?;
        self.file.write_all(&MAGIC.to_ne_bytes())?;
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        fs::rename(&self.partial, &self.path)
    }
}

impl Drop for Writer {
    /// Deletes a file that did not get its name.
    fn drop(&mut self) {
        match fs::remove_file(&self.partial) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::warn!(path = %self.partial.display(), %error, "a file that was begun is left behind");
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
