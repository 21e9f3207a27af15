//! Safetensors files written one tensor after another, with their index.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::folder::file;
use crate::{Dtype, Error};

/// A tensor that will be written.
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) shape: Vec<usize>,
}

/// Files that tensors are written into, in the order in which they were announced.
pub(super) struct Shards {
    folder: PathBuf,
    /// Those that are still to be begun, the next one last.
    waiting: Vec<Shard>,
    open: Option<(PathBuf, BufWriter<File>)>,
    /// Bytes that the open one still lacks.
    missing: u64,
    written: u64,
    total: u64,
    names: Vec<String>,
    /// By a tensor's name, that of its file.
    index: Map<String, Value>,
}

struct Shard {
    name: String,
    header: Vec<u8>,
    bytes: u64,
}

impl Shards {
    /// Lays tensors out in files of at most so many bytes, or of one tensor that has more.
    pub(super) fn new(folder: &Path, entries: Vec<Entry>, dtype: Dtype, most: u64) -> Self {
        let (width, dtype) = match dtype {
            Dtype::F32 => (4, "F32"),
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
            // transformers asks which program's tensors these are.
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

    /// Bytes of all tensors.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Bytes of tensors that are written.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Writes the next bytes, which are of one tensor.
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

    fn close(&mut self) -> Result<(), Error> {
        let Some((path, file)) = self.open.take() else { return Ok(()) };
        let done = file.into_inner().map_err(std::io::IntoInnerError::into_error).and_then(|file| file.sync_all());
        done.map_err(|source| Error::Write { path, source })
    }

    /// Closes the last file and writes the index of several; the names of all files.
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
