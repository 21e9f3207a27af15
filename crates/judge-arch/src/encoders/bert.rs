//! BERT, RoBERTa and XLM-RoBERTa, and the many embedding models published as one of them.
//!
//! - Tables of tokens, positions and types are summed and normed (LayerNorm).
//! - Norms after both halves of a block; biases everywhere; an ungated MLP; no rotation and no
//!   windows.
//! - BERT counts positions from 0. Both RoBERTas count them from the row after the padding token's
//!   number, so that 512 of 514 rows are used with `pad_token_id` 1.
//! - Tensors are under `bert.` or `roberta.` in classes with a head (XLM-RoBERTa's too), and older
//!   files call the parameters of norms `gamma` and `beta`.

use judge_core::request::TokenId;
use serde::Deserialize;
use serde_json::{Value, json};

use super::sizes::Sizes;
use crate::ConfigProblem;
use crate::checks::{must_be_off, positive, size};
use crate::encoder::{EmbeddingSpec, EncoderBlockSpec, EncoderSpec, NormPlace, PositionsSpec, StoredNames, TypesSpec};
use crate::shape::activation_named;
use crate::spec::{LinearSpec, NormSpec};

/// The fields of all three.
#[derive(Deserialize)]
struct Bert {
    /// The sizes of all encoders.
    #[serde(flatten)]
    sizes: Sizes,
    /// The function inside the MLP.
    hidden_act: String,
    /// Rows of the table of types.
    type_vocab_size: usize,
    /// Epsilon of all norms.
    layer_norm_eps: f64,
    /// `absolute` or absent; relative positions are refused.
    position_embedding_type: Option<String>,
    /// RoBERTa: determines the first position.
    pad_token_id: Option<TokenId>,
    /// Causal use, which is refused.
    is_decoder: Option<bool>,
}

/// Heads over masked words, pairs of sentences, labels and spans; the pooler that some of them
/// share; and a buffer of position numbers.
const OTHERS: &[&str] = &["cls.", "classifier.", "embeddings.position_ids", "lm_head.", "pooler.", "qa_outputs."];

/// Names of queries, keys and values in a block.
const QKV: [&str; 3] = ["attention.self.query", "attention.self.key", "attention.self.value"];

/// Of a classifier: BERT's pooler is within the model, and RoBERTa's head is all under this name.
const BESIDE: &[&str] = &["classifier."];

/// Defaults of transformers 5.23: the base models of BERT, uncased, and of RoBERTa. XLM-RoBERTa has those of RoBERTa, and every
/// file of it states its own vocabulary.
pub(super) fn defaults(vocab_size: usize, pad_token_id: TokenId) -> Value {
    json!({
        "vocab_size": vocab_size, "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
        "num_attention_heads": 12, "hidden_act": "gelu", "max_position_embeddings": 512, "type_vocab_size": 2,
        "layer_norm_eps": 1e-12, "pad_token_id": pad_token_id
    })
}

/// Describes a BERT, a RoBERTa or an XLM-RoBERTa. `prefix` is what classes with a head put before names, RoBERTa's in
/// XLM-RoBERTa too; `counts_behind_padding` is true for both RoBERTas.
///
/// # Errors
/// [`ConfigProblem`] for sizes out of range, causal use, relative positions, and a padding
/// token that is missing where positions are counted from it or leaves none of them.
pub(super) fn spec(
    fields: Value,
    family: &'static str,
    prefix: &'static str,
    counts_behind_padding: bool,
) -> Result<EncoderSpec, ConfigProblem> {
    let bert: Bert = serde_json::from_value(fields)?;
    must_be_off("is_decoder", bert.is_decoder == Some(true))?;
    if let Some(found) = bert.position_embedding_type.filter(|found| found != "absolute") {
        return Err(ConfigProblem::Unsupported { field: "position_embedding_type", found });
    }
    let sizes = bert.sizes.check()?;
    let (d_model, positions) = (sizes.hidden_size, sizes.max_position_embeddings);
    let types = size("type_vocab_size", bert.type_vocab_size, 1 << 16)?;
    let padding = match (counts_behind_padding, bert.pad_token_id) {
        (false, _) => None,
        (true, Some(padding)) => Some(padding),
        (true, None) => return Err(ConfigProblem::Missing { field: "pad_token_id", needed_by: family }),
    };
    let before = padding.map_or(0, |padding| padding as usize + 1);
    let Some(max_len) = positions.checked_sub(before).filter(|&len| len > 0) else {
        let expected = format!("more than {before}, the positions that are not used");
        return Err(ConfigProblem::value("max_position_embeddings", positions, expected));
    };
    Ok(EncoderSpec {
        family,
        d_model,
        n_heads: sizes.num_attention_heads,
        d_vocab: sizes.vocab_size,
        max_len,
        norm_eps: positive("layer_norm_eps", bert.layer_norm_eps)?,
        norm_place: NormPlace::Post,
        activation: activation_named("hidden_act", &bert.hidden_act)?,
        ropes: Vec::new(),
        embedding: EmbeddingSpec {
            words: table("word"),
            types: Some(TypesSpec { name: table("token_type"), rows: types, of_pairs: !counts_behind_padding }),
            positions: Some(PositionsSpec { name: table("position"), rows: positions, padding }),
            norm: norm("embeddings", d_model),
        },
        blocks: (0..sizes.num_hidden_layers).map(|index| block(index, &sizes, QKV)).collect(),
        relative: None,
        final_norm: None,
        names: StoredNames { prefix, others: OTHERS, beside: BESIDE },
        head: None,
    })
}

/// Full name of the table of words, types or positions.
pub(super) fn table(of: &str) -> String {
    format!("embeddings.{of}_embeddings.weight")
}

/// The norm of a part: `{of}.LayerNorm`, with a bias.
pub(super) fn norm(of: &str, d_model: usize) -> NormSpec {
    NormSpec::plain(&format!("{of}.LayerNorm"), d_model, true)
}

/// Describes block `index`, of DeBERTa too. Queries, keys and values are separate tensors; `qkv` are their names below the block's.
pub(super) fn block(index: usize, sizes: &Sizes, qkv: [&str; 3]) -> EncoderBlockSpec {
    let (d_model, d_ff) = (sizes.hidden_size, sizes.intermediate_size);
    let stem = |name: &str| format!("encoder.layer.{index}.{name}");
    let linear = |names: &[&str], rows: usize, d_in: usize| {
        LinearSpec::plain(names.iter().map(|name| (stem(name), rows)).collect(), d_in, true)
    };
    EncoderBlockSpec {
        window: None,
        rope: None,
        attention_norm: Some(norm(&stem("attention.output"), d_model)),
        qkv: linear(&qkv, d_model, d_model),
        out: linear(&["attention.output.dense"], d_model, d_model),
        mlp_norm: norm(&stem("output"), d_model),
        up: linear(&["intermediate.dense"], d_ff, d_model),
        down: linear(&["output.dense"], d_model, d_ff),
    }
}
