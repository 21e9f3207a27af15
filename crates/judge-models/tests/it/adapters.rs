//! Adapters merged at load, against PEFT's forward passes with them: `scripts/parity/make_adapter_fixtures.py`.

#![allow(clippy::print_stdout)] // measured errors

use std::fs;
use std::path::{Path, PathBuf};

use judge_core::{Backbone, Lens, Reading, Want, model::BackboneError, request::Pooling};
use judge_models::{
    AdapterProblem, Dtype, Error, LoadOptions, Merged, Model, TensorProblem, WeightsError, merge_adapters,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::{
    Stored, copy, edit, fixtures, json, labels_at_end, last_states, of_adapter, of_every_layer, of_tensor, raw, read,
    rename, retensor, tensors, text_of, values, write_tensors,
};
use crate::difference::relative_error;

fn adapter(name: &str) -> PathBuf {
    fixtures().join("adapters").join(name)
}

fn load(base: &str, adapters: &[PathBuf], dtype: Dtype) -> Result<Model, Error> {
    let options = LoadOptions { dtype: Some(dtype), adapters: adapters.to_vec(), ..LoadOptions::default() };
    Model::load(fixtures().join(base), &options)
}

/// The last position's state of every layer, behind one another, for the prompt whose tokens are these.
fn states(model: &Model, base: &str, ids: &Value) -> Vec<f32> {
    values(&last_states(model, &text_of(&fixtures().join(base), ids)))
}

fn numbers(value: &Value) -> Vec<f32> {
    match value {
        Value::Array(values) => values.iter().flat_map(numbers).collect(),
        value => vec![value.as_f64().unwrap() as f32],
    }
}

#[test]
fn merged_adapters_equal_those_that_peft_has_not_merged() {
    for name in ["plain", "patterns", "dora", "fused", "labels", "neighbours", "delta", "reward", "value"] {
        let expected = json(adapter(name).join("expected.json"));
        let base = expected["base"].as_str().unwrap();
        let (plain, model) = (load(base, &[], Dtype::F32).unwrap(), load(base, &[adapter(name)], Dtype::F32).unwrap());
        assert_eq!(model.info().name, format!("{}+{name}", plain.info().name));
        assert_ne!(model.info().fingerprint, plain.info().fingerprint);
        for prompt in expected["prompts"].as_array().unwrap() {
            let wanted = numbers(&prompt["states"]);
            let (found, without) = (states(&model, base, &prompt["ids"]), states(&plain, base, &prompt["ids"]));
            println!(
                "{name}: {:.1e}, without the adapter {:.1e}",
                relative_error(&found, &wanted),
                relative_error(&without, &wanted)
            );
            assert!(relative_error(&found, &wanted) < 1e-4 && relative_error(&without, &wanted) > 1e-2, "{name}");
            if let Some(head) = model.reward_head() {
                let width = model.info().d_model;
                let rewards: Vec<f32> =
                    head.rewards(&found[found.len() - width..]).unwrap().iter().map(|&reward| reward as f32).collect();
                assert!(relative_error(&rewards, &numbers(&prompt["rewards"])) < 1e-4, "{name}: {rewards:?}");
                assert_ne!(model.reward_head(), plain.reward_head());
            } else {
                assert!(prompt.get("rewards").is_none(), "{name}");
            }
            // Rounded once, to bf16, as all weights are.
            let half = load(base, &[adapter(name)], Dtype::Bf16).unwrap();
            assert!(relative_error(&states(&half, base, &prompt["ids"]), &wanted) < 5e-2, "{name}");
        }
    }
}

/// A copy of the adapter that brings a head to a causal model, with its configuration and its header edited.
fn reward_adapter(config: impl FnOnce(&mut Value), renamed: &[(&str, &str)]) -> TempDir {
    let to = copy("adapters/reward");
    edit(to.path().join("adapter_config.json"), config);
    rename(&to.path().join("adapter_model.safetensors"), |name| match renamed.iter().find(|(from, _)| *from == name) {
        Some((_, "")) => None,
        Some((_, to)) => Some(to.to_string()),
        None => Some(name.to_owned()),
    });
    to
}

/// TRL's way: the adapter of a sequence classifier over a causal model, whose head is whole in the adapter.
#[test]
fn an_adapter_brings_a_head_of_labels_to_a_causal_model() {
    const SCORE: &str = "base_model.model.score.weight";
    let base = "families/llama-off";
    let plain = load(base, &[], Dtype::F32).unwrap();
    assert!(plain.reward_head().is_none());
    let model = load(base, &[adapter("reward")], Dtype::F32).unwrap();
    assert_eq!(model.reward_head().unwrap().labels(), ["LABEL_0"]);
    assert!(matches!(model.token("ba"), Err(BackboneError::NoLogits { .. })));
    // The spelling that the tensor has while PEFT runs; a task that is not stated.
    let other = reward_adapter(
        |config| config["task_type"] = Value::Null,
        &[(SCORE, "base_model.model.score.modules_to_save.default.weight")],
    );
    let other = load(base, &[other.path().to_owned()], Dtype::F32).unwrap();
    assert_eq!(other.reward_head(), model.reward_head());
    // A later adapter of the classifier needs no head of its own.
    let headless = reward_adapter(|_| {}, &[(SCORE, "")]);
    let both = load(base, &[adapter("reward"), headless.path().to_owned()], Dtype::F32).unwrap();
    assert_eq!(both.reward_head(), model.reward_head());

    let problem = |adapter: &TempDir| of_adapter(load(base, &[adapter.path().to_owned()], Dtype::F32).unwrap_err());
    let found = problem(&headless);
    assert!(matches!(found, AdapterProblem::NoLabels) && found.to_string().contains("score.weight"), "{found}");
    // The same tensor of a class that has a number for each token.
    let tokens = problem(&reward_adapter(|config| config["task_type"] = json!("TOKEN_CLS"), &[]));
    assert!(matches!(&tokens, AdapterProblem::NoSuchTensor { names } if names == &["score.weight"]), "{tokens}");
}

/// LLaMA-Factory's way: a causal model or an adapter of one, with a value head in a file beside it.
#[test]
fn a_value_head_is_a_reward_head_with_a_bias() {
    let base = "families/llama-off";
    let expected = json(adapter("value").join("expected.json"));
    let folder = copy(base);
    let options = LoadOptions { dtype: Some(Dtype::F32), ..LoadOptions::default() };
    let without = Model::load(folder.path(), &options).unwrap();
    assert!(without.reward_head().is_none());
    let place = folder.path().join("value_head.safetensors");
    fs::copy(adapter("value").join("value_head.safetensors"), &place).unwrap();
    let whole = Model::load(folder.path(), &options).unwrap();
    assert_ne!(whole.info().fingerprint, without.info().fingerprint);
    assert_eq!(whole.reward_head().unwrap().labels(), ["value"]);
    // Its logits are there as before.
    assert_eq!(whole.token("ba").unwrap(), without.token("ba").unwrap());
    let adapted = load(base, &[adapter("value")], Dtype::F32).unwrap();
    for prompt in expected["prompts"].as_array().unwrap() {
        for (model, rewards) in [(&whole, "of_base"), (&adapted, "rewards")] {
            let found = states(model, base, &prompt["ids"]);
            let width = model.info().d_model;
            let reward = model.reward_head().unwrap().rewards(&found[found.len() - width..]).unwrap()[0];
            assert!((reward - prompt[rewards][0].as_f64().unwrap()).abs() < 1e-4, "{reward} {prompt}");
        }
        assert!((prompt["rewards"][0].as_f64().unwrap() - prompt["of_base"][0].as_f64().unwrap()).abs() > 1e-3);
    }
    // An adapter's own counts before that of its base.
    let other = LoadOptions { adapters: vec![adapter("plain"), adapter("value")], ..options.clone() };
    assert_eq!(Model::load(folder.path(), &other).unwrap().reward_head(), adapted.reward_head());

    // Two heads, and a head of another model.
    let refused = load("heads/qwen3", &[adapter("value")], Dtype::F32).unwrap_err();
    assert!(
        matches!(
            refused,
            Error::Weights(
                WeightsError::Adapter { .. } | WeightsError::Unsupported { .. } | WeightsError::Tensor { .. }
            )
        ),
        "{refused:?}"
    );
    let both = LoadOptions { adapters: vec![adapter("reward")], ..options.clone() };
    let refused = Model::load(folder.path(), &both).unwrap_err();
    assert!(
        matches!(&refused, Error::Weights(WeightsError::Unsupported { field, .. }) if field == "v_head"),
        "{refused:?}"
    );
    let zeros = |part: &str, shape: &[usize]| -> Stored {
        let name = format!("v_head.summary.{part}");
        (name, safetensors::Dtype::F32, shape.to_vec(), vec![0; 4 * shape.iter().product::<usize>()])
    };
    let tensors = [zeros("weight", &[1, 3]), zeros("bias", &[1])];
    write_tensors(&place, &tensors);
    let shape = Model::load(folder.path(), &options).unwrap_err();
    assert_eq!(of_tensor(shape).0, "v_head.summary.weight");
    write_tensors(&place, &tensors[..1]);
    let names = Model::load(folder.path(), &options).unwrap_err();
    assert!(names.to_string().contains("v_head.summary.bias"), "{names}");
}

#[test]
fn an_adapters_folder_is_the_model_that_it_was_trained_on_with_it() {
    let base = fixtures().join("families/llama-off");
    let alone = reward_adapter(|config| config["base_model_name_or_path"] = json!(base), &[]);
    let options = LoadOptions { dtype: Some(Dtype::F32), ..LoadOptions::default() };
    let model = Model::load(alone.path(), &options).unwrap();
    let named = load("families/llama-off", &[alone.path().to_owned()], Dtype::F32).unwrap();
    assert_eq!((model.info(), model.reward_head()), (named.info(), named.reward_head()));
    assert!(model.info().name.starts_with("llama-off+"));
    assert_eq!(Model::fingerprint_of(alone.path(), &options).unwrap(), model.info().fingerprint);
    let ids = json!([4, 5, 6, 7]);
    assert_eq!(states(&model, "families/llama-off", &ids), states(&named, "families/llama-off", &ids));
    // Further adapters come after it.
    let both = LoadOptions { adapters: vec![adapter("plain")], ..options.clone() };
    let both = Model::load(alone.path(), &both).unwrap();
    assert!(both.info().name.ends_with("+plain") && both.reward_head() == model.reward_head());
    let to = TempDir::new().unwrap();
    merge(alone.path(), &[], Dtype::F32, to.path());
    assert_eq!(Model::load(to.path(), &options).unwrap().reward_head(), model.reward_head());

    // Where the base lies, and how the adapter was trained, changes nothing that the model says; what it adds does.
    let (there, moved) = (copy("families/llama-off"), copy("adapters/reward"));
    let fingerprint = |change: &dyn Fn(&mut Value)| {
        edit(moved.path().join("adapter_config.json"), |config| change(config));
        Model::fingerprint_of(moved.path(), &options).unwrap()
    };
    let elsewhere = fingerprint(&|config| {
        config["base_model_name_or_path"] = json!(there.path());
        config["lora_dropout"] = json!(0.1);
    });
    assert_eq!(elsewhere, model.info().fingerprint);
    assert_ne!(fingerprint(&|config| config["lora_alpha"] = json!(8)), elsewhere);

    // Its base is nowhere, or an adapter as well.
    let lost = Model::load(adapter("plain"), &options).unwrap_err();
    assert!(lost.to_string().contains("families/llama-off"), "{lost}");
    let chain = reward_adapter(|config| config["base_model_name_or_path"] = json!(alone.path()), &[]);
    let refused = Model::load(chain.path(), &options).unwrap_err();
    assert!(
        matches!(&refused, Error::Weights(WeightsError::Unsupported { found, .. }) if found.contains("adapter")),
        "{refused:?}"
    );
}

/// Where transformers would do otherwise, a note says so.
#[test]
fn what_lies_beside_and_does_not_count_is_noted() {
    let is_noted = |folder: &TempDir, adapters: &[&TempDir], text: &str| {
        let adapters = adapters.iter().map(|adapter| adapter.path().to_owned()).collect();
        let model = Model::load(folder.path(), &LoadOptions { adapters, ..LoadOptions::default() }).unwrap();
        model.info().notes.iter().any(|note| note.contains(text))
    };
    let (folder, adapter) = (copy("families/llama-off"), copy("adapters/plain"));
    let own_template = "chat template is not that of the base model";
    let write = |of: &TempDir| fs::write(of.path().join("chat_template.jinja"), "o {{ messages[0].content }}").unwrap();
    assert!(!is_noted(&folder, &[&adapter], own_template));
    write(&adapter);
    assert!(is_noted(&folder, &[&adapter], own_template));
    write(&folder);
    assert!(!is_noted(&folder, &[&adapter], own_template));

    let beside = "has adapter_config.json beside its weights";
    assert!(!is_noted(&folder, &[], beside));
    for name in ["adapter_config.json", "adapter_model.safetensors"] {
        fs::copy(adapter.path().join(name), folder.path().join(name)).unwrap();
    }
    assert!(is_noted(&folder, &[], beside));
    assert!(!is_noted(&folder, &[&folder], beside));
}

#[test]
fn several_adapters_are_merged_one_after_another() {
    let base = "families/llama-off";
    let load = |names: &[&str]| {
        let adapters: Vec<PathBuf> = names.iter().map(|name| adapter(name)).collect();
        load(base, &adapters, Dtype::F32).unwrap()
    };
    let ids = json!([4, 5, 6, 7]);
    let (both, first, second) = (load(&["plain", "dora"]), load(&["plain"]), load(&["dora"]));
    assert_eq!(both.info().name, "llama-off+plain+dora");
    let found = [&both, &first, &second].map(|model| states(model, base, &ids));
    assert!(found[0] != found[1] && found[0] != found[2]);
    // They change different matrices, so their order does not matter.
    assert_eq!(states(&load(&["dora", "plain"]), base, &ids), found[0]);
}

/// States of every layer and label logits of all of them.
fn everything(model: &Model, text: &str) -> Reading {
    let labels = labels_at_end(vec![4, 5, 20], model.info().layers(), Lens::Raw);
    read(model, raw(text), &Want { labels: vec![labels], ..of_every_layer(model, &[Pooling::Last]) })
}

/// An adapter without pairs: tensors of the base that it replaces.
fn replacing(config: &Value, stored: &[Stored]) -> TempDir {
    let to = TempDir::new().unwrap();
    let mut fields = json!({ "peft_type": "LORA" });
    fields.as_object_mut().unwrap().extend(config.as_object().unwrap().clone());
    fs::write(to.path().join("adapter_config.json"), fields.to_string()).unwrap();
    let own = stored
        .iter()
        .cloned()
        .map(|(name, dtype, shape, bytes)| (format!("base_model.model.{name}"), dtype, shape, bytes));
    write_tensors(&to.path().join("adapter_model.safetensors"), &own.collect::<Vec<_>>());
    to
}

/// PEFT 0.21.2 copies a module of `modules_to_save` and leaves what is tied to it on the base's. With `ensure_weight_tying`, and where
/// the tensor is loaded into the base's module, the head goes along. Compared with folders that store what follows.
#[test]
fn the_head_of_a_tied_model_stays_the_embedding_of_the_base_where_an_adapter_copies_the_embedding() {
    const HEAD: &str = "lm_head.weight";
    for (base, embedding, module) in [
        ("families/llama-off", "model.embed_tokens.weight", "embed_tokens"),
        ("families/gpt_neox-off", "gpt_neox.embed_in.weight", "embed_in"),
    ] {
        let text = text_of(&fixtures().join(base), &json!([4, 5, 6, 7]));
        let stored = tensors(&fixtures().join(base).join("model.safetensors"));
        let (_, dtype, shape, bytes) = stored.into_iter().find(|(name, ..)| name == embedding).unwrap();
        // The embedding with its rows turned, by another name.
        let turned = |by: usize, name: &str| -> Stored {
            let mut bytes = bytes.clone();
            let row = bytes.len() / shape[0];
            bytes.rotate_left(by * row);
            (name.to_owned(), dtype, shape.clone(), bytes)
        };
        let whole = |of_embedding: usize, of_head: Option<usize>| {
            let to = copy(base);
            retensor(&to.path().join("model.safetensors"), |stored| {
                stored.retain(|(name, ..)| name != embedding);
                stored.push(turned(of_embedding, embedding));
                stored.extend(of_head.map(|by| turned(by, HEAD)));
            });
            everything(&load(to.path().to_str().unwrap(), &[], Dtype::F32).unwrap(), &text)
        };
        let adapted = |adapters: &[&TempDir]| {
            let adapters: Vec<PathBuf> = adapters.iter().map(|adapter| adapter.path().to_owned()).collect();
            everything(&load(base, &adapters, Dtype::F32).unwrap(), &text)
        };
        let copied = json!({ "modules_to_save": [module] });
        let apart = replacing(&copied, &[turned(1, embedding)]);
        assert_eq!(adapted(&[&apart]), whole(1, Some(0)), "{base}");
        assert_ne!(adapted(&[&apart]), whole(1, None), "{base}");
        let tied = json!({ "modules_to_save": [module], "ensure_weight_tying": true });
        let tied = replacing(&tied, &[turned(1, embedding)]);
        for tied in [&tied, &replacing(&json!({}), &[turned(1, embedding)])] {
            assert_eq!(adapted(&[tied]), whole(1, None), "{base}");
        }
        // One after another: the second finds a head that is the embedding of the first.
        let second = replacing(&copied, &[turned(2, embedding)]);
        assert_eq!(adapted(&[&tied, &second]), whole(2, Some(1)), "{base}");
        assert_eq!(adapted(&[&apart, &second]), whole(2, Some(0)), "{base}");
        // The head alone, and both.
        let head = replacing(&json!({ "modules_to_save": ["lm_head"] }), &[turned(1, HEAD)]);
        assert_eq!(adapted(&[&head]), whole(0, Some(1)), "{base}");
        let both = replacing(&copied, &[turned(1, embedding), turned(2, HEAD)]);
        assert_eq!(adapted(&[&both]), whole(1, Some(2)), "{base}");
        let to = TempDir::new().unwrap();
        merge(&fixtures().join(base), &[apart.path().to_owned()], Dtype::F32, to.path());
        let merged = Model::load(to.path(), &LoadOptions::default()).unwrap();
        assert_eq!(everything(&merged, &text), whole(1, Some(0)), "{base}");
    }
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let base = "families/llama-off";
    let problem = |adapters: &[PathBuf]| of_adapter(load(base, adapters, Dtype::F32).unwrap_err());
    let edited = |change: &dyn Fn(&mut Value)| {
        let to = copy("adapters/plain");
        edit(to.path().join("adapter_config.json"), |config| change(config));
        problem(&[to.path().to_owned()])
    };
    let unsupported = |problem| match problem {
        AdapterProblem::Unsupported { field, found } => (field, found),
        other => panic!("{other}"),
    };
    assert_eq!(unsupported(edited(&|config| config["peft_type"] = json!("IA3"))).0, "peft_type");
    assert_eq!(unsupported(edited(&|config| config["fan_in_fan_out"] = json!(true))).0, "fan_in_fan_out");
    for (field, value) in [("r", json!(null)), ("lora_alpha", json!("much")), ("use_rslora", json!(1))] {
        assert_eq!(unsupported(edited(&|config| config[field] = value.clone())), (field.to_owned(), value.to_string()));
    }
    assert_eq!(unsupported(edited(&|config| config["layer_replication"] = json!([[0, 2]]))).0, "layer_replication");
    for kind in ["pissa_niter_4", "OLORA", "loftq", "lora_ga", "of_tomorrow"] {
        assert_eq!(unsupported(edited(&|config| config["init_lora_weights"] = json!(kind))).1, kind);
    }
    for kind in [json!(null), json!(false), json!("Gaussian"), json!("eva")] {
        let to = copy("adapters/plain");
        edit(to.path().join("adapter_config.json"), |config| config["init_lora_weights"] = kind.clone());
        assert!(load(base, &[to.path().to_owned()], Dtype::F32).is_ok(), "{kind}");
    }
    let (field, found) = unsupported(edited(&|config| config["use_dora"] = json!(true)));
    assert!(field == "use_dora" && found.contains("lora_magnitude_vector"), "{field} {found}");
    let pattern = unsupported(edited(&|config| config["alpha_pattern"] = json!({"layers.[01].*q_proj": 3})));
    assert_eq!(pattern, ("alpha_pattern".to_owned(), "layers.[01].*q_proj (a regular expression)".to_owned()));
    let contradiction = edited(&|config| config["alpha_pattern"] = json!({"q_proj": 3, "self_attn.q_proj": 4}));
    let (field, found) = unsupported(contradiction);
    assert!(field == "alpha_pattern" && found.contains("PEFT takes the first of the file"), "{field} {found}");
    let rank = edited(&|config| config["r"] = json!(5));
    assert!(matches!(rank, AdapterProblem::Rank { expected: 5, .. }), "{rank}");
    let scale = edited(&|config| config["lora_alpha"] = json!(1e40));
    assert_eq!(unsupported(scale).0, "lora_alpha");
    // Finite in the file, not as merged: sums of some 0.1 by a scale near the end of f32's range, twice over.
    let to = copy("adapters/plain");
    edit(to.path().join("adapter_config.json"), |config| config["lora_alpha"] = json!(1.3e39));
    let twice = vec![to.path().to_owned(); 40];
    let (_, merged) = of_tensor(load(base, &twice, Dtype::Bf16).unwrap_err());
    assert!(matches!(merged, TensorProblem::NonFinite { value, .. } if !value.is_finite()), "{merged}");
    // Another model's: it has matrices of other names, or of other shapes.
    let other = problem(&[adapter("fused")]);
    assert!(matches!(&other, AdapterProblem::NoSuchTensor { names } if names[0].contains("gate_up_proj")), "{other}");
    let (tensor, _) = of_tensor(load("families/qwen3-on", &[adapter("plain")], Dtype::F32).unwrap_err());
    assert!(tensor.contains("lora_"), "{tensor}");
    for (path, says) in [(fixtures(), "a folder without it"), ("ORG/NAME".into(), "no folder")] {
        let none = problem(&[path]).to_string();
        assert!(none.contains("as PEFT saves it") && none.contains(says), "{none}");
    }
}

/// PEFT adapts convolutions too. Their taps are no matrix, and a change of them must not be lost.
#[test]
fn adapters_of_convolutions_are_refused() {
    let to = copy("adapters/plain");
    edit(to.path().join("adapter_config.json"), |config| config["r"] = json!(2));
    let module = "model.layers.0.conv.conv";
    let pair = [("lora_A", vec![2, 1, 3]), ("lora_B", vec![32, 2, 1])].map(|(part, shape)| {
        let zeros = vec![0; 4 * shape.iter().product::<usize>()];
        (format!("base_model.model.{module}.{part}.weight"), safetensors::Dtype::F32, shape, zeros)
    });
    write_tensors(&to.path().join("adapter_model.safetensors"), &pair);
    let problem = of_adapter(load("families/lfm2-off", &[to.path().to_owned()], Dtype::F32).unwrap_err());
    let AdapterProblem::Unsupported { field, found } = problem else { panic!("{problem}") };
    assert_eq!((field.as_str(), found.as_str()), ("target_modules", module));
}

/// Where a merged model is, and what was said while it was written.
fn merge(base: &Path, adapters: &[PathBuf], dtype: Dtype, to: &Path) -> Merged {
    let mut last = (0, 1);
    let merged = merge_adapters(base, adapters, Some(dtype), to, &mut |written, all| {
        assert!(written >= last.0 && written <= all);
        last = (written, all);
    })
    .unwrap();
    assert_eq!(last, (merged.bytes, merged.bytes));
    merged
}

#[test]
fn merged_folders_are_the_models_with_their_adapters() {
    for name in ["plain", "patterns", "dora", "fused", "labels", "neighbours", "delta", "reward"] {
        let base = json(adapter(name).join("expected.json"))["base"].as_str().unwrap().to_owned();
        for dtype in [Dtype::F32, Dtype::Bf16] {
            let to = TempDir::new().unwrap();
            // A folder that is there and empty is as good as none.
            let merged = merge(&fixtures().join(&base), &[adapter(name)], dtype, to.path());
            assert!(merged.dtype == dtype && merged.files.contains(&"model.safetensors".to_owned()), "{merged:?}");
            let (whole, adapted) =
                (Model::load(to.path(), &LoadOptions::default()), load(&base, &[adapter(name)], dtype));
            let (whole, adapted) = (whole.unwrap(), adapted.unwrap());
            assert_eq!(whole.info().dtype, dtype.to_string());
            let ids = json!([4, 5, 6, 7]);
            let states = [&whole, &adapted].map(|model| states(model, &base, &ids));
            if dtype == Dtype::F32 {
                assert_eq!(states[0], states[1], "{name}");
                assert_eq!(whole.reward_head(), adapted.reward_head());
            } else {
                // Vectors and heads of labels are kept in f32 where a folder in f32 is read in bf16, and are rounded here.
                assert!(relative_error(&states[0], &states[1]) < 2e-2, "{name}");
            }
        }
    }
}

#[test]
fn a_merged_folder_has_the_files_that_counted_beside_the_adapter() {
    let adapter = copy("adapters/plain");
    let files = [
        ("judge_template.json", r#"{"messages": []}"#),
        ("decision.json", r#"{"temperature": {"noul": 3.0, "choice": 1, "score": 1}}"#),
        ("modules.json", "[]"),
        ("config_sentence_transformers.json", r#"{"activation_fn": null}"#),
    ];
    for (name, text) in files {
        fs::write(adapter.path().join(name), text).unwrap();
    }
    // Of the tokenizer's settings the limit of rerankers alone.
    fs::write(adapter.path().join("tokenizer_config.json"), r#"{"model_max_length": 8, "bos_token": "x"}"#).unwrap();
    let (to, base) = (TempDir::new().unwrap(), fixtures().join("families/llama-off"));
    let merged = merge(&base, &[adapter.path().to_owned()], Dtype::F32, to.path());
    for (name, text) in files {
        assert!(merged.files.iter().any(|file| file == name), "{name}: {:?}", merged.files);
        assert_eq!(fs::read_to_string(to.path().join(name)).unwrap(), text, "{name}");
    }
    let [mut expected, found] = [base.as_path(), to.path()].map(|folder| json(folder.join("tokenizer_config.json")));
    expected["model_max_length"] = json!(8);
    assert_eq!(found, expected);
}

#[test]
fn folders_that_cannot_be_merged_leave_nothing_behind() {
    let at = TempDir::new().unwrap();
    let to = at.path().join("merged");
    let merge = |base: &str, adapters: &[PathBuf]| {
        merge_adapters(fixtures().join(base), adapters, None, &to, &mut |_, _| {}).unwrap_err()
    };
    let encoder = merge("encoders/bert-off", &[]);
    assert!(
        matches!(&encoder, Error::Weights(WeightsError::Unsupported { field, .. }) if field == "model_type"),
        "{encoder:?}"
    );
    let problem = of_adapter(merge("families/llama-off", &[adapter("fused")]));
    assert!(matches!(problem, AdapterProblem::NoSuchTensor { .. }), "{problem}");
    // What is not finite is found while it is written.
    let damaged = copy("adapters/plain");
    retensor(&damaged.path().join("adapter_model.safetensors"), |stored| {
        stored[0].3[..4].copy_from_slice(&f32::NAN.to_le_bytes());
    });
    let (_, problem) = of_tensor(merge("families/llama-off", &[damaged.path().to_owned()]));
    assert!(matches!(problem, TensorProblem::NonFinite { .. }), "{problem}");
    assert_eq!(fs::read_dir(at.path()).unwrap().count(), 0);
    // What is there stays.
    fs::write(&to, "mine").unwrap();
    assert!(matches!(merge("families/llama-off", &[]), Error::OutputExists { .. }));
    assert_eq!(fs::read_to_string(&to).unwrap(), "mine");
}
