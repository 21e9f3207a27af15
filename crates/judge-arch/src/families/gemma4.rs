//! `gemma4_text`: Gemma 4 (E2B, E4B, 12B, 26B-A4B, 31B), published inside `gemma4` folders.
//!
//! Like Gemma 3 it norms around both halves of a block and per query and key head, scales
//! embeddings by `sqrt(d_model)` and has tanh-GELU and a tied head. What differs:
//!
//! - Norm weights are plain, without `1 + w`. Scores are not scaled.
//! - Full blocks have wider heads (`global_head_dim`) and turn a quarter of their pairs
//!   (`proportional`, base 1e6); blocks with a window turn whole heads (base 1e4). The last block
//!   is always full.
//! - Values are normed per head, without a weight.
//! - With `attention_k_eq_v` full blocks have no `v_proj`: values are keys before norm and
//!   rotation.
//! - The last `num_kv_shared_layers` blocks project queries alone and use the keys and values of
//!   the last block of their kind that has own ones; with `use_double_wide_mlp` their MLPs are
//!   twice as wide.
//! - E models add numbers for each token to each block (`TokenInputsSpec` in `spec.rs`).
//! - 26B-A4B has experts beside the MLP (`BothSpec` in `spec/mlp.rs`).
//! - A stored number, `layer_scalar`, multiplies what leaves a block.
//!
//! ```text
//! x ─ attention half ─ MLP half (+ experts beside it) ─ token gate ─ · layer_scalar ─►
//! ```
//!
//! Tensors besides Gemma 3's: `layers.N.{layer_scalar, per_layer_input_gate, per_layer_projection,
//! post_per_layer_input_norm}`, `router.{proj, scale, per_expert_scale}`,
//! `experts.{gate_up,down}_proj`, `{pre,post}_feedforward_layernorm_2`,
//! `post_feedforward_layernorm_1`, and `model.{embed_tokens_per_layer, per_layer_model_projection,
//! per_layer_projection_norm}`. Projections of keys that published files have in sharing blocks are
//! passed over.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::checks::{positive, size, window, windows};
use crate::decoder_fields::{BlockNorms, DecoderFields, Otherwise, QkNorm};
use crate::experts::{ExpertNames, Sparse, count};
use crate::rope::RopesByKind;
use crate::shape::Shape;
use crate::spec::{EmbeddingScale, HeadShape, KeysSpec};
use crate::{ConfigProblem, Routing, Scores};

/// The family's own fields; [`Shape`] is read from the same object.
#[derive(Deserialize)]
struct Gemma4 {
    /// Biases of all projections of attention.
    attention_bias: bool,
    /// Width of windows; needed.
    sliding_window: Option<usize>,
    /// Kinds of the blocks; without it every 6th is full.
    layer_types: Option<Vec<String>>,
    /// Soft cap of logits; published files have 30.
    final_logit_softcapping: Option<f64>,
    /// `vision` concerns pictures alone; anything else is refused.
    use_bidirectional_attention: Option<String>,
    /// Width of heads in full blocks, where `per_layer_config` is absent.
    global_head_dim: usize,
    /// Key heads of full blocks; counts only with `attention_k_eq_v`, as in transformers.
    num_global_key_value_heads: Option<usize>,
    /// Heads by number of the layer, in decimal; files that transformers 5.23 wrote have it.
    per_layer_config: Option<BTreeMap<String, HeadsOfLayer>>,
    /// Whether values of full blocks are their keys before norm and rotation.
    attention_k_eq_v: bool,
    /// Blocks at the end that use keys and values of others.
    num_kv_shared_layers: usize,
    /// Whether MLPs of those blocks are twice as wide.
    use_double_wide_mlp: bool,
    /// Numbers per token and block; null or 0 for none.
    hidden_size_per_layer_input: Option<usize>,
    /// Rows of their table; at least `vocab_size`.
    vocab_size_per_layer_input: usize,
    /// Whether all blocks have experts beside their MLP. The next three are needed then.
    enable_moe_block: bool,
    /// Experts of a block.
    num_experts: Option<usize>,
    /// Experts of a row.
    top_k_experts: Option<usize>,
    /// Width inside an expert.
    moe_intermediate_size: Option<usize>,
}

/// What `per_layer_config` says of a layer, in the place of `global_head_dim`. An unknown field is
/// an error here, because the search for unread fields does not look inside.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct HeadsOfLayer {
    /// Width of heads; `None`: that of the model.
    head_dim: Option<usize>,
    /// Key heads; `None`: those of the model.
    num_key_value_heads: Option<usize>,
}

/// Defaults of transformers 5.23, but for the rope fields.
pub(super) fn defaults() -> Value {
    json!({
        "vocab_size": 262_144, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 30,
        "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "max_position_embeddings": 131_072,
        "tie_word_embeddings": true, "eos_token_id": 1, "hidden_activation": "gelu_pytorch_tanh", "attention_bias": false,
        "sliding_window": 512, "global_head_dim": 512, "attention_k_eq_v": false, "num_kv_shared_layers": 0,
        "use_double_wide_mlp": false, "hidden_size_per_layer_input": 256, "vocab_size_per_layer_input": 262_144,
        "enable_moe_block": false
    })
}

/// `rope_parameters` where the file has none.
fn default_ropes() -> Value {
    json!({
        "full_attention": { "rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1e6 },
        "sliding_attention": { "rope_type": "default", "rope_theta": 1e4 }
    })
}

/// Describes a Gemma 4.
pub(super) fn fields(fields: Value) -> Result<DecoderFields, ConfigProblem> {
    let (mut shape, gemma) = (Shape::deserialize(&fields)?, Gemma4::deserialize(&fields)?);
    if let Some(sides) = gemma.use_bidirectional_attention.as_deref().filter(|&sides| sides != "vision") {
        // `vision` is accepted because pictures are not read.
        return Err(ConfigProblem::Unsupported { field: "use_bidirectional_attention", found: sides.to_owned() });
    }
    // Rope fields of older layouts, which transformers does not read in this family.
    for (field, is_there) in
        [("rope_scaling", shape.rope_scaling.is_some()), ("rope_theta", shape.rope_theta.is_some())]
    {
        if is_there {
            let found = fields[field].to_string();
            return Err(ConfigProblem::Unsupported { field, found });
        }
    }
    let parameters = match shape.rope_parameters.take() {
        Some(parameters) => parameters,
        None => serde_json::from_value(default_ropes())?,
    };
    let fields = gemma.lower(shape)?;
    let has_window = fields.windows.iter().any(Option::is_some);
    let missing = match (&parameters.full_attention, &parameters.sliding_attention) {
        (None, _) => Some("full_attention"),
        (_, None) if has_window => Some("sliding_attention"),
        _ => None,
    };
    if let Some(needed_by) = missing {
        return Err(ConfigProblem::Missing { field: "rope_parameters", needed_by });
    }
    fields.with_ropes(RopesByKind::new(Some(parameters), None, [1e6, 1e4])?, true)
}

impl Gemma4 {
    /// Everything but the rotations.
    fn lower(mut self, shape: Shape) -> Result<DecoderFields, ConfigProblem> {
        let cap = self.final_logit_softcapping.map(|cap| positive("final_logit_softcapping", cap)).transpose()?;
        let fields = shape.lower()?;
        let n_layers = fields.n_layers;
        let sliding = window(self.sliding_window)?;
        if sliding.is_none() {
            return Err(ConfigProblem::Missing { field: "sliding_window", needed_by: "gemma4_text" });
        }
        let mut windows = windows(self.layer_types.take(), sliding, n_layers, |layer| !(layer + 1).is_multiple_of(6))?;
        // transformers makes the last block full whatever the file says.
        if let Some(last) = windows.last_mut() {
            *last = None;
        }
        let otherwise = self.otherwise(&fields, &windows)?;
        Ok(DecoderFields {
            otherwise,
            norms_values: true,
            block_scalar: true,
            token_inputs: self.token_inputs(&fields)?,
            sparse: self.sparse(&fields)?,
            windows,
            attention_scale: 1.0,
            final_soft_cap: cap,
            embedding_scale: Some(EmbeddingScale::Rounded((fields.d_model as f64).sqrt())),
            norms: BlockNorms::AROUND,
            qk_norm: QkNorm::PerHead,
            qkv_bias: self.attention_bias,
            o_bias: self.attention_bias,
            ..fields
        })
    }

    /// Heads, keys and width of the MLP of every block, given their windows.
    ///
    /// All blocks of a kind must have the same heads: there is one rotation per kind, and keys are
    /// shared within a kind.
    fn otherwise(
        &self,
        fields: &DecoderFields,
        windows: &[Option<usize>],
    ) -> Result<BTreeMap<usize, Otherwise>, ConfigProblem> {
        let is_other = |key: &&String| !key.parse::<usize>().is_ok_and(|index| index < fields.n_layers);
        if let Some(found) = self.per_layer_config.iter().flat_map(BTreeMap::keys).find(is_other) {
            let expected = format!("numbers of layers, below {}", fields.n_layers);
            return Err(ConfigProblem::value("per_layer_config", found, expected));
        }
        let n_own = self.n_own(fields.n_layers)?;
        let mut all: BTreeMap<usize, Otherwise> = BTreeMap::new();
        for (index, window) in windows.iter().enumerate() {
            let heads = self.heads(index, window.is_none(), fields)?;
            let alike = |other: usize| windows[other].is_some() == window.is_some();
            // The first block of its kind stands for all.
            let first = (0..index).find(|&other| alike(other)).and_then(|first| all.get(&first));
            if first.is_some_and(|first| first.heads != heads) {
                let found = format!("layer {index} unlike those of its kind");
                return Err(ConfigProblem::Unsupported { field: "per_layer_config", found });
            }
            let is_sharing = index >= n_own;
            let keys = match is_sharing {
                true => (0..n_own).rfind(|&other| alike(other)).map(KeysSpec::Of).ok_or_else(|| {
                    let expected = format!("fewer, so that there are keys for layer {index}");
                    ConfigProblem::value("num_kv_shared_layers", self.num_kv_shared_layers, expected)
                })?,
                false if self.attention_k_eq_v && window.is_none() => KeysSpec::AsValues,
                false => KeysSpec::Own,
            };
            let d_ff = if self.use_double_wide_mlp && is_sharing { 2 * fields.d_ff } else { fields.d_ff };
            all.insert(index, Otherwise { heads, keys, d_ff });
        }
        Ok(all)
    }

    /// Number of blocks that project keys themselves; they come first.
    fn n_own(&self, n_layers: usize) -> Result<usize, ConfigProblem> {
        n_layers.checked_sub(self.num_kv_shared_layers).ok_or_else(|| {
            let expected = format!("fewer than num_hidden_layers {n_layers}");
            ConfigProblem::value("num_kv_shared_layers", self.num_kv_shared_layers, expected)
        })
    }

    /// The heads of block `index`, of which `is_full` says whether it has no window.
    fn heads(&self, index: usize, is_full: bool, fields: &DecoderFields) -> Result<HeadShape, ConfigProblem> {
        let own = match &self.per_layer_config {
            Some(layers) => layers.get(&index.to_string()).copied().unwrap_or_default(),
            None if is_full => HeadsOfLayer {
                head_dim: Some(self.global_head_dim),
                // Only with `attention_k_eq_v`, as in transformers.
                num_key_value_heads: self.num_global_key_value_heads.filter(|_| self.attention_k_eq_v),
            },
            None => HeadsOfLayer::default(),
        };
        let n_heads = fields.n_heads;
        let n_kv_heads =
            size("num_global_key_value_heads", own.num_key_value_heads.unwrap_or(fields.n_kv_heads), n_heads)?;
        if !n_heads.is_multiple_of(n_kv_heads) {
            let expected = format!("a divisor of num_attention_heads {n_heads}");
            return Err(ConfigProblem::value("num_global_key_value_heads", n_kv_heads, expected));
        }
        let head_dim = size("global_head_dim", own.head_dim.unwrap_or(fields.head_dim), 1 << 16)?;
        Ok(HeadShape { n_heads, n_kv_heads, head_dim })
    }

    /// Width of what each block gets of a token and rows of its table, if the model has that.
    fn token_inputs(&self, fields: &DecoderFields) -> Result<Option<(usize, usize)>, ConfigProblem> {
        let Some(width) = self.hidden_size_per_layer_input.filter(|&width| width > 0) else { return Ok(None) };
        let width = size("hidden_size_per_layer_input", width, 1 << 16)?;
        let rows = size("vocab_size_per_layer_input", self.vocab_size_per_layer_input, 1 << 26)?;
        if rows < fields.d_vocab {
            let expected = format!("at least vocab_size {}", fields.d_vocab);
            return Err(ConfigProblem::value("vocab_size_per_layer_input", rows, expected));
        }
        Ok(Some((width, rows)))
    }

    /// The experts of all blocks, if there are any.
    fn sparse(&self, fields: &DecoderFields) -> Result<Option<Sparse>, ConfigProblem> {
        if !self.enable_moe_block {
            return Ok(None);
        }
        let needed =
            |field, found: Option<usize>| found.ok_or(ConfigProblem::Missing { field, needed_by: "enable_moe_block" });
        let n_experts = count("num_experts", needed("num_experts", self.num_experts)?, fields.n_layers)?;
        let top_k = size("top_k_experts", needed("top_k_experts", self.top_k_experts)?, n_experts)?;
        let d_expert = needed("moe_intermediate_size", self.moe_intermediate_size)?;
        let d_expert = size("moe_intermediate_size", d_expert, 1 << 22)?;
        // The family divides a softmax over all experts by the sum of the chosen ones, which is a
        // softmax over the chosen ones.
        let routing = Routing { top_k, scores: Scores::Softmax, among_chosen: true };
        Ok(Some(Sparse::everywhere(fields.n_layers, n_experts, d_expert, routing, ExpertNames::GEMMA4)))
    }
}

#[cfg(test)]
mod tests;
