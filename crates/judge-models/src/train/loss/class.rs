//! A class at the end of a prompt, by a score head.

use burn::tensor::{Int, Tensor, TensorData, activation};
use judge_core::request::TokenId;
use serde::Serialize;

use super::measure::Loss;
use crate::Error;
use crate::train::batch::Sequence;
use crate::train::check::{Limits, check_tokens, check_types};
use crate::train::error::{ExampleProblem, TrainError};
use crate::train::pass::Reads;

/// Cross-entropy over the labels of a score head: that of transformers' sequence classifiers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Class {
    /// How many classes there are, at least two.
    pub classes: usize,
}

/// A prompt, of which the class is read: at its end by a decoder, where its head says by an encoder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassExample {
    /// The tokens of the prompt: at least one, at most the model's context, all in the vocabulary.
    pub prompt: Vec<TokenId>,
    /// The type of each token, as [`Model::token_types`](crate::Model::token_types) gives them: BERT's of a pair of
    /// texts. Empty where all are 0, and for all other models.
    pub types: Vec<u32>,
    /// The class, from 0.
    pub class: usize,
}

impl ClassExample {
    /// Whether it is an example of so many classes, for the model.
    pub(super) fn check(&self, classes: usize, limits: Limits) -> Result<(), ExampleProblem> {
        check_tokens(&self.prompt, 1, limits)?;
        check_types(&self.types, self.prompt.len(), limits)?;
        match self.class < classes {
            true => Ok(()),
            false => Err(ExampleProblem::value("the class", self.class, format!("one below the head's {classes}"))),
        }
    }

    /// Its text, read at its end.
    pub(super) fn sequence(&self) -> Sequence<'_> {
        Sequence { types: &self.types, ..Sequence::read_at_end(&self.prompt) }
    }
}

impl Loss for Class {
    type Example = ClassExample;

    const NAME: &'static str = "class";

    fn score_labels(&self) -> Option<usize> {
        Some(self.classes)
    }

    fn check(&self, _: Limits) -> Result<(), TrainError> {
        match self.classes {
            0 | 1 => Err(TrainError::setting("class.classes", self.classes, "at least 2")),
            _ => Ok(()),
        }
    }

    fn check_example(&self, example: &ClassExample, limits: Limits) -> Result<(), ExampleProblem> {
        example.check(self.classes, limits)
    }

    fn sequences<'e>(&self, example: &'e ClassExample) -> Vec<Sequence<'e>> {
        vec![example.sequence()]
    }

    fn sum(&self, reads: &Reads, examples: &[ClassExample]) -> Result<Tensor<1>, Error> {
        let log_probs = activation::log_softmax(reads.scores()?, 1); // [examples, classes]
        let classes: Vec<i64> = examples.iter().map(|example| example.class as i64).collect();
        let classes = TensorData::new(classes, [examples.len(), 1]);
        let classes = Tensor::<2, Int>::from_data(classes, &log_probs.device());
        Ok(log_probs.gather(1, classes).sum().neg())
    }
}
