//! What a judge's probabilities say of a pair, before they become a verdict.

use super::Preference;
use crate::Error;
use crate::input::{check_finite, check_range};
use crate::prediction::distributions::check_distribution;

/// A mean this near to ½, or log-odds this near to 0, is a tie: two orders that cancel differ by their rounding alone.
const TIE: f64 = 1e-12;

/// What a judge's probabilities say of a pair: about the *items*, in one presentation order or averaged over several.
///
/// A verdict keeps only which label is likeliest, so a judge that nearly always favours the first place looks as if it could not tell the
/// items apart. Averaged over both orders the pull of the place cancels, and what is left is about the items. Two averages are in use:
///
/// - of the probabilities, (p₁ + p₂) / 2, where pₖ is P(first item) + P(tie) / 2 in order k;
/// - of the log-odds, (l₁ + l₂) / 2, where lₖ = ln P(first item) − ln P(second item) in order k. With the log-odds sₖ of the
///   response that was *shown* first, this is (s₁ − s₂) / 2: a pull that adds the same amount to both orders vanishes exactly.
///
/// ```
/// use judge_metrics::preference::{PairReading, Preference};
///
/// // Shown first: 0.9 in one order, 0.7 in the other, so the place decides both verdicts.
/// let given = PairReading::from_probabilities(0.9, 0.1, 0.0)?;
/// let swapped = PairReading::from_probabilities(0.7, 0.3, 0.0)?.swapped();
/// assert_eq!((given.by_probability(), swapped.by_probability()), (Preference::First, Preference::Second));
/// let mean = PairReading::mean(&[given, swapped]).expect("two orders");
/// assert_eq!(mean.by_log_odds(), Preference::First);
/// assert!((mean.log_odds() - (9f64.ln() - (7.0 / 3.0f64).ln()) / 2.0).abs() < 1e-12);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairReading {
    probability: f64,
    log_odds: f64,
}

impl PairReading {
    /// From the probabilities that the first item is better, that the second is, and that neither is; each in [0, 1], their sum 1 within
    /// 10⁻⁶.
    ///
    /// A probability of 0 gives infinite log-odds; where both items have 0 they are 0.
    ///
    /// # Errors
    ///
    /// [`Error::NonFinite`], [`Error::OutOfRange`] and [`Error::NotADistribution`].
    pub fn from_probabilities(first: f64, second: f64, tie: f64) -> Result<Self, Error> {
        for (argument, value) in [("first", first), ("second", second), ("tie", tie)] {
            check_finite(argument, &[value])?;
            check_range(argument, None, value, [0.0, 1.0])?;
        }
        check_distribution("first + second + tie", &[first, second, tie])?;
        let log_odds = if first == second { 0.0 } else { first.ln() - second.ln() };
        Ok(Self { probability: (first + tie / 2.0).min(1.0), log_odds })
    }

    /// The same reading with the two items named in the other order.
    #[must_use]
    pub fn swapped(self) -> Self {
        Self { probability: 1.0 - self.probability, log_odds: -self.log_odds }
    }

    /// The average of several orders, all about the items as they are named; `None` of none. Infinite log-odds that oppose each
    /// other cancel.
    #[must_use]
    pub fn mean(orders: &[Self]) -> Option<Self> {
        let n = orders.len() as f64;
        let probability = orders.iter().map(|order| order.probability).sum::<f64>() / n;
        let log_odds = mean_log_odds(orders.iter().map(|order| order.log_odds))?;
        Some(Self { probability, log_odds })
    }

    /// The probability that the first item is better, a tie counting half; in [0, 1].
    #[must_use]
    pub fn probability(&self) -> f64 {
        self.probability
    }

    /// ln P(first) − ln P(second), in nats; infinite where one of the two is 0.
    #[must_use]
    pub fn log_odds(&self) -> f64 {
        self.log_odds
    }

    /// The item with the larger share of the probability; a tie within 10⁻¹² of ½.
    #[must_use]
    pub fn by_probability(&self) -> Preference {
        sign(self.probability - 0.5)
    }

    /// The item that the log-odds favour; a tie within 10⁻¹² of 0.
    #[must_use]
    pub fn by_log_odds(&self) -> Preference {
        sign(self.log_odds)
    }
}

/// The mean of the log-odds of several orders, all about the items as they are named, in nats; `None` of none, or of a NaN. Infinite ones
/// that oppose each other cancel to 0.
#[must_use]
pub fn mean_log_odds(orders: impl IntoIterator<Item = f64>) -> Option<f64> {
    let orders: Vec<f64> = orders.into_iter().collect();
    if orders.is_empty() || orders.iter().any(|odds| odds.is_nan()) {
        return None;
    }
    let mean = orders.iter().sum::<f64>() / orders.len() as f64;
    Some(if mean.is_nan() { 0.0 } else { mean })
}

/// Which item a number favours: the first if it is above 0.
pub(crate) fn sign(number: f64) -> Preference {
    match number {
        _ if number > TIE => Preference::First,
        _ if number < -TIE => Preference::Second,
        _ => Preference::Tie,
    }
}
