use serde_json::{Value, json};

use crate::rope::RopeScaling;
use crate::tests::{field, with};
use crate::{ConfigProblem, HeadShape, HeadSpec, KeysSpec, MlpSpec, ModelSpec};

/// A small model of six blocks, of which those with the numbers 2 and 5 see everything.
fn read(changes: Value) -> Result<ModelSpec, ConfigProblem> {
    let kinds = [false, false, true, false, false, false];
    let config = json!({
        "model_type": "gemma4_text", "vocab_size": 50, "hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 6,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "global_head_dim": 16, "max_position_embeddings": 128,
        "layer_types": kinds.map(|is_full| if is_full { "full_attention" } else { "sliding_attention" }),
        "hidden_size_per_layer_input": 0
    });
    ModelSpec::from_json(&with(&config, changes))
}

#[test]
fn blocks_that_see_everything_have_heads_of_their_own() {
    let spec = read(json!({})).unwrap();
    let windows: Vec<bool> = spec.blocks.iter().map(|block| block.window.is_some()).collect();
    // The last one sees everything whatever the file says.
    assert_eq!(windows, [true, true, false, true, true, false]);
    let heads = |head_dim| HeadShape { n_heads: 4, n_kv_heads: 2, head_dim };
    for (block, has_window) in spec.blocks.iter().zip(windows) {
        assert_eq!((block.heads, block.keys), (heads(if has_window { 8 } else { 16 }), KeysSpec::Own));
        let rows: Vec<usize> = block.qkv.as_ref().unwrap().stems.iter().map(|(_, rows)| *rows).collect();
        let key_rows = 2 * block.heads.head_dim;
        assert_eq!(rows, [4 * block.heads.head_dim, key_rows, key_rows]);
        assert_eq!(block.k_norm.as_ref().unwrap().len, block.heads.head_dim);
        assert!(block.norms_values && block.scalar.is_some() && block.token_gate.is_none());
        let rope = &spec.ropes[block.rope.unwrap()];
        assert_eq!((rope.rotary_dim, rope.theta), (block.heads.head_dim, if has_window { 1e4 } else { 1e6 }));
        let expected = match has_window {
            true => RopeScaling::Default,
            false => RopeScaling::Proportional { pairs: 2, factor: 1.0 },
        };
        assert_eq!(rope.scaling, expected);
    }
    assert_eq!((spec.attention_scale, spec.head.clone(), spec.final_soft_cap), (1.0, HeadSpec::Embedding, None));
    assert!(spec.norm.offset == 0.0 && spec.token_inputs.is_none());

    let equal = read(json!({ "attention_k_eq_v": true, "num_global_key_value_heads": 1 })).unwrap();
    let full = &equal.blocks[2];
    assert_eq!((full.keys, full.heads), (KeysSpec::AsValues, HeadShape { n_kv_heads: 1, ..heads(16) }));
    assert_eq!(full.qkv.as_ref().unwrap().stems.len(), 2);
    assert_eq!((equal.blocks[0].keys, equal.blocks[0].heads), (KeysSpec::Own, heads(8)));
    // Without that it is not read, as in transformers.
    assert_eq!(read(json!({ "num_global_key_value_heads": 1 })).unwrap().blocks[2].heads, heads(16));
}

#[test]
fn both_ways_to_state_heads_say_the_same() {
    let heads = |head_dim: usize, n_kv_heads: usize| json!({ "head_dim": head_dim, "num_key_value_heads": n_kv_heads });
    let layers: serde_json::Map<String, Value> = (0..6)
        .map(|layer| (layer.to_string(), if layer == 2 || layer == 5 { heads(16, 1) } else { heads(8, 2) }))
        .collect();
    let written = read(json!({ "per_layer_config": layers, "attention_k_eq_v": true, "global_head_dim": null }));
    let Err(ConfigProblem::Field { field, found, .. }) = written else { panic!("a width is no null") };
    assert_eq!((field.as_str(), found.as_str()), ("global_head_dim", "null"));
    let written = read(json!({ "per_layer_config": layers, "attention_k_eq_v": true })).unwrap();
    let published = read(json!({ "attention_k_eq_v": true, "num_global_key_value_heads": 1 })).unwrap();
    assert_eq!(written, published);
}

#[test]
fn the_last_blocks_look_at_keys_of_earlier_ones_of_their_kind() {
    let spec = read(json!({ "num_kv_shared_layers": 3, "use_double_wide_mlp": true })).unwrap();
    let keys: Vec<KeysSpec> = spec.blocks.iter().map(|block| block.keys).collect();
    let own = KeysSpec::Own;
    assert_eq!(keys, [own, own, own, KeysSpec::Of(1), KeysSpec::Of(1), KeysSpec::Of(2)]);
    for (index, block) in spec.blocks.iter().enumerate() {
        let Some(MlpSpec::Dense(mlp)) = &block.mlp else { panic!("{:?}", block.mlp) };
        assert_eq!(mlp.down.d_in, if index < 3 { 40 } else { 80 });
        assert_eq!(
            (block.qkv.as_ref().unwrap().stems.len(), block.k_norm.is_some()),
            if index < 3 { (3, true) } else { (1, false) }
        );
    }
    assert!(spec.idle_tensors().any(|name| name == "model.layers.4.self_attn.v_proj."));
    assert!(!spec.idle_tensors().any(|name| name.starts_with("model.layers.2.")));
}

#[test]
fn token_inputs_have_a_row_for_each_token() {
    let spec = read(json!({ "hidden_size_per_layer_input": 4, "vocab_size_per_layer_input": 60 })).unwrap();
    let tensors = spec.tensors();
    assert!(tensors.contains(&("model.embed_tokens_per_layer.weight".to_owned(), vec![60, 24])));
    assert!(tensors.contains(&("model.per_layer_model_projection.weight".to_owned(), vec![24, 32])));
    assert!(tensors.contains(&("model.layers.5.per_layer_projection.weight".to_owned(), vec![32, 4])));
    let silent = ModelSpec::from_json(&json!({ "model_type": "gemma4_text" })).unwrap();
    assert_eq!(silent.token_inputs.as_ref().unwrap().table.1, 262_144);
    assert_eq!((silent.n_layers(), silent.blocks[5].window, silent.blocks[4].window), (30, None, Some(512)));
    assert_eq!((silent.blocks[5].heads.head_dim, silent.blocks[4].heads.head_dim), (512, 256));
}

#[test]
fn experts_stand_beside_the_mlp() {
    let fields = json!({ "enable_moe_block": true, "num_experts": 5, "top_k_experts": 2, "moe_intermediate_size": 12 });
    let spec = read(fields).unwrap();
    let Some(MlpSpec::Both(both)) = &spec.blocks[1].mlp else { panic!("{:?}", spec.blocks[1].mlp) };
    assert_eq!((both.mlp.down.d_in, both.experts.experts.len(), both.experts.experts[0].down.d_in), (40, 5, 12));
    assert_eq!((both.experts.routing.top_k, both.experts.routing.among_chosen), (2, true));
    assert!((both.before_router.factor - 32_f32.sqrt().recip()).abs() < 1e-7);
    let tensors = spec.tensors();
    let of = |name: &str, shape: Vec<usize>| tensors.contains(&(format!("model.layers.1.{name}"), shape));
    assert!(of("router.proj.weight", vec![5, 32]) && of("router.scale", vec![32]));
    assert!(of("router.per_expert_scale", vec![5]) && of("pre_feedforward_layernorm_2.weight", vec![32]));
    let stacks: Vec<_> = spec.stacks().take(2).collect();
    assert_eq!(stacks[0].name, "model.layers.0.experts.gate_up_proj");
    assert_eq!((stacks[0].shape.as_slice(), stacks[1].shape.as_slice()), (&[5, 24, 32][..], &[5, 32, 12][..]));
    assert!(stacks.iter().all(|stack| stack.is_only_form));
}

#[test]
fn the_text_model_of_an_outer_folder_is_this_family() {
    let text = json!({ "model_type": "gemma4_text", "vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 6 });
    let found = ModelSpec::from_json(&json!({ "model_type": "gemma4", "text_config": text })).unwrap();
    assert_eq!((found.family, found.is_tower, found.head), ("gemma4_text", true, HeadSpec::Embedding));
}

#[test]
fn what_is_not_read_is_refused_by_field() {
    for (changes, expected) in [
        (json!({ "use_bidirectional_attention": "all" }), "use_bidirectional_attention"),
        (json!({ "sliding_window": null }), "sliding_window"),
        (json!({ "sliding_window": 0 }), "sliding_window"),
        (json!({ "final_logit_softcapping": 0.0 }), "final_logit_softcapping"),
        (json!({ "global_head_dim": 0 }), "global_head_dim"),
        (json!({ "global_head_dim": 7 }), "head_dim"),
        (json!({ "attention_k_eq_v": true, "num_global_key_value_heads": 3 }), "num_global_key_value_heads"),
        (json!({ "per_layer_config": { "6": {} } }), "per_layer_config"),
        (json!({ "per_layer_config": { "two": {} } }), "per_layer_config"),
        (json!({ "per_layer_config": { "1": { "head_dim": 16 } } }), "per_layer_config"),
        (json!({ "num_kv_shared_layers": 7 }), "num_kv_shared_layers"),
        // No block that sees everything is left for the last one.
        (json!({ "num_kv_shared_layers": 4 }), "num_kv_shared_layers"),
        (json!({ "hidden_size_per_layer_input": 4, "vocab_size_per_layer_input": 49 }), "vocab_size_per_layer_input"),
        (json!({ "enable_moe_block": true }), "num_experts"),
        (json!({ "enable_moe_block": true, "num_experts": 4 }), "top_k_experts"),
        (json!({ "enable_moe_block": true, "num_experts": 4, "top_k_experts": 5 }), "top_k_experts"),
        (json!({ "enable_moe_block": true, "num_experts": 4, "top_k_experts": 2 }), "moe_intermediate_size"),
        (json!({ "rope_theta": 1e6 }), "rope_theta"),
        (json!({ "rope_scaling": { "rope_type": "linear", "factor": 2.0 } }), "rope_scaling"),
        (json!({ "rope_parameters": { "rope_type": "default", "rope_theta": 1e4 } }), "rope_parameters"),
        (json!({ "rope_parameters": { "full_attention": { "rope_type": "default" } } }), "rope_parameters"),
        (json!({ "layer_types": ["full_attention"] }), "layer_types"),
    ] {
        assert_eq!(field(&read(changes.clone()).unwrap_err()), expected, "{changes}");
    }
    // Of pictures alone.
    assert!(read(json!({ "use_bidirectional_attention": "vision" })).is_ok());
    let unknown = read(json!({ "per_layer_config": { "1": { "intermediate_size": 16 } } })).unwrap_err();
    assert!(unknown.to_string().contains("intermediate_size"), "{unknown}");
}
