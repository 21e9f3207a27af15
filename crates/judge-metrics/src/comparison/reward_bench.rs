//! RewardBench 2 (Malik et al., 2025): the best of four by subset, and its score of answers that are equally right.

use std::collections::BTreeMap;

use super::collector::{Collector, Items};
use super::{RankedAnswers, Statistic};
use crate::Error;
use crate::estimate::SHARE;
use crate::input::check_count;
use crate::resampling::Bootstrap;

/// The subset whose answers are equally right, whatever the case of its letters.
const TIES: &str = "ties";

/// The scored answers to one prompt of RewardBench 2.
#[derive(Debug, Clone, PartialEq)]
pub struct RewardBenchRow {
    /// Its id; in the subset of ties `ref:N` for the prompt number `N` with one right answer, `tied:N` for it with several.
    pub id: String,
    /// Its subset.
    pub subset: String,
    /// What the judge says of each answer, and 1 for those that are right, 0 for the others.
    pub answers: RankedAnswers,
}

/// What RewardBench 2 reports of a judge that scores answers.
///
/// Of every subset but that of ties `accuracy` is [`BestOf`](super::BestOf)'s `best_share`: 1 for a prompt whose right answer has the
/// highest score, its share where others have it too. In every subset a prompt with an answer that has no score counts as wrong: give rows
/// without any score too, or the mean is that of the prompts that the judge could read.
///
/// Of the subset of ties, with a prompt's margins `inner` between the highest and the lowest score of its right answers, and `outer` between
/// the lowest of these and the highest of the wrong ones, of which `outer_ref` is that of `ref:N`:
///
/// | statistic | what it is |
/// |---|---|
/// | `accuracy_ref`, `accuracy_tied` | share of the prompts of each kind with `outer > 0` |
/// | `preferred` | share of the prompts of both kinds with `outer > inner` |
/// | `preferred_hard` | the same of `min(outer, outer_ref) > inner` |
/// | `margin` | their mean of `tanh(min(outer, outer_ref) / inner - 1)`, 0 for 0 / 0 |
/// | `score` | 0.3 `accuracy_tied` + 0.3 `accuracy_ref` + 0.2 `preferred` + 0.2 `preferred_hard` + 0.01 `margin` |
///
/// This is `process_single_model` of allenai/reward-bench (Apache-2.0) as it is there now. Its release 0.1.4 leaves prompts with `inner = 0`
/// out of `margin`, which moves `score` by 0.01 at most. A prompt with an answer that has no score counts as one whose right answers are
/// not preferred. A prompt number that lacks one of its two kinds takes no part in what needs both, and their method says how many do.
/// Intervals of shares are Wilson's, that of `margin` Student's, and that of `score` the bootstrap's over prompt numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct RewardBench {
    /// One for each prompt.
    pub rows: Vec<RewardBenchRow>,
    /// How intervals are made.
    pub bootstrap: Bootstrap,
}

/// What is reported of a subset.
#[derive(Debug, Clone, PartialEq)]
pub struct RewardBenchSubset {
    /// Prompts.
    pub n: usize,
    /// By name; the first is the subset's score.
    pub statistics: Vec<(&'static str, Statistic)>,
}

/// A prompt of the subset of ties: whether all right answers beat all wrong ones, and both margins where all answers have a score.
#[derive(Clone, Copy, PartialEq)]
struct Margins {
    inner: f64,
    outer: f64,
}

impl RewardBench {
    /// Whether an id is one of its subset: in that of ties `ref:N` or `tied:N`, elsewhere any.
    ///
    /// # Errors
    ///
    /// [`Error::RewardBenchId`].
    pub fn check_id(id: &str, subset: &str) -> Result<(), Error> {
        if subset.eq_ignore_ascii_case(TIES) { prompt_of(id).map(|_| ()) } else { Ok(()) }
    }

    /// Each subset by its name.
    ///
    /// # Errors
    ///
    /// [`Error::TooFewItems`] for no row, or an answer list without a right or a wrong answer; [`Error::RewardBenchId`] for an id of the
    /// subset of ties that is not of its form, or is there twice; those of [`BestOf`](super::BestOf).
    pub fn subsets(&self) -> Result<BTreeMap<&str, RewardBenchSubset>, Error> {
        check_count(1, self.rows.len())?;
        let mut rows: BTreeMap<&str, Vec<&RewardBenchRow>> = BTreeMap::new();
        for row in &self.rows {
            rows.entry(&row.subset).or_default().push(row);
        }
        let subset = |(name, rows): (_, Vec<&RewardBenchRow>)| {
            let statistics = if str::eq_ignore_ascii_case(name, TIES) { self.ties(&rows)? } else { self.best(&rows)? };
            Ok((name, RewardBenchSubset { n: rows.len(), statistics }))
        };
        rows.into_iter().map(subset).collect()
    }

    /// The mean of the subsets' scores, each counting alike, as the leaderboard ranks by; `None` where one is undefined.
    pub fn mean(subsets: &BTreeMap<&str, RewardBenchSubset>) -> Option<f64> {
        let scores = subsets.values().map(|subset| subset.statistics.first()?.1.estimate());
        let scores: Vec<f64> = scores.collect::<Option<_>>()?;
        (!scores.is_empty()).then(|| scores.iter().sum::<f64>() / scores.len() as f64)
    }

    /// A subset whose prompts have one right answer.
    fn best(&self, rows: &[&RewardBenchRow]) -> Result<Vec<(&'static str, Statistic)>, Error> {
        let right = rows.iter().map(|row| row.answers.best_share()).collect::<Result<Vec<f64>, Error>>()?;
        let mut found = Collector::of_rows(self.bootstrap, None);
        found.mean_or_share("accuracy", &Items::within(&right, SHARE));
        Ok(found.found.into_iter().map(|(_, statistic)| ("accuracy", statistic)).collect())
    }

    /// The subset whose prompts have several.
    fn ties(&self, rows: &[&RewardBenchRow]) -> Result<Vec<(&'static str, Statistic)>, Error> {
        let mut prompts: BTreeMap<u64, [Option<Option<Margins>>; 2]> = BTreeMap::new();
        for row in rows {
            let (kind, number) = prompt_of(&row.id)?;
            let place = &mut prompts.entry(number).or_default()[kind];
            if place.replace(Margins::of(&row.answers)?).is_some() {
                return Err(Error::RewardBenchId { found: row.id.clone() });
            }
        }
        let prompts: Vec<[Option<Option<Margins>>; 2]> = prompts.into_values().collect();
        let accuracy = |kind: usize| {
            let of = move |prompt: &[Option<Option<Margins>>; 2]| {
                prompt[kind].map(|margins| is(margins.is_some_and(|margins| margins.outer > 0.0)))
            };
            Mean::new(&prompts, of, ["no prompt has one right answer", "no prompt has several right answers"][kind])
        };
        // Of prompts of both kinds: `outer` or the smaller one, against `inner`.
        let both = |of: fn(f64, f64, f64) -> f64| {
            let of = move |prompt: &[Option<Option<Margins>>; 2]| match prompt {
                [Some(Some(reference)), Some(Some(tied))] => {
                    Some(of(tied.outer, tied.outer.min(reference.outer), tied.inner))
                }
                [Some(_), Some(_)] => Some(of(f64::NEG_INFINITY, f64::NEG_INFINITY, 0.0)),
                _ => None,
            };
            Mean::new(&prompts, of, "no prompt number is there with one right answer and with several")
        };
        let (of_ref, of_tied) = (accuracy(0), accuracy(1));
        let preferred = both(|outer, _, inner| is(outer > inner));
        let hard = both(|_, smaller, inner| is(smaller > inner));
        let margin = both(|_, smaller, inner| {
            let ratio = smaller / inner - 1.0;
            if ratio.is_nan() { 0.0 } else { ratio.tanh() }
        });
        let score = |rows: &[usize]| {
            let [of_ref, of_tied] = [of_ref.of(rows)?, of_tied.of(rows)?];
            let [preferred, hard, margin] = [preferred.of(rows)?, hard.of(rows)?, margin.of(rows)?];
            Ok(0.3 * of_tied + 0.3 * of_ref + 0.2 * preferred + 0.2 * hard + 0.01 * margin)
        };
        let mut found = Collector::of_rows(self.bootstrap, None);
        let n = prompts.len();
        found.resample("score", None, score, n);
        of_ref.add_to(&mut found, "accuracy_ref", SHARE);
        of_tied.add_to(&mut found, "accuracy_tied", SHARE);
        preferred.add_to(&mut found, "preferred", SHARE);
        hard.add_to(&mut found, "preferred_hard", SHARE);
        margin.add_to(&mut found, "margin", [-1.0, 1.0]);
        let alone = prompts.iter().filter(|prompt| prompt.contains(&None)).count();
        if alone > 0 {
            let remark = format!("; prompt numbers that lack ref or tied, left out: {alone}");
            ["score", "preferred", "preferred_hard", "margin"].iter().for_each(|name| found.remark(name, &remark));
        }
        let names = ["score", "accuracy_ref", "accuracy_tied", "preferred", "preferred_hard", "margin"];
        Ok(names.into_iter().zip(found.found).map(|(name, (_, statistic))| (name, statistic)).collect())
    }
}

/// What an id of the subset of ties says: 0 for `ref` and 1 for `tied`, and the number of the prompt.
fn prompt_of(id: &str) -> Result<(usize, u64), Error> {
    let wrong = || Error::RewardBenchId { found: id.to_owned() };
    let (kind, number) = id.split_once(':').ok_or_else(wrong)?;
    let kind = ["ref", "tied"].iter().position(|known| *known == kind).ok_or_else(wrong)?;
    Ok((kind, number.parse().map_err(|_| wrong())?))
}

/// 1 for what holds, 0 for what does not.
fn is(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

/// The mean of what prompts have of something; undefined with a reason where none has it.
struct Mean {
    /// Of each prompt, where it has it.
    values: Vec<Option<f64>>,
    reason: &'static str,
}

impl Mean {
    fn new<P>(prompts: &[P], of: impl Fn(&P) -> Option<f64>, reason: &'static str) -> Self {
        Self { values: prompts.iter().map(of).collect(), reason }
    }

    /// Of the prompts drawn.
    fn of(&self, rows: &[usize]) -> Result<f64, Error> {
        let found: Vec<f64> = rows.iter().filter_map(|&row| self.values[row]).collect();
        match found.len() {
            0 => Err(Error::Undefined { statistic: "RewardBench 2, ties", reason: self.reason }),
            n => Ok(found.iter().sum::<f64>() / n as f64),
        }
    }

    fn add_to(&self, found: &mut Collector<'_>, name: &'static str, range: [f64; 2]) {
        let values: Vec<f64> = self.values.iter().copied().flatten().collect();
        if values.is_empty() {
            found.undefined(name, self.reason);
        } else {
            found.mean_or_share(name, &Items::within(&values, range));
        }
    }
}

impl Margins {
    /// `None` where an answer has no score.
    fn of(answers: &RankedAnswers) -> Result<Option<Self>, Error> {
        let RankedAnswers { scores, grades } = answers;
        crate::input::check_lengths("grades", grades.len(), "scores", scores.len())?;
        let side = |right: bool| {
            let of_side = scores.iter().zip(grades).filter(move |(_, grade)| (**grade > 0.0) == right);
            of_side.map(|(score, _)| *score).collect::<Vec<_>>()
        };
        let (right, wrong) = (side(true), side(false));
        check_count(1, right.len().min(wrong.len()))?;
        let (Some(right), Some(wrong)) =
            (right.into_iter().collect::<Option<Vec<_>>>(), wrong.into_iter().collect::<Option<Vec<_>>>())
        else {
            return Ok(None);
        };
        crate::input::check_finite("scores", &right)?;
        crate::input::check_finite("scores", &wrong)?;
        let highest = |scores: &[f64]| scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let lowest = right.iter().copied().fold(f64::INFINITY, f64::min);
        Ok(Some(Self { inner: highest(&right) - lowest, outer: lowest - highest(&wrong) }))
    }
}
