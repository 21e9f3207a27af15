//! The scores of classes by name. How each is computed is the module above.

use serde::{Deserialize, Serialize};

/// How predicted classes, or their probabilities, are scored against the true classes; more is better. In brackets the name of
/// scikit-learn's scorer, to which it is equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scoring {
    /// Share of rows predicted right (`accuracy`).
    Accuracy,
    /// Mean over classes of the share of their rows predicted right (`balanced_accuracy`); undefined where one class alone has held-out
    /// rows.
    BalancedAccuracy,
    /// Mean F1 of the classes that occur in the truth or the predictions (`f1_macro`): what INSPECTOR chooses by. A class that does neither has
    /// no part, so that one stray prediction of another class lowers the mean. The macro F1 of held-out rows
    /// ([`Agreement`](crate::training::Agreement)) follows the same rule.
    #[default]
    MacroF1,
    /// Mean F1 of classes, each weighted by its rows (`f1_weighted`): what INSPECTOR reports.
    WeightedF1,
    /// Spearman's rank correlation of predicted and true class, for scales.
    Spearman,
    /// Spearman's rank correlation of the expected and the true class: of the value that a probe gives as a judge.
    ExpectedSpearman,
    /// Area under the receiver operating characteristic of the second class's probability (`roc_auc`); of more classes the mean over each
    /// against the rest (`roc_auc_ovr`), undefined where one of them has no held-out row.
    RocAuc,
    /// Mean natural logarithm of the true class's probability (`neg_log_loss`), which counts as at least 2⁻⁵²; a class that was not learnt
    /// has probability 0.
    NegLogLoss,
    /// Brier score, negated (`neg_brier_score`): the mean squared distance of the probabilities from 1 for the true class and 0 for the
    /// others, of two classes that of the second's probability alone.
    NegBrierScore,
    /// Cohen's kappa with weights that fall with the squared distance of the classes' values: `cohen_kappa_score(weights="quadratic")` with
    /// all whole numbers from the lowest class to the highest as its `labels`.
    QuadraticKappa,
    /// Mean absolute difference of the expected and the true class, negated (`neg_mean_absolute_error` of expected classes).
    NegMeanAbsoluteError,
}

impl Scoring {
    /// Whether it needs probabilities, which some classifiers do not have.
    pub fn needs_probabilities(self) -> bool {
        use Scoring::{ExpectedSpearman, NegBrierScore, NegLogLoss, NegMeanAbsoluteError, RocAuc};
        matches!(self, ExpectedSpearman | RocAuc | NegLogLoss | NegBrierScore | NegMeanAbsoluteError)
    }
}
