//! Loss and gradient of some examples, by Burn's autodiff on the CPU.
//!
//! Each call has a decoder of its own, whose frozen tensors are shared, so calls may run side by side.

use burn::tensor::{Device, Tensor};

use super::base::Base;
use super::error::TrainError;
use super::loss::Loss;
use super::pass::{self, Reads, Sequence};
use super::trainable::Trainable;
use crate::Error;
use crate::engine::tensor::host::{host, on_device};

/// Loss, count and gradient of a part of a batch.
pub(super) struct Part {
    /// The sum over examples.
    pub(super) loss: f64,
    /// What they count.
    pub(super) count: f64,
    /// For each trainable its gradient, row-major.
    pub(super) gradients: Vec<Vec<f32>>,
}

/// Loss, count and gradient of examples that have been checked, at least one, for each trainable in their
/// order.
///
/// # Errors
/// [`TrainError::NoGradient`] if the loss does not depend on a trainable, and [`Error::Device`].
pub(super) fn of_part<L: Loss>(
    base: &Base,
    trainables: &[Trainable],
    loss: &L,
    examples: &[L::Example],
) -> Result<Part, TrainError> {
    let (sum, reads, count) = on_device(|| forward(base, trainables, loss, examples, &Device::flex().autodiff()))?;
    let value = f64::from(host(sum.clone())?[0]);
    let gradients = on_device(|| Ok(sum.backward()))?;
    let gradients = base.gradients(&reads.into_tuned(), gradients, trainables)?;
    Ok(Part { loss: value, count, gradients })
}

/// Loss and count of examples that have been checked, at least one, without a graph.
///
/// # Errors
/// [`Error::Device`].
pub(super) fn loss_of<L: Loss>(
    base: &Base,
    trainables: &[Trainable],
    loss: &L,
    examples: &[L::Example],
) -> Result<(f64, f64), TrainError> {
    let (sum, _, count) = on_device(|| forward(base, trainables, loss, examples, &Device::flex()))?;
    Ok((f64::from(host(sum)?[0]), count))
}

/// The sum of the losses, `[1]`, what it was read from, and the count.
fn forward<L: Loss>(
    base: &Base,
    trainables: &[Trainable],
    loss: &L,
    examples: &[L::Example],
    device: &Device,
) -> Result<(Tensor<1>, Reads, f64), Error> {
    let padding = base.spec.labels().and_then(|head| head.padding);
    let sequences = examples.iter().flat_map(|example| loss.sequences(example));
    let sequences: Vec<Sequence<'_>> = sequences.map(|sequence| sequence.without(padding)).collect();
    let reads = pass::run(base.with(trainables, device), &sequences, &loss.layers())?;
    let count = examples.iter().map(|example| loss.count(example)).sum();
    Ok((loss.sum(&reads, examples)?, reads, count))
}
