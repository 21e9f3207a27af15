//! Models whose matrices are kept in 8 bits are near the same models in bf16, and say so.

use judge_core::Backbone;
use judge_models::{Dtype, LoadOptions, Model, WeightForm};

use crate::common::{fixtures, last_states, values};

fn load(name: &str, dtype: Dtype, weights: WeightForm) -> Model {
    let options = LoadOptions { dtype: Some(dtype), weights, ..LoadOptions::default() };
    Model::load(fixtures().join(name), &options).unwrap()
}

/// The last state of every layer.
fn states(model: &Model) -> Vec<f32> {
    values(&last_states(model, "ba de fi go 3 ku xa me"))
}

/// The root of the mean square of differences, relative to that of what is expected.
fn distance(found: &[f32], expected: &[f32]) -> f32 {
    let square = |x: f32| x * x;
    let differences: f32 = found.iter().zip(expected).map(|(a, b)| square(a - b)).sum();
    (differences / expected.iter().map(|&x| square(x)).sum::<f32>()).sqrt()
}

#[test]
fn eight_bits_are_near_the_weights_that_they_are_rounded_from() {
    for name in ["families/llama-off", "families/qwen3-on", "families/gemma3_text-on", "families/qwen3_moe-on"] {
        let exact = states(&load(name, Dtype::F32, WeightForm::AsStored));
        for (dtype, text) in [(Dtype::F32, "int8-f32"), (Dtype::Bf16, "int8-bf16")] {
            let model = load(name, dtype, WeightForm::Int8);
            assert_eq!(model.info().dtype, text);
            let distance = distance(&states(&model), &exact);
            assert!(distance > 1e-4 && distance < 0.05, "{name} {dtype}: {distance}");
        }
    }
}

/// A folder of codes keeps its own: nothing is rounded twice.
#[test]
fn weights_that_are_codes_already_stay_what_they_are() {
    let [own, int8] = [WeightForm::AsStored, WeightForm::Int8].map(|form| load("quantised/gptq-8", Dtype::Bf16, form));
    let plain = own.info().fingerprint.clone();
    assert_eq!(int8.info().fingerprint, plain);
    assert_eq!(own.info().dtype, "bf16");
    assert!(distance(&states(&int8), &states(&own)) < 0.02);
}
