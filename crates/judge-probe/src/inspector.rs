//! Saved probes as the judges of `judge-core` use them.

use judge_core::{Layer, ModelInfo, Probe, ProbeError, ProbeOutput, Signal};

use crate::{FittedClassifier, FittedEstimator, Matrix, SavedProbe};

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
        let row = Matrix::from_rows([features.iter().map(|&x| f64::from(x)).collect::<Vec<_>>()])?;
        let predicted = self.probe().predict(&row)?;
        let class = self.classes().iter().position(|class| predicted.first() == Some(class));
        let probabilities = self.probe().predict_proba(&row)?;
        Ok(ProbeOutput {
            class: class.ok_or("the probe predicts a class that it does not have")?,
            probabilities: probabilities.map(|matrix| matrix.values().to_vec()),
        })
    }
}
