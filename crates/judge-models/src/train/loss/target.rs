//! What raters say: a distribution over labels.

use crate::train::check::check_numbers;
use crate::train::error::ExampleProblem;

/// How far the sum of a target's probabilities may be from 1.
const TOLERANCE: f64 = 1e-4;

/// Whether a target has a probability for each of so many labels, and they add up to 1.
pub(super) fn check_target(target: &[f32], labels: usize) -> Result<(), ExampleProblem> {
    check_numbers("probabilities", target, labels)?;
    let sum: f64 = target.iter().map(|&p| f64::from(p)).sum();
    match (sum - 1.0).abs() > TOLERANCE {
        true => Err(ExampleProblem::value("the sum of the target's probabilities", sum, 1)),
        false => Ok(()),
    }
}
