//! One transformer block, written once: every family and every device runs this order of operations.

use burn::module::Module;

use crate::Error;
use crate::arch::{BlockSpec, ConvSpec, DeltaSpec, ExpertsSpec, GatedSpec, LinearSpec, MlpSpec, NormSpec, Routing};

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

    /// Causal attention of block `index` over what it has seen so far: `[rows, d_query + 2 * d_key]` to
    /// `[rows, d_query]`. Queries and keys are normed where there are norms, then rotated where the block has a rotation. Where the block is gated there is a gate
    /// behind each query head, and it multiplies what the head gives.
    fn attend(&mut self, index: usize, qkv: Self::Rows, of_heads: HeadWeights<'_, Self::Norm>) -> Self::Rows;

    /// The delta rule of block `index`, in the place of attention, over what it has seen so far; see [`DeltaSpec`]. `[rows, width]` to `[rows, d_value]`.
    fn delta(&mut self, index: usize, x: Self::Rows, rule: &Delta<Self::Norm>) -> Self::Rows;

    /// The gated short convolution of block `index`, likewise; see [`ConvSpec`](crate::arch::ConvSpec). `[rows, 3 * channels]` to `[rows, channels]`.
    fn short_conv(&mut self, index: usize, x: Self::Rows, weights: &Conv<Self::Norm>) -> Self::Rows;

    /// `f(gate) * up`: `[rows, 2 * d_ff]`, gate first, to `[rows, d_ff]`.
    fn gate(&mut self, gate_up: Self::Rows) -> Self::Rows;

    /// What the experts that `routing` chooses for each row make of it, weighted and summed: `[rows, d_model]` to the same shape. `logits`
    /// `[rows, n_experts]` are the router's. A row meets its own experts alone; their sum is f32.
    fn mix(
        &mut self,
        x: Self::Rows,
        logits: Self::Rows,
        routing: Routing,
        experts: &[Gated<Self::Linear>],
    ) -> Self::Rows;

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
    mlp: Mlp<L>,
    after_mlp_norm: Option<N>,
}

/// What a block does between its last two norms.
#[derive(Module, Debug)]
pub(crate) enum Mlp<L> {
    Dense(Gated<L>),
    Experts(Experts<L>),
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
pub(crate) struct Experts<L> {
    /// `[n_experts, d_model]`.
    router: L,
    #[module(skip)]
    routing: Routing,
    experts: Vec<Gated<L>>,
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
            },
            after_mlp_norm,
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
            Some(weight) => ops.norm(&x, weight),
            None => x,
        };
        let normed = before(ops, &x, &self.attention_norm);
        let qkv = ops.linear(normed, &self.qkv); // [rows, d_model] -> [rows, d_query + 2 * d_key]
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
        let normed = beside.unwrap_or_else(|| before(ops, &x, &self.mlp_norm));
        let y = match &self.mlp {
            Mlp::Dense(mlp) => mlp.forward(ops, normed),
            Mlp::Experts(experts) => experts.forward(ops, normed),
        };
        let y = after(ops, y, &self.after_mlp_norm);
        ops.add(x, y)
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

impl<L> Experts<L> {
    fn build<B: Build<Linear = L>>(spec: &ExpertsSpec, build: &mut B) -> Result<Self, Error> {
        let shared = spec.shared.as_ref().map(|shared| {
            Ok::<_, Error>(Shared { gate: build.linear(&shared.gate)?, mlp: Gated::build(&shared.mlp, build)? })
        });
        Ok(Self {
            shared: shared.transpose()?,
            router: build.router(&spec.router)?,
            routing: spec.routing,
            experts: spec.experts.iter().map(|expert| Gated::build(expert, build)).collect::<Result<_, _>>()?,
        })
    }

    /// `[rows, d_model]` to the same shape.
    fn forward<O: Ops<Linear = L>>(&self, ops: &mut O, x: O::Rows) -> O::Rows {
        let shared = self.shared.as_ref().map(|shared| {
            let (to_gate, to_mlp) = (ops.copy(&x), ops.copy(&x));
            (ops.linear(to_gate, &shared.gate), shared.mlp.forward(ops, to_mlp)) // [rows, 1], [rows, d_model]
        });
        let to_router = ops.copy(&x);
        let logits = ops.linear(to_router, &self.router); // [rows, d_model] -> [rows, n_experts]
        let mixed = ops.mix(x, logits, self.routing, &self.experts); // -> [rows, d_model]
        match shared {
            Some((gate, y)) => ops.add_gated(mixed, gate, y),
            None => mixed,
        }
    }
}
