//! One transformer block, written once: every family and every device runs this order of operations.

use burn::module::Module;

use crate::arch::{
    BlockSpec, BothSpec, ConvSpec, DeltaSpec, ExpertsSpec, GatedSpec, LinearSpec, MlpSpec, NormSpec, Routing,
    TokenGateSpec,
};
use crate::weights::Table;
use crate::{Dtype, Error};

/// What a block is made of, on the residual stream's rows. One implementation composes Burn's operations, on any device
/// and with gradients; another has bodies of its own for the CPU, which are tested against it.
pub(crate) trait Ops {
    /// Rows of activations, one per position: `[rows, width]`, laid out as the implementation likes.
    type Rows;
    /// A matrix `[d_out, d_in]`, with a bias `[d_out]` where there is one.
    type Linear;
    /// A norm's weight: `[d_model]`, that of a head `[head_dim]`; or other numbers of one axis.
    type Norm;

    /// The model's norm of each row; see [`NormKind`](crate::arch::NormKind). Keeps the shape.
    fn norm(&mut self, x: &Self::Rows, weight: &Self::Norm) -> Self::Rows;

    /// The rows as they are.
    fn copy(&mut self, x: &Self::Rows) -> Self::Rows;

    /// `x · weightᵀ + bias`: `[rows, d_in]` to `[rows, d_out]`.
    fn linear(&mut self, x: Self::Rows, linear: &Self::Linear) -> Self::Rows;

    /// Causal attention of block `index` over what it has seen so far: `[rows, d_query + 2 * d_key]`, without what the block does not project (see
    /// [`KeysSpec`](crate::arch::KeysSpec)), to `[rows, d_query]`. Queries and keys are normed where there are norms, then rotated where the block has a rotation.
    /// Where the block is gated there is a gate behind each query head, and it multiplies what the head gives.
    fn attend(&mut self, index: usize, qkv: Self::Rows, of_heads: HeadWeights<'_, Self::Norm>) -> Self::Rows;

    /// The delta rule of block `index`, in the place of attention, over what it has seen so far; see [`DeltaSpec`]. `[rows, width]` to `[rows, d_value]`.
    fn delta(&mut self, index: usize, x: Self::Rows, rule: &Delta<Self::Norm>) -> Self::Rows;

    /// The gated short convolution of block `index`, likewise; see [`ConvSpec`](crate::arch::ConvSpec). `[rows, 3 * channels]` to `[rows, channels]`.
    fn short_conv(&mut self, index: usize, x: Self::Rows, weights: &Conv<Self::Norm>) -> Self::Rows;

    /// `f(gate) * up`: `[rows, 2 * d_ff]`, gate first, to `[rows, d_ff]`.
    fn gate(&mut self, gate_up: Self::Rows) -> Self::Rows;

    /// What those of `experts` that the routing chooses for each row make of it, weighted and summed: `[rows, d_model]` to the same shape. `logits`
    /// `[rows, n_experts]` are the router's. A row meets its own experts alone; their sum is f32.
    fn mix(&mut self, x: Self::Rows, logits: Self::Rows, experts: &Experts<Self::Linear, Self::Norm>) -> Self::Rows;

    /// `x + y`.
    fn sum(&mut self, x: Self::Rows, y: Self::Rows) -> Self::Rows;

    /// `f(gate) * t`, where `t` are the token inputs of block `index`: `[rows, width]` to the same shape; see [`TokenInputsSpec`](crate::arch::TokenInputsSpec).
    fn gate_tokens(&mut self, index: usize, gate: Self::Rows) -> Self::Rows;

    /// The rows multiplied by a number, `[1]`.
    fn scale(&mut self, x: Self::Rows, factor: &Self::Norm) -> Self::Rows;

    /// `x + sigmoid(gate) * y`: `[rows, width]`, `[rows, 1]` and `[rows, width]`.
    fn add_gated(&mut self, x: Self::Rows, gate: Self::Rows, y: Self::Rows) -> Self::Rows;

    /// The rows of the residual stream that go on after [`attend`](Self::attend), which gives as many.
    fn keep(&mut self, index: usize, x: Self::Rows) -> Self::Rows;

    /// `x + y`, the residual stream and what half a block adds to it, which is scaled where the model does so.
    fn add(&mut self, x: Self::Rows, y: Self::Rows) -> Self::Rows;
}

/// What heads have besides projections, where a family has it.
pub(crate) struct HeadWeights<'a, N> {
    /// Norms of each head alone if the weight is as wide as one, else of all of them together.
    pub(crate) q_norm: Option<&'a N>,
    pub(crate) k_norm: Option<&'a N>,
    /// `[n_heads]`: a score of each query head whose weight goes to no key.
    pub(crate) sinks: Option<&'a N>,
}

/// The weights of a delta rule, row-major, by the names of [`DeltaSpec`].
#[derive(Module, Debug)]
pub(crate) struct Delta<N> {
    pub(crate) conv: N,
    pub(crate) dt_bias: N,
    pub(crate) a_log: N,
    pub(crate) norm: N,
}

/// The weights of a gated short convolution.
#[derive(Module, Debug)]
pub(crate) struct Conv<N> {
    /// `[channels, kernel]`.
    pub(crate) conv: N,
}

/// A block's weights, as some [`Ops`] takes them.
#[derive(Module, Debug)]
pub(crate) struct Block<L, N> {
    attention_norm: Option<N>,
    /// Rows: all queries, all keys, all values.
    qkv: L,
    q_norm: Option<N>,
    k_norm: Option<N>,
    delta: Option<Delta<N>>,
    conv: Option<Conv<N>>,
    /// `[n_heads]`.
    sinks: Option<N>,
    out: L,
    after_attention_norm: Option<N>,
    mlp_norm: Option<N>,
    /// The MLP reads what attention reads.
    is_parallel: bool,
    mlp: Mlp<L, N>,
    after_mlp_norm: Option<N>,
    token_gate: Option<TokenGate<L, N>>,
    /// `[1]`.
    scalar: Option<N>,
}

/// What a block makes of what it gets of each position's token.
#[derive(Module, Debug)]
pub(crate) struct TokenGate<L, N> {
    gate: L,
    out: L,
    norm: N,
}

/// What a block does between its last two norms.
#[derive(Module, Debug)]
pub(crate) enum Mlp<L, N> {
    Dense(Gated<L>),
    Experts(Experts<L, N>),
    Both(Both<L, N>),
}

/// An MLP and experts beside it; see [`BothSpec`].
#[derive(Module, Debug)]
pub(crate) struct Both<L, N> {
    mlp: Gated<L>,
    after_mlp: N,
    before_router: N,
    before_experts: N,
    experts: Experts<L, N>,
    after_experts: N,
}

/// A gated MLP.
#[derive(Module, Debug)]
pub(crate) struct Gated<L> {
    /// Rows: gate, then up.
    gate_up: L,
    down: L,
}

/// Gated MLPs of which each row meets a few.
#[derive(Module, Debug)]
pub(crate) struct Experts<L, N> {
    /// `[n_experts, d_model]`.
    router: L,
    #[module(skip)]
    pub(crate) routing: Routing,
    /// `[n_experts]`: factors of their weights.
    pub(crate) scales: Option<N>,
    pub(crate) experts: Vec<Gated<L>>,
    shared: Option<Shared<L>>,
}

/// An expert that every row meets.
#[derive(Module, Debug)]
pub(crate) struct Shared<L> {
    /// `[1, d_model]`.
    gate: L,
    mlp: Gated<L>,
}

/// Turns a checkpoint's tensors into weights.
pub(crate) trait Build {
    type Linear;
    type Norm;

    /// A projection: matrices below one another, with their biases.
    fn linear(&mut self, linear: &LinearSpec) -> Result<Self::Linear, Error>;

    /// A router: a projection whose product rounds nothing, neither rows nor logits, whatever the other products do. It decides which experts a row
    /// meets, and an expert more or less changes a row by far more than rounding does.
    fn router(&mut self, router: &LinearSpec) -> Result<Self::Linear, Error>;

    /// A norm.
    fn norm(&mut self, norm: &NormSpec) -> Result<Self::Norm, Error>;

    /// A matrix whose rows are looked up one by one.
    fn table(&mut self, name: &str, shape: [usize; 2]) -> Result<Table, Error>;

    /// That of the weights.
    fn dtype(&self) -> Dtype;

    /// The numbers of a tensor that is no matrix, row-major.
    fn numbers(&mut self, name: &str, shape: &[usize]) -> Result<Self::Norm, Error>;
}

impl<N> Delta<N> {
    fn build<B: Build<Norm = N>>(spec: &DeltaSpec, build: &mut B) -> Result<Self, Error> {
        let [conv, dt_bias, a_log, norm] = spec.tensors().map(|(name, shape)| build.numbers(&name, &shape));
        Ok(Self { conv: conv?, dt_bias: dt_bias?, a_log: a_log?, norm: norm? })
    }
}

impl<L, N> Block<L, N> {
    /// The block that is described.
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
        Ok(Self {
            attention_norm,
            qkv: build.linear(&spec.qkv)?,
            q_norm,
            k_norm,
            delta,
            conv,
            sinks: spec.sinks.as_ref().map(|(name, n_heads)| build.numbers(name, &[*n_heads])).transpose()?,
            out: build.linear(&spec.out)?,
            after_attention_norm,
            mlp_norm,
            is_parallel: spec.is_parallel,
            mlp: match &spec.mlp {
                MlpSpec::Dense(mlp) => Mlp::Dense(Gated::build(mlp, build)?),
                MlpSpec::Experts(experts) => Mlp::Experts(Experts::build(experts, build)?),
                MlpSpec::Both(both) => Mlp::Both(Both::build(both, build)?),
            },
            after_mlp_norm,
            token_gate: spec.token_gate.as_ref().map(|gate| TokenGate::build(gate, build)).transpose()?,
            scalar: spec.scalar.as_ref().map(|name| build.numbers(name, &[1])).transpose()?,
        })
    }

    /// The projection that its input meets first.
    pub(crate) fn first_linear(&self) -> &L {
        &self.qkv
    }

    /// The residual stream after this block, which is number `index`, counted from 0.
    pub(crate) fn forward<O>(&self, ops: &mut O, index: usize, x: O::Rows) -> O::Rows
    where
        O: Ops<Linear = L, Norm = N>,
    {
        let before = |ops: &mut O, x: &O::Rows, weight: &Option<N>| match weight {
            Some(weight) => ops.norm(x, weight),
            None => ops.copy(x),
        };
        let after = |ops: &mut O, x: O::Rows, weight: &Option<N>| match weight {
            Some(weight) => normed(ops, x, weight),
            None => x,
        };
        let to_attention = before(ops, &x, &self.attention_norm);
        let qkv = ops.linear(to_attention, &self.qkv); // [rows, d_model] -> [rows, d_query + 2 * d_key]
        let (q_norm, k_norm, sinks) = (self.q_norm.as_ref(), self.k_norm.as_ref(), self.sinks.as_ref());
        let mixed = match (&self.delta, &self.conv) {
            (Some(rule), _) => ops.delta(index, qkv, rule), // -> [rows, d_value]
            (None, Some(conv)) => ops.short_conv(index, qkv, conv), // -> [rows, channels]
            (None, None) => ops.attend(index, qkv, HeadWeights { q_norm, k_norm, sinks }), // -> [rows, d_query]
        };
        let mixed = ops.linear(mixed, &self.out); // -> [rows, d_model]
        let mixed = after(ops, mixed, &self.after_attention_norm);
        let x = ops.keep(index, x);
        // A row's norm is the same whichever rows went on.
        let beside = self.is_parallel.then(|| before(ops, &x, &self.attention_norm));
        let x = ops.add(x, mixed);
        let to_mlp = beside.unwrap_or_else(|| before(ops, &x, &self.mlp_norm));
        let y = match &self.mlp {
            Mlp::Dense(mlp) => mlp.forward(ops, to_mlp),
            Mlp::Experts(experts) => {
                let to_router = ops.copy(&to_mlp);
                experts.forward(ops, to_router, to_mlp)
            }
            Mlp::Both(both) => both.forward(ops, &x, to_mlp),
        };
        let y = after(ops, y, &self.after_mlp_norm);
        let x = ops.add(x, y);
        let x = match &self.token_gate {
            Some(gate) => gate.forward(ops, index, x),
            None => x,
        };
        match &self.scalar {
            Some(factor) => ops.scale(x, factor),
            None => x,
        }
    }
}

/// The norm of rows that are not needed without it.
fn normed<O: Ops>(ops: &mut O, x: O::Rows, weight: &O::Norm) -> O::Rows {
    ops.norm(&x, weight)
}

impl<L, N> TokenGate<L, N> {
    fn build<B: Build<Linear = L, Norm = N>>(spec: &TokenGateSpec, build: &mut B) -> Result<Self, Error> {
        Ok(Self { gate: build.linear(&spec.gate)?, out: build.linear(&spec.out)?, norm: build.norm(&spec.norm)? })
    }

    /// `[rows, d_model]` to the same shape.
    fn forward<O: Ops<Linear = L, Norm = N>>(&self, ops: &mut O, index: usize, x: O::Rows) -> O::Rows {
        let to_gate = ops.copy(&x);
        let gate = ops.linear(to_gate, &self.gate); // [rows, d_model] -> [rows, width]
        let gated = ops.gate_tokens(index, gate);
        let y = ops.linear(gated, &self.out); // [rows, width] -> [rows, d_model]
        let y = normed(ops, y, &self.norm);
        ops.sum(x, y)
    }
}

impl<L, N> Both<L, N> {
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

    /// Of the residual stream and of what the MLP takes of it, `[rows, d_model]` both, to the same shape.
    fn forward<O: Ops<Linear = L, Norm = N>>(&self, ops: &mut O, x: &O::Rows, to_mlp: O::Rows) -> O::Rows {
        let dense = self.mlp.forward(ops, to_mlp);
        let dense = normed(ops, dense, &self.after_mlp);
        let (to_router, to_experts) = (ops.norm(x, &self.before_router), ops.norm(x, &self.before_experts));
        let sparse = self.experts.forward(ops, to_router, to_experts);
        let sparse = normed(ops, sparse, &self.after_experts);
        ops.sum(dense, sparse)
    }
}

impl<L> Gated<L> {
    fn build<B: Build<Linear = L>>(spec: &GatedSpec, build: &mut B) -> Result<Self, Error> {
        Ok(Self { gate_up: build.linear(&spec.gate_up)?, down: build.linear(&spec.down)? })
    }

    /// `[rows, d_model]` to the same shape.
    pub(crate) fn forward<O: Ops<Linear = L>>(&self, ops: &mut O, x: O::Rows) -> O::Rows {
        let gate_up = ops.linear(x, &self.gate_up); // [rows, d_model] -> [rows, 2 * d_ff]
        let gated = ops.gate(gate_up); // -> [rows, d_ff]
        ops.linear(gated, &self.down) // -> [rows, d_model]
    }
}

impl<L, N> Experts<L, N> {
    fn build<B: Build<Linear = L, Norm = N>>(spec: &ExpertsSpec, build: &mut B) -> Result<Self, Error> {
        let n_experts = spec.experts.len();
        let shared = spec.shared.as_ref().map(|shared| {
            Ok::<_, Error>(Shared { gate: build.linear(&shared.gate)?, mlp: Gated::build(&shared.mlp, build)? })
        });
        Ok(Self {
            shared: shared.transpose()?,
            router: build.router(&spec.router)?,
            routing: spec.routing,
            scales: spec.scales.as_ref().map(|name| build.numbers(name, &[n_experts])).transpose()?,
            experts: spec.experts.iter().map(|expert| Gated::build(expert, build)).collect::<Result<_, _>>()?,
        })
    }

    /// What they make of rows `x`, of which the router reads `to_router`: `[rows, d_model]` all.
    fn forward<O: Ops<Linear = L, Norm = N>>(&self, ops: &mut O, to_router: O::Rows, x: O::Rows) -> O::Rows {
        let shared = self.shared.as_ref().map(|shared| {
            let (to_gate, to_mlp) = (ops.copy(&x), ops.copy(&x));
            (ops.linear(to_gate, &shared.gate), shared.mlp.forward(ops, to_mlp)) // [rows, 1], [rows, d_model]
        });
        let logits = ops.linear(to_router, &self.router); // [rows, d_model] -> [rows, n_experts]
        let mixed = ops.mix(x, logits, self); // -> [rows, d_model]
        match shared {
            Some((gate, y)) => ops.add_gated(mixed, gate, y),
            None => mixed,
        }
    }
}
