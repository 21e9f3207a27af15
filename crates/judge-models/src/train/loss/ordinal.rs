//! A class of an ordered scale at the end of a prompt, by a score head with one label for each step between two classes.

use burn::tensor::{Tensor, TensorData, activation};
use serde::Serialize;

use super::class::ClassExample;
use super::measure::Loss;
use crate::Error;
use crate::train::batch::Sequence;
use crate::train::check::Limits;
use crate::train::error::{ExampleProblem, TrainError};
use crate::train::pass::Reads;

/// Label `k` of the score head is the logit of "the class is above `k`" (Frank and Hall 2001, A simple approach to ordinal
/// classification). The loss is the sum over these `classes - 1` questions of their binary cross-entropy:
///
/// ```text
/// Σ_k -ln σ(z_k) where class > k, -ln σ(-z_k) elsewhere
/// ```
///
/// So a class that is far off costs more than its neighbour, which [`Class`](super::Class) does not know. The expected
/// value is the lowest one plus `Σ_k σ(z_k) * step_k`. The questions are independent of one another: nothing makes
/// `σ(z_k)` fall with `k`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ordinal {
    /// How many classes there are, at least two, in ascending order.
    pub classes: usize,
}

impl Loss for Ordinal {
    type Example = ClassExample;

    const NAME: &'static str = "ordinal";

    fn score_labels(&self) -> Option<usize> {
        Some(self.classes.saturating_sub(1))
    }

    fn check(&self, _: Limits) -> Result<(), TrainError> {
        match self.classes {
            0 | 1 => Err(TrainError::setting("ordinal.classes", self.classes, "at least 2")),
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
        let logits = reads.scores()?; // [examples, classes - 1]
        let steps = 0..self.classes - 1;
        let sign = |example: &ClassExample, step: usize| if example.class > step { 1.0 } else { -1.0 };
        let signs: Vec<f32> =
            examples.iter().flat_map(|example| steps.clone().map(move |step| sign(example, step))).collect();
        let signs = Tensor::<2>::from_data(TensorData::new(signs, logits.dims()), &logits.device());
        Ok(activation::log_sigmoid(logits * signs).sum().neg())
    }
}
