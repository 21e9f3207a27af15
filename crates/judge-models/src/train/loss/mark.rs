//! A mark at the end of a prompt, as a distribution over labels: what LAGER reads.
//!
//! A verdict on a pair is a mark: its labels are those of the two answers and of a tie, with the values 1, 0
//! and ½.

use burn::tensor::{Tensor, TensorData};
use judge_core::request::TokenId;
use serde::Serialize;

use super::labels::{Labels, ReadFrom};
use super::measure::Loss;
use crate::Error;
use crate::train::batch::Sequence;
use crate::train::check::{Limits, check_target, check_tokens};
use crate::train::error::{ExampleProblem, TrainError};
use crate::train::pass::Reads;

/// Cross-entropy over the labels alone, and optionally the distance of the expected mark from the target's:
///
/// ```text
/// alpha * -Σ target * ln p + (1 - alpha) * |E(p) - E(target)|
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mark {
    /// The labels, and where they are read.
    pub labels: Labels,
    /// The share of the cross-entropy, in [0, 1]. 1 for cross-entropy alone.
    pub alpha: f64,
}

/// A prompt that ends where the mark stands.
#[derive(Clone, Debug, PartialEq)]
pub struct MarkExample {
    /// The tokens of the prompt: at least one, at most the model's context, all in the vocabulary.
    pub prompt: Vec<TokenId>,
    /// The probability of each label, in their order; several raters give a soft one. They add up to 1.
    pub target: Vec<f32>,
}

impl Loss for Mark {
    type Example = MarkExample;

    const NAME: &'static str = "mark";

    fn check(&self, limits: Limits) -> Result<(), TrainError> {
        if !(0.0..=1.0).contains(&self.alpha) {
            return Err(TrainError::setting("mark.alpha", self.alpha, "0 to 1"));
        }
        self.labels.check(limits)
    }

    fn check_example(&self, example: &MarkExample, limits: Limits) -> Result<(), ExampleProblem> {
        check_tokens(&example.prompt, 1, limits)?;
        check_target(&example.target, self.labels.tokens.len())
    }

    fn read_from(&self) -> Option<&ReadFrom> {
        Some(&self.labels.from)
    }

    fn sequences<'e>(&self, example: &'e MarkExample) -> Vec<Sequence<'e>> {
        vec![Sequence::read_at_end(&example.prompt)]
    }

    fn sum(&self, reads: &Reads, examples: &[MarkExample]) -> Result<Tensor<1>, Error> {
        let log_probs = self.labels.log_probs(reads)?; // [examples, labels]
        let device = log_probs.device();
        let targets: Vec<f32> = examples.iter().flat_map(|example| &example.target).copied().collect();
        let targets = Tensor::<2>::from_data(TensorData::new(targets, log_probs.dims()), &device);
        let entropy = (log_probs.clone() * targets).sum().neg();
        if self.alpha == 1.0 {
            return Ok(entropy);
        }
        let mean = |example: &MarkExample| {
            let terms = example.target.iter().zip(&self.labels.values);
            terms.map(|(&p, value)| f64::from(p) * value).sum::<f64>() as f32
        };
        let means: Vec<f32> = examples.iter().map(mean).collect();
        let means = Tensor::<1>::from_data(TensorData::from(means.as_slice()), &device);
        let distance = (self.labels.expected(log_probs) - means).abs().sum();
        Ok(entropy.mul_scalar(self.alpha) + distance.mul_scalar(1.0 - self.alpha))
    }
}
