//! Scores as probabilities of what people say is 0 or 1.
//!
//! AUROC and average precision ask for an order only and take any scores. Brier score, log loss and what measures calibration take numbers
//! in [0, 1] of which some lie between: of decisions, all 0 or 1, a calibration error would only repeat the error rate.
//!
//! Expected calibration errors take ten bins, of equal width and of equal mass. They are biased upwards, as their resamples are even more,
//! so a percentile interval that misses the estimate is not shown (`statistic.rs`). The debiased squared error has that bias taken off and
//! may be below 0.

use super::collector::{Collector, Items, of_both};
use crate::calibration::{Binning, LogisticRecalibration, ReliabilityCurve};
use crate::estimate::{NOT_NEGATIVE, SHARE};
use crate::number::six_digits;
use crate::prediction::scoring::log_losses;
use crate::prediction::{LOG_LOSS_CLIP, auroc, average_precision, brier_score, log_loss};

/// What only scores of yes or no define.
pub(super) const PROBABILITIES: [&str; 9] = [
    "auroc",
    "average_precision",
    "brier",
    "log_loss",
    "ece",
    "ece_adaptive",
    "squared_calibration_error_debiased",
    "calibration_slope",
    "calibration_intercept",
];

/// Why people's scores are no outcomes, if they are none.
pub(super) fn why_no_outcomes(human: &[f64]) -> Option<&'static str> {
    let decided = human.iter().all(|&human| human == 0.0 || human == 1.0);
    (!decided).then_some("human scores are not all 0 or 1")
}

/// Why a judge's scores are no probabilities, if they are none.
pub(super) fn why_no_probabilities(predicted: &[f64]) -> Option<String> {
    match predicted.iter().find(|p| !(0.0..=1.0).contains(*p)) {
        Some(&outside) => Some(format!("{} is no probability", six_digits(outside))),
        None if predicted.iter().all(|&p| p == 0.0 || p == 1.0) => {
            Some("predictions are all 0 or 1: decisions, not probabilities".to_owned())
        }
        None => None,
    }
}

/// Scores of what people say is 0 or 1: how well they order, and as probabilities if they lie in [0, 1].
pub(super) fn compare(found: &mut Collector<'_>, predicted: &[f64], human: &[f64]) {
    if let Some(reason) = why_no_outcomes(human) {
        return found.all_undefined(&PROBABILITIES, reason);
    }
    let outcomes: Vec<bool> = human.iter().map(|&human| human == 1.0).collect();
    let n = outcomes.len();
    let [of_order, of_precision, of_brier, of_log_loss, of_ece, of_ece_adaptive, of_debiased, of_slope, of_intercept] =
        PROBABILITIES;
    found.closed(of_order, of_both(&outcomes, predicted, auroc), n);
    let precision = of_both(&outcomes, predicted, |y, p| Ok(average_precision(y, p)?.estimate));
    found.resample(of_precision, None, precision, n);

    if let Some(reason) = why_no_probabilities(predicted) {
        return found.all_undefined(&PROBABILITIES[2..], &reason);
    }
    let squares: Vec<f64> = human.iter().zip(predicted).map(|(y, p)| (p - y).powi(2)).collect();
    found.mean(of_brier, &Items::within(&squares, SHARE), || brier_score(&outcomes, predicted));
    match log_losses(&outcomes, predicted, LOG_LOSS_CLIP) {
        Ok(losses) => {
            let losses = Items::within(&losses, NOT_NEGATIVE);
            found.mean(of_log_loss, &losses, || log_loss(&outcomes, predicted, LOG_LOSS_CLIP));
        }
        Err(error) => found.add(of_log_loss, Err(error)),
    }
    let binnings = [(of_ece, Binning::EqualWidth { bins: 10 }), (of_ece_adaptive, Binning::EqualMass { bins: 10 })];
    for (name, binning) in binnings {
        let ece = |y: &[bool], p: &[f64]| Ok(ReliabilityCurve::new(y, p, binning)?.expected_calibration_error());
        found.resample(name, None, of_both(&outcomes, predicted, ece), n);
    }
    let debiased =
        |y: &[bool], p: &[f64]| ReliabilityCurve::new(y, p, Binning::EqualMass { bins: 10 })?.debiased_squared_error();
    found.closed(of_debiased, of_both(&outcomes, predicted, debiased), n);
    let recalibrated = of_both(&outcomes, predicted, LogisticRecalibration::new);
    found.closed(of_slope, |rows| Ok(recalibrated(rows)?.slope), n);
    // Cox's, fitted together with the slope: not that of calibration in the large, where the slope is 1.
    found.closed(of_intercept, |rows| Ok(recalibrated(rows)?.intercept), n);
}
