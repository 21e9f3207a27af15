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

    fn classify(&self, features: &[f32]) -> Result<ProbeOutput, ProbeError> {
        let row = F32Rows::new(features, features.len())?.to_matrix();
        let predicted = self.probe().predict(&row)?;
        let class = self.classes().iter().position(|class| predicted.first() == Some(class));
        let number = self.probe().scores(&row)?.and_then(|scores| scores.first().copied());
        let calibrated = self.calibrator().zip(number).map(|(calibrator, number)| calibrator.calibrate(number));
        let probabilities = self.probe().predict_proba(&row)?;
        Ok(ProbeOutput {
            probabilities: probabilities.map(|matrix| matrix.values().to_vec()),
            // Where there are probabilities the class is the judge's value, as it is in INSPECTOR.
            number: number.filter(|_| self.probe().classifier().rule() == DecisionRule::Nearest),
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
