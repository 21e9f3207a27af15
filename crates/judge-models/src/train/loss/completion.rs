//! Next tokens, each with a weight: what a judge writes.

use burn::tensor::{Int, Tensor, TensorData, activation};
use judge_core::request::TokenId;
use serde::Serialize;

use super::measure::Loss;
use crate::Error;
use crate::train::batch::Sequence;
use crate::train::check::{Limits, check_numbers, check_tokens};
use crate::train::error::{ExampleProblem, TrainError};
use crate::train::pass::Reads;

/// Weighted cross-entropy of each token given those before it, by the logits that text is generated from.
/// The count is the sum of weights, so with weights of 0 and 1 the loss is transformers' for completions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Completion;

/// A sequence to learn from: a prompt, and a completion whose tokens count.
#[derive(Clone, Debug, PartialEq)]
pub struct CompletionExample {
    /// The tokens: at least two, at most the model's context, all in the vocabulary.
    pub tokens: Vec<TokenId>,
    /// For each token how much its cross-entropy, given the tokens before it, counts. Finite and
    /// not negative, shape `[tokens.len()]`, one positive at least; nothing precedes the first token, so its
    /// weight is not used.
    pub weights: Vec<f32>,
}

impl CompletionExample {
    /// A prompt, which is not learnt, and a completion, each token of which is.
    #[must_use]
    pub fn new(prompt: &[TokenId], completion: &[TokenId]) -> Self {
        let weights = std::iter::repeat_n(0.0, prompt.len()).chain(std::iter::repeat_n(1.0, completion.len()));
        Self { tokens: [prompt, completion].concat(), weights: weights.collect() }
    }

    /// The tokens that count, with their places and weights.
    fn targets(&self) -> impl Iterator<Item = (usize, TokenId, f32)> {
        let all = self.tokens.iter().zip(&self.weights).enumerate().skip(1);
        all.map(|(at, (&token, &weight))| (at, token, weight)).filter(|target| target.2 > 0.0)
    }
}

impl Loss for Completion {
    type Example = CompletionExample;

    const NAME: &'static str = "completion";

    fn check(&self, _: Limits) -> Result<(), TrainError> {
        Ok(())
    }

    fn check_example(&self, example: &CompletionExample, limits: Limits) -> Result<(), ExampleProblem> {
        check_tokens(&example.tokens, 2, limits)?;
        check_numbers("weights", &example.weights, example.tokens.len())?;
        if example.targets().next().is_none() { Err(ExampleProblem::Nothing) } else { Ok(()) }
    }

    fn sequences<'e>(&self, example: &'e CompletionExample) -> Vec<Sequence<'e>> {
        // A token is predicted at the place before it.
        let places = example.targets().map(|(at, ..)| at - 1).collect();
        vec![Sequence { tokens: &example.tokens, types: &[], places }]
    }

    fn count(&self, example: &CompletionExample) -> f64 {
        example.targets().map(|target| f64::from(target.2)).sum()
    }

    fn sum(&self, reads: &Reads, examples: &[CompletionExample]) -> Result<Tensor<1>, Error> {
        let log_probs = activation::log_softmax(reads.logits()?, 1); // [places, d_vocab]
        let [places, _] = log_probs.dims();
        let device = log_probs.device();
        let targets = || examples.iter().flat_map(CompletionExample::targets);
        let tokens: Vec<i64> = targets().map(|target| i64::from(target.1)).collect();
        let weights: Vec<f32> = targets().map(|target| target.2).collect();
        let tokens = Tensor::<2, Int>::from_data(TensorData::new(tokens, [places, 1]), &device);
        let weights = Tensor::<2>::from_data(TensorData::new(weights, [places, 1]), &device);
        Ok((log_probs.gather(1, tokens) * weights).sum().neg())
    }
}
