//! Decisions against transformers' pipeline: `scripts/parity/make_decision_fixtures.py`.

#![allow(clippy::print_stdout)] // measured errors

use std::path::Path;
use std::sync::Arc;

use judge_core::decision::{DecisionItem, DecisionJudge, DecisionPrompt, DecisionSettings, Questions, Readout};
use judge_core::{Backbone, ItemId, Judge, Prompt, PromptEnd, Request, Runner, Verdict, WholePrompt};
use judge_models::{
    DecisionFolder, Dtype, Error, LoadOptions, Model, TemplatePrompt, TextError, TurnPrompt, WeightsError,
    merge_adapters,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::{self, copy_into, edit, fixtures, json, retensor};

/// A model of a family with the tokenizer of characters, and files beside it.
fn folder(family: &str, beside: Option<&str>) -> TempDir {
    let folder = common::copy(&format!("families/{family}"));
    for part in [Some("tokenizer"), beside].into_iter().flatten() {
        copy_into(&fixtures().join("decisions").join(part), folder.path());
    }
    // Instead of 64; no rotation here depends on it.
    edit(folder.path().join("config.json"), |config| config["max_position_embeddings"] = 1024.into());
    folder
}

fn template(name: &str) -> String {
    std::fs::read_to_string(fixtures().join("decisions").join(format!("{name}.jinja"))).unwrap()
}

fn prompt(name: &str) -> Arc<dyn DecisionPrompt> {
    match name {
        "turn" => Arc::new(TurnPrompt::new(&template(name)).unwrap()),
        _ => Arc::new(TemplatePrompt::new(&template(name)).unwrap()),
    }
}

fn load(folder: &Path) -> (Model, DecisionFolder) {
    let decisions = DecisionFolder::open(folder).unwrap();
    let adapters = decisions.adapter().map(Path::to_owned).into_iter().collect();
    let options = LoadOptions { dtype: Some(Dtype::F32), adapters, ..LoadOptions::default() };
    (Model::load(folder, &options).unwrap(), decisions)
}

fn expected() -> Value {
    json(fixtures().join("decisions/expected.json"))
}

fn items(expected: &Value) -> Vec<DecisionItem> {
    serde_json::from_value(expected["requests"].clone()).unwrap()
}

/// The verdicts on the items of the fixture.
fn verdicts_of(model: &Model, judge: &DecisionJudge) -> Vec<Vec<Verdict>> {
    let numbered = items(&expected()).into_iter().enumerate().map(|(at, item)| (ItemId::from(at), item));
    let results = Runner::new(model, vec![judge]).collect(numbered).unwrap();
    results.into_iter().map(|result| result.verdicts).collect()
}

/// The largest difference of the answers to an item from those expected.
fn difference_of_answers(item: &DecisionItem, verdicts: &[Verdict], expected: &Value) -> f64 {
    let answers = item.questions.answers(&verdicts[0]).unwrap().into_iter();
    let of = answers.map(|one| difference(&serde_json::to_value(one.answer.unwrap()).unwrap(), &expected[&one.name]));
    of.fold(0.0, f64::max)
}

/// The prompts of an item's requests.
fn prompts(judge: &DecisionJudge, item: &DecisionItem) -> Vec<Prompt> {
    Judge::ask(judge, item).unwrap().into_iter().map(|Request { prompt, .. }| prompt).collect()
}

/// The largest difference of numbers in two answers; all else is equal.
fn difference(found: &Value, expected: &Value) -> f64 {
    match (found, expected) {
        (Value::Number(a), Value::Number(b)) => (a.as_f64().unwrap() - b.as_f64().unwrap()).abs(),
        (Value::Object(a), Value::Object(b)) => {
            assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
            // A level is counted in levels, all else in shares of 1.
            let levels = a.get("legend").and_then(Value::as_object).map_or(1.0, |legend| legend.len() as f64);
            let of = |key: &str| if key == "score" { levels } else { 1.0 };
            a.iter().map(|(key, value)| difference(value, &b[key]) / of(key)).fold(0.0, f64::max)
        }
        _ => {
            assert_eq!(found, expected);
            0.0
        }
    }
}

#[test]
fn ids_marks_and_answers_are_those_of_transformers() {
    let expected = expected();
    let items = items(&expected);
    let mut heads = 0;
    for case in expected["cases"].as_array().unwrap() {
        let (family, name) = (case["family"].as_str().unwrap(), case["template"].as_str().unwrap());
        let folder = folder(family, case["beside"].as_str());
        let (model, decisions) = load(folder.path());
        let settings = decisions.settings(Some(prompt(name))).unwrap();
        heads += usize::from(matches!(settings.readout, Readout::Head(_)));
        let judge = DecisionJudge::new(settings, &model).unwrap();
        let mut worst = 0.0_f64;
        for ((item, verdicts), theirs) in
            items.iter().zip(&verdicts_of(&model, &judge)).zip(case["requests"].as_array().unwrap())
        {
            for (prompt, theirs) in prompts(&judge, item).iter().zip(theirs["prompts"].as_array().unwrap()) {
                let ids: Vec<u32> = serde_json::from_value(theirs["ids"].clone()).unwrap();
                assert_eq!(model.tokens(prompt).unwrap(), ids, "{family} {name} {}", theirs["question"]);
            }
            worst = worst.max(difference_of_answers(item, verdicts, &theirs["answers"]));
        }
        println!("{family}, {name}, {}: largest difference {worst:.1e}", case["beside"]);
        // Blocks that remember let differences of the last bits grow along a prompt of many questions.
        let allowed = if family.starts_with("qwen3_5") { 2e-5 } else { 1e-5 };
        assert!(worst < allowed, "{family}, {name}, {}: {worst:e}", case["beside"]);
    }
    assert_eq!(heads, 4);
}

#[test]
fn a_folder_that_transformers_saved_is_read_whole() {
    let expected = expected();
    let items = items(&expected);
    let case = expected["cases"].as_array().unwrap();
    let case = case.iter().find(|case| case["beside"] == "jev_merged").unwrap();
    let folder = saved();
    let (model, decisions) = load(folder.path());
    assert!(decisions.has_template() && decisions.head().is_some());
    let judge = DecisionJudge::new(decisions.settings(None).unwrap(), &model).unwrap();
    let found = verdicts_of(&model, &judge);
    for ((item, verdicts), theirs) in items.iter().zip(&found).zip(case["requests"].as_array().unwrap()) {
        assert!(difference_of_answers(item, verdicts, &theirs["answers"]) < 1e-5);
    }
}

/// The verdicts of a folder as `judge decide` gives them: with the adapter that it names.
fn verdicts(folder: &Path) -> Vec<Vec<Verdict>> {
    let (model, decisions) = load(folder);
    verdicts_of(&model, &DecisionJudge::new(decisions.settings(None).unwrap(), &model).unwrap())
}

/// The folder of a decision model that transformers saved, with the tokenizer of characters.
fn saved() -> TempDir {
    let folder = common::copy("decisions/tokenizer");
    copy_into(&fixtures().join("decisions/saved"), folder.path());
    folder
}

/// A model with this prompt of its own, and with settings in `decision.json`, if there are any.
fn prompted(family: &str, beside: &str, settings: Option<Value>) -> TempDir {
    let folder = folder(family, Some(beside));
    std::fs::write(folder.path().join("decision_template.jinja"), template("whole")).unwrap();
    if let Some(settings) = settings {
        std::fs::write(folder.path().join("decision.json"), settings.to_string()).unwrap();
    }
    folder
}

/// `judge merge` keeps what a folder says of decisions, so that the merged folder answers as the model with the adapter over it.
#[test]
fn a_merged_folder_decides_as_the_model_with_the_adapter() {
    let at = tempfile::tempdir().unwrap();
    let settings = |adapter: &str| json!({ "labels": { "noul": ["1", "0"] }, "adapter": adapter });
    let jev = prompted("qwen3-off", "jev", None);
    // The adapter without JEV's files, in a folder of another name.
    let labels = prompted("qwen3-off", "settings", Some(settings("lora")));
    copy_into(&jev.path().join("adapter"), &labels.path().join("lora"));
    for (folder, adapter, name, field) in
        [(&jev, "adapter", "judge_config.json", "adapter_subfolder"), (&labels, "lora", "decision.json", "adapter")]
    {
        let expected = verdicts(folder.path());
        let adapter = folder.path().join(adapter);
        let copied = at.path().join("copied");
        copy_into(&adapter, &copied);
        // The folder's own, and a copy of it elsewhere.
        for (number, merged) in [&adapter, &copied].into_iter().enumerate() {
            let output = at.path().join(format!("{number}-{name}"));
            merge_adapters(folder.path(), std::slice::from_ref(merged), Some(Dtype::F32), &output, &mut |_, _| {})
                .unwrap();
            assert!(!output.join(adapter.file_name().unwrap()).exists(), "{name}");
            assert_eq!(json(output.join(name))[field], Value::Null, "{name}");
            assert_eq!(verdicts(&output), expected, "{name}");
        }
    }
    // Another adapter than the one that the folder names leaves that one where it is.
    let other = at.path().join("other");
    copy_into(&jev.path().join("adapter"), &other);
    retensor(&other.join("adapter_model.safetensors"), |stored| {
        for (.., bytes) in stored {
            let numbers = bytes.as_chunks_mut::<4>().0;
            numbers.iter_mut().for_each(|four| *four = (f32::from_le_bytes(*four) / 2.0).to_le_bytes());
        }
    });
    let output = at.path().join("twice");
    let merged =
        merge_adapters(jev.path(), std::slice::from_ref(&other), Some(Dtype::F32), &output, &mut |_, _| {}).unwrap();
    assert!(merged.files.contains(&"adapter/adapter_model.safetensors".to_owned()), "{:?}", merged.files);
    let options = LoadOptions {
        dtype: Some(Dtype::F32),
        adapters: vec![other, jev.path().join("adapter")],
        ..LoadOptions::default()
    };
    let (model, decisions) = (Model::load(jev.path(), &options).unwrap(), DecisionFolder::open(jev.path()).unwrap());
    let judge = DecisionJudge::new(decisions.settings(None).unwrap(), &model).unwrap();
    assert_eq!(verdicts(&output), verdicts_of(&model, &judge));
}

/// What is written is the text model alone, which would answer by other numbers without a word.
#[test]
fn a_head_among_the_weights_is_not_lost_in_silence() {
    let at = tempfile::tempdir().unwrap();
    let output = at.path().join("merged");
    let error = merge_adapters(saved().path(), &[], None, &output, &mut |_, _| {}).unwrap_err();
    assert!(
        matches!(&error, Error::Weights(WeightsError::Unsupported { field, .. }) if field == "model_type"),
        "{error}"
    );
    assert!(!output.exists());
}

/// An adapter's folder stands for its base, and a GGUF file for the folder that it is in.
#[test]
fn settings_are_those_of_the_base_and_of_the_files_folder() {
    let base = prompted("qwen3-off", "settings", None);
    let at = tempfile::tempdir().unwrap();
    let lora = at.path().join("lora");
    copy_into(&fixtures().join("decisions/jev/adapter"), &lora);
    edit(lora.join("adapter_config.json"), |config| config["base_model_name_or_path"] = json!(base.path()));
    let of = |path: &Path| {
        let decisions = DecisionFolder::open(path).unwrap();
        (format!("{:?}", decisions.form()), decisions.has_template())
    };
    assert_eq!(of(&lora), of(base.path()));
    // With settings of its own it speaks for itself.
    std::fs::write(lora.join("decision.json"), r#"{"labels": {"noul": ["t", "f"]}}"#).unwrap();
    assert!(of(&lora) != of(base.path()) && !of(&lora).1);
    // So it does beside its base.
    let beside = DecisionFolder::open_with(base.path(), std::slice::from_ref(&lora)).unwrap();
    assert_eq!((format!("{:?}", beside.form()), beside.has_template()), of(&lora));
    let file = base.path().join("model.gguf");
    std::fs::write(&file, "GGUF").unwrap();
    assert_eq!(of(&file), of(base.path()));
    // The adapter that a folder names may be named as the model: it is over its base already.
    let labels = prompted("qwen3-off", "settings", Some(json!({ "adapter": "adapter" })));
    copy_into(&fixtures().join("decisions/jev/adapter"), &labels.path().join("adapter"));
    let path = labels.path().join("adapter/adapter_config.json");
    edit(path, |config| config["base_model_name_or_path"] = json!(".."));
    assert!(DecisionFolder::open(labels.path()).unwrap().adapter().is_some());
    assert!(DecisionFolder::open(labels.path().join("adapter")).unwrap().adapter().is_none());
    let beside = [labels.path().join("adapter")];
    assert!(DecisionFolder::open_with(labels.path(), &beside).unwrap().adapter().is_none());
}

/// <https://github.com/getainode/ainode/issues/276>: a file of temperatures that nothing reads is named.
#[test]
fn files_of_decisions_that_nothing_reads_are_named() {
    let folder = folder("llama-on", Some("jev_merged"));
    let unread = || DecisionFolder::open(folder.path()).unwrap().unread().to_vec();
    assert!(unread().is_empty());
    for name in ["temperatures.json", "calibrator.json"] {
        std::fs::write(folder.path().join(name), r#"{"choice": 2.5}"#).unwrap();
    }
    assert_eq!(unread(), ["calibrator.json", "temperatures.json"]);
    std::fs::remove_file(folder.path().join("judge_config.json")).unwrap();
    assert_eq!(unread(), ["calibration.json", "calibrator.json", "head.safetensors", "temperatures.json"]);
}

/// An empty name is none, as `null` is.
#[test]
fn an_adapter_without_a_name_is_none() {
    for (beside, name, field) in
        [("jev_merged", "judge_config.json", "adapter_subfolder"), ("settings", "decision.json", "adapter")]
    {
        let folder = folder("llama-on", Some(beside));
        edit(folder.path().join(name), |settings| settings[field] = json!(""));
        assert!(DecisionFolder::open(folder.path()).unwrap().adapter().is_none(), "{name}");
    }
}

#[test]
fn company_and_order_change_no_bit() {
    let folder = folder("qwen3-off", Some("jev"));
    let (model, decisions) = load(folder.path());
    let labels = DecisionSettings { prompt: prompt("shared"), ..DecisionSettings::default() };
    for settings in [decisions.settings(Some(prompt("shared"))).unwrap(), labels] {
        let judge = DecisionJudge::new(settings, &model).unwrap();
        let base = items(&expected());
        let mut all: Vec<(ItemId, DecisionItem)> = (0..40_usize)
            .map(|at| {
                let mut item = base[at % 3].clone();
                item.state = json!([at, item.state]);
                (at.into(), item)
            })
            .collect();
        let given = Runner::new(&model, vec![&judge]).collect(all.clone()).unwrap();
        all.reverse();
        let mut reversed = Runner::new(&model, vec![&judge]).collect(all.clone()).unwrap();
        reversed.reverse();
        for (one, other) in given.iter().zip(&reversed) {
            assert_eq!(one.verdicts, other.verdicts);
        }
        for (id, item) in all.into_iter().take(5) {
            let alone = Runner::new(&model, vec![&judge]).collect([(id.clone(), item)]).unwrap();
            let together = given.iter().find(|result| result.id == id).unwrap();
            assert_eq!(alone[0].verdicts, together.verdicts);
        }
    }
}

#[test]
fn no_text_of_a_request_becomes_a_control_token_or_a_mark() {
    let folder = folder("llama-on", None);
    let (model, _) = load(folder.path());
    let source = "<s>{{ state }}{% for q in questions %}</s>{{ q.instructions }}:<|mark|>{% endfor %}";
    let whole = TemplatePrompt::new(source).unwrap();
    let hostile = ["</s>", "<s>", "<|mark|>", "<|split|>", "<", "<|mark", "|>", "/s>", "<unk>"];
    for state in hostile {
        for instructions in hostile {
            let item = DecisionItem {
                state: json!(state),
                questions: Questions::from_json(&json!({
                    "a": {"type": "noul", "instructions": instructions}, "b": {"type": "noul", "instructions": "b"},
                }))
                .unwrap(),
            };
            let settings = |prompt| DecisionSettings { prompt: Arc::new(prompt), ..DecisionSettings::default() };
            let judge = DecisionJudge::new(settings(whole.clone()), &model).unwrap();
            for (at, prompt) in prompts(&judge, &item).iter().enumerate() {
                let ids = model.tokens(prompt).unwrap();
                // One `<s>`, and a `</s>` before each question up to the one that is read.
                assert_eq!(ids.iter().filter(|&&id| id == 1).count(), 1, "{state} {instructions}");
                assert_eq!(ids.iter().filter(|&&id| id == 2).count(), at + 1, "{state} {instructions}");
                // Every character is a token: nothing was dropped.
                let text = state.len() + instructions.len() + 1 + at * 2 + 1 + at + 1;
                assert_eq!(ids.len(), text, "{state} {instructions}");
            }
            // A template that escapes text itself never sees the words of marks.
            let judge = DecisionJudge::new(settings(whole.clone().stripping_marks()), &model).unwrap();
            let stripped = |text: &str| text.replace("<|mark|>", "").replace("<|split|>", "").len();
            let ids = model.tokens(&prompts(&judge, &item)[0]).unwrap();
            assert_eq!(ids.len(), stripped(state) + stripped(instructions) + 3);
        }
    }
}

#[test]
fn a_template_must_write_the_marks_that_are_asked_for() {
    let folder = folder("llama-on", None);
    let (model, _) = load(folder.path());
    let whole = |template: &str, mark, of| {
        let values = serde_json::Map::new();
        let end = PromptEnd { mark, of };
        Prompt::Whole(Box::new(WholePrompt {
            template: template.to_owned(),
            values,
            end,
            prefill: String::new(),
            cut: None,
        }))
    };
    let ids = |prompt: &Prompt| model.tokens(prompt);
    let [a, b, c] = ["a", "ab", "abc"].map(|text| ids(&whole(text, 0, 1)).unwrap());
    assert_eq!((a.len(), b.len(), c.len()), (1, 2, 3));
    let two = "a<|mark|>b<|mark|>c";
    assert_eq!(ids(&whole(two, 0, 2)).unwrap(), a);
    assert_eq!(ids(&whole(two, 1, 2)).unwrap(), b);
    assert_eq!(ids(&whole("a<|split|>b", 0, 1).with_prefill("c")).unwrap(), c);
    for (template, mark, of, found) in [(two, 0, 1, 2), ("a", 0, 2, 1), (two, 2, 2, 2)] {
        let Err(Error::Prompt { unscored }) = ids(&whole(template, mark, of)) else { panic!("{template}") };
        assert!(unscored.detail.contains(&format!("for each question of a prompt, found {found}")), "{unscored}");
    }
    let Err(Error::Prompt { unscored }) = ids(&whole("{{ raise_exception('no') }}", 0, 1)) else { panic!("it raises") };
    assert!(unscored.detail.contains("no"), "{unscored}");
    assert!(matches!(ids(&whole("{% if %}", 0, 1)), Err(Error::Text(TextError::PromptTemplate { .. }))));
}

/// All of its prompts would be the same, or the words of the pointer.
#[test]
fn a_template_without_the_state_is_refused_and_so_is_a_stand_in() {
    for source in ["{{ question.instructions }}", ""] {
        assert!(matches!(TurnPrompt::new(source), Err(Error::PromptWithoutState)));
        assert!(matches!(TemplatePrompt::new(source), Err(Error::PromptWithoutState)));
    }
    let folder = folder("llama-on", Some("settings"));
    for (text, why) in [
        ("{{ question.instructions }}:<|mark|>", "does not name `state`"),
        ("version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"),
    ] {
        std::fs::write(folder.path().join("decision_template.jinja"), text).unwrap();
        let error = DecisionFolder::open(folder.path()).err().unwrap().to_string();
        assert!(error.contains("decision_template.jinja") && error.contains(why), "{error}");
    }
}

#[test]
fn a_head_asks_for_its_prompt_and_files_for_what_they_name() {
    let jev = folder("qwen3-off", Some("jev"));
    let (_, decisions) = load(jev.path());
    let Err(Error::Weights(WeightsError::MissingFile { wanted, .. })) = decisions.settings(None) else {
        panic!("no template")
    };
    assert!(wanted.starts_with("decision_template.jinja"));
    std::fs::write(jev.path().join("decision_template.jinja"), template("whole")).unwrap();
    assert!(DecisionFolder::open(jev.path()).unwrap().settings(None).is_ok());

    let edited = |beside: &str, name: &str, pointer: &str, value: Value| {
        let folder = folder("llama-on", Some(beside));
        edit(folder.path().join(name), |json| *json.pointer_mut(pointer).unwrap() = value);
        DecisionFolder::open(folder.path()).err().map(|error| error.to_string()).unwrap_or_default()
    };
    for (name, pointer, value, expected) in [
        ("judge_config.json", "/slots/verbalizers", json!(3), "expected a list"),
        ("judge_config.json", "/slots/ranges/noul", json!([0, 20]), "expected two whole numbers"),
        ("judge_config.json", "/slots/ranges/score", json!([-1, 2]), "expected two whole numbers"),
        ("judge_config.json", "/adapter_subfolder", json!("../x"), "expected the name"),
        ("judge_config.json", "/adapter_subfolder", json!("gone"), "expected the name"),
        ("calibration.json", "/per_kind/score", json!(0), "expected a number above 0"),
        ("calibration.json", "/per_kind", json!([]), "expected numbers"),
        ("decision_config.json", "/temperature", json!("hot"), "expected a number"),
        ("decision_config.json", "/codes", json!([1]), "expected a list"),
        ("decision_config.json", "/attention_mode", json!("noncausal_full_attention"), "noncausal_full"),
        ("decision.json", "/temperature/noul", json!(-1), "expected a number above 0"),
    ] {
        let beside = match name {
            "decision_config.json" => "codes",
            "decision.json" => "settings",
            _ => "jev_merged",
        };
        let error = edited(beside, name, pointer, value);
        let expected = format!("{}: {expected}", pointer[1..].replace('/', "."));
        assert!(error.contains(&expected) && error.contains(name), "{error}");
    }
    for (beside, gone) in
        [("jev_merged", "head.safetensors"), ("jev_merged", "calibration.json"), ("codes", "readout.safetensors")]
    {
        let folder = folder("llama-on", Some(beside));
        std::fs::remove_file(folder.path().join(gone)).unwrap();
        let error = DecisionFolder::open(folder.path()).err().unwrap();
        assert!(
            matches!(&error, Error::Weights(WeightsError::MissingFile { wanted, .. }) if wanted.starts_with(gone)),
            "{error}"
        );
    }
    // A head of another width is not the model's.
    let narrow = folder("gemma2-on", Some("jev_merged"));
    let (model, decisions) = load(narrow.path());
    let settings = decisions.settings(Some(prompt("whole"))).unwrap();
    let fits = decisions.head().unwrap().d_model() == model.info().d_model;
    assert_eq!(DecisionJudge::new(settings, &model).is_ok(), fits);
    // A folder that says nothing is any chat model; so is a file.
    let plain = folder("llama-on", None);
    let decisions = DecisionFolder::open(plain.path()).unwrap();
    assert!(decisions.head().is_none() && !decisions.has_template() && decisions.adapter().is_none());
    assert!(DecisionFolder::open(plain.path().join("model.gguf")).is_ok());
}
