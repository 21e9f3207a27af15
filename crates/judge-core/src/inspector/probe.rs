use std::error::Error as StdError;

use serde_json::Value;

use crate::{Layer, ModelInfo, request::Signal, verdict::Calibration};

/// A classifier over pooled states and attention entropies of one model, as an [`InspectorJudge`](crate::inspector::InspectorJudge) uses
/// it. `judge-probe` has them, fitted here or imported from scikit-learn.
pub trait Probe: Send + Sync {
    /// What stands side by side in its features, in this order; each once, at least one.
    fn signals(&self) -> &[(Layer, Signal)];

    /// The classes that it tells apart, ascending; two or more.
    fn classes(&self) -> &[i64];

    /// Refuses a model whose states it was not fitted on.
    ///
    /// # Errors
    /// What differs.
    fn check_model(&self, model: &ModelInfo) -> Result<(), ProbeError>;

    /// What it says of one item, from its signals side by side: `d_model` numbers for each state, `n_heads` for each attention entropy. It
    /// depends on nothing else.
    ///
    /// # Errors
    /// If the features are not as many as it was fitted on, or leave the range of its numbers.
    fn classify(&self, features: &[f32]) -> Result<ProbeOutput, ProbeError>;

    /// Everything that its output depends on besides the features, as JSON, or a hash of it;
    /// see [`Judge::settings`](crate::Judge::settings). `None`, the default, is
    /// of a probe that does not say.
    fn settings(&self) -> Option<Value> {
        None
    }
}

/// Why a [`Probe`] refuses a model or features; the implementation's own error.
///
/// `?` does not turn a box into another one: where a function returns `Box<dyn Error>` and not `Box<dyn Error + Send + Sync>`, write
/// `.map_err(|error| error as Box<dyn Error>)?`.
///
/// ```
/// use std::error::Error;
/// use judge_core::inspector::{Probe, ProbeOutput};
///
/// fn of_zeros(probe: &dyn Probe) -> Result<ProbeOutput, Box<dyn Error>> {
///     Ok(probe.classify(&[0.0; 8]).map_err(|error| error as Box<dyn Error>)?)
/// }
/// ```
pub type ProbeError = Box<dyn StdError + Send + Sync>;

/// What a [`Probe`] says of one item. Made with [`new`](Self::new), and the fields that the probe knows filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeOutput {
    /// Position of the predicted class among [`Probe::classes`].
    pub class: usize,
    /// The probability of each class, if the probe knows probabilities; a support vector machine does not.
    pub probabilities: Option<Vec<f64>>,
    /// The number on the scale of the classes that a regression predicts, of which the class is only the nearest.
    /// `None` for a classifier, whose number is the class itself. Finite.
    pub number: Option<f64>,
    /// What people would say of the item, by a calibrator that was saved with the probe.
    /// The probe calibrates what it knows best, such as the mean of the classes
    /// under their probabilities, and not the class: nothing outside it needs to know which.
    pub calibrated: Option<Calibration>,
}

impl ProbeOutput {
    /// A class of which nothing else is known.
    #[must_use]
    pub fn new(class: usize) -> Self {
        Self { class, probabilities: None, number: None, calibrated: None }
    }
}
