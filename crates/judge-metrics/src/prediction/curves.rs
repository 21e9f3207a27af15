use crate::input::{check_count, check_finite, check_lengths};
use crate::sum::sum;
use crate::{Error, Estimate};

/// One point of a precision–recall curve.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PrecisionRecallPoint {
    /// Items that score at least this are called positive.
    pub threshold: f64,
    /// Positive items among those called positive.
    pub precision: f64,
    /// Positive items called positive, of all positive ones.
    pub recall: f64,
}

/// Precision and recall at every distinct score, descending, so that recall rises to 1.
///
/// `sklearn.metrics.precision_recall_curve`, which lists the same points from the lowest score up and adds an end
/// (precision 1, recall 0) that no threshold reaches. `outcomes`: at least one true; `scores`: n finite numbers. O(n
/// log n).
///
/// # Errors
///
/// [`Error::LengthMismatch`], [`Error::TooFewItems`], [`Error::NonFinite`]; [`Error::Undefined`] where no outcome is
/// true.
pub fn precision_recall_curve(outcomes: &[bool], scores: &[f64]) -> Result<Vec<PrecisionRecallPoint>, Error> {
    check_lengths("scores", scores.len(), "outcomes", outcomes.len())?;
    check_count(1, outcomes.len())?;
    check_finite("scores", scores)?;
    let all = outcomes.iter().filter(|&&came| came).count();
    if all == 0 {
        return Err(Error::Undefined { statistic: "precision–recall curve", reason: "no outcome is true" });
    }
    // Adding +0 turns -0 into +0, so that the total order agrees with `==` on finite numbers.
    let mut items: Vec<(f64, bool)> = scores.iter().map(|score| score + 0.0).zip(outcomes.iter().copied()).collect();
    items.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
    let (mut right, mut called) = (0, 0);
    let point = |tied: &[(f64, bool)]| {
        right += tied.iter().filter(|item| item.1).count();
        called += tied.len();
        let (precision, recall) = (right as f64 / called as f64, right as f64 / all as f64);
        PrecisionRecallPoint { threshold: tied[0].0, precision, recall }
    };
    Ok(items.chunk_by(|a, b| a.0 == b.0).map(point).collect())
}

/// Average precision, Σ (Rᵢ − Rᵢ₋₁) Pᵢ over the precision–recall curve without interpolation
/// (`sklearn.metrics.average_precision_score`).
///
/// In (0, 1]; scores without information get the share of positive items. Input and errors as for
/// [`precision_recall_curve`], and [`Error::Undefined`] where no outcome is false; it has no standard error in closed form, so that its
/// interval is that of [`Bootstrap`](crate::resampling::Bootstrap).
///
/// ```
/// let precision = judge_metrics::prediction::average_precision(&[false, false, true, true], &[0.1, 0.4, 0.35, 0.8])?;
/// assert!((precision.estimate - 0.833_333_3).abs() < 1e-7);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[doc(alias = "average_precision_score")]
pub fn average_precision(outcomes: &[bool], scores: &[f64]) -> Result<Estimate, Error> {
    let curve = precision_recall_curve(outcomes, scores)?;
    if !outcomes.contains(&false) {
        let reason = "no outcome is false, so that any scores reach 1";
        return Err(Error::Undefined { statistic: "average precision", reason });
    }
    let mut recall = 0.0;
    let steps: Vec<f64> = curve
        .iter()
        .map(|point| {
            let gain = point.recall - recall;
            recall = point.recall;
            gain * point.precision
        })
        .collect();
    Estimate::new("average precision", sum(&steps).min(1.0), outcomes.len())
}

/// A threshold, and how well it tells positive items from negative ones.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct F1Threshold {
    /// Items that score at least this are called positive.
    pub threshold: f64,
    /// Positive items among those called positive.
    pub precision: f64,
    /// Positive items called positive, of all positive ones.
    pub recall: f64,
    /// 2 · precision · recall / (precision + recall); 0 where both are 0.
    pub f1: f64,
}

/// The threshold with the largest F1 of the positive class; of several, the highest. Where it was chosen it flatters itself: judge it on
/// other items.
///
/// Input and errors as for [`precision_recall_curve`]. O(n log n).
///
/// ```
/// let best = judge_metrics::prediction::best_f1_threshold(&[false, false, true, true], &[0.1, 0.4, 0.35, 0.8])?;
/// assert_eq!((best.threshold, best.recall), (0.35, 1.0));
/// assert!((best.f1 - 0.8).abs() < 1e-15);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn best_f1_threshold(outcomes: &[bool], scores: &[f64]) -> Result<F1Threshold, Error> {
    let points = precision_recall_curve(outcomes, scores)?.into_iter().map(|point| {
        let PrecisionRecallPoint { threshold, precision, recall } = point;
        let both = precision + recall;
        let f1 = if both > 0.0 { 2.0 * precision * recall / both } else { 0.0 };
        F1Threshold { threshold, precision, recall, f1 }
    });
    // The curve has a point, as there is an item.
    let best = points.reduce(|best, point| if point.f1 > best.f1 { point } else { best });
    best.ok_or(Error::TooFewItems { required: 1, found: 0 })
}
