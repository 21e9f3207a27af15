//! Folders as people have them: names, heads and settings that differ from what `save_pretrained` writes of a causal language model. Each
//! is made of a folder of the fixtures, whose numbers transformers agrees with, and must say the same.

use std::fs;
use std::path::Path;

use judge_core::{
    Backbone, Layer, Lens, Outcome, Reading, Reason, Request, Want, model::BackboneError, request::Pooling,
};
use judge_models::{
    AdapterProblem, ConfigProblem, Dtype, Error, GgufProblem, IndexProblem, LoadOptions, Model, StandIn, WeightsError,
    merge_adapters,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::{
    self, Stored, answers, copy, edit, fixtures, json, labels_at_end, last_states, of_adapter, raw, rename, retensor,
    tensors, write_tensors,
};

const WEIGHTS: &str = "model.safetensors";

fn options(adapters: &[&Path]) -> LoadOptions {
    let adapters = adapters.iter().map(|path| path.to_path_buf()).collect();
    LoadOptions { dtype: Some(Dtype::F32), adapters, ..LoadOptions::default() }
}

fn load(folder: &Path) -> Result<Model, Error> {
    Model::load(folder, &options(&[]))
}

fn request(want: Want) -> Request {
    Request { prompt: raw("ba de fi go"), want }
}

/// The last state of every layer.
fn states(model: &Model) -> Reading {
    last_states(model, "ba de fi go")
}

/// Logits of two labels at the last layer.
fn logits(model: &Model) -> Result<Vec<f32>, BackboneError> {
    let read = labels_at_end(vec![5, 6], vec![Layer(model.info().n_layers)], Lens::Normed);
    let outcome = answers(model, &[request(Want { labels: vec![read.clone()], ..Want::default() })])?.remove(0);
    let labels = outcome.reading().unwrap().labels(&read).unwrap();
    Ok(labels.row(labels.prompt_end().unwrap(), Layer(model.info().n_layers)).unwrap().to_vec())
}

#[test]
fn base_classes_are_read_and_have_no_logits() {
    for (of, class) in [
        ("families/llama-off", "LlamaModel"),
        ("families/mistral-off", "MistralModel"),
        ("families/qwen3-off", "Qwen3Model"),
        ("families/gemma3_text-off", "Gemma3TextModel"),
        ("families/gpt_oss-off", "GptOssModel"),
        ("families/qwen3_5_text-off", "Qwen3_5TextModel"),
        ("families/lfm2-off", "Lfm2Model"),
    ] {
        let expected = states(&load(&fixtures().join(of)).unwrap());
        let folder = copy(of);
        rename(&folder.path().join(WEIGHTS), |name| name.strip_prefix("model.").map(str::to_owned));
        edit(folder.path().join("config.json"), |config| config["architectures"] = json!([class]));
        let model = load(folder.path()).unwrap_or_else(|error| panic!("{class}: {error}"));
        assert_eq!(states(&model), expected, "{class}");
        let refused = logits(&model).unwrap_err().to_string();
        assert!(refused.contains("architectures") && refused.contains("head"), "{refused}");
        assert!(matches!(model.token("ba"), Err(BackboneError::NoLogits { .. })));
        // Written and read again it is the same.
        let written = folder.path().join("written");
        merge_adapters(folder.path(), &[], Some(Dtype::F32), &written, &mut |_, _| {}).unwrap();
        assert_eq!(states(&load(&written).unwrap()), expected, "{class}, written");
    }
    // Classes of other programs may attend otherwise.
    let folder = copy("families/llama-off");
    for class in ["LlamaBiModel", "MistralEncoderModel", "LlamaForRewardModel"] {
        edit(folder.path().join("config.json"), |config| config["architectures"] = json!([class]));
        let error = load(folder.path()).unwrap_err();
        assert!(
            matches!(&error, Error::Config { problem: ConfigProblem::Unknown { field: "architectures", .. }, .. }),
            "{error}"
        );
    }
    edit(folder.path().join("config.json"), |config| {
        config["architectures"] = json!(["LlamaModel"]);
        config["is_causal"] = json!(false);
    });
    assert!(load(folder.path()).unwrap_err().to_string().contains("is_causal = false"));
}

#[test]
fn a_head_that_is_not_stored_is_missed_by_what_needs_it_alone() {
    let path = |folder: &TempDir| folder.path().join(WEIGHTS);
    for of in ["families/llama-off", "families/qwen3-off"] {
        let folder = copy(of);
        edit(folder.path().join("config.json"), |config| config["tie_word_embeddings"] = json!(false));
        rename(&path(&folder), |name| (name != "lm_head.weight").then(|| name.to_owned()));
        let model = load(folder.path()).unwrap();
        assert_eq!(states(&model), states(&load(&fixtures().join(of)).unwrap()));
        let refused = logits(&model).unwrap_err().to_string();
        assert!(refused.contains("lm_head.weight") && refused.contains("tie_word_embeddings"), "{refused}");
    }
    // Heads of token classifiers are not read, and a classifier needs no head over the vocabulary.
    let folder = copy("families/llama-off");
    edit(folder.path().join("config.json"), |config| config["architectures"] = json!(["LlamaForTokenClassification"]));
    retensor(&path(&folder), |stored| {
        let zeros = vec![0; 4 * 2 * 32];
        stored.push(("score.weight".to_owned(), safetensors::Dtype::F32, vec![2, 32], zeros.clone()));
        stored.push(("score.bias".to_owned(), safetensors::Dtype::F32, vec![2], vec![0; 8]));
    });
    let model = load(folder.path()).unwrap();
    assert_eq!(states(&model), states(&load(&fixtures().join("families/llama-off")).unwrap()));
    assert!(logits(&model).is_err());
}

#[test]
fn a_stored_head_is_the_head_whatever_the_flag() {
    let of = "families/llama-off";
    let tied = load(&fixtures().join(of)).unwrap();
    // Twice the embedding.
    let with_head = |folder: &TempDir| {
        retensor(&folder.path().join(WEIGHTS), |stored| {
            let (_, dtype, shape, bytes) =
                stored.iter().find(|tensor| tensor.0.ends_with("embed_tokens.weight")).unwrap().clone();
            assert_eq!(dtype, safetensors::Dtype::F32);
            let twice = bytes.as_chunks().0.iter().flat_map(|&x| (2.0 * f32::from_le_bytes(x)).to_le_bytes()).collect();
            stored.push(("lm_head.weight".to_owned(), dtype, shape, twice));
        });
    };
    let doubled: Vec<f32> = logits(&tied).unwrap().iter().map(|z| 2.0 * z).collect();
    for flag in [json!(true), json!(false)] {
        let folder = copy(of);
        with_head(&folder);
        edit(folder.path().join("config.json"), |config| config["tie_word_embeddings"] = flag);
        let model = load(folder.path()).unwrap();
        assert_eq!((states(&model), logits(&model).unwrap()), (states(&tied), doubled.clone()));
        let written = folder.path().join("written");
        merge_adapters(folder.path(), &[], Some(Dtype::F32), &written, &mut |_, _| {}).unwrap();
        assert_eq!(logits(&load(&written).unwrap()).unwrap(), doubled);
        assert_eq!(json(written.join("config.json"))["tie_word_embeddings"], json!(false));
    }
    // Mistral Small: the outer file does not say, for which the default is tied.
    let of = "families/mistral-off";
    let plain = load(&fixtures().join(of)).unwrap();
    let folder = copy(of);
    edit(folder.path().join("config.json"), |config| {
        let mut text = config.clone();
        assert_eq!(text.as_object_mut().unwrap().remove("tie_word_embeddings"), Some(json!(false)));
        *config = json!({ "model_type": "mistral3", "architectures": ["Mistral3ForConditionalGeneration"], "text_config": text });
    });
    rename(&folder.path().join(WEIGHTS), |name| Some(format!("language_model.{name}")));
    let model = load(folder.path()).unwrap();
    assert_eq!((states(&model), logits(&model).unwrap()), (states(&plain), logits(&plain).unwrap()));
    // What is written is a model of its own class, also where the folder names none.
    let unnamed = copy("families/llama-off");
    edit(unnamed.path().join("config.json"), |config| drop(config.as_object_mut().unwrap().remove("architectures")));
    for (base, class) in [(&folder, "MistralForCausalLM"), (&unnamed, "LlamaForCausalLM")] {
        let written = base.path().join(class);
        merge_adapters(base.path(), &[], Some(Dtype::F32), &written, &mut |_, _| {}).unwrap();
        assert_eq!(json(written.join("config.json"))["architectures"], json!([class]));
    }
}

#[test]
fn wrappers_buffers_and_indexes_of_other_programs_do_no_harm() {
    let of = "families/llama-off";
    let expected = states(&load(&fixtures().join(of)).unwrap());
    let folder = copy(of);
    let path = folder.path().join(WEIGHTS);
    rename(&path, |name| {
        Some(format!("_orig_mod.{}", name.replace("self_attn", "_checkpoint_wrapped_module.self_attn")))
    });
    retensor(&path, |stored| {
        for name in [
            "_orig_mod.model.rotary_emb.inv_freq",
            "_orig_mod.model.layers.0.self_attn.rotary_emb.cos_cached",
            "model.layers.1.self_attn.masked_bias",
        ] {
            stored.push((name.to_owned(), safetensors::Dtype::F32, vec![4], vec![0; 16]));
        }
    });
    assert_eq!(states(&load(folder.path()).unwrap()), expected);
    // An index that lists what is not there, and does not list what is.
    let index = folder.path().join("model.safetensors.index.json");
    fs::rename(&path, folder.path().join("model-00001-of-00001.safetensors")).unwrap();
    let listed = |further: Value| {
        let mut map = json!({ "model.norm.weight": "model-00001-of-00001.safetensors", "mtp.fc.weight": "model-00001-of-00001.safetensors" });
        map.as_object_mut().unwrap().extend(further.as_object().unwrap().clone());
        fs::write(&index, json!({ "weight_map": map }).to_string()).unwrap();
        load(folder.path())
    };
    assert_eq!(states(&listed(json!({})).unwrap()), expected);
    assert_eq!(
        states(&listed(json!({ "mtp.layers.0.x": "mtp.safetensors" })).unwrap()),
        expected,
        "a file that nobody needs"
    );
    let Err(Error::Weights(WeightsError::Index { problem: IndexProblem::NoShard { tensor, shard }, .. })) =
        listed(json!({ "model.layers.0.mlp.up_proj.weight": "gone.safetensors" }))
    else {
        panic!("a file that is needed is missed")
    };
    assert_eq!((tensor.as_str(), shard.as_str()), ("model.layers.0.mlp.up_proj.weight", "gone.safetensors"));
}

/// An adapter's folder with the tensors of the fixture `plain`, changed.
fn adapter(change: impl FnOnce(&mut Vec<Stored>)) -> TempDir {
    let to = copy("adapters/plain");
    retensor(&to.path().join("adapter_model.safetensors"), change);
    to
}

const PREFIX: &str = "base_model.model.";

/// An adapter's folder with the configuration of the fixture `plain` and these tensors.
fn holding(stored: &[Stored]) -> TempDir {
    let to = copy("adapters/plain");
    write_tensors(&to.path().join("adapter_model.safetensors"), stored);
    to
}

/// A tensor of an adapter in f32, its numbers by their places.
fn numbers(name: &str, shape: Vec<usize>, number: impl Fn(usize) -> f32) -> Stored {
    let bytes = (0..shape.iter().product()).flat_map(|i: usize| number(i).to_le_bytes()).collect();
    (format!("{PREFIX}{name}"), safetensors::Dtype::F32, shape, bytes)
}

/// Both factors of a matrix `[rows, columns]`.
fn lora(module: &str, rows: usize, columns: usize) -> [Stored; 2] {
    [("lora_A", vec![4, columns]), ("lora_B", vec![rows, 4])]
        .map(|(part, shape)| numbers(&format!("{module}.{part}.weight"), shape, |i| 0.01 * (i % 7) as f32))
}

#[test]
fn adapters_have_the_names_of_the_class_that_they_were_trained_on() {
    let of = "families/llama-off";
    let base = fixtures().join(of);
    let plain = fixtures().join("adapters/plain");
    let expected = states(&Model::load(&base, &options(&[&plain])).unwrap());
    assert_ne!(expected, states(&load(&base).unwrap()));
    for from in ["", "model.language_model.", "language_model.model.", "language_model.", "_orig_mod.model."] {
        let renamed = adapter(|stored| {
            for (name, ..) in stored {
                *name = name.replace(&format!("{PREFIX}model."), &format!("{PREFIX}{from}"));
            }
        });
        let model = Model::load(&base, &options(&[renamed.path()])).unwrap_or_else(|error| panic!("{from}: {error}"));
        assert_eq!(states(&model), expected, "{from}");
    }
    // As a program saves it that does not ask PEFT.
    let running = adapter(|stored| {
        for (name, ..) in stored {
            *name = name.replace(".lora_A.", ".lora_A.default.").replace(".lora_B.", ".lora_B.default.");
        }
    });
    assert_eq!(states(&Model::load(&base, &options(&[running.path()])).unwrap()), expected);
    // A file under the name of another form is not taken for that (`pytorch.rs` has adapters of torch.save).
    let named_otherwise = copy("adapters/plain");
    let weights = named_otherwise.path().join("adapter_model.safetensors");
    fs::rename(&weights, named_otherwise.path().join("adapter_model.bin")).unwrap();
    let error = Model::load(&base, &options(&[named_otherwise.path()])).unwrap_err();
    assert!(
        matches!(&error, Error::Weights(WeightsError::PyTorch { path, .. }) if path.ends_with("adapter_model.bin")),
        "{error:?}"
    );
    // The same, of a vision-language folder, with an adapter that changes what sees too.
    let of = "families/mistral-off";
    let text = json(fixtures().join(of).join("config.json"));
    let (width, inner) =
        (text["hidden_size"].as_u64().unwrap() as usize, text["intermediate_size"].as_u64().unwrap() as usize);
    let on_text = holding(&lora("model.layers.0.mlp.down_proj", width, inner));
    let expected = states(&Model::load(fixtures().join(of), &options(&[on_text.path()])).unwrap());
    let tower = copy(of);
    edit(tower.path().join("config.json"), |config| {
        *config = json!({ "model_type": "mistral3", "text_config": config.clone(), "tie_word_embeddings": false });
    });
    rename(&tower.path().join(WEIGHTS), |name| Some(format!("language_model.{name}")));
    let sight = lora("model.vision_tower.layers.0.mlp.down_proj", 8, 8);
    let on_both = holding(&[lora("model.language_model.layers.0.mlp.down_proj", width, inner), sight.clone()].concat());
    assert_eq!(states(&Model::load(tower.path(), &options(&[on_both.path()])).unwrap()), expected);
    let problem = of_adapter(Model::load(tower.path(), &options(&[holding(&sight).path()])).unwrap_err());
    assert!(matches!(problem, AdapterProblem::Empty), "{problem}");
}

#[test]
fn what_peft_saves_along_replaces_the_bases_own() {
    // Biases of modules with LoRA are one level down.
    let base = fixtures().join("families/qwen2-on");
    let bias = "model.layers.0.self_attn.q_proj.bias";
    let (_, _, shape, _) = tensors(&base.join(WEIGHTS)).into_iter().find(|(name, ..)| name == bias).unwrap();
    let with_bias = |name: &str| {
        let folder = holding(&[numbers(name, shape.clone(), |i| 0.1 * i as f32)]);
        states(&Model::load(&base, &options(&[folder.path()])).unwrap())
    };
    let expected = with_bias(bias);
    assert_ne!(expected, states(&load(&base).unwrap()));
    assert_eq!(with_bias("model.layers.0.self_attn.q_proj.base_layer.bias"), expected);

    // A head beside a tied embedding, whole, and with LoRA over it, over a saved one, and over the embedding.
    let base = fixtures().join("families/llama-off");
    let tied = load(&base).unwrap();
    let (d_vocab, width) = (tied.info().d_vocab, tied.info().d_model);
    let head = |name: &str, factor: f32| -> Stored {
        let mut tensors = tensors(&base.join(WEIGHTS)).into_iter();
        let (_, dtype, shape, bytes) = tensors.find(|(name, ..)| name == "model.embed_tokens.weight").unwrap();
        let values = bytes.as_chunks().0.iter().flat_map(|&x| (factor * f32::from_le_bytes(x)).to_le_bytes());
        (format!("{PREFIX}{name}"), dtype, shape, values.collect())
    };
    let with = |stored: &[Stored]| {
        let folder = holding(stored);
        let model = Model::load(&base, &options(&[folder.path()])).unwrap();
        assert_eq!(states(&model), states(&tied), "the embedding stays as it was");
        let written = folder.path().join("written");
        merge_adapters(&base, &[folder.path().to_owned()], Some(Dtype::F32), &written, &mut |_, _| {}).unwrap();
        let found = logits(&model).unwrap();
        assert_eq!(logits(&load(&written).unwrap()).unwrap(), found, "as it was written");
        found
    };
    let own = logits(&tied).unwrap();
    let doubled: Vec<f32> = own.iter().map(|z| 2.0 * z).collect();
    assert_eq!(with(&[head("lm_head.weight", 2.0)]), doubled);
    let factors = lora("lm_head", d_vocab, width);
    let added = with(&factors);
    assert_ne!(added, own);
    let saved = head("lm_head.base_layer.weight", 1.0);
    assert_eq!(with(&[&[saved.clone()][..], &factors].concat()), added);
    let twice = holding(&[saved, head("lm_head.weight", 1.0)]);
    let problem = of_adapter(Model::load(&base, &options(&[twice.path()])).unwrap_err());
    assert!(matches!(&problem, AdapterProblem::Twice { name } if name == "lm_head.weight"), "{problem}");
}

#[test]
fn a_row_with_a_token_beyond_the_embedding_is_unscored_and_ends_nothing() {
    let folder = copy("families/llama-off");
    edit(folder.path().join("tokenizer.json"), |tokenizer| {
        let token = json!({ "id": 96, "content": "<far>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true });
        tokenizer["added_tokens"].as_array_mut().unwrap().push(token);
    });
    let model = load(folder.path()).unwrap();
    assert_eq!(model.info().d_vocab, 96);
    let notes = &model.info().notes;
    assert!(matches!(notes.as_slice(), [note] if note.contains("\"<far>\" (96)")), "{notes:?}");
    let want = Want { pooled: vec![(Layer(1), Pooling::Mean)], ..Want::default() };
    let prompts = ["ba de", "ba <far> de", "fi go"].map(|text| Request { prompt: raw(text), want: want.clone() });
    let outcomes = answers(&model, &prompts).unwrap();
    let Outcome::Unscored(unscored) = &outcomes[1] else { panic!("{outcomes:?}") };
    assert_eq!(unscored.reason, Reason::Tokenizer);
    assert!(unscored.detail.contains("<far>") && unscored.detail.contains("96"), "{unscored}");
    let plain = load(&fixtures().join("families/llama-off")).unwrap();
    let alone = answers(&plain, &[prompts[0].clone(), prompts[2].clone()]).unwrap();
    assert_eq!([&outcomes[0], &outcomes[2]], [&alone[0], &alone[1]]);
    assert!(plain.info().notes.is_empty());
    // A continuation can have one too.
    let continued = Want { continuations: vec!["de <far>".to_owned()], ..Want::default() };
    let outcomes = answers(&model, &[Request { prompt: raw("ba"), want: continued }]).unwrap();
    assert!(
        matches!(&outcomes[0], Outcome::Unscored(unscored) if unscored.reason == Reason::Tokenizer),
        "{outcomes:?}"
    );
}

/// A tokenizer that has no token for words that it does not know.
#[test]
fn a_text_that_the_tokenizer_cannot_take_is_unscored_and_ends_nothing() {
    let folder = copy("families/llama-off");
    edit(folder.path().join("tokenizer.json"), |tokenizer| {
        let model = tokenizer["model"].as_object_mut().unwrap();
        model["unk_token"] = json!("[none]");
        // What loading tries the tokenizer on.
        let vocab = model["vocab"].as_object_mut().unwrap();
        let token = vocab.remove("be").unwrap();
        vocab.insert("a".to_owned(), token);
    });
    let model = load(folder.path()).unwrap();
    let read = Want { pooled: vec![(Layer(1), Pooling::Mean)], ..Want::default() };
    let continued = Want { continuations: vec!["de unheard".to_owned()], ..Want::default() };
    let requests = [("ba de", &read), ("ba unheard de", &read), ("fi go", &read), ("ba", &continued)]
        .map(|(text, want)| Request { prompt: raw(text), want: want.clone() });
    let outcomes = answers(&model, &requests).unwrap();
    for odd in [1, 3] {
        let Outcome::Unscored(unscored) = &outcomes[odd] else { panic!("{outcomes:?}") };
        assert_eq!(unscored.reason, Reason::Tokenizer);
        assert!(unscored.detail.contains("Missing [UNK] token"), "{unscored}");
    }
    let plain = load(&fixtures().join("families/llama-off")).unwrap();
    let alone = answers(&plain, &[requests[0].clone(), requests[2].clone()]).unwrap();
    assert_eq!([&outcomes[0], &outcomes[2]], [&alone[0], &alone[1]]);
}

#[test]
fn numbers_that_stand_for_none_are_none_and_others_are_errors_by_name() {
    let of = "families/llama-off";
    let expected = states(&load(&fixtures().join(of)).unwrap());
    let with = |file: &str, change: &dyn Fn(&mut Value)| {
        let folder = copy(of);
        edit(folder.path().join(file), |json| change(json));
        load(folder.path())
    };
    let is_read = |file: &str, change: &dyn Fn(&mut Value)| assert_eq!(states(&with(file, change).unwrap()), expected);
    is_read("config.json", &|config| config["pad_token_id"] = json!(-1));
    is_read("config.json", &|config| config["eos_token_id"] = json!(-1));
    is_read("config.json", &|config| config["eos_token_id"] = json!([2, -1]));
    is_read("config.json", &|config| config["eos_token_id"] = Value::Null);
    is_read("config.json", &|config| {
        config["architectures"] = json!(["LlamaForCausalLM"]);
        config["id2label"] = json!({ "1": 3, "x": [] });
        config["num_labels"] = json!(-3);
    });
    is_read("generation_config.json", &|config| config["eos_token_id"] = json!(-1));
    let error = |file: &str, field: &str, value: Value| {
        let error = with(file, &|json| match field.split_once('.') {
            Some((outer, inner)) => json[outer][inner] = value.clone(),
            None => json[field] = value.clone(),
        })
        .expect_err(field)
        .to_string();
        assert!(error.contains(field) && error.contains(file), "{field} = {value}: {error}");
        error
    };
    for field in [
        "max_position_embeddings",
        "hidden_size",
        "num_hidden_layers",
        "vocab_size",
        "rms_norm_eps",
        "tie_word_embeddings",
    ] {
        let text = error("config.json", field, Value::Null);
        assert!(text.contains("null"), "{text}");
    }
    error("config.json", "num_attention_heads", json!(-4));
    error("config.json", "rms_norm_eps", json!("NaN"));
    error("config.json", "eos_token_id", json!("</s>"));
    error("config.json", "eos_token_id", json!([2, null]));
    error("config.json", "rope_parameters.rope_theta", json!("much"));
    error("generation_config.json", "eos_token_id", json!({ "a": 1 }));
    // Two at once: the first is named.
    let folder = copy(of);
    edit(folder.path().join("config.json"), |config| {
        (config["hidden_size"], config["vocab_size"]) = (Value::Null, Value::Null);
    });
    let text = load(folder.path()).unwrap_err().to_string();
    assert!(text.contains("vocab_size is null") || text.contains("hidden_size is null"), "{text}");
    let head = copy("heads/gemma2");
    edit(head.path().join("config.json"), |config| config["id2label"] = json!({ "x": 1 }));
    assert!(load(head.path()).unwrap_err().to_string().contains("id2label"));
    let head = copy("heads/gemma2");
    edit(head.path().join("config.json"), |config| config["pad_token_id"] = json!(-1));
    load(head.path()).unwrap();
}

#[test]
fn numbers_that_python_writes_and_json_does_not_have_are_read_where_nothing_needs_them() {
    let of = "families/llama-off";
    let expected = states(&load(&fixtures().join(of)).unwrap());
    let insert = |file: &str, field: &str| {
        let folder = copy(of);
        let path = folder.path().join(file);
        let text = fs::read_to_string(&path).unwrap();
        let (_, rest) = text.split_once('{').unwrap();
        fs::write(&path, format!("{{{field},{rest}")).unwrap();
        load(folder.path())
    };
    for (file, field) in [
        ("config.json", r#""time_step_limit": [0.0, Infinity]"#),
        ("generation_config.json", r#""temperature": NaN, "top_p": -Infinity"#),
        ("tokenizer_config.json", r#""model_max_length": Infinity"#),
    ] {
        assert_eq!(states(&insert(file, field).unwrap()), expected, "{file}");
    }
    let error = insert("config.json", r#""partial_rotary_factor": NaN"#).unwrap_err().to_string();
    assert!(error.contains("partial_rotary_factor") && error.contains("NaN"), "{error}");
    let error = insert("config.json", r#""x": nan"#).unwrap_err();
    assert!(matches!(error, Error::Weights(WeightsError::Json { .. })), "{error}");
}

#[test]
fn files_that_are_not_themselves_say_what_to_do() {
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4665a5ea423c2713d436b5ee50593a9640e0018c1550b5a0002f74190d6caea8\nsize 999\n";
    let page = "\n<!DOCTYPE html>\n<html><head><title>404</title></head></html>";
    for (content, stands_for, advice) in [
        (pointer, StandIn::LfsPointer, "git lfs pull"),
        (page, StandIn::Page, "fetch the file again"),
        ("", StandIn::Nothing, "empty"),
    ] {
        for file in [WEIGHTS, "config.json", "generation_config.json"] {
            let folder = copy("families/llama-off");
            fs::write(folder.path().join(file), content).unwrap();
            let error = load(folder.path()).unwrap_err();
            let text = error.to_string();
            assert!(
                matches!(error, Error::Weights(WeightsError::StandIn { found, .. }) if found == stands_for),
                "{file}: {text}"
            );
            assert!(text.contains(file) && text.contains(advice), "{text}");
        }
        let gguf = copy("gguf/qwen3");
        fs::write(gguf.path().join("model.gguf"), content).unwrap();
        assert!(matches!(load(gguf.path()), Err(Error::Weights(WeightsError::StandIn { .. }))), "{content}");
        let broken = copy("adapters/plain");
        fs::write(broken.path().join("adapter_model.safetensors"), content).unwrap();
        let error = Model::load(fixtures().join("families/llama-off"), &options(&[broken.path()])).unwrap_err();
        assert!(matches!(error, Error::Weights(WeightsError::StandIn { .. })), "{error}");
    }
    let folder = copy("families/llama-off");
    fs::write(folder.path().join("tokenizer.json"), pointer).unwrap();
    assert!(load(folder.path()).unwrap_err().to_string().contains("git lfs pull"));
    // Other bytes under the name, as of a PyTorch file.
    fs::write(folder.path().join(WEIGHTS), b"PK\x03\x04\x00\x00\x08\x08\x00\x00\x00\x00").unwrap();
    fs::copy(fixtures().join("families/llama-off/tokenizer.json"), folder.path().join("tokenizer.json")).unwrap();
    assert!(load(folder.path()).unwrap_err().to_string().contains("no safetensors file"));
}

#[test]
fn a_gguf_file_beside_another_models_config_is_refused_by_the_setting() {
    let setting = |of: &str, change: &dyn Fn(&mut Value)| {
        let folder = copy(of);
        edit(folder.path().join("config.json"), |config| change(config));
        match load(folder.path()) {
            Err(Error::Weights(WeightsError::Gguf { problem: GgufProblem::Setting { key, .. }, .. })) => key,
            Err(other) => panic!("{other}"),
            Ok(_) => "it loads".to_owned(),
        }
    };
    let of = "gguf/llama";
    assert_eq!(setting(of, &|_| ()), "it loads");
    assert_eq!(setting(of, &|config| config["rope_parameters"]["rope_theta"] = json!(777)), "llama.rope.freq_base");
    assert_eq!(setting(of, &|config| config["rms_norm_eps"] = json!(0.5)), "llama.attention.layer_norm_rms_epsilon");
    assert_eq!(setting(of, &|config| config["num_hidden_layers"] = json!(2)), "llama.block_count");
    assert_eq!(setting(of, &|config| config["num_key_value_heads"] = json!(2)), "llama.attention.head_count_kv");
    assert_eq!(setting(of, &|config| config["max_position_embeddings"] = json!(128)), "llama.context_length");
    let scaled = |rope: Value| move |config: &mut Value| config["rope_parameters"] = rope.clone();
    let linear = json!({ "rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0 });
    assert_eq!(setting(of, &scaled(linear)), "llama.rope.scaling.type");
    let llama3 = json!({ "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32, "rope_theta": 10000.0 });
    assert_eq!(setting(of, &scaled(llama3)), "rope_freqs.weight");
    let full = |config: &mut Value| config["rope_parameters"]["full_attention"]["rope_theta"] = json!(2e6);
    assert_eq!(setting("gguf/gemma3", &full), "gemma3.rope.freq_base");
    for of in ["gguf/gemma3", "gguf/qwen2", "gguf/qwen3"] {
        assert_eq!(setting(of, &|_| ()), "it loads", "{of}");
    }
}

#[test]
fn weights_that_lose_bits_unasked_are_noted() {
    let load = |of: &str, dtype: Option<Dtype>| common::load(fixtures().join(of), dtype).unwrap();
    // Most of it is f16.
    let of = "families/llama-on";
    let model = load(of, None);
    let notes = &model.info().notes;
    assert_eq!(model.info().dtype, "bf16");
    assert!(
        matches!(notes.as_slice(), [note] if note.contains("f16") && note.contains("bf16") && note.contains("f32")),
        "{notes:?}"
    );
    for dtype in [Dtype::F32, Dtype::Bf16] {
        assert!(load(of, Some(dtype)).info().notes.is_empty(), "{dtype} was asked for");
    }
    assert!(load("families/llama-off", None).info().notes.is_empty());
}
