//! Heads of encoders' sequence classifiers, cross-encoders among them, against transformers:
//! `scripts/parity/make_encoder_head_fixtures.py`.

#![allow(clippy::print_stdout)] // measured errors

use std::path::PathBuf;

use judge_core::{
    Backbone, Message, Outcome, Prompt, Reason, Request, TextModel,
    model::BackboneError,
    request::Pooling,
    reward::{RewardJudge, closed_conversation},
};
use judge_models::{ConfigProblem, Dtype, Error, LoadOptions, Model, TextError};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::{answers, copy, copy_into, edit, fixtures, json, load, of_tensor, rename, rewards};
use crate::difference::largest_difference;

const NAMES: [&str; 7] =
    ["bert", "bert-labels", "deberta-v2", "modernbert", "modernbert-mean", "roberta", "xlm-roberta"];

fn folder(name: &str) -> PathBuf {
    fixtures().join("encoder_heads").join(name)
}

/// One text, or two, as a conversation.
fn conversation(texts: &[&str]) -> Prompt {
    let roles = ["user", "assistant"].into_iter().cycle();
    closed_conversation(roles.zip(texts).map(|(role, text)| Message::new(role, *text)).collect())
}

fn prompts(cases: &Value) -> Vec<Prompt> {
    let texts = |case: &Value| -> Vec<String> { serde_json::from_value(case["texts"].clone()).unwrap() };
    let cases = cases.as_array().unwrap().iter().map(texts);
    cases.map(|texts| conversation(&texts.iter().map(String::as_str).collect::<Vec<_>>())).collect()
}

fn outcomes(model: &Model, prompts: &[Prompt]) -> Vec<Outcome> {
    let want = model.reward_head().unwrap().want(model.info());
    let requests: Vec<Request> =
        prompts.iter().map(|prompt| Request { prompt: prompt.clone(), want: want.clone() }).collect();
    answers(model, &requests).unwrap()
}

#[test]
fn logits_of_texts_and_of_pairs_equal_transformers() {
    for name in NAMES {
        let cases = json(folder(name).join("expected.json"));
        let prompts = prompts(&cases);
        for (dtype, bound) in [(Dtype::F32, 1e-4), (Dtype::Bf16, 0.1)] {
            let model = load(folder(name), dtype).unwrap();
            let found = rewards(&model, &prompts);
            let mut worst = 0.0_f64;
            for ((prompt, found), case) in prompts.iter().zip(&found).zip(cases.as_array().unwrap()) {
                assert_eq!(json!(model.tokens(prompt).unwrap()), case["ids"], "{name}");
                let expected: Vec<f64> = serde_json::from_value(case["logits"].clone()).unwrap();
                worst = worst.max(largest_difference(found, &expected));
            }
            println!("{name}, {dtype}: largest error {worst:.1e}");
            assert!(worst < bound, "{name}, {dtype}: {worst:e}");
            // In any company the same bits, which need the types of each text's own tokens.
            let alone: Vec<_> =
                prompts.iter().flat_map(|prompt| rewards(&model, std::slice::from_ref(prompt))).collect();
            assert_eq!(alone, found, "{name}");
        }
    }
    // The fixtures have what they are to show: types for BERT alone, and a second text that counts.
    let types = |name: &str| json(folder(name).join("expected.json"))[1]["types"].clone();
    assert!(types("bert").as_array().unwrap().contains(&json!(1)) && types("roberta").is_null());
}

#[test]
fn labels_are_those_of_the_folder_and_judge_pairs() {
    let labels = |name: &str| load(folder(name), Dtype::F32).unwrap().reward_head().unwrap().labels().to_vec();
    assert_eq!(labels("bert"), ["relevance"]);
    assert_eq!(labels("bert-labels"), ["contradiction", "entailment", "neutral"]);
    assert_eq!(labels("roberta"), ["bad", "good"]);
    let model = load(folder("modernbert-mean"), Dtype::F32).unwrap();
    let head = model.reward_head().unwrap();
    assert_eq!(head.want(model.info()).pooled[0].1, Pooling::Mean);
    assert!(RewardJudge::new(head.clone(), Some("b"), model.info()).is_ok());
}

#[test]
fn conversations_that_are_no_pair_are_unscored_and_open_ones_refused() {
    let model = load(folder("bert"), Dtype::F32).unwrap();
    let found = outcomes(&model, &[conversation(&["ba", "de", "fi"]), conversation(&["ba", "de"])]);
    assert!(matches!(&found[0], Outcome::Unscored(why) if why.reason == Reason::Template), "{found:?}");
    assert!(matches!(&found[1], Outcome::Read(_)), "{found:?}");
    // An item's text never becomes a control token.
    let spelt = model.tokens(&conversation(&["ba [SEP] de"])).unwrap();
    assert_eq!(spelt.iter().filter(|&&id| id == 3).count(), 1, "{spelt:?}");
    let want = model.reward_head().unwrap().want(model.info());
    let open = Request { prompt: Prompt::chat(vec![Message::new("user", "ba")]), want };
    let refused = model.run(&[open], &mut |_, outcome| panic!("{outcome:?}")).unwrap_err();
    let BackboneError::Model(source) = refused else { panic!("{refused}") };
    assert!(matches!(source.downcast_ref(), Some(Error::Text(TextError::NoChatTemplate { .. }))), "{source}");
}

/// <https://github.com/vllm-project/vllm/pull/47772>: of a pair that is too long, one sees which text is to be cut.
#[test]
fn a_pair_that_is_too_long_is_named_by_both_lengths() {
    let model = load(folder("bert"), Dtype::F32).unwrap();
    let pair = conversation(&["ba de fi", &"go ".repeat(100)]);
    let [Outcome::Unscored(why)] = &outcomes(&model, &[pair])[..] else { panic!("it is read") };
    assert_eq!(why.reason, Reason::TooLong);
    let max_len = model.info().max_len;
    let said =
        format!("106 prompt tokens (a pair of texts of 3 and 100, and 3 special ones), the context has {max_len}");
    assert_eq!(why.detail, said);
    let [Outcome::Unscored(why)] = &outcomes(&model, &[conversation(&["go ".repeat(100).trim()])])[..] else {
        panic!()
    };
    assert_eq!(why.detail, format!("102 prompt tokens, the context has {max_len}"));
}

#[test]
fn heads_that_are_not_whole_or_not_known_are_refused() {
    let changed = |change: &dyn Fn(&mut Value), keep: &dyn Fn(&str) -> bool| {
        let to = copy("encoder_heads/modernbert");
        edit(to.path().join("config.json"), |config| change(config));
        rename(&to.path().join("model.safetensors"), |name| keep(name).then(|| name.to_owned()));
        load(to.path(), Dtype::F32)
    };
    let problem = |field: &str, value: Value| match changed(&|config| config[field] = value.clone(), &|_| true) {
        Err(Error::Config { problem, .. }) => problem,
        other => panic!("{:?}", other.err()),
    };
    let found = problem("classifier_pooling", json!("max"));
    assert!(matches!(found, ConfigProblem::Unknown { field: "classifier_pooling", .. }), "{found}");
    let found = problem("classifier_activation", json!("sinus"));
    assert!(matches!(found, ConfigProblem::Unknown { field: "classifier_activation", .. }), "{found}");
    let missing = changed(&|_| {}, &|name| name != "head.norm.weight").unwrap_err();
    assert!(missing.to_string().contains("head.norm.weight"), "{missing}");
    let labels = changed(&|config| config["id2label"] = json!({"0": "a", "1": "b"}), &|_| true).unwrap_err();
    assert_eq!(of_tensor(labels).0, "classifier.weight");
    // The same weights as a base class: states alone.
    let bare = changed(&|config| config["architectures"] = json!(["ModernBertModel"]), &|_| true).unwrap();
    assert!(bare.reward_head().is_none());
}

/// An adapter as PEFT saves one of a sequence classifier, over a folder of another class: what it does not bring of the
/// head, BERT's pooler, is the folder's, and the folder's own classifier does not count.
#[test]
fn an_adapter_brings_its_head_to_a_folder_of_another_class() {
    let encoders = folder("").join("../encoders");
    let adapted = |class: &str, task: &str, keep: &dyn Fn(&str) -> bool| {
        let to = TempDir::new().unwrap();
        let [base, adapter] = ["base", "adapter"].map(|name| to.path().join(name));
        for (name, from) in [(&base, "bert-on"), (&adapter, "adapter")] {
            copy_into(&encoders.join(from), name);
        }
        edit(base.join("config.json"), |config| config["architectures"] = json!([class]));
        edit(adapter.join("adapter_config.json"), |config| config["task_type"] = json!(task));
        rename(&base.join("model.safetensors"), |name| keep(name).then(|| name.to_owned()));
        let options =
            LoadOptions { dtype: Some(Dtype::F32), adapters: vec![adapter.clone()], ..LoadOptions::default() };
        Model::load(&base, &options)
    };
    let classifier = "BertForSequenceClassification";
    let prompts = [conversation(&["ba de fi"]), conversation(&["ba de", "la me 3"])];
    let expected = rewards(&adapted(classifier, "SEQ_CLS", &|_| true).unwrap(), &prompts);
    let own = rewards(&load(encoders.join("bert-on"), Dtype::F32).unwrap(), &prompts);
    assert_ne!(expected, own);
    for class in ["BertForMaskedLM", "BertForTokenClassification"] {
        for keep in [&(|_: &str| true) as &dyn Fn(&str) -> bool, &|name: &str| !name.starts_with("classifier.")] {
            assert_eq!(rewards(&adapted(class, "SEQ_CLS", keep).unwrap(), &prompts), expected, "{class}");
        }
        let of_tokens = adapted(class, "TOKEN_CLS", &|_| true).unwrap();
        assert!(of_tokens.reward_head().is_none());
    }
    let without_pooler = adapted("BertForMaskedLM", "SEQ_CLS", &|name| !name.contains("pooler")).unwrap_err();
    assert!(without_pooler.to_string().contains("pooler.dense.weight"), "{without_pooler}");
}
