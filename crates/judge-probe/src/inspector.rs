//! Saved probes as the judges of `judge-core` use them: one row of single-precision features at a time, with the calibration that was saved.

use judge_core::{Calibration, Layer, ModelInfo, Probe, ProbeError, ProbeOutput, Signal};
use judge_metrics::calibration::CalibratedScore;

use crate::{DecisionRule, F32Rows, FittedClassifier, FittedEstimator, SavedProbe};

impl Probe for SavedProbe {
    fn signals(&self) -> &[(Layer, Signal)] {
        &self.origin().signals
    }

    fn classes(&self) -> &[i64] {
        self.probe().classes()
    }

    fn check_model(&self, model: &ModelInfo) -> Result<(), ProbeError> {
        Ok(Self::check_model(self, model)?)
    }

    /// The class, and the three things that may be known besides: probabilities, a regression's number, and what the saved calibrator makes of the
    /// [number](crate::FittedProbe::scores). Each comes from the same row in double precision, so that a judge says to the bit what the library says.
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
}
