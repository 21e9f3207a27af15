//! Precision, recall and F1 averaged over classes, and what follows from the whole table: balanced accuracy and Matthews' correlation.
//!
//! Standard errors are by the delta method over the cells of the table, which are multinomial: the derivative of the statistic by each
//! cell, and its variance. They are too small where a class has a few items, since a ratio of two small counts is far from normal; take the
//! bootstrap there.

use std::fmt::Display;

use super::confusion::ConfusionMatrix;
use crate::estimate::Spread;
use crate::{Error, Estimate};

/// What to do where a ratio has no denominator: a class that is never predicted has no precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZeroDivision {
    /// The average is undefined.
    Undefined,
    /// The class counts as 0: scikit-learn's default, which warns.
    Zero,
    /// The class is left out of the average: `zero_division=nan` of scikit-learn.
    LeftOut,
}

/// How classes are averaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Average {
    /// Each class counts the same.
    Macro,
    /// Counts of all classes together. With all labels pinned, precision, recall and F1 are then the accuracy.
    Micro,
    /// Each class weighted by its support: the items of its true label.
    Weighted,
}

/// Scores over all classes, each in [0, 1].
///
/// The standard errors are those of functions of multinomial shares, by the delta method (Takahashi et al., 2022, for F1), and the
/// intervals lie on the logit scale; scores of 0 and 1 have none. A class that [`ZeroDivision`] settles counts as if it could not be
/// otherwise: where a class has but a few items, [`Bootstrap`](crate::resampling::Bootstrap) knows better. Of [`Average::Micro`] they are
/// Wilson's.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct AverageScores {
    /// Average precision of classes.
    pub precision: Estimate,
    /// Average recall of classes.
    pub recall: Estimate,
    /// Average F1 of classes, not the harmonic mean of the two others.
    pub f1: Estimate,
}

/// How much a class's items, and those given its label, count in the denominator of its score.
type Denominator = [f64; 2];
const PRECISION: Denominator = [0.0, 1.0];
const RECALL: Denominator = [1.0, 0.0];
const F1: Denominator = [0.5, 0.5];

impl<L: PartialEq + Display> ConfusionMatrix<L> {
    /// Scores over all classes: `sklearn.metrics.precision_recall_fscore_support`.
    ///
    /// # Errors
    ///
    /// [`Error::Undefined`] where a class has no denominator and `zero_division` does not say what to do, or says to leave
    /// out all classes.
    pub fn average(&self, average: Average, zero_division: ZeroDivision) -> Result<AverageScores, Error> {
        if average == Average::Micro {
            let accuracy = Estimate::try_from(self.accuracy())?;
            return Ok(AverageScores { precision: accuracy, recall: accuracy, f1: accuracy });
        }
        let mean = |statistic, denominator| self.mean_of_classes(statistic, average, zero_division, denominator);
        Ok(AverageScores {
            precision: mean("average precision of classes", PRECISION)?,
            recall: mean("average recall of classes", RECALL)?,
            f1: mean("average F1 of classes", F1)?,
        })
    }

    /// Mean recall of the classes that occur: `sklearn.metrics.balanced_accuracy_score`. Standard error and interval are as those of
    /// [`AverageScores`].
    ///
    /// # Errors
    ///
    /// [`Error::Undefined`] where one class alone occurs in the truth, since whoever always gives it would be right in all of them;
    /// scikit-learn gives its recall there.
    #[doc(alias = "balanced_accuracy_score")]
    pub fn balanced_accuracy(&self) -> Result<Estimate, Error> {
        const STATISTIC: &str = "balanced accuracy";
        if self.row_sums().into_iter().filter(|&items| items > 0).count() < 2 {
            return Err(Error::Undefined { statistic: STATISTIC, reason: "one class alone occurs in the truth" });
        }
        self.mean_of_classes(STATISTIC, Average::Macro, ZeroDivision::LeftOut, RECALL)
    }

    /// Matthews' correlation of the two columns, in [-1, 1]: `sklearn.metrics.matthews_corrcoef`, for two classes or more (Gorodkin, 2004).
    /// The standard error is that of a function of multinomial shares, by the delta method, and the interval lies on Fisher's scale; where
    /// the columns agree or disagree throughout there is none.
    ///
    /// # Errors
    ///
    /// [`Error::Undefined`] where one column has one label only; scikit-learn returns 0 there.
    #[doc(alias = "matthews_corrcoef")]
    pub fn matthews(&self) -> Result<Estimate, Error> {
        const STATISTIC: &str = "Matthews' correlation";
        // In floats: products of counts exceed any integer.
        let (rows, columns) = (self.row_sums(), self.column_sums());
        let n = self.n() as f64;
        let right = self.accuracy().count as f64;
        let product = |a: &[u64], b: &[u64]| a.iter().zip(b).map(|(&a, &b)| a as f64 * b as f64).sum::<f64>();
        let spread = |sums: &[u64]| n * n - product(sums, sums);
        let (of_rows, of_columns) = (spread(&rows), spread(&columns));
        if of_rows <= 0.0 || of_columns <= 0.0 {
            return Err(Error::Undefined { statistic: STATISTIC, reason: "a column has one label only" });
        }
        let root = of_rows.sqrt() * of_columns.sqrt();
        let estimate = ((right * n - product(&rows, &columns)) / root).clamp(-1.0, 1.0);
        let gradient = |truth: usize, predicted: usize| {
            let hit = if truth == predicted { n } else { 0.0 };
            let covariance = n * (hit - columns[truth] as f64 - rows[predicted] as f64) / root;
            covariance + estimate * n * (rows[truth] as f64 / of_rows + columns[predicted] as f64 / of_columns)
        };
        let found = Estimate::new(STATISTIC, estimate, self.n() as usize)?;
        Ok(found.with_error(self.standard_error(gradient), Spread::FisherOfError))
    }

    /// A mean of right / (a · items of the class + b · items given its label) over the classes.
    fn mean_of_classes(
        &self,
        statistic: &'static str,
        average: Average,
        zero_division: ZeroDivision,
        [of_items, of_given]: Denominator,
    ) -> Result<Estimate, Error> {
        let k = self.labels().len();
        let (rows, columns) = (self.row_sums(), self.column_sums());
        let n = self.n() as f64;
        let (mut sum, mut total) = (0.0, 0.0);
        // Derivative of the sum by the share of each cell, and the scores of the classes that are counted.
        let mut gradient = vec![0.0; k * k];
        let mut counted = vec![None; k];
        for class in 0..k {
            let right = self.counts[class * (k + 1)] as f64;
            let below = of_items * rows[class] as f64 + of_given * columns[class] as f64;
            let weight = if average == Average::Weighted { rows[class] as f64 } else { 1.0 };
            if below > 0.0 {
                let score = right / below;
                let slope = weight * n / below;
                for other in 0..k {
                    gradient[class * k + other] -= slope * score * of_items;
                    gradient[other * k + class] -= slope * score * of_given;
                }
                gradient[class * (k + 1)] += slope;
                counted[class] = Some(score);
            } else {
                match zero_division {
                    ZeroDivision::Zero => counted[class] = Some(0.0),
                    ZeroDivision::LeftOut => {}
                    ZeroDivision::Undefined => {
                        return Err(Error::Undefined { statistic, reason: "a class has no denominator" });
                    }
                }
            }
            if let Some(score) = counted[class] {
                (sum, total) = (sum + weight * score, total + weight);
            }
        }
        if total <= 0.0 {
            return Err(Error::Undefined { statistic, reason: "no class has a denominator" });
        }
        let estimate = sum / total;
        let standard_error = self.standard_error(|truth, predicted| {
            let of_weights = match counted[truth] {
                Some(score) if average == Average::Weighted => n * (score - estimate),
                _ => 0.0,
            };
            (gradient[truth * k + predicted] + of_weights) / total
        });
        Ok(Estimate::new(statistic, estimate, self.n() as usize)?.with_error(standard_error, Spread::Logit))
    }

    /// Of a statistic whose derivative by the share of items in a cell, of right label and given label, is `gradient`.
    fn standard_error(&self, gradient: impl Fn(usize, usize) -> f64) -> f64 {
        let (k, n) = (self.labels().len(), self.n() as f64);
        let cells = || self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        let each: Vec<(f64, f64)> =
            cells().map(|(cell, &count)| (count as f64 / n, gradient(cell / k, cell % k))).collect();
        let mean: f64 = each.iter().map(|(share, slope)| share * slope).sum();
        let variance: f64 = each.iter().map(|(share, slope)| share * (slope - mean).powi(2)).sum();
        (variance / n).sqrt()
    }
}
