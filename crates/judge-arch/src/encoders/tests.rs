use serde_json::json;

use super::*;
use crate::Architecture;
use crate::encoder::NormPlace;
use crate::tests::configs;

fn read(config: &Value) -> EncoderSpec {
    spec(config.as_object().unwrap()).unwrap().unwrap()
}

fn unread(config: &Value) -> Vec<String> {
    let file = config.as_object().unwrap();
    let family = FAMILIES.iter().find(|family| config["model_type"] == family.model_type).unwrap();
    assert!(lower(family, file).is_ok(), "{config}");
    unread_of(file)
}

#[test]
fn a_silent_file_has_the_familys_defaults() {
    let of = |model_type: &str| read(&json!({ "model_type": model_type }));
    let shape = |c: &EncoderSpec| (c.d_vocab, c.d_model, c.blocks[0].down.d_in, c.n_layers(), c.n_heads, c.max_len);
    let bert = of("bert");
    assert_eq!(shape(&bert), (30522, 768, 3072, 12, 12, 512));
    assert_eq!((bert.norm_place, bert.norm_eps, bert.head_dim()), (NormPlace::Post, 1e-12, 64));
    // 512 rows, of which those of `<s>`'s number and of padding are not counted.
    assert_eq!((of("roberta").max_len, of("xlm-roberta").family), (510, "xlm-roberta"));
    let modern = of("modernbert");
    assert_eq!(shape(&modern), (50368, 768, 1152, 22, 12, 8192));
    let windows: Vec<_> = modern.blocks[..4].iter().map(|block| (block.window, block.rope)).collect();
    assert_eq!(windows, [(None, Some(0)), (Some(64), Some(1)), (Some(64), Some(1)), (None, Some(0))]);
    assert_eq!((modern.ropes[0].theta, modern.ropes[1].theta), (160_000.0, 10_000.0));
    assert!(modern.blocks[0].attention_norm.is_none() && modern.blocks[1].attention_norm.is_some());
}

/// As in releases before transformers 5.
#[test]
fn a_local_base_that_is_null_is_the_global_one() {
    let config = json!({ "model_type": "modernbert", "global_rope_theta": 5e4, "local_rope_theta": null });
    assert_eq!(read(&config).ropes[1].theta, 5e4);
}

#[test]
fn fixtures_and_published_folders_have_no_unread_field() {
    for (path, config) in configs("encoders") {
        assert_eq!(unread(&config), [""; 0], "{}", path.display());
    }
    // Fields as in bert-base-multilingual-cased, xlm-roberta-base and ModernBERT-base.
    for config in [
        json!({
            "model_type": "bert", "architectures": ["BertForMaskedLM"], "attention_probs_dropout_prob": 0.1, "directionality": "bidi",
            "hidden_act": "gelu", "pad_token_id": 0, "pooler_fc_size": 768, "pooler_num_attention_heads": 12,
            "pooler_num_fc_layers": 3, "pooler_size_per_head": 128, "pooler_type": "first_token_transform", "type_vocab_size": 2
        }),
        // Cross-encoders as sentence-transformers has saved them, and fields of first releases.
        json!({
            "model_type": "bert", "architectures": ["BertForSequenceClassification"], "id2label": { "0": "LABEL_0" }, "_num_labels": 1,
            "sentence_transformers": { "version": "4.1.0", "activation_fn": "torch.nn.modules.linear.Identity" },
            "sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity", "num_choices": 2, "pruned_heads": {},
            "summary_last_dropout": 0
        }),
        json!({
            "model_type": "xlm-roberta", "architectures": ["XLMRobertaForMaskedLM"], "bos_token_id": 0, "eos_token_id": 2,
            "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "layer_norm_eps": 1e-5, "max_position_embeddings": 514,
            "output_past": true, "pad_token_id": 1, "position_embedding_type": "absolute", "use_cache": true, "vocab_size": 250_002
        }),
        json!({
            "model_type": "modernbert", "architectures": ["ModernBertForMaskedLM"], "classifier_pooling": "mean", "decoder_bias": true,
            "global_attn_every_n_layers": 3, "global_rope_theta": 160_000.0, "gradient_checkpointing": false,
            "hidden_activation": "gelu", "layer_norm_eps": 1e-5, "local_attention": 128, "local_rope_theta": 10_000.0,
            "position_embedding_type": "absolute", "sparse_prediction": false, "tie_word_embeddings": true
        }),
    ] {
        assert_eq!(unread(&config), [""; 0]);
    }
    assert_eq!(unread(&json!({ "model_type": "bert", "embedding_size": 128 })), ["embedding_size"]);
}

/// As deberta-v3-base is published.
fn deberta() -> Value {
    json!({
        "model_type": "deberta-v2", "attention_probs_dropout_prob": 0.1, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
        "hidden_size": 768, "initializer_range": 0.02, "intermediate_size": 3072, "max_position_embeddings": 512,
        "relative_attention": true, "position_buckets": 256, "norm_rel_ebd": "layer_norm", "share_att_key": true,
        "pos_att_type": "p2c|c2p", "layer_norm_eps": 1e-7, "max_relative_positions": -1, "position_biased_input": false,
        "num_attention_heads": 12, "num_hidden_layers": 12, "type_vocab_size": 0, "vocab_size": 128_100,
        "pooler_dropout": 0, "pooler_hidden_act": "gelu", "pooler_hidden_size": 768
    })
}

/// Buckets as `make_log_bucket_position` of transformers gives them.
#[test]
fn distances_have_the_rows_of_transformers() {
    assert_eq!(unread(&deberta()), [""; 0]);
    let relative = read(&deberta()).relative.unwrap();
    assert_eq!((relative.span(), relative.n_terms(), relative.farthest), (256, 3, 512));
    let buckets = [(0, 0), (1, 1), (127, 127), (128, 128), (129, 129), (131, 131), (200, 169), (300, 207), (511, 255)];
    for (distance, bucket) in buckets {
        assert_eq!(relative.row(distance), 256 + bucket, "{distance}");
        assert_eq!(relative.row(-distance), 256 - bucket, "-{distance}");
    }
    // The table ends.
    assert_eq!((relative.row(600), relative.row(-600)), (511, 0));
    let mut plain = deberta();
    plain["position_buckets"] = json!(-1);
    plain["max_relative_positions"] = json!(20);
    let relative = read(&plain).relative.unwrap();
    assert_eq!((relative.row(3), relative.row(-19), relative.row(-30), relative.row(30)), (23, 1, 0, 39));
}

#[test]
fn what_is_not_built_of_deberta_is_refused_by_name() {
    for (field, value) in [
        ("relative_attention", json!(false)),
        ("share_att_key", json!(false)),
        ("conv_kernel_size", json!(3)),
        ("embedding_size", json!(128)),
        ("attention_head_size", json!(32)),
        ("pos_att_type", json!(["p2p"])),
        ("pos_att_type", json!(3)),
        ("norm_rel_ebd", json!("batch_norm")),
        ("position_buckets", json!(1022)),
        ("pooler_hidden_size", json!(32)),
    ] {
        let mut config = deberta();
        config["architectures"] = json!(["DebertaV2ForSequenceClassification"]);
        config[field] = value;
        let refused = spec(config.as_object().unwrap()).unwrap_err().to_string();
        assert!(refused.contains(field), "{field}: {refused}");
    }
}

#[test]
fn a_folder_is_a_decoder_or_an_encoder() {
    let of = |config| Architecture::from_json(&config).unwrap();
    assert!(matches!(of(json!({ "model_type": "bert" })), Architecture::Encoder(_)));
    assert!(matches!(of(json!({ "model_type": "llama" })), Architecture::Decoder(_)));
}

#[test]
fn names_of_files_become_the_models_own() {
    let spec = read(&json!({ "model_type": "bert" }));
    let own = |name: &str| spec.own_name(name);
    let word = "embeddings.word_embeddings.weight";
    assert_eq!(own(&format!("bert.{word}")).as_deref(), Some(word));
    assert_eq!(own(word).as_deref(), Some(word));
    assert_eq!(own("bert.embeddings.LayerNorm.gamma").as_deref(), Some("embeddings.LayerNorm.weight"));
    for other in
        ["cls.predictions.bias", "bert.pooler.dense.weight", "classifier.weight", "bert.embeddings.position_ids"]
    {
        assert_eq!(own(other), None, "{other}");
    }
    let names: Vec<String> = spec.tensors().into_iter().map(|(name, _)| name).collect();
    assert!(names.iter().all(|name| own(name).as_ref() == Some(name)));
}
