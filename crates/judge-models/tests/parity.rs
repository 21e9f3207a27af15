//! What a loaded model answers, against transformers.
//!
//! Every position of every layer is compared inside the crate; here the whole way is taken, from a folder and text
//! to readings. A binary of its own, since `scripts/gpu/check.py` runs it on a machine with a card. Expected values:
//! `scripts/parity/make_family_fixtures.py` and `scripts/parity/make_stories260k_facts.py`.

#![allow(clippy::print_stdout, clippy::print_stderr)] // measured errors, and what was skipped

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use judge_core::{
    Backbone, Layer, Lens, Prompt, Reading, Request, Want,
    reading::Finish,
    request::{Generation, LabelRead, Pooling, ReadAt},
};
use judge_models::{Device, Dtype, LoadOptions, Model};
use serde_json::json;

#[allow(dead_code)] // the other binary uses the rest
#[path = "it/common.rs"]
mod common;

use common::{answers, fixtures, json, labels_at_end, raw, text_of};

/// Where and how the models of these tests run: `JUDGE_TEST_DEVICE` (`cpu`, or in a build with their feature `cuda:N` or `wgpu:N`, or
/// several of the first kind with commas between them) and `JUDGE_TEST_DTYPE` (`f32`, `tf32` or `bf16`). Unset: the CPU in f32.
fn place() -> (Vec<Device>, Dtype) {
    let read = |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    let devices = read("JUDGE_TEST_DEVICE", "cpu").split(',').map(|device| device.parse().unwrap()).collect();
    (devices, read("JUDGE_TEST_DTYPE", "f32").parse().unwrap())
}

/// Largest difference over largest value of a row of a model, which its folder names, against f32 on the CPU.
fn tolerance(model: &str) -> f32 {
    match place() {
        // One head's query and key are all but orthogonal at the first token. What rounding changes of the state is then much of their
        // product, and the norm behind them magnifies it.
        (_, Dtype::Bf16) if model == "qwen3_5_text-off" => 1e-1,
        // What products take is rounded, and weights that are not bf16.
        (_, Dtype::Bf16) => 5e-2,
        (_, Dtype::F32) => 1e-4,
        // A card multiplies with ten bits after the point where that is faster.
        (_, Dtype::Tf32) => 2e-2,
    }
}

/// Whether a near tie between two tokens is decided as in the reference.
fn text_is_exact() -> bool {
    place() == (vec![Device::Cpu], Dtype::F32)
}

/// The prompts of `make_family_fixtures.py`.
const PROMPTS: [&str; 2] = ["ba de fi go ku la me ni po ru sa te vi zo", "3 xa y0 ba ba 4"];

/// New tokens per prompt there.
const NEW_TOKENS: usize = 6;

fn load(folder: &Path) -> Model {
    let (devices, dtype) = place();
    let options = LoadOptions { devices, dtype: Some(dtype), ..LoadOptions::default() };
    Model::load(folder, &options).unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
}

fn read(model: &Model, prompt: &str, want: Want) -> Reading {
    read_together(model, vec![(prompt.to_owned(), want)]).remove(0)
}

/// What is read of prompts that are given together.
fn read_together(model: &Model, prompts: Vec<(String, Want)>) -> Vec<Reading> {
    let requests = prompts.into_iter().map(|(prompt, want)| Request { prompt: Prompt::Raw(prompt), want });
    let outcomes = answers(model, &requests.collect::<Vec<_>>()).unwrap();
    outcomes.into_iter().map(|outcome| outcome.reading().unwrap().clone()).collect()
}

fn greedy(max_new_tokens: usize) -> Option<Generation> {
    Some(Generation { max_new_tokens, ..Generation::default() })
}

fn labels(model: &Model, tokens: Vec<u32>, lens: Lens) -> Vec<LabelRead> {
    vec![labels_at_end(tokens, model.info().layers(), lens)]
}

/// Tensors of a fixture: f32 as they are, i32 as f32.
fn tensors(path: &Path) -> HashMap<String, Vec<f32>> {
    let widen = |dtype: safetensors::Dtype, bytes: &[u8]| -> Vec<f32> {
        let (words, _) = bytes.as_chunks::<4>();
        match dtype {
            safetensors::Dtype::I32 => words.iter().map(|&w| i32::from_le_bytes(w) as f32).collect(),
            _ => words.iter().map(|&w| f32::from_le_bytes(w)).collect(),
        }
    };
    common::tensors(path).into_iter().map(|(name, dtype, _, bytes)| (name, widen(dtype, &bytes))).collect()
}

fn ids(values: &[f32]) -> Vec<u32> {
    values.iter().map(|&id| id as u32).collect()
}

/// The models of all families, by their folders' names; of these every `n`-th from the `k`-th on where `JUDGE_TEST_PART` is `k/n`, so that
/// several processes share what a card's compiler has to do.
fn families() -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(fixtures().join("families")).unwrap().map(Result::unwrap);
    let mut all: Vec<_> = entries.map(|entry| (entry.file_name().into_string().unwrap(), entry.path())).collect();
    all.retain(|(name, _)| name != "rope");
    all.sort();
    let Ok(part) = std::env::var("JUDGE_TEST_PART") else {
        return all;
    };
    let (first, step) = part.split_once('/').expect("JUDGE_TEST_PART is k/n");
    all.into_iter().skip(first.parse().unwrap()).step_by(step.parse().unwrap()).collect()
}

/// The largest difference of all rows compared, over the largest value of its row, and which row it was.
#[derive(Default)]
struct Worst {
    error: f32,
    row: String,
}

impl Worst {
    fn compare(&mut self, found: &[f32], expected: &[f32], row: &str) {
        assert_eq!(found.len(), expected.len(), "{row}");
        assert!(found.iter().chain(expected).all(|x| x.is_finite()), "{row}: not every number is finite");
        let difference = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        let error = difference / expected.iter().map(|x| x.abs()).fold(0.0, f32::max);
        if error > self.error || self.row.is_empty() {
            *self = Self { error, row: row.to_owned() };
        }
    }

    /// Prints it, and fails where it is too large for this model.
    fn check(self, model: &str) {
        assert!(!self.row.is_empty(), "{model}: nothing was compared");
        println!("{model}: largest relative error {:.1e}, at {}", self.error, self.row);
        assert!(self.error < tolerance(model), "{model}: relative error {:e} at {}", self.error, self.row);
    }
}

/// Reads every case even if one fails, so that one run on a GPU reports as much as it can.
fn each<T>(cases: Vec<(String, T)>, read: impl Fn(&str, T)) {
    let count = cases.len();
    let fails = |(name, case): (String, T)| {
        catch_unwind(AssertUnwindSafe(|| read(&name, case))).is_err().then(|| {
            println!("{name}: failed");
            name
        })
    };
    let failed: Vec<String> = cases.into_iter().filter_map(fails).collect();
    assert!(count > 0 && failed.is_empty(), "of {count}, these failed: {}", failed.join(", "));
}

#[test]
fn readings_of_every_family_equal_transformers() {
    each(families(), |name, folder| {
        let model = load(&folder);
        let expected = tensors(&folder.join("expected.safetensors"));
        let (d_model, d_vocab) = (model.info().d_model, model.info().d_vocab);
        let all_tokens: Vec<u32> = (0..d_vocab as u32).collect();
        let poolings = [Pooling::First, Pooling::Last, Pooling::Mean, Pooling::Min, Pooling::Max];
        let mut worst = Worst::default();
        for (prompt, text) in PROMPTS.iter().enumerate() {
            let of = |what: &str| expected[&format!("{prompt}.{what}")].as_slice();
            let tokens = ids(of("ids"));
            assert_eq!(model.tokens(&raw(text)).unwrap(), tokens);

            for (lens, table) in [(Lens::Raw, "raw"), (Lens::Normed, "normed")] {
                let pooled = model.info().layers().into_iter().flat_map(|layer| poolings.map(|p| (layer, p))).collect();
                let want = Want { labels: labels(&model, all_tokens.clone(), lens), pooled, ..Want::default() };
                let reading = read(&model, text, want);
                assert_eq!(reading.prompt_tokens, Some(tokens.len()));
                let read = &reading.labels[0];
                assert_eq!((read.steps.len(), read.steps[0].step, read.steps[0].token), (1, 0, None));
                for layer in model.info().layers() {
                    let row = read.row(&read.steps[0], layer).unwrap();
                    let row_expected = &of(table)[layer.0 * d_vocab..][..d_vocab];
                    worst.compare(row, row_expected, &format!("prompt {prompt}, {layer}, {table} logits"));

                    let states = &of("hidden")[layer.0 * tokens.len() * d_model..][..tokens.len() * d_model];
                    for pooling in poolings {
                        let found = reading.pooled(layer, pooling).unwrap();
                        let pooled = pool(states, d_model, pooling);
                        worst.compare(found, &pooled, &format!("prompt {prompt}, {layer}, {pooling:?}"));
                    }
                }
            }

            let generated =
                read(&model, text, Want { generate: greedy(NEW_TOKENS), ..Want::default() }).generated.unwrap();
            if text_is_exact() {
                assert_eq!(generated.tokens, ids(of("greedy")), "{name}: prompt {prompt}");
                assert_eq!(generated.finish, Finish::Length);
            }
        }
        worst.check(name);
    });
}

/// So many prompts begin alike that a GPU computes their beginning once, in a pass of its own, which the others continue. That it does, the
/// products in `fake_gpu.rs` show; here are the numbers.
#[test]
fn prompts_that_begin_alike_read_as_each_alone() {
    let words = ["ba", "de", "3", "go", "xa"];
    let prompts: Vec<String> = (0..25)
        .map(|i| format!("{} {} {} y0", ["ba de fi go ku la me ni"; 5].join(" "), words[i / 5], words[i % 5]))
        .collect();
    each(families(), |name, folder| {
        let model = load(&folder);
        let want = |i: usize| {
            let labels =
                LabelRead { at: ReadAt::EveryStep, ..labels(&model, vec![3, 4, 5, 6, 7], Lens::Raw).remove(0) };
            match i % 4 {
                0 => Want { labels: vec![labels], generate: greedy(3), ..Want::default() },
                _ => Want { labels: vec![LabelRead { at: ReadAt::PromptEnd, ..labels }], ..Want::default() },
            }
        };
        let together = read_together(&model, prompts.iter().cloned().zip((0..).map(want)).collect());
        let mut worst = Worst::default();
        for i in (0..prompts.len()).step_by(6) {
            let alone = read(&model, &prompts[i], want(i));
            let written = |reading: &Reading| reading.generated.as_ref().map_or(Vec::new(), |text| text.tokens.clone());
            let (of_all, of_one) = (written(&together[i]), written(&alone));
            let steps = together[i].labels[0].steps.iter().zip(&alone.labels[0].steps);
            // A near tie may be decided otherwise, and nothing behind it is comparable.
            for (found, expected) in steps.take_while(|(step, _)| of_all[..step.step] == of_one[..step.step]) {
                let rows = found.logits.chunks(5).zip(expected.logits.chunks(5)).enumerate();
                rows.for_each(|(layer, (found, alone))| worst.compare(found, alone, &format!("prompt {i}, {layer}")));
            }
        }
        worst.check(name);
    });
}

/// Pooling of `states` `[seq, d_model]` by its definition.
fn pool(states: &[f32], d_model: usize, pooling: Pooling) -> Vec<f32> {
    let seq = states.len() / d_model;
    (0..d_model)
        .map(|i| {
            let column = (0..seq).map(|position| states[position * d_model + i]);
            match pooling {
                Pooling::First => states[i],
                Pooling::Last => states[(seq - 1) * d_model + i],
                Pooling::Mean => column.sum::<f32>() / seq as f32,
                Pooling::Min => column.fold(f32::INFINITY, f32::min),
                Pooling::Max => column.fold(f32::NEG_INFINITY, f32::max),
            }
        })
        .collect()
}

/// The frequencies of `dynamic` and `longrope` follow from prompt plus new tokens, for the whole call.
#[test]
fn greedy_text_under_every_rope_equals_transformers() {
    let source = fixtures().join("families/rope");
    let kind = |file: String| Some(file.strip_prefix("expected.")?.strip_suffix(".safetensors")?.to_owned());
    let files = std::fs::read_dir(&source).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let kinds: Vec<(String, ())> = files.filter_map(kind).map(|kind| (kind, ())).collect();
    assert_eq!(kinds.len(), 8);
    each(kinds, |kind, ()| {
        let folder = tempfile::tempdir().unwrap();
        for shared in ["model.safetensors", "tokenizer.json", "tokenizer_config.json", "generation_config.json"] {
            std::fs::copy(source.join(shared), folder.path().join(shared)).unwrap();
        }
        let config = if kind == "default" { "config.json".to_owned() } else { format!("config.{kind}.json") };
        std::fs::copy(source.join(config), folder.path().join("config.json")).unwrap();
        let model = load(folder.path());
        let expected = tensors(&source.join(format!("expected.{kind}.safetensors")));
        for prompt in 0..3 {
            let tokens = ids(&expected[&format!("{prompt}.ids")]);
            let text = text_of(folder.path(), &json!(tokens));
            let want = Want { generate: greedy(NEW_TOKENS), ..Want::default() };
            let generated = read(&model, &text, want).generated.unwrap();
            if text_is_exact() {
                assert_eq!(generated.tokens, ids(&expected[&format!("{prompt}.greedy")]), "{kind}: prompt {prompt}");
            }
        }
    });
}

#[test]
fn a_trained_model_with_a_sentencepiece_tokenizer_equals_transformers() {
    let Some(data) = std::env::var_os("JUDGE_TEST_DATA") else {
        eprintln!("skipped: JUDGE_TEST_DATA is not set");
        return;
    };
    let model = load(&PathBuf::from(data).join("models/stories260k"));
    let facts = json(fixtures().join("stories260k.json"));
    let numbers = |value: &serde_json::Value| -> Vec<f32> {
        value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap() as f32).collect()
    };
    let tokens: Vec<u32> = (1..=5).map(|i: u32| model.token(&i.to_string()).unwrap()).collect();
    assert_eq!(tokens, ids(&numbers(&facts["labels"])));
    let mut worst = Worst::default();
    for fact in facts["prompts"].as_array().unwrap() {
        let text = fact["text"].as_str().unwrap();
        assert_eq!(model.tokens(&raw(text)).unwrap(), ids(&numbers(&fact["ids"])), "{text}");
        let want = Want {
            labels: labels(&model, tokens.clone(), Lens::Raw),
            pooled: model.info().layers().into_iter().map(|layer| (layer, Pooling::Last)).collect(),
            generate: greedy(24),
            ..Want::default()
        };
        let reading = read(&model, text, want);
        let read = &reading.labels[0];
        for layer in model.info().layers() {
            let state = reading.pooled(layer, Pooling::Last).unwrap();
            worst.compare(state, &numbers(&fact["hidden"][layer.0]), &format!("{layer} of {text:?}"));
            let logits = read.row(&read.steps[0], layer).unwrap();
            let expected = numbers(&fact["label_logits"][layer.0]);
            worst.compare(logits, &expected, &format!("labels of {layer} of {text:?}"));
        }
        let generated = reading.generated.unwrap();
        if text_is_exact() {
            assert_eq!(generated.tokens, ids(&numbers(&fact["greedy"])), "{text}");
            assert_eq!(generated.text, fact["greedy_text"].as_str().unwrap(), "{text}");
        }
    }
    worst.check("stories260k");
}

#[test]
fn the_last_layer_is_normed_once_under_both_lenses() {
    let model = load(&fixtures().join("families/llama-on"));
    let last = Layer(model.info().n_layers);
    let under = |lens| {
        let want = Want { labels: labels(&model, vec![3, 4, 5], lens), ..Want::default() };
        let reading = read(&model, PROMPTS[0], want).labels.remove(0);
        (
            reading.row(&reading.steps[0], last).unwrap().to_vec(),
            reading.row(&reading.steps[0], Layer(1)).unwrap().to_vec(),
        )
    };
    let (raw, normed) = (under(Lens::Raw), under(Lens::Normed));
    if text_is_exact() {
        assert_eq!(raw.0, normed.0);
    } else {
        // Each lens has a pass of its own, whose operations a device may put together otherwise.
        let mut worst = Worst::default();
        worst.compare(&raw.0, &normed.0, "the last layer under both lenses");
        worst.check("llama-on");
    }
    assert_ne!(raw.1, normed.1);
}
