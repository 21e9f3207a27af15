//! What a block does between its last two norms.

use super::parts::{LinearSpec, NamedShape, NormSpec};

/// What a block does between its last two norms.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum MlpSpec {
    Dense(GatedSpec),
    Experts(ExpertsSpec),
    Both(Box<BothSpec>),
}

/// An MLP and experts beside it, each with norms of its own (Gemma 4). Of the residual stream `x` and of its norm before the MLP, `y`, they make
/// `after_mlp(mlp(y)) + after_experts(experts(before_experts(x)))`, where the router reads `before_router(x)`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BothSpec {
    pub(crate) mlp: GatedSpec,
    pub(crate) after_mlp: NormSpec,
    pub(crate) before_router: NormSpec,
    pub(crate) before_experts: NormSpec,
    pub(crate) experts: ExpertsSpec,
    pub(crate) after_experts: NormSpec,
}

/// A gated MLP: `down(f(gate(x)) * up(x))`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GatedSpec {
    /// Gate, then up.
    pub(crate) gate_up: LinearSpec,
    pub(crate) down: LinearSpec,
}

/// Gated MLPs of which a router chooses some for each row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExpertsSpec {
    /// From a row to one logit for each expert.
    pub(crate) router: LinearSpec,
    pub(crate) routing: Routing,
    /// A tensor with a factor for each expert, which its weight is multiplied by: the full name.
    pub(crate) scales: Option<String>,
    pub(crate) experts: Vec<GatedSpec>,
    pub(crate) shared: Option<SharedSpec>,
    /// Tensors that may be stored in the place of those above.
    pub(crate) stacks: Vec<StackSpec>,
}

/// How the experts of a row, and their weights, follow from the router's logits. Of equal logits that of the lower index is taken first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Routing {
    /// Experts of a row: those with the highest logits. At least 1 and at most all.
    pub(crate) top_k: usize,
    /// Whether weights are a softmax over the logits of the chosen experts, and so add up to 1, or over those of all experts.
    pub(crate) among_chosen: bool,
}

/// An expert that every row goes through; what it makes of a row is multiplied by `sigmoid(gate(x))`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SharedSpec {
    pub(crate) mlp: GatedSpec,
    /// From a row to one number.
    pub(crate) gate: LinearSpec,
}

/// A tensor in which some checkpoints keep what others keep as several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StackSpec {
    /// Its full name.
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) parts: Vec<StackPart>,
    /// Whether no folder keeps the parts one by one: their names are this crate's.
    pub(crate) is_only_form: bool,
}

/// A tensor inside a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StackPart {
    /// The name that it has where it is stored alone, and its shape.
    pub(crate) tensor: NamedShape,
    /// Index of its first number in the stack, which is row-major.
    pub(crate) start: usize,
    /// How far apart its numbers are there, along each of its axes.
    pub(crate) strides: Vec<usize>,
}

impl MlpSpec {
    pub(super) fn linears(&self) -> Vec<&LinearSpec> {
        match self {
            Self::Dense(mlp) => mlp.linears().to_vec(),
            Self::Experts(experts) => experts.linears().collect(),
            Self::Both(both) => both.mlp.linears().into_iter().chain(both.experts.linears()).collect(),
        }
    }

    pub(super) fn norms(&self) -> Vec<&NormSpec> {
        match self {
            Self::Dense(_) | Self::Experts(_) => Vec::new(),
            Self::Both(both) => {
                vec![&both.after_mlp, &both.before_router, &both.before_experts, &both.after_experts]
            }
        }
    }

    /// The factors of experts.
    pub(super) fn scales(&self) -> Option<NamedShape> {
        let experts = match self {
            Self::Dense(_) => return None,
            Self::Experts(experts) => experts,
            Self::Both(both) => &both.experts,
        };
        Some((experts.scales.clone()?, vec![experts.experts.len()]))
    }
}

impl ExpertsSpec {
    pub(super) fn linears(&self) -> impl Iterator<Item = &LinearSpec> {
        let shared = self.shared.iter().flat_map(|shared| [&shared.gate].into_iter().chain(shared.mlp.linears()));
        [&self.router].into_iter().chain(shared).chain(self.experts.iter().flat_map(GatedSpec::linears))
    }
}

impl GatedSpec {
    pub(super) fn linears(&self) -> [&LinearSpec; 2] {
        [&self.gate_up, &self.down]
    }
}
