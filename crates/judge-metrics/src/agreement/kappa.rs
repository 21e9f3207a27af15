use crate::distribution::{normal_tail, normal_two_sided_quantile};
use crate::input::check_level;
use crate::{Error, Interval};

/// Cohen's kappa with its large-sample errors (Fleiss, Cohen and Everitt, 1969).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CohenKappa {
    /// In [-1, 1]; 1 is full agreement, 0 what chance gives.
    pub estimate: f64,
    /// Of the estimate: `std_kappa` of statsmodels.
    pub standard_error: f64,
    /// Of the estimate if there is no agreement beyond chance: `std_kappa0` of statsmodels.
    pub null_standard_error: f64,
}

impl CohenKappa {
    /// From row-major counts and agreement weights, `[n_labels, n_labels]`.
    pub(super) fn new(counts: &[u64], weights: &[f64], rows: &[u64], columns: &[u64]) -> Result<Self, Error> {
        let n = rows.iter().sum::<u64>() as f64;
        let share = |sums: &[u64]| -> Vec<f64> { sums.iter().map(|&sum| sum as f64 / n).collect() };
        let (counts, rows, columns) = (share(counts), share(rows), share(columns));
        let k = rows.len();
        let cells = || (0..k * k).map(|cell| (cell / k, cell % k, cell));
        let expected: f64 = cells().map(|(i, j, cell)| weights[cell] * rows[i] * columns[j]).sum();
        if expected >= 1.0 {
            let reason = "both columns have one and the same label, so that chance agrees fully";
            return Err(Error::Undefined { statistic: "Cohen's kappa", reason });
        }
        // 1 - (disagreement seen) / (disagreement expected) loses nothing near full agreement.
        let missed = |of: &dyn Fn(usize, usize, usize) -> f64| -> f64 {
            cells().map(|(i, j, cell)| (1.0 - weights[cell]) * of(i, j, cell)).sum()
        };
        let chance = missed(&|i, j, _| rows[i] * columns[j]);
        let kappa = 1.0 - missed(&|_, _, cell| counts[cell]) / chance;
        // Mean weight of a label against the other side's frequencies.
        let of_row: Vec<f64> = (0..k).map(|i| (0..k).map(|j| weights[i * k + j] * columns[j]).sum()).collect();
        let of_column: Vec<f64> = (0..k).map(|j| (0..k).map(|i| weights[i * k + j] * rows[i]).sum()).collect();
        // Variances are sums of squares around the mean: a difference of two sums could lose all of a small one.
        let mean = kappa - expected * (1.0 - kappa);
        let variance: f64 = cells()
            .map(|(i, j, cell)| {
                counts[cell] * (weights[cell] - (of_row[i] + of_column[j]) * (1.0 - kappa) - mean).powi(2)
            })
            .sum();
        let is_constant = rows.iter().chain(&columns).any(|&share| share == 1.0);
        let null_variance: f64 = cells()
            .map(|(i, j, cell)| rows[i] * columns[j] * (weights[cell] - (of_row[i] + of_column[j]) + expected).powi(2))
            .sum();
        let error = |variance: f64| (variance / n).sqrt() / chance;
        Ok(Self {
            estimate: kappa.clamp(-1.0, 1.0),
            standard_error: error(variance),
            null_standard_error: if is_constant { 0.0 } else { error(null_variance) },
        })
    }

    /// Wald's interval, cut to [-1, 1]. A large-sample one: below about 50 items, or where a label is rare, take
    /// [`Bootstrap`](crate::resampling::Bootstrap).
    ///
    /// # Errors
    ///
    /// [`Error::LevelOutOfRange`].
    pub fn interval(&self, level: f64) -> Result<Interval, Error> {
        check_level(level)?;
        let half = normal_two_sided_quantile(level) * self.standard_error;
        Ok(Interval { low: (self.estimate - half).max(-1.0), high: (self.estimate + half).min(1.0), level })
    }

    /// Two-sided p-value of no agreement beyond chance.
    ///
    /// # Errors
    ///
    /// [`Error::Undefined`] where a column has one label only: kappa is then 0 whatever the other says.
    pub fn p_value(&self) -> Result<f64, Error> {
        if self.null_standard_error == 0.0 {
            let reason = "a column has one label only";
            return Err(Error::Undefined { statistic: "the test of Cohen's kappa", reason });
        }
        Ok(normal_tail(self.estimate / self.null_standard_error))
    }
}
