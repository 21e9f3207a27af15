//! The blocks below the lowest one that is learnt. Nothing changes there, so they run without a graph, and what
//! comes out of them may come from a file.
//!
//! Each sequence runs by itself, so that its states depend on nothing else and are the same bits from a file:
//!
//! ```text
//! each sequence ─┬► embed ─► blocks 0..first ─┬► states [rows, d_model] ─► padded with zeros, side by side
//!                └────────► states.rs ◄───────┘
//! ```
//!
//! What stands at padding changes nothing: a causal mask hides it from what is before it, an encoder's from all.

use std::sync::PoisonError;

use burn::tensor::{Device, Tensor, TensorData};
use judge_core::Layer;

use super::base::Base;
use super::batch::{Batch, Sequence};
use super::error::TrainError;
use super::pass::Entry;
use super::states::{self, Key};
use crate::Error;
use crate::engine::tensor::host::{host, on_device};

/// One sequence's streams, `[rows, d_model]` each.
struct Streams {
    input: Vec<f32>,
    inner: Vec<Vec<f32>>,
}

/// Runs the lower blocks over sequences, each of which reads something, or takes what was kept of them; `None` where
/// there are no lower blocks.
pub(super) fn of(base: &Base, sequences: &[Sequence<'_>], layers: &[Layer]) -> Result<Option<Entry>, TrainError> {
    if base.first_block == 0 {
        return Ok(None);
    }
    let below: Vec<usize> = (0..base.first_block).filter(|&layer| layers.contains(&Layer(layer))).collect();
    let streams =
        sequences.iter().map(|sequence| of_sequence(base, sequence, &below)).collect::<Result<Vec<_>, _>>()?;
    let d_model = base.spec.dimensions().d_model;
    let seq = sequences.iter().map(Sequence::needed).max().unwrap_or(1);
    let together = |of: &dyn Fn(&Streams) -> &Vec<f32>| {
        let padded = streams.iter().flat_map(|streams| {
            let rows = of(streams);
            rows.iter().copied().chain(std::iter::repeat_n(0.0, seq * d_model - rows.len()))
        });
        let data = TensorData::new(padded.collect::<Vec<_>>(), [streams.len(), seq, d_model]);
        Tensor::from_data(data, &Device::flex())
    };
    let inner =
        below.iter().enumerate().map(|(place, &layer)| (Layer(layer), together(&|streams| &streams.inner[place])));
    let input = together(&|streams| &streams.input);
    Ok(Some(Entry { block: base.first_block, input, inner: inner.collect() }))
}

/// The streams of one sequence, from the file if there is one: then no loss reads layers below.
fn of_sequence(base: &Base, sequence: &Sequence<'_>, below: &[usize]) -> Result<Streams, TrainError> {
    let Some(states) = &base.states else { return Ok(run(base, sequence, below)?) };
    let key: Key = states::key(sequence.tokens, sequence.types, sequence.needed());
    // What a thread that panicked has left is whole: a record is noted after it was written.
    let lock = || states.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = lock().take(&key)?;
    if let Some(input) = kept {
        return Ok(Streams { input, inner: Vec::new() });
    }
    let streams = run(base, sequence, below)?;
    lock().put(key, &streams.input)?;
    Ok(streams)
}

/// Runs one sequence.
fn run(base: &Base, sequence: &Sequence<'_>, below: &[usize]) -> Result<Streams, Error> {
    on_device(|| {
        let one = Batch::of(std::slice::from_ref(sequence), &base.spec);
        let network = base.frozen();
        let mut inner = Vec::with_capacity(below.len());
        let mut keep = |layer: usize, stream: &Tensor<3>| {
            if below.contains(&layer) {
                inner.push(stream.clone());
            }
        };
        let x = network.embed(&one);
        keep(0, &x);
        let input = network.run_blocks(0..base.first_block, x, &one, &mut keep);
        let inner = inner.into_iter().map(host).collect::<Result<_, _>>()?;
        Ok(Streams { input: host(input)?, inner })
    })
}
