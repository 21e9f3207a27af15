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
use crate::checks::{must_be_off, norm_eps};
use crate::decoder_fields::{AttentionNames, BlockNorms, DecoderFields, GateUp, MlpNames, Qkv};
use crate::rope::RopeRules;
use crate::shape::{Shape, TokenIds};

/// Fields of the family.
#[derive(Deserialize)]
struct Gpt2 {
    /// Rows of the embedding.
    vocab_size: usize,
    /// `d_model`.
    n_embd: usize,
    /// Number of blocks.
    n_layer: usize,
    /// Heads of a block.
    n_head: usize,
    /// Rows of the table of positions.
    n_positions: usize,
    /// Width inside the MLP; `None`: four times `n_embd`.
    n_inner: Option<usize>,
    /// The function inside the MLP.
    activation_function: String,
    /// Epsilon of all norms.
    layer_norm_epsilon: f64,
    /// Whether scores are divided by the root of a head's width.
    scale_attn_weights: bool,
    /// Whether the head is the embedding.
    tie_word_embeddings: bool,
    /// Tokens that end a text.
    eos_token_id: Option<TokenIds>,
    /// Whether scores are divided by the number of the block too, which is refused.
    scale_attn_by_inverse_layer_idx: bool,
    /// Attention to the states of another model, which is refused.
    add_cross_attention: bool,
}

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
///
/// # Errors
/// [`ConfigProblem`] as of [`Shape::lower`], for cross-attention, and for scores divided by the number
/// of the block.
pub(super) fn fields(fields: Value) -> Result<DecoderFields, ConfigProblem> {
    let found: Gpt2 = serde_json::from_value(fields)?;
    must_be_off("scale_attn_by_inverse_layer_idx", found.scale_attn_by_inverse_layer_idx)?;
    must_be_off("add_cross_attention", found.add_cross_attention)?;
    let shape = Shape {
        vocab_size: found.vocab_size,
        hidden_size: found.n_embd,
        intermediate_size: found.n_inner.unwrap_or(found.n_embd.saturating_mul(4)),
        num_hidden_layers: found.n_layer,
        num_attention_heads: found.n_head,
        num_key_value_heads: None,
        head_dim: None,
        max_position_embeddings: found.n_positions,
        rms_norm_eps: norm_eps("layer_norm_epsilon", found.layer_norm_epsilon)?,
        tie_word_embeddings: found.tie_word_embeddings,
        rope_parameters: None,
        rope_scaling: None,
        rope_theta: None,
        partial_rotary_factor: None,
        original_max_position_embeddings: None,
        eos_token_id: found.eos_token_id,
        rope_rules: RopeRules::default(),
    };
    let fields = shape.lower("gpt2", "activation_function", &found.activation_function)?;
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
