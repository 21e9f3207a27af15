//! Transitivity: do the pairwise verdicts of a judge fit together?
//!
//! A judge that prefers a to b and b to c, but c to a, has no ranking in mind; neither has one that calls a and b, and
//! b and c, equal but prefers a to c, unless its ties only mean that it cannot tell them apart. The three counts of
//! [`TripleCounts`] are three answers to how much is asked of ties.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::Sum;

use crate::preference::Preference;
use crate::ranking::Comparison;
use crate::{Error, Proportion};

/// Triples of items whose three pairs were all judged, and how many of them fit no ranking.
///
/// `cyclic ≤ strict ≤ weak ≤ triples`, and of the 27 possible triples of verdicts 2, 8 and 14 are violations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TripleCounts {
    /// Triples with all three verdicts.
    pub triples: usize,
    /// Those without a tie.
    pub decisive: usize,
    /// Cycles: a over b, b over c, c over a.
    pub cyclic: usize,
    /// Triples in which a is over b and b over c, but a is not over c: cycles, or a tie where a preference must follow.
    /// Scores compared with a margin have none: a tie may then mean a difference too small to see.
    pub strict: usize,
    /// Triples that no ranking with ties explains: those of `strict`, and two ties that do not lead to a third.
    pub weak: usize,
}

impl TripleCounts {
    /// Cycles among the triples without a tie; a judge that answers at random has a quarter.
    pub fn cyclic_rate(&self) -> Proportion {
        Proportion { count: self.cyclic, n: self.decisive }
    }

    /// Violations of the transitivity of strict preference, among all triples.
    pub fn strict_rate(&self) -> Proportion {
        Proportion { count: self.strict, n: self.triples }
    }

    /// Violations of the transitivity of "at least as good", among all triples.
    pub fn weak_rate(&self) -> Proportion {
        Proportion { count: self.weak, n: self.triples }
    }
}

/// Pooled over questions: counts are added up.
impl Sum for TripleCounts {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), |a, b| Self {
            triples: a.triples + b.triples,
            decisive: a.decisive + b.decisive,
            cyclic: a.cyclic + b.cyclic,
            strict: a.strict + b.strict,
            weak: a.weak + b.weak,
        })
    }
}

/// Counts the triples of one question's comparisons. Pairs may be missing: a triple counts when its three pairs are
/// there. Triples share verdicts, so for an interval of a rate sum the counts over questions and resample those with a
/// [`Bootstrap`](crate::resampling::Bootstrap). Time and memory grow with the number of triples of items.
///
/// # Errors
///
/// [`Error::SelfComparison`] for an item with itself, [`Error::RepeatedComparison`] for a pair that was named before,
/// in whatever order.
///
/// ```
/// use judge_metrics::bias::transitivity::triples;
/// use judge_metrics::preference::Preference::*;
/// use judge_metrics::ranking::Comparison;
///
/// let verdicts = [("a", "b", First), ("b", "c", First), ("a", "c", Second)];
/// let counts = triples(&verdicts.map(|(a, b, preference)| Comparison { items: [a, b], preference }))?;
/// assert_eq!((counts.triples, counts.cyclic), (1, 1));
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn triples(comparisons: &[Comparison<'_>]) -> Result<TripleCounts, Error> {
    let verdicts = Verdicts::new("comparisons", comparisons)?;
    let items: Vec<&str> = verdicts.items.iter().copied().collect();
    let mut counts = TripleCounts::default();
    for (i, a) in items.iter().enumerate() {
        for (j, b) in items.iter().enumerate().skip(i + 1) {
            let Some(ab) = verdicts.sign(a, b) else { continue };
            for c in &items[j + 1..] {
                if let (Some(bc), Some(ca)) = (verdicts.sign(b, c), verdicts.sign(c, a)) {
                    counts.add([ab, bc, ca]);
                }
            }
        }
    }
    Ok(counts)
}

impl TripleCounts {
    /// The verdicts once around the triple, each +1 if the item before is better than the one after, −1 if worse, 0 for
    /// a tie.
    fn add(&mut self, around: [i32; 3]) {
        let wins = around.iter().filter(|&&sign| sign == 1).count();
        let losses = around.iter().filter(|&&sign| sign == -1).count();
        let ties = 3 - wins - losses;
        self.triples += 1;
        self.decisive += usize::from(ties == 0);
        // Once around, a ranking must go up as well as down, or stay level.
        let strict = wins >= 2 && losses == 0 || losses >= 2 && wins == 0;
        self.cyclic += usize::from(strict && ties == 0);
        self.strict += usize::from(strict);
        self.weak += usize::from(strict || ties == 2);
    }
}

/// Preference transitivity as Prometheus reports it (Kim et al., 2024): for every x, s, y with s better than x and y
/// better than s by `gold`, whether the judge has y better than x; a tie of the judge has not. Pairs (x, y) that the
/// judge was not asked about take no part, and one pair takes part once for each s.
///
/// With the judge's own verdicts as `gold` it measures the judge against itself.
///
/// # Errors
///
/// Those of [`triples`], for either side.
pub fn preference_transitivity(gold: &[Comparison<'_>], judge: &[Comparison<'_>]) -> Result<Proportion, Error> {
    let gold = Verdicts::new("gold", gold)?;
    let judge = Verdicts::new("judge", judge)?;
    let mut better: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (&[a, b], &sign) in &gold.signs {
        match sign {
            1 => better.entry(b).or_default().push(a),
            -1 => better.entry(a).or_default().push(b),
            _ => {}
        }
    }
    let mut kept = Proportion::default();
    for (x, above) in &better {
        for y in above.iter().filter_map(|s| better.get(s)).flatten() {
            if let Some(sign) = judge.sign(y, x) {
                kept.add(sign == 1);
            }
        }
    }
    Ok(kept)
}

/// Verdicts by pair of items.
struct Verdicts<'a> {
    items: BTreeSet<&'a str>,
    /// By items in ascending order: +1 if the first is better, −1 if the second, 0 for a tie.
    signs: BTreeMap<[&'a str; 2], i32>,
}

impl<'a> Verdicts<'a> {
    fn new(argument: &'static str, comparisons: &[Comparison<'a>]) -> Result<Self, Error> {
        let mut verdicts = Self { items: BTreeSet::new(), signs: BTreeMap::new() };
        for (index, comparison) in comparisons.iter().enumerate() {
            let [first, second] = comparison.items;
            if first == second {
                return Err(Error::SelfComparison { argument, index });
            }
            let sign = match comparison.preference {
                Preference::First => 1,
                Preference::Second => -1,
                Preference::Tie => 0,
            };
            let (pair, sign) = if first < second { ([first, second], sign) } else { ([second, first], -sign) };
            if verdicts.signs.insert(pair, sign).is_some() {
                return Err(Error::RepeatedComparison { argument, index });
            }
            verdicts.items.extend(pair);
        }
        Ok(verdicts)
    }

    /// +1 if `a` is better than `b`.
    fn sign(&self, a: &str, b: &str) -> Option<i32> {
        if a < b { self.signs.get(&[a, b]).copied() } else { self.signs.get(&[b, a]).map(|sign| -sign) }
    }
}
