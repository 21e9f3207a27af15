//! Attention entropies of every engine against transformers, in every family: shared key heads, sliding windows, soft-caps.
//!
//! Expected values: `scripts/parity/attention_entropy_fixtures.py`.

#![allow(clippy::print_stdout)] // measured errors

use std::collections::HashMap;

use judge_core::{Backbone, Prompt, Request, Want};
use serde::Deserialize;

use crate::Model;
use crate::fixtures::{families, folder};
use crate::test_models::{answers, engines, is_f32, reading};

#[derive(Deserialize)]
struct Fixture {
    prompts: Vec<String>,
    families: HashMap<String, Family>,
}

/// By prompt, layer from 1 on, and head.
#[derive(Deserialize)]
struct Family {
    f32: Vec<Vec<Vec<f64>>>,
    rounded: Vec<Vec<Vec<f64>>>,
    bf16_error: f64,
}

fn fixture() -> Fixture {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/attention_entropy.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// The largest difference, in nats.
fn error(model: &Model, prompts: &[String], expected: &[Vec<Vec<f64>>]) -> f64 {
    let layers = model.attention_layers();
    let want = Want { attention_entropy: layers.clone(), ..Want::default() };
    let requests: Vec<Request> =
        prompts.iter().map(|text| Request { prompt: Prompt::Raw(text.clone()), want: want.clone() }).collect();
    let mut worst = 0.0_f64;
    for (outcome, expected) in answers(model, &requests).iter().zip(expected) {
        let found = &reading(outcome).attention_entropy;
        assert_eq!(found.iter().map(|heads| heads.layer).collect::<Vec<_>>(), layers);
        assert_eq!(expected.len(), layers.len());
        for (found, expected) in found.iter().zip(expected) {
            assert_eq!(found.values.len(), expected.len());
            worst = found.values.iter().zip(expected).map(|(&a, b)| (f64::from(a) - b).abs()).fold(worst, f64::max);
        }
    }
    worst
}

/// In bf16, in nats, against f32 arithmetic on weights rounded to bf16; transformers' own bf16 arithmetic is up to 1e-2 off.
const BF16_TOLERANCE: f64 = 2e-2;

#[test]
fn they_equal_transformers_and_in_bf16_err_by_rounding_alone() {
    let Fixture { prompts, families: expected } = fixture();
    assert!(prompts.len() > 2 && expected.len() == families().len());
    for name in &families() {
        let Family { f32, rounded, bf16_error: theirs } = &expected[name];
        for (engine, model) in engines(&folder(name)) {
            let (expected, tolerance) = if is_f32(&model) { (f32, 2e-6) } else { (rounded, BF16_TOLERANCE) };
            let error = error(&model, &prompts, expected);
            println!("{name}, {engine}: {error:.1e}, transformers' own in bf16 {theirs:.1e}");
            assert!(error < tolerance, "{name}, {engine}: {error:e}");
        }
    }
}
