use serde::Serialize;
use serde_json::Value;

use super::{DecisionForm, Question, QuestionKind};

/// A question as a prompt has it: its options in the model's order, each with the label that stands for it.
///
/// As JSON it is what a `decision_template.jinja` sees as `question`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Asked {
    /// The question's name.
    pub name: String,
    /// Its kind.
    #[serde(rename = "type")]
    pub kind: QuestionKind,
    /// What is asked; null for nothing.
    pub instructions: Value,
    /// The names of the options.
    pub options: Vec<String>,
    /// What stands for each.
    pub labels: Vec<String>,
    /// What each means; null for nothing.
    pub descriptions: Vec<Value>,
}

impl Asked {
    /// A question in a model's form; it must not have more options than the form has labels for its kind.
    #[must_use]
    pub fn new(name: &str, question: &Question, form: &DecisionForm) -> Self {
        let kind = question.kind();
        let (mut options, mut descriptions) = (question.options(), question.descriptions());
        if kind == QuestionKind::Noul && form.false_first {
            options.reverse();
            descriptions.reverse();
        }
        let labels = form.labels.get(kind).iter().take(options.len()).cloned().collect();
        let instructions = question.instructions().cloned().unwrap_or(Value::Null);
        Self { name: name.to_owned(), kind, instructions, options, labels, descriptions }
    }
}
