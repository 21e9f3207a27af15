//! Safetensors files written one tensor after another, with their index.
//!
//! `merge.rs` announces all names and shapes first, because a file's header comes before its
//! tensors and the names of the files say how many there are. Then it writes the bytes of the
//! tensors in the same order, in pieces of any length. Files are opened one at a time, so memory is
//! that of a buffer.
//!
//! ```text
//!  new(entries)   file 1: header, tensors that fit into `most` bytes   model-00001-of-00003.safetensors
//!                 file 2: ...
//!  write(bytes)*  to the open file; the next one is begun when all of its bytes are there
//!  finish()       the last file is closed; the index is written if there are several
//! ```
//!
//! Which tensors there are and their numbers are not this module's matter. What it writes is read
//! again by `safetensors/shard.rs` of `judge-weights` under the same rules.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::folder::file;
use crate::{Dtype, Error};

/// A tensor that will be written.
pub(super) struct Entry {
    /// The name in the file's header.
    pub(super) name: String,
    /// The shape in the file's header.
    pub(super) shape: Vec<usize>,
}

/// Files that tensors are written into, in the order in which they were announced.
pub(super) struct Shards {
    /// The folder, which exists.
    folder: PathBuf,
    /// Files that are still to be begun, the next one last.
    waiting: Vec<Shard>,
    /// The open file and its path. `None` before the first write and after closing.
    open: Option<(PathBuf, BufWriter<File>)>,
    /// Bytes of tensors that the open file still lacks.
    missing: u64,
    /// Bytes of tensors that are written, over all files.
    written: u64,
    /// Bytes of all tensors.
    total: u64,
    /// Names of the files that were begun.
    names: Vec<String>,
    /// The `weight_map` of the index: by a tensor's name, the name of its file.
    index: Map<String, Value>,
}

/// A file that is to be written.
struct Shard {
    /// Its name in the folder.
    name: String,
    /// The JSON header, padded with spaces to a multiple of 8 bytes, without the length before it.
    header: Vec<u8>,
    /// Bytes of its tensors.
    bytes: u64,
}

impl Shards {
    /// Lays tensors out in files of at most `most` bytes of tensors, filled in order; a tensor that
    /// has more gets a file of its own. Nothing is written yet. One file is called
    /// `model.safetensors`, several are numbered.
    pub(super) fn new(folder: &Path, entries: Vec<Entry>, dtype: Dtype, most: u64) -> Self {
        let (width, dtype) = match dtype {
            Dtype::F32 | Dtype::Tf32 => (4, "F32"),
            Dtype::Bf16 => (2, "BF16"),
        };
        let mut groups: Vec<(Vec<(Entry, u64)>, u64)> = Vec::new();
        for entry in entries {
            let bytes = entry.shape.iter().map(|&size| size as u64).product::<u64>() * width;
            match groups.last_mut() {
                Some((group, sum)) if *sum + bytes <= most => {
                    group.push((entry, bytes));
                    *sum += bytes;
                }
                _ => groups.push((vec![(entry, bytes)], bytes)),
            }
        }
        let (mut index, mut waiting, count) = (Map::new(), Vec::new(), groups.len());
        for (number, (group, bytes)) in groups.into_iter().enumerate() {
            let name = match count {
                1 => file::WEIGHTS.to_owned(),
                _ => format!("model-{:05}-of-{count:05}.safetensors", number + 1),
            };
            // Older releases of transformers refuse files without it: it says that tensors are PyTorch's.
            let mut header = Map::from_iter([("__metadata__".to_owned(), json!({ "format": "pt" }))]);
            let mut start = 0;
            for (Entry { name: tensor, shape }, bytes) in group {
                index.insert(tensor.clone(), name.clone().into());
                header
                    .insert(tensor, json!({ "dtype": dtype, "shape": shape, "data_offsets": [start, start + bytes] }));
                start += bytes;
            }
            let mut header = Value::Object(header).to_string().into_bytes();
            header.resize(header.len().next_multiple_of(8), b' ');
            waiting.push(Shard { name, header, bytes });
        }
        let total = waiting.iter().map(|shard| shard.bytes).sum();
        waiting.reverse();
        let folder = folder.to_owned();
        Self { folder, waiting, open: None, missing: 0, written: 0, total, names: Vec::new(), index }
    }

    /// Bytes of all tensors, without headers.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Bytes of tensors that are written.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Writes the next bytes, which are of one tensor. A file is begun when the one before has all
    /// of its bytes.
    ///
    /// # Errors
    /// [`Error::Write`] with the file.
    ///
    /// # Panics
    /// In debug builds, if there are more bytes than were announced.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        while self.missing == 0
            && let Some(Shard { name, header, bytes }) = self.waiting.pop()
        {
            self.close()?;
            let path = self.folder.join(&name);
            let fault = |source| Error::Write { path: path.clone(), source };
            let mut file = BufWriter::new(File::create(&path).map_err(fault)?);
            file.write_all(&(header.len() as u64).to_le_bytes()).map_err(fault)?;
            file.write_all(&header).map_err(fault)?;
            self.names.push(name);
            self.missing = bytes;
            self.open = Some((path, file));
        }
        if let Some((path, file)) = &mut self.open {
            file.write_all(bytes).map_err(|source| Error::Write { path: path.clone(), source })?;
        }
        self.missing -= bytes.len() as u64;
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Closes the open file, if there is one, when all of it has reached the disk (`fsync`).
    fn close(&mut self) -> Result<(), Error> {
        let Some((path, file)) = self.open.take() else { return Ok(()) };
        let done = file.into_inner().map_err(std::io::IntoInnerError::into_error).and_then(|file| file.sync_all());
        done.map_err(|source| Error::Write { path, source })
    }

    /// Closes the last file and writes the index if there are several. Returns the names of all
    /// files, that of the index included.
    ///
    /// # Errors
    /// [`Error::Write`] with the file.
    pub(super) fn finish(mut self) -> Result<Vec<String>, Error> {
        self.close()?;
        if self.names.len() > 1 {
            let path = self.folder.join(file::WEIGHTS_INDEX);
            let index = json!({ "metadata": { "total_size": self.total }, "weight_map": self.index });
            std::fs::write(&path, format!("{index:#}\n")).map_err(|source| Error::Write { path, source })?;
            self.names.push(file::WEIGHTS_INDEX.to_owned());
        }
        Ok(self.names)
    }
}
