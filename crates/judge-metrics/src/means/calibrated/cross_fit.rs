//! Maps from a judge's scores to the human scale, one without each fold.

use crate::calibration::{Direction, FittedIsotonicRegression, IsotonicRegression};
use crate::groups::clusters;
use crate::input::{check_count, check_lengths, check_varies};
use crate::means::parts::Part;
use crate::sum::sum;
use crate::{Error, Proportion};

pub(super) struct CrossFit {
    /// Of all labelled items.
    pub(super) whole: FittedIsotonicRegression,
    /// Each without its fold.
    maps: Vec<FittedIsotonicRegression>,
    /// Share of the labelled items that are in each fold.
    shares: Vec<f64>,
    /// Of each labelled item.
    fold_of: Vec<usize>,
}

impl CrossFit {
    /// Fits `labels` by `predictions`, columns of one length and finite; folds have any numbers.
    pub(super) fn new(
        direction: Direction,
        labels: &[f64],
        predictions: &[f64],
        fold_of: &[usize],
    ) -> Result<Self, Error> {
        let n = labels.len();
        check_lengths("fold_of", fold_of.len(), "labels", n)?;
        check_varies("predictions", predictions)?;
        let folds = clusters(fold_of);
        check_count(2, folds.len())?;
        let mut fold_of = vec![0; n];
        for (fold, rows) in folds.iter().enumerate() {
            rows.iter().for_each(|&row| fold_of[row] = fold);
        }
        let whole = IsotonicRegression { direction, ..IsotonicRegression::default() }.fit(predictions, labels)?;
        // Folds do not choose the direction anew.
        let direction = if whole.is_increasing() { Direction::Increasing } else { Direction::Decreasing };
        let settings = IsotonicRegression { direction, ..IsotonicRegression::default() };
        let maps = (0..folds.len()).map(|fold| {
            let kept = |column: &[f64]| -> Vec<f64> {
                column.iter().zip(&fold_of).filter(|(_, of)| **of != fold).map(|(&value, _)| value).collect()
            };
            settings.fit(&kept(predictions), &kept(labels))
        });
        let maps = maps.collect::<Result<Vec<_>, _>>()?;
        let shares = folds.iter().map(|rows| rows.len() as f64 / n as f64).collect();
        Ok(Self { whole, maps, shares, fold_of })
    }

    pub(super) fn folds(&self) -> usize {
        self.maps.len()
    }

    /// The value of a score by the map that has not seen this labelled item's fold.
    pub(super) fn without(&self, labelled: usize, score: f64) -> Result<f64, Error> {
        Ok(self.maps[self.fold_of[labelled]].predict(&[score])?[0])
    }

    /// The labelled items, each by the map that has not seen it.
    pub(super) fn out_of_fold(&self, predictions: &[f64]) -> Result<Vec<f64>, Error> {
        predictions.iter().enumerate().map(|(row, &score)| self.without(row, score)).collect()
    }

    /// Other items, by all maps together.
    pub(super) fn averaged(&self, scores: &[f64]) -> Result<Vec<f64>, Error> {
        let mut values = vec![0.0; scores.len()];
        for (map, share) in self.maps.iter().zip(&self.shares) {
            values.iter_mut().zip(map.predict(scores)?).for_each(|(value, of)| *value += share * of);
        }
        Ok(values)
    }

    /// The mean of items by each map.
    pub(super) fn means(&self, scores: &[f64]) -> Result<Vec<f64>, Error> {
        self.maps.iter().map(|map| Ok(sum(&map.predict(scores)?) / scores.len() as f64)).collect()
    }

    /// The error that the mean of items has because the map of all labelled items was fitted.
    pub(super) fn error_of_mean(&self, statistic: &'static str, scores: &[f64]) -> Result<Part, Error> {
        Part::jackknife(statistic, &self.means(scores)?)
    }
}

/// Scores outside the range of those that the map was fitted to.
pub(super) fn extrapolated(fitted: &[f64], scores: &[f64]) -> Proportion {
    let low = fitted.iter().copied().fold(f64::INFINITY, f64::min);
    let high = fitted.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Proportion { count: scores.iter().filter(|score| !(low..=high).contains(*score)).count(), n: scores.len() }
}
