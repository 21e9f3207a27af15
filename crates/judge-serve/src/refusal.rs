//! Why a request is not answered: a status, and what is wrong where.

use std::fmt::Display;

use hyper::StatusCode;
use judge_core::Reason;
use serde_json::{Value, json};

/// A text that a client made up is shown up to so many characters.
pub(super) const SHOWN: usize = 80;

/// Why a request is not answered. Each standard writes it in its own form.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    /// At least one.
    pub(super) problems: Vec<Problem>,
    /// Seconds after which to try again.
    pub(super) retry_after: Option<u32>,
}

/// One thing that is wrong with a request.
#[derive(Debug)]
pub(super) struct Problem {
    /// Where: names of fields and places in lists, from the body or the query on; empty where it is in neither.
    pub(super) loc: Vec<Value>,
    /// What was expected, and what was found.
    pub(super) msg: String,
    /// Its kind, by the names of pydantic, which clients of transformers know.
    pub(super) kind: &'static str,
}

impl Problem {
    /// A problem of a name in the query.
    pub(super) fn of_query(name: &str, kind: &'static str, msg: impl Display) -> Self {
        Self { loc: vec![json!("query"), json!(name)], msg: msg.to_string(), kind }
    }

    /// A problem of a field of the body.
    pub(super) fn new(loc: &[Value], kind: &'static str, msg: impl Display) -> Self {
        let loc = [json!("body")].iter().chain(loc).cloned().collect();
        Self { loc, msg: msg.to_string(), kind }
    }
}

impl Refusal {
    /// For one reason that is in no field.
    pub(super) fn new(status: StatusCode, kind: &'static str, msg: impl Display) -> Self {
        let problems = vec![Problem { loc: Vec::new(), msg: msg.to_string(), kind }];
        Self { status, problems, retry_after: None }
    }

    /// For a fault of this service.
    pub(super) fn failed(msg: impl Display) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", msg)
    }

    /// For what has no answer, for these reasons.
    pub(super) fn not_answered(reasons: &[Reason], msg: impl Display) -> Self {
        let (status, kind) = match reasons {
            any if any.contains(&Reason::NonFinite) => (StatusCode::INTERNAL_SERVER_ERROR, "not_answered"),
            all if all.iter().all(|reason| *reason == Reason::TooLong) => {
                (StatusCode::BAD_REQUEST, "context_length_exceeded")
            }
            _ => (StatusCode::BAD_REQUEST, "not_answered"),
        };
        Self::new(status, kind, msg)
    }

    /// For fields that are not what they should be.
    pub(super) fn invalid(problems: Vec<Problem>) -> Self {
        Self { status: StatusCode::UNPROCESSABLE_ENTITY, problems, retry_after: None }
    }

    pub(super) fn retry_after(self, seconds: u32) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    /// What is wrong, in one text.
    pub(super) fn message(&self) -> String {
        let texts: Vec<&str> = self.problems.iter().map(|problem| problem.msg.as_str()).collect();
        texts.join("\n")
    }
}
