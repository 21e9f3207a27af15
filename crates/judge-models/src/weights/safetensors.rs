//! The tensors of safetensors files, found by name and handed out one by one.

pub(super) mod shard;
mod stacks;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use half::{bf16, f16};
use safetensors::Dtype as Stored;
use safetensors::tensor::TensorInfo;
use serde_json::Value;

use self::shard::Shard;
use super::convert::{convert, round};
use super::raw::Raw;
use super::table::Mapped;
use super::{Numbers, Store, Table, Tensors};
use crate::error::{IndexProblem, TensorProblem};
use crate::folder::{Folder, file, read_json, stays_inside};
use crate::{Dtype, Error};

/// Elements of a matrix that are converted before they are packed.
const ROWS_AT_ONCE: usize = 1 << 22;

/// What the text model's tensors are called inside a vision-language folder, before and since transformers 5, and what they are called in a folder of its own.
const TOWERS: [(&str, &str); 3] =
    [("language_model.model.", "model."), ("language_model.lm_head.", "lm_head."), ("model.language_model.", "model.")];

/// Beginnings of the names of all else in such a folder.
const OTHER_TOWERS: [&str; 9] = [
    "vision_tower.",
    "multi_modal_projector.",
    "visual.",
    "model.vision_tower.",
    "model.multi_modal_projector.",
    "model.visual.",
    "model.audio_tower.",
    "model.embed_vision.",
    "model.embed_audio.",
];

/// All tensors of a checkpoint, mapped into memory and handed out one by one.
///
/// One file or many shards are the same thing from here on. Nothing is read before it is taken, and what nobody took is
/// found out by [`finish`](Self::finish). The files must not change while they are mapped.
pub(crate) struct Checkpoint {
    shards: Vec<Arc<Shard>>,
    tensors: BTreeMap<String, Located>,
    taken: BTreeSet<String>,
}

/// A tensor and where its bytes are.
#[derive(Clone, Debug)]
struct Located {
    shard: usize,
    info: TensorInfo,
    /// How far apart its rows and columns are, where they are other tensors' too; its bytes then go from its first number to its last.
    strides: Option<[usize; 2]>,
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

    /// A tensor as it is stored, if there is one of this name.
    pub(crate) fn raw(&self, name: &str) -> Option<Raw<'_>> {
        self.tensors.get_key_value(name).map(|(name, located)| self.raw_of(name, located))
    }

    fn raw_of<'a>(&'a self, name: &'a str, located: &'a Located) -> Raw<'a> {
        let Located { shard, info, .. } = located;
        let path = &self.shards[*shard].path;
        Raw { path, name, dtype: info.dtype, shape: &info.shape, bytes: self.bytes(located) }
    }

    /// Says that some of a tensor's rows, of so many, are not needed any more.
    pub(super) fn let_go(&self, name: &str, rows: Range<usize>, of: usize) {
        if let Some(located) = self.tensors.get(name) {
            let bytes = self.bytes(located);
            let row = bytes.len() / of.max(1);
            self.shards[located.shard].let_go(&bytes[rows.start * row..rows.end * row]);
        }
    }

    fn open_index(folder: &Folder) -> Result<Self, Error> {
        let path = folder.file(file::WEIGHTS_INDEX);
        let fault = |problem| Error::Index { path: path.clone(), problem };
        let index = read_json(&path)?;
        let Some(map) = index.get("weight_map").and_then(Value::as_object) else {
            return Err(fault(IndexProblem::NoWeightMap));
        };
        let mut shards = Vec::<&str>::new();
        let (mut numbers, mut listed) = (BTreeMap::new(), BTreeMap::new());
        for (tensor, shard) in map {
            let Some(shard) = shard.as_str() else {
                return Err(fault(IndexProblem::NotAName { tensor: tensor.clone() }));
            };
            if !stays_inside(Path::new(shard)) {
                return Err(fault(IndexProblem::OutsideFolder { tensor: tensor.clone(), shard: shard.to_owned() }));
            }
            let number = *numbers.entry(shard).or_insert_with(|| {
                shards.push(shard);
                shards.len() - 1
            });
            listed.insert(tensor.as_str(), number);
        }
        let checkpoint = Self::open_shards(shards.iter().map(|s| folder.file(s)).collect())?;
        for (&tensor, &number) in &listed {
            if checkpoint.tensors.get(tensor).is_none_or(|found| found.shard != number) {
                return Err(fault(IndexProblem::NotInShard {
                    tensor: tensor.to_owned(),
                    shard: shards[number].to_owned(),
                }));
            }
        }
        if let Some((tensor, found)) = checkpoint.tensors.iter().find(|(name, _)| !listed.contains_key(name.as_str())) {
            return Err(fault(IndexProblem::Unlisted {
                tensor: tensor.clone(),
                shard: shards[found.shard].to_owned(),
            }));
        }
        Ok(checkpoint)
    }

    fn open_shards(paths: Vec<PathBuf>) -> Result<Self, Error> {
        let mut shards = Vec::with_capacity(paths.len());
        let mut tensors = BTreeMap::<String, Located>::new();
        for (number, path) in paths.into_iter().enumerate() {
            let (shard, infos) = Shard::open(path)?;
            shards.push(Arc::new(shard));
            for (name, info) in infos {
                if let Some(first) = tensors.get(&name) {
                    return Err(Error::Tensor {
                        path: shards[number].path.clone(),
                        tensor: name,
                        problem: TensorProblem::Twice { first: shards[first.shard].path.clone() },
                    });
                }
                tensors.insert(name, Located { shard: number, info, strides: None });
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

    /// Does not look at tensors whose names begin like one of these.
    pub(crate) fn forget(&mut self, beginnings: impl Iterator<Item = String>) {
        for beginning in beginnings {
            self.tensors.retain(|name, _| !name.starts_with(&beginning));
        }
    }

    fn bytes(&self, located: &Located) -> &[u8] {
        let shard = &self.shards[located.shard];
        let (start, end) = located.info.data_offsets;
        // `Shard::open` checked both offsets against the file's length.
        &shard.map[shard.data + start..shard.data + end]
    }
}

impl Store for Checkpoint {
    /// The dtype that most of the checkpoint's numbers are nearest to: [`Dtype::Bf16`] for bf16 and f16, else
    /// [`Dtype::F32`].
    fn stored_dtype(&self) -> Dtype {
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

    fn has_f16(&self) -> bool {
        self.tensors.values().any(|located| located.info.dtype == Stored::F16)
    }

    fn names(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        Box::new(self.tensors.keys().map(String::as_str))
    }

    fn taken(&self) -> &BTreeSet<String> {
        &self.taken
    }

    /// Rotary frequency buffers, which old checkpoints carry and every model recomputes, and
    /// an output head that is, bit for bit, the embedding it is tied to.
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

    fn expect(&self, name: &str, shape: &[usize]) -> Result<(), Error> {
        self.locate(name, shape).map(|_| ())
    }

    fn contents(&self) -> Box<dyn Iterator<Item = (&str, String, &[u8])> + '_> {
        let described = |located: &Located| format!("{:?} {:?}", located.info.dtype, located.info.shape);
        Box::new(
            self.tensors.iter().map(move |(name, located)| (name.as_str(), described(located), self.bytes(located))),
        )
    }
}

impl Tensors for Checkpoint {
    fn pass_over(&mut self, name: &str) {
        self.taken.insert(name.to_owned());
    }

    fn table(&mut self, name: &str, shape: [usize; 2], dtype: Dtype) -> Result<Table, Error> {
        let located = self.locate(name, &shape)?;
        let Located { shard, info, .. } = located;
        if !matches!(info.dtype, Stored::F32 | Stored::F16 | Stored::BF16) {
            return Err(self.fault(located, name, TensorProblem::Dtype { found: format!("{:?}", info.dtype) }));
        }
        let shard = Arc::clone(&self.shards[*shard]);
        let bytes = shard.data + info.data_offsets.0..shard.data + info.data_offsets.1;
        let table = Table::mapped(shape, Mapped { shard, bytes, stored: info.dtype, dtype });
        self.taken.insert(name.to_owned());
        Ok(table)
    }

    fn take(&mut self, name: &str, shape: &[usize], dtype: Dtype) -> Result<Vec<f32>, Error> {
        let located = self.locate(name, shape)?;
        let fault = |problem| self.fault(located, name, problem);
        let mut values = self
            .widened(located, name, &self.rows(located, 0..shape.first().copied().unwrap_or(1)))?
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
        for first in (0..shape[0]).step_by(rows) {
            let bytes = &*self.rows(located, first..shape[0].min(first + rows));
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
            // What was gathered is a copy.
            let read = if located.strides.is_none() { bytes } else { self.bytes(located) };
            self.shards[located.shard].let_go(read);
        }
        self.taken.insert(name.to_owned());
        Ok(())
    }
}
