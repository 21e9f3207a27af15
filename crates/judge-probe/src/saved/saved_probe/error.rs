//! Why bytes are no saved probe, or a probe does not belong to what it was given. Errors of a probe's parts are the crate's own.

use judge_core::{Layer, request::Signal};

/// Why bytes are no saved probe, or a saved probe is not to be used here.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SavedProbeError {
    /// A Python pickle, where a saved probe is wanted.
    #[error("a Python pickle, expected a saved probe: `SklearnProbe::into_saved` makes one of it")]
    Pickle,

    /// Bytes that are no saved probe, or one that was damaged, or of a version that is not read.
    #[error("{0}")]
    Content(String),

    /// A probe that does not fit the model, the features, the aspect or the calibrator that it is given.
    #[error("{0}")]
    Misfit(String),

    /// A calibrator that its own numbers contradict.
    #[error("calibrator: {0}")]
    Calibrator(judge_metrics::Error),
}

/// `last of layer 3, 5; mean of layer 3`: signals in the order of their first layer.
pub(super) fn listed(signals: &[(Layer, Signal)]) -> String {
    let mut by_signal: Vec<(Signal, Vec<String>)> = Vec::new();
    for &(Layer(layer), signal) in signals {
        match by_signal.iter_mut().find(|(known, _)| *known == signal) {
            Some((_, layers)) => layers.push(layer.to_string()),
            None => by_signal.push((signal, vec![layer.to_string()])),
        }
    }
    let parts = by_signal.iter().map(|(signal, layers)| format!("{} of layer {}", signal.as_str(), layers.join(", ")));
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() { "nothing".to_owned() } else { parts.join("; ") }
}

/// What to do where one fingerprint covers all bytes of the weights and the other a sample of them.
pub(super) fn cure(expected: &str, found: &str) -> &'static str {
    let covers_all = |fingerprint: &str| fingerprint.starts_with("full:");
    match (covers_all(expected), covers_all(found)) {
        (true, false) => "; the probe's covers all bytes of the weights: load the model with a full fingerprint",
        (false, true) => "; the probe's covers a sample of the weights: load the model without a full fingerprint",
        _ => "",
    }
}
