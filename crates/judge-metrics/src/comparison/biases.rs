//! Three biases of one judge on one set of pairs: how large, and larger than chance?

use super::Statistic;
use super::collector::Collector;
use crate::Error;
use crate::bias::position::{first_shown, order_effect};
use crate::bias::self_preference;
use crate::bias::verbosity::{equal_opportunity, length_preference};
use crate::groups::{clusters, take};
use crate::input::check_count;
use crate::preference::{Preference, TwoOrder, Unparsed};
use crate::resampling::Bootstrap;

/// What is known of one pair. All is about its items, `First` being the first one as the pair is given.
#[derive(Debug, Clone, PartialEq)]
pub struct BiasPair {
    /// The verdict in the order as given; `None` where the text held none.
    pub given: Option<Preference>,
    /// The verdict in the exchanged order, mapped back to the items; `None` where there is none, or the order was not asked.
    pub swapped: Option<Preference>,
    /// What people prefer.
    pub human: Preference,
    /// Lengths of the two responses, in any unit; `None` where their texts are not known.
    pub lengths: Option<[f64; 2]>,
    /// Which response is of the judge's own model; `None` where neither is, or both are.
    pub own: Option<Preference>,
    /// Pairs with the same question are drawn together.
    pub question: String,
}

/// Position, verbosity and self-preference bias of one judge.
///
/// | bias | measured by ([`BiasFinding::key`]) | sign |
/// |---|---|---|
/// | position | `preference_fairness`: flips towards the second place less those towards the first, of all pairs ([`order_effect`]) | below 0: the response shown first gains |
/// | verbosity | `longer_excess`: how much more often than people the judge chooses the longer response ([`length_preference`]) | above 0: the longer response gains |
/// | self-preference | `self_enhancement`: win rate of its own output less the one that people give it ([`self_preference::self_enhancement`]) | above 0: its own output gains |
///
/// A text without a verdict favours no place: position, consistency included, rests on the pairs of which both orders have one. The share
/// of texts without is `unparsed_share`, the last statistic of each finding; where it is above one half nothing else is reported, since
/// what could be read is not what the judge says.
///
/// Intervals are the bootstrap's, drawn over questions. A bias is larger than chance if the interval of its measure lies on one side of 0,
/// or if it has the same sign on each of six questions or more.
#[derive(Debug, Clone, PartialEq)]
pub struct BiasReport {
    /// The pairs.
    pub pairs: Vec<BiasPair>,
    /// Whether the exchanged order was judged.
    pub both_orders: bool,
    /// What becomes of texts without a verdict in win rates and in the gaps of opportunity. One that is wrong favours neither response: it
    /// is not right, and takes no part in win rates. In position and in the choice of longer responses they take no part.
    pub unparsed: Unparsed,
    /// How intervals are made.
    pub bootstrap: Bootstrap,
}

/// What was found about one bias.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct BiasFinding {
    /// `position`, `verbosity` or `self_preference`; of a [`PerturbationReport`](super::PerturbationReport) the name that it was given.
    pub bias: String,
    /// Names and values; the first one measures the bias.
    pub statistics: Vec<(&'static str, Statistic)>,
    /// Pairs that have what it needs.
    pub n: usize,
    /// Their questions.
    pub questions: usize,
    /// The sign of the measure on each question by itself, where it is the same on all and they are enough for a sign test.
    pub(super) unanimous: Option<i8>,
    #[cfg_attr(feature = "serde", serde(skip))]
    pub(super) words: Words,
}

/// How a finding is put into words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Words {
    /// What gains where the measure is above 0.
    pub(super) above: &'static str,
    /// What gains where it is below 0.
    pub(super) below: &'static str,
    /// What it gains, before and after a number of hundredths.
    pub(super) gain: (&'static str, &'static str),
}

impl BiasFinding {
    /// The measure of the bias.
    pub fn key(&self) -> Option<&Statistic> {
        self.statistics.first().map(|(_, statistic)| statistic)
    }

    /// The sign of a bias that is larger than chance: -1 or 1; 0 where the interval holds 0; `None` where nothing tells it from chance.
    /// Where the measure does not vary over questions, and so has no interval, the sign is the one that it has on each of them, of six
    /// questions or more.
    pub fn direction(&self) -> Option<i8> {
        let Some(interval) = self.key()?.interval() else { return self.unanimous };
        Some(if interval.low > 0.0 {
            1
        } else if interval.high < 0.0 {
            -1
        } else {
            0
        })
    }

    /// The finding in a sentence.
    pub fn sentence(&self) -> String {
        let Some(key) = self.key() else { return format!("{}: nothing was measured", self.bias) };
        let Some(size) = key.estimate() else { return format!("{}: {key}", self.bias) };
        let percent = 100.0 * size.abs();
        let Words { above, below, gain: (before, after) } = self.words;
        let gains = if size >= 0.0 { above } else { below };
        match self.direction() {
            Some(0) => format!("{}: {key:.3}, which chance can explain on these pairs", self.bias),
            Some(_) => format!("{}: larger than chance; {gains} {before} {percent:.1} {after}: {key:.3}", self.bias),
            None => format!("{}: {key:.3}, of too few questions to tell it from chance", self.bias),
        }
    }
}

impl BiasReport {
    /// The three findings; one without the pairs that it needs is undefined and says why.
    ///
    /// # Errors
    ///
    /// [`Error::TooFewItems`] for no pair. What the pairs do not define is [`Statistic::Undefined`], texts without a verdict under
    /// [`Unparsed::Refused`] included.
    pub fn findings(&self) -> Result<[BiasFinding; 3], Error> {
        Ok([self.position()?, self.verbosity()?, self.self_preference()?])
    }

    fn position(&self) -> Result<BiasFinding, Error> {
        let rows: Vec<&BiasPair> = if self.both_orders { self.pairs.iter().collect() } else { Vec::new() };
        let orders = |rows: &[&BiasPair]| -> Vec<TwoOrder> {
            rows.iter().map(|pair| TwoOrder::new(pair.given, pair.swapped)).collect()
        };
        let readable = if self.unparsed == Unparsed::Refused { Unparsed::Refused } else { Unparsed::Dropped };
        let effect = |rows: &[&BiasPair]| order_effect(&orders(rows), readable);
        self.finding(
            "position",
            Words {
                above: "responses shown second",
                below: "responses shown first",
                gain: ("gain in", "% of pairs, net of flips the other way"),
            },
            &rows,
            "both orders are needed",
            [
                ("preference_fairness", &|rows| effect(rows)?.preference_fairness()),
                ("consistency", &|rows| effect(rows)?.consistency().estimate()),
                ("prefer_before", &|rows| effect(rows)?.prefer_before().estimate()),
                ("prefer_after", &|rows| effect(rows)?.prefer_after().estimate()),
                ("first_share", &|rows| {
                    let shown: Vec<_> = orders(rows).into_iter().flat_map(TwoOrder::shown).collect();
                    first_shown(&shown)?.rate().estimate()
                }),
            ],
        )
    }

    fn verbosity(&self) -> Result<BiasFinding, Error> {
        let rows: Vec<&BiasPair> = self.pairs.iter().filter(|pair| pair.lengths.is_some()).collect();
        // Each order is a verdict of its own about the same two lengths; the questions keep them together.
        let stacked = |rows: &[&BiasPair]| {
            let orders = if self.both_orders { 2 } else { 1 };
            let (mut lengths, mut judge, mut human) = (Vec::new(), Vec::new(), Vec::new());
            for pair in rows {
                for verdict in [pair.given, pair.swapped].into_iter().take(orders) {
                    lengths.extend(pair.lengths);
                    judge.push(verdict);
                    human.push(pair.human);
                }
            }
            (lengths, judge, human)
        };
        let preference = |rows: &[&BiasPair]| {
            let (lengths, judge, human) = stacked(rows);
            length_preference(&lengths, &human, &judge, self.unparsed)
        };
        self.finding(
            "verbosity",
            Words { above: "longer responses", below: "shorter responses", gain: BEYOND_PEOPLE },
            &rows,
            "the texts of the responses are needed",
            [
                ("longer_excess", &|rows| Ok(preference(rows)?.excess()?.estimate)),
                ("longer_share", &|rows| preference(rows)?.judge.estimate()),
                ("longer_share_human", &|rows| preference(rows)?.human.estimate()),
                ("longer_share_when_they_differ", &|rows| preference(rows)?.judge_when_they_differ.estimate()),
                ("opportunity_gap", &|rows| {
                    let (lengths, judge, human) = stacked(rows);
                    Ok(equal_opportunity(&lengths, &human, &judge, self.unparsed)?.difference()?.estimate)
                }),
            ],
        )
    }

    fn self_preference(&self) -> Result<BiasFinding, Error> {
        let rows: Vec<&BiasPair> = self.pairs.iter().filter(|pair| pair.own.is_some()).collect();
        let orders = if self.both_orders { 2 } else { 1 };
        // Named so that the judge's own output is first.
        let columns = |rows: &[&BiasPair]| {
            let (mut judge, mut human) = (Vec::new(), Vec::new());
            for pair in rows {
                let turn = |verdict: Preference| {
                    if pair.own == Some(Preference::Second) { verdict.swapped() } else { verdict }
                };
                for verdict in [pair.given, pair.swapped].into_iter().take(orders) {
                    judge.push(verdict.map(turn));
                    human.push(turn(pair.human));
                }
            }
            (judge, human)
        };
        let choosing = match self.unparsed {
            Unparsed::Wrong | Unparsed::OwnLabel => Unparsed::Dropped,
            named => named,
        };
        let enhancement = |rows: &[&BiasPair]| {
            let (judge, human) = columns(rows);
            self_preference::self_enhancement(&human, &judge, choosing)
        };
        self.finding(
            "self_preference",
            Words { above: "the judge's own responses", below: "the responses of others", gain: BEYOND_PEOPLE },
            &rows,
            "pairs are needed in which one response is of the judge's own model",
            [
                ("self_enhancement", &|rows| {
                    let found = enhancement(rows)?;
                    Ok(found.judge - found.human)
                }),
                ("own_win_rate", &|rows| Ok(enhancement(rows)?.judge)),
                ("own_win_rate_human", &|rows| Ok(enhancement(rows)?.human)),
                ("opportunity_difference", &|rows| {
                    let (judge, human) = columns(rows);
                    Ok(self_preference::equal_opportunity(&human, &judge, self.unparsed)?.difference()?.estimate)
                }),
            ],
        )
    }

    fn finding<const N: usize>(
        &self,
        bias: &str,
        words: Words,
        rows: &[&BiasPair],
        needs: &str,
        statistics: [(&'static str, &Of<'_, BiasPair>); N],
    ) -> Result<BiasFinding, Error> {
        check_count(1, self.pairs.len())?;
        let questions = rows.iter().map(|pair| pair.question.as_str()).collect();
        let orders = if self.both_orders { 2 } else { 1 };
        let unparsed = |pair: &&BiasPair| unparsed_share(&[pair.given, pair.swapped][..orders]);
        let unparsed: Vec<f64> = rows.iter().map(unparsed).collect();
        Ok(finding(bias, words, rows, questions, &unparsed, needs, &statistics, self.bootstrap))
    }
}

const BEYOND_PEOPLE: (&str, &str) = ("gain in", "% of pairs, beyond what people prefer");

/// A statistic of some pairs.
pub(super) type Of<'a, Pair> = dyn Fn(&[&Pair]) -> Result<f64, Error> + Sync + 'a;

/// How many of a pair's texts hold no verdict.
pub(super) fn unparsed_share(verdicts: &[Option<Preference>]) -> f64 {
    verdicts.iter().filter(|verdict| verdict.is_none()).count() as f64 / verdicts.len() as f64
}

/// What some pairs show, each with the name of its question and the share of its texts without a verdict: the statistics with their
/// intervals over questions and at last that share, or that there are no such pairs.
#[expect(clippy::too_many_arguments, reason = "two callers, each with its own words and pairs")]
pub(super) fn finding<Pair: Sync>(
    bias: &str,
    words: Words,
    rows: &[&Pair],
    names: Vec<&str>,
    unparsed: &[f64],
    needs: &str,
    statistics: &[(&'static str, &Of<'_, Pair>)],
    bootstrap: Bootstrap,
) -> BiasFinding {
    let of_questions = clusters(&names);
    let questions = of_questions.len();
    let silent = unparsed.iter().sum::<f64>() / unparsed.len() as f64 > 0.5;
    let mut found = Collector::of_rows(bootstrap, Some(names));
    for (name, of) in statistics {
        if rows.is_empty() {
            found.undefined(name, needs);
        } else if silent {
            found.undefined(name, "most texts hold no verdict that could be read");
        } else {
            found.resample(name, None, |drawn| of(&take(rows, drawn)), rows.len());
        }
    }
    let (mut names, mut unanimous): (Vec<&str>, _) = (statistics.iter().map(|(name, _)| *name).collect(), None);
    if let (false, Some((_, measure))) = (rows.is_empty(), statistics.first()) {
        names.push(UNPARSED_SHARE);
        let mean = |drawn: &[usize]| Ok(drawn.iter().map(|&row| unparsed[row]).sum::<f64>() / drawn.len() as f64);
        found.resample(UNPARSED_SHARE, None, mean, rows.len());
        // A question that does not define the measure says nothing of it.
        let signs: Vec<i8> = of_questions.iter().filter_map(|drawn| sign(measure(&take(rows, drawn)).ok()?)).collect();
        unanimous =
            signs.first().copied().filter(|first| signs.len() >= ENOUGH && signs.iter().all(|sign| sign == first));
    }
    let statistics = names.into_iter().zip(found.found).map(|(name, (_, statistic))| (name, statistic)).collect();
    BiasFinding { bias: bias.to_owned(), statistics, n: rows.len(), questions, unanimous, words }
}

/// All of six questions on one side: two-sided sign test, p = 2/64.
const ENOUGH: usize = 6;

/// The share of texts without a verdict, with the statistics of every bias.
const UNPARSED_SHARE: &str = "unparsed_share";

fn sign(value: f64) -> Option<i8> {
    value.partial_cmp(&0.0).map(|order| order as i8)
}
