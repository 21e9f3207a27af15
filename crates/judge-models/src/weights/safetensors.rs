use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use half::{bf16, f16};
use memmap2::Mmap;
use rayon::prelude::*;
use safetensors::Dtype as Stored;
use safetensors::tensor::TensorInfo;
use serde_json::Value;

use super::{Numbers, Tensors};
use crate::error::{FileProblem, IndexProblem, TensorProblem};
use crate::folder::{Folder, file, read_json, stays_inside};
use crate::{Dtype, Error};

/// Longest header that is read, in bytes; the limit of the format's own reader.
const MAX_HEADER: u64 = 100_000_000;

/// Elements converted by one task.
const CHUNK: usize = 1 << 16;

/// Elements of a matrix that are converted before they are packed.
const ROWS_AT_ONCE: usize = 1 << 22;

/// What the text model's tensors are called inside a vision-language folder, before and since transformers 5, and what they are called in a folder of its own.
const TOWERS: [(&str, &str); 3] =
    [("language_model.model.", "model."), ("language_model.lm_head.", "lm_head."), ("model.language_model.", "model.")];

/// Beginnings of the names of all else in such a folder.
const OTHER_TOWERS: [&str; 6] = [
    "vision_tower.",
    "multi_modal_projector.",
    "visual.",
    "model.vision_tower.",
    "model.multi_modal_projector.",
    "model.visual.",
];

/// All tensors of a checkpoint, mapped into memory and handed out one by one.
///
/// One file or many shards are the same thing from here on. Nothing is read before it is taken, and what nobody took is
/// found out by [`finish`](Self::finish). The files must not change while they are mapped.
pub(crate) struct Checkpoint {
    shards: Vec<Shard>,
    tensors: BTreeMap<String, Located>,
    taken: BTreeSet<String>,
}

/// One mapped safetensors file.
struct Shard {
    path: PathBuf,
    map: Mmap,
    /// Where the tensors' bytes begin.
    data: usize,
}

/// A tensor and where its bytes are.
#[derive(Clone, Debug)]
struct Located {
    shard: usize,
    info: TensorInfo,
}

impl Checkpoint {
    /// Maps `model.safetensors`, or else every shard that `model.safetensors.index.json` names, and checks all headers.
    ///
    /// The index must name files by relative paths that stay inside the folder, each of its entries must be in the
    /// shard it names, and each tensor of a shard must be listed, for that shard.
    pub(crate) fn open(folder: &Folder) -> Result<Self, Error> {
        let single = folder.file(file::WEIGHTS);
        if single.is_file() { Self::open_shards(vec![single]) } else { Self::open_index(folder) }
    }

    /// One file of tensors.
    pub(crate) fn of_file(path: PathBuf) -> Result<Self, Error> {
        Self::open_shards(vec![path])
    }

    /// The shape of a tensor, if there is one of this name.
    pub(crate) fn shape(&self, name: &str) -> Option<&[usize]> {
        self.tensors.get(name).map(|located| located.info.shape.as_slice())
    }

    /// Says that a tensor is not needed.
    pub(crate) fn pass_over(&mut self, name: &str) {
        self.taken.insert(name.to_owned());
    }

    /// The names of all tensors.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    fn open_index(folder: &Folder) -> Result<Self, Error> {
        let path = folder.file(file::WEIGHTS_INDEX);
        let fault = |problem| Error::Index { path: path.clone(), problem };
        let index = read_json(&path)?;
        let Some(map) = index.get("weight_map").and_then(Value::as_object) else {
            return Err(fault(IndexProblem::NoWeightMap));
        };
        let mut shards = Vec::<String>::new();
        let mut listed = BTreeMap::new();
        for (tensor, shard) in map {
            let Some(shard) = shard.as_str() else {
                return Err(fault(IndexProblem::NotAName { tensor: tensor.clone() }));
            };
            if !stays_inside(Path::new(shard)) {
                return Err(fault(IndexProblem::OutsideFolder { tensor: tensor.clone(), shard: shard.to_owned() }));
            }
            let number = shards.iter().position(|s| s == shard).unwrap_or_else(|| {
                shards.push(shard.to_owned());
                shards.len() - 1
            });
            listed.insert(tensor.as_str(), number);
        }
        let checkpoint = Self::open_shards(shards.iter().map(|s| folder.file(s)).collect())?;
        for (&tensor, &number) in &listed {
            if checkpoint.tensors.get(tensor).is_none_or(|found| found.shard != number) {
                return Err(fault(IndexProblem::NotInShard {
                    tensor: tensor.to_owned(),
                    shard: shards[number].clone(),
                }));
            }
        }
        if let Some((tensor, found)) = checkpoint.tensors.iter().find(|(name, _)| !listed.contains_key(name.as_str())) {
            return Err(fault(IndexProblem::Unlisted { tensor: tensor.clone(), shard: shards[found.shard].clone() }));
        }
        Ok(checkpoint)
    }

    fn open_shards(paths: Vec<PathBuf>) -> Result<Self, Error> {
        let mut shards = Vec::with_capacity(paths.len());
        let mut tensors = BTreeMap::<String, Located>::new();
        for (number, path) in paths.into_iter().enumerate() {
            let (shard, infos) = Shard::open(path)?;
            shards.push(shard);
            for (name, info) in infos {
                if let Some(first) = tensors.get(&name) {
                    return Err(Error::Tensor {
                        path: shards[number].path.clone(),
                        tensor: name,
                        problem: TensorProblem::Twice { first: shards[first.shard].path.clone() },
                    });
                }
                tensors.insert(name, Located { shard: number, info });
            }
        }
        Ok(Self { shards, tensors, taken: BTreeSet::new() })
    }

    /// Whether there is a tensor of this name.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// Some of a tensor's numbers in f32; inside, the index of the first that is not finite.
    fn widened(&self, located: &Located, name: &str, bytes: &[u8]) -> Result<Result<Vec<f32>, (usize, f32)>, Error> {
        Ok(match located.info.dtype {
            Stored::F32 => convert(bytes, f32::from_le_bytes),
            Stored::F16 => convert(bytes, |b| f16::from_le_bytes(b).to_f32()),
            Stored::BF16 => convert(bytes, |b| bf16::from_le_bytes(b).to_f32()),
            other => {
                return Err(self.fault(located, name, TensorProblem::Dtype { found: format!("{other:?}") }));
            }
        })
    }

    fn locate(&self, name: &str, shape: &[usize]) -> Result<&Located, Error> {
        let Some(located) = self.tensors.get(name) else {
            return Err(Error::TensorNames { missing: vec![name.to_owned()], unused: Vec::new() });
        };
        if located.info.shape != shape {
            let problem = TensorProblem::Shape { expected: shape.to_vec(), found: located.info.shape.clone() };
            return Err(self.fault(located, name, problem));
        }
        Ok(located)
    }

    fn fault(&self, located: &Located, name: &str, problem: TensorProblem) -> Error {
        Error::Tensor { path: self.shards[located.shard].path.clone(), tensor: name.to_owned(), problem }
    }

    /// The dtype that most of the checkpoint's numbers are nearest to: [`Dtype::Bf16`] for bf16 and f16, else
    /// [`Dtype::F32`].
    pub(crate) fn stored_dtype(&self) -> Dtype {
        let (mut half, mut all) = (0u64, 0u64);
        for Located { info, .. } in self.tensors.values() {
            let count = info.shape.iter().product::<usize>() as u64;
            all += count;
            if matches!(info.dtype, Stored::BF16 | Stored::F16) {
                half += count;
            }
        }
        if half > all / 2 { Dtype::Bf16 } else { Dtype::F32 }
    }

    /// Whether some of its numbers are f16, whose eleven bits become eight where they are rounded to bf16.
    pub(crate) fn has_f16(&self) -> bool {
        self.tensors.values().any(|located| located.info.dtype == Stored::F16)
    }

    /// Calls the tensors what `own` calls them, and does not look at those for which that has no name.
    ///
    /// # Errors
    /// If two get one name.
    pub(crate) fn rename(&mut self, own: impl Fn(&str) -> Option<String>) -> Result<(), Error> {
        for (stored, located) in std::mem::take(&mut self.tensors) {
            let Some(name) = own(&stored) else { continue };
            if let Some(first) = self.tensors.insert(name, located.clone()) {
                let first = self.shards[first.shard].path.clone();
                return Err(self.fault(&located, &stored, TensorProblem::Twice { first }));
            }
        }
        Ok(())
    }

    /// Looks at the text model of a vision-language folder alone, under the names that it would have in a folder of its own.
    pub(crate) fn text_tower(&mut self) {
        let tensors = std::mem::take(&mut self.tensors).into_iter();
        let own = tensors.filter(|(name, _)| !OTHER_TOWERS.iter().any(|other| name.starts_with(other)));
        self.tensors = own
            .map(|(name, located)| {
                let renamed = TOWERS.iter().find_map(|(from, to)| Some(format!("{to}{}", name.strip_prefix(from)?)));
                (renamed.unwrap_or(name), located)
            })
            .collect();
    }

    /// Fails if `expected` names a tensor that is absent, or if there is one that it does not name, and lists both; or if one has another
    /// shape. Rotary frequency buffers, which old checkpoints carry and every model recomputes, may be there; so may an output head that is,
    /// bit for bit, the embedding it is tied to.
    pub(crate) fn check(&self, expected: &[(String, Vec<usize>)]) -> Result<(), Error> {
        self.check_names(expected.iter().map(|(name, _)| name.as_str()))?;
        expected.iter().try_for_each(|(name, shape)| self.locate(name, shape).map(|_| ()))
    }

    fn check_names<'a>(&self, expected: impl IntoIterator<Item = &'a str>) -> Result<(), Error> {
        let expected: BTreeSet<&str> = expected.into_iter().collect();
        let missing: Vec<_> = expected.iter().filter(|n| !self.contains(n)).map(|&n| n.to_owned()).collect();
        let unused: Vec<_> = self
            .tensors
            .keys()
            .filter(|name| !expected.contains(name.as_str()) && !self.is_redundant(name))
            .cloned()
            .collect();
        if missing.is_empty() && unused.is_empty() { Ok(()) } else { Err(Error::TensorNames { missing, unused }) }
    }

    /// Fails if a tensor was never taken; see [`check`](Self::check) for what may be left.
    pub(crate) fn finish(self) -> Result<(), Error> {
        self.check_names(self.taken.iter().map(String::as_str))
    }

    /// Name, stored dtype, shape and bytes of every tensor, by name: independent of how they are cut into shards.
    pub(crate) fn raw(&self) -> impl Iterator<Item = (&str, &TensorInfo, &[u8])> {
        self.tensors.iter().map(|(name, located)| (name.as_str(), &located.info, self.bytes(located)))
    }

    fn is_redundant(&self, name: &str) -> bool {
        let same = |a: &Located, b: &Located| {
            a.info.dtype == b.info.dtype && a.info.shape == b.info.shape && self.bytes(a) == self.bytes(b)
        };
        // A head that predicts further tokens, which nothing here is written with.
        name.starts_with("mtp.")
            || name.ends_with("rotary_emb.inv_freq")
            || name == "lm_head.weight"
                && match (self.tensors.get(name), self.tensors.get("model.embed_tokens.weight")) {
                    (Some(head), Some(embedding)) => same(head, embedding),
                    _ => false,
                }
    }

    fn bytes(&self, located: &Located) -> &[u8] {
        let shard = &self.shards[located.shard];
        let (start, end) = located.info.data_offsets;
        // `Shard::open` checked both offsets against the file's length.
        &shard.map[shard.data + start..shard.data + end]
    }
}

impl Tensors for Checkpoint {
    fn take(&mut self, name: &str, shape: &[usize], dtype: Dtype) -> Result<Vec<f32>, Error> {
        let located = self.locate(name, shape)?;
        let fault = |problem| self.fault(located, name, problem);
        let mut values = self
            .widened(located, name, self.bytes(located))?
            .map_err(|(index, value)| fault(TensorProblem::NonFinite { index, value }))?;
        if dtype == Dtype::Bf16 {
            values.iter_mut().for_each(|x| *x = bf16::from_f32(*x).to_f32());
            if let Some(index) = values.iter().position(|x| !x.is_finite()) {
                return Err(fault(TensorProblem::NonFinite { index, value: values[index] }));
            }
        }
        self.taken.insert(name.to_owned());
        Ok(values)
    }

    /// The file's pages are let go of as they have been read.
    fn take_rows(
        &mut self,
        name: &str,
        shape: [usize; 2],
        dtype: Dtype,
        take: &mut dyn FnMut(usize, Numbers<'_>),
    ) -> Result<(), Error> {
        let located = self.locate(name, &shape)?;
        let fault = |problem| self.fault(located, name, problem);
        let rows = (ROWS_AT_ONCE / shape[1].max(1)).max(1);
        let bytes = self.bytes(located);
        let width = located.info.dtype.bitsize() / 8 * shape[1];
        for (chunk, bytes) in bytes.chunks((rows * width).max(1)).enumerate() {
            let first = chunk * rows;
            let not_finite =
                |(index, value)| fault(TensorProblem::NonFinite { index: first * shape[1] + index, value });
            match dtype {
                Dtype::F32 => take(first, Numbers::F32(&self.widened(located, name, bytes)?.map_err(not_finite)?)),
                Dtype::Bf16 => {
                    let values = match located.info.dtype {
                        Stored::F32 => round(bytes, |b| bf16::from_f32(f32::from_le_bytes(b))),
                        Stored::F16 => round(bytes, |b| bf16::from_f32(f16::from_le_bytes(b).to_f32())),
                        Stored::BF16 => round(bytes, bf16::from_le_bytes),
                        other => return Err(fault(TensorProblem::Dtype { found: format!("{other:?}") })),
                    };
                    take(first, Numbers::Bf16(&values.map_err(not_finite)?));
                }
            }
            self.shards[located.shard].let_go(bytes);
        }
        self.taken.insert(name.to_owned());
        Ok(())
    }
}

impl Shard {
    /// Says that a part of the map is not needed for now.
    fn let_go(&self, bytes: &[u8]) {
        #[cfg(unix)]
        {
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

    /// Maps a file and checks its whole header: every range within the file, as long as its dtype and shape say, none
    /// over another, no byte between or after them.
    fn open(path: PathBuf) -> Result<(Self, BTreeMap<String, TensorInfo>), Error> {
        let read = |source| Error::Read { path: path.clone(), source };
        let file = File::open(&path).map_err(read)?;
        // SAFETY: the map is read-only. A file that somebody shortens meanwhile would end
        // the process with SIGBUS; there is no portable defence but a copy, and the type's documentation says so.
        let map = unsafe { Mmap::map(&file) }.map_err(read)?;
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
        let expected = data as u64 + end as u64;
        if expected > found {
            return Err(fault(FileProblem::Truncated { expected, found }));
        }
        if expected < found {
            return Err(fault(FileProblem::Trailing { expected, found }));
        }
        Ok((Self { path, map, data }, infos))
    }
}

/// Checks that the ranges follow one another without gap or overlap, each as long as its tensor, and returns the last
/// one's end.
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

/// Little-endian numbers of `N` bytes each, rounded to bf16; the first that is not finite is an error, with its index.
fn round<const N: usize>(bytes: &[u8], round: impl Fn([u8; N]) -> bf16 + Sync) -> Result<Vec<bf16>, (usize, f32)> {
    convert_to(bytes, bf16::ZERO, round, |value| value.to_f32())
}

/// Little-endian numbers of `N` bytes each as `f32`; the first that is not finite is an error, with its index.
fn convert<const N: usize>(bytes: &[u8], widen: impl Fn([u8; N]) -> f32 + Sync) -> Result<Vec<f32>, (usize, f32)> {
    convert_to(bytes, 0.0, widen, |value| value)
}

fn convert_to<const N: usize, T: Copy + Send + Sync>(
    bytes: &[u8],
    zero: T,
    from: impl Fn([u8; N]) -> T + Sync,
    value: impl Fn(T) -> f32 + Sync,
) -> Result<Vec<T>, (usize, f32)> {
    let (numbers, _) = bytes.as_chunks::<N>();
    let mut values = vec![zero; numbers.len()];
    let bad = values
        .par_chunks_mut(CHUNK)
        .zip(numbers.par_chunks(CHUNK))
        .enumerate()
        .filter_map(|(chunk, (values, numbers))| {
            let mut finite = true;
            for (converted, &number) in values.iter_mut().zip(numbers) {
                *converted = from(number);
                finite &= value(*converted).is_finite();
            }
            if finite { None } else { values.iter().position(|&v| !value(v).is_finite()).map(|i| chunk * CHUNK + i) }
        })
        .min();
    match bad {
        Some(index) => Err((index, value(values[index]))),
        None => Ok(values),
    }
}
