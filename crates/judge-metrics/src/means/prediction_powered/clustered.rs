use super::{
    PoweredMean, PredictionPoweredMean, STATISTIC, Tuning, check_columns, checked, effective_sample_size, student,
};
use crate::Error;
use crate::input::{check_lengths, check_varies};
use crate::means::clustered_mean;
use crate::number::in_range;
use crate::resampling::clusters;
use crate::sum::{dot, sum};

impl PredictionPoweredMean {
    /// Estimates the mean of items that come in clusters, such as several answers to one question.
    ///
    /// `groups[i]` says which cluster labelled item i belongs to, `unlabelled_groups[j]` the same of unlabelled item j. A cluster may have
    /// items of both kinds. Items of one cluster may depend on each other in any way, clusters must not. Means are over items, as in
    /// [`clustered_mean`], which `classical` is.
    ///
    /// The variance is the sum over clusters of the squared influence of each: what its labelled items add to the mean of residuals, plus λ times
    /// what its unlabelled items add to the judge's mean, each times G / (G − 1) for the G clusters that have such items (CR1, Liang and Zeger, 1986).
    /// λ makes that variance least; with a cluster for each item it is nearly that of [`estimate`](Self::estimate), which pools the variance
    /// of predictions. The degrees of freedom are Welch's, of clusters with labels and of those without. A nominal 95 % came out as 90 % with
    /// five labelled clusters of four items, since λ is chosen by them too, and as 94 to 95 % with 25 and 250 (the example `coverage`).
    ///
    /// # Errors
    ///
    /// Those of [`estimate`](Self::estimate); [`Error::TooFewItems`] also for fewer than two clusters of labelled or of unlabelled items;
    /// [`Error::Undefined`] also where predictions vary within clusters only and λ is to be estimated.
    ///
    /// ```
    /// use judge_metrics::means::PredictionPoweredMean;
    ///
    /// // Two answers to each of four questions that people looked at, and to each of 50 others.
    /// let human = [3.0, 4.0, 2.0, 2.0, 4.0, 5.0, 1.0, 2.0];
    /// let judge = [3.4, 4.1, 2.9, 2.6, 4.4, 5.0, 2.0, 2.2];
    /// let questions = [0, 0, 1, 1, 2, 2, 3, 3];
    /// let unlabelled: Vec<f64> = (0..100).map(|i| 2.5 + f64::from(i / 2 * 7 % 20) / 10.0).collect();
    /// let others: Vec<i32> = (0..100).map(|i| 4 + i / 2).collect();
    /// let powered = PredictionPoweredMean::default().clustered(&human, &judge, &questions, &unlabelled, &others)?;
    /// assert!(powered.mean.standard_error()? < powered.classical.standard_error()?);
    /// # Ok::<(), judge_metrics::Error>(())
    /// ```
    pub fn clustered<G: Ord>(
        &self,
        labels: &[f64],
        predictions: &[f64],
        groups: &[G],
        unlabelled: &[f64],
        unlabelled_groups: &[G],
    ) -> Result<PoweredMean, Error> {
        check_columns(labels, predictions, unlabelled)?;
        check_lengths("groups", groups.len(), "labels", labels.len())?;
        check_lengths("unlabelled_groups", unlabelled_groups.len(), "unlabelled", unlabelled.len())?;

        let clusters = Clusters::new(groups, unlabelled_groups)?;
        let of_labels = clusters.influences(labels, 0, clusters.n_labelled);
        let of_predictions = clusters.influences(predictions, 0, clusters.n_labelled);
        let of_unlabelled = clusters.influences(unlabelled, labels.len(), clusters.n_unlabelled);
        let slopes: Vec<f64> = of_predictions.iter().zip(&of_unlabelled).map(|(of, other)| of - other).collect();
        let lambda = match self.tuning {
            Tuning::Fixed(lambda) => checked(lambda)?,
            Tuning::Optimal | Tuning::OptimalCommon => {
                check_varies("predictions", &[predictions, unlabelled].concat())?;
                in_range(STATISTIC, dot(&of_labels, &slopes) / dot(&slopes, &slopes))?.clamp(0.0, 1.0)
            }
        };

        let mean_of = |values: &[f64]| sum(values) / values.len() as f64;
        let rectifier = mean_of(&super::rectified(labels, predictions, lambda));
        let value = lambda * mean_of(unlabelled) + rectifier;
        let influences: Vec<f64> = of_labels.iter().zip(&slopes).map(|(label, slope)| label - lambda * slope).collect();
        // Clusters with labels come first.
        let (labelled, others) = influences.split_at(clusters.n_labelled);
        let squares = [dot(labelled, labelled), dot(others, others)];
        let variance = squares[0] + squares[1];
        let reciprocal: f64 = squares
            .iter()
            .zip([labelled.len(), others.len()])
            .filter(|(square, _)| **square > 0.0)
            .map(|(square, n)| (square / variance).powi(2) / n.saturating_sub(1).max(1) as f64)
            .sum();
        let mean = student(value, variance.sqrt(), reciprocal.recip(), labels.len() + unlabelled.len())?;
        let classical = clustered_mean(labels, groups)?;
        let effective_sample_size = effective_sample_size(labels.len(), &mean, &classical)?;
        Ok(PoweredMean { mean, lambda, classical, effective_sample_size })
    }
}

/// Rows of each cluster, labelled items first and those clusters first that have some.
struct Clusters {
    rows: Vec<Vec<usize>>,
    n_labelled: usize,
    n_unlabelled: usize,
}

impl Clusters {
    fn new<G: Ord>(groups: &[G], unlabelled_groups: &[G]) -> Result<Self, Error> {
        let rows = clusters(&groups.iter().chain(unlabelled_groups).collect::<Vec<_>>());
        let n_labels = groups.len();
        let count = |has: &dyn Fn(usize) -> bool| rows.iter().filter(|rows| rows.iter().any(|&row| has(row))).count();
        let (n_labelled, n_unlabelled) = (count(&|row| row < n_labels), count(&|row| row >= n_labels));
        for found in [n_labelled, n_unlabelled] {
            if found < 2 {
                return Err(Error::TooFewItems { required: 2, found });
            }
        }
        Ok(Self { rows, n_labelled, n_unlabelled })
    }

    /// What each cluster adds to the mean of `values`, those of the rows from `start` on, corrected for the few clusters that have such rows.
    fn influences(&self, values: &[f64], start: usize, n_clusters: usize) -> Vec<f64> {
        let factor = (n_clusters as f64 / (n_clusters - 1) as f64).sqrt() / values.len() as f64;
        let deviations = super::centred(values);
        let of_row = |row: &usize| row.checked_sub(start).and_then(|place| deviations.get(place));
        self.rows.iter().map(|rows| rows.iter().filter_map(of_row).map(|deviation| factor * deviation).sum()).collect()
    }
}
