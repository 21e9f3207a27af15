//! The operations of a decoder's block on the rows of one pass, with packed weights.
//!
//! Owns what each operation of the trait `Ops` computes, and which rows each span has at a time. It
//! does not own the order of the operations, which is
//! [`Block::forward`](crate::engine::block::Block::forward) for all engines, nor walks over keys
//! (`attention.rs`), the choice of experts (`experts.rs`), products or arithmetic along a row (both
//! `judge-kernels`').
//!
//! `PackedDecoder::forward` makes one [`PackedOps`] for a pass, lets every block run on it, and
//! shows the residual stream to its caller between two blocks through [`PackedOps::stream`]. The
//! rows of all spans lie behind one another in one matrix, so that products run over all of them at
//! once. What depends on a sequence goes span by span: rotations, writing keys, attention,
//! memories.
//!
//! ```text
//!                                    width of a row              rows
//! linear, of normed rows             d_query (+ gates) + 2 d_key all new positions of all spans
//! attend, or what is in its place    d_query, d_value, channels  in the last block only those in `keep`
//! keep (of the residual stream)      d_model                     as many
//! linear, added to the stream        d_model                     as many
//! MLP or experts, added              d_model                     as many
//! ```
//!
//! Invariants that others rely on:
//!
//! - A row gets the same bits whatever other rows are in the pass. Each operation works on one row,
//!   or on one sequence in the order of its positions.
//! - Leaving out rows in the last block changes no other row. Their keys, entropies and memories
//!   are written nevertheless.
//! - `KvCache::end` of a span stays what it was during the pass; the caller advances it after the
//!   pass. So the position of a span's row `i` is `keys.end() + i`.
//! - Buffers come from the pool with arbitrary contents, and each operation writes all of its
//!   output, or adds to rows that were written.

use std::ops::Range;

use judge_arch::{HeadShape, KeysSpec, ModelSpec};
use judge_core::Layer;
use judge_kernels::pack::Linear;
use judge_kernels::product::{Activations, Make, Onto, Results};
use judge_kernels::supported::Supported;
use judge_kernels::vector::{self, Turn, worth_a_task};
use rayon::prelude::*;

use super::attention::{Mask, Queries, Settings};
use super::conv::{Memory, short_conv};
use super::delta::{Rule, logistic};
use super::entropy::entropies;
use super::experts::Routes;
use super::gather::attend;
use super::kv_layout::KvLayout;
use super::mamba::Scan;
use super::rotations::Angles;
use super::rows::{BufferPool, Rows};
use super::spans::{Entropies, Span, Stream};
use crate::engine::block::{Conv, Delta, Experts, HeadWeights, Input, Mamba, Ops};

/// The state of one pass through the blocks.
pub(super) struct PackedOps<'a, 's> {
    /// The model's description: settings of all blocks, and what differs between them.
    pub(super) spec: &'a ModelSpec,
    /// Instructions of attention. Products take the kernel that their matrix was packed for.
    pub(super) kernel: Supported,
    /// What the keys of each block look like; where they lie is a matter of each span's keys.
    pub(super) places: &'a KvLayout,
    /// The sequences of the pass: their new tokens, their keys, and what is wanted of them.
    pub(super) spans: &'a mut [Span<'s>],
    /// The rows of each span in the residual stream. In the pass's last block [`keep`](Ops::keep)
    /// makes these the rows that are left.
    pub(super) layout: Vec<Range<usize>>,
    /// Rotations of all positions, for each rotation of the model.
    pub(super) angles: &'a Angles,
    /// Index of the pass's last block, in which rows outside `Span::keep` are left out;
    /// `usize::MAX` in a pass without blocks.
    pub(super) last: usize,
    /// What each block gets of each position's token besides the residual stream, of all blocks,
    /// `[rows, n_layers * width]`; `None` in models without token inputs.
    pub(super) token_inputs: Option<Rows>,
    /// Buffers for outputs; operations give back what they have used up.
    pub(super) pool: &'a mut BufferPool,
    /// Attention entropies of the block that ran last, for spans that want them.
    pub(super) entropies: Entropies,
}

impl PackedOps<'_, '_> {
    /// What the pass shows between two blocks: `x` as the residual stream `[rows, d_model]`, with
    /// the entropies of the block that ran last.
    pub(super) fn stream<'x>(&'x self, x: &'x Rows) -> Stream<'x> {
        Stream { d_model: x.width, rows: &x.data, spans: &self.layout, entropies: &self.entropies }
    }

    /// Fills `self.entropies` with the attention entropies of block `index`, for all new positions
    /// of the spans that want them of layer `index + 1`. The keys of these positions are written
    /// already. `qkv` has a row for every new position, with its rotated queries at the beginning.
    fn measure(&mut self, settings: Settings<'_>, index: usize, qkv: &Rows) {
        let mut queries = Vec::new();
        let mut count = 0;
        self.entropies.spans.clear();
        for (span, rows) in self.spans.iter().zip(&self.layout) {
            let start = count;
            if span.entropies.contains(&Layer(index + 1)) {
                let (position, row) = (span.keys.end(), rows.start);
                queries.push(Queries { keys: span.keys, position, row, count: rows.len() });
                count += rows.len();
            }
            self.entropies.spans.push(start..count);
        }
        self.entropies.n_heads = settings.n_heads;
        self.entropies.rows.resize(count * settings.n_heads, 0.0);
        entropies(settings, index, &queries, &qkv.data, qkv.width, &mut self.entropies.rows);
    }

    /// Runs a block that has a memory instead of keys, one span after another in the order of its
    /// positions, all spans in parallel. Gives the rows `[kept, width]`.
    ///
    /// `each` is handed the memory of the span's sequence before these positions, the span's rows
    /// of `x`, which of them are kept, and their output `[keep, width]`. It must move the memory
    /// behind all rows of the span, kept or not.
    fn with_memory(
        &mut self,
        index: usize,
        x: Rows,
        width: usize,
        each: impl Fn(&mut Memory, &[f32], Range<usize>, &mut [f32]) + Sync,
    ) -> Rows {
        let block = &self.spec.blocks[index];
        let is_last = index == self.last;
        let kept = |span: &Span<'_>| if is_last { span.keep.clone() } else { 0..span.ids.len() };
        let mut out = self.pool.rows(self.spans.iter().map(|span| kept(span).len()).sum(), width);
        let (mut parts, mut rest) = (Vec::with_capacity(self.spans.len()), &mut *out.data);
        for span in self.spans.iter() {
            let (part, after) = rest.split_at_mut(kept(span).len() * width);
            parts.push(part);
            rest = after;
        }
        let spans = self.spans.par_iter_mut().zip(&self.layout).zip(parts);
        spans.for_each(|((span, rows), out)| {
            let keep = kept(span);
            let memory = span.keys.memory(index, rows.len(), || Memory::new(block));
            each(memory, &x.data[rows.start * x.width..rows.end * x.width], keep, out);
        });
        self.pool.give_back(x);
        out
    }

    /// `x + scale * y`, or with the norm of each row of `y` where there is a norm, in one walk. The
    /// factor is left out where there is none.
    fn add_normed(&mut self, mut x: Rows, y: Rows, norm: Option<&Vec<f32>>, scale: Option<f32>) -> Rows {
        let ModelSpec { norm_kind, norm_eps, .. } = *self.spec;
        let width = x.width;
        let rows = x.data.par_chunks_exact_mut(width).zip(y.data.par_chunks_exact(width));
        rows.with_min_len(worth_a_task(width)).for_each_init(Vec::new, |normed, (x, y)| {
            let y = match norm {
                Some(weight) => {
                    normed.resize(width, 0.0);
                    vector::norm(norm_kind, y, weight, norm_eps as f32, normed);
                    &normed[..]
                }
                None => y,
            };
            match scale {
                Some(scale) => vector::add_scaled(x, y, scale),
                None => vector::add(x, y),
            }
        });
        self.pool.give_back(y);
        x
    }

    /// What makes the rows of a product's input, where something does.
    fn norm_of<'i>(&self, input: &Input<'i, Rows, Vec<f32>>) -> impl Fn(&[f32], &mut [f32]) + Sync + use<'i> {
        let ModelSpec { norm_kind, norm_eps, .. } = *self.spec;
        let weight: &[f32] = if let Input::Normed(_, weight) = input { weight } else { &[] };
        move |x: &[f32], out: &mut [f32]| vector::norm(norm_kind, x, weight, norm_eps as f32, out)
    }

    /// A new buffer with as many rows as `x`, each `[width]` and filled by `f` from the row of `x`.
    /// Rows are spread over rayon's threads.
    fn map(&mut self, x: &Rows, width: usize, f: impl Fn(&[f32], &mut [f32]) + Sync) -> Rows {
        let mut out = self.pool.rows(x.count(), width);
        let rows = out.data.par_chunks_exact_mut(width).zip(x.data.par_chunks_exact(x.width));
        rows.with_min_len(worth_a_task(width.max(x.width))).for_each(|(out, x)| f(x, out));
        out
    }
}

/// The rows that a product multiplies; `norm` is what [`PackedOps::norm_of`] gives for the input.
fn activations<'a>(input: &'a Input<'_, Rows, Vec<f32>>, norm: &'a Make<'a>) -> Activations<'a> {
    match input {
        Input::Rows(x) => Activations::new(&x.data, x.width),
        Input::Of(x) => Activations::new(&x.data, x.width),
        Input::Normed(x, _) => Activations::made(&x.data, x.width, norm),
    }
}

/// Leaves only the rows `kept` of `x`, in their order. The ranges ascend and do not overlap.
fn keep_rows(x: &mut Rows, kept: &[Range<usize>]) {
    // Rows only move towards the beginning.
    let mut count = 0;
    for rows in kept {
        x.data.copy_within(rows.start * x.width..rows.end * x.width, count * x.width);
        count += rows.len();
    }
    x.data.resize(count * x.width);
}

/// Takes queries and gates apart: `[n_heads, 2, head_dim]`, in which each query head is followed by
/// its gate, becomes all queries `[n_heads, head_dim]` and then all gates `[n_heads, head_dim]`.
fn gates_behind_queries(both: &mut [f32], head_dim: usize) {
    let apart = both.to_vec();
    let (queries, gates) = both.split_at_mut(apart.len() / 2);
    let heads = queries.chunks_exact_mut(head_dim).zip(gates.chunks_exact_mut(head_dim));
    for ((query, gate), both) in heads.zip(apart.chunks_exact(2 * head_dim)) {
        query.copy_from_slice(&both[..head_dim]);
        gate.copy_from_slice(&both[head_dim..]);
    }
}

impl Ops for PackedOps<'_, '_> {
    type Rows = Rows;
    type Linear = Linear;
    /// Weights as the norm multiplies by them: offsets and factors are folded in by `load.rs`.
    type Norm = Vec<f32>;

    /// By the model's `norm_kind`, for norms of states. Norms of heads are part of
    /// [`attend`](Self::attend).
    fn norm(&mut self, x: &Rows, weight: &Vec<f32>) -> Rows {
        let ModelSpec { norm_kind, norm_eps, .. } = *self.spec;
        self.map(x, x.width, |x, out| vector::norm(norm_kind, x, weight, norm_eps as f32, out))
    }

    fn copy(&mut self, x: &Rows) -> Rows {
        let mut copy = self.pool.rows(x.count(), x.width);
        copy.data.copy_from_slice(&x.data);
        copy
    }

    /// Rows are normed as the product packs them; the bias and `onto` are added as it writes
    /// its results (`product.rs` of `judge-kernels`). Rows that are used up return to the pool.
    ///
    /// Factors of columns need a walk of their own, unless one factor on all of them meets a residual
    /// stream.
    fn linear(&mut self, input: Input<'_, Rows, Vec<f32>>, linear: &Linear, onto: Option<Rows>) -> Rows {
        let residual_scale = self.spec.residual_scale;
        let (scale, onto) = match (linear.factors.as_slice(), onto) {
            ([(_, factor)], Some(x)) => (Some(residual_scale.map_or(*factor, |scale| scale as f32 * factor)), Some(x)),
            ([], onto) => (residual_scale.map(|scale| scale as f32), onto),
            (_, None) => (None, None),
            (_, Some(x)) => {
                let y = self.linear(input, linear, None);
                return self.add(x, y, None);
            }
        };
        let norm = self.norm_of(&input);
        let activations = activations(&input, &norm);
        let (mut y, onto) = match onto {
            Some(y) => (y, scale.map_or(Onto::Sum, Onto::Scaled)),
            None => (self.pool.rows(activations.count(), linear.weight.out_features()), Onto::Nothing),
        };
        let results = Results::new(&mut y.data, linear.bias.as_deref(), onto);
        linear.weight.product(activations, results, &mut self.pool.words);
        if onto == Onto::Nothing && !linear.factors.is_empty() {
            let rows = y.data.par_chunks_exact_mut(y.width).with_min_len(worth_a_task(y.width));
            rows.for_each(|row| vector::scale_runs(row, &linear.factors));
        }
        if let Input::Rows(x) = input {
            self.pool.give_back(x);
        }
        y
    }

    /// Results are gated while they are in a core's cache (`product.rs` of `judge-kernels`).
    fn activated(&mut self, input: Input<'_, Rows, Vec<f32>>, linear: &Linear, next: &Linear) -> Rows {
        let norm = self.norm_of(&input);
        let activations = activations(&input, &norm);
        let d_ff = next.weight.in_features();
        let mut y = self.pool.rows(activations.count(), d_ff);
        linear.activated(activations, self.spec.activation, d_ff, &mut y.data, &mut self.pool.words);
        if let Input::Rows(x) = input {
            self.pool.give_back(x);
        }
        y
    }

    /// See [`Ops::attend`]. The steps, in the order that families rely on:
    ///
    /// 1. Where values are the raw keys, the keys are copied to the end of each row.
    /// 2. Where the block is gated, queries and gates are taken apart.
    /// 3. Queries and keys are normed, clipped and rotated. Values are normed and clipped.
    /// 4. Queries are multiplied by the factor of their position, where the rotation has one.
    /// 5. Keys and values are written behind those of each span's sequence.
    /// 6. Entropies are measured for spans that want them.
    /// 7. Attention runs, in the pass's last block for kept rows only.
    /// 8. Its output is multiplied by `sigmoid(gate)`, coordinate by coordinate.
    ///
    /// ```text
    /// a row of `qkv` after step 2:   [queries d_query | gates d_query, if gated | keys d_key | values d_key]
    /// ```
    ///
    /// A block that looks at the keys of another has no keys and values in its rows; steps 1 and 5
    /// do nothing then.
    fn attend(&mut self, index: usize, mut qkv: Rows, of_heads: HeadWeights<'_, Vec<f32>>) -> Rows {
        let spec = self.spec;
        let block = &spec.blocks[index];
        let (HeadShape { head_dim, .. }, d_query) = (block.heads, block.heads.d_query());
        let d_key = if block.has_own_keys() { block.heads.d_key() } else { 0 };
        if block.keys == KeysSpec::AsValues {
            let (width, keys) = (qkv.width, qkv.width - d_key);
            let both = self.map(&qkv, width + d_key, |row, out| {
                out[..width].copy_from_slice(row);
                out[width..].copy_from_slice(&row[keys..]);
            });
            self.pool.give_back(std::mem::replace(&mut qkv, both));
        }
        let d_gate = if block.is_gated { d_query } else { 0 };
        let (eps, clip) = (spec.norm_eps as f32, spec.clip_qkv.map(|limit| limit as f32));
        let positions: Vec<usize> =
            self.spans.iter().flat_map(|span| (0..span.ids.len()).map(|i| span.keys.end() + i)).collect();
        let rows = qkv.data.par_chunks_exact_mut(qkv.width).with_min_len(worth_a_task(qkv.width)).zip(&positions);
        rows.for_each(|(row, &position)| {
            let turn = self.angles.at(block.rope, position);
            if block.is_gated {
                gates_behind_queries(&mut row[..2 * d_query], head_dim);
            }
            let (queries, rest) = row.split_at_mut(d_query);
            let (keys, values) = rest[d_gate..].split_at_mut(d_key);
            for (heads, norm) in [(queries, of_heads.q_norm), (keys, of_heads.k_norm)] {
                // A weight wider than one head norms all heads together. It comes first.
                let whole = norm.filter(|weight| weight.len() > head_dim);
                if let Some(weight) = whole {
                    vector::norm_rotate(heads, weight.len(), Some((weight.as_slice(), eps)), None, Turn::default());
                }
                let each = norm.filter(|_| whole.is_none()).map(|weight| (weight.as_slice(), eps));
                vector::norm_rotate(heads, head_dim, each, clip, turn);
            }
            if block.norms_values {
                vector::norm_heads(&mut values[..d_key], head_dim, eps);
            }
            if let Some(limit) = clip {
                vector::clip(&mut values[..d_key], limit);
            }
            if let Some(factor) = self.angles.query_factor(block.rope, position) {
                row[..d_query].iter_mut().for_each(|x| *x *= factor);
            }
        });
        if block.has_own_keys() {
            self.spans.par_iter_mut().zip(&self.layout).for_each(|(span, rows)| {
                let keys = &qkv.data[rows.start * qkv.width + d_query + d_gate..];
                span.keys.write(index, keys, qkv.width, span.ids.len());
            });
        }
        let settings = Settings {
            kernel: self.kernel,
            n_heads: spec.n_heads,
            shape: self.places.shape(index),
            scale: spec.attention_scale as f32,
            soft_cap: spec.attention_soft_cap.map(|cap| cap as f32),
            mask: Mask::Causal(block.window),
            sinks: of_heads.sinks.map(Vec::as_slice),
        };
        self.measure(settings, index, &qkv);
        let kept = |span: &Span<'_>| if index == self.last { span.keep.clone() } else { 0..span.ids.len() };
        let queries: Vec<Queries<'_>> = self
            .spans
            .iter()
            .zip(&self.layout)
            .map(|(span, rows)| {
                let keep = kept(span);
                let (position, row) = (span.keys.end() + keep.start, rows.start + keep.start);
                Queries { keys: span.keys, position, row, count: keep.len() }
            })
            .collect();
        let count = queries.iter().map(|queries| queries.count).sum();
        let mut mixed = self.pool.rows(count, d_query);
        attend(settings, index, &queries, &qkv.data, qkv.width, &mut mixed.data);
        if block.is_gated {
            let kept = queries.iter().flat_map(|queries| queries.row..queries.row + queries.count).collect::<Vec<_>>();
            let rows = mixed.data.par_chunks_exact_mut(d_query).with_min_len(worth_a_task(d_query)).zip(&kept);
            rows.for_each(|(mixed, row)| {
                let gates = &qkv.data[row * qkv.width + d_query..][..d_query];
                mixed.iter_mut().zip(gates).for_each(|(x, &gate)| *x *= logistic(gate));
            });
        }
        self.pool.give_back(qkv);
        mixed
    }

    /// See [`Ops::delta`]; `delta.rs` has the arithmetic. A block without a rule gives `x` back,
    /// which does not happen: `Block::forward` calls this only for blocks that have one.
    fn delta(&mut self, index: usize, x: Rows, rule: &Delta<Vec<f32>>) -> Rows {
        let spec = self.spec;
        let Some(delta) = &spec.blocks[index].delta else { return x };
        let rule = Rule::new(delta.shape, rule, spec.norm_eps as f32);
        self.with_memory(index, x, delta.shape.d_value(), |memory, rows, keep, out| rule.run(memory, rows, keep, out))
    }

    /// See [`Ops::short_conv`]; `conv.rs` has the arithmetic. A block without a convolution gives
    /// `x` back, which does not happen: `Block::forward` calls this only for blocks that have one.
    fn short_conv(&mut self, index: usize, x: Rows, weights: &Conv<Vec<f32>>) -> Rows {
        let Some(conv) = &self.spec.blocks[index].conv else { return x };
        self.with_memory(index, x, conv.channels, |memory, rows, keep, out| {
            short_conv(conv, weights, memory, rows, keep.start, out);
        })
    }

    /// See [`Ops::mamba`]; `mamba.rs` has the arithmetic. A block without a state space gives `x`
    /// back, which does not happen: `Block::forward` calls this only for blocks that have one.
    fn mamba(&mut self, index: usize, x: Rows, weights: &Mamba<Vec<f32>>) -> Rows {
        let spec = self.spec;
        let Some(mamba) = spec.blocks[index].state_space() else { return x };
        let scan = Scan::new(mamba, weights, spec.norm_eps as f32);
        self.with_memory(index, x, mamba.shape.d_inner(), |memory, rows, keep, out| scan.run(memory, rows, keep, out))
    }

    /// See [`Ops::mix`]. Experts run one after another, each over all rows that chose it, so its
    /// weights are read once; an expert that no row chose is not read. What an expert makes of a
    /// row waits at the row's place in `parts`, and the weighted sum is taken when all experts are
    /// done; see `experts.rs`.
    fn mix(&mut self, x: Rows, logits: Rows, experts: &Experts<Linear, Vec<f32>>) -> Rows {
        let (width, routing) = (x.width, experts.routing);
        let mut routes = Routes::of(&logits.data, logits.width, routing, experts.choice_bias.as_deref());
        if let Some(scales) = &experts.scales {
            routes.scale(scales);
        }
        self.pool.give_back(logits);
        // What each row gets of its experts, `[rows * top_k, d_model]`.
        let mut parts = self.pool.rows(x.count() * routing.top_k, width);
        for (expert, places) in experts.experts.iter().zip(routes.places()) {
            if places.is_empty() {
                continue;
            }
            let mut rows = self.pool.rows(places.len(), width);
            for (row, &place) in rows.data.chunks_exact_mut(width).zip(places) {
                row.copy_from_slice(&x.data[place / routing.top_k * width..][..width]);
            }
            let y = expert.forward(self, Input::Rows(rows));
            for (y, &place) in y.data.chunks_exact(width).zip(places) {
                parts.data[place * width..][..width].copy_from_slice(y);
            }
            self.pool.give_back(y);
        }
        let mut mixed = x;
        routes.sum(&parts.data, width, &mut mixed.data);
        self.pool.give_back(parts);
        mixed
    }

    /// `x += sigmoid(gate) * y`, row by row, in f32.
    fn add_gated(&mut self, mut x: Rows, gate: Rows, y: Rows) -> Rows {
        let width = x.width;
        let rows = x.data.par_chunks_exact_mut(width).zip(y.data.par_chunks_exact(width)).zip(&*gate.data);
        rows.with_min_len(worth_a_task(width)).for_each(|((x, y), &gate)| {
            vector::add_scaled(x, y, logistic(gate));
        });
        self.pool.give_back(y);
        self.pool.give_back(gate);
        x
    }

    /// In the pass's last block, leaves only the rows in `Span::keep` of the residual stream and of
    /// token inputs, and makes `layout` that of the rows that are left. `Block::forward` calls this
    /// after [`attend`](Self::attend), which needs the old layout. In other blocks nothing happens.
    fn keep(&mut self, index: usize, mut x: Rows) -> Rows {
        if index != self.last {
            return x;
        }
        let mut count = 0;
        let mut kept = Vec::with_capacity(self.spans.len());
        for (span, rows) in self.spans.iter().zip(&mut self.layout) {
            let from = rows.start + span.keep.start;
            kept.push(from..from + span.keep.len());
            *rows = count..count + span.keep.len();
            count += span.keep.len();
        }
        keep_rows(&mut x, &kept);
        if let Some(rows) = &mut self.token_inputs {
            keep_rows(rows, &kept);
        }
        x
    }

    fn sum(&mut self, x: Rows, y: Rows, norm: Option<&Vec<f32>>) -> Rows {
        self.add_normed(x, y, norm, None)
    }

    /// `f(gate) * t`, where `t` are the token inputs of block `index`: columns
    /// `index * width..(index + 1) * width`. In a model without token inputs the gate is given
    /// back.
    fn gate_tokens(&mut self, index: usize, gate: Rows) -> Rows {
        let Some(inputs) = &self.token_inputs else { return gate };
        let (function, width) = (self.spec.activation, gate.width);
        let mut gated = self.pool.rows(gate.count(), width);
        let rows = gated.data.par_chunks_exact_mut(width).zip(gate.data.par_chunks_exact(width));
        let rows = rows.zip(inputs.data.par_chunks_exact(inputs.width)).with_min_len(worth_a_task(width));
        rows.for_each(|((out, gate), inputs)| {
            vector::gated(gate, &inputs[index * width..][..width], function, out);
        });
        self.pool.give_back(gate);
        gated
    }

    /// An empty `factor` stands for 1.
    fn scale(&mut self, mut x: Rows, factor: &Vec<f32>) -> Rows {
        let Some(&factor) = factor.first() else { return x };
        let rows = x.data.par_chunks_exact_mut(x.width).with_min_len(worth_a_task(x.width));
        rows.for_each(|x| x.iter_mut().for_each(|x| *x *= factor));
        x
    }

    fn add(&mut self, x: Rows, y: Rows, norm: Option<&Vec<f32>>) -> Rows {
        self.add_normed(x, y, norm, self.spec.residual_scale.map(|scale| scale as f32))
    }
}
