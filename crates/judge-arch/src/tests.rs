use std::path::{Path, PathBuf};

use judge_kernels::functions::{Activation, NormKind, Pairs};
use judge_weights::dtype::Dtype;
use serde_json::{Value, json};

use super::decoder_fields::{BlockNorms, DecoderFields, Half, MlpNames, QkNorm, Qkv};
use super::rope::QueryGrowth;
use super::spec::EmbeddingScale;
use super::{ConfigProblem, ModelSpec, RopeConfig, RopeScaling, families};

/// Each `config.json` of a kind of models that judge-models' tests read, with its path.
pub(crate) fn configs(kind: &str) -> Vec<(PathBuf, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../judge-models/tests/fixtures").join(kind);
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path().join("config.json"));
    let read = |path: PathBuf| {
        let config = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        (path, config)
    };
    let found: Vec<_> = paths.filter(|path| path.exists()).map(read).collect();
    assert!(!found.is_empty(), "no model in {kind}");
    found
}

/// A file with other fields, or more.
pub(crate) fn with(base: &Value, changes: Value) -> Value {
    let mut fields = base.clone();
    let changes = changes.as_object().unwrap().clone();
    fields.as_object_mut().unwrap().extend(changes);
    fields
}

fn fields(config: &Value) -> Result<DecoderFields, ConfigProblem> {
    families::fields(config.as_object().unwrap())
}

fn small(model_type: &str) -> Value {
    json!({
        "model_type": model_type, "vocab_size": 50, "hidden_size": 32, "intermediate_size": 40,
        "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
        "max_position_embeddings": 128
    })
}

fn read(model_type: &str, changes: Value) -> DecoderFields {
    fields(&with(&small(model_type), changes)).unwrap()
}

fn refuse(model_type: &str, changes: Value) -> ConfigProblem {
    fields(&with(&small(model_type), changes)).unwrap_err()
}

/// The field that a refusal names.
pub(crate) fn field(problem: &ConfigProblem) -> &'static str {
    match problem {
        ConfigProblem::Unknown { field, .. }
        | ConfigProblem::Missing { field, .. }
        | ConfigProblem::Value { field, .. }
        | ConfigProblem::Unsupported { field, .. } => field,
        ConfigProblem::Json(_) | ConfigProblem::Field { .. } => panic!("{problem}"),
    }
}

/// As transformers runs them: `torch.tensor(3584**0.5, dtype=torch.bfloat16)`.
#[test]
fn gemma_s_embedding_factor_has_the_dtype_of_its_weights() {
    for (d_model, in_f32, in_bf16) in [(2304, 48.0, 48.0), (3584, 59.866_52, 59.75), (4608, 67.882_25, 68.0)] {
        let mut config = small("gemma2");
        config["hidden_size"] = json!(d_model);
        let scale = fields(&config).unwrap().embedding_scale.unwrap();
        assert_eq!((scale.factor(Dtype::F32), scale.factor(Dtype::Bf16)), (in_f32, in_bf16));
    }
    assert_eq!(EmbeddingScale::Exact(59.866_52).factor(Dtype::Bf16), 59.866_52);
}

/// transformers keeps a `head_dim` of the file, though it is none of the fields that it declares for the family.
#[test]
fn heads_of_cohere2_may_be_together_wider_than_the_model() {
    let found = read("cohere2", json!({ "head_dim": 16 }));
    assert_eq!((found.head_dim, found.n_heads, found.d_model), (16, 4, 32));
    let shapes = found.spec().tensors();
    let shape = |name: &str| &shapes.iter().find(|(found, _)| found.ends_with(name)).unwrap().1;
    assert_eq!(shape("layers.0.self_attn.q_proj.weight"), &[64, 32]);
    assert_eq!(shape("layers.0.self_attn.k_proj.weight"), &[32, 32]);
    assert_eq!(shape("layers.0.self_attn.o_proj.weight"), &[32, 64]);
    let silent = fields(&json!({ "model_type": "cohere2", "hidden_size": 32, "num_attention_heads": 4 })).unwrap();
    assert_eq!(silent.head_dim, 8);
}

#[test]
fn a_silent_file_has_the_familys_defaults() {
    let of = |model_type: &str| fields(&json!({ "model_type": model_type })).unwrap();
    let shape = |c: &DecoderFields| (c.d_vocab, c.d_model, c.d_ff, c.n_layers, c.n_heads, c.n_kv_heads, c.head_dim);
    let llama = of("llama");
    assert_eq!(shape(&llama), (32000, 4096, 11008, 32, 32, 32, 128));
    assert_eq!((llama.max_len, llama.norm_eps, llama.tied, llama.eos), (2048, 1e-6, false, vec![2]));
    let mistral = of("mistral");
    assert_eq!(shape(&mistral), (32000, 4096, 14336, 32, 32, 8, 128));
    assert_eq!((mistral.max_len, mistral.windows), (131_072, vec![Some(4096); 32]));
    let qwen2 = of("qwen2");
    assert_eq!(shape(&qwen2), (151_936, 4096, 22016, 32, 32, 32, 128));
    assert!(qwen2.qkv_bias && !qwen2.o_bias && qwen2.windows == [None; 32] && qwen2.eos.is_empty());
    let qwen3 = of("qwen3");
    assert!(!qwen3.qkv_bias && qwen3.qk_norm == QkNorm::PerHead && qwen3.head_dim == 128);
    let internlm3 = of("internlm3");
    assert_eq!(shape(&internlm3), (128_512, 4096, 10240, 48, 32, 2, 128));
    let gemma2 = of("gemma2");
    assert_eq!(shape(&gemma2), (256_000, 2304, 9216, 26, 8, 4, 256));
    assert_eq!((gemma2.attention_soft_cap, gemma2.final_soft_cap), (Some(50.0), Some(30.0)));
    assert_eq!((gemma2.attention_scale, gemma2.embedding_scale), (1.0 / 16.0, Some(EmbeddingScale::Rounded(48.0))));
    assert_eq!(gemma2.windows[..3], [Some(4096), None, Some(4096)]);
    assert!(
        gemma2.tied
            && gemma2.norm_offset
            && gemma2.norms == BlockNorms::AROUND
            && gemma2.activation == Activation::GeluTanh
    );
    let ministral3 = of("ministral3");
    assert_eq!(shape(&ministral3), (131_072, 4096, 14336, 34, 32, 8, 128));
    assert_eq!((ministral3.max_len, ministral3.windows), (262_144, vec![None; 34]));
    let growth = Some(QueryGrowth { beta: 0.1, original_len: 16384 });
    let RopeConfig { theta, query_growth, ref scaling, .. } = ministral3.ropes[0];
    assert!(
        (theta, query_growth) == (1e6, growth) && matches!(scaling, RopeScaling::Yarn { attention_factor: 1.0, .. })
    );
    let glm4 = of("glm4");
    assert_eq!(shape(&glm4), (151_552, 4096, 13696, 40, 32, 2, 128));
    assert_eq!((glm4.ropes[0].rotary_dim, glm4.ropes[0].pairs, glm4.eos.len()), (64, Pairs::Neighbours, 3));
    assert!(glm4.qkv_bias && !glm4.o_bias && glm4.mlp == MlpNames::FUSED && of("glm").norms == BlockNorms::BEFORE);
    let hybrid = of("granitemoehybrid").mamba.unwrap();
    assert_eq!((hybrid.shape.n_heads, hybrid.shape.head_dim, hybrid.shape.d_state), (128, 64, 256));
    assert!(hybrid.is_in == [true; 32] && hybrid.conv_bias && hybrid.bias == [false; 2]);
    let falcon = of("falcon_h1").mamba.unwrap();
    assert_eq!((falcon.shape.n_heads, falcon.shape.head_dim, falcon.norm), (128, 8, None));
    assert!(falcon.is_in == [true; 32] && falcon.is_beside && falcon.factors == [1.0; 5]);
    let nemotron = of("nemotron_h");
    assert_eq!(shape(&nemotron), (131_072, 4096, 21504, 4, 32, 8, 128));
    assert_eq!(nemotron.halves.unwrap(), [Half::Mixer, Half::Mlp, Half::Mixer, Half::Mlp]);
    assert_eq!(nemotron.mamba.unwrap().is_in, [true, false, false, false]);
    assert_eq!(nemotron.sparse.unwrap().has_experts, [false, true, false, false]);
    let cohere2 = of("cohere2");
    assert_eq!(shape(&cohere2), (256_000, 8192, 22528, 40, 64, 64, 128));
    assert_eq!((cohere2.norm_eps, cohere2.logit_scale, cohere2.max_len), (1e-5, Some(0.0625), 8192));
    assert_eq!(cohere2.windows[2..5], [Some(4096), None, Some(4096)]);
    assert_eq!(cohere2.rope_of[2..5], [Some(0), None, Some(0)]);
    assert!(cohere2.tied && cohere2.is_parallel && cohere2.norm_kind == NormKind::LayerNorm);
    let qwen3_5 = of("qwen3_5_text");
    assert_eq!(shape(&qwen3_5), (248_320, 4096, 12288, 32, 16, 4, 256));
    assert_eq!((qwen3_5.ropes[0].rotary_dim, qwen3_5.ropes[0].theta, qwen3_5.max_len), (64, 1e4, 32768));
    let (has_delta, delta) = qwen3_5.delta.unwrap();
    assert_eq!(has_delta[1..5], [true, true, false, true]);
    assert_eq!((delta.channels(), delta.d_value(), delta.kernel), (8192, 4096, 4));
    let lfm2 = of("lfm2");
    assert_eq!(shape(&lfm2), (65536, 2560, 8192, 32, 32, 8, 80));
    assert_eq!((lfm2.ropes[0].theta, lfm2.conv.unwrap()), (1e6, (vec![false; 32], 3)));
    let phi3 = of("phi3");
    assert_eq!(shape(&phi3), (32064, 3072, 8192, 32, 32, 32, 96));
    assert!(
        phi3.qkv == Qkv::Fused("self_attn.qkv_proj")
            && phi3.mlp == MlpNames::FUSED
            && phi3.windows == [None; 32]
            && phi3.norm_eps == 1e-5
    );
}

#[test]
fn absent_and_null_differ() {
    assert_eq!(read("mistral", json!({})).windows, [Some(4096); 4]);
    assert_eq!(read("mistral", json!({ "sliding_window": null })).windows, [None; 4]);
    assert_eq!(read("gemma2", json!({ "attn_logit_softcapping": null })).attention_soft_cap, None);
    assert_eq!(read("llama", json!({ "num_key_value_heads": null })).n_kv_heads, 4);
    assert_eq!(read("llama", json!({ "head_dim": null })).head_dim, 8);
}

#[test]
fn both_layouts_say_the_same() {
    let scaling = json!({ "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                          "original_max_position_embeddings": 64 });
    let new = with(&scaling, json!({ "rope_type": "llama3", "rope_theta": 500.0 }));
    let old = with(&scaling, json!({ "rope_type": "llama3" }));
    let oldest = with(&scaling, json!({ "type": "llama3" }));
    let new = read("llama", json!({ "rope_parameters": new, "dtype": "bfloat16" }));
    assert!(matches!(new.ropes[0].scaling, RopeScaling::Llama3 { original_len: 64, .. }));
    assert_eq!((new.ropes[0].theta, new.max_len), (500.0, 128));
    for old in [old, oldest] {
        let fields = json!({ "rope_scaling": old, "rope_theta": 500.0, "torch_dtype": "bfloat16" });
        assert_eq!(read("llama", fields), new);
    }
    assert_eq!(read("llama", json!({ "rope_scaling": null, "rope_theta": 7.0 })).ropes[0].theta, 7.0);
    // transformers: `rope_scaling or rope_parameters`.
    let linear = json!({ "rope_type": "linear", "factor": 2.0, "rope_theta": 9.0 });
    for model_type in ["llama", "gemma3_text", "gpt_oss", "ministral3"] {
        let parameters = match model_type {
            "llama" => json!({ "rope_parameters": linear }),
            "gemma3_text" => json!({ "rope_parameters": { "full_attention": linear } }),
            // Without fields of the rotation these have their own.
            _ => json!({}),
        };
        let empty = with(&parameters, json!({ "rope_scaling": {} }));
        assert_eq!(read(model_type, empty), read(model_type, parameters), "{model_type}");
    }
    // transformers: `rope_parameters["full_attention"].update(rope_scaling)`.
    let base = json!({ "full_attention": { "rope_theta": 9.0 } });
    let both = json!({ "rope_parameters": base, "rope_scaling": { "type": "linear", "factor": 2.0 } });
    let both = read("gemma3_text", both);
    assert_eq!((both.ropes[0].theta, &both.ropes[0].scaling), (9.0, &RopeScaling::Linear { factor: 2.0 }));
    // `default_theta` of transformers' classes, with rope fields that state no base and without any.
    for (model_type, theta) in
        [("smollm3", 2e6), ("ernie4_5", 5e5), ("lfm2", 1e6), ("mixtral", 1e6), ("gpt_oss", 150_000.0), ("llama", 1e4)]
    {
        for field in ["rope_parameters", "rope_scaling"] {
            let found = read(model_type, json!({ field: { "rope_type": "linear", "factor": 2.0 } }));
            assert_eq!(found.ropes[0].theta, theta, "{model_type}, {field}");
        }
        assert_eq!(read(model_type, json!({})).ropes[0].theta, theta, "{model_type}");
    }
    let published = read("internlm3", json!({ "qkv_bias": true, "bias": true }));
    assert_eq!(read("internlm3", json!({ "attention_bias": true, "mlp_bias": true })), published);
    assert!(published.qkv_bias && published.o_bias && published.mlp_bias);
}

#[test]
fn the_context_is_what_the_scaling_gives() {
    let len = |rope: Value| read("llama", json!({ "rope_scaling": rope })).max_len;
    assert_eq!(len(json!({ "type": "linear", "factor": 4.0 })), 512);
    assert_eq!(len(json!({ "type": "dynamic", "factor": 2.5 })), 320);
    assert_eq!(len(json!({ "type": "yarn", "factor": 4.0 })), 512);
    assert_eq!(len(json!({ "type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16 })), 128);
    let factors = json!([1.0, 1.0, 1.0, 1.0]);
    let long = json!({ "type": "longrope", "short_factor": factors, "long_factor": factors,
                       "original_max_position_embeddings": 16 });
    assert_eq!(len(long.clone()), 128);
    // The field beside the scaling has priority, as in transformers.
    let phi3 = read(
        "phi3",
        json!({ "rope_scaling": with(&long, json!({ "type": "su" })),
                                    "original_max_position_embeddings": 32 }),
    );
    assert!(matches!(phi3.ropes[0].scaling, RopeScaling::LongRope { original_len: 32, .. }));
}

#[test]
fn windows_follow_the_layer_types() {
    let types = json!(["full_attention", "sliding_attention", "sliding_attention", "full_attention"]);
    let fields = json!({ "use_sliding_window": true, "sliding_window": 9, "layer_types": types });
    assert_eq!(read("qwen3", fields.clone()).windows, [None, Some(9), Some(9), None]);
    let upper = json!({ "use_sliding_window": true, "sliding_window": 9, "max_window_layers": 3 });
    assert_eq!(read("qwen2", upper).windows, [None, None, None, Some(9)]);
    let off = with(&fields, json!({ "use_sliding_window": false }));
    assert_eq!(field(&refuse("qwen3", off)), "sliding_window");
    assert_eq!(field(&refuse("qwen3", json!({ "layer_types": ["full_attention"] }))), "layer_types");
    assert_eq!(field(&refuse("gemma2", json!({ "layer_types": ["a", "b", "c", "d"] }))), "layer_types");
    // `AutoConfig` takes a `mistral` with `layer_types` for a `ministral`, in which blocks differ.
    let mistral = json!({ "sliding_window": 9, "layer_types": types });
    assert_eq!(read("mistral", mistral.clone()).windows, [None, Some(9), Some(9), None]);
    assert_eq!(read("mistral", json!({ "sliding_window": 9, "layer_types": null })).windows, [Some(9); 4]);
    let none = with(&mistral, json!({ "sliding_window": null }));
    assert_eq!(field(&refuse("mistral", none)), "sliding_window");
    // Not so the text model of a `mistral3`, which is a `mistral` whatever it has beside it.
    let outer = json!({ "model_type": "mistral3", "text_config": with(&small("mistral"), mistral) });
    let inside = ModelSpec::from_json(&outer).unwrap();
    assert!(inside.blocks.iter().all(|block| block.window == Some(9)));
}

/// transformers' Gemma 3 has the field and does not hand it to attention.
#[test]
fn only_gemma_2_caps_its_scores() {
    let caps = json!({ "attn_logit_softcapping": 20.0, "final_logit_softcapping": 10.0 });
    for (model_type, of_scores) in [("gemma2", Some(20.0)), ("gemma3_text", None)] {
        let found = read(model_type, caps.clone());
        assert_eq!((found.attention_soft_cap, found.final_soft_cap), (of_scores, Some(10.0)), "{model_type}");
    }
}

#[test]
fn unknown_names_list_the_known_ones() {
    let known = |problem: ConfigProblem| match problem {
        ConfigProblem::Unknown { found, known, .. } => (found, known),
        other => panic!("{other}"),
    };
    let (found, all) = known(refuse("gptj", json!({})));
    assert_eq!(found, "gptj");
    assert!(
        families::described()
            .map(|[name, ..]| name)
            .chain(["gemma3", "mistral3", "qwen3_5", "qwen3_5_moe", "qwen3_vl"])
            .all(|name| all.contains(&name))
    );
    assert_eq!(known(refuse("llama", json!({ "rope_scaling": { "type": "ntk" } }))).0, "ntk");
    assert_eq!(known(refuse("llama", json!({ "hidden_act": "relu6" }))).0, "relu6");
    let absent = ModelSpec::from_json(&json!({ "hidden_size": 4 })).unwrap_err();
    assert_eq!(field(&absent), "model_type");
    assert_eq!(field(&ModelSpec::from_json(&json!([])).unwrap_err()), "config.json");
}

#[test]
fn what_is_contradictory_or_absurd_is_refused_by_field() {
    for (model_type, changes, expected) in [
        ("llama", json!({ "num_attention_heads": 0 }), "num_attention_heads"),
        ("llama", json!({ "num_key_value_heads": 3 }), "num_key_value_heads"),
        ("llama", json!({ "num_key_value_heads": 0 }), "num_key_value_heads"),
        ("llama", json!({ "head_dim": null, "hidden_size": 30 }), "hidden_size"),
        ("llama", json!({ "head_dim": 7 }), "head_dim"),
        ("llama", json!({ "hidden_size": 0 }), "hidden_size"),
        ("llama", json!({ "num_hidden_layers": 0 }), "num_hidden_layers"),
        ("llama", json!({ "num_hidden_layers": 1_000_000_000_u64 }), "num_hidden_layers"),
        ("llama", json!({ "vocab_size": u64::MAX }), "vocab_size"),
        ("llama", json!({ "intermediate_size": 0 }), "intermediate_size"),
        ("llama", json!({ "max_position_embeddings": 0 }), "max_position_embeddings"),
        ("llama", json!({ "rms_norm_eps": -1.0 }), "rms_norm_eps"),
        ("llama", json!({ "rms_norm_eps": 1e106 }), "rms_norm_eps"),
        ("llama", json!({ "rope_theta": 0.0 }), "rope_theta"),
        ("llama", json!({ "rope_scaling": { "type": "linear" } }), "factor"),
        ("llama", json!({ "rope_scaling": { "type": "linear", "factor": -2.0 } }), "factor"),
        ("llama", json!({ "rope_scaling": { "type": "dynamic", "factor": 1e300 } }), "factor"),
        ("llama", json!({ "head_dim": 2, "rope_scaling": { "type": "dynamic", "factor": 2.0 } }), "head_dim"),
        ("llama", json!({ "rope_scaling": { "type": "llama3", "factor": 2.0 } }), "low_freq_factor"),
        ("llama", json!({ "rope_scaling": { "type": "longrope", "short_factor": [1.0] } }), "short_factor"),
        ("llama", json!({ "partial_rotary_factor": 0.5 }), "partial_rotary_factor"),
        ("llama", json!({ "rope_parameters": { "full_attention": {} } }), "rope_parameters"),
        ("mistral", json!({ "sliding_window": 0 }), "sliding_window"),
        ("mistral", json!({ "rope_parameters": { "llama_4_scaling_beta": 0.1 } }), "llama_4_scaling_beta"),
        (
            "ministral3",
            json!({ "rope_parameters": { "llama_4_scaling_beta": -0.1, "original_max_position_embeddings": 8 } }),
            "llama_4_scaling_beta",
        ),
        (
            "ministral3",
            json!({ "rope_parameters": { "llama_4_scaling_beta": 0.1 } }),
            "original_max_position_embeddings",
        ),
        // Heads of state spaces by default, 128, do not fill a width of 64.
        ("granitemoehybrid", json!({ "num_local_experts": 0 }), "mamba_n_heads"),
        ("granitemoehybrid", json!({ "mamba_n_heads": 4, "mamba_n_groups": 3 }), "mamba_n_groups"),
        ("granitemoehybrid", json!({ "mamba_n_heads": 4, "mamba_d_head": 8 }), "mamba_n_heads"),
        ("granitemoehybrid", json!({ "mamba_n_heads": 4, "mamba_d_conv": 1 }), "mamba_d_conv"),
        ("granitemoehybrid", json!({ "mamba_n_heads": 4, "hidden_act": "gelu" }), "hidden_act"),
        ("granitemoehybrid", json!({ "mamba_n_heads": 4, "time_step_limit": [0.0, 0.1] }), "time_step_limit"),
        ("falcon_h1", json!({ "mamba_d_ssm": 60 }), "mamba_n_heads"),
        ("falcon_h1", json!({ "mamba_n_heads": 4, "hidden_act": "gelu" }), "hidden_act"),
        ("falcon_h1", json!({ "mamba_n_heads": 4, "time_step_limit": [0.1, "Infinity"] }), "time_step_limit"),
        ("falcon_h1", json!({ "mamba_n_heads": 4, "key_multiplier": 0.0 }), "key_multiplier"),
        ("falcon_h1", json!({ "mamba_n_heads": 4, "mlp_multipliers": [1.0, -1.0] }), "mlp_multipliers"),
        ("falcon_h1", json!({ "mamba_n_heads": 4, "ssm_multipliers": [1, 1, 0, 1, 1] }), "ssm_multipliers"),
        ("falcon_h1", json!({ "mamba_proj_bias": true, "ssm_in_multiplier": 2.0 }), "mamba_proj_bias"),
        ("falcon_h1", json!({ "mamba_use_mlp": false }), "mamba_use_mlp"),
        ("nemotron_h", json!({ "layers_block_type": ["mamba", "conv"] }), "layers_block_type"),
        ("nemotron_h", json!({ "layers_block_type": [] }), "layers_block_type"),
        ("nemotron_h", json!({ "hybrid_override_pattern": "M-|" }), "hybrid_override_pattern"),
        ("nemotron_h", json!({ "mamba_hidden_act": "gelu" }), "mamba_hidden_act"),
        ("nemotron_h", json!({ "n_groups": 3 }), "n_groups"),
        ("nemotron_h", json!({ "time_step_min": -1.0 }), "time_step_min"),
        ("nemotron_h", json!({ "n_routed_experts": 0 }), "n_routed_experts"),
        ("nemotron_h", json!({ "n_group": 2 }), "n_group"),
        ("nemotron_h", json!({ "topk_group": 2 }), "topk_group"),
        ("nemotron_h", json!({ "moe_latent_size": 16 }), "moe_latent_size"),
        ("nemotron_h", json!({ "mlp_bias": true }), "mlp_bias"),
        (
            "granitemoehybrid",
            json!({ "num_experts_per_tok": 9, "layer_types": ["attention", "attention", "attention", "attention"] }),
            "num_experts_per_tok",
        ),
        ("lfm2_moe", json!({}), "layer_types"),
        ("lfm2_moe", json!({ "conv_bias": true }), "conv_bias"),
        ("lfm2_moe", json!({ "conv_L_cache": 1 }), "conv_L_cache"),
        ("lfm2_moe", json!({ "routed_scaling_factor": 0.0 }), "routed_scaling_factor"),
        (
            "granitemoehybrid",
            json!({ "num_local_experts": 0, "layer_types": ["attention", "sliding_attention", "attention", "attention"] }),
            "layer_types",
        ),
        ("granitemoehybrid", json!({ "num_local_experts": 0, "layer_types": ["attention"] }), "layer_types"),
        (
            "granitemoehybrid",
            json!({ "num_local_experts": 0, "layer_types": ["attention", "attention", "attention", "attention"], "position_embedding_type": "alibi" }),
            "position_embedding_type",
        ),
        ("granite", json!({ "logits_scaling": 1e-40 }), "logits_scaling"),
        ("cohere2", json!({ "use_qk_norm": true }), "use_qk_norm"),
        ("cohere2", json!({ "layer_switch": 3 }), "layer_switch"),
        ("cohere2", json!({ "layer_norm_eps": -1.0 }), "layer_norm_eps"),
        ("cohere2", json!({ "logit_scale": 0.0 }), "logit_scale"),
        ("qwen3_5_text", json!({ "attn_output_gate": false }), "attn_output_gate"),
        ("qwen3_5_text", json!({ "mlp_only_layers": [0] }), "mlp_only_layers"),
        ("qwen3_5_text", json!({ "hidden_act": "gelu" }), "hidden_act"),
        ("qwen3_5_text", json!({ "full_attention_interval": 0 }), "full_attention_interval"),
        ("qwen3_5_text", json!({ "linear_num_key_heads": 3, "linear_num_value_heads": 4 }), "linear_num_value_heads"),
        ("qwen3_5_text", json!({ "linear_conv_kernel_dim": 1 }), "linear_conv_kernel_dim"),
        ("qwen3_5_text", json!({ "layer_types": ["full_attention"] }), "layer_types"),
        ("qwen3_5_text", json!({ "layer_types": ["mamba", "mamba", "mamba", "mamba"] }), "layer_types"),
        ("lfm2", json!({ "conv_bias": true }), "conv_bias"),
        ("nemotron_h", json!({ "mlp_hidden_act": "relu6" }), "mlp_hidden_act"),
        ("gemma2", json!({ "hidden_activation": "relu6" }), "hidden_activation"),
        ("lfm2", json!({ "conv_dim": 8 }), "conv_dim"),
        ("lfm2", json!({ "conv_L_cache": 1 }), "conv_L_cache"),
        ("lfm2", json!({ "block_multiple_of": 0 }), "block_multiple_of"),
        ("lfm2", json!({ "block_ffn_dim_multiplier": -1.0 }), "block_ffn_dim_multiplier"),
        ("lfm2", json!({ "layer_types": ["conv"] }), "layer_types"),
        ("phi3", json!({ "partial_rotary_factor": 1.5 }), "partial_rotary_factor"),
        ("gemma", json!({ "use_bidirectional_attention": true }), "use_bidirectional_attention"),
        ("gpt_neox", json!({ "head_dim": null }), "num_key_value_heads"),
        ("gpt_neox", json!({ "num_key_value_heads": null }), "head_dim"),
        ("gpt2", json!({ "scale_attn_by_inverse_layer_idx": true }), "scale_attn_by_inverse_layer_idx"),
        ("phi", json!({ "qk_layernorm": true }), "qk_layernorm"),
        ("phi", json!({ "layer_norm_eps": -1.0 }), "layer_norm_eps"),
        ("gpt2", json!({ "add_cross_attention": true }), "add_cross_attention"),
        ("gpt2", json!({ "n_embd": 30, "n_head": 4 }), "n_embd"),
        ("gpt2", json!({ "layer_norm_epsilon": -1.0 }), "layer_norm_epsilon"),
        ("gemma2", json!({ "attn_logit_softcapping": 0.0 }), "attn_logit_softcapping"),
        ("gemma2", json!({ "attn_logit_softcapping": 1e-46 }), "attn_logit_softcapping"),
        ("gemma2", json!({ "final_logit_softcapping": 1e39 }), "final_logit_softcapping"),
        ("gemma2", json!({ "query_pre_attn_scalar": 0 }), "query_pre_attn_scalar"),
        ("gemma2", json!({ "use_bidirectional_attention": true }), "use_bidirectional_attention"),
    ] {
        assert_eq!(field(&refuse(model_type, changes.clone())), expected, "{changes}");
    }
    let of_heads = refuse("gpt2", json!({ "n_embd": 30, "n_head": 4 })).to_string();
    assert_eq!(of_heads, "n_embd is 30, expected a multiple of n_head 4");
    assert!(matches!(refuse("llama", json!({ "hidden_size": "many" })), ConfigProblem::Json(_)));
    assert!(matches!(refuse("llama", json!({ "hidden_size": -4 })), ConfigProblem::Json(_)));
}

#[test]
fn the_text_model_of_a_vision_language_folder_is_one_of_the_families() {
    let outer = |model_type: &str, text: Value| json!({ "model_type": model_type, "text_config": text, "eos_token_id": [7, 8] });
    let text = with(
        &small("qwen3_vl_text"),
        json!({ "tie_word_embeddings": true, "rope_scaling": { "rope_type": "default" } }),
    );
    let found = ModelSpec::from_json(&outer("qwen3_vl", text)).unwrap();
    assert_eq!((found.family, found.is_tower, found.eos.as_slice()), ("qwen3", true, &[7, 8][..]));
    // The outer file's word counts, and it says nothing.
    assert_eq!((found.ropes[0].theta, found.head), (5e5, super::HeadSpec::Own("lm_head.weight".to_owned())));
    let nameless = with(&small("x"), json!({ "rope_scaling": { "rope_type": "linear", "factor": 8.0 } }));
    let mut nameless = nameless.as_object().unwrap().clone();
    nameless.remove("model_type");
    let found = ModelSpec::from_json(&outer("gemma3", Value::Object(nameless))).unwrap();
    assert_eq!((found.family, found.head, found.max_len), ("gemma3_text", super::HeadSpec::Embedding, 128));
    let found = ModelSpec::from_json(&outer("mistral3", small("ministral3"))).unwrap();
    assert_eq!((found.family, found.is_tower, found.max_len), ("ministral3", true, 16 * 16384));
    let found = ModelSpec::from_json(&outer("qwen3_5", small("qwen3_5_text"))).unwrap();
    assert_eq!((found.family, found.is_tower), ("qwen3_5_text", true));
    assert_eq!(found.head, super::HeadSpec::Own("lm_head.weight".to_owned()));
    let flat = with(
        &small("qwen2_vl"),
        json!({ "rope_scaling": { "type": "mrope", "mrope_section": [2, 1, 1] }, "image_token_id": 7, "vision_config": {} }),
    );
    let found = ModelSpec::from_json(&flat).unwrap();
    assert_eq!((found.family, found.is_tower, found.ropes[0].theta), ("qwen2", true, 1e6));
    assert_eq!(found.ropes[0].scaling, RopeScaling::Default);
    let tied = with(&small("glm4v_text"), json!({ "tie_word_embeddings": true }));
    let found = ModelSpec::from_json(&outer("glm4v", tied.clone())).unwrap();
    // No part of the rotation is stated, so the whole head turns, unlike in GLM-4.
    assert_eq!((found.head, found.ropes[0].rotary_dim), (super::HeadSpec::Embedding, 8));
    // What the text model says does not count here.
    let tied = with(&tied, json!({ "model_type": "llama" }));
    let found = ModelSpec::from_json(&outer("smolvlm", tied)).unwrap();
    assert_eq!(found.head, super::HeadSpec::Own("lm_head.weight".to_owned()));
    let moe = with(&small("qwen3_vl_moe_text"), json!({ "num_local_experts": 5, "norm_topk_prob": false }));
    let fields = super::text_fields(&outer("qwen3_vl_moe", moe)).unwrap().unwrap();
    assert!(fields["norm_topk_prob"] == true && !fields.contains_key("num_experts"));
    let problem = ModelSpec::from_json(&outer("mistral3", small("llama"))).unwrap_err();
    assert_eq!(field(&problem), "text_config.model_type");
    assert_eq!(field(&ModelSpec::from_json(&json!({ "model_type": "gemma3" })).unwrap_err()), "text_config");
}

#[test]
fn experts_are_where_the_file_puts_them() {
    let sparse = |fields: DecoderFields| fields.sparse.unwrap();
    let of = |model_type: &str| fields(&json!({ "model_type": model_type })).unwrap();
    let counts = |model_type: &str| {
        let sparse = sparse(of(model_type));
        (sparse.n_experts, sparse.routing.top_k, sparse.routing.among_chosen, sparse.d_expert, sparse.d_shared)
    };
    assert_eq!(counts("mixtral"), (8, 2, true, 14336, None));
    assert_eq!(counts("qwen3_moe"), (128, 8, false, 768, None));
    assert_eq!(counts("qwen2_moe"), (60, 4, false, 1408, Some(5632)));
    assert_eq!(counts("olmoe"), (64, 8, false, 2048, None));
    let mixtral = of("mixtral");
    assert_eq!((mixtral.ropes[0].theta, mixtral.windows[0], mixtral.norm_eps), (1e6, None, 1e-5));
    let (qwen2, qwen3) = (of("qwen2_moe"), of("qwen3_moe"));
    assert!(qwen2.qkv_bias && !qwen2.o_bias && qwen2.qk_norm == QkNorm::None && qwen2.head_dim == 128);
    assert!(!qwen3.qkv_bias && qwen3.qk_norm == QkNorm::PerHead && (qwen3.n_kv_heads, qwen3.head_dim) == (4, 64));
    let olmoe = of("olmoe");
    assert!(olmoe.qk_norm == QkNorm::Whole && olmoe.norms == BlockNorms::BEFORE && olmoe.clip_qkv.is_none());

    let some =
        json!({ "num_experts": 4, "num_experts_per_tok": 2, "decoder_sparse_step": 2, "mlp_only_layers": [1, 9] });
    assert_eq!(sparse(read("qwen3_moe", some)).has_experts, [false, false, false, true]);
    assert_eq!(sparse(read("qwen2_moe", json!({}))).has_experts, [true; 4]);
    // The same number by two names.
    for fields in [json!({ "num_experts": 9 }), json!({ "num_local_experts": 9 })] {
        assert_eq!(sparse(read("qwen3_moe", fields.clone())).n_experts, 9);
        assert_eq!(sparse(read("mixtral", fields)).n_experts, 9);
    }
    let windows = json!({ "use_sliding_window": true, "sliding_window": 9, "max_window_layers": 2 });
    assert_eq!(read("qwen2_moe", windows.clone()).windows, [Some(9), None, None, None]);
    assert_eq!(read("qwen3_moe", windows).windows, [Some(9); 4]);
    assert_eq!(read("qwen3_moe", json!({ "sliding_window": 9 })).windows, [None; 4]);
    let oss = of("gpt_oss");
    let yarn = RopeScaling::Yarn {
        factor: 32.0,
        original_len: 4096,
        attention_factor: 0.1 * 32_f64.ln() + 1.0,
        beta_fast: 32.0,
        beta_slow: 1.0,
        truncate: false,
    };
    assert_eq!((oss.ropes[0].theta, &oss.ropes[0].scaling, oss.max_len), (150_000.0, &yarn, 131_072));
    assert_eq!((oss.windows[0], oss.windows[1], oss.head_dim), (Some(128), None, 64));
    assert!(oss.sinks && oss.qkv_bias && oss.o_bias);
    assert_eq!(oss.activation, Activation::ClampedSwish { alpha: 1.702, limit: 7.0 });
    assert_eq!(counts("gpt_oss"), (128, 4, true, 2880, None));
    assert_eq!(counts("qwen3_5_moe_text"), (256, 8, true, 512, Some(512)));
    for (model_type, changes, expected) in [
        ("qwen3_5_moe_text", json!({ "norm_topk_prob": false }), "norm_topk_prob"),
        ("qwen3_5_moe_text", json!({ "shared_expert_intermediate_size": 0 }), "shared_expert_intermediate_size"),
        ("gpt_oss", json!({ "swiglu_limit": 0.0 }), "swiglu_limit"),
        ("gpt_oss", json!({ "sliding_window": null }), "sliding_window"),
        ("mixtral", json!({ "num_experts_per_tok": 9 }), "num_experts_per_tok"),
        ("mixtral", json!({ "num_experts_per_tok": 0 }), "num_experts_per_tok"),
        ("mixtral", json!({ "num_local_experts": 0 }), "num_experts"),
        ("mixtral", json!({ "num_local_experts": 8, "num_experts": 4 }), "num_experts"),
        ("mixtral", json!({ "num_local_experts": 1_000_000 }), "num_experts"),
        ("qwen3_moe", json!({ "decoder_sparse_step": 0 }), "decoder_sparse_step"),
        ("qwen3_moe", json!({ "moe_intermediate_size": 0 }), "moe_intermediate_size"),
        ("qwen3_moe", json!({ "use_qk_norm": false }), "use_qk_norm"),
        ("qwen2_moe", json!({ "shared_expert_intermediate_size": 0 }), "shared_expert_intermediate_size"),
        ("qwen2_moe", json!({ "layer_types": vec!["sliding_attention"; 4] }), "sliding_window"),
        ("olmoe", json!({ "clip_qkv": 0.0 }), "clip_qkv"),
    ] {
        assert_eq!(field(&refuse(model_type, changes.clone())), expected, "{changes}");
    }
}

#[test]
fn a_stack_has_the_tensors_of_all_experts_in_their_order() {
    let config = with(&small("mixtral"), json!({ "num_local_experts": 3, "num_hidden_layers": 1 }));
    let spec = ModelSpec::from_json(&config).unwrap();
    let stacks: Vec<_> = spec.stacks().collect();
    let names: Vec<&str> = stacks.iter().map(|stack| stack.name.as_str()).collect();
    let of = |name: &str| format!("model.layers.0.mlp.{name}");
    assert_eq!(names, [of("experts.gate_up_proj"), of("experts.down_proj"), of("gate.weight")]);
    assert_eq!(stacks[0].shape, [3, 80, 32]);
    let third = &stacks[0].parts[2];
    assert_eq!(third.tensor.0, "model.layers.0.block_sparse_moe.experts.1.w1.weight");
    assert_eq!((third.start, &third.strides[..]), (80 * 32, &[32, 1][..]));
    every_number_once(&spec);
}

#[test]
fn only_qwen3_vl_may_store_its_experts_transposed() {
    let text = with(
        &small("qwen3_vl_moe_text"),
        json!({ "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 20 }),
    );
    let outer = json!({ "model_type": "qwen3_vl_moe", "text_config": text });
    let spec = ModelSpec::from_json(&outer).unwrap();
    let shapes: Vec<_> = spec.stacks().take(4).map(|stack| stack.shape.clone()).collect();
    assert_eq!(shapes, [[4, 40, 32], [4, 32, 20], [4, 32, 40], [4, 20, 32]]);
    every_number_once(&spec);
    let alone = with(&text, json!({ "model_type": "qwen3_moe" }));
    assert_eq!(ModelSpec::from_json(&alone).unwrap().stacks().count(), 2 * 4);
}

#[test]
fn a_stack_of_columns_has_every_number_once() {
    let of = |fields: Value| ModelSpec::from_json(&fields).unwrap();
    let spec = of(with(&small("gpt_oss"), json!({ "num_local_experts": 3, "num_experts_per_tok": 2 })));
    let shapes: Vec<_> = spec.stacks().take(4).map(|stack| stack.shape.clone()).collect();
    assert_eq!(shapes, [vec![3, 32, 80], vec![3, 80], vec![3, 40, 32], vec![3, 32]]);
    assert!(spec.stacks().all(|stack| stack.is_only_form));
    every_number_once(&spec);
}

#[test]
fn fused_and_transposed_projections_have_every_number_once() {
    let of = |fields: Value| ModelSpec::from_json(&fields).unwrap();
    let small = json!({ "vocab_size": 50, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 16,
                        "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 40 });
    let neox = of(with(&small, json!({ "model_type": "gpt_neox" })));
    let shapes = |spec: &ModelSpec| spec.stacks().map(|stack| stack.shape.clone()).collect::<Vec<_>>();
    assert_eq!(shapes(&neox), [vec![96, 32], vec![96], vec![96, 32], vec![96]]);
    // The key of head 1 is behind the three of head 0 and its own query.
    let stack = neox.stacks().next().unwrap();
    let key = stack.parts.iter().find(|part| part.tensor.0.contains("key.1.")).unwrap();
    assert_eq!((key.start, &key.strides[..]), (4 * 8 * 32, &[32, 1][..]));
    every_number_once(&neox);
    let gpt2 = of(with(&small, json!({ "model_type": "gpt2" })));
    let of_block = [vec![32, 96], vec![96], vec![32, 32], vec![32], vec![32, 128], vec![128], vec![128, 32], vec![32]];
    assert_eq!(shapes(&gpt2)[..8], of_block);
    let stack = gpt2.stacks().next().unwrap();
    assert_eq!(stack.name, "transformer.h.0.attn.c_attn.weight");
    assert_eq!((stack.parts[1].start, &stack.parts[1].strides[..]), (32, &[1, 96][..]));
    assert!(gpt2.stacks().chain(neox.stacks()).all(|stack| stack.is_only_form));
    every_number_once(&gpt2);
}

/// Each stack has each of its numbers in exactly one part, and all parts are tensors of the model.
fn every_number_once(spec: &ModelSpec) {
    let tensors = spec.tensors();
    for stack in spec.stacks() {
        let mut seen = vec![false; stack.shape.iter().product()];
        for part in &stack.parts {
            assert!(tensors.contains(&part.tensor), "{:?}", part.tensor);
            let (shape, strides) = (&part.tensor.1, &part.strides);
            assert_eq!(shape.len(), strides.len());
            for row in 0..shape[0] {
                for column in 0..*shape.get(1).unwrap_or(&1) {
                    let at = part.start + row * strides[0] + column * strides.get(1).unwrap_or(&0);
                    assert!(!std::mem::replace(&mut seen[at], true), "{}, {row}, {column}", part.tensor.0);
                }
            }
        }
        assert!(seen.iter().all(|&seen| seen), "{}", stack.name);
    }
}

#[test]
fn rotations_by_angles_that_are_no_numbers_are_refused() {
    let read = |rope: Value| ModelSpec::from_json(&with(&small("llama"), rope));
    for rope in [
        json!({ "rope_theta": 1e-300 }),
        json!({ "rope_scaling": { "rope_type": "linear", "factor": 1e-2, "rope_theta": 1e-60 } }),
    ] {
        assert_eq!(field(&read(rope.clone()).unwrap_err()), "rope_theta", "{rope}");
    }
    assert!(read(json!({ "rope_theta": 1e12 })).is_ok());
}

/// Each field is tried by itself, so their number is bounded.
#[test]
fn a_file_of_very_many_fields_is_refused() {
    let many: serde_json::Map<String, Value> = (0..100_000).map(|i| (i.to_string(), Value::Null)).collect();
    let read = |config: Value| field(&super::Architecture::from_json(&config).unwrap_err());
    let of = |model_type: &str| with(&json!({ "model_type": model_type }), Value::Object(many.clone()));
    assert_eq!((read(of("llama")), read(of("bert"))), ("config.json", "config.json"));
    assert_eq!(read(json!({ "model_type": "gemma3", "text_config": many })), "config.json");
    assert_eq!(read(json!({ "model_type": "llama", "rope_scaling": many })), "rope_scaling");
}
