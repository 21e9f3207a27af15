//! Quantised checkpoints: which tensors hold a module's codes and scales, and the weight made of
//! them.
//!
//! `quantization_config.quant_method` of `config.json` names the method, and `choice.rs` has the
//! table of them. A format is one file of pure functions from stored bytes to codes and scales,
//! which `codes.rs` makes numbers of:
//!
//! | file | stored as |
//! |---|---|
//! | `fp8.rs` | `fp8` (DeepSeek, Qwen, Mistral) and `fbgemm_fp8`: bytes of E4M3 |
//! | `compressed.rs` | `compressed-tensors`: bytes of E4M3 or int8 (`grid`), or packed integers (`packed`) |
//! | `gptq.rs` | `gptq`: integers of 4 or 8 bits, packed along the input |
//! | `awq.rs` | `awq`: integers of 4 bits, packed along the output |
//! | `bitsandbytes.rs` | `bitsandbytes`: codes of a table in blocks, or int8 by rows |
//! | `mxfp4.rs` | `mxfp4` (gpt-oss): four-bit floats with powers of two |
//!
//! Which modules are quantised follows from the tensors that are there, not from the lists of names
//! in the configuration (`modules_to_not_convert` and the like), on whose meaning programs differ.
//!
//! [`Quantised`] stands over a [`Checkpoint`] and answers for weights by name: a quantised one is
//! opened by the format, which checks the tensors beside its codes against each other and the
//! expected shape, and `rows.rs` hands it over some rows at a time: dequantised in f32 and rounded once, or
//! as codes. All other tensors are the checkpoint's. Activations stay as they are, whatever the method would make
//! of them, so results are nearer to the unquantised model than those of programs that round
//! activations too.
//!
//! What a model and a file call things, for one GPTQ module and for a norm beside it:
//!
//! ```text
//!  stored                                  codes: ".qweight" stands for ".weight"
//!  model.layers.0.mlp.down_proj.qweight ─┐
//!  model.layers.0.mlp.down_proj.qzeros   ├─► model.layers.0.mlp.down_proj.weight   a module
//!  model.layers.0.mlp.down_proj.scales   │
//!  model.layers.0.mlp.down_proj.g_idx   ─┘
//!  model.norm.weight ──────────────────────► model.norm.weight                     dense
//! ```
//!
//! The four stored names are `owned` and no names of the store; so if a dense weight of the same
//! name is there too, the codes stay unowned, and the check of names reports them.

mod awq;
mod bitsandbytes;
mod choice;
mod compressed;
mod fp8;
mod gptq;
mod grid;
mod groups;
mod method;
mod module;
mod mxfp4;
mod packed;
mod part;
mod settings;

use std::collections::{BTreeMap, BTreeSet};

use judge_kernels::codes::Coding;
use safetensors::Dtype as Stored;

use self::module::Module;
use self::part::Part;
use super::codes::Coded;
use super::rows::{hand_over, hand_over_codes};
use crate::error::TensorProblem;
use crate::safetensors::Checkpoint;
use crate::stack::StackSpec;
use crate::table::Table;
use crate::tensors::{Store, TakeCodes, TakeRows, Tensors};
use crate::{Dtype, Error};

pub use self::choice::{method, methods};
pub use self::method::Method;

/// A checkpoint some of whose modules are stored as codes.
pub struct Quantised {
    /// The stored tensors. It remembers which weights were taken, those of modules included.
    checkpoint: Checkpoint,
    /// How modules are stored: one method for a folder.
    format: Method,
    /// The quantised modules, by the name of the weight that their codes stand for.
    modules: BTreeMap<String, Codes>,
    /// The stored tensors that belong to modules, codes among them; they are no weights by
    /// themselves.
    owned: BTreeSet<String>,
}

/// Where the codes of a module are.
struct Codes {
    /// The module's path, which the names of its tensors begin with.
    path: String,
    /// The stored name of the tensor of codes.
    name: String,
    /// The weight's place in the tensor, where the codes are those of several weights.
    part: Option<Part>,
}

impl Quantised {
    /// Finds the modules of a checkpoint that are stored in this format. A stack of matrices that
    /// is one tensor of codes becomes a module for each of its parts; the other stacks are cut by
    /// [`Checkpoint::unstack`].
    ///
    /// # Errors
    /// Those of [`Checkpoint::unstack`], for stacks that are not stored as codes.
    pub fn new(mut checkpoint: Checkpoint, format: Method, stacks: Vec<&StackSpec>) -> Result<Self, Error> {
        let (mut modules, mut owned) = (BTreeMap::new(), BTreeSet::new());
        for name in checkpoint.names() {
            let Some((codes, weight)) = format.codes.iter().find(|(codes, _)| name.ends_with(codes)) else {
                continue;
            };
            let is_codes = checkpoint.raw(name).is_some_and(|raw| (format.is_codes)(&raw));
            let path = &name[..name.len() - codes.len()];
            let weight = format!("{path}{weight}");
            // Codes beside a dense weight of the same name are a contradiction: they stay unowned, and `check`
            // reports them.
            if !is_codes || weight != name && checkpoint.contains(&weight) {
                continue;
            }
            owned.insert(name.to_owned());
            let partners = format.partners.iter().map(|partner| format!("{path}{partner}"));
            owned.extend(partners.filter(|partner| checkpoint.contains(partner)));
            modules.insert(weight, Codes { path: path.to_owned(), name: name.to_owned(), part: None });
        }
        let (coded, dense): (Vec<_>, Vec<_>) =
            stacks.into_iter().partition(|stack| stack.is_only_form && modules.contains_key(&stack.name));
        checkpoint.unstack(dense)?;
        for stack in coded {
            let Some(Codes { path, name, .. }) = modules.remove(&stack.name) else { continue };
            modules.extend(Part::all(stack).map(|(weight, part)| {
                let (path, name) = (path.clone(), name.clone());
                (weight, Codes { path, name, part: Some(part) })
            }));
        }
        Ok(Self { checkpoint, format, modules, owned })
    }

    /// The names of the stored tensors that belong to no module.
    fn dense(&self) -> impl Iterator<Item = &str> {
        self.checkpoint.names().filter(|name| !self.owned.contains(*name))
    }

    /// A quantised module's weight, whose tensors are checked against this shape here; `None` if it
    /// is dense or absent.
    fn coded(&self, name: &str, shape: &[usize]) -> Result<Option<Coded<'_>>, Error> {
        let Some(Codes { path, name, part }) = self.modules.get(name) else { return Ok(None) };
        let Some(codes) = self.checkpoint.raw(name) else { return Ok(None) };
        let module = Module { checkpoint: &self.checkpoint, path, codes };
        match part {
            None => self.format.open(module, shape),
            Some(part) if part.shape() != *shape => Err(codes.other_shape(shape)),
            Some(part) => Ok(self.format.open(module, &part.stack)?.reordered(move |row| part.row(row))),
        }
        .map(Some)
    }

    /// The error for value `index` of a weight, which is not finite. It names a scale that is not
    /// finite if there is one, else the codes, with the index counted in the whole stack if the
    /// weight is a part.
    fn not_finite(&self, name: &str, rows: &Coded<'_>, index: usize, value: f32) -> Error {
        for scales in &rows.scales {
            if let Some((index, value)) = scales.not_finite() {
                return scales.raw().fault(TensorProblem::NonFinite { index, value });
            }
        }
        let module = self.modules.get(name);
        let index = module.and_then(|codes| codes.part.as_ref()).map_or(index, |part| part.index(index));
        match module.and_then(|codes| self.checkpoint.raw(&codes.name)) {
            Some(codes) => codes.fault(TensorProblem::NonFinite { index, value }),
            None => Error::TensorNames { missing: vec![name.to_owned()], unused: Vec::new() },
        }
    }
}

impl Store for Quantised {
    /// [`Dtype::Bf16`], as codes have fewer significant bits than that; the checkpoint's own if no
    /// module is quantised.
    fn stored_dtype(&self) -> Dtype {
        if self.modules.is_empty() { self.checkpoint.stored_dtype() } else { Dtype::Bf16 }
    }

    /// Those of dense tensors. Scales in f16 are multiplied in f32, so nothing of them is lost.
    fn plain(&self) -> Box<dyn Iterator<Item = (Stored, usize)> + '_> {
        let dense = self.dense().filter_map(|name| self.checkpoint.raw(name));
        Box::new(dense.map(|raw| (raw.dtype, raw.shape.len())))
    }

    /// Those of dense tensors, then those of the weights of quantised modules.
    fn names(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        Box::new(self.dense().chain(self.modules.keys().map(String::as_str)))
    }

    fn taken(&self) -> &BTreeSet<String> {
        self.checkpoint.taken()
    }

    fn is_redundant(&self, name: &str) -> bool {
        self.checkpoint.is_redundant(name) || self.format.ignored.iter().any(|end| name.ends_with(end))
    }

    /// Opens a quantised module, so its codes, scales and zero points are checked too.
    fn expect(&self, name: &str, shape: &[usize]) -> Result<(), Error> {
        match self.coded(name, shape)? {
            Some(_) => Ok(()),
            None => self.checkpoint.expect(name, shape),
        }
    }

    fn reads_are_scattered(&self, are_scattered: bool) {
        self.checkpoint.reads_are_scattered(are_scattered);
    }

    /// Codes and scales as they are stored, so that the fingerprint covers both.
    fn contents(&self) -> Box<dyn Iterator<Item = (&str, String, &[u8])> + '_> {
        self.checkpoint.contents()
    }
}

impl Tensors for Quantised {
    /// Dense tables stay in their file; quantised ones are dequantised into memory.
    fn table(&mut self, name: &str, shape: [usize; 2], dtype: Dtype) -> Result<Table, Error> {
        if !self.modules.contains_key(name) {
            return self.checkpoint.table(name, shape, dtype);
        }
        Table::collect(shape, |take| self.take_rows(name, shape, dtype, take))
    }

    /// Weights of more than two axes are taken as the matrix of all their rows.
    fn take(&mut self, name: &str, shape: &[usize], dtype: Dtype) -> Result<Vec<f32>, Error> {
        if !self.modules.contains_key(name) {
            return self.checkpoint.take(name, shape, dtype);
        }
        // A stack of matrices is the matrix of all their rows.
        let width = shape.last().copied().unwrap_or(1);
        let rows = shape.iter().take(shape.len().saturating_sub(1)).product();
        let mut values = Vec::new();
        self.dequantise(name, shape, [rows, width], dtype, &mut |_, numbers| {
            values.extend_from_slice(&numbers.widened())
        })?;
        Ok(values)
    }

    fn take_rows(&mut self, name: &str, shape: [usize; 2], dtype: Dtype, take: TakeRows<'_>) -> Result<(), Error> {
        if self.modules.contains_key(name) {
            self.dequantise(name, &shape, shape, dtype, take)
        } else {
            self.checkpoint.take_rows(name, shape, dtype, take)
        }
    }

    fn coding(&self, name: &str, shape: [usize; 2]) -> Result<Option<Coding>, Error> {
        Ok(self.coded(name, &shape)?.map(|rows| rows.coding))
    }

    fn take_codes(&mut self, name: &str, shape: [usize; 2], dtype: Dtype, take: TakeCodes<'_>) -> Result<(), Error> {
        if let Some(rows) = self.coded(name, &shape)? {
            hand_over_codes(&rows, shape, dtype, take)
                .map_err(|(index, value)| self.not_finite(name, &rows, index, value))?;
        }
        self.let_go(name);
        Ok(())
    }

    fn pass_over(&mut self, name: &str) {
        self.checkpoint.pass_over(name);
    }
}

impl Quantised {
    /// Hands over the rows of a quantised module's weight of this shape as the matrix `matrix`,
    /// which has as many elements. The pages of the codes are given back afterwards.
    ///
    /// # Errors
    /// Those of the format for tensors that do not fit, and [`TensorProblem::NonFinite`].
    fn dequantise(
        &mut self,
        name: &str,
        shape: &[usize],
        matrix: [usize; 2],
        dtype: Dtype,
        take: TakeRows<'_>,
    ) -> Result<(), Error> {
        if let Some(rows) = self.coded(name, shape)? {
            hand_over(|first, values: &mut [f32]| rows.dequantise(first, values), matrix, dtype, take)
                .map_err(|(index, value)| self.not_finite(name, &rows, index, value))?;
        }
        self.let_go(name);
        Ok(())
    }

    /// Marks a quantised module as taken and gives the pages of its codes back.
    fn let_go(&mut self, name: &str) {
        if let Some(Codes { name, part, .. }) = self.modules.get(name) {
            let (rows, of) = part.as_ref().map_or((0..1, 1), |part| (part.rows(), part.all_rows()));
            self.checkpoint.let_go(name, rows, of);
        }
        self.pass_over(name);
    }
}
