//! A row of the output.

use judge_core::{
    Fields, ItemResult, Judge, JudgeError, Score, Unscored, Verdict,
    combine::{Compared, Pairing, Tournament},
    verdict::Part,
};
use judge_data::{Carry, Error, Fate, Human, Judged, Numbered, OutputRow, Record};
use judge_metrics::Interval;
use judge_metrics::ranking::BradleyTerry;
use serde::Serialize;

/// Strengths with a normal prior of precision 1, so that an answer that always wins has a finite one.
const MODEL: BradleyTerry = BradleyTerry { ties: judge_metrics::ranking::TieModel::HalfWin, prior_precision: 1.0 };
const LEVEL: f64 = 0.95;

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum RankOutcome {
    Unscored {
        unscored: Unscored,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        comparisons: Vec<ComparisonRow>,
    },
    Ranked(Ranked),
}

#[derive(Debug, Serialize)]
pub(crate) struct Ranked {
    best: usize,
    ranking: Vec<usize>,
    scores: Vec<Option<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    intervals: Option<Vec<Option<[f64; 2]>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    margin: Option<Margin>,
    #[serde(skip_serializing_if = "Option::is_none")]
    comparisons: Option<Vec<ComparisonRow>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unscored_answers: Vec<UnscoredAnswer>,
}

/// The strength of the best answer less that of the second.
#[derive(Debug, Serialize)]
struct Margin {
    estimate: f64,
    low: f64,
    high: f64,
}

#[derive(Debug, Serialize)]
pub(crate) struct ComparisonRow {
    answers: [usize; 2],
    #[serde(skip_serializing_if = "Option::is_none")]
    preference: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    orders: Vec<OrderOfTwo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unscored: Option<Unscored>,
}

/// What was said in one order, about the first of the two answers.
#[derive(Debug, Serialize)]
struct OrderOfTwo {
    order: String,
    preference: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

#[derive(Debug, Serialize)]
struct UnscoredAnswer {
    answer: usize,
    unscored: Unscored,
}

impl Judged for RankOutcome {
    const KNOWN: &'static [&'static str] = &[
        "id",
        "human",
        "best",
        "ranking",
        "scores",
        "intervals",
        "margin",
        "comparisons",
        "unscored_answers",
        "unscored",
    ];

    fn unscored(&self) -> Option<&Unscored> {
        match self {
            Self::Unscored { unscored, .. } => Some(unscored),
            Self::Ranked(_) => None,
        }
    }
}

/// The row of answers that were compared two by two.
pub(crate) fn of_comparisons<J: for<'i> Judge<dyn Fields + 'i>, P: Pairing>(
    tournament: &Tournament<J, P>,
    result: ItemResult<Numbered>,
    carry: &Carry,
) -> Result<(OutputRow<RankOutcome>, Fate), Error> {
    if let Some(why) = result.item.record.unread() {
        let outcome = RankOutcome::Unscored { unscored: why.clone(), comparisons: Vec::new() };
        return row(result, carry, outcome);
    }
    let outcome = match tournament.comparisons(&result.item, &result.rounds(0)) {
        Ok(compared) => RankOutcome::of_comparisons(count(&result)?, compared)?,
        Err(JudgeError::Unscored(unscored)) => RankOutcome::Unscored { unscored, comparisons: Vec::new() },
        Err(JudgeError::Failed(source)) => return Err(judge_core::Error::Observer { source }.into()),
    };
    row(result, carry, outcome)
}

/// The row of answers that were graded, each by itself.
pub(crate) fn of_grades(result: ItemResult<Numbered>, carry: &Carry) -> Result<(OutputRow<RankOutcome>, Fate), Error> {
    let outcome = match result.verdicts.first() {
        Some(Verdict::Scored(score)) => RankOutcome::Ranked(Ranked::of_grades(score)),
        Some(Verdict::Unscored(unscored)) => {
            RankOutcome::Unscored { unscored: unscored.clone(), comparisons: Vec::new() }
        }
        None => return Err(judge_core::Error::NotRead { what: "verdict" }.into()),
    };
    row(result, carry, outcome)
}

fn row(
    result: ItemResult<Numbered>,
    carry: &Carry,
    outcome: RankOutcome,
) -> Result<(OutputRow<RankOutcome>, Fate), Error> {
    let (human, extra) = match result.item.record {
        Record::Answers(record) => (record.grades, record.extra),
        Record::Unread(record) => (Vec::new(), record.extra),
        _ => return Err(not_answers()),
    };
    OutputRow::of(result.id, Human::Grades(human), outcome, extra, carry)
}

/// How many answers the item of a result has.
fn count(result: &ItemResult<Numbered>) -> Result<usize, Error> {
    match &result.item.record {
        Record::Answers(record) => Ok(record.responses.len()),
        _ => Err(not_answers()),
    }
}

fn not_answers() -> Error {
    judge_core::Error::NotRead { what: "record with many responses" }.into()
}

impl RankOutcome {
    /// Strengths of the answers of which a comparison has a verdict; the others have none.
    fn of_comparisons(n: usize, compared: Vec<Compared>) -> Result<Self, Error> {
        let known: Vec<_> = compared.iter().filter_map(|c| Some((c.answers, c.verdict.value()?))).collect();
        let scored: Vec<usize> = (0..n).filter(|answer| known.iter().any(|(pair, _)| pair.contains(answer))).collect();
        let unscored_answers = (0..n).filter(|answer| !scored.contains(answer)).filter_map(|answer| {
            let met = compared.iter().find(|c| c.answers.contains(&answer))?;
            Some(UnscoredAnswer { answer, unscored: met.verdict.unscored()?.clone() })
        });
        let unscored_answers: Vec<UnscoredAnswer> = unscored_answers.collect();
        let first = compared.iter().find_map(|c| c.verdict.unscored()).cloned();
        let comparisons: Vec<ComparisonRow> = compared.into_iter().map(ComparisonRow::new).collect();
        if let (true, Some(unscored)) = (scored.is_empty(), first) {
            return Ok(Self::Unscored { unscored, comparisons });
        }

        let place = |answer: usize| scored.binary_search(&answer).unwrap_or_default(); // every one of a verdict is there
        let games: Vec<_> = known.iter().map(|(pair, preference)| (pair.map(place), *preference)).collect();
        let failed = |source| Error::from(judge_core::Error::Observer { source: Box::new(source) });
        let fitted = MODEL.fit_soft(scored.len(), &games).map_err(failed)?;
        let (mut scores, mut intervals) = (vec![None; n], vec![None; n]);
        for (place, &answer) in scored.iter().enumerate() {
            let strength = fitted.strength(&fitted.items()[place]).map_err(failed)?;
            let Interval { low, high, .. } = strength.interval(LEVEL).map_err(failed)?;
            scores[answer] = Some(rounded(fitted.strengths()[place]));
            intervals[answer] = Some([low, high]);
        }
        let ranking = ranked(&scores);
        let margin = match ranking[..] {
            [best, second, ..] => {
                let [best, second] = [best, second].map(|answer| fitted.items()[place(answer)].as_str());
                let difference = fitted.difference(best, second).map_err(failed)?;
                let Interval { low, high, .. } = difference.interval(LEVEL).map_err(failed)?;
                Some(Margin { estimate: difference.estimate, low, high })
            }
            _ => None,
        };
        Ok(Self::Ranked(Ranked {
            best: ranking.first().copied().unwrap_or_default(),
            ranking,
            scores,
            intervals: Some(intervals),
            margin,
            comparisons: Some(comparisons),
            unscored_answers,
        }))
    }
}

/// Without what an iteration leaves in the last digits, so that answers with the same record have the same strength.
fn rounded(strength: f64) -> f64 {
    (strength * 1e9).round() / 1e9
}

impl ComparisonRow {
    fn new(Compared { answers, verdict }: Compared) -> Self {
        let parts = verdict.score().map(|score| score.parts.as_slice()).unwrap_or_default();
        let order = |part: &Part| OrderOfTwo {
            order: part.name.clone(),
            preference: part.verdict.value(),
            text: part.verdict.score().and_then(|score| score.text.clone()),
        };
        let orders = parts.iter().map(order).collect();
        Self { answers, preference: verdict.value(), orders, unscored: verdict.unscored().cloned() }
    }
}

impl Ranked {
    fn of_grades(score: &Score) -> Self {
        let scores: Vec<Option<f64>> = score.parts.iter().map(|part| part.verdict.value()).collect();
        let parts = score.parts.iter().enumerate();
        let unscored_answers = parts
            .filter_map(|(answer, part)| Some(UnscoredAnswer { answer, unscored: part.verdict.unscored()?.clone() }))
            .collect();
        let ranking = ranked(&scores);
        let best = ranking.first().copied().unwrap_or_default();
        Self { best, ranking, scores, intervals: None, margin: None, comparisons: None, unscored_answers }
    }
}

/// The places of the answers that have a score, the best first; of equal ones the first.
fn ranked(scores: &[Option<f64>]) -> Vec<usize> {
    let mut scored: Vec<(usize, f64)> =
        scores.iter().enumerate().filter_map(|(n, score)| Some((n, (*score)?))).collect();
    scored.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    scored.into_iter().map(|(answer, _)| answer).collect()
}
