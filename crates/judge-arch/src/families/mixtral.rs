//! `mixtral`: Mixtral 8x7B and 8x22B, Prometheus 2 8x7B.
//!
//! A Mistral whose blocks all have experts: 8, of which a row meets 2, each as wide as
//! `intermediate_size`. transformers divides a softmax over all experts by the sum of the chosen
//! ones, which is a softmax over the chosen ones. There is no window by default.
//!
//! Tensors: `block_sparse_moe.gate` (the router) and `block_sparse_moe.experts.{e}.{w1, w3, w2}`,
//! which are gate, up and down. Noise on the router (`router_jitter_noise`) is for training alone.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::checks::window;
use crate::decoder_fields::DecoderFields;
use crate::experts::{Counts, ExpertNames, Sparse};
use crate::shape::Shape;
use crate::{ConfigProblem, Routing, Scores};

/// Fields of the family.
#[derive(Deserialize)]
struct Mixtral {
    #[serde(flatten)]
    shape: Shape,
    /// Numbers of experts; files have `num_local_experts`.
    #[serde(flatten)]
    counts: Counts,
    /// Window of every block; absent or null for none.
    sliding_window: Option<usize>,
}

/// Defaults where they differ from those of all families; the number of experts is in [`fields`].
pub(super) fn defaults() -> Value {
    json!({
        "intermediate_size": 14336, "num_key_value_heads": 8, "max_position_embeddings": 131_072, "rms_norm_eps": 1e-5,
        "rope_theta": 1e6, "num_experts_per_tok": 2
    })
}

/// Describes a Mixtral.
pub(super) fn fields(fields: Value) -> Result<DecoderFields, ConfigProblem> {
    let Mixtral { shape, counts, sliding_window } = serde_json::from_value(fields)?;
    let fields = shape.lower()?;
    let (n_experts, top_k) = counts.lower(8, fields.n_layers)?;
    let routing = Routing { top_k, scores: Scores::Softmax, among_chosen: true };
    let sparse = Sparse::everywhere(fields.n_layers, n_experts, fields.d_ff, routing, ExpertNames::MIXTRAL);
    Ok(DecoderFields { windows: vec![window(sliding_window)?; fields.n_layers], sparse: Some(sparse), ..fields })
}
