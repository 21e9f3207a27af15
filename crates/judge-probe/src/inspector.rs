//! Saved probes as the judges of `judge-core` use them: one row of single-precision features at a time, with the calibration that was
//! saved.
//!
//! Which features a judge collects, and from which layers, follows from [`Probe::signals`]; collecting them is the judge's. Pickles of
//! INSPECTOR's are read in `sklearn_import`.

use judge_core::{
    Layer, ModelInfo,
    inspector::{Probe, ProbeError, ProbeOutput},
    request::Signal,
    verdict::Calibration,
};
use judge_metrics::calibration::CalibratedScore;
use serde_json::{Value, json};

use crate::{DecisionRule, F32Rows, FittedClassifier, FittedEstimator, SavedProbe};

impl Probe for SavedProbe {
    /// The order is that of the features of a row.
    fn signals(&self) -> &[(Layer, Signal)] {
        &self.origin().signals
    }

    /// Ascending. A position in the output's probabilities is one in this list.
    fn classes(&self) -> &[i64] {
        self.probe().classes()
    }

    /// By fingerprint and shape; a probe without a fingerprint is refused until a person has bound it.
    fn check_model(&self, model: &ModelInfo) -> Result<(), ProbeError> {
        Ok(Self::check_model(self, model)?)
    }

    /// The class, and the three things that may be known besides: probabilities, a regression's number, and what the saved calibrator makes
    /// of the [number](crate::FittedProbe::scores). Each comes from the same row in double precision, so that a judge says to the bit what
    /// the library says.
    ///
    /// `features` is one row, `[n_features]`. Widening to double precision is exact. Where two classes tie, the rule of the classifier
    /// decides, as in [`FittedEstimator::predict`].
    ///
    /// # Errors
    ///
    /// [`crate::Error::NonFiniteFeature`], [`crate::Error::FeatureCount`] and [`crate::Error::Empty`] for the row, inside a
    /// [`ProbeError`].
    fn classify(&self, features: &[f32]) -> Result<ProbeOutput, ProbeError> {
        let row = F32Rows::new(features, features.len())?.to_matrix();
        let predictions = self.probe().predictions(&row)?;
        let class = self.classes().iter().position(|class| predictions.labels.first() == Some(class));
        let first = |numbers: Option<Vec<f64>>| numbers.and_then(|numbers| numbers.first().copied());
        // Where there are probabilities the class is the judge's value, as it is in INSPECTOR.
        let (number, to_calibrate) = if self.probe().classifier().rule() == DecisionRule::Nearest {
            let number = first(self.probe().scores(&row)?);
            (number, number)
        } else {
            (None, first(predictions.expected_classes()))
        };
        let calibrated = self.calibrator().zip(to_calibrate).map(|(calibrator, number)| calibrator.calibrate(number));
        Ok(ProbeOutput {
            probabilities: predictions.probabilities.map(|table| table.probabilities().values().to_vec()),
            number,
            calibrated: calibrated.transpose()?.map(|CalibratedScore { value, interval }| Calibration {
                value,
                low: interval.low,
                high: interval.high,
                level: interval.level,
            }),
            ..ProbeOutput::new(class.ok_or("the probe predicts a class that it does not have")?)
        })
    }

    /// The hash of its file.
    fn settings(&self) -> Option<Value> {
        Some(json!({"blake3": blake3::hash(&self.to_bytes().ok()?).to_hex().to_string()}))
    }
}
