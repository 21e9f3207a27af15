//! The engine of this path: a decoder loaded from a checkpoint.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use burn::tensor::Device;
use half::bf16;
use judge_arch::ModelSpec;
use judge_kernels::numbers::Numbers;

use super::decoder::Decoder;
use super::host::{from_device, host, on_device};
use super::parameters::Source;
use super::plan::Shapes;
use super::precision::{Precision, widen};
use super::schedule::{Feeds, Planned, Sequence, schedule};
use crate::reading::groups::Group;
use crate::weights::{Table, Tensors};
use crate::{Dtype, Error};

/// The engine of this path: a decoder, and the shapes it is run in.
pub(crate) struct Batched {
    /// The weights and the forward pass.
    pub(super) decoder: Decoder,
    /// Shapes of batches; [`Shapes::CUDA`] outside of tests.
    pub(super) shapes: Shapes,
    /// How many positions a batch may have since a device's memory was full.
    pub(super) room: AtomicUsize,
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
        Ok(Self { decoder, shapes, room: AtomicUsize::new(usize::MAX), _memory: memory })
    }

    /// The passes of some jobs of a group, by their places. Batches have at most `max_tokens` positions, or one member.
    pub(super) fn planned(&self, group: &Group<'_>, members: &[usize], max_tokens: usize) -> VecDeque<Planned> {
        let sequence = |&member: &usize| {
            let job = &group.jobs[member];
            let new = job.want.generate.as_ref().map(|_| job.new_tokens());
            // Where no block is run there is nothing to share.
            let shareable = if group.blocks > 0 { job.unread() } else { 0 };
            Sequence { ids: &job.ids, new, shareable }
        };
        let sequences: Vec<Sequence<'_>> = members.iter().map(sequence).collect();
        let mut planned = schedule(&sequences, self.shapes, max_tokens);
        for Planned { feeds, .. } in &mut planned {
            match feeds {
                Feeds::Prefix { sequence, .. } => *sequence = members[*sequence],
                Feeds::Batch { batch, .. } => batch.members.iter_mut().for_each(|member| *member = members[*member]),
            }
        }
        planned.into()
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
        Ok(self.tensors.take(name, shape, self.dtype)?)
    }

    /// Copies rows straight from the reader's, so that bf16 is never widened. Only called where the
    /// dtype is bf16; parts of another dtype do not come then.
    fn append_bf16(&mut self, name: &str, shape: [usize; 2], to: &mut Vec<bf16>) -> Result<(), Error> {
        let append = &mut |_, rows: Numbers<'_>| {
            if let Numbers::Bf16(rows) = rows {
                to.extend_from_slice(rows);
            }
        };
        Ok(self.tensors.take_rows(name, shape, Dtype::Bf16, append)?)
    }

    fn table(&mut self, name: &str, shape: [usize; 2]) -> Result<Table, Error> {
        Ok(self.tensors.table(name, shape, self.dtype)?)
    }
}
