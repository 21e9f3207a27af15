use super::{PoweredMean, PredictionPoweredMean, STATISTIC, Tuning, check_clustered, checked, effective_sample_size};
use crate::estimate::{Spread, UNBOUNDED};
use crate::groups::clusters;
use crate::input::{check_varies, in_range};
use crate::means::sample::EQUAL_ITEMS;
use crate::means::weighted::weights;
use crate::means::{clustered_mean, weighted_mean};
use crate::sum::{dot, sum};
use crate::{Error, Estimate};

impl PredictionPoweredMean {
    /// Estimates the mean of all items, those with labels included, where the labelled ones were drawn from them with unequal probabilities
    /// that are known, such as those that the judge was unsure of more often (active inference: Zrnic and Candès, 2024, arXiv 2403.03208).
    ///
    /// `probabilities[i]` in (0, 1] is the chance that labelled item i had of being labelled; groups are as in
    /// [`clustered`](Self::clustered), a group for each item where they are independent.
    ///
    /// λ · mean(judge on all items) + mean(human − λ · judge on the labelled), where the latter is the
    /// [`weighted_mean`](crate::means::weighted_mean). Its ratio form (Hájek's) changes with no shift of either scale, as the sum of 1 /
    /// probability over all items, which the paper has, would. The variance is that of what each item adds (CR1 over clusters), times
    /// n / (n − 1), and the interval Student's with n − 1 degrees of freedom, for n clusters with labels; λ makes it least. Of 80 labels
    /// among 400 items, drawn with probabilities .3 and .1 by the judge's score, a nominal 95 % came out as 94 %
    /// (`tests/it/weighted_mean.rs`). Where a few labels that stand for many items each decide, the interval is too narrow.
    ///
    /// # Errors
    ///
    /// Those of [`clustered`](Self::clustered), and [`Error::OutOfRange`] for what is no probability, 0 included.
    ///
    /// ```
    /// use judge_metrics::means::PredictionPoweredMean;
    ///
    /// // People looked at all rows that the judge scored low and at one in five of the others.
    /// let (human, judge) = ([1.0, 2.0, 2.0, 4.0, 5.0], [1.5, 2.5, 2.0, 4.0, 4.5]);
    /// let others: Vec<f64> = (0..12).map(|i| 3.5 + f64::from(i % 3) / 2.0).collect();
    /// let rows: Vec<usize> = (0..17).collect();
    /// let found = PredictionPoweredMean::default().sampled(
    ///     &human, &judge, &[1.0, 1.0, 1.0, 0.2, 0.2], &rows[..5], &others, &rows[5..],
    /// )?;
    /// assert!((3.0..4.5).contains(&found.mean.estimate) && found.classical.estimate > 3.0);
    /// # Ok::<(), judge_metrics::Error>(())
    /// ```
    pub fn sampled<G: Ord>(
        &self,
        labels: &[f64],
        predictions: &[f64],
        probabilities: &[f64],
        groups: &[G],
        unlabelled: &[f64],
        unlabelled_groups: &[G],
    ) -> Result<PoweredMean, Error> {
        check_clustered(labels, predictions, unlabelled, [groups.len(), unlabelled_groups.len()])?;
        let weights = weights("labels", labels.len(), probabilities)?;
        let classical = weighted_mean(labels, probabilities, groups)?;
        let scores = [predictions, unlabelled].concat();
        let all: Vec<&G> = groups.iter().chain(unlabelled_groups).collect();
        let (n, total) = (scores.len() as f64, sum(&weights));
        let weighted = |column: &[f64]| dot(column, &weights) / total;
        // What each item adds to a weighted mean: nothing without a label.
        let added = |column: &[f64]| -> Vec<f64> {
            let mean = weighted(column);
            let of_labelled = column.iter().zip(&weights).map(|(value, weight)| (value - mean) * (weight / total) * n);
            of_labelled.chain(unlabelled.iter().map(|_| 0.0)).collect()
        };
        let of_labels = added(labels);
        let mean_score = sum(&scores) / n;
        let of_scores: Vec<f64> =
            scores.iter().zip(added(predictions)).map(|(score, added)| score - mean_score - added).collect();
        let lambda = match self.tuning {
            Tuning::Fixed(lambda) => checked(lambda)?,
            Tuning::Optimal | Tuning::OptimalCommon => {
                check_varies("predictions", &scores)?;
                let sums = |column: &[f64]| -> Vec<f64> {
                    clusters(&all).iter().map(|rows| rows.iter().map(|&row| column[row]).sum()).collect()
                };
                let (of_labels, of_scores) = (sums(&of_labels), sums(&of_scores));
                in_range(STATISTIC, -dot(&of_labels, &of_scores) / dot(&of_scores, &of_scores))?.clamp(0.0, 1.0)
            }
        };
        let value = weighted(labels) + lambda * (mean_score - weighted(predictions));
        let adds: Vec<f64> = of_labels.iter().zip(&of_scores).map(|(label, score)| label + lambda * score).collect();
        let labelled = clusters(groups).len() as f64;
        let standard_error = clustered_mean(&adds, &all)?.standard_error()? * (labelled / (labelled - 1.0)).sqrt();
        let spread = Spread::StudentT { degrees_of_freedom: labelled - 1.0, range: UNBOUNDED };
        let mean = Estimate::new(STATISTIC, value, scores.len())?.with_error(standard_error, spread);
        let mean = mean.tested_against_zero(EQUAL_ITEMS);
        let effective_sample_size = effective_sample_size(labels.len(), &mean, &classical)?;
        Ok(PoweredMean { mean, lambda, classical, effective_sample_size })
    }
}
