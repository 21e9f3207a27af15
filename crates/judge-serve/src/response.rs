//! Answers and refusals as HTTP has them.

use axum::response::{IntoResponse, Response};
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use judge_core::decision::exact_json;
use serde_json::Value;

use super::paths::SYSTEM_ONE;
use super::refusal::Refusal;
use super::wire::{OpenAi, SystemOne, Wire};

/// Refuses a request in the form of the standard that its path belongs to.
pub(super) fn refuse(path: &str, refused: &Refusal) -> Response {
    let body = if path == SYSTEM_ONE { SystemOne::refusal(refused) } else { OpenAi::refusal(refused) };
    let mut response = json_response(refused.status, &body);
    let headers = response.headers_mut();
    if let Some(seconds) = refused.retry_after {
        headers.insert(RETRY_AFTER, seconds.into());
    }
    if refused.status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// A status and its JSON, with the digits of all whole numbers that a request brought.
pub(super) fn json_response(status: StatusCode, body: &Value) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], exact_json::to_text(body)).into_response()
}
