//! GGUF files as models: one file without anything beside it, against the folder that it was made from.
//!
//! Files and expected tokens: `scripts/parity/make_gguf_family_fixtures.py`. The trained model and what transformers makes of
//! it lie where `JUDGE_TEST_DATA` says.

#![allow(clippy::print_stdout, clippy::print_stderr)] // measured errors, and what was skipped

use std::fs;
use std::path::{Path, PathBuf};

use judge_core::{
    Backbone, Layer, Lens, Message, Prompt, Want,
    request::{Generation, Pooling},
};
use judge_models::{Dtype, Error, GgufProblem, Model, WeightsError};
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{self, fixtures, json, labels_at_end, load, of_every_layer, of_gguf, raw, read, values};
use crate::difference::relative_error;

/// Longer than the windows of all test models.
const PROMPT: &str = "ba de fi go ku la me ni po ru sa te vi zo 3 xa y0 ba ba 4";

/// Logits of labels and the state of the last position, of every layer.
fn numbers(model: &Model) -> Vec<f32> {
    let labels = labels_at_end(vec![3, 4, 20, 91], model.info().layers(), Lens::Raw);
    let want = Want { labels: vec![labels.clone()], ..of_every_layer(model, &[Pooling::Last]) };
    let reading = read(model, raw(PROMPT), &want);
    let mut all: Vec<f32> = reading.labels(&labels).unwrap().steps[0].logits.to_vec();
    all.extend(values(&reading));
    all
}

fn copy(from: &Path, to: &Path, names: &[&str]) {
    for name in names {
        fs::copy(from.join(name), to.join(name)).unwrap();
    }
}

/// A folder of `families` with another `config.json`.
fn folder(name: &str, config: &Path) -> TempDir {
    let to = common::copy(&format!("families/{name}"));
    fs::copy(config, to.path().join("config.json")).unwrap();
    to
}

/// A folder with a GGUF file and a tokenizer of words alone, so that both sides read the same tokens.
fn alone(name: &str) -> TempDir {
    let to = TempDir::new().unwrap();
    copy(&fixtures().join("gguf_families").join(name), to.path(), &["model.gguf"]);
    copy(&fixtures().join("families").join(name), to.path(), &["tokenizer.json", "tokenizer_config.json"]);
    to
}

#[test]
fn a_file_of_every_architecture_is_the_folder_that_it_was_made_from() {
    let mut wrong = Vec::new();
    let mut names: Vec<String> = fs::read_dir(fixtures().join("gguf_families"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert!(names.len() >= 24);
    for name in &names {
        let original = folder(name, &fixtures().join("gguf_families").join(name).join("config.json"));
        let expected = load(original.path(), Dtype::F32).unwrap_or_else(|error| panic!("{name}: {error}"));
        let found = match load(alone(name).path(), Dtype::F32) {
            Ok(found) => found,
            Err(error) => {
                wrong.push(format!("{name}: {error}"));
                continue;
            }
        };
        let (expected, found) = (numbers(&expected), numbers(&found));
        let error = relative_error(&found, &expected);
        println!("{name}: {error:.1e}");
        // 1 is added to norms of Gemma and Qwen3.5 and taken off again, in f32; decay rates are there in the place of their logarithms.
        let tolerance = if name.starts_with("gemma") || name.starts_with("qwen3_5") { 1e-6 } else { 0.0 };
        if error > tolerance {
            wrong.push(format!("{name}: {error:e}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_split_file_is_one_model_whichever_part_is_named() {
    let whole = numbers(&load(alone("qwen3-off").path(), Dtype::F32).unwrap());
    let to = TempDir::new().unwrap();
    let parts = ["m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf"];
    copy(&fixtures().join("gguf_split"), to.path(), &parts);
    copy(&fixtures().join("families/qwen3-off"), to.path(), &["tokenizer.json", "tokenizer_config.json"]);
    for path in [to.path().to_owned(), to.path().join(parts[0]), to.path().join(parts[2])] {
        assert_eq!(numbers(&load(&path, Dtype::F32).unwrap()), whole, "{}", path.display());
    }
    // A part of another file, and one that is not there.
    fs::copy(to.path().join(parts[1]), to.path().join(parts[2])).unwrap();
    let problem = of_gguf(load(to.path(), None).unwrap_err());
    assert!(matches!(&problem, GgufProblem::Value { key, .. } if key == "split.no"), "{problem}");
    fs::remove_file(to.path().join(parts[1])).unwrap();
    let error = load(to.path(), None).unwrap_err();
    assert!(matches!(&error, Error::Weights(WeightsError::Read { path, .. }) if path.ends_with(parts[1])), "{error}");
}

#[test]
fn a_file_that_is_named_is_a_model_and_goes_by_its_name() {
    let to = TempDir::new().unwrap();
    for name in ["llama-bpe.gguf", "qwen2.gguf"] {
        copy(&fixtures().join("gguf_tokenizers"), to.path(), &[name]);
    }
    fs::write(to.path().join("mmproj-f16.gguf"), "for pictures").unwrap();
    let model = load(to.path().join("qwen2.gguf"), None).unwrap();
    assert_eq!(model.info().name, "qwen2");
    let other = load(to.path().join("llama-bpe.gguf"), None).unwrap();
    assert_ne!(model.info().fingerprint, other.info().fingerprint);
    let error = load(to.path(), None).unwrap_err();
    assert!(
        matches!(&error, Error::Weights(WeightsError::Unsupported { found, .. }) if found == "llama-bpe.gguf, qwen2.gguf"),
        "several in a folder: {error}"
    );
    fs::remove_file(to.path().join("qwen2.gguf")).unwrap();
    assert_eq!(load(to.path(), None).unwrap().info().fingerprint, other.info().fingerprint, "mmproj does not count");
    fs::write(to.path().join("config.json"), r#"{"model_type": "llama"}"#).unwrap();
    assert_eq!(load(to.path(), None).unwrap().info().fingerprint, other.info().fingerprint, "it describes nothing");
}

#[test]
fn tokens_are_those_of_the_program_that_made_the_vocabulary() {
    let expected = json(fixtures().join("gguf_tokenizers/expected.json"));
    let texts: Vec<&str> = expected["texts"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
    let mut wrong = Vec::new();
    for (name, ids) in expected["ids"].as_object().unwrap() {
        let model = load(fixtures().join(format!("gguf_tokenizers/{name}.gguf")), None).unwrap();
        // Where the file does not say, a BOS goes before text of Llama 3, Tekken and SentencePiece.
        let has_bos = matches!(name.as_str(), "llama-bpe" | "tekken" | "prepend");
        for (text, ids) in texts.iter().zip(ids.as_array().unwrap()).filter(|(text, _)| !text.is_empty()) {
            let mut ids: Vec<u64> = ids.as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect();
            if has_bos {
                ids.insert(0, if name == "prepend" { 376 } else { 314 });
            }
            let found = model.tokens(&raw(text)).unwrap();
            if found.iter().copied().map(u64::from).ne(ids.iter().copied()) {
                wrong.push(format!("{name}: {text:?}: {found:?}, expected {ids:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The same weights with the tokenizer that the file's entries are from beside them.
#[test]
fn chats_have_the_tokens_and_the_text_of_the_folder() {
    let path = fixtures().join("gguf_tokenizers/prepend.gguf");
    let to = TempDir::new().unwrap();
    fs::copy(&path, to.path().join("model.gguf")).unwrap();
    let beside = fixtures().join("../../../judge-text/tests/fixtures/tokenizers/prepend");
    copy(&beside, to.path(), &["tokenizer.json", "tokenizer_config.json"]);
    let (alone, beside) = (load(&path, None).unwrap(), load(to.path(), None).unwrap());
    for text in ["score: 4", " The judge", "a </s> b", "Ärger 東京"] {
        let chat = Prompt::chat(vec![Message::new("system", "Be brief."), Message::user(text)]);
        for prompt in [chat, raw(text)] {
            assert_eq!(alone.tokens(&prompt).unwrap(), beside.tokens(&prompt).unwrap(), "{prompt:?}");
        }
    }
    let generate = Some(Generation { max_new_tokens: 12, ..Generation::default() });
    let write = |model: &Model| {
        let want = Want { generate: generate.clone(), ..Want::default() };
        read(model, raw("score"), &want).generated.unwrap()
    };
    assert_eq!(write(&alone), write(&beside));
}

/// Puts other bytes of the same length into the place of the first ones that are found.
fn patched(name: &str, from: &[u8], to: &[u8]) -> Result<Model, Error> {
    assert_eq!(from.len(), to.len());
    let folder = TempDir::new().unwrap();
    let mut bytes = fs::read(fixtures().join(name)).unwrap();
    let at = bytes.windows(from.len()).position(|window| window == from).unwrap();
    bytes[at..at + to.len()].copy_from_slice(to);
    let path = folder.path().join("model.gguf");
    fs::write(&path, bytes).unwrap();
    load(&path, None)
}

#[test]
fn what_a_file_cannot_say_or_is_not_read_is_refused_by_name() {
    let of = "gguf_tokenizers/qwen2.gguf";
    let problem = |from: &[u8], to: &[u8]| of_gguf(patched(of, from, to).unwrap_err()).to_string();
    let text = |text: &str| [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat();
    for (from, to, said) in [
        (text("qwen2"), text("qwenX"), "the pre-tokenizer \"qwenX\" (tokenizer.ggml.pre) is not read"),
        (text("gpt2"), text("rwkv"), "the tokenizer \"rwkv\" (tokenizer.ggml.model) is not read"),
        (text("gpt2"), text("bert"), "the tokenizer \"bert\" with capital letters (\"##A\") is not read"),
        (text("llama"), text("mamba"), "general.architecture is \"mamba\", expected one of llama, qwen2"),
        (text("llama.block_count"), text("xlama.block_count"), "llama.block_count is missing"),
        (text("tokenizer.ggml.tokens"), text("tokenizer.ggml.tokenX"), "tokenizer.ggml.tokens is missing"),
        (text("tokenizer.ggml.merges"), text("tokenizer.ggml.mergeX"), "tokenizer.ggml.merges is missing"),
        (text("llama.context_length"), text("llama2.decision.type"), "a decision model (llama2.decision.type)"),
    ] {
        assert_eq!(from.len(), to.len(), "{said}");
        let problem = problem(&from, &to);
        assert!(problem.contains(said), "{problem}");
    }
}

/// A GGUF file with further keys before its own.
fn with_keys(name: &str, added: &[Vec<u8>]) -> Vec<u8> {
    let bytes = fs::read(fixtures().join(name)).unwrap();
    let keys = u64::from_le_bytes(bytes[16..24].try_into().unwrap()) + added.len() as u64 + 1;
    // One more makes them a multiple of the alignment, so that the data begins where it did.
    let len = added.concat().len() + stated("~", "").len();
    let padding = stated("~", &"x".repeat(len.next_multiple_of(32) - len));
    [&bytes[..16], &keys.to_le_bytes(), &added.concat(), &padding, &bytes[24..]].concat()
}

/// A key with a list of numbers in f32.
fn list(key: &str, numbers: &[f32]) -> Vec<u8> {
    let numbers: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    let count = (numbers.len() / 4) as u64;
    let key = [&(key.len() as u64).to_le_bytes(), key.as_bytes(), &9_u32.to_le_bytes()].concat();
    [&key[..], &6_u32.to_le_bytes(), &count.to_le_bytes(), &numbers].concat()
}

/// A key with a text.
fn stated(key: &str, text: &str) -> Vec<u8> {
    let text = [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat();
    [&(key.len() as u64).to_le_bytes(), key.as_bytes(), &8_u32.to_le_bytes(), &text].concat()
}

/// A setting that is stated as something else is refused, with a `config.json` beside the file and without: an empty list used to end
/// the process in one place, and to be equal to anything in others.
#[test]
fn a_setting_that_is_no_number_is_refused_by_its_key() {
    let name = "gguf_tokenizers/prepend.gguf";
    let to = TempDir::new().unwrap();
    let path = to.path().join("model.gguf");
    let load = || load(&path, None);
    fs::write(&path, with_keys(name, &[list("llama.rope.freq_base", &[10_000.0])])).unwrap();
    load().unwrap();
    for (added, said) in [
        (
            list("llama.nextn_predict_layers", &[]),
            "llama.nextn_predict_layers is an empty list, expected a number, or one for each block",
        ),
        (
            list("llama.rope.freq_base", &[]),
            "llama.rope.freq_base is an empty list, expected a number, or one for each block",
        ),
        (list("llama.rope.freq_base", &[1e4, 1e6]), "llama.rope.freq_base is 10000, 1000000, expected one number"),
        (list("llama.rope.freq_base", &[f32::NAN]), "llama.rope.freq_base is NaN, expected one number that is finite"),
        (stated("llama.rope.freq_base", "777"), "llama.rope.freq_base is the text \"777\", expected a number"),
        (
            list("llama.rope.dimension_count", &[-1.0]),
            "llama.rope.dimension_count is -1, expected a whole number from 0 on",
        ),
        (list("llama.rope.scaling.type", &[1.0]), "llama.rope.scaling.type is 1, expected a text"),
        (list("llama.attention.causal", &[]), "llama.attention.causal is an empty list"),
    ] {
        fs::write(&path, with_keys(name, &[added])).unwrap();
        let problem = of_gguf(load().expect_err(said));
        assert!(problem.to_string().starts_with(said), "{problem}");
    }
    let twice = [list("llama.rope.freq_base", &[1e4]), list("llama.rope.freq_base", &[1e6])];
    fs::write(&path, with_keys(name, &twice)).unwrap();
    let problem = of_gguf(load().unwrap_err()).to_string();
    assert_eq!(problem, "the key llama.rope.freq_base appears twice");
}

/// llama.cpp (`llama-model.cpp`): without a type a factor is that of a linear scaling, and `rope.scale_linear` is its older key.
#[test]
fn a_factor_of_the_rotation_scales_linearly_where_no_type_is_stated() {
    let to = TempDir::new().unwrap();
    let path = to.path().join("model.gguf");
    let with = |keys: &[Vec<u8>]| {
        fs::write(&path, with_keys("gguf_tokenizers/prepend.gguf", keys)).unwrap();
        load(&path, Dtype::F32).map(|model| numbers(&model))
    };
    let kind = |kind: &str| stated("llama.rope.scaling.type", kind);
    let number = |key: &str, number: f32| list(&format!("llama.rope.{key}"), &[number]);
    let (plain, linear) = (with(&[]).unwrap(), with(&[kind("linear"), number("scaling.factor", 4.0)]).unwrap());
    assert_ne!(plain, linear);
    for keys in [
        vec![number("scaling.factor", 4.0)],
        vec![number("scale_linear", 4.0)],
        vec![kind("linear"), number("scale_linear", 4.0)],
        vec![number("scale_linear", 2.0), number("scaling.factor", 4.0)],
    ] {
        assert_eq!(with(&keys).unwrap(), linear);
    }
    for keys in [
        vec![number("scaling.factor", 1.0)],
        vec![number("scale_linear", 0.0)],
        vec![kind("none"), number("scaling.factor", 4.0)],
    ] {
        assert_eq!(with(&keys).unwrap(), plain);
    }
    // Factors on cosines and sines, and the share of yarn's ramp.
    let yarn = |more: Vec<u8>| {
        with(&[kind("yarn"), number("scaling.factor", 4.0), number("scaling.original_context_length", 16.0), more])
    };
    let usual = yarn(number("scaling.yarn_ext_factor", 1.0)).unwrap();
    assert!(usual != plain && usual != linear);
    let magnitude = (0.1 * 4_f64.ln() + 1.0) as f32;
    for more in [number("scaling.yarn_attn_factor", magnitude), number("scaling.yarn_ext_factor", -1.0)] {
        assert_eq!(yarn(more).unwrap(), usual);
    }
    for (found, said) in [
        (yarn(number("scaling.yarn_ext_factor", 0.5)), "llama.rope.scaling.yarn_ext_factor is 0.5, expected 1"),
        (yarn(number("scaling.yarn_attn_factor", 1.5)), "llama.rope.scaling.yarn_attn_factor is 1.5, expected 1.138"),
        (yarn(number("scaling.attn_factor", 1.5)), "llama.rope.scaling.attn_factor is 1.5, expected 1 beside yarn"),
        (with(&[number("scaling.attn_factor", 1.5)]), "llama.rope.scaling.attn_factor is 1.5, expected 1 without"),
    ] {
        let problem = of_gguf(found.expect_err(said));
        assert!(problem.to_string().starts_with(said), "{problem}");
    }
}

/// Beside a file, `config.json` says what its keys mean.
#[test]
fn scalings_of_the_rotation_are_those_of_config_json_beside_the_file() {
    let load = |rope: Value, keys: &[Vec<u8>]| {
        let to = common::copy("gguf/llama");
        common::edit(to.path().join("config.json"), |config| config["rope_parameters"] = rope);
        fs::write(to.path().join("model.gguf"), with_keys("gguf/llama/model.gguf", keys)).unwrap();
        load(to.path(), Dtype::F32)
    };
    let problem = |rope: Value, keys: &[Vec<u8>]| of_gguf(load(rope, keys).unwrap_err()).to_string();
    let number = |key: &str, number: f32| list(&format!("llama.rope.{key}"), &[number]);
    let linear = serde_json::json!({ "rope_type": "linear", "factor": 4.0 });
    load(linear.clone(), &[number("scale_linear", 4.0)]).unwrap();
    let found = problem(linear, &[number("scale_linear", 8.0)]);
    assert!(found.starts_with("llama.rope.scale_linear is 8, but rope_scaling"), "{found}");
    let found = problem(serde_json::json!({}), &[number("scaling.factor", 8.0)]);
    assert!(found.starts_with("llama.rope.scaling.factor is 8, but rope_scaling"), "{found}");
    // Converters write either field under one key; transformers reads the first alone.
    let yarn = |field: &str| {
        let mut rope =
            serde_json::json!({ "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16 });
        rope[field] = serde_json::json!(1.5);
        rope
    };
    let keys = |factor: f32| [stated("llama.rope.scaling.type", "yarn"), number("scaling.yarn_attn_factor", factor)];
    for field in ["attention_factor", "attn_factor"] {
        load(yarn(field), &keys(1.5)).unwrap();
        let found = problem(yarn(field), &keys(1.25));
        assert!(found.starts_with("llama.rope.scaling.yarn_attn_factor is 1.25, expected 1."), "{found}");
    }
}

/// <https://github.com/EricLBuehler/mistral.rs/issues/1137>: a file as Ollama keeps it, under its digest.
#[test]
fn a_file_of_any_name_is_known_by_its_first_bytes() {
    let to = TempDir::new().unwrap();
    let blobs = to.path().join("blobs");
    fs::create_dir(&blobs).unwrap();
    let plain = fixtures().join("gguf_tokenizers/qwen2.gguf");
    let blob = blobs.join("sha256-0123456789abcdef");
    fs::copy(&plain, &blob).unwrap();
    fs::write(blobs.join("sha256-fedcba"), "{}").unwrap();
    let (found, expected) = (load(&blob, None).unwrap(), load(&plain, None).unwrap());
    assert_eq!(found.info().name, "sha256-0123456789abcdef");
    assert_eq!(found.info().fingerprint, expected.info().fingerprint);
    assert_eq!(numbers(&found), numbers(&expected));
    let error = load(blobs.join("sha256-fedcba"), None).unwrap_err().to_string();
    assert!(error.ends_with("is not a folder, and the file does not begin as GGUF files do"), "{error}");
    let error = load(to.path().join("gone"), None).unwrap_err().to_string();
    assert!(error.ends_with("is not a folder"), "{error}");
}

/// Bytes of the header changed at places that look random and are the same each time: every file is read or
/// refused, and none ends the process.
#[test]
fn damaged_files_are_read_or_refused() {
    let mut seed = 40_u64;
    let mut next = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("model.gguf");
    let mut refused = 0;
    for name in [
        "gguf_tokenizers/prepend.gguf",
        "gguf_tokenizers/llama-bpe.gguf",
        "gguf_families/lfm2-off/model.gguf",
        "gguf_encoders/bert.gguf",
        "gguf_encoders/xlm-roberta/model.gguf",
    ] {
        let whole = fs::read(fixtures().join(name)).unwrap();
        for round in 0..150 {
            let mut bytes = whole.clone();
            for _ in 0..=round % 4 {
                // Mostly among the keys and the table of tensors.
                let at = next(if round % 3 == 0 { bytes.len() } else { bytes.len() / 3 });
                bytes[at] = if round % 2 == 0 { next(256) as u8 } else { [0, 1, 127, 128, 255][next(5)] };
            }
            if round % 10 == 9 {
                bytes.truncate(next(bytes.len()));
            }
            fs::write(&path, bytes).unwrap();
            refused += usize::from(load(&path, None).is_err());
        }
    }
    assert!(refused > 100, "{refused}");
}

#[test]
fn a_trained_model_in_one_file_equals_transformers() {
    let Some(data) = std::env::var_os("JUDGE_TEST_DATA") else {
        eprintln!("skipped: JUDGE_TEST_DATA is not set");
        return;
    };
    let folder = PathBuf::from(data).join("models/smollm2-135m-instruct");
    let expected = json(folder.join("expected.json"));
    let model = load(folder.join("SmolLM2-135M-Instruct.Q4_1.gguf"), Dtype::F32).unwrap();
    assert_eq!(model.info().name, "SmolLM2-135M-Instruct.Q4_1");
    let ids = |value: &Value| -> Vec<u32> { serde_json::from_value(value.clone()).unwrap() };
    let named: Vec<u32> = expected["labels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|label| model.token(label.as_str().unwrap()).unwrap())
        .collect();
    let tokens = ids(&expected["label_ids"]);
    assert_eq!(named, tokens);
    let mut worst = 0.0_f32;
    for item in expected["items"].as_array().unwrap() {
        let text = item["prompt"].as_str().unwrap();
        let chat = Prompt::chat(vec![Message::user(text)]);
        assert_eq!(model.tokens(&chat).unwrap(), ids(&item["ids"]), "{text}");
        assert_eq!(model.tokens(&raw(text)).unwrap(), ids(&item["raw_ids"]), "{text}");
        let logits = item["logits"].as_object().unwrap();
        let layers: Vec<Layer> = logits.keys().map(|layer| Layer(layer.parse().unwrap())).collect();
        let label = labels_at_end(tokens.clone(), layers.clone(), Lens::Raw);
        let greedy = ids(&item["greedy_ids"]);
        let generate = Some(Generation { max_new_tokens: greedy.len(), ..Generation::default() });
        let want = Want { labels: vec![label.clone()], generate, ..Want::default() };
        let reading = read(&model, chat, &want);
        let found = reading.labels(&label).unwrap();
        for layer in layers {
            let found = found.row(&found.steps[0], layer).unwrap();
            let row: Vec<f32> = serde_json::from_value(logits[&layer.0.to_string()].clone()).unwrap();
            let error = relative_error(found, &row);
            assert!(error < 1e-3, "{text}: layer {}: {found:?}, expected {row:?}", layer.0);
            worst = worst.max(error);
        }
        let written = reading.generated.unwrap();
        // The end token is not among those that are written.
        let whole = greedy.strip_suffix(&[2]).unwrap_or(&greedy);
        assert_eq!(written.tokens, whole, "{text}");
        let text_expected = item["greedy"].as_str().unwrap();
        assert_eq!(written.text, text_expected.strip_suffix("<|im_end|>").unwrap_or(text_expected), "{text}");
    }
    println!("SmolLM2-135M-Instruct: largest relative error of label logits {worst:.1e}");
}
