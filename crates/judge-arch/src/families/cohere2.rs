//! `cohere2`: Command R7B, Command A.
//!
//! - One LayerNorm per block (mean subtracted, no bias), `input_layernorm`, which attention and the
//!   MLP beside it both read: `x + attn(n(x)) + mlp(n(x))`. The norm after the last block is a
//!   LayerNorm too.
//! - Windows (4096) in three blocks of four. Only these rotate, neighbours `2i` and `2i + 1`
//!   together; full blocks do not (NoPE).
//! - Logits are multiplied by `logit_scale` (1/16 by default), in readings too. The head is tied.
//! - No norms of heads; `use_qk_norm` is refused.
//! - `head_dim` counts where a file has it, as in transformers, which has it beside its declared fields.
//!
//! Published files state several properties that transformers takes for granted; other values of
//! them are refused. Tensors are named as in Llama, without `post_attention_layernorm`.

use judge_kernels::functions::NormKind;
use judge_kernels::functions::Pairs;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ConfigProblem;
use crate::checks::{check_granted, factor, size, window, windows};
use crate::decoder_fields::{BlockNorms, DecoderFields};
use crate::rope::RopeRules;
use crate::shape::Shape;

/// Fields of the family.
#[derive(Deserialize)]
struct Cohere2 {
    #[serde(flatten)]
    shape: Shape,
    /// Factor on logits.
    logit_scale: f64,
    /// Biases of all four projections of attention.
    attention_bias: bool,
    /// Width of windows.
    sliding_window: Option<usize>,
    /// Distance of full blocks, used without `layer_types`; 4 by default.
    sliding_window_pattern: Option<usize>,
    /// Kinds of the blocks.
    layer_types: Option<Vec<String>>,
}

/// Defaults where they differ from those of all families.
pub(super) fn defaults() -> Value {
    json!({
        "vocab_size": 256_000, "hidden_size": 8192, "intermediate_size": 22528, "num_hidden_layers": 40,
        "num_attention_heads": 64, "max_position_embeddings": 8192, "layer_norm_eps": 1e-5, "logit_scale": 0.0625,
        "tie_word_embeddings": true, "eos_token_id": 255_001, "attention_bias": false, "sliding_window": 4096
    })
}

/// What published files say of their blocks and transformers takes for granted, with full blocks at
/// each `pattern`th place.
fn granted(pattern: usize) -> [(&'static str, Value); 8] {
    [
        ("layer_switch", json!(pattern)),
        ("order_of_interleaved_layers", json!("local_attn_first")),
        ("position_embedding_type", json!("rope_gptj")),
        ("rotary_pct", json!(1.0)),
        ("use_embedding_sharing", json!(true)),
        ("use_gated_activation", json!(true)),
        ("use_parallel_block", json!(true)),
        ("use_qk_norm", json!(false)),
    ]
}

/// Describes a Cohere 2.
pub(super) fn fields(fields: Value) -> Result<DecoderFields, ConfigProblem> {
    let mut found = Cohere2::deserialize(&fields)?;
    let pattern = size("sliding_window_pattern", found.sliding_window_pattern.unwrap_or(4), usize::MAX)?;
    check_granted(&fields, &granted(pattern))?;
    found.shape.rope_rules = RopeRules { pairs: Pairs::Neighbours, ..RopeRules::default() };
    let fields = found.shape.lower()?;
    let slides = |layer: usize| !(layer + 1).is_multiple_of(pattern);
    let windows = windows(found.layer_types, window(found.sliding_window)?, fields.n_layers, slides)?;
    let rope_of = windows.iter().map(|window| window.map(|_| 0)).collect();
    Ok(DecoderFields {
        norm_kind: NormKind::LayerNorm,
        norms: BlockNorms::ONE,
        is_parallel: true,
        qkv_bias: found.attention_bias,
        o_bias: found.attention_bias,
        windows,
        rope_of,
        logit_scale: factor("logit_scale", found.logit_scale)?,
        ..fields
    })
}
