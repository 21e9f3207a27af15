//! Granite 3: a Llama with four factors of its own. Granite 4 without Mamba layers and experts: the same with other names, in a family of hybrids.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::arch::ConfigProblem;
use crate::arch::dense::{Dense, GateUp, MlpNames};
use crate::arch::shape::{Shape, by_layer_type, divisor, factor, size};
use crate::arch::spec::EmbeddingScale;

#[derive(Deserialize)]
struct Granite {
    #[serde(flatten)]
    shape: Shape,
    hidden_act: String,
    attention_bias: bool,
    mlp_bias: bool,
    embedding_multiplier: f64,
    attention_multiplier: f64,
    residual_multiplier: f64,
    logits_scaling: f64,
}

#[derive(Deserialize)]
struct Hybrid {
    #[serde(flatten)]
    granite: Granite,
    shared_intermediate_size: usize,
    num_local_experts: Option<usize>,
    #[expect(dead_code, reason = "it counts where there are experts; a field that is read is not warned of")]
    num_experts_per_tok: Option<usize>,
    layer_types: Option<Vec<String>>,
    /// Anything but `rope`: positions do not enter.
    position_embedding_type: Option<String>,
}

pub(super) fn defaults() -> Value {
    json!({
        "max_position_embeddings": 2048, "attention_bias": false, "mlp_bias": false, "embedding_multiplier": 1.0,
        "attention_multiplier": 1.0, "residual_multiplier": 1.0, "logits_scaling": 1.0
    })
}

pub(super) fn dense(fields: Value) -> Result<Dense, ConfigProblem> {
    serde_json::from_value::<Granite>(fields)?.lower("granite")
}

impl Granite {
    fn lower(self, family: &'static str) -> Result<Dense, ConfigProblem> {
        let dense = self.shape.lower(family, "hidden_act", &self.hidden_act)?;
        Ok(Dense {
            qkv_bias: self.attention_bias,
            o_bias: self.attention_bias,
            mlp_bias: self.mlp_bias,
            embedding_scale: factor("embedding_multiplier", self.embedding_multiplier)?.map(EmbeddingScale::Exact),
            attention_scale: factor("attention_multiplier", self.attention_multiplier)?.unwrap_or(1.0),
            residual_scale: factor("residual_multiplier", self.residual_multiplier)?,
            logit_scale: divisor("logits_scaling", self.logits_scaling)?.map(f64::recip),
            ..dense
        })
    }
}

/// In a file of hybrids the MLP that all tokens share is the only one where there are no experts, and `intermediate_size` is nobody's.
const SHARED_MLP: MlpNames =
    MlpNames { gate_up: GateUp::Fused("shared_mlp.input_linear"), down: "shared_mlp.output_linear" };

pub(super) fn defaults_of_hybrid() -> Value {
    let mut all = defaults();
    all["shared_intermediate_size"] = 1024.into();
    all["num_local_experts"] = 8.into();
    all
}

/// # Errors
/// [`ConfigProblem`] for experts, for Mamba layers, which is what all layers are where the file does not list them, and for positions that are neither
/// rotations nor nothing.
pub(super) fn hybrid(fields: Value) -> Result<Dense, ConfigProblem> {
    let Hybrid { granite, shared_intermediate_size, num_local_experts, layer_types, position_embedding_type, .. } =
        serde_json::from_value(fields)?;
    if let Some(experts) = num_local_experts.filter(|&experts| experts > 0) {
        let expected = "0: Granite 4 with experts is not supported".to_owned();
        return Err(ConfigProblem::Value { field: "num_local_experts", found: experts.to_string(), expected });
    }
    let dense = Granite { mlp_bias: false, ..granite }.lower("granitemoehybrid")?;
    let n_layers = dense.n_layers;
    let types = layer_types.unwrap_or_else(|| vec!["mamba".to_owned(); n_layers]);
    // transformers has renamed them.
    let types: Vec<String> =
        types.into_iter().map(|kind| if kind == "attention" { "full_attention".to_owned() } else { kind }).collect();
    let windows = by_layer_type(&types, None, n_layers)?;
    let rope_of = match position_embedding_type.as_deref() {
        Some("rope") => dense.rope_of,
        None | Some("nope") => vec![None; n_layers],
        Some(other) => {
            let (found, known) = (other.to_owned(), &["rope", "nope"]);
            return Err(ConfigProblem::Unknown { field: "position_embedding_type", found, known });
        }
    };
    let d_ff = size("shared_intermediate_size", shared_intermediate_size, 1 << 22)?;
    Ok(Dense { windows, rope_of, d_ff, mlp: SHARED_MLP, ..dense })
}
