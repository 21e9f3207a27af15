//! `nemotron_h`: Nemotron-H and Nemotron 3, dense or with experts.
//!
//! A block is one thing alone, after a norm of its own: a state space (Mamba-2), attention, an MLP
//! without a gate, or experts without gates. `layers_block_type`, its other name `layer_types`, or the
//! letters of `hybrid_override_pattern` say which.
//!
//! - Attention does not rotate and has no biases.
//! - The state space's output is gated and then normed. The time that passes is at least
//!   `time_step_min` at every position; transformers forgets it for tokens that it writes with a cache.
//! - The MLP's function is the square of ReLU.
//! - Experts are chosen by sigmoids and a bias, as in DeepSeek V3 with one group; one more expert takes
//!   every row.
//!
//! Another function than SiLU behind the convolution and limits of time are refused, and of experts groups, a narrower width
//! that they read, and biases.
//!
//! Everything but norms is below `mixer.`; the rest is `model.embeddings`, `model.norm_f` and `lm_head`,
//! or `backbone.` for `model.` as published.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::checks::{kernel, positive, size};
use crate::decoder_fields::{AttentionNames, BlockNorms, DecoderFields, GateUp, Half, MlpNames, Qkv};
use crate::experts::{ExpertNames, Sparse, count};
use crate::mamba::{MambaFields, check_time_step_limit, groups};
use crate::shape::Shape;
use crate::{ConfigProblem, GatedNorm, MambaShape, Routing, Scores};

/// Fields of the family.
#[derive(Deserialize)]
struct NemotronH {
    /// Fields of all families. `num_hidden_layers` is overwritten.
    #[serde(flatten)]
    shape: Shape,
    /// Kinds of the blocks.
    layers_block_type: Option<Vec<String>>,
    /// The same by its other name.
    layer_types: Option<Vec<String>>,
    /// The same by letters, used without the lists.
    hybrid_override_pattern: Option<String>,
    /// Biases of the MLP's projections.
    mlp_bias: bool,
    /// The function behind the convolution; only SiLU is read.
    mamba_hidden_act: String,
    /// Heads of the state space.
    mamba_num_heads: usize,
    /// Coordinates of such a head.
    mamba_head_dim: usize,
    /// Groups of heads that share what is written and read.
    n_groups: usize,
    /// Coordinates of what is written and read.
    ssm_state_size: usize,
    /// Positions that the convolution sees.
    conv_kernel: usize,
    /// Whether the convolution has a bias.
    use_conv_bias: bool,
    /// Whether the projections before and behind the state space have biases.
    use_bias: bool,
    /// The least time that passes at a position.
    time_step_min: f64,
    /// Experts of a block.
    n_routed_experts: usize,
    /// Experts of a row.
    num_experts_per_tok: usize,
    /// Width inside an expert.
    moe_intermediate_size: usize,
    /// Width inside the expert of all rows.
    moe_shared_expert_intermediate_size: usize,
    /// Width of what experts read instead of the residual stream, which is refused.
    moe_latent_size: Option<usize>,
    /// Groups of experts; only one is read.
    n_group: usize,
    /// Groups that a row may choose from.
    topk_group: usize,
    /// Whether weights are shares in the sum of the chosen ones.
    norm_topk_prob: bool,
    /// Factor on weights.
    routed_scaling_factor: f64,
}

/// One norm before whatever the block is.
const NORMS: BlockNorms =
    BlockNorms { before_attention: Some("norm"), after_attention: None, before_mlp: Some("norm"), after_mlp: None };

/// The family's names in attention; there are no norms of heads.
const ATTENTION: AttentionNames = AttentionNames { out: "mixer.o_proj", ..AttentionNames::LLAMA };

/// The family's names of the MLP.
const MLP: MlpNames = MlpNames { gate_up: GateUp::Up("mixer.up_proj"), down: "mixer.down_proj" };

/// Names of the kinds of blocks in lists.
const KINDS: &[&str] = &["linear_attention", "full_attention", "mlp", "moe", "mamba", "attention"];

/// Defaults where they differ from those of all families.
pub(super) fn defaults() -> Value {
    json!({
        "vocab_size": 131_072, "intermediate_size": 21504, "num_hidden_layers": 4, "num_key_value_heads": 8,
        "head_dim": 128, "max_position_embeddings": 4096, "layer_norm_epsilon": 1e-5, "mlp_hidden_act": "relu2",
        "mlp_bias": false, "mamba_hidden_act": "silu", "mamba_num_heads": 128, "mamba_head_dim": 64, "n_groups": 8,
        "ssm_state_size": 128, "conv_kernel": 4, "use_conv_bias": true, "use_bias": false, "time_step_min": 0.001,
        "n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 7688,
        "moe_shared_expert_intermediate_size": 7688, "n_group": 1, "topk_group": 1, "norm_topk_prob": true,
        "routed_scaling_factor": 1.0
    })
}

/// Describes a Nemotron-H.
pub(super) fn fields(fields: Value) -> Result<DecoderFields, ConfigProblem> {
    check_time_step_limit(&fields)?;
    let mut found = NemotronH::deserialize(&fields)?;
    let kinds = found.kinds()?;
    let (is_mamba, is_moe): (Vec<bool>, Vec<bool>) =
        kinds.iter().map(|kind| (*kind == Kind::Mamba, *kind == Kind::Experts)).unzip();
    if found.mamba_hidden_act != "silu" {
        return Err(ConfigProblem::value("mamba_hidden_act", found.mamba_hidden_act, "silu"));
    }
    found.shape.num_hidden_layers = kinds.len();
    let sparse = if is_moe.contains(&true) { Some(found.sparse(is_moe)?) } else { None };
    let mamba = MambaFields {
        is_in: is_mamba,
        is_beside: false,
        shape: found.mamba_shape()?,
        least_time: positive("time_step_min", found.time_step_min)? as f32,
        part: "mixer",
        conv_bias: found.use_conv_bias,
        bias: [found.use_bias; 2],
        norm: Some(GatedNorm::AfterGate),
        factors: [1.0; 5],
        out_factor: 1.0,
    };
    let half = |kind: &Kind| if matches!(kind, Kind::Mamba | Kind::Attention) { Half::Mixer } else { Half::Mlp };
    let fields = found.shape.lower()?;
    Ok(DecoderFields {
        halves: Some(kinds.iter().map(half).collect()),
        mamba: Some(mamba),
        sparse,
        mlp_bias: found.mlp_bias,
        norms: NORMS,
        qkv: Qkv::Apart(["mixer.q_proj", "mixer.k_proj", "mixer.v_proj"]),
        attention: ATTENTION,
        mlp: MLP,
        rope_of: vec![None; fields.n_layers],
        embedding: "model.embeddings.weight",
        last_norm: "model.norm_f.weight",
        ..fields
    })
}

/// What a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A state space.
    Mamba,
    /// Attention.
    Attention,
    /// A dense MLP.
    Mlp,
    /// Experts.
    Experts,
}

impl NemotronH {
    /// What each block is; four blocks, one of each kind, where the file is silent.
    fn kinds(&self) -> Result<Vec<Kind>, ConfigProblem> {
        let of_name = |field: &'static str, name: &String| match name.as_str() {
            "linear_attention" | "mamba" => Ok(Kind::Mamba),
            "full_attention" | "attention" => Ok(Kind::Attention),
            "mlp" => Ok(Kind::Mlp),
            "moe" => Ok(Kind::Experts),
            _ => Err(ConfigProblem::Unknown { field, found: name.clone(), known: KINDS }),
        };
        let of_letter = |letter: char| match letter {
            'M' => Ok(Kind::Mamba),
            '*' => Ok(Kind::Attention),
            '-' => Ok(Kind::Mlp),
            'E' => Ok(Kind::Experts),
            _ => Err(ConfigProblem::Unknown {
                field: "hybrid_override_pattern",
                found: letter.to_string(),
                known: &["M", "*", "-", "E"],
            }),
        };
        let kinds: Result<Vec<Kind>, _> =
            match (&self.layers_block_type, &self.layer_types, &self.hybrid_override_pattern) {
                (Some(names), _, _) => names.iter().map(|name| of_name("layers_block_type", name)).collect(),
                (None, Some(names), _) => names.iter().map(|name| of_name("layer_types", name)).collect(),
                (None, None, Some(pattern)) => pattern.chars().map(of_letter).collect(),
                (None, None, None) => Ok(vec![Kind::Mamba, Kind::Experts, Kind::Attention, Kind::Mlp]),
            };
        let kinds = kinds?;
        size("layers_block_type", kinds.len(), 1 << 12)?;
        Ok(kinds)
    }

    /// The sizes of the state space.
    fn mamba_shape(&self) -> Result<MambaShape, ConfigProblem> {
        let n_heads = size("mamba_num_heads", self.mamba_num_heads, 1 << 16)?;
        Ok(MambaShape {
            n_heads,
            head_dim: size("mamba_head_dim", self.mamba_head_dim, 1 << 16)?,
            n_groups: groups("n_groups", self.n_groups, n_heads)?,
            d_state: size("ssm_state_size", self.ssm_state_size, 1 << 16)?,
            kernel: kernel("conv_kernel", self.conv_kernel)?,
        })
    }

    /// The experts of these blocks.
    fn sparse(&self, has_experts: Vec<bool>) -> Result<Sparse, ConfigProblem> {
        let latent = self.moe_latent_size.map(|width| width.to_string());
        let refused = [
            ("moe_latent_size", latent),
            ("n_group", (self.n_group != 1).then(|| self.n_group.to_string())),
            ("topk_group", (self.topk_group != 1).then(|| self.topk_group.to_string())),
            ("mlp_bias", self.mlp_bias.then(|| "true, with experts".to_owned())),
        ];
        if let Some((field, found)) = refused.into_iter().find_map(|(field, found)| Some((field, found?))) {
            return Err(ConfigProblem::Unsupported { field, found });
        }
        let n_experts = count("n_routed_experts", self.n_routed_experts, has_experts.len())?;
        let factor = positive("routed_scaling_factor", self.routed_scaling_factor)? as f32;
        Ok(Sparse {
            n_experts,
            routing: Routing {
                top_k: size("num_experts_per_tok", self.num_experts_per_tok, n_experts)?,
                scores: Scores::Sigmoid { factor, least: 1e-20 },
                among_chosen: self.norm_topk_prob,
            },
            d_expert: size("moe_intermediate_size", self.moe_intermediate_size, 1 << 22)?,
            d_shared: Some(size(
                "moe_shared_expert_intermediate_size",
                self.moe_shared_expert_intermediate_size,
                1 << 22,
            )?),
            bias: false,
            names: ExpertNames::NEMOTRON_H,
            has_experts,
        })
    }
}
