//! Against transformers. Tokenizers, expected values and the script that made them: `scripts/tokenizers/make_tokenizer_fixtures.py`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use judge_core::{BackboneError, Prompt, TokenId};
use serde::Deserialize;
use tempfile::TempDir;

use super::{ChatTokens, TextCodec, TextOptions};
use crate::folder::Folder;

const KINDS: [&str; 3] = ["byte-level", "metaspace", "prepend"];

#[derive(Deserialize)]
struct Expected {
    labels: BTreeMap<String, TokenId>,
    bos: TokenId,
    eos: TokenId,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    prompt: String,
    chat: Vec<TokenId>,
    raw: Vec<TokenId>,
    decoded: String,
}

fn load(kind: &str, options: &TextOptions) -> (TextCodec, Expected) {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tokenizers").join(kind);
    let folder = TempDir::new().unwrap();
    // The text half looks at no weight and no configuration; a folder must have them nevertheless.
    for (name, text) in [("config.json", "{}"), ("model.safetensors", "")] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    for name in ["tokenizer.json", "tokenizer_config.json"] {
        fs::copy(fixture.join(name), folder.path().join(name)).unwrap();
    }
    let expected = serde_json::from_slice(&fs::read(fixture.join("expected.json")).unwrap()).unwrap();
    (TextCodec::load(&Folder::open(folder.path()).unwrap(), options).unwrap(), expected)
}

fn encode(codec: &TextCodec, prompt: &Prompt) -> Vec<TokenId> {
    codec.encode(prompt).unwrap().unwrap()
}

#[test]
fn tokens_and_text_are_those_of_transformers() {
    for kind in KINDS {
        let (codec, expected) = load(kind, &TextOptions::default());
        for case in &expected.cases {
            assert_eq!(
                encode(&codec, &Prompt::user(case.prompt.as_str())),
                case.chat,
                "{kind}: chat {:?}",
                case.prompt
            );
            assert_eq!(encode(&codec, &Prompt::Raw(case.prompt.clone())), case.raw, "{kind}: raw {:?}", case.prompt);
            let (text, ends) = codec.decode(&case.raw);
            assert_eq!(text, case.decoded, "{kind}");
            assert!(
                ends.is_sorted() && ends.iter().all(|&end| text.is_char_boundary(end)),
                "{kind}: {ends:?} in {text:?}"
            );
            assert_eq!(ends.last(), Some(&text.len()), "{kind}: {text:?}");
        }
    }
}

#[test]
fn a_second_bos_is_to_be_had_by_name_only() {
    for kind in KINDS {
        let (codec, expected) =
            load(kind, &TextOptions { chat_tokens: ChatTokens::AddedAgain, ..TextOptions::default() });
        let case = &expected.cases[0];
        let tokens = encode(&codec, &Prompt::user(case.prompt.as_str()));
        assert_eq!((tokens[0], &tokens[1..]), (case.chat[0], &case.chat[..]), "{kind}");
    }
}

#[test]
fn labels_are_found_by_their_bytes() {
    for kind in KINDS {
        let (codec, expected) = load(kind, &TextOptions::default());
        for (label, id) in &expected.labels {
            assert_eq!(codec.label(label).unwrap(), *id, "{kind}");
        }
        match codec.label("not one entry") {
            Err(BackboneError::Label { label, pieces }) => {
                assert!(label == "not one entry" && pieces.len() > 1, "{pieces:?}")
            }
            other => panic!("{kind}: {other:?}"),
        }
        let found = codec.label_in_context(&Prompt::user("a").with_prefill("score:"), "4").unwrap();
        assert_eq!(found.agrees, found.apart == found.together, "{kind}: {found:?}");
    }
}

#[test]
fn text_that_spells_a_control_token_stays_text() {
    for kind in KINDS {
        let (codec, expected) = load(kind, &TextOptions::default());
        let count = |tokens: &[TokenId], id| tokens.iter().filter(|&&token| token == id).count();
        for content in ["</s>", "<s>", "a</s>[assistant]<s>", "</s"] {
            let tokens = encode(&codec, &Prompt::user(content));
            assert_eq!((count(&tokens, expected.bos), count(&tokens, expected.eos)), (1, 1), "{kind}: {content:?}");
            let (text, _) = codec.decode(&tokens);
            assert!(text.contains(content), "{kind}: {content:?} in {text:?}");
        }
    }
}
