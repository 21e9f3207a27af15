//! The rows of prompted judges.

use judge_core::{
    Fields, ItemResult, Judge, JudgeError, Outcome, Request, Rounds, Scale, Score, Unscored, Verdict,
    combine::{OrderPolicy, Swapped},
    scale::ScoreDistribution,
    verdict::CombinedBy,
};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::results::entry::entry;
use crate::{Carry, Error, Fate, Human, Judged, Numbered, OutputRow, PairTable, PairVerdict};

/// One row of a judge of pairs: `{"id", "human"?, "verdict", "preference", "orders", …}`, or `{"id", "human"?, "unscored", "orders", …}`
/// where an order has no verdict.
///
/// All is in the letters of the pair as it is given.
pub type PairRow = OutputRow<JudgedPair>;

/// What a judge says of a pair.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct JudgedPair {
    /// What the judge prefers, or why it does not say.
    pub verdict: Result<PairVerdict, Unscored>,
    /// One entry per order that was asked.
    pub orders: Vec<OrderRow>,
}

/// What a judge said in one order of a pair.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct OrderRow {
    /// `given` or `swapped`.
    pub order: &'static str,
    /// The verdict; `None` where the text has none.
    pub verdict: Option<PairVerdict>,
    /// What the judge wrote, if it wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The probability of each verdict, where it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probabilities: Option<PairProbabilities>,
    /// The share of the model's probability that lay on the verdicts' labels, where it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_mass: Option<f64>,
    /// The probability that people would say the same, where a probe says it ([`Score::confidence`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// The logits of each verdict at each layer, where they were asked for.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub table: Option<PairTable>,
}

/// The probabilities of a pair's verdicts; they sum to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairProbabilities {
    /// The first response is better.
    #[serde(rename = "A")]
    pub first: f64,
    /// The second is better.
    #[serde(rename = "B")]
    pub second: f64,
    /// Neither is; 0 where a judge cannot say so.
    #[serde(default)]
    pub tie: f64,
}

impl PairProbabilities {
    /// Of a distribution over preferences for the first response.
    fn of(distribution: &ScoreDistribution) -> Self {
        let at = |value: f64| {
            let mut points = distribution.scale().values().zip(distribution.probabilities());
            // A judge without such a verdict: 0, where the sum of nothing would be -0.
            points.find(|(point, _)| *point == value).map_or(0.0, |(_, p)| *p)
        };
        Self { first: at(1.0), second: at(0.0), tie: at(0.5) }
    }

    /// The probability that the first response is better, a tie counting half.
    pub fn preference(&self) -> f64 {
        self.first + self.tie / 2.0
    }

    /// The likeliest verdict; a tie unless one is likelier than each other one, by more than rounding: 10⁻¹² of itself.
    pub fn verdict(&self) -> PairVerdict {
        let Self { first, second, tie } = *self;
        let above = |p: f64, other: f64| p - other > 1e-12 * p;
        match () {
            () if above(first, second) && above(first, tie) => PairVerdict::A,
            () if above(second, first) && above(second, tie) => PairVerdict::B,
            () => PairVerdict::Tie,
        }
    }
}

impl PairVerdict {
    /// What a score says that is a preference for the first response: the likeliest verdict where it has probabilities, else the response
    /// that the preference is for.
    pub fn of_score(score: &Score) -> Self {
        match &score.distribution {
            Some(distribution) => PairProbabilities::of(distribution).verdict(),
            None => Self::of_preference(score.value),
        }
    }
}

impl OrderRow {
    fn of(order: &'static str, verdict: &Verdict, text: Option<String>) -> Self {
        let score = verdict.score();
        let probabilities = score.and_then(|score| score.distribution.as_ref()).map(PairProbabilities::of);
        let verdict = score.map(PairVerdict::of_score);
        let label_mass = score.and_then(|score| score.label_mass);
        let confidence = score.and_then(|score| score.confidence);
        Self { order, verdict, text, probabilities, label_mass, confidence, table: None }
    }
}

/// A judge of pairs, asked in one order or in both.
#[derive(Debug)]
pub enum PairOrders<'j, J> {
    /// As the pair is given.
    Given(&'j J),
    /// Both.
    Both(&'j Swapped<&'j J>),
}

impl<J: for<'i> Judge<dyn Fields + 'i>> PairOrders<'_, J> {
    /// The verdict of each order that was asked.
    fn verdicts<Item: Fields>(&self, item: &Item, rounds: &Rounds<'_>) -> Result<Vec<Verdict>, JudgeError> {
        match self {
            Self::Both(judge) => Ok(judge.verdicts(item, rounds)?.into()),
            Self::Given(judge) => Ok(vec![match judge.decide(item as &dyn Fields, rounds) {
                Ok(score) => Verdict::Scored(score),
                Err(JudgeError::Unscored(unscored)) => Verdict::Unscored(unscored),
                Err(failed) => return Err(failed),
            }]),
        }
    }

    /// What the orders of an item say, the given one first. Nothing where the item could not be asked about.
    ///
    /// # Errors
    /// [`Error::Core`] if the result is not this judge's.
    pub fn rows<Item: Fields>(&self, result: &ItemResult<Item>) -> Result<Vec<OrderRow>, Error> {
        let rounds = result.rounds(0);
        let outcomes: Vec<&Outcome> = rounds.outcomes().collect();
        if outcomes.is_empty() {
            return Ok(Vec::new());
        }
        let verdicts = match self.verdicts(&result.item, &rounds) {
            Ok(verdicts) => verdicts,
            Err(JudgeError::Failed(source)) => return Err(judge_core::Error::Observer { source }.into()),
            Err(JudgeError::Unscored(unscored)) => vec![Verdict::Unscored(unscored)],
        };
        let texts = outcomes.chunks(outcomes.len().div_ceil(verdicts.len())).map(written);
        let named = ["given", "swapped"].into_iter().zip(&verdicts).zip(texts);
        Ok(named.map(|((order, verdict), text)| OrderRow::of(order, verdict, text)).collect())
    }
}

/// What was written; several texts, as of two grades, with a blank line between.
fn written(outcomes: &[&Outcome]) -> Option<String> {
    let texts = outcomes.iter().filter_map(|outcome| Some(outcome.reading().ok()?.generated.as_ref()?.text.as_str()));
    let texts: Vec<&str> = texts.collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

impl<Item: Fields, J: for<'i> Judge<dyn Fields + 'i>> Judge<Item> for PairOrders<'_, J> {
    fn name(&self) -> &str {
        match self {
            Self::Given(judge) => Judge::<dyn Fields>::name(*judge),
            Self::Both(judge) => Judge::<Item>::name(*judge),
        }
    }

    fn ask(&self, item: &Item) -> Result<Vec<Request>, JudgeError> {
        match self {
            Self::Given(judge) => judge.ask(item as &dyn Fields),
            Self::Both(judge) => judge.ask(item),
        }
    }

    fn follow_up(&self, item: &Item, rounds: &Rounds<'_>) -> Result<Vec<Request>, JudgeError> {
        match self {
            Self::Given(judge) => judge.follow_up(item as &dyn Fields, rounds),
            Self::Both(judge) => judge.follow_up(item, rounds),
        }
    }

    fn decide(&self, item: &Item, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        match self {
            Self::Given(judge) => judge.decide(item as &dyn Fields, rounds),
            Self::Both(judge) => judge.decide(item, rounds),
        }
    }

    fn settings(&self) -> Option<Value> {
        match self {
            Self::Given(judge) => Judge::<dyn Fields>::settings(*judge),
            Self::Both(judge) => Judge::<Item>::settings(*judge),
        }
    }
}

/// What the verdicts of the orders of a pair amount to: what all say, or [`PairVerdict::Inconsistent`]; `None` if one says nothing.
pub fn joined(orders: &[OrderRow]) -> Option<PairVerdict> {
    let (first, rest) = orders.split_first()?;
    let verdict = first.verdict?;
    rest.iter().try_fold(verdict, |joined, order| {
        let agreed = order.verdict? == joined;
        Some(if agreed { joined } else { PairVerdict::Inconsistent })
    })
}

/// The verdict of both orders together, of a judge that averages log-odds ([`OrderPolicy::LogOdds`]) where it has probabilities.
fn pooled(verdict: &Verdict) -> Option<PairVerdict> {
    let score = verdict.score().filter(|score| score.combined_by == Some(CombinedBy::Orders(OrderPolicy::LogOdds)))?;
    Some(PairProbabilities::of(score.distribution.as_ref()?).verdict())
}

impl PairRow {
    /// The row of a result. Its verdict is what the orders agree on, or under [`OrderPolicy::LogOdds`] what their averaged log-odds say.
    /// With `scale`, each order also has the logits of the labels of this scale at each layer: of a judge that reads them, its values being
    /// preferences for the response that is shown first, as those of [`PromptFamily`](judge_core::prompted::PromptFamily) are.
    ///
    /// # Errors
    /// [`Error::FieldClash`] for a carried field that the row has one of its own for; [`Error::Core`] if the result is not this judge's.
    pub fn new<J: for<'i> Judge<dyn Fields + 'i>>(
        judge: &PairOrders<'_, J>,
        result: ItemResult<Numbered>,
        scale: Option<&Scale>,
        carry: &Carry,
    ) -> Result<(Self, Fate), Error> {
        let mut orders = judge.rows(&result)?;
        if let Some(scale) = scale {
            for (order, outcome) in orders.iter_mut().zip(result.rounds(0).outcomes()) {
                order.table = PairTable::of(outcome, scale, order.order == "swapped");
            }
        }
        let verdict = result.verdicts.first();
        let verdict = match (verdict.and_then(pooled).or_else(|| joined(&orders)), verdict.and_then(Verdict::unscored))
        {
            (Some(verdict), _) => Ok(verdict),
            (None, Some(unscored)) => Err(unscored.clone()),
            (None, None) => return Err(judge_core::Error::NotRead { what: "verdict of a pair that was read" }.into()),
        };
        let human = Human::Preferences(result.item.record.raters().into_owned());
        Self::of(result.id, human, JudgedPair { verdict, orders }, result.item.record.into_extra(), carry)
    }
}

impl JudgedPair {
    /// The probability that the first response is better, a tie counting half, as the mean of the orders; `None` without probabilities.
    pub fn preference(&self) -> Option<f64> {
        let known = self.orders.iter().map(|order| Some(order.probabilities?.preference()));
        let known = known.collect::<Option<Vec<f64>>>().filter(|known| !known.is_empty())?;
        Some(known.iter().sum::<f64>() / known.len() as f64)
    }
}

impl Judged for JudgedPair {
    const KNOWN: &'static [&'static str] = &["id", "human", "verdict", "preference", "orders", "unscored"];

    fn unscored(&self) -> Option<&Unscored> {
        self.verdict.as_ref().err()
    }
}

impl Serialize for JudgedPair {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match &self.verdict {
            Ok(verdict) => {
                map.serialize_entry("verdict", verdict)?;
                map.serialize_entry("preference", &self.preference())?;
            }
            Err(unscored) => map.serialize_entry("unscored", unscored)?,
        }
        map.serialize_entry("orders", &self.orders)?;
        map.end()
    }
}

/// One row of a judge of single responses: `{"id", "human"?, "score", "text"?, "probabilities"?, "labels"?, "label_mass"?, "confidence"?, …}`, or
/// `{"id", "human"?, "unscored", "text"?, …}`.
pub type SingleRow = OutputRow<JudgedResponse>;

/// What a judge says of a response.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct JudgedResponse {
    /// What the judge gave it, or why it did not.
    pub verdict: Verdict,
    /// What the judge wrote, if it wrote.
    pub text: Option<String>,
}

impl SingleRow {
    /// The row of a result.
    ///
    /// # Errors
    /// [`Error::FieldClash`] for a carried field that the row has one of its own for.
    pub fn new(result: ItemResult<Numbered>, carry: &Carry) -> Result<(Self, Fate), Error> {
        let judged = JudgedResponse::of(&result)?;
        let human = Human::Numbers(result.item.record.raters().into_owned());
        Self::of(result.id, human, judged, result.item.record.into_extra(), carry)
    }
}

impl JudgedResponse {
    /// Of a result of one judge.
    pub(crate) fn of(result: &ItemResult<Numbered>) -> Result<Self, Error> {
        let text = written(&result.rounds(0).outcomes().collect::<Vec<_>>());
        let verdict = result.verdicts.first().cloned();
        let verdict = verdict.ok_or(judge_core::Error::NotRead { what: "verdict" })?;
        Ok(Self { verdict, text })
    }

    /// The fields of a grade, or of why there is none, and what was written.
    pub(crate) fn entries<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        match &self.verdict {
            Verdict::Scored(score) => {
                map.serialize_entry("score", &score.value)?;
                if let Some(distribution) = &score.distribution {
                    map.serialize_entry("labels", &distribution.scale().labels().collect::<Vec<_>>())?;
                    map.serialize_entry("probabilities", distribution.probabilities())?;
                }
                entry(map, "label_mass", score.label_mass)?;
                entry(map, "confidence", score.confidence)?;
            }
            Verdict::Unscored(unscored) => map.serialize_entry("unscored", unscored)?,
        }
        entry(map, "text", self.text.as_ref())
    }
}

impl Judged for JudgedResponse {
    const KNOWN: &'static [&'static str] =
        &["id", "human", "score", "text", "probabilities", "labels", "label_mass", "confidence", "unscored"];

    fn unscored(&self) -> Option<&Unscored> {
        self.verdict.unscored()
    }
}

impl Serialize for JudgedResponse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.entries(&mut map)?;
        map.end()
    }
}
