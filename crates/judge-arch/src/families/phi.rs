//! `phi`: Phi-1, Phi-1.5 and Phi-2.
//!
//! - One LayerNorm with a bias before a block; attention and an MLP without a gate, `fc2(f(fc1(x)))`, are
//!   beside one another.
//! - All projections have biases, and the head over the vocabulary has one too.
//! - Half of each head rotates by default (`partial_rotary_factor`).
//!
//! Names: `self_attn.dense` behind attention, `mlp.fc1` and `mlp.fc2`, `model.final_layernorm`. Norms of
//! heads (`qk_layernorm`), which no published model has, are refused.

use judge_kernels::functions::NormKind;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ConfigProblem;
use crate::checks::must_be_off;
use crate::decoder_fields::{AttentionNames, BlockNorms, DecoderFields, GateUp, MlpNames};
use crate::rope::RopeRules;
use crate::shape::Shape;

/// Fields of the family.
#[derive(Deserialize)]
struct Phi {
    #[serde(flatten)]
    shape: Shape,
    /// Norms of query and key heads, which are refused.
    qk_layernorm: bool,
}

/// The family's names in attention; there are no norms of heads.
const ATTENTION: AttentionNames = AttentionNames { out: "self_attn.dense", ..AttentionNames::LLAMA };

/// The family's names of the MLP.
const MLP: MlpNames = MlpNames { gate_up: GateUp::Up("mlp.fc1"), down: "mlp.fc2" };

/// Defaults where they differ from those of all families.
pub(super) fn defaults() -> Value {
    json!({
        "vocab_size": 51200, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 24,
        "hidden_act": "gelu_new", "max_position_embeddings": 2048, "layer_norm_eps": 1e-5,
        "partial_rotary_factor": 0.5, "qk_layernorm": false
    })
}

/// Describes a Phi.
pub(super) fn fields(fields: Value) -> Result<DecoderFields, ConfigProblem> {
    let Phi { mut shape, qk_layernorm } = serde_json::from_value(fields)?;
    must_be_off("qk_layernorm", qk_layernorm)?;
    shape.rope_rules = RopeRules { is_partial: true, ..RopeRules::default() };
    let fields = shape.lower()?;
    Ok(DecoderFields {
        norm_kind: NormKind::LayerNorm,
        norm_bias: true,
        norms: BlockNorms::ONE,
        is_parallel: true,
        qkv_bias: true,
        o_bias: true,
        attention: ATTENTION,
        mlp: MLP,
        mlp_bias: true,
        last_norm: "model.final_layernorm.weight",
        head_bias: true,
        ..fields
    })
}
