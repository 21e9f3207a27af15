use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{DecisionProblem, QuestionFault, QuestionKind};

/// A typed question. Texts may be JSON objects or lists too, which are put into a prompt as JSON.
///
/// In files it is an object with the field `type`, as the standard has it; see [`QuestionKind::example`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub enum Question {
    /// Yes or no: the answer is the probability of yes.
    Noul {
        /// What is asked.
        instructions: Option<Value>,
        /// When the answer is yes, and when no.
        criteria: NoulCriteria,
    },
    /// One of some named options.
    Choice {
        /// What is asked.
        instructions: Option<Value>,
        /// The options in order, each with its description, which may be null. At least one; none without a name.
        criteria: Map<String, Value>,
    },
    /// One of some ordered levels, counted from 0.
    Score {
        /// What is asked.
        instructions: Option<Value>,
        /// What each level means, the lowest first. At least one.
        criteria: Vec<Value>,
    },
}

/// When the answer to a yes-or-no question is yes, and when no.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NoulCriteria {
    /// When it is yes.
    pub yes: Option<Value>,
    /// When it is no.
    pub no: Option<Value>,
}

impl Question {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> QuestionKind {
        match self {
            Self::Noul { .. } => QuestionKind::Noul,
            Self::Choice { .. } => QuestionKind::Choice,
            Self::Score { .. } => QuestionKind::Score,
        }
    }

    /// A yes-or-no question in words.
    #[must_use]
    pub fn noul(instructions: impl Into<String>) -> Self {
        Self::Noul { instructions: Some(Value::String(instructions.into())), criteria: NoulCriteria::default() }
    }

    /// What is asked.
    #[must_use]
    pub fn instructions(&self) -> Option<&Value> {
        match self {
            Self::Noul { instructions, .. } | Self::Choice { instructions, .. } | Self::Score { instructions, .. } => {
                instructions.as_ref()
            }
        }
    }

    /// The names of the options in the order of probabilities: `true` and `false`, the options of a choice, the numbers of levels.
    #[must_use]
    pub fn options(&self) -> Vec<String> {
        match self {
            Self::Noul { .. } => vec!["true".to_owned(), "false".to_owned()],
            Self::Choice { criteria, .. } => criteria.keys().cloned().collect(),
            Self::Score { criteria, .. } => (0..criteria.len()).map(|level| level.to_string()).collect(),
        }
    }

    /// What each option means, in the order of [`options`](Self::options); null where nothing is said.
    #[must_use]
    pub fn descriptions(&self) -> Vec<Value> {
        match self {
            Self::Noul { criteria: NoulCriteria { yes, no }, .. } => {
                [yes, no].map(|side| side.clone().unwrap_or(Value::Null)).into()
            }
            Self::Choice { criteria, .. } => criteria.values().cloned().collect(),
            Self::Score { criteria, .. } => criteria.clone(),
        }
    }

    /// The share of each option in what people answered, in the order of [`options`](Self::options): of an option's name, a truth value or
    /// a whole number, all of it is on that option; of an object of numbers by option, each has its part of their sum, and null none. A
    /// whole number is one by its value, `2.0` as well as `2` and a text or a name in an object that writes it and is no option's name: the
    /// number of a level, an option of that name, and of yes or no 1 and 0.
    ///
    /// # Errors
    /// [`DecisionProblem::Label`] for what names no option of this question, and for numbers that are no distribution.
    pub fn target(&self, label: &Value) -> Result<Vec<f64>, DecisionProblem> {
        let options = self.options();
        let wrong = || DecisionProblem::Label { found: label.to_string(), options: options.clone() };
        let known = |name: &str| options.iter().position(|option| option == name);
        let of_number = |number: &serde_json::Number| {
            let name = whole(number)?;
            known(match (self, name.as_str()) {
                (Self::Noul { .. }, "1") => "true",
                (Self::Noul { .. }, "0") => "false",
                (_, name) => name,
            })
        };
        let place = |name: &str| {
            let of_text = || of_number(&number_in(name)?);
            known(name).or_else(of_text).ok_or_else(wrong)
        };
        let mut shares = vec![0.0; options.len()];
        match label {
            Value::String(name) => shares[place(name)?] = 1.0,
            Value::Bool(is) => shares[place(if *is { "true" } else { "false" })?] = 1.0,
            Value::Number(number) => shares[of_number(number).ok_or_else(wrong)?] = 1.0,
            Value::Object(given) => {
                for (name, share) in given.iter().filter(|(_, share)| !share.is_null()) {
                    let share = share.as_f64().filter(|share| share.is_finite() && *share >= 0.0).ok_or_else(wrong)?;
                    shares[place(name)?] += share;
                }
                let sum: f64 = shares.iter().sum();
                if sum <= 0.0 || !sum.is_finite() {
                    return Err(wrong());
                }
                shares.iter_mut().for_each(|share| *share /= sum);
            }
            _ => return Err(wrong()),
        }
        Ok(shares)
    }

    /// What is wrong with one that was not made from JSON: it has no options, which an answer could name.
    fn fault(&self) -> Option<QuestionFault> {
        let (expected, found) = match self {
            Self::Choice { criteria, .. } if criteria.is_empty() => (OPTIONS, Value::Object(Map::new())),
            Self::Score { criteria, .. } if criteria.is_empty() => (LEVELS, Value::Array(Vec::new())),
            _ => return None,
        };
        Some(QuestionFault::Criteria { kind: self.kind(), expected, found: Some(found) })
    }

    /// A question from JSON.
    ///
    /// # Errors
    /// What is wrong with it first.
    pub fn from_json(json: &Value) -> Result<Self, QuestionFault> {
        let Value::Object(fields) = json else { return Err(QuestionFault::NotAnObject { found: json.clone() }) };
        let kind = match fields.get("type") {
            Some(Value::String(name)) => QuestionKind::from_name(name),
            _ => None,
        };
        let Some(kind) = kind else { return Err(QuestionFault::Kind { found: fields.get("type").cloned() }) };
        if let Some(unknown) = fields.keys().find(|name| !["type", "instructions", "criteria"].contains(&&***name)) {
            return Err(QuestionFault::UnknownField { kind, found: unknown.clone() });
        }
        let instructions = text_or_none(kind, "instructions", fields.get("instructions"))?;
        let criteria = fields.get("criteria").filter(|criteria| !criteria.is_null());
        let wrong = |expected| QuestionFault::Criteria { kind, expected, found: criteria.cloned() };
        match kind {
            QuestionKind::Noul => {
                let expected = "an object with `true`, `false`, both or neither";
                let mut sides = NoulCriteria::default();
                match criteria {
                    None => {}
                    Some(Value::Object(given)) => {
                        for (name, text) in given {
                            let side = match name.as_str() {
                                "true" => &mut sides.yes,
                                "false" => &mut sides.no,
                                _ => return Err(wrong(expected)),
                            };
                            *side = text_or_none(kind, "criteria", Some(text))?;
                        }
                    }
                    Some(_) => return Err(wrong(expected)),
                }
                Ok(Self::Noul { instructions, criteria: sides })
            }
            QuestionKind::Choice => match criteria {
                Some(Value::Object(options)) if !options.is_empty() => {
                    if options.contains_key("") {
                        return Err(wrong("options that have a name each"));
                    }
                    for text in options.values() {
                        text_or_none(kind, "criteria", Some(text))?;
                    }
                    Ok(Self::Choice { instructions, criteria: options.clone() })
                }
                _ => Err(wrong(OPTIONS)),
            },
            QuestionKind::Score => match criteria {
                Some(Value::Array(levels)) if !levels.is_empty() => {
                    for level in levels {
                        if text_or_none(kind, "criteria", Some(level))?.is_none() {
                            return Err(wrong("a text for every level"));
                        }
                    }
                    Ok(Self::Score { instructions, criteria: levels.clone() })
                }
                _ => Err(wrong(LEVELS)),
            },
        }
    }
}

/// The criteria of a choice.
const OPTIONS: &str = "an object with at least one option, each with its description or null";
/// Those of a question for a score.
const LEVELS: &str = "a list with a text for each level, the lowest first";

/// The digits of a number that is whole by its value, however it is written.
fn whole(number: &serde_json::Number) -> Option<String> {
    if number.is_f64() {
        number.as_f64().filter(|value| value.fract() == 0.0).map(|value| format!("{}", value + 0.0))
    } else {
        Some(number.to_string())
    }
}

/// The finite number that a text writes.
fn number_in(text: &str) -> Option<serde_json::Number> {
    serde_json::Number::from_f64(text.trim().parse().ok()?)
}

/// A text, an object or a list; null and an absent field are none.
fn text_or_none(
    kind: QuestionKind,
    field: &'static str,
    found: Option<&Value>,
) -> Result<Option<Value>, QuestionFault> {
    match found {
        None | Some(Value::Null) => Ok(None),
        Some(text @ (Value::String(_) | Value::Object(_) | Value::Array(_))) => Ok(Some(text.clone())),
        Some(found) => Err(QuestionFault::Content { kind, field, found: found.clone() }),
    }
}

impl TryFrom<Value> for Question {
    type Error = QuestionFault;

    fn try_from(json: Value) -> Result<Self, QuestionFault> {
        Self::from_json(&json)
    }
}

impl From<Question> for Value {
    fn from(question: Question) -> Self {
        let mut fields = Map::new();
        fields.insert("type".to_owned(), question.kind().as_str().into());
        if let Some(instructions) = question.instructions() {
            fields.insert("instructions".to_owned(), instructions.clone());
        }
        let criteria = match question {
            Question::Noul { criteria: NoulCriteria { yes, no }, .. } => {
                let sides = [("true", yes), ("false", no)].into_iter();
                let given: Map<String, Self> =
                    sides.filter_map(|(name, text)| Some((name.to_owned(), text?))).collect();
                (!given.is_empty()).then_some(Self::Object(given))
            }
            Question::Choice { criteria, .. } => Some(Self::Object(criteria)),
            Question::Score { criteria, .. } => Some(Self::Array(criteria)),
        };
        if let Some(criteria) = criteria {
            fields.insert("criteria".to_owned(), criteria);
        }
        Self::Object(fields)
    }
}

/// Named questions about one state, at least one, in the order in which they were given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub struct Questions {
    all: Vec<(String, Question)>,
}

impl Questions {
    /// Questions by name.
    ///
    /// # Errors
    /// [`DecisionProblem::NoQuestions`] for none, [`DecisionProblem::SameName`] for two of one name, [`DecisionProblem::Questions`] for
    /// those without options.
    pub fn new(all: impl IntoIterator<Item = (String, Question)>) -> Result<Self, DecisionProblem> {
        let all: Vec<(String, Question)> = all.into_iter().collect();
        if all.is_empty() {
            return Err(DecisionProblem::NoQuestions { found: None });
        }
        let mut seen = HashSet::with_capacity(all.len());
        if let Some((name, _)) = all.iter().find(|(name, _)| !seen.insert(name.as_str())) {
            return Err(DecisionProblem::SameName { name: name.clone() });
        }
        let faults = all.iter().filter_map(|(name, question)| Some((name.clone(), question.fault()?)));
        let faults: Vec<(String, QuestionFault)> = faults.collect();
        if faults.is_empty() { Ok(Self { all }) } else { Err(DecisionProblem::Questions { faults }) }
    }

    /// One question.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn one(name: impl Into<String>, question: Question) -> Result<Self, DecisionProblem> {
        Self::new([(name.into(), question)])
    }

    /// Questions from a JSON object of them.
    ///
    /// # Errors
    /// [`DecisionProblem::NoQuestions`] for anything else, and [`DecisionProblem::Questions`] with the faults of all of them.
    pub fn from_json(json: &Value) -> Result<Self, DecisionProblem> {
        let Value::Object(fields) = json else {
            return Err(DecisionProblem::NoQuestions { found: Some(json.clone()) });
        };
        let (mut all, mut faults) = (Vec::new(), Vec::new());
        for (name, json) in fields {
            match Question::from_json(json) {
                Ok(question) => all.push((name.clone(), question)),
                Err(fault) => faults.push((name.clone(), fault)),
            }
        }
        if faults.is_empty() { Self::new(all) } else { Err(DecisionProblem::Questions { faults }) }
    }

    /// The questions with their names.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Question)> {
        self.all.iter().map(|(name, question)| (name.as_str(), question))
    }

    /// How many there are, at least one.
    #[allow(clippy::len_without_is_empty)] // never empty
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// A question by its name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Question> {
        self.iter().find(|(known, _)| *known == name).map(|(_, question)| question)
    }
}

impl TryFrom<Value> for Questions {
    type Error = DecisionProblem;

    fn try_from(json: Value) -> Result<Self, DecisionProblem> {
        Self::from_json(&json)
    }
}

impl From<Questions> for Value {
    fn from(questions: Questions) -> Self {
        Self::Object(questions.all.into_iter().map(|(name, question)| (name, question.into())).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// From JSON they never come.
    #[test]
    fn a_question_without_options_is_refused_and_has_no_answer() {
        let levels = || Question::Score { instructions: None, criteria: Vec::new() };
        let choice = || Question::Choice { instructions: None, criteria: Map::new() };
        for (question, says) in [(levels(), "a list with a text for each level"), (choice(), "at least one option")] {
            assert_eq!(question.answer(&[]), None);
            let all = [("good".to_owned(), Question::noul("?")), ("none".to_owned(), question.clone())];
            for problem in [Questions::one("none", question.clone()), Questions::new(all)].map(Result::unwrap_err) {
                let DecisionProblem::Questions { faults } = &problem else { panic!("{problem}") };
                assert!(faults.len() == 1 && faults[0].0 == "none" && problem.to_string().contains(says), "{problem}");
            }
        }
        assert!(Questions::one("only", Question::noul("?")).is_ok());
    }

    #[test]
    fn whole_numbers_are_labels_by_their_value() {
        let question = |json: Value| Question::from_json(&json).unwrap();
        let yes_or_no = question(json!({"type": "noul"}));
        let choice = question(json!({"type": "choice", "criteria": {"1": null, "2": null, "true": null}}));
        let levels = question(json!({"type": "score", "criteria": ["can wait", "soon", "today"]}));
        let first = |question: &Question, label: Value| {
            question.target(&label).ok().and_then(|shares| shares.iter().position(|&share| share == 1.0))
        };
        for (label, place) in [
            (json!(true), Some(0)),
            (json!(false), Some(1)),
            (json!(1), Some(0)),
            (json!(0), Some(1)),
            (json!(1.0), Some(0)),
            (json!(-0.0), Some(1)),
            (json!("true"), Some(0)),
            (json!("1"), Some(0)),
            (json!(" 0.0 "), Some(1)),
            (json!({"1": 3, "0": 0}), Some(0)),
            (json!("yes"), None),
            (json!("inf"), None),
            (json!(null), None),
            (json!(2), None),
            (json!(0.5), None),
        ] {
            assert_eq!(first(&yes_or_no, label.clone()), place, "{label}");
        }
        for (label, place) in [
            (json!(2), Some(2)),
            (json!(2.0), Some(2)),
            (json!("2"), Some(2)),
            (json!("2.0"), Some(2)),
            (json!(3.0), None),
            (json!({"2": 4, "0": null}), Some(2)),
            (json!({"1.0": 3, "01": 1}), Some(1)),
            (json!({"2": null}), None),
        ] {
            assert_eq!(first(&levels, label.clone()), place, "{label}");
        }
        assert_eq!(first(&levels, json!(true)), None);
        for (label, place) in [(json!(1.0), Some(0)), (json!(2), Some(1)), (json!(true), Some(2)), (json!(false), None)]
        {
            assert_eq!(first(&choice, label.clone()), place, "{label}");
        }
    }
}
