use crate::input::{check_columns, check_count, check_finite, check_level, in_range};
use crate::{Error, Interval};

/// Split-conformal intervals: how far human scores lie from a judge's on items set apart, turned into an interval for
/// the next item.
///
/// The interval contains a new item's human score with probability at least `level`, over the draw of calibration items
/// and new item together, whatever the judge and whatever the distribution (Vovk et al. 2005; Lei et al. 2018) —
/// provided that all of them are *exchangeable*: drawn alike, none of the calibration items used to fit the judge or
/// its calibration, and not clustered. For several responses to one question take one per question, or accept that the
/// promise is not kept for a new question. It holds on average over items, not for each kind of item: for each kind (a
/// language, a task) to keep its own level, fit one per kind.
///
/// ```
/// use judge_metrics::calibration::SplitConformal;
///
/// let judge: Vec<f64> = (0..19).map(f64::from).collect();
/// let human: Vec<f64> = judge.iter().map(|score| score + score / 100.0).collect();
/// // With 19 items and 95 %, the largest of the 19 errors.
/// let interval = SplitConformal { level: 0.95 }.fit(&human, &judge)?.interval(7.0)?;
/// assert!((interval.low - 6.82).abs() < 1e-12 && (interval.high - 7.18).abs() < 1e-12);
/// assert!(SplitConformal { level: 0.95 }.fit(&human[1..], &judge[1..]).is_err());
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SplitConformal {
    /// Coverage promised, 1 − α, in (0, 1).
    pub level: f64,
}

impl Default for SplitConformal {
    /// 95 %.
    fn default() -> Self {
        Self { level: 0.95 }
    }
}

impl SplitConformal {
    /// Calibrates on n items: the radius is the ⌈(n + 1) · level⌉-th smallest |observed − predicted|.
    ///
    /// `predicted`, `observed`: finite numbers in one unit.
    ///
    /// # Errors
    ///
    /// [`Error::TooFewItems`] where n items bound nothing at this level: 19 are needed at 95 %, 9 at 90 %.
    /// [`Error::LevelOutOfRange`], [`Error::LengthMismatch`], [`Error::NonFinite`]; [`Error::Undefined`] where the
    /// radius overflows.
    pub fn fit(&self, observed: &[f64], predicted: &[f64]) -> Result<FittedSplitConformal, Error> {
        check_columns(("observed", observed), ("predicted", predicted), 0)?;
        let residuals = predicted.iter().zip(observed).map(|(predicted, observed)| (observed - predicted).abs());
        let radius = in_range(STATISTIC, conformal_quantile(residuals.collect(), self.level)?)?;
        Ok(FittedSplitConformal { radius, level: self.level, n: predicted.len() })
    }
}

const STATISTIC: &str = "conformal interval";

/// Conformal intervals, all of one width.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct FittedSplitConformal {
    /// Half the width, in the unit of the scores; at least 0.
    pub radius: f64,
    /// Coverage promised.
    pub level: f64,
    /// Calibration items.
    pub n: usize,
}

impl FittedSplitConformal {
    /// prediction ∓ radius. Not cut off at the ends of the scale, which costs no coverage if you do.
    ///
    /// # Errors
    ///
    /// [`Error::NonFinite`]; [`Error::Undefined`] where an end overflows.
    pub fn interval(&self, prediction: f64) -> Result<Interval, Error> {
        check_finite("prediction", &[prediction])?;
        let end = |end| in_range(STATISTIC, end);
        Ok(Interval { low: end(prediction - self.radius)?, high: end(prediction + self.radius)?, level: self.level })
    }
}

/// The ⌈(n + 1) · level⌉-th smallest score: a new exchangeable score is at most that with probability at least `level`.
pub(super) fn conformal_quantile(mut scores: Vec<f64>, level: f64) -> Result<f64, Error> {
    let rank = conformal_rank(scores.len(), level)?;
    Ok(*scores.select_nth_unstable_by(rank - 1, f64::total_cmp).1)
}

/// ⌈(n + 1) · level⌉, which is in 1..=n.
pub(super) fn conformal_rank(n: usize, level: f64) -> Result<usize, Error> {
    let required = required_items(level)?;
    check_count(required, n)?;
    Ok(ceiling((n + 1) as f64 * level).clamp(1, n))
}

/// The smallest n with ⌈(n + 1) · level⌉ ≤ n.
pub(super) fn required_items(level: f64) -> Result<usize, Error> {
    check_level(level)?;
    Ok(ceiling(level / (1.0 - level)).max(1))
}

/// ⌈x⌉, where x is a hair above a whole number only because a level such as 0.95 is no binary fraction.
fn ceiling(x: f64) -> usize {
    let nearest = x.round();
    if (x - nearest).abs() <= 1e-12 * nearest { nearest as usize } else { x.ceil() as usize }
}
