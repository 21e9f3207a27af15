//! `granite`: Granite 3. `granitemoehybrid`: Granite 4, dense or with experts, with attention in all blocks
//! or with Mamba-2 in most of them (the H models).
//!
//! A Llama with four factors, all 1 by default:
//!
//! | field | meaning |
//! |---|---|
//! | `embedding_multiplier` | multiplies embeddings, before layer 0 |
//! | `attention_multiplier` | is the factor on scores, in the place of `head_dim^-0.5` |
//! | `residual_multiplier` | multiplies what each half of a block adds |
//! | `logits_scaling` | divides logits, in readings too |
//!
//! The hybrid family has the same blocks under other names: its MLP is `shared_mlp.input_linear`
//! (gate and up as one tensor, gate first) and `shared_mlp.output_linear`,
//! `shared_intermediate_size` wide. It rotates only if `position_embedding_type` is `rope`. With
//! `num_local_experts` above 0 there are experts beside that MLP, which is then the one that all rows
//! go through, without a gate: `block_sparse_moe.router.layer`, and all experts as one tensor,
//! `block_sparse_moe.{input,output}_linear`, `intermediate_size` wide. Blocks that `layer_types` calls
//! `mamba` (or `linear_attention`) have the state space of Mamba-2 in the place of attention, under
//! `mamba.`, whose output is gated and then normed.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::checks::{divisor, factor, overlay, second_kind, size};
use crate::decoder_fields::{DecoderFields, GateUp, MlpNames};
use crate::experts::{ExpertNames, Sparse, count};
use crate::mamba::{MambaConfig, MambaFields, check_time_step_limit};
use crate::shape::Shape;
use crate::spec::EmbeddingScale;
use crate::{ConfigProblem, GatedNorm, Routing, Scores};

/// Fields of Granite 3, which hybrids have too.
#[derive(Deserialize)]
struct Granite {
    #[serde(flatten)]
    shape: Shape,
    /// Biases of all four projections of attention.
    attention_bias: bool,
    /// Biases of the MLP's projections; not read in hybrids.
    mlp_bias: bool,
    /// Factor on embeddings.
    embedding_multiplier: f64,
    /// Factor on query-key products.
    attention_multiplier: f64,
    /// Factor on what each half of a block adds.
    residual_multiplier: f64,
    /// Divisor of logits.
    logits_scaling: f64,
}

/// Fields of hybrids.
#[derive(Deserialize)]
struct Hybrid {
    /// Those of Granite 3; `intermediate_size` is the width inside an expert.
    #[serde(flatten)]
    granite: Granite,
    /// Width inside the MLP.
    shared_intermediate_size: usize,
    /// Experts of a block, 0 for none; 8 by default.
    num_local_experts: Option<usize>,
    /// Experts of a row.
    num_experts_per_tok: Option<usize>,
    /// Sizes of state spaces.
    #[serde(flatten)]
    mamba: MambaConfig,
    /// Kinds of the blocks, `attention` or `mamba`; all are `mamba` by default.
    layer_types: Option<Vec<String>>,
    /// `rope`: blocks rotate; `nope` or absent: they do not.
    position_embedding_type: Option<String>,
}

/// Defaults of Granite 3, where they differ from those of all families.
pub(super) fn defaults() -> Value {
    json!({
        "max_position_embeddings": 2048, "attention_bias": false, "mlp_bias": false, "embedding_multiplier": 1.0,
        "attention_multiplier": 1.0, "residual_multiplier": 1.0, "logits_scaling": 1.0
    })
}

/// Describes a Granite 3.
pub(super) fn fields(fields: Value) -> Result<DecoderFields, ConfigProblem> {
    serde_json::from_value::<Granite>(fields)?.lower()
}

impl Granite {
    /// A Llama with the four factors.
    fn lower(self) -> Result<DecoderFields, ConfigProblem> {
        let fields = self.shape.lower()?;
        Ok(DecoderFields {
            qkv_bias: self.attention_bias,
            o_bias: self.attention_bias,
            mlp_bias: self.mlp_bias,
            embedding_scale: factor("embedding_multiplier", self.embedding_multiplier)?.map(EmbeddingScale::Exact),
            attention_scale: factor("attention_multiplier", self.attention_multiplier)?.unwrap_or(1.0),
            residual_scale: factor("residual_multiplier", self.residual_multiplier)?,
            logit_scale: divisor("logits_scaling", self.logits_scaling)?.map(f64::recip),
            ..fields
        })
    }
}

/// Names of the MLP in hybrids. There it is the expert that all tokens share, which without experts
/// is the only one.
const SHARED_MLP: MlpNames =
    MlpNames { gate_up: GateUp::Fused("shared_mlp.input_linear"), down: "shared_mlp.output_linear" };

/// Defaults of hybrids: Granite 3's with a width of the MLP, 8 experts and sizes of state spaces.
pub(super) fn defaults_of_hybrid() -> Value {
    let mut all = defaults();
    all["shared_intermediate_size"] = 1024.into();
    all["num_local_experts"] = 8.into();
    all["num_experts_per_tok"] = 2.into();
    overlay(&mut all, MambaConfig::defaults());
    all
}

/// Describes a Granite 4.
pub(super) fn hybrid(fields: Value) -> Result<DecoderFields, ConfigProblem> {
    check_time_step_limit(&fields)?;
    let Hybrid {
        granite,
        shared_intermediate_size,
        num_local_experts,
        num_experts_per_tok,
        mamba,
        layer_types,
        position_embedding_type,
    } = serde_json::from_value(fields)?;
    let is_silu = granite.shape.must_be_silu("silu where there are Mamba layers");
    let fields = Granite { mlp_bias: false, ..granite }.lower()?;
    let n_layers = fields.n_layers;
    let types = layer_types.unwrap_or_else(|| vec!["mamba".to_owned(); n_layers]);
    // Older files have names of their own for the kinds of transformers 5.
    let kind = |kind: String| match kind.as_str() {
        "attention" => "full_attention".to_owned(),
        "mamba" => "linear_attention".to_owned(),
        _ => kind,
    };
    let types: Vec<String> = types.into_iter().map(kind).collect();
    let has_mamba = second_kind(&types, &["full_attention", "linear_attention"], n_layers)?;
    let has_any = has_mamba.contains(&true);
    if has_any {
        is_silu?;
    }
    let mamba = match has_any {
        false => None,
        true => Some(MambaFields {
            is_in: has_mamba,
            is_beside: false,
            shape: mamba.shape(fields.d_model, None)?,
            least_time: 0.0,
            part: "mamba",
            conv_bias: mamba.mamba_conv_bias,
            bias: [mamba.mamba_proj_bias; 2],
            norm: Some(GatedNorm::AfterGate),
            factors: [1.0; 5],
            out_factor: 1.0,
        }),
    };
    let rope_of = match position_embedding_type.as_deref() {
        Some("rope") => fields.rope_of,
        None | Some("nope") => vec![None; n_layers],
        Some(other) => {
            let (found, known) = (other.to_owned(), &["rope", "nope"]);
            return Err(ConfigProblem::Unknown { field: "position_embedding_type", found, known });
        }
    };
    let d_ff = size("shared_intermediate_size", shared_intermediate_size, 1 << 22)?;
    let sparse = match num_local_experts.filter(|&n_experts| n_experts > 0) {
        None => None,
        Some(n_experts) => {
            let n_experts = count("num_local_experts", n_experts, n_layers)?;
            let top_k = size("num_experts_per_tok", num_experts_per_tok.unwrap_or(2), n_experts)?;
            let routing = Routing { top_k, scores: Scores::Softmax, among_chosen: true };
            let all = Sparse::everywhere(n_layers, n_experts, fields.d_ff, routing, ExpertNames::GRANITE);
            Some(Sparse { d_shared: Some(d_ff), ..all })
        }
    };
    Ok(DecoderFields { mamba, rope_of, d_ff, mlp: SHARED_MLP, sparse, ..fields })
}
