use judge_metrics::agreement::{Average, ConfusionMatrix, ZeroDivision};
use judge_metrics::correlation::spearman;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::pairwise_sum::pairwise_sum;

/// How predictions are scored against the truth; more is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scoring {
    /// Share of rows predicted right (`accuracy`).
    Accuracy,
    /// Mean over classes of the share of their rows predicted right (`balanced_accuracy`).
    BalancedAccuracy,
    /// Mean F1 of the classes that occur in the truth or the predictions (`f1_macro`): what INSPECTOR chooses by.
    #[default]
    MacroF1,
    /// Mean F1 of classes, each weighted by its rows (`f1_weighted`): what INSPECTOR reports.
    WeightedF1,
    /// Spearman's rank correlation of predicted and true class, for scales.
    Spearman,
}

impl Scoring {
    /// The score of predictions, one or more, each beside the true class; `None` where the statistic is undefined, as a correlation with
    /// constant predictions is. As scikit-learn has it, a class that is never predicted has F1 0.
    ///
    /// # Errors
    ///
    /// [`Error::Metric`] for columns of unequal length or none.
    ///
    /// ```
    /// use judge_probe::Scoring;
    ///
    /// let (truth, predicted) = ([1, 2, 3, 3], [1, 2, 2, 3]);
    /// assert_eq!(Scoring::Accuracy.score(&truth, &predicted)?, Some(0.75));
    /// assert_eq!(Scoring::Spearman.score(&truth, &[2; 4])?, None);
    /// # Ok::<(), judge_probe::Error>(())
    /// ```
    pub fn score(self, truth: &[i64], predicted: &[i64]) -> Result<Option<f64>, Error> {
        match self.statistic(truth, predicted) {
            Ok(score) => Ok(Some(score)),
            Err(error) if error.is_undefined() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn statistic(self, truth: &[i64], predicted: &[i64]) -> Result<f64, judge_metrics::Error> {
        let mut labels = [truth, predicted].concat();
        labels.sort_unstable();
        labels.dedup();
        let n_labels = labels.len();
        let matrix = || ConfusionMatrix::new(labels, truth, predicted);
        let f1 = |matrix: ConfusionMatrix<i64>, average| Ok(matrix.average(average, ZeroDivision::Zero)?.f1);
        match self {
            Self::Spearman => {
                let numbers = |labels: &[i64]| labels.iter().map(|&label| label as f64).collect::<Vec<_>>();
                Ok(spearman(&numbers(truth), &numbers(predicted))?.estimate)
            }
            // Nothing is wrong. A confusion matrix would ask for a second label, which must not be averaged over.
            _ if n_labels == 1 && truth.len() == predicted.len() => Ok(1.0),
            Self::Accuracy => matrix()?.accuracy().estimate(),
            Self::BalancedAccuracy => matrix()?.balanced_accuracy(),
            Self::MacroF1 => f1(matrix()?, Average::Macro),
            Self::WeightedF1 => f1(matrix()?, Average::Weighted),
        }
    }
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
    pub fn mean(&self) -> Option<f64> {
        let scores = self.defined()?;
        Some(pairwise_sum(&scores) / scores.len() as f64)
    }

    /// The standard deviation over splits, dividing by their number (`std_test_score`); `None` as for the mean.
    pub fn deviation(&self) -> Option<f64> {
        let (scores, mean) = (self.defined()?, self.mean()?);
        let squares: Vec<f64> = scores.iter().map(|score| (score - mean) * (score - mean)).collect();
        Some((pairwise_sum(&squares) / scores.len() as f64).sqrt())
    }

    fn defined(&self) -> Option<Vec<f64>> {
        if self.by_split.is_empty() { None } else { self.by_split.iter().copied().collect() }
    }
}
