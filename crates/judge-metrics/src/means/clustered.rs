use crate::distribution::student_t_quantile;
use crate::input::{check_finite, check_lengths, check_level};
use crate::prediction::mean::in_range;
use crate::resampling::clusters;
use crate::{Error, Interval};

/// The mean of one number per item where items come in clusters, such as several answers to one question, with the standard error that allows for it (Liang and Zeger, 1986; recommended for evaluations of language models by Miller, 2024,
/// arXiv 2411.00640).
///
/// Items of one cluster may depend on each other in any way, clusters must not. The variance is that of cluster sums of residuals, times G / (G − 1) for G clusters (CR1): `OLS(y, ones).fit(cov_type="cluster", use_t=True)` of
/// statsmodels 0.15, whose interval is Student's with G − 1 degrees of freedom too.
///
/// ```
/// use judge_metrics::prediction::ClusteredMean;
///
/// // Two answers to each of four questions.
/// let right = [1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0];
/// let question = ["a", "a", "b", "b", "c", "c", "d", "d"];
/// let mean = ClusteredMean::new(&right, &question)?;
/// assert_eq!((mean.estimate, mean.n, mean.n_clusters), (0.625, 8, 4));
/// assert!((mean.standard_error - 0.239_356_8).abs() < 1e-7);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClusteredMean {
    /// The mean over items, in their unit: large clusters count as the items they hold.
    pub estimate: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// Items.
    pub n: usize,
    /// Clusters.
    pub n_clusters: usize,
}

impl ClusteredMean {
    /// The mean of `values`, finite; `groups[i]` says which cluster item i belongs to.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`], [`Error::NonFinite`]; [`Error::TooFewItems`] for fewer than two clusters, which do not say how much clusters vary; [`Error::Undefined`] where the arithmetic exceeds the largest finite number.
    pub fn new<G: Ord>(values: &[f64], groups: &[G]) -> Result<Self, Error> {
        check_finite("values", values)?;
        check_lengths("groups", groups.len(), "values", values.len())?;
        let clusters = clusters(groups);
        if clusters.len() < 2 {
            return Err(Error::TooFewItems { required: 2, found: clusters.len() });
        }
        let (n, n_clusters) = (values.len() as f64, clusters.len() as f64);
        let estimate = in_range("mean", crate::sum::sum(values) / n)?;
        let sums: Vec<f64> =
            clusters.iter().map(|rows| rows.iter().map(|&row| (values[row] - estimate) / n).sum()).collect();
        // A mean of squares times their number: squares that overflow are not made.
        let root = super::mean::root_mean_square(&sums) * n_clusters.sqrt();
        let standard_error = in_range("mean", root * (n_clusters / (n_clusters - 1.0)).sqrt())?;
        Ok(Self { estimate, standard_error, n: values.len(), n_clusters: clusters.len() })
    }

    /// Student's interval with one degree of freedom less than clusters. Of normal items in clusters of four it covered 95 % with five clusters as
    /// with 125, where the bootstrap over clusters covers 85 % with five (the example `coverage`); very unequal clusters and skewed items need more of them.
    ///
    /// # Errors
    ///
    /// [`Error::LevelOutOfRange`]; [`Error::Undefined`] where an end exceeds the largest finite number.
    pub fn interval(&self, level: f64) -> Result<Interval, Error> {
        check_level(level)?;
        let half = student_t_quantile(0.5 + level / 2.0, (self.n_clusters - 1) as f64) * self.standard_error;
        let end = |end| in_range("interval of a mean", end);
        Ok(Interval { low: end(self.estimate - half)?, high: end(self.estimate + half)?, level })
    }
}
