//! The tensors of safetensors files, and of those of torch.save, found by name and handed out one by one.
//!
//! [`Checkpoint`] is the reader of dense folders, the lower half of quantised ones (`quantised.rs`
//! takes `Raw` tensors from it), and the reader of an adapter's tensors (`lora.rs`). It owns
//! names, places and conversion. The header of one file belongs to `shard.rs`, tensors inside other
//! tensors to `stacks.rs`.
//!
//! Opening maps every file and builds one map from names to `Located` tensors; whether there was
//! one file or many makes no difference from then on. What the model calls otherwise is renamed in
//! this map before anything is taken: [`rename`](Checkpoint::rename), then
//! [`forget`](Checkpoint::forget), then `unstack`. Numbers are
//! read when they are taken, and their pages are given back to the system once they have been
//! handed over by rows.
//!
//! What an index must look like, of which only `weight_map` is read. It says which files there are, and which of them counts for a
//! tensor that is in two; which tensors there are, the files say:
//!
//! ```text
//!  {"metadata": ..., "weight_map": {"lm_head.weight": "model-00002-of-00002.safetensors", ...}}
//! ```
//!
//! The order of files and of tensors in them means nothing: tensors are kept sorted by name.

pub(crate) mod shard;
mod stacks;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use half::{bf16, f16};
use judge_kernels::numbers::Numbers;
use safetensors::Dtype as Stored;
use safetensors::tensor::TensorInfo;
use serde_json::Value;

use self::shard::Shard;
use super::convert::convert;
use super::names::is_needless;
use super::raw::Raw;
use super::table::{Mapped, Table};
use super::tensors::{Store, TakeRows, Tensors};
use crate::error::{IndexProblem, TensorProblem};
use crate::file;
use crate::names::{EMBEDDING, HEAD};
use crate::read::{is_pickle, read_json, shard_path};
use crate::{Dtype, Error};

/// Elements of a matrix that are converted at a time: 16 MiB of f32, or one row if that has more.
const ROWS_AT_ONCE: usize = 1 << 22;

/// All tensors of a checkpoint, mapped into memory and handed out one by one.
///
/// Nothing is read before it is taken, and [`Store::finish`] names what nobody took. The files must
/// not change while they are mapped: a file that is shortened meanwhile ends the process with
/// SIGBUS.
pub struct Checkpoint {
    /// The mapped files. Tables that stay in their file share them.
    shards: Vec<Arc<Shard>>,
    /// The tensors by the names that the model has for them.
    tensors: BTreeMap<String, Located>,
    /// Names that were taken or passed over.
    taken: BTreeSet<String>,
    /// Tensors that the index puts into files that are not there, with these files.
    absent: BTreeMap<String, PathBuf>,
}

/// A tensor and where its bytes are.
#[derive(Clone, Debug)]
struct Located {
    /// Index of its file in `Checkpoint::shards`.
    shard: usize,
    /// Dtype, shape, and the range of bytes behind the file's header.
    info: TensorInfo,
    /// How far apart neighbours along rows and columns are, in elements, for a part of a stack
    /// whose numbers do not lie side by side: `[down, right]`. The range of bytes then goes from
    /// the part's first number to its last and holds numbers of other parts too. `None`: dense and
    /// row-major.
    strides: Option<[usize; 2]>,
}

impl Checkpoint {
    /// The tensors of one file, such as an adapter's.
    pub fn of_file(path: PathBuf) -> Result<Self, Error> {
        Self::open_shards(vec![path], &BTreeMap::new())
    }

    /// The shape of a tensor, if there is one of this name.
    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        self.tensors.get(name).map(|located| located.info.shape.as_slice())
    }

    /// A tensor as it is stored, if there is one of this name. Of a strided part of a stack `bytes`
    /// holds other parts' numbers too, so readers of codes do not get such parts:
    /// `quantised/part.rs` cuts their stacks.
    pub(crate) fn raw(&self, name: &str) -> Option<Raw<'_>> {
        self.tensors.get_key_value(name).map(|(name, located)| self.raw_of(name, located))
    }

    /// The stored form of a located tensor.
    fn raw_of<'a>(&'a self, name: &'a str, located: &'a Located) -> Raw<'a> {
        let Located { shard, info, .. } = located;
        let path = &self.shards[*shard].path;
        Raw { path, name, dtype: info.dtype, shape: &info.shape, bytes: self.bytes(located) }
    }

    /// Gives back the pages of some of a tensor's rows, where the tensor has `of` rows in all.
    /// Later reads fetch them from the file again.
    pub fn let_go(&self, name: &str, rows: Range<usize>, of: usize) {
        if let Some(located) = self.tensors.get(name) {
            let bytes = self.bytes(located);
            let row = bytes.len() / of.max(1);
            self.shards[located.shard].let_go(&bytes[rows.start * row..rows.end * row]);
        }
    }

    /// Maps every shard that an index names, such as `model.safetensors.index.json`, as far as they are there, and checks all headers.
    /// The index is read before any shard is mapped, so a path that leads out of the folder is never opened.
    ///
    /// The index must name files by relative paths that stay inside its folder. It may list tensors
    /// that its files do not have, and files may have others: programs that cut parts off a model
    /// leave the index as it was. Files that are not there matter to
    /// [`rename`](Self::rename), which knows what is needed.
    ///
    /// # Errors
    /// [`Error::Index`] for an index without `weight_map`, and for an entry that is no text or no
    /// path inside the folder; those of `Shard::open`.
    pub fn of_index(path: PathBuf) -> Result<Self, Error> {
        let fault = |problem| Error::Index { path: path.clone(), problem };
        let index = read_json(&path)?;
        let Some(map) = index.get("weight_map").and_then(Value::as_object) else {
            return Err(fault(IndexProblem::NoWeightMap));
        };
        let (mut shards, mut absent, mut places) = (Vec::<PathBuf>::new(), BTreeMap::new(), BTreeMap::new());
        for (tensor, shard) in map {
            let Some(shard) = shard.as_str() else {
                return Err(fault(IndexProblem::NotAName { tensor: tensor.clone() }));
            };
            let shard = path.with_file_name("").join(shard_path(tensor, shard).map_err(fault)?);
            if !shard.is_file() {
                absent.insert(tensor.clone(), shard);
                continue;
            }
            if !shards.contains(&shard) {
                shards.push(shard.clone());
            }
            places.insert(tensor.as_str(), shard);
        }
        Ok(Self { absent, ..Self::open_shards(shards, &places)? })
    }

    /// Maps files and joins their tensors. Of a name that is in two of them the file counts that the index names for it (`places`); it is
    /// an error if the index names neither.
    fn open_shards(paths: Vec<PathBuf>, places: &BTreeMap<&str, PathBuf>) -> Result<Self, Error> {
        let mut shards = Vec::with_capacity(paths.len());
        let mut tensors = BTreeMap::<String, Located>::new();
        for path in paths {
            for (shard, infos) in Shard::open(path)? {
                let number = shards.len();
                shards.push(Arc::new(shard));
                for (name, info) in infos {
                    if let Some(first) = tensors.get(&name) {
                        let place = places.get(name.as_str());
                        let [first, path] = [first.shard, number].map(|shard| &shards[shard].path);
                        if place == Some(first) {
                            continue;
                        }
                        if place != Some(path) {
                            let problem = TensorProblem::Twice { first: first.clone() };
                            return Err(Error::Tensor { path: path.clone(), tensor: name, problem });
                        }
                    }
                    tensors.insert(name, Located { shard: number, info, strides: None });
                }
            }
        }
        Ok(Self { shards, tensors, taken: BTreeSet::new(), absent: BTreeMap::new() })
    }

    /// Whether there is a tensor of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// Some of a tensor's numbers: each is widened to f32, and `from` makes the result of that. The outer error is a dtype that is not read;
    /// the inner one is the index and the value of the first result that is not finite, counted from the first of these bytes.
    fn numbers<T: Copy + Default + Into<f32> + Send + Sync>(
        &self,
        located: &Located,
        name: &str,
        bytes: &[u8],
        from: impl Fn(f32) -> T + Sync,
    ) -> Result<Result<Vec<T>, (usize, f32)>, Error> {
        Ok(match located.info.dtype {
            Stored::F64 => convert(bytes, |b| from(f64::from_le_bytes(b) as f32)),
            Stored::F32 => convert(bytes, |b| from(f32::from_le_bytes(b))),
            Stored::F16 => convert(bytes, |b| from(f16::from_le_bytes(b).to_f32())),
            Stored::BF16 => convert(bytes, |b| from(bf16::from_le_bytes(b).to_f32())),
            other => {
                return Err(self.fault(located, name, TensorProblem::Dtype { found: format!("{other:?}") }));
            }
        })
    }

    /// A tensor, if there is one of exactly this shape.
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

    /// The error of a tensor, with the file that it is in.
    fn fault(&self, located: &Located, name: &str, problem: TensorProblem) -> Error {
        Error::Tensor { path: self.shards[located.shard].path.clone(), tensor: name.to_owned(), problem }
    }

    /// Gives tensors the names that `own` has for them, and drops those for which it has none.
    ///
    /// # Errors
    /// [`TensorProblem::Twice`] if two tensors get one name, and [`Error::Index`] if a file of the
    /// index is not there that has tensors which the model may need.
    pub fn rename(&mut self, own: impl Fn(&str) -> Option<String>) -> Result<(), Error> {
        let needed = |(tensor, _): &(&String, &PathBuf)| own(tensor).is_some_and(|own| !is_needless(&own));
        if let Some((tensor, shard)) = self.absent.iter().find(needed) {
            let is_pickle = shard.file_name().and_then(|name| name.to_str()).is_some_and(is_pickle);
            let path = shard.with_file_name(if is_pickle { file::PICKLE_INDEX } else { file::WEIGHTS_INDEX });
            let shard = shard.file_name().unwrap_or_default().to_string_lossy().into_owned();
            return Err(Error::Index { path, problem: IndexProblem::NoShard { tensor: tensor.clone(), shard } });
        }
        for (stored, located) in std::mem::take(&mut self.tensors) {
            let Some(name) = own(&stored) else { continue };
            if let Some(first) = self.tensors.insert(name, located.clone()) {
                let first = self.shards[first.shard].path.clone();
                return Err(self.fault(&located, &stored, TensorProblem::Twice { first }));
            }
        }
        Ok(())
    }

    /// Drops tensors whose names begin with one of these.
    pub fn forget(&mut self, beginnings: impl Iterator<Item = String>) {
        for beginning in beginnings {
            self.tensors.retain(|name, _| !name.starts_with(&beginning));
        }
    }

    /// The bytes of a tensor in the map; of a strided part those of the range that it lies in.
    fn bytes(&self, located: &Located) -> &[u8] {
        let shard = &self.shards[located.shard];
        let (start, end) = located.info.data_offsets;
        // `Shard::open` checked both offsets against the file's length.
        &shard.map[shard.data + start..shard.data + end]
    }
}

impl Store for Checkpoint {
    /// [`Dtype::Bf16`] if more than half of the numbers are bf16 or f16, else [`Dtype::F32`].
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

    fn plain(&self) -> Box<dyn Iterator<Item = (Stored, usize)> + '_> {
        Box::new(self.tensors.values().map(|located| (located.info.dtype, located.info.shape.len())))
    }

    /// Sorted.
    fn names(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        Box::new(self.tensors.keys().map(String::as_str))
    }

    fn taken(&self) -> &BTreeSet<String> {
        &self.taken
    }

    /// What no model needs (`is_needless`), and a head that is, bit for bit, the embedding: it need
    /// not be there twice.
    fn is_redundant(&self, name: &str) -> bool {
        let same = |a: &Located, b: &Located| {
            a.info.dtype == b.info.dtype && a.info.shape == b.info.shape && self.bytes(a) == self.bytes(b)
        };
        is_needless(name)
            || name == HEAD
                && match (self.tensors.get(HEAD), self.tensors.get(EMBEDDING)) {
                    (Some(head), Some(embedding)) => same(head, embedding),
                    _ => false,
                }
    }

    /// Looks at the header only.
    fn expect(&self, name: &str, shape: &[usize]) -> Result<(), Error> {
        self.locate(name, shape).map(|_| ())
    }

    fn reads_are_scattered(&self, are_scattered: bool) {
        self.shards.iter().for_each(|shard| shard.advise(are_scattered));
    }

    /// Dtypes by their names in the file. A part of a stack is described by its own shape.
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

    /// The table stays in the file: nothing is read or checked but dtype and shape.
    fn table(&mut self, name: &str, shape: [usize; 2], dtype: Dtype) -> Result<Table, Error> {
        let located = self.locate(name, &shape)?;
        let Located { shard, info, .. } = located;
        if !matches!(info.dtype, Stored::F64 | Stored::F32 | Stored::F16 | Stored::BF16) {
            return Err(self.fault(located, name, TensorProblem::Dtype { found: format!("{:?}", info.dtype) }));
        }
        let shard = Arc::clone(&self.shards[*shard]);
        let bytes = shard.data + info.data_offsets.0..shard.data + info.data_offsets.1;
        let table = Table::mapped(shape, Mapped { shard, bytes, stored: info.dtype, dtype });
        self.taken.insert(name.to_owned());
        Ok(table)
    }

    /// All numbers at once. They are rounded by way of f32, which gives the same bits as
    /// [`take_rows`](Tensors::take_rows).
    fn take(&mut self, name: &str, shape: &[usize], dtype: Dtype) -> Result<Vec<f32>, Error> {
        let located = self.locate(name, shape)?;
        let fault = |problem| self.fault(located, name, problem);
        let mut values = self
            .numbers(located, name, &self.rows(located, 0..shape.first().copied().unwrap_or(1)), |x| x)?
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

    /// Matrices. The file's pages are given back as they have been read, so loading a model needs
    /// no memory for its file beside that for the engine's weights.
    fn take_rows(&mut self, name: &str, shape: [usize; 2], dtype: Dtype, take: TakeRows<'_>) -> Result<(), Error> {
        let located = self.locate(name, &shape)?;
        let fault = |problem| self.fault(located, name, problem);
        let rows = (ROWS_AT_ONCE / shape[1].max(1)).max(1);
        for first in (0..shape[0]).step_by(rows) {
            let bytes = &*self.rows(located, first..shape[0].min(first + rows));
            let not_finite =
                |(index, value)| fault(TensorProblem::NonFinite { index: first * shape[1] + index, value });
            match dtype {
                Dtype::F32 | Dtype::Tf32 => {
                    take(first, Numbers::F32(&self.numbers(located, name, bytes, |x| x)?.map_err(not_finite)?))
                }
                Dtype::Bf16 => {
                    let values = match located.info.dtype {
                        Stored::BF16 => convert(bytes, bf16::from_le_bytes),
                        _ => self.numbers(located, name, bytes, bf16::from_f32)?,
                    };
                    take(first, Numbers::Bf16(&values.map_err(not_finite)?));
                }
            }
            // Gathered bytes are a copy; the pages that they came from are the whole range's.
            let read = if located.strides.is_none() { bytes } else { self.bytes(located) };
            self.shards[located.shard].let_go(read);
        }
        self.taken.insert(name.to_owned());
        Ok(())
    }
}
