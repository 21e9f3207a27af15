//! The order of operations inside a transformer block of a decoder, written once for every family
//! and every engine.
//!
//! ```text
//! judge_arch::BlockSpec ── Block::build ──► Block<L, N> ── Block::forward ──► residual stream after the block
//!                        │                                 │
//!                    trait Build                       trait Ops
//!         Parameters (engine/tensor)            ComposedOps (engine/tensor): Burn's operations, with gradients
//!         the loader of engine/packed           PackedOps (engine/packed): kernels of this crate on the CPU
//! ```
//!
//! This file owns which operations there are and in which order they run: a diagram of them is at
//! the top of `spec.rs` in `judge-arch`. It owns no number format, no layout and no cache. An [`Ops`] decides
//! how rows lie in memory, what has been seen of the past, and how to compute; the names and sizes
//! of weights are `judge-arch`'s. Encoders have a pass of their own (`engine/packed/encoder.rs`).
//!
//! What both implementations of [`Ops`] must keep, because tests compare them:
//!
//! - An operation gives a row the same numbers whatever the other rows of the pass are, to the bit
//!   in `engine/packed`, within rounding in `engine/tensor`.
//! - Only [`attend`](Ops::attend), [`delta`](Ops::delta), [`short_conv`](Ops::short_conv) and
//!   [`mamba`](Ops::mamba) look at other positions of a row's sequence, and only at earlier ones.
//! - The number of rows changes in a pair of places alone: `attend` and its substitutes may leave
//!   rows out in the last block of a pass, and then [`keep`](Ops::keep) leaves out the same ones.

#[cfg(any(test, feature = "tensor"))]
use burn::module::Module;
use judge_arch::{
    BesideSpec, BlockSpec, BothSpec, ConvSpec, DeltaSpec, ExpertsSpec, GatedSpec, LinearSpec, MambaSpec, MlpSpec,
    NormSpec, Routing, TokenGateSpec,
};

use crate::Error;
use crate::weights::Table;

/// What a block is made of, as operations on rows of activations.
///
/// An implementation lives for one pass, on the tensor path for one device's part of it. It knows
/// the model's [`ModelSpec`](judge_arch::ModelSpec), so operations take a block's index where they
/// need more of the description than their weights. Operations take rows by value where the caller
/// is done with them, so that buffers can be used again.
pub(crate) trait Ops {
    /// Rows of activations, one for each position of the pass: `[rows, width]`, laid out as the
    /// implementation likes.
    type Rows;
    /// A matrix `[d_out, d_in]`, with a bias `[d_out]` where there is one.
    type Linear;
    /// Numbers of one axis: a norm's weight `[d_model]` or `[head_dim]`, sinks, factors, or the
    /// flattened taps of a convolution.
    type Norm;

    /// The norm of each row, of the model's kind ([`NormKind`](judge_arch::NormKind)) and with its
    /// `norm_eps`. Keeps the shape. For rows that are needed more than once; a product norms its own
    /// ([`Input::Normed`]).
    fn norm(&mut self, x: &Self::Rows, weight: &Self::Norm) -> Self::Rows;

    /// The same rows once more, for a caller that needs them twice.
    fn copy(&mut self, x: &Self::Rows) -> Self::Rows;

    /// `y = x · weightᵀ + bias`: `[rows, d_in]` to `[rows, d_out]`, where `x` is what `input` makes.
    /// With `onto`, rows `[rows, d_out]` of the residual stream, the result is their sum as
    /// [`add`](Self::add) has it.
    fn linear(
        &mut self,
        input: Input<'_, Self::Rows, Self::Norm>,
        linear: &Self::Linear,
        onto: Option<Self::Rows>,
    ) -> Self::Rows;

    /// `f(gate) * up` of a product's result `[rows, 2 * d_ff]`, gate before up, with `f` the model's activation; or `f(y)` of a result
    /// that is as wide as `next` takes rows: `[rows, d_ff]`, for the product `next`.
    fn activated(
        &mut self,
        input: Input<'_, Self::Rows, Self::Norm>,
        linear: &Self::Linear,
        next: &Self::Linear,
    ) -> Self::Rows;

    /// Causal attention of block `index`, over the positions of this pass and those before it: to
    /// `[rows, d_query]`. The rows of `qkv` hold heads side by side:
    ///
    /// ```text
    /// KeysSpec::Own        queries | keys | values      d_query + 2 * d_key
    /// KeysSpec::AsValues   queries | keys               d_query + d_key; values are these keys, neither normed by k_norm nor rotated
    /// KeysSpec::Of(i)      queries                      d_query; keys and values are those of block i
    /// is_gated             each query head is followed by its gate: d_query more
    /// ```
    ///
    /// Queries and keys are normed where `of_heads` has norms, clamped where the model has a
    /// `clip_qkv`, then rotated where the block has a rotation; see [`BlockSpec`] for what becomes
    /// of values. New keys and values are kept for later passes where the implementation has a
    /// cache. In a gated block each head's output is multiplied by `sigmoid(gate)`.
    fn attend(&mut self, index: usize, qkv: Self::Rows, of_heads: HeadWeights<'_, Self::Norm>) -> Self::Rows;

    /// The gated delta rule of block `index` in the place of attention, from what it remembers of
    /// earlier positions; [`DeltaSpec`] has the formulas. `[rows, width]` to `[rows, d_value]`.
    fn delta(&mut self, index: usize, x: Self::Rows, rule: &Delta<Self::Norm>) -> Self::Rows;

    /// The gated short convolution of block `index` in the place of attention, from the last rows
    /// that it remembers; [`ConvSpec`] has the formula. `[rows, 3 * channels]` to
    /// `[rows, channels]`.
    fn short_conv(&mut self, index: usize, x: Self::Rows, weights: &Conv<Self::Norm>) -> Self::Rows;

    /// The state space of block `index`, from what it remembers of earlier positions; [`MambaSpec`] has
    /// the formulas. `[rows, width]` to `[rows, d_inner]`.
    fn mamba(&mut self, index: usize, x: Self::Rows, weights: &Mamba<Self::Norm>) -> Self::Rows;

    /// The weighted sum of what a row's experts make of it: `[rows, d_model]` to the same shape.
    /// `logits` `[rows, n_experts]` are the router's, from which `experts.routing` makes the choice
    /// and the weights; `experts.scales` multiply the weights.
    ///
    /// A row gets a contribution from its own experts alone, and the sum is taken in f32. Its order
    /// is the implementation's: from the highest logit down in `engine/packed`, by the experts'
    /// numbers in `engine/tensor`. The shared expert is not part of it.
    fn mix(&mut self, x: Self::Rows, logits: Self::Rows, experts: &Experts<Self::Linear, Self::Norm>) -> Self::Rows;

    /// `x` and `y`, or the norm of `y` where there is one, added without a factor; both are
    /// `[rows, width]`.
    fn sum(&mut self, x: Self::Rows, y: Self::Rows, norm: Option<&Self::Norm>) -> Self::Rows;

    /// `f(gate) * t`, with `f` the model's activation and `t` the token inputs of block `index` at
    /// the same positions: `[rows, width]` to the same shape; see
    /// [`TokenInputsSpec`](judge_arch::TokenInputsSpec).
    fn gate_tokens(&mut self, index: usize, gate: Self::Rows) -> Self::Rows;

    /// All rows multiplied by one number, `[1]`.
    fn scale(&mut self, x: Self::Rows, factor: &Self::Norm) -> Self::Rows;

    /// `x + sigmoid(gate) * y`: `x` and `y` are `[rows, width]`, `gate` `[rows, 1]`.
    fn add_gated(&mut self, x: Self::Rows, gate: Self::Rows, y: Self::Rows) -> Self::Rows;

    /// The rows of the residual stream `x` that go on behind attention, as many as
    /// [`attend`](Self::attend) gave. All of them, except in the last block of a pass, where only
    /// positions that are read go on.
    fn keep(&mut self, index: usize, x: Self::Rows) -> Self::Rows;

    /// `x + residual_scale * y`: the residual stream and what attention or the MLP adds to it, or
    /// the norm of that where there is a norm. The factor is 1 in most families.
    fn add(&mut self, x: Self::Rows, y: Self::Rows, norm: Option<&Self::Norm>) -> Self::Rows;
}

/// What a product multiplies: rows, or what is made of them on their way into the product. An
/// implementation can spare the rows between, and the walk over them.
pub(crate) enum Input<'a, R, N> {
    /// Rows that are used up.
    Rows(R),
    /// Rows that are needed once more.
    Of(&'a R),
    /// The norm of rows that are needed once more, as [`Ops::norm`] gives it.
    Normed(&'a R, &'a N),
}

impl<'a, R, N> Input<'a, R, N> {
    /// The norm of the rows if there is one, else the rows.
    fn normed(x: &'a R, norm: Option<&'a N>) -> Self {
        match norm {
            Some(norm) => Self::Normed(x, norm),
            None => Self::Of(x),
        }
    }
}

/// Weights of attention heads besides the projections; each is `Some` where the family has it.
pub(crate) struct HeadWeights<'a, N> {
    /// The norm of queries: of each head alone if the weight is `[head_dim]`, of all heads together
    /// if it is `[d_query]`. The length tells the two apart.
    pub(crate) q_norm: Option<&'a N>,
    /// The norm of keys, `[head_dim]` or `[d_key]`, told apart likewise.
    pub(crate) k_norm: Option<&'a N>,
    /// `[n_heads]`: one extra score for each query head. It takes part in the softmax, and its
    /// weight goes to no key.
    pub(crate) sinks: Option<&'a N>,
}

/// The weights of a delta rule, row-major, named as in [`DeltaSpec`].
#[derive(Debug)]
#[cfg_attr(any(test, feature = "tensor"), derive(Module))]
pub(crate) struct Delta<N> {
    /// Taps `[channels, 1, kernel]`, flattened; the last tap of a channel is for the position
    /// itself.
    pub(crate) conv: N,
    /// `[n_value_heads]`, added to the step sizes before their softplus.
    pub(crate) dt_bias: N,
    /// `[n_value_heads]`: logarithms of the decay rates.
    pub(crate) a_log: N,
    /// `[value_dim]`: the norm of each value head's output.
    pub(crate) norm: N,
}

/// The weight of a gated short convolution; see [`ConvSpec`].
#[derive(Debug)]
#[cfg_attr(any(test, feature = "tensor"), derive(Module))]
pub(crate) struct Conv<N> {
    /// Taps `[channels, 1, kernel]`, flattened; the last tap of a channel is for the position
    /// itself.
    pub(crate) conv: N,
}

/// The weights of a state space, row-major, named as in [`MambaSpec`].
#[derive(Debug)]
#[cfg_attr(any(test, feature = "tensor"), derive(Module))]
pub(crate) struct Mamba<N> {
    /// Taps `[channels, 1, kernel]`, flattened; the last tap of a channel is for the position
    /// itself.
    pub(crate) conv: N,
    /// `[channels]`, added behind the convolution.
    pub(crate) conv_bias: Option<N>,
    /// `[n_heads]`, added to `dt` before its softplus.
    pub(crate) dt_bias: N,
    /// `[n_heads]`: logarithms of the decay rates.
    pub(crate) a_log: N,
    /// `[n_heads]`: what of `x` goes past the state.
    pub(crate) d: N,
    /// `[d_inner]`: the norm of the output.
    pub(crate) norm: Option<N>,
}

/// A block's weights, in the form that some [`Ops`] takes: `L` are its matrices, `N` its vectors.
///
/// Fields follow [`BlockSpec`], which says when each is `Some`. Burn's `Module` is derived so that
/// the tensor path can visit all parameters; the packed path ignores it.
#[derive(Debug)]
#[cfg_attr(any(test, feature = "tensor"), derive(Module))]
pub(crate) struct Block<L, N> {
    /// The norm of what attention reads, `[d_model]`.
    attention_norm: Option<N>,
    /// The first projection. Its rows are all queries (each head followed by its gate where the
    /// block is gated), all keys, all values, or what a delta rule, a convolution or a state space takes.
    /// `None`, like `out`, where the block is its MLP alone.
    qkv: Option<L>,
    /// The norm of query heads; see [`HeadWeights`].
    q_norm: Option<N>,
    /// The norm of key heads; see [`HeadWeights`].
    k_norm: Option<N>,
    /// A delta rule in the place of attention.
    delta: Option<Delta<N>>,
    /// A short convolution in the place of attention; never beside a delta rule.
    conv: Option<Conv<N>>,
    /// A state space in the place of attention; never beside the two.
    mamba: Option<Mamba<N>>,
    /// A state space beside attention.
    beside: Option<Beside<L, N>>,
    /// Attention sinks, `[n_heads]`; see [`HeadWeights`].
    sinks: Option<N>,
    /// From what attention or its substitute gives to `[d_model]`.
    out: Option<L>,
    /// The norm of what attention adds to the residual stream, `[d_model]`.
    after_attention_norm: Option<N>,
    /// The norm of what the MLP reads, `[d_model]`.
    mlp_norm: Option<N>,
    /// Whether the MLP is beside attention, `x + attn(n(x)) + mlp(m(x))`, with a norm of its own or the
    /// same.
    is_parallel: bool,
    /// The dense MLP, the experts, or both; `None` where the block is what is before it alone.
    mlp: Option<Mlp<L, N>>,
    /// The norm of what the MLP adds to the residual stream, `[d_model]`.
    after_mlp_norm: Option<N>,
    /// How the token inputs enter behind the MLP (Gemma 4).
    token_gate: Option<TokenGate<L, N>>,
    /// A factor on all that leaves the block, `[1]` (Gemma 4).
    scalar: Option<N>,
}

/// A state space beside attention; see [`BesideSpec`].
#[derive(Debug)]
#[cfg_attr(any(test, feature = "tensor"), derive(Module))]
pub(crate) struct Beside<L, N> {
    /// `[width, d_model]`.
    input: L,
    /// The state space.
    mamba: Mamba<N>,
    /// `[d_model, d_inner]`.
    out: L,
}

/// What lets a block's token inputs `t` into the residual stream: `x + norm(out(f(gate(x)) * t))`,
/// with `f` the model's activation.
#[derive(Debug)]
#[cfg_attr(any(test, feature = "tensor"), derive(Module))]
pub(crate) struct TokenGate<L, N> {
    /// `[width, d_model]`.
    gate: L,
    /// `[d_model, width]`.
    out: L,
    /// `[d_model]`.
    norm: N,
}

/// What a block does between the norms before and after its MLP.
#[derive(Debug)]
#[cfg_attr(any(test, feature = "tensor"), derive(Module))]
pub(crate) enum Mlp<L, N> {
    /// One MLP for all rows.
    Dense(Gated<L>),
    /// Experts in the place of the MLP.
    Experts(Experts<L, N>),
    /// An MLP and experts beside it, whose outputs are added.
    Both(Both<L, N>),
}

/// An MLP and experts beside it, each with norms of its own (Gemma 4); [`BothSpec`] has the
/// formula. All norms are `[d_model]`.
#[derive(Debug)]
#[cfg_attr(any(test, feature = "tensor"), derive(Module))]
pub(crate) struct Both<L, N> {
    /// The MLP that every row goes through.
    mlp: Gated<L>,
    /// The norm of what the MLP gives.
    after_mlp: N,
    /// The norm of what the router reads. A factor of `1 / sqrt(d_model)` is part of the weight.
    before_router: N,
    /// The norm of what the experts read.
    before_experts: N,
    /// The router and the experts.
    experts: Experts<L, N>,
    /// The norm of the experts' weighted sum.
    after_experts: N,
}

/// A gated MLP, `down(f(gate(x)) * up(x))`, or one without a gate, `down(f(up(x)))`, with `f` the
/// model's activation.
#[derive(Debug)]
#[cfg_attr(any(test, feature = "tensor"), derive(Module))]
pub(crate) struct Gated<L> {
    /// `[2 * d_ff, d_model]`: all rows of the gate, then all rows of up. Without a gate those of up
    /// alone, `[d_ff, d_model]`.
    pub(crate) gate_up: L,
    /// `[d_model, d_ff]`.
    down: L,
}

/// Gated MLPs of which a router chooses some for each row, and the shared expert that all rows go
/// through.
#[derive(Debug)]
#[cfg_attr(any(test, feature = "tensor"), derive(Module))]
pub(crate) struct Experts<L, N> {
    /// `[n_experts, d_model]`: one logit for each expert, computed in f32; see [`Build::router`].
    router: L,
    /// How logits become a choice and weights.
    #[cfg_attr(any(test, feature = "tensor"), module(skip))]
    pub(crate) routing: Routing,
    /// `[n_experts]`: factors on the experts' weights (Gemma 4).
    pub(crate) scales: Option<N>,
    /// `[n_experts]`: added to scores for the choice alone (LFM2).
    pub(crate) choice_bias: Option<N>,
    /// `[n_experts]`, all of one shape.
    pub(crate) experts: Vec<Gated<L>>,
    /// One more expert that every row goes through (Qwen2-MoE, Qwen3.5 with experts).
    shared: Option<Shared<L>>,
}

/// An expert that every row goes through: `sigmoid(gate(x)) * mlp(x)`, or `mlp(x)` without a gate, is
/// added to the weighted sum of the others.
#[derive(Debug)]
#[cfg_attr(any(test, feature = "tensor"), derive(Module))]
pub(crate) struct Shared<L> {
    /// `[1, d_model]`.
    gate: Option<L>,
    /// The expert. Its width may differ from that of the others.
    mlp: Gated<L>,
}

/// Turns a checkpoint's tensors into weights, each in the form and on the device that an engine
/// computes with.
///
/// [`Block::build`] and [`TokenInputs::build`](super::token_inputs::TokenInputs::build) ask for
/// every tensor of their description once. Names and shapes have been compared with the checkpoint
/// before (`checked.rs`). The errors of all methods are those of reading a tensor: a value that is
/// not finite, or a file that cannot be read.
pub(crate) trait Build {
    /// What [`Ops::Linear`] is in the same engine.
    type Linear;
    /// What [`Ops::Norm`] is in the same engine.
    type Norm;

    /// A projection: the matrices of `linear` with their rows below one another, and their biases
    /// where there are some.
    fn linear(&mut self, linear: &LinearSpec) -> Result<Self::Linear, Error>;

    /// A router: a projection whose product rounds neither rows nor logits, whatever the dtype of
    /// the other products. It decides which experts a row goes through, and another expert changes
    /// a row by far more than rounding does.
    fn router(&mut self, router: &LinearSpec) -> Result<Self::Linear, Error>;

    /// The weight of a norm, `(stored + offset) * factor` as [`NormSpec`] says, and its bias behind it
    /// where it has one.
    fn norm(&mut self, norm: &NormSpec) -> Result<Self::Norm, Error>;

    /// A matrix `[rows, width]` whose rows are looked up on the host, one by one.
    fn table(&mut self, name: &str, shape: [usize; 2]) -> Result<Table, Error>;

    /// The numbers of a tensor that is neither a matrix nor a norm, such as taps, sinks or factors:
    /// row-major, in f32.
    fn numbers(&mut self, name: &str, shape: &[usize]) -> Result<Self::Norm, Error>;
}

impl<N> Delta<N> {
    /// Takes the four tensors of a delta rule, in the order of `DeltaSpec::tensors`.
    fn build<B: Build<Norm = N>>(spec: &DeltaSpec, build: &mut B) -> Result<Self, Error> {
        let [conv, dt_bias, a_log, norm] = spec.tensors().map(|(name, shape)| build.numbers(&name, &shape));
        Ok(Self { conv: conv?, dt_bias: dt_bias?, a_log: a_log?, norm: norm? })
    }
}

impl<N> Mamba<N> {
    /// Takes the tensors of a state space.
    fn build<B: Build<Norm = N>>(spec: &MambaSpec, build: &mut B) -> Result<Self, Error> {
        let (shape, heads) = (spec.shape, [spec.shape.n_heads]);
        let norm = spec.norm.as_ref().map(|(name, _)| build.numbers(name, &[shape.d_inner()]));
        let bias = spec.conv_bias.as_ref().map(|name| build.numbers(name, &[shape.channels()]));
        Ok(Self {
            conv: build.numbers(&spec.conv, &[shape.channels(), 1, shape.kernel])?,
            conv_bias: bias.transpose()?,
            dt_bias: build.numbers(&spec.dt_bias, &heads)?,
            a_log: build.numbers(&spec.a_log, &heads)?,
            d: build.numbers(&spec.d, &heads)?,
            norm: norm.transpose()?,
        })
    }
}

impl<L, N> Beside<L, N> {
    /// Takes the projections and the state space.
    fn build<B: Build<Linear = L, Norm = N>>(spec: &BesideSpec, build: &mut B) -> Result<Self, Error> {
        let BesideSpec { input, mamba, out } = spec;
        Ok(Self { input: build.linear(input)?, mamba: Mamba::build(mamba, build)?, out: build.linear(out)? })
    }
}

impl<L, N> Block<L, N> {
    /// Takes the tensors of the block that `spec` describes.
    pub(crate) fn build<B>(spec: &BlockSpec, build: &mut B) -> Result<Self, Error>
    where
        B: Build<Linear = L, Norm = N>,
    {
        let mut norm = |norm: &Option<NormSpec>| norm.as_ref().map(|norm| build.norm(norm)).transpose();
        let (attention_norm, q_norm, k_norm) =
            (norm(&spec.before_attention)?, norm(&spec.q_norm)?, norm(&spec.k_norm)?);
        let (after_attention_norm, mlp_norm) = (norm(&spec.after_attention)?, norm(&spec.before_mlp)?);
        let after_mlp_norm = norm(&spec.after_mlp)?;
        let delta = spec.delta.as_ref().map(|delta| Delta::build(delta, build)).transpose()?;
        let mut taps = |conv: &ConvSpec| build.numbers(&conv.name, &[conv.channels, 1, conv.kernel]);
        let conv = spec.conv.as_ref().map(|conv| Ok::<_, Error>(Conv { conv: taps(conv)? })).transpose()?;
        let mamba = spec.mamba.as_ref().map(|mamba| Mamba::build(mamba, build)).transpose()?;
        Ok(Self {
            attention_norm,
            qkv: spec.qkv.as_ref().map(|qkv| build.linear(qkv)).transpose()?,
            q_norm,
            k_norm,
            delta,
            conv,
            mamba,
            beside: spec.beside.as_ref().map(|beside| Beside::build(beside, build)).transpose()?,
            sinks: spec.sinks.as_ref().map(|(name, n_heads)| build.numbers(name, &[*n_heads])).transpose()?,
            out: spec.out.as_ref().map(|out| build.linear(out)).transpose()?,
            after_attention_norm,
            mlp_norm,
            is_parallel: spec.is_parallel,
            mlp: spec.mlp.as_ref().map(|mlp| Mlp::build(mlp, build)).transpose()?,
            after_mlp_norm,
            token_gate: spec.token_gate.as_ref().map(|gate| TokenGate::build(gate, build)).transpose()?,
            scalar: spec.scalar.as_ref().map(|name| build.numbers(name, &[1])).transpose()?,
        })
    }

    /// A projection, which is on the device of the block like all of its weights. The tensor path asks
    /// it for that device. `None` in a block without any, of which there is none.
    #[cfg(any(test, feature = "tensor"))]
    pub(crate) fn first_linear(&self) -> Option<&L> {
        self.qkv.as_ref().or(self.mlp.as_ref().map(Mlp::first_linear))
    }

    /// The residual stream `x` after this block, `[rows, d_model]`. `index` is the block's number
    /// from 0, by which `ops` finds its description and its cache.
    ///
    /// Where `ops` [keeps](Ops::keep) fewer rows, the result has fewer.
    pub(crate) fn forward<O>(&self, ops: &mut O, index: usize, x: O::Rows) -> O::Rows
    where
        O: Ops<Linear = L, Norm = N>,
    {
        let before = self.attention_norm.as_ref();
        let beside = self.beside.as_ref().map(|beside| {
            let rows = ops.linear(Input::normed(&x, before), &beside.input, None); // [rows, d_model] -> [rows, width]
            (ops.mamba(index, rows, &beside.mamba), &beside.out) // -> [rows, d_inner]
        });
        let mixed = self.qkv.as_ref().zip(self.out.as_ref()).map(|(qkv, out)| {
            let qkv = ops.linear(Input::normed(&x, before), qkv, None); // [rows, d_model] -> [rows, d_query + 2 * d_key]
            (self.mix(ops, index, qkv), out)
        });
        let x = ops.keep(index, x);
        let after_mlp = self.after_mlp_norm.as_ref();
        // The MLP beside attention reads what attention read, or another norm of it; its result is added last.
        let parallel = self.mlp.as_ref().filter(|_| self.is_parallel);
        let parallel = parallel.map(|mlp| mlp.forward(ops, &x, self.mlp_norm.as_ref().or(before)));
        let x = match mixed {
            Some((mixed, out)) => add_projected(ops, x, mixed, out, self.after_attention_norm.as_ref()),
            None => x,
        };
        let x = match beside {
            Some((rows, out)) => ops.linear(Input::Rows(rows), out, Some(x)),
            None => x,
        };
        let x = match (parallel, &self.mlp) {
            (Some(y), _) => ops.add(x, y, after_mlp),
            (None, Some(mlp)) => mlp.add(ops, x, self.mlp_norm.as_ref(), after_mlp),
            (None, None) => x,
        };
        let x = match &self.token_gate {
            Some(gate) => gate.forward(ops, index, x),
            None => x,
        };
        match &self.scalar {
            Some(factor) => ops.scale(x, factor),
            None => x,
        }
    }

    /// Attention or what is in its place, over rows of the first projection.
    fn mix<O: Ops<Linear = L, Norm = N>>(&self, ops: &mut O, index: usize, qkv: O::Rows) -> O::Rows {
        let (q_norm, k_norm, sinks) = (self.q_norm.as_ref(), self.k_norm.as_ref(), self.sinks.as_ref());
        if let Some(rule) = &self.delta {
            ops.delta(index, qkv, rule) // -> [rows, d_value]
        } else if let Some(conv) = &self.conv {
            ops.short_conv(index, qkv, conv) // -> [rows, channels]
        } else if let Some(mamba) = &self.mamba {
            ops.mamba(index, qkv, mamba) // -> [rows, d_inner]
        } else {
            ops.attend(index, qkv, HeadWeights { q_norm, k_norm, sinks }) // -> [rows, d_query]
        }
    }
}

/// The residual stream `x` with the product of `rows`, or its norm, added. Without a norm the
/// product is added as it is made.
fn add_projected<O: Ops>(
    ops: &mut O,
    x: O::Rows,
    rows: O::Rows,
    linear: &O::Linear,
    norm: Option<&O::Norm>,
) -> O::Rows {
    match norm {
        None => ops.linear(Input::Rows(rows), linear, Some(x)),
        Some(_) => {
            let y = ops.linear(Input::Rows(rows), linear, None); // -> [rows, d_model]
            ops.add(x, y, norm)
        }
    }
}

impl<L, N> Mlp<L, N> {
    /// Takes the MLP, the experts, or both.
    fn build<B: Build<Linear = L, Norm = N>>(spec: &MlpSpec, build: &mut B) -> Result<Self, Error> {
        Ok(match spec {
            MlpSpec::Dense(mlp) => Self::Dense(Gated::build(mlp, build)?),
            MlpSpec::Experts(experts) => Self::Experts(Experts::build(experts, build)?),
            MlpSpec::Both(both) => Self::Both(Both::build(both, build)?),
        })
    }

    /// One of its projections, which are all on the same device.
    #[cfg(any(test, feature = "tensor"))]
    fn first_linear(&self) -> &L {
        match self {
            Self::Dense(mlp) | Self::Both(Both { mlp, .. }) => &mlp.gate_up,
            Self::Experts(experts) => &experts.router,
        }
    }

    /// What this makes of the residual stream `x`, or of its norm `before`: `[rows, d_model]` both.
    fn forward<O: Ops<Linear = L, Norm = N>>(&self, ops: &mut O, x: &O::Rows, before: Option<&N>) -> O::Rows {
        match self {
            Self::Dense(mlp) => mlp.forward(ops, Input::normed(x, before)),
            Self::Experts(experts) => {
                let rows = match before {
                    Some(norm) => ops.norm(x, norm),
                    None => ops.copy(x),
                };
                let logits = ops.linear(Input::Of(&rows), &experts.router, None); // -> [rows, n_experts]
                experts.forward(ops, rows, logits)
            }
            Self::Both(both) => both.forward(ops, x, before),
        }
    }

    /// The residual stream `x` with what this makes of it added, or with the norm `after` of that.
    fn add<O>(&self, ops: &mut O, x: O::Rows, before: Option<&N>, after: Option<&N>) -> O::Rows
    where
        O: Ops<Linear = L, Norm = N>,
    {
        match self {
            Self::Dense(mlp) => {
                let gated = ops.activated(Input::normed(&x, before), &mlp.gate_up, &mlp.down);
                add_projected(ops, x, gated, &mlp.down, after)
            }
            Self::Experts(_) | Self::Both(_) => {
                let y = self.forward(ops, &x, before);
                ops.add(x, y, after)
            }
        }
    }
}

impl<L, N> TokenGate<L, N> {
    /// Takes the two projections and the norm that `spec` describes.
    fn build<B: Build<Linear = L, Norm = N>>(spec: &TokenGateSpec, build: &mut B) -> Result<Self, Error> {
        Ok(Self { gate: build.linear(&spec.gate)?, out: build.linear(&spec.out)?, norm: build.norm(&spec.norm)? })
    }

    /// The residual stream with the token inputs of block `index` let in: `[rows, d_model]` to the
    /// same shape.
    fn forward<O: Ops<Linear = L, Norm = N>>(&self, ops: &mut O, index: usize, x: O::Rows) -> O::Rows {
        let gate = ops.linear(Input::Of(&x), &self.gate, None); // [rows, d_model] -> [rows, width]
        let gated = ops.gate_tokens(index, gate);
        let y = ops.linear(Input::Rows(gated), &self.out, None); // [rows, width] -> [rows, d_model]
        ops.sum(x, y, Some(&self.norm))
    }
}

impl<L, N> Both<L, N> {
    /// Takes the MLP, the experts and the norms that `spec` describes.
    fn build<B: Build<Linear = L, Norm = N>>(spec: &BothSpec, build: &mut B) -> Result<Self, Error> {
        Ok(Self {
            mlp: Gated::build(&spec.mlp, build)?,
            after_mlp: build.norm(&spec.after_mlp)?,
            before_router: build.norm(&spec.before_router)?,
            before_experts: build.norm(&spec.before_experts)?,
            experts: Experts::build(&spec.experts, build)?,
            after_experts: build.norm(&spec.after_experts)?,
        })
    }

    /// The sum of both parts, `[rows, d_model]`. The router and the experts read norms of their own
    /// of the residual stream `x`, the MLP reads the block's norm `before` of it.
    fn forward<O>(&self, ops: &mut O, x: &O::Rows, before: Option<&N>) -> O::Rows
    where
        O: Ops<Linear = L, Norm = N>,
    {
        let dense = {
            let y = self.mlp.forward(ops, Input::normed(x, before));
            ops.norm(&y, &self.after_mlp)
        };
        let to_router = Input::Normed(x, &self.before_router);
        let logits = ops.linear(to_router, &self.experts.router, None); // [rows, d_model] -> [rows, n_experts]
        let to_experts = ops.norm(x, &self.before_experts);
        let sparse = self.experts.forward(ops, to_experts, logits);
        ops.sum(dense, sparse, Some(&self.after_experts))
    }
}

impl<L> Gated<L> {
    /// Takes the two projections that `spec` describes.
    fn build<B: Build<Linear = L>>(spec: &GatedSpec, build: &mut B) -> Result<Self, Error> {
        Ok(Self { gate_up: build.linear(&spec.gate_up)?, down: build.linear(&spec.down)? })
    }

    /// What the MLP makes of rows `[rows, d_model]`: the same shape. [`Ops::mix`] calls it for each
    /// expert.
    pub(crate) fn forward<O>(&self, ops: &mut O, x: Input<'_, O::Rows, O::Norm>) -> O::Rows
    where
        O: Ops<Linear = L>,
    {
        let gated = ops.activated(x, &self.gate_up, &self.down); // [rows, d_model] -> [rows, d_ff]
        ops.linear(Input::Rows(gated), &self.down, None) // -> [rows, d_model]
    }
}

impl<L, N> Experts<L, N> {
    /// Takes the router, the experts and the shared expert that `spec` describes.
    fn build<B: Build<Linear = L, Norm = N>>(spec: &ExpertsSpec, build: &mut B) -> Result<Self, Error> {
        let n_experts = spec.experts.len();
        let shared = spec.shared.as_ref().map(|shared| {
            let gate = shared.gate.as_ref().map(|gate| build.linear(gate)).transpose()?;
            Ok::<_, Error>(Shared { gate, mlp: Gated::build(&shared.mlp, build)? })
        });
        Ok(Self {
            shared: shared.transpose()?,
            router: build.router(&spec.router)?,
            routing: spec.routing,
            scales: spec.scales.as_ref().map(|name| build.numbers(name, &[n_experts])).transpose()?,
            choice_bias: spec.choice_bias.as_ref().map(|name| build.numbers(name, &[n_experts])).transpose()?,
            experts: spec.experts.iter().map(|expert| Gated::build(expert, build)).collect::<Result<_, _>>()?,
        })
    }

    /// What the experts that the router's `logits` choose, and the shared one, make of rows `x`:
    /// `[rows, d_model]` to the same shape.
    fn forward<O: Ops<Linear = L, Norm = N>>(&self, ops: &mut O, x: O::Rows, logits: O::Rows) -> O::Rows {
        let shared = self.shared.as_ref().map(|shared| {
            let gate = shared.gate.as_ref();
            let gate = gate.map(|gate| ops.linear(Input::Of(&x), gate, None)); // [rows, d_model] -> [rows, 1]
            (gate, shared.mlp.forward(ops, Input::Of(&x))) // -> [rows, d_model]
        });
        let mixed = ops.mix(x, logits, self); // -> [rows, d_model]
        match shared {
            Some((Some(gate), y)) => ops.add_gated(mixed, gate, y),
            Some((None, y)) => ops.sum(mixed, y, None),
            None => mixed,
        }
    }
}
