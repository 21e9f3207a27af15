//! The JSON of each standard, and questions and answers.

mod fields;
mod openai;
pub(super) mod rerank;
mod system_one;

use std::collections::BTreeMap;

use hyper::StatusCode;
use judge_core::decision::{DecisionItem, exact_json};
use judge_core::settings::name_twice;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::queue::Decided;
use super::refusal::{Problem, Refusal};

pub(super) use self::openai::OpenAi;
pub(super) use self::system_one::SystemOne;

/// A standard for requests and answers. The value is what of a request its answer is written with.
pub(super) trait Wire: Sized + Send + 'static {
    /// The field of a body that the state is read from.
    const STATE: &'static str;

    /// What a body asks.
    fn read(body: Map<String, Value>) -> Result<Asked<DecisionItem, Self>, Refusal>;

    /// An answer. What judges say beside it is in fields of its own, which neither standard has.
    fn write(self, model: &str, decided: Decided) -> Result<Value, Refusal>;

    /// The body of a refusal.
    fn refusal(refused: &Refusal) -> Value;
}

/// What a request asks.
pub(super) struct Asked<Of, Form> {
    /// The model's name, where one is given.
    pub(super) model: Option<String>,
    pub(super) of: Of,
    /// What of the request its answer is written with.
    pub(super) form: Form,
}

/// A body as a JSON object. Whole numbers of its field `exact` keep all of their digits, as [`exact_json`] has them. Those of all other
/// fields are what plain readers of JSON see, so that none of them is taken for an object.
pub(super) fn object(body: &[u8], exact: &str) -> Result<Map<String, Value>, Refusal> {
    let refused = |kind, msg: String| Refusal::new(StatusCode::BAD_REQUEST, kind, msg);
    let text = std::str::from_utf8(body)
        .map_err(|error| refused("not_utf8", format!("the body is not UTF-8 from byte {} on", error.valid_up_to())))?;
    // Before any of it is kept, which the last of two would be.
    if let Some(twice) = name_twice(text) {
        let loc: Vec<Value> = twice.path.into_iter().chain([Value::String(twice.name)]).collect();
        return Err(Refusal::invalid(vec![Problem::new(
            &loc,
            "duplicate_key",
            "this name appears twice in one object",
        )]));
    }
    let read = exact_json::from_text(text).map(fields::object).and_then(|mut read| {
        let fields = read.iter_mut().flatten().filter(|(name, _)| *name != exact);
        fields.map(|(_, value)| value).try_for_each(exact_json::round)?;
        Ok(read)
    });
    match read {
        Ok(Ok(fields)) => Ok(fields),
        Ok(Err(found)) => {
            let msg = format!("expected an object, found {}", fields::named(&found));
            Err(Refusal::invalid(vec![Problem::new(&[], "dict_type", msg)]))
        }
        Err(error) if error.to_string().starts_with("recursion limit") => {
            Err(refused("nested_too_deep", format!("the body is nested too deep: {error}")))
        }
        Err(error) => Err(refused("json_invalid", format!("the body is not JSON: {error}"))),
    }
}

/// The JSON of a field as the body has it; `None` if there is none.
pub(super) fn written<'b>(body: &'b [u8], name: &str) -> Option<&'b str> {
    let fields: BTreeMap<String, &'b RawValue> = serde_json::from_slice(body).ok()?;
    fields.get(name).map(|json| json.get())
}

#[cfg(test)]
mod tests;
