//! Batches against one sequence at a time, on the CPU in f32, and against transformers in the precision of a card.

#![allow(clippy::print_stdout)] // measured errors

mod full;
mod shared;
mod texts;

use std::mem;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use burn::tensor::Device;
use judge_arch::ModelSpec;
use judge_core::{
    Backbone, Layer, Lens, Outcome, Prompt, Reading, Reason, Request, TextModel, Want,
    request::{Generation, LabelRead, Pooling, ReadAt, ReplyPooling, Sampling},
};

use super::{Batched, Precision, Shapes};
use crate::fixtures::{Expected, copy, families, folder, relative_error};
use crate::folder::Folder;
use crate::reading::answers::Answers;
use crate::reading::labels::Heads;
use crate::test_models::{alone, answers, reading};
use crate::weights::checkpoint;
use crate::{DevicesProblem, Dtype, Error, LoadOptions, Model, WeightForm};

/// Largest difference over largest value of a row, f32 against f32: sums in another order.
const TOLERANCE: f32 = 1e-5;

const POOLINGS: [Pooling; 5] = [Pooling::First, Pooling::Last, Pooling::Mean, Pooling::Min, Pooling::Max];

fn options(dtype: Dtype, max_batch_tokens: usize) -> LoadOptions {
    LoadOptions { dtype: Some(dtype), max_batch_tokens: Some(max_batch_tokens), ..LoadOptions::default() }
}

fn batched(family: &str, dtype: Dtype, step: usize, max_batch_tokens: usize) -> Model {
    spread(&folder(family), &options(dtype, max_batch_tokens), step, 1)
}

/// A model over several devices, all of which are the processor.
fn spread(folder: &Path, options: &LoadOptions, step: usize, devices: usize) -> Model {
    Model::load_batched(folder, options, Shapes { step, pass: 8 }, vec![Device::flex(); devices]).unwrap()
}

/// Prompts of 1 to 43 tokens that want different things; every other one has text written behind it.
fn requests(model: &Model) -> Vec<Request> {
    let words = ["ba", "de", "fi", "go", "3", "ku", "xa", "me"];
    let layers = model.info().layers();
    (0..16_usize)
        .map(|i| {
            let prompt: Vec<&str> = (0..1 + (i * 17) % 43).map(|j| words[(i + j * j) % words.len()]).collect();
            let top = if i % 4 == 2 { 1 } else { layers.len() - 1 };
            let generate = (i % 2 == 1).then(|| Generation {
                max_new_tokens: 1 + i % 5,
                stop: if i % 4 == 1 { vec!["a ".to_owned()] } else { Vec::new() },
                sampling: match i % 3 {
                    0 => Sampling::Greedy,
                    _ => Sampling::Random { temperature: 1.5, top_k: None, top_p: None, seed: 7, stream: i as u64 },
                },
                ..Generation::default()
            });
            let labels = LabelRead {
                tokens: vec![3, 4, 5, 6, 7],
                layers: layers[..=top].to_vec(),
                lens: if i % 3 == 0 { Lens::Raw } else { Lens::Normed },
                at: if generate.is_some() && i % 4 == 3 { ReadAt::EveryStep } else { ReadAt::PromptEnd },
                label_mass: i % 4 > 1,
            };
            let pooled = layers[..=top].iter().flat_map(|&layer| POOLINGS.map(|pooling| (layer, pooling)));
            let entropies = model.attention_layers().into_iter();
            let continuations = ["ba", "de go fi", "de go ba", "xa"][..i % 5].iter().map(|text| format!(" {text}"));
            let want = Want {
                labels: (i % 5 != 4).then_some(labels).into_iter().collect(),
                pooled: pooled.filter(|_| i % 7 != 3).collect(),
                attention_entropy: entropies.filter(|layer| layer.0 <= top && (i + layer.0) % 3 > 0).collect(),
                prompt_log_probs: i % 3 == 1,
                continuations: continuations.collect(),
                reply: match generate {
                    Some(_) => [0, 1, layers.len() - 1].map(|top| (Layer(top), ReplyPooling::ALL[i / 2 % 3])).to_vec(),
                    None => Vec::new(),
                },
                generate,
            };
            Request { prompt: Prompt::Raw(prompt.join(" ")), want }
        })
        .collect()
}

/// Takes the numbers out of a reading, by rows that are compared each for itself. A mass of labels is one beside 1.
fn numbers(reading: &mut Reading) -> Vec<Vec<f32>> {
    let mut rows = Vec::new();
    for step in reading.labels.iter_mut().flat_map(|labels| &mut labels.steps) {
        rows.push(mem::take(&mut step.logits));
        rows.extend(step.label_mass.iter_mut().map(|mass| vec![mem::take(mass), 1.0]));
    }
    let continuations = reading.continuations.iter_mut().map(|found| &mut found.tokens);
    let log_probs = reading.prompt_log_probs.iter_mut().chain(continuations);
    rows.extend(log_probs.map(|found| mem::take(&mut found.log_probs)));
    rows.extend(reading.pooled.iter_mut().map(|state| mem::take(&mut state.values)));
    rows.extend(reading.reply.iter_mut().map(|state| mem::take(&mut state.values)));
    rows.extend(reading.attention_entropy.iter_mut().map(|heads| mem::take(&mut heads.values)));
    rows
}

/// The largest error of any number in `found`; all that is no number must be equal.
fn compare(found: &Reading, expected: &Reading) -> f32 {
    let (mut found, mut expected) = (found.clone(), expected.clone());
    let rows = numbers(&mut found).into_iter().zip(numbers(&mut expected));
    let worst = rows.map(|(found, expected)| relative_error(&found, &expected)).fold(0.0, f32::max);
    assert_eq!(found, expected);
    worst
}

#[test]
fn batches_equal_one_sequence_at_a_time_in_every_family() {
    for family in &families() {
        let alone = alone(&folder(family), &options(Dtype::F32, 1000));
        let requests = requests(&alone);
        let expected = answers(&alone, &requests);
        let mut worst = 0.0_f32;
        for (step, max_tokens) in [(1, 1), (8, 200), (16, 100_000), (64, 300)] {
            let model = batched(family, Dtype::F32, step, max_tokens);
            for (index, (found, expected)) in answers(&model, &requests).iter().zip(&expected).enumerate() {
                let error = compare(reading(found), reading(expected));
                assert!(error < TOLERANCE, "{family}, {step}, {max_tokens}: request {index}: {error:e}");
                worst = worst.max(error);
            }
        }
        println!("{family}: largest relative error {worst:.1e}");
    }
}

/// What the load reads back is of every tensor, on every device.
#[test]
fn a_number_of_every_tensor_is_read_back() {
    for (family, of_block) in [("mistral-off", 6), ("phi3-off", 6), ("olmoe-off", 15)] {
        for devices in [1, 3] {
            let folder = Folder::open(folder(family)).unwrap();
            let config = Arc::new(ModelSpec::from_json(folder.config()).unwrap());
            let devices = vec![Device::flex(); devices];
            let mut checkpoint = checkpoint(&folder).unwrap();
            let engine =
                Batched::load(Arc::clone(&config), &devices, Precision::HALF, Shapes::CUDA, &mut checkpoint).unwrap();
            let corners = engine.decoder.corners();
            assert_eq!(corners.len(), 1 + config.n_layers() * of_block + 2, "{family}"); // embedding, norm and head
            assert!(corners.iter().all(|corner| corner.dims() == [1]));
        }
    }
}

/// Frequencies that depend on the length are those of each sequence, not of the batch or its padding.
#[test]
fn every_rope_keeps_each_sequence_s_own_frequencies() {
    for kind in ["dynamic", "longrope", "llama3", "yarn"] {
        let to = copy("rope");
        std::fs::copy(folder("rope").join(format!("config.{kind}.json")), to.path().join("config.json")).unwrap();
        let alone = alone(to.path(), &options(Dtype::F32, 1000));
        let requests = requests(&alone);
        let expected = answers(&alone, &requests);
        let model = spread(to.path(), &options(Dtype::F32, 1000), 16, 1);
        let found = answers(&model, &requests);
        for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let error = compare(reading(found), reading(expected));
            assert!(error < TOLERANCE, "{kind}: request {index}: {error:e}");
        }
        assert_eq!(answers(&spread(to.path(), &options(Dtype::F32, 1000), 16, 2), &requests), found, "{kind}");
    }
}

#[test]
fn spread_over_devices_a_model_gives_the_same_bits_in_every_family() {
    for family in &families() {
        for dtype in [Dtype::F32, Dtype::Bf16] {
            let whole = batched(family, dtype, 16, 400);
            let requests = requests(&whole);
            let expected = answers(&whole, &requests);
            for devices in [2, 3].into_iter().filter(|&devices| devices <= whole.info().n_layers) {
                let model = spread(&folder(family), &options(dtype, 400), 16, devices);
                assert_eq!(answers(&model, &requests), expected, "{family}, {dtype}, {devices} devices");
            }
        }
    }
}

/// Why a model is not loaded on its devices.
fn problem(loaded: Result<Model, Error>) -> DevicesProblem {
    match loaded {
        Err(Error::Devices { problem, .. }) => problem,
        other => panic!("{other:?}"),
    }
}

/// No more devices than blocks, no packed weights and none in other forms.
#[test]
fn what_batches_cannot_have_is_refused() {
    let refused = |options: &LoadOptions, devices: usize| {
        let (shapes, devices) = (Shapes { step: 16, pass: 8 }, vec![Device::flex(); devices]);
        problem(Model::load_batched(&folder("llama-off"), options, shapes, devices))
    };
    let plain = options(Dtype::F32, 400);
    assert_eq!(refused(&plain, 4), DevicesProblem::TooMany { n_layers: 3 });
    let packed = LoadOptions { packed_cache: Some("nowhere".into()), ..plain.clone() };
    assert_eq!(refused(&packed, 1), DevicesProblem::PackedCache);
    assert!(!Path::new("nowhere").exists());
    let int8 = LoadOptions { weights: WeightForm::Int8, ..plain };
    assert_eq!(refused(&int8, 1), DevicesProblem::WeightForm { form: WeightForm::Int8 });
}

/// The card's precision on the CPU: bf16 products, queries, keys and values, all else f32. Products give bf16, as transformers' do, so that
/// it is about as far from exact arithmetic: nearer in most families, further by a seventh in one.
#[test]
fn the_precision_of_a_card_is_that_of_transformers_in_bf16() {
    let prompts = ["ba de fi go ku la me ni po ru sa te vi zo", "3 xa y0 ba ba 4"];
    for family in &families() {
        let expected = Expected::of(family);
        let theirs = expected.bf16_error_of_transformers();
        let model = batched(family, Dtype::Bf16, 32, 1000);
        let d_model = model.info().d_model;
        let pooled: Vec<(Layer, Pooling)> = model.info().layers().into_iter().map(|l| (l, Pooling::Last)).collect();
        let requests = prompts.map(|text| Request {
            prompt: Prompt::Raw(text.to_owned()),
            want: Want { pooled: pooled.clone(), ..Want::default() },
        });
        let mut ours = 0.0_f32;
        for (prompt, outcome) in answers(&model, &requests).iter().enumerate() {
            for state in &reading(outcome).pooled {
                let reference = &expected.get(prompt, "bf16")[state.layer.0 * d_model..][..d_model];
                ours = ours.max(relative_error(&state.values, reference));
            }
        }
        println!("{family}: error {ours:.1e}, transformers' own {theirs:.1e}");
        assert!(ours <= 1.5 * theirs, "{family}: {ours:e}, theirs {theirs:e}");
    }
}

#[test]
fn tf32_is_for_gpus_and_says_so() {
    let folder = folder("llama-off");
    assert_eq!(problem(Model::load(&folder, &options(Dtype::Tf32, 1000))), DevicesProblem::Tf32);
    let dtype = |dtype| {
        let shapes = Shapes { step: 16, pass: 8 };
        Model::load_batched(&folder, &options(dtype, 1000), shapes, vec![Device::flex()]).unwrap().info().dtype.clone()
    };
    assert_eq!([Dtype::F32, Dtype::Tf32, Dtype::Bf16].map(dtype), ["f32", "tf32", "bf16"]);
}

/// Text in a card's precision: the cache is in bf16, and all that is read is finite.
#[test]
fn text_is_written_in_the_precision_of_a_card() {
    for family in ["llama-on", "gemma2-on", "phi3-on", "qwen2-on"] {
        let model = batched(family, Dtype::Bf16, 32, 400);
        let requests = requests(&model);
        for (outcome, request) in answers(&model, &requests).iter().zip(&requests) {
            let read = reading(outcome);
            assert_eq!(read.generated.is_some(), request.want.generate.is_some());
            assert!(
                read.generated
                    .iter()
                    .all(|text| !text.tokens.is_empty() || text.finish == judge_core::reading::Finish::EndToken)
            );
        }
    }
}

#[test]
fn an_item_s_fault_is_its_own() {
    let model = batched("llama-off", Dtype::F32, 8, 64);
    let want = Want { pooled: vec![(Layer(2), Pooling::Mean)], ..Want::default() };
    let request = |text: String| Request { prompt: Prompt::Raw(text), want: want.clone() };
    let length = Request { prompt: Prompt::Raw("ba de".to_owned()), want: Want::default() };
    let long = "ba ".repeat(model.info().max_len + 1);
    let found = answers(&model, &[request("ba de".into()), request(long), request(String::new()), length]);
    assert_eq!(reading(&found[0]).pooled.len(), 1);
    let reason = |outcome: &Outcome| match outcome {
        Outcome::Unscored(fault) => fault.reason,
        Outcome::Read(_) => panic!("{outcome:?}"),
    };
    assert_eq!(reason(&found[1]), Reason::TooLong);
    assert_eq!(reason(&found[2]), Reason::EmptyPrompt);
    assert_eq!(reading(&found[3]).prompt_tokens, reading(&found[0]).prompt_tokens);
}

#[test]
fn nothing_is_answered_after_a_break() {
    let model = batched("llama-off", Dtype::F32, 8, 64);
    let requests = requests(&model);
    for stop in [1, 2, 9, requests.len()] {
        let mut calls = 0;
        model
            .run(&requests, &mut |_, _| {
                calls += 1;
                if calls == stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
            .unwrap();
        assert_eq!(calls, stop);
    }
}

#[test]
fn requests_are_grouped_by_the_blocks_they_need() {
    let model = batched("llama-off", Dtype::F32, 8, 64);
    let want = |layer| Want { pooled: vec![(Layer(layer), Pooling::Mean)], ..Want::default() };
    let requests = [0, 1, 2, 1].map(|layer| Request { prompt: Prompt::Raw("ba de fi".to_owned()), want: want(layer) });
    let heads = Heads::new();
    let mut sink = |_, _| ControlFlow::Continue(());
    let groups = crate::reading::groups::groups(&model.context, &requests, &heads, &mut Answers::new(&mut sink));
    let ControlFlow::Continue(groups) = groups.unwrap() else { panic!("nobody broke off") };
    let found: Vec<_> = groups.iter().map(|group| (group.blocks, group.jobs.len())).collect();
    assert_eq!(found, [(0, 1), (1, 2), (2, 1)]);
}
