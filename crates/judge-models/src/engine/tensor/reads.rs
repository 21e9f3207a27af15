//! What is read of one pass over a batch: reductions of its states, queued on the device where they
//! lie, so that little is fetched.
//!
//! ```text
//! Decoder::forward ─► visit(layer, stream [batch, seq, d_model])      queues reductions: a row per sequence
//!                  ─► take(entropies)
//!                  ─► queued ─► fetched.rs
//! ```
//!
//! [`What`] lists the reductions. A layer's reduction is made for the whole batch if one sequence
//! wants it, and only then; each sequence takes its row. Jobs say what they want
//! (`reading/jobs.rs`), so this path and the packed one cannot differ in it.
//!
//! In the last block that is run, rows that nobody reads are left out behind attention
//! ([`Reads::kept`]), unless a sequence is read at all positions.
//!
//! Nothing waits for a device before [`Queued::fetch`], but blocks with experts, for the router's choice, and token inputs, for tokens that
//! a device has chosen; so blocks and reductions are queued without a gap.
//!
//! NaN is kept, so that a reading with one is refused: a device's minimum or maximum may pass over
//! a NaN, but no sum does, so extremes are replaced by NaN wherever the sum is NaN.

use burn::tensor::{Bool, Device, Int, Tensor, TensorData};
use judge_core::{
    Layer, Lens,
    request::{Pooling, Sampling, TokenId},
};

use super::block_ops::Entropies;
use super::decoder::Decoder;
use super::fetched::{Queued, What};
use super::ops;
use super::precision::widen;
use super::score::{Tokens, greedy, score};
use crate::reading::jobs::Job;
use crate::reading::labels::{is_read_at, wants_state};

/// What the sequences of a batch want of one pass, and the reductions that are queued for it.
pub(super) struct Reads<'a> {
    /// For the final norm, the head and the stages.
    decoder: &'a Decoder,
    /// One per row.
    jobs: &'a [&'a Job<'a>],
    /// Whether the pass feeds prompts; otherwise it feeds one new token of each sequence.
    prompts: bool,
    /// The first position of the pass: behind a prefix, if there is one.
    start: usize,
    /// Positions of the pass, with padding.
    seq: usize,
    /// Whether text is written behind the pass; then a token is chosen or all logits are fetched.
    /// Else at most log-probabilities of some tokens are.
    writes: bool,
    /// Where to read, on the device of each of the decoder's stages.
    places: Vec<Places>,
    /// The labels that some sequence reads in this pass, ascending.
    labels: Vec<TokenId>,
    /// Their rows of the head, `[labels, d_model]` in f32 on the device of each stage; none if there
    /// are no labels.
    heads: Vec<Tensor<2>>,
    /// The highest layer, behind the last block that is run.
    top: usize,
    /// The rows of `[batch * seq]` that the stream of that layer has, ascending; `None`: all.
    kept: Option<Vec<i32>>,
    /// Queued reductions, `[batch, 1, width]`, entropies `[batch, seq, n_heads]`, [`What::Own`]
    /// `[1, count, 1]`. The first axis is that of the rows.
    wanted: Vec<(Layer, What, Tensor<3>)>,
    /// The tokens of [`What::Greedy`], to be fed: `[batch]`.
    chosen: Option<Tensor<1>>,
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
    /// Reads of prompts through `blocks` blocks, whose positions from `start` on are padded to `seq`.
    /// `writes` says whether text is written behind them.
    pub(super) fn of_prompts(
        decoder: &'a Decoder,
        jobs: &'a [&'a Job<'a>],
        blocks: usize,
        (start, seq): (usize, usize),
        writes: bool,
    ) -> Self {
        let new = |job: &Job<'_>| job.ids.len() - start;
        let last: Vec<i32> = jobs.iter().enumerate().map(|(row, job)| (row * seq + new(job) - 1) as i32).collect();
        let is_whole = jobs.iter().any(|job| job.whole().next().is_some());
        let padding: Option<Vec<bool>> =
            is_whole.then(|| jobs.iter().flat_map(|job| (0..seq).map(move |position| position >= new(job))).collect());
        let places = |device: &Device| Places::new(&last, padding.as_deref(), device);
        let places = decoder.devices().iter().map(places).collect();
        let mut reads = Self::new(decoder, jobs, true, blocks, (start, seq), writes, places);
        reads.kept = reads.rows_of_top(&last);
        reads
    }

    /// Reads of one new token of each sequence.
    pub(super) fn of_step(decoder: &'a Decoder, jobs: &'a [&'a Job<'a>], blocks: usize) -> Self {
        let last: Vec<i32> = (0..jobs.len() as i32).collect();
        let places = decoder.devices().iter().map(|device| Places::new(&last, None, device)).collect();
        Self::new(decoder, jobs, false, blocks, (0, 1), true, places)
    }

    /// Reads of a pass, of which nothing is queued yet and no row is left out. The arguments are
    /// fields.
    fn new(
        decoder: &'a Decoder,
        jobs: &'a [&'a Job<'a>],
        prompts: bool,
        top: usize,
        (start, seq): (usize, usize),
        writes: bool,
        places: Vec<Places>,
    ) -> Self {
        let (labels, heads) = (Vec::new(), Vec::new());
        let (kept, wanted, chosen) = (None, Vec::new(), None);
        let mut reads =
            Self { decoder, jobs, prompts, start, seq, writes, places, labels, heads, top, kept, wanted, chosen };
        let step = reads.step();
        let wanted = jobs.iter().flat_map(|job| &job.want.labels).filter(|read| is_read_at(read, step));
        let mut labels: Vec<TokenId> = wanted.flat_map(|read| &read.tokens).copied().collect();
        labels.sort_unstable();
        labels.dedup();
        if !labels.is_empty() {
            let head = decoder.head_rows(&labels);
            reads.heads = decoder.devices().iter().map(|device| head.clone().to_device(device)).collect();
        }
        reads.labels = labels;
        reads
    }

    /// The rows of `[batch * seq]` that are read of the highest layer, ascending: the last position
    /// of each sequence, `last`, the first where it is wanted, and those that score a token. `None`
    /// if all are, or if there is no block that could leave some out.
    fn rows_of_top(&self, last: &[i32]) -> Option<Vec<i32>> {
        let top = Layer(self.top);
        let wanted = |what| self.jobs.iter().any(|job| self.wants(job, top, what));
        if self.top == 0 || [What::Sum, What::Min, What::Max].into_iter().any(wanted) {
            return None;
        }
        let mut rows = last.to_vec();
        if wanted(What::First) {
            rows.extend(self.firsts());
        }
        if self.top == self.decoder.spec().n_layers() {
            rows.extend(self.scored().map(|(row, _)| row));
        }
        rows.sort_unstable();
        rows.dedup();
        (rows.len() < self.jobs.len() * self.seq).then_some(rows)
    }

    /// The block behind whose attention rows are left out, and those that go on, for
    /// [`Pass::kept`](super::decoder::Pass).
    pub(super) fn kept(&self) -> Option<(usize, Vec<i32>)> {
        self.kept.clone().map(|rows| (self.top - 1, rows))
    }

    /// Rows of the sequences' first positions in `[batch * seq]`.
    fn firsts(&self) -> impl Iterator<Item = i32> {
        let seq = self.seq;
        (0..self.jobs.len()).map(move |row| (row * seq) as i32)
    }

    /// Rows of `[batch * seq]` that score a token of their sequence, with the token: that at position
    /// `p` is scored at `p - 1`.
    fn scored(&self) -> impl Iterator<Item = (i32, TokenId)> {
        let (start, seq) = (self.start, self.seq);
        self.jobs.iter().filter(|_| self.prompts).enumerate().flat_map(move |(row, job)| {
            let positions = job.scored_from.into_iter().flat_map(|from| from..job.ids.len());
            positions.map(move |position| ((row * seq + position - 1 - start) as i32, job.ids[position]))
        })
    }

    /// Rows `[rows, 1, d_model]` of the stream `x` of a layer, by their places in `[batch * seq]`.
    /// Of the highest layer some rows may not be there; those that [`kept`](Self::kept) has are.
    fn select(&self, layer: Layer, x: &Tensor<3>, rows: impl Iterator<Item = i32>) -> Tensor<3> {
        let place = |row: i32| match &self.kept {
            Some(kept) if layer.0 == self.top => kept.partition_point(|&kept| kept < row) as i32,
            _ => row,
        };
        let rows: Vec<i32> = rows.map(place).collect();
        rows_at(x, Tensor::from_data(TensorData::from(rows.as_slice()), &x.device()))
    }

    /// Queues what is wanted of the residual stream at `layer`, on its device: `[batch, seq, d_model]`,
    /// or `[1, rows, d_model]` of the highest layer where rows are left out.
    pub(super) fn visit(&mut self, layer: Layer, x: &Tensor<3>) {
        let batch = self.jobs.len();
        let Places { last: positions, padding } = &self.places[self.decoder.stage_of(layer.0)];
        let (positions, padding) = (positions.clone(), padding.clone());
        let is_final = layer.0 == self.decoder.spec().n_layers();
        let wanted = |what| self.jobs.iter().any(|job| self.wants(job, layer, what));
        let (last, first) = (wanted(What::Last), wanted(What::First));
        let (sum, min, max) = (wanted(What::Sum), wanted(What::Min), wanted(What::Max));
        let [raw, normed] = [Lens::Raw, Lens::Normed].map(|lens| wanted(What::Labels(lens)));
        let predicts = is_final && self.jobs.iter().any(|job| job.needs_logits(self.step()));
        if last || raw || normed || predicts {
            let rows = match &self.kept {
                Some(_) if layer.0 == self.top => self.select(layer, x, self.lasts()),
                _ => rows_at(x, positions),
            };
            if raw {
                self.read_labels(layer, Lens::Raw, &rows);
            }
            let rows = match normed || is_final {
                true => {
                    let normed_rows = self.decoder.final_norm(rows.clone());
                    if normed {
                        self.read_labels(layer, Lens::Normed, &normed_rows);
                    }
                    if predicts {
                        self.predict(normed_rows.clone());
                    }
                    if is_final { normed_rows } else { rows }
                }
                false => rows,
            };
            if last {
                self.fetch(layer, What::Last, rows);
            }
        }
        if first {
            let rows = self.select(layer, x, self.firsts());
            self.fetch(layer, What::First, if is_final { self.decoder.final_norm(rows) } else { rows });
        }
        if is_final && self.prompts {
            self.score_own(x);
        }
        if let Some(padding) = padding
            && (sum || min || max)
        {
            let x = if is_final { self.decoder.final_norm(x.clone()) } else { x.clone() };
            let [_, seq, d_model] = x.dims();
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

    /// Queues the logits of all labels from states `[batch, 1, d_model]` as a lens shows them.
    fn read_labels(&mut self, layer: Layer, lens: Lens, states: &Tensor<3>) {
        if let Some(head) = self.heads.get(self.decoder.stage_of(layer.0)) {
            let logits = ops::label_products(widen(states.clone()), head.clone());
            self.fetch(layer, What::Labels(lens), logits);
        }
    }

    /// Rows of the sequences' last positions in `[batch * seq]`.
    fn lasts(&self) -> impl Iterator<Item = i32> {
        let (start, seq) = (self.start, self.seq);
        let last = move |(row, job): (usize, &&Job<'_>)| (row * seq + job.ids.len() - start - 1) as i32;
        self.jobs.iter().enumerate().map(last)
    }

    /// Queues what the model says of the token behind each sequence, from the normed states
    /// `[batch, 1, d_model]` of the last positions.
    fn predict(&mut self, states: Tensor<3>) {
        let [batch, _, d_model] = states.dims();
        let states = states.reshape([1, batch, d_model]);
        let by_row = |found: Tensor<3>| found.reshape([batch as i32, 1, -1]); // [1, batch, k] -> [batch, 1, k]
        let tokens = self.next_tokens();
        let layer = Layer(self.decoder.spec().n_layers());
        let is_greedy = |job: &&Job<'_>| {
            job.want.generate.as_ref().is_none_or(|generation| generation.sampling == Sampling::Greedy)
        };
        match (self.writes, tokens) {
            (true, tokens) if self.jobs.iter().all(is_greedy) => {
                let (found, chosen) = greedy(self.decoder, states, tokens.as_ref());
                self.chosen = Some(chosen);
                self.fetch(layer, What::Greedy, by_row(found));
            }
            (true, _) => {
                let logits = self.decoder.logits(states);
                self.fetch(layer, What::Logits, by_row(logits));
            }
            (false, Some(tokens)) => {
                let found = score(self.decoder, states, &tokens);
                self.fetch(layer, What::Next, by_row(found));
            }
            (false, None) => {}
        }
    }

    /// For each sequence, the tokens whose log-probabilities behind its last position are wanted;
    /// `None` if there are none at all.
    fn next_tokens(&self) -> Option<Tokens> {
        Tokens::new(self.jobs.iter().map(|job| job.next_tokens(self.step())).collect())
    }

    /// Queues the log-probabilities of the tokens that are scored, from the last block's output.
    /// Only the positions that score one go through the head.
    fn score_own(&mut self, x: &Tensor<3>) {
        let (rows, tokens): (Vec<i32>, Vec<TokenId>) = self.scored().unzip();
        let count = rows.len();
        let Some(tokens) = Tokens::new(tokens.into_iter().map(|token| vec![token]).collect()) else { return };
        let layer = Layer(self.decoder.spec().n_layers());
        let states = self.select(layer, x, rows.into_iter());
        let states = self.decoder.final_norm(states).swap_dims(0, 1); // [count, 1, d_model] -> [1, count, d_model]
        let found = score(self.decoder, states, &tokens);
        self.fetch(layer, What::Own, found.reshape([1, count, 1]));
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

    /// Whether a job wants this reduction of the states of this layer. Of the others `visit` and `entropies` know by
    /// themselves.
    fn wants(&self, job: &Job<'_>, layer: Layer, what: What) -> bool {
        let (n_layers, want) = (self.decoder.spec().n_layers(), job.want);
        let pooled = |pooling| self.prompts && want.pooled.contains(&(layer, pooling));
        match what {
            What::Last => pooled(Pooling::Last) || !self.prompts && job.reads_reply(layer),
            What::Labels(lens) => wants_state(want, self.step(), layer, lens, n_layers),
            What::First => pooled(Pooling::First),
            What::Sum => pooled(Pooling::Mean),
            What::Min => pooled(Pooling::Min),
            What::Max => pooled(Pooling::Max),
            What::Logits | What::Greedy | What::Next | What::Own | What::Entropies => false,
        }
    }

    /// Notes that a tensor is to be fetched as this reduction of this layer. Its first axis is that
    /// of the rows.
    fn fetch(&mut self, layer: Layer, what: What, tensor: Tensor<3>) {
        self.wanted.push((layer, what, tensor));
    }

    /// What is queued, to be fetched when the host has time for it.
    pub(super) fn queued(self) -> Queued {
        Queued::new(self.decoder.spec(), self.labels, self.wanted, self.chosen)
    }
}

/// Rows `[rows, 1, width]` of `x` `[.., .., width]`, by their places among all rows.
fn rows_at(x: &Tensor<3>, places: Tensor<1, Int>) -> Tensor<3> {
    let [batch, seq, width] = x.dims();
    let [rows] = places.dims();
    x.clone().reshape([batch * seq, width]).select(0, places).reshape([rows, 1, width])
}
