//! Encoders against transformers: `scripts/parity/make_encoder_fixtures.py`.

#![allow(clippy::print_stdout)] // measured errors

use std::path::PathBuf;

use judge_core::{
    Backbone, Layer, Message, Outcome, Prompt, Reading, Reason, Request, TextModel, Want, model::BackboneError,
    request::Pooling,
};
use judge_models::{
    ConfigProblem, Device, DevicesProblem, Dtype, Error, Kernel, LoadOptions, Model, TensorProblem, TextError,
};
use rayon::ThreadPoolBuilder;
use serde_json::{Value, json};

use crate::common::{
    self, copy, edit, fixtures, json, of_every_layer, of_names, of_tensor, raw, retensor, wants_of_logits,
};
use crate::difference::relative_error;

const NAMES: [&str; 9] = [
    "bert-off",
    "bert-on",
    "deberta-v2-off",
    "deberta-v2-on",
    "modernbert-off",
    "modernbert-on",
    "roberta-off",
    "roberta-on",
    "xlm-roberta-off",
];

/// In the order of the fixtures.
const POOLINGS: [Pooling; 5] = [Pooling::First, Pooling::Last, Pooling::Mean, Pooling::Min, Pooling::Max];

fn folder(name: &str) -> PathBuf {
    fixtures().join("encoders").join(name)
}

fn options(dtype: Dtype) -> LoadOptions {
    LoadOptions { dtype: Some(dtype), ..LoadOptions::default() }
}

fn load(name: &str, options: &LoadOptions) -> Model {
    Model::load(folder(name), options).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// A prompt of a fixture, with what transformers makes of it.
struct Expected(Value);

impl Expected {
    /// Those of a folder.
    fn of(name: &str) -> Vec<Self> {
        let found = json(folder(name).join("expected.json"));
        found["prompts"].as_array().unwrap().iter().cloned().map(Self).collect()
    }

    fn prompt(&self) -> Prompt {
        raw(self.0["text"].as_str().unwrap())
    }

    fn ids(&self) -> Vec<u32> {
        serde_json::from_value(self.0["ids"].clone()).unwrap()
    }

    /// `[poolings][layers][d_model]`.
    fn states(&self, what: &str) -> Vec<Vec<Vec<f32>>> {
        serde_json::from_value(self.0[what].clone()).unwrap()
    }
}

fn requests(model: &Model, prompts: impl IntoIterator<Item = Prompt>) -> Vec<Request> {
    let want = of_every_layer(model, &POOLINGS);
    prompts.into_iter().map(|prompt| Request { prompt, want: want.clone() }).collect()
}

fn answers(model: &Model, requests: &[Request]) -> Vec<Outcome> {
    common::answers(model, requests).unwrap()
}

fn read(model: &Model, prompt: Prompt) -> Reading {
    common::read(model, prompt, &of_every_layer(model, &POOLINGS))
}

/// The bits of all pooled states.
fn bits(outcomes: &[Outcome]) -> Vec<Vec<u32>> {
    let of = |outcome: &Outcome| common::values(outcome.reading().unwrap()).into_iter().map(f32::to_bits).collect();
    outcomes.iter().map(of).collect()
}

/// The errors of a prompt's states, by pooling, then by layer.
fn errors(reading: &Reading, expected: &[Vec<Vec<f32>>], poolings: &[Pooling]) -> Vec<f32> {
    assert_eq!(expected.len(), poolings.len());
    let of = |(pooling, layers): (&Pooling, &Vec<Vec<f32>>)| -> Vec<f32> {
        let states = layers.iter().enumerate();
        states.map(|(layer, state)| relative_error(reading.pooled(Layer(layer), *pooling).unwrap(), state)).collect()
    };
    poolings.iter().zip(expected).flat_map(of).collect()
}

/// The largest of them.
fn error(reading: &Reading, expected: &[Vec<Vec<f32>>]) -> f32 {
    errors(reading, expected, &POOLINGS).into_iter().fold(0.0, f32::max)
}

#[test]
fn states_of_every_family_equal_transformers_in_f32() {
    for name in NAMES {
        let prompts = Expected::of(name);
        assert!(prompts.len() >= 4);
        for kernel in Kernel::available() {
            let model = load(name, &LoadOptions { kernel: Some(kernel), ..options(Dtype::F32) });
            let mut worst = 0.0_f32;
            for expected in &prompts {
                assert_eq!(model.tokens(&expected.prompt()).unwrap(), expected.ids(), "{name}");
                let states = expected.states("pooled");
                assert_eq!(states[0].len(), model.info().n_layers + 1);
                let reading = read(&model, expected.prompt());
                assert_eq!(reading.prompt_tokens, Some(expected.ids().len()));
                worst = worst.max(error(&reading, &states));
            }
            println!("{name}, {kernel}: largest relative error {worst:.1e}");
            let bound = if name.starts_with("deberta") { 1e-5 } else { 1e-4 };
            assert!(worst < bound, "{name}, {kernel}: {worst:e}");
        }
    }
}

/// A single state may err more than transformers' by chance; those of all prompts and layers of a folder together do not.
#[test]
fn states_in_bf16_are_nearer_to_exact_arithmetic_than_transformers() {
    let rms = |errors: &[f32]| (errors.iter().map(|x| x * x).sum::<f32>() / errors.len() as f32).sqrt();
    for name in NAMES {
        let prompts = Expected::of(name);
        let theirs = |prompt: &Expected| -> Vec<Vec<f32>> {
            serde_json::from_value(prompt.0["bf16_error_of_transformers"].clone()).unwrap()
        };
        let theirs: Vec<f32> = prompts.iter().flat_map(theirs).flatten().collect();
        for kernel in Kernel::available() {
            let model = load(name, &LoadOptions { kernel: Some(kernel), ..options(Dtype::Bf16) });
            let poolings = [Pooling::First, Pooling::Mean];
            let of = |prompt: &Expected| errors(&read(&model, prompt.prompt()), &prompt.states("bf16"), &poolings);
            let ours: Vec<f32> = prompts.iter().flat_map(of).collect();
            assert_eq!(ours.len(), theirs.len());
            println!("{name}, {kernel}: error {:.1e}, transformers' own {:.1e}", rms(&ours), rms(&theirs));
            assert!(rms(&ours) <= rms(&theirs), "{name}, {kernel}: {:e} > {:e}", rms(&ours), rms(&theirs));
        }
    }
}

#[test]
fn a_text_has_the_same_bits_in_any_company() {
    let words = ["ba", "de", "fi", "go", "3", "ku", "la", "me"];
    let text =
        |i: usize| (0..1 + (i * 17) % 43).map(|j| words[(i + j * j) % words.len()]).collect::<Vec<_>>().join(" ");
    for name in NAMES {
        for dtype in [Dtype::F32, Dtype::Bf16] {
            let model = load(name, &options(dtype));
            let all = requests(&model, (0..14).map(|i| Prompt::Raw(text(i))));
            let together = bits(&answers(&model, &all));
            for (request, together) in all.iter().zip(&together) {
                assert_eq!(bits(&answers(&model, std::slice::from_ref(request)))[0], *together, "{name}, {dtype}");
            }
            let reversed: Vec<Request> = all.iter().rev().cloned().collect();
            let mut again = bits(&answers(&model, &reversed));
            again.reverse();
            assert_eq!(again, together, "{name}, {dtype}: reversed");
            for threads in [1, 3] {
                let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                assert_eq!(
                    pool.install(|| bits(&answers(&model, &all))),
                    together,
                    "{name}, {dtype}: {threads} threads"
                );
            }
            for max_batch_tokens in [1, 60] {
                let cramped = load(name, &LoadOptions { max_batch_tokens: Some(max_batch_tokens), ..options(dtype) });
                assert_eq!(bits(&answers(&cramped, &all)), together, "{name}, {dtype}: {max_batch_tokens} tokens");
            }
        }
    }
}

#[test]
fn a_layers_state_is_the_same_whatever_is_read_besides() {
    let model = load("modernbert-off", &options(Dtype::F32));
    let all = read(&model, raw("ba de fi"));
    for layer in model.info().layers() {
        let want = Want { pooled: vec![(layer, Pooling::Mean)], ..Want::default() };
        let alone = common::read(&model, raw("ba de fi"), &want);
        assert_eq!(alone.pooled(layer, Pooling::Mean), all.pooled(layer, Pooling::Mean), "{layer}");
    }
}

/// The first block of this model has a window of three positions to either side, the second one has none.
#[test]
fn a_window_ends_where_it_should() {
    let model = load("modernbert-on", &options(Dtype::F32));
    let text = "ba de fi go du"; // with [CLS] and [SEP] seven tokens
    let plain = read(&model, raw(text));
    for (other, changed) in [("be de fi go du", 1), ("ba di fi go du", 2), ("ba de fa go du", 3), ("ba de fi gu du", 4)]
    {
        let [before, after] = [text, other].map(|text| model.tokens(&raw(text)).unwrap());
        let differing: Vec<usize> = (0..7).filter(|&place| before[place] != after[place]).collect();
        assert_eq!((before.len(), after.len(), differing), (7, 7, vec![changed]));
        let found = read(&model, raw(other));
        let is_changed = |layer, pooling| found.pooled(Layer(layer), pooling) != plain.pooled(Layer(layer), pooling);
        assert_eq!(is_changed(1, Pooling::First), changed <= 3, "token {changed} seen from the first");
        assert_eq!(is_changed(1, Pooling::Last), changed >= 3, "token {changed} seen from the last");
        assert!(is_changed(2, Pooling::First) && is_changed(2, Pooling::Last), "token {changed}");
    }
}

#[test]
fn a_text_may_be_as_long_as_there_are_positions() {
    for (name, max_len) in [("bert-off", 110), ("roberta-off", 108), ("roberta-on", 106), ("modernbert-on", 110)] {
        let model = load(name, &options(Dtype::F32));
        assert_eq!(model.info().max_len, max_len);
        // One token each, two around them.
        let text = |len: usize| Prompt::Raw(vec!["3"; len - 2].join(if name == "bert-off" { " " } else { "" }));
        assert_eq!(model.tokens(&text(max_len)).unwrap().len(), max_len);
        let found = answers(&model, &requests(&model, [text(max_len), text(max_len + 1)]));
        assert!(matches!(found[0], Outcome::Read(_)), "{:?}", found[0]);
        assert!(matches!(&found[1], Outcome::Unscored(reason) if reason.reason == Reason::TooLong), "{:?}", found[1]);
    }
}

#[test]
fn what_an_encoder_cannot_bring_is_refused() {
    let model = load("bert-on", &options(Dtype::F32));
    assert!(model.reward_head().is_some() && load("bert-off", &options(Dtype::F32)).reward_head().is_none());
    let entropy = Want { attention_entropy: vec![Layer(1)], ..Want::default() };
    for want in wants_of_logits().into_iter().chain([entropy]) {
        let request = Request { prompt: raw("ba de"), want };
        let refused = model.run(&[request], &mut |_, outcome| panic!("{outcome:?}")).unwrap_err();
        assert!(
            matches!(&refused, BackboneError::Unsupported { request: 0, what } if what.contains("encoder")),
            "{refused}"
        );
    }
    let refused = model.token("ba").unwrap_err();
    assert!(matches!(&refused, BackboneError::NoLogits { label, .. } if label == "ba"), "{refused}");

    // A conversation needs a template, as with any base model.
    let chat = Prompt::chat(vec![Message::new("user", "ba")]);
    let refused = model.run(&requests(&model, [chat]), &mut |_, outcome| panic!("{outcome:?}")).unwrap_err();
    let BackboneError::Model(source) = refused else { panic!("{refused}") };
    assert!(matches!(source.downcast_ref(), Some(Error::Text(TextError::NoChatTemplate { .. }))), "{source}");
}

#[test]
fn adapters_are_merged_under_the_names_that_peft_gives() {
    let adapters = vec![folder("adapter")];
    let model = load("bert-on", &LoadOptions { adapters, ..options(Dtype::F32) });
    let plain = load("bert-on", &options(Dtype::F32));
    assert_eq!(model.info().name, "bert-on+adapter");
    assert_ne!(model.info().fingerprint, plain.info().fingerprint);
    let prompts = Expected::of("adapter");
    let states = prompts[0].states("pooled");
    let worst = error(&read(&model, prompts[0].prompt()), &states);
    println!("largest relative error {worst:.1e}");
    assert!(worst < 1e-4, "{worst:e}");
    assert!(error(&read(&plain, prompts[0].prompt()), &states) > 1e-2);
}

/// Loads a copy of a fixture whose configuration and whose tensors' names were changed.
fn changed(name: &str, config: impl FnOnce(&mut Value), rename: &[(&str, &str)]) -> Result<Model, Error> {
    let to = copy(&format!("encoders/{name}"));
    edit(to.path().join("config.json"), config);
    retensor(&to.path().join("model.safetensors"), |stored| {
        for (from, to) in rename {
            let tensor = stored.iter_mut().find(|(name, ..)| name == from).unwrap_or_else(|| panic!("{from}"));
            tensor.0 = (*to).to_owned();
        }
    });
    Model::load(to.path(), &options(Dtype::F32))
}

#[test]
fn what_makes_another_model_of_it_is_refused_by_name() {
    let problem =
        |name: &str, field: &str, value: Value| match changed(name, |config| config[field] = value, &[]).unwrap_err() {
            Error::Config { problem, .. } => problem,
            other => panic!("{other:?}"),
        };
    for (name, field, value) in [
        ("bert-off", "is_decoder", json!(true)),
        ("bert-off", "position_embedding_type", json!("relative_key")),
        ("modernbert-off", "rope_scaling", json!({ "type": "linear", "factor": 2.0 })),
        ("modernbert-on", "rope_parameters", json!({ "rope_type": "linear", "factor": 2.0 })),
    ] {
        let found = problem(name, field, value);
        assert!(matches!(&found, ConfigProblem::Unsupported { field: of, .. } if *of == field), "{found}");
    }
    for (name, field, value) in [
        ("bert-off", "architectures", json!(["JinaBertModel"])),
        ("roberta-off", "architectures", json!(["BertModel"])),
        ("bert-off", "hidden_act", json!("mish")),
        ("modernbert-on", "layer_types", json!(["full_attention", "linear_attention", "full_attention"])),
        ("bert-off", "model_type", json!("deberta")),
    ] {
        let found = problem(name, field, value);
        assert!(matches!(&found, ConfigProblem::Unknown { field: of, .. } if *of == field), "{found}");
        if field == "model_type" {
            let said = found.to_string();
            assert!(["llama", "modernbert", "xlm-roberta"].iter().all(|known| said.contains(known)), "{said}");
        }
    }
    for (name, field, value) in [
        ("bert-off", "hidden_size", json!(30)),
        ("bert-off", "layer_norm_eps", json!(0.0)),
        ("bert-off", "num_hidden_layers", json!(0)),
        ("roberta-off", "max_position_embeddings", json!(2)),
        ("modernbert-off", "global_attn_every_n_layers", json!(0)),
    ] {
        let found = problem(name, field, value);
        assert!(matches!(&found, ConfigProblem::Value { field: of, .. } if *of == field), "{found}");
    }
    let found = problem("roberta-off", "pad_token_id", Value::Null);
    assert!(matches!(found, ConfigProblem::Missing { field: "pad_token_id", .. }), "{found}");
}

#[test]
fn tensors_are_named_with_and_without_their_class_and_none_goes_unread() {
    // The heads of another class, and none at all.
    let plain = load("bert-off", &options(Dtype::F32));
    let expected = bits(&answers(&plain, &requests(&plain, [raw("ba de")])));
    let headed = changed(
        "bert-off",
        |config| config["architectures"] = json!(["BertForPreTraining"]),
        &[
            ("pooler.dense.bias", "cls.predictions.bias"),
            ("embeddings.LayerNorm.bias", "bert.embeddings.LayerNorm.beta"),
        ],
    )
    .unwrap();
    assert_eq!(bits(&answers(&headed, &requests(&headed, [raw("ba de")]))), expected);

    let unknown = changed("bert-off", |_| {}, &[("pooler.dense.bias", "adapter.bias")]).unwrap_err();
    assert_eq!(of_names(unknown), (Vec::new(), vec!["adapter.bias".to_owned()]));
    let twice = changed("bert-off", |_| {}, &[("pooler.dense.bias", "bert.embeddings.LayerNorm.beta")]).unwrap_err();
    assert!(matches!(of_tensor(twice).1, TensorProblem::Twice { .. }));
}

#[test]
fn encoders_run_on_the_processor_only() {
    let devices = vec![Device::Cuda(0)];
    let refused = Model::load(folder("bert-off"), &LoadOptions { devices, ..LoadOptions::default() }).unwrap_err();
    let is_encoders = matches!(&refused, Error::Devices { problem: DevicesProblem::Encoder, .. });
    // Where there is no such device, this is said first.
    assert!(is_encoders || matches!(&refused, Error::NotInBuild { .. } | Error::Cuda { .. }), "{refused}");
}
