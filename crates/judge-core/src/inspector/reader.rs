//! A probe before a model: what it reads of a pass, and what it makes of that.

use std::fmt;
use std::sync::Arc;

use super::{Probe, ProbeOutput};
use crate::{Error, Layer, ModelInfo, Reading, request::Signal, testing::ContractBreach};

/// A probe whose signals a model has.
#[derive(Clone)]
pub(crate) struct ProbeReader {
    probe: Arc<dyn Probe>,
    /// How many numbers each of its signals is.
    widths: Vec<usize>,
}

impl fmt::Debug for ProbeReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProbeReader").field("signals", &self.probe.signals()).finish_non_exhaustive()
    }
}

impl ProbeReader {
    /// A probe for one model.
    ///
    /// # Errors
    /// [`Error::ProbeRefused`] if the probe belongs to another model; [`Error::ProbeSignals`] if it reads nothing, a layer that the model
    /// does not have, the attention of the embeddings, or a signal twice.
    pub(crate) fn new(probe: Arc<dyn Probe>, model: &ModelInfo) -> Result<Self, Error> {
        probe.check_model(model).map_err(|source| Error::ProbeRefused { model: model.name.clone(), source })?;
        let signals = probe.signals();
        let once = (1..signals.len()).all(|i| !signals[..i].contains(&signals[i]));
        let there = |&(layer, signal): &(Layer, Signal)| {
            layer.0 <= model.n_layers && (layer, signal) != (Layer(0), Signal::AttentionEntropy)
        };
        if signals.is_empty() || !once || !signals.iter().all(there) {
            return Err(Error::ProbeSignals { signals: signals.to_vec(), n_layers: model.n_layers });
        }
        let widths = signals.iter().map(|&(_, signal)| model.width(signal)).collect();
        Ok(Self { probe, widths })
    }

    /// The probe.
    pub(crate) fn probe(&self) -> &Arc<dyn Probe> {
        &self.probe
    }

    /// Whether the probe reads a text that is written.
    pub(crate) fn reads_reply(&self) -> bool {
        self.probe.signals().iter().any(|(_, signal)| signal.is_of_reply())
    }

    /// What the probe says of a reading, which was asked for its signals; `None` if the text that was written lacks one, such as the end of a
    /// thought.
    ///
    /// # Errors
    /// [`Error::Contract`] if a signal of the prompt is not there, or one has another width; [`Error::Probe`] if the probe fails.
    pub(crate) fn classify(&self, reading: &Reading) -> Result<Option<ProbeOutput>, Error> {
        let mut features = Vec::with_capacity(self.widths.iter().sum());
        for (&(layer, signal), &expected) in self.probe.signals().iter().zip(&self.widths) {
            let values = match (reading.signal(layer, signal), signal) {
                (None, Signal::Reply(_)) => return Ok(None),
                (values, _) => values.unwrap_or_default(),
            };
            if values.len() != expected {
                let what = match signal {
                    Signal::State(_) => "a pooled state",
                    Signal::Reply(_) => "a state of the reply",
                    Signal::AttentionEntropy => "an attention entropy",
                };
                return Err(ContractBreach::Shape { what, expected, found: values.len() }.into());
            }
            features.extend_from_slice(values);
        }
        self.probe.classify(&features).map(Some).map_err(|source| Error::Probe { source })
    }
}
