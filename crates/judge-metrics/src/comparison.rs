//! Every statistic that a set of scored rows defines, by name: what a report of a judge against people prints.
//!
//! The other modules have the statistics, one function each, on plain columns. This one decides which of them a set of rows defines, takes
//! each with the uncertainty that suits it, and says of the rest why they are undefined: a continuous score is no label, a constant column
//! has no correlation. Nothing here fails because the data do not define a statistic.
//!
//! ```
//! use judge_metrics::comparison::{ComparedItem, Comparison, ComparisonSettings, Rating};
//!
//! let item = |predicted: f64, raters: &[f64]| {
//!     ComparedItem::new(Rating::Number(predicted), raters.iter().copied().map(Rating::Number))
//! };
//! let items = vec![item(3.4, &[3.0, 4.0]), item(1.2, &[1.0, 1.0]), item(4.4, &[5.0, 4.0]), item(2.9, &[2.0, 3.0])];
//! let comparison = Comparison::new(items, ComparisonSettings::default())?;
//! let found = comparison.statistics(&[0, 1, 2, 3]);
//! assert_eq!(found.get("mae").and_then(|mae| mae.estimate()).map(|mae| (mae * 1e6).round()), Some(200_000.0));
//! // Fractions are no labels, and the reason says so.
//! assert!(found.get("accuracy").is_some_and(|accuracy| accuracy.to_string().contains("3.4 is not a whole number")));
//! # Ok::<(), judge_metrics::Error>(())
//! ```
//!
//! | to | take |
//! |---|---|
//! | report everything that rows define, whole or by group | [`Comparison`] |
//! | report everything that verdicts on pairs define, in one order or in both | [`PairComparison`] |
//! | report what probabilities on pairs are worth, averaged over both orders, whatever the verdicts are | [`PreferenceComparison`] |
//! | count verdicts on pairs that nobody has graded | [`PairTally`] |
//! | say how well comparisons of answers fit together, without anybody's grades | [`Coherence`] |
//! | report how well judges and people agree vote by vote, as MT-bench does | [`VoteComparison`] |
//! | say how large position, verbosity and self-preference bias are, and whether larger than chance | [`BiasReport`] |
//! | say whether a change that should not matter moves verdicts, beyond chance | [`PerturbationReport`] |
//! | say how good the answer is that a judge chooses among several | [`BestOf`] |
//! | report RewardBench 2, of a judge that scores answers | [`RewardBench`] |
//! | say how good the probabilities of typed decisions are, beside people's answers | [`DecisionComparison`] |
//! | say how well two columns of numbers agree in order | [`rank_agreement`] |

mod best_of;
mod biases;
mod coherence;
mod collector;
mod decisions;
mod difference;
mod item;
mod labels;
mod nominal;
mod numbers;
mod out_of_fold;
mod pairs;
mod perturbations;
mod preferences;
mod probabilities;
mod rank_agreement;
mod rank_test;
mod raters;
mod reward_bench;
mod risk;
mod settings;
mod statistic;
mod tally;
mod votes;
mod weighted;
mod within;

use std::collections::BTreeMap;

pub use best_of::{BestOf, RankedAnswers};
pub use biases::{BiasFinding, BiasPair, BiasReport};
pub use coherence::{Coherence, ComparedAnswers};
pub use decisions::{ComparedDecision, DecisionComparison};
pub use item::{ComparedItem, Rating};
pub use labels::Labels;
pub use pairs::{JudgedPair, PairComparison, PairComparisons, PairStatistic};
pub use perturbations::{PerturbationReport, PerturbedVerdicts};
pub use preferences::{PreferenceComparison, PreferredPair};
pub use rank_agreement::{RankAgreement, rank_agreement};
pub use reward_bench::{RewardBench, RewardBenchRow, RewardBenchSubset};
pub use risk::{Loss, SelectiveRisk};
pub use settings::{ComparisonSettings, StatisticStarted};
#[cfg(feature = "serde")]
pub use statistic::brief;
pub use statistic::{NO_VARIATION, Reported, Statistic};
pub use tally::{PairTallied, PairTally, TalliedPair};
pub use votes::{JudgeVote, VoteComparison, VoteStatistic};

use crate::Error;
use crate::groups::rows_by_group;
use crate::input::check_lengths;
use collector::{Collector, Observer};

/// All names, in the order of a report. Which of them rows bring depends on whether scores are numbers, and on whether there are several
/// raters, a second judge, clusters, and confidences.
pub const STATISTICS: [&str; 72] = joined(&[
    &numbers::OF_NUMBERS,
    &within::WITHIN,
    &probabilities::PROBABILITIES,
    &difference::DIFFERENCES,
    &risk::RISK,
    &[nominal::ROWS_WITH_A_MAJORITY],
    &nominal::OF_MAJORITY,
    &nominal::OF_TWO,
    &[nominal::OF_CONSENSUS],
    &nominal::OF_USE,
    &raters::ALTERNATIVE,
    &raters::AGAINST_REST,
    &raters::OF_RATERS,
]);

const fn joined<const N: usize>(parts: &[&[&'static str]]) -> [&'static str; N] {
    let mut all = [""; N];
    let (mut count, mut part) = (0, 0);
    while part < parts.len() {
        let mut name = 0;
        while name < parts[part].len() {
            all[count] = parts[part][name];
            count += 1;
            name += 1;
        }
        part += 1;
    }
    assert!(count == all.len());
    all
}

/// Whether a row has a value of its own.
type Has = fn(&ComparedItem) -> bool;

/// What all rows have, or none has.
const OPTIONAL: [(&str, Has); 4] = [
    ("second", |item| item.second.is_some()),
    ("confidence", |item| item.confidence.is_some()),
    ("cluster", |item| item.cluster.is_some()),
    ("sampling_probability", |item| item.sampling_probability.is_some()),
];

/// Rows of a judge's scores and people's.
#[derive(Debug, Clone)]
pub struct Comparison {
    items: Vec<ComparedItem>,
    numeric: bool,
    /// The labels of all rows, the same for every group of them, or why ratings are no labels.
    labels: Result<Labels, String>,
    settings: ComparisonSettings,
}

impl Comparison {
    /// Checks rows and settings. All ratings are numbers, or all are texts; each row has one human rating or more.
    ///
    /// # Errors
    ///
    /// [`Error::TooFewItems`] for no row; [`Error::InRow`] around [`Error::MixedRatings`], [`Error::NonFinite`],
    /// [`Error::OutOfRange`], [`Error::Missing`] for a row without what others have and, for a row without a human rating,
    /// [`Error::TooFewItems`]; what [`Labels::named`] refuses; [`Error::UnknownLabel`] for a name in `only` that is no
    /// statistic's.
    pub fn new(items: Vec<ComparedItem>, settings: ComparisonSettings) -> Result<Self, Error> {
        let Some(first) = items.first() else { return Err(Error::TooFewItems { required: 1, found: 0 }) };
        let numeric = first.predicted.number().is_some();
        for (row, item) in items.iter().enumerate() {
            item.check(numeric).map_err(Error::in_row(row))?;
        }
        for (argument, has) in OPTIONAL {
            let lacking = items.iter().position(|item| !has(item));
            if let Some(row) = lacking.filter(|_| items.iter().any(has)) {
                return Err(Error::in_row(row)(Error::Missing { argument }));
            }
        }
        let unknown = settings.only.iter().flatten().enumerate().find(|(_, name)| !STATISTICS.contains(&name.as_str()));
        if let Some((index, name)) = unknown {
            let (found, known) = (name.clone(), STATISTICS.join(", "));
            return Err(Error::UnknownLabel { argument: "only", index, found, known });
        }
        let labels = match &settings.labels {
            Some(names) => Ok(Labels::named(names, numeric)?),
            None => Labels::occurring(&items),
        };
        Ok(Self { items, numeric, labels, settings })
    }

    /// The rows.
    pub fn items(&self) -> &[ComparedItem] {
        &self.items
    }

    /// Whether ratings are numbers; otherwise all are texts.
    pub fn is_numeric(&self) -> bool {
        self.numeric
    }

    /// The statistics of some of the rows, given by their indices, such as those of one group. Indices that no row has are left out.
    ///
    /// Several human ratings of a row count as their mean where numbers are compared, and as their majority where labels are.
    pub fn statistics(&self, rows: &[usize]) -> Comparisons {
        self.statistics_observed(rows, &|_| ())
    }

    /// The same, telling `observer` of each statistic before it is computed. Numbers ascend. What rows do not bring is passed over, and
    /// what takes no time may be.
    pub fn statistics_observed(&self, rows: &[usize], observer: &dyn Fn(StatisticStarted<'_>)) -> Comparisons {
        let items: Vec<&ComparedItem> = rows.iter().filter_map(|&row| self.items.get(row)).collect();
        let mut found = Collector::new(&self.settings, &items, Observer::new(&STATISTICS, observer));
        if self.numeric {
            numbers::compare(&mut found, &items, self.labels.as_ref());
        } else {
            numbers::of_texts(&mut found, &items, self.labels.as_ref());
        }
        risk::compare(&mut found, &items);
        nominal::compare(&mut found, &items, self.labels.as_ref());
        raters::compare(&mut found, &items, self.numeric, self.labels.as_ref());
        weighted::fill(&mut found, &items, self.labels.as_ref());
        Comparisons { n: items.len(), statistics: found.found }
    }

    /// What some of the rows cost and how sure the judge is of each, for a risk–coverage curve; `None` where nothing says how sure it is.
    /// Indices as for [`statistics`](Self::statistics).
    pub fn selective_risk(&self, rows: &[usize]) -> Option<SelectiveRisk> {
        SelectiveRisk::new(&rows.iter().filter_map(|&row| self.items.get(row)).collect::<Vec<_>>())
    }

    /// The statistics of each group of rows: `groups[i]` is the group of row i.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`].
    pub fn by_group<'g, G: Ord>(&self, groups: &'g [G]) -> Result<BTreeMap<&'g G, Comparisons>, Error> {
        check_lengths("groups", groups.len(), "items", self.items.len())?;
        Ok(rows_by_group(groups).into_iter().map(|(group, rows)| (group, self.statistics(&rows))).collect())
    }
}

/// The statistics of a set of rows, in the order of a report.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Comparisons {
    /// Rows.
    pub n: usize,
    /// Names and what was found.
    pub statistics: Vec<(String, Statistic)>,
}

impl Comparisons {
    /// The statistic of this name; `None` where it was not computed.
    pub fn get(&self, name: &str) -> Option<&Statistic> {
        self.statistics.iter().find(|(known, _)| known == name).map(|(_, statistic)| statistic)
    }
}
