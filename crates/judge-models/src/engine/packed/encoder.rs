//! An encoder with packed weights, and one pass of it over whole sequences.
//!
//! Owns the weights of an encoder on the CPU, its order of operations, and their bodies. It shares
//! products and arithmetic along a row (both `judge-kernels`') and keys and walks (`kv_cache.rs`, `attention.rs`)
//! with the decoder. `encoder_passes.rs` chooses the sequences of a pass and pools
//! what [`PackedEncoder::forward`] shows. Heads of labels are none of its business, and no keys outlive a block.
//!
//! ```text
//! words[token] + types[type] + positions[row] ─► norm ─► visit(0)
//! each block:   Post   x = norm(x + out(attention(qkv(x))))          x = norm(x + down(f(up(x))))
//!               Pre    x = x + out(attention(qkv(norm(x))))          x = x + down(f(up(norm(x))))
//!               the final norm behind the last block, if there is one ─► visit(index + 1)
//! ```
//!
//! Every position sees those on both sides, so sequences cannot share prefixes and are never cut.
//! Sequences of a pass lie behind one another as rows of one matrix. They share products alone,
//! which give a row the same bits in any company; attention runs within a sequence.

use std::ops::Range;
use std::sync::Arc;

use judge_arch::{EncoderBlockSpec, EncoderSpec, NormPlace, PositionsSpec, TypesSpec};
use judge_core::request::TokenId;
use judge_kernels::functions::NormKind;
use judge_kernels::kernel::Kernel;
use judge_kernels::lines::Lines;
use judge_kernels::pack::{Linear, PackedLinear};
use judge_kernels::product::{Activations, Onto, Results};
use judge_kernels::supported::Supported;
use judge_kernels::vector::{self, worth_a_task};
use rayon::prelude::*;

use super::attention::{Mask, Queries, Settings};
use super::cache::PackedCache;
use super::gather::attend;
use super::kv_cache::{KeyShape, KvCache};
use super::load::Packing;
use super::relative::{self, Heads, rows_needed};
use super::rotations::Angles;
use crate::engine::block::Build;
use crate::engine::encoder_block::EncoderBlock;
use crate::weights::Tensors;
use crate::{Dtype, Error};

/// An encoder for the CPU. Matrices, keys and values are packed in bf16 or f32, the dtype that it
/// was loaded in; everything else is f32.
pub(crate) struct PackedEncoder {
    /// What the model is made of.
    pub(super) spec: Arc<EncoderSpec>,
    /// Instructions of attention; the matrices are packed for the same.
    pub(super) kernel: Supported,
    /// What [`Engine::kernel_of_integers`](crate::engine::Engine::kernel_of_integers) says.
    pub(super) kernel_of_integers: Option<Kernel>,
    /// What keys and values look like, the same in all blocks: as many key heads as query heads.
    shape: KeyShape,
    /// The table of tokens, `[d_vocab, d_model]`.
    words: PackedLinear,
    /// The table of `token_type_ids`, `[types, d_model]`, of which each token gets the row of its type;
    /// `None` if there is no such table.
    types: Option<Vec<f32>>,
    /// The table of positions; `None` where positions are rotations.
    positions: Option<PackedLinear>,
    /// The norm of the embedding.
    norm: Vec<f32>,
    /// The table of relative positions after its norm, `[2 * span, d_model]`; empty where there is none.
    relative: Vec<f32>,
    /// `[n_layers]`, in the order of the forward pass.
    blocks: Vec<EncoderBlock<Linear, Vec<f32>>>,
    /// The norm behind the last block, where blocks norm what enters them.
    final_norm: Option<Vec<f32>>,
}

/// The tokens of one text, or of a pair.
#[derive(Clone, Copy)]
pub(super) struct Sequence<'a> {
    /// At least one.
    pub(super) ids: &'a [TokenId],
    /// The type of each token, all of them rows of the table; empty: all are 0.
    pub(super) types: &'a [u32],
}

/// Activations of one pass, kept for those to come. Each is resized before it is written.
#[derive(Default)]
pub(super) struct Buffers {
    /// The residual stream, `[rows, d_model]`.
    x: Vec<f32>,
    /// The next residual stream where the sum is normed (`Post`, and the final norm), `[rows,
    /// d_model]`, which is then swapped with `x`.
    normed: Vec<f32>,
    /// Queries, keys and values, `[rows, 3 * d_model]`.
    qkv: Vec<f32>,
    /// The same of the distances that a pass needs, where there are scores by relative position.
    of_distances: Vec<f32>,
    /// What attention gathered, `[rows, d_model]`, then what the MLP makes of its first product, `[rows, d_ff]`.
    inner: Vec<f32>,
    /// Packed activations, a buffer of the products.
    words: Lines<u32>,
}

impl PackedEncoder {
    /// Packs the encoder that `spec` describes from its checkpoint in this dtype, one tensor at a
    /// time, as [`EncoderSpec::tensors`] lists them but for the head's.
    pub(crate) fn load(
        spec: Arc<EncoderSpec>,
        kernel: Supported,
        dtype: Dtype,
        tensors: &mut dyn Tensors,
        cache: &mut PackedCache,
    ) -> Result<Self, Error> {
        let mut packing = Packing::new(kernel, dtype, tensors, cache);
        let d_model = spec.d_model;
        let embedding = &spec.embedding;
        let words = packing.matrix(&[(embedding.words.clone(), spec.d_vocab)], d_model)?;
        let types = match &embedding.types {
            Some(TypesSpec { name, rows, .. }) => Some(packing.tensors.take(name, &[*rows, d_model], dtype)?),
            None => None,
        };
        let positions = match &embedding.positions {
            Some(PositionsSpec { name, rows, .. }) => Some(packing.matrix(&[(name.clone(), *rows)], d_model)?),
            None => None,
        };
        let norm = packing.norm(&embedding.norm)?;
        let blocks =
            spec.blocks.iter().map(|block| EncoderBlock::build(block, &mut packing)).collect::<Result<_, _>>()?;
        let relative = match &spec.relative {
            Some(relative) => {
                let table = packing.tensors.take(&relative.table, &[2 * relative.span(), d_model], dtype)?;
                match relative.norm.as_ref().map(|norm| packing.norm(norm)).transpose()? {
                    Some(norm) => {
                        let mut normed = Vec::new();
                        norm_rows(&norm, &table, d_model, &mut normed, spec.norm_eps);
                        normed
                    }
                    None => table,
                }
            }
            None => Vec::new(),
        };
        let final_norm = spec.final_norm.as_ref().map(|norm| packing.norm(norm)).transpose()?;
        let shape = KeyShape { n_kv_heads: spec.n_heads, head_dim: spec.head_dim(), word: packing.word };
        let kernel_of_integers = packing.kernel_of_integers();
        Ok(Self {
            kernel,
            kernel_of_integers,
            shape,
            words,
            types,
            positions,
            norm,
            relative,
            blocks,
            final_norm,
            spec,
        })
    }

    /// Runs whole sequences through the first `blocks` blocks. `visit` sees the residual stream as
    /// soon as it is there, the rows of all sequences behind one another, `[d_model]` each: number
    /// 0 is the embedding after its norm, number `i` the output of block `i` counted from 1. The
    /// last block's output comes after the final norm, where there is one.
    ///
    /// `angles` must reach to the end of the longest sequence. Nothing is kept but the memory of
    /// `buffers`.
    pub(super) fn forward(
        &self,
        sequences: &[Sequence<'_>],
        angles: &Angles,
        blocks: usize,
        buffers: &mut Buffers,
        visit: &mut (dyn FnMut(usize, &[f32]) + Send),
    ) {
        let mut layout = Vec::with_capacity(sequences.len());
        let mut count = 0;
        for Sequence { ids, .. } in sequences {
            layout.push(count..count + ids.len());
            count += ids.len();
        }
        // Attention by relative position has no tiles of keys.
        let tiled = if self.spec.relative.is_some() { &[] } else { sequences };
        let mut keys: Vec<KvCache> =
            tiled.iter().map(|Sequence { ids, .. }| KvCache::alike(self.shape, None, ids.len(), 1)).collect();
        let longest = sequences.iter().map(|sequence| sequence.ids.len()).max().unwrap_or(0);
        let of_table = self.spec.relative.as_ref().map_or(0..0, |spec| rows_needed(spec, longest));
        let distances = &self.relative[of_table.start * self.spec.d_model..of_table.end * self.spec.d_model];
        let Buffers { x, normed, qkv, of_distances, inner, words } = buffers;
        let d_model = self.spec.d_model;
        self.embed(sequences, x, normed);
        visit(0, x);
        for (index, (block, spec)) in self.blocks.iter().zip(&self.spec.blocks).enumerate().take(blocks) {
            let (attention_norm, mlp_norm) = (block.attention_norm.as_ref(), Some(&block.mlp_norm));
            self.enter(&block.qkv, x, attention_norm, None, qkv, words); // [rows, d_model] -> [rows, 3 * d_model]
            match &self.spec.relative {
                None => self.attend(spec, angles, &layout, &mut keys, qkv, inner), // -> [rows, d_model]
                Some(relative) => {
                    // The rows of distances are no states of blocks: no norm is before them.
                    of_distances.resize(3 * distances.len(), 0.0);
                    product(&block.qkv, Activations::new(distances, d_model), of_distances, Onto::Nothing, words);
                    inner.resize(qkv.len() / 3, 0.0);
                    let heads = Heads { n_heads: self.spec.n_heads, head_dim: self.spec.head_dim() };
                    relative::attend(relative, heads, (of_distances, of_table.clone()), &layout, qkv, inner);
                }
            }
            product(&block.out, Activations::new(inner, d_model), x, Onto::Sum, words);
            self.norm_sums(x, attention_norm, normed);

            let d_ff = block.down.weight.in_features();
            self.enter(&block.up, x, mlp_norm, Some(d_ff), inner, words); // [rows, d_model] -> [rows, d_ff]
            product(&block.down, Activations::new(inner, d_ff), x, Onto::Sum, words); // -> [rows, d_model]
            self.norm_sums(x, mlp_norm, normed);

            if let Some(norm) = self.final_norm.as_ref().filter(|_| index + 1 == self.blocks.len()) {
                norm_rows(norm, x, d_model, normed, self.spec.norm_eps);
                std::mem::swap(x, normed);
            }
            visit(index + 1, x);
        }
    }

    /// Sets `x` to the normed embedding, `norm(words[id] + types[type] + positions[row])`, added in this
    /// order. `sums` takes the sums.
    fn embed(&self, sequences: &[Sequence<'_>], x: &mut Vec<f32>, sums: &mut Vec<f32>) {
        let d_model = self.spec.d_model;
        let of_sequence = |sequence: &Sequence<'_>| {
            let types = sequence.types.iter().map(|&kind| kind as usize).chain(std::iter::repeat(0));
            let positions = self.spec.embedding.rows(sequence.ids);
            sequence.ids.iter().copied().zip(positions).zip(types).collect::<Vec<_>>()
        };
        let rows: Vec<((TokenId, usize), usize)> = sequences.iter().flat_map(of_sequence).collect();
        sums.resize(rows.len() * d_model, 0.0);
        let each = sums.par_chunks_exact_mut(d_model).zip(&rows).with_min_len(worth_a_task(d_model));
        each.for_each_init(Vec::new, |state, (sum, &((id, position), kind))| {
            self.words.row(id as usize, sum);
            if let Some(types) = &self.types {
                vector::add(sum, &types[kind * d_model..][..d_model]);
            }
            if let Some(positions) = &self.positions {
                state.resize(d_model, 0.0);
                positions.row(position, state);
                vector::add(sum, state);
            }
        });
        norm_rows(&self.norm, sums, d_model, x, self.spec.norm_eps);
    }

    /// The first product of half a block, of the residual stream itself or, where blocks norm their
    /// input and this half has a norm, of its normed rows; activated to `d_ff` results, if it is an MLP's. Resizes `out`.
    fn enter(
        &self,
        linear: &Linear,
        x: &[f32],
        norm: Option<&Vec<f32>>,
        d_ff: Option<usize>,
        out: &mut Vec<f32>,
        words: &mut Lines<u32>,
    ) {
        let width = self.spec.d_model;
        out.resize(x.len() / width * d_ff.unwrap_or(linear.weight.out_features()), 0.0);
        let norm = norm.filter(|_| self.spec.norm_place == NormPlace::Pre);
        let normed = |x: &[f32], out: &mut [f32]| {
            vector::norm(NormKind::LayerNorm, x, norm.map_or(&[][..], |norm| norm), self.spec.norm_eps as f32, out);
        };
        let x = if norm.is_some() { Activations::made(x, width, &normed) } else { Activations::new(x, width) };
        match d_ff {
            Some(d_ff) => linear.activated(x, self.spec.activation, d_ff, out, words),
            None => product(linear, x, out, Onto::Nothing, words),
        }
    }

    /// Norms the residual stream, to which half a block has been added, where blocks norm their
    /// output. `normed` is a buffer then.
    fn norm_sums(&self, x: &mut Vec<f32>, norm: Option<&Vec<f32>>, normed: &mut Vec<f32>) {
        if let (NormPlace::Post, Some(norm)) = (self.spec.norm_place, norm) {
            norm_rows(norm, x, self.spec.d_model, normed, self.spec.norm_eps);
            std::mem::swap(x, normed);
        }
    }

    /// Sets `out` to what positions gather, `[rows, d_model]`, from `qkv`, `[rows, 3 * d_model]`.
    ///
    /// Where the block has a rotation it turns queries and keys in place first. Each sequence's
    /// keys and values then replace those of the block before in `keys`, which has one place for
    /// all blocks. `layout` has the rows of each sequence. Scores are scaled by
    /// `1 / sqrt(head_dim)`.
    fn attend(
        &self,
        block: &EncoderBlockSpec,
        angles: &Angles,
        layout: &[Range<usize>],
        keys: &mut [KvCache],
        qkv: &mut [f32],
        out: &mut Vec<f32>,
    ) {
        let (d_model, head_dim) = (self.spec.d_model, self.spec.head_dim());
        let width = 3 * d_model;
        if block.rope.is_some() {
            let positions: Vec<usize> = layout.iter().flat_map(|rows| 0..rows.len()).collect();
            let rows = qkv.par_chunks_exact_mut(width).zip(&positions).with_min_len(worth_a_task(width));
            rows.for_each(|(row, &position)| {
                let turn = angles.at(block.rope, position);
                vector::norm_rotate(&mut row[..2 * d_model], head_dim, None, None, turn); // queries, then keys
            });
        }
        keys.par_iter_mut().zip(layout).for_each(|(keys, rows)| {
            keys.clear();
            keys.write(0, &qkv[rows.start * width + d_model..], width, rows.len());
            keys.advance(rows.len());
        });
        let settings = Settings {
            kernel: self.kernel,
            n_heads: self.spec.n_heads,
            shape: self.shape,
            scale: (head_dim as f64).sqrt().recip() as f32,
            soft_cap: None,
            mask: Mask::Bidirectional(block.window),
            sinks: None,
        };
        let whole =
            |(keys, rows): (_, &Range<usize>)| Queries { keys, position: 0, row: rows.start, count: rows.len() };
        let queries: Vec<Queries<'_>> = keys.iter().zip(layout).map(whole).collect();
        out.resize(qkv.len() / 3, 0.0);
        attend(settings, 0, &queries, qkv, width, out);
    }
}

/// `x · weightᵀ + bias`, in the place of what `out` holds or added to it.
fn product(linear: &Linear, x: Activations<'_>, out: &mut [f32], onto: Onto, words: &mut Lines<u32>) {
    linear.weight.product(x, Results::new(out, linear.bias.as_deref(), onto), words);
}

/// Sets `out` to the LayerNorm of each row of `x`. Resizes `out`.
fn norm_rows(norm: &[f32], x: &[f32], width: usize, out: &mut Vec<f32>, eps: f64) {
    out.resize(x.len(), 0.0);
    let each = out.par_chunks_exact_mut(width).zip(x.par_chunks_exact(width));
    each.with_min_len(worth_a_task(width))
        .for_each(|(out, x)| vector::norm(NormKind::LayerNorm, x, norm, eps as f32, out));
}
