//! What passes bring, from the devices to the host: reductions that are queued ([`Queued`]), fetched
//! at once ([`Fetched`]), and put together for each sequence as its job wants them.
//!
//! `reads.rs` makes the reductions. Nothing is decided here: what a row lacks, nobody wanted.

use burn::tensor::{Tensor, Transaction};
use judge_arch::ModelSpec;
use judge_core::{
    Layer, Lens, Want,
    reading::{HeadEntropies, PooledState},
    request::{Pooling, TokenId},
};

use super::host::from_device;
use crate::Error;
use crate::reading::jobs::{Job, Signals};
use crate::reading::labels::{AtLayer, States, lens_at};
use crate::reading::next_token::FoundNext;
use crate::reading::pooling::Pool;

/// A reduction of a layer's states (or of what the head makes of them), with one row per sequence
/// unless it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// The last position's state, `[d_model]`; of the last layer after the final norm.
    Last,
    /// The logits of all labels that sequences of the batch read, `[labels]`, from the last
    /// position's state as the lens shows it. Of the last layer there is [`Lens::Normed`] alone.
    Labels(Lens),
    /// The first position's state, `[d_model]`; of the last layer after the final norm.
    First,
    /// Sum over the sequence's own positions by coordinate, `[d_model]` in f32; of the last layer
    /// after the final norm. Also made for minimum and maximum, which need it to find a NaN.
    Sum,
    /// Minimum over the same positions, `[d_model]`; `+inf` stands at padding.
    Min,
    /// Maximum over the same positions, `[d_model]`; `-inf` stands at padding.
    Max,
    /// Logits over the vocabulary at the last position, `[d_vocab]`, where text is drawn at random.
    Logits,
    /// The most likely token at the last position, or NaN, and behind it the numbers of
    /// [`What::Next`], where all texts of the batch are written greedily: `[1 + k]`.
    Greedy,
    /// Log-probabilities of the tokens that may come next, `[k]`, in the order of
    /// [`Job::next_tokens`] and padded to the longest list.
    Next,
    /// Log-probabilities of all tokens that are scored, one sequence's behind the other's: a single
    /// row for the batch.
    Own,
    /// The attention entropies of all positions, padding included, `[seq, n_heads]`.
    Entropies,
}

/// The reductions of a pass that is queued on its devices.
pub(super) struct Queued {
    /// What is to be brought, without its numbers.
    fetched: Fetched,
    /// The reductions, `[batch, 1, width]`, entropies `[batch, seq, n_heads]`, [`What::Own`]
    /// `[1, count, 1]`. The first axis is that of the rows.
    wanted: Vec<(Layer, What, Tensor<3>)>,
    /// The tokens of [`What::Greedy`], to be fed: `[batch]`.
    chosen: Option<Tensor<1>>,
}

impl Queued {
    /// Reductions of a pass of the model that `spec` describes, the labels of [`What::Labels`], ascending, and the
    /// tokens of [`What::Greedy`].
    pub(super) fn new(
        spec: &ModelSpec,
        labels: Vec<TokenId>,
        wanted: Vec<(Layer, What, Tensor<3>)>,
        chosen: Option<Tensor<1>>,
    ) -> Self {
        let fetched = Fetched { n_layers: spec.n_layers(), n_heads: spec.n_heads, labels, parts: Vec::new() };
        Self { fetched, wanted, chosen }
    }

    /// The tokens that the device chooses behind this pass, `[batch]`, where all texts of the batch are written greedily.
    pub(super) fn chosen(&self) -> Option<Tensor<1>> {
        self.chosen.clone()
    }

    /// Waits for the devices and fetches what was queued, one device after the other.
    ///
    /// # Errors
    /// [`Error::Device`] if a device fails.
    pub(super) fn fetch(self) -> Result<Fetched, Error> {
        let Self { mut fetched, mut wanted, .. } = self;
        // A transaction reads from one device.
        while let Some(device) = wanted.first().map(|(_, _, tensor)| tensor.device()) {
            let (here, elsewhere): (Vec<_>, Vec<_>) =
                wanted.into_iter().partition(|(_, _, tensor)| tensor.device() == device);
            wanted = elsewhere;
            let mut transaction = Transaction::default();
            let mut names = Vec::with_capacity(here.len());
            for (layer, what, tensor) in here {
                transaction = transaction.register(tensor);
                names.push((layer, what));
            }
            let data = from_device(|| transaction.try_execute())?;
            for ((layer, what), data) in names.into_iter().zip(data) {
                let rows = data.shape().first().copied().unwrap_or(0);
                let values: Vec<f32> =
                    data.try_into_vec().map_err(|source| Error::Device { source: Box::new(source) })?;
                let width = (values.len() / rows.max(1)).max(1);
                fetched.parts.push(Part { layer, what, width, values });
            }
        }
        Ok(fetched)
    }
}

/// What a pass brought, on the host.
pub(super) struct Fetched {
    /// The model's, to know which layer is the last.
    n_layers: usize,
    /// The model's query heads: numbers per position in a row of entropies.
    n_heads: usize,
    /// The labels whose logits a row has, ascending.
    labels: Vec<TokenId>,
    /// One for each layer and reduction.
    parts: Vec<Part>,
}

/// One reduction of one layer, `[rows, width]`.
struct Part {
    /// Layer 0 is the embedding, layer `i` the output of block `i - 1`.
    layer: Layer,
    /// The reduction.
    what: What,
    /// Numbers of a row; at least 1.
    width: usize,
    /// Row-major.
    values: Vec<f32>,
}

impl Fetched {
    /// The row of the sequence in place `row` of the batch; empty if nobody wanted this.
    fn row(&self, layer: Layer, what: What, row: usize) -> &[f32] {
        let part = self.parts.iter().find(|part| part.layer == layer && part.what == what);
        part.and_then(|part| part.values.chunks_exact(part.width).nth(row)).unwrap_or(&[])
    }

    /// The label logits of a row, by layer and lens. What no sequence of the batch wanted at this
    /// step is left out.
    pub(super) fn labels(&self, row: usize, want: &Want) -> States {
        let mut found = States::new();
        for read in &want.labels {
            for &layer in &read.layers {
                let lens = lens_at(read.lens, layer, self.n_layers);
                let logits = self.row(layer, What::Labels(lens), row);
                if !logits.is_empty() {
                    let logits = self.labels.iter().copied().zip(logits.iter().copied()).collect();
                    found.insert((layer, lens), AtLayer::Logits(logits));
                }
            }
        }
        found
    }

    /// What follows a prompt behind which nothing is written: the log-probabilities of
    /// [`Job::next_tokens`] for step 0.
    pub(super) fn next(&self, row: usize, job: &Job<'_>) -> FoundNext {
        found(None, job, 0, self.row(Layer(self.n_layers), What::Next, row))
    }

    /// What follows a text which is written greedily: its token, and the log-probabilities of
    /// [`Job::next_tokens`] for `step`; `None` if logits were fetched instead.
    pub(super) fn greedy(&self, row: usize, job: &Job<'_>, step: usize) -> Option<FoundNext> {
        let (&token, log_probs) = self.row(Layer(self.n_layers), What::Greedy, row).split_first()?;
        Some(found(token.is_finite().then_some(token as TokenId), job, step, log_probs))
    }

    /// The log-probabilities of the scored tokens of the job in place `row`; `jobs` are those of
    /// the whole batch, whose tokens lie one job behind the other. Empty if the job has none.
    pub(super) fn own(&self, row: usize, jobs: &[&Job<'_>]) -> Vec<f32> {
        let count = |job: &&Job<'_>| job.scored_from.map_or(0, |from| job.ids.len() - from);
        let start: usize = jobs[..row].iter().map(count).sum();
        let all = self.row(Layer(self.n_layers), What::Own, 0);
        all.get(start..start + count(&jobs[row])).unwrap_or_default().to_vec()
    }

    /// The logits of a row over the vocabulary, `[d_vocab]`, without the soft-cap; empty if no text
    /// is drawn at random.
    pub(super) fn logits(&self, row: usize) -> &[f32] {
        self.row(Layer(self.n_layers), What::Logits, row)
    }

    /// What all positions of a prompt brought: pooled states, and entropies averaged over its own
    /// positions in `f64`.
    pub(super) fn signals(&self, row: usize, job: &Job<'_>) -> Signals {
        let entropies = |&layer: &Layer| {
            let mut pool = Pool::new(Pooling::Mean);
            let positions = self.row(layer, What::Entropies, row).chunks_exact(self.n_heads.max(1));
            positions.take(job.ids.len()).for_each(|heads| pool.add(heads)); // padding is behind them
            HeadEntropies { layer, values: pool.finish() }
        };
        let attention_entropy = job.want.attention_entropy.iter().map(entropies).collect();
        Signals { pooled: self.pooled(row, job), attention_entropy }
    }

    /// The states of a token that was written, of the layers whose reply is read.
    pub(super) fn fed(&self, row: usize, job: &Job<'_>) -> Vec<(Layer, Vec<f32>)> {
        let layers = self.parts.iter().filter(|part| part.what == What::Last && job.reads_reply(part.layer));
        layers.map(|part| (part.layer, self.row(part.layer, What::Last, row).to_vec())).collect()
    }

    /// The pooled states of a prompt, in the order asked for. A mean is the device's f32 sum,
    /// divided on the host.
    fn pooled(&self, row: usize, job: &Job<'_>) -> Vec<PooledState> {
        let state = |&(layer, pooling): &(Layer, Pooling)| {
            let get = |what| self.row(layer, what, row);
            // A device's minimum may pass over a NaN, which must not be pooled away; no sum does.
            let unless_nan = |values: &[f32]| {
                values.iter().zip(get(What::Sum)).map(|(&x, sum)| if sum.is_nan() { f32::NAN } else { x }).collect()
            };
            let values = match pooling {
                Pooling::First => get(What::First).to_vec(),
                Pooling::Last => get(What::Last).to_vec(),
                Pooling::Mean => {
                    let count = job.ids.len() as f64;
                    get(What::Sum).iter().map(|&sum| (f64::from(sum) / count) as f32).collect()
                }
                Pooling::Min => unless_nan(get(What::Min)),
                Pooling::Max => unless_nan(get(What::Max)),
            };
            PooledState { layer, pooling, values }
        };
        job.want.pooled.iter().map(state).collect()
    }
}

/// A token, and the log-probabilities of [`Job::next_tokens`] for `step`.
fn found(token: Option<TokenId>, job: &Job<'_>, step: usize, log_probs: &[f32]) -> FoundNext {
    FoundNext { token, log_probs: job.next_tokens(step).into_iter().zip(log_probs.iter().copied()).collect() }
}
