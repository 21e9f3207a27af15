//! Estimates that are sums of independent parts, with Student's interval and Welch's degrees of freedom.

use super::sample::{EQUAL_ITEMS, is_rounding, mean_of, root_mean_square};
use crate::estimate::{Spread, UNBOUNDED};
use crate::input::in_range;
use crate::sum::sum;
use crate::{Error, Estimate};

/// What an estimate is the sum of, each independent of the others.
pub(super) struct Part {
    pub(super) mean: f64,
    pub(super) standard_error: f64,
    pub(super) degrees_of_freedom: f64,
}

impl Part {
    /// The mean of independent values, at least two.
    pub(super) fn of(statistic: &'static str, values: &[f64]) -> Result<Self, Error> {
        let mean = mean_of(statistic, values)?;
        let degrees_of_freedom = (values.len() - 1) as f64;
        Ok(Self { mean: mean.estimate, standard_error: mean.standard_error()?, degrees_of_freedom })
    }

    /// An error of mean 0, known from K ≥ 2 estimates that each leave out one of K groups of about equal size: the variance is
    /// (K − 1)/K · Σ (estimate − their mean)² (the delete-a-group jackknife).
    pub(super) fn jackknife(statistic: &'static str, estimates: &[f64]) -> Result<Self, Error> {
        let groups = estimates.len() as f64;
        let mean = sum(estimates) / groups;
        let deviations: Vec<f64> = estimates.iter().map(|estimate| estimate - mean).collect();
        let deviation = root_mean_square(&deviations);
        let deviation = if is_rounding(deviation, estimates, 0.0) { 0.0 } else { deviation };
        let standard_error = in_range(statistic, deviation * (groups - 1.0).sqrt())?;
        Ok(Self { mean: 0.0, standard_error, degrees_of_freedom: groups - 1.0 })
    }

    pub(super) fn times(self, weight: f64) -> Self {
        Self { mean: weight * self.mean, standard_error: weight * self.standard_error, ..self }
    }
}

/// `value` with the errors of its parts. Neither interval nor test where there is no variance.
pub(super) fn sum_of_parts(statistic: &'static str, value: f64, parts: &[Part], n: usize) -> Result<Estimate, Error> {
    let standard_error = parts.iter().fold(0.0, |all: f64, part| all.hypot(part.standard_error));
    let standard_error = in_range(statistic, standard_error)?;
    // By shares of the variance, so that small squares do not vanish.
    let reciprocal: f64 = parts
        .iter()
        .filter(|part| part.standard_error > 0.0)
        .map(|part| (part.standard_error / standard_error).powi(4) / part.degrees_of_freedom)
        .sum();
    let spread = Spread::StudentT { degrees_of_freedom: reciprocal.recip(), range: UNBOUNDED };
    Ok(Estimate::new(statistic, value, n)?.with_error(standard_error, spread).tested_against_zero(EQUAL_ITEMS))
}
