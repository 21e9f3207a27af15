//! Which reading of a model agrees best with people, found on rows that they graded.
//!
//! The same pass over the same prompts can be read in many ways: the score at the last layer, at another, at all of them with learnt weights,
//! by a probe. [`Trial::compare`] puts them side by side on the same rows. Whatever a reading learns or chooses, it does so on rows that it is
//! not judged by; intervals hold for all readings together; and the reading that is recommended is the simplest that is shown to agree with
//! people and not shown to be worse than the best.
//!
//! ```
//! use judge_core::{Layer, request::Signal};
//! use judge_probe::trial::{ReadAs, Reading, Trial};
//! use judge_probe::{Error, Matrix};
//!
//! # fn main() -> Result<(), Error> {
//! // 120 graded rows. The last layer's score follows people with noise; layer 1 of the states has it exactly.
//! let grades: Vec<f64> = (0..120).map(|row| 1.0 + f64::from(row * 7 % 5)).collect();
//! let noise = |row: usize| (row * row % 11) as f64 / 2.0;
//! let states = |rows: &[usize], layer: Layer, _: &[Signal]| -> Result<Matrix, Error> {
//!     let told = |row: usize| if layer == Layer(1) { grades[row] } else { 0.0 };
//!     Matrix::from_rows(rows.iter().map(|&row| [told(row), noise(row)]))
//! };
//! let trial = Trial::new(grades.clone());
//! let found = trial.compare(&[
//!     Reading::new("last layer", ReadAs::Plain((0..120).map(|row| grades[row] + noise(row)).collect())),
//!     Reading::new("probe", ReadAs::Probe { layers: vec![Layer(0), Layer(1)], signals: &states }),
//! ])?;
//! assert_eq!(found.recommended, Some(1));
//! assert!(found.readings[1].agreement.estimate() > Some(0.9));
//! # Ok(())
//! # }
//! ```

mod compared;
mod error;
mod out_of_fold;
mod reading;
mod rows;
#[cfg(test)]
mod tests;
mod worth;

pub use compared::{BestOfAnswers, ByLabels, Compared, Measure, Tried};
pub use error::TrialError;
pub use out_of_fold::Kept;
pub use reading::{ReadAs, Reading, SIGNAL};
pub use rows::Trial;
