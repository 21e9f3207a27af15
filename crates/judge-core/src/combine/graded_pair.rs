use serde::Serialize;
use serde_json::{Value, json};

use super::members;
use super::renamed::{RESPONSES, Views};
use crate::{
    Fields, Judge, JudgeError, Request, Rounds, Score, Verdict,
    prompted::PromptFamily,
    scale::ScoreDistribution,
    verdict::{CombinedBy, Part, likelier},
};

/// A judge of pairs made of a judge of single responses: each response is graded by itself, as `response`, and the better grade wins.
///
/// The value is a preference for the first response, from 0 to 1:
/// with distributions the chance that a grade drawn for the first is above one drawn for the
/// second, an equal one counting half (the score's distribution has these two chances);
/// without, 1, 0, or ½ where the grades differ by no more than the margin. No response is seen beside the other, so their order
/// cannot matter. Rewards of a reward model become a preference by [`of_rewards`](Self::of_rewards).
/// Both grades are kept in [`Score::parts`], named `response_a` and `response_b`.
#[derive(Clone, Debug)]
pub struct GradedPair<J> {
    judge: J,
    rule: Rule,
    /// Grades without distributions that differ by no more than this are a tie, by either rule.
    margin: f64,
}

/// How two grades without distributions become a preference.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Rule {
    /// The higher one wins.
    Higher,
    /// Their difference is the log-odds of the preference.
    LogOdds,
}

impl<J> GradedPair<J> {
    /// Equal grades are a tie, others are not.
    pub fn new(judge: J) -> Self {
        Self { judge, rule: Rule::Higher, margin: 0.0 }
    }

    /// Grades are rewards, as Bradley and Terry's model has them: a preference is `1 / (1 + exp(b - a))`, a tie where they are equal.
    pub fn of_rewards(judge: J) -> Self {
        Self { judge, rule: Rule::LogOdds, margin: 0.0 }
    }

    /// Written grades, or rewards, that differ by no more than this are a tie (MT-bench: 0.1). Negative counts as 0. What rounding alone adds
    /// to a margin above 0 does not count. How other grades become a preference stays as it is.
    #[must_use]
    pub fn with_margin(self, margin: f64) -> Self {
        Self { margin: margin.max(0.0), ..self }
    }
}

impl<J> GradedPair<J> {
    fn both<'p, Item: ?Sized>(&'p self, item: &'p Item) -> Views<'p, J, Item, 1> {
        let fields = RESPONSES.map(|name| [("response", name.to_owned())]).into();
        Views { judge: &self.judge, item, fields, finish: |_, _, score| Ok(score) }
    }
}

impl<J: for<'i> Judge<dyn Fields + 'i>> GradedPair<J> {
    /// The name of the judge inside.
    pub fn name(&self) -> &str {
        <J as Judge<dyn Fields>>::name(&self.judge)
    }
}

impl<J: for<'i> Judge<dyn Fields + 'i>, Item: Fields + ?Sized> Judge<Item> for GradedPair<J> {
    fn name(&self) -> &str {
        self.name()
    }

    fn ask(&self, item: &Item) -> Result<Vec<Request>, JudgeError> {
        members::ask(&self.both(item), &Rounds::default())
    }

    fn follow_up(&self, item: &Item, rounds: &Rounds<'_>) -> Result<Vec<Request>, JudgeError> {
        members::ask(&self.both(item), rounds)
    }

    fn decide(&self, item: &Item, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        let verdicts = members::decide(&self.both(item), rounds)?;
        let (a, b) = match &verdicts[..] {
            [Verdict::Scored(a), Verdict::Scored(b)] => (a, b),
            [Verdict::Unscored(unscored), _] | [_, Verdict::Unscored(unscored)] => return Err(unscored.clone().into()),
            _ => return Err(crate::Error::shape("grades of a pair", 2, verdicts.len()).into()),
        };
        let expected = |first: f64| -> Result<Score, JudgeError> {
            let scale = PromptFamily::pair_scale("A", None, "B")?;
            Ok(Score::expected(ScoreDistribution::from_weights(&scale, &[1.0 - first, first])?))
        };
        // As `judge_metrics::preference::Preference::from_scores`.
        let largest = a.value.abs().max(b.value.abs());
        let rounding = if self.margin > 0.0 { 4.0 * f64::EPSILON * largest } else { 0.0 };
        let is_tie = (a.value - b.value).abs() - self.margin <= rounding;
        let score = match (&a.distribution, &b.distribution, self.rule) {
            (Some(a), Some(b), _) => expected(above(a, b))?,
            (_, _, Rule::LogOdds) if is_tie => expected(0.5)?,
            (_, _, Rule::LogOdds) => expected(1.0 / (1.0 + (b.value - a.value).exp()))?,
            (_, _, Rule::Higher) if is_tie => Score::new(0.5),
            (_, _, Rule::Higher) => Score::new(f64::from(u8::from(a.value > b.value))),
        };
        let parts = RESPONSES.map(str::to_owned).into_iter().zip(verdicts);
        let parts = parts.map(|(name, verdict)| Part { name, verdict }).collect();
        Ok(score.combined(CombinedBy::Grades, parts))
    }

    fn settings(&self) -> Option<Value> {
        let Self { judge, rule, margin } = self;
        let member = <J as Judge<dyn Fields>>::settings(judge)?;
        Some(json!({"judge": "graded_pair", "member": member, "rule": rule, "margin": margin}))
    }
}

/// The chance that a draw of `a` is above one of `b`, an equal one counting half: ½ exactly for equal distributions.
fn above(a: &ScoreDistribution, b: &ScoreDistribution) -> f64 {
    let first = f64::midpoint(1.0, wins(a, b) - wins(b, a)).clamp(0.0, 1.0);
    // What rounding alone leaves must not look like a preference, which the other order would contradict.
    if likelier(first).is_eq() { 0.5 } else { first }
}

/// The chance that a draw of `a` is above one of `b`.
fn wins(a: &ScoreDistribution, b: &ScoreDistribution) -> f64 {
    let points = |of: &ScoreDistribution| of.scale().values().zip(of.probabilities().to_vec()).collect::<Vec<_>>();
    let others = points(b);
    let below = |value: f64| others.iter().filter(|(other, _)| *other < value).map(|(_, q)| q).sum::<f64>();
    points(a).into_iter().map(|(value, p)| p * below(value)).sum()
}
