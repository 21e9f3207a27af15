//! `/v1/decisions`: a list of questions, as OpenAI has them. Names and types of fields are those of the openai package.
//!
//! A predicate is a yes-or-no question, a choice and a score are what they are elsewhere; levels are counted from 0.

mod input;
mod question;

use std::collections::HashSet;

use hyper::StatusCode;
use judge_core::decision::{Answer, DecisionItem, DecisionRoute, Question, Questions};
use serde_json::{Map, Value, json};

use self::question::Names;
use super::super::queue::Decided;
use super::super::refusal::{Problem, Refusal};
use super::fields::{Fields, Problems, elements};
use super::{Asked, Wire};

/// The fields of a body; those after the third are about OpenAI's own accounts and caches, and mean nothing here.
const FIELDS: [&str; 6] =
    ["model", "input", "questions", "safety_identifier", "prompt_cache_key", "prompt_cache_options"];

/// What the answers call the questions and options, in their order.
pub(in super::super) struct OpenAi(Vec<Names>);

impl Wire for OpenAi {
    const STATE: &'static str = "input";

    fn read(body: Map<String, Value>) -> Result<Asked<DecisionItem, Self>, Refusal> {
        let (mut problems, mut images) = (Problems::default(), false);
        let mut fields = Fields::new(body, &[], &FIELDS, &mut problems);
        let model = fields.optional_text("model");
        let state = fields.required("input").and_then(|found| input::state(found, &mut fields, &mut images));
        let list = fields.list("questions", 1, DecisionRoute::OpenAi.most_questions()).unwrap_or_default();
        let at = fields.at("questions");
        let mut all: Vec<(String, Question)> = Vec::new();
        let (mut names, mut known) = (Vec::new(), HashSet::new());
        for (place, (loc, json)) in elements(&at, list).enumerate() {
            if let Some((question, called)) = question::read(json, &loc, &mut problems, &mut images) {
                // Prompts may show the name. It need not be there, nor differ from others.
                let mut name = called.name.clone().unwrap_or_else(|| place.to_string());
                while !known.insert(name.clone()) {
                    name = format!("{name} ({place})");
                }
                all.push((name, question));
                names.push(called);
            }
        }
        if images {
            let msg = "`input_image`: this model reads text, no images";
            return Err(Refusal::new(StatusCode::BAD_REQUEST, "images", msg));
        }
        let state = problems.or(state)?;
        let questions =
            Questions::new(all).map_err(|error| Refusal::invalid(vec![Problem::new(&at, "value_error", error)]))?;
        Ok(Asked { model, of: DecisionItem { state, questions }, form: Self(names) })
    }

    fn write(self, model: &str, decided: Decided) -> Result<Value, Refusal> {
        let mut answers = Vec::new();
        for (told, names) in decided.told.into_iter().zip(self.0) {
            let Ok(answer) = told.answered.answer else { continue }; // the queue refuses those
            let mut json = names.answer(answer);
            for (what, of_question) in told.beside {
                json[what] = of_question;
            }
            answers.push(json);
        }
        let usage = json!({
            "input_tokens": decided.tokens, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 0, "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": decided.tokens,
        });
        Ok(json!({"model": model, "answers": answers, "usage": usage}))
    }

    fn refusal(refused: &Refusal) -> Value {
        let kind = match refused.status {
            StatusCode::UNAUTHORIZED => "authentication_error",
            StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
            status if status.is_server_error() => "server_error",
            _ => "invalid_request_error",
        };
        let first = refused.problems.first();
        let lines: Vec<String> = refused
            .problems
            .iter()
            .map(|problem| match param(&problem.loc) {
                Some(param) => format!("{param}: {}", problem.msg),
                None => problem.msg.clone(),
            })
            .collect();
        let param = first.and_then(|problem| param(&problem.loc));
        let code = first.map(|problem| problem.kind);
        json!({"error": {"message": lines.join("\n"), "type": kind, "param": param, "code": code}})
    }
}

/// A place in the body as OpenAI writes it: `questions[0].type`.
fn param(loc: &[Value]) -> Option<String> {
    let mut text = String::new();
    for step in loc.iter().skip(1) {
        match step {
            Value::String(name) if text.is_empty() => text += name,
            Value::String(name) => text += &format!(".{name}"),
            place => text += &format!("[{place}]"),
        }
    }
    (!text.is_empty()).then_some(text)
}

impl Names {
    /// An answer with the names that the request has.
    fn answer(self, answer: Answer) -> Value {
        let name = self.name;
        match answer {
            Answer::Noul { noul } => json!({"type": "predicate", "name": name, "probability": noul}),
            Answer::Choice { choice, confidence, probabilities } => {
                let place = probabilities.keys().position(|option| *option == choice).unwrap_or_default();
                let choice = self.options.get(place);
                let listed = probabilities.values().zip(&self.options);
                let listed = listed.map(|(p, value)| json!({"value": value, "probability": p}));
                let listed: Vec<Value> = listed.collect();
                json!({"type": "choice", "name": name, "choice": choice, "confidence": confidence, "probabilities": listed})
            }
            Answer::Score { score, confidence, probabilities, .. } => {
                let listed = probabilities.values().zip(&self.options).enumerate();
                let listed =
                    listed.map(|(level, (p, label))| json!({"value": level, "label": label, "probability": p}));
                let listed: Vec<Value> = listed.collect();
                json!({"type": "score", "name": name, "score": score, "confidence": confidence, "probabilities": listed})
            }
        }
    }
}
