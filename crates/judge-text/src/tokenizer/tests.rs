//! Against transformers. Tokenizers, expected values and the script that made them: `scripts/tokenizers/make_tokenizer_fixtures.py`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use judge_core::{Message, Prompt, Reason, Unscored, model::BackboneError, request::TokenId};
use judge_weights::error::Error as WeightsError;
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{ChatTokens, TextCodec, TextOptions, literal};
use crate::{ChatTemplate, Error, Files};

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

/// A file of a fixture.
fn fixture(kind: &str, name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tokenizers").join(kind).join(name);
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// A folder with this tokenizer, and these files.
fn folder_of(tokenizer: &Value, config: &Value, settings: &Value, files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    let always = [("tokenizer.json", tokenizer), ("config.json", config), ("tokenizer_config.json", settings)];
    let always = always.map(|(name, json)| (name, json.to_string()));
    let files = files.iter().map(|&(name, text)| (name, text.to_owned()));
    for (name, text) in always.into_iter().chain(files) {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn codec_of(folder: &TempDir) -> TextCodec {
    TextCodec::load(&Files::open(folder.path()).unwrap(), &TextOptions::default()).unwrap()
}

fn load(kind: &str) -> (TextCodec, Expected) {
    load_with(kind, json!({}))
}

/// With some fields of `tokenizer_config.json` set.
fn load_with(kind: &str, settings: Value) -> (TextCodec, Expected) {
    let (codec, expected) = try_load(kind, settings, |_| {});
    (codec.unwrap(), expected)
}

/// With `tokenizer.json` changed as well.
fn try_load(kind: &str, settings: Value, change: impl FnOnce(&mut Value)) -> (Result<TextCodec, Error>, Expected) {
    try_load_as(kind, &TextOptions::default(), json!({}), settings, change)
}

/// In a folder with this `config.json`.
fn try_load_as(
    kind: &str,
    options: &TextOptions,
    config: Value,
    settings: Value,
    change: impl FnOnce(&mut Value),
) -> (Result<TextCodec, Error>, Expected) {
    let (mut tokenizer, mut all) = (fixture(kind, "tokenizer.json"), fixture(kind, "tokenizer_config.json"));
    change(&mut tokenizer);
    all.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
    let folder = folder_of(&tokenizer, &config, &all, &[]);
    let expected = serde_json::from_value(fixture(kind, "expected.json")).unwrap();
    (TextCodec::load(&Files::open(folder.path()).unwrap(), options), expected)
}

fn encode(codec: &TextCodec, prompt: &Prompt) -> Vec<TokenId> {
    codec.encode(prompt).unwrap()
}

fn unscored(codec: &TextCodec, prompt: &Prompt) -> Unscored {
    match codec.encode(prompt) {
        Err(Error::Prompt { unscored }) => unscored,
        other => panic!("{prompt:?}: {other:?}"),
    }
}

/// The field that a folder is refused for, and what it says.
pub(super) fn unsupported(error: &Error) -> (&str, &str) {
    match error {
        Error::Weights(of_file) => match &**of_file {
            WeightsError::Unsupported { field, found, .. } => (field, found),
            other => panic!("{other}"),
        },
        other => panic!("{other}"),
    }
}

#[test]
fn tokens_and_text_are_those_of_transformers() {
    for kind in KINDS {
        let (codec, expected) = load(kind);
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
        let options = TextOptions { chat_tokens: ChatTokens::AddedAgain, ..TextOptions::default() };
        let (codec, expected) = try_load_as(kind, &options, json!({}), json!({}), |_| {});
        let codec = codec.unwrap();
        let case = &expected.cases[0];
        let tokens = encode(&codec, &Prompt::user(case.prompt.as_str()));
        assert_eq!((tokens[0], &tokens[1..]), (case.chat[0], &case.chat[..]), "{kind}");
    }
}

#[test]
fn labels_are_found_by_their_bytes() {
    for kind in KINDS {
        let (codec, expected) = load(kind);
        for (label, id) in &expected.labels {
            assert_eq!(codec.label(label).unwrap(), *id, "{kind}");
        }
        match codec.label("not one entry") {
            Err(BackboneError::Label { label, pieces }) => {
                assert!(label == "not one entry" && pieces.len() > 1, "{pieces:?}")
            }
            other => panic!("{kind}: {other:?}"),
        }
    }
}

#[test]
fn a_label_agrees_with_its_context_where_it_stays_a_token() {
    for (kind, prefill, label, agrees) in [
        ("byte-level", "score:", "4", true),
        ("byte-level", "score: ", "4", true),
        // One token holds the label and what is before it.
        ("byte-level", "t", "he", false),
        ("metaspace", "score:", "4", true),
        ("metaspace", "score:", " ", false),
        ("prepend", "score:", "4", true),
        ("prepend", "score:", " ", false),
    ] {
        let (codec, _) = load(kind);
        let prompt = Prompt::user("a").with_prefill(prefill);
        let found = codec.label_in_context(&prompt, label, codec.label(label).unwrap()).unwrap();
        assert_eq!(found.agrees, agrees, "{kind}: {found:?}");
        assert_eq!(found.apart == found.together, agrees, "{kind}: {found:?}");
    }
}

/// transformers drops `add_bos_token` and `add_eos_token` of the configuration where there is a `tokenizer.json`.
#[test]
fn settings_of_bos_and_eos_say_nothing() {
    for kind in KINDS {
        let (plain, expected) = load(kind);
        let raw = |settings| {
            let (codec, _) = load_with(kind, settings);
            encode(&codec, &Prompt::Raw(expected.cases[0].prompt.clone()))
        };
        let by_default = encode(&plain, &Prompt::Raw(expected.cases[0].prompt.clone()));
        for flag in [json!(null), json!(true), json!(false)] {
            assert_eq!(raw(json!({ "add_bos_token": flag, "add_eos_token": flag })), by_default, "{kind}");
        }
    }
}

/// Without a `tokenizer_config.json` the special tokens are those of `special_tokens_map.json`, and a `chat_template.json` is
/// a processor's.
#[test]
fn special_tokens_may_be_in_their_own_file_alone() {
    let files = [
        ("special_tokens_map.json", r#"{"bos_token": {"content": "<s>"}, "eos_token": "</s>"}"#),
        ("chat_template.json", r#"{"chat_template": "processor"}"#),
    ];
    let folder = folder_of(&fixture("byte-level", "tokenizer.json"), &json!({}), &json!({}), &files);
    fs::remove_file(folder.path().join("tokenizer_config.json")).unwrap();
    assert!(matches!(codec_of(&folder).encode(&Prompt::user("a")), Err(Error::NoChatTemplate { .. })));
    fs::write(folder.path().join("chat_template.jinja"), "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}")
        .unwrap();
    let (_, expected) = load("byte-level");
    let ids = encode(&codec_of(&folder), &Prompt::user("a"));
    assert_eq!((ids[0], ids[ids.len() - 1]), (expected.bos, expected.eos));
}

/// Tokens of texts with small files beside `tokenizer.json`, as of transformers 5.23.0: `AutoTokenizer.from_pretrained(folder)(text)`.
#[test]
fn small_files_add_tokens_as_in_transformers() {
    // `own` are further tokens of `tokenizer.json` itself.
    let tokens = |settings: &Value, own: &[Value], files: &[(&str, Value)], text: &str| {
        let [mut tokenizer, mut config] =
            ["tokenizer.json", "tokenizer_config.json"].map(|name| fixture("byte-level", name));
        tokenizer["added_tokens"].as_array_mut().unwrap().extend(own.iter().cloned());
        config.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
        let folder = folder_of(&tokenizer, &json!({}), &config, &[]);
        files.iter().for_each(|(name, json)| fs::write(folder.path().join(name), json.to_string()).unwrap());
        let codec = codec_of(&folder);
        (encode(&codec, &Prompt::Raw(text.to_owned())), codec.special.named().clone())
    };
    let (map, added) = ("special_tokens_map.json", "added_tokens.json");
    let wide = json!({ "content": "<y>", "lstrip": true, "rstrip": true, "normalized": false, "single_word": false });
    let wide_of_config = {
        let mut token = wide.clone();
        token["__type"] = json!("AddedToken");
        token["special"] = json!(true);
        token
    };
    let known = json!({
        "id": 316, "content": "<x>", "single_word": false, "lstrip": true, "rstrip": true, "normalized": false, "special": false
    });
    let (none, text) = (json!({}), "a<x>b <y> b");
    // The text without any further token, and with both, with or without the white space around the second.
    let plain: &[TokenId] = &[314, 64, 27, 87, 29, 65, 220, 27, 88, 29, 220, 65];
    let both: &[TokenId] = &[314, 64, 316, 65, 220, 317, 220, 65];
    let both_wide: &[TokenId] = &[314, 64, 316, 65, 317, 65];
    let only_x: &[TokenId] = &[314, 64, 316, 65, 220, 27, 88, 29, 220, 65];
    let only_y: &[TokenId] = &[314, 64, 27, 87, 29, 65, 220, 316, 220, 65];
    let only_y_wide: &[TokenId] = &[314, 64, 27, 87, 29, 65, 316, 65];
    for (settings, files, expected) in [
        (none.clone(), vec![], plain),
        (none.clone(), vec![(map, json!({ "additional_special_tokens": ["<x>", "<y>"] }))], both),
        (none.clone(), vec![(map, json!({ "extra_special_tokens": ["<x>", wide] }))], both_wide),
        (none.clone(), vec![(map, json!({ "image_token": "<x>", "video_token": wide }))], both_wide),
        (none.clone(), vec![(map, json!({ "mask_token": wide }))], only_y_wide),
        (json!({ "mask_token": wide_of_config }), vec![], only_y_wide),
        (json!({ "image_token": wide_of_config }), vec![], only_y_wide),
        // The newer name of the list counts, and `tokenizer_config.json` before the map.
        (json!({ "additional_special_tokens": ["<x>"], "extra_special_tokens": ["<y>"] }), vec![], only_y),
        (
            json!({ "additional_special_tokens": ["<x>"] }),
            vec![(map, json!({ "additional_special_tokens": ["<y>"] }))],
            only_x,
        ),
        (none.clone(), vec![(added, json!({ "<y>": 317, "<x>": 316 }))], both),
        // A folder of the new kind has none of these files.
        (
            json!({ "added_tokens_decoder": {} }),
            vec![(map, json!({ "additional_special_tokens": ["<y>"] })), (added, json!({ "<x>": 316 }))],
            plain,
        ),
    ] {
        assert_eq!(tokens(&settings, &[], &files, text).0, expected, "{settings}, {files:?}");
    }
    // A token that `tokenizer.json` has keeps the way it matches.
    for (settings, files) in [
        (none.clone(), vec![(added, json!({ "<x>": 316 }))]),
        (json!({ "extra_special_tokens": ["<x>"] }), vec![]),
        (json!({ "pad_token": "<x>" }), vec![]),
    ] {
        let found = tokens(&settings, std::slice::from_ref(&known), &files, "a <x> b").0;
        assert_eq!(found, [314, 64, 316, 65], "{settings}, {files:?}");
    }
    // Names in the order of the files, those of the map first; and a name that the map takes away.
    let names = [(map, json!({ "z_token": "<z>", "a_token": "<a>", "eos_token": null }))];
    let (ids, named) = tokens(&json!({ "m_token": "<m>" }), &[], &names, "<z><a><m>");
    assert_eq!(ids, [314, 316, 317, 318]);
    assert_eq!(named.keys().collect::<Vec<_>>(), ["a_token", "bos_token", "m_token", "z_token"]);
}

/// Where `a` is no token, and where what goes around a text is its token.
#[test]
fn what_goes_around_a_text_does_not_depend_on_the_text() {
    let around = |token: &str, end: &str| {
        let special = |text: &str| json!({ "SpecialToken": { "id": text, "type_id": 0 } });
        json!([special(token), { "Sequence": { "id": "A", "type_id": 0 } }, special(end)])
    };
    let special = |text: &str, id: TokenId| json!({ "id": text, "ids": [id], "tokens": [text] });
    let (codec, _) = try_load("byte-level", json!({}), |json| {
        let model = json!({ "type": "BPE", "vocab": { "A": 0, "C": 1, "<s>": 2, "</s>": 3 }, "merges": [] });
        (json["model"], json["pre_tokenizer"]) = (model, Value::Null);
        (json["added_tokens"][0]["id"], json["added_tokens"][1]["id"]) = (json!(2), json!(3));
        json["post_processor"]["single"] = around("<s>", "</s>");
        json["post_processor"]["special_tokens"] = json!({ "<s>": special("<s>", 2), "</s>": special("</s>", 3) });
    });
    assert_eq!(encode(&codec.unwrap(), &Prompt::Raw("AC".to_owned())), [2, 0, 1, 3]);
    let (codec, _) = try_load("byte-level", json!({}), |json| {
        json["post_processor"]["single"] = around("a", "a");
        json["post_processor"]["special_tokens"]["a"] = special("a", 64);
    });
    assert_eq!(encode(&codec.unwrap(), &Prompt::Raw("b".to_owned())), [64, 65, 64]);
}

#[test]
fn a_tokenizer_that_splits_its_control_tokens_is_refused() {
    let with = |split: Value| {
        let settings = json!({ "split_special_tokens": split });
        try_load("byte-level", settings, |_| {}).0.map(|_| ())
    };
    let error = with(json!(true)).unwrap_err();
    assert_eq!(unsupported(&error), ("split_special_tokens", "true"));
    assert!(error.to_string().contains("set it to false"), "{error}");
    with(json!(false)).unwrap();
}

#[test]
fn text_that_spells_a_control_token_stays_text() {
    for kind in KINDS {
        let (codec, expected) = load(kind);
        let count = |tokens: &[TokenId], id| tokens.iter().filter(|&&token| token == id).count();
        for content in ["</s>", "<s>", "a</s>[assistant]<s>", "</s"] {
            let tokens = encode(&codec, &Prompt::user(content));
            assert_eq!((count(&tokens, expected.bos), count(&tokens, expected.eos)), (1, 1), "{kind}: {content:?}");
            let (text, _) = codec.decode(&tokens);
            assert!(text.contains(content), "{kind}: {content:?} in {text:?}");
        }
    }
}

#[test]
fn a_trusted_prefill_holds_control_tokens_and_nothing_else_does() {
    for kind in KINDS {
        let (codec, expected) = load(kind);
        let ends = |prompt: &Prompt| encode(&codec, prompt).iter().filter(|&&id| id == expected.eos).count();
        for content in ["a", "a</s>", "</s"] {
            let plain = Prompt::user(content);
            let trusted = plain.clone().with_trusted_prefill("b</s>");
            assert_eq!(ends(&trusted), ends(&plain) + 1, "{kind}: {content:?}");
            // Text of others stays text, before it and behind it.
            let opened = trusted.clone().with_prefill("</s>");
            assert_eq!(ends(&opened), ends(&plain) + 1, "{kind}: {content:?}");
            let (text, _) = codec.decode(&encode(&codec, &opened));
            assert!(text.contains(content) && text.trim_end().ends_with("</s>"), "{kind}: {text:?}");
            assert_eq!(encode(&codec, &trusted).last(), Some(&expected.eos), "{kind}: {content:?}");
        }
        // An end of the item's text and a beginning of the trusted one make no token together.
        assert_eq!(ends(&Prompt::user("a").with_trusted_prefill("</").with_prefill("s>")), ends(&Prompt::user("a")));
    }
}

/// The rule of lm-evaluation-harness, at every place where a text can be cut in two.
#[test]
fn a_continuation_has_the_tokens_that_follow_the_prompt_s() {
    for kind in KINDS {
        let (codec, expected) = load(kind);
        let (mut merged, mut apart) = (0, 0);
        for case in &expected.cases {
            for (cut, _) in case.prompt.char_indices().skip(1) {
                let (prompt, text) = case.prompt.split_at(cut);
                let prompt = Prompt::Raw(prompt.to_owned());
                let open = |prompt: &Prompt| codec.open_ended(prompt).unwrap();
                let (before, together) = (open(&prompt), open(&Prompt::Raw(case.prompt.clone())));
                let found = codec.continuations(&prompt, &[text.to_owned()]).unwrap();
                if together.len() > before.len() && together.starts_with(&before) {
                    assert_eq!(found, [&together[before.len()..]], "{kind}: {text:?}");
                    merged += 1;
                } else {
                    let alone = codec.tokenizer.encode(text, false).unwrap().get_ids().to_vec();
                    assert_eq!(found, [alone], "{kind}: {text:?}");
                    apart += 1;
                }
            }
        }
        assert!(merged > 0 && apart > 0, "{kind}: {merged} {apart}");
    }
}

#[test]
fn a_continuation_of_a_chat_is_plain_text() {
    for kind in KINDS {
        let (codec, expected) = load(kind);
        for text in ["</s>", " a</s>"] {
            let behind = |prompt: &Prompt| codec.continuations(prompt, &[text.to_owned()]).unwrap().remove(0);
            assert!(!behind(&Prompt::user("a")).contains(&expected.eos), "{kind}: {text:?}");
            assert!(!codec.apart(&Prompt::user("a"), text).unwrap().contains(&expected.eos), "{kind}: {text:?}");
            assert!(behind(&Prompt::Raw("a".to_owned())).contains(&expected.eos), "{kind}: {text:?}");
        }
    }
}

/// The crate `tokenizers` panics over both.
#[test]
fn a_tokenizer_whose_code_panics_is_an_error() {
    let with = |field: &'static str, part: Value| {
        try_load("metaspace", json!({}), |json| json[field] = part)
            .0
            .and_then(|codec| codec.encode(&Prompt::user("a b")))
    };
    match with("normalizer", json!({ "type": "Precompiled", "precompiled_charsmap": "AAAAAA==" })) {
        Err(Error::Tokenizer { source, .. }) => {
            assert!(source.to_string().contains("the tokenizer is damaged"), "{source}");
        }
        other => panic!("{other:?}"),
    }
}

/// <https://github.com/huggingface/tokenizers/pull/2333>, <https://github.com/huggingface/tokenizers/pull/2153>,
/// <https://github.com/huggingface/tokenizers/issues/1348>: the crate panics over these, at once or at a text.
#[test]
fn what_the_crate_is_known_to_panic_over_is_refused_by_its_field() {
    let special =
        json!([{ "SpecialToken": { "id": "[CLS]", "type_id": 0 } }, { "Sequence": { "id": "A", "type_id": 0 } }]);
    let around = json!({ "type": "TemplateProcessing", "single": special, "pair": [], "special_tokens": {} });
    let empty = |pattern: Value| json!({ "type": "Replace", "pattern": pattern, "content": "x" });
    for (part, value, field) in [
        ("normalizer", empty(json!({ "String": "" })), "normalizer.Replace.pattern"),
        (
            "normalizer",
            json!({ "type": "Sequence", "normalizers": [empty(json!({ "Regex": "" }))] }),
            "normalizer.Replace.pattern",
        ),
        ("pre_tokenizer", json!({ "type": "FixedLength", "length": 0 }), "pre_tokenizer.FixedLength.length"),
        ("post_processor", around, "post_processor.TemplateProcessing.special_tokens"),
    ] {
        let (codec, _) = try_load("byte-level", json!({}), |json| json[part] = value);
        let error = codec.map(|_| ()).unwrap_err();
        assert_eq!(unsupported(&error).0, field, "{error}");
    }
    let prefix = |json: &mut Value| json["model"]["continuing_subword_prefix"] = json!("####");
    let (codec, _) = try_load("byte-level", json!({}), prefix);
    let error = codec.map(|_| ()).unwrap_err();
    assert_eq!(unsupported(&error).0, "model.continuing_subword_prefix", "{error}");
}

/// <https://github.com/huggingface/tokenizers/issues/1645>, <https://github.com/huggingface/tokenizers/issues/1627>,
/// <https://github.com/huggingface/tokenizers/pull/2156>: files for transformers.js have a table of characters that is null.
#[test]
fn parts_that_do_nothing_are_none() {
    let table = |table: Value| json!({ "type": "Precompiled", "precompiled_charsmap": table });
    let of = |normalizer: Value| {
        let (codec, expected) = try_load("byte-level", json!({}), |json| json["normalizer"] = normalizer);
        let codec = codec.unwrap();
        expected.cases.iter().map(|case| encode(&codec, &Prompt::Raw(case.prompt.clone()))).collect::<Vec<_>>()
    };
    let nfc = || json!({ "type": "NFC" });
    assert_eq!(of(table(Value::Null)), of(Value::Null));
    assert_eq!(of(json!({ "type": "Prepend", "prepend": "" })), of(Value::Null));
    let sequence = json!({ "type": "Sequence", "normalizers": [table(json!("")), nfc(), table(Value::Null)] });
    assert_eq!(of(sequence), of(nfc()));
}

/// <https://github.com/huggingface/transformers/issues/45920>, <https://github.com/huggingface/transformers/issues/45812>.
#[test]
fn a_class_that_cuts_otherwise_than_the_file_is_said() {
    let notes = |class: Option<&str>, change: fn(&mut Value)| {
        let settings = json!({ "tokenizer_class": class });
        try_load("byte-level", settings, change).0.unwrap().notes()
    };
    let said = notes(Some("Qwen2TokenizerFast"), |_| {});
    assert!(said.len() == 1 && said[0].contains("Qwen2Tokenizer") && said[0].contains("12345"), "{said:?}");
    assert!(said[0].contains("PreTrainedTokenizerFast"), "{said:?}");
    assert_eq!(notes(None, |_| {}), [""; 0]);
    assert_eq!(notes(Some("PreTrainedTokenizerFast"), |_| {}), [""; 0]);
    // A file with the rules of its class, however it writes them.
    let own = |json: &mut Value| {
        let pattern = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
        json["normalizer"] = json!({ "type": "Sequence", "normalizers": [{ "type": "NFC" }] });
        json["model"]["ignore_merges"] = json!(false);
        let split =
            json!({ "type": "Split", "pattern": { "Regex": pattern }, "behavior": "Isolated", "invert": false });
        let bytes =
            json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false });
        json["pre_tokenizer"] = json!({ "type": "Sequence", "pretokenizers": [split, bytes] });
    };
    assert_eq!(notes(Some("Qwen2Tokenizer"), own), [""; 0]);
    // Of some model types the class counts whatever the folder names: nothing is advised that changes nothing.
    let of_type = |model_type: &str, class: Option<&str>| {
        let (config, settings) = (json!({ "model_type": model_type }), json!({ "tokenizer_class": class }));
        try_load_as("byte-level", &TextOptions::default(), config, settings, |_| {}).0.unwrap().notes()
    };
    for class in [None, Some("PreTrainedTokenizerFast")] {
        let said = of_type("qwen2", class);
        assert!(said.len() == 1 && said[0].contains("whatever tokenizer_class says"), "{said:?}");
        assert!(!said[0].contains("set tokenizer_class"), "{said:?}");
    }
    assert!(of_type("qwen3", None)[0].contains("set tokenizer_class to PreTrainedTokenizerFast"));
    assert_eq!(of_type("qwen3", Some("PreTrainedTokenizerFast")), [""; 0]);
}

/// <https://github.com/nomic-ai/gpt4all/pull/1970>: ChatML over a vocabulary without its tokens.
#[test]
fn control_tokens_of_a_template_that_the_tokenizer_lacks_are_said() {
    let chat_ml = "{% for m in messages %}{{ '<|im_' ~ 'start|>' ~ m.role ~ '\n' ~ m.content ~ '<|im_end|>\n' }}{% endfor %}<think>";
    for kind in KINDS {
        let (codec, _) = load_with(kind, json!({ "chat_template": chat_ml }));
        let said = codec.notes();
        assert!(said.len() == 1 && said[0].contains("<|im_start|>, <|im_end|>"), "{kind}: {said:?}");
        let (codec, _) = load(kind);
        assert_eq!(codec.notes(), [""; 0], "{kind}");
    }
}

/// <https://github.com/EleutherAI/lm-evaluation-harness/issues/2069>.
#[test]
fn a_template_that_takes_no_system_turn_says_what_to_do() {
    let template = "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}\
        {% if m.content == 'x' %}{{ raise_exception('No x') }}{% endif %}{{ m.content }}{% endfor %}";
    let (codec, _) = load_with("metaspace", json!({ "chat_template": template }));
    let detail = |content: &str| {
        let turns = vec![Message::new("system", "Be brief."), Message::user(content)];
        unscored(&codec, &Prompt::chat(turns)).detail
    };
    let advice = "; the chat template takes no system turn: put its text into the user's turn";
    assert!(detail("a").starts_with("System role not supported") && detail("a").ends_with(advice), "{}", detail("a"));
    assert!(!detail("x").contains(advice), "it would refuse this one anyway");
}

#[test]
fn a_tokenizer_that_leaves_out_merges_at_random_is_refused() {
    let with = |dropout: Value| try_load("byte-level", json!({}), |json| json["model"]["dropout"] = dropout).0;
    match with(json!(0.1)) {
        Err(error) => assert_eq!(unsupported(&error), ("model.dropout", "0.1")),
        Ok(_) => panic!("it is accepted"),
    }
    assert!(with(json!(null)).is_ok() && with(json!(0.0)).is_ok());
}

#[derive(Deserialize)]
struct Classes {
    texts: Vec<String>,
    /// Ways to read the texts; `None` for a text that a vocabulary has no piece for.
    ids: Vec<Vec<Option<Vec<TokenId>>>>,
    cases: Vec<ClassCase>,
}

#[derive(Deserialize)]
struct ClassCase {
    kind: String,
    model_type: String,
    class: Option<String>,
    settings: Value,
    ids: usize,
}

#[test]
fn a_class_with_rules_of_its_own_reads_as_transformers_builds_it() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tokenizers/classes.json");
    let Classes { texts, ids, cases } = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    for ClassCase { kind, model_type, class, settings, ids: way } in cases {
        let mut settings = settings;
        settings["tokenizer_class"] = json!(class);
        let config = json!({"model_type": model_type});
        let (codec, _) = try_load_as(&kind, &TextOptions::default(), config, settings.clone(), |_| {});
        let codec = codec.unwrap();
        for (text, ids) in texts.iter().zip(&ids[way]) {
            let found = match codec.encode(&Prompt::Raw(text.clone())) {
                Err(Error::Prompt { .. }) => Some(Vec::new()),
                found => found.ok(),
            };
            assert_eq!(found.as_ref(), ids.as_ref(), "{kind}, {model_type}, {settings}: {text:?}");
        }
    }
}

/// <https://github.com/coder/ai-tokenizer/issues/6>, <https://github.com/openai/tiktoken/issues/195>: a message that repeats a control
/// token took time that grew with the square of the copies.
#[test]
fn a_message_of_control_tokens_takes_looks_in_proportion_to_its_length() {
    for kind in KINDS {
        let (codec, _) = load(kind);
        let looks = |copies: usize| {
            literal::LOOKS.set(0);
            let ids = encode(&codec, &Prompt::user("</s> ".repeat(copies)));
            assert!(ids.len() > 4 * copies, "{kind}: they are text, not {} tokens", ids.len());
            literal::LOOKS.get()
        };
        let (some, more) = (looks(500), looks(2_000));
        assert!(some > 500 && more <= 4 * some + 10, "{kind}: {some} looks for 500 copies, {more} for 2,000");
    }
}

#[test]
fn marks_are_the_same_whichever_characters_are_free() {
    let (codec, expected) = load("metaspace");
    let plane: String = ('\u{f0000}'..='\u{ffffd}').collect();
    let prompt = |used: &str| Prompt::user(format!("a </s> b {used}"));
    // Two are left, the last ones. The one end token is the template's.
    let two_left = plane.trim_end_matches(['\u{ffffc}', '\u{ffffd}']);
    let ids = encode(&codec, &prompt(two_left));
    assert_eq!(ids.iter().filter(|&&id| id == expected.eos).count(), 1);
    for used in [&plane[..plane.len() - 4], &plane] {
        let unscored = unscored(&codec, &prompt(used));
        assert!(unscored.detail.contains("every private-use character"), "{unscored:?}");
    }
}

/// A template that changes text can make a control token of what spells none; where it writes lists, marks are escaped.
#[test]
fn text_that_a_template_changes_into_a_control_token_is_refused() {
    let of = |kind: &str, content: &str, text: &str| {
        let template = "{{ bos_token }}".to_owned() + &content.replace("TEXT", "messages[0].content");
        let (codec, expected) = load_with(kind, json!({ "chat_template": template }));
        let count = |ids: &[TokenId], id| ids.iter().filter(|&&token| token == id).count();
        let ids = codec.encode(&Prompt::user(text)).map_err(|error| error.to_string());
        ids.map(|ids| (count(&ids, expected.bos), count(&ids, expected.eos)))
    };
    for kind in KINDS {
        for (content, text) in [
            ("{{ TEXT|replace('\\n', '') }}", "say </\ns> now"),
            ("{{ TEXT|lower }}", "say </S> now"),
            ("{{ TEXT.split('-')|join }}", "say <-/s> now"),
            ("{{ TEXT|replace('x', '') }}", "</s> say <x/s> now"),
        ] {
            let refusal = of(kind, content, text).unwrap_err();
            assert!(refusal.contains("the template changes its text into one"), "{kind}: {content}: {refusal}");
        }
        for (content, text) in [
            ("{{ TEXT|replace('\\n', '') }}", "say a < b\n > c, </s>"),
            ("{{ TEXT|lower }}", "SAY <B>"),
            ("{{ TEXT.split('-')|join }}", "</s"),
            ("{{ [TEXT] }}", "say </s> now"),
            ("{{ [TEXT]|string|tojson }}", "say </s> now"),
            ("{{ TEXT|tojson(ensure_ascii=true) }}", "say </s> now"),
            ("{{ [TEXT] }}", r"say \U000f0000 </s> \udb80\udc01 now"),
        ] {
            assert_eq!(of(kind, content, text), Ok((1, 0)), "{kind}: {content}: {text:?}");
        }
    }
}

/// A folder with the tokenizer of `metaspace`, and these files.
fn small_folder(config: &Value, settings: &Value, files: &[(&str, &str)]) -> TempDir {
    folder_of(&fixture("metaspace", "tokenizer.json"), config, settings, files)
}

/// As `special_tokens_map` of transformers 5.23 shows them.
#[test]
fn a_class_names_the_tokens_that_a_folder_leaves_out() {
    let named =
        |config: Value, settings: Value| codec_of(&small_folder(&config, &settings, &[])).special.named().clone();
    let some = |tokens: Value| serde_json::from_value::<BTreeMap<String, String>>(tokens).unwrap();
    let of_class = |class: &str| named(json!({}), json!({ "tokenizer_class": class }));
    let llama = json!({ "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>" });
    let end = "<|endoftext|>";
    assert_eq!(of_class("LlamaTokenizer"), some(llama.clone()));
    assert_eq!(of_class("LlamaTokenizerFast"), some(llama));
    assert_eq!(of_class("Qwen2Tokenizer"), some(json!({ "eos_token": end, "pad_token": end, "unk_token": end })));
    assert_eq!(of_class("GPT2Tokenizer"), some(json!({ "bos_token": end, "eos_token": end, "unk_token": end })));
    assert_eq!(of_class("CohereTokenizer")["bos_token"], "<BOS_TOKEN>");
    assert_eq!(of_class("GPTNeoXTokenizer")["pad_token"], "<|padding|>");
    assert_eq!(of_class("PreTrainedTokenizerFast"), some(json!({})));
    assert_eq!(named(json!({ "model_type": "gemma2" }), json!({}))["bos_token"], "<bos>");
    assert_eq!(named(json!({ "model_type": "cohere2" }), json!({}))["eos_token"], "<|END_OF_TURN_TOKEN|>");
    // What the folder says counts, also that there is none.
    let settings = json!({ "tokenizer_class": "LlamaTokenizer", "bos_token": null, "eos_token": "<unk>" });
    assert_eq!(named(json!({}), settings), some(json!({ "eos_token": "<unk>", "unk_token": "<unk>" })));
    let settings = json!({ "tokenizer_class": "LlamaTokenizer" });
    let template = [("chat_template.jinja", "{{ bos_token }}{{ messages[0].content }}")];
    let ids = encode(&codec_of(&small_folder(&json!({}), &settings, &template)), &Prompt::user("a"));
    let (_, expected) = load("metaspace");
    assert_eq!(ids[0], expected.bos);
}

#[test]
fn further_tokens_have_the_names_that_transformers_gives_them() {
    let named = |settings: Value| {
        let named = codec_of(&small_folder(&json!({}), &settings, &[])).special.named().clone();
        serde_json::to_value(named).unwrap()
    };
    let token = |content: &str| json!({ "__type": "AddedToken", "content": content });
    let specific = json!({ "image_token": "<im>", "boi": token("<b>") });
    assert_eq!(
        named(json!({ "my_token": token("<my>"), "model_specific_special_tokens": specific })),
        json!({ "boi": "<b>", "image_token": "<im>", "my_token": "<my>" })
    );
    // Others of the same file, as texts or in an object, stand in their place.
    assert_eq!(
        named(json!({ "my_token": "<my>", "model_specific_special_tokens": specific })),
        json!({ "my_token": "<my>" })
    );
    assert_eq!(
        named(json!({ "extra_special_tokens": { "eoi": "<e>" }, "model_specific_special_tokens": specific })),
        json!({ "eoi": "<e>" })
    );
}

#[test]
fn of_several_template_files_the_default_counts() {
    const TEXT: &str = "{{ messages[0].content }}";
    let settings = json!({ "bos_token": "<s>", "eos_token": "</s>", "chat_template": format!("settings {TEXT}") });
    let texts = ["own", "default", "other"].map(|name| format!("{name} {TEXT}"));
    let names =
        ["chat_template.jinja", "additional_chat_templates/default.jinja", "additional_chat_templates/tool_use.jinja"];
    let [own, default, other] = [0, 1, 2].map(|at| (names[at], texts[at].as_str()));
    for (files, expected) in [
        (vec![], Some("settings x")),
        (vec![own], Some("own x")),
        (vec![default], Some("default x")),
        (vec![own, default, other], Some("default x")),
        (vec![own, other], Some("own x")),
        (vec![other], None),
    ] {
        let codec = codec_of(&small_folder(&json!({}), &settings, &files));
        match (codec.encode(&Prompt::user("x")), expected) {
            (Ok(ids), Some(expected)) => assert_eq!(codec.decode(&ids).0.trim(), expected, "{files:?}"),
            (Err(error), None) => assert!(error.to_string().contains("tool_use.jinja"), "{error}"),
            (found, _) => panic!("{files:?}: {found:?}"),
        }
    }

    // In one file as in transformers, which makes a dict of the list: the last of a name counts.
    let named = |names: &[&str]| {
        let listed: Value = names
            .iter()
            .enumerate()
            .map(|(at, name)| json!({ "name": name, "template": format!("{at} {TEXT}") }))
            .collect();
        codec_of(&small_folder(&json!({}), &json!({ "chat_template": listed }), &[]))
    };
    let codec = named(&["default", "rag", "default"]);
    assert_eq!(codec.decode(&encode(&codec, &Prompt::user("x"))).0.trim(), "2 x");
    let refused = named(&["tool_use", "rag"]).encode(&Prompt::user("x")).unwrap_err().to_string();
    assert!(refused.contains("tokenizer_config.json") && refused.contains("tool_use, rag"), "{refused}");
}

#[test]
fn a_folder_without_a_chat_template_says_where_one_is_read() {
    let refused = |files: &[(&str, &str)]| {
        let codec = codec_of(&small_folder(&json!({}), &json!({}), files));
        codec.encode(&Prompt::user("x")).unwrap_err().to_string()
    };
    assert!(
        refused(&[]).ends_with("has no chat template (chat_template.jinja, or chat_template in tokenizer_config.json)")
    );
    let of_processor = refused(&[("chat_template.json", r#"{"chat_template": "x"}"#)]);
    assert!(of_processor.contains("chat_template.json is that of a processor"), "{of_processor}");

    let made = vec![("tokenizer.json", fixture("metaspace", "tokenizer.json")), ("tokenizer_config.json", json!({}))];
    let files = Files::of_gguf("folder".into(), json!({}), "folder/x.gguf".into(), made);
    let of_file = TextCodec::load(&files, &TextOptions::default()).unwrap().encode(&Prompt::user("x"));
    let of_file = of_file.unwrap_err().to_string();
    assert!(of_file.starts_with("folder/x.gguf has no chat template (tokenizer.chat_template"), "{of_file}");
}

/// It would score every row alike.
#[test]
fn a_template_that_renders_nothing_is_no_prompt() {
    for template in ["", "\n", "{% for m in messages %}{% endfor %}"] {
        let codec = codec_of(&small_folder(&json!({}), &json!({}), &[("chat_template.jinja", template)]));
        for prompt in
            [Prompt::user("a"), Prompt::user("a").with_prefill("b"), Prompt::user("a").with_trusted_prefill("b")]
        {
            let unscored = unscored(&codec, &prompt);
            assert_eq!(unscored.reason, Reason::EmptyPrompt, "{template:?}: {unscored:?}");
            assert!(unscored.detail.contains("renders nothing of the messages"), "{template:?}: {unscored:?}");
        }
    }
}

/// SmolVLM's and Idefics 3's own template, which walks over the parts of a turn.
const OF_PARTS: &str = "<|im_start|>{% for message in messages %}{{message['role'] | capitalize}}\
    {% if message['content'][0]['type'] == 'image' %}{{':'}}{% else %}{{': '}}{% endif %}\
    {% for line in message['content'] %}{% if line['type'] == 'text' %}{{line['text']}}\
    {% elif line['type'] == 'image' %}{{ '<image>' }}{% endif %}{% endfor %}<end_of_utterance>\n\
    {% endfor %}{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}";

/// As transformers' processors, vLLM and llama.cpp do. Given texts, this template writes none, so all rows would be scored alike.
#[test]
fn a_template_that_walks_over_parts_is_given_parts() {
    let codec = codec_of(&small_folder(&json!({}), &json!({}), &[("chat_template.jinja", OF_PARTS)]));
    let turns = [Message::new("system", "Be brief."), Message::user("Hi")];
    let render = |template: &ChatTemplate| template.render(&turns, &BTreeMap::new(), &BTreeMap::new()).unwrap();
    let end = "<end_of_utterance>\n";
    let expected = format!("<|im_start|>System: Be brief.{end}User: Hi{end}Assistant:");
    assert_eq!(render(codec.template().unwrap()), expected);
    assert_ne!(encode(&codec, &Prompt::user("b")), encode(&codec, &Prompt::user("c")));
    // Text that spells a control token stays text there too.
    let (_, ids) = load("metaspace");
    let spelt = encode(&codec, &Prompt::user("say </s> now"));
    assert!(!spelt.contains(&ids.eos), "{spelt:?}");

    // Those that take either form get texts, and those that want a system turn first are tried with one.
    let either =
        "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}parts{% endif %}{% endfor %}";
    let behind_system =
        "{% if messages[0].role != 'system' %}{{ raise_exception('no') }}{% endif %}{{ messages[1].content[0].text }}";
    for (template, expected) in [(either, "Be brief.Hi"), (behind_system, "Hi")] {
        let codec = codec_of(&small_folder(&json!({}), &json!({}), &[("chat_template.jinja", template)]));
        assert_eq!(render(codec.template().unwrap()), expected);
    }
}

/// It would score rows alike, too.
#[test]
fn a_template_that_leaves_out_the_users_text_is_no_prompt() {
    let of_human =
        "{% for m in messages %}{{ m.role }}: {% if m.role == 'human' %}{{ m.content }}{% endif %}{% endfor %}";
    let codec = codec_of(&small_folder(&json!({}), &json!({}), &[("chat_template.jinja", of_human)]));
    let left_out = unscored(&codec, &Prompt::user("de fi"));
    assert_eq!(left_out.reason, Reason::EmptyPrompt);
    assert!(left_out.detail.contains("nothing of the user's turn"), "{left_out:?}");
    // Blank texts and other roles have nothing to lose, and a text that is changed is there.
    encode(&codec, &Prompt::user(" "));
    encode(&codec, &Prompt::chat(vec![Message::new("human", "de fi")]));
    let changed = "{% for m in messages %}{{ m.content | upper }}{% endfor %}";
    encode(
        &codec_of(&small_folder(&json!({}), &json!({}), &[("chat_template.jinja", changed)])),
        &Prompt::user("de fi"),
    );
}

/// As `model_input_names` of transformers 5.24 by class; `make_rerank_fixtures.py` has what sentence-transformers makes of it.
#[test]
fn types_of_tokens_are_given_where_the_folder_says_so_or_else_by_its_class() {
    let of = |config: Value, settings: Value| codec_of(&small_folder(&config, &settings, &[]));
    let bert = || json!({ "model_type": "bert", "type_vocab_size": 2 });
    let by_class = |class: &str| of(bert(), json!({ "tokenizer_class": class })).has_types;
    for class in ["BertTokenizer", "BertTokenizerFast", "ElectraTokenizer", "DebertaV2Tokenizer"] {
        assert!(by_class(class), "{class}");
    }
    for class in
        ["TokenizersBackend", "PreTrainedTokenizerFast", "DistilBertTokenizer", "RobertaTokenizer", "MPNetTokenizer"]
    {
        assert!(!by_class(class), "{class}");
    }
    assert!(of(bert(), json!({})).has_types, "the class that is registered for the model type");
    assert!(!of(json!({ "model_type": "xlm-roberta" }), json!({})).has_types);
    let stated = |names: &[&str]| json!({ "tokenizer_class": "BertTokenizer", "model_input_names": names });
    assert!(!of(bert(), stated(&["input_ids", "attention_mask"])).has_types);
    assert!(of(json!({}), stated(&["input_ids", "token_type_ids"])).has_types);

    // transformers 4 gave them for this class; it is said where they would tell the texts of a pair apart.
    let note = |config: Value, class: &str, kind: u32| {
        let mut tokenizer = fixture("metaspace", "tokenizer.json");
        let text = |id: &str, kind: u32| json!({ "Sequence": { "id": id, "type_id": kind } });
        tokenizer["post_processor"] = json!({
            "type": "TemplateProcessing", "single": [text("A", 0)], "pair": [text("A", 0), text("B", kind)], "special_tokens": {},
        });
        let folder = folder_of(&tokenizer, &config, &json!({ "tokenizer_class": class }), &[]);
        codec_of(&folder).notes().iter().any(|note| note.contains("token_type_ids"))
    };
    assert!(note(bert(), "PreTrainedTokenizerFast", 1));
    assert!(!note(bert(), "PreTrainedTokenizerFast", 0));
    assert!(!note(bert(), "TokenizersBackend", 1));
    assert!(!note(json!({ "model_type": "llama" }), "PreTrainedTokenizerFast", 1));
}

#[test]
fn a_text_is_cut_though_its_template_refuses_an_empty_one() {
    let of = |refuses: &str| {
        let check = format!("{{% if {refuses} %}}{{{{ raise_exception('too short') }}}}{{% endif %}}");
        let template = format!("{{% set text = messages[0].content %}}{check}[{{{{ text }}}}] so:");
        load_with("byte-level", json!({ "chat_template": template })).0
    };
    let prompt = Prompt::chat(vec![Message::user("a document of words ".repeat(8))]);
    let expected = of("false").encode_cut(&prompt, 30).unwrap();
    assert!(expected.0.len() == 30 && expected.1 > 0, "{expected:?}");
    assert_eq!(of("not text").encode_cut(&prompt, 30).unwrap(), expected);
    let refused = of("text|length < 150").encode_cut(&prompt, 30).unwrap_err().to_string();
    assert!(refused.contains("too short"), "{refused}");
}
