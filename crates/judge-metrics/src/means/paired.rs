use crate::distribution::{student_t_quantile, student_t_tail};
use crate::input::{check_level, check_paired};
use crate::{Error, Interval, sum};

/// The mean of differences within items, b − a, and how sure it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairedDifference {
    /// Mean difference.
    pub mean: f64,
    /// Standard deviation of the differences, with n − 1.
    pub standard_deviation: f64,
    /// Items, 2 or more.
    pub n: usize,
}

impl PairedDifference {
    /// Two finite columns of equal length, called `a` and `b` in errors.
    pub(crate) fn new(a: (&'static str, &[f64]), b: (&'static str, &[f64])) -> Result<Self, Error> {
        check_paired(a.1, b.1, 2).map_err(|error| named(error, a.0, b.0))?;
        let n = a.1.len();
        let differences: Vec<f64> = a.1.iter().zip(b.1).map(|(a, b)| b - a).collect();
        let mean = sum::sum(&differences) / n as f64;
        let deviations: Vec<f64> = differences.iter().map(|difference| difference - mean).collect();
        let variance = sum::dot(&deviations, &deviations) / (n - 1) as f64;
        if !(mean.is_finite() && variance.is_finite()) {
            return Err(Error::Undefined { statistic: "paired difference", reason: "the differences overflow" });
        }
        // Equal differences must not differ by the rounding of their mean.
        let equal = differences.iter().all(|&difference| difference == differences[0]);
        let (mean, variance) = if equal { (differences[0], 0.0) } else { (mean, variance) };
        Ok(Self { mean, standard_deviation: variance.sqrt(), n })
    }

    /// Student's t interval of the mean difference. It supposes items that are independent; where several belong to one
    /// question, resample questions with a [`Bootstrap`](crate::resampling::Bootstrap).
    ///
    /// # Errors
    ///
    /// [`Error::LevelOutOfRange`]; [`Error::Undefined`] if all differences are equal, which says nothing about their
    /// spread.
    pub fn interval(&self, level: f64) -> Result<Interval, Error> {
        check_level(level)?;
        let margin = student_t_quantile(f64::midpoint(1.0, level), self.dof()) * self.standard_error()?;
        Ok(Interval { low: self.mean - margin, high: self.mean + margin, level })
    }

    /// Two-sided p-value of a mean difference of 0 by Student's paired t test (`scipy.stats.ttest_rel`), in [0, 1].
    ///
    /// # Errors
    ///
    /// [`Error::Undefined`] if all differences are equal.
    pub fn p_value(&self) -> Result<f64, Error> {
        Ok(student_t_tail(self.mean / self.standard_error()?, self.dof()))
    }

    fn dof(&self) -> f64 {
        (self.n - 1) as f64
    }

    fn standard_error(&self) -> Result<f64, Error> {
        if self.standard_deviation == 0.0 {
            return Err(Error::Undefined { statistic: "paired t", reason: "all differences are equal" });
        }
        Ok(self.standard_deviation / (self.n as f64).sqrt())
    }
}

/// The error about `x` and `y` as one about the caller's own parameters.
fn named(error: Error, x: &'static str, y: &'static str) -> Error {
    let name = |argument| if argument == "x" { x } else { y };
    match error {
        Error::LengthMismatch { argument, found, other, expected } => {
            Error::LengthMismatch { argument: name(argument), found, other: name(other), expected }
        }
        Error::NonFinite { argument, index, value } => Error::NonFinite { argument: name(argument), index, value },
        other => other,
    }
}
