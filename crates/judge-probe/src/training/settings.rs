//! The settings of a training, all of them fields with a default.
//!
//! Nothing is checked before [`train`](ProbeTraining::train) uses it: a bad value is the error of the part that it belongs to.

use judge_core::{Layer, request::Signal};
use judge_metrics::calibration::Calibrator;
use judge_metrics::resampling::{Bootstrap, BootstrapMethod};
use serde::{Deserialize, Serialize};

use super::{GradeScale, Grading, View};
use crate::Scoring;

/// The settings of a training. [`train`](Self::train) does it.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeTraining {
    /// How grades become classes.
    pub grading: Grading,
    /// Where grades must lie; 1 to 5 by default.
    pub scale: GradeScale,
    /// The layers to choose from; none by default, and there must be one.
    pub layers: Vec<Layer>,
    /// The poolings to choose from.
    pub views: Vec<View>,
    /// Whether the attention entropies of a layer's heads stand beside its states. Layer 0 has none.
    /// It adds one feature for each head, after those of the states.
    pub attention_entropy: bool,
    /// What is fitted to the features, after a scaler.
    pub classifier: ProbeClassifier,
    /// Values of C, the inverse strength of the penalty as in scikit-learn, to choose from; simplest first. They are also those of the
    /// baseline of surface features; that of words has its own, see `docs/probes.md`.
    pub c: Vec<f64>,
    /// Most layers that a probe may read, at least 1.
    pub top_k: usize,
    /// Folds of the cross-validation, at least 2.
    pub folds: usize,
    /// Share of the rows, or groups, to test on where rows name no split; strictly between 0 and 1.
    pub test_share: f64,
    /// Chooses the rows to test on.
    /// The folds are not shuffled and need no seed.
    pub split_seed: u32,
    /// Whether rows that share a [group](super::GradedRow::group) stay on one side of every split. The published protocol splits them.
    pub grouped: bool,
    /// The intervals of the evaluation, over groups of rows.
    pub bootstrap: Bootstrap,
    /// How the probe's numbers are carried to the grades as they were given, also those between whole ones; `None` keeps the probe without
    /// a calibrator. The numbers are those of fits that had not learnt from the row, in the folds of the cross-validation
    /// ([`calibrate_out_of_fold`](crate::calibrate_out_of_fold)). Where it names no range, it is that of [`scale`](Self::scale).
    pub calibration: Option<Calibrator>,
}

/// A classifier that training can fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeClassifier {
    /// Logistic regression, which has probabilities. Classes are weighted so that each counts the same.
    #[default]
    Logistic,
    /// [`BrierRegression`](crate::BrierRegression), and layers, poolings and C chosen by the Brier score in place of macro F1: for
    /// probabilities that are to be believed, such as that a judge is right. Rows count alike, so that rare classes stay rare.
    Brier,
    /// A support vector machine with a linear kernel, which has no probabilities. Classes are weighted so that each counts the same.
    #[serde(rename = "linear_svc")] // as files have called it before
    LinearKernelSvc,
}

impl ProbeClassifier {
    /// What layers, poolings and C are chosen by.
    pub fn scoring(self) -> Scoring {
        match self {
            Self::Brier => Scoring::NegBrierScore,
            Self::Logistic | Self::LinearKernelSvc => Scoring::MacroF1,
        }
    }
}

impl Default for ProbeTraining {
    /// Whole grades from 1 to 5; last and mean pooling; logistic regression with C from 0.001 to 1; at most 5 layers, 5 folds, a fifth of
    /// the groups held out; percentile intervals of 1,000 resamples at 95 %; isotonic calibration with intervals at 90 %.
    fn default() -> Self {
        Self {
            grading: Grading::Whole,
            scale: GradeScale::default(),
            layers: Vec::new(),
            views: vec![View::Last, View::Mean],
            attention_entropy: false,
            classifier: ProbeClassifier::default(),
            c: vec![0.001, 0.01, 0.1, 1.0],
            top_k: 5,
            folds: 5,
            test_share: 0.2,
            split_seed: 731,
            grouped: true,
            bootstrap: Bootstrap { resamples: 1_000, level: 0.95, seed: 0, method: BootstrapMethod::Percentile },
            calibration: Some(Calibrator::default()),
        }
    }
}

impl ProbeTraining {
    /// What stands side by side in the features of a layer in a view.
    /// The order is that of the features, and a saved probe keeps it.
    pub fn signals(&self, layer: Layer, view: View) -> Vec<Signal> {
        let entropy = self.attention_entropy && layer != Layer(0);
        view.signals().chain(entropy.then_some(Signal::AttentionEntropy)).collect()
    }

    /// Everything that a training may ask of its [`RowSignals`](super::RowSignals), ascending, each once.
    /// Ask a model for these in one pass; training then asks for subsets of them.
    pub fn all_signals(&self) -> Vec<(Layer, Signal)> {
        let views = self.layers.iter().flat_map(|&layer| self.views.iter().map(move |&view| (layer, view)));
        let mut signals: Vec<(Layer, Signal)> =
            views.flat_map(|(layer, view)| self.signals(layer, view).into_iter().map(move |s| (layer, s))).collect();
        signals.sort_unstable();
        signals.dedup();
        signals
    }
}
