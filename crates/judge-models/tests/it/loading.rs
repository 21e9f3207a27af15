//! What is wrong with a model folder is said by name, with what was expected and found; nothing panics.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use judge_core::{Backbone, Layer, Outcome, Prompt, Reading, Request, Want, request::Pooling};
use judge_models::{
    ConfigProblem, Dtype, Error, FileProblem, IndexProblem, LoadOptions, Model, StandIn, TensorProblem, TextError,
    WeightsError, merge_adapters,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::{
    self, Stored, answers, copy, edit, fixtures, json, last_states, raw, read, rename, retensor, tensors, values,
    write_tensors,
};

const SHARD: &str = "model-00001-of-00002.safetensors";
const OTHER_SHARD: &str = "model-00002-of-00002.safetensors";
const INDEX: &str = "model.safetensors.index.json";

fn load(folder: &Path) -> Result<Model, Error> {
    Model::load(folder, &LoadOptions::default())
}

/// The error of a copy after `damage`.
fn broken(damage: impl FnOnce(&Path)) -> Error {
    let folder = copy("families/llama-on");
    damage(folder.path());
    load(folder.path()).expect_err("a damaged folder must not load")
}

/// Changes header (as JSON) and data of the first shard.
fn reshard(folder: &Path, change: impl FnOnce(&mut Value, &mut Vec<u8>)) {
    let path = folder.join(SHARD);
    let bytes = fs::read(&path).unwrap();
    let (length, rest) = bytes.split_first_chunk::<8>().unwrap();
    let (header, data) = rest.split_at(u64::from_le_bytes(*length) as usize);
    let (mut header, mut data) = (serde_json::from_slice(header).unwrap(), data.to_vec());
    change(&mut header, &mut data);
    let header = header.to_string();
    fs::write(path, [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat()).unwrap();
}

/// A tensor that is one zero.
fn zero(name: &str) -> Stored {
    (name.to_owned(), safetensors::Dtype::F32, vec![1], vec![0; 4])
}

/// The tensor whose bytes come first.
fn first(header: &Value) -> String {
    at_offset(header, 0)
}

/// The tensor whose bytes begin at this offset.
fn at_offset(header: &Value, offset: u64) -> String {
    let mut entries = header.as_object().unwrap().iter().filter(|(name, _)| *name != "__metadata__");
    entries.find(|(_, entry)| entry["data_offsets"][0] == offset).unwrap().0.clone()
}

fn with_config(change: impl FnOnce(&mut Value)) -> Error {
    broken(|folder| edit(folder.join("config.json"), change))
}

macro_rules! assert_error {
    ($error:expr, $pattern:pat $(if $guard:expr)?) => {
        match $error {
            $pattern $(if $guard)? => {}
            other => panic!("expected {}, found {other:?}", stringify!($pattern)),
        }
    };
}

/// What is wrong with a file of weights.
fn of_file(error: Error) -> FileProblem {
    match error {
        Error::Weights(WeightsError::WeightsFile { problem, .. }) => problem,
        other => panic!("{other:?}"),
    }
}

/// What is wrong with a tensor.
fn of_tensor(error: Error) -> TensorProblem {
    common::of_tensor(error).1
}

/// What is wrong with an index of shards.
fn of_index(error: Error) -> IndexProblem {
    match error {
        Error::Weights(WeightsError::Index { problem, .. }) => problem,
        other => panic!("{other:?}"),
    }
}

#[test]
fn damaged_weight_files() {
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        broken(|folder| {
            let mut bytes = fs::read(folder.join(SHARD)).unwrap();
            change(&mut bytes);
            fs::write(folder.join(SHARD), bytes).unwrap();
        })
    };
    let cut = |length: usize| changed(&|bytes| bytes.truncate(length));
    assert_error!(cut(0), Error::Weights(WeightsError::StandIn { found: StandIn::Nothing, .. }));
    for length in [7, 8, 100, 43_000] {
        let error = cut(length);
        assert!(error.to_string().contains(SHARD), "{error}");
        assert_error!(of_file(error), FileProblem::Truncated { expected, found } if found == length as u64 && expected > found);
    }
    let longer = of_file(changed(&|bytes| bytes.extend([0; 3])));
    assert_error!(longer, FileProblem::Trailing { expected, found } if found == expected + 3);
    // Eight tensors that together have almost as many bytes as can be counted; behind the header it is more.
    let size = u64::MAX / 8;
    let vast = broken(|folder| {
        reshard(folder, |header, _| {
            let entry = |i| json!({ "dtype": "U8", "shape": [size], "data_offsets": [i * size, (i + 1) * size] });
            *header = (0..8_u64).map(|i| (i.to_string(), entry(i))).collect::<serde_json::Map<_, _>>().into();
        })
    });
    assert_error!(of_file(vast), FileProblem::Truncated { expected: u64::MAX, .. });
    let length_lie = |length: u64| of_file(changed(&|bytes| bytes[..8].copy_from_slice(&length.to_le_bytes())));
    assert_error!(length_lie(u64::MAX), FileProblem::HeaderTooLong { length: u64::MAX, .. });
    assert_error!(length_lie(1 << 20), FileProblem::Truncated { .. });
    assert_error!(length_lie(10), FileProblem::Header { .. });
    assert_error!(of_file(changed(&|bytes| *bytes = vec![0; 64])), FileProblem::Header { .. });
}

#[test]
fn damaged_tensors() {
    let entry = |change: fn(&mut Value)| {
        broken(|folder| {
            reshard(folder, |header, _| {
                let name = first(header);
                change(&mut header[&name]);
            })
        })
    };
    assert_error!(
        entry(|entry| entry["dtype"] = json!("F8_E4M3")),
        Error::Weights(WeightsError::Tensor { problem: TensorProblem::Size { .. } | TensorProblem::Dtype { .. }, .. })
            | Error::Weights(WeightsError::WeightsFile { problem: FileProblem::Entry { .. }, .. })
    );
    let dtype = of_tensor(entry(|entry| entry["dtype"] = json!("U16")));
    assert_error!(dtype, TensorProblem::Dtype { found } if found == "U16");
    assert_error!(of_file(entry(|entry| entry["dtype"] = json!("Q7"))), FileProblem::Entry { .. });
    let large = of_tensor(entry(|entry| entry["shape"] = json!([u64::MAX, 9])));
    assert_error!(large, TensorProblem::TooLarge { .. });
    let backwards = of_tensor(entry(|entry| entry["data_offsets"] = json!([2, 1])));
    assert_error!(backwards, TensorProblem::Size { .. });
    // One tensor lies over another, which keeps its own length.
    let overlap = broken(|folder| {
        reshard(folder, |header, _| {
            let name = first(header);
            let end = header[&name]["data_offsets"][1].as_u64().unwrap();
            let next = at_offset(header, end);
            let length = header[&next]["data_offsets"][1].as_u64().unwrap() - end;
            header[&next]["data_offsets"] = json!([0, length]);
        })
    });
    assert_error!(of_tensor(overlap), TensorProblem::Placement { .. });
    let turned = of_tensor(entry(|entry| entry["shape"].as_array_mut().unwrap().push(json!(1))));
    assert_error!(turned, TensorProblem::Shape { expected, found } if expected.len() + 1 == found.len());
    // A model that would not fit into any memory, on both of the processor's engines: nothing is made room for.
    let vast = copy("families/llama-on");
    edit(vast.path().join("config.json"), |config| {
        (config["vocab_size"], config["intermediate_size"]) = (json!(1 << 26), json!(1 << 22));
    });
    for dtype in [Dtype::Bf16, Dtype::F32] {
        let error =
            Model::load(vast.path(), &LoadOptions { dtype: Some(dtype), ..LoadOptions::default() }).unwrap_err();
        assert_error!(of_tensor(error), TensorProblem::Shape { .. });
    }
    // 0x7e00 is a NaN in f16.
    let nan = broken(|folder| reshard(folder, |_, data| data[6..8].copy_from_slice(&[0x00, 0x7e])));
    assert_error!(of_tensor(nan), TensorProblem::NonFinite { index: 3, value } if value.is_nan());
}

#[test]
fn tensors_that_are_absent_or_unknown_are_both_listed() {
    let error = broken(|folder| {
        let mut renamed = String::new();
        reshard(folder, |header, _| {
            // Not the head, which a model can do without.
            let name = header.as_object().unwrap().keys().find(|name| name.contains(".layers.")).unwrap().clone();
            let entry = header.as_object_mut().unwrap().remove(&name).unwrap();
            header["what.is.this"] = entry;
            renamed = name;
        });
        edit(folder.join(INDEX), |index| {
            index["weight_map"].as_object_mut().unwrap().remove(&renamed);
            index["weight_map"]["what.is.this"] = json!(SHARD);
        });
    });
    assert_error!(error, Error::Weights(WeightsError::TensorNames { missing, unused }) if missing.len() == 1 && unused == ["what.is.this"]);
}

#[test]
fn an_index_stays_in_its_folder_and_names_the_files_there() {
    let index = |change: &dyn Fn(&mut Value)| of_index(broken(|folder| edit(folder.join(INDEX), |json| change(json))));
    let outside = TempDir::new().unwrap();
    let absolute = outside.path().join(SHARD);
    fs::copy(copy("families/llama-on").path().join(SHARD), &absolute).unwrap();
    for path in ["../model.safetensors", "sub/../../x.safetensors", "", ".", absolute.to_str().unwrap()] {
        let error = index(&|json| json["weight_map"]["model.norm.weight"] = json!(path));
        assert_error!(error, IndexProblem::OutsideFolder { .. });
    }
    // A folder's own name for itself leads nowhere else.
    let dotted = copy("families/llama-on");
    let shard = |json: &Value| format!("./{}", json["weight_map"]["model.norm.weight"].as_str().unwrap());
    edit(dotted.path().join(INDEX), |json| json["weight_map"]["model.norm.weight"] = json!(shard(json)));
    load(dotted.path()).unwrap();
    assert_error!(index(&|json| json["weight_map"] = json!([])), IndexProblem::NoWeightMap);
    assert_error!(index(&|json| json["weight_map"]["model.norm.weight"] = json!(3)), IndexProblem::NotAName { .. });
    assert_error!(
        index(&|json| json["weight_map"]["model.norm.weight"] = json!("gone.safetensors")),
        IndexProblem::NoShard { tensor, shard } if tensor == "model.norm.weight" && shard == "gone.safetensors"
    );
}

/// <https://github.com/Blaizzy/mlx-vlm/pull/1827>: a shard that was left behind has tensors that are in another one too. The index decides,
/// as in transformers; where it names neither file, nothing does.
#[test]
fn of_a_tensor_in_two_shards_the_one_counts_that_the_index_names() {
    let sound = copy("families/llama-on");
    let expected = load(sound.path()).unwrap().info().fingerprint.clone();
    let folder = copy("families/llama-on");
    // Other numbers under the same name.
    let stored = tensors(&folder.path().join(SHARD));
    let (name, dtype, shape, bytes) = stored.into_iter().min_by(|a, b| a.0.cmp(&b.0)).unwrap();
    let bytes = bytes.iter().map(|byte| byte ^ 1).collect();
    retensor(&folder.path().join(OTHER_SHARD), |stored| stored.push((name.clone(), dtype, shape, bytes)));
    assert_eq!(load(folder.path()).unwrap().info().fingerprint, expected);
    let place = |shard: Value| {
        edit(folder.path().join(INDEX), |index| index["weight_map"][&name] = shard);
        load(folder.path())
    };
    assert_ne!(place(json!(OTHER_SHARD)).unwrap().info().fingerprint, expected);
    edit(folder.path().join(INDEX), |index| drop(index["weight_map"].as_object_mut().unwrap().remove(&name)));
    let error = load(folder.path()).unwrap_err();
    assert_error!(of_tensor(error), TensorProblem::Twice { .. });
}

/// The tensors of a file in f64.
fn widen(path: &Path) {
    retensor(path, |stored| {
        for (_, dtype, _, bytes) in stored {
            let number = |bytes: &[u8]| match *dtype {
                safetensors::Dtype::F32 => f64::from(f32::from_le_bytes(bytes.try_into().unwrap())),
                safetensors::Dtype::BF16 => f64::from(f32::from_bits(u32::from_le_bytes([0, 0, bytes[0], bytes[1]]))),
                other => panic!("{other:?}"),
            };
            let size = dtype.bitsize() / 8;
            *bytes = bytes.chunks_exact(size).flat_map(|bytes| number(bytes).to_le_bytes()).collect();
            *dtype = safetensors::Dtype::F64;
        }
    });
}

/// <https://github.com/tinygrad/tinygrad/pull/2720>: numbers in f64 are read and rounded, and a note says so, as of a folder so of an
/// adapter and in files of experts, whose parts lie apart.
#[test]
fn numbers_in_f64_are_rounded_with_a_note() {
    let states = |folder: &Path, adapters: Vec<PathBuf>, dtype| {
        let model = Model::load(folder, &LoadOptions { dtype, adapters, ..LoadOptions::default() }).unwrap();
        let found = values(&last_states(&model, "ba de fi"));
        let notes: Vec<String> = model.info().notes.iter().filter(|note| note.contains("f64")).cloned().collect();
        (found, notes, model.info().dtype.clone())
    };
    for name in ["families/gpt_oss-on", "families/qwen3-off"] {
        let (narrow, wide) = (copy(name), copy(name));
        for file in fs::read_dir(wide.path()).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "safetensors") {
                widen(&path);
            }
        }
        for dtype in [Dtype::F32, Dtype::Bf16] {
            let (expected, notes, _) = states(narrow.path(), Vec::new(), Some(dtype));
            assert!(notes.is_empty(), "{notes:?}");
            let (found, notes, _) = states(wide.path(), Vec::new(), Some(dtype));
            assert_eq!(found, expected, "{name}, {dtype}");
            assert_eq!(
                notes,
                [format!(
                    "weights that are stored in f64 are rounded to {dtype}: no dtype here keeps all of their bits"
                )]
            );
        }
        assert_eq!(states(wide.path(), Vec::new(), None).2, "f32", "{name}");
    }
    let at = copy("adapters/plain");
    let adapter = fixtures().join("adapters/plain");
    widen(&at.path().join("adapter_model.safetensors"));
    let base = fixtures().join(json(adapter.join("expected.json"))["base"].as_str().unwrap());
    let narrow = states(&base, vec![adapter], Some(Dtype::F32));
    let wide = states(&base, vec![at.path().to_owned()], Some(Dtype::F32));
    assert_eq!(narrow.0, wide.0);
    assert_eq!((narrow.1.len(), wide.1.len()), (0, 1));
}

#[test]
fn what_is_not_supported_is_named() {
    let says = |error: Error, words: &[&str]| {
        let text = error.to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{words:?} in {text}");
        error
    };
    for (field, value, words) in [
        ("/model_type", json!("mamba"), &["model_type", "mamba", "llama", "qwen3"][..]),
        ("/rope_scaling/rope_type", json!("spiral"), &["rope_type", "spiral", "yarn"]),
        ("/hidden_act", json!("relu6"), &["hidden_act", "relu6", "silu"]),
        ("/num_attention_heads", json!(3), &["num_"]),
        ("/num_hidden_layers", json!(0), &["num_hidden_layers"]),
    ] {
        let error = with_config(|config| *config.pointer_mut(field).unwrap() = value);
        assert_error!(says(error, words), Error::Config { .. });
    }
    for method in ["aqlm", "hqq", "quanto"] {
        let error = with_config(|c| c["quantization_config"] = json!({"quant_method": method}));
        let words = ["quantization_config.quant_method", method, "fp8", "compressed-tensors", "gptq", "awq"];
        assert_error!(says(error, &words), Error::Weights(WeightsError::Unsupported { .. }));
    }
    let adapter = broken(|folder| {
        for name in [SHARD, OTHER_SHARD, INDEX] {
            fs::remove_file(folder.join(name)).unwrap();
        }
        fs::write(folder.join("adapter_config.json"), "{}").unwrap();
    });
    assert_error!(
        says(adapter, &["adapter_config.json", "base_model_name_or_path"]),
        Error::Weights(WeightsError::Adapter { .. })
    );
    let sentencepiece = broken(|folder| {
        fs::remove_file(folder.join("tokenizer.json")).unwrap();
        fs::write(folder.join("tokenizer.model"), "").unwrap();
        edit(folder.join("tokenizer_config.json"), |json| json["add_bos_token"] = json!(true));
    });
    assert_error!(says(sentencepiece, &["tokenizer.model", "empty"]), Error::Weights(WeightsError::StandIn { .. }));
    let other_name = broken(|folder| {
        fs::rename(folder.join("tokenizer.json"), folder.join("tokenizer.model.v3")).unwrap();
    });
    assert_error!(other_name, Error::Weights(WeightsError::MissingFile { wanted: "tokenizer.json", .. }));
}

#[test]
fn damaged_text_files() {
    assert_error!(
        broken(|folder| fs::remove_file(folder.join("config.json")).unwrap()),
        Error::Weights(WeightsError::MissingFile { wanted: "config.json", .. })
    );
    let with = |file: &str, content: &[u8]| broken(|folder| fs::write(folder.join(file), content).unwrap());
    assert_error!(with("config.json", b"{"), Error::Weights(WeightsError::Json { .. }));
    assert_error!(with("config.json", b"[]"), Error::Config { .. });
    let encoding = with("config.json", b"{\"a\": \"\xff\"}");
    assert_error!(encoding, Error::Weights(WeightsError::Encoding { offset: 7, .. }));
    assert_error!(with("tokenizer.json", br#"{"version": "1.0"}"#), Error::Text(TextError::Tokenizer { .. }));
    assert_error!(with("tokenizer.json", b"not JSON"), Error::Weights(WeightsError::Json { .. }));
    assert_error!(
        with("generation_config.json", br#"{"eos_token_id": "x"}"#),
        Error::Config { problem: ConfigProblem::Value { field: "eos_token_id", .. }, .. }
    );
    assert_error!(load(Path::new("/no/such/folder")).unwrap_err(), Error::Weights(WeightsError::NotAFolder { .. }));
    let bom = copy("families/llama-on");
    let config = fs::read(bom.path().join("config.json")).unwrap();
    fs::write(bom.path().join("config.json"), [b"\xef\xbb\xbf", &config[..]].concat()).unwrap();
    load(bom.path()).expect("a byte-order mark does no harm");
}

/// `tokenizer/sentencepiece/tests.rs` of `judge-text` compares the tokens.
#[test]
fn a_folder_with_sentencepiece_alone_is_a_model_and_its_file_is_part_of_the_fingerprint() {
    let folder = copy("families/llama-on");
    let with = |name: &str| {
        let model = fixtures().join(format!("../../../judge-text/tests/fixtures/sentencepiece/{name}.model"));
        fs::copy(model, folder.path().join("tokenizer.model")).unwrap();
        load(folder.path()).unwrap()
    };
    let plain = with("bpe");
    fs::remove_file(folder.path().join("tokenizer.json")).unwrap();
    edit(folder.path().join("tokenizer_config.json"), |json| {
        json["add_bos_token"] = json!(true);
        json["tokenizer_class"] = json!("LlamaTokenizer");
    });
    let (model, other) = (with("bpe"), with("unigram"));
    let fingerprints = [&plain, &model, &other].map(|model| model.info().fingerprint.clone());
    assert!(fingerprints[0] != fingerprints[1] && fingerprints[1] != fingerprints[2], "{fingerprints:?}");
    let want = Want { pooled: vec![(Layer(1), Pooling::Last)], ..Want::default() };
    read(&model, raw("The judge"), &want);
}

#[test]
fn the_fingerprint_is_that_of_the_model_and_not_of_its_files() {
    let fingerprint = |folder: &Path| load(folder).unwrap().info().fingerprint.clone();
    let folder = copy("families/llama-on");
    let original = fingerprint(folder.path());
    assert_eq!(fingerprint(copy("families/llama-on").path()), original, "the place does not count");

    // One file instead of two.
    let merged = copy("families/llama-on");
    let all = [SHARD, OTHER_SHARD].map(|shard| tensors(&merged.path().join(shard))).concat();
    write_tensors(&merged.path().join("model.safetensors"), &all);
    for name in [SHARD, OTHER_SHARD, INDEX] {
        fs::remove_file(merged.path().join(name)).unwrap();
    }
    assert_eq!(fingerprint(merged.path()), original, "how tensors are cut into files does not count");

    reshard(folder.path(), |_, data| data[2] ^= 1);
    assert_ne!(fingerprint(folder.path()), original, "a weight counts");
    let config = copy("families/llama-on");
    edit(config.path().join("config.json"), |c| c["rms_norm_eps"] = json!(2e-6));
    assert_ne!(fingerprint(config.path()), original, "the configuration counts");
    let template = copy("families/llama-on");
    fs::write(template.path().join("chat_template.jinja"), "x").unwrap();
    assert_ne!(fingerprint(template.path()), original, "the template counts");
    let full = LoadOptions { full_fingerprint: true, ..LoadOptions::default() };
    let sample = fingerprint(template.path());
    let known = Model::fingerprint_of(template.path(), &full).unwrap();
    let full = Model::load(template.path(), &full).unwrap();
    assert!(full.info().fingerprint.starts_with("full:") && full.info().fingerprint.ends_with(&sample));
    // Without loading, the same.
    assert_eq!(known, full.info().fingerprint);
    assert_eq!(Model::fingerprint_of(template.path(), &LoadOptions::default()).unwrap(), sample);
}

/// Loads a copy with this chat template and asks it one thing.
fn ask(template: Option<&str>) -> Result<Outcome, judge_core::model::BackboneError> {
    let folder = copy("families/llama-on");
    if let Some(template) = template {
        fs::write(folder.path().join("chat_template.jinja"), template).unwrap();
    }
    let model = load(folder.path()).unwrap();
    Ok(answers(&model, &[Request { prompt: Prompt::user("a"), want: Want::default() }])?.remove(0))
}

#[test]
fn chat_templates_that_are_absent_broken_endless_or_refuse() {
    assert!(ask(None).unwrap_err().to_string().contains("chat template"));
    assert!(ask(Some("{% for %}")).is_err());
    let unscored = |template| match ask(Some(template)).unwrap() {
        Outcome::Unscored(unscored) => unscored,
        Outcome::Read(reading) => panic!("{reading:?}"),
    };
    let endless = unscored("{% for a in range(100000) %}{% for b in range(100000) %}{{ b }}{% endfor %}{% endfor %}");
    assert_eq!(endless.reason, judge_core::Reason::Template);
    let long = unscored("{% set x = 'x' * 100000 %}{% for a in range(100000) %}{{ x }}{% endfor %}");
    assert_eq!(long.reason, judge_core::Reason::Template);
    let deep = unscored("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}");
    assert_eq!(deep.reason, judge_core::Reason::Template);
    let refused = unscored("{{ raise_exception('no such role') }}");
    assert!(refused.detail.contains("no such role"), "{refused}");
}

/// What a model says of a prompt: the last state of every layer.
fn states(model: &Model) -> Reading {
    last_states(model, "ba de fi go")
}

#[test]
fn the_text_model_inside_a_vision_language_folder_is_read_alone() {
    for (of, outer, text) in [
        ("families/gemma3_text-off", "gemma3", None),
        ("families/gemma4_text-on", "gemma4", Some("gemma4_text")),
        ("families/mistral-off", "mistral3", Some("mistral")),
        ("families/ministral3-on", "mistral3", Some("ministral3")),
        ("families/qwen3_5_text-on", "qwen3_5", Some("qwen3_5_text")),
        ("families/qwen3_5_moe_text-on", "qwen3_5_moe", Some("qwen3_5_moe_text")),
        ("families/qwen3-off", "qwen3_vl", Some("qwen3_vl_text")),
    ] {
        let plain = copy(of);
        let expected = states(&load(plain.path()).unwrap());
        for (model, head) in
            [("language_model.model.", "language_model.lm_head."), ("model.language_model.", "lm_head.")]
        {
            let folder = copy(of);
            edit(folder.path().join("config.json"), |config| {
                let mut inner = config.clone();
                let tied = inner["tie_word_embeddings"].take();
                match text {
                    Some(name) => inner["model_type"] = json!(name),
                    None => drop(inner.as_object_mut().unwrap().remove("model_type")),
                }
                *config = json!({"model_type": outer, "text_config": inner, "vision_config": {}, "tie_word_embeddings": tied});
            });
            let path = folder.path().join("model.safetensors");
            rename(&path, |name| match (name.strip_prefix("model."), name.strip_prefix("lm_head.")) {
                (Some(rest), _) => Some(format!("{model}{rest}")),
                (_, Some(rest)) => Some(format!("{head}{rest}")),
                _ => Some(name.to_owned()),
            });
            let other = if model.starts_with("model.") { "model.visual.patch" } else { "vision_tower.patch" };
            retensor(&path, |stored| stored.extend([other, "mtp.fc.weight"].map(zero)));
            let model = load(folder.path()).unwrap_or_else(|error| panic!("{of} in {outer}: {error}"));
            assert_eq!(states(&model), expected, "{of} in {outer}");
            // Written as a folder of its own.
            let alone = folder.path().join("alone");
            merge_adapters(folder.path(), &[], None, &alone, &mut |_, _| {}).unwrap();
            assert_eq!(states(&load(&alone).unwrap()), expected, "{of} out of {outer}");
            let config = json(alone.join("config.json"));
            let class = config["architectures"][0].as_str().unwrap();
            assert!(config.get("text_config").is_none() && class.ends_with("ForCausalLM"), "{config}");
        }
    }
}

/// Names and shapes of the tensors in a folder of one file or two.
fn shapes(folder: &Path) -> BTreeMap<String, Vec<usize>> {
    let files = ["model.safetensors", SHARD, OTHER_SHARD].map(|file| folder.join(file));
    let stored = files.iter().filter(|file| file.is_file()).flat_map(|file| tensors(file));
    stored.map(|(name, _, shape, _)| (name, shape)).collect()
}

#[test]
fn fused_transposed_and_stacked_tensors_are_written_as_they_were_stored() {
    for (of, is_alike) in [
        ("families/gpt2-off", true),
        // Stored without the prefix of the class, and with a mask.
        ("families/gpt2-on", false),
        ("families/gpt_neox-off", true),
        ("families/granitemoehybrid-experts", true),
        ("families/lfm2_moe-on", true),
        // Stored with experts in stacks.
        ("families/lfm2_moe-off", false),
    ] {
        let stored = copy(of);
        let alone = stored.path().join("alone");
        merge_adapters(stored.path(), &[], None, &alone, &mut |_, _| {}).unwrap();
        assert_eq!(states(&load(&alone).unwrap()), states(&load(stored.path()).unwrap()), "{of}");
        assert_eq!(shapes(&alone) == shapes(stored.path()), is_alike, "{of}");
    }
}

#[test]
fn keys_of_blocks_that_look_at_those_of_others_are_passed_over() {
    let plain = copy("families/gemma4_text-on");
    let folder = copy("families/gemma4_text-on");
    let path = folder.path().join("model.safetensors");
    let add = |names: &[String]| retensor(&path, |stored| stored.extend(names.iter().map(|name| zero(name))));
    let parts = ["k_proj.weight", "k_proj.bias", "v_proj.weight", "k_norm.weight"];
    add(&parts.map(|part| format!("model.layers.4.self_attn.{part}")));
    assert_eq!(states(&load(folder.path()).unwrap()), states(&load(plain.path()).unwrap()));
    // Other blocks use theirs.
    let name = "model.layers.1.self_attn.v_proj.weight";
    add(&[name.to_owned()]);
    let error = load(folder.path()).unwrap_err();
    assert!(
        matches!(&error, Error::Weights(WeightsError::TensorNames { unused, .. }) if unused == &[name]),
        "{error:?}"
    );
}
