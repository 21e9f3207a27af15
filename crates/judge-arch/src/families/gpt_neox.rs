//! `gpt_neox`: GPT-NeoX 20B, Pythia, and what was made of them.
//!
//! - LayerNorm with biases, before both halves of a block and after the last block. The MLP is beside
//!   attention, `x + attn(n(x)) + mlp(m(x))`, unless `use_parallel_residual` is false; then it follows
//!   as in Llama.
//! - An MLP without a gate, `down(f(up(x)))`. All projections have biases, those of attention by
//!   `attention_bias`.
//! - A quarter of each head rotates (`rotary_pct`).
//! - Queries, keys and values are one tensor, head by head; fewer key heads and a width of heads of their own are refused.
//!
//! | here | in files |
//! |---|---|
//! | queries, keys, values; projection after attention | `attention.query_key_value`, `attention.dense` |
//! | up, down | `mlp.dense_h_to_4h`, `mlp.dense_4h_to_h` |
//! | embedding, norm after the last block, head | `gpt_neox.embed_in`, `gpt_neox.final_layer_norm`, `embed_out` or `lm_head` |

use judge_kernels::functions::NormKind;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ConfigProblem;
use crate::decoder_fields::{AttentionNames, DecoderFields, GateUp, MlpNames, Qkv};
use crate::rope::RopeRules;
use crate::shape::Shape;

/// Fields of the family.
#[derive(Deserialize)]
struct GptNeox {
    /// Fields of all families. Those below with other names overwrite some of them.
    #[serde(flatten)]
    shape: Shape,
    /// Whether the MLP is beside attention.
    use_parallel_residual: bool,
    /// Biases of attention's projections.
    attention_bias: bool,
    /// Part of a head that rotates, used where the rope fields state none.
    rotary_pct: f64,
    /// Base of the rotation, likewise.
    rotary_emb_base: f64,
}

/// The family's names in attention; there are no norms of heads.
const ATTENTION: AttentionNames = AttentionNames { out: "attention.dense", ..AttentionNames::LLAMA };

/// The family's names of the MLP.
const MLP: MlpNames = MlpNames { gate_up: GateUp::Up("mlp.dense_h_to_4h"), down: "mlp.dense_4h_to_h" };

/// Defaults where they differ from those of all families.
pub(super) fn defaults() -> Value {
    json!({
        "vocab_size": 50432, "hidden_size": 6144, "intermediate_size": 24576, "num_hidden_layers": 44,
        "num_attention_heads": 64, "hidden_act": "gelu", "max_position_embeddings": 2048, "layer_norm_eps": 1e-5,
        "use_parallel_residual": true, "attention_bias": true, "rotary_pct": 0.25, "rotary_emb_base": 10000.0
    })
}

/// Describes a GPT-NeoX.
pub(super) fn fields(fields: Value) -> Result<DecoderFields, ConfigProblem> {
    let GptNeox { mut shape, use_parallel_residual, attention_bias, rotary_pct, rotary_emb_base } =
        serde_json::from_value(fields)?;
    for (field, found) in [("num_key_value_heads", shape.num_key_value_heads), ("head_dim", shape.head_dim)] {
        if let Some(found) = found {
            return Err(ConfigProblem::Unsupported { field, found: found.to_string() });
        }
    }
    shape.rope_theta = Some(rotary_emb_base);
    shape.partial_rotary_factor = Some(rotary_pct);
    shape.rope_rules = RopeRules { is_partial: true, ..RopeRules::default() };
    let fields = shape.lower()?;
    Ok(DecoderFields {
        norm_kind: NormKind::LayerNorm,
        norm_bias: true,
        is_parallel: use_parallel_residual,
        qkv: Qkv::ByHead("attention.query_key_value"),
        qkv_bias: attention_bias,
        o_bias: attention_bias,
        attention: ATTENTION,
        mlp: MLP,
        mlp_bias: true,
        layers: "gpt_neox.layers",
        embedding: "gpt_neox.embed_in.weight",
        last_norm: "gpt_neox.final_layer_norm.weight",
        ..fields
    })
}
