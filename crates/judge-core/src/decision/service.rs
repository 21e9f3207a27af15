//! Decisions by a service: what is sent, and what comes back.

mod openai;
mod said;
mod system_one;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use self::said::{Said, unread};
use super::{Decidable, Question, Questions, answer::of_parts, exact_json, item::questions_of};
use crate::{
    Error, Judge, JudgeError, Outcome, Prompt, Request, Rounds, Score, Unscored, Verdict, Want, request::Generation,
    verdict::Part,
};

/// In which of the two forms a service takes decisions. In files it is `system_one` or `open_ai`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionRoute {
    /// Questions by name, at `/v1/systemone`: transformers, and services of decision models.
    #[default]
    SystemOne,
    /// A list of questions, at `/v1/decisions`: OpenAI's form.
    OpenAi,
}

impl DecisionRoute {
    /// Where it lies below the base of an API, which as a rule ends in `/v1`.
    #[must_use]
    pub fn path(self) -> &'static str {
        match self {
            Self::SystemOne => "/systemone",
            Self::OpenAi => "/decisions",
        }
    }

    /// How many questions a request may have.
    #[must_use]
    pub fn most_questions(self) -> usize {
        match self {
            Self::SystemOne => 64,
            Self::OpenAi => 400,
        }
    }

    /// A question in this form; an error for what it has no place for.
    fn question(self, name: &str, question: &Question) -> Result<Value, Unscored> {
        match self {
            Self::SystemOne => Ok(question.clone().into()),
            Self::OpenAi => openai::question(name, question),
        }
    }

    /// The body of a request but for the model's name.
    fn body(self, state: &Value, questions: Vec<(&str, Value)>) -> Value {
        match self {
            Self::SystemOne => {
                let named: Map<String, Value> =
                    questions.into_iter().map(|(name, question)| (name.to_owned(), question)).collect();
                json!({"state": system_one::state(state), "questions": named})
            }
            Self::OpenAi => {
                let listed: Vec<Value> = questions.into_iter().map(|(_, question)| question).collect();
                json!({"input": openai::input(state), "questions": listed})
            }
        }
    }

    /// The probabilities of a question's options in an answer, in their order, and what the service says of their share. `place` is that
    /// of the question among the `count` of its request.
    fn answer(
        self,
        answered: &Value,
        name: &str,
        (place, count): (usize, usize),
        question: &Question,
    ) -> Result<Said, Unscored> {
        match self {
            Self::SystemOne => system_one::answer(answered, name, question),
            Self::OpenAi => openai::answer(answered, name, (place, count), question),
        }
    }
}

/// Puts typed questions to a service that answers decisions. Its scores are those of a [`DecisionJudge`](super::DecisionJudge).
///
/// The model is one whose raw prompts are bodies of such requests: `judge_models::ApiModel` with this route. An item is one request, and
/// more where it has more questions than a request may have. What a form has no place for is not sent, and that question is unscored
/// alone: OpenAI's form knows no `criteria` of a yes-or-no question, and needs instructions.
///
/// Probabilities are the service's own, divided by their sum. A sum further than 0.02 from 1 is no answer. Of an answer without
/// probabilities nothing is made.
#[derive(Clone, Debug)]
pub struct DecisionServiceJudge {
    route: DecisionRoute,
    questions: Option<Questions>,
}

impl DecisionServiceJudge {
    /// A judge; `questions` are for items that have none of their own.
    #[must_use]
    pub fn new(route: DecisionRoute, questions: Option<Questions>) -> Self {
        Self { route, questions }
    }

    /// The questions that are put about an item: its own, or those of the judge.
    ///
    /// # Errors
    /// [`JudgeError::Unscored`] for an item without questions where the judge has none.
    pub fn questions<'a, Item: Decidable + ?Sized>(&'a self, item: &'a Item) -> Result<&'a Questions, JudgeError> {
        questions_of(item, self.questions.as_ref())
    }

    /// Each question with what is sent of it.
    fn put<'q>(&self, questions: &'q Questions) -> Vec<(&'q str, &'q Question, Result<Value, Unscored>)> {
        questions.iter().map(|(name, question)| (name, question, self.route.question(name, question))).collect()
    }
}

impl<Item: Decidable + ?Sized> Judge<Item> for DecisionServiceJudge {
    fn name(&self) -> &str {
        "decision"
    }

    fn ask(&self, item: &Item) -> Result<Vec<Request>, JudgeError> {
        let put = self.put(self.questions(item)?);
        let sent: Vec<(&str, Value)> = put.into_iter().filter_map(|(name, _, sent)| Some((name, sent.ok()?))).collect();
        let request = |sent: &[(&str, Value)]| {
            let prompt = Prompt::Raw(exact_json::to_text(&self.route.body(item.state(), sent.to_vec())));
            Request { prompt, want: Want { generate: Some(Generation::default()), ..Want::default() } }
        };
        Ok(sent.chunks(self.route.most_questions()).map(request).collect())
    }

    fn decide(&self, item: &Item, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        let answers: Vec<Result<Value, Unscored>> = rounds.outcomes().map(read).collect();
        let put = self.put(self.questions(item)?);
        let (most, all) = (self.route.most_questions(), put.iter().filter(|(_, _, sent)| sent.is_ok()).count());
        let mut sent = 0;
        let mut parts = Vec::new();
        for (name, question, put) in put {
            let verdict = match put {
                Err(unscored) => Verdict::Unscored(unscored),
                Ok(_) => {
                    let (request, place) = (sent / most, sent % most);
                    let count = most.min(all - request * most);
                    sent += 1;
                    let answered = answers.get(request).ok_or(Error::NotRead { what: "outcome for every request" })?;
                    let said = |answered: Value| self.route.answer(&answered, name, (place, count), question);
                    match answered.clone().and_then(said) {
                        Err(unscored) => Verdict::Unscored(unscored),
                        Ok(said) => scored(question, &said)?,
                    }
                }
            };
            parts.push(Part { name: name.to_owned(), verdict });
        }
        of_parts(parts)
    }

    fn settings(&self) -> Option<Value> {
        Some(json!({"judge": "decision_service", "route": self.route, "questions": self.questions}))
    }
}

/// The JSON of a service's reply.
fn read(outcome: &Outcome) -> Result<Value, Unscored> {
    let reading = outcome.reading()?;
    let text = reading.generated.as_ref().map_or("", |generated| generated.text.as_str());
    serde_json::from_str(text).map_err(|error| unread(format!("the answer is not JSON: {error}")))
}

/// How far from 1 the sum of probabilities may lie, which services round.
const ROUNDING: f64 = 0.02;

fn scored(question: &Question, said: &Said) -> Result<Verdict, Error> {
    let found = &said.probabilities;
    let wrong = |expected: &str| Ok(Verdict::Unscored(unread(format!("expected {expected}, found {found:?}"))));
    if !found.iter().all(|p| (0.0..=1.0).contains(p)) {
        return wrong("probabilities from 0 to 1");
    }
    if (found.iter().sum::<f64>() - 1.0).abs() > ROUNDING {
        return wrong("probabilities that add up to 1");
    }
    Ok(Verdict::Scored(Score { label_mass: said.label_mass, ..question.score(found)? }))
}

#[cfg(test)]
mod tests;
