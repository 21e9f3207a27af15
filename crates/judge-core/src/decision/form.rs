use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ByKind, DecisionProblem, QuestionKind};
use crate::settings::nearest_name;

/// How a model answers decisions: the settings that a `decision.json` beside it has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecisionForm {
    /// What stands for the options of a question, in their order; none twice. A question has at most so many options.
    pub labels: ByKind<Vec<String>>,
    /// What the scores of the options are divided by before the softmax; above 0.
    pub temperature: ByKind<f64>,
    /// Whether the first label of a yes-or-no question stands for `false`.
    pub false_first: bool,
}

impl Default for DecisionForm {
    /// `Yes` and `No`, the letters `A` to `Z`, no temperature, `true` first.
    fn default() -> Self {
        let letters: Vec<String> = ('A'..='Z').map(String::from).collect();
        let labels = ByKind { noul: vec!["Yes".to_owned(), "No".to_owned()], choice: letters.clone(), score: letters };
        Self { labels, temperature: ByKind::of(|_| 1.0), false_first: false }
    }
}

/// The fields of a `decision.json` that this project reads.
const KNOWN: [&str; 5] = ["labels", "temperature", "noul_options", "sanitize_control_tokens", "adapter"];

impl DecisionForm {
    /// The settings of a `decision.json`: `labels` and `temperature` by kind of question, `noul_options`. What is not there is as in
    /// [`default`](Self::default). Other fields are left to the reader of the folder, if they are known ones.
    ///
    /// # Errors
    /// [`DecisionProblem::Setting`] for a setting of the wrong form, and for one that is nearly called as a known one. As in
    /// transformers, other unknown settings are passed over.
    pub fn from_json(json: &Value) -> Result<Self, DecisionProblem> {
        let wrong = |setting: String, expected, found: &Value| {
            Err(DecisionProblem::Setting { setting, expected, found: found.to_string() })
        };
        let Value::Object(fields) = json else {
            return wrong("the file".to_owned(), "an object", json);
        };
        for name in fields.keys().filter(|name| !KNOWN.contains(&name.as_str())) {
            if let Some(meant) = nearest_name(name, KNOWN) {
                let (setting, found) = (meant.to_owned(), format!("`{name}`"));
                return Err(DecisionProblem::Setting { setting, expected: "to be spelt so", found });
            }
        }
        let mut form = Self::default();
        for (setting, expected) in [("labels", "lists of texts by kind"), ("temperature", "numbers by kind")] {
            let by_kind = match fields.get(setting) {
                None | Some(Value::Null) => continue,
                Some(Value::Object(by_kind)) => by_kind,
                Some(found) => return wrong(setting.to_owned(), expected, found),
            };
            for (name, found) in by_kind {
                let path = format!("{setting}.{name}");
                let Some(kind) = QuestionKind::from_name(name) else {
                    return wrong(path, "noul, choice or score", found);
                };
                match setting {
                    "labels" => {
                        let labels = serde_json::from_value::<Vec<String>>(found.clone()).ok();
                        match labels.filter(|labels| is_distinct(labels)) {
                            // As in transformers, an empty list is none.
                            Some(labels) if labels.is_empty() => {}
                            Some(labels) => *form.labels.get_mut(kind) = labels,
                            None => return wrong(path, "a list of different texts, none empty", found),
                        }
                    }
                    _ => match found.as_f64().filter(|number| number.is_finite() && *number > 0.0) {
                        Some(number) => *form.temperature.get_mut(kind) = number,
                        None => return wrong(path, "a number above 0", found),
                    },
                }
            }
        }
        if let Some(found) = fields.get("noul_options").filter(|found| !found.is_null()) {
            let options: Vec<&str> = found.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            form.false_first = match options[..] {
                ["true", "false"] => false,
                ["false", "true"] => true,
                _ => return wrong("noul_options".to_owned(), r#"["true", "false"] or ["false", "true"]"#, found),
            };
        }
        Ok(form)
    }
}

fn is_distinct(labels: &[String]) -> bool {
    labels.iter().enumerate().all(|(at, label)| !label.is_empty() && !labels[..at].contains(label))
}
