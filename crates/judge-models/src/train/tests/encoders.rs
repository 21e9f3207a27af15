//! Encoders: what they learn is what is served, by the folder's head of labels or by a new one.

use std::fs;
use std::path::PathBuf;

use judge_core::reward::closed_conversation;
use judge_core::{Backbone, Message, Prompt, Request};

use super::gradients::{compare, same_in_pieces};
use super::*;
use crate::test_models::{answers, reading};

/// Folders with their classes: with a head of their own, and without one. The last have windows, some of old names.
const MODELS: [(&str, usize); 8] = [
    ("encoder_heads/bert-labels", 3),
    ("encoder_heads/roberta", 2),
    ("encoder_heads/modernbert-mean", 2),
    ("encoders/bert-on", 2),
    ("encoders/bert-off", 3),
    ("encoders/roberta-off", 3),
    ("encoders/xlm-roberta-off", 2),
    ("encoders/modernbert-off", 3),
];

fn at(name: &str) -> PathBuf {
    folder("llama-on").join("../..").join(name)
}

fn open(name: &str, classes: usize, settings: TrainSettings) -> Trainer<Class> {
    Trainer::new(&at(name), Class { classes }, settings).unwrap()
}

/// Texts and pairs of texts of different lengths, as `judge reward` reads them.
fn prompts() -> [Prompt; 3] {
    let turns = |texts: &[&str]| {
        let roles = ["user", "assistant"].into_iter().zip(texts);
        closed_conversation(roles.map(|(role, text)| Message::new(role, *text)).collect())
    };
    [turns(&["ba de fi go ku", "la me 3, ni po ru su ta ve za ba"]), turns(&["ba de"]), turns(&["po", "ru su"])]
}

fn examples(model: &Model, classes: usize) -> Vec<ClassExample> {
    let example = |(index, prompt): (usize, &Prompt)| ClassExample {
        prompt: model.tokens(prompt).unwrap(),
        types: model.token_types(prompt).unwrap(),
        class: (index + 1) % classes,
    };
    prompts().iter().enumerate().map(example).collect()
}

fn load(name: &str) -> Model {
    Model::load(at(name), &f32_options()).unwrap()
}

/// The mean cross-entropy that a loaded classifier gives the examples.
fn served(model: &Model, classes: usize) -> f64 {
    let head = model.reward_head().unwrap();
    let want = head.want(model.info());
    let requests = prompts().map(|prompt| Request { prompt, want: want.clone() });
    let answers = answers(model, &requests);
    let losses = answers.iter().enumerate().map(|(index, outcome)| {
        let logits = head.of_reading(reading(outcome), model.info()).unwrap();
        logits.iter().map(|x| x.exp()).sum::<f64>().ln() - logits[(index + 1) % classes]
    });
    losses.sum::<f64>() / answers.len() as f64
}

#[test]
fn what_is_learnt_is_what_is_served() {
    for (name, classes) in MODELS {
        let base = load(name);
        let examples = examples(&base, classes);
        for tuning in [Tuning::Full, lora()] {
            let to = tempfile::tempdir().unwrap();
            let path = to.path().join("out");
            let schedule = Schedule { peak: 0.01, warmup: 0, ..settings(lora()).schedule };
            let mut trainer = open(name, classes, TrainSettings { schedule, ..settings(tuning.clone()) });
            let before = trainer.loss(&examples).unwrap();
            if base.reward_head().is_some() {
                let served = served(&base, classes);
                assert!((before - served).abs() < 1e-5 * before, "{name}: {before} {served}");
            }
            take_steps(&mut trainer, 4, &examples);
            trainer.write(&path, Some(Dtype::F32)).unwrap();
            let model = tuned(&at(name), &tuning, &path);
            let (after, served) = (trainer.loss(&examples).unwrap(), served(&model, classes));
            assert!((after - served).abs() < 1e-5 * after.max(0.1), "{name}, {tuning:?}: {after} {served}");
            assert!(after < before - 1e-3, "{name}, {tuning:?} has learnt nothing: {before} {after}");
            // A folder with a head has its labels, another as many as there are classes.
            assert_eq!(model.reward_head().unwrap().labels().len(), classes);
            if base.reward_head().is_none() {
                assert_eq!(model.reward_head().unwrap().labels()[1], "LABEL_1", "{name}");
            }
            // It is tuned on from there.
            if tuning == Tuning::Full {
                let again = Trainer::new(&path, Class { classes }, settings(lora())).unwrap();
                assert!((again.loss(&examples).unwrap() - after).abs() < 1e-5 * after.max(0.1), "{name}");
            } else {
                let alone = Model::load(&path, &f32_options()).unwrap();
                assert_eq!(alone.reward_head().unwrap().labels().len(), classes, "{name}");
            }
        }
    }
}

#[test]
fn gradients_are_those_of_differences_and_of_pieces() {
    for (name, classes) in MODELS {
        let examples = examples(&load(name), classes);
        for tuning in [Tuning::Full, lora()] {
            let open = |blocks_at_once| {
                shaken(open(name, classes, TrainSettings { blocks_at_once, ..settings(tuning.clone()) }))
            };
            compare(name, open(None), &examples);
            same_in_pieces(name, &tuning, &open, &examples);
        }
        let upper = Tuning::Lora(Lora { rank: 2, blocks: Blocks::Listed(vec![1]), ..Lora::default() });
        let open =
            |blocks_at_once| shaken(open(name, classes, TrainSettings { blocks_at_once, ..settings(upper.clone()) }));
        same_in_pieces(name, &upper, &open, &examples);
    }
}

/// A pair of answers by the one number of a cross-encoder's head.
#[test]
fn rewards_are_learnt_by_a_head_of_one_label() {
    let loss = || BradleyTerry { reward: Reward::Score, centring: 0.01 };
    for (name, tuning) in [("encoder_heads/modernbert", lora()), ("encoder_heads/xlm-roberta", Tuning::Full)] {
        let schedule = Schedule { peak: 0.01, warmup: 0, ..settings(lora()).schedule };
        let settings = TrainSettings { schedule, ..settings(tuning) };
        let mut trainer = Trainer::new(&at(name), loss(), settings).unwrap();
        let before = trainer.loss(&pairs()).unwrap();
        take_steps(&mut trainer, 4, &pairs());
        assert!(trainer.loss(&pairs()).unwrap() < before - 1e-3, "{name}");
    }
    // The second text of BERT's pairs has another type, which these examples do not say.
    let refused = Trainer::new(&at("encoder_heads/bert"), loss(), settings(lora()));
    assert!(matches!(refused, Err(TrainError::Setting { setting: "bradley_terry.reward", .. })), "{refused:?}");
}

/// As transformers makes one of the same folder: with the pooler and the head that it has, and the rest drawn.
#[test]
fn a_new_head_has_what_the_folder_has_and_is_drawn_by_the_seed() {
    let of = |name: &str, seed| open(name, 3, TrainSettings { seed, ..settings(lora()) }).trainables;
    let get = |trainables: &[super::super::trainable::Trainable], name: &str| {
        trainables.iter().find(|one| one.name == name).unwrap_or_else(|| panic!("{name}")).values.clone()
    };
    let std = |values: &[f32]| (values.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / values.len() as f64).sqrt();
    for (name, kept, drawn, expected) in [
        ("encoders/bert-off", &["pooler.dense.weight", "pooler.dense.bias"][..], &["classifier.weight"][..], 0.02),
        ("encoders/modernbert-off", &["head.dense.weight", "head.norm.weight"], &["classifier.weight"], 0.177 * 0.88),
        ("encoders/roberta-off", &[], &["classifier.dense.weight", "classifier.out_proj.weight"], 0.02),
        // It has a classifier of tokens, of two labels and without a dense map.
        ("encoders/xlm-roberta-off", &[], &["classifier.dense.weight", "classifier.out_proj.weight"], 0.02),
    ] {
        let trainables = of(name, 0);
        assert_eq!(trainables, of(name, 0), "{name}");
        let other = of(name, 1);
        let bytes = fs::read(at(name).join("model.safetensors")).unwrap();
        let stored = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        for tensor in kept {
            let view = stored.tensor(tensor).unwrap();
            let numbers: Vec<f32> = match view.dtype() {
                safetensors::Dtype::BF16 => {
                    let words = view.data().as_chunks::<2>().0.iter();
                    words.map(|&x| half::bf16::from_le_bytes(x).to_f32()).collect()
                }
                _ => view.data().as_chunks::<4>().0.iter().map(|&x| f32::from_le_bytes(x)).collect(),
            };
            assert_eq!(get(&trainables, tensor), numbers, "{name}: {tensor}");
        }
        for tensor in drawn {
            let found = std(&get(&trainables, tensor));
            assert!((found / expected - 1.0).abs() < 0.25, "{name}: {tensor}: {found}, expected {expected}");
            assert_ne!(get(&trainables, tensor), get(&other, tensor), "{name}");
        }
        let bias = drawn[drawn.len() - 1].replace("weight", "bias");
        assert!(get(&trainables, &bias).iter().all(|&x| x == 0.0), "{name}");
    }
}

#[test]
fn what_encoders_do_not_learn_is_refused() {
    let of = |name: &str, tuning| Trainer::new(&at(name), Class { classes: 3 }, settings(tuning));
    for tuning in [Tuning::Full, lora()] {
        let refused = of("encoders/deberta-v2-off", tuning);
        assert!(matches!(refused, Err(TrainError::Family { family: "deberta-v2", .. })), "{refused:?}");
    }
    let labels = of("encoder_heads/roberta", lora());
    assert!(matches!(labels, Err(TrainError::ScoreLabels { expected: 3, found: 2, .. })), "{labels:?}");
    for name in ["encoders/roberta-off", "encoder_heads/roberta"] {
        let no_head = Trainer::new(&at(name), Completion, settings(lora()));
        assert!(matches!(no_head, Err(TrainError::NoHead { family: "roberta", .. })), "{no_head:?}");
        let mark = Mark { labels: last(vec![10, 20], vec![0.0, 1.0]), alpha: 1.0 };
        let no_head = Trainer::new(&at(name), mark, settings(lora()));
        assert!(matches!(no_head, Err(TrainError::NoHead { family: "roberta", .. })), "{no_head:?}");
    }
    let mut trainer = of("encoders/roberta-off", lora()).unwrap();
    let set = trainer.set_score_head(&[0.0; 96]);
    assert!(matches!(set, Err(TrainError::Setting { setting: "score head", .. })), "{set:?}");
    assert!(matches!(trainer.label_logits(&[vec![5]], &[6]), Err(TrainError::NoHead { .. })));

    let problem = |name: &str, types: &[u32]| {
        let example = ClassExample { prompt: vec![5, 6], types: types.to_vec(), class: 0 };
        match of(name, lora()).unwrap().step(&[example]) {
            Err(TrainError::Example { index: 0, problem }) => problem,
            other => panic!("{other:?}"),
        }
    };
    let count = |expected, found| ExampleProblem::Count { what: "types of tokens", expected, found };
    assert_eq!(problem("encoders/roberta-off", &[0, 0]), count(0, 2));
    assert_eq!(problem("encoders/bert-off", &[0]), count(2, 1));
    let kind = problem("encoders/bert-off", &[0, 2]).to_string();
    assert_eq!(kind, "the type of a token is 2, expected one below the model's 2");
    let name = TrainError::NoTarget { target: "dense.out".into(), known: Vec::new() };
    let targets = Targets::Named(vec!["dense.out".into()]);
    let found = of("encoders/roberta-off", Tuning::Lora(Lora { targets, ..Lora::default() }));
    let Err(TrainError::NoTarget { target, known }) = found else { panic!("{found:?}, not {name}") };
    assert_eq!((target.as_str(), known), ("dense.out", ["dense", "key", "query", "value"].map(str::to_owned).to_vec()));
}

/// A resumed run, and one over a file of states, end with the bits of one that was never stopped.
#[test]
fn a_run_resumes_and_takes_states_from_a_file() {
    let to = tempfile::tempdir().unwrap();
    let (checkpoint, states) = (to.path().join("checkpoint"), to.path().join("states"));
    for (name, classes) in [("encoders/bert-off", 3), ("encoders/modernbert-off", 3)] {
        let examples = examples(&load(name), classes);
        let upper = Tuning::Lora(Lora { rank: 2, blocks: Blocks::Listed(vec![1]), ..Lora::default() });
        let open = |states: Option<&PathBuf>| {
            let settings = TrainSettings { states: states.cloned(), ..settings(upper.clone()) };
            open(name, classes, settings)
        };
        let mut whole = open(None);
        take_steps(&mut whole, 4, &examples);
        let mut first = open(Some(&states));
        first.step(&examples[..2]).unwrap();
        drop(first);
        let mut first = open(Some(&states));
        first.step(&examples).unwrap();
        first.save(&checkpoint).unwrap();
        drop(first);
        let mut second = open(Some(&states));
        second.resume(&checkpoint).unwrap();
        take_steps(&mut second, 3, &examples);
        assert_eq!(second.trainables, whole.trainables, "{name}");
        fs::remove_file(&states).unwrap();
    }
}
