//! Against transformers and sentencepiece. Models, expected tokens and the script that made them:
//! `scripts/tokenizers/make_sentencepiece_fixtures.py`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use judge_core::{Prompt, request::TokenId};
use judge_weights::error::Error as WeightsError;
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::proto::ModelProto;
use crate::tokenizer::tests::unsupported;
use crate::{Error, Files, TextCodec, TextOptions};

#[derive(Deserialize)]
struct Expected {
    texts: Vec<String>,
    pairs: Vec<(String, String)>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    model: String,
    file: String,
    model_type: String,
    settings: Value,
    others: BTreeMap<String, Value>,
    ids: Vec<Vec<TokenId>>,
    decoded: Vec<String>,
    pairs: Vec<Vec<TokenId>>,
    named: BTreeMap<String, String>,
    /// What sentencepiece makes of the texts, where it was asked and agrees with transformers.
    own: Option<Vec<Option<Vec<TokenId>>>>,
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sentencepiece")
}

fn model(name: &str) -> Vec<u8> {
    fs::read(fixtures().join(format!("{name}.model"))).unwrap()
}

/// A folder with this file as its tokenizer.
fn folder(file: &str, bytes: &[u8], model_type: &str, settings: &Value) -> TempDir {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    write("config.json", json!({ "model_type": model_type }).to_string().as_bytes());
    write("tokenizer_config.json", settings.to_string().as_bytes());
    write(file, bytes);
    folder
}

fn load(folder: &TempDir) -> Result<TextCodec, Error> {
    TextCodec::load(&Files::open(folder.path())?, &TextOptions::default())
}

#[test]
fn tokens_and_texts_are_those_of_transformers_and_of_sentencepiece() {
    let expected: Expected = serde_json::from_slice(&fs::read(fixtures().join("expected.json")).unwrap()).unwrap();
    let mut checked_with_sentencepiece = 0;
    for case in &expected.cases {
        let Case { model: name, file, model_type, settings, .. } = case;
        let of = format!("{name} as {file} of {model_type} with {settings} and {:?}", case.others);
        let folder = folder(file, &model(name), model_type, settings);
        for (name, content) in &case.others {
            fs::write(folder.path().join(name), content.to_string()).unwrap();
        }
        let codec = load(&folder).unwrap_or_else(|error| panic!("{of}: {error}"));
        for (i, text) in expected.texts.iter().enumerate() {
            // Without the checks for prompts without text.
            let found = codec.tokenizer.encode(text.as_str(), true).unwrap();
            assert_eq!(found.get_ids(), case.ids[i], "{of}: {text:?}");
            if !text.is_empty() && !case.ids[i].is_empty() {
                let found = codec.encode(&Prompt::Raw(text.clone())).unwrap();
                assert_eq!(found, case.ids[i], "{of}: {text:?}");
            }
            assert_eq!(codec.tokenizer.decode(&case.ids[i], true).unwrap(), case.decoded[i], "{of}: {text:?}");
            if let Some(own) = case.own.as_ref().and_then(|own| own[i].as_ref()) {
                let found = codec.tokenizer.encode(text.as_str(), false).unwrap();
                assert_eq!(found.get_ids(), own, "{of}: {text:?}");
                checked_with_sentencepiece += 1;
            }
        }
        for ((first, second), ids) in expected.pairs.iter().zip(&case.pairs) {
            let found = codec.tokenizer.encode((first.as_str(), second.as_str()), true).unwrap();
            assert_eq!(found.get_ids(), ids, "{of}: {first:?} and {second:?}");
        }
        for (name, text) in &case.named {
            assert_eq!(codec.special.named().get(name), Some(text), "{of}: {name}");
        }
    }
    assert!(checked_with_sentencepiece > 100, "{checked_with_sentencepiece}");
}

#[test]
fn what_is_missing_or_not_read_is_refused_by_name() {
    let refused = |file: &str, model_type: &str, settings: Value, words: &[&str]| {
        let text = match load(&folder(file, &model("llama"), model_type, &settings)) {
            Err(Error::Weights(error))
                if matches!(&*error, WeightsError::Unsupported { .. } | WeightsError::MissingFile { .. }) =>
            {
                error.to_string()
            }
            other => panic!("{model_type}, {settings}: {:?}", other.map(|_| ())),
        };
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    };
    let bos = || json!({ "add_bos_token": true });
    refused("tokenizer.model", "llama", json!({}), &["tokenizer_config.json", "add_bos_token", "nothing"]);
    refused(
        "tokenizer.model",
        "llama",
        json!({ "tokenizer_class": "T5Tokenizer" }),
        &["tokenizer_config.json: tokenizer_class: T5Tokenizer", "save_pretrained"],
    );
    refused("tokenizer.model", "qwen2", bos(), &["config.json: model_type: qwen2 (Qwen2Tokenizer)"]);
    refused("tokenizer.model", "gpt2", bos(), &["gpt2"]);
    refused("tokenizer.model", "llama", json!({ "auto_map": {} }), &["auto_map"]);
    refused("spm.model", "llama", bos(), &["tokenizer.model"]);
    // Two settings of the file itself: field 3 and field 24 of its field 2, which a later one of the same number is merged with.
    for (field, name) in
        [([0x12, 2, 3 << 3, 4].as_slice(), "model_type"), (&[0x12, 3, 0xc0, 1, 1], "treat_whitespace_as_suffix")]
    {
        let bytes = [model("llama"), field.to_vec()].concat();
        match load(&folder("tokenizer.model", &bytes, "llama", &bos())) {
            Err(error) => assert!(unsupported(&error).0.contains(name), "{error}"),
            Ok(_) => panic!("{name} is accepted"),
        }
    }
}

#[test]
fn damaged_and_foreign_files_are_errors() {
    let whole = model("unigram");
    for length in 0..whole.len() {
        match ModelProto::read(&whole[..length]) {
            // A file cut between two messages is one with fewer of them.
            Ok(model) => assert!(model.pieces.len() <= 61),
            Err(error) => assert!(!error.is_empty()),
        }
    }
    let piece = [0x0a, 3, 0x0a, 1, b'a'];
    let nan = [&[0x0a, 8, 0x0a, 1, b'a', 0x15], f32::NAN.to_le_bytes().as_slice()].concat();
    for (bytes, words) in [
        (&b""[..], "it has no pieces"),
        (&[0x0a, 9, 1], "at byte 2 9 bytes are expected, found 1"),
        (&[0x0b], "the field at byte 0 has the wire type 3"),
        (&[0x08, 1], "field 1, which holds its content at byte 2, is not bytes with their length"),
        (&[0xff; 12], "the integer before byte 10"),
        (&[0x0a, 3, 0x0a, 1, 0xff], "is not UTF-8"),
        (&[piece, piece].concat(), "piece 1 is \"a\", expected a text that no other piece has"),
        (&nan, "a finite score"),
    ] {
        let error = ModelProto::read(bytes).unwrap_err();
        assert!(error.contains(words), "{bytes:?}: {error}");
    }
    // A vocabulary of tiktoken, as Llama 3 has one in a file of this name.
    match load(&folder("tokenizer.model", b"IQ== 0\nIg== 1\nIw== 2\n", "llama", &json!({ "add_bos_token": true }))) {
        Err(Error::SentencePiece { path, .. }) => assert!(path.ends_with("tokenizer.model")),
        other => panic!("{:?}", other.map(|_| ())),
    }
    // A table of characters that is cut makes the crate tokenizers panic, which is caught.
    let cut = [whole, vec![0x1a, 6, 0x12, 4, 9, 0, 0, 0]].concat();
    match load(&folder("tokenizer.model", &cut, "mistral", &json!({ "add_bos_token": true }))) {
        Err(Error::Tokenizer { .. }) => {}
        other => panic!("{:?}", other.map(|_| ())),
    }
}

/// Whatever a byte is changed to, nothing panics.
#[test]
fn changed_bytes_do_no_harm() {
    for name in ["bpe", "deberta"] {
        let whole = model(name);
        for at in (0..whole.len()).step_by(3) {
            let mut changed = whole.clone();
            changed[at] ^= 1 << (at % 8);
            let file = if name == "bpe" { ("tokenizer.model", "mistral") } else { ("spm.model", "deberta-v2") };
            if let Ok(codec) = load(&folder(file.0, &changed, file.1, &json!({ "add_bos_token": true }))) {
                let _ = codec.encode(&Prompt::Raw("The judge reads é <unk>".to_owned()));
            }
        }
    }
}
