//! Selective prediction: what is risked by answering only the items that the judge is surest of.

use crate::Error;
use crate::input::{check_count, check_finite, check_lengths, in_range};
use crate::sum::sum;

/// One point of a risk–coverage curve.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RiskCoveragePoint {
    /// Items whose confidence is at least this are answered.
    pub threshold: f64,
    /// Items that are answered, of all.
    pub coverage: f64,
    /// Mean loss of those that are answered.
    pub risk: f64,
}

/// The risk–coverage curve of selective prediction: one point per distinct confidence, descending, so that coverage rises to 1 (El-Yaniv
/// and Wiener 2010).
///
/// `losses`: what the answer to each item costs, n finite numbers: 1 where it is wrong and 0 where it is right, or an absolute error;
/// `confidence`: n finite numbers, the larger the surer. O(n log n).
///
/// # Errors
///
/// [`Error::LengthMismatch`], [`Error::TooFewItems`], [`Error::NonFinite`]; [`Error::Undefined`] where a sum of losses exceeds the largest
/// finite number.
///
/// ```
/// let curve = judge_metrics::prediction::risk_coverage_curve(&[0.0, 0.0, 1.0, 0.0], &[0.9, 0.8, 0.7, 0.7])?;
/// assert_eq!((curve.len(), curve[1].coverage, curve[1].risk), (3, 0.5, 0.0));
/// assert_eq!((curve[2].threshold, curve[2].coverage, curve[2].risk), (0.7, 1.0, 0.25));
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn risk_coverage_curve(losses: &[f64], confidence: &[f64]) -> Result<Vec<RiskCoveragePoint>, Error> {
    let n = losses.len() as f64;
    let (mut answered, mut total) = (0, 0.0);
    let point = |tied: Tied| {
        answered += tied.items;
        total += tied.loss;
        let risk = in_range(STATISTIC, total / answered as f64)?;
        Ok(RiskCoveragePoint { threshold: tied.confidence, coverage: answered as f64 / n, risk })
    };
    tied(losses, confidence)?.into_iter().map(point).collect()
}

/// The area under the risk–coverage curve: the mean of the risks of answering the surest 1, 2, … n items (Geifman, Uziel and El-Yaniv
/// 2019). In the unit of the losses, smaller is better; confidence without information gets the mean loss.
///
/// Of items of equal confidence any may come first, so each order counts alike. Without ties it is NumPy's
/// `np.mean(np.cumsum(losses) / np.arange(1, n + 1))`, sorted by falling confidence. Input and errors as for
/// [`risk_coverage_curve`]; the interval is left to [`Bootstrap`](crate::resampling::Bootstrap).
///
/// ```
/// let area = judge_metrics::prediction::area_under_risk_coverage(&[0.0, 1.0, 0.0], &[0.9, 0.8, 0.1])?;
/// assert!((area - (0.0 + 1.0 / 2.0 + 1.0 / 3.0) / 3.0).abs() < 1e-15);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn area_under_risk_coverage(losses: &[f64], confidence: &[f64]) -> Result<f64, Error> {
    let (mut before, mut lost_before) = (0, 0.0);
    let mut risks = Vec::with_capacity(losses.len());
    for Tied { items, loss, .. } in tied(losses, confidence)? {
        let mean = loss / items as f64;
        risks.extend((1..=items).map(|k| (lost_before + k as f64 * mean) / (before + k) as f64));
        before += items;
        lost_before += loss;
    }
    in_range(STATISTIC, sum(&risks) / losses.len() as f64)
}

const STATISTIC: &str = "the risk of a coverage";

/// Items of one confidence.
struct Tied {
    confidence: f64,
    items: usize,
    /// Of all of them.
    loss: f64,
}

/// By falling confidence; at least one.
fn tied(losses: &[f64], confidence: &[f64]) -> Result<Vec<Tied>, Error> {
    check_lengths("confidence", confidence.len(), "losses", losses.len())?;
    check_count(1, losses.len())?;
    check_finite("losses", losses)?;
    check_finite("confidence", confidence)?;
    // Adding +0 turns -0 into +0, so that the total order agrees with `==` on finite numbers.
    let mut items: Vec<(f64, f64)> = confidence.iter().map(|sure| sure + 0.0).zip(losses.iter().copied()).collect();
    // Items of one confidence by their losses, so that no sum depends on the order of the rows.
    items.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.total_cmp(&b.1)));
    let of = |same: &[(f64, f64)]| {
        let losses: Vec<f64> = same.iter().map(|item| item.1).collect();
        Tied { confidence: same[0].0, items: same.len(), loss: sum(&losses) }
    };
    Ok(items.chunk_by(|a, b| a.0 == b.0).map(of).collect())
}
