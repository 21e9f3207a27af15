//! What says how good predictions are. Every score is greatest for the best predictions; errors are negated, as in scikit-learn.

mod names;

pub use names::Scoring;

use judge_metrics::agreement::{AgreementWeights, Average, ConfusionMatrix, ZeroDivision};
use judge_metrics::correlation::{pearson, spearman};
use judge_metrics::prediction::{LOG_LOSS_CLIP, auroc, log_loss, mean_absolute_error, root_mean_squared_error};
use serde::{Deserialize, Serialize};

use crate::numpy::pairwise_sum::pairwise_sum;
use crate::{Error, Predictions, ProbabilityTable};

/// Scores predictions of held-out rows: what [`cross_val_score`](crate::cross_val_score),
/// [`GridSearch`](crate::GridSearch) and [`LayerSelection`](crate::LayerSelection) maximise.
///
/// [`Scoring`] has the usual ones of classes (`L` is `i64`) and [`RegressionScoring`] those of numbers (`f64`). Any closure of the right
/// signature is one too:
///
/// ```
/// use judge_probe::{Error, GridSearch, LogisticRegression, Matrix, Predictions, StratifiedKFold};
///
/// # fn main() -> Result<(), Error> {
/// // The share of rows that are predicted at most one class off.
/// let within_one = |observed: &[i64], predicted: &Predictions<i64>| -> Result<f64, Error> {
///     let near = observed.iter().zip(&predicted.labels).filter(|(a, b)| a.abs_diff(**b) <= 1).count();
///     Ok(near as f64 / observed.len() as f64)
/// };
/// let features = Matrix::from_rows((0..30).map(|row| [f64::from(row), f64::from(row % 7)]))?;
/// let labels: Vec<i64> = (0..30).map(|row| 1 + row / 10).collect();
/// let search = GridSearch { candidates: vec![LogisticRegression::default()], scoring: within_one };
/// let scores = search.scores(&features, &labels, &StratifiedKFold::default().split(&labels)?)?;
/// assert_eq!(scores.best_mean, 1.0);
/// # Ok(())
/// # }
/// ```
pub trait Scorer<L>: Sync {
    /// The score of predictions, one or more, each beside what was observed of its row. More is better, so losses are negated.
    ///
    /// # Errors
    ///
    /// An [`Error::Metric`] that [is undefined](judge_metrics::Error::is_undefined), such as a correlation with constant predictions, means
    /// that these rows have no score; any other error ends what asked for the score.
    fn score(&self, observed: &[L], predicted: &Predictions<L>) -> Result<f64, Error>;
}

impl<L, F: Fn(&[L], &Predictions<L>) -> Result<f64, Error> + Sync> Scorer<L> for F {
    fn score(&self, observed: &[L], predicted: &Predictions<L>) -> Result<f64, Error> {
        self(observed, predicted)
    }
}

/// The score, `None` where it is undefined; [`Error::NonFiniteScore`] for what is no number.
pub(crate) fn score_of<L>(
    scorer: &impl Scorer<L>,
    observed: &[L],
    predicted: &Predictions<L>,
) -> Result<Option<f64>, Error> {
    match scorer.score(observed, predicted) {
        Ok(score) if score.is_finite() => Ok(Some(score)),
        Ok(score) => Err(Error::NonFiniteScore { score }),
        Err(Error::Metric(error)) if error.is_undefined() => Ok(None),
        Err(error) => Err(error),
    }
}

impl Scoring {
    /// [`Error::NoProbabilities`] where they are needed and unknown.
    pub(crate) fn check(self, probabilities: Option<&ProbabilityTable>) -> Result<(), Error> {
        if self.needs_probabilities() && probabilities.is_none() {
            return Err(Error::NoProbabilities { scoring: self });
        }
        Ok(())
    }

    /// Undefined where probabilities are needed and unknown: see [`check`](Self::check).
    pub(crate) fn statistic(self, truth: &[i64], predicted: &Predictions<i64>) -> Result<f64, judge_metrics::Error> {
        let unknown = judge_metrics::Error::Undefined { statistic: "score", reason: "no probabilities are known" };
        let table = || predicted.probabilities.as_ref().ok_or(unknown);
        match self {
            Self::ExpectedSpearman => Ok(spearman(&numbers(truth), &table()?.expected_classes())?.estimate),
            Self::NegMeanAbsoluteError => {
                Ok(-mean_absolute_error(&numbers(truth), &table()?.expected_classes())?.estimate)
            }
            Self::RocAuc => area(truth, table()?),
            Self::NegLogLoss => Ok(-log_loss_of_true(truth, table()?)?),
            Self::NegBrierScore => Ok(-brier(truth, table()?)?),
            _ => self.of_classes(truth, &predicted.labels),
        }
    }

    /// Scores of predicted classes alone; the labels averaged over are those that occur in either column, ascending, as
    /// scikit-learn takes them where no `labels` are given. A class never predicted has precision 0 and F1 0
    /// (`zero_division=0`).
    fn of_classes(self, truth: &[i64], predicted: &[i64]) -> Result<f64, judge_metrics::Error> {
        let mut labels = [truth, predicted].concat();
        labels.sort_unstable();
        labels.dedup();
        let is_one = labels.len() == 1 && truth.len() == predicted.len();
        let undefined =
            |statistic| Err(judge_metrics::Error::Undefined { statistic, reason: "there is one class alone" });
        let values = numbers(&labels);
        let matrix = || ConfusionMatrix::new(labels, truth, predicted);
        let f1 = |matrix: ConfusionMatrix<i64>, average| Ok(matrix.average(average, ZeroDivision::Zero)?.f1.estimate);
        match self {
            Self::Spearman => Ok(spearman(&numbers(truth), &numbers(predicted))?.estimate),
            Self::QuadraticKappa if is_one => undefined("kappa"),
            Self::BalancedAccuracy if is_one => undefined("balanced accuracy"),
            Self::QuadraticKappa => Ok(matrix()?.cohen_kappa(&AgreementWeights::QuadraticOf(values))?.estimate),
            // Nothing is wrong. A confusion matrix would ask for a second label, which must not be averaged over.
            _ if is_one => Ok(1.0),
            Self::BalancedAccuracy => Ok(matrix()?.balanced_accuracy()?.estimate),
            Self::MacroF1 => f1(matrix()?, Average::Macro),
            Self::WeightedF1 => f1(matrix()?, Average::Weighted),
            _ => matrix()?.accuracy().estimate(),
        }
    }
}

/// As scikit-learn has it, a class that is never predicted has F1 0.
///
/// ```
/// use judge_probe::{Error, Scorer, Scoring};
///
/// let truth = [1, 2, 3, 3];
/// assert_eq!(Scoring::Accuracy.score(&truth, &vec![1, 2, 2, 3].into())?, 0.75);
/// let constant = Scoring::Spearman.score(&truth, &vec![2; 4].into());
/// assert!(matches!(constant, Err(Error::Metric(error)) if error.is_undefined()));
/// assert!(matches!(Scoring::RocAuc.score(&truth, &vec![2; 4].into()), Err(Error::NoProbabilities { .. })));
/// # Ok::<(), Error>(())
/// ```
impl Scorer<i64> for Scoring {
    /// Besides undefined statistics, [`Error::Metric`] for columns of unequal length or none, and [`Error::NoProbabilities`].
    fn score(&self, observed: &[i64], predicted: &Predictions<i64>) -> Result<f64, Error> {
        self.check(predicted.probabilities.as_ref())?;
        Ok(self.statistic(observed, predicted)?)
    }
}

/// How predicted numbers are scored against those observed; more is better. In brackets the name of scikit-learn's scorer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RegressionScoring {
    /// Spearman's rank correlation.
    #[default]
    Spearman,
    /// Pearson's correlation.
    Pearson,
    /// Mean absolute error, negated (`neg_mean_absolute_error`).
    NegMeanAbsoluteError,
    /// Root of the mean squared error, negated (`neg_root_mean_squared_error`).
    NegRootMeanSquaredError,
}

impl Scorer<f64> for RegressionScoring {
    fn score(&self, observed: &[f64], predicted: &Predictions<f64>) -> Result<f64, Error> {
        let predicted = &predicted.labels;
        Ok(match self {
            Self::Spearman => spearman(observed, predicted)?.estimate,
            Self::Pearson => pearson(observed, predicted)?.estimate,
            Self::NegMeanAbsoluteError => -mean_absolute_error(observed, predicted)?.estimate,
            Self::NegRootMeanSquaredError => -root_mean_squared_error(observed, predicted)?.estimate,
        })
    }
}

/// Exact up to 2⁵³ in size.
fn numbers(classes: &[i64]) -> Vec<f64> {
    classes.iter().map(|&class| class as f64).collect()
}

/// Of each class against the rest, of two classes that of the second alone.
fn area(truth: &[i64], table: &ProbabilityTable) -> Result<f64, judge_metrics::Error> {
    let of_class = |(column, class): (usize, &i64)| {
        let outcomes: Vec<bool> = truth.iter().map(|observed| observed == class).collect();
        let scores: Vec<f64> = table.probabilities().rows().map(|row| row[column]).collect();
        Ok(auroc(&outcomes, &scores)?.estimate)
    };
    let classes = table.classes();
    let skipped = if classes.len() == 2 { 1 } else { 0 };
    let areas: Vec<f64> =
        classes.iter().enumerate().skip(skipped).map(of_class).collect::<Result<_, judge_metrics::Error>>()?;
    Ok(pairwise_sum(&areas) / areas.len() as f64)
}

fn log_loss_of_true(truth: &[i64], table: &ProbabilityTable) -> Result<f64, judge_metrics::Error> {
    let column = |row: usize| table.classes().binary_search(truth.get(row)?).ok();
    let of_true = |(index, row): (usize, &[f64])| column(index).map_or(0.0, |column| row[column]);
    let probabilities: Vec<f64> = table.probabilities().rows().enumerate().map(of_true).collect();
    Ok(log_loss(&vec![true; truth.len()], &probabilities, LOG_LOSS_CLIP)?.estimate)
}

/// A true class that was not learnt adds 1 to its row.
fn brier(truth: &[i64], table: &ProbabilityTable) -> Result<f64, judge_metrics::Error> {
    let (n, found) = (truth.len(), table.probabilities().n_rows());
    if n != found {
        return Err(judge_metrics::Error::LengthMismatch {
            argument: "predicted",
            found,
            other: "observed",
            expected: n,
        });
    }
    if n == 0 {
        return Err(judge_metrics::Error::TooFewItems { required: 1, found: 0 });
    }
    let classes = table.classes();
    let of_row = |(observed, row): (&i64, &[f64])| {
        let square = |(class, p): (&i64, &f64)| (p - f64::from(u8::from(class == observed))).powi(2);
        match row {
            [_, second] if classes.contains(observed) => square((&classes[1], second)),
            _ => {
                let unlearnt = f64::from(u8::from(!classes.contains(observed)));
                classes.iter().zip(row).map(square).sum::<f64>() + unlearnt
            }
        }
    };
    let squares: Vec<f64> = truth.iter().zip(table.probabilities().rows()).map(of_row).collect();
    Ok(pairwise_sum(&squares) / n as f64)
}

/// Scores of one thing on several splits, `None` where a score is undefined.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SplitScores {
    /// One score per split, in their order.
    pub by_split: Vec<Option<f64>>,
}

impl SplitScores {
    /// The mean over splits; `None` where one of them has no score, or there are none.
    #[doc(alias = "mean_test_score")]
    pub fn mean(&self) -> Option<f64> {
        let scores = self.defined()?;
        Some(pairwise_sum(&scores) / scores.len() as f64)
    }

    /// The standard deviation over splits, dividing by their number (`std_test_score`); `None` as for the mean.
    #[doc(alias = "std_test_score")]
    pub fn deviation(&self) -> Option<f64> {
        let (scores, mean) = (self.defined()?, self.mean()?);
        let squares: Vec<f64> = scores.iter().map(|score| (score - mean) * (score - mean)).collect();
        Some((pairwise_sum(&squares) / scores.len() as f64).sqrt())
    }

    /// All scores, where every split has one.
    fn defined(&self) -> Option<Vec<f64>> {
        if self.by_split.is_empty() { None } else { self.by_split.iter().copied().collect() }
    }
}
