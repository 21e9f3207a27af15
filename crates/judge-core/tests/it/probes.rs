//! A probe for judges to read with.

use judge_core::{
    Layer, ModelInfo,
    inspector::{Probe, ProbeError, ProbeOutput},
    request::Signal,
};
use serde_json::Value;

/// A probe for any model, whose output is what its function makes of the features.
pub(crate) struct Saying<F> {
    pub(crate) signals: Vec<(Layer, Signal)>,
    pub(crate) classes: Vec<i64>,
    pub(crate) settings: Option<Value>,
    pub(crate) output: F,
}

impl<F: Fn(&[f32]) -> ProbeOutput + Send + Sync> Probe for Saying<F> {
    fn signals(&self) -> &[(Layer, Signal)] {
        &self.signals
    }

    fn classes(&self) -> &[i64] {
        &self.classes
    }

    fn check_model(&self, _: &ModelInfo) -> Result<(), ProbeError> {
        Ok(())
    }

    fn classify(&self, features: &[f32]) -> Result<ProbeOutput, ProbeError> {
        Ok((self.output)(features))
    }

    fn settings(&self) -> Option<Value> {
        self.settings.clone()
    }
}
