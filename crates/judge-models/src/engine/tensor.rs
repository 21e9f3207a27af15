//! The decoder of composed operations over batches of padded sequences: what a card runs.
//!
//! Sequences are sorted by length, padded on the right, and run in few shapes. Under causal attention padding changes nothing before
//! it, so no mask is needed; what is read of a sequence are its own positions alone. A batch is read once, when its pass is over: states
//! are gathered or pooled where they are, and label logits are dot products in `f64` on the host, as on every path.
//!
//! A decoder may be spread over several devices ([`stages`](stages)): states go from one to the next, what belongs to a block stays
//! with it. Nothing here names a device. Tests run it on the CPU in f32 and compare it with the path that runs one sequence at a time.

#[cfg(any(test, feature = "cuda"))]
pub(crate) mod cuda;
pub(crate) mod decoder;
mod delta;
pub(crate) mod host;
mod masks;
pub(crate) mod ops;
pub(crate) mod past;
mod plan;
pub(crate) mod precision;
mod reads;
pub(crate) mod rotation;
mod run;
mod score;
mod slots;
mod stages;
mod token_inputs;

use std::sync::Arc;

use burn::tensor::Device;
use half::bf16;
use judge_core::TokenId;

use super::Engine;
use crate::arch::ModelSpec;
use crate::reading::groups::Group;
use crate::reading::passes::Passes;
use crate::weights::{Numbers, Table, Tensors};
use crate::{Dtype, Error, Kernel};
use decoder::{Decoder, Source};
use host::{from_device, host, on_device};
pub(crate) use plan::Shapes;
use precision::{Precision, widen};

/// A decoder, and the shapes it is run in.
pub(crate) struct Batched {
    decoder: Decoder,
    shapes: Shapes,
    // Last: fields are dropped in this order.
    _memory: Memory,
}

/// Gives back, when it is dropped, what memory of its devices nothing holds any more. A card's allocator keeps what weights had for the
/// next tensors of just their size. On the processor there is nothing to do, and nothing is done.
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
    /// Takes the decoder that `spec` describes from its checkpoint, matrix by matrix, over at least one device and no more than blocks.
    pub(crate) fn load(
        spec: Arc<ModelSpec>,
        devices: &[Device],
        dtype: Dtype,
        shapes: Shapes,
        tensors: &mut dyn Tensors,
    ) -> Result<Self, Error> {
        let precision = match dtype {
            Dtype::F32 => Precision::FULL,
            Dtype::Bf16 => Precision::HALF,
        };
        // Before the decoder, so that it is dropped after what was loaded where the rest cannot be.
        let memory = Memory(devices.to_vec());
        let mut source = Stored { tensors, dtype };
        let decoder = on_device(|| Decoder::with_precision(spec, devices, precision, &mut source))?;
        for corner in decoder.corners() {
            host(widen(corner)).map_err(|error| Error::Upload { source: Box::new(error) })?;
        }
        Ok(Self { decoder, shapes, _memory: memory })
    }
}

impl Engine for Batched {
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

/// A checkpoint as the source of a decoder.
struct Stored<'a> {
    tensors: &'a mut dyn Tensors,
    dtype: Dtype,
}

impl Source for Stored<'_> {
    fn values(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, Error> {
        self.tensors.take(name, shape, self.dtype)
    }

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
