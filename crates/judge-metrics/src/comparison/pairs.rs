//! Verdicts on pairs against gold labels, as benchmarks of pairwise judges report them.

use super::Statistic;
use super::collector::{Collector, Items, of_both};
use super::nominal::MAJORITY_SHARE;
use crate::agreement::{AgreementWeights, ConfusionMatrix};
use crate::estimate::SHARE;
use crate::input::check_lengths;
use crate::preference::{Preference, Unparsed};
use crate::resampling::Bootstrap;
use crate::{Error, Proportion};

/// What a judge said of one pair, and what is right. All is about the items of the pair, `First` being the first one as the pair is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedPair {
    /// The gold label.
    pub gold: Preference,
    /// The verdict in the order as given; `None` where the text held none.
    pub given: Option<Preference>,
    /// The verdict in the exchanged order, mapped back to the items.
    pub swapped: Option<Preference>,
    /// Pairs with the same cluster, such as those about one question, are drawn together by the bootstrap. Where one
    /// of the pairs that a statistic rests on has none, all of them are taken as independent.
    pub cluster: Option<String>,
}

/// Verdicts on pairs, and how they are counted.
///
/// | statistic | of |
/// |---|---|
/// | `accuracy` | the given order: share of right verdicts |
/// | `majority_share` | gold labels: the share of the commonest, which is the accuracy of always saying it |
/// | `predicted_mode_share` | the given order: the share of the judge's commonest verdict; 1 where it always says the same |
/// | `precision_macro`, `recall_macro`, `f1_macro` | the given order: means over the benchmark's own labels, whether they occur or not; a score without a denominator is 0 (scikit-learn's `labels=…, zero_division=0`) |
/// | `cohen_kappa` | the given order |
/// | `accuracy_swapped` | the exchanged order |
/// | `accuracy_mean` | the mean of both orders' accuracies (LLMBar) |
/// | `accuracy_net` | the votes of both orders, 1 for a right verdict, −1 for the opposite of the gold label, 0 for a tie or none, add up to more than 0 (JudgeBench) |
/// | `pair_agreement` | right in both orders (Auto-J) |
/// | `consistency` | the same verdict in both orders, right or wrong |
/// | `first_share` | of all verdicts that are no tie, in either order: those for the response shown first; ½ where place does not matter |
///
/// Each rests on the pairs whose own verdicts count ([`PairStatistic::n`]): under [`Unparsed::Dropped`] a pair is left out of those
/// statistics for which it lacks a verdict. `first_share` rests on verdicts that were given, whatever the policy.
///
/// ```
/// use judge_metrics::comparison::{JudgedPair, PairComparison};
/// use judge_metrics::preference::{Preference::{First, Second}, Unparsed};
///
/// let pair = |gold, given, swapped| JudgedPair { gold, given, swapped, cluster: None };
/// let pairs = vec![pair(First, Some(First), Some(First)), pair(Second, Some(First), Some(Second)), pair(First, None, None)];
/// let comparison = PairComparison { ties: false, ..PairComparison::new(pairs, Unparsed::OwnLabel) };
/// let found = comparison.statistics(&[0, 1, 2])?;
/// assert_eq!((found.n, found.unparsed), (3, 2));
/// let estimate = |name| found.get(name).and_then(|known| known.statistic.estimate());
/// assert_eq!((estimate("accuracy"), estimate("first_share")), (Some(1.0 / 3.0), Some(0.75)));
/// assert_eq!((estimate("accuracy_mean"), estimate("consistency")), (Some(0.5), Some(2.0 / 3.0)));
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct PairComparison {
    /// The pairs.
    pub pairs: Vec<JudgedPair>,
    /// Whether the exchanged order was judged at all.
    pub both_orders: bool,
    /// Whether a tie is one of the benchmark's labels. Where it is not, a verdict may still be one, and is wrong.
    pub ties: bool,
    /// What becomes of texts without a verdict.
    pub unparsed: Unparsed,
    /// For statistics without an interval of their own, and for all where pairs come in clusters.
    pub bootstrap: Bootstrap,
}

/// The statistics of a set of pairs.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct PairComparisons {
    /// Pairs, whatever became of them.
    pub n: usize,
    /// Texts without a verdict, in either order.
    pub unparsed: usize,
    /// In the order of the table of [`PairComparison`].
    pub statistics: Vec<PairStatistic>,
}

/// A statistic of pairs.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct PairStatistic {
    /// Its name.
    pub name: &'static str,
    /// On how many pairs it rests; `first_share` on how many verdicts.
    pub n: usize,
    /// What was found.
    pub statistic: Statistic,
}

impl PairComparisons {
    /// The statistic of this name; `None` where it was not computed.
    pub fn get(&self, name: &str) -> Option<&PairStatistic> {
        self.statistics.iter().find(|known| known.name == name)
    }
}

/// A verdict as a class: first, second, tie, and a text without one.
const CLASSES: usize = 4;
const UNPARSED: usize = 3;

impl PairComparison {
    /// Pairs judged in both orders, with ties among the labels.
    pub fn new(pairs: Vec<JudgedPair>, unparsed: Unparsed) -> Self {
        Self { pairs, both_orders: true, ties: true, unparsed, bootstrap: Bootstrap::default() }
    }

    /// The statistics of some of the pairs, given by their indices, such as those of one group. Indices that no pair has are left out.
    ///
    /// # Errors
    ///
    /// [`Error::Unparsed`] under [`Unparsed::Refused`]. What the pairs do not define is [`Statistic::Undefined`].
    pub fn statistics(&self, rows: &[usize]) -> Result<PairComparisons, Error> {
        let rows: Vec<(usize, &JudgedPair)> = rows.iter().filter_map(|&r| Some((r, self.pairs.get(r)?))).collect();
        let unparsed = rows.iter().map(|(_, pair)| self.missing(pair)).sum();
        self.check(rows.iter().copied())?;
        let pairs: Vec<Settled<'_>> = rows.iter().map(|(_, pair)| self.settled(pair)).collect();

        let mut found = Found { bootstrap: self.bootstrap, statistics: Vec::new() };
        let given: Vec<&Settled<'_>> = pairs.iter().filter(|pair| pair.given.is_some()).collect();
        found.against_gold(&given, |pair| pair.given.unwrap_or(UNPARSED), self.ties);
        if self.both_orders {
            let swapped: Vec<&Settled<'_>> = pairs.iter().filter(|pair| pair.swapped.is_some()).collect();
            found.share("accuracy_swapped", &swapped, |pair| pair.right_swapped());
            let both: Vec<&Settled<'_>> = given.iter().copied().filter(|pair| pair.swapped.is_some()).collect();
            found.mean_of(
                "accuracy_mean",
                &both,
                &both.iter().map(|pair| pair.mean_right()).collect::<Vec<_>>(),
                SHARE,
            );
            found.share("accuracy_net", &both, |pair| pair.net() > 0);
            found.share("pair_agreement", &both, |pair| pair.right_given() && pair.right_swapped());
            let own_label = self.unparsed == Unparsed::OwnLabel;
            found.share("consistency", &both, |pair| {
                pair.given == pair.swapped && (own_label || pair.given != Some(UNPARSED))
            });
            found.first_share(&pairs);
        }
        Ok(PairComparisons { n: rows.len(), unparsed, statistics: found.statistics })
    }

    /// Texts of a pair without a verdict.
    fn missing(&self, pair: &JudgedPair) -> usize {
        usize::from(pair.given.is_none()) + usize::from(self.both_orders && pair.swapped.is_none())
    }

    fn check<'p>(&self, rows: impl IntoIterator<Item = (usize, &'p JudgedPair)>) -> Result<(), Error> {
        let refused = self.unparsed == Unparsed::Refused;
        match rows.into_iter().find(|(_, pair)| refused && self.missing(pair) > 0) {
            Some((index, _)) => Err(Error::Unparsed { argument: "pairs", index }),
            None => Ok(()),
        }
    }

    fn settled<'p>(&self, pair: &'p JudgedPair) -> Settled<'p> {
        let settle = |verdict: Option<Preference>| match (verdict, self.unparsed) {
            (Some(verdict), _) => Some(verdict as usize),
            (None, Unparsed::Tie) => Some(Preference::Tie as usize),
            (None, Unparsed::Dropped) => None,
            (None, _) => Some(UNPARSED),
        };
        Settled { pair, given: settle(pair.given), swapped: settle(pair.swapped) }
    }

    /// By how much this judge is right more often than another on the same pairs, drawn together: `difference_accuracy` in the given order
    /// and, where both judges saw both orders, `difference_accuracy_mean`. Each rests on the pairs for which both judges' verdicts count.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] for another number of pairs, [`Error::Unparsed`] under [`Unparsed::Refused`].
    pub fn difference(&self, other: &Self) -> Result<PairComparisons, Error> {
        check_lengths("other", other.pairs.len(), "pairs", self.pairs.len())?;
        self.check(self.pairs.iter().enumerate())?;
        other.check(other.pairs.iter().enumerate())?;
        let mine: Vec<Settled<'_>> = self.pairs.iter().map(|pair| self.settled(pair)).collect();
        let theirs: Vec<Settled<'_>> = other.pairs.iter().map(|pair| other.settled(pair)).collect();
        let mut found = Found { bootstrap: self.bootstrap, statistics: Vec::new() };
        let mut compare = |name, counts: fn(&Settled<'_>) -> bool, right: fn(&Settled<'_>) -> f64| {
            let both = mine.iter().zip(&theirs).filter(|(mine, theirs)| counts(mine) && counts(theirs));
            let (pairs, gaps): (Vec<&Settled<'_>>, Vec<f64>) =
                both.map(|(mine, theirs)| (mine, right(mine) - right(theirs))).unzip();
            found.mean_of(name, &pairs, &gaps, [-1.0, 1.0]);
        };
        compare("difference_accuracy", |pair| pair.given.is_some(), |pair| f64::from(u8::from(pair.right_given())));
        if self.both_orders && other.both_orders {
            let counts: fn(&Settled<'_>) -> bool = |pair| pair.given.is_some() && pair.swapped.is_some();
            compare("difference_accuracy_mean", counts, |pair| pair.mean_right());
        }
        let unparsed = [self, other].iter().flat_map(|c| c.pairs.iter().map(|pair| c.missing(pair))).sum();
        Ok(PairComparisons { n: self.pairs.len(), unparsed, statistics: found.statistics })
    }
}

/// A pair as it is counted: the classes of its verdicts, `None` where the pair is left out.
struct Settled<'p> {
    pair: &'p JudgedPair,
    given: Option<usize>,
    swapped: Option<usize>,
}

impl Settled<'_> {
    fn gold(&self) -> usize {
        self.pair.gold as usize
    }

    fn right_given(&self) -> bool {
        self.given == Some(self.gold())
    }

    fn right_swapped(&self) -> bool {
        self.swapped == Some(self.gold())
    }

    /// The right orders less the wrong ones: ties, and texts without a verdict, are neither. Of a gold tie there is no opposite.
    fn net(&self) -> i32 {
        let vote = |verdict: Option<usize>| match (verdict, self.pair.gold) {
            (Some(found), _) if found == self.gold() => 1,
            (Some(0), Preference::Second) | (Some(1), Preference::First) => -1,
            _ => 0,
        };
        vote(self.given) + vote(self.swapped)
    }

    /// The share of its two orders that are right.
    fn mean_right(&self) -> f64 {
        f64::midpoint(f64::from(u8::from(self.right_given())), f64::from(u8::from(self.right_swapped())))
    }
}

/// What a collector finds of pairs: a statistic for each name, in their order, or why there is none.
pub(super) fn of_pairs<'a>(
    bootstrap: Bootstrap,
    clusters: Option<Vec<&'a str>>,
    undefined: Option<&str>,
    names: &[&'static str],
    n: usize,
    of: impl FnOnce(&mut Collector<'a>),
) -> Vec<PairStatistic> {
    let mut collector = Collector::of_rows(bootstrap, clusters);
    match undefined {
        Some(reason) => collector.all_undefined(names, reason),
        None => of(&mut collector),
    }
    let found = names.iter().zip(collector.found);
    found.map(|(&name, (_, statistic))| PairStatistic { name, n, statistic }).collect()
}

/// How many verdicts of a pair in both orders are for the response shown first, and how many for the one shown second.
pub(super) fn places(given: Option<Preference>, swapped: Option<Preference>) -> [usize; 2] {
    let count = |first: Preference, second: Preference| {
        usize::from(given == Some(first)) + usize::from(swapped == Some(second))
    };
    [count(Preference::First, Preference::Second), count(Preference::Second, Preference::First)]
}

/// The share of the decisive verdicts that are for the response shown first, by the places of each pair.
pub(super) fn share_of_first(places: &[[usize; 2]]) -> impl Fn(&[usize]) -> Result<f64, Error> + Sync {
    move |rows: &[usize]| {
        let sum = |place: usize| rows.iter().map(|&row| places[row][place]).sum::<usize>();
        Proportion { count: sum(0), n: sum(0) + sum(1) }.estimate()
    }
}

struct Found {
    bootstrap: Bootstrap,
    statistics: Vec<PairStatistic>,
}

impl Found {
    /// Lets a collector find statistics of these pairs.
    fn collect(
        &mut self,
        pairs: &[&Settled<'_>],
        n: usize,
        names: &[&'static str],
        of: impl FnOnce(&mut Collector<'_>),
    ) {
        let clusters = pairs.iter().map(|pair| pair.pair.cluster.as_deref()).collect();
        let why = pairs.is_empty().then_some("no pair has the verdicts that it needs");
        self.statistics.extend(of_pairs(self.bootstrap, clusters, why, names, n, of));
    }

    fn share(&mut self, name: &'static str, pairs: &[&Settled<'_>], counts: impl Fn(&Settled<'_>) -> bool) {
        let counts: Vec<bool> = pairs.iter().map(|pair| counts(pair)).collect();
        self.collect(pairs, pairs.len(), &[name], |found| found.share(name, &counts));
    }

    /// The mean of `values`, one for each pair, in `range`.
    fn mean_of(&mut self, name: &'static str, pairs: &[&Settled<'_>], values: &[f64], range: [f64; 2]) {
        self.collect(pairs, pairs.len(), &[name], |found| {
            found.mean_or_share(name, &Items::within(values, range));
        });
    }

    fn against_gold(&mut self, pairs: &[&Settled<'_>], verdict: impl Fn(&Settled<'_>) -> usize, ties: bool) {
        const NAMES: [&str; 7] = [
            "accuracy",
            MAJORITY_SHARE,
            "predicted_mode_share",
            "precision_macro",
            "recall_macro",
            "f1_macro",
            "cohen_kappa",
        ];
        let gold: Vec<usize> = pairs.iter().map(|pair| pair.gold()).collect();
        let judged: Vec<usize> = pairs.iter().map(|pair| verdict(pair)).collect();
        let of_labels = |gold: &[usize], judged: &[usize]| ConfusionMatrix::new((0..CLASSES).collect(), gold, judged);
        let matrix = of_both(&gold, &judged, of_labels);
        let labels = if ties { 3 } else { 2 };
        let n = pairs.len();
        self.collect(pairs, n, &NAMES, |found| {
            let [accuracy, majority, mode, precision, recall, f1, kappa] = NAMES;
            let right: Vec<bool> = gold.iter().zip(&judged).map(|(gold, judged)| gold == judged).collect();
            found.share(accuracy, &right);
            found.share_of_commonest(majority, &gold);
            found.share_of_commonest(mode, &judged);
            for (name, score) in [(precision, 0), (recall, 1), (f1, 2)] {
                let mean = |rows: &[usize]| {
                    let classes = matrix(rows)?.by_class();
                    let scores = classes[..labels].iter().map(|class| [class.precision, class.recall, class.f1][score]);
                    Ok(scores.map(|score| score.unwrap_or(0.0)).sum::<f64>() / labels as f64)
                };
                found.resample(name, None, mean, n);
            }
            found.closed(kappa, |rows| matrix(rows)?.cohen_kappa(&AgreementWeights::Identity), n);
            if let Ok(weights) = AgreementWeights::Identity.matrix(CLASSES) {
                found.retest(kappa, |test| test.kappa(CLASSES, (&weights, 0.0), &gold, &judged));
            }
        });
    }

    fn first_share(&mut self, pairs: &[Settled<'_>]) {
        let pairs: Vec<&Settled<'_>> = pairs.iter().collect();
        let places: Vec<[usize; 2]> = pairs.iter().map(|pair| places(pair.pair.given, pair.pair.swapped)).collect();
        let decisive = places.iter().flatten().sum();
        self.collect(&pairs, decisive, &["first_share"], |found| {
            found.resample("first_share", None, share_of_first(&places), places.len());
        });
    }
}
