//! Why bytes are no saved probe, or a probe does not belong to what it was given. Errors of a probe's parts are the crate's own.

use judge_core::{Layer, request::Signal};

use crate::DecisionRule;

/// Why bytes are no saved probe, or a saved probe is not to be used here.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SavedProbeError {
    /// Bytes that are no safetensors file.
    #[error("{n_bytes} bytes that are no safetensors file: {reason}")]
    Container {
        /// How many.
        n_bytes: usize,
        /// What the container's reader says.
        reason: String,
    },

    /// A Python pickle, where a saved probe is wanted.
    #[error("a Python pickle, expected a saved probe: `SklearnProbe::into_saved` makes one of it")]
    Pickle,

    /// A safetensors file of something else, such as a model or a table of states.
    #[error("the safetensors file is no saved probe: it has no metadata entry {name:?}")]
    NotAProbe {
        /// The entry of a probe.
        name: &'static str,
    },

    /// A description that is not the JSON expected.
    #[error("description, line {line}, column {column}: {reason}")]
    Description {
        /// Line of the entry's text, from 1.
        line: usize,
        /// Column in it, from 1.
        column: usize,
        /// What the parser says.
        reason: String,
    },

    /// A later or unknown version of the format.
    #[error("format version {expected} is read, found {found}")]
    Version {
        /// The version read.
        expected: u32,
        /// The version of the file.
        found: u32,
    },

    /// Bytes other than those that were saved.
    #[error("the content does not match its checksum")]
    Checksum,

    /// A tensor that is not there.
    #[error("there is no tensor {name:?}")]
    MissingTensor {
        /// Its name.
        name: String,
    },

    /// A tensor that does not belong.
    #[error("unknown tensor {name:?}")]
    UnknownTensor {
        /// Its name.
        name: String,
    },

    /// A tensor of another type or shape.
    #[error("tensor {name:?} should be {expected}, found {found}")]
    Tensor {
        /// Its name.
        name: String,
        /// Type and shape that fit the rest.
        expected: String,
        /// Type and shape it has.
        found: String,
    },

    /// Signals that do not make up a row of features: none, too many or too few, or heads of which it is not known how many there are.
    #[error(
        "{} cannot be {n_features} features: a state of the model has {d_model} coordinates{}",
        listed(signals), heads(*n_heads)
    )]
    Width {
        /// What stands side by side.
        signals: Vec<(Layer, Signal)>,
        /// Width of a state.
        d_model: usize,
        /// Heads of a block.
        n_heads: Option<usize>,
        /// Features that the classifier knows.
        n_features: usize,
    },

    /// A signal that appears twice.
    #[error("{} of {layer} appears twice", signal.as_str())]
    DuplicateSignal {
        /// Its layer.
        layer: Layer,
        /// What of it.
        signal: Signal,
    },

    /// A model other than the one the probe was fitted on.
    #[error("fitted on {name} with fingerprint {expected}, found {found}{}", cure(expected, found))]
    OtherModel {
        /// Name of the model it was fitted on.
        name: String,
        /// Its fingerprint.
        expected: String,
        /// The fingerprint of the model given.
        found: String,
    },

    /// A probe that does not say which weights it was fitted on; [`SavedProbe::bound_to`](super::SavedProbe::bound_to) lets a person
    /// decide.
    #[error("the probe names its model ({name}) but has no fingerprint to compare")]
    UnknownModel {
        /// The name it gives.
        name: String,
    },

    /// A model of another shape than the probe's.
    #[error("the probe needs {expected} {what}, the model has {found}")]
    ModelShape {
        /// What is counted.
        what: &'static str,
        /// What the probe needs.
        expected: usize,
        /// What the model has.
        found: usize,
    },

    /// Features of other layers or signals, or in another order.
    #[error("fitted on {}, found {}", in_order(expected), in_order(found))]
    OtherSignals {
        /// What the probe was fitted on.
        expected: Vec<(Layer, Signal)>,
        /// What was offered.
        found: Vec<(Layer, Signal)>,
    },

    /// Features that do not include what the probe reads.
    #[error("the probe reads {}, which is not there: found {}", listed(missing), listed(found))]
    MissingSignals {
        /// What the probe reads and is not offered.
        missing: Vec<(Layer, Signal)>,
        /// What was offered.
        found: Vec<(Layer, Signal)>,
    },

    /// A pickle that does not say where its features come from, and nobody else who does.
    #[error("the pickle does not say {missing}, so it cannot be saved for use on a model unless you name it")]
    NoOrigin {
        /// What is not known.
        missing: &'static str,
    },

    /// Another aspect than the pickle's own.
    #[error("the pickle judges {expected:?}, found {found:?}")]
    OtherAspect {
        /// The aspect that the pickle names.
        expected: String,
        /// The aspect given.
        found: String,
    },

    /// A calibrator that its own numbers contradict.
    #[error("calibrator: {0}")]
    Calibrator(judge_metrics::Error),

    /// A calibrator for a probe without a number to calibrate.
    #[error("a calibrator needs a probe whose score is a number: this one knows classes alone, without probabilities")]
    NothingToCalibrate {
        /// How the probe decides.
        rule: DecisionRule,
    },

    /// A number of the description that is not finite.
    #[error("{name} is {value}")]
    NonFinite {
        /// What it is.
        name: &'static str,
        /// The number.
        value: f64,
    },
}

/// `last of layer 3, 5; mean of layer 3`: signals in the order of their first layer.
fn listed(signals: &[(Layer, Signal)]) -> String {
    let mut by_signal: Vec<(Signal, Vec<String>)> = Vec::new();
    for &(Layer(layer), signal) in signals {
        match by_signal.iter_mut().find(|(known, _)| *known == signal) {
            Some((_, layers)) => layers.push(layer.to_string()),
            None => by_signal.push((signal, vec![layer.to_string()])),
        }
    }
    let parts: Vec<String> = by_signal
        .into_iter()
        .map(|(signal, layers)| {
            let word = signal.as_str();
            format!("{word} of layer {}", layers.join(", "))
        })
        .collect();
    if parts.is_empty() { "nothing".to_owned() } else { parts.join("; ") }
}

/// `last of layer 3, mean of layer 3`: each signal in its place.
fn in_order(signals: &[(Layer, Signal)]) -> String {
    let parts: Vec<String> = signals.iter().map(|(layer, signal)| format!("{} of {layer}", signal.as_str())).collect();
    if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
}

/// How wide attention entropies are, where it is known.
fn heads(n_heads: Option<usize>) -> String {
    n_heads.map_or_else(String::new, |n_heads| format!(", and a block {n_heads} heads"))
}

/// What to do where one fingerprint covers all bytes of the weights and the other a sample of them.
fn cure(expected: &str, found: &str) -> &'static str {
    let covers_all = |fingerprint: &str| fingerprint.starts_with("full:");
    match (covers_all(expected), covers_all(found)) {
        (true, false) => "; the probe's covers all bytes of the weights: load the model with a full fingerprint",
        (false, true) => "; the probe's covers a sample of the weights: load the model without a full fingerprint",
        _ => "",
    }
}
