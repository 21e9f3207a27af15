//! A decoder with packed weights, and one pass of it over segments of many sequences.
//!
//! Owns the weights of a decoder on the CPU, the embedding, the final norm and the head. It does
//! not own what a block computes (`block_ops.rs`), which sequences share a pass (`run.rs`,
//! `engine/segments.rs`), how weights come from a checkpoint (`load.rs`), or the order of operations in a
//! block ([`Block::forward`](crate::engine::block::Block::forward)).
//!
//! ```text
//! load.rs ─► PackedDecoder ◄─ run.rs: spans of one pass
//!                 │ forward
//!                 ▼
//! ids ─► embedding rows ─► visit(0) ─► block 0 ─► visit(1) ─► … ─► block n-1 ─► visit(n)
//!                                                                                   │ run.rs, reads.rs
//!                                      logits ◄─ final_norm ◄───────────────────────┘
//! ```
//!
//! A pass is stateless but for the spans' keys and memories, which it extends. All sums have one
//! order, so a row gets the same bits whatever else is in the pass and however its sequence was
//! cut.

use std::sync::Arc;

use judge_arch::ModelSpec;
use judge_core::request::TokenId;
use judge_kernels::kernel::Kernel;
use judge_kernels::lines::Lines;
use judge_kernels::pack::{Linear, PackedLinear};
use judge_kernels::supported::Supported;
use judge_kernels::vector;
use rayon::prelude::*;

use super::block_ops::PackedOps;
use super::conv::Memory;
use super::kv_layout::KvLayout;
use super::rotations::Angles;
use super::rows::{BufferPool, Rows};
use super::spans::{Entropies, Span, Visit};
use super::token_inputs::token_inputs;
use crate::engine::block::Block;
use crate::engine::token_inputs::TokenInputs;
use crate::reading::labels::HeadRows;

/// A decoder-only transformer for the CPU. Matrices, keys and values are packed in bf16 or f32, the
/// dtype that it was loaded in; everything else is f32.
pub(crate) struct PackedDecoder {
    /// What the model is made of.
    pub(super) spec: Arc<ModelSpec>,
    /// Instructions of attention; the matrices are packed for the same.
    pub(super) kernel: Supported,
    /// What [`Engine::kernel_of_integers`](crate::engine::Engine::kernel_of_integers) says.
    pub(super) kernel_of_integers: Option<Kernel>,
    /// Places of keys that later passes look at: a place for each block with keys of its own.
    pub(super) lasting: Arc<KvLayout>,
    /// Places of keys that no later pass needs: blocks use a few places in turn.
    pub(super) in_turn: Arc<KvLayout>,
    /// `[d_vocab, d_model]`, looked up by token.
    pub(super) embedding: PackedLinear,
    /// Multiplies its rows; `None` stands for 1.
    pub(super) embedding_factor: Option<f32>,
    /// A row for each position, `[positions, d_model]`, added to the embedding; `None` where positions
    /// are rotations.
    pub(super) positions: Option<PackedLinear>,
    /// What makes the token inputs of all blocks; `None` in families without them.
    pub(super) token_inputs: Option<TokenInputs<Linear, Vec<f32>>>,
    /// `[n_layers]`, in the order of the forward pass.
    pub(super) blocks: Vec<Block<Linear, Vec<f32>>>,
    /// The final norm's weight, `[d_model]`.
    pub(super) norm: Vec<f32>,
    /// `[d_vocab, d_model]`; `None` if the embedding is the head, and in a classifier, whose own
    /// head of labels is not kept here.
    pub(super) head: Option<PackedLinear>,
    /// `[d_vocab]`, added to logits over the vocabulary; `None` in most families.
    pub(super) head_bias: Option<Vec<f32>>,
}

impl PackedDecoder {
    /// Where the keys of a sequence lie: with `is_lasting` in places that later passes can look at,
    /// else in the fewest places that one pass needs.
    pub(crate) fn key_places(&self, is_lasting: bool) -> Arc<KvLayout> {
        Arc::clone(if is_lasting { &self.lasting } else { &self.in_turn })
    }

    /// How many positions' keys and values take as much memory as what the first `blocks` blocks
    /// remember of a sequence besides keys, rounded up. `run.rs` counts a kept memory as so many
    /// positions. 0 if no block has a memory. If none of the blocks has keys, it is the number of
    /// numbers remembered.
    pub(crate) fn memory_in_positions(&self, blocks: usize) -> usize {
        let blocks = &self.spec.blocks[..blocks];
        let remembered: usize = blocks.iter().map(Memory::size).sum();
        let with_keys = (0..blocks.len()).filter(|&block| blocks[block].has_own_keys());
        let shapes = with_keys.map(|block| self.lasting.shape(block));
        let per_position: usize = shapes.map(|shape| 2 * shape.n_kv_heads * shape.words()).sum();
        remembered.div_ceil(per_position.max(1))
    }

    /// Runs the spans through the first `blocks` blocks. `visit` sees the residual stream as soon
    /// as it is there: number 0 is the embedding, number `i` the output of block `i` counted from
    /// 1, none of them normed. After the last of the `blocks` only the rows in each span's `keep`
    /// are there. If `visit` breaks, the rest of the pass is left out.
    ///
    /// Keys and memories of the new positions are written behind those of each span. The caller
    /// then calls `KvCache::advance`. `angles` must reach to the last position.
    ///
    /// All of it, `visit` too, runs on one of rayon's threads: a walk that is cut into tasks is then
    /// handed to the others by the thread that goes on with it. From any other thread each walk, of
    /// which a block has some ten, would wait to be taken up and to be told that it is done. A thread
    /// that waits for its own walk may take up a whole pass of another copy of the model meanwhile.
    ///
    /// # Panics
    /// If a token is not of the vocabulary, or a span's keys have no room for its positions.
    pub(crate) fn forward(
        &self,
        spans: &mut [Span<'_>],
        angles: &Angles,
        blocks: usize,
        pool: &mut BufferPool,
        visit: &mut Visit<'_>,
    ) {
        rayon::scope(|_| {
            let mut layout = Vec::with_capacity(spans.len());
            let mut count = 0;
            for span in spans.iter() {
                layout.push(count..count + span.ids.len());
                count += span.ids.len();
            }
            let ids: Vec<TokenId> = spans.iter().flat_map(|span| span.ids).copied().collect();
            let places = spans.iter().flat_map(|span| (0..span.ids.len()).map(|index| span.keys.end() + index));
            let mut x = self.embedded(&ids, &places.collect::<Vec<usize>>(), pool);
            let inputs = self.token_inputs.as_ref().filter(|_| blocks > 0);
            let token_inputs = inputs.and_then(|inputs| token_inputs(&self.spec, inputs, (&ids, &x), pool));
            let (last, entropies) = (blocks.wrapping_sub(1), Entropies::default());
            let (spec, kernel, places) = (&*self.spec, self.kernel, &*self.lasting);
            let mut ops =
                PackedOps { spec, kernel, places, spans, layout, angles, last, token_inputs, pool, entropies };
            let mut flow = visit(0, &ops.stream(&x));
            for (index, block) in self.blocks.iter().enumerate().take(blocks) {
                if flow.is_break() {
                    break;
                }
                ops.entropies.spans.clear();
                x = block.forward(&mut ops, index, x);
                flow = visit(index + 1, &ops.stream(&x));
            }
            ops.pool.give_back(x);
            if let Some(rows) = ops.token_inputs {
                ops.pool.give_back(rows);
            }
        });
    }

    /// The embeddings of tokens at their places in their sequences, `[ids.len(), d_model]`.
    fn embedded(&self, ids: &[TokenId], places: &[usize], pool: &mut BufferPool) -> Rows {
        let d_model = self.spec.d_model;
        let mut x = pool.rows(ids.len(), d_model);
        let rows = x.data.par_chunks_exact_mut(d_model).zip(ids).zip(places);
        rows.for_each_init(Vec::new, |position, ((row, &id), &place)| {
            self.embedding.row(id as usize, row);
            if let Some(factor) = self.embedding_factor {
                row.iter_mut().for_each(|x| *x *= factor);
            }
            if let Some(positions) = &self.positions {
                position.resize(d_model, 0.0);
                positions.row(place, position);
                vector::add(row, position);
            }
        });
        x
    }

    /// The final norm of one row, `[d_model]` to `[d_model]`.
    pub(crate) fn final_norm(&self, row: &[f32]) -> Vec<f32> {
        let mut normed = vec![0.0; row.len()];
        vector::norm(self.spec.norm_kind, row, &self.norm, self.spec.norm_eps as f32, &mut normed);
        normed
    }

    /// Products with the head over the whole vocabulary, from normed states `[rows, d_model]` to
    /// `[rows, d_vocab]`. They have the head's bias and are multiplied by the model's `logit_scale`; the final soft-cap is
    /// left to the caller.
    pub(crate) fn logits(&self, states: &[f32]) -> Vec<f32> {
        let rows = states.len() / self.spec.d_model;
        let mut logits = vec![0.0; rows * self.spec.d_vocab];
        rayon::scope(|_| self.head().apply(states, rows, &mut logits, &mut Lines::default()));
        if let Some(bias) = &self.head_bias {
            logits.chunks_exact_mut(bias.len().max(1)).for_each(|logits| vector::add(logits, bias));
        }
        self.scale_logits(&mut logits);
        logits
    }

    /// Rows of the head for some tokens, `[rows.len(), d_model]` in f32, and their biases, both
    /// multiplied by `logit_scale` as logits are. Label logits are dot products with the rows.
    ///
    /// # Panics
    /// If a token is not of the vocabulary.
    pub(crate) fn rows_of_head(&self, rows: &[TokenId]) -> HeadRows {
        let mut values = vec![0.0; rows.len() * self.spec.d_model];
        values
            .chunks_exact_mut(self.spec.d_model)
            .zip(rows)
            .for_each(|(values, &row)| self.head().row(row as usize, values));
        let mut biases: Vec<f32> =
            self.head_bias.iter().flat_map(|bias| rows.iter().map(|&row| bias[row as usize])).collect();
        self.scale_logits(&mut values);
        self.scale_logits(&mut biases);
        HeadRows { rows: values, biases }
    }

    /// Multiplies by the model's `logit_scale`, where it has one.
    fn scale_logits(&self, values: &mut [f32]) {
        if let Some(scale) = self.spec.logit_scale {
            values.iter_mut().for_each(|x| *x *= scale as f32);
        }
    }

    /// The matrix of the head, which is the embedding where the model ties the two.
    fn head(&self) -> &PackedLinear {
        self.head.as_ref().unwrap_or(&self.embedding)
    }
}
