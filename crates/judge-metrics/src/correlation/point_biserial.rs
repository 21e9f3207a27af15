use crate::correlation::pearson;
use crate::input::check_lengths;
use crate::{Error, Estimate};

/// The point-biserial correlation of a binary and a numeric column, as `scipy.stats.pointbiserialr`.
///
/// It is [`pearson`] with `true` as 1 and `false` as 0: the difference of the two groups' means of `y` in units of the spread of all.
/// Its p-value is that of the t test of equal means. `x`, `y`: n ≥ 2 items each, `y` finite.
///
/// # Errors
///
/// [`Error::LengthMismatch`], [`Error::TooFewItems`], [`Error::NonFinite`]; [`Error::Constant`] where all of `x` or all of `y` is
/// one value.
///
/// ```
/// let chosen = [true, false, true, true, false];
/// let longer_by = [40.0, -12.0, 8.0, 25.0, 3.0];
/// let r = judge_metrics::correlation::point_biserial(&chosen, &longer_by)?;
/// assert!((r.estimate - 0.784_067).abs() < 1e-6);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn point_biserial(x: &[bool], y: &[f64]) -> Result<Estimate, Error> {
    check_lengths("y", y.len(), "x", x.len())?;
    let x: Vec<f64> = x.iter().map(|&x| f64::from(u8::from(x))).collect();
    pearson(&x, y)
}
