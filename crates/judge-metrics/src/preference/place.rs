//! What the place of an item adds to a judge's log-odds: the position bias of one order as a number that can be taken off.

use super::PairReading;
use crate::Error;
use crate::input::{check_count, check_finite};

/// What the place shown first adds to its item's log-odds, by one pair, in nats; `None` without a reading.
///
/// The readings are about the items as they are named: of the order that shows the first item first, and perhaps of the exchanged one.
/// With both it is (l₁ − l₂) / 2: what the items are worth cancels, and what is left is the place's. With one it is l₁, which tells the
/// place from the item only in the middle of many pairs.
///
/// ```
/// use judge_metrics::preference::{PairReading, place_offset, place_pull};
///
/// // Shown first: 0.9 in one order, 0.7 in the other.
/// let given = PairReading::from_probabilities(0.9, 0.1, 0.0)?;
/// let swapped = PairReading::from_probabilities(0.7, 0.3, 0.0)?.swapped();
/// let pull = place_pull(&[given, swapped]).expect("two orders");
/// assert!((pull - (9f64.ln() + (7.0 / 3.0f64).ln()) / 2.0).abs() < 1e-12);
/// assert_eq!(place_offset(&[pull, 9.0, -3.0])?, pull);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[must_use]
pub fn place_pull(orders: &[PairReading]) -> Option<f64> {
    match orders {
        [given] => Some(given.log_odds()),
        [given, swapped] => PairReading::mean(&[*given, swapped.swapped()]).map(|mean| mean.log_odds()),
        _ => None,
    }
}

/// The place offset of a judge, in nats: the median of its [pulls](place_pull) on pairs, whose gold labels nobody needs to know. A judge
/// that is asked in one order alone is corrected by taking it off the log-odds of the item that is shown first.
///
/// Of pairs that were read in one order it is the place's as far as neither place has the better item more often: in the median,
/// not in each pair. The median bears infinite log-odds and a few pairs on which the judge is sure.
///
/// # Errors
///
/// [`Error::TooFewItems`] for no pair, [`Error::NonFinite`] where the middle is infinite, or for NaN.
pub fn place_offset(pulls: &[f64]) -> Result<f64, Error> {
    check_count(1, pulls.len())?;
    if let Some(index) = pulls.iter().position(|pull| pull.is_nan()) {
        return Err(Error::NonFinite { argument: "pulls", index, value: pulls[index] });
    }
    let mut placed = pulls.to_vec();
    let (below, &mut above, _) = placed.select_nth_unstable_by(pulls.len() / 2, f64::total_cmp);
    let is_odd = pulls.len() % 2 == 1;
    let below = below.iter().copied().max_by(f64::total_cmp).filter(|_| !is_odd).unwrap_or(above);
    check_finite("the middle of the pulls", &[below, above])?;
    Ok(f64::midpoint(below, above))
}
