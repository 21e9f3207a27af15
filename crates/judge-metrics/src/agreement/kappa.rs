//! Cohen's kappa of a table of counts, weighted or not.
//!
//! Both sides of the table are people or judges whose labels are pinned by the caller, so a label that nobody gives keeps its row.
//! Large-sample errors are those of Fleiss, Cohen and Everitt (1969): one for the interval, and one under the hypothesis of no agreement
//! beyond chance for the test.

use crate::distribution::normal_tail;
use crate::estimate::{Missing, Spread};
use crate::{Error, Estimate, NullDistribution};

/// What rounding leaves of terms from 0 to 1.
const ROUNDING: f64 = 1e-13;

/// From row-major counts and agreement weights, `[n_labels, n_labels]`, with the large-sample errors of Fleiss, Cohen and Everitt (1969).
pub(super) fn cohen_kappa(counts: &[u64], weights: &[f64], rows: &[u64], columns: &[u64]) -> Result<Estimate, Error> {
    let n = rows.iter().sum::<u64>() as f64;
    let share = |sums: &[u64]| -> Vec<f64> { sums.iter().map(|&sum| sum as f64 / n).collect() };
    let (counts, rows, columns) = (share(counts), share(rows), share(columns));
    let k = rows.len();
    let cells = || (0..k * k).map(|cell| (cell / k, cell % k, cell));
    let expected: f64 = cells().map(|(i, j, cell)| weights[cell] * rows[i] * columns[j]).sum();
    // 1 - (disagreement seen) / (disagreement expected) loses nothing near full agreement.
    let missed = |of: &dyn Fn(usize, usize, usize) -> f64| -> f64 {
        cells().map(|(i, j, cell)| (1.0 - weights[cell]) * of(i, j, cell)).sum()
    };
    let chance = missed(&|i, j, _| rows[i] * columns[j]);
    // Not `expected >= 1.0`, which rounding may miss: each term of this sum is 0 by itself where chance agrees fully.
    if chance <= 0.0 {
        let reason = "both columns have one and the same label, or labels of one value, so that chance agrees fully";
        return Err(Error::Undefined { statistic: "Cohen's kappa", reason });
    }
    let seen = missed(&|_, _, cell| counts[cell]);
    // What rounding alone parts from chance is chance, as in tables whose columns share no label.
    let kappa = if (seen - chance).abs() <= ROUNDING * chance { 0.0 } else { 1.0 - seen / chance };
    // Mean weight of a label against the other side's frequencies.
    let of_row: Vec<f64> = (0..k).map(|i| (0..k).map(|j| weights[i * k + j] * columns[j]).sum()).collect();
    let of_column: Vec<f64> = (0..k).map(|j| (0..k).map(|i| weights[i * k + j] * rows[i]).sum()).collect();
    // Variances are sums of squares around the mean: a difference of two sums could lose all of a small one.
    let mean = kappa - expected * (1.0 - kappa);
    let variance: f64 = cells()
        .map(|(i, j, cell)| counts[cell] * (weights[cell] - (of_row[i] + of_column[j]) * (1.0 - kappa) - mean).powi(2))
        .sum();
    let is_constant = rows.iter().chain(&columns).any(|&share| share == 1.0);
    let null_variance: f64 = cells()
        .map(|(i, j, cell)| rows[i] * columns[j] * (weights[cell] - (of_row[i] + of_column[j]) + expected).powi(2))
        .sum();
    let error = |variance: f64| {
        // Deviations are of weights from 0 to 1, times 1 - kappa.
        let deviation = variance.sqrt();
        let rounding = ROUNDING * (2.0 - kappa);
        if deviation <= rounding { 0.0 } else { deviation / n.sqrt() / chance }
    };
    let estimate = Estimate::new("Cohen's kappa", kappa.clamp(-1.0, 1.0), n as usize)?
        .with_error(error(variance), Spread::Normal { range: [-1.0, 1.0] });
    Ok(if is_constant {
        estimate.untested(Missing::Because("a column has one label only: kappa is 0 whatever the other says"))
    } else if error(null_variance) == 0.0 {
        estimate.untested(Missing::Because("kappa is the same whatever the order of a column's labels"))
    } else {
        estimate.tested(normal_tail(kappa / error(null_variance)), NullDistribution::Normal)
    })
}
