//! A decoder with packed weights, and one pass of it over stretches of many sequences.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use judge_core::{Layer, TokenId};
use rayon::prelude::*;

use super::attention::{Queries, Settings, Sight};
use super::conv::{Memory, short_conv};
use super::delta::{Rule, logistic};
use super::entropy::entropies;
use super::experts::Routes;
use super::gather::attend;
use super::kernel::Supported;
use super::keys::Keys;
use super::lines::Lines;
use super::pack::PackedLinear;
use super::places::KeyPlaces;
use super::rows::{BufferPool, Rows};
use super::token_inputs::token_inputs;
use super::vector::{self, Turn, worth_a_task};
use crate::arch::{HeadShape, KeysSpec, ModelSpec, Pairs, RopeConfig, angles, query_factors};
use crate::engine::block::{Block, Conv, Delta, Experts, HeadWeights, Ops};
use crate::engine::token_inputs::TokenInputs;
use crate::reading::exp::exp;

/// A decoder-only transformer for the CPU. Matrices, keys and values are packed in bf16 or f32, everything else is f32.
pub(crate) struct PackedDecoder {
    pub(super) spec: Arc<ModelSpec>,
    pub(super) kernel: Supported,
    /// Of keys that later passes look at, and of those of one pass.
    pub(super) lasting: Arc<KeyPlaces>,
    pub(super) in_turn: Arc<KeyPlaces>,
    /// `[d_vocab, d_model]`.
    pub(super) embedding: PackedLinear,
    /// Multiplies its rows.
    pub(super) embedding_factor: Option<f32>,
    pub(super) token_inputs: Option<TokenInputs<Linear, Vec<f32>>>,
    pub(super) blocks: Vec<Block<Linear, Vec<f32>>>,
    /// `[d_model]`.
    pub(super) norm: Vec<f32>,
    /// `[d_vocab, d_model]`; absent if it is the embedding.
    pub(super) head: Option<PackedLinear>,
}

/// A product with a matrix `[d_out, d_in]`, and a bias `[d_out]` where there is one.
pub(super) struct Linear {
    pub(super) weight: PackedLinear,
    pub(super) bias: Option<Vec<f32>>,
}

/// Cosines and sines of positions, a table for each of a model's rotations.
pub(crate) struct Angles(Vec<Table>);

/// `[positions, rotary_dim / 2]` each.
struct Table {
    half: usize,
    cos: Vec<f32>,
    sin: Vec<f32>,
    pairs: Pairs,
    /// `[positions]`, where queries grow.
    query_factors: Option<Vec<f32>>,
}

impl Angles {
    /// Those of positions 0 to `len - 1`, with the frequencies of a sequence whose final length is `final_len`.
    pub(crate) fn new(ropes: &[RopeConfig], final_len: usize, len: usize) -> Self {
        let table = |rope: &RopeConfig| {
            let [cos, sin] = angles(rope, final_len, len);
            let query_factors = query_factors(rope, len);
            Table { half: rope.rotary_dim / 2, cos, sin, pairs: rope.pairs, query_factors }
        };
        Self(ropes.iter().map(table).collect())
    }

    /// Those of one position in a rotation; none where there is none.
    pub(super) fn at(&self, rope: Option<usize>, position: usize) -> Turn<'_> {
        let Some(Table { half, cos, sin, pairs, .. }) = rope.map(|rope| &self.0[rope]) else { return Turn::default() };
        let range = position * half..(position + 1) * half;
        Turn { cos: &cos[range.clone()], sin: &sin[range], pairs: *pairs }
    }

    /// What rotated queries at a position are multiplied by, if by anything.
    fn query_factor(&self, rope: Option<usize>, position: usize) -> Option<f32> {
        Some(self.0[rope?].query_factors.as_ref()?[position])
    }
}

/// New positions of one sequence.
pub(crate) struct Span<'a> {
    pub(crate) ids: &'a [TokenId],
    /// Keys of the positions before; those of the new ones are put behind them.
    pub(crate) keys: &'a mut Keys,
    /// Which of the new positions go on behind the last block's attention: those that are read.
    pub(crate) keep: Range<usize>,
    /// Layers of whose block the attention entropy of every new position is wanted.
    pub(crate) entropies: &'a [Layer],
}

/// The residual stream between two blocks: rows of all spans behind one another.
pub(crate) struct Stream<'a> {
    d_model: usize,
    rows: &'a [f32],
    /// Where the rows of each span are.
    spans: &'a [Range<usize>],
    entropies: &'a Entropies,
}

/// Attention entropies of the spans that want them of the block that was run last.
#[derive(Default)]
struct Entropies {
    n_heads: usize,
    /// `[rows, n_heads]`.
    rows: Vec<f32>,
    /// Where the rows of each span are.
    spans: Vec<Range<usize>>,
}

impl<'a> Stream<'a> {
    /// The rows of a span, each `[d_model]`: all of its positions, after the pass's last block those that were kept.
    pub(crate) fn rows(&self, span: usize) -> std::slice::ChunksExact<'a, f32> {
        let Range { start, end } = self.spans[span];
        self.rows[start * self.d_model..end * self.d_model].chunks_exact(self.d_model)
    }

    /// The attention entropies of a span's positions in the block below, each `[n_heads]`: all of them if they are wanted, else none.
    pub(crate) fn entropies(&self, span: usize) -> std::slice::ChunksExact<'a, f32> {
        let Entropies { n_heads, rows, spans } = self.entropies;
        let Range { start, end } = spans.get(span).cloned().unwrap_or_default(); // there is no block below the first layer
        rows[start * n_heads..end * n_heads].chunks_exact((*n_heads).max(1))
    }
}

impl PackedDecoder {
    /// Where keys lie that later passes look at, or those that none does.
    pub(crate) fn key_places(&self, is_lasting: bool) -> Arc<KeyPlaces> {
        Arc::clone(if is_lasting { &self.lasting } else { &self.in_turn })
    }

    /// Positions whose keys, in the first `blocks` blocks, take as much memory as what these blocks remember of a sequence besides.
    pub(crate) fn memory_in_positions(&self, blocks: usize) -> usize {
        let blocks = &self.spec.blocks[..blocks];
        let remembered: usize = blocks.iter().map(Memory::size).sum();
        let with_keys = (0..blocks.len()).filter(|&block| blocks[block].has_own_keys());
        let shapes = with_keys.map(|block| self.lasting.shape(block));
        let per_position: usize = shapes.map(|shape| 2 * shape.n_kv_heads * shape.words()).sum();
        remembered.div_ceil(per_position.max(1))
    }

    /// Runs the spans through the first `blocks` blocks and shows `visit` the residual stream as soon as it is there: 0 is the
    /// embedding, `i` the output of block `i` counted from 1, none of them normed. After [`ControlFlow::Break`] the pass
    /// is given up. Keys are written, but their number is the caller's to advance.
    pub(crate) fn forward(
        &self,
        spans: &mut [Span<'_>],
        angles: &Angles,
        blocks: usize,
        pool: &mut BufferPool,
        visit: &mut dyn FnMut(usize, &Stream<'_>) -> ControlFlow<()>,
    ) {
        let d_model = self.spec.d_model;
        let mut layout = Vec::with_capacity(spans.len());
        let mut count = 0;
        for span in spans.iter() {
            layout.push(count..count + span.ids.len());
            count += span.ids.len();
        }
        let mut x = pool.rows(count, d_model);
        let ids: Vec<TokenId> = spans.iter().flat_map(|span| span.ids).copied().collect();
        x.data.par_chunks_exact_mut(d_model).zip(&ids).for_each(|(row, &id)| {
            self.embedding.row(id as usize, row);
            if let Some(factor) = self.embedding_factor {
                row.iter_mut().for_each(|x| *x *= factor);
            }
        });
        let token_inputs = if blocks > 0 { self.token_inputs(&ids, &x, pool) } else { None };
        let (last, entropies) = (blocks.wrapping_sub(1), Entropies::default());
        let mut ops = Packed { decoder: self, spans, layout, angles, last, token_inputs, pool, entropies };
        let mut flow = visit(0, &ops.stream(&x));
        for (index, block) in self.blocks.iter().enumerate().take(blocks) {
            if flow.is_break() {
                break;
            }
            x = block.forward(&mut ops, index, x);
            flow = visit(index + 1, &ops.stream(&x));
        }
        ops.pool.give_back(x);
        if let Some(rows) = ops.token_inputs {
            ops.pool.give_back(rows);
        }
    }

    /// What all blocks get of these tokens, whose embeddings are the rows of `x`, if they get anything.
    fn token_inputs(&self, ids: &[TokenId], x: &Rows, pool: &mut BufferPool) -> Option<Rows> {
        let (inputs, spec) = (self.token_inputs.as_ref()?, self.spec.token_inputs.as_ref()?);
        let (table, norm) = ((&inputs.table, inputs.table_factor), (inputs.norm.as_slice(), self.spec.norm_eps as f32));
        Some(token_inputs(spec, table, &inputs.projection.weight, norm, (ids, x), pool))
    }

    /// The final norm of one row `[d_model]`.
    pub(crate) fn final_norm(&self, row: &[f32]) -> Vec<f32> {
        let mut normed = vec![0.0; row.len()];
        vector::norm(self.spec.norm_kind, row, &self.norm, self.spec.norm_eps as f32, &mut normed);
        normed
    }

    /// Logits over the whole vocabulary, `[rows, d_model]` to `[rows, d_vocab]`, scaled but without the final soft-cap.
    pub(crate) fn logits(&self, states: &[f32]) -> Vec<f32> {
        let rows = states.len() / self.spec.d_model;
        let mut logits = vec![0.0; rows * self.spec.d_vocab];
        self.head().apply(states, rows, &mut logits, &mut Lines::default());
        self.scale_logits(&mut logits);
        logits
    }

    /// Rows of the output head, scaled as logits are, shape `[rows.len(), d_model]`. Every row must exist.
    pub(crate) fn rows_of_head(&self, rows: &[TokenId]) -> Vec<f32> {
        let mut values = vec![0.0; rows.len() * self.spec.d_model];
        values
            .chunks_exact_mut(self.spec.d_model)
            .zip(rows)
            .for_each(|(values, &row)| self.head().row(row as usize, values));
        self.scale_logits(&mut values);
        values
    }

    fn scale_logits(&self, values: &mut [f32]) {
        if let Some(scale) = self.spec.logit_scale {
            values.iter_mut().for_each(|x| *x *= scale as f32);
        }
    }

    fn head(&self) -> &PackedLinear {
        self.head.as_ref().unwrap_or(&self.embedding)
    }
}

/// The operations of one pass.
struct Packed<'a, 's> {
    decoder: &'a PackedDecoder,
    spans: &'a mut [Span<'s>],
    /// Where the rows of each span are.
    layout: Vec<Range<usize>>,
    angles: &'a Angles,
    /// The last block of this pass.
    last: usize,
    /// Of all blocks, `[rows, n_layers * width]`.
    token_inputs: Option<Rows>,
    pool: &'a mut BufferPool,
    entropies: Entropies,
}

impl Packed<'_, '_> {
    fn stream<'x>(&'x self, x: &'x Rows) -> Stream<'x> {
        Stream { d_model: x.width, rows: &x.data, spans: &self.layout, entropies: &self.entropies }
    }

    /// Fills in the entropies that are wanted of a block, from `qkv` with rotated queries and from keys that are written.
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

    /// Lets the rows of each span through a block without keys, which moves what it remembers of the span's sequence behind them. It is handed that, the rows,
    /// which of them go on, and room for what these give, `[keep, width]`.
    fn with_memory(
        &mut self,
        index: usize,
        x: Rows,
        width: usize,
        each: impl Fn(&mut Memory, &[f32], Range<usize>, &mut [f32]) + Sync,
    ) -> Rows {
        let block = &self.decoder.spec.blocks[index];
        self.entropies.spans.clear();
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

    /// One new buffer, filled row by row from another.
    fn map(&mut self, x: &Rows, width: usize, f: impl Fn(&[f32], &mut [f32]) + Sync) -> Rows {
        let mut out = self.pool.rows(x.count(), width);
        let rows = out.data.par_chunks_exact_mut(width).zip(x.data.par_chunks_exact(x.width));
        rows.with_min_len(worth_a_task(width.max(x.width))).for_each(|(out, x)| f(x, out));
        out
    }
}

/// Leaves these rows alone, which move together.
fn keep_rows(x: &mut Rows, kept: &[Range<usize>]) {
    // Rows only move towards the beginning.
    let mut count = 0;
    for rows in kept {
        x.data.copy_within(rows.start * x.width..rows.end * x.width, count * x.width);
        count += rows.len();
    }
    x.data.resize(count * x.width);
}

/// Queries that are each followed by their gate, `[n_heads, 2, head_dim]`, become all queries and then all gates.
fn gates_behind_queries(both: &mut [f32], head_dim: usize) {
    let apart = both.to_vec();
    let (queries, gates) = both.split_at_mut(apart.len() / 2);
    let heads = queries.chunks_exact_mut(head_dim).zip(gates.chunks_exact_mut(head_dim));
    for ((query, gate), both) in heads.zip(apart.chunks_exact(2 * head_dim)) {
        query.copy_from_slice(&both[..head_dim]);
        gate.copy_from_slice(&both[head_dim..]);
    }
}

impl Ops for Packed<'_, '_> {
    type Rows = Rows;
    type Linear = Linear;
    type Norm = Vec<f32>;

    fn norm(&mut self, x: &Rows, weight: &Vec<f32>) -> Rows {
        let ModelSpec { norm_kind, norm_eps, .. } = *self.decoder.spec;
        self.map(x, x.width, |x, out| vector::norm(norm_kind, x, weight, norm_eps as f32, out))
    }

    fn copy(&mut self, x: &Rows) -> Rows {
        let mut copy = self.pool.rows(x.count(), x.width);
        copy.data.copy_from_slice(&x.data);
        copy
    }

    fn linear(&mut self, x: Rows, linear: &Linear) -> Rows {
        let mut y = self.pool.rows(x.count(), linear.weight.out_features());
        linear.weight.apply(&x.data, x.count(), &mut y.data, &mut self.pool.words);
        if let Some(bias) = &linear.bias {
            y.data.par_chunks_exact_mut(y.width).with_min_len(worth_a_task(y.width)).for_each(|y| vector::add(y, bias));
        }
        self.pool.give_back(x);
        y
    }

    fn attend(&mut self, index: usize, mut qkv: Rows, of_heads: HeadWeights<'_, Vec<f32>>) -> Rows {
        let spec = &*self.decoder.spec;
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
                // A norm as wide as all heads together comes before them.
                let whole = norm.filter(|weight| weight.len() > head_dim);
                if let Some(weight) = whole {
                    vector::rms_norm_in_place(heads, weight, eps);
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
            kernel: self.decoder.kernel,
            n_heads: spec.n_heads,
            shape: self.decoder.lasting.shape(index),
            scale: spec.attention_scale as f32,
            soft_cap: spec.attention_soft_cap.map(|cap| cap as f32),
            sight: Sight::Before(block.window),
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

    fn delta(&mut self, index: usize, x: Rows, rule: &Delta<Vec<f32>>) -> Rows {
        let spec = &*self.decoder.spec;
        let Some(delta) = &spec.blocks[index].delta else { return x };
        let rule = Rule::new(delta.shape, rule, spec.norm_eps as f32);
        self.with_memory(index, x, delta.shape.d_value(), |memory, rows, keep, out| rule.run(memory, rows, keep, out))
    }

    fn short_conv(&mut self, index: usize, x: Rows, weights: &Conv<Vec<f32>>) -> Rows {
        let Some(conv) = &self.decoder.spec.blocks[index].conv else { return x };
        self.with_memory(index, x, conv.channels, |memory, rows, keep, out| {
            short_conv(conv, weights, memory, rows, keep.start, out);
        })
    }

    fn gate(&mut self, gate_up: Rows) -> Rows {
        let function = self.decoder.spec.activation;
        let d_ff = gate_up.width / 2;
        let gated = self.map(&gate_up, d_ff, |row, out| vector::gated(&row[..d_ff], &row[d_ff..], function, out));
        self.pool.give_back(gate_up);
        gated
    }

    fn mix(&mut self, x: Rows, logits: Rows, experts: &Experts<Linear, Vec<f32>>) -> Rows {
        let (width, routing) = (x.width, experts.routing);
        let mut routes = Routes::of(&logits.data, logits.width, routing);
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
            let y = expert.forward(self, rows);
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

    fn add_gated(&mut self, mut x: Rows, gate: Rows, y: Rows) -> Rows {
        let width = x.width;
        let rows = x.data.par_chunks_exact_mut(width).zip(y.data.par_chunks_exact(width)).zip(&*gate.data);
        rows.with_min_len(worth_a_task(width)).for_each(|((x, y), &gate)| {
            vector::add_scaled(x, y, 1.0 / (1.0 + exp(-gate)));
        });
        self.pool.give_back(y);
        self.pool.give_back(gate);
        x
    }

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

    fn sum(&mut self, mut x: Rows, y: Rows) -> Rows {
        let width = x.width;
        let rows = x.data.par_chunks_exact_mut(width).zip(y.data.par_chunks_exact(width));
        rows.with_min_len(worth_a_task(width)).for_each(|(x, y)| vector::add(x, y));
        self.pool.give_back(y);
        x
    }

    fn gate_tokens(&mut self, index: usize, gate: Rows) -> Rows {
        let Some(inputs) = &self.token_inputs else { return gate };
        let (function, width) = (self.decoder.spec.activation, gate.width);
        let mut gated = self.pool.rows(gate.count(), width);
        let rows = gated.data.par_chunks_exact_mut(width).zip(gate.data.par_chunks_exact(width));
        let rows = rows.zip(inputs.data.par_chunks_exact(inputs.width)).with_min_len(worth_a_task(width));
        rows.for_each(|((out, gate), inputs)| {
            vector::gated(gate, &inputs[index * width..][..width], function, out);
        });
        self.pool.give_back(gate);
        gated
    }

    fn scale(&mut self, mut x: Rows, factor: &Vec<f32>) -> Rows {
        let Some(&factor) = factor.first() else { return x };
        let rows = x.data.par_chunks_exact_mut(x.width).with_min_len(worth_a_task(x.width));
        rows.for_each(|x| x.iter_mut().for_each(|x| *x *= factor));
        x
    }

    fn add(&mut self, mut x: Rows, y: Rows) -> Rows {
        let (width, scale) = (x.width, self.decoder.spec.residual_scale);
        let rows = x.data.par_chunks_exact_mut(width).zip(y.data.par_chunks_exact(width));
        rows.with_min_len(worth_a_task(width)).for_each(|(x, y)| match scale {
            Some(scale) => vector::add_scaled(x, y, scale as f32),
            None => vector::add(x, y),
        });
        self.pool.give_back(y);
        x
    }
}
