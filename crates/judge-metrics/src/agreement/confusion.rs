use std::fmt::Display;

use crate::agreement::kappa::cohen_kappa;
use crate::agreement::labels::{check_labels, place};
use crate::agreement::{AgreementWeights, RatingTable};
use crate::input::{check_count, check_lengths};
use crate::{Error, Estimate, Proportion};

/// A confusion matrix: how often each label was given for items of each true label.
///
/// Labels are pinned by the caller: averages run over all of them, whether they occur or not, and a label that is not
/// among them is an error, not a class of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfusionMatrix<L> {
    labels: Vec<L>,
    /// Row-major `[truth, predicted]`.
    pub(super) counts: Vec<u64>,
}

/// Scores of one class. `None`: the ratio has no denominator.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ClassScores {
    /// Right among those given this label, in [0, 1].
    pub precision: Option<f64>,
    /// Given this label among those it is right for, in [0, 1].
    pub recall: Option<f64>,
    /// Harmonic mean of both, 2 TP / (2 TP + FP + FN).
    pub f1: Option<f64>,
    /// Items with this true label.
    pub support: u64,
}

impl ConfusionMatrix<usize> {
    /// Labels 0 to k − 1, at least two, of items whose cells are given, by their places in row-major order. At least one item.
    pub(crate) fn of_cells(k: usize, cells: impl Iterator<Item = usize>) -> Self {
        let mut counts = vec![0; k * k];
        cells.for_each(|cell| counts[cell] += 1);
        Self { labels: (0..k).collect(), counts }
    }
}

impl<L: PartialEq + Display> ConfusionMatrix<L> {
    /// Counts two columns of equal length, `sklearn.metrics.confusion_matrix(truth, predicted, labels=labels)`.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`], [`Error::TooFewItems`] for no items or fewer than two labels, [`Error::DuplicateLabel`],
    /// [`Error::UnknownLabel`].
    ///
    /// ```
    /// use judge_metrics::agreement::{AgreementWeights, Average, ConfusionMatrix, ZeroDivision};
    ///
    /// let human = ["first", "tie", "second", "first", "second", "first"];
    /// let judge = ["first", "first", "second", "first", "tie", "second"];
    /// let matrix = ConfusionMatrix::new(vec!["first", "second", "tie"], &human, &judge)?;
    /// assert_eq!(matrix.accuracy().estimate()?, 0.5);
    /// assert!((matrix.average(Average::Macro, ZeroDivision::Zero)?.f1.estimate - 0.388_888_9).abs() < 1e-7);
    /// let kappa = matrix.cohen_kappa(&AgreementWeights::Identity)?;
    /// assert!((kappa.estimate - 0.181_818_2).abs() < 1e-7);
    /// # Ok::<(), judge_metrics::Error>(())
    /// ```
    pub fn new(labels: Vec<L>, truth: &[L], predicted: &[L]) -> Result<Self, Error> {
        check_lengths("predicted", predicted.len(), "truth", truth.len())?;
        check_count(1, truth.len())?;
        check_labels(&labels)?;
        let mut counts = vec![0; labels.len() * labels.len()];
        for (index, (truth, predicted)) in truth.iter().zip(predicted).enumerate() {
            let place = |argument, label| place(&labels, argument, index, label);
            counts[place("truth", truth)? * labels.len() + place("predicted", predicted)?] += 1;
        }
        Ok(Self { labels, counts })
    }

    /// Gwet's AC1 and AC2 of the two columns, as of two raters of each item: [`RatingTable::gwet`].
    ///
    /// # Errors
    ///
    /// Those of [`RatingTable::gwet`].
    pub fn gwet(&self, weights: &AgreementWeights) -> Result<Estimate, Error> {
        RatingTable::of_two(&self.counts, self.labels.len()).gwet(weights)
    }

    /// The labels, in the order of rows and columns.
    pub fn labels(&self) -> &[L] {
        &self.labels
    }

    /// Items that `labels()[truth]` is right for and that were given `labels()[predicted]`; `None` if there is no such label.
    pub fn count(&self, truth: usize, predicted: usize) -> Option<u64> {
        let n = self.labels.len();
        (truth < n && predicted < n).then(|| self.counts[truth * n + predicted])
    }

    /// Number of items.
    pub fn n(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Share of items that were given the right label. Its intervals are Wilson's and Clopper and Pearson's.
    #[doc(alias = "accuracy_score")]
    pub fn accuracy(&self) -> Proportion {
        let right: u64 = (0..self.labels.len()).map(|label| self.counts[label * (self.labels.len() + 1)]).sum();
        Proportion { count: right as usize, n: self.n() as usize }
    }

    /// Scores of each class, in the order of the labels: `sklearn.metrics.precision_recall_fscore_support(average=None)`.
    #[doc(alias = "precision_recall_fscore_support")]
    pub fn by_class(&self) -> Vec<ClassScores> {
        let (rows, columns) = (self.row_sums(), self.column_sums());
        (0..self.labels.len())
            .map(|label| {
                let right = self.counts[label * (self.labels.len() + 1)];
                let ratio = |above: u64, below: u64| (below > 0).then(|| above as f64 / below as f64);
                ClassScores {
                    precision: ratio(right, columns[label]),
                    recall: ratio(right, rows[label]),
                    f1: ratio(2 * right, columns[label] + rows[label]),
                    support: rows[label],
                }
            })
            .collect()
    }

    /// Cohen's kappa: agreement beyond what two independent raters with these label frequencies reach, in [-1, 1].
    ///
    /// With [`AgreementWeights::Identity`], `Linear` and `Quadratic` it is `sklearn.metrics.cohen_kappa_score`, and in all cases
    /// `statsmodels.stats.inter_rater.cohens_kappa` with its standard errors. Weights by place depend on the list of labels:
    /// where a grade is missing from the list its neighbours move together, so pin all grades of the scale.
    ///
    /// # Errors
    ///
    /// [`Error::Undefined`] where chance alone agrees fully, because both columns have one and the same label; those of the weights.
    #[doc(alias = "cohen_kappa_score")]
    #[doc(alias = "cohens_kappa")]
    pub fn cohen_kappa(&self, weights: &AgreementWeights) -> Result<Estimate, Error> {
        let weights = weights.matrix(self.labels.len())?;
        cohen_kappa(&self.counts, &weights, &self.row_sums(), &self.column_sums())
    }

    pub(super) fn row_sums(&self) -> Vec<u64> {
        self.counts.chunks_exact(self.labels.len()).map(|row| row.iter().sum()).collect()
    }

    pub(super) fn column_sums(&self) -> Vec<u64> {
        let n = self.labels.len();
        (0..n).map(|column| self.counts.iter().skip(column).step_by(n).sum()).collect()
    }
}
