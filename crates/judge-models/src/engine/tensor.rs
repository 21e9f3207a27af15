//! The decoder of composed Burn operations over batches of padded sequences: what a GPU runs.
//!
//! Sequences are sorted by length, padded on the right, and run in few shapes. Under causal
//! attention padding changes nothing before it, so it needs no mask; what is read of a sequence are
//! its own positions alone. A batch is read once, when its pass is over: states are gathered or
//! pooled on their device, and label logits are multiplied there.
//!
//! ```text
//! load    Tensors ─► Stored ─► parameters.rs ─► Decoder, over one device or several (stages.rs)
//!
//! serve   Group ─► plan.rs: batches of few shapes
//!               ─► run.rs: prompts of a batch [batch, seq], then one token of each text [batch, 1]
//!                    └─► decoder.rs: blocks in order ─► block_ops.rs: the operations of a block
//!                           │                               └─► ops.rs, delta.rs: Burn
//!                           ├── rotation.rs: cosines and sines        past.rs, slots.rs: keys, values and
//!                           ├── masks.rs: sliding windows             memories while text is written
//!                           └─► reads.rs (score.rs): reduced on the device, fetched at once ─► driver
//! ```
//!
//! | file | owns |
//! |---|---|
//! | `precision.rs`, `product.rs` | what is narrower than f32, and products that are not |
//! | `token_inputs.rs` | what blocks get of a token besides the residual stream |
//! | `batch_size.rs` | how many tokens share a batch where nobody says it |
//! | `host.rs` | the wait for a device, and its failures as errors |
//! | `cuda.rs` | what an NVIDIA GPU needs on this machine |
//! | `runtime.rs` | how cubecl is set up in this process |
//!
//! Which token comes next is decided in `reading/driver.rs`, which sequences share a group in
//! `reading/groups.rs`.
//!
//! Invariants:
//!
//! - Outside of `cuda.rs` no code asks which device it runs on. Tests run this path on the CPU in
//!   f32. One sequence at a time, without padding, is their reference: batches agree with it to
//!   1e-5, and the packed path is compared with it too.
//! - A decoder spread over several devices gives the bits of the whole one where devices compute
//!   alike: the residual stream goes from one to the next, what belongs to a block stays with it.
//! - Rows of a batch do not see one another. A sequence's numbers depend on its batch by rounding
//!   alone, since another shape may get another kernel.
//! - Whatever waits for a device, or may panic in Burn, runs inside [`on_device`] or
//!   [`from_device`].

mod batch_size;
mod block_ops;
#[cfg(any(test, feature = "cuda"))]
pub(crate) mod cuda;
pub(crate) mod decoder;
mod delta;
mod fetched;
pub(crate) mod host;
mod label_products;
mod masks;
pub(crate) mod ops;
mod parameters;
pub(crate) mod past;
mod plan;
pub(crate) mod precision;
mod product;
mod reads;
pub(crate) mod rotation;
mod run;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
pub(crate) mod runtime;
mod schedule;
mod score;
mod slots;
mod stages;
mod token_inputs;

use std::sync::Arc;

use burn::tensor::Device;
use half::bf16;
use judge_core::request::TokenId;

use super::Engine;
use crate::arch::ModelSpec;
use crate::reading::groups::Group;
use crate::reading::passes::Passes;
use crate::weights::{Numbers, Table, Tensors};
use crate::{Dtype, Error, Kernel};
pub(crate) use batch_size::batch_tokens;
use decoder::Decoder;
use host::{from_device, host, on_device};
use parameters::Source;
pub(crate) use plan::Shapes;
pub(crate) use precision::Precision;
use precision::widen;

/// The engine of this path: a decoder, and the shapes it is run in.
pub(crate) struct Batched {
    /// The weights and the forward pass.
    decoder: Decoder,
    /// Shapes of batches; [`Shapes::CUDA`] outside of tests.
    shapes: Shapes,
    /// Last, because fields are dropped in this order: memory is given back after the weights are
    /// gone.
    _memory: Memory,
}

/// Devices whose unused memory is given back when this is dropped.
///
/// A GPU's allocator keeps what weights took for the next tensors of just their size. On the CPU
/// there is nothing to give back. A failure is logged and no more, since a destructor has no one to
/// tell.
struct Memory(Vec<Device>);

impl Drop for Memory {
    fn drop(&mut self) {
        for device in &self.0 {
            // What was dropped before may still be queued, until all is done.
            let freed = from_device(|| device.sync().map(|()| device.memory_cleanup()));
            if let Err(error) = freed {
                tracing::debug!("a model's memory is not given back: {error}");
            }
        }
    }
}

impl Batched {
    /// Takes the decoder that `spec` describes from its checkpoint, matrix by matrix. `devices` are
    /// at least one and no more than blocks, in the order of a pass.
    ///
    /// One number of every tensor is read back at the end, because a copy that found no room on the
    /// device is not known before.
    ///
    /// # Errors
    /// Those of `tensors`. [`Error::Device`] for what fails while tensors are made, and
    /// [`Error::Upload`] if one did not reach its device.
    pub(crate) fn load(
        spec: Arc<ModelSpec>,
        devices: &[Device],
        precision: Precision,
        shapes: Shapes,
        tensors: &mut dyn Tensors,
    ) -> Result<Self, Error> {
        // Before the decoder, so that it is dropped after what was loaded where the rest cannot be.
        let memory = Memory(devices.to_vec());
        let mut source = Stored { tensors, dtype: precision.dtype() };
        let decoder = on_device(|| Decoder::with_precision(spec, devices, precision, &mut source))?;
        for corner in decoder.corners() {
            host(widen(corner)).map_err(|error| Error::Upload { source: Box::new(error) })?;
        }
        Ok(Self { decoder, shapes, _memory: memory })
    }
}

impl Engine for Batched {
    /// None: Burn chooses the kernels.
    fn kernel(&self) -> Option<Kernel> {
        None
    }

    fn head_rows(&self, tokens: &[TokenId]) -> Result<Vec<f32>, Error> {
        on_device(|| host(self.decoder.head_rows(tokens)))
    }

    fn passes<'a>(&'a self, group: &'a Group<'a>, room: usize) -> Box<dyn Passes + 'a> {
        Box::new(run::BatchedPasses::new(self, group, room))
    }
}

/// A checkpoint as the [`Source`] of a decoder.
struct Stored<'a> {
    /// Tensors by name, already checked against the description.
    tensors: &'a mut dyn Tensors,
    /// What numbers are rounded to. Vectors are widened to f32 again.
    dtype: Dtype,
}

impl Source for Stored<'_> {
    fn values(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, Error> {
        self.tensors.take(name, shape, self.dtype)
    }

    /// Copies rows straight from the reader's, so that bf16 is never widened. Only called where the
    /// dtype is bf16; parts of another dtype do not come then.
    fn append_bf16(&mut self, name: &str, shape: [usize; 2], to: &mut Vec<bf16>) -> Result<(), Error> {
        let append = &mut |_, rows: Numbers<'_>| {
            if let Numbers::Bf16(rows) = rows {
                to.extend_from_slice(rows);
            }
        };
        self.tensors.take_rows(name, shape, Dtype::Bf16, append)
    }

    fn table(&mut self, name: &str, shape: [usize; 2]) -> Result<Table, Error> {
        self.tensors.table(name, shape, self.dtype)
    }
}

#[cfg(test)]
mod tests;
