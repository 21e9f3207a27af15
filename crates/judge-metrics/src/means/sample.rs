use crate::distribution::student_t_quantile;
use crate::input::{check_finite, check_level};
use crate::sum::{dot, sum};
use crate::{Error, Interval};

/// The mean of one number per item, and how sure it is.
///
/// What an error or a score averages over items comes as this type: bias, mean absolute error, Brier score, log loss.
/// Items are taken as independent; for several responses to one question use a clustered bootstrap.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampleMean {
    /// The mean, in the unit of the items.
    pub estimate: f64,
    /// s/√n with s the deviation by n − 1; `None` for a single item, which does not say how much items vary.
    pub standard_error: Option<f64>,
    /// Number of items.
    pub n: usize,
}

impl SampleMean {
    /// The mean of `values`: n ≥ 1 finite numbers.
    ///
    /// # Errors
    ///
    /// [`Error::TooFewItems`], [`Error::NonFinite`]; [`Error::Undefined`] where the sum or the deviation exceeds the
    /// largest finite number.
    ///
    /// ```
    /// let mean = judge_metrics::prediction::SampleMean::new(&[2.0, 4.0, 4.0, 6.0])?;
    /// let interval = mean.interval(0.95)?;
    /// assert_eq!(mean.estimate, 4.0);
    /// assert!((interval.low - 1.401_543_5).abs() < 1e-7 && (interval.high - 6.598_456_5).abs() < 1e-7);
    /// # Ok::<(), judge_metrics::Error>(())
    /// ```
    pub fn new(values: &[f64]) -> Result<Self, Error> {
        check_finite("values", values)?;
        Self::of("mean", values)
    }

    /// The mean of what a statistic makes of each item; not finite only where its arithmetic overflowed.
    pub(crate) fn of(statistic: &'static str, values: &[f64]) -> Result<Self, Error> {
        let n = values.len();
        if n == 0 {
            return Err(Error::TooFewItems { required: 1, found: 0 });
        }
        let estimate = in_range(statistic, sum(values) / n as f64)?;
        let standard_error = if n == 1 {
            None
        } else {
            let deviations: Vec<f64> = values.iter().map(|value| value - estimate).collect();
            Some(in_range(statistic, root_mean_square(&deviations) / ((n - 1) as f64).sqrt())?)
        };
        Ok(Self { estimate, standard_error, n })
    }

    /// Student's interval with n − 1 degrees of freedom: estimate ∓ t · standard error
    /// (`scipy.stats.ttest_1samp(…).confidence_interval`).
    ///
    /// `level` in (0, 1) is the nominal coverage: exact for normal items, and a good approximation for others once n is a
    /// few dozen; skewed items (squared errors, log losses) need more. It is not cut off at the ends of the statistic's
    /// range.
    ///
    /// # Errors
    ///
    /// [`Error::LevelOutOfRange`]; [`Error::TooFewItems`] for a single item; [`Error::Undefined`] where an end exceeds
    /// the largest finite number.
    pub fn interval(&self, level: f64) -> Result<Interval, Error> {
        check_level(level)?;
        let Some(standard_error) = self.standard_error else {
            return Err(Error::TooFewItems { required: 2, found: self.n });
        };
        let half = student_t_quantile(0.5 + level / 2.0, (self.n - 1) as f64) * standard_error;
        let end = |end| in_range("interval of a mean", end);
        Ok(Interval { low: end(self.estimate - half)?, high: end(self.estimate + half)?, level })
    }
}

/// √(Σv²/n) of at least one value, without overflow or underflow of the squares.
pub(super) fn root_mean_square(values: &[f64]) -> f64 {
    let largest = values.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
    // Zero stays zero, and an infinity is the caller's to refuse.
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    let scaled: Vec<f64> = values.iter().map(|value| value / largest).collect();
    largest * (dot(&scaled, &scaled) / scaled.len() as f64).sqrt()
}

/// `value`, unless the arithmetic that led to it left the range of finite numbers.
pub(crate) fn in_range(statistic: &'static str, value: f64) -> Result<f64, Error> {
    if value.is_finite() {
        Ok(value)
    } else {
        Err(Error::Undefined { statistic, reason: "its arithmetic exceeds the largest finite number" })
    }
}
