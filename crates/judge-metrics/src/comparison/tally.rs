//! What verdicts on pairs come to where nobody has graded the pairs.

use super::collector::Items;
use super::pairs::{self, PairStatistic, of_pairs, share_of_first};
use super::{Reported, Statistic};
use crate::Error;
use crate::agreement::{McNemarTest, mcnemar};
use crate::estimate::SHARE;
use crate::input::check_amount;
use crate::preference::Preference;
use crate::resampling::Bootstrap;

/// What a judge said of one pair, about its items, `First` being the first one as the pair is given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TalliedPair {
    /// The verdict in the order as given; `None` where there is none.
    pub given: Option<Preference>,
    /// The verdict in the exchanged order, mapped back to the items; `None` where there is none, or where the order was not asked.
    pub swapped: Option<Preference>,
    /// The probability that the first item is better, averaged over the orders and a tie counting half, in [0, 1]; `None` where
    /// none was read.
    pub preference: Option<f64>,
    /// The verdict of the orders together, where it was made of what was read in each, so that they need not agree; `None` where the
    /// verdicts of the orders must.
    pub averaged: Option<Preference>,
}

/// A tally of a judge's verdicts on pairs.
///
/// | statistic | of |
/// |---|---|
/// | `win_rate` | pairs with a verdict in each order that was asked: the mean share of wins of the first item, a tie counting half, by the verdict of the orders together, else averaged over them |
/// | `mean_preference` | pairs with probabilities: the mean preference for the first item |
/// | `first_share` | of all verdicts that are no tie, in either order: those for the item shown first, ½ where the place does not matter; both orders only. The p-value is McNemar's exact test of ½ on the pairs that flip with the place |
///
/// Means have Student's interval and `first_share` one of the bootstrap; pairs count as independent.
///
/// ```
/// use judge_metrics::comparison::{PairTally, TalliedPair};
/// use judge_metrics::preference::Preference::{First, Second};
///
/// // Whatever is shown first wins.
/// let pairs = vec![TalliedPair { given: Some(First), swapped: Some(Second), preference: None, averaged: None }; 20];
/// let found = PairTally::new(pairs).found()?;
/// assert_eq!((found.inconsistent, found.flips), (20, [20, 0]));
/// assert_eq!(found.follows_place(), Some(First));
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct PairTally {
    /// The pairs.
    pub pairs: Vec<TalliedPair>,
    /// Whether the exchanged order was asked.
    pub both_orders: bool,
    /// For the interval of `first_share`.
    pub bootstrap: Bootstrap,
}

/// How often each verdict was given, and what can be said of it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PairTallied {
    /// Pairs.
    pub n: usize,
    /// The first item in each order that was asked, or by the orders together.
    pub first: usize,
    /// The second item likewise.
    pub second: usize,
    /// A tie likewise.
    pub ties: usize,
    /// The orders disagree, and there is no verdict of both together.
    pub inconsistent: usize,
    /// An order has no verdict.
    pub without: usize,
    /// Pairs on which the item shown first won in both orders, and those on which the item shown second did.
    pub flips: [usize; 2],
    /// In the order of the table of [`PairTally`].
    pub statistics: Vec<PairStatistic>,
}

impl PairTally {
    /// Of pairs asked in both orders, with 10,000 resamples, as [`Bootstrap::default`] has them.
    pub fn new(pairs: Vec<TalliedPair>) -> Self {
        Self { pairs, both_orders: true, bootstrap: Bootstrap::default() }
    }

    /// Counts, and the statistics.
    ///
    /// # Errors
    ///
    /// [`Error::NonFinite`] and [`Error::OutOfRange`] for a preference.
    pub fn found(&self) -> Result<PairTallied, Error> {
        for (index, preference) in self.pairs.iter().enumerate().filter_map(|(i, pair)| Some((i, pair.preference?))) {
            check_amount("preference", index, preference, 1.0)?;
        }
        let mut found = PairTallied { n: self.pairs.len(), ..PairTallied::default() };
        let (mut wins, mut places) = (Vec::new(), Vec::new());
        for pair in &self.pairs {
            let swapped = if self.both_orders { pair.swapped } else { pair.given };
            places.push(pairs::places(pair.given, pair.swapped.filter(|_| self.both_orders)));
            let (Some(given), Some(swapped)) = (pair.given, swapped) else {
                found.without += 1;
                continue;
            };
            wins.push(pair.averaged.map_or(f64::midpoint(given.credit(), swapped.credit()), Preference::credit));
            match pair.averaged.or((given == swapped).then_some(given)) {
                None => found.inconsistent += 1,
                Some(Preference::First) => found.first += 1,
                Some(Preference::Second) => found.second += 1,
                Some(Preference::Tie) => found.ties += 1,
            }
            found.flips[0] += usize::from((given, swapped) == (Preference::First, Preference::Second));
            found.flips[1] += usize::from((given, swapped) == (Preference::Second, Preference::First));
        }
        let preferences: Vec<f64> = self.pairs.iter().filter_map(|pair| pair.preference).collect();
        found.statistics.extend(self.mean("win_rate", &wins));
        found.statistics.extend(self.mean("mean_preference", &preferences));
        if self.both_orders {
            found.statistics.extend(self.first_share(&places, found.flips));
        }
        Ok(found)
    }

    fn mean(&self, name: &'static str, values: &[f64]) -> Vec<PairStatistic> {
        let why = values.is_empty().then_some("no pair has what it needs");
        of_pairs(self.bootstrap, None, why, &[name], values.len(), |found| {
            found.mean_or_share(name, &Items::within(values, SHARE));
        })
    }

    fn first_share(&self, places: &[[usize; 2]], flips: [usize; 2]) -> Vec<PairStatistic> {
        let decisive = places.iter().flatten().sum();
        let mut found = of_pairs(self.bootstrap, None, None, &["first_share"], decisive, |found| {
            found.resample("first_share", None, share_of_first(places), places.len());
        });
        for known in &mut found {
            if let (Statistic::Defined(Reported { p, method, .. }), Some(value)) = (&mut known.statistic, p_of(flips)) {
                *p = Some(value);
                method.push_str("; p: McNemar, exact");
            }
        }
        found
    }
}

/// The chance of flips as one-sided as these, if both places draw alike; `None` without flips.
fn p_of([first, second]: [usize; 2]) -> Option<f64> {
    mcnemar(first, second, McNemarTest::Exact).ok().map(|test| test.p_value)
}

impl PairTallied {
    /// Pairs with a verdict in each order that was asked.
    pub fn read(&self) -> usize {
        self.n.saturating_sub(self.without)
    }

    /// The place that verdicts of single orders follow: where a quarter or more of the pairs with a verdict in each
    /// order flip towards one place, and more than chance would let them (exact McNemar test below 0.05). `First` for
    /// the item that is shown first; `None` where verdicts are about the items as far as these pairs can tell.
    pub fn follows_place(&self) -> Option<Preference> {
        let [first, second] = self.flips;
        let one_sided = p_of(self.flips).is_some_and(|p| p < 0.05) && 4 * first.max(second) >= self.read();
        one_sided.then_some(if first > second { Preference::First } else { Preference::Second })
    }
}
