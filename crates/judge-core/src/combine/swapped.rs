use std::cmp::Ordering;

use serde_json::{Value, json};

use super::members::{self, log_pool, mixture};
use super::renamed::{RESPONSES, Views, preference};
use crate::{
    Error, Fields, Judge, JudgeError, Request, Rounds, Score, Verdict,
    combine::OrderPolicy,
    scale::ScoreDistribution,
    verdict::{Calibration, CombinedBy, Part, likelier},
};

/// A judge of pairs asked in both orders: of the item as it is, and with the fields `response_a` and `response_b` exchanged.
///
/// The judge's value is its preference for the response that it is shown first, from 0 to 1 with ties at one half. Both
/// orders are kept in [`Score::parts`], named `given` and `swapped`, the latter turned round with its own parts and what a calibrator made
/// of it, so that both speak of the given order; [`Score::orders`] has them as orderings, which `judge_metrics::preference` takes.
/// Exchanging the responses exchanges the parts and turns a value `p` into `1 - p`, but for [`OrderPolicy::Given`], whose value is that of
/// the order in which the responses are then given.
#[derive(Clone, Debug)]
pub struct Swapped<J> {
    judge: J,
    policy: OrderPolicy,
}

impl<J> Swapped<J> {
    /// The judge in both orders, which both must give a score.
    pub fn new(judge: J, policy: OrderPolicy) -> Self {
        Self { judge, policy }
    }

    /// The verdict of each order, the given one first, both in terms of the given order, also where one of them has no score.
    ///
    /// # Errors
    /// [`JudgeError::Failed`] if the judge fails or the outcomes are not those of its requests.
    pub fn verdicts<Item: Fields + ?Sized>(&self, item: &Item, rounds: &Rounds<'_>) -> Result<[Verdict; 2], JudgeError>
    where
        J: for<'i> Judge<dyn Fields + 'i>,
    {
        let verdicts = members::decide(&self.orders(item), rounds)?;
        let shape = |found: Vec<Verdict>| Error::shape("orders of a pair", 2, found.len());
        Ok(verdicts.try_into().map_err(shape)?)
    }

    /// The item as it is, and the item with its responses exchanged.
    fn orders<'p, Item: ?Sized>(&'p self, item: &'p Item) -> Views<'p, J, Item, 2> {
        let [a, b] = RESPONSES;
        let fields = [[a, b], [b, a]].map(|[first, second]| [(a, first.to_owned()), (b, second.to_owned())]).into();
        let finish =
            |judge: &str, order: usize, score: Score| preference(judge, if order == 0 { score } else { turned(score) });
        Views { judge: &self.judge, item, fields, finish }
    }
}

impl Score {
    /// Which response each order of a [`Swapped`] judge chose, first the given order, then the other one, both in terms of the given order:
    /// [`Greater`](Ordering::Greater) for the first response, [`Less`](Ordering::Less) for the second, [`Equal`](Ordering::Equal) for
    /// neither, as [`likelier`] tells. `None` if the score is of something else.
    pub fn orders(&self) -> Option<[Ordering; 2]> {
        let [given, swapped] = &self.parts[..] else { return None };
        let two_orders = matches!(self.combined_by, Some(CombinedBy::Orders(_)));
        let chosen = |part: &Part| part.verdict.value().map(likelier);
        if two_orders { Some([chosen(given)?, chosen(swapped)?]) } else { None }
    }
}

/// A preference for the response shown first as one for the response shown second, with all that it carries.
fn turned(score: Score) -> Score {
    let distribution = score.distribution.as_ref().and_then(|distribution| {
        let values: Vec<f64> = distribution.scale().values().collect();
        let symmetric = values.iter().zip(values.iter().rev()).all(|(a, b)| (a + b - 1.0).abs() < 1e-12);
        let reversed: Vec<f64> = distribution.probabilities().iter().rev().copied().collect();
        symmetric.then(|| ScoreDistribution::from_weights(distribution.scale(), &reversed).ok())?
    });
    let calibrated = score.calibrated.map(|Calibration { value, low, high, level }| Calibration {
        value: 1.0 - value,
        low: 1.0 - high,
        high: 1.0 - low,
        level,
    });
    let parts = turned_parts(score.combined_by.as_ref(), score.parts);
    Score { value: 1.0 - score.value, before_activation: None, distribution, calibrated, parts, ..score }
}

/// The parts of a score that is turned.
fn turned_parts(combined_by: Option<&CombinedBy>, parts: Vec<Part>) -> Vec<Part> {
    let turn = |part: Part| {
        let verdict = match part.verdict {
            Verdict::Scored(score) => Verdict::Scored(turned(score)),
            unscored @ Verdict::Unscored(_) => unscored,
        };
        Part { verdict, ..part }
    };
    // What is of the one response, or of the one order, is of the other.
    let exchange = |parts: Vec<Part>| -> Vec<Part> {
        let names: Vec<String> = parts.iter().map(|part| part.name.clone()).collect();
        names.into_iter().zip(parts.into_iter().rev()).map(|(name, part)| Part { name, ..part }).collect()
    };
    match combined_by {
        Some(CombinedBy::Panel(_) | CombinedBy::Samples(_)) => parts.into_iter().map(turn).collect(),
        Some(CombinedBy::Orders(_)) => exchange(parts.into_iter().map(turn).collect()),
        Some(CombinedBy::Grades) if parts.iter().all(|part| RESPONSES.contains(&part.name.as_str())) => exchange(parts),
        // Neither preferences nor of one response each.
        _ => parts,
    }
}

impl<J: for<'i> Judge<dyn Fields + 'i>> Swapped<J> {
    /// The name of the judge inside.
    pub fn name(&self) -> &str {
        <J as Judge<dyn Fields>>::name(&self.judge)
    }
}

impl<Item: Fields + ?Sized, J: for<'i> Judge<dyn Fields + 'i>> Judge<Item> for Swapped<J> {
    fn name(&self) -> &str {
        self.name()
    }

    fn ask(&self, item: &Item) -> Result<Vec<Request>, JudgeError> {
        members::ask(&self.orders(item), &Rounds::default())
    }

    fn follow_up(&self, item: &Item, rounds: &Rounds<'_>) -> Result<Vec<Request>, JudgeError> {
        members::ask(&self.orders(item), rounds)
    }

    fn decide(&self, item: &Item, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        let verdicts = self.verdicts(item, rounds)?;
        let [given, swapped] = match &verdicts {
            [Verdict::Scored(given), Verdict::Scored(swapped)] => [given.value, swapped.value],
            [Verdict::Unscored(unscored), _] | [_, Verdict::Unscored(unscored)] => return Err(unscored.clone().into()),
        };
        let names = ["given", "swapped"].map(str::to_owned);
        let parts: Vec<Part> = names.into_iter().zip(verdicts).map(|(name, verdict)| Part { name, verdict }).collect();
        let mean = (given + swapped) / 2.0;
        let (value, distribution) = match self.policy {
            OrderPolicy::Average => (mean, mixture(&parts, &[1.0, 1.0])),
            OrderPolicy::LogOdds => {
                let pool = log_pool(&parts);
                (pool.as_ref().map_or(mean, ScoreDistribution::expected), pool)
            }
            OrderPolicy::TieUnlessAgreed if likelier(given) == likelier(swapped) => {
                (mean, mixture(&parts, &[1.0, 1.0]))
            }
            OrderPolicy::TieUnlessAgreed => (0.5, None),
            OrderPolicy::Given => (given, mixture(&parts[..1], &[1.0])),
        };
        Ok(Score { distribution, ..Score::new(value) }.combined(CombinedBy::Orders(self.policy), parts))
    }

    fn settings(&self) -> Option<Value> {
        let member = <J as Judge<dyn Fields>>::settings(&self.judge)?;
        Some(json!({"judge": "swapped", "member": member, "policy": self.policy}))
    }
}
