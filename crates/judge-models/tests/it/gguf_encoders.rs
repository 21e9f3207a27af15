//! GGUF files of encoders, with nothing beside them, against the folders that they were made from: `scripts/parity/make_gguf_encoder_fixtures.py`.

use std::fs;
use std::path::Path;

use judge_core::request::Pooling;
use judge_models::{Dtype, Error, GgufProblem, Model, WeightsError};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::{self, fixtures, json, of_every_layer, raw, readings, values};
use crate::difference::relative_error;

const TEXTS: [&str; 12] = [
    "ba de fi go ku",
    "Ba DE\u{301} fi,go! ku?",
    "bade  \n\t fi",
    "é 😀 x 12345",
    "[CLS] ba [MASK] [SEP]",
    "<s>a</s> b<mask>",
    "▁ba ▁",
    "The judge reads the answer and gives a score.",
    " score: 4\u{a0}\u{3000}① \u{fb01}",
    "漢字ba",
    "a",
    "badefigokulameniporusatevizoxay0",
];

fn load(path: &Path) -> Result<Model, Error> {
    common::load(path, Dtype::F32)
}

/// States of every layer for every text: of the first token, of the last, and their mean.
fn states(model: &Model) -> Vec<f32> {
    let want = of_every_layer(model, &[Pooling::First, Pooling::Last, Pooling::Mean]);
    readings(model, TEXTS.map(raw), &want).iter().flat_map(values).collect()
}

/// A folder with a file alone, and what is put beside it.
fn beside(gguf: &str, files: &[(&str, Value)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::copy(fixtures().join("gguf_encoders").join(gguf), folder.path().join("model.gguf")).unwrap();
    for (name, content) in files {
        fs::write(folder.path().join(name), content.to_string()).unwrap();
    }
    folder
}

fn config(folder: &str) -> Value {
    json(fixtures().join(folder).join("config.json"))
}

#[test]
fn a_file_is_the_folder_that_it_was_made_from_tokenizer_included() {
    for (gguf, folder) in [("bert.gguf", "encoders/bert-off"), ("xlm-roberta/model.gguf", "gguf_encoders/xlm-roberta")]
    {
        let folder = fixtures().join(folder);
        // safetensors count where both are there.
        let expected = states(&load(&folder).unwrap());
        assert_eq!(states(&load(beside(gguf, &[]).path()).unwrap()), expected, "{gguf}");
    }
    let folder = beside("bert.gguf", &[("config.json", config("encoders/bert-off"))]);
    assert_eq!(states(&load(folder.path()).unwrap()), states(&load(&fixtures().join("encoders/bert-off")).unwrap()));
}

#[test]
fn a_quantised_file_is_near_it() {
    let exact = states(&load(beside("bert.gguf", &[]).path()).unwrap());
    let found = states(&load(beside("bert-q8_0.gguf", &[]).path()).unwrap());
    let error = relative_error(&found, &exact);
    assert!(error > 0.0 && error < 0.03, "{error}");
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let refused = |folder: TempDir, words: &[&str]| match load(folder.path()) {
        Err(error @ Error::Weights(WeightsError::Gguf { .. })) => {
            let text = error.to_string();
            assert!(words.iter().all(|word| text.contains(word)), "{text}");
            error
        }
        other => panic!("{:?}", other.map(|_| ())),
    };
    let edited = |field: &str, value: Value| {
        let mut config = config("encoders/bert-off");
        config[field] = value;
        beside("bert.gguf", &[("config.json", config)])
    };
    for (field, key, value) in [
        ("num_attention_heads", "bert.attention.head_count", json!(8)),
        ("layer_norm_eps", "bert.attention.layer_norm_epsilon", json!(1e-5)),
        ("max_position_embeddings", "bert.context_length", json!(111)),
    ] {
        let error = refused(edited(field, value), &[field, key]);
        assert!(matches!(error, Error::Weights(WeightsError::Gguf { problem: GgufProblem::Setting { .. }, .. })));
    }
    // Its positions are counted in another way than in the file.
    let xlm_roberta = config("gguf_encoders/xlm-roberta");
    refused(
        beside("xlm-roberta/model.gguf", &[("config.json", xlm_roberta)]),
        &["xlm-roberta", "general.architecture"],
    );
    // A decoder's file beside an encoder's description, and the other way round.
    let llama = config("families/llama-off");
    refused(beside("bert.gguf", &[("config.json", llama)]), &["\"bert\"", "llama"]);
}
