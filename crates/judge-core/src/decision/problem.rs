use serde_json::Value;

use super::QuestionKind;
use crate::Layer;
use crate::settings::nearest_name;

/// Why a question is none.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum QuestionFault {
    /// It is no JSON object.
    #[error("expected an object, found {}; {}", shown(Some(found)), example(QuestionKind::Noul))]
    NotAnObject {
        /// What it is.
        found: Value,
    },
    /// Its `type` is missing or unknown.
    #[error("expected `type` to be noul, choice or score, found {}; {}", shown(found.as_ref()), example(QuestionKind::Noul))]
    Kind {
        /// What is there.
        found: Option<Value>,
    },
    /// A field that no question has.
    #[error("unknown field `{found}`{}; {}", meant(found), example(*kind))]
    UnknownField {
        /// The question's kind.
        kind: QuestionKind,
        /// The field.
        found: String,
    },
    /// A text is a number or a truth value.
    #[error("`{field}`: expected text, an object or a list, found {}; {}", shown(Some(found)), example(*kind))]
    Content {
        /// The question's kind.
        kind: QuestionKind,
        /// The field.
        field: &'static str,
        /// What is there.
        found: Value,
    },
    /// The options are missing or not of the right form.
    #[error("`criteria`: expected {expected}, found {}; {}", shown(found.as_ref()), example(*kind))]
    Criteria {
        /// The question's kind.
        kind: QuestionKind,
        /// What is expected.
        expected: &'static str,
        /// What is there.
        found: Option<Value>,
    },
    /// More options than the model has labels for.
    #[error("a {kind} question with {found} options, and at most {most} can be read: {why}")]
    TooManyOptions {
        /// The question's kind.
        kind: QuestionKind,
        /// How many it has.
        found: usize,
        /// How many can be read.
        most: usize,
        /// Why not more.
        why: String,
    },
}

/// At most so many characters of a value are shown in a message.
const SHOWN: usize = 80;

fn shown(value: Option<&Value>) -> String {
    let Some(value) = value else { return "nothing".to_owned() };
    let text = value.to_string();
    let short: String = text.chars().take(SHOWN).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}

fn example(kind: QuestionKind) -> String {
    format!("a {kind} question looks like {}", kind.example())
}

fn meant(found: &str) -> String {
    let meant = nearest_name(found, ["type", "instructions", "criteria"]);
    meant.map_or_else(String::new, |meant| format!(", did you mean `{meant}`?"))
}

/// What is wrong with decisions: with their questions, or with what answers them.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DecisionProblem {
    /// There are no questions.
    #[error("expected an object of at least one question by name, found {}", shown(found.as_ref()))]
    NoQuestions {
        /// What is there.
        found: Option<Value>,
    },
    /// Two questions of one name.
    #[error("two questions are called {name:?}")]
    SameName {
        /// The name.
        name: String,
    },
    /// Some questions are none.
    #[error("{}", in_lines(faults))]
    Questions {
        /// What is wrong with which, in their order.
        faults: Vec<(String, QuestionFault)>,
    },
    /// A verdict that does not answer a question.
    #[error("the verdict holds no answer to the question {name:?}: it is of other questions")]
    NotAnswered {
        /// The question.
        name: String,
    },
    /// What people answered is no answer to the question.
    #[error("expected one of the options {options:?}, or numbers by option that add up to more than 0, found {found}")]
    Label {
        /// What is there.
        found: String,
        /// The options there are.
        options: Vec<String>,
    },
    /// A setting of a decision model is not what it must be.
    #[error("{setting}: expected {expected}, found {found}")]
    Setting {
        /// Its name, as in `decision.json`.
        setting: String,
        /// What is expected.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// A layer that the model does not have.
    #[error("the model has no {found}; its layers are 0 to {last}")]
    Layer {
        /// The layer.
        found: Layer,
        /// Number of its blocks.
        last: usize,
    },
    /// Labels that the model cannot be asked about.
    #[error("no question can be asked, since none has two labels that can be read: {why}")]
    Labels {
        /// What is wrong with those of yes-or-no questions.
        why: String,
    },
    /// Weights that were fitted on something else.
    #[error("these decision weights were fitted {what} {fitted:?}, and are used {what} {used:?}")]
    Weights {
        /// What differs: `on the model`, `with the prompt`, ….
        what: &'static str,
        /// Fitted.
        fitted: String,
        /// Used.
        used: String,
    },
    /// Weights without any for the one kind of question that is asked.
    #[error(
        "these decision weights have none for {kind} questions (`kinds.{kind}`), and all that are asked are of that kind"
    )]
    NoWeights {
        /// The kind.
        kind: QuestionKind,
    },
    /// Labelled decisions that nothing can be fitted on.
    #[error("labelled decision {item}: expected {expected}, found {found}")]
    Labelled {
        /// Its place, from 0.
        item: usize,
        /// What is expected.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// A checklist that is none.
    #[error("checklist: expected {expected}, found {found}")]
    Checklist {
        /// What is expected.
        expected: &'static str,
        /// What is there.
        found: String,
    },
}

fn in_lines(faults: &[(String, QuestionFault)]) -> String {
    let lines: Vec<String> = faults.iter().map(|(name, fault)| format!("question {name:?}: {fault}")).collect();
    lines.join("\n")
}
