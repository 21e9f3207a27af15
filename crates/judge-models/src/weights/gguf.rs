//! Weights in a GGUF file beside an ordinary folder's `config.json` and tokenizer, of which nothing is read from the file itself.
//!
//! Tensors get the names, the order of rows and the values that they have in a Hugging Face folder: what the converter of llama.cpp changed is undone.

mod blocks;
mod header;
mod names;
mod problem;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::PathBuf;

use half::bf16;
use memmap2::Mmap;

use self::blocks::{Blocks, Kind, Permuted};
use self::header::{Entry, Header};
use self::names::{Architecture, FREQUENCIES};
use super::rows::{Rows, hand_over};
use super::{Numbers, Store, Tensors};
use crate::arch::ModelSpec;
use crate::error::TensorProblem;
use crate::{Dtype, Error};

pub use self::problem::GgufProblem;

/// What a file does not say in a way that could be trusted: the model that it is read for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadCounts {
    /// `model_type`.
    pub(crate) family: &'static str,
    pub(crate) queries: usize,
    pub(crate) keys: usize,
}

impl HeadCounts {
    /// Those of a model whose blocks have heads alike.
    pub(crate) fn of(spec: &ModelSpec) -> Self {
        let keys = spec.blocks.first().map_or(spec.n_heads, |block| block.heads.n_kv_heads);
        Self { family: spec.family, queries: spec.n_heads, keys }
    }
}

/// A mapped GGUF file. It must not change while it is mapped.
pub(crate) struct Gguf {
    path: PathBuf,
    map: Mmap,
    architecture: &'static Architecture,
    heads: HeadCounts,
    /// By the names that tensors have in a Hugging Face folder.
    tensors: BTreeMap<String, Entry>,
    taken: BTreeSet<String>,
}

impl Gguf {
    /// Maps a file and checks its header: every count and offset before anything is made for it.
    ///
    /// # Errors
    /// [`Error::Gguf`] for a damaged file, a type of tensor that is not read, or an architecture other than the model's.
    pub(crate) fn open(path: PathBuf, heads: HeadCounts) -> Result<Self, Error> {
        let read = |source| Error::Read { path: path.clone(), source };
        let file = File::open(&path).map_err(read)?;
        // SAFETY: the map is read-only; see `Shard::open` of the safetensors files.
        let map = unsafe { Mmap::map(&file) }.map_err(read)?;
        let fault = |problem| Error::Gguf { path: path.clone(), problem };
        let Header { architecture, tensors } = header::read(&map).map_err(fault)?;
        let architecture = Architecture::of(&architecture, heads.family).map_err(fault)?;
        let mut named = BTreeMap::new();
        for (name, entry) in tensors {
            let name = architecture.hugging_face(&name).unwrap_or(name);
            if named.contains_key(&name) {
                return Err(fault(GgufProblem::Twice { tensor: name }));
            }
            named.insert(name, entry);
        }
        Ok(Self { path, map, architecture, heads, tensors: named, taken: BTreeSet::new() })
    }

    fn fault(&self, name: &str, problem: TensorProblem) -> Error {
        Error::Tensor { path: self.path.clone(), tensor: name.to_owned(), problem }
    }

    fn locate(&self, name: &str, shape: &[usize]) -> Result<&Entry, Error> {
        let Some(entry) = self.tensors.get(name) else {
            return Err(Error::TensorNames { missing: vec![name.to_owned()], unused: Vec::new() });
        };
        let rows = shape.first().copied().unwrap_or(0);
        let swapped = self.swapped(name).is_some_and(|heads| !rows.is_multiple_of(2 * heads.max(1)));
        if entry.shape != shape || swapped {
            let problem = TensorProblem::Shape { expected: shape.to_vec(), found: entry.shape.clone() };
            return Err(self.fault(name, problem));
        }
        Ok(entry)
    }

    /// The number of heads whose rows were put into another order, if they were.
    fn swapped(&self, name: &str) -> Option<usize> {
        if !self.architecture.swaps_rows {
            None
        } else if name.contains(".q_proj.") {
            Some(self.heads.queries)
        } else {
            name.contains(".k_proj.").then_some(self.heads.keys)
        }
    }

    /// What is taken off each value.
    fn added(&self, name: &str) -> f32 {
        if self.architecture.adds_one && name.ends_with("norm.weight") { 1.0 } else { 0.0 }
    }

    fn rows<'a>(&'a self, name: &str, entry: &'a Entry, width: usize) -> Box<dyn Rows + 'a> {
        let blocks = Blocks { bytes: &self.map[entry.range.clone()], kind: entry.kind, width };
        match self.swapped(name) {
            Some(heads) => Box::new(Permuted { inner: blocks, per_head: entry.shape[0] / heads.max(1) }),
            None => Box::new(blocks),
        }
    }
}

impl Store for Gguf {
    /// [`Dtype::Bf16`] unless most of the numbers are f32.
    fn stored_dtype(&self) -> Dtype {
        let count = |entry: &Entry| entry.shape.iter().product::<usize>() as u64;
        let all: u64 = self.tensors.values().map(count).sum();
        let wide: u64 = self.tensors.values().filter(|entry| entry.kind.is_f32()).map(count).sum();
        if wide > all / 2 { Dtype::F32 } else { Dtype::Bf16 }
    }

    fn has_f16(&self) -> bool {
        self.tensors.values().any(|entry| entry.kind == Kind::F16)
    }

    fn vocabulary(&self, embedding: &str) -> Option<usize> {
        self.tensors.get(embedding).and_then(|entry| entry.shape.first().copied())
    }

    fn names(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        Box::new(self.tensors.keys().map(String::as_str))
    }

    fn taken(&self) -> &BTreeSet<String> {
        &self.taken
    }

    /// Divisors of the rotation's frequencies, which follow from `config.json`.
    fn is_redundant(&self, name: &str) -> bool {
        FREQUENCIES.contains(&name)
    }

    fn expect(&self, name: &str, shape: &[usize]) -> Result<(), Error> {
        self.locate(name, shape).map(|_| ())
    }

    fn contents(&self) -> Box<dyn Iterator<Item = (&str, String, &[u8])> + '_> {
        let described = |entry: &Entry| format!("{} {:?}", entry.kind, entry.shape);
        Box::new(
            self.tensors
                .iter()
                .map(move |(name, entry)| (name.as_str(), described(entry), &self.map[entry.range.clone()])),
        )
    }
}

impl Tensors for Gguf {
    fn take(&mut self, name: &str, shape: &[usize], dtype: Dtype) -> Result<Vec<f32>, Error> {
        let mut values = Vec::new();
        let entry = self.locate(name, shape)?;
        let matrix = match *shape {
            [rows, width] => [rows, width],
            // Rows of one value each, so that those of biases can be put into order; what is packed in blocks cannot be cut so.
            [rows] if entry.kind.elements() == 1 => [rows, 1],
            _ => {
                let problem = TensorProblem::OtherDtype { expected: "F32, F16 or BF16", found: entry.kind.to_string() };
                return Err(self.fault(name, problem));
            }
        };
        let rows = self.rows(name, entry, matrix[1]);
        let take = &mut |_, numbers: Numbers<'_>| values.extend_from_slice(&numbers.widened());
        // One is taken off before rounding.
        hand_over(&*rows, matrix, Dtype::F32, take).map_err(|(index, value)| self.not_finite(name, index, value))?;
        let added = self.added(name);
        for value in &mut values {
            *value -= added;
            if dtype == Dtype::Bf16 {
                *value = bf16::from_f32(*value).to_f32();
            }
        }
        if let Some((index, value)) = Numbers::F32(&values).not_finite() {
            return Err(self.not_finite(name, index, value));
        }
        drop(rows);
        self.pass_over(name);
        Ok(values)
    }

    fn take_rows(
        &mut self,
        name: &str,
        shape: [usize; 2],
        dtype: Dtype,
        take: &mut dyn FnMut(usize, Numbers<'_>),
    ) -> Result<(), Error> {
        let entry = self.locate(name, &shape)?;
        hand_over(&*self.rows(name, entry, shape[1]), shape, dtype, take)
            .map_err(|(index, value)| self.not_finite(name, index, value))?;
        self.pass_over(name);
        Ok(())
    }

    fn pass_over(&mut self, name: &str) {
        self.taken.insert(name.to_owned());
    }
}

impl Gguf {
    fn not_finite(&self, name: &str, index: usize, value: f32) -> Error {
        self.fault(name, TensorProblem::NonFinite { index, value })
    }
}
