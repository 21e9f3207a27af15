//! What cannot be read: an item's own fault is [`Unscored`], a request that makes no sense ends the run.

use std::ops::ControlFlow;
use std::path::Path;

use judge_core::{
    Layer, Lens, Outcome, Reason, Request, TextModel, Unscored, Want,
    model::{BackboneError, RequestProblem},
    reading::Finish,
    request::{Generation, LabelRead, Pooling, ReadAt, Sampling},
};
use judge_models::{ConfigProblem, Device, DevicesProblem, Dtype, Error, LoadOptions, Model, WeightsError};

use crate::common::{answers, copy, edit, fixtures, json, labels_at_end, load, of_names, raw, retensor};

fn model() -> Model {
    load(fixtures().join("families/llama-off"), None).unwrap()
}

fn request(text: &str, want: Want) -> Request {
    Request { prompt: raw(text), want }
}

fn read_labels(layers: &[usize], at: ReadAt) -> LabelRead {
    let layers = layers.iter().map(|&layer| Layer(layer)).collect();
    LabelRead { at, ..labels_at_end(vec![3, 4], layers, Lens::Raw) }
}

fn generate(max_new_tokens: usize) -> Option<Generation> {
    Some(Generation { max_new_tokens, ..Generation::default() })
}

fn unscored(outcome: &Outcome) -> &Unscored {
    match outcome {
        Outcome::Unscored(fault) => fault,
        Outcome::Read(reading) => panic!("{reading:?}"),
    }
}

#[test]
fn a_bad_item_does_not_end_the_run() {
    let model = model(); // context: 64 tokens
    let words = |n: usize| vec!["ba"; n].join(" ");
    let pooled = || Want { pooled: vec![(Layer(1), Pooling::Last)], ..Want::default() };
    let outcomes = answers(
        &model,
        &[
            request("", pooled()),
            request(&words(64), pooled()),
            request(&words(65), pooled()),
            request(&words(60), Want { generate: generate(4), ..Want::default() }),
            request(&words(60), Want { generate: generate(5), ..Want::default() }),
            request("ba", Want { generate: generate(usize::MAX), ..Want::default() }),
        ],
    )
    .unwrap();
    assert_eq!(unscored(&outcomes[0]).reason, Reason::EmptyPrompt);
    for good in [1, 3] {
        assert!(matches!(outcomes[good], Outcome::Read(_)), "{:?}", outcomes[good]);
    }
    for long in [2, 4, 5] {
        assert_eq!(unscored(&outcomes[long]).reason, Reason::TooLong);
    }
    assert_eq!(unscored(&outcomes[4]).detail, "60 prompt tokens and 5 new ones, the context has 64");
}

#[test]
fn requests_are_checked_before_anything_is_run() {
    let model = model();
    let good = request("ba", Want { pooled: vec![(Layer(0), Pooling::Last)], ..Want::default() });
    let refused = |want: Want| {
        let mut answered = 0;
        let error = model
            .run(&[good.clone(), request("ba", want)], &mut |_, _| {
                answered += 1;
                ControlFlow::Continue(())
            })
            .unwrap_err();
        assert_eq!(answered, 0);
        error
    };
    let labels = |read| Want { labels: vec![read], ..Want::default() };
    let problem = |want| match refused(want) {
        BackboneError::Request { request: 1, problem } => problem,
        other => panic!("{other}"),
    };
    let at = ReadAt::PromptEnd;
    assert!(matches!(refused(labels(read_labels(&[4], at))), BackboneError::Layer { request: 1, n_layers: 3, .. }));
    let pooled = Want { pooled: vec![(Layer(9), Pooling::Mean)], ..Want::default() };
    assert!(matches!(refused(pooled), BackboneError::Layer { request: 1, layer: Layer(9), .. }));
    let entropy = |layers: &[usize]| Want {
        attention_entropy: layers.iter().map(|&layer| Layer(layer)).collect(),
        ..Want::default()
    };
    assert!(matches!(refused(entropy(&[1, 4])), BackboneError::Layer { request: 1, layer: Layer(4), .. }));
    assert_eq!(problem(entropy(&[0, 1])), RequestProblem::NoAttention);
    assert_eq!(problem(entropy(&[2, 1])), RequestProblem::LayerOrder);
    assert_eq!(problem(entropy(&[1, 1])), RequestProblem::LayerOrder);
    let far = LabelRead { tokens: vec![3, 96], ..read_labels(&[1], at) };
    assert!(matches!(refused(labels(far)), BackboneError::Token { request: 1, token: 96, d_vocab: 96 }));
    assert_eq!(problem(labels(read_labels(&[2, 1], at))), RequestProblem::LayerOrder);
    assert_eq!(problem(labels(read_labels(&[1, 1], at))), RequestProblem::LayerOrder);
    assert_eq!(problem(labels(read_labels(&[], at))), RequestProblem::NothingToRead("layer"));
    let none = LabelRead { tokens: vec![], ..read_labels(&[1], at) };
    assert_eq!(problem(labels(none)), RequestProblem::NothingToRead("label"));
    assert_eq!(problem(labels(read_labels(&[1], ReadAt::EveryStep))), RequestProblem::StepsWithoutGeneration);
    assert_eq!(problem(Want { generate: generate(0), ..Want::default() }), RequestProblem::NoNewTokens);
    let stop = Some(Generation { stop: vec!["a".to_owned(), String::new()], ..Generation::default() });
    assert_eq!(problem(Want { generate: stop, ..Want::default() }), RequestProblem::EmptyText("stop text"));
    let continuations = vec!["a".to_owned(), String::new()];
    assert_eq!(problem(Want { continuations, ..Want::default() }), RequestProblem::EmptyText("continuation"));
    let first = read_labels(&[1], at);
    let twice = vec![first.clone(), LabelRead { lens: Lens::Normed, ..first.clone() }, read_labels(&[2], at)];
    assert_eq!(problem(Want { labels: twice.clone(), ..Want::default() }), RequestProblem::LabelsTwice);
    let apart = Want { labels: twice[..2].to_vec(), ..Want::default() };
    assert!(
        matches!(answers(&model, &[request("ba", apart)]).unwrap()[0], Outcome::Read(_)),
        "another lens is another read"
    );
    let cold = Sampling::Random { temperature: 0.0, top_k: None, top_p: None, seed: 0, stream: 0 };
    let cold = Some(Generation { max_new_tokens: 1, sampling: cold, ..Generation::default() });
    assert!(matches!(problem(Want { generate: cold, ..Want::default() }), RequestProblem::Sampling { .. }));
}

/// Weights are finite, but their products are not.
#[test]
fn states_that_overflow_are_not_scores() {
    let copy = copy("families/llama-off");
    retensor(&copy.path().join("model.safetensors"), |stored| {
        let huge = stored.iter_mut().find(|(name, ..)| name == "model.layers.1.mlp.down_proj.weight").unwrap();
        huge.3.chunks_exact_mut(4).for_each(|value| value.copy_from_slice(&3e38_f32.to_le_bytes()));
    });
    let all = Want { labels: vec![read_labels(&[0, 1, 2, 3], ReadAt::PromptEnd)], ..Want::default() };
    let below = Want { labels: vec![read_labels(&[0, 1], ReadAt::PromptEnd)], ..Want::default() };
    let pooled = |pooling| Want { pooled: vec![(Layer(2), pooling)], ..Want::default() };
    let text = Want { generate: generate(2), ..Want::default() };
    let scored = Want { prompt_log_probs: true, ..Want::default() };
    let continued = |text: &str| Want { continuations: vec![text.to_owned()], ..Want::default() };
    let massed = LabelRead { label_mass: true, ..read_labels(&[0, 1], ReadAt::PromptEnd) };
    let massed = Want { labels: vec![massed], ..Want::default() };
    let pooled = [Pooling::Max, Pooling::Min, Pooling::Mean].map(pooled);
    let mut wants = vec![below, all, text, scored, continued(" go"), continued(" go ku"), massed];
    wants.extend(pooled);
    for dtype in [Dtype::F32, Dtype::Bf16] {
        let model = load(copy.path(), dtype).unwrap();
        let requests: Vec<Request> = wants.iter().map(|want| request("ba de fi", want.clone())).collect();
        let outcomes = answers(&model, &requests).unwrap();
        assert!(matches!(outcomes[0], Outcome::Read(_)), "{dtype}");
        for outcome in &outcomes[1..] {
            assert_eq!(unscored(outcome).reason, Reason::NonFinite, "{dtype}");
        }
    }
}

/// `generation_config.json` has the last word, be it one id or several; else `config.json`'s id counts.
#[test]
fn text_ends_at_the_end_tokens_that_the_folder_names() {
    let prompt = "ba de fi go ku la me ni po ru sa te vi zo";
    let want = Want { labels: vec![read_labels(&[3], ReadAt::EveryStep)], generate: generate(6), ..Want::default() };
    let written = |folder: &Path| {
        let model = load(folder, None).unwrap();
        match answers(&model, &[request(prompt, want.clone())]).unwrap().remove(0) {
            Outcome::Read(reading) => {
                let steps = reading.labels[0].steps.len();
                let generated = reading.generated.unwrap();
                assert_eq!(steps, generated.tokens.len());
                (generated.tokens, generated.finish)
            }
            Outcome::Unscored(fault) => panic!("{fault}"),
        }
    };
    let copy = copy("families/qwen3-on");
    let generation = copy.path().join("generation_config.json");
    let (free, finish) = written(copy.path());
    assert_eq!((free.len(), finish), (6, Finish::Length));
    let third = free[2];
    let until = free.iter().position(|&token| token == third).unwrap();

    std::fs::write(&generation, format!(r#"{{ "eos_token_id": {third} }}"#)).unwrap();
    assert_eq!(written(copy.path()), (free[..until].to_vec(), Finish::EndToken));
    std::fs::write(&generation, format!(r#"{{ "eos_token_id": [95, {third}] }}"#)).unwrap();
    assert_eq!(written(copy.path()), (free[..until].to_vec(), Finish::EndToken));

    std::fs::remove_file(&generation).unwrap();
    edit(copy.path().join("config.json"), |config| config["eos_token_id"] = third.into());
    assert_eq!(written(copy.path()), (free[..until].to_vec(), Finish::EndToken));
}

#[test]
fn a_folder_that_cannot_be_built_says_why() {
    let copy = copy("families/llama-off");
    let path = copy.path().join("config.json");
    let good = json(&path);
    let load_with = |key: &str, value: serde_json::Value| {
        let mut config = good.clone();
        config[key] = value;
        std::fs::write(&path, config.to_string()).unwrap();
        load(copy.path(), None).unwrap_err()
    };
    let unknown = load_with("model_type", "mamba".into());
    assert!(matches!(unknown, Error::Config { problem: ConfigProblem::Unknown { field: "model_type", .. }, .. }));
    assert_eq!(of_names(load_with("num_hidden_layers", 4.into())).0.len(), 9);
    assert_eq!(of_names(load_with("num_hidden_layers", 2.into())).1.len(), 9);
    assert!(matches!(load_with("intermediate_size", 41.into()), Error::Weights(WeightsError::Tensor { .. })));

    std::fs::write(&path, good.to_string()).unwrap();
    let load_on = |devices: &[Device]| {
        let options = LoadOptions { devices: devices.to_vec(), ..LoadOptions::default() };
        Model::load(copy.path(), &options).unwrap_err()
    };
    let (cpu, card) = (Device::Cpu, Device::Cuda(0));
    #[cfg(not(feature = "cuda"))]
    assert!(matches!(load_on(&[card]), Error::NotInBuild { device: Device::Cuda(0) }));
    let problem = |devices: &[Device]| match load_on(devices) {
        Error::Devices { devices: found, problem } => {
            assert_eq!(found, devices);
            problem
        }
        other => panic!("{other}"),
    };
    assert_eq!(problem(&[]), DevicesProblem::None);
    assert_eq!(problem(&[cpu, cpu]), DevicesProblem::NotOnlyCards);
    assert_eq!(problem(&[card, cpu]), DevicesProblem::NotOnlyCards);
    assert_eq!(problem(&[card, Device::Cuda(1), card]), DevicesProblem::Twice { device: card });
    assert_eq!(problem(&[card, Device::Wgpu(0)]), DevicesProblem::NotOnlyCards);
}
