//! From graded prompts to a saved probe: splits, layer selection, fitting, and the comparison with what does not read the model.
//!
//! [`ProbeTraining`] holds the settings and [`ProbeTraining::train`] does the work. It needs no model: the rows are plain data
//! ([`GradedRow`]), and the features come from a [`RowSignals`], which a closure can be. What comes back is a [`TrainedProbe`]: the
//! [`SavedProbe`](crate::SavedProbe) with its provenance, and a [`TrainingReport`] in which held-out rows say whether the probe beats the
//! majority class, surface features, TF-IDF, and the model's own prompted score. Unless [`calibration`](ProbeTraining::calibration) is
//! turned off, the probe is kept with a calibrator that carries its numbers to the scale of the grades.
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use judge_core::{Layer, Prompt, request::Signal};
//! use judge_probe::training::{GradedRow, ProbeTraining, TrainingOrigin, View};
//! use judge_probe::{Error, Matrix, ProbedModel};
//!
//! # fn main() -> Result<(), Error> {
//! // 60 graded answers; the states of layer 1 tell the two grades apart, those of layer 0 do not.
//! let rows: Vec<GradedRow> = (0..60)
//!     .map(|i: u64| GradedRow {
//!         response: format!("Answer {}", i % 13),
//!         ..GradedRow::new(i, Prompt::user(format!("Grade answer {i}.")), [2.0, 4.0][usize::from(i % 3 == 0)])
//!     })
//!     .collect();
//! let states = |of: &[usize], layer: Layer, _: &[Signal]| -> Result<Matrix, Error> {
//!     Matrix::from_rows(of.iter().map(|&row| {
//!         let told = if layer == Layer(1) { rows[row].grade } else { 0.0 };
//!         [told + (row * row % 7) as f64 / 9.0, (row % 5) as f64]
//!     }))
//! };
//!
//! let training = ProbeTraining {
//!     layers: vec![Layer(0), Layer(1)],
//!     views: vec![View::Last],
//!     folds: 3,
//!     ..ProbeTraining::default()
//! };
//! let origin = TrainingOrigin {
//!     model: ProbedModel {
//!         name: "tiny".into(),
//!         revision: None,
//!         fingerprint: Some("5eed".into()),
//!         d_model: 2,
//!         n_heads: None,
//!     },
//!     aspect: "fluency".into(),
//!     template_id: None,
//!     notes: BTreeMap::new(),
//! };
//! let trained = training.train(&rows, &states, &origin)?;
//! assert_eq!(trained.report.chosen[0].layer, Layer(1));
//! assert_eq!(judge_core::inspector::Probe::classes(&trained.probe), [2, 4]);
//! let file: Vec<u8> = trained.probe.to_bytes()?;
//! # assert!(!file.is_empty());
//! # Ok(())
//! # }
//! ```

mod baselines;
mod calibration;
mod comparison;
mod error;
mod grading;
mod held_out;
mod parts;
mod predictions;
mod report;
mod rows;
mod scale;
mod settings;
mod train;
mod view;

pub use calibration::{HeldOutCalibration, ProbeCalibration};
pub use comparison::Outcome;
pub use error::TrainingError;
pub use grading::Grading;
pub(crate) use held_out::brief_or_null;
pub use held_out::{Agreement, Gain, HeldOut, OfProbability};
pub use report::{ChosenView, Evaluation, Selection, TrainingReport};
pub use rows::{GradedRow, RowSignals};
pub use scale::GradeScale;
pub use settings::{ProbeClassifier, ProbeTraining};
pub use train::{TrainedProbe, TrainingOrigin};
pub use view::View;
