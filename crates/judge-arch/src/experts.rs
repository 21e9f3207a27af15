//! Blocks with experts: how many there are, in which blocks, and what their tensors are called.
//!
//! A family reads its fields, makes a [`Sparse`] and puts it into `DecoderFields::sparse`; `DecoderFields::spec`
//! then calls [`Sparse::mlp`] for each block. How a row is routed is described in `spec/mlp.rs` and
//! computed by the engines.
//!
//! Checkpoints keep experts in four forms (transformers' `conversion_mapping.py` converts between
//! them):
//!
//! ```text
//! one by one   {part}experts.{e}.{gate,up,down}.weight     Qwen, Mixtral, OLMoE
//! rows         experts.gate_up_proj  [E, 2I, H]            the same families, saved by transformers'
//!              experts.down_proj     [E, H, I]             own modules; Gemma 4 and Granite always
//! transposed   experts.gate_up_proj  [E, H, 2I]            Qwen3-VL as published: gate before up
//!              experts.down_proj     [E, I, H]
//! columns      experts.gate_up_proj  [E, H, 2I]            gpt-oss: gate and up are alternate columns
//!              experts.down_proj     [E, I, H]             with _bias tensors [E, 2I] and [E, H]
//! ```
//!
//! The description always names experts one by one. Stacked forms are [`StackSpec`]s, in which
//! every expert's tensor has a start and strides; each number of a stack belongs to exactly one
//! part.

use serde::Deserialize;

use super::ConfigProblem;
use super::checks::size;
use super::spec::{
    BothSpec, ExpertsSpec, GatedSpec, LinearSpec, MlpSpec, ModelSpec, NormSpec, Routing, SharedSpec, StackPart,
    StackSpec,
};

/// Experts of all blocks together that are accepted; more is a damaged file. Each of them is
/// described by name, so their number bounds the work and memory of reading a `config.json`.
const MOST: usize = 1 << 17;

/// Which blocks have experts, and what these are. The same in all blocks that have some.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sparse {
    /// `[n_layers]`; the other blocks have the dense MLP of the model.
    pub(super) has_experts: Vec<bool>,
    /// Experts of a block, without a shared one.
    pub(super) n_experts: usize,
    /// How rows choose among them.
    pub(super) routing: Routing,
    /// Width inside an expert.
    pub(super) d_expert: usize,
    /// Width inside the expert that all rows go through; `None`: there is no such expert.
    pub(super) d_shared: Option<usize>,
    /// Whether the router and all projections of experts have biases (gpt-oss).
    pub(super) bias: bool,
    /// What their tensors are called.
    pub(super) names: ExpertNames,
}

/// Names of a block's router and experts, below `model.layers.N.`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ExpertNames {
    /// Module of the router and of experts one by one, ending with a point, or empty.
    part: &'static str,
    /// Module of the stacked tensors, ending with a point, or empty.
    stacked_part: &'static str,
    /// The router's projection, below `part`.
    router: &'static str,
    /// The gate of an expert, below `{part}experts.{e}.`; `None`: experts have none.
    gate: Option<&'static str>,
    /// Up, likewise.
    up: &'static str,
    /// Down, likewise.
    down: &'static str,
    /// The gate of the expert that all rows go through, directly in the layer; `None`: it has none.
    shared_gate: Option<&'static str>,
    /// Gate and up of that expert, directly in the layer: two tensors, or one with the gate's rows
    /// first; up alone where experts have no gate.
    shared_gate_up: &'static [&'static str],
    /// Down of that expert, directly in the layer.
    shared_down: &'static str,
    /// What is added to scores for the choice, directly in the layer with its ending.
    choice_bias: Option<&'static str>,
    /// Which stacked form there is.
    stacks: Stacks,
    /// The stacks of gate and up, and of down, below `stacked_part`.
    stack_names: [&'static str; 2],
    /// Set where experts are beside a dense MLP instead of replacing it.
    beside: Option<BesideNames>,
}

/// Norms and factors that exist only where experts are beside a dense MLP, by their names with
/// ending, below `model.layers.N.`; see `BothSpec`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BesideNames {
    /// The norm of what the dense MLP gives, `[d_model]`.
    after_mlp: &'static str,
    /// The norm of what the router reads, `[d_model]`. gemma4 calls it a scale, but it multiplies
    /// normed rows.
    before_router: &'static str,
    /// The norm of what the experts read, `[d_model]`.
    before_experts: &'static str,
    /// The norm of what the experts give, `[d_model]`.
    after_experts: &'static str,
    /// A factor for each expert's weight, `[n_experts]`.
    scales: &'static str,
}

/// The form of a block's stacked tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stacks {
    /// `[E, 2I, H]` and `[E, H, I]`: experts below one another, gate before up, as transformers'
    /// own modules have them where a folder was written without its conversion. The router then has
    /// that module's name too, `gate.weight`. Experts one by one are accepted as well.
    Rows,
    /// As `Rows`, but experts are never stored one by one and the router keeps its name.
    RowsAlone,
    /// `[E, H, 2I]` and `[E, I, H]`: transposed matrices, the columns of gate and up in turn, and
    /// all biases beside them. Experts are never stored one by one.
    Columns,
}

impl ExpertNames {
    /// `mlp.gate`, `mlp.experts.{e}.gate_proj` and so on: Qwen, and most families since.
    pub(super) const QWEN: Self = Self {
        part: "mlp.",
        stacked_part: "mlp.",
        router: "gate",
        gate: Some("gate_proj"),
        up: "up_proj",
        down: "down_proj",
        shared_gate: Some("mlp.shared_expert_gate"),
        shared_gate_up: &["mlp.shared_expert.gate_proj", "mlp.shared_expert.up_proj"],
        shared_down: "mlp.shared_expert.down_proj",
        choice_bias: None,
        stacks: Stacks::Rows,
        stack_names: ["experts.gate_up_proj", "experts.down_proj"],
        beside: None,
    };

    /// `block_sparse_moe.gate`, with `w1` as gate, `w3` as up and `w2` as down. Stacks are under
    /// `mlp.`.
    pub(super) const MIXTRAL: Self =
        Self { part: "block_sparse_moe.", gate: Some("w1"), up: "w3", down: "w2", ..Self::QWEN };

    /// Stacks `block_sparse_moe.{input,output}_linear.weight`, and an expert that all rows go through,
    /// `shared_mlp`, without a gate. The names of single experts are this crate's own.
    pub(super) const GRANITE: Self = Self {
        part: "block_sparse_moe.",
        stacked_part: "block_sparse_moe.",
        router: "router.layer",
        shared_gate: None,
        shared_gate_up: &["shared_mlp.input_linear"],
        shared_down: "shared_mlp.output_linear",
        stacks: Stacks::RowsAlone,
        stack_names: ["input_linear.weight", "output_linear.weight"],
        ..Self::QWEN
    };

    /// `feed_forward.gate`, with `w1` as gate, `w3` as up and `w2` as down; with `chooses_by_bias` there
    /// is `feed_forward.expert_bias`.
    pub(super) const fn lfm2(chooses_by_bias: bool) -> Self {
        let choice_bias = if chooses_by_bias { Some("feed_forward.expert_bias") } else { None };
        Self {
            part: "feed_forward.",
            stacked_part: "feed_forward.",
            gate: Some("w1"),
            up: "w3",
            down: "w2",
            choice_bias,
            ..Self::QWEN
        }
    }

    /// `mixer.gate` with a bias for the choice, `mixer.experts` without gates, and `mixer.shared_experts`.
    pub(super) const NEMOTRON_H: Self = Self {
        part: "mixer.",
        stacked_part: "mixer.",
        gate: None,
        shared_gate: None,
        shared_gate_up: &["mixer.shared_experts.up_proj"],
        shared_down: "mixer.shared_experts.down_proj",
        choice_bias: Some("mixer.gate.e_score_correction_bias"),
        stack_names: ["experts.up_proj", "experts.down_proj"],
        ..Self::QWEN
    };

    /// `mlp.router`, and stacks of columns. The names of single experts are this crate's own.
    pub(super) const GPT_OSS: Self = Self { router: "router", stacks: Stacks::Columns, ..Self::QWEN };

    /// `router` and `experts` directly in the layer, beside its dense MLP.
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

/// How many experts there are, by the names that most families give these numbers.
#[derive(Deserialize)]
pub(super) struct Counts {
    /// Experts of a block.
    num_experts: Option<usize>,
    /// The same number by its other name. A file may have both if they agree.
    num_local_experts: Option<usize>,
    /// Experts of a row. Families put their default into the fields beforehand.
    num_experts_per_tok: usize,
}

impl Counts {
    /// `(n_experts, top_k)`, with `default` experts where the file is silent.
    ///
    /// Blocks with experts are `n_layers` at most, which bounds the number of experts in all.
    ///
    /// # Errors
    /// [`ConfigProblem::Value`] if both names state different numbers, or for a number out of its
    /// range.
    pub(super) fn lower(&self, default: usize, n_layers: usize) -> Result<(usize, usize), ConfigProblem> {
        let n_experts = match (self.num_experts, self.num_local_experts) {
            (Some(one), Some(other)) if one != other => {
                let expected = format!("num_local_experts {other}, which is the same number");
                return Err(ConfigProblem::value("num_experts", one, expected));
            }
            (one, other) => one.or(other).unwrap_or(default),
        };
        let n_experts = count("num_experts", n_experts, n_layers)?;
        Ok((n_experts, size("num_experts_per_tok", self.num_experts_per_tok, n_experts)?))
    }
}

/// Checks the number of experts of a block: at least 1, and at most [`MOST`] in `n_layers` blocks.
///
/// # Errors
/// [`ConfigProblem::Value`] for any other number.
pub(super) fn count(field: &'static str, found: usize, n_layers: usize) -> Result<usize, ConfigProblem> {
    size(field, found, MOST / n_layers)
}

impl Sparse {
    /// Experts in all blocks, without biases and without a shared one.
    pub(super) fn everywhere(
        n_layers: usize,
        n_experts: usize,
        d_expert: usize,
        routing: Routing,
        names: ExpertNames,
    ) -> Self {
        Self { has_experts: vec![true; n_layers], n_experts, routing, d_expert, d_shared: None, bias: false, names }
    }

    /// What block `index` does in the place of its MLP: `dense` alone, experts alone, or both.
    pub(super) fn mlp(&self, index: usize, d_model: usize, dense: GatedSpec) -> MlpSpec {
        let Some(experts) = self.experts(index, d_model) else { return MlpSpec::Dense(dense) };
        let Some(names) = self.names.beside else { return MlpSpec::Experts(Box::new(experts)) };
        let stem = |name: &str| format!("model.layers.{index}.{name}");
        let norm = |name: &str| NormSpec { name: stem(name), len: d_model, offset: 0.0, factor: 1.0, bias: None };
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

    /// The experts of block `index`, if it has any. Tensors are named one by one, whatever the
    /// stored form.
    fn experts(&self, index: usize, d_model: usize) -> Option<ExpertsSpec> {
        if !self.has_experts[index] {
            return None;
        }
        let ExpertNames { part, router, gate, up, down, .. } = self.names;
        let in_layer = |name: &str| format!("model.layers.{index}.{name}");
        let stem = |name: &str| in_layer(&format!("{part}{name}"));
        let linear = |stems, d_in| LinearSpec::plain(stems, d_in, self.bias);
        let gated = |of: &str, width: usize| GatedSpec {
            gate_up: {
                let parts = gate.into_iter().chain([up]);
                linear(parts.map(|part| (stem(&format!("{of}.{part}")), width)).collect(), d_model)
            },
            down: linear(vec![(stem(&format!("{of}.{down}")), d_model)], width),
        };
        let experts: Vec<GatedSpec> =
            (0..self.n_experts).map(|expert| gated(&format!("experts.{expert}"), self.d_expert)).collect();
        let router = linear(vec![(stem(router), self.n_experts)], d_model);
        Some(ExpertsSpec {
            stacks: self.stacks(index, &router, &experts),
            router,
            routing: self.routing,
            scales: None,
            choice_bias: self.names.choice_bias.map(in_layer),
            experts,
            shared: self.d_shared.map(|width| SharedSpec {
                mlp: GatedSpec {
                    gate_up: {
                        let names = self.names.shared_gate_up;
                        let rows = (1 + gate.iter().len()) * width / names.len();
                        linear(names.iter().map(|name| (in_layer(name), rows)).collect(), d_model)
                    },
                    down: linear(vec![(in_layer(self.names.shared_down), d_model)], width),
                },
                gate: self.names.shared_gate.map(|gate| linear(vec![(in_layer(gate), 1)], d_model)),
            }),
        })
    }

    /// The stacked tensors of block `index`, with the single tensors of `router` and `experts` as
    /// parts.
    ///
    /// In the form [`Stacks::Rows`] a third stack may follow: the router under its name in
    /// transformers' own module, where that differs (Mixtral). It is a plain matrix whose only part
    /// is itself.
    fn stacks(&self, index: usize, router: &LinearSpec, experts: &[GatedSpec]) -> Vec<StackSpec> {
        let module = format!("model.layers.{index}.{}", self.names.stacked_part);
        let linears = |of: fn(&GatedSpec) -> &LinearSpec| -> Vec<&LinearSpec> { experts.iter().map(of).collect() };
        let [gate_up, down] = self.names.stack_names.map(|name| format!("{module}{name}"));
        let (gate_up, down) = ((gate_up, linears(|expert| &expert.gate_up)), (down, linears(|expert| &expert.down)));
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

/// Stacks matrices by rows: `[projections, rows, d_in]`, row-major, each part contiguous. The parts
/// of a projection (gate, up) follow one another.
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

/// Lets a model's stacks of experts be stored with each projection transposed too (Qwen3-VL), which
/// their shape tells apart. Where projections are square, transformers does not transpose either.
pub(super) fn accept_transposed(spec: &mut ModelSpec) {
    for block in &mut spec.blocks {
        if let Some(MlpSpec::Experts(experts)) = &mut block.mlp {
            let turned: Vec<StackSpec> = experts.stacks.iter().filter_map(transposed).collect();
            experts.stacks.extend(turned);
        }
    }
}

/// A stack of [`below_one_another`] with each projection transposed: `[projections, d_in, rows]`. `None`
/// where projections are square, since the shape tells the two apart.
fn transposed(stack: &StackSpec) -> Option<StackSpec> {
    let &[projections, rows, d_in] = stack.shape.as_slice() else { return None };
    let parts = stack.parts.iter().map(|part| {
        let projection = part.start / (rows * d_in);
        let row = part.start % (rows * d_in) / d_in;
        StackPart { start: projection * rows * d_in + row, strides: vec![1, rows], tensor: part.tensor.clone() }
    });
    (rows != d_in).then(|| StackSpec { shape: vec![projections, d_in, rows], parts: parts.collect(), ..stack.clone() })
}

/// Stacks matrices by columns, `[projections, d_in, rows]`, and their biases,
/// `[projections, rows]`, if there are any. The parts of a projection alternate, here with two
/// parts (gate, up):
///
/// ```text
/// weights of one projection, [d_in, rows], row-major       bias, [rows]
///   g0 u0 g1 u1 …     ◄ column 0 of all rows               g0 u0 g1 u1 …
///   g0 u0 g1 u1 …     ◄ column 1
/// stride between rows of a part: number of parts; between its columns: rows
/// ```
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

/// `(rows, d_in)` of projections that are all alike; `(0, 0)` if there is none.
fn shape(linears: &[&LinearSpec]) -> (usize, usize) {
    linears.first().map_or((0, 0), |linear| (linear.stems.iter().map(|(_, rows)| rows).sum(), linear.d_in))
}
