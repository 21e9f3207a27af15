//! Folders with a GGUF file: which is read, and what is said of those that do not fit.

use std::fs;

use judge_arch::{Architecture, HeadSpec};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::load;
use crate::{Dtype, Error, GgufProblem, Model, WeightsError, fixtures};

/// What a copy of a folder says after its file and configuration were edited.
fn edited(name: &str, edit: impl FnOnce(&mut Vec<u8>, &mut Value)) -> Result<Model, Error> {
    let from = fixtures::folder("../gguf").join(name);
    let to = TempDir::new().unwrap();
    for file in ["tokenizer.json", "tokenizer_config.json"] {
        fs::copy(from.join(file), to.path().join(file)).unwrap();
    }
    let mut bytes = fs::read(from.join("model.gguf")).unwrap();
    let mut config: Value = serde_json::from_slice(&fs::read(from.join("config.json")).unwrap()).unwrap();
    edit(&mut bytes, &mut config);
    fs::write(to.path().join("any-name.gguf"), bytes).unwrap();
    fs::write(to.path().join("config.json"), config.to_string()).unwrap();
    load(to.path(), Some(Dtype::F32))
}

fn find(bytes: &[u8], text: &str) -> usize {
    bytes.windows(text.len()).position(|window| window == text.as_bytes()).unwrap()
}

#[test]
fn rows_of_the_vocabulary_that_the_file_leaves_out_are_left_out() {
    let model = edited("gemma3", |_, config| assert_eq!(config["vocab_size"], 96)).unwrap();
    assert_eq!(model.info.d_vocab, 92);
}

#[test]
fn another_models_file_is_refused() {
    // A byte of the architecture's name.
    let other = edited("qwen3", |bytes, _| {
        let at = find(bytes, "general.architecture");
        let at = at + find(&bytes[at..], "qwen3");
        bytes[at + 4] = b'2';
    });
    let Err(Error::Weights(WeightsError::Gguf { problem: GgufProblem::Value { key, found, expected }, .. })) = other
    else {
        panic!("{other:?}")
    };
    assert_eq!((key.as_str(), found.as_str()), ("general.architecture", "\"qwen2\""));
    assert!(expected.contains("qwen3"), "{expected}");
    let family = edited("qwen3", |_, config| config["model_type"] = json!("exaone4"));
    assert!(matches!(&family, Err(Error::Weights(WeightsError::Gguf { .. }) | Error::Config { .. })), "{family:?}");
    // A block more than the file has, and one less.
    for layers in [2, 0] {
        let error = edited("llama", |_, config| config["num_hidden_layers"] = json!(layers));
        assert!(error.is_err(), "{error:?}");
    }
    // The same of a file that does not state its number of blocks.
    let Err(Error::Weights(WeightsError::TensorNames { missing, unused })) = edited("llama", |bytes, config| {
        let at = find(bytes, "llama.block_count");
        bytes[at] = b'x';
        config["num_hidden_layers"] = json!(2);
    }) else {
        panic!("it loads")
    };
    assert_eq!((missing.len(), unused.len()), (9, 0));
    assert!(missing.contains(&"model.layers.1.self_attn.q_proj.weight".to_owned()));
    let wide = |unstated: bool| {
        edited("llama", |bytes, config| {
            let at = find(bytes, "llama.feed_forward_length");
            bytes[at] = if unstated { b'x' } else { b'l' };
            config["intermediate_size"] = json!(64);
        })
    };
    assert!(matches!(wide(true), Err(Error::Weights(WeightsError::Tensor { tensor, .. })) if tensor.contains("mlp.")));
    let Err(Error::Weights(WeightsError::Gguf {
        problem: GgufProblem::Setting { key, found, expected, field }, ..
    })) = wide(false)
    else {
        panic!("it loads")
    };
    assert_eq!((key.as_str(), &*found, &*expected), ("llama.feed_forward_length", "32", "64"));
    assert_eq!(field, "intermediate_size");
}

#[test]
fn scales_that_are_not_finite_are_refused() {
    let error = edited("qwen3", |bytes, _| {
        // The end of the file is some padding behind the last tensor.
        let end = bytes.len();
        bytes[end - 256..].fill(0xff);
    });
    assert!(matches!(&error, Err(Error::Weights(WeightsError::Tensor { .. }))), "{error:?}");
}

#[test]
fn shortened_files_are_refused_wherever_they_end() {
    let whole = fs::read(fixtures::folder("../gguf/qwen3/model.gguf")).unwrap();
    assert!(matches!(edited("qwen3", |bytes, _| bytes.clear()), Err(Error::Weights(WeightsError::StandIn { .. }))));
    for length in (1..whole.len() - 64).step_by(97) {
        let error = edited("qwen3", |bytes, _| bytes.truncate(length));
        let Err(Error::Weights(WeightsError::Gguf { problem: GgufProblem::Truncated { expected, found, .. }, .. })) =
            error
        else {
            panic!("{length}: {error:?}")
        };
        assert!(found == length as u64 && expected > found);
    }
}

/// A file with `output.weight`, which is `token_embd.weight` as it is stored there or with other scales.
#[test]
fn a_head_that_the_file_has_is_the_head_whatever_config_json_says() {
    let tied = edited("qwen2", |_, config| config["tie_word_embeddings"] = json!(true)).unwrap();
    let apart = edited("qwen2", |_, config| config["tie_word_embeddings"] = json!(false)).unwrap();
    let Architecture::Decoder(spec) = &tied.context.spec else { panic!("an encoder") };
    assert_eq!(spec.head, HeadSpec::Own("lm_head.weight".to_owned()));

    let rows = |model: &Model| model.engine.head_rows(&[5, 6]).unwrap();
    assert_eq!(rows(&tied), rows(&apart));
    // Without one it is the embedding where config.json says so, else there is none.
    let absent = edited("qwen3", |_, config| config["tie_word_embeddings"] = json!(false)).unwrap();
    assert!(absent.context.no_logits().is_some_and(|why| why.contains("tie_word_embeddings")));
    assert!(edited("qwen3", |_, _| {}).unwrap().context.no_logits().is_none());
}
