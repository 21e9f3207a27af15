//! `qwen2`: Qwen2, Qwen2.5, QwQ and DeepSeek-R1 distilled into them. `qwen3`: Qwen3, its rerankers
//! and embedding models, and the text model inside `qwen3_vl` folders.
//!
//! Both are Llamas in norms, rotation, MLP and tensor names, apart from:
//!
//! | | `qwen2` | `qwen3` |
//! |---|---|---|
//! | biases of q, k, v | always | by `attention_bias`, off by default |
//! | bias of o | never | by `attention_bias` |
//! | norms of query and key heads | none | per head, before the rotation: `self_attn.{q,k}_norm` |
//! | `head_dim` | `hidden_size / num_attention_heads` | 128 unless stated |
//!
//! Windows exist only with `use_sliding_window`: in layers that `layer_types` names, else from
//! block `max_window_layers` on.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::ConfigProblem;
use crate::checks::{window, windows};
use crate::decoder_fields::{DecoderFields, QkNorm};
use crate::shape::Shape;

/// Fields of both families.
#[derive(Deserialize)]
struct Qwen {
    #[serde(flatten)]
    shape: Shape,
    /// Biases of attention in Qwen3. Qwen2 has a fixed answer and no such field.
    attention_bias: Option<bool>,
    /// Whether `sliding_window` counts.
    use_sliding_window: bool,
    /// Width of windows.
    sliding_window: Option<usize>,
    /// Blocks below this index see everything, where `layer_types` is absent.
    max_window_layers: usize,
    /// Kinds of the blocks.
    layer_types: Option<Vec<String>>,
}

/// Defaults of Qwen2 where they differ from those of all families.
pub(super) fn defaults_of_2() -> Value {
    json!({
        "vocab_size": 151_936, "intermediate_size": 22016, "num_key_value_heads": 32, "eos_token_id": null,
        "use_sliding_window": false, "sliding_window": 4096, "max_window_layers": 28, "head_dim": null
    })
}

/// Defaults of Qwen3: those of Qwen2 with a width of heads.
pub(super) fn defaults_of_3() -> Value {
    let mut all = defaults_of_2();
    all["head_dim"] = 128.into();
    all
}

/// Describes a Qwen2.
pub(super) fn qwen2(fields: Value) -> Result<DecoderFields, ConfigProblem> {
    let fields = serde_json::from_value::<Qwen>(fields)?.lower()?;
    Ok(DecoderFields { qkv_bias: true, ..fields })
}

/// Describes a Qwen3.
pub(super) fn qwen3(fields: Value) -> Result<DecoderFields, ConfigProblem> {
    let qwen: Qwen = serde_json::from_value(fields)?;
    let bias = qwen.attention_bias.unwrap_or(false);
    Ok(DecoderFields { qkv_bias: bias, o_bias: bias, qk_norm: QkNorm::PerHead, ..qwen.lower()? })
}

impl Qwen {
    /// What both families share: a Llama with windows.
    fn lower(self) -> Result<DecoderFields, ConfigProblem> {
        let mut config = self.shape.lower()?;
        let sliding = if self.use_sliding_window { window(self.sliding_window)? } else { None };
        config.windows = windows(self.layer_types, sliding, config.n_layers, |layer| layer >= self.max_window_layers)?;
        Ok(config)
    }
}
