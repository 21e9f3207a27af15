//! DeBERTa v2 and v3 (He et al., *DeBERTa: Decoding-enhanced BERT with Disentangled Attention*, 2021): BERT whose
//! attention knows how far apart two positions are.
//!
//! - Blocks are BERT's, with other names of queries, keys and values.
//! - One table of relative positions for all blocks, `encoder.rel_embeddings`, mostly normed; each block multiplies it
//!   with its own matrices of queries and keys (`share_att_key`). See [`RelativeSpec`] for the scores.
//! - No table of absolute positions in v3 (`position_biased_input` false), and mostly no types.
//!
//! Refused by name: other matrices for relative positions (`share_att_key` false), the convolution after the first
//! block of the largest v2 (`conv_kernel_size`), and an embedding of another width (`embedding_size`).

use serde::Deserialize;
use serde_json::{Value, json};

use super::bert::{block, norm, table};
use super::sizes::Sizes;
use crate::ConfigProblem;
use crate::checks::{MAX_CONTEXT, positive, size};
use crate::encoder::{EmbeddingSpec, EncoderSpec, NormPlace, PositionsSpec, RelativeSpec, StoredNames, TypesSpec};
use crate::shape::activation_named;

/// The fields of a DeBERTa.
#[derive(Deserialize)]
struct Deberta {
    /// The sizes of all encoders.
    #[serde(flatten)]
    sizes: Sizes,
    /// The function inside the MLP.
    hidden_act: String,
    /// Rows of the table of types; 0: there is none.
    type_vocab_size: usize,
    /// Epsilon of all norms.
    layer_norm_eps: f64,
    /// Must be true.
    relative_attention: bool,
    /// Which scores of relative positions there are: a list, or names with `|` between.
    pos_att_type: Option<Value>,
    /// Buckets to either side; 0 or less: a row for every distance.
    position_buckets: i64,
    /// The greatest distance; less than 1: `max_position_embeddings`.
    max_relative_positions: i64,
    /// `layer_norm` or `none`.
    norm_rel_ebd: String,
    /// Must be true.
    share_att_key: bool,
    /// Whether there is a table of absolute positions.
    position_biased_input: bool,
    /// Must be 0 or absent.
    conv_kernel_size: Option<i64>,
    /// Must be `hidden_size` or absent.
    embedding_size: Option<usize>,
    /// Must be `hidden_size / num_attention_heads` or absent.
    attention_head_size: Option<usize>,
}

/// Names of queries, keys and values in a block.
const QKV: [&str; 3] = ["attention.self.query_proj", "attention.self.key_proj", "attention.self.value_proj"];

/// Names that no state depends on: heads, and a buffer.
const OTHERS: &[&str] = &[
    "classifier.",
    "cls.",
    "embeddings.position_ids",
    "lm_head.",
    "lm_predictions.",
    "mask_predictions.",
    "pooler.",
    "qa_outputs.",
];

/// Defaults of transformers 5.23.
pub(super) fn defaults() -> Value {
    json!({
        "vocab_size": 128_100, "hidden_size": 1536, "intermediate_size": 6144, "num_hidden_layers": 24,
        "num_attention_heads": 24, "hidden_act": "gelu", "max_position_embeddings": 512, "type_vocab_size": 0,
        "layer_norm_eps": 1e-7, "relative_attention": false, "position_buckets": -1, "max_relative_positions": -1,
        "norm_rel_ebd": "none", "share_att_key": false, "position_biased_input": true
    })
}

/// Describes a DeBERTa.
///
/// # Errors
/// [`ConfigProblem`] for sizes out of range and for what the module's head says is refused.
pub(super) fn spec(fields: Value) -> Result<EncoderSpec, ConfigProblem> {
    let deberta: Deberta = serde_json::from_value(fields)?;
    let sizes = deberta.sizes.check()?;
    let (d_model, max_len) = (sizes.hidden_size, sizes.max_position_embeddings);
    let other =
        |found: Option<usize>, width: usize| found.filter(|&found| found != width).map(|found| found.to_string());
    let refused = [
        ("relative_attention", (!deberta.relative_attention).then(|| "false".to_owned())),
        ("share_att_key", (!deberta.share_att_key).then(|| "false".to_owned())),
        ("conv_kernel_size", deberta.conv_kernel_size.filter(|&found| found > 0).map(|found| found.to_string())),
        ("embedding_size", other(deberta.embedding_size, d_model)),
        ("attention_head_size", other(deberta.attention_head_size, d_model / sizes.num_attention_heads)),
    ];
    if let Some((field, found)) = refused.into_iter().find_map(|(field, found)| Some((field, found?))) {
        return Err(ConfigProblem::Unsupported { field, found });
    }
    let kinds: Vec<String> = match deberta.pos_att_type {
        None => Vec::new(),
        Some(Value::String(text)) => text.to_lowercase().split('|').map(|name| name.trim().to_owned()).collect(),
        Some(list) => Vec::deserialize(&list)
            .map_err(|_| ConfigProblem::value("pos_att_type", list, "a list of names, or names with | between"))?,
    };
    if let Some(found) = kinds.iter().find(|kind| !["c2p", "p2c"].contains(&kind.as_str())) {
        let known = &["c2p", "p2c"];
        return Err(ConfigProblem::Unknown { field: "pos_att_type", found: found.clone(), known });
    }
    let norm_rel_ebd = deberta.norm_rel_ebd.to_lowercase();
    let norms: Vec<&str> = norm_rel_ebd.split('|').map(str::trim).collect();
    if let Some(found) = norms.iter().find(|norm| !["layer_norm", "none"].contains(norm)) {
        let known = &["layer_norm", "none"];
        return Err(ConfigProblem::Unknown { field: "norm_rel_ebd", found: (*found).to_owned(), known });
    }
    let farthest = match usize::try_from(deberta.max_relative_positions) {
        Ok(farthest) if farthest > 0 => size("max_relative_positions", farthest, MAX_CONTEXT)?,
        _ => max_len,
    };
    let buckets = match usize::try_from(deberta.position_buckets) {
        Ok(buckets) if buckets > 0 => Some(size("position_buckets", buckets, MAX_CONTEXT)?),
        _ => None,
    };
    // Distances from half the buckets on are counted by their logarithms, up to the farthest.
    if let Some(found) = buckets.filter(|&found| found < 2 || farthest <= found / 2 + 1) {
        let expected = format!("at least 2, and less than twice the greatest distance {farthest}");
        return Err(ConfigProblem::value("position_buckets", found, expected));
    }
    let has = |kind: &str| kinds.iter().any(|found| found == kind);
    Ok(EncoderSpec {
        family: "deberta-v2",
        d_model,
        n_heads: sizes.num_attention_heads,
        d_vocab: sizes.vocab_size,
        max_len,
        norm_eps: positive("layer_norm_eps", deberta.layer_norm_eps)?,
        norm_place: NormPlace::Post,
        activation: activation_named("hidden_act", &deberta.hidden_act)?,
        ropes: Vec::new(),
        embedding: EmbeddingSpec {
            words: table("word"),
            types: match deberta.type_vocab_size {
                0 => None,
                rows => {
                    let rows = size("type_vocab_size", rows, 1 << 16)?;
                    Some(TypesSpec { name: table("token_type"), rows, of_pairs: true })
                }
            },
            positions: deberta.position_biased_input.then(|| PositionsSpec {
                name: table("position"),
                rows: max_len,
                padding: None,
            }),
            norm: norm("embeddings", d_model),
        },
        relative: Some(RelativeSpec {
            table: "encoder.rel_embeddings.weight".to_owned(),
            norm: norms.contains(&"layer_norm").then(|| norm("encoder", d_model)),
            buckets,
            farthest,
            of_keys: has("c2p"),
            of_queries: has("p2c"),
        }),
        blocks: (0..sizes.num_hidden_layers).map(|index| block(index, &sizes, QKV)).collect(),
        final_norm: None,
        names: StoredNames { prefix: "deberta.", others: OTHERS, beside: &["classifier.", "pooler."] },
        head: None,
    })
}
