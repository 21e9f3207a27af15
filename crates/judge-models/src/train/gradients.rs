//! Loss and gradient of some examples, by Burn's autodiff on the CPU.
//!
//! Blocks below the lowest that is learnt run without a graph (`lower.rs`). Those above run in pieces of
//! `TrainSettings::blocks_at_once`, each with a graph of its own, so that one piece's activations are in memory
//! at a time:
//!
//! ```text
//! forward, no graph     what comes out of frozen blocks ─► piece 0 ─► piece 1 ─► …        the input of each piece is kept
//! backward              the top piece, norm, head, loss: d loss / d its input
//!                       each piece below: run again, then backward of Σ output · (d loss / d output)
//!                       the embedding, where it is learnt
//! ```
//!
//! The top piece is computed once, so without pieces nothing is computed again. Inner layers that the loss reads
//! belong to the piece that gives them.
//!
//! Each call has networks of its own, whose frozen tensors are shared, so calls may run side by side.

use std::collections::HashMap;
use std::ops::Range;

use burn::tensor::{Device, Gradients, Tensor};
use judge_core::Layer;

use super::base::{Base, Found};
use super::batch::{Batch, Sequence};
use super::error::TrainError;
use super::loss::Loss;
use super::lower;
use super::pass::{self, Entry, Reads};
use super::trainable::Trainable;
use crate::Error;
use crate::engine::tensor::host::{host, on_device};

/// Loss, count and gradient of examples, and what those of micro-batches add up to.
pub(super) struct Sums {
    /// The sum over examples.
    pub(super) loss: f64,
    /// What they count.
    pub(super) count: f64,
    /// For each trainable its gradient, row-major.
    pub(super) gradients: Vec<Vec<f32>>,
    /// The first and the last example of the first micro-batch whose loss or gradient is not finite.
    pub(super) not_finite: Option<(usize, usize)>,
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
    blocks_at_once: Option<usize>,
) -> Result<Sums, TrainError> {
    let sequences = sequences(base, loss, examples);
    let lower = lower::of(base, &sequences, &loss.layers())?;
    let batch = Batch::of(&sequences, &base.spec);
    let (value, found) = on_device(|| backward(base, trainables, loss, (examples, &batch, lower), blocks_at_once))?;
    let named = found.into_iter().zip(trainables);
    let gradients = named
        .map(|(found, trainable)| found.ok_or(TrainError::NoGradient { parameter: trainable.name.clone() }))
        .collect::<Result<_, _>>()?;
    Ok(Sums { loss: value, count: count(loss, examples), gradients, not_finite: None })
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
    let sequences = sequences(base, loss, examples);
    let sum = read(base, trainables, &sequences, &loss.layers(), |reads| host(loss.sum(reads, examples)?))?;
    Ok((f64::from(sum[0]), count(loss, examples)))
}

/// What `of` makes of a pass over sequences, each of which reads something, without a graph.
pub(super) fn read<T>(
    base: &Base,
    trainables: &[Trainable],
    sequences: &[Sequence<'_>],
    layers: &[Layer],
    of: impl FnOnce(&Reads) -> Result<T, Error>,
) -> Result<T, TrainError> {
    let lower = lower::of(base, sequences, layers)?;
    let found = on_device(|| {
        let tuned = base.with(trainables, &Device::flex());
        let batch = Batch::of(sequences, &base.spec);
        let entry = lower.unwrap_or_else(|| pass::embedded(&tuned.network, &batch));
        of(&pass::run(tuned, &batch, entry, layers))
    });
    Ok(found?)
}

/// What examples count.
fn count<L: Loss>(loss: &L, examples: &[L::Example]) -> f64 {
    examples.iter().map(|example| loss.count(example)).sum()
}

/// The sequences of examples, as the loss reads them.
pub(super) fn sequences<'e, L: Loss>(base: &Base, loss: &L, examples: &'e [L::Example]) -> Vec<Sequence<'e>> {
    let padding = base.spec.labels().and_then(|head| head.padding);
    let sequences = examples.iter().flat_map(|example| loss.sequences(example));
    sequences.map(|sequence| sequence.without(padding)).collect()
}

/// The sum of the losses, and the gradient of each trainable that it depends on. `lower` is what comes out of the
/// blocks below those that are learnt, where there are some.
fn backward<L: Loss>(
    base: &Base,
    trainables: &[Trainable],
    loss: &L,
    (examples, batch, lower): (&[L::Example], &Batch, Option<Entry>),
    blocks_at_once: Option<usize>,
) -> Result<(f64, Found), Error> {
    let n_layers = base.spec.n_layers();
    let layers = loss.layers();
    let pieces = pieces(base.first_block..n_layers, blocks_at_once);
    let tracked = base.with(trainables, &Device::flex().autodiff());

    // Forward: what goes into each piece, and the inner layers below the top piece, without a graph.
    let plain = base.with(trainables, &Device::flex());
    let mut entry = lower.unwrap_or_else(|| pass::embedded(&plain.network, batch));
    let mut inputs = Vec::with_capacity(pieces.len());
    for piece in &pieces {
        entry = entry.advance(&plain.network, batch, piece.start, &layers);
        inputs.push(entry.input.clone());
    }
    drop(plain);

    // The top piece and the loss.
    let leaf = |x: &Tensor<3>| x.clone().autodiff().require_grad();
    let mut leaves: HashMap<Layer, Tensor<3>> = entry.inner.iter().map(|(&layer, x)| (layer, leaf(x))).collect();
    let top = pieces.len() - 1;
    let mut input = leaf(&inputs[top]);
    // Of the layer that is the input, the loss reads the input.
    leaves.remove(&Layer(pieces[top].start));
    let entry = Entry { block: pieces[top].start, input: input.clone(), inner: leaves.clone() };
    let sum = loss.sum(&pass::run(tracked.clone(), batch, entry, &layers), examples)?;
    let value = f64::from(host(sum.clone())?[0]);
    let mut found = vec![None; trainables.len()];
    let mut gradients = sum.backward();
    base.collect(&tracked, &mut gradients, trainables, &mut found)?;
    let of_layers: HashMap<Layer, Tensor<3>> =
        leaves.iter().filter_map(|(&layer, x)| Some((layer, x.grad(&gradients)?))).collect();
    let mut of_output = input.grad(&gradients);

    // The pieces below, from the top down.
    for (piece, x) in pieces[..top].iter().zip(&inputs).rev() {
        input = leaf(x);
        // What the loss reads of this piece, its output included, with the loss's gradient there.
        let mut products: Vec<Tensor<1>> = Vec::new();
        let output = tracked.network.run_blocks(piece.clone(), input.clone(), batch, &mut |layer, stream| {
            products.extend(of_layers.get(&Layer(layer)).map(|g| (stream.clone() * g.clone()).sum()));
        });
        products.extend(of_output.take().map(|g| (output * g).sum()));
        let Some(sum) = products.into_iter().reduce(|sum, one| sum + one) else { continue };
        let mut gradients: Gradients = sum.backward();
        base.collect(&tracked, &mut gradients, trainables, &mut found)?;
        of_output = input.grad(&gradients);
    }

    // The embedding, whose stream may be read too.
    if base.learns_embedding {
        let x = tracked.network.embed(batch);
        let read = of_layers.get(&Layer(0)).cloned();
        let products = of_output.into_iter().chain(read).map(|g| (x.clone() * g).sum());
        if let Some(sum) = products.reduce(|sum, one| sum + one) {
            base.collect(&tracked, &mut sum.backward(), trainables, &mut found)?;
        }
    }
    Ok((value, found))
}

/// Blocks in pieces of at most so many, from the top down, in the order of a pass. At least one, which may be
/// empty.
fn pieces(blocks: Range<usize>, at_once: Option<usize>) -> Vec<Range<usize>> {
    let at_once = at_once.unwrap_or(blocks.len()).max(1);
    let mut pieces = Vec::new();
    let mut end = blocks.end;
    while end > blocks.start || pieces.is_empty() {
        let start = end.saturating_sub(at_once).max(blocks.start);
        pieces.push(start..end);
        end = start;
    }
    pieces.reverse();
    pieces
}
