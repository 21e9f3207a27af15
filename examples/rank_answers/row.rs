//! A row of the output.

use judge_core::{
    Compared, Fields, ItemId, ItemResult, Judge, JudgeError, Pairing, Reason, Score, Tournament, Unscored, Verdict,
};
use judge_data::{Carry, Error, Extra, Fate, Numbered, Record};
use judge_metrics::Interval;
use judge_metrics::ranking::BradleyTerry;
use serde::Serialize;

/// Strengths with a normal prior of precision 1, so that an answer that always wins has a finite one.
const MODEL: BradleyTerry = BradleyTerry { ties: judge_metrics::ranking::TieModel::HalfWin, prior_precision: 1.0 };
const LEVEL: f64 = 0.95;

#[derive(Debug, Serialize)]
pub(crate) struct RankedRow {
    id: ItemId,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    human: Vec<Option<f64>>,
    #[serde(flatten)]
    outcome: RankOutcome,
    #[serde(flatten)]
    extra: Extra,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum RankOutcome {
    Unscored { unscored: Unscored },
    Ranked(Ranked),
}

#[derive(Debug, Serialize)]
struct Ranked {
    best: usize,
    ranking: Vec<usize>,
    scores: Vec<Option<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    intervals: Option<Vec<[f64; 2]>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    margin: Option<Margin>,
    #[serde(skip_serializing_if = "Option::is_none")]
    comparisons: Option<Vec<Met>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ungraded: Vec<Ungraded>,
}

/// The strength of the best answer less that of the second.
#[derive(Debug, Serialize)]
struct Margin {
    estimate: f64,
    low: f64,
    high: f64,
}

#[derive(Debug, Serialize)]
struct Met {
    answers: [usize; 2],
    #[serde(skip_serializing_if = "Option::is_none")]
    preference: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unscored: Option<Unscored>,
}

#[derive(Debug, Serialize)]
struct Ungraded {
    answer: usize,
    unscored: Unscored,
}

impl RankedRow {
    /// The fields of a row's own, which no other field may be called.
    pub(crate) const KNOWN: [&'static str; 10] =
        ["id", "human", "best", "ranking", "scores", "intervals", "margin", "comparisons", "ungraded", "unscored"];

    /// Of answers that were compared two by two.
    pub(crate) fn of_comparisons<J: for<'i> Judge<dyn Fields + 'i>, P: Pairing>(
        tournament: &Tournament<J, P>,
        result: ItemResult<Numbered>,
        carry: &Carry,
    ) -> Result<(Self, Fate), Error> {
        let compared = match result.verdicts.first() {
            Some(Verdict::Unscored(unscored)) => Err(unscored.clone()),
            _ => match tournament.comparisons(&result.item, &result.rounds(0)) {
                Ok(compared) => Ok(compared),
                Err(JudgeError::Unscored(unscored)) => Err(unscored),
                Err(JudgeError::Failed(source)) => return Err(judge_core::Error::Observer { source }.into()),
            },
        };
        Self::new(result, carry, |n| compared.and_then(|compared| Ranked::of_comparisons(n, compared)))
    }

    /// Of answers that were graded, each by itself.
    pub(crate) fn of_grades(result: ItemResult<Numbered>, carry: &Carry) -> Result<(Self, Fate), Error> {
        let graded = match result.verdicts.first() {
            Some(Verdict::Scored(score)) => Ok(Ranked::of_grades(score)),
            Some(Verdict::Unscored(unscored)) => Err(unscored.clone()),
            None => return Err(judge_core::Error::NotRead { what: "verdict" }.into()),
        };
        Self::new(result, carry, |_| graded)
    }

    fn new(
        result: ItemResult<Numbered>,
        carry: &Carry,
        ranked: impl FnOnce(usize) -> Result<Ranked, Unscored>,
    ) -> Result<(Self, Fate), Error> {
        let Record::Answers(record) = result.item.record else {
            return Err(judge_core::Error::NotRead { what: "record with many responses" }.into());
        };
        let outcome = match ranked(record.responses.len()) {
            Ok(ranked) => RankOutcome::Ranked(ranked),
            Err(unscored) => RankOutcome::Unscored { unscored },
        };
        let unscored = match &outcome {
            RankOutcome::Unscored { unscored } => Some(unscored.reason),
            RankOutcome::Ranked(_) => None,
        };
        let fate = Fate { unscored, graded: !record.grades.is_empty() };
        let extra = carry.of_row(record.extra, &Self::KNOWN)?;
        Ok((Self { id: result.id, human: record.grades, outcome, extra }, fate))
    }
}

impl Ranked {
    fn of_comparisons(n: usize, compared: Vec<Compared>) -> Result<Self, Unscored> {
        let known: Vec<_> = compared.iter().filter_map(|c| Some((c.answers, c.verdict.value()?))).collect();
        let undefined = |error: judge_metrics::Error| Unscored::new(Reason::NonFinite, error.to_string());
        let fitted = MODEL.fit_soft(n, &known).map_err(undefined)?;
        let scores: Vec<Option<f64>> = fitted.strengths().iter().copied().map(Some).collect();
        let ends = |interval: Interval| [interval.low, interval.high];
        let intervals = (0..n).map(|answer| Ok(ends(fitted.interval(answer, LEVEL)?)));
        let intervals = intervals.collect::<Result<Vec<_>, _>>().map_err(undefined)?;
        let ranking = ranked(&scores);
        let margin = match ranking[..] {
            [best, second, ..] => {
                let Interval { low, high, .. } = fitted.difference_interval(best, second, LEVEL).map_err(undefined)?;
                let estimate = fitted.strengths()[best] - fitted.strengths()[second];
                Some(Margin { estimate, low, high })
            }
            _ => None,
        };
        let met = |Compared { answers, verdict }: Compared| Met {
            answers,
            preference: verdict.value(),
            unscored: verdict.unscored().cloned(),
        };
        Ok(Self {
            best: ranking.first().copied().unwrap_or_default(),
            ranking,
            scores,
            intervals: Some(intervals),
            margin,
            comparisons: Some(compared.into_iter().map(met).collect()),
            ungraded: Vec::new(),
        })
    }

    fn of_grades(score: &Score) -> Self {
        let scores: Vec<Option<f64>> = score.parts.iter().map(|part| part.verdict.value()).collect();
        let parts = score.parts.iter().enumerate();
        let ungraded = parts
            .filter_map(|(answer, part)| Some(Ungraded { answer, unscored: part.verdict.unscored()?.clone() }))
            .collect();
        let ranking = ranked(&scores);
        let best = ranking.first().copied().unwrap_or_default();
        Self { best, ranking, scores, intervals: None, margin: None, comparisons: None, ungraded }
    }
}

/// The places of the answers that have a score, the best first; of equal ones the first.
fn ranked(scores: &[Option<f64>]) -> Vec<usize> {
    let mut scored: Vec<(usize, f64)> =
        scores.iter().enumerate().filter_map(|(n, score)| Some((n, (*score)?))).collect();
    scored.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    scored.into_iter().map(|(answer, _)| answer).collect()
}
