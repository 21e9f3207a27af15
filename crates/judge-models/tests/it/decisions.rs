//! Decisions against transformers' pipeline: `scripts/parity/make_decision_fixtures.py`.

#![allow(clippy::print_stdout)] // measured errors

use std::path::{Path, PathBuf};
use std::sync::Arc;

use judge_core::decision::{DecisionItem, DecisionJudge, DecisionPrompt, DecisionSettings, Questions, Readout};
use judge_core::{Backbone, ItemId, Judge, Prompt, PromptEnd, Request, Runner, WholePrompt};
use judge_models::{DecisionFolder, Dtype, Error, LoadOptions, Model, TemplatePrompt, TurnPrompt};
use serde_json::{Value, json};
use tempfile::TempDir;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A model of a family with the tokenizer of characters, and files beside it.
fn folder(family: &str, beside: Option<&str>) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy(&fixtures().join("families").join(family), folder.path());
    for part in [Some("tokenizer"), beside].into_iter().flatten() {
        copy(&fixtures().join("decisions").join(part), folder.path());
    }
    let path = folder.path().join("config.json");
    let mut config: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    config["max_position_embeddings"] = 1024.into(); // of 64; no rotation here depends on it
    std::fs::write(path, config.to_string()).unwrap();
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
    let file = std::fs::read(fixtures().join("decisions/expected.json")).unwrap();
    serde_json::from_slice(&file).unwrap()
}

fn items(expected: &Value) -> Vec<DecisionItem> {
    serde_json::from_value(expected["requests"].clone()).unwrap()
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
        let numbered = items.iter().cloned().enumerate().map(|(at, item)| (ItemId::from(at), item));
        let results = Runner::new(&model, vec![&judge]).collect(numbered).unwrap();
        let mut worst = 0.0_f64;
        for ((item, result), theirs) in items.iter().zip(&results).zip(case["requests"].as_array().unwrap()) {
            for (prompt, theirs) in prompts(&judge, item).iter().zip(theirs["prompts"].as_array().unwrap()) {
                let ids: Vec<u32> = serde_json::from_value(theirs["ids"].clone()).unwrap();
                assert_eq!(model.tokens(prompt).unwrap(), ids, "{family} {name} {}", theirs["question"]);
            }
            for answered in item.questions.answers(&result.verdicts[0]).unwrap() {
                let found = serde_json::to_value(answered.answer.unwrap()).unwrap();
                worst = worst.max(difference(&found, &theirs["answers"][&answered.name]));
            }
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
    let folder = tempfile::tempdir().unwrap();
    for part in ["tokenizer", "saved"] {
        copy(&fixtures().join("decisions").join(part), folder.path());
    }
    let (model, decisions) = load(folder.path());
    assert!(decisions.has_template() && decisions.head().is_some());
    let judge = DecisionJudge::new(decisions.settings(None).unwrap(), &model).unwrap();
    let numbered = items.iter().cloned().enumerate().map(|(at, item)| (ItemId::from(at), item));
    let results = Runner::new(&model, vec![&judge]).collect(numbered).unwrap();
    for ((item, result), theirs) in items.iter().zip(&results).zip(case["requests"].as_array().unwrap()) {
        for answered in item.questions.answers(&result.verdicts[0]).unwrap() {
            let found = serde_json::to_value(answered.answer.unwrap()).unwrap();
            assert!(difference(&found, &theirs["answers"][&answered.name]) < 1e-5);
        }
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
        Prompt::Whole(Box::new(WholePrompt { template: template.to_owned(), values, end, prefill: String::new() }))
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
        assert!(unscored.detail.contains(&format!("the template writes {found} marks")), "{unscored}");
    }
    let Err(Error::Prompt { unscored }) = ids(&whole("{{ raise_exception('no') }}", 0, 1)) else { panic!("it raises") };
    assert!(unscored.detail.contains("no"), "{unscored}");
    assert!(matches!(ids(&whole("{% if %}", 0, 1)), Err(Error::PromptTemplate { .. })));
}

#[test]
fn a_head_asks_for_its_prompt_and_files_for_what_they_name() {
    let jev = folder("qwen3-off", Some("jev"));
    let (_, decisions) = load(jev.path());
    let Err(Error::MissingFile { wanted, .. }) = decisions.settings(None) else { panic!("no template") };
    assert!(wanted.starts_with("decision_template.jinja"));
    std::fs::write(jev.path().join("decision_template.jinja"), template("whole")).unwrap();
    assert!(DecisionFolder::open(jev.path()).unwrap().settings(None).is_ok());

    let edited = |beside: &str, name: &str, pointer: &str, value: Value| {
        let folder = folder("llama-on", Some(beside));
        let path = folder.path().join(name);
        let mut json: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        *json.pointer_mut(pointer).unwrap() = value;
        std::fs::write(path, json.to_string()).unwrap();
        DecisionFolder::open(folder.path()).err().map(|error| error.to_string()).unwrap_or_default()
    };
    for (beside, name, pointer, value, expected) in [
        ("jev_merged", "judge_config.json", "/slots/verbalizers", json!(3), "slots.verbalizers: expected a list"),
        (
            "jev_merged",
            "judge_config.json",
            "/slots/ranges/noul",
            json!([0, 20]),
            "slots.ranges.noul: expected a first",
        ),
        (
            "jev_merged",
            "judge_config.json",
            "/slots/ranges/score",
            json!([-1, 2]),
            "slots.ranges.score: expected a whole",
        ),
        (
            "jev_merged",
            "judge_config.json",
            "/adapter_subfolder",
            json!("../x"),
            "adapter_subfolder: expected the name",
        ),
        (
            "jev_merged",
            "judge_config.json",
            "/adapter_subfolder",
            json!("gone"),
            "adapter_subfolder: expected the name",
        ),
        ("jev_merged", "calibration.json", "/per_kind/score", json!(0), "per_kind.score: expected a number above 0"),
        ("jev_merged", "calibration.json", "/per_kind", json!([]), "per_kind: expected numbers"),
        ("codes", "decision_config.json", "/temperature", json!("hot"), "temperature: expected a number"),
        ("codes", "decision_config.json", "/codes", json!([1]), "codes: expected a list"),
        (
            "codes",
            "decision_config.json",
            "/attention_mode",
            json!("noncausal_full_attention"),
            "attention_mode: noncausal_full_attention is not supported",
        ),
        ("settings", "decision.json", "/temperature/noul", json!(-1), "temperature.noul: expected a number above 0"),
    ] {
        let error = edited(beside, name, pointer, value);
        assert!(error.contains(expected) && error.contains(name), "{error}");
    }
    for (beside, gone) in
        [("jev_merged", "head.safetensors"), ("jev_merged", "calibration.json"), ("codes", "readout.safetensors")]
    {
        let folder = folder("llama-on", Some(beside));
        std::fs::remove_file(folder.path().join(gone)).unwrap();
        let error = DecisionFolder::open(folder.path()).err().unwrap();
        assert!(matches!(&error, Error::MissingFile { wanted, .. } if wanted.starts_with(gone)), "{error}");
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
