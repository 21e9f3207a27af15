//! `falcon_h1`: Falcon-H1 (0.5B to 34B).
//!
//! Every block has attention and a state space (Mamba-2) beside one another, which read the same norm;
//! both results are added, and an MLP follows. The state space's output is gated alone, or normed too
//! (`mamba_rms_norm`), before the gate or after it (`mamba_norm_before_gate`).
//!
//! Multipliers, all 1 by default, keep activations in range:
//!
//! | field | multiplies |
//! |---|---|
//! | `embedding_multiplier`, `lm_head_multiplier` | embeddings; logits, in readings too |
//! | `attention_in_multiplier`, `attention_out_multiplier` | what attention reads; what it adds |
//! | `key_multiplier` | keys, and so scores |
//! | `ssm_in_multiplier`, `ssm_out_multiplier` | what the state space reads; what it adds |
//! | `ssm_multipliers` | its gates, `x`, `B`, `C` and `dt` |
//! | `mlp_multipliers` | the gate of the MLP before its activation; what the MLP adds |
//!
//! Another activation than SiLU and limits of time are refused, and a projection with a bias before the state space where that
//! reads something of another length than attention.
//!
//! Names: `mamba.`, `feed_forward.`, `pre_ff_layernorm`, `model.final_layernorm`.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::checks::{check_granted, factor, overlay, positive, size};
use crate::decoder_fields::{BlockNorms, DecoderFields, GateUp, MlpNames, Multipliers};
use crate::mamba::{MambaConfig, MambaFields, check_time_step_limit};
use crate::shape::Shape;
use crate::spec::EmbeddingScale;
use crate::{ConfigProblem, GatedNorm};

/// Fields of the family.
#[derive(Deserialize)]
struct FalconH1 {
    #[serde(flatten)]
    shape: Shape,
    /// Sizes of state spaces; the bias of the projection before one.
    #[serde(flatten)]
    mamba: MambaConfig,
    /// Biases of all four projections of attention.
    attention_bias: bool,
    /// Biases of the MLP's projections.
    mlp_bias: bool,
    /// The bias of the projection behind the state space.
    projectors_bias: bool,
    /// Width of all heads of the state space; null: a multiple of `hidden_size`.
    mamba_d_ssm: Option<usize>,
    /// Whether the state space's output is normed.
    mamba_rms_norm: bool,
    /// Whether the norm is before the gate.
    mamba_norm_before_gate: bool,
    /// Factor on embeddings.
    embedding_multiplier: f64,
    /// Factor on logits.
    lm_head_multiplier: f64,
    /// Factor on what attention reads.
    attention_in_multiplier: f64,
    /// Factor on what attention adds.
    attention_out_multiplier: f64,
    /// Factor on keys.
    key_multiplier: f64,
    /// Factor on what the state space reads.
    ssm_in_multiplier: f64,
    /// Factor on what it adds.
    ssm_out_multiplier: f64,
    /// Factors on its gates, `x`, `B`, `C` and `dt`.
    ssm_multipliers: Option<[f64; 5]>,
    /// Factors on the MLP's gate and on what it adds.
    mlp_multipliers: Option<[f64; 2]>,
}

/// Norms before both halves, under the family's names.
const NORMS: BlockNorms = BlockNorms { before_mlp: Some("pre_ff_layernorm"), ..BlockNorms::BEFORE };

/// The family's names of gate, up and down.
const MLP: MlpNames = MlpNames {
    gate_up: GateUp::Apart { gate: "feed_forward.gate_proj", up: "feed_forward.up_proj" },
    down: "feed_forward.down_proj",
};

/// Defaults where they differ from those of all families.
pub(super) fn defaults() -> Value {
    let mut all = json!({
        "vocab_size": 128_000, "intermediate_size": 14336, "num_key_value_heads": 8, "max_position_embeddings": 8192,
        "rms_norm_eps": 1e-5, "attention_bias": false, "mlp_bias": false, "projectors_bias": false,
        "mamba_d_ssm": 1024, "mamba_rms_norm": false, "mamba_norm_before_gate": true, "embedding_multiplier": 1.0,
        "lm_head_multiplier": 1.0, "attention_in_multiplier": 1.0, "attention_out_multiplier": 1.0,
        "key_multiplier": 1.0, "ssm_in_multiplier": 1.0, "ssm_out_multiplier": 1.0
    });
    overlay(&mut all, MambaConfig::defaults());
    all
}

/// Describes a Falcon-H1.
pub(super) fn fields(fields: Value) -> Result<DecoderFields, ConfigProblem> {
    check_time_step_limit(&fields)?;
    check_granted(&fields, &[("mamba_use_mlp", json!(true))])?;
    let found = FalconH1::deserialize(&fields)?;
    found.shape.must_be_silu("silu")?;
    let fields = found.shape.lower()?;
    let [gate, down] = found.mlp_multipliers.unwrap_or([1.0; 2]);
    let [attention_in, ssm_in] = [
        positive("attention_in_multiplier", found.attention_in_multiplier)?,
        positive("ssm_in_multiplier", found.ssm_in_multiplier)?,
    ];
    if found.mamba.mamba_proj_bias && attention_in != ssm_in {
        // The norm that both read is multiplied by the first, and the projection by the rest of the second.
        let found =
            format!("true, with an ssm_in_multiplier of {ssm_in} and an attention_in_multiplier of {attention_in}");
        return Err(ConfigProblem::Unsupported { field: "mamba_proj_bias", found });
    }
    let mut factors = [1.0_f32; 5];
    for (factor, found) in factors.iter_mut().zip(found.ssm_multipliers.unwrap_or([1.0; 5])) {
        *factor = positive("ssm_multipliers", ssm_in / attention_in * found)? as f32;
    }
    let d_inner = found.mamba_d_ssm.map(|width| size("mamba_d_ssm", width, 1 << 22)).transpose()?;
    let place = if found.mamba_norm_before_gate { GatedNorm::BeforeGate } else { GatedNorm::AfterGate };
    Ok(DecoderFields {
        mamba: Some(MambaFields {
            is_in: vec![true; fields.n_layers],
            is_beside: true,
            shape: found.mamba.shape(fields.d_model, d_inner)?,
            least_time: 0.0,
            part: "mamba",
            conv_bias: found.mamba.mamba_conv_bias,
            bias: [found.mamba.mamba_proj_bias, found.projectors_bias],
            norm: found.mamba_rms_norm.then_some(place),
            factors,
            out_factor: positive("ssm_out_multiplier", found.ssm_out_multiplier)? as f32,
        }),
        multipliers: Multipliers {
            attention_in: attention_in as f32,
            attention_out: positive("attention_out_multiplier", found.attention_out_multiplier)? as f32,
            gate: positive("mlp_multipliers", gate)? as f32,
            down: positive("mlp_multipliers", down)? as f32,
        },
        attention_scale: positive("key_multiplier", found.key_multiplier)
            .and_then(|keys| positive("key_multiplier", fields.attention_scale * keys))?,
        embedding_scale: factor("embedding_multiplier", found.embedding_multiplier)?.map(EmbeddingScale::Exact),
        logit_scale: factor("lm_head_multiplier", found.lm_head_multiplier)?,
        qkv_bias: found.attention_bias,
        o_bias: found.attention_bias,
        mlp_bias: found.mlp_bias,
        norms: NORMS,
        mlp: MLP,
        last_norm: "model.final_layernorm.weight",
        ..fields
    })
}
