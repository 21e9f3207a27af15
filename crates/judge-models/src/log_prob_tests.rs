//! Log-probabilities and label masses of every engine against the logits of transformers, in every family.
//!
//! Expected logits: `scripts/parity/make_family_fixtures.py`.

#![allow(clippy::print_stdout)] // measured errors

use judge_core::{
    Layer, Lens, Outcome, Prompt, Reading, Reason, Request, Want,
    request::{Generation, LabelRead, ReadAt, TokenId},
};

use crate::Model;
use crate::fixtures::{Expected, families, folder};
use crate::test_models::{answers, engines, in_bf16, in_f32, is_f32, reading};

/// The prompts of `make_family_fixtures.py`.
const PROMPTS: [&str; 2] = ["ba de fi go ku la me ni po ru sa te vi zo", "3 xa y0 ba ba 4"];

/// Words of each prompt that continuations go behind.
const WORDS_BEFORE: usize = 3;

/// Labels whose mass is read.
const LABELS: [TokenId; 4] = [3, 4, 5, 90];

/// In nats, f32 against f32.
const TOLERANCE: f64 = 2e-5;

/// In nats, weights rounded to bf16 against f32, where logits are up to some 30 in size:
/// transformers' own bf16 is off by up to 0.37 on the same prompts.
const BF16_TOLERANCE: f64 = 0.45;

/// `ln p` over the vocabulary at each position, in `f64` from the logits of transformers.
struct Reference {
    ids: Vec<TokenId>,
    log_probs: Vec<Vec<f64>>,
}

fn reference(family: &str, prompt: usize, model: &Model) -> Reference {
    let expected = Expected::of(family);
    let ids = expected.ids(prompt).into_iter().map(i32::cast_unsigned).collect();
    let row = |row: &[f32]| -> Vec<f64> {
        let capped = |z: f64| model.context.spec.final_soft_cap().map_or(z, |cap| cap * (z / cap).tanh());
        let logits: Vec<f64> = row.iter().map(|&z| capped(f64::from(z))).collect();
        let total = logits.iter().map(|z| z.exp()).sum::<f64>().ln();
        logits.iter().map(|z| z - total).collect()
    };
    let log_probs = expected.get(prompt, "logits").chunks_exact(model.info.d_vocab).map(row).collect();
    Reference { ids, log_probs }
}

/// All log-probabilities of a prompt, and the mass of the labels behind it.
fn of_prompt(text: &str, n_layers: usize) -> Request {
    let read = LabelRead {
        tokens: LABELS.to_vec(),
        layers: vec![Layer(n_layers)],
        lens: Lens::Raw,
        at: ReadAt::PromptEnd,
        label_mass: true,
    };
    let want = Want { labels: vec![read], prompt_log_probs: true, ..Want::default() };
    Request { prompt: Prompt::Raw(text.to_owned()), want }
}

/// Continuations of the first words: one, two, and all that are left.
fn of_continuations(text: &str) -> Request {
    let words: Vec<&str> = text.split(' ').collect();
    let (before, behind) = words.split_at(WORDS_BEFORE);
    let continuations = [1, 2, behind.len()].map(|n| format!(" {}", behind[..n].join(" "))).to_vec();
    Request { prompt: Prompt::Raw(before.join(" ")), want: Want { continuations, ..Want::default() } }
}

/// The largest error in nats.
fn error(name: &str, model: &Model, n_layers: usize) -> f64 {
    let requests = PROMPTS.map(|text| [of_prompt(text, n_layers), of_continuations(text)]).concat();
    let found = answers(model, &requests);
    let mut worst = 0.0_f64;
    let mut compare = |found: &[f32], expected: &[f64]| {
        assert_eq!(found.len(), expected.len());
        worst = found.iter().zip(expected).map(|(&a, b)| (f64::from(a) - b).abs()).fold(worst, f64::max);
    };
    for prompt in 0..PROMPTS.len() {
        let Reference { ids, log_probs } = reference(name, prompt, model);
        let of_tokens = |first: usize, end: usize| -> Vec<f64> {
            (first..end).map(|position| log_probs[position - 1][ids[position] as usize]).collect()
        };
        let whole = reading(&found[2 * prompt]);
        let own = whole.prompt_log_probs.as_ref().unwrap();
        assert_eq!(own.tokens, ids[1..]);
        compare(&own.log_probs, &of_tokens(1, ids.len()));
        let mass: f64 = LABELS.map(|label| log_probs[ids.len() - 1][label as usize].exp()).iter().sum();
        compare(&[whole.labels[0].steps[0].label_mass.unwrap().ln()], &[mass.ln()]);

        let found = reading(&found[2 * prompt + 1]);
        let start = found.prompt_tokens.unwrap();
        assert_eq!(found.continuations.len(), 3);
        for (continuation, n) in found.continuations.iter().zip([1, 2, ids.len() - start]) {
            assert_eq!(continuation.tokens.tokens, ids[start..start + n], "{name}: {:?}", continuation.text);
            compare(&continuation.tokens.log_probs, &of_tokens(start, start + n));
        }
    }
    worst
}

#[test]
fn they_are_those_of_transformers_logits_and_in_bf16_err_by_rounding_alone() {
    for name in &families() {
        for (engine, model) in engines(&folder(name)) {
            let error = error(name, &model, model.info.n_layers);
            println!("{name}, {engine}: {error:.1e}");
            assert!(error < if is_f32(&model) { TOLERANCE } else { BF16_TOLERANCE }, "{name}, {engine}: {error:e}");
        }
    }
}

/// What a model writes is as likely as a continuation as it was when it was written.
#[test]
fn the_mass_at_a_step_is_the_probability_of_its_token() {
    for (engine, model) in in_f32(&folder("llama-off")).into_iter().chain(in_bf16(&folder("gemma2-on"))) {
        let prompt = Prompt::Raw(PROMPTS[0].to_owned());
        let generate = Some(Generation { max_new_tokens: 5, ..Generation::default() });
        let ask = |want: Want| -> Reading {
            reading(&answers(&model, &[Request { prompt: prompt.clone(), want }])[0]).clone()
        };
        let text = ask(Want { generate: generate.clone(), ..Want::default() }).generated.unwrap();
        let read = |&token: &TokenId| LabelRead {
            tokens: vec![token],
            layers: vec![Layer(0)],
            lens: Lens::Raw,
            at: ReadAt::LabelSteps,
            label_mass: true,
        };
        let mut tokens = text.tokens.clone();
        tokens.sort_unstable();
        tokens.dedup();
        let continuations = vec![format!(" {}", text.text)];
        let found = ask(Want { labels: tokens.iter().map(read).collect(), continuations, generate, ..Want::default() });
        let behind = &found.continuations[0].tokens;
        assert_eq!(behind.tokens, text.tokens, "{engine}");
        let mut steps = 0;
        for step in found.labels.iter().flat_map(|labels| &labels.steps) {
            let (mass, expected) = (step.label_mass.unwrap(), behind.log_probs[step.step].exp());
            assert!((mass - expected).abs() < 1e-3 * expected, "{engine}: step {}: {mass} {expected}", step.step);
            steps += 1;
        }
        assert_eq!(steps, text.tokens.len(), "{engine}");
    }
}

#[test]
fn continuations_are_an_item_s_own_fault_or_are_answered_in_order() {
    for (engine, model) in engines(&folder("llama-off")) {
        let ask = |prompt: &str, continuations: &[&str]| {
            let continuations = continuations.iter().map(|&text| text.to_owned()).collect();
            Request { prompt: Prompt::Raw(prompt.to_owned()), want: Want { continuations, ..Want::default() } }
        };
        let max_len = model.info.max_len;
        let words = |n: usize| " ba".repeat(n);
        let found = answers(
            &model,
            &[
                ask("ba", &[" de", " fi go", " de", " fi ku"]),
                ask("ba", &[" de", &words(max_len - 1)]),
                ask("ba", &[&words(max_len), " de"]),
                ask("ba", &[" de", "  "]),
                ask("", &[" de"]),
            ],
        );
        let texts: Vec<&str> = reading(&found[0]).continuations.iter().map(|found| found.text.as_str()).collect();
        assert_eq!(texts, [" de", " fi go", " de", " fi ku"], "{engine}");
        assert_eq!(reading(&found[0]).continuations[0], reading(&found[0]).continuations[2]);
        let longest = &reading(&found[1]).continuations[1].tokens;
        assert_eq!(longest.log_probs.len(), max_len - 1, "{engine}");
        assert!(longest.log_probs.iter().all(|&p| p.is_finite() && p <= 0.0));
        let reasons = found[2..].iter().map(|outcome| match outcome {
            Outcome::Unscored(fault) => fault.reason,
            Outcome::Read(reading) => panic!("{engine}: {reading:?}"),
        });
        assert_eq!(reasons.collect::<Vec<_>>(), [Reason::TooLong, Reason::EmptyPrompt, Reason::EmptyPrompt]);
    }
}
