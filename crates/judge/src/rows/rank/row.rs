//! A row of the output.

use judge_core::{
    Fields, ItemResult, Judge, JudgeError, Reason, Score, Unscored, Verdict,
    combine::{Compared, Pairing, Tournament},
    verdict::{Part, likelier},
};
use judge_data::{Carry, Error, Fate, Human, Judged, Numbered, OutputRow, PairVerdict, Record};
use judge_metrics::Interval;
use judge_metrics::comparison::ComparedAnswers;
use judge_metrics::preference::Preference;
use judge_metrics::ranking::BradleyTerry;
use serde::{Deserialize, Serialize};

/// Strengths with a normal prior of precision 1, so that an answer that always wins has a finite one.
const MODEL: BradleyTerry = BradleyTerry { ties: judge_metrics::ranking::TieModel::HalfWin, prior_precision: 1.0 };
const LEVEL: f64 = 0.95;

/// What is said of the answers to a question: why there is no best one, or which it is.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Ranked {
    #[serde(skip_serializing_if = "Option::is_none")]
    unscored: Option<Unscored>,
    #[serde(skip_serializing_if = "Option::is_none")]
    best: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ranking: Vec<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scores: Vec<Option<f64>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    intervals: Vec<Option<[f64; 2]>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    margin: Option<Margin>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    comparisons: Vec<ComparisonRow>,
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

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ComparisonRow {
    answers: [usize; 2],
    #[serde(skip_serializing_if = "Option::is_none")]
    preference: Option<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    orders: Vec<OrderOfTwo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unscored: Option<Unscored>,
}

/// What was said in one order, about the first of the two answers, which is A.
#[derive(Debug, Serialize, Deserialize)]
struct OrderOfTwo {
    order: String,
    /// Rows of before it was written lack it.
    verdict: Option<PairVerdict>,
    preference: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

#[derive(Debug, Serialize)]
struct UnscoredAnswer {
    answer: usize,
    unscored: Unscored,
}

impl Judged for Ranked {
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
        self.unscored.as_ref()
    }
}

/// The row of answers that were compared two by two.
pub(crate) fn of_comparisons<J: for<'i> Judge<dyn Fields + 'i>, P: Pairing>(
    tournament: &Tournament<J, P>,
    result: ItemResult<Numbered>,
    carry: &Carry,
) -> Result<(OutputRow<Ranked>, Fate), Error> {
    let record = &result.item.record;
    if let Some(unscored) = record.unread().cloned().or_else(|| too_few(record)) {
        return row(result, carry, Ranked::none(unscored));
    }
    let ranked = match tournament.comparisons(&result.item, &result.rounds(0)) {
        Ok(compared) => Ranked::of_comparisons(count(&result)?, compared)?,
        Err(JudgeError::Unscored(unscored)) => Ranked::none(unscored),
        Err(JudgeError::Failed(source)) => return Err(judge_core::Error::Observer { source }.into()),
    };
    row(result, carry, ranked)
}

/// Why there is nothing to compare.
pub(super) fn too_few(record: &Record) -> Option<Unscored> {
    let Record::Answers(answers) = record else { return None };
    let found = answers.responses.len();
    let detail = || format!("expected two answers or more in \"responses\", which are compared, found {found}");
    (found < 2).then(|| Unscored::new(Reason::Missing, detail()))
}

/// The row of answers that were graded, each by itself.
pub(crate) fn of_grades(result: ItemResult<Numbered>, carry: &Carry) -> Result<(OutputRow<Ranked>, Fate), Error> {
    let ranked = match result.verdicts.first() {
        Some(Verdict::Scored(score)) => Ranked::of_grades(score),
        Some(Verdict::Unscored(unscored)) => Ranked::none(unscored.clone()),
        None => return Err(judge_core::Error::NotRead { what: "verdict" }.into()),
    };
    row(result, carry, ranked)
}

fn row(result: ItemResult<Numbered>, carry: &Carry, ranked: Ranked) -> Result<(OutputRow<Ranked>, Fate), Error> {
    let (human, extra) = match result.item.record {
        Record::Answers(record) => (record.grades, record.extra),
        Record::Unread(record) => (Vec::new(), record.extra),
        _ => return Err(not_answers()),
    };
    OutputRow::of(result.id, Human::Grades(human), ranked, extra, carry)
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

impl Ranked {
    fn none(unscored: Unscored) -> Self {
        Self { unscored: Some(unscored), ..Self::default() }
    }

    /// Strengths of the answers of which a comparison has a verdict; the others have none.
    fn of_comparisons(n: usize, compared: Vec<Compared>) -> Result<Self, Error> {
        let known: Vec<_> = compared.iter().filter_map(|c| Some((c.answers, c.verdict.value()?))).collect();
        let scored: Vec<usize> = (0..n).filter(|answer| known.iter().any(|(pair, _)| pair.contains(answer))).collect();
        let unscored_answers = (0..n).filter(|answer| !scored.contains(answer)).map(|answer| {
            let met = compared.iter().find(|c| c.answers.contains(&answer));
            let never = || Unscored::new(Reason::Missing, "it met no other answer: give more --comparisons");
            let unscored = met.and_then(|met| met.verdict.unscored()).cloned().unwrap_or_else(never);
            UnscoredAnswer { answer, unscored }
        });
        let unscored_answers: Vec<UnscoredAnswer> = unscored_answers.collect();
        let first = compared.iter().find_map(|c| c.verdict.unscored()).cloned();
        let comparisons: Vec<ComparisonRow> = compared.into_iter().map(ComparisonRow::new).collect();
        if let (true, Some(unscored)) = (scored.is_empty(), first) {
            return Ok(Self { comparisons, ..Self::none(unscored) });
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
        let best = ranking.first().copied();
        Ok(Self { unscored: None, best, ranking, scores, intervals, margin, comparisons, unscored_answers })
    }

    fn of_grades(score: &Score) -> Self {
        let scores: Vec<Option<f64>> = score.parts.iter().map(|part| part.verdict.value()).collect();
        let parts = score.parts.iter().enumerate();
        let unscored_answers = parts
            .filter_map(|(answer, part)| Some(UnscoredAnswer { answer, unscored: part.verdict.unscored()?.clone() }))
            .collect();
        let ranking = ranked(&scores);
        Self { best: ranking.first().copied(), ranking, scores, unscored_answers, ..Self::default() }
    }
}

/// Without what an iteration leaves in the last digits, so that answers with the same record have the same strength; 0 has no sign.
fn rounded(strength: f64) -> f64 {
    (strength * 1e9).round() / 1e9 + 0.0
}

impl ComparisonRow {
    fn new(Compared { answers, verdict }: Compared) -> Self {
        let parts = verdict.score().map(|score| score.parts.as_slice()).unwrap_or_default();
        let order = |part: &Part| OrderOfTwo {
            order: part.name.clone(),
            verdict: part.verdict.score().map(PairVerdict::of_score),
            preference: part.verdict.value(),
            text: part.verdict.score().and_then(|score| score.text.clone()),
        };
        let orders = parts.iter().map(order).collect();
        Self { answers, preference: verdict.value(), orders, unscored: verdict.unscored().cloned() }
    }

    /// As far as it says how comparisons fit together; `None` of one without a verdict.
    pub(super) fn compared(self) -> Option<ComparedAnswers> {
        let in_order = |name: &str| self.orders.iter().find(|found| found.order == name)?.said();
        let orders = in_order("given").zip(in_order("swapped")).map(|(given, swapped)| [given, swapped]);
        Some(ComparedAnswers { answers: self.answers, preference: self.preference?, orders })
    }
}

impl OrderOfTwo {
    /// The verdict, or where the row has none the answer that the preference is for.
    fn said(&self) -> Option<Preference> {
        let verdict = self.verdict.or_else(|| Some(likelier(self.preference?).into()));
        Some(verdict?.ordering()?.into())
    }
}

/// The places of the answers that have a score, the best first; of equal ones the first.
fn ranked(scores: &[Option<f64>]) -> Vec<usize> {
    // Of zeros of either sign neither is better.
    let mut scored: Vec<(usize, f64)> =
        scores.iter().enumerate().filter_map(|(n, score)| Some((n, (*score)? + 0.0))).collect();
    scored.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    scored.into_iter().map(|(answer, _)| answer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_of_either_sign_are_equal() {
        assert_eq!(ranked(&[Some(-0.0), None, Some(0.0), Some(-1e-300)]), [0, 2, 3]);
        assert!(rounded(-1e-12).is_sign_positive());
    }

    #[test]
    fn the_verdict_of_an_order_counts_and_not_the_side_of_its_preference() {
        let comparison = |orders: &str| {
            let json = format!("{{\"answers\": [0, 1], \"preference\": 0.6, \"orders\": [{orders}]}}");
            serde_json::from_str::<ComparisonRow>(&json).unwrap().compared().unwrap().orders
        };
        let order = |name: &str, verdict: &str| format!("{{\"order\": \"{name}\"{verdict}, \"preference\": 0.6}}");
        let both = |verdict: &str| [order("given", verdict), order("swapped", verdict)].join(", ");
        assert_eq!(comparison(&both(", \"verdict\": \"tie\"")), Some([Preference::Tie; 2]));
        // Rows of before verdicts were written.
        assert_eq!(comparison(&both("")), Some([Preference::First; 2]));
        let rounded = |name: &str| format!("{{\"order\": \"{name}\", \"preference\": 0.49999999999999994}}");
        assert_eq!(comparison(&["given", "swapped"].map(rounded).join(", ")), Some([Preference::Tie; 2]));
        assert_eq!(comparison(&order("given", "")), None);
    }
}
