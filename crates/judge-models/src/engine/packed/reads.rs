//! What passes of a decoder bring for one sequence: states of its last position, and what is pooled
//! over all of its positions.
//!
//! `run.rs` calls [`Read::take`] with the last row of a sequence after each block, and [`signals`]
//! once the sequence is complete. `run.rs` owns pools while a sequence runs; `reading/` says what
//! is wanted and makes the answers.
//!
//! | wanted | below the last layer | last layer |
//! |---|---|---|
//! | pooled, `Last` | the row | the normed row |
//! | labels, lens `Raw` | the row | see `labels::lens_at`: normed |
//! | labels, lens `Normed` | the normed row | the normed row |
//! | logits over the vocabulary | — | the normed row, in [`Read::normed`] |

use std::collections::HashMap;

use judge_core::{
    Layer, Lens,
    reading::{HeadEntropies, PooledState},
    request::{Pooling, Signal},
};

use super::decoder::PackedDecoder;
use crate::reading::jobs::{Job, Signals};
use crate::reading::labels::{AtLayer, States, wants_state};
use crate::reading::pooling::Pool;

/// What is pooled so far, for one sequence or for several that agree up to here. In the order of
/// the segment's `whole`; see `SharedPasses`.
pub(super) type Pools = Vec<((Layer, Signal), Pool)>;

/// What one pass brings for the last position of one sequence.
#[derive(Default)]
pub(super) struct Read {
    /// States from which label logits are made, `[d_model]` each.
    pub(super) states: States,
    /// States of layers whose pooling is `Last`, or where the pass fed a new token, of layers whose reply
    /// is read; `[d_model]` each, the last layer's behind the final norm.
    pub(super) last: Vec<(Layer, Vec<f32>)>,
    /// The last block's output behind the final norm, `[d_model]`, if logits over the vocabulary
    /// are needed; otherwise empty.
    pub(super) normed: Vec<f32>,
}

impl Read {
    /// Keeps what `job` asks of `row`, the residual stream `[d_model]` at `layer` for the
    /// sequence's last position. `is_prompt` tells the prompt's last token from one that was
    /// written: pooled states are those of the prompt alone, and states of the reply those of the others. The final norm is computed only
    /// where something needs it.
    pub(super) fn take(&mut self, decoder: &PackedDecoder, job: &Job<'_>, is_prompt: bool, layer: usize, row: &[f32]) {
        let step = usize::from(!is_prompt);
        let n_layers = decoder.spec.n_layers();
        let (want, layer, is_final) = (job.want, Layer(layer), layer == n_layers);
        let wants = |lens| wants_state(want, step, layer, lens, n_layers);
        let is_kept = match is_prompt {
            true => want.pooled.contains(&(layer, Pooling::Last)),
            false => job.reads_reply(layer),
        };
        if is_kept && !is_final {
            self.last.push((layer, row.to_vec()));
        }
        if wants(Lens::Raw) {
            self.states.insert((layer, Lens::Raw), AtLayer::State(row.to_vec()));
        }
        let needs_logits = is_final && job.needs_logits(step);
        if !(needs_logits || wants(Lens::Normed) || is_kept && is_final) {
            return;
        }
        let normed = decoder.final_norm(row);
        if is_kept && is_final {
            self.last.push((layer, normed.clone()));
        }
        if wants(Lens::Normed) {
            self.states.insert((layer, Lens::Normed), AtLayer::State(normed.clone()));
        }
        if needs_logits {
            self.normed = normed;
        }
    }
}

/// Whether a signal pools hidden states and not attention entropies.
pub(super) fn is_state(signal: Signal) -> bool {
    matches!(signal, Signal::State(_))
}

/// The layers whose attention entropies are among the wanted signals.
pub(super) fn entropies(wanted: &[(Layer, Signal)]) -> Vec<Layer> {
    wanted.iter().filter(|(_, signal)| !is_state(*signal)).map(|&(layer, _)| layer).collect()
}

/// A finished sequence's pooled states and entropies, in the order in which the job asks for them.
/// Values are empty where nothing was pooled, which does not happen for a sequence that ran through
/// its blocks.
pub(super) fn signals(job: &Job<'_>, last: &[(Layer, Vec<f32>)], pools: Pools) -> Signals {
    let whole: HashMap<(Layer, Signal), Vec<f32>> =
        pools.into_iter().map(|(wanted, pool)| (wanted, pool.finish())).collect();
    let get = |wanted| whole.get(&wanted).cloned().unwrap_or_default();
    let state = |&(layer, pooling): &(Layer, Pooling)| {
        let last = || last.iter().find(|(at, _)| *at == layer).map(|(_, state)| state.clone());
        let values = match pooling {
            Pooling::Last => last().unwrap_or_default(),
            _ => get((layer, Signal::State(pooling))),
        };
        PooledState { layer, pooling, values }
    };
    let heads = |&layer: &Layer| HeadEntropies { layer, values: get((layer, Signal::AttentionEntropy)) };
    Signals {
        pooled: job.want.pooled.iter().map(state).collect(),
        attention_entropy: job.want.attention_entropy.iter().map(heads).collect(),
    }
}
