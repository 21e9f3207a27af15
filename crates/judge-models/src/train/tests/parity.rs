//! Runs of torch and PEFT, step by step. Expected values and the script that made them:
//! `scripts/parity/make_training_fixtures.py`.

#![allow(clippy::print_stdout)] // measured errors

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use judge_core::request::TokenId;
use safetensors::SafeTensors;
use serde_json::Value;

use super::*;

/// Largest relative difference of losses, of norms of gradients, and of gradients at the first step.
const AT_FIRST: f32 = 1e-4;
/// Largest difference of a number that is learnt, after 5 steps and after 20.
const AFTER: [(&str, f32); 2] = [("5", 1e-5), ("20", 1e-4)];
/// Numbers that the script keeps of a tensor of a model that is tuned as a whole.
const SAMPLE: usize = 40;

fn at(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/training").join(name)
}

/// The expected tensors of a run, flat.
fn tensors(name: &str) -> HashMap<String, Vec<f32>> {
    let bytes = fs::read(at(&format!("{name}.safetensors"))).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let numbers = |data: &[u8]| data.as_chunks::<4>().0.iter().map(|&x| f32::from_le_bytes(x)).collect();
    tensors.iter().map(|(name, view)| (name.to_owned(), numbers(view.data()))).collect()
}

fn list<T>(value: &Value, of: impl Fn(&Value) -> T) -> Vec<T> {
    value.as_array().unwrap().iter().map(of).collect()
}

fn float(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

fn whole(value: &Value) -> usize {
    value.as_u64().unwrap() as usize
}

fn ids(value: &Value) -> Vec<TokenId> {
    list(value, |id| whole(id) as TokenId)
}

/// What the fixture says of labels.
fn labels_of(case: &Value) -> Labels {
    let labels = &case["labels"];
    Labels {
        tokens: ids(&labels["tokens"]),
        values: list(&labels["values"], float),
        from: ReadFrom {
            layers: list(&labels["layers"], |pair| (Layer(whole(&pair[0])), float(&pair[1]))),
            learns_weights: labels["learned"].as_bool().unwrap_or_default(),
            lens: serde_json::from_value(labels["lens"].clone()).unwrap(),
        },
    }
}

/// What the fixture says of the settings.
fn settings_of(case: &Value, micro_batch: usize) -> TrainSettings {
    let (lora, settings) = (&case["lora"], &case["settings"]);
    let tuning = if lora.is_null() {
        Tuning::Full
    } else {
        let names = |value: &Value| list(value, |name| name.as_str().unwrap().to_owned());
        let targets = &lora["targets"];
        Tuning::Lora(Lora {
            rank: whole(&lora["rank"]),
            alpha: float(&lora["alpha"]),
            targets: if targets.is_null() { Targets::AllLinear } else { Targets::Named(names(targets)) },
            blocks: if lora["layers"].is_null() { Blocks::All } else { Blocks::Listed(list(&lora["layers"], whole)) },
            rslora: lora["rslora"].as_bool().unwrap(),
        })
    };
    TrainSettings {
        tuning,
        optimizer: AdamW {
            beta1: 0.9,
            beta2: float(&settings["beta2"]),
            epsilon: float(&settings["epsilon"]),
            weight_decay: float(&settings["weight_decay"]),
        },
        schedule: Schedule {
            peak: float(&settings["peak"]),
            warmup: whole(&case["warmup"]) as u64,
            steps: whole(&case["steps"]) as u64,
            course: if settings["course"] == "linear" { Course::Linear } else { Course::Cosine },
        },
        max_grad_norm: settings["max_grad_norm"].as_f64(),
        micro_batch,
        ..TrainSettings::default()
    }
}

/// Gives what is not the model's its first numbers, as the script's `begin` does.
fn begin<L>(case: &Value, trainer: &mut Trainer<L>) {
    let drawn = case["new"].as_array().cloned().unwrap_or_default();
    let is_drawn = |name: &str| name.rsplit_once('.').is_some_and(|(stem, _)| drawn.iter().any(|new| *new == stem));
    let is_new = |name: &str| name.contains("lora_") || name == "score.weight" || is_drawn(name);
    let mut new: Vec<_> = trainer.trainables.iter_mut().filter(|trainable| is_new(&trainable.name)).collect();
    new.sort_by(|a, b| a.name.cmp(&b.name));
    let mut place = 1_u64;
    for trainable in new {
        for value in &mut trainable.values {
            *value = (((place * 2_654_435_761 % (1 << 32)) as f64 / (1_u64 << 32) as f64 - 0.5) * 0.4) as f32;
            place += 1;
        }
    }
}

/// The numbers of a tensor that the script keeps.
fn kept(values: &[f32], is_whole: bool) -> Vec<f32> {
    let every = if is_whole { 1 } else { values.len().div_ceil(SAMPLE) };
    values.iter().copied().step_by(every).collect()
}

/// The largest relative difference where `size` is the size of what is compared.
fn differs(found: &[f32], expected: &[f32], size: f32) -> f32 {
    assert_eq!(found.len(), expected.len());
    assert!(found.iter().all(|x| x.is_finite()));
    found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max) / size
}

/// Runs one loss as the fixture says, in micro-batches and pieces of one size and another.
fn run<L: Loss>(name: &str, case: &Value, loss: &L, example: impl Fn(&Value) -> L::Example) {
    let expected = tensors(name);
    let batches: Vec<Vec<L::Example>> = list(&case["batches"], |batch| list(batch, &example));
    for (micro_batch, blocks_at_once) in [(1, None), (2, Some(1)), (8, Some(2))] {
        let settings = TrainSettings { blocks_at_once, ..settings_of(case, micro_batch) };
        let is_whole = settings.tuning != Tuning::Full;
        let mut trainer = new(case["model"].as_str().unwrap(), loss.clone(), settings);
        begin(case, &mut trainer);
        let sums = trainer.sums(&batches[0]).unwrap();
        let names: Vec<String> = trainer.trainables.iter().map(|trainable| trainable.name.clone()).collect();
        assert_eq!(expected.len(), 2 + 3 * names.len(), "{name}: other tensors are learnt: {names:?}");
        let mut worst = 0.0_f32;
        for (gradient, tensor) in sums.gradients.iter().zip(&names) {
            let mean: Vec<f32> = gradient.iter().map(|g| (f64::from(*g) / sums.count) as f32).collect();
            let expected = &expected[&format!("gradient.{tensor}")];
            let size = expected.iter().fold(f32::MIN_POSITIVE, |size, x| size.max(x.abs()));
            // The bias of keys adds the same to all scores of a query where nothing rotates: its gradient is rounding.
            let size = if tensor.ends_with("self.key.bias") { 1e-2 } else { size };
            let error = differs(&kept(&mean, is_whole), expected, size);
            assert!(error < AT_FIRST, "{name}: gradient of {tensor}: {error:e}");
            worst = worst.max(error);
        }
        let mut errors = Vec::new();
        let steps = whole(&case["steps"]);
        for step in 0..steps {
            let report = trainer.step(&batches[step % batches.len()]).unwrap();
            for (found, list) in [(report.loss, "loss"), (report.grad_norm, "grad_norm")] {
                let expected = expected[list][step];
                let error = (found as f32 - expected).abs() / expected.abs();
                assert!(error < AT_FIRST, "{name}: {list} of step {step}: {found}, expected {expected}");
            }
            for (after, tolerance) in AFTER.iter().filter(|(after, _)| *after == (step + 1).to_string()) {
                let mut worst = 0.0_f32;
                for trainable in &trainer.trainables {
                    let expected = &expected[&format!("{after}.{}", trainable.name)];
                    let error = differs(&kept(&trainable.values, is_whole), expected, 1.0);
                    assert!(error < *tolerance, "{name}: {} after {after} steps: {error:e}", trainable.name);
                    worst = worst.max(error);
                }
                errors.push(worst);
            }
        }
        let after = trainer.loss(&batches[steps % batches.len()]).unwrap() as f32;
        assert!((after - expected["loss"][steps]).abs() < AT_FIRST * after.abs().max(0.1), "{name}: {after}");
        written(name, case, &trainer);
        println!("{name}: micro-batches of {micro_batch}: gradients {worst:.1e}, after 5 and 20 steps {errors:?}");
    }
}

/// The folder of what was trained. An adapter's has the tensors and the configuration that PEFT saves.
///
/// With `JUDGE_TUNED_OUT` it is also written there, under the fixture's name, for `scripts/parity/check_tuned.py`.
fn written<L: Loss>(name: &str, case: &Value, trainer: &Trainer<L>) {
    if let Some(out) = std::env::var_os("JUDGE_TUNED_OUT") {
        let out = Path::new(&out).join(name);
        if !out.is_dir() {
            trainer.write(&out, Some(crate::Dtype::F32)).unwrap();
        }
    }
    let Some(saved) = case.get("saved") else { return };
    let at = tempfile::tempdir().unwrap();
    let out = at.path().join(name);
    trainer.write(&out, None).unwrap();
    let bytes = fs::read(out.join("adapter_model.safetensors")).unwrap();
    let mut names: Vec<String> =
        SafeTensors::deserialize(&bytes).unwrap().names().into_iter().map(str::to_owned).collect();
    names.sort();
    assert_eq!(serde_json::json!(names), *saved, "{name}");
    let config: Value = serde_json::from_str(&fs::read_to_string(out.join("adapter_config.json")).unwrap()).unwrap();
    for (field, expected) in case["config"].as_object().unwrap() {
        assert_eq!(&config[field], expected, "{name}: {field}");
    }
}

/// Reads the fixture and runs it with its loss.
fn of(name: &str) {
    let case: Value = serde_json::from_str(&fs::read_to_string(at(&format!("{name}.json"))).unwrap()).unwrap();
    match case["loss"].as_str().unwrap() {
        "completion" => {
            run(name, &case, &Completion, |one| CompletionExample::new(&ids(&one["prompt"]), &ids(&one["completion"])))
        }
        "mark" => {
            let mark = Mark { labels: labels_of(&case), alpha: float(&case["alpha"]) };
            run(name, &case, &mark, |one| MarkExample {
                prompt: ids(&one["prompt"]),
                target: list(&one["target"], |p| float(p) as f32),
            });
        }
        "bradley_terry" => {
            let reward = if case["labels"].is_null() { Reward::Score } else { Reward::Expected(labels_of(&case)) };
            let loss = BradleyTerry { reward, centring: float(&case["centring"]) };
            run(name, &case, &loss, |one| PairExample {
                better: ids(&one["better"]),
                worse: ids(&one["worse"]),
                margin: float(&one["margin"]) as f32,
            });
        }
        "class" => run(name, &case, &Class { classes: whole(&case["classes"]) }, |one| ClassExample {
            prompt: ids(&one["prompt"]),
            types: one.get("types").map(ids).unwrap_or_default(),
            class: whole(&one["class"]),
        }),
        "ordinal" => run(name, &case, &Ordinal { classes: whole(&case["classes"]) }, |one| ClassExample {
            prompt: ids(&one["prompt"]),
            types: Vec::new(),
            class: whole(&one["class"]),
        }),
        other => panic!("{other}"),
    }
}

#[test]
fn adapters_learn_completions_as_in_peft() {
    ["llama", "qwen2", "qwen3", "gemma2", "phi3"].into_iter().for_each(of);
}

#[test]
fn whole_models_learn_as_in_torch() {
    ["qwen2-full", "gemma2-full", "class-full"].into_iter().for_each(of);
}

#[test]
fn marks_pairs_and_classes_are_learnt_as_in_peft() {
    ["mark", "mark-raw", "mark-weights", "expected", "score", "class", "ordinal"].into_iter().for_each(of);
}

#[test]
fn encoders_learn_classes_as_in_peft_and_torch() {
    ["bert", "roberta", "roberta-full", "modernbert", "modernbert-full"].into_iter().for_each(of);
}

#[test]
fn there_is_no_run_that_nothing_compares() {
    let mut names: Vec<String> =
        fs::read_dir(at("")).unwrap().map(|x| x.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name.ends_with(".json"));
    assert_eq!(names.len(), 20, "{names:?}");
}
