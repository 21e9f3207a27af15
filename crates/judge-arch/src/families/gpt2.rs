//! `gpt2`: GPT-2 (124M to 1.5B) and DistilGPT-2.
//!
//! - LayerNorm with biases, before both halves of a block and after the last block.
//! - An MLP without a gate, `down(f(up(x)))`, four times as wide as the model unless `n_inner` says
//!   otherwise. All projections have biases.
//! - Learned positions, added to the embedding; nothing rotates. The head is tied.
//! - Matrices are stored transposed, `[d_in, d_out]`; queries, keys and values are one tensor.
//! - Sizes have names of their own: `n_embd`, `n_layer`, `n_head`, `n_positions`.
//!
//! | here | in files |
//! |---|---|
//! | queries, keys, values; projection after attention | `attn.c_attn`, `attn.c_proj` |
//! | up, down | `mlp.c_fc`, `mlp.c_proj` |
//! | norms before attention, before the MLP, after the last block | `ln_1`, `ln_2`, `transformer.ln_f` |
//! | embedding, positions | `transformer.wte`, `transformer.wpe` |
//!
//! Published files leave out `transformer.`. Cross-attention and scores divided by the number of the
//! block are refused.

use judge_kernels::functions::NormKind;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ConfigProblem;
use crate::checks::must_be_off;
use crate::decoder_fields::{AttentionNames, BlockNorms, DecoderFields, GateUp, MlpNames, Qkv};
use crate::shape::Shape;

/// Fields of the family.
#[derive(Deserialize)]
struct Gpt2 {
    /// Fields of all families that this one has.
    #[serde(flatten)]
    shape: Shape,
    /// Width inside the MLP; `None`: four times `n_embd`.
    n_inner: Option<usize>,
    /// Whether scores are divided by the root of a head's width.
    scale_attn_weights: bool,
    /// Whether scores are divided by the number of the block too, which is refused.
    scale_attn_by_inverse_layer_idx: bool,
    /// Attention to the states of another model, which is refused.
    add_cross_attention: bool,
}

/// Fields of [`Shape`] that the family does not read.
const ABSENT: [&str; 7] = [
    "num_key_value_heads",
    "head_dim",
    "rope_parameters",
    "rope_scaling",
    "rope_theta",
    "partial_rotary_factor",
    "original_max_position_embeddings",
];

/// The norms of a block.
const NORMS: BlockNorms =
    BlockNorms { before_attention: Some("ln_1"), after_attention: None, before_mlp: Some("ln_2"), after_mlp: None };

/// Parts of `attn.c_attn`.
const QKV: Qkv = Qkv::Apart(["attn.c_attn.query", "attn.c_attn.key", "attn.c_attn.value"]);

/// The part of `attn.c_proj`; there are no norms of heads.
const ATTENTION: AttentionNames = AttentionNames { out: "attn.c_proj.all", ..AttentionNames::LLAMA };

/// The parts of `mlp.c_fc` and `mlp.c_proj`.
const MLP: MlpNames = MlpNames { gate_up: GateUp::Up("mlp.c_fc.all"), down: "mlp.c_proj.all" };

/// Defaults of transformers 5.23.
pub(super) fn defaults() -> Value {
    json!({
        "vocab_size": 50257, "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024,
        "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "scale_attn_weights": true,
        "tie_word_embeddings": true, "eos_token_id": 50256, "scale_attn_by_inverse_layer_idx": false,
        "add_cross_attention": false
    })
}

/// Describes a GPT-2.
pub(super) fn fields(mut fields: Value) -> Result<DecoderFields, ConfigProblem> {
    ABSENT.iter().for_each(|field| fields[*field] = Value::Null);
    fields["intermediate_size"] = 0.into(); // settled below
    let mut found: Gpt2 = serde_json::from_value(fields)?;
    must_be_off("scale_attn_by_inverse_layer_idx", found.scale_attn_by_inverse_layer_idx)?;
    must_be_off("add_cross_attention", found.add_cross_attention)?;
    found.shape.intermediate_size = found.n_inner.unwrap_or(found.shape.hidden_size.saturating_mul(4));
    let fields = found.shape.lower()?;
    Ok(DecoderFields {
        norm_kind: NormKind::LayerNorm,
        norm_bias: true,
        norms: NORMS,
        qkv: QKV,
        is_transposed: true,
        qkv_bias: true,
        o_bias: true,
        attention: ATTENTION,
        mlp: MLP,
        mlp_bias: true,
        attention_scale: if found.scale_attn_weights { fields.attention_scale } else { 1.0 },
        layers: "transformer.h",
        embedding: "transformer.wte.weight",
        positions: Some(("transformer.wpe.weight", fields.max_len)),
        last_norm: "transformer.ln_f.weight",
        ropes: Vec::new(),
        rope_of: vec![None; fields.n_layers],
        ..fields
    })
}
