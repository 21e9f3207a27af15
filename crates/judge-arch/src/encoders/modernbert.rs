//! ModernBERT (base and large): an encoder with rotations, windows and a gated MLP.
//!
//! - LayerNorm before both halves of a block and after the last one; the first block has no norm
//!   before attention, since the embedding is normed. Biases of norms and projections are optional,
//!   off by default.
//! - No table of positions. Global blocks rotate by `global_rope_theta` (160,000) and see
//!   everything; the others rotate by `local_rope_theta` (10,000) and see `local_attention / 2`
//!   positions to either side, inclusively. Block `i` is global if
//!   `i % global_attn_every_n_layers == 0`, or as `layer_types` says.
//! - `mlp.Wi` holds two halves: `gelu(first) * second`.
//! - Queries, keys and values are one tensor, `attn.Wqkv`.
//!
//! Tensors are under `model.` in classes with a head; `head.` and `classifier.` are read of sequence
//! classifiers (`heads.rs`), `decoder.` is not.

use serde::Deserialize;
use serde_json::{Value, json};

use super::sizes::Sizes;
use crate::ConfigProblem;
use crate::checks::{positive, size, windows};
use crate::encoder::{EmbeddingSpec, EncoderBlockSpec, EncoderSpec, NormPlace, StoredNames};
use crate::rope::{RopeContext, RopeFields, RopesByKind};
use crate::shape::activation_named;
use crate::spec::{LinearSpec, NormSpec};

/// The fields of a ModernBERT.
#[derive(Deserialize)]
struct ModernBert {
    /// The sizes of all encoders.
    #[serde(flatten)]
    sizes: Sizes,
    /// The function inside the MLP.
    hidden_activation: String,
    /// Epsilon of all norms.
    norm_eps: f64,
    /// Whether norms have biases.
    norm_bias: bool,
    /// Whether the projections of attention have biases.
    attention_bias: bool,
    /// Whether the projections of the MLP have biases.
    mlp_bias: bool,
    /// Width of a window, both sides counted.
    local_attention: usize,
    /// Kinds of the blocks, in files of transformers 5.
    layer_types: Option<Vec<String>>,
    /// Distance of global blocks, used without `layer_types`.
    global_attn_every_n_layers: usize,
    /// Rope fields by kind of block, in files of transformers 5.
    rope_parameters: Option<RopeFields>,
    /// Refused unless null or empty.
    rope_scaling: Option<Value>,
    /// Base of global blocks where `rope_parameters` states none.
    global_rope_theta: f64,
    /// Base of local blocks, likewise; null means the base of global ones.
    local_rope_theta: Option<f64>,
    /// Files say `absolute`, which is not true and changes nothing.
    position_embedding_type: Option<String>,
}

/// Defaults of transformers 5.23: ModernBERT base.
pub(super) fn defaults() -> Value {
    json!({
        "vocab_size": 50368, "hidden_size": 768, "intermediate_size": 1152, "num_hidden_layers": 22,
        "num_attention_heads": 12, "hidden_activation": "gelu", "max_position_embeddings": 8192, "norm_eps": 1e-5,
        "norm_bias": false, "attention_bias": false, "mlp_bias": false, "local_attention": 128,
        "global_attn_every_n_layers": 3, "global_rope_theta": 160_000.0, "local_rope_theta": 10_000.0
    })
}

/// Describes a ModernBERT.
///
/// # Errors
/// [`ConfigProblem`] for sizes out of range, scaled rotations and unknown kinds of positions.
pub(super) fn spec(fields: Value) -> Result<EncoderSpec, ConfigProblem> {
    let bert: ModernBert = serde_json::from_value(fields)?;
    if let Some(scaling) = bert.rope_scaling.filter(|scaling| *scaling != json!({})) {
        return Err(ConfigProblem::Unsupported { field: "rope_scaling", found: scaling.to_string() });
    }
    // The value of published files says nothing about their rotations.
    if let Some(found) = bert.position_embedding_type.filter(|found| found != "absolute") {
        return Err(ConfigProblem::Unsupported { field: "position_embedding_type", found });
    }
    let sizes = bert.sizes.check()?;
    let (d_model, d_ff, n_layers) = (sizes.hidden_size, sizes.intermediate_size, sizes.num_hidden_layers);
    let every = size("global_attn_every_n_layers", bert.global_attn_every_n_layers, usize::MAX)?;
    let around = RopeContext {
        max_position_embeddings: sizes.max_position_embeddings,
        head_dim: d_model / sizes.num_attention_heads,
        ..RopeContext::default()
    };
    // Before transformers 5 a null here meant the base of global blocks.
    let theta = [bert.global_rope_theta, bert.local_rope_theta.unwrap_or(bert.global_rope_theta)];
    let ropes = RopesByKind::new(bert.rope_parameters, None, theta)?;
    let ropes = vec![ropes.full.lower(&around)?.0, ropes.sliding.lower(&around)?.0];
    // The width in the file counts both sides.
    let reach = size("local_attention", bert.local_attention, usize::MAX)? / 2;
    let windows = windows(bert.layer_types, Some(reach), n_layers, |layer| !layer.is_multiple_of(every))?;
    let norm = |stem: String| NormSpec::plain(&stem, d_model, bert.norm_bias);
    let block = |(index, window): (usize, Option<usize>)| {
        let stem = |name: &str| format!("layers.{index}.{name}");
        let linear = |name: &str, rows, d_in, bias| LinearSpec::plain(vec![(stem(name), rows)], d_in, bias);
        EncoderBlockSpec {
            window,
            rope: Some(usize::from(window.is_some())),
            // What enters the first block is the normed embedding.
            attention_norm: (index > 0).then(|| norm(stem("attn_norm"))),
            qkv: linear("attn.Wqkv", 3 * d_model, d_model, bert.attention_bias),
            out: linear("attn.Wo", d_model, d_model, bert.attention_bias),
            mlp_norm: norm(stem("mlp_norm")),
            up: linear("mlp.Wi", 2 * d_ff, d_model, bert.mlp_bias),
            down: linear("mlp.Wo", d_model, d_ff, bert.mlp_bias),
        }
    };
    Ok(EncoderSpec {
        family: "modernbert",
        d_model,
        n_heads: sizes.num_attention_heads,
        d_vocab: sizes.vocab_size,
        max_len: sizes.max_position_embeddings,
        norm_eps: positive("norm_eps", bert.norm_eps)?,
        norm_place: NormPlace::Pre,
        activation: activation_named("hidden_activation", &bert.hidden_activation)?,
        ropes,
        embedding: EmbeddingSpec {
            words: "embeddings.tok_embeddings.weight".to_owned(),
            types: None,
            positions: None,
            norm: norm("embeddings.norm".to_owned()),
        },
        blocks: windows.into_iter().enumerate().map(block).collect(),
        relative: None,
        final_norm: Some(norm("final_norm".to_owned())),
        names: StoredNames {
            prefix: "model.",
            others: &["classifier.", "decoder.", "head."],
            beside: &["classifier.", "head."],
        },
        head: None,
    })
}
