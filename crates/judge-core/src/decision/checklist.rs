use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{DecisionJudge, DecisionProblem, NoulCriteria, Question, Questions};
use crate::{
    Error, Fields, Judge, JudgeError, Reason, Request, Rounds, Score, Unscored,
    template::TemplateProblem,
    verdict::{CombinedBy, likelier},
};

/// One thing that a response is to do, or not to do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Criterion {
    /// What it goes by in results.
    pub name: String,
    /// The criterion in words: a statement about the response that is true or not.
    pub criterion: String,
    /// What it counts; below 0 for what a response should not do. Not 0.
    pub weight: f64,
    /// Whether the whole score is 0 where this is more likely unmet than met.
    pub fatal: bool,
}

/// Criteria that a response is judged by, each by itself.
///
/// In files it is a list. An entry is a text, or an object `{"criterion": text, "name"?: text, "weight"?: number, "fatal"?: boolean}`;
/// a criterion without a name goes by its number, from 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Vec<Criterion>")]
pub struct Checklist {
    criteria: Vec<Criterion>,
    questions: Questions,
}

/// How the criterion is put as a question.
const ASKED: &str = "Is this true of the response?";

impl Checklist {
    /// A list of these criteria.
    ///
    /// # Errors
    /// [`DecisionProblem::Checklist`] for an empty list or text, a weight that is 0 or not finite, weights whose sum is not finite, and no
    /// weight above 0; [`DecisionProblem::SameName`].
    pub fn new(criteria: Vec<Criterion>) -> Result<Self, DecisionProblem> {
        let wrong = |expected, found: String| Err(DecisionProblem::Checklist { expected, found });
        for Criterion { name, criterion, weight, .. } in &criteria {
            if criterion.trim().is_empty() {
                return wrong("criteria in words", format!("an empty one, {name:?}"));
            }
            if !weight.is_finite() || *weight == 0.0 {
                return wrong("weights that are finite and not 0", format!("{weight} for {name:?}"));
            }
        }
        let sum: f64 = criteria.iter().map(|criterion| criterion.weight.abs()).sum();
        if !sum.is_finite() {
            return wrong("weights with a finite sum", format!("{} that are too large", criteria.len()));
        }
        if !criteria.iter().any(|criterion| criterion.weight > 0.0) {
            return wrong("at least one criterion with a weight above 0", format!("none of {}", criteria.len()));
        }
        let question = |criterion: &Criterion| {
            let instructions = Value::String(format!("{ASKED}\n{}", criterion.criterion));
            let question = Question::Noul { instructions: Some(instructions), criteria: NoulCriteria::default() };
            (criterion.name.clone(), question)
        };
        let questions = Questions::new(criteria.iter().map(question))?;
        Ok(Self { criteria, questions })
    }

    /// A list from JSON.
    ///
    /// # Errors
    /// [`DecisionProblem::Checklist`] for JSON that is none, else as [`new`](Self::new).
    pub fn from_json(json: &Value) -> Result<Self, DecisionProblem> {
        let entries = json.as_array().ok_or_else(|| {
            let expected = "a list of criteria, each a text or an object with the text `criterion`";
            DecisionProblem::Checklist { expected, found: json.to_string() }
        })?;
        Self::new(entries.iter().enumerate().map(|(place, entry)| criterion(entry, place)).collect::<Result<_, _>>()?)
    }

    /// The criteria.
    #[must_use]
    pub fn criteria(&self) -> &[Criterion] {
        &self.criteria
    }
}

/// The criterion of an entry, the `place`-th from 0.
fn criterion(entry: &Value, place: usize) -> Result<Criterion, DecisionProblem> {
    let name = (place + 1).to_string();
    let fields = match entry {
        Value::String(text) => {
            return Ok(Criterion { name, criterion: text.clone(), weight: 1.0, fatal: false });
        }
        Value::Object(fields) => fields,
        found => {
            let expected = "each criterion to be a text or an object with the text `criterion`";
            return Err(DecisionProblem::Checklist { expected, found: found.to_string() });
        }
    };
    let mut found = Criterion { name, criterion: String::new(), weight: 1.0, fatal: false };
    for (key, value) in fields {
        let wrong = |expected| {
            Err(DecisionProblem::Checklist {
                expected,
                found: format!("{value} for `{key}` of criterion {}", place + 1),
            })
        };
        match (key.as_str(), value) {
            ("criterion", Value::String(text)) => found.criterion.clone_from(text),
            ("name", Value::String(name)) => found.name.clone_from(name),
            ("weight", Value::Number(number)) => found.weight = number.as_f64().unwrap_or(f64::NAN),
            ("fatal", Value::Bool(fatal)) => found.fatal = *fatal,
            // A table's list has all fields of each, null where an entry has none.
            ("criterion" | "name" | "weight" | "fatal", Value::Null) => {}
            ("criterion" | "name", _) => return wrong("a text"),
            ("weight", _) => return wrong("a number"),
            ("fatal", _) => return wrong("true or false"),
            _ => return wrong("no fields but `criterion`, `name`, `weight` and `fatal`"),
        }
    }
    Ok(found)
}

impl TryFrom<Value> for Checklist {
    type Error = DecisionProblem;

    fn try_from(json: Value) -> Result<Self, DecisionProblem> {
        Self::from_json(&json)
    }
}

impl From<Checklist> for Vec<Criterion> {
    fn from(list: Checklist) -> Self {
        list.criteria
    }
}

/// Judges a response by a list of criteria, each of which the model is asked about by itself.
///
/// The value is `sum of w · P(met) / sum of the weights above 0`, from 0 to 1: what a response is expected to get. Weights below 0, of what
/// it should not do, take away from it, not below 0. It is 0 where a fatal criterion is more likely unmet than met (one with a weight
/// below 0: more likely met). Each criterion's probability is kept, as a part of its name. An item of which one criterion cannot be read
/// has no score. Its label mass is the mean of theirs.
///
/// An item has the fields `instruction` and `response`, and may have `reference` and a list of its own, `checklist` (a list, or JSON of one
/// as a text), which takes the place of the judge's.
#[derive(Clone, Debug)]
pub struct ChecklistJudge {
    judge: DecisionJudge,
    list: Option<Checklist>,
}

impl ChecklistJudge {
    /// A judge that asks as `judge` does; its questions are not asked. `list` is for items without one of their own.
    ///
    /// # Errors
    /// [`Error::Decision`] if `judge` reads by weights that have none for yes-or-no questions.
    pub fn new(judge: DecisionJudge, list: Option<Checklist>) -> Result<Self, Error> {
        judge.check_noul_weights()?;
        Ok(Self { judge, list })
    }

    /// What an item has in the place of a list of its own: a list, JSON of one as a table's cell has it, or what is none.
    pub fn own<Item: Fields + ?Sized>(item: &Item) -> Option<Cow<'_, Value>> {
        item.json("checklist").or_else(|| {
            let text = item.field("checklist")?;
            let list = serde_json::from_str::<Value>(&text).ok().filter(Value::is_array);
            Some(Cow::Owned(list.unwrap_or_else(|| Value::String(text.into_owned()))))
        })
    }

    /// The list that an item is judged by.
    ///
    /// # Errors
    /// [`JudgeError::Unscored`] for an item without a list where the judge has none, or with one that is wrong.
    pub fn list<Item: Fields + ?Sized>(&self, item: &Item) -> Result<Cow<'_, Checklist>, JudgeError> {
        match (Self::own(item), &self.list) {
            (Some(own), _) => Checklist::from_json(&own)
                .map(Cow::Owned)
                .map_err(|problem| JudgeError::Unscored(Unscored::new(Reason::Missing, problem.to_string()))),
            (None, Some(list)) => Ok(Cow::Borrowed(list)),
            (None, None) => {
                let detail = "the item has no `checklist`, and there is none for all items";
                Err(Unscored::new(Reason::Missing, detail).into())
            }
        }
    }
}

/// The state that is asked about.
fn state<Item: Fields + ?Sized>(item: &Item) -> Result<Value, JudgeError> {
    let mut texts = Map::new();
    for (field, name) in [("instruction", "request"), ("reference", "a right answer"), ("response", "response")] {
        match item.field(field) {
            Some(text) => drop(texts.insert(name.to_owned(), text.into_owned().into())),
            None if field == "reference" => {}
            None => {
                let problem = TemplateProblem::MissingField { field: field.to_owned(), available: item.names() };
                return Err(Error::Template { problem }.into());
            }
        }
    }
    Ok(Value::Object(texts))
}

impl<Item: Fields + ?Sized> Judge<Item> for ChecklistJudge {
    fn name(&self) -> &str {
        "checklist"
    }

    fn ask(&self, item: &Item) -> Result<Vec<Request>, JudgeError> {
        self.judge.requests(&state(item)?, &self.list(item)?.questions)
    }

    fn decide(&self, item: &Item, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        let list = self.list(item)?;
        let parts = self.judge.parts(&list.questions, rounds)?;
        let (mut sum, mut most, mut is_vetoed) = (0.0, 0.0, false);
        for (Criterion { weight, fatal, .. }, part) in list.criteria.iter().zip(&parts) {
            let met = match &part.verdict {
                crate::Verdict::Scored(score) => score.value,
                crate::Verdict::Unscored(unscored) => return Err(unscored.clone().into()),
            };
            sum += weight * met;
            most += weight.max(0.0);
            is_vetoed |= *fatal && if *weight > 0.0 { likelier(met).is_lt() } else { likelier(met).is_gt() };
        }
        let value = if is_vetoed { 0.0 } else { (sum / most).clamp(0.0, 1.0) };
        Ok(Score::new(value).combined(CombinedBy::Checklist, parts))
    }

    fn settings(&self) -> Option<Value> {
        let judge = Judge::<super::DecisionItem>::settings(&self.judge)?;
        Some(json!({"judge": "checklist", "asked": judge, "list": self.list}))
    }
}
