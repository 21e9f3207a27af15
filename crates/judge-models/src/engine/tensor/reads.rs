//! What one pass over a batch brings to the host: reduced on the device where it lies, fetched from
//! each device at once.
//!
//! ```text
//! Decoder::forward ─► visit(layer, stream [batch, seq, d_model])      queues reductions: a row per sequence
//!                  ─► take(entropies)
//!                  ─► finish: one transaction per device ─► Fetched   numbers on the host, by layer and reduction
//! run.rs           ─► Fetched::states, signals, own, next, logits     what each row's job wants of them
//! ```
//!
//! [`What`] lists the reductions. A layer's reduction is made for the whole batch if one sequence
//! wants it, and only then; each sequence takes its row. Jobs say what they want
//! (`reading/jobs.rs`), so this path and the packed one cannot differ in it. Label logits are not
//! made here: the host multiplies the states that this file brings (`reading/labels.rs`).
//!
//! Nothing waits for a device before [`Reads::finish`], so blocks and reductions are queued without
//! a gap.
//!
//! NaN is kept, so that a reading with one is refused: a device's minimum or maximum may pass over
//! a NaN, but no sum does, so extremes are replaced by NaN wherever the sum is NaN.

use burn::tensor::{Bool, Device, Int, Tensor, TensorData, Transaction};
use judge_core::{HeadEntropies, Layer, Lens, PooledState, Pooling, Want};

use super::block_ops::Entropies;
use super::decoder::Decoder;
use super::host::from_device;
use super::score::{Tokens, score};
use crate::Error;
use crate::reading::jobs::{Job, Signals};
use crate::reading::labels::{States, lens_at, wants_state};
use crate::reading::passes::NextOfSome;
use crate::reading::pooling::Pool;

/// A reduction of a layer's states (or of what the head makes of them), with one row per sequence
/// unless it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// The last position's state as it is, `[d_model]`. Never of the last layer, which is read
    /// normed.
    Last,
    /// The last position's state after the final norm, `[d_model]`.
    Normed,
    /// The first position's state, `[d_model]`; of the last layer after the final norm.
    First,
    /// Sum over the sequence's own positions by coordinate, `[d_model]` in f32; of the last layer
    /// after the final norm. Also made for minimum and maximum, which need it to find a NaN.
    Sum,
    /// Minimum over the same positions, `[d_model]`; `+inf` stands at padding.
    Min,
    /// Maximum over the same positions, `[d_model]`; `-inf` stands at padding.
    Max,
    /// Logits over the vocabulary at the last position, `[d_vocab]`, where text is written.
    Logits,
    /// Log-probabilities of the tokens that may come next, `[k]`, in the order of
    /// [`Job::next_tokens`] and padded to the longest list.
    Next,
    /// Log-probabilities of all tokens that are scored, one sequence's behind the other's: a single
    /// row for the batch.
    Own,
    /// The attention entropies of all positions, padding included, `[seq, n_heads]`.
    Entropies,
}

/// What the sequences of a batch want of one pass, and the reductions that are queued for it.
pub(super) struct Reads<'a> {
    /// For the final norm, the head and the stages.
    decoder: &'a Decoder,
    /// One per row.
    jobs: &'a [&'a Job<'a>],
    /// Whether the pass feeds prompts; otherwise it feeds one new token of each sequence.
    prompts: bool,
    /// The head in f32, `[d_vocab, d_model]`, where text is written behind the pass; then all
    /// logits are fetched. `None`: at most log-probabilities of some tokens are.
    writes: Option<Tensor<2>>,
    /// Where to read, on the device of each of the decoder's stages.
    places: Vec<Places>,
    /// Queued reductions, `[batch, 1, width]`, entropies `[batch, seq, n_heads]`, [`What::Own`]
    /// `[1, count, 1]`. The first axis is that of the rows.
    wanted: Vec<(Layer, What, Tensor<3>)>,
}

/// Which positions of a batch are read, as tensors on one device.
struct Places {
    /// Rows of the last positions in `[batch * seq]`, shape `[batch]`.
    last: Tensor<1, Int>,
    /// `true` at padding, `[batch, seq, 1]`; `None` where no sequence wants more than its last
    /// position.
    padding: Option<Tensor<3, Bool>>,
}

impl Places {
    /// Puts both on a device. `padding` is row-major, `[batch, seq, 1]`.
    fn new(last: &[i32], padding: Option<&[bool]>, device: &Device) -> Self {
        let batch = last.len();
        let padding = padding.map(|padding| {
            let seq = padding.len() / batch.max(1);
            Tensor::from_data(TensorData::new(padding.to_vec(), [batch, seq, 1]), device)
        });
        Self { last: Tensor::from_data(TensorData::from(last), device), padding }
    }
}

impl<'a> Reads<'a> {
    /// Reads of prompts that are padded to `seq` positions. `writes` is the head in f32 if text is
    /// written behind them.
    pub(super) fn of_prompts(
        decoder: &'a Decoder,
        jobs: &'a [&'a Job<'a>],
        seq: usize,
        writes: Option<Tensor<2>>,
    ) -> Self {
        let last: Vec<i32> = jobs.iter().enumerate().map(|(row, job)| (row * seq + job.ids.len() - 1) as i32).collect();
        let padding: Option<Vec<bool>> = jobs
            .iter()
            .any(|job| job.whole().next().is_some())
            .then(|| jobs.iter().flat_map(|job| (0..seq).map(|position| position >= job.ids.len())).collect());
        let places = |device: &Device| Places::new(&last, padding.as_deref(), device);
        let places = decoder.devices().iter().map(places).collect();
        Self { decoder, jobs, prompts: true, writes, places, wanted: Vec::new() }
    }

    /// Reads of one new token of each sequence, with the head in f32. Tokens that nobody wants any
    /// more are read with the others.
    pub(super) fn of_step(decoder: &'a Decoder, jobs: &'a [&'a Job<'a>], head: Tensor<2>) -> Self {
        let last: Vec<i32> = (0..jobs.len() as i32).collect();
        let places = decoder.devices().iter().map(|device| Places::new(&last, None, device)).collect();
        Self { decoder, jobs, prompts: false, writes: Some(head), places, wanted: Vec::new() }
    }

    /// Queues what is wanted of the residual stream `[batch, seq, d_model]` at `layer`, on its
    /// device.
    pub(super) fn visit(&mut self, layer: Layer, x: &Tensor<3>) {
        let [batch, seq, d_model] = x.dims();
        let Places { last: positions, padding } = &self.places[self.decoder.stage_of(layer.0)];
        let (positions, padding) = (positions.clone(), padding.clone());
        let is_final = layer.0 == self.decoder.spec().n_layers();
        let wanted = |what| self.jobs.iter().any(|job| self.wants(job, layer, what));
        let (last, normed) = (wanted(What::Last), wanted(What::Normed));
        let (first, sum) = (wanted(What::First), wanted(What::Sum));
        let (min, max) = (wanted(What::Min), wanted(What::Max));
        if last || normed {
            // [batch, seq, d_model] -> [batch * seq, d_model] -> [batch, d_model] -> [batch, 1, d_model]
            let rows = x.clone().reshape([batch * seq, d_model]).select(0, positions);
            let rows = rows.reshape([batch, 1, d_model]);
            if last {
                self.fetch(layer, What::Last, rows.clone());
            }
            if normed {
                let rows = self.decoder.final_norm(rows);
                if let Some(head) = self.writes.clone().filter(|_| is_final) {
                    let logits = self.decoder.logits_by(head, rows.clone()); // [batch, 1, d_vocab]
                    self.fetch(layer, What::Logits, logits);
                } else if let Some(tokens) = self.next_tokens().filter(|_| is_final) {
                    let rows = rows.clone().reshape([1, batch, d_model]);
                    let found = score(self.decoder, self.decoder.wide_head(), rows, &tokens);
                    self.fetch(layer, What::Next, found.reshape([batch as i32, 1, -1])); // [1, batch, k] -> [batch, 1, k]
                }
                self.fetch(layer, What::Normed, rows);
            }
        }
        if first {
            let rows = x.clone().slice([0..batch, 0..1]); // [batch, seq, d_model] -> [batch, 1, d_model]
            self.fetch(layer, What::First, if is_final { self.decoder.final_norm(rows) } else { rows });
        }
        if is_final && self.prompts {
            self.score_own(x);
        }
        if let Some(padding) = padding
            && (sum || min || max)
        {
            let x = if is_final { self.decoder.final_norm(x.clone()) } else { x.clone() };
            let padding = padding.expand([batch, seq, d_model]);
            let with = |value: f32| x.clone().mask_fill(padding.clone(), value);
            // [batch, seq, d_model] -> [batch, 1, d_model]
            self.fetch(layer, What::Sum, with(0.0).sum_dim(1));
            if min {
                self.fetch(layer, What::Min, with(f32::INFINITY).min_dim(1));
            }
            if max {
                self.fetch(layer, What::Max, with(f32::NEG_INFINITY).max_dim(1));
            }
        }
    }

    /// For each sequence, the tokens whose log-probabilities behind its last position are wanted;
    /// `None` if there are none at all.
    fn next_tokens(&self) -> Option<Tokens> {
        Tokens::new(self.jobs.iter().map(|job| job.next_tokens(self.step())).collect())
    }

    /// Queues the log-probabilities of the tokens that are scored, from the last block's output
    /// `[batch, seq, d_model]`: the token at position `p` by the state at `p - 1`. Only these
    /// positions go through the head.
    fn score_own(&mut self, x: &Tensor<3>) {
        let [batch, seq, d_model] = x.dims();
        let (mut positions, mut tokens) = (Vec::new(), Vec::new());
        for (row, job) in self.jobs.iter().enumerate() {
            for position in job.scored_from.into_iter().flat_map(|from| from..job.ids.len()) {
                positions.push((row * seq + position - 1) as i32);
                tokens.push(vec![job.ids[position]]);
            }
        }
        let count = positions.len();
        let Some(tokens) = Tokens::new(tokens) else { return };
        let positions = Tensor::<1, Int>::from_data(TensorData::from(positions.as_slice()), &x.device());
        // [batch, seq, d_model] -> [batch * seq, d_model] -> [1, count, d_model]
        let rows = x.clone().reshape([batch * seq, d_model]).select(0, positions).reshape([1, count, d_model]);
        let head = self.writes.clone().unwrap_or_else(|| self.decoder.wide_head());
        let found = score(self.decoder, head, self.decoder.final_norm(rows), &tokens); // [1, count, 1]
        self.fetch(Layer(self.decoder.spec().n_layers()), What::Own, found);
    }

    /// The number of the token which the pass predicts, as far as it matters: 0 behind the prompt,
    /// 1 for all later ones.
    fn step(&self) -> usize {
        usize::from(!self.prompts)
    }

    /// The attention entropies that the pass is to bring, of all layers that a sequence wants. None
    /// are read of new tokens.
    pub(super) fn entropies(&self) -> Option<Entropies> {
        let wants: &[&Job<'_>] = if self.prompts { self.jobs } else { &[] };
        let mut layers: Vec<Layer> = wants.iter().flat_map(|job| &job.want.attention_entropy).copied().collect();
        layers.sort_unstable();
        layers.dedup();
        Entropies::of(layers)
    }

    /// Queues the entropies that the pass brought.
    pub(super) fn take(&mut self, entropies: Entropies) {
        for (layer, rows) in entropies.found {
            self.fetch(layer, What::Entropies, rows); // [batch, seq, n_heads]
        }
    }

    /// Whether a job wants this reduction of this layer. [`What::Next`] and [`What::Own`] depend on
    /// lists of tokens, which `visit` looks at itself.
    fn wants(&self, job: &Job<'_>, layer: Layer, what: What) -> bool {
        let (n_layers, want) = (self.decoder.spec().n_layers(), job.want);
        let pooled = |pooling| self.prompts && want.pooled.contains(&(layer, pooling));
        let labels = |lens| wants_state(want, self.step(), layer, lens, n_layers);
        match what {
            // The last block's output is only ever read normed.
            What::Last if layer.0 == n_layers => false,
            What::Last => pooled(Pooling::Last) || labels(Lens::Raw),
            What::Normed if layer.0 == n_layers => {
                job.needs_logits(self.step()) || pooled(Pooling::Last) || labels(Lens::Normed)
            }
            What::Normed => labels(Lens::Normed),
            What::First => pooled(Pooling::First),
            What::Sum => pooled(Pooling::Mean),
            What::Min => pooled(Pooling::Min),
            What::Max => pooled(Pooling::Max),
            What::Logits => self.writes.is_some() && layer.0 == n_layers,
            What::Next | What::Own => layer.0 == n_layers,
            What::Entropies => self.prompts && want.attention_entropy.contains(&layer),
        }
    }

    /// Notes that a tensor is to be fetched as this reduction of this layer. Its first axis is that
    /// of the rows.
    fn fetch(&mut self, layer: Layer, what: What, tensor: Tensor<3>) {
        self.wanted.push((layer, what, tensor));
    }

    /// Waits for the devices and fetches what was queued, one device after the other.
    ///
    /// # Errors
    /// [`Error::Device`] if a device fails.
    pub(super) fn finish(self) -> Result<Fetched, Error> {
        let mut parts = Vec::with_capacity(self.wanted.len());
        let mut wanted = self.wanted;
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
                parts.push(Part { layer, what, width, values });
            }
        }
        let (n_layers, n_heads) = (self.decoder.spec().n_layers(), self.decoder.spec().n_heads);
        Ok(Fetched { n_layers, n_heads, parts })
    }
}

/// What a pass brought, on the host.
pub(super) struct Fetched {
    /// The model's, to know which layer is the last.
    n_layers: usize,
    /// The model's query heads: numbers per position in a row of entropies.
    n_heads: usize,
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

    /// The last position's states that the label logits of a row are made from, by layer and lens.
    /// States that no sequence of the batch wanted at this step are left out.
    pub(super) fn states(&self, row: usize, want: &Want) -> States {
        let mut states = States::new();
        for read in &want.labels {
            for &layer in &read.layers {
                let lens = lens_at(read.lens, layer, self.n_layers);
                let what = if lens == Lens::Raw { What::Last } else { What::Normed };
                let state = self.row(layer, what, row);
                if !state.is_empty() {
                    states.insert((layer, lens), state.to_vec());
                }
            }
        }
        states
    }

    /// The log-probabilities of the tokens that may come behind a prompt, those of
    /// [`Job::next_tokens`] for step 0.
    pub(super) fn next(&self, row: usize, job: &Job<'_>) -> NextOfSome {
        let log_probs = self.row(Layer(self.n_layers), What::Next, row);
        NextOfSome(job.next_tokens(0).into_iter().zip(log_probs.iter().copied()).collect())
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
    /// is written.
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
                Pooling::Last if layer.0 == self.n_layers => get(What::Normed).to_vec(),
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
