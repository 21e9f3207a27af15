//! How many items a study needs so that an interval comes out no wider than wanted, or a test finds an effect; and which effect a test of
//! so many items finds.
//!
//! Each function for a width takes what is expected of the items, such as a share from a pilot, and returns the smallest number of items at
//! which the crate's own interval of such a sample is at most `width` wide, from end to end. It is found by bisection on the interval
//! itself, not by a normal approximation. All of them take items as independent. The sample will differ from what was expected, so about
//! half of all studies end with a wider interval: plan with the less favourable value where you are unsure.
//!
//! The power of a test is the chance that it finds an effect of a given size, two-sided at the significance 1 − `level`. What a study could
//! have found follows from its number of items and their spread, not from the effect that it saw: the power for that effect says no more
//! than its p-value.

use crate::correlation::{fisher_interval, is_perfect};
use crate::distribution::{f_sf, normal_cdf, normal_two_sided_quantile, student_t_quantile};
use crate::input::{check_count, check_level, check_range, in_range};
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
    narrow_enough(1, width, |n| Ok(2.0 * wilson_half_width(share, n as f64, z)))
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
    narrow_enough(2, width, |n| Ok(2.0 * student_t(n, level) * (standard_deviation / (n as f64).sqrt())))
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
    narrow_enough(2, width, |n| {
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
    narrow_enough(2, width, |n| Ok(2.0 * student_t(n, level) * (variance / (n - 1) as f64).sqrt()))
}

/// The power of Student's two-sided test of a mean of 0, such as that of paired differences: the chance to find the mean `effect` of items
/// with this standard deviation. `statsmodels.stats.power.ttest_power(effect / standard_deviation, n, 1 - level)`.
///
/// `effect` is finite and in the unit of the items, `standard_deviation` above 0, `n` at least 2, `level` in (0, 1). In (0, 1], and
/// 1 − `level` for an effect of 0. From the noncentral F, a sum over Poisson weights.
///
/// # Errors
///
/// [`Error::LevelOutOfRange`], [`Error::OutOfRange`], [`Error::TooFewItems`].
///
/// ```
/// // 50 paired differences find a mean of 0.4 standard deviations in four of five studies.
/// let power = judge_metrics::planning::power_of_mean(0.4, 1.0, 50, 0.95)?;
/// assert!((power - 0.791_787_2).abs() < 1e-7);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[doc(alias = "ttest_power")]
pub fn power_of_mean(effect: f64, standard_deviation: f64, n: usize, level: f64) -> Result<f64, Error> {
    check_level(level)?;
    check_range("effect", None, effect, [f64::MIN, f64::MAX])?;
    check_range("standard_deviation", None, standard_deviation, [f64::MIN_POSITIVE, f64::MAX])?;
    check_count(2, n)?;
    Ok(power_of_ratio(effect / standard_deviation * (n as f64).sqrt(), n, level))
}

/// The smallest mean that Student's test of `n` items finds with this power: the minimum detectable effect, in the unit of the items.
/// `statsmodels.stats.power.TTestPower().solve_power(nobs=n, alpha=1 - level, power=power)` times the standard deviation.
///
/// `power` in (1 − `level`, 1), otherwise as for [`power_of_mean`].
///
/// # Errors
///
/// Those of [`power_of_mean`]; [`Error::Undefined`] where the mean exceeds the largest finite number.
///
/// ```
/// let effect = judge_metrics::planning::detectable_mean(1.0, 50, 0.8, 0.95)?;
/// assert!((effect - 0.404_183_0).abs() < 1e-7);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn detectable_mean(standard_deviation: f64, n: usize, power: f64, level: f64) -> Result<f64, Error> {
    check_level(level)?;
    check_power(power, level)?;
    check_range("standard_deviation", None, standard_deviation, [f64::MIN_POSITIVE, f64::MAX])?;
    check_count(2, n)?;
    let ratio = least(power, f64::MAX, |ratio| power_of_ratio(ratio, n, level));
    in_range("detectable mean", ratio * (standard_deviation / (n as f64).sqrt()))
}

/// Items with which Student's test finds the mean `effect`, not 0, with this power; at least 2.
/// `statsmodels.stats.power.TTestPower().solve_power(effect / standard_deviation, alpha=1 - level, power=power)`, rounded up.
///
/// # Errors
///
/// Those of [`detectable_mean`]; [`Error::Undefined`] where more than 10¹² items are needed.
///
/// ```
/// assert_eq!(judge_metrics::planning::items_for_power(0.4, 1.0, 0.8, 0.95)?, 52);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn items_for_power(effect: f64, standard_deviation: f64, power: f64, level: f64) -> Result<usize, Error> {
    check_level(level)?;
    check_power(power, level)?;
    smallest(2, |n| Ok(power_of_mean(effect, standard_deviation, n, level)? >= power))
}

/// The smallest distance from what is tested that a study like this one finds with this power, known from its interval, of clusters or of a
/// bootstrap too: at 0.8 and 95 % it is 0.71 of the interval's width. In the unit of the statistic.
///
/// The interval, whose ends are finite and apart, is taken for that of a large sample: estimate ∓ z standard errors; the test is two-sided
/// at 1 − its level. `power` in (1 − level, 1).
///
/// # Errors
///
/// [`Error::LevelOutOfRange`], [`Error::OutOfRange`].
///
/// ```
/// use judge_metrics::Interval;
///
/// let interval = Interval { low: 0.02, high: 0.12, level: 0.95 };
/// let distance = judge_metrics::planning::detectable_difference(interval, 0.8)?;
/// assert!((distance - 0.071_470_2).abs() < 1e-7);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn detectable_difference(interval: Interval, power: f64) -> Result<f64, Error> {
    let Interval { low, high, level } = interval;
    check_level(level)?;
    check_power(power, level)?;
    check_range("width", None, high - low, [f64::MIN_POSITIVE, f64::MAX])?;
    let z = normal_two_sided_quantile(level);
    let ratio = least(power, f64::MAX, |ratio| normal_cdf(ratio - z) + normal_cdf(-ratio - z));
    Ok(ratio / z * ((high - low) / 2.0))
}

/// Items for an interval of this `width` where `n` items like them have given `interval`, whatever the statistic: widths fall with the root
/// of the number of items, so that half the width takes four times as many. At least 1; for items that come in clusters it is the number of
/// items in clusters as large.
///
/// # Errors
///
/// [`Error::OutOfRange`]; [`Error::Undefined`] where more than 10¹² items are needed.
///
/// ```
/// use judge_metrics::Interval;
///
/// let interval = Interval { low: 0.5, high: 0.9, level: 0.95 };
/// assert_eq!(judge_metrics::planning::items_for_width(interval, 50, 0.2)?, 200);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn items_for_width(interval: Interval, n: usize, width: f64) -> Result<usize, Error> {
    let known = interval.high - interval.low;
    check_range("interval", None, known, [f64::MIN_POSITIVE, f64::MAX])?;
    narrow_enough(1, width, |items| Ok(known * (n as f64 / items as f64).sqrt() * (1.0 - 1e-12)))
}

/// How far below the share `expected` the true share must lie for a test of `n` items to find with this power that it is lower, such as a
/// coverage below the one aimed at. The one-sided test at (1 − `level`) / 2 is that of the score, by the normal approximation with the
/// variance of either share (`statsmodels.stats.power.normal_power_het`).
///
/// `expected` in (0, 1), `n` at least 1, `power` in (1 − `level`, 1). At most `expected`.
///
/// # Errors
///
/// [`Error::LevelOutOfRange`], [`Error::OutOfRange`], [`Error::TooFewItems`]; [`Error::Undefined`] where not even a share of 0 would be
/// found.
///
/// ```
/// let lower = judge_metrics::planning::detectable_shortfall(0.9, 100, 0.8, 0.95)?;
/// assert!((lower - 0.091_944_5).abs() < 1e-7);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn detectable_shortfall(expected: f64, n: usize, power: f64, level: f64) -> Result<f64, Error> {
    check_level(level)?;
    check_power(power, level)?;
    check_range("expected", None, expected, [f64::MIN_POSITIVE, 1.0 - f64::EPSILON])?;
    check_count(1, n)?;
    let (z, n) = (normal_two_sided_quantile(level), n as f64);
    let deviation = |share: f64| (share * (1.0 - share)).sqrt();
    let found =
        |shortfall: f64| normal_cdf((shortfall * n.sqrt() - z * deviation(expected)) / deviation(expected - shortfall));
    if expected * n.sqrt() <= z * deviation(expected) {
        let reason = "a share of 0 would not be found to be lower either: take more items";
        return Err(Error::Undefined { statistic: "detectable shortfall", reason });
    }
    Ok(least(power, expected, found))
}

const STATISTIC: &str = "number of items";

/// An effect of 0 is found with the significance already, and none with certainty.
fn check_power(power: f64, level: f64) -> Result<(), Error> {
    check_range("power", None, power, [(1.0 - level).next_up(), 1.0_f64.next_down()])
}

/// The chance of |T| ≥ t for a noncentral T whose mean is `ratio` standard errors from 0, t being the critical value of `n` items: T² is
/// the noncentral F, whose tail is that of F with 1 + 2j degrees of freedom, weighed by the Poisson probability of j of mean `ratio`² / 2.
fn power_of_ratio(ratio: f64, n: usize, level: f64) -> f64 {
    let (t, mean, dof) = (student_t(n, level), ratio * ratio / 2.0, (n - 1) as f64);
    if mean > 1e4 {
        // So many weights count that T is taken apart instead: into a normal deviate z, by the trapezoidal rule, and a standard deviation,
        // whose square is 1/F of so many degrees of freedom that only the other ones count.
        let deviates = (-36..=36).map(|step| f64::from(step) / 4.0).map(|z| {
            let weight = (-z * z / 2.0).exp();
            (weight, weight * f_sf((t / (ratio.abs() + z)).powi(2), 1e15, dof))
        });
        let (total, power) =
            deviates.fold((0.0, 0.0), |(total, power), (weight, found)| (total + weight, power + found));
        return power / total;
    }
    let tail = |j: f64| f_sf(t * t / (1.0 + 2.0 * j), 1.0 + 2.0 * j, dof);
    // Weights relative to that of the mode, to where they no longer count.
    let mode = mean.floor();
    let (mut power, mut total) = (tail(mode), 1.0);
    let (mut weight, mut j) = (1.0, mode);
    while j > 0.0 && weight > 1e-18 {
        weight *= j / mean;
        j -= 1.0;
        (power, total) = (power + weight * tail(j), total + weight);
    }
    (weight, j) = (1.0, mode);
    while weight > 1e-18 {
        j += 1.0;
        weight *= mean / j;
        (power, total) = (power + weight * tail(j), total + weight);
    }
    power / total
}

/// The least x from 0 to `most` with `power_at(x)`, which rises with x, at least `power`, to rounding.
fn least(power: f64, most: f64, power_at: impl Fn(f64) -> f64) -> f64 {
    let (mut few, mut enough) = (0.0, most.min(1.0));
    while enough < most && power_at(enough) < power {
        (few, enough) = (enough, (2.0 * enough).min(most));
    }
    loop {
        let middle = f64::midpoint(few, enough);
        if middle <= few || middle >= enough {
            return enough;
        }
        if power_at(middle) < power { few = middle } else { enough = middle }
    }
}

fn student_t(n: usize, level: f64) -> f64 {
    student_t_quantile(0.5 + level / 2.0, (n - 1) as f64)
}

/// The smallest n from `least` on with `width_at(n)`, which falls with n, at most `width`.
fn narrow_enough(least: usize, width: f64, width_at: impl Fn(usize) -> Result<f64, Error>) -> Result<usize, Error> {
    check_range("width", None, width, [f64::MIN_POSITIVE, f64::MAX])?;
    smallest(least, |n| Ok(width_at(n)? <= width))
}

/// The smallest n from `least` on that suffices, as all larger ones do.
fn smallest(least: usize, suffices: impl Fn(usize) -> Result<bool, Error>) -> Result<usize, Error> {
    if suffices(least)? {
        return Ok(least);
    }
    // Too few and enough: doubled until they are, then halved.
    let (mut few, mut enough) = (least, 2 * least);
    while !suffices(enough)? {
        if enough == LIMIT {
            return Err(Error::Undefined { statistic: STATISTIC, reason: "more than 10^12 items are needed" });
        }
        (few, enough) = (enough, (enough * 2).min(LIMIT));
    }
    while enough - few > 1 {
        let middle = few + (enough - few) / 2;
        if suffices(middle)? { enough = middle } else { few = middle }
    }
    Ok(enough)
}
