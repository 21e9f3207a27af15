//! Tests of training, on the random models of `tests/fixtures/families`.

mod encoders;
mod folders;
mod gradients;
mod parity;
mod refusals;
mod run;

use std::path::Path;

use judge_core::{Layer, Lens};

use super::*;
use crate::fixtures::folder;
use crate::{Dtype, LoadOptions, Model};

/// Dense models that have every part which is learnt: biases, norms of heads, soft-caps, fused projections,
/// windows, halves of a block beside one another, delta rules, convolutions, state spaces.
const MODELS: [&str; 9] = [
    "llama-on",
    "qwen2-on",
    "qwen3-on",
    "gemma2-on",
    "phi3-on",
    "glm4-on",
    "cohere2-on",
    "qwen3_5_text-on",
    "falcon_h1-on",
];

fn lora() -> Tuning {
    Tuning::Lora(Lora { rank: 3, alpha: 6.0, ..Lora::default() })
}

fn settings(tuning: Tuning) -> TrainSettings {
    TrainSettings {
        tuning,
        schedule: Schedule { peak: 1e-2, warmup: 2, steps: 8, course: Course::Cosine },
        ..TrainSettings::default()
    }
}

fn completions() -> Vec<CompletionExample> {
    vec![
        CompletionExample { tokens: vec![1, 5, 20, 7, 9], weights: vec![0.0, 0.5, 0.0, 1.0, 1.0] },
        CompletionExample { tokens: vec![4, 4, 12], weights: vec![0.0, 0.25, 2.0] },
        CompletionExample { tokens: vec![0, 3, 60, 8], weights: vec![0.0, 0.0, 0.0, 1.0] },
    ]
}

/// Labels that are read from two layers besides the last.
fn labels() -> Labels {
    let layers = vec![(Layer(1), 0.25), (Layer(2), -0.5), (Layer(3), 1.0)];
    let from = ReadFrom { layers, learns_weights: false, lens: Lens::Normed };
    Labels { tokens: vec![10, 20, 30], values: vec![1.0, 2.0, 3.0], from }
}

/// The same from layers whose weights are learnt.
fn weighed() -> Labels {
    let layers = vec![(Layer(0), 0.1), (Layer(2), 0.3), (Layer(3), 0.6)];
    Labels { from: ReadFrom { layers, learns_weights: true, lens: Lens::Raw }, ..labels() }
}

fn marks() -> Vec<MarkExample> {
    vec![
        MarkExample { prompt: vec![1, 5, 20, 7], target: vec![0.0, 1.0, 0.0] },
        MarkExample { prompt: vec![9, 4], target: vec![0.5, 0.25, 0.25] },
    ]
}

fn decisions() -> Vec<DecisionExample> {
    let [first, second] = [[10, 20, 30].to_vec(), [20, 40].to_vec()];
    vec![
        DecisionExample { prompt: vec![1, 5, 20, 7], options: first, target: vec![0.0, 1.0, 0.0], temperature: 1.0 },
        DecisionExample { prompt: vec![9, 4], options: second, target: vec![0.75, 0.25], temperature: 0.5 },
    ]
}

/// Labels that are read at the last layer.
fn last(tokens: Vec<u32>, values: Vec<f64>) -> Labels {
    Labels { tokens, values, from: ReadFrom::default() }
}

fn pairs() -> Vec<PairExample> {
    vec![
        PairExample { better: vec![1, 5, 20, 7], worse: vec![1, 5, 21], margin: 0.5 },
        PairExample { better: vec![9, 4], worse: vec![9, 60, 3], margin: 0.0 },
    ]
}

fn classes() -> Vec<ClassExample> {
    let of = |prompt: &[u32], class| ClassExample { prompt: prompt.to_vec(), types: vec![], class };
    vec![of(&[1, 5, 20, 7], 2), of(&[9, 4], 0)]
}

fn new<L: Loss>(model: &str, loss: L, settings: TrainSettings) -> Trainer<L> {
    Trainer::new(&folder(model), loss, settings).unwrap()
}

fn f32_options() -> LoadOptions {
    LoadOptions { dtype: Some(Dtype::F32), ..LoadOptions::default() }
}

/// What was written, as it is served: a folder, or an adapter over its base.
fn tuned(base: &Path, tuning: &Tuning, path: &Path) -> Model {
    match tuning {
        Tuning::Full => Model::load(path, &f32_options()),
        Tuning::Lora(_) => Model::load(base, &LoadOptions { adapters: vec![path.to_owned()], ..f32_options() }),
    }
    .unwrap()
}

/// Takes some steps on one batch.
fn take_steps<L: Loss>(trainer: &mut Trainer<L>, steps: u64, batch: &[L::Example]) {
    for _ in 0..steps {
        trainer.step(batch).unwrap();
    }
}

/// Moves the factors and the score head that begin at zero away from it.
fn shaken<L>(mut trainer: Trainer<L>) -> Trainer<L> {
    for trainable in &mut trainer.trainables {
        if trainable.values.iter().all(|&x| x == 0.0) {
            let numbers =
                (0_u32..).map(|i| (f64::from(i.wrapping_mul(2_654_435_761)) / f64::from(u32::MAX) - 0.5) as f32);
            trainable.values = numbers.skip(1).take(trainable.values.len()).map(|x| 0.4 * x).collect();
        }
    }
    trainer
}
