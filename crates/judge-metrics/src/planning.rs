//! How many items a study needs so that an interval comes out no wider than wanted.
//!
//! Each function takes what is expected of the items, such as a share from a pilot, and returns the smallest number of items at which the
//! crate's own interval of such a sample is at most `width` wide, from end to end. It is found by bisection on the interval itself, not by
//! a normal approximation. All of them take items as independent. The sample will differ from what was expected, so about half of all
//! studies end with a wider interval: plan with the less favourable value where you are unsure.

use crate::correlation::{fisher_interval, is_perfect};
use crate::distribution::{normal_two_sided_quantile, student_t_quantile};
use crate::input::{check_level, check_range};
use crate::proportion::wilson_half_width;
use crate::{Error, Interval};

/// Beyond any study, and far within what a number of items in a float can be exact to.
const LIMIT: usize = 1_000_000_000_000;

/// Items for Wilson's interval of a proportion ([`Proportion::wilson`](crate::Proportion::wilson)).
///
/// `share` in [0, 1] is the one expected; 0.5 needs the most items. `share` times the number of items need not be a whole number. `width`
/// is above 0, `level` in (0, 1).
///
/// # Errors
///
/// [`Error::LevelOutOfRange`], [`Error::OutOfRange`]; [`Error::Undefined`] where more than 10¹² items are needed.
///
/// ```
/// use judge_metrics::{Proportion, planning::items_for_proportion};
///
/// let n = items_for_proportion(0.5, 0.1, 0.95)?;
/// assert_eq!(n, 381);
/// let interval = Proportion { count: 190, n }.wilson(0.95)?;
/// assert!(interval.high - interval.low <= 0.1);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn items_for_proportion(share: f64, width: f64, level: f64) -> Result<usize, Error> {
    check_level(level)?;
    check_range("share", None, share, [0.0, 1.0])?;
    let z = normal_two_sided_quantile(level);
    smallest(1, width, |n| Ok(2.0 * wilson_half_width(share, n as f64, z)))
}

/// Items for Student's interval of a mean ([`sample_mean`](crate::means::sample_mean)).
///
/// `standard_deviation`, above 0, is that of the items, by n − 1; for a paired difference that of the differences. `width` is above 0 and
/// in the same unit, `level` in (0, 1). At least 2 items.
///
/// # Errors
///
/// Those of [`items_for_proportion`].
///
/// ```
/// assert_eq!(judge_metrics::planning::items_for_mean(1.0, 0.5, 0.95)?, 64);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn items_for_mean(standard_deviation: f64, width: f64, level: f64) -> Result<usize, Error> {
    check_level(level)?;
    check_range("standard_deviation", None, standard_deviation, [f64::MIN_POSITIVE, f64::MAX])?;
    smallest(2, width, |n| Ok(2.0 * student_t(n, level) * (standard_deviation / (n as f64).sqrt())))
}

/// Items for Fisher's interval of a Pearson correlation ([`fisher_interval`]).
///
/// `r` in (-1, 1) is the correlation expected; 0 needs the most items. `width` is above 0, `level` in (0, 1). At least 2 items, which bound
/// nothing, and more than 3 for any width below 2.
///
/// # Errors
///
/// Those of [`items_for_proportion`]; [`Error::NotACorrelation`]; [`Error::Undefined`] for a correlation of ±1, whose interval has no
/// width.
///
/// ```
/// assert_eq!(judge_metrics::planning::items_for_correlation(0.6, 0.2, 0.95)?, 161);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn items_for_correlation(r: f64, width: f64, level: f64) -> Result<usize, Error> {
    check_level(level)?;
    if is_perfect(r) {
        let reason = "the interval of a correlation of 1 or -1 has no width";
        return Err(Error::Undefined { statistic: STATISTIC, reason });
    }
    smallest(2, width, |n| {
        let Interval { low, high, .. } = fisher_interval(r, n, level)?;
        Ok(high - low)
    })
}

/// Items for Student's interval of the difference of two proportions on the same items, as
/// [`paired_difference`](crate::means::paired_difference) of zeros and ones gives it: is one of two judges right more often?
///
/// `only_first`, `only_second`: the shares of items expected to count for the first alone and for the second alone, each in [0, 1], and
/// their sum above 0 and at most 1. Items on which both agree need not be told apart. `width` is above 0, `level` in (0, 1). At least 2
/// items.
///
/// # Errors
///
/// Those of [`items_for_proportion`]; [`Error::Undefined`] where no item tells the two apart, or all items do so in the same way: the
/// interval then has no width.
///
/// ```
/// // Two judges that differ on one item in five, mostly in favour of the second.
/// assert_eq!(judge_metrics::planning::items_for_paired_proportions(0.05, 0.15, 0.1, 0.95)?, 296);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn items_for_paired_proportions(only_first: f64, only_second: f64, width: f64, level: f64) -> Result<usize, Error> {
    check_level(level)?;
    check_range("only_first", None, only_first, [0.0, 1.0])?;
    check_range("only_second", None, only_second, [0.0, 1.0 - only_first])?;
    let difference = only_second - only_first;
    // Of the differences -1, 0 and 1, by n.
    let variance = only_first + only_second - difference * difference;
    if variance <= 0.0 {
        let reason = "all differences are equal, and their interval has no width";
        return Err(Error::Undefined { statistic: STATISTIC, reason });
    }
    smallest(2, width, |n| Ok(2.0 * student_t(n, level) * (variance / (n - 1) as f64).sqrt()))
}

const STATISTIC: &str = "number of items";

fn student_t(n: usize, level: f64) -> f64 {
    student_t_quantile(0.5 + level / 2.0, (n - 1) as f64)
}

/// The smallest n from `least` on with `width_at(n)`, which falls with n, at most `width`.
fn smallest(least: usize, width: f64, width_at: impl Fn(usize) -> Result<f64, Error>) -> Result<usize, Error> {
    check_range("width", None, width, [f64::MIN_POSITIVE, f64::MAX])?;
    if width_at(least)? <= width {
        return Ok(least);
    }
    // Too few and enough: doubled until they are, then halved.
    let (mut few, mut enough) = (least, 2 * least);
    while width_at(enough)? > width {
        if enough == LIMIT {
            return Err(Error::Undefined { statistic: STATISTIC, reason: "more than 10^12 items are needed" });
        }
        (few, enough) = (enough, (enough * 2).min(LIMIT));
    }
    while enough - few > 1 {
        let middle = few + (enough - few) / 2;
        if width_at(middle)? <= width {
            enough = middle;
        } else {
            few = middle;
        }
    }
    Ok(enough)
}
