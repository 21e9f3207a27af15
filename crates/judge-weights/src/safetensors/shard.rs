//! One mapped file of tensors, its header checked: safetensors, or what torch.save writes (`pytorch/`), by its name.
//!
//! ```text
//!  bytes 0..8        8..8 + n                 8 + n..end of file
//!  n: u64, little-   JSON: {"name": {"dtype", the tensors' bytes; data_offsets count
//!  endian            "shape", "data_offsets"  from here
//!                    : [start, end]}, ...}
//! ```
//!
//! [`Shard::open`] checks everything that the header claims before `safetensors.rs` uses it: after
//! that no offset leads out of the file, and every tensor is as long as its dtype and shape say.
//! The checks are those of the `safetensors` crate's own reader. They are made here so that each
//! fault is an error that names the file and the tensor.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;

use memmap2::{Mmap, MmapMut};
use safetensors::tensor::TensorInfo;
use serde_json::Value;

use crate::Error;
use crate::error::{FileProblem, TensorProblem};
use crate::map::{advise, map_file};
use crate::pytorch;
use crate::read::{is_pickle, refuse_stand_in};

/// Longest header that is read, in bytes: the limit of the `safetensors` crate.
const MAX_HEADER: u64 = 100_000_000;

/// One mapped file. It must not change while it is mapped. Or a part of memory, with tensors of a file that are not stored
/// row by row.
pub(crate) struct Shard {
    /// The file, for errors.
    pub(super) path: PathBuf,
    /// The whole file, header included.
    pub(crate) map: Mmap,
    /// Where the tensors' bytes begin in the map: `data_offsets` count from here.
    pub(super) data: usize,
    /// Whether the map is that of the file, so that pages which are given back are read again.
    is_file: bool,
}

/// A file, or memory beside it, and the tensors that lie in it by name.
pub(super) type Opened = (Shard, BTreeMap<String, TensorInfo>);

impl Shard {
    /// Tells the system that a part of the map is not needed for now, so that its pages need not
    /// stay in memory. `bytes` must be a part of [`map`](Self::map). A failure is harmless and only
    /// logged. On systems other than Unix nothing happens.
    pub(super) fn let_go(&self, bytes: &[u8]) {
        #[cfg(unix)]
        if self.is_file {
            let start = bytes.as_ptr().addr() - self.map.as_ptr().addr();
            // SAFETY: the map is a read-only map of a file: pages dropped are read from the file again.
            let advised =
                unsafe { self.map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, start, bytes.len()) };
            if let Err(error) = advised {
                tracing::debug!(path = %self.path.display(), %error, "pages of the weights stay in memory");
            }
        }
        #[cfg(not(unix))]
        let _ = bytes;
    }

    /// Tells the system how the map will be read; see `Store::reads_are_scattered`.
    pub(super) fn advise(&self, are_scattered: bool) {
        if self.is_file {
            advise(&self.map, are_scattered);
        }
    }

    /// Maps a file and checks what it says of its tensors. A file of torch.save may give a second shard.
    ///
    /// # Errors
    /// [`Error::Read`], [`Error::StandIn`], and those of the file's form: [`Error::PyTorch`]; or [`Error::WeightsFile`] for the
    /// header or the file's length, and [`Error::Tensor`] for the range of one tensor.
    pub(super) fn open(path: PathBuf) -> Result<Vec<Opened>, Error> {
        let read = |source| Error::Read { path: path.clone(), source };
        let file = File::open(&path).map_err(read)?;
        let map = map_file(&file).map_err(read)?;
        refuse_stand_in(&path, &map)?;
        if path.file_name().and_then(|name| name.to_str()).is_some_and(is_pickle) {
            Self::of_pytorch(path, map)
        } else {
            Self::of_safetensors(path, map).map(|opened| vec![opened])
        }
    }

    /// What torch.save wrote. Tensors that are not stored row by row are copied.
    fn of_pytorch(path: PathBuf, map: Mmap) -> Result<Vec<Opened>, Error> {
        let tensors = pytorch::tensors(&map).map_err(|problem| Error::PyTorch { path: path.clone(), problem })?;
        let (strided, dense): (Vec<_>, Vec<_>) = tensors.into_iter().partition(|tensor| tensor.strides.is_some());
        let length = strided.iter().map(pytorch::Stored::size).sum::<usize>();
        let read = |source| Error::Read { path: path.clone(), source };
        let mut memory = MmapMut::map_anon(length.max(1)).map_err(read)?;
        let mut gathered = BTreeMap::new();
        let mut end = 0;
        for tensor in strided {
            let data_offsets = (end, end + tensor.size());
            tensor.gather(&map, &mut memory[data_offsets.0..data_offsets.1]);
            end = data_offsets.1;
            gathered.insert(tensor.name, TensorInfo { dtype: tensor.dtype, shape: tensor.shape, data_offsets });
        }
        let info = |tensor: pytorch::Stored| {
            let data_offsets = (tensor.bytes.start, tensor.bytes.end);
            (tensor.name, TensorInfo { dtype: tensor.dtype, shape: tensor.shape, data_offsets })
        };
        let dense = dense.into_iter().map(info).collect();
        let memory = memory.make_read_only().map_err(read)?;
        let mut opened = vec![(Self { path: path.clone(), map, data: 0, is_file: true }, dense)];
        if !gathered.is_empty() {
            opened.push((Self { path, map: memory, data: 0, is_file: false }, gathered));
        }
        Ok(opened)
    }

    /// A safetensors file: every range lies within the file and is as long as its dtype and shape say, none overlaps
    /// another, and no byte is between or after them.
    fn of_safetensors(path: PathBuf, map: Mmap) -> Result<Opened, Error> {
        let fault = |problem| Error::WeightsFile { path: path.clone(), problem };
        let found = map.len() as u64;
        let Some(prefix) = map.first_chunk::<8>() else {
            return Err(fault(FileProblem::Truncated { expected: 8, found }));
        };
        let header_len = u64::from_le_bytes(*prefix);
        if header_len > MAX_HEADER {
            return Err(fault(FileProblem::HeaderTooLong { length: header_len, limit: MAX_HEADER }));
        }
        let data = 8 + header_len as usize;
        let Some(header) = map.get(8..data) else {
            return Err(fault(FileProblem::Truncated { expected: data as u64, found }));
        };
        let mut header: BTreeMap<String, Value> =
            serde_json::from_slice(header).map_err(|source| fault(FileProblem::Header { source }))?;
        header.remove("__metadata__");

        let mut infos = BTreeMap::new();
        for (name, value) in header {
            let info = serde_json::from_value(value)
                .map_err(|source| fault(FileProblem::Entry { tensor: name.clone(), source }))?;
            infos.insert(name, info);
        }
        let end =
            check_ranges(&infos).map_err(|(tensor, problem)| Error::Tensor { path: path.clone(), tensor, problem })?;
        // A header may promise more than any file can hold.
        let expected = (data as u64).saturating_add(end as u64);
        if expected > found {
            return Err(fault(FileProblem::Truncated { expected, found }));
        }
        if expected < found {
            return Err(fault(FileProblem::Trailing { expected, found }));
        }
        Ok((Self { path, map, data, is_file: true }, infos))
    }
}

/// Checks that the ranges follow one another from 0 on without gap or overlap, each as long as its
/// tensor, and returns the end of the last. Shapes whose size overflows and dtypes of less than a
/// byte that do not fill their last byte are errors, with the tensor's name.
fn check_ranges(infos: &BTreeMap<String, TensorInfo>) -> Result<usize, (String, TensorProblem)> {
    let mut by_start: Vec<_> = infos.iter().collect();
    by_start.sort_by_key(|(_, info)| info.data_offsets);
    let mut reached = 0;
    for (name, info) in by_start {
        let (start, end) = info.data_offsets;
        let fault = |problem| (name.clone(), problem);
        let bits = info
            .shape
            .iter()
            .try_fold(info.dtype.bitsize(), |bits, &size| bits.checked_mul(size))
            .ok_or_else(|| fault(TensorProblem::TooLarge { shape: info.shape.clone() }))?;
        if start > end || !bits.is_multiple_of(8) || end - start != bits / 8 {
            let expected = bits.div_ceil(8);
            return Err(fault(TensorProblem::Size { expected, start, end }));
        }
        if start != reached {
            return Err(fault(TensorProblem::Placement { expected: reached, found: start }));
        }
        reached = end;
    }
    Ok(reached)
}
