use super::{PoweredMean, PredictionPoweredMean, STATISTIC, Tuning, check_clustered, checked, effective_sample_size};
use crate::Error;
use crate::groups::clusters;
use crate::input::{check_clusters, check_varies, in_range};
use crate::means::clustered_mean;
use crate::means::parts::{Part, sum_of_parts};
use crate::sum::{dot, sum};

impl PredictionPoweredMean {
    /// Estimates the mean of items that come in clusters, such as several answers to one question.
    ///
    /// `groups[i]` says which cluster labelled item i belongs to, `unlabelled_groups[j]` the same of unlabelled item j. A cluster may have
    /// items of both kinds. Items of one cluster may depend on each other in any way, clusters must not. Means are over items, as in
    /// [`clustered_mean`], which `classical` is.
    ///
    /// The variance is the sum over clusters of the squared influence of each: what its labelled items add to the mean of residuals, plus λ
    /// times what its unlabelled items add to the judge's mean, each times G / (G − 1) for the G clusters that have such items (CR1, Liang
    /// and Zeger, 1986). λ makes that variance least; with a cluster for each item it is nearly that of [`estimate`](Self::estimate), which
    /// pools the variance of predictions. The degrees of freedom are Welch's, of clusters with labels and of those without. A nominal 95 %
    /// came out as 90 % with five labelled clusters of four items, since λ is chosen by them too, and as 94 to 95 % with 25 and 250 (the
    /// bench `coverage`).
    ///
    /// # Errors
    ///
    /// Those of [`estimate`](Self::estimate); [`Error::TooFewClusters`] for fewer than two clusters of labelled or of unlabelled items;
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
        check_clustered(labels, predictions, unlabelled, [groups.len(), unlabelled_groups.len()])?;

        let rows = Rows { labels, predictions, groups, unlabelled, unlabelled_groups };
        let lambda = |influences: &Influences| match self.tuning {
            Tuning::Fixed(lambda) => checked(lambda),
            Tuning::Optimal | Tuning::OptimalCommon => {
                check_varies("predictions", &[predictions, unlabelled].concat())?;
                influences.lambda()
            }
        };
        let (value, parts, lambda) = clustered_parts(STATISTIC, &rows, lambda)?;
        let mean = sum_of_parts(STATISTIC, value, &parts, labels.len() + unlabelled.len())?;
        let classical = clustered_mean(labels, groups)?;
        let effective_sample_size = effective_sample_size(labels.len(), &mean, &classical)?;
        Ok(PoweredMean { mean, lambda, classical, effective_sample_size })
    }
}

/// Items of both kinds and the clusters that they belong to; columns of one kind are of one length.
pub(in crate::means) struct Rows<'a, G> {
    pub(in crate::means) labels: &'a [f64],
    pub(in crate::means) predictions: &'a [f64],
    pub(in crate::means) groups: &'a [G],
    pub(in crate::means) unlabelled: &'a [f64],
    pub(in crate::means) unlabelled_groups: &'a [G],
}

/// The prediction-powered mean, the errors of clusters with labels and of those without, and the λ that was chosen.
pub(in crate::means) fn clustered_parts<G: Ord>(
    statistic: &'static str,
    rows: &Rows<'_, G>,
    lambda: impl FnOnce(&Influences) -> Result<f64, Error>,
) -> Result<(f64, [Part; 2], f64), Error> {
    let influences = Influences::of(rows)?;
    let lambda = lambda(&influences)?;
    let mean_of = |values: &[f64]| sum(values) / values.len() as f64;
    let rectifier = mean_of(&super::rectified(rows.labels, rows.predictions, lambda));
    let value = in_range(statistic, lambda * mean_of(rows.unlabelled) + rectifier)?;
    Ok((value, influences.parts(lambda), lambda))
}

/// What each cluster adds to the mean: to that of labels, and for each unit of λ. Clusters with labels come first.
pub(in crate::means) struct Influences {
    of_labels: Vec<f64>,
    slopes: Vec<f64>,
    n_labelled: usize,
}

impl Influences {
    fn of<G: Ord>(rows: &Rows<'_, G>) -> Result<Self, Error> {
        let clusters = Clusters::new(rows.groups, rows.unlabelled_groups)?;
        let of_labels = clusters.influences(rows.labels, 0, clusters.n_labelled);
        let of_predictions = clusters.influences(rows.predictions, 0, clusters.n_labelled);
        let of_unlabelled = clusters.influences(rows.unlabelled, rows.labels.len(), clusters.n_unlabelled);
        let slopes = of_predictions.iter().zip(&of_unlabelled).map(|(of, other)| of - other).collect();
        Ok(Self { of_labels, slopes, n_labelled: clusters.n_labelled })
    }

    /// The λ in [0, 1] of the least variance.
    fn lambda(&self) -> Result<f64, Error> {
        let ratio = dot(&self.of_labels, &self.slopes) / dot(&self.slopes, &self.slopes);
        Ok(in_range(STATISTIC, ratio)?.clamp(0.0, 1.0))
    }

    fn parts(&self, lambda: f64) -> [Part; 2] {
        let influences: Vec<f64> =
            self.of_labels.iter().zip(&self.slopes).map(|(label, slope)| label - lambda * slope).collect();
        let (labelled, others) = influences.split_at(self.n_labelled);
        [labelled, others].map(|influences| Part {
            mean: 0.0,
            standard_error: dot(influences, influences).sqrt(),
            degrees_of_freedom: influences.len().saturating_sub(1).max(1) as f64,
        })
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
        check_clusters(2, n_labels, n_labelled)?;
        check_clusters(2, unlabelled_groups.len(), n_unlabelled)?;
        Ok(Self { rows, n_labelled, n_unlabelled })
    }

    /// What each cluster adds to the mean of `values`, those of the rows from `start` on, corrected for the few clusters that have such
    /// rows.
    fn influences(&self, values: &[f64], start: usize, n_clusters: usize) -> Vec<f64> {
        let factor = (n_clusters as f64 / (n_clusters - 1) as f64).sqrt() / values.len() as f64;
        let deviations = super::centred(values);
        let of_row = |row: &usize| row.checked_sub(start).and_then(|place| deviations.get(place));
        self.rows.iter().map(|rows| rows.iter().filter_map(of_row).map(|deviation| factor * deviation).sum()).collect()
    }
}
