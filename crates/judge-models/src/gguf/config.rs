//! The `config.json` that a file's keys and tensors stand for.
//!
//! A GGUF file describes its model by keys that begin with the architecture's name. [`config`] makes of
//! them the fields that the family has in a Hugging Face folder, so that `judge-arch` reads both alike. What
//! llama.cpp knows without being told (Gemma 2's factor on scores, windows of every fourth block) is
//! here too.
//!
//! A file states numbers in f32. They become the shortest decimals that are these numbers, as a
//! `config.json` has them: `1e-5`, not `9.99999975e-6`.

use std::cell::RefCell;

use judge_text::gguf::ends;
use judge_weights::gguf::file::GgufFile;
use judge_weights::gguf::header::listed;
use judge_weights::gguf::kind::Kind;
use judge_weights::gguf::problem::GgufProblem;
use serde_json::{Map, Value, json};

use super::architectures::{Architecture, BERT_NAME, DIVISORS, FACTORS};

/// What `rope_freqs.weight` has been made of in every release of Llama 3 and its descendants: bounds of
/// the transition, and the original context. The factor is the largest divisor.
const LLAMA3: (f64, f64, u64) = (1.0, 4.0, 8192);

/// The fields of which null says something: that there is no window, and no token before a text.
const NULLS: [&str; 2] = ["sliding_window", "bos_token_id"];

/// The keys of one file.
struct Keys<'a> {
    /// The file.
    file: &'a GgufFile,
    /// The architecture's name.
    architecture: &'static str,
    /// The first key that was asked for a number and has none.
    wrong: RefCell<Option<GgufProblem>>,
}

impl Keys<'_> {
    /// A key with the architecture's name before it.
    fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.architecture)
    }

    /// The numbers of a key, at least one. `None` if the file does not state them, or something else, which [`config`] then refuses.
    fn numbers(&self, name: &str) -> Option<&[f64]> {
        self.file.header.setting(&self.key(name)).unwrap_or_else(|problem| {
            self.wrong.borrow_mut().get_or_insert(problem);
            None
        })
    }

    /// Keeps that a key has these numbers and should have others.
    fn refuse(&self, name: &str, found: &[f64], expected: &str) {
        self.wrong.borrow_mut().get_or_insert(GgufProblem::value(&self.key(name), listed(found), expected));
    }

    /// The whole number of a key, or the largest of its list: numbers of heads may be one for each block.
    fn whole(&self, name: &str) -> Option<u64> {
        let numbers = self.numbers(name)?;
        let largest = numbers.iter().copied().fold(f64::NAN, f64::max);
        if largest >= 0.0 && largest.fract() == 0.0 && largest < 2_f64.powi(53) {
            return Some(largest as u64);
        }
        self.refuse(name, numbers, "a whole number from 0 on");
        None
    }

    /// The number of a key, as its shortest decimal in f32.
    fn number(&self, name: &str) -> Option<f64> {
        match self.numbers(name)? {
            &[number] if (number as f32).is_finite() => Some(shortest(number)),
            numbers => {
                self.refuse(name, numbers, "one number that is finite");
                None
            }
        }
    }

    /// A whole number that a file must have.
    fn needed(&self, name: &str) -> Result<u64, GgufProblem> {
        let key = self.key(name);
        self.whole(name).ok_or(GgufProblem::Missing { key, needed_for: "the model's shape, without a config.json" })
    }

    /// Whether there is a tensor.
    fn has(&self, tensor: &str) -> bool {
        self.file.header.tensors.contains_key(tensor)
    }

    /// The numbers of a tensor of f32 as shortest decimals.
    fn plain(&self, tensor: &str) -> Option<Vec<f64>> {
        let entry = self.file.header.tensors.get(tensor).filter(|entry| entry.kind == Kind::F32)?;
        let numbers = self.file.of(entry).as_chunks().0;
        Some(numbers.iter().map(|&bytes| shortest(f64::from(f32::from_le_bytes(bytes)))).collect())
    }
}

/// The shortest decimal that is this number in f32.
fn shortest(number: f64) -> f64 {
    format!("{}", number as f32).parse().unwrap_or(number)
}

/// Makes a `config.json` of a file.
///
/// # Errors
/// [`GgufProblem`] for an architecture that is not read, a key that is needed, and a scaling of the
/// rotation that is not known.
pub(crate) fn config(file: &GgufFile) -> Result<Value, GgufProblem> {
    let header = &file.header;
    let architecture = Architecture::named(header.text("general.architecture"))?.name;
    let keys = Keys { file, architecture, wrong: RefCell::default() };
    let config = of_keys(&keys);
    // A key that is not of its type is the cause of what else is missing.
    keys.wrong.take().map_or(config, Err)
}

/// The fields of any architecture.
fn of_keys(keys: &Keys<'_>) -> Result<Value, GgufProblem> {
    let (file, header, architecture) = (keys.file, &keys.file.header, keys.architecture);
    if architecture == BERT_NAME {
        return bert(keys);
    }
    let n_layers = keys.needed("block_count")?;
    let d_model = keys.needed("embedding_length")?;
    let n_heads = keys.needed("attention.head_count")?;
    let rotated = keys.whole("rope.dimension_count");
    let head_dim = keys.whole("attention.key_length").or_else(|| d_model.checked_div(n_heads));
    let rows = header.tensors.get("token_embd.weight").and_then(|entry| entry.shape.first().copied());
    let theta = || keys.number("rope.freq_base").unwrap_or(10_000.0);
    // These two families take a scaling for granted where nothing is said.
    let is_scaled = ["mistral3", "gpt-oss"].contains(&architecture);
    let unscaled = || is_scaled.then(|| json!({ "rope_type": "default", "rope_theta": theta() }));
    let mut fields = stated(json!({
        "hidden_size": d_model, "num_hidden_layers": n_layers, "num_attention_heads": n_heads,
        "num_key_value_heads": keys.whole("attention.head_count_kv").unwrap_or(n_heads),
        "max_position_embeddings": keys.needed("context_length")?, "tie_word_embeddings": !keys.has("output.weight"),
        "rope_theta": theta(), "eos_token_id": ends(file), "bos_token_id": header.whole("tokenizer.ggml.bos_token_id"),
        "vocab_size": rows, "head_dim": head_dim, "intermediate_size": keys.whole("feed_forward_length"),
        "rms_norm_eps": keys.number("attention.layer_norm_rms_epsilon"),
        "rope_scaling": scaling(keys, head_dim.unwrap_or_default())?.or_else(unscaled)
    }));
    if let (Some(rotated), Some(head_dim)) = (rotated, head_dim)
        && (rotated != head_dim || ["glm4", "qwen35", "qwen35moe"].contains(&architecture))
        && head_dim > 0
    {
        fields.insert("partial_rotary_factor".to_owned(), (rotated as f64 / head_dim as f64).into());
    }
    fields.extend(stated(of_architecture(keys, n_layers, d_model, n_heads, head_dim.unwrap_or_default())?));
    if architecture == "gemma4" {
        // It has these by kind of block, in `rope_parameters`.
        fields.retain(|field, _| !["rope_theta", "rope_scaling", "partial_rotary_factor"].contains(&field.as_str()));
    }
    // OLMo 3 scales the rotation of blocks without a window alone.
    if fields.get("model_type") == Some(&json!("olmo3"))
        && let (Some(Value::Object(mut full)), Some(theta)) = (fields.remove("rope_scaling"), fields.get("rope_theta"))
    {
        full.insert("rope_theta".to_owned(), theta.clone());
        let sliding = json!({ "rope_type": "default", "rope_theta": theta });
        fields.insert("rope_parameters".to_owned(), json!({ "full_attention": full, "sliding_attention": sliding }));
    }
    Ok(Value::Object(fields))
}

/// The `config.json` of an encoder. Positions are counted from the first row of the file's table in all of them: an
/// XLM-RoBERTa's lacks the rows before.
fn bert(keys: &Keys<'_>) -> Result<Value, GgufProblem> {
    let rows = |tensor: &str| {
        let entry = keys.file.header.tensors.get(tensor).and_then(|entry| entry.shape.first().copied());
        entry.ok_or(GgufProblem::Missing { key: tensor.to_owned(), needed_for: "an encoder of BERT's form" })
    };
    let causal = keys.key("attention.causal");
    if keys.numbers("attention.causal").is_some_and(|truth| truth != [0.0]) {
        return Err(GgufProblem::NotRead {
            what: format!("an encoder with {causal}"),
            read: "attention to both sides",
        });
    }
    Ok(json!({
        "model_type": "bert", "hidden_act": "gelu", "hidden_size": keys.needed("embedding_length")?,
        "num_hidden_layers": keys.needed("block_count")?, "num_attention_heads": keys.needed("attention.head_count")?,
        "intermediate_size": keys.needed("feed_forward_length")?, "vocab_size": rows("token_embd.weight")?,
        "max_position_embeddings": rows("position_embd.weight")?, "type_vocab_size": rows("token_types.weight")?,
        "layer_norm_eps": keys.number("attention.layer_norm_epsilon").ok_or_else(|| GgufProblem::Missing {
            key: keys.key("attention.layer_norm_epsilon"), needed_for: "the norms of an encoder"
        })?
    }))
}

/// The fields that an architecture has of its own, `model_type` among them. A value that the file does not
/// have is null, and the family's default holds; a window that is null is none.
fn of_architecture(
    keys: &Keys<'_>,
    n_layers: u64,
    d_model: u64,
    n_heads: u64,
    head_dim: u64,
) -> Result<Value, GgufProblem> {
    let number = |name: &str| keys.number(name).map_or(Value::Null, Value::from);
    let whole = |name: &str| keys.whole(name).map_or(Value::Null, Value::from);
    let window = keys.whole("attention.sliding_window").filter(|&window| window > 0);
    let (qkv_bias, mlp_bias) = (keys.has("blk.0.attn_q.bias"), keys.has("blk.0.ffn_up.bias"));
    let experts = || {
        json!({
            "num_experts": whole("expert_count"), "num_experts_per_tok": whole("expert_used_count"),
            "moe_intermediate_size": whole("expert_feed_forward_length"),
            "shared_expert_intermediate_size": whole("expert_shared_feed_forward_length")
        })
    };
    Ok(match keys.architecture {
        "llama" if keys.whole("expert_count").is_some_and(|experts| experts > 0) => json!({
            "model_type": "mixtral", "num_local_experts": whole("expert_count"),
            "num_experts_per_tok": whole("expert_used_count")
        }),
        "llama" => json!({ "model_type": "llama", "attention_bias": qkv_bias, "mlp_bias": mlp_bias }),
        "qwen2" => json!({ "model_type": "qwen2" }),
        "qwen3" => json!({ "model_type": "qwen3", "attention_bias": qkv_bias }),
        "qwen2moe" => {
            with(experts(), json!({ "model_type": "qwen2_moe", "norm_topk_prob": false, "qkv_bias": qkv_bias }))
        }
        "qwen3moe" => with(
            experts(),
            json!({
                "model_type": "qwen3_moe", "norm_topk_prob": true, "shared_expert_intermediate_size": null
            }),
        ),
        "olmoe" => json!({
            "model_type": "olmoe", "num_experts": whole("expert_count"),
            "num_experts_per_tok": whole("expert_used_count"), "clip_qkv": number("attention.clamp_kqv")
        }),
        "gemma2" | "gemma3" => {
            let is_second = keys.architecture == "gemma2";
            // Where the file does not state the factor, llama.cpp knows it by the number of blocks: of the models
            // with 27 billion parameters it is that of the width of the model over its heads.
            let is_27b = n_layers == if is_second { 46 } else { 62 };
            let scalar = match keys.number("attention.scale") {
                Some(scale) => scale.powi(-2),
                None if is_27b => d_model as f64 / n_heads.max(1) as f64,
                None => head_dim as f64,
            };
            let own = json!({ "query_pre_attn_scalar": scalar, "sliding_window": window });
            if is_second {
                let caps = json!({
                    "model_type": "gemma2", "attn_logit_softcapping": number("attn_logit_softcapping"),
                    "final_logit_softcapping": number("final_logit_softcapping")
                });
                with(own, with(caps, layer_types(keys, n_layers, 2)))
            } else {
                let rope = json!({
                    "model_type": "gemma3_text", "rope_local_base_freq": number("rope.freq_base_swa"),
                    "final_logit_softcapping": number("final_logit_softcapping")
                });
                with(own, with(rope, layer_types(keys, n_layers, 6)))
            }
        }
        "gemma4" => gemma4(keys, n_layers, head_dim)?,
        "phi3" => json!({
            "model_type": "phi3", "sliding_window": window,
            "original_max_position_embeddings": whole("rope.scaling.original_context_length")
        }),
        "granite" => json!({
            "model_type": "granite", "attention_bias": qkv_bias, "mlp_bias": mlp_bias,
            "attention_multiplier": number("attention.scale"), "embedding_multiplier": number("embedding_scale"),
            "residual_multiplier": number("residual_scale"), "logits_scaling": number("logit_scale")
        }),
        "smollm3" => json!({ "model_type": "smollm3", "attention_bias": qkv_bias, "mlp_bias": mlp_bias }),
        "gpt-oss" => with(
            json!({
                "model_type": "gpt_oss", "num_local_experts": whole("expert_count"),
                "num_experts_per_tok": whole("expert_used_count"), "attention_bias": qkv_bias, "sliding_window": window,
                "intermediate_size": whole("expert_feed_forward_length")
            }),
            layer_types(keys, n_layers, 2),
        ),
        "mistral3" => json!({ "model_type": "ministral3", "sliding_window": null }),
        "olmo2" => match window {
            Some(_) => with(
                json!({ "model_type": "olmo3", "sliding_window": window, "attention_bias": qkv_bias }),
                layer_types(keys, n_layers, 4),
            ),
            None => json!({ "model_type": "olmo2", "attention_bias": qkv_bias }),
        },
        "exaone4" => with(
            json!({ "model_type": "exaone4", "sliding_window": window }),
            match window {
                Some(_) => layer_types(keys, n_layers, 4),
                None => json!({ "layer_types": vec!["full_attention"; n_layers.min(1 << 16) as usize] }),
            },
        ),
        "cohere2" => with(
            json!({
                "model_type": "cohere2", "sliding_window": window, "logit_scale": number("logit_scale"),
                "layer_norm_eps": number("attention.layer_norm_epsilon"), "attention_bias": qkv_bias
            }),
            layer_types(keys, n_layers, 4),
        ),
        "ernie4_5" => json!({ "model_type": "ernie4_5", "use_bias": qkv_bias }),
        "glm4" => json!({ "model_type": "glm4", "attention_bias": qkv_bias }),
        "lfm2" => {
            let heads = keys.numbers("attention.head_count_kv").unwrap_or_default();
            let types: Vec<&str> =
                heads.iter().map(|&heads| if heads > 0.0 { "full_attention" } else { "conv" }).collect();
            if types.len() as u64 != n_layers {
                let key = keys.key("attention.head_count_kv");
                return Err(GgufProblem::Missing { key, needed_for: "the kind of every block (0: a convolution)" });
            }
            json!({
                "model_type": "lfm2", "block_auto_adjust_ff_dim": false, "layer_types": types,
                "norm_eps": number("attention.layer_norm_rms_epsilon"), "conv_L_cache": whole("shortconv.l_cache")
            })
        }
        "qwen35" | "qwen35moe" => {
            let interval = keys.needed("full_attention_interval")?;
            let values = keys.needed("ssm.time_step_rank")?;
            let full = keys.has(&format!("blk.{}.attn_q.bias", interval.saturating_sub(1)));
            let own = json!({
                "attention_bias": full, "full_attention_interval": interval,
                // Blocks that predict further tokens are counted, and not read.
                "num_hidden_layers": n_layers.saturating_sub(keys.whole("nextn_predict_layers").unwrap_or_default()),
                "linear_conv_kernel_dim": whole("ssm.conv_kernel"), "linear_key_head_dim": whole("ssm.state_size"),
                "linear_num_key_heads": whole("ssm.group_count"), "linear_num_value_heads": values,
                "linear_value_head_dim": keys.needed("ssm.inner_size")?.checked_div(values)
            });
            match keys.architecture {
                "qwen35" => with(own, json!({ "model_type": "qwen3_5_text" })),
                _ => with(with(experts(), own), json!({ "model_type": "qwen3_5_moe_text" })),
            }
        }
        other => json!({ "model_type": other }),
    })
}

/// The fields of Gemma 4, whose blocks with and without a window differ in heads and rotation.
fn gemma4(keys: &Keys<'_>, n_layers: u64, head_dim: u64) -> Result<Value, GgufProblem> {
    let number = |name: &str| keys.number(name).map_or(Value::Null, Value::from);
    let whole = |name: &str| keys.whole(name).map_or(Value::Null, Value::from);
    let all = |name: &str| keys.numbers(name).unwrap_or_default();
    let types = layer_types(keys, n_layers, 6);
    let kinds = types["layer_types"].as_array().cloned().unwrap_or_default();
    let first = |kind: &str| kinds.iter().position(|found| found == kind);
    let kv_heads = |kind: &str| match (all("attention.head_count_kv"), first(kind)) {
        (&[one], _) => Some(one as u64),
        (each, Some(index)) => each.get(index).map(|&heads| heads as u64),
        _ => None,
    };
    // A number for each block where some are twice as wide as the first.
    let widths = all("feed_forward_length");
    let full = first("full_attention");
    let has_values = full.is_none_or(|full| keys.has(&format!("blk.{full}.attn_v.weight")));
    let divisors = keys.plain(DIVISORS).ok_or(GgufProblem::Missing {
        key: DIVISORS.to_owned(),
        needed_for: "how many pairs of a head turn in blocks without a window",
    })?;
    let turning = divisors.iter().filter(|&&divisor| divisor == 1.0).count() as f64 / divisors.len().max(1) as f64;
    let rows = keys.file.header.tensors.get("per_layer_token_embd.weight").and_then(|entry| entry.shape.first());
    let experts = keys.whole("expert_count").filter(|&experts| experts > 0);
    let own = json!({
        "model_type": "gemma4_text", "sliding_window": whole("attention.sliding_window"),
        "head_dim": keys.whole("attention.key_length_swa").unwrap_or(head_dim), "global_head_dim": head_dim,
        "num_key_value_heads": kv_heads("sliding_attention"), "num_global_key_value_heads": kv_heads("full_attention"),
        "attention_k_eq_v": !has_values, "attention_bias": keys.has("blk.0.attn_q.bias"),
        "intermediate_size": widths.first().map(|&width| width as u64),
        "use_double_wide_mlp": widths.len() > 1 && widths.first() != widths.last(),
        "num_kv_shared_layers": keys.whole("attention.shared_kv_layers").unwrap_or_default(),
        "hidden_size_per_layer_input": keys.whole("embedding_length_per_layer_input").unwrap_or_default(),
        "final_logit_softcapping": number("final_logit_softcapping"),
        "rope_parameters": {
            "full_attention": {
                "rope_type": "proportional", "partial_rotary_factor": turning, "rope_theta": number("rope.freq_base")
            },
            "sliding_attention": { "rope_type": "default", "rope_theta": number("rope.freq_base_swa") }
        },
        "vocab_size_per_layer_input": rows, "enable_moe_block": experts.is_some(), "num_experts": experts,
        "top_k_experts": experts.and_then(|_| keys.whole("expert_used_count")),
        "moe_intermediate_size": experts.and_then(|_| keys.whole("expert_feed_forward_length"))
    });
    Ok(with(own, types))
}

/// The fields of an object, without those that are null and say nothing by it.
fn stated(fields: Value) -> Map<String, Value> {
    let Value::Object(mut fields) = fields else { return Map::new() };
    fields.retain(|field, value| !value.is_null() || NULLS.contains(&field.as_str()));
    fields
}

/// The fields of both objects; those of the second win.
fn with(mut first: Value, second: Value) -> Value {
    if let (Value::Object(first), Value::Object(second)) = (&mut first, second) {
        first.extend(second);
    }
    first
}

/// The kinds of the blocks: as `attention.sliding_window_pattern` says, a truth for each block with a window
/// or the distance of full blocks; else every `usual`th is full.
fn layer_types(keys: &Keys<'_>, n_layers: u64, usual: u64) -> Value {
    let pattern = keys.numbers("attention.sliding_window_pattern");
    let name = |has_window: bool| if has_window { "sliding_attention" } else { "full_attention" };
    let distance = match pattern {
        Some(all) if all.len() as u64 == n_layers && n_layers > 1 => {
            return json!({ "layer_types": all.iter().map(|&has| name(has != 0.0)).collect::<Vec<_>>() });
        }
        Some(&[distance]) if distance >= 1.0 => distance as u64,
        _ => usual,
    };
    // As many as a model may have at most; another number is refused by its own field.
    let types: Vec<&str> = (0..n_layers.min(1 << 16)).map(|layer| name((layer + 1) % distance != 0)).collect();
    json!({ "layer_types": types })
}

/// The scaling of the rotation, as `rope_scaling` of a `config.json`; `None` if there is none.
fn scaling(keys: &Keys<'_>, head_dim: u64) -> Result<Option<Value>, GgufProblem> {
    let header = &keys.file.header;
    let original = keys.whole("rope.scaling.original_context_length");
    if let (Some(long), Some(short)) = (keys.plain(FACTORS[0]), keys.plain(FACTORS[1])) {
        let factor = keys.number("rope.scaling.attn_factor");
        let all = json!({
            "rope_type": "longrope", "long_factor": long, "short_factor": short, "attention_factor": factor
        });
        return Ok(Some(stated(all).into()));
    }
    if let Some(divisors) = keys.plain(DIVISORS).filter(|_| keys.architecture != "gemma4") {
        let factor = divisors.iter().copied().fold(1.0, f64::max);
        let is_one = divisors.iter().all(|&divisor| divisor == 1.0);
        let (low, high, context) = LLAMA3;
        // That these divisors follow from it is checked with the other settings, when weights are opened.
        return Ok((!is_one && head_dim > 0).then(|| {
            json!({
                "rope_type": "llama3", "factor": factor, "low_freq_factor": low, "high_freq_factor": high,
                "original_max_position_embeddings": original.unwrap_or(context)
            })
        }));
    }
    let key = keys.key("rope.scaling.type");
    // The second is the older key.
    let factor = keys.number("rope.scaling.factor").or_else(|| keys.number("rope.scale_linear"));
    let kind = match header.setting_text(&key)? {
        // So llama.cpp (`llama-model.cpp`), where a factor of 0 or 1 scales nothing.
        "" if factor.is_some_and(|factor| factor != 0.0 && factor != 1.0) => "linear",
        kind => kind,
    };
    match (kind, factor) {
        ("" | "none", _) => Ok(None),
        ("linear", Some(factor)) => Ok(Some(json!({ "rope_type": "linear", "factor": factor }))),
        ("yarn", Some(factor)) => {
            let all = json!({
                "rope_type": "yarn", "factor": factor, "original_max_position_embeddings": original,
                "beta_fast": keys.number("rope.scaling.yarn_beta_fast"),
                "beta_slow": keys.number("rope.scaling.yarn_beta_slow"),
                // Of Mistral: the growth of queries, and the two factors whose quotient is that of cosines and sines.
                "llama_4_scaling_beta": keys.number("attention.temperature_scale"),
                "mscale": keys.number("rope.scaling.yarn_log_multiplier").map(|_| 1.0),
                "mscale_all_dim": keys.number("rope.scaling.yarn_log_multiplier"),
                // gpt-oss was trained with a ramp whose ends are not rounded.
                "truncate": (keys.architecture == "gpt-oss").then_some(false)
            });
            Ok(Some(stated(all).into()))
        }
        ("linear" | "yarn", None) => Err(GgufProblem::Missing {
            key: keys.key("rope.scaling.factor"),
            needed_for: "the scaling of the rotation",
        }),
        (other, _) => Err(GgufProblem::NotRead {
            what: format!("{key} {other:?}"),
            read: "none, linear, yarn, and the divisors of llama3 and longrope",
        }),
    }
}
