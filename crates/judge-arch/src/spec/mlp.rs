//! The MLP of a block: dense, experts chosen by a router, or both beside one another.
//!
//! Also describes the stacked tensors in which some checkpoints keep all experts of a block. They
//! are views: engines ask for the experts one by one, and `judge-weights` (`safetensors/stacks.rs` or, for
//! quantised files, `quantised/part.rs`) finds the numbers inside the stack.

use judge_weights::stack::StackSpec;

use super::parts::{LinearSpec, NamedShape, NormSpec};

/// What a block does between the norms before and after its MLP.
#[derive(Clone, Debug, PartialEq)]
pub enum MlpSpec {
    /// One MLP for all rows.
    Dense(GatedSpec),
    /// Experts in the place of the MLP. Boxed because they are much larger than an MLP.
    Experts(Box<ExpertsSpec>),
    /// Experts beside an MLP. Boxed likewise.
    Both(Box<BothSpec>),
}

/// An MLP and experts beside it, each with norms of its own (Gemma 4). From the residual stream `x`
/// and `y = before_mlp(x)`, with the norm of the block:
///
/// ```text
/// after_mlp(mlp(y)) + after_experts(experts(before_experts(x)))      the router reads before_router(x)
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct BothSpec {
    /// The MLP that every row goes through.
    pub mlp: GatedSpec,
    /// The norm of what the MLP gives.
    pub after_mlp: NormSpec,
    /// The norm of what the router reads. Its `factor` is `1 / sqrt(d_model)`.
    pub before_router: NormSpec,
    /// The norm of what the experts read.
    pub before_experts: NormSpec,
    /// Router and experts, without a shared one.
    pub experts: ExpertsSpec,
    /// The norm of the experts' weighted sum.
    pub after_experts: NormSpec,
}

/// A gated MLP, `down(f(gate(x)) * up(x))`, or one without a gate, `down(f(up(x)))`, with `f` the
/// model's activation.
#[derive(Clone, Debug, PartialEq)]
pub struct GatedSpec {
    /// All rows of the gate, then all rows of up: `[2 * d_ff, d_model]`. Without a gate those of up
    /// alone, `[d_ff, d_model]`: engines tell the two apart by the columns of `down`.
    pub gate_up: LinearSpec,
    /// `[d_model, d_ff]`.
    pub down: LinearSpec,
}

/// Gated MLPs of which a router chooses some for each row. What the chosen ones make of a row is
/// multiplied by their weights and summed in f32 from the highest logit down.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpertsSpec {
    /// `[n_experts, d_model]`: one logit per expert. Its product is f32 whatever the dtype of the
    /// weights.
    pub router: LinearSpec,
    /// How logits become a choice and weights.
    pub routing: Routing,
    /// Full name of a tensor `[n_experts]` whose numbers multiply the experts' weights (Gemma 4).
    pub scales: Option<String>,
    /// Full name of a tensor `[n_experts]` that is added to scores for the choice alone (LFM2).
    pub choice_bias: Option<String>,
    /// `[n_experts]`, all of the same width.
    pub experts: Vec<GatedSpec>,
    /// One more expert that every row goes through (Qwen2-MoE, Qwen3.5 with experts).
    pub shared: Option<SharedSpec>,
    /// Tensors that may be stored in the place of those above; each lists the parts that it
    /// replaces.
    pub stacks: Vec<StackSpec>,
}

/// How the experts of a row and their weights follow from the router's logits.
///
/// Of equal logits the one with the lower index is taken first; `torch.topk`, which transformers
/// calls, promises no order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Routing {
    /// Experts per row, those with the highest logits; 1 to the number of experts.
    pub top_k: usize,
    /// What is made of logits.
    pub scores: Scores,
    /// Whether the weights are a softmax over the logits of the chosen experts, so that they add up
    /// to 1, or the chosen part of a softmax over all experts. Dividing the latter by its sum gives
    /// the former, so `norm_topk_prob` and gpt-oss's softmax after the choice are both `true`.
    pub among_chosen: bool,
}

/// What a router's logits become before experts are chosen and weighed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scores {
    /// Their softmax.
    Softmax,
    /// The sigmoid of each. Those with the highest sum of that and their
    /// [bias](ExpertsSpec::choice_bias) are chosen. Weights are sigmoids, or with `among_chosen` their
    /// shares in the sum of the chosen ones and `least`, times `factor` (LFM2, Nemotron).
    Sigmoid {
        /// Multiplies the weights.
        factor: f32,
        /// What the sum of the chosen ones is raised by, so that it is not 0.
        least: f32,
    },
}

/// An expert that every row goes through: `sigmoid(gate(x)) * mlp(x)` is added to what the others
/// give, or `mlp(x)` where there is no gate (Granite).
#[derive(Clone, Debug, PartialEq)]
pub struct SharedSpec {
    /// The expert itself; its width may differ from that of the others.
    pub mlp: GatedSpec,
    /// `[1, d_model]`.
    pub gate: Option<LinearSpec>,
}

impl MlpSpec {
    /// All its projections: of the MLP, then the router, the shared expert and the experts.
    pub(super) fn linears(&self) -> Vec<&LinearSpec> {
        match self {
            Self::Dense(mlp) => mlp.linears().to_vec(),
            Self::Experts(experts) => experts.linears().collect(),
            Self::Both(both) => both.mlp.linears().into_iter().chain(both.experts.linears()).collect(),
        }
    }

    /// Its experts, in the place of an MLP or beside it.
    pub(super) fn experts(&self) -> Option<&ExpertsSpec> {
        match self {
            Self::Dense(_) => None,
            Self::Experts(experts) => Some(experts),
            Self::Both(both) => Some(&both.experts),
        }
    }

    /// The norms inside, which only experts beside an MLP have.
    pub fn norms(&self) -> Vec<&NormSpec> {
        match self {
            Self::Dense(_) | Self::Experts(_) => Vec::new(),
            Self::Both(both) => {
                vec![&both.after_mlp, &both.before_router, &both.before_experts, &both.after_experts]
            }
        }
    }

    /// The tensors of [`ExpertsSpec::scales`] and [`ExpertsSpec::choice_bias`] and their shape.
    pub(super) fn numbers_of_experts(&self) -> Vec<NamedShape> {
        let Some(experts) = self.experts() else { return Vec::new() };
        let names = experts.scales.iter().chain(&experts.choice_bias);
        names.map(|name| (name.clone(), vec![experts.experts.len()])).collect()
    }
}

impl ExpertsSpec {
    /// The router, the shared expert's gate and MLP, then the experts by number.
    pub(super) fn linears(&self) -> impl Iterator<Item = &LinearSpec> {
        let shared = self.shared.iter().flat_map(|shared| shared.gate.iter().chain(shared.mlp.linears()));
        [&self.router].into_iter().chain(shared).chain(self.experts.iter().flat_map(GatedSpec::linears))
    }
}

impl GatedSpec {
    /// Gate and up, then down.
    pub(super) fn linears(&self) -> [&LinearSpec; 2] {
        [&self.gate_up, &self.down]
    }
}
