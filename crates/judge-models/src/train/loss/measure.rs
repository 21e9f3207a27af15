//! What a loss is to the trainer.

use std::fmt::Debug;

use burn::tensor::Tensor;
use judge_core::Layer;
use serde::Serialize;

use super::labels::ReadFrom;
use crate::Error;
use crate::train::batch::Sequence;
use crate::train::check::Limits;
use crate::train::error::{ExampleProblem, TrainError};
use crate::train::pass::Reads;

/// A loss: its settings, and what an example of it is. The losses of this module are all that there are; what the
/// trainer asks them for is not for use outside of this crate.
pub trait Loss: Clone + Debug + Serialize + Send + Sync {
    /// What is learnt from.
    type Example: Send + Sync;

    /// Its name in checkpoints.
    const NAME: &'static str;

    /// The labels of the score head that it reads; `None`, the default, if it reads the head over the vocabulary.
    fn score_labels(&self) -> Option<usize> {
        None
    }

    /// Whether its settings are in range and fit the model.
    fn check(&self, limits: Limits) -> Result<(), TrainError>;

    /// Whether an example is one, for the model.
    fn check_example(&self, example: &Self::Example, limits: Limits) -> Result<(), ExampleProblem>;

    /// Where it reads labels; `None` for a loss that reads none, or a score head.
    fn read_from(&self) -> Option<&ReadFrom> {
        None
    }

    /// The layers that it reads besides the last.
    fn layers(&self) -> Vec<Layer> {
        self.read_from().map(ReadFrom::layers).unwrap_or_default()
    }

    /// The sequences of an example, each of which is read somewhere.
    fn sequences<'e>(&self, example: &'e Self::Example) -> Vec<Sequence<'e>>;

    /// What an example adds to the count: 1 unless the loss says otherwise. Positive.
    fn count(&self, _: &Self::Example) -> f64 {
        1.0
    }

    /// The sum over examples, `[1]`, of what was read at the places of their sequences.
    ///
    /// # Errors
    /// Those of reading a head that is not there.
    fn sum(&self, reads: &Reads, examples: &[Self::Example]) -> Result<Tensor<1>, Error>;
}
