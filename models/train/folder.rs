//! The files of the model folder beside its weights.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use judge_core::{Prompt, PromptTemplate};
use serde_json::{Value, json};
use tiny_judge::planted::RUBRIC;
use tokenizers::Tokenizer;

use crate::tokenizer::END;

/// Size of the vocabulary.
pub(crate) const D_VOCAB: usize = 1024;
/// Training items that the tokenizer learns from.
pub(crate) const TOKENIZER_ITEMS: usize = 20_000;

/// How a conversation is rendered: each turn between the marker of its role and the end marker.
const CHAT_TEMPLATE: &str = "{%- for message in messages -%}
{{- '<|' + message['role'] + '|>' + message['content'] + '<|end|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}
";

/// What the judge is asked: the text of [`tiny_judge::planted::prompt`]. Rows need not bring a rubric.
pub(crate) fn judge_template() -> Result<PromptTemplate> {
    let template = PromptTemplate::new(Prompt::user("Question: {instruction}\nAnswer: {response}\n{rubric}"))?;
    Ok(template.with_default("rubric", RUBRIC)?)
}

/// What the decoder looks like.
pub(crate) fn config() -> Value {
    json!({
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "vocab_size": D_VOCAB,
        "hidden_size": 128,
        "intermediate_size": 352,
        "num_hidden_layers": 6,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "head_dim": 32,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "rope_theta": 500.0,
        "max_position_embeddings": 512,
        "attention_bias": false,
        "use_sliding_window": false,
        "tie_word_embeddings": true,
        "eos_token_id": 0,
        "pad_token_id": 0,
        "torch_dtype": "bfloat16"
    })
}

/// Writes everything but the weights and the model card.
pub(crate) fn write(out: &Path, tokenizer: &Tokenizer) -> Result<()> {
    let tokenizer_config = json!({
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": null,
        "eos_token": END,
        "pad_token": END,
        "model_max_length": 512,
        "clean_up_tokenization_spaces": false
    });
    let generation_config = json!({ "do_sample": false, "eos_token_id": 0, "pad_token_id": 0 });
    let judge_template = serde_json::to_value(judge_template()?)?;
    for (name, content) in [
        ("judge_template.json", judge_template),
        ("config.json", config()),
        ("tokenizer_config.json", tokenizer_config),
        ("generation_config.json", generation_config),
    ] {
        let text = serde_json::to_string_pretty(&content)? + "\n";
        fs::write(out.join(name), text).with_context(|| format!("cannot write {name}"))?;
    }
    fs::write(out.join("chat_template.jinja"), CHAT_TEMPLATE).context("cannot write chat_template.jinja")?;
    tokenizer.save(out.join("tokenizer.json"), true).map_err(anyhow::Error::from_boxed)
}
