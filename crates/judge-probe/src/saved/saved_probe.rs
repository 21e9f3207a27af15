//! Probes in a file: how they are written and read, what they belong to, and the calibrator that goes with them.

mod calibrator;
mod container;
mod error;
mod stages;
mod tensors;

use std::collections::{BTreeMap, HashSet};

use judge_core::{Layer, ModelInfo, model::same_fingerprint, request::Signal};
use judge_metrics::calibration::FittedCalibrator;
use serde::{Deserialize, Serialize};

pub use error::SavedProbeError;
use error::{cure, listed};

use crate::{Error, FittedEstimator, FittedProbe};

/// A probe and what it belongs to.
///
/// # Format
///
/// One safetensors file. Its tensors are the numbers, bit by bit: `coefficients` `[n_functions, n_features]`, `intercepts` `[n_functions]`,
/// of hidden layer i, counted from 0, `hidden.i.weights` `[n_units, n_inputs]` and `hidden.i.intercepts` `[n_units]`, and of transformer i
/// `stages.i.mean` and `stages.i.scale` `[n_features]` if it is a scaler, or `stages.i.mean`, `stages.i.components` `[n_components,
/// n_features]`, `stages.i.explained_variance` and `stages.i.explained_variance_ratio` `[n_components]` if it is a PCA, which in block j of
/// blocks are `stages.i.j.mean` and so on; all `F64`; and `checksum`, the BLAKE3 hash of everything else, which finds damage and proves no
/// author. Its one metadata entry, `judge_probe`, is JSON: the format's version, the decision rule, classes, precision, transformers and
/// number of hidden layers, and the [`ProbeOrigin`]. A second file beside it could be lost or swapped; numbers in JSON would be larger and
/// slower to read.
///
/// A [calibrator](Self::with_calibrator) adds `calibrator.x` and `calibrator.y`, the thresholds of all its curves and their values,
/// `calibrator.errors`, the errors of all folds, one list after another as the description divides them, and for grades `calibrator.shares`
/// `[n_folds + 1, n_grades]`.
///
/// The version written is 2, and with a calibrator 3, which readers of version 2 refuse by its number. Version 1, whose only transformer is
/// a scaler with tensors `mean` and `scale`, is still read.
///
/// Equal probes have equal bytes. What writes them to disk is `judge-data`.
///
/// ```
/// use std::collections::{BTreeMap, HashSet};
///
/// use judge_core::{Layer, request::{Pooling, Signal}};
/// use judge_probe::{
///     DecisionRule, FittedEstimator, FittedProbe, LinearClassifier, Matrix, Precision, ProbeOrigin, ProbedModel, SavedProbe,
/// };
///
/// # fn main() -> Result<(), judge_probe::Error> {
/// let classifier =
///     LinearClassifier::from_parts(DecisionRule::Logistic, vec![0, 1], Matrix::new(vec![0.5, -2.0], 2)?, vec![0.1])?;
/// let origin = ProbeOrigin {
///     model: ProbedModel {
///         name: "tiny".into(),
///         revision: None,
///         fingerprint: Some("5eed".into()),
///         d_model: 2,
///         n_heads: None,
///     },
///     signals: vec![(Layer(3), Signal::State(Pooling::Mean))],
///     validation: None,
///     data_hash: None,
///     notes: BTreeMap::from([("aspect".into(), "fluency".into())]),
/// };
/// let saved = SavedProbe::new(FittedProbe::new(vec![], classifier, Precision::F64)?, origin)?;
///
/// let reread = SavedProbe::from_bytes(&saved.to_bytes()?)?;
/// assert_eq!(reread, saved);
/// assert_eq!(reread.probe().predict(&Matrix::new(vec![1.0, 0.0], 2)?)?, [1]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct SavedProbe {
    /// As wide as the signals of `origin` together.
    probe: FittedProbe,
    /// Checked against the probe when both were put together; only the fingerprint and revision change later.
    origin: ProbeOrigin,
    /// There only if the probe's rule has a number.
    calibrator: Option<FittedCalibrator>,
}

/// Where a probe comes from: what its features are of, and how good it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeOrigin {
    /// The model whose states it reads.
    pub model: ProbedModel,
    /// What stands side by side in a row of features, in this order, each once.
    #[serde(rename = "pooled")] // as files have called it since there were states alone
    pub signals: Vec<(Layer, Signal)>,
    /// How it fared on data it was not fitted on.
    pub validation: Option<Validation>,
    /// Hash of the labelled data it was fitted on.
    pub data_hash: Option<String>,
    /// Anything else that a reader should know: the aspect judged, the prompt template's id, settings, the program and its version.
    pub notes: BTreeMap<String, String>,
}

/// The model that a probe reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbedModel {
    /// Its name, for people.
    pub name: String,
    /// Its revision on the hub, where known.
    pub revision: Option<String>,
    /// The [fingerprint](ModelInfo::fingerprint) of its weights, tokenizer and template; unknown where the probe was fitted elsewhere.
    pub fingerprint: Option<String>,
    /// Width of a state.
    pub d_model: usize,
    /// Attention heads of a block; must be known if a signal is their entropy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_heads: Option<usize>,
}

impl From<&ModelInfo> for ProbedModel {
    /// The model as a backbone describes it, which is all that is needed to recognise it.
    fn from(model: &ModelInfo) -> Self {
        Self {
            name: model.name.clone(),
            revision: model.revision.clone(),
            fingerprint: Some(model.fingerprint.clone()),
            d_model: model.d_model,
            n_heads: Some(model.n_heads),
        }
    }
}

/// Scores on data that the probe was not fitted on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Validation {
    /// Name of the score, as scikit-learn names scorers.
    pub scoring: String,
    /// Its mean over folds, or over the splits that were held out. What a search reports of the best of many settings is too high for that
    /// reason; `ProbeTraining` stores the held-out score, and an imported probe what its file states, which is a search's.
    pub mean: f64,
    /// One a fold, or one a split that was held out.
    pub folds: Vec<f64>,
}

impl SavedProbe {
    /// A probe with its origin.
    ///
    /// # Errors
    ///
    /// [`SavedProbeError::Misfit`] for signals that do not make up the features or appear twice, and for scores that are not finite.
    pub fn new(probe: FittedProbe, origin: ProbeOrigin) -> Result<Self, Error> {
        let (signals, n_features) = (&origin.signals, probe.n_features());
        let ProbedModel { d_model, n_heads, .. } = origin.model;
        let width = |signal: &Signal| match signal {
            Signal::State(_) | Signal::Reply(_) => Some(d_model),
            Signal::AttentionEntropy => n_heads,
        };
        let total = signals.iter().try_fold(0_usize, |sum, (_, signal)| sum.checked_add(width(signal)?));
        if total != Some(n_features) || signals.is_empty() {
            let (signals, heads) = (listed(signals), n_heads.map(|n_heads| format!(", and a block {n_heads} heads")));
            return Err(misfit(format!(
                "{signals} cannot be {n_features} features: a state of the model has {d_model} coordinates{}",
                heads.unwrap_or_default()
            )));
        }
        let mut known = HashSet::new();
        if let Some(&(layer, signal)) = signals.iter().find(|signal| !known.insert(**signal)) {
            return Err(misfit(format!("{} of {layer} appears twice", signal.as_str())));
        }
        if let Some(validation) = &origin.validation {
            let mut scores = validation.folds.iter().copied().chain([validation.mean]);
            if let Some(value) = scores.find(|score| !score.is_finite()) {
                return Err(misfit(format!("a validation score is {value}")));
            }
        }
        Ok(Self { probe, origin, calibrator: None })
    }

    /// The probe.
    pub fn probe(&self) -> &FittedProbe {
        &self.probe
    }

    /// Where it comes from.
    pub fn origin(&self) -> &ProbeOrigin {
        &self.origin
    }

    /// The probe with what carries its [numbers](FittedProbe::scores) to people's scale, in place of the calibrator it may have: one fitted
    /// to numbers of this procedure for rows it had not learnt from, see [`calibrate_out_of_fold`](crate::calibrate_out_of_fold). Whether
    /// it was cannot be told from its numbers.
    ///
    /// From then on every verdict of a judge with this probe carries the calibrated value and its interval
    /// ([`Score::calibrated`](judge_core::Score::calibrated)).
    ///
    /// # Errors
    ///
    /// [`SavedProbeError::Misfit`] for a probe that knows classes alone.
    pub fn with_calibrator(self, calibrator: FittedCalibrator) -> Result<Self, Error> {
        if self.probe.classifier().rule().has_number() {
            return Ok(Self { calibrator: Some(calibrator), ..self });
        }
        Err(misfit(
            "a calibrator needs a probe whose score is a number: this one knows classes alone, without probabilities",
        ))
    }

    /// The probe alone: its verdicts carry what another calibrator says, or nothing.
    #[must_use]
    pub fn without_calibrator(self) -> Self {
        Self { calibrator: None, ..self }
    }

    /// What carries the probe's numbers to people's scale, where it was kept.
    pub fn calibrator(&self) -> Option<&FittedCalibrator> {
        self.calibrator.as_ref()
    }

    /// Refuses a model other than the one whose states the probe was fitted on.
    ///
    /// # Errors
    ///
    /// [`SavedProbeError::Misfit`], also where the probe has no fingerprint.
    pub fn check_model(&self, model: &ModelInfo) -> Result<(), Error> {
        let ProbedModel { name, fingerprint, .. } = &self.origin.model;
        match fingerprint {
            None => Err(misfit(format!("the probe names its model ({name}) but has no fingerprint to compare"))),
            Some(expected) if !same_fingerprint(expected, &model.fingerprint) => {
                let (found, cure) = (&model.fingerprint, cure(expected, &model.fingerprint));
                Err(misfit(format!("fitted on {name} with fingerprint {expected}, found {found}{cure}")))
            }
            Some(_) => self.check_shape(model),
        }
    }

    /// The probe tied to this model from now on. It is for a person who knows that the states of a probe without fingerprint were this
    /// model's: nothing but their number and width can be checked. One that has a fingerprint keeps it.
    ///
    /// # Errors
    ///
    /// Where there is a fingerprint, those of [`check_model`](Self::check_model); else [`SavedProbeError::Misfit`] for a model of another
    /// shape.
    pub fn bound_to(mut self, model: &ModelInfo) -> Result<Self, Error> {
        if self.origin.model.fingerprint.is_none() {
            self.check_shape(model)?;
            self.origin.model.fingerprint = Some(model.fingerprint.clone());
            self.origin.model.revision = self.origin.model.revision.or_else(|| model.revision.clone());
        }
        self.check_model(model)?;
        Ok(self)
    }

    /// Where each of the probe's signals is among those on offer, in the order of its features: for tables that hold more layers or other
    /// poolings than the probe reads.
    ///
    /// # Errors
    ///
    /// [`SavedProbeError::Misfit`] with all that are not there.
    pub fn places_of(&self, offered: &[(Layer, Signal)]) -> Result<Vec<usize>, Error> {
        let place = |wanted: &(Layer, Signal)| offered.iter().position(|known| known == wanted);
        let places: Vec<Option<usize>> = self.origin.signals.iter().map(place).collect();
        if let Some(places) = places.iter().copied().collect() {
            return Ok(places);
        }
        let missing = self.origin.signals.iter().zip(&places).filter(|(_, place)| place.is_none());
        let missing: Vec<_> = missing.map(|(&signal, _)| signal).collect();
        let (missing, found) = (listed(&missing), listed(offered));
        Err(misfit(format!("the probe reads {missing}, which is not there: found {found}")))
    }

    /// The width of states, the heads where they are known, and at least as many blocks as the highest layer read. More blocks are no
    /// error: the probe does not know how many there were.
    fn check_shape(&self, model: &ModelInfo) -> Result<(), Error> {
        let ProbedModel { d_model, n_heads, .. } = self.origin.model;
        let highest = self.origin.signals.iter().map(|(layer, _)| layer.0).max().unwrap_or(0);
        let needs = |expected: usize, what: &str, found: usize| {
            Err(misfit(format!("the probe needs {expected} {what}, the model has {found}")))
        };
        if model.d_model != d_model {
            return needs(d_model, "coordinates", model.d_model);
        }
        if let Some(n_heads) = n_heads.filter(|&n_heads| n_heads != model.n_heads) {
            return needs(n_heads, "heads", model.n_heads);
        }
        if model.n_layers < highest {
            return needs(highest, "blocks", model.n_layers);
        }
        Ok(())
    }
}

fn misfit(problem: impl Into<String>) -> Error {
    SavedProbeError::Misfit(problem.into()).into()
}
