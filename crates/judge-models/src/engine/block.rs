//! One transformer block, written once: every family and every device runs this order of operations.

use burn::module::Module;

use crate::Error;
use crate::arch::{DecoderConfig, Part};

/// What a block is made of, on the residual stream's rows. One implementation composes Burn's operations, on any device
/// and with gradients; another has bodies of its own for the CPU, which are tested against it.
pub(crate) trait Ops {
    /// Rows of activations, one per position: `[rows, width]`, laid out as the implementation likes.
    type Rows;
    /// A matrix `[d_out, d_in]`, with a bias `[d_out]` where there is one.
    type Linear;
    /// A norm's weight: `[d_model]`, that of a head `[head_dim]`.
    type Norm;

    /// `x / sqrt(mean(x²) + eps) * weight` row by row. Keeps the shape.
    fn norm(&mut self, x: &Self::Rows, weight: &Self::Norm) -> Self::Rows;

    /// `x · weightᵀ + bias`: `[rows, d_in]` to `[rows, d_out]`.
    fn linear(&mut self, x: Self::Rows, linear: &Self::Linear) -> Self::Rows;

    /// Causal attention of block `index` over what it has seen so far: `[rows, d_query + 2 * d_key]` to
    /// `[rows, d_query]`. Queries and keys are normed per head where `norms` says so, then rotated.
    fn attend(&mut self, index: usize, qkv: Self::Rows, norms: HeadNorms<'_, Self::Norm>) -> Self::Rows;

    /// `f(gate) * up`: `[rows, 2 * d_ff]`, gate first, to `[rows, d_ff]`.
    fn gate(&mut self, gate_up: Self::Rows) -> Self::Rows;

    /// The rows of the residual stream that go on after [`attend`](Self::attend), which gives as many.
    fn keep(&mut self, index: usize, x: Self::Rows) -> Self::Rows;

    /// `x + y`.
    fn add(&mut self, x: Self::Rows, y: Self::Rows) -> Self::Rows;
}

/// The norms of query and key heads, where a family has them.
pub(crate) struct HeadNorms<'a, N> {
    pub(crate) queries: Option<&'a N>,
    pub(crate) keys: Option<&'a N>,
}

/// A block's weights, as some [`Ops`] takes them.
#[derive(Module, Debug)]
pub(crate) struct Block<L, N> {
    attention_norm: N,
    /// Rows: all queries, all keys, all values.
    qkv: L,
    q_norm: Option<N>,
    k_norm: Option<N>,
    out: L,
    after_attention_norm: Option<N>,
    mlp_norm: N,
    /// Rows: gate, then up.
    gate_up: L,
    down: L,
    after_mlp_norm: Option<N>,
}

/// Turns a checkpoint's tensors into weights.
pub(crate) trait Build {
    type Linear;
    type Norm;

    /// The values of a tensor of one axis.
    fn vector(&mut self, name: &str, len: usize) -> Result<Vec<f32>, Error>;

    /// The rows of several matrices, by name and number of rows, below one another, `d_in` wide.
    fn linear(&mut self, parts: &[NamedRows], d_in: usize, bias: Option<Vec<f32>>) -> Result<Self::Linear, Error>;

    /// A norm of this weight.
    fn norm(&mut self, weight: Vec<f32>) -> Self::Norm;
}

/// A matrix of a checkpoint: its name and number of rows.
pub(crate) type NamedRows = (String, usize);

/// A norm by its full name. Gemma's weights are stored as what they are above 1.
pub(crate) fn norm<B: Build>(config: &DecoderConfig, name: &str, len: usize, build: &mut B) -> Result<B::Norm, Error> {
    let mut weight = build.vector(name, len)?;
    if config.norm_offset {
        weight.iter_mut().for_each(|w| *w += 1.0);
    }
    Ok(build.norm(weight))
}

/// A projection of a block, which is number `block`.
fn linear<B: Build>(block: usize, parts: &[Part], d_in: usize, bias: bool, build: &mut B) -> Result<B::Linear, Error> {
    let name = |stem: &str, what: &str| format!("model.layers.{block}.{stem}.{what}");
    let mut biases = Vec::new();
    for &(stem, rows) in parts.iter().filter(|_| bias) {
        biases.append(&mut build.vector(&name(stem, "bias"), rows)?);
    }
    let weights: Vec<NamedRows> = parts.iter().map(|&(stem, rows)| (name(stem, "weight"), rows)).collect();
    build.linear(&weights, d_in, bias.then_some(biases))
}

impl<L, N> Block<L, N> {
    /// Block number `block`, counted from 0.
    pub(crate) fn build<B>(config: &DecoderConfig, block: usize, build: &mut B) -> Result<Self, Error>
    where
        B: Build<Linear = L, Norm = N>,
    {
        let name = |stem: &str| format!("model.layers.{block}.{stem}.weight");
        let names = config.norm_names();
        let d_model = config.d_model;
        let mut optional = |stem: Option<&str>, len| stem.map(|stem| norm(config, &name(stem), len, build)).transpose();
        let q_norm = optional(config.qk_norm.then_some("self_attn.q_norm"), config.head_dim)?;
        let k_norm = optional(config.qk_norm.then_some("self_attn.k_norm"), config.head_dim)?;
        let after_attention_norm = optional(names.after_attention, d_model)?;
        let after_mlp_norm = optional(names.after_mlp, d_model)?;
        Ok(Self {
            attention_norm: norm(config, &name(names.attention), d_model, build)?,
            qkv: linear(block, &config.qkv_parts(), d_model, config.qkv_bias, build)?,
            q_norm,
            k_norm,
            out: linear(block, &[("self_attn.o_proj", d_model)], config.d_query(), config.o_bias, build)?,
            after_attention_norm,
            mlp_norm: norm(config, &name(names.mlp), d_model, build)?,
            gate_up: linear(block, &config.gate_up_parts(), d_model, config.mlp_bias, build)?,
            down: linear(block, &[("mlp.down_proj", d_model)], config.d_ff, config.mlp_bias, build)?,
            after_mlp_norm,
        })
    }

    /// The norm that its input goes through first.
    pub(crate) fn first_norm(&self) -> &N {
        &self.attention_norm
    }

    /// The residual stream after this block, which is number `index`, counted from 0.
    pub(crate) fn forward<O>(&self, ops: &mut O, index: usize, x: O::Rows) -> O::Rows
    where
        O: Ops<Linear = L, Norm = N>,
    {
        let after = |ops: &mut O, x: O::Rows, weight: &Option<N>| match weight {
            Some(weight) => ops.norm(&x, weight),
            None => x,
        };
        let normed = ops.norm(&x, &self.attention_norm);
        let qkv = ops.linear(normed, &self.qkv); // [rows, d_model] -> [rows, d_query + 2 * d_key]
        let head_norms = HeadNorms { queries: self.q_norm.as_ref(), keys: self.k_norm.as_ref() };
        let mixed = ops.attend(index, qkv, head_norms); // -> [rows, d_query]
        let mixed = ops.linear(mixed, &self.out); // -> [rows, d_model]
        let mixed = after(ops, mixed, &self.after_attention_norm);
        let x = ops.keep(index, x);
        let x = ops.add(x, mixed);
        let normed = ops.norm(&x, &self.mlp_norm);
        let gate_up = ops.linear(normed, &self.gate_up); // [rows, d_model] -> [rows, 2 * d_ff]
        let gated = ops.gate(gate_up); // -> [rows, d_ff]
        let y = ops.linear(gated, &self.down); // -> [rows, d_model]
        let y = after(ops, y, &self.after_mlp_norm);
        ops.add(x, y)
    }
}
