//! What is written is what was trained, for this crate's own reader.

#![allow(clippy::print_stderr)] // a test that is skipped says so

use std::fs;
use std::path::Path;

use judge_core::request::{LabelRead, ReadAt};
use judge_core::{Backbone, Prompt, Request, Want};

use super::*;
use crate::fixtures::copy_into;
use crate::test_models::{answers, reading};

/// The sum of cross-entropies that a loaded model gives a text, and its tokens.
fn served(model: &Model, text: &str) -> (f64, Vec<u32>) {
    let want = Want { prompt_log_probs: true, ..Want::default() };
    let request = Request { prompt: Prompt::Raw(text.to_owned()), want };
    let tokens = model.tokens(&request.prompt).unwrap();
    let outcome = answers(model, &[request]).remove(0);
    let log_probs = &reading(&outcome).prompt_log_probs.as_ref().unwrap().log_probs;
    (-log_probs.iter().map(|&x| f64::from(x)).sum::<f64>(), tokens)
}

/// Tunes a model: what it loses on a text is what the model loses that is served, up to a share of it, before training and after it. Returns
/// both.
fn served_as_trained(
    base: &Path,
    settings: TrainSettings,
    most: f64,
    learn: impl FnOnce(&mut Trainer<Completion>, &[CompletionExample]),
) -> [f64; 2] {
    let (at, text, tuning) = (tempfile::tempdir().unwrap(), "ba de fi go ba", settings.tuning.clone());
    let path = at.path().join("out");
    let mut trainer = Trainer::new(base, Completion, settings).unwrap();
    let (before, tokens) = served(&Model::load(base, &f32_options()).unwrap(), text);
    let all = [CompletionExample { weights: vec![1.0; tokens.len()], tokens: tokens.clone() }];
    let loss = |trainer: &Trainer<Completion>| trainer.loss(&all).unwrap() * (tokens.len() - 1) as f64;
    assert!((before - loss(&trainer)).abs() < most * before, "{}: {} {before}", base.display(), loss(&trainer));
    learn(&mut trainer, &all);
    assert!(!trainer.is_written(&path, Some(Dtype::F32)));
    trainer.write(&path, Some(Dtype::F32)).unwrap();
    assert!(trainer.is_written(&path, Some(Dtype::F32)));
    let (after, _) = served(&tuned(base, &tuning, &path), text);
    assert!((after - loss(&trainer)).abs() < most * after, "{}: {} {after}", base.display(), loss(&trainer));
    assert!(matches!(trainer.write(&path, None), Err(TrainError::Model(crate::Error::OutputExists { .. }))));
    trainer.step(&all).unwrap();
    assert!(!trainer.is_written(&path, Some(Dtype::F32)), "what was learned since is not there");
    [before, after]
}

/// With its soft-cap and factors, as an adapter and as a folder.
#[test]
fn the_loss_is_that_of_the_model_that_is_served() {
    for name in ["qwen3-on", "cohere2-on", "gemma2-on", "phi3-on", "granite-on"] {
        for tuning in [Tuning::Full, lora()] {
            let schedule = Schedule { peak: 0.03, ..settings(lora()).schedule };
            let settings = TrainSettings { schedule, ..settings(tuning) };
            let learn = |trainer: &mut Trainer<Completion>, _: &[_]| take_steps(trainer, 4, &completions());
            let [before, after] = served_as_trained(&folder(name), settings, 1e-5, learn);
            assert!((after - before).abs() > 1e-2, "{name} has learnt nothing");
        }
    }
}

/// An adapter is trained over a GGUF file and over quantised weights, which stay as they are, and is served over them.
#[test]
fn adapters_are_trained_over_codes() {
    for name in ["gguf/llama", "gguf/gemma3", "quantised/awq", "quantised/bnb-nf4"] {
        let base = folder("llama-on").join("../..").join(name);
        let schedule = Schedule { peak: 0.03, warmup: 0, ..settings(lora()).schedule };
        let settings = TrainSettings { schedule, ..settings(lora()) };
        let learn = |trainer: &mut Trainer<Completion>, all: &[_]| take_steps(trainer, 3, all);
        let [before, after] = served_as_trained(&base, settings, 1e-4, learn);
        assert!(after < before - 1e-2, "{name} has learnt nothing: {before} to {after}");
    }
}

/// An adapter that has learned nothing changes no bit of what is served, in f32 and in bf16.
#[test]
fn an_adapter_that_learned_nothing_changes_no_bit() {
    for name in ["llama-on", "gemma2-on", "phi3-on"] {
        let at = tempfile::tempdir().unwrap();
        let adapter = at.path().join("adapter");
        new(name, Completion, settings(lora())).write(&adapter, None).unwrap();
        for dtype in [Dtype::F32, Dtype::Bf16] {
            let plain = LoadOptions { dtype: Some(dtype), ..LoadOptions::default() };
            let adapted = LoadOptions { adapters: vec![adapter.clone()], ..plain.clone() };
            let [plain, adapted] =
                [plain, adapted].map(|options| served(&Model::load(folder(name), &options).unwrap(), "ba de fi go").0);
            assert_eq!(plain.to_bits(), adapted.to_bits(), "{name}");
        }
    }
}

/// An adapter's folder stands for its base, and has the fields that PEFT reads.
#[test]
fn an_adapter_says_what_it_is() {
    let at = tempfile::tempdir().unwrap();
    let path = at.path().join("adapter");
    let targets = Targets::Named(vec!["q_proj".into(), "mlp.up_proj".into()]);
    let tuning = Tuning::Lora(Lora { rank: 2, alpha: 4.0, targets, blocks: Blocks::Listed(vec![1, 2]), rslora: true });
    let mut trainer = new("llama-off", Class { classes: 3 }, settings(tuning));
    trainer.step(&classes()).unwrap();
    trainer.write(&path, None).unwrap();
    let config: serde_json::Value =
        serde_json::from_slice(&fs::read(path.join("adapter_config.json")).unwrap()).unwrap();
    let expected = serde_json::json!({
        "peft_type": "LORA", "task_type": "SEQ_CLS", "r": 2, "lora_alpha": 4.0, "use_rslora": true,
        "target_modules": ["q_proj", "up_proj"], "layers_to_transform": [1, 2], "modules_to_save": ["score"],
    });
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(&config[field], value, "{field}");
    }
    // From any current folder: an adapter's reader begins at the adapter, PEFT where it is run.
    let base = config["base_model_name_or_path"].as_str().unwrap();
    assert!(Path::new(base).is_absolute() && Path::new(base).is_dir(), "{base}");
    assert!(config["revision"].is_null());
    let model = Model::load(&path, &f32_options()).unwrap();
    let head = model.reward_head().unwrap();
    assert_eq!(head.labels().len(), 3);
    let names: Vec<_> = fs::read_dir(at.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["adapter"]);
    // Of a base in a passing place it names none.
    let other = at.path().join("other");
    let settings = TrainSettings { names_base: false, ..settings(lora()) };
    new("llama-off", Completion, settings).write(&other, None).unwrap();
    let config = fs::read(other.join("adapter_config.json")).unwrap();
    let config: serde_json::Value = serde_json::from_slice(&config).unwrap();
    assert!(config["base_model_name_or_path"].is_null() && config["revision"].is_null(), "{config}");
}

/// LFM2 has `out_proj` in two places. PEFT finds both by that name, and gives the other one factors that nobody trained.
#[test]
fn modules_whose_last_parts_are_those_of_others_are_named_whole() {
    let at = tempfile::tempdir().unwrap();
    let targets = |target: &str| -> serde_json::Value {
        let path = at.path().join(target);
        let lora = Lora { rank: 2, targets: Targets::Named(vec![target.to_owned()]), ..Lora::default() };
        new("lfm2-on", Completion, settings(Tuning::Lora(lora))).write(&path, None).unwrap();
        let config = fs::read_to_string(path.join("adapter_config.json")).unwrap();
        serde_json::from_str::<serde_json::Value>(&config).unwrap()["target_modules"].clone()
    };
    assert_eq!(targets("q_proj"), serde_json::json!(["q_proj"]));
    assert_eq!(targets("out_proj"), serde_json::json!(["out_proj"]));
    let whole: Vec<String> = serde_json::from_value(targets("self_attn.out_proj")).unwrap();
    let is_whole = |name: &String| name.starts_with("model.layers.") && name.ends_with(".self_attn.out_proj");
    assert!(!whole.is_empty() && whole.iter().all(is_whole), "{whole:?}");
}

/// What a decision model answers by stays beside its weights: labels, temperatures, prompt, head.
#[test]
fn a_fully_tuned_folder_keeps_what_it_decides_by() {
    let fixtures = folder("../decisions");
    for (beside, files) in [
        ("settings", &["decision.json"][..]),
        ("jev_merged", &["calibration.json", "head.safetensors", "judge_config.json"]),
        ("codes", &["decision_config.json", "readout.safetensors"]),
    ] {
        let at = tempfile::tempdir().unwrap();
        let [base, out] = ["base", "out"].map(|name| at.path().join(name));
        copy_into(&folder("llama-on"), &base);
        copy_into(&fixtures.join(beside), &base);
        fs::write(base.join("decision_template.jinja"), "{{ state }}<|mark|>").unwrap();
        let mut trainer = Trainer::new(&base, Completion, settings(Tuning::Full)).unwrap();
        trainer.step(&completions()).unwrap();
        trainer.write(&out, None).unwrap();
        for file in files.iter().chain(&["decision_template.jinja"]) {
            assert_eq!(fs::read(out.join(file)).unwrap(), fs::read(base.join(file)).unwrap(), "{file}");
        }
        let [before, after] = [&base, &out].map(|path| crate::DecisionFolder::open(path).unwrap());
        assert_eq!(format!("{:?}", before.form()), format!("{:?}", after.form()), "{beside}");
        assert!(after.has_template() && before.head() == after.head(), "{beside}");
    }
    let saved = tempfile::tempdir().unwrap();
    copy_into(&fixtures.join("tokenizer"), saved.path());
    copy_into(&fixtures.join("saved"), saved.path());
    for tuning in [Tuning::Full, lora()] {
        let refused = Trainer::new(saved.path(), Completion, settings(tuning)).err().unwrap().to_string();
        assert!(refused.contains("a decision model whose head is among its weights"), "{refused}");
    }
}

/// A tokenizer that is a SentencePiece model alone is copied under the name that its reader asks for: a folder without it cannot be read
/// back, and all steps are lost.
#[test]
fn a_folder_with_sentencepiece_alone_is_written_whole() {
    let models = folder("../../../../judge-text/tests/fixtures/sentencepiece");
    let at = tempfile::tempdir().unwrap();
    let [base, out, merged] = ["base", "out", "merged"].map(|name| at.path().join(name));
    copy_into(&folder("../encoders/xlm-roberta-off"), &base);
    for name in ["tokenizer.json", "tokenizer_config.json"] {
        let _ = fs::remove_file(base.join(name));
    }
    fs::write(base.join("tokenizer_config.json"), "{}").unwrap();
    fs::copy(models.join("unigram.model"), base.join("sentencepiece.bpe.model")).unwrap();
    let mut trainer = Trainer::new(&base, Class { classes: 2 }, settings(Tuning::Full)).unwrap();
    let example = ClassExample { prompt: vec![1, 5, 20, 7], types: vec![], class: 1 };
    trainer.step(&[example]).unwrap();
    trainer.write(&out, None).unwrap();
    let name = "sentencepiece.bpe.model";
    assert_eq!(fs::read(out.join(name)).unwrap(), fs::read(base.join(name)).unwrap());

    let decoder = at.path().join("decoder");
    copy_into(&folder("llama-off"), &decoder);
    fs::remove_file(decoder.join("tokenizer.json")).unwrap();
    fs::write(
        decoder.join("tokenizer_config.json"),
        r#"{"tokenizer_class": "LlamaTokenizer", "add_bos_token": true, "add_eos_token": false}"#,
    )
    .unwrap();
    for name in ["tokenizer.model", "spm.model", "sentencepiece.bpe.model"] {
        fs::copy(models.join("llama.model"), decoder.join(name)).unwrap();
    }
    let written = crate::merge_adapters(&decoder, &[], None, &merged, &mut |_, _| {}).unwrap();
    for name in ["tokenizer.model", "spm.model", "sentencepiece.bpe.model"] {
        assert!(written.files.iter().any(|file| file == name), "{:?}", written.files);
        assert!(merged.join(name).is_file());
    }
    Model::load(&merged, &f32_options()).unwrap();
}

/// Fully tuned with a score head, a causal model becomes a sequence classifier, and one is tuned on.
#[test]
fn a_classifier_is_written_and_tuned_on() {
    let at = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| at.path().join(name));
    for name in ["llama-on", "qwen2-on"] {
        let mut trainer = new(name, Class { classes: 3 }, settings(Tuning::Full));
        take_steps(&mut trainer, 3, &classes());
        trainer.write(&first, Some(Dtype::F32)).unwrap();
        let mut again = Trainer::new(&first, Class { classes: 3 }, settings(lora())).unwrap();
        let (found, expected) = (again.loss(&classes()).unwrap(), trainer.loss(&classes()).unwrap());
        assert!((found - expected).abs() < 1e-5, "{name}: {found} {expected}");
        again.step(&classes()).unwrap();
        again.step(&classes()).unwrap();
        again.write(&second, None).unwrap();
        let model = Model::load(&first, &LoadOptions { adapters: vec![second.clone()], ..f32_options() }).unwrap();
        assert_eq!(model.reward_head().unwrap().labels().len(), 3);
        fs::remove_dir_all(&first).unwrap();
        fs::remove_dir_all(&second).unwrap();
    }
}

/// In the dtype of the folder that it began from, numbers are rounded once, and a second writing has the same bytes.
#[test]
fn a_folder_is_rounded_once() {
    let at = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| at.path().join(name));
    let mut trainer = new("gemma2-on", Completion, settings(Tuning::Full));
    trainer.step(&completions()).unwrap();
    trainer.step(&completions()).unwrap();
    trainer.write(&a, None).unwrap();
    trainer.write(&b, Some(Dtype::Bf16)).unwrap();
    let bytes = |path: &Path| fs::read(path.join("model.safetensors")).unwrap();
    assert_eq!(bytes(&a), bytes(&b));
    // What is measured of the rounded state is what the folder says.
    let learned = trainer.loss(&completions()).unwrap();
    assert!(trainer.round_as_written(None) && !trainer.round_as_written(None));
    let written = Trainer::new(&a, Completion, settings(Tuning::Full)).unwrap().loss(&completions()).unwrap();
    assert!(trainer.loss(&completions()).unwrap() == written && learned != written, "{learned} {written}");
    let mut adapter = shaken(new("gemma2-on", Completion, settings(lora())));
    assert!(adapter.stored_dtype() == Dtype::Bf16 && !adapter.round_as_written(None));
}

/// A published checkpoint in one file learns two marks, in its upper blocks, and serves what it has learned.
#[test]
fn a_trained_model_learns_a_mark() {
    let Some(data) = std::env::var_os("JUDGE_TEST_DATA") else {
        eprintln!("skipped: JUDGE_TEST_DATA is not set");
        return;
    };
    let base = Path::new(&data).join("models/smollm2-135m-instruct/SmolLM2-135M-Instruct.Q4_1.gguf");
    let at = tempfile::tempdir().unwrap();
    let adapter = at.path().join("adapter");
    let plain = Model::load(&base, &f32_options()).unwrap();
    let tokens: Vec<u32> = ["1", "2"].iter().map(|label| plain.label_token(label).unwrap()).collect();
    let prompt = |text: &str| Prompt::user(format!("Grade the answer with 1 or 2. What is two and two? {text}"));
    let prompts = [prompt("It is four."), prompt("It is five.")];
    let examples: Vec<MarkExample> = (0..2)
        .map(|mark| {
            let target = if mark == 0 { vec![0.0, 1.0] } else { vec![1.0, 0.0] };
            MarkExample { prompt: plain.tokens(&prompts[mark]).unwrap(), target }
        })
        .collect();
    let tuning = Tuning::Lora(Lora { rank: 8, blocks: Blocks::Last(4), ..Lora::default() });
    let schedule = Schedule { peak: 2e-3, warmup: 0, steps: 8, course: Course::Constant };
    let mark = Mark { labels: last(tokens.clone(), vec![1.0, 2.0]), alpha: 1.0 };
    let mut trainer = Trainer::new(&base, mark, TrainSettings { schedule, ..settings(tuning) }).unwrap();
    let before = trainer.loss(&examples).unwrap();
    take_steps(&mut trainer, 8, &examples);
    let after = trainer.loss(&examples).unwrap();
    assert!(after < 0.5 * before, "{before} to {after}");
    trainer.write(&adapter, None).unwrap();
    let tuned = Model::load(&base, &LoadOptions { adapters: vec![adapter], ..f32_options() }).unwrap();
    let read = LabelRead { tokens, layers: vec![Layer(30)], lens: Lens::Raw, at: ReadAt::PromptEnd, label_mass: false };
    let want = Want { labels: vec![read], ..Want::default() };
    let requests = prompts.map(|prompt| Request { prompt, want: want.clone() });
    let mut served = 0.0;
    for (outcome, example) in answers(&tuned, &requests).iter().zip(&examples) {
        let logits = &reading(outcome).labels[0].steps[0].logits;
        let difference = f64::from(logits[1] - logits[0]) * if example.target[0] == 1.0 { 1.0 } else { -1.0 };
        served += difference.exp().ln_1p() / 2.0;
    }
    assert!((served - after).abs() < 1e-3 * after.max(0.1), "{served} {after}");
}
