//! The record of a training. Names of fields are those of the JSON file, which other programs read: they do not change without need.

use std::collections::BTreeMap;

use judge_core::Layer;
use serde::Serialize;

use super::{Agreement, Gain, ProbeCalibration, View};
use crate::artefacts::{ArtefactReport, Shift};
use crate::{FeatureFamily, ScoredView, Scoring, SelectionStep};

/// The result of a training. Its JSON form is meant for files.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrainingReport {
    /// Rows given.
    pub n: usize,
    /// Rows that the model could not read.
    pub unscored: usize,
    /// Rows whose grade is no whole number and was rounded, halves up, to give it a class. Correlations are with the grade as it is.
    pub rounded: usize,
    /// Rows trained on.
    pub n_train: usize,
    /// Classes that rows trained on have and no row tested on, so that no figure of [`splits`](Self::splits) says how well they are told:
    /// those of a single row, and where groups are drawn maybe other rare ones. Absent from JSON where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub untested: Vec<i64>,
    /// Folds of the cross-validation among these.
    pub folds: usize,
    /// What layers, poolings and C were chosen by.
    pub scoring: Scoring,
    /// What the probe reads, in the order of its features.
    pub chosen: Vec<ChosenView>,
    /// Mean [score](Self::scoring) over the folds of what was chosen: that of the best of many, and too high for that reason.
    pub cv_mean: f64,
    /// Its standard deviation over the folds.
    pub cv_deviation: f64,
    /// Rows that nothing was learnt from, by the name of their split.
    pub splits: BTreeMap<String, Evaluation>,
    /// Whether people's grades lie where the calibrator kept with the probe says; `None`, and absent from JSON, where calibration is turned
    /// off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<ProbeCalibration>,
    /// What may explain the labels of each split without meaning; rows are numbered as they were given. Its baselines are not tuned, so
    /// that they do not depend on the probe's settings; those of [`splits`](Self::splits) have C chosen in the probe's own folds.
    pub artefacts: BTreeMap<String, ArtefactReport>,
    /// Whether responses speak of the question before their own, or after it.
    pub shifts: Vec<Shift>,
    /// How the layers were chosen.
    pub selection: Selection,
}

/// A layer that the probe reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ChosenView {
    /// The layer.
    pub layer: Layer,
    /// How its states are pooled.
    pub pooling: View,
}

/// One split, predicted by the probe and by each baseline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evaluation {
    /// Rows tested on.
    pub n: usize,
    /// How each predictor agrees with people: `probe`, `majority`, `surface`, `tfidf` where responses have words of two characters or more,
    /// `prompted` where the model's own score was read, and `tuned` where a model was tuned on the same rows.
    pub predictors: BTreeMap<String, Agreement>,
    /// The probe's agreement minus that of each baseline.
    pub gain_over: BTreeMap<String, Gain>,
}

/// Every view with its scores, the ranking and the steps of the [selection](crate::LayerSelection).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Selection {
    /// Every view with its scores.
    pub scan: Vec<ScoredView<View, FeatureFamily>>,
    /// Positions of the best views of as many layers, best first.
    pub ranking: Vec<usize>,
    /// The sets of views tried, in order.
    pub steps: Vec<SelectionStep>,
}

impl Selection {
    /// The positions of the views chosen.
    pub fn chosen(&self) -> &[usize] {
        self.steps.iter().rev().find(|step| step.kept).map_or(&[], |step| &step.views)
    }
}
