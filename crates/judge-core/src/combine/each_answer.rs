use serde_json::{Value, json};

use super::members;
use super::renamed::Views;
use super::tournament::{answer, answers};
use crate::{
    Fields, Judge, JudgeError, Reason, Request, Rounds, Score, Unscored, Verdict,
    verdict::{CombinedBy, Part},
};

/// Ranks the answers of an item by grading each by itself: best of n with a judge of single responses, or with a reward model.
///
/// The answers are the item's fields `response_1`, `response_2` and so on, as for a [`Tournament`](crate::combine::Tournament); the judge
/// sees one at a time as `response`. The value is the best grade; [`Score::parts`] has the grade of each answer, named `response_1` and so
/// on. An answer without a grade loses to none and beats none; an item of which no answer has one is unscored.
#[derive(Clone, Debug)]
pub struct EachAnswer<J> {
    judge: J,
}

impl<J> EachAnswer<J> {
    /// Each answer is graded by `judge`.
    pub fn new(judge: J) -> Self {
        Self { judge }
    }

    fn answers<'p, Item: Fields + ?Sized>(&'p self, item: &'p Item) -> Result<Views<'p, J, Item, 1>, JudgeError> {
        let fields: Vec<_> = (0..answers(item)).map(|number| [("response", answer(number))]).collect();
        if fields.is_empty() {
            return Err(Unscored::new(Reason::Missing, "the item has no field response_1").into());
        }
        Ok(Views { judge: &self.judge, item, fields, finish: |_, _, score| Ok(score) })
    }
}

impl<J: for<'i> Judge<dyn Fields + 'i>> EachAnswer<J> {
    /// The name of the judge inside.
    pub fn name(&self) -> &str {
        <J as Judge<dyn Fields>>::name(&self.judge)
    }
}

impl<J: for<'i> Judge<dyn Fields + 'i>, Item: Fields + ?Sized> Judge<Item> for EachAnswer<J> {
    fn name(&self) -> &str {
        self.name()
    }

    fn ask(&self, item: &Item) -> Result<Vec<Request>, JudgeError> {
        members::ask(&self.answers(item)?, &Rounds::default())
    }

    fn follow_up(&self, item: &Item, rounds: &Rounds<'_>) -> Result<Vec<Request>, JudgeError> {
        members::ask(&self.answers(item)?, rounds)
    }

    fn decide(&self, item: &Item, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        let verdicts = members::decide(&self.answers(item)?, rounds)?;
        let best = verdicts.iter().filter_map(Verdict::value).max_by(f64::total_cmp);
        let parts = verdicts.into_iter().enumerate();
        let parts: Vec<Part> = parts.map(|(number, verdict)| Part { name: answer(number), verdict }).collect();
        match (best, parts.iter().find_map(|part| part.verdict.unscored())) {
            (Some(best), _) => Ok(Score::new(best).combined(CombinedBy::Grades, parts)),
            (None, Some(unscored)) => Err(unscored.clone().into()),
            (None, None) => Err(Unscored::new(Reason::Missing, "no answer was graded").into()),
        }
    }

    fn settings(&self) -> Option<Value> {
        Some(json!({"judge": "each_answer", "member": <J as Judge<dyn Fields>>::settings(&self.judge)?}))
    }
}
