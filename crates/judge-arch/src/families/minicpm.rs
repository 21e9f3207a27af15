//! `minicpm`: MiniCPM 1B and 2B, and the reranker with a head at every layer from some on, whose class `head.rs` knows.
//! Their code comes with the models; transformers has none.
//!
//! A Llama with three factors, all 1 by default:
//!
//! | field | meaning |
//! |---|---|
//! | `scale_emb` | multiplies embeddings, before layer 0 |
//! | `scale_depth` | divided by `sqrt(num_hidden_layers)`, multiplies what each half of a block adds |
//! | `dim_model_base` | the share of it in `hidden_size` multiplies logits, in readings too |

use serde::Deserialize;
use serde_json::{Value, json};

use crate::ConfigProblem;
use crate::checks::{divisor, factor, positive};
use crate::decoder_fields::DecoderFields;
use crate::shape::Shape;
use crate::spec::EmbeddingScale;

/// Fields of the family.
#[derive(Deserialize)]
struct MiniCpm {
    #[serde(flatten)]
    shape: Shape,
    /// Biases of all four projections of attention.
    attention_bias: bool,
    /// Factor on embeddings.
    scale_emb: f64,
    /// Factor on what each half of a block adds, times the root of the number of blocks.
    scale_depth: f64,
    /// Width of the model that the head was scaled for.
    dim_model_base: f64,
    /// Blocks of keys that queries choose among, in long texts.
    sparse_config: Option<Value>,
}

/// Defaults where they differ from those of all families.
pub(super) fn defaults() -> Value {
    json!({
        "max_position_embeddings": 2048, "attention_bias": false, "tie_word_embeddings": true, "scale_emb": 1.0,
        "scale_depth": 1.0, "dim_model_base": 1.0
    })
}

/// Describes a MiniCPM.
pub(super) fn fields(fields: Value) -> Result<DecoderFields, ConfigProblem> {
    let MiniCpm { shape, attention_bias, scale_emb, scale_depth, dim_model_base, sparse_config } =
        serde_json::from_value(fields)?;
    if let Some(found) = sparse_config {
        let expected = "null: attention to chosen blocks of keys is not read";
        return Err(ConfigProblem::value("sparse_config", found, expected));
    }
    let fields = shape.lower()?;
    let depth = positive("scale_depth", scale_depth)? / (fields.n_layers as f64).sqrt();
    let width = fields.d_model as f64 / positive("dim_model_base", dim_model_base)?;
    Ok(DecoderFields {
        qkv_bias: attention_bias,
        o_bias: attention_bias,
        embedding_scale: factor("scale_emb", scale_emb)?.map(EmbeddingScale::Exact),
        residual_scale: factor("scale_depth", depth)?,
        logit_scale: divisor("dim_model_base", width)?.map(f64::recip),
        ..fields
    })
}
