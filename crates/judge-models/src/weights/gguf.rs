//! Weights in a GGUF file.
//!
//! What the file is, and what blocks of codes stand for, is the business of `judge-weights`; what its keys say of a model, of
//! `crate::gguf`. Settings that the file states must be those of the model's description (`settings.rs`), whether that comes
//! from a `config.json` beside the file or from its own keys.
//!
//! What the converter of llama.cpp changed is undone here, so that tensors get the names, the order
//! of rows and the values that they have in a Hugging Face folder:
//!
//! | what was changed | where it is undone |
//! |---|---|
//! | names (`blk.0.attn_q.weight`) | by [`Architecture`], while the file is opened |
//! | experts in one tensor | [`experts`] |
//! | dimensions of one element left out | [`unsqueezed`] |
//! | order of dimensions (fastest first) | `header.rs` of `judge-weights` |
//! | codes in blocks with scales | `blocks.rs`, `grids.rs` there |
//! | order of rows of queries and keys (`llama`), and of value heads of a delta rule (`qwen35`) | [`Order`] of `blocks.rs` |
//! | 1 added to the weights of norms (Gemma, Qwen3.5) | [`Gguf::take`](Tensors::take) |
//! | decay rates in the place of their logarithms (`qwen35`) | [`Gguf::take`](Tensors::take) |
//! | rows of the vocabulary left out (Gemma) | `checked.rs`, by [`Gguf::vocabulary`](Store::vocabulary) |
//!
//! `judge-weights` reads and checks the file's header; this file answers [`Store`] and [`Tensors`] from
//! it.
//!
//! The order of these steps matters in one place: 1 is taken off in f32 before a norm is rounded,
//! since `1 + w` has fewer bits left for `w`.

mod settings;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use half::bf16;
use judge_arch::{DeltaShape, EncoderSpec, ModelSpec};
use judge_kernels::codes::{CodedRows, Coding};
use judge_kernels::numbers::Numbers;
use judge_weights::codes::Coded;
use judge_weights::error::TensorProblem;
use judge_weights::gguf::blocks::{Order, blocks, coding, plain};
use judge_weights::gguf::file::GgufFile;
use judge_weights::gguf::header::Entry;
use judge_weights::gguf::kind::Kind;
use judge_weights::gguf::problem::GgufProblem;
use judge_weights::map::advise;
use judge_weights::names::{EMBEDDING, HEAD};
use judge_weights::rows::{hand_over, hand_over_codes};
use judge_weights::{Dtype, Error, Store, Tensors};
use safetensors::Dtype as Stored;
use serde_json::{Map, Value};

use self::settings::Expected;
use crate::gguf::{A_LOG, Architecture, DIVISORS, FACTORS, Named};

/// What undoing the converter's changes needs to know of the model. It comes from the description
/// that the file is read for, since a file does not say it in a way that could be trusted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadCounts {
    /// `model_type` of `config.json`, which must fit the file's architecture.
    pub(crate) family: &'static str,
    /// Query heads of a block.
    pub(crate) queries: usize,
    /// Key and value heads of a block.
    pub(crate) keys: usize,
    /// The delta rule of the blocks that have one.
    pub(crate) delta: Option<DeltaShape>,
    /// Number of blocks; those that a file has besides predict further tokens.
    pub(crate) blocks: usize,
}

impl HeadCounts {
    /// The counts of a model whose blocks have the same heads, as in every family that is read from
    /// GGUF files: key heads are those of the first block.
    pub(crate) fn of(spec: &ModelSpec) -> Self {
        let keys = spec.blocks.first().map_or(spec.n_heads, |block| block.heads.n_kv_heads);
        let delta = spec.blocks.iter().find_map(|block| block.delta.as_ref()).map(|delta| delta.shape);
        Self { family: spec.family, queries: spec.n_heads, keys, delta, blocks: spec.n_layers() }
    }

    /// The counts of an encoder, in which nothing is put into another order.
    pub(crate) fn of_encoder(spec: &EncoderSpec) -> Self {
        Self { family: spec.family, queries: spec.n_heads, keys: spec.n_heads, delta: None, blocks: spec.blocks.len() }
    }
}

/// Computes whole rows of a matrix from a row on, as many as there is room for, row-major.
type Rows<'a> = Box<dyn Fn(usize, &mut [f32]) + Sync + 'a>;

/// The tensors of a GGUF file.
pub(crate) struct Gguf {
    /// The file.
    file: Arc<GgufFile>,
    /// What the converter does to tensors of this architecture.
    architecture: &'static Architecture,
    /// Heads of the model that the file is read for.
    heads: HeadCounts,
    /// The tensors by the names that they have in a Hugging Face folder. One whose name is not
    /// known keeps its own, for the check of names to report.
    tensors: BTreeMap<String, Entry>,
    /// Names that were taken or passed over.
    taken: BTreeSet<String>,
}

impl Gguf {
    /// The tensors by the names of a Hugging Face folder. Experts that lie in one tensor are cut apart.
    ///
    /// # Errors
    /// [`Error::Gguf`] for an architecture other than the model's, for two tensors of one name, and for
    /// experts that cannot be cut apart.
    pub(crate) fn new(file: Arc<GgufFile>, heads: HeadCounts) -> Result<Self, Error> {
        let fault = |problem| Error::Gguf { path: file.path().to_owned(), problem };
        let architecture = Architecture::of(file.header.text("general.architecture"), heads.family).map_err(fault)?;
        let mut named = BTreeMap::new();
        // Blocks that predict further tokens are passed over, as in folders.
        let further = format!("blk.{}.", heads.blocks);
        let mut insert = |name: String, entry: Entry| {
            let entry = unsqueezed(&name, entry);
            if named.contains_key(&name) {
                return Err(fault(GgufProblem::Twice { tensor: name }));
            }
            named.insert(name, entry);
            Ok(())
        };
        for (name, entry) in &file.header.tensors {
            if heads.delta.is_some() && name.starts_with(&further) {
                continue;
            }
            match architecture.hugging_face(name) {
                None => insert(name.clone(), entry.clone())?,
                Some(Named::One(own)) => insert(own, entry.clone())?,
                Some(Named::Experts(before, behind)) => {
                    for (expert, part) in experts(name, entry).map_err(fault)?.enumerate() {
                        for (part, behind) in above_one_another(&part, behind.len()).zip(&behind) {
                            insert(format!("{before}{expert}{behind}"), part)?;
                        }
                    }
                }
            }
        }
        Ok(Self { file, architecture, heads, tensors: named, taken: BTreeSet::new() })
    }

    /// Drops tensors whose names begin with one of these.
    pub(crate) fn forget(&mut self, beginnings: impl Iterator<Item = String>) {
        for beginning in beginnings {
            self.tensors.retain(|name, _| !name.starts_with(&beginning));
        }
    }

    /// Drops tensors whose names are not wanted.
    pub(crate) fn keep(&mut self, wanted: impl Fn(&str) -> bool) {
        self.tensors.retain(|name, _| wanted(name));
    }

    /// As [`check_settings`], for an encoder.
    ///
    /// # Errors
    /// [`Error::Gguf`] for the first setting that differs.
    pub(crate) fn check_encoder(&self, spec: &EncoderSpec) -> Result<(), Error> {
        settings::check_encoder(spec, &self.file.header, self.architecture.name)
            .map_err(|problem| Error::Gguf { path: self.file.path().to_owned(), problem })
    }

    /// The error of a tensor of this file.
    fn fault(&self, name: &str, problem: TensorProblem) -> Error {
        Error::Tensor { path: self.file.path().to_owned(), tensor: name.to_owned(), problem }
    }

    /// A tensor, if there is one of exactly this shape. Rows that were reordered must be whole
    /// heads with an even number of rows each; a shape where they are not is an error too.
    fn locate(&self, name: &str, shape: &[usize]) -> Result<&Entry, Error> {
        let Some(entry) = self.tensors.get(name) else {
            return Err(Error::TensorNames { missing: vec![name.to_owned()], unused: Vec::new() });
        };
        let is_torn =
            |order: Option<Order>, size: Option<&usize>| order.is_some_and(|order| !order.fits(*size.unwrap_or(&0)));
        let is_torn =
            is_torn(self.order(name, entry), shape.first()) || is_torn(self.order_of_columns(name), shape.get(1));
        if entry.shape != shape || is_torn {
            let problem = TensorProblem::Shape { expected: shape.to_vec(), found: entry.shape.clone() };
            return Err(self.fault(name, problem));
        }
        Ok(entry)
    }

    /// The order into which rows were put: of weights and biases of queries and keys, and of what a delta rule has for each value
    /// head. `None` for all other tensors. [`rows`](Self::rows) undoes it.
    fn order(&self, name: &str, entry: &Entry) -> Option<Order> {
        let rotated = |heads: usize| Order::Rotated { heads, per_head: entry.shape[0] / heads.max(1) };
        if self.architecture.swaps_rows {
            return match name {
                _ if name.contains(".q_proj.") => Some(rotated(self.heads.queries)),
                _ if name.contains(".k_proj.") => Some(rotated(self.heads.keys)),
                _ => None,
            };
        }
        let of_delta = name.split_once(".linear_attn.")?.1;
        let shape = self.heads.delta?;
        match of_delta {
            "in_proj_z.weight" => self.tiled(0, shape.value_dim),
            "in_proj_qkv.weight" | "conv1d.weight" => self.tiled(2 * shape.d_key(), shape.value_dim),
            "in_proj_a.weight" | "in_proj_b.weight" | "dt_bias" | "A_log" => self.tiled(0, 1),
            _ => None,
        }
    }

    /// The order into which columns were put, of the one matrix that takes what value heads give.
    fn order_of_columns(&self, name: &str) -> Option<Order> {
        let shape = self.heads.delta.filter(|_| name.ends_with(".linear_attn.out_proj.weight"))?;
        self.tiled(0, shape.value_dim)
    }

    /// The order of value heads; `None` where each key head has one.
    fn tiled(&self, before: usize, width: usize) -> Option<Order> {
        let shape = self.heads.delta?;
        let per_key = shape.n_value_heads.checked_div(shape.n_key_heads).filter(|&per_key| per_key > 1)?;
        Some(Order::Tiled { before, key_heads: shape.n_key_heads, per_key, width })
    }

    /// The value of a folder, of one in the file: norms of Gemma and Qwen3.5 compute with `1 + w`, which is stored, but for the norm of
    /// a delta rule; of its decay rates, `-exp(a)` is stored.
    fn original(&self, name: &str) -> impl Fn(f32) -> f32 + use<> {
        let adds_one =
            self.architecture.adds_one && name.ends_with("norm.weight") && !name.ends_with(".linear_attn.norm.weight");
        let is_rate = name.ends_with(A_LOG);
        move |value| match (adds_one, is_rate) {
            (true, _) => value - 1.0,
            (_, true) => (-value).ln(),
            _ => value,
        }
    }

    /// The tensor as a matrix of rows of `width`, in the order of a Hugging Face folder.
    fn rows<'a>(&'a self, name: &str, entry: &Entry, width: usize) -> Rows<'a> {
        if let Some(coded) = self.coded(name, entry, width) {
            return Box::new(move |first: usize, values: &mut [f32]| coded.dequantise(first, values));
        }
        let (bytes, kind) = (self.file.of(entry), entry.kind);
        let stored: Rows<'a> = match blocks(bytes, kind, width) {
            Some(blocks) => Box::new(move |first: usize, values: &mut [f32]| blocks.dequantise(first, values)),
            None => Box::new(plain(bytes, kind, width)),
        };
        match (self.order_of_columns(name), self.order(name, entry)) {
            (Some(order), _) => Box::new(move |first: usize, values: &mut [f32]| {
                let mut in_file = vec![0.0; values.len()];
                stored(first, &mut in_file);
                for (row, in_file) in values.chunks_exact_mut(width).zip(in_file.chunks_exact(width)) {
                    row.iter_mut().enumerate().for_each(|(column, value)| *value = in_file[order.place(column)]);
                }
            }),
            (None, Some(order)) => Box::new(move |first: usize, values: &mut [f32]| {
                let rows = values.chunks_exact_mut(width).enumerate();
                rows.for_each(|(row, values)| stored(order.place(first + row), values));
            }),
            (None, None) => stored,
        }
    }

    /// The same as codes; `None` if the tensor is plain numbers, or has its columns in another order: they cross blocks.
    fn coded<'a>(&'a self, name: &str, entry: &Entry, width: usize) -> Option<Coded<'a>> {
        if self.order_of_columns(name).is_some() {
            return None;
        }
        let blocks = blocks(self.file.of(entry), entry.kind, width)?;
        Some(match self.order(name, entry) {
            Some(order) => blocks.reordered(move |row| order.place(row)),
            None => blocks,
        })
    }
}

/// The experts that lie in one tensor, each as a tensor of its own: matrices, or vectors of biases.
///
/// # Errors
/// [`GgufProblem::Dimensions`] for a tensor of one dimension.
fn experts<'a>(name: &str, entry: &'a Entry) -> Result<impl Iterator<Item = Entry> + 'a, GgufProblem> {
    let Some((&count, shape)) = entry.shape.split_first().filter(|(_, shape)| !shape.is_empty()) else {
        let found = entry.shape.iter().map(|&size| size as u64).collect();
        return Err(GgufProblem::Dimensions { tensor: name.to_owned(), found, block: entry.kind.elements() });
    };
    // Whole rows are whole blocks, so that the parts are alike.
    let length = entry.range.len().checked_div(count).unwrap_or_default();
    // A tensor without bytes has as many experts as its header likes to say.
    let count = if length == 0 { 0 } else { count };
    Ok((0..count).map(move |expert| {
        let start = entry.range.start + expert * length;
        Entry { shape: shape.to_vec(), range: start..start + length, ..entry.clone() }
    }))
}

/// The matrices of equal size that one matrix consists of, by rows; those that do not fit are left out, and so missed.
fn above_one_another(entry: &Entry, count: usize) -> impl Iterator<Item = Entry> + '_ {
    let rows = entry.shape.first().copied().unwrap_or_default() / count.max(1);
    let length = entry.range.len() / count.max(1);
    (0..count).map(move |index| {
        let start = entry.range.start + index * length;
        let shape = std::iter::once(rows).chain(entry.shape.iter().skip(1).copied()).collect();
        Entry { shape, range: start..start + length, ..entry.clone() }
    })
}

/// A tensor with the dimensions of one element that the converter takes out.
fn unsqueezed(name: &str, mut entry: Entry) -> Entry {
    match entry.shape[..] {
        // The gate of the shared expert is a matrix of one row.
        [width] if name.ends_with("shared_expert_gate.weight") => entry.shape = vec![1, width],
        // Kernels of convolutions over one channel.
        [channels, width] if name.ends_with(".conv.conv.weight") || name.ends_with(".linear_attn.conv1d.weight") => {
            entry.shape = vec![channels, 1, width];
        }
        _ => {}
    }
    entry
}

impl Store for Gguf {
    /// [`Dtype::Bf16`] unless more than half of the numbers are f32 or f64: quantised codes have fewer
    /// significant bits than bf16.
    fn stored_dtype(&self) -> Dtype {
        let count = |entry: &Entry| entry.shape.iter().product::<usize>() as u64;
        let all: u64 = self.tensors.values().map(count).sum();
        let wide: u64 =
            self.tensors.values().filter(|entry| matches!(entry.kind, Kind::F32 | Kind::F64)).map(count).sum();
        if wide > all / 2 { Dtype::F32 } else { Dtype::Bf16 }
    }

    /// Scales of blocks are f16 too, but are multiplied in f32.
    fn plain(&self) -> Box<dyn Iterator<Item = (Stored, usize)> + '_> {
        Box::new(self.tensors.values().filter_map(|entry| Some((entry.kind.stored()?, entry.shape.len()))))
    }

    /// The rows that the embedding has in the file. The converter may leave out rows past the
    /// tokenizer's last token.
    fn vocabulary(&self, embedding: &str) -> Option<usize> {
        self.tensors.get(embedding).and_then(|entry| entry.shape.first().copied())
    }

    fn names(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        Box::new(self.tensors.keys().map(String::as_str))
    }

    fn taken(&self) -> &BTreeSet<String> {
        &self.taken
    }

    /// Divisors of the rotation's frequencies, which follow from `config.json`, and a head that is the
    /// embedding, block for block.
    fn is_redundant(&self, name: &str) -> bool {
        let same = |a: &Entry, b: &Entry| a.kind == b.kind && a.shape == b.shape && self.file.of(a) == self.file.of(b);
        name == DIVISORS
            || FACTORS.contains(&name)
            || name == HEAD
                && match (self.tensors.get(HEAD), self.tensors.get(EMBEDDING)) {
                    (Some(head), Some(embedding)) => same(head, embedding),
                    _ => false,
                }
    }

    fn expect(&self, name: &str, shape: &[usize]) -> Result<(), Error> {
        self.locate(name, shape).map(|_| ())
    }

    fn reads_are_scattered(&self, are_scattered: bool) {
        self.file.maps().iter().for_each(|map| advise(map, are_scattered));
    }

    /// Blocks as they are stored, by the names of a Hugging Face folder.
    fn contents(&self) -> Box<dyn Iterator<Item = (&str, String, &[u8])> + '_> {
        let described = |entry: &Entry| format!("{} {:?}", entry.kind, entry.shape);
        Box::new(self.tensors.iter().map(move |(name, entry)| (name.as_str(), described(entry), self.file.of(entry))))
    }
}

impl Tensors for Gguf {
    /// A matrix, or a vector of plain numbers. Values are dequantised to f32, then what the converter
    /// added is taken off, and then they are rounded.
    fn take(&mut self, name: &str, shape: &[usize], dtype: Dtype) -> Result<Vec<f32>, Error> {
        let mut values = Vec::new();
        let entry = self.locate(name, shape)?;
        let matrix = match *shape {
            [rows, width] => [rows, width],
            // Rows of one value each, so that biases of queries and keys can be put into order. Blocks cannot be cut
            // so.
            [rows] if entry.kind.elements() == 1 => [rows, 1],
            // The kernel of a convolution.
            [rows, 1, width] if entry.kind.elements() == 1 => [rows, width],
            _ => {
                let problem =
                    TensorProblem::OtherDtype { expected: "F64, F32, F16 or BF16", found: entry.kind.to_string() };
                return Err(self.fault(name, problem));
            }
        };
        let take = &mut |_, numbers: Numbers<'_>| values.extend_from_slice(&numbers.widened());
        // In f32: what the converter added is taken off before rounding.
        hand_over(self.rows(name, entry, matrix[1]), matrix, Dtype::F32, take)
            .map_err(|(index, value)| self.not_finite(name, index, value))?;
        let original = self.original(name);
        for value in &mut values {
            *value = original(*value);
            if dtype == Dtype::Bf16 {
                *value = bf16::from_f32(*value).to_f32();
            }
        }
        if let Some((index, value)) = Numbers::F32(&values).not_finite() {
            return Err(self.not_finite(name, index, value));
        }
        self.pass_over(name);
        Ok(values)
    }

    /// Nothing is taken off here: what has an addition is the weight of a norm, a vector.
    fn take_rows(
        &mut self,
        name: &str,
        shape: [usize; 2],
        dtype: Dtype,
        take: &mut dyn FnMut(usize, Numbers<'_>),
    ) -> Result<(), Error> {
        let entry = self.locate(name, &shape)?;
        hand_over(self.rows(name, entry, shape[1]), shape, dtype, take)
            .map_err(|(index, value)| self.not_finite(name, index, value))?;
        self.pass_over(name);
        Ok(())
    }

    fn coding(&self, name: &str, shape: [usize; 2]) -> Result<Option<Coding>, Error> {
        let entry = self.locate(name, &shape)?;
        Ok(self.order_of_columns(name).is_none().then(|| coding(entry.kind, shape[1])).flatten())
    }

    fn take_codes(
        &mut self,
        name: &str,
        shape: [usize; 2],
        dtype: Dtype,
        take: &mut dyn FnMut(usize, &CodedRows<'_>),
    ) -> Result<(), Error> {
        if let Some(rows) = self.coded(name, self.locate(name, &shape)?, shape[1]) {
            hand_over_codes(&rows, shape, dtype, take).map_err(|(index, value)| self.not_finite(name, index, value))?;
        }
        self.pass_over(name);
        Ok(())
    }

    fn pass_over(&mut self, name: &str) {
        self.taken.insert(name.to_owned());
    }
}

impl Gguf {
    /// The error of a value that is not finite, dequantised or after rounding.
    fn not_finite(&self, name: &str, index: usize, value: f32) -> Error {
        self.fault(name, TensorProblem::NonFinite { index, value })
    }
}

/// Compares what a file says of the settings of its decoder with the description and the fields of
/// `config.json` (those of the text model) that this comes from.
///
/// # Errors
/// [`Error::Gguf`] for the first setting that differs.
pub(crate) fn check_settings(file: &GgufFile, spec: &ModelSpec, config: &Map<String, Value>) -> Result<(), Error> {
    let header = &file.header;
    let divisors = header.tensors.get(DIVISORS).filter(|entry| entry.kind == Kind::F32).map(|entry| {
        let bytes = file.of(entry).as_chunks().0;
        bytes.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()
    });
    let context = config.get("max_position_embeddings").and_then(Value::as_u64);
    let ropes = ["rope_scaling", "rope_parameters"].into_iter().filter_map(|name| config.get(name));
    let attn_factor = ropes.filter_map(|rope| rope.get("attn_factor")?.as_f64()).next();
    Expected { spec, context, attn_factor, divisors }
        .check(header, header.text("general.architecture"))
        .map_err(|problem| Error::Gguf { path: file.path().to_owned(), problem })
}
