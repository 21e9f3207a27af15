//! Finds fields of `config.json` that nothing here reads: one of them may change what the model
//! computes.
//!
//! There is no list of the fields that families read, which could fall behind their code. Instead
//! each field in turn is given a value that no field can have. If the file is refused, something
//! read the field; if it is still accepted, nothing did:
//!
//! ```text
//! for each field: null, false and in OFF, or in HARMLESS?  ─► skip
//!                 file with that field impossible, still accepted?  ─► unread
//!                 else, is it an object of rope fields?  ─► the same for each field inside
//! ```
//!
//! The result is a warning and not an error, because files carry many fields of training and of the
//! programs that run models. [`HARMLESS`] and [`OFF`] keep known ones of these out of the warning;
//! add a field there only if it changes no state and no logit in any family. `architecture.rs` and
//! `encoders.rs` are the callers.

use serde_json::{Map, Value, json};

use super::ConfigProblem;

/// The top level of a `config.json`.
type File = Map<String, Value>;

/// Fields that are accepted in a file and in an object of rope fields; more is a damaged file. Each
/// is tried alone, so the work grows with the square of their number.
const MOST: usize = 1000;

/// Objects inside a file whose fields are tried like the file's own.
const ROPES: [&str; 2] = ["rope_scaling", "rope_parameters"];

/// Fields that change no number of a forward pass in any family.
#[rustfmt::skip]
const HARMLESS: &[&str] = &[
    // What the file is of, and what wrote it.
    "_name_or_path", "architectures", "auto_map", "dtype", "is_llama_config", "model_name", "model_type",
    "tokenizer_class", "torch_dtype", "transformers.js_config", "transformers_version", "unsloth_fixed",
    "unsloth_version",
    // How a program runs it.
    "_attn_implementation", "_attn_implementation_autoset", "_attn_implementation_internal", "attn_implementation",
    "cache_implementation", "chunk_size_feed_forward", "output_attentions", "output_hidden_states", "pretraining_tp",
    "return_dict", "torchscript", "use_bfloat16", "use_cache", "use_parallel_embedding",
    // Training.
    "attention_dropout", "attn_pdrop", "classifier_dropout", "dropout", "embd_pdrop", "block_mlp_init_scale",
    "block_out_init_scale", "block_use_xavier_init", "conv_use_xavier_init", "hidden_dropout", "initializer_range",
    "mlp_dropout", "resid_pdrop", "init_method", "output_router_logits", "router_aux_loss_coef", "router_jitter_noise",
    // Tokens with a name; `eos_token_id` is read.
    "bos_token_id", "cls_token_id", "decoder_start_token_id", "mask_token_id", "pad_token_id", "sep_token_id",
    "unk_token_id",
    // The head of a classifier is read in `head`, and `judge-models` reads what sentence-transformers says of a cross-encoder's. Pruned
    // heads change shapes, which are compared with the file's.
    "_num_labels", "head_multi", "head_type", "id2label", "label2id", "num_choices", "num_labels", "problem_type",
    "pruned_heads", "sbert_ce_default_activation_function", "sentence_transformers", "start_layer",
    // Old files repeat settings of text generation.
    "bad_words_ids", "do_sample", "length_penalty", "max_length", "min_length", "no_repeat_ngram_size", "num_beams",
    "num_return_sequences", "repetition_penalty", "temperature", "top_k", "top_p",
    // `weights` reads how weights are quantised, and refuses what it does not know.
    "compression_config", "quantization_config",
    // Of heads of GPT-2 that are not read here, what its eager attention does in half precision, and
    // the context by its other name.
    "n_ctx", "reorder_and_upcast_attn", "summary_activation", "summary_first_dropout", "summary_last_dropout",
    "summary_proj_to_labels", "summary_type", "summary_use_proj", "task_specific_params",
    // How programs cut the scan of a state space, what its cache is made of, and how it is initialised.
    "chunk_size", "expand", "mamba_chunk_size", "mamba_ssm_cache_dtype", "mlp_expansion_factor", "num_logits_to_keep",
    "rescale_prenorm_residual", "residual_in_fp32", "time_step_floor", "time_step_max", "time_step_min",
    "use_mamba_kernels",
    // Granite 4 names its norms here; transformers does not read it.
    "normalization_function",
    // Of a head that predicts further tokens, and of the dtype of recurrent states, which are f32
    // here.
    "mamba_ssm_dtype", "moe_shared_expert_overlap", "mtp_layers_block_type", "mtp_num_hidden_layers",
    "mtp_use_dedicated_embeddings", "n_shared_experts", "num_nextn_predict_layers",
    // Repeat what `layer_types` says, or what the families that need them read. Phi-4-mini has two
    // fields and gpt-oss two that transformers does not read. `layer_types` itself is not here:
    // programs that read it in every family give blocks windows by it.
    "_sliding_window_pattern", "experts_per_token", "full_attn_mod", "initial_context_length", "interpolate_factor",
    "max_window_layers", "sliding_window_pattern", "sliding_window_size",
];

/// Fields that are harmless where they are `false`.
#[rustfmt::skip]
const OFF: &[&str] = &[
    "add_cross_attention", "attention_bias", "is_decoder", "is_encoder_decoder", "lm_head_bias", "mamba_proj_bias",
    "mlp_bias", "rope_interleaved", "tie_encoder_decoder", "use_bidirectional_attention", "use_mrope", "use_qk_norm",
    "use_sliding_window",
];

/// Rope fields that are harmless. The first two divide a head's coordinates among the axes of a
/// picture; in a text all axes have one position. The third repeats a field beside the rope fields,
/// which is read.
const HARMLESS_OF_ROPE: &[&str] = &["mrope_interleaved", "mrope_section", "max_position_embeddings"];

/// Bounds the number of fields, so that trying each of them ends soon. Called before
/// [`unread_keys`].
///
/// # Errors
/// [`ConfigProblem::Value`] for more than [`MOST`] fields.
pub(super) fn check_number(file: &File) -> Result<(), ConfigProblem> {
    let ropes = ROPES.map(|name| Some((name, file.get(name)?.as_object()?.len())));
    for (field, number) in ropes.into_iter().flatten().chain([("config.json", file.len())]) {
        if number > MOST {
            let (found, expected) = (format!("an object of {number} fields"), format!("at most {MOST}"));
            return Err(ConfigProblem::value(field, found, expected));
        }
    }
    Ok(())
}

/// Names of the fields that are neither read nor known to be harmless, in the order of the file;
/// rope fields as `rope_scaling.name`.
///
/// `reads` says whether a file is accepted. Fields that are `null` say nothing and are never named.
/// Of a file that is refused as it is, all fields count as read.
pub(super) fn unread_keys(file: &File, reads: &dyn Fn(&File) -> bool) -> Vec<String> {
    let mut unread = Vec::new();
    for (name, value) in file {
        let is_off = *value == Value::Bool(false) && OFF.contains(&name.as_str());
        // Gemma names its function twice, and each of its families reads one of the names.
        let is_second = name == "hidden_act" && file.contains_key("hidden_activation")
            || name == "hidden_activation" && file.contains_key("hidden_act");
        // The epsilon of norms a second time, where the family reads another name for it.
        let is_own = |own: &String| own != name && (own.ends_with("norm_eps") || own.ends_with("norm_epsilon"));
        let is_repeated = name == "rms_norm_eps"
            && file.iter().any(|(own, read)| {
                is_own(own) && read == value && !is_ignored(file, reads, |file| file.insert(own.clone(), impossible()))
            });
        if value.is_null() || is_off || is_second || is_repeated || HARMLESS.contains(&name.as_str()) {
            continue;
        }
        if is_ignored(file, reads, |file| file.insert(name.clone(), impossible())) {
            unread.push(name.clone());
        } else if let (true, Some(fields)) = (ROPES.contains(&name.as_str()), value.as_object()) {
            let ignored = fields.iter().filter(|(field, value)| {
                !value.is_null()
                    && !HARMLESS_OF_ROPE.contains(&field.as_str())
                    && is_ignored(file, reads, |file| {
                        file.get_mut(name)?.as_object_mut()?.insert((*field).clone(), impossible())
                    })
            });
            unread.extend(ignored.map(|(field, _)| format!("{name}.{field}")));
        }
    }
    unread
}

/// Warns of unread fields in a file of `family`, if there are any.
pub(super) fn warn(family: &str, unread: &[String]) {
    if !unread.is_empty() {
        let fields = unread.join(", ");
        tracing::warn!(
            family,
            fields,
            "config.json has fields that are not read; scores are wrong if one changes the model"
        );
    }
}

/// A value that fits no field: a list of lists of lists.
fn impossible() -> Value {
    json!([[[]]])
}

/// Whether a file is still accepted after `change`.
fn is_ignored(file: &File, reads: &dyn Fn(&File) -> bool, change: impl FnOnce(&mut File) -> Option<Value>) -> bool {
    let mut changed = file.clone();
    change(&mut changed);
    reads(&changed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::families;
    use crate::tests::{configs, with};

    fn unread(config: &Value) -> Vec<String> {
        unread_keys(config.as_object().unwrap(), &|file| families::fields(file).is_ok())
    }

    #[test]
    fn folders_of_every_family_have_no_unread_field() {
        for (path, config) in configs("families").into_iter().chain(configs("heads")) {
            assert_eq!(unread(&config), [""; 0], "{}", path.display());
        }
    }

    /// Fields as in published folders: Llama 3.1 and SmolLM2, Qwen2.5, Mistral, Phi-4-mini,
    /// Gemma 2, Qwen3, GLM-4, Command R7B, Granite 4, Ministral 3, Qwen3.5, LFM2.
    #[test]
    fn published_folders_have_no_unread_field() {
        let shape = json!({
            "architectures": ["AForCausalLM"], "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": null,
            "hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2,
            "vocab_size": 100, "max_position_embeddings": 1024, "rms_norm_eps": 1e-5, "initializer_range": 0.02, "use_cache": true,
            "attention_dropout": 0.0, "torch_dtype": "bfloat16", "transformers_version": "4.46.0", "tie_word_embeddings": false
        });
        for (model_type, own) in [
            (
                "llama",
                json!({
                    "hidden_act": "silu", "attention_bias": false, "mlp_bias": false, "pretraining_tp": 1, "is_llama_config": true,
                    "rope_interleaved": false, "rope_theta": 500000.0, "head_dim": 16, "_name_or_path": "a/b",
                    "rope_scaling": { "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                        "original_max_position_embeddings": 512 },
                    "transformers.js_config": { "dtype": "q4" }
                }),
            ),
            (
                "qwen2",
                json!({
                    "hidden_act": "silu", "max_window_layers": 2, "rope_theta": 1e6, "sliding_window": 512,
                    "use_sliding_window": false, "use_mrope": false
                }),
            ),
            ("mistral", json!({ "hidden_act": "silu", "sliding_window": null, "rope_theta": 1e6, "head_dim": 16 })),
            (
                "phi3",
                json!({
                    "hidden_act": "silu", "attention_bias": false, "auto_map": {}, "embd_pdrop": 0.0, "resid_pdrop": 0.0,
                    "full_attn_mod": 1, "interpolate_factor": 1, "lm_head_bias": false, "mlp_bias": false,
                    "original_max_position_embeddings": 512, "partial_rotary_factor": 0.75, "rope_scaling": null, "sliding_window": 512
                }),
            ),
            (
                "gemma2",
                json!({
                    "hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh", "attention_bias": false,
                    "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, "cache_implementation": "hybrid",
                    "query_pre_attn_scalar": 16, "sliding_window": 512, "sliding_window_size": 512, "rope_theta": 1e4
                }),
            ),
            (
                "qwen3",
                json!({
                    "hidden_act": "silu", "attention_bias": false, "head_dim": 16, "max_window_layers": 2, "rope_theta": 1e6,
                    "rope_scaling": null, "sliding_window": null, "use_sliding_window": false
                }),
            ),
            (
                "glm4",
                json!({
                    "hidden_act": "silu", "attention_bias": true, "head_dim": 16, "partial_rotary_factor": 0.5, "rope_theta": 10000.0
                }),
            ),
            (
                "cohere2",
                json!({
                    "hidden_act": "silu", "attention_bias": false, "cache_implementation": "hybrid", "head_dim": 16, "layer_norm_eps": 1e-5,
                    "layer_switch": 4, "logit_scale": 0.25, "order_of_interleaved_layers": "local_attn_first",
                    "position_embedding_type": "rope_gptj", "rope_scaling": null, "rope_theta": 50000, "rotary_pct": 1.0,
                    "sliding_window": 4096, "sliding_window_pattern": 4, "use_embedding_sharing": true, "use_gated_activation": true,
                    "use_parallel_block": true, "use_parallel_embedding": true
                }),
            ),
            (
                "granitemoehybrid",
                json!({
                    "hidden_act": "silu", "attention_bias": false, "attention_multiplier": 0.0625, "embedding_multiplier": 12,
                    "init_method": "mup", "layer_types": ["attention", "attention"], "logits_scaling": 10, "mamba_chunk_size": 256,
                    "mamba_conv_bias": true, "mamba_d_conv": 4, "mamba_d_head": 32, "mamba_d_state": 256, "mamba_expand": 2,
                    "mamba_n_groups": 1, "mamba_n_heads": 4, "mamba_proj_bias": false, "normalization_function": "rmsnorm",
                    "num_experts_per_tok": 0, "num_local_experts": 0, "output_router_logits": false, "position_embedding_type": "rope",
                    "residual_multiplier": 0.22, "rope_scaling": null, "rope_theta": 10000000, "router_aux_loss_coef": 0.01,
                    "shared_intermediate_size": 96
                }),
            ),
            (
                "falcon_h1",
                json!({
                    "hidden_act": "silu", "attention_bias": false, "attention_in_multiplier": 1.0, "attention_out_multiplier": 0.9375,
                    "attn_layer_indices": null, "embedding_multiplier": 5.65, "head_dim": 16, "key_multiplier": 0.39, "lm_head_multiplier": 0.04,
                    "mamba_chunk_size": 256, "mamba_conv_bias": true, "mamba_d_conv": 4, "mamba_d_head": 16, "mamba_d_ssm": 96,
                    "mamba_d_state": 16, "mamba_expand": 2, "mamba_n_groups": 1, "mamba_n_heads": 6, "mamba_norm_before_gate": false,
                    "mamba_proj_bias": false, "mamba_rms_norm": false, "mamba_use_mlp": true, "mlp_bias": false, "mlp_expansion_factor": 8,
                    "mlp_multipliers": [0.88, 0.5], "num_logits_to_keep": 1, "projectors_bias": false, "rope_scaling": null,
                    "rope_theta": 1e11, "ssm_in_multiplier": 1.25, "ssm_multipliers": [0.35, 0.25, 0.35, 0.5, 0.35],
                    "ssm_out_multiplier": 0.24, "time_step_floor": 0.0001, "time_step_limit": [0.0, "Infinity"], "time_step_max": 0.1,
                    "time_step_min": 0.001
                }),
            ),
            (
                "nemotron_h",
                json!({
                    "attention_bias": false, "chunk_size": 128, "conv_kernel": 4, "expand": 2, "head_dim": 16, "hidden_dropout": 0.0,
                    "hybrid_override_pattern": "M-*E", "layer_norm_epsilon": 1e-5, "mamba_head_dim": 8, "mamba_hidden_act": "silu",
                    "mamba_num_heads": 8, "mamba_proj_bias": false, "mamba_ssm_cache_dtype": "float32", "mlp_bias": false,
                    "mlp_hidden_act": "relu2", "moe_intermediate_size": 32, "moe_shared_expert_intermediate_size": 48, "n_group": 1,
                    "n_groups": 2, "n_routed_experts": 4, "n_shared_experts": 1, "norm_topk_prob": true, "num_experts_per_tok": 2,
                    "num_logits_to_keep": 1, "rescale_prenorm_residual": true, "residual_in_fp32": false, "routed_scaling_factor": 2.5,
                    "ssm_state_size": 16, "time_step_floor": 0.0001, "time_step_limit": [0.0, "Infinity"], "time_step_max": 0.1,
                    "time_step_min": 0.001, "topk_group": 1, "use_bias": false, "use_conv_bias": true, "use_mamba_kernels": true
                }),
            ),
            (
                "phi",
                json!({
                    "embd_pdrop": 0.0, "hidden_act": "gelu_new", "layer_norm_eps": 1e-5, "partial_rotary_factor": 0.5, "qk_layernorm": false,
                    "resid_pdrop": 0.0, "rope_scaling": null, "rope_theta": 10000.0
                }),
            ),
            (
                "ministral3",
                json!({
                    "hidden_act": "silu", "head_dim": 16, "sliding_window": null,
                    "rope_parameters": { "beta_fast": 32.0, "beta_slow": 1.0, "factor": 16.0, "llama_4_scaling_beta": 0.1, "mscale": 1.0,
                        "mscale_all_dim": 1.0, "original_max_position_embeddings": 64, "rope_theta": 1e6, "rope_type": "yarn", "type": "yarn" }
                }),
            ),
            (
                "lfm2",
                json!({
                    "block_auto_adjust_ff_dim": true, "block_dim": 64, "block_ff_dim": 96, "block_ffn_dim_multiplier": 1.0,
                    "block_mlp_init_scale": 1.0, "block_multiple_of": 16, "block_norm_eps": 1e-5, "block_out_init_scale": 1.0,
                    "block_use_swiglu": true, "block_use_xavier_init": true, "conv_L_cache": 3, "conv_bias": false, "conv_dim": 64,
                    "conv_dim_out": 64, "conv_use_xavier_init": true, "full_attn_idxs": [1], "norm_eps": 1e-5, "num_heads": 4,
                    "rope_theta": 1e6, "tie_embedding": true, "use_pos_enc": true
                }),
            ),
            (
                "qwen3_5_text",
                json!({
                    "hidden_act": "silu", "attention_bias": false, "attn_output_gate": true, "full_attention_interval": 4, "head_dim": 16,
                    "layer_types": ["linear_attention", "full_attention"], "linear_conv_kernel_dim": 4, "linear_key_head_dim": 16,
                    "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_value_head_dim": 16, "mamba_ssm_dtype": "float32",
                    "mlp_only_layers": [], "mtp_num_hidden_layers": 1, "mtp_use_dedicated_embeddings": false,
                    "rope_parameters": { "mrope_interleaved": true, "mrope_section": [1, 1, 0], "partial_rotary_factor": 0.25,
                        "rope_theta": 10000000, "rope_type": "default" }
                }),
            ),
        ] {
            let mut config = with(&shape, own);
            config["model_type"] = model_type.into();
            assert!(families::fields(config.as_object().unwrap()).is_ok(), "{model_type}");
            assert_eq!(unread(&config), [""; 0], "{model_type}");
        }
    }

    #[test]
    fn fields_that_may_change_the_model_are_named() {
        let config = json!({
            "model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "use_cache": true, "attention_bias": true,
            "no_rope_layers": [1, 0], "embedding_multiplier": 12.0, "attn_output_gate": true, "rope_interleaved": true,
            "layer_types": ["full_attention", "sliding_attention"],
            "query_pre_attn_scalar": null, "rope_scaling": { "rope_type": "linear", "factor": 2.0, "phase": 0.5 }
        });
        let expected = [
            "no_rope_layers",
            "embedding_multiplier",
            "attn_output_gate",
            "rope_interleaved",
            "layer_types",
            "rope_scaling.phase",
        ];
        assert_eq!(unread(&config), expected);
        // Other families read one of them.
        for (model_type, read) in [("granite", "embedding_multiplier"), ("mistral", "layer_types")] {
            let own = json!({ "model_type": model_type, "num_hidden_layers": 2, "num_key_value_heads": 2 });
            let others = unread(&with(&config, own));
            assert!(others.contains(&"no_rope_layers".to_owned()) && !others.contains(&read.to_owned()), "{others:?}");
        }
        // transformers' Gemma 3 does not use its soft cap of scores; that of its logits is read.
        let gemma =
            json!({ "model_type": "gemma3_text", "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0 });
        assert_eq!(unread(&gemma), ["attn_logit_softcapping"]);
        let gpt2 = json!({ "model_type": "gpt2", "intermediate_size": 8, "rms_norm_eps": 1e-5 });
        assert_eq!(unread(&gpt2), ["intermediate_size", "rms_norm_eps"]);
        let twice = |again: f64| json!({ "model_type": "gpt2", "layer_norm_epsilon": 1e-5, "rms_norm_eps": again });
        assert_eq!((unread(&twice(1e-5)).len(), unread(&twice(0.1))), (0, vec!["rms_norm_eps".to_owned()]));
        // Nothing reads the other name either; and a name that only a check reads.
        let neither = json!({ "model_type": "gpt2", "layer_norm_eps": 1e-5, "rms_norm_eps": 1e-5 });
        assert_eq!(unread(&neither), ["layer_norm_eps", "rms_norm_eps"]);
        let checked = json!({ "model_type": "lfm2", "block_norm_eps": 1e-5, "rms_norm_eps": 1e-5 });
        assert_eq!(unread(&checked), [""; 0]);
        assert_eq!(unread(&json!({ "model_type": "lfm2", "hidden_act": "gelu" })), ["hidden_act"]);
    }
}
