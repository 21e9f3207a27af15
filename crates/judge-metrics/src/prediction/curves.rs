use crate::input::{check_count, check_finite, check_lengths};
use crate::prediction::auroc::check_scores;
use crate::sum::sum;
use crate::{Error, Estimate};

/// One point of a receiver operating characteristic.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RocPoint {
    /// Items that score at least this are called positive; `None` stands above every score.
    pub threshold: Option<f64>,
    /// Negative items called positive, of all negative ones.
    pub false_positive_rate: f64,
    /// Positive items called positive, of all positive ones.
    pub true_positive_rate: f64,
}

/// The receiver operating characteristic from (0, 0) to (1, 1), one point per distinct score, descending.
///
/// `sklearn.metrics.roc_curve(…, drop_intermediate=False)`, whose first threshold, an infinity, is `None` here. Input and
/// errors as for [`auroc`](crate::prediction::auroc). O(n log n).
///
/// ```
/// let curve = judge_metrics::prediction::roc_curve(&[false, false, true, true], &[0.1, 0.4, 0.35, 0.8])?;
/// assert_eq!(curve.len(), 5);
/// assert_eq!((curve[2].threshold, curve[2].false_positive_rate, curve[2].true_positive_rate), (Some(0.4), 0.5, 0.5));
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn roc_curve(outcomes: &[bool], scores: &[f64]) -> Result<Vec<RocPoint>, Error> {
    check_scores("ROC curve", outcomes, "scores", scores)?;
    let cuts = cuts(outcomes, scores);
    let start = RocPoint { threshold: None, false_positive_rate: 0.0, true_positive_rate: 0.0 };
    // Both outcomes occur, so the last cut holds at least one of each.
    let all = cuts[cuts.len() - 1];
    let points = cuts.iter().map(|cut| RocPoint {
        threshold: Some(cut.threshold),
        false_positive_rate: cut.negatives as f64 / all.negatives as f64,
        true_positive_rate: cut.positives as f64 / all.positives as f64,
    });
    Ok(std::iter::once(start).chain(points).collect())
}

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
    let cuts = checked_cuts(outcomes, scores)?;
    if !outcomes.contains(&true) {
        return Err(Error::Undefined { statistic: "precision–recall curve", reason: "no outcome is true" });
    }
    let all = cuts[cuts.len() - 1].positives as f64;
    let point = |cut: &Cut| PrecisionRecallPoint {
        threshold: cut.threshold,
        precision: cut.positives as f64 / (cut.positives + cut.negatives) as f64,
        recall: cut.positives as f64 / all,
    };
    Ok(cuts.iter().map(point).collect())
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

fn checked_cuts(outcomes: &[bool], scores: &[f64]) -> Result<Vec<Cut>, Error> {
    check_lengths("scores", scores.len(), "outcomes", outcomes.len())?;
    check_count(1, outcomes.len())?;
    check_finite("scores", scores)?;
    Ok(cuts(outcomes, scores))
}

/// How many items of either kind score at least `threshold`.
#[derive(Clone, Copy)]
struct Cut {
    threshold: f64,
    positives: usize,
    negatives: usize,
}

/// One cut per distinct score, descending; at least one, as there is at least one item.
fn cuts(outcomes: &[bool], scores: &[f64]) -> Vec<Cut> {
    // Adding +0 turns -0 into +0, so that the total order agrees with `==` on finite numbers.
    let mut items: Vec<(f64, bool)> = scores.iter().map(|score| score + 0.0).zip(outcomes.iter().copied()).collect();
    items.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
    let (mut positives, mut negatives) = (0, 0);
    items
        .chunk_by(|a, b| a.0 == b.0)
        .map(|tied| {
            let gained = tied.iter().filter(|item| item.1).count();
            positives += gained;
            negatives += tied.len() - gained;
            Cut { threshold: tied[0].0, positives, negatives }
        })
        .collect()
}
