//! Which of two answers is better, by a reward of each: the model of Bradley and Terry (1952).

use burn::tensor::{Tensor, TensorData, activation};
use judge_core::request::TokenId;
use serde::Serialize;

use super::labels::{Labels, ReadFrom};
use super::measure::Loss;
use crate::Error;
use crate::train::batch::Sequence;
use crate::train::check::{Limits, check_tokens};
use crate::train::error::{ExampleProblem, TrainError};
use crate::train::pass::Reads;

/// `-ln σ(better - worse - margin) + centring * (better + worse)²`, the loss of TRL's reward models.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BradleyTerry {
    /// What the reward of an answer is.
    pub reward: Reward,
    /// Keeps rewards around 0; not negative, 0 for none. TRL recommends 0.01 on a score head.
    pub centring: f64,
}

/// What the reward of an answer is, at the end of its prompt.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reward {
    /// The one number of a score head.
    Score,
    /// The expected mark.
    Expected(Labels),
}

/// Two prompts of which the answer in the first is better.
#[derive(Clone, Debug, PartialEq)]
pub struct PairExample {
    /// The tokens with the better answer: at least one, at most the model's context.
    pub better: Vec<TokenId>,
    /// Those with the worse answer.
    pub worse: Vec<TokenId>,
    /// By how much the rewards should differ at least; 0 where nothing is known.
    pub margin: f32,
}

impl Loss for BradleyTerry {
    type Example = PairExample;

    const NAME: &'static str = "bradley_terry";

    fn score_labels(&self) -> Option<usize> {
        (self.reward == Reward::Score).then_some(1)
    }

    fn check(&self, limits: Limits) -> Result<(), TrainError> {
        if !(self.centring >= 0.0 && self.centring.is_finite()) {
            return Err(TrainError::setting("bradley_terry.centring", self.centring, "0 or a positive number"));
        }
        match &self.reward {
            Reward::Score if limits.types > 0 => {
                let expected = "a model that does not tell the two texts of a pair apart by types; use Class";
                Err(TrainError::setting("bradley_terry.reward", "score", expected))
            }
            Reward::Score => Ok(()),
            Reward::Expected(labels) => labels.check(limits),
        }
    }

    fn check_example(&self, example: &PairExample, limits: Limits) -> Result<(), ExampleProblem> {
        check_tokens(&example.better, 1, limits)?;
        check_tokens(&example.worse, 1, limits)?;
        match example.margin.is_finite() {
            true => Ok(()),
            false => Err(ExampleProblem::value("the margin", example.margin, "a finite number")),
        }
    }

    fn read_from(&self) -> Option<&ReadFrom> {
        match &self.reward {
            Reward::Score => None,
            Reward::Expected(labels) => Some(&labels.from),
        }
    }

    fn sequences<'e>(&self, example: &'e PairExample) -> Vec<Sequence<'e>> {
        [&example.better, &example.worse].map(|prompt| Sequence::read_at_end(prompt)).into()
    }

    fn sum(&self, reads: &Reads, examples: &[PairExample]) -> Result<Tensor<1>, Error> {
        let n = examples.len();
        let rewards = match &self.reward {
            Reward::Score => reads.scores()?,
            Reward::Expected(labels) => labels.expected(labels.log_probs(reads)?).reshape([2 * n, 1]),
        };
        let rewards = rewards.reshape([n, 2]); // [better, worse] of each example
        let [better, worse] = [0, 1].map(|column| rewards.clone().narrow(1, column, 1).reshape([n]));
        let margins: Vec<f32> = examples.iter().map(|example| example.margin).collect();
        let margins = Tensor::<1>::from_data(TensorData::from(margins.as_slice()), &better.device());
        let loss = activation::log_sigmoid(better.clone() - worse.clone() - margins).sum().neg();
        if self.centring == 0.0 {
            return Ok(loss);
        }
        Ok(loss + (better + worse).square().sum().mul_scalar(self.centring))
    }
}
