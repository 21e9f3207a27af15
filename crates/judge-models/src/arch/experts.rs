//! Blocks with experts in the place of a dense MLP: their fields in `config.json`, and the names of their tensors.

use serde::Deserialize;

use super::ConfigProblem;
use super::shape::size;
use super::spec::{
    BothSpec, ExpertsSpec, GatedSpec, LinearSpec, MlpSpec, NormSpec, Routing, SharedSpec, StackPart, StackSpec,
};

/// Experts of all blocks together that are believed; more is a damaged file.
const MOST: usize = 1 << 17;

/// Which blocks have experts, and what these are.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sparse {
    /// `[n_layers]`.
    pub(super) has_experts: Vec<bool>,
    pub(super) n_experts: usize,
    pub(super) routing: Routing,
    /// Width inside an expert.
    pub(super) d_expert: usize,
    /// Width inside the expert that all rows share.
    pub(super) d_shared: Option<usize>,
    /// Router and experts have biases.
    pub(super) bias: bool,
    pub(super) names: ExpertNames,
}

/// What the parts of a block with experts are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ExpertNames {
    /// Holds router and experts, and ends with a point if it is one.
    part: &'static str,
    /// Holds what has all experts as one tensor, likewise.
    stacked_part: &'static str,
    router: &'static str,
    gate: &'static str,
    up: &'static str,
    down: &'static str,
    stacks: Stacks,
    /// Experts are beside a dense MLP.
    beside: Option<BesideNames>,
}

/// What is there besides where experts are beside a dense MLP: norms and factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BesideNames {
    after_mlp: &'static str,
    before_router: &'static str,
    before_experts: &'static str,
    after_experts: &'static str,
    /// A factor for each expert.
    scales: &'static str,
}

/// How a block's experts are kept as one tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stacks {
    /// As transformers' own modules have them, where a folder was written without its conversion: the rows of all experts below one another, gate before up, and the
    /// router by the name that it has there.
    Rows,
    /// The same, and never one by one.
    RowsAlone,
    /// Matrices as `[d_in, d_out]`, the columns of gate and up in turn, and all biases beside them; never one by one.
    Columns,
}

impl ExpertNames {
    /// As Qwen has them, and most families since.
    pub(super) const QWEN: Self = Self {
        part: "mlp.",
        stacked_part: "mlp.",
        router: "gate",
        gate: "gate_proj",
        up: "up_proj",
        down: "down_proj",
        stacks: Stacks::Rows,
        beside: None,
    };

    /// As Mixtral has them.
    pub(super) const MIXTRAL: Self = Self { part: "block_sparse_moe.", gate: "w1", up: "w3", down: "w2", ..Self::QWEN };

    /// As gpt-oss has them.
    pub(super) const GPT_OSS: Self = Self { router: "router", stacks: Stacks::Columns, ..Self::QWEN };

    /// As Gemma 4 has them, beside its dense MLP.
    pub(super) const GEMMA4: Self = Self {
        part: "",
        stacked_part: "",
        router: "router.proj",
        stacks: Stacks::RowsAlone,
        beside: Some(BesideNames {
            after_mlp: "post_feedforward_layernorm_1.weight",
            before_router: "router.scale",
            before_experts: "pre_feedforward_layernorm_2.weight",
            after_experts: "post_feedforward_layernorm_2.weight",
            scales: "router.per_expert_scale",
        }),
        ..Self::QWEN
    };
}

/// How many experts there are and how many of them a row has, by the names that most families give these numbers.
#[derive(Deserialize)]
pub(super) struct Counts {
    num_experts: Option<usize>,
    /// The same by another name.
    num_local_experts: Option<usize>,
    num_experts_per_tok: usize,
}

impl Counts {
    /// Experts of a block, `default` where the file is silent, and of a row. Blocks with experts are `n_layers` at most.
    pub(super) fn lower(&self, default: usize, n_layers: usize) -> Result<(usize, usize), ConfigProblem> {
        let n_experts = match (self.num_experts, self.num_local_experts) {
            (Some(one), Some(other)) if one != other => {
                let expected = format!("num_local_experts {other}, which is the same number");
                return Err(ConfigProblem::Value { field: "num_experts", found: one.to_string(), expected });
            }
            (one, other) => one.or(other).unwrap_or(default),
        };
        let n_experts = count(n_experts, n_layers)?;
        Ok((n_experts, size("num_experts_per_tok", self.num_experts_per_tok, n_experts)?))
    }
}

/// The number of experts of a block that a file states, in the field `num_experts`, of which blocks with experts are `n_layers` at most.
pub(super) fn count(found: usize, n_layers: usize) -> Result<usize, ConfigProblem> {
    size("num_experts", found, MOST / n_layers)
}

impl Sparse {
    /// Experts in all blocks, without biases, none of them shared.
    pub(super) fn everywhere(
        n_layers: usize,
        n_experts: usize,
        d_expert: usize,
        routing: Routing,
        names: ExpertNames,
    ) -> Self {
        Self { has_experts: vec![true; n_layers], n_experts, routing, d_expert, d_shared: None, bias: false, names }
    }

    /// What block `index` has in the place of an MLP, `dense`, or beside it.
    pub(super) fn mlp(&self, index: usize, d_model: usize, dense: GatedSpec) -> MlpSpec {
        let Some(experts) = self.experts(index, d_model) else { return MlpSpec::Dense(dense) };
        let Some(names) = self.names.beside else { return MlpSpec::Experts(experts) };
        let stem = |name: &str| format!("model.layers.{index}.{name}");
        let norm = |name: &str| NormSpec { name: stem(name), len: d_model, offset: 0.0, factor: 1.0 };
        MlpSpec::Both(Box::new(BothSpec {
            mlp: dense,
            after_mlp: norm(names.after_mlp),
            // What the router reads is made shorter by the root of its length.
            before_router: NormSpec { factor: (d_model as f32).sqrt().recip(), ..norm(names.before_router) },
            before_experts: norm(names.before_experts),
            experts: ExpertsSpec { scales: Some(stem(names.scales)), ..experts },
            after_experts: norm(names.after_experts),
        }))
    }

    /// The experts of block `index`, if it has any.
    fn experts(&self, index: usize, d_model: usize) -> Option<ExpertsSpec> {
        if !self.has_experts[index] {
            return None;
        }
        let ExpertNames { part, router, gate, up, down, .. } = self.names;
        let stem = |name: &str| format!("model.layers.{index}.{part}{name}");
        let linear = |stems: Vec<(String, usize)>, d_in: usize| LinearSpec { stems, d_in, bias: self.bias };
        let gated = |of: &str, [gate, up, down]: [&str; 3], width: usize| GatedSpec {
            gate_up: linear(
                vec![(stem(&format!("{of}.{gate}")), width), (stem(&format!("{of}.{up}")), width)],
                d_model,
            ),
            down: linear(vec![(stem(&format!("{of}.{down}")), d_model)], width),
        };
        let experts: Vec<GatedSpec> = (0..self.n_experts)
            .map(|expert| gated(&format!("experts.{expert}"), [gate, up, down], self.d_expert))
            .collect();
        let router = linear(vec![(stem(router), self.n_experts)], d_model);
        Some(ExpertsSpec {
            stacks: self.stacks(index, &router, &experts),
            router,
            routing: self.routing,
            scales: None,
            experts,
            shared: self.d_shared.map(|width| SharedSpec {
                mlp: gated("shared_expert", ["gate_proj", "up_proj", "down_proj"], width),
                gate: linear(vec![(stem("shared_expert_gate"), 1)], d_model),
            }),
        })
    }

    /// The tensors that hold all experts, by the names that they have where they are stored alone.
    fn stacks(&self, index: usize, router: &LinearSpec, experts: &[GatedSpec]) -> Vec<StackSpec> {
        let module = format!("model.layers.{index}.{}", self.names.stacked_part);
        let linears = |of: fn(&GatedSpec) -> &LinearSpec| -> Vec<&LinearSpec> { experts.iter().map(of).collect() };
        let gate_up = (format!("{module}experts.gate_up_proj"), linears(|expert| &expert.gate_up));
        let down = (format!("{module}experts.down_proj"), linears(|expert| &expert.down));
        match self.names.stacks {
            Stacks::Rows => {
                let mut stacks: Vec<StackSpec> = [gate_up, down].map(|(name, of)| below_one_another(name, &of)).into();
                let name = format!("{module}gate.weight");
                if router.weights().iter().any(|(stored, _)| *stored != name) {
                    let StackSpec { shape, parts, .. } = below_one_another(String::new(), &[router]);
                    stacks.push(StackSpec { name, shape: shape[1..].to_vec(), parts, is_only_form: false });
                }
                stacks
            }
            Stacks::RowsAlone => {
                let alone = |(name, of): (String, Vec<&LinearSpec>)| StackSpec {
                    is_only_form: true,
                    ..below_one_another(name, &of)
                };
                [gate_up, down].map(alone).into()
            }
            Stacks::Columns => [gate_up, down].into_iter().flat_map(|(name, of)| side_by_side(name, &of)).collect(),
        }
    }
}

/// The matrices of all projections, row by row: `[projections, rows, d_in]`.
fn below_one_another(name: String, linears: &[&LinearSpec]) -> StackSpec {
    let (rows, d_in) = shape(linears);
    let mut start = 0;
    let mut part = |(name, rows): (String, usize), d_in: usize| {
        let part = StackPart { tensor: (name, vec![rows, d_in]), start, strides: vec![d_in, 1] };
        start += rows * d_in;
        part
    };
    let parts = linears.iter().flat_map(|linear| linear.weights().into_iter().map(|weight| (weight, linear.d_in)));
    let parts = parts.map(|(weight, d_in)| part(weight, d_in)).collect();
    StackSpec { name, shape: vec![linears.len(), rows, d_in], parts, is_only_form: false }
}

/// The matrices of all projections column by column, `[projections, d_in, rows]`, those of the parts of a projection in turn; and their biases,
/// `[projections, rows]`, if there are any.
fn side_by_side(name: String, linears: &[&LinearSpec]) -> Vec<StackSpec> {
    let (rows, d_in) = shape(linears);
    let (mut weights, mut biases) = (Vec::new(), Vec::new());
    for (index, linear) in linears.iter().enumerate() {
        let in_turn = linear.stems.len();
        for (place, (name, rows_of_part)) in linear.weights().into_iter().enumerate() {
            let (tensor, start) = ((name, vec![rows_of_part, d_in]), index * rows * d_in + place);
            weights.push(StackPart { tensor, start, strides: vec![in_turn, rows] });
        }
        for (place, (name, rows_of_part)) in linear.biases().into_iter().enumerate() {
            let tensor = (name, vec![rows_of_part]);
            biases.push(StackPart { tensor, start: index * rows + place, strides: vec![in_turn] });
        }
    }
    let stack = |name: String, shape: Vec<usize>, parts| StackSpec { name, shape, parts, is_only_form: true };
    let bias = stack(format!("{name}_bias"), vec![linears.len(), rows], biases);
    let mut stacks = vec![stack(name, vec![linears.len(), d_in, rows], weights)];
    stacks.extend(Some(bias).filter(|bias| !bias.parts.is_empty()));
    stacks
}

/// Rows and columns of projections that are alike.
fn shape(linears: &[&LinearSpec]) -> (usize, usize) {
    linears.first().map_or((0, 0), |linear| (linear.stems.iter().map(|(_, rows)| rows).sum(), linear.d_in))
}
