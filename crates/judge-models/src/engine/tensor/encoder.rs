//! An encoder of composed Burn operations over padded sequences: what encoders are trained by.
//!
//! Encoders are served by `engine/packed/encoder.rs`, whose order of operations this is; tests compare the states of
//! all layers. It is one device's, in f32, and gradients flow through all of it.
//!
//! ```text
//! embed       words[token] + types[type] + positions[row] ─► norm ─► layer 0
//! run_blocks  Post   x = norm(x + out(attention(qkv(x))))          x = norm(x + down(f(up(x))))
//!             Pre    x = x + out(attention(qkv(norm(x))))          x = x + down(f(up(norm(x))))
//!             the final norm behind the last block, if there is one
//! ```
//!
//! What lies at padding is computed and seen by nobody: attention hides it (`masks.rs`).
//!
//! Scores by relative position (DeBERTa) are not computed here; `train` refuses such models by name.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use burn::module::{Module, Param};
use burn::tensor::{Bool, DType, Device, Int, Tensor, TensorData};
use judge_arch::{EncoderBlockSpec, EncoderSpec, NormPlace};
use judge_core::request::{Pooling, TokenId};
use judge_kernels::functions::NormKind;

use super::encoder_head::Head;
use super::masks::to_both_sides;
use super::ops;
use super::parameters::{Linear, Norm, Parameters, Source, Stored};
use super::precision::Precision;
use super::projection::project;
use super::rotation::Rotation;
use crate::Error;
use crate::engine::block::Build;
use crate::engine::encoder_block::EncoderBlock;

/// An encoder, with the head of a sequence classifier if its description has one.
#[derive(Module, Debug)]
pub(crate) struct Encoder {
    /// `[d_vocab, d_model]`.
    words: Param<Tensor<2>>,
    /// `[types, d_model]`; `None` if there is no such table.
    types: Option<Param<Tensor<2>>>,
    /// `[rows, d_model]`; `None` where positions are rotations.
    positions: Option<Param<Tensor<2>>>,
    /// The norm of the embedding.
    norm: Norm,
    /// `[n_layers]`, in the order of a pass.
    blocks: Vec<EncoderBlock<Linear, Norm>>,
    /// The norm behind the last block, where blocks norm what enters them.
    final_norm: Option<Norm>,
    /// What becomes of a state of the last layer.
    head: Option<Head>,
    /// What the encoder was built from.
    #[module(skip)]
    spec: Arc<EncoderSpec>,
    /// The tensors of the checkpoint that each parameter was made from.
    #[module(skip)]
    stored: Vec<Stored>,
}

impl Encoder {
    /// Builds the encoder that `spec` describes, in f32. `source` gives the values of each tensor of
    /// [`EncoderSpec::tensors`] once.
    pub(crate) fn new(
        spec: Arc<EncoderSpec>,
        device: &Device,
        source: &mut (impl Source + ?Sized),
    ) -> Result<Self, Error> {
        let mut build = Parameters { device, precision: Precision::FULL, source, stored: Vec::new() };
        let (embedding, d_model) = (&spec.embedding, spec.d_model);
        let words = build.matrix(vec![(embedding.words.clone(), spec.d_vocab)], d_model)?;
        let types = embedding.types.as_ref().map(|types| (types.name.clone(), types.rows));
        let types = types.map(|table| build.matrix(vec![table], d_model)).transpose()?;
        let positions = embedding.positions.as_ref().map(|positions| (positions.name.clone(), positions.rows));
        let positions = positions.map(|table| build.matrix(vec![table], d_model)).transpose()?;
        let norm = build.norm(&embedding.norm)?;
        let blocks =
            spec.blocks.iter().map(|block| EncoderBlock::build(block, &mut build)).collect::<Result<_, _>>()?;
        let final_norm = spec.final_norm.as_ref().map(|norm| build.norm(norm)).transpose()?;
        let head = spec.head.as_ref().map(|head| Head::build(head, &mut build)).transpose()?;
        let stored = build.stored;
        Ok(Self { words, types, positions, norm, blocks, final_norm, head, spec, stored })
    }

    /// The tensors of the checkpoint that each parameter was made from. Training puts numbers into parameters and cuts
    /// their gradients by this list.
    pub(crate) fn stored(&self) -> &[Stored] {
        &self.stored
    }

    /// What the encoder was built from.
    pub(crate) fn spec(&self) -> &EncoderSpec {
        &self.spec
    }

    /// The head of a sequence classifier.
    pub(crate) fn head(&self) -> Option<&Head> {
        self.head.as_ref()
    }

    /// Layer 0, `[batch, seq, d_model]`: the embedding after its norm, of `tokens` `[batch, seq]`, integers on the host.
    /// Each row has as many tokens as `lengths` says and padding behind them, which is any token. `types` has the type
    /// of each, row by row: 0 but in the second text of a pair.
    pub(crate) fn embed(&self, tokens: &TensorData, types: &[i64], lengths: &[usize]) -> Tensor<3> {
        let device = self.words.val().device();
        let ids: Vec<i64> = tokens.iter::<i64>().collect();
        let (batch, count) = (lengths.len(), ids.len());
        let seq = count / batch.max(1);
        let looked_up = |table: &Param<Tensor<2>>, rows: &[i64]| {
            let rows = Tensor::<1, Int>::from_data(TensorData::from(rows), &device);
            table.val().select(0, rows) // [rows, d_model] -> [batch * seq, d_model]
        };
        let mut x = looked_up(&self.words, &ids);
        if let Some(table) = &self.types {
            x = x + looked_up(table, types);
        }
        if let Some(table) = &self.positions {
            let mut rows = vec![0; count];
            for (row, &len) in lengths.iter().enumerate() {
                let own = row * seq..row * seq + len;
                let tokens: Vec<TokenId> = ids[own.clone()].iter().map(|&id| id as TokenId).collect();
                rows[own].iter_mut().zip(self.spec.embedding.rows(&tokens)).for_each(|(row, of)| *row = of as i64);
            }
            x = x + looked_up(table, &rows);
        }
        self.normed(x.reshape([batch, seq, self.spec.d_model]), &self.norm)
    }

    /// The residual stream after some successive blocks, from the one before them. `rotation` covers its positions, and
    /// `lengths` are those of the sequences. `visit` is shown the stream after each block, `[batch, seq, d_model]`, that
    /// of the last block after the final norm.
    pub(crate) fn run_blocks(
        &self,
        blocks: Range<usize>,
        mut x: Tensor<3>,
        rotation: &Rotation,
        lengths: &[usize],
        visit: &mut dyn FnMut(usize, &Tensor<3>),
    ) -> Tensor<3> {
        let [_, seq, _] = x.dims();
        let mut hidden: BTreeMap<Option<usize>, Tensor<4, Bool>> = BTreeMap::new();
        for index in blocks {
            let (block, spec) = (&self.blocks[index], &self.spec.blocks[index]);
            let hidden = hidden.entry(spec.window);
            let hidden = hidden.or_insert_with(|| to_both_sides(spec.window, lengths, seq, &x.device()));
            let qkv = self.enter(&x, block.attention_norm.as_ref(), &block.qkv); // -> [batch, seq, 3 * d_model]
            let mixed = self.attend(spec, qkv, rotation, hidden.clone()); // -> [batch, seq, d_model]
            x = self.leave(x + project(mixed, &block.out, Precision::FULL), block.attention_norm.as_ref());
            let up = self.enter(&x, Some(&block.mlp_norm), &block.up); // -> [batch, seq, d_ff or 2 * d_ff]
            let inner = ops::gated_activation(up, block.down.weight.dims()[1], self.spec.activation, DType::F32);
            x = self.leave(x + project(inner, &block.down, Precision::FULL), Some(&block.mlp_norm));
            if let Some(norm) = self.final_norm.as_ref().filter(|_| index + 1 == self.blocks.len()) {
                x = self.normed(x, norm);
            }
            visit(index + 1, &x);
        }
        x
    }

    /// The state of each sequence that its head reads, `[batch, d_model]`, from the last layer `[batch, seq, d_model]`:
    /// the first, or the mean over its tokens.
    pub(crate) fn pooled(&self, x: Tensor<3>, lengths: &[usize]) -> Tensor<2> {
        let [batch, seq, d_model] = x.dims();
        match self.spec.head.as_ref().map(|head| head.pooling) {
            Some(Pooling::Mean) => {
                let shares = lengths
                    .iter()
                    .flat_map(|&len| (0..seq).map(move |place| if place < len { (len as f32).recip() } else { 0.0 }));
                let shares = TensorData::new(shares.collect::<Vec<_>>(), [batch, 1, seq]);
                Tensor::<3>::from_data(shares, &x.device()).matmul(x).reshape([batch, d_model])
            }
            // Heads read the mean or the first (`encoders/heads.rs` of `judge-arch`).
            _ => x.narrow(1, 0, 1).reshape([batch, d_model]),
        }
    }

    /// The first product of half a block, of the stream itself or, where blocks norm their input and this half has a
    /// norm, of its normed rows.
    fn enter(&self, x: &Tensor<3>, norm: Option<&Norm>, linear: &Linear) -> Tensor<3> {
        let x = match norm.filter(|_| self.spec.norm_place == NormPlace::Pre) {
            Some(norm) => self.normed(x.clone(), norm),
            None => x.clone(),
        };
        project(x, linear, Precision::FULL)
    }

    /// The stream to which half a block was added, normed where blocks norm their output.
    fn leave(&self, x: Tensor<3>, norm: Option<&Norm>) -> Tensor<3> {
        match norm.filter(|_| self.spec.norm_place == NormPlace::Post) {
            Some(norm) => self.normed(x, norm),
            None => x,
        }
    }

    /// The norm of each position.
    fn normed(&self, x: Tensor<3>, norm: &Norm) -> Tensor<3> {
        ops::norm(NormKind::LayerNorm, x, norm.val(), self.spec.norm_eps, DType::F32)
    }

    /// What positions gather, `[batch, seq, d_model]`, from `qkv` `[batch, seq, 3 * d_model]`.
    fn attend(
        &self,
        block: &EncoderBlockSpec,
        qkv: Tensor<3>,
        rotation: &Rotation,
        hidden: Tensor<4, Bool>,
    ) -> Tensor<3> {
        let ([batch, seq, _], d_model) = (qkv.dims(), self.spec.d_model);
        let heads = |part: usize| {
            let part = qkv.clone().narrow(2, part * d_model, d_model);
            part.reshape([batch, seq, self.spec.n_heads, self.spec.head_dim()])
        };
        let table = block.rope.map(|rope| rotation.table(rope));
        let turned = |part: usize| ops::norm_rotate(heads(part), None, None, table);
        // [batch, seq, n_heads, head_dim] -> [batch, n_heads, seq, head_dim]
        let [queries, keys, values] = [turned(0), turned(1), heads(2)].map(|part| part.swap_dims(1, 2));
        let mixed = ops::attention_to_both_sides(queries, keys, values, hidden);
        mixed.swap_dims(1, 2).reshape([batch, seq, d_model])
    }
}

#[cfg(test)]
mod tests;
