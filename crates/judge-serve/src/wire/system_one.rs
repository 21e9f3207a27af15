//! `/v1/systemone`: questions by name, as transformers and the services of decision models have them. Errors are FastAPI's.

use hyper::StatusCode;
use judge_core::decision::{Answered, DecisionItem, DecisionRoute, Questions};
use serde_json::{Map, Value, json};

use super::super::queue::Decided;
use super::super::refusal::{Problem, Refusal};
use super::fields::{Fields, Problems, is_object_or_list};
use super::{Asked, Wire};

/// A request has at most so many assets, if it had any here.
const ASSETS: usize = 4;

/// Answers by name: nothing of the request is needed for them.
pub(in super::super) struct SystemOne;

impl Wire for SystemOne {
    const STATE: &'static str = "state";

    fn read(body: Map<String, Value>) -> Result<Asked<DecisionItem, Self>, Refusal> {
        let mut problems = Problems::default();
        let mut fields = Fields::new(body, &[], &["model", "state", "questions", "assets"], &mut problems);
        let model = fields.optional_text("model");
        let state = fields.required("state").filter(|state| {
            let is_one = state.is_string() || is_object_or_list(state);
            if !is_one {
                fields.wrong("state", "value_error", "text, an object or a list", state);
            }
            is_one
        });
        let questions = fields.required("questions").filter(|questions| match questions {
            Value::Object(named) => {
                fields.is_in("questions", named.len(), 1, DecisionRoute::SystemOne.most_questions())
            }
            found => {
                fields.wrong("questions", "dict_type", "an object of questions by name", found);
                false
            }
        });
        let has_assets = match fields.optional("assets") {
            None => false,
            Some(Value::Object(assets)) => fields.is_in("assets", assets.len(), 0, ASSETS) && !assets.is_empty(),
            Some(found) => {
                fields.wrong("assets", "dict_type", "an object", &found);
                false
            }
        };
        let (state, questions) = problems.or(state.zip(questions))?;
        let questions = Questions::from_json(&questions)
            .map_err(|error| Refusal::invalid(vec![Problem::new(&[json!("questions")], "value_error", error)]))?;
        if has_assets {
            let msg = "`assets`: this model reads text, no images";
            return Err(Refusal::new(StatusCode::BAD_REQUEST, "images", msg));
        }
        Ok(Asked { model, of: DecisionItem { state, questions }, form: Self })
    }

    fn write(self, model: &str, decided: Decided) -> Result<Value, Refusal> {
        let (mut answers, mut beside) = (Map::new(), Map::new());
        for told in decided.told {
            let Answered { name, answer: Ok(answer), .. } = told.answered else { continue }; // the queue refuses those
            let answer = serde_json::to_value(answer).map_err(Refusal::failed)?;
            for (what, of_question) in told.beside {
                let by_question = beside.entry(what).or_insert_with(|| Value::Object(Map::new()));
                by_question[&name] = of_question;
            }
            answers.insert(name, answer);
        }
        let usage = json!({"input_tokens": decided.tokens, "output_tokens": 0});
        let mut body = json!({"model": model, "answers": answers, "usage": usage});
        for (what, by_question) in beside {
            body[what] = by_question;
        }
        Ok(body)
    }

    fn refusal(refused: &Refusal) -> Value {
        if refused.status != StatusCode::UNPROCESSABLE_ENTITY {
            return json!({"detail": refused.message()});
        }
        let of = |Problem { loc, msg, kind }: &Problem| json!({"loc": loc, "msg": msg, "type": kind});
        json!({"detail": refused.problems.iter().map(of).collect::<Vec<_>>()})
    }
}
