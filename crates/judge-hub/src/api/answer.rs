//! What comes back: a response as an outcome, or what is wrong with it.
//!
//! `model` passes each response to `read` once. Nothing here waits, counts or retries; an `Answer`
//! says whether another attempt may help. What leaves this file has passed through the key's
//! redaction.
//!
//! ```text
//! 2xx   JSON with "answers", from a service of decisions   ─►  Read: the body
//!       JSON with one choice
//!         "refusal", or finish_reason of FILTERED        ─►  Unscored: Refused
//!         text in "content", or in its parts             ─►  Read; cut before the first stop text
//!         no "content", but a thought or CUT             ─►  Read: an empty text
//!         a call of a tool                               ─►  Malformed (final: it would be called again)
//!         finish_reason of BROKEN_OFF or of a tool       ─►  Malformed (transient)
//!       JSON or a choice with an "error"                 ─►  Unscored: Refused, if moderated; else Status (transient)
//!       anything else                                    ─►  Malformed (transient)
//! 3xx   Redirect (final; no redirect is followed)
//! else  400, 403, 422, 451, moderated or of REFUSED      ─►  Unscored: Refused
//!       413; 400, 422 with TOO_LONG or TOO_LONG_WORDS    ─►  Unscored: TooLong
//!       other                                            ─►  Status (transient by status, but for NO_QUOTA)
//! ```
//!
//! Services differ in how they say that a prompt is too long, hence the lists of codes and words. A
//! service that says it in yet another way ends the run with its own words, which is where to find
//! a new entry.

mod alternatives;

use judge_core::{
    Outcome, Reading, Reason, Unscored,
    reading::{Finish, Generated},
    request::Generation,
};
use serde_json::Value;

use super::transport::Response;
use super::usage::Tokens;
use super::{ApiKey, ApiProblem, ApiRoute};
use crate::agent::quoted;

/// How much of what a service says is shown, in characters. The rest is replaced by an ellipsis.
const SHOWN: usize = 500;

/// Values of an error's `code` or `type`, in lower case, that say that a conversation does not fit
/// the model.
const TOO_LONG: [&str; 4] =
    ["context_length_exceeded", "exceed_context_size_error", "string_above_max_length", "context_window_exceeded"];
/// Phrases of error messages, in lower case, that say the same of services that give no such code.
const TOO_LONG_WORDS: [&str; 6] =
    ["maximum context length", "context length", "context window", "context size", "prompt is too long", "too_long"];
/// Values of an error's `code` or `type`, in lower case, that say that the service will not answer
/// this conversation.
const REFUSED: [&str; 3] = ["content_filter", "content_policy_violation", "responsibleaipolicyviolation"];
/// Words of error messages, in lower case, that say the same where the status is 451 (unavailable for legal reasons).
const REFUSED_WORDS: [&str; 4] = ["moderation", "flagged", "content policy", "content filter"];
/// Fields of an error's `metadata` that say what moderation found in a conversation: OpenRouter.
const MODERATED: [&str; 2] = ["reasons", "flagged_input"];
/// Values of `finish_reason`, in lower case, of an answer that broke off, so that it is asked for again. Any other word is an end.
const BROKEN_OFF: [&str; 7] =
    ["error", "abort", "aborted", "cancelled", "network_error", "insufficient_system_resource", "timeout"];
/// Those of an answer that was cut off at the limit of tokens.
const CUT: [&str; 5] = ["length", "max_tokens", "max_length", "model_length", "max_output_tokens"];
/// Those of an answer that the service does not give.
const FILTERED: [&str; 8] = [
    "content_filter",
    "safety",
    "sensitive",
    "refusal",
    "recitation",
    "prohibited_content",
    "blocklist",
    "guardrail_intervened",
];
/// Those of a service that calls a tool instead of answering in words.
const OF_TOOLS: [&str; 2] = ["tool_calls", "function_call"];
/// Fields of a message that hold a chain of thought.
const THOUGHTS: [&str; 4] = ["reasoning_content", "reasoning", "reasoning_details", "thinking"];
/// The `code` or `type` of an error with status 429 about a limit that no wait within a run lifts,
/// such as an account without credit.
const NO_QUOTA: &str = "insufficient_quota";

/// What a service said.
#[derive(Debug)]
pub(super) struct Answer {
    /// What became of the request: an item's outcome, or a problem of the run.
    pub(super) result: Result<Outcome, ApiProblem>,
    /// Whether the same request may bring something else next time. False for an outcome.
    pub(super) is_transient: bool,
    /// Tokens read and written, if the service says both. Only of statuses 2xx.
    pub(super) tokens: Option<Tokens>,
    /// The name of the model that answered, in the service's own words, cut to [`SHOWN`]. Only of
    /// statuses 2xx.
    pub(super) model: Option<String>,
}

impl Answer {
    /// An answer that says nothing of tokens and model; transient if its problem is.
    fn new(result: Result<Outcome, ApiProblem>) -> Self {
        let is_transient = result.as_ref().err().is_some_and(ApiProblem::is_transient);
        Self { result, is_transient, tokens: None, model: None }
    }
}

/// Reads a response to a request for text written as `generation` says, or for decisions. Nothing of the answer shows
/// the key.
pub(super) fn read(response: &Response, route: ApiRoute, generation: &Generation, key: Option<&ApiKey>) -> Answer {
    let Response { status, body, .. } = response;
    // A byte-order mark is no part of JSON.
    let body = body.strip_prefix("\u{feff}".as_bytes()).unwrap_or(body);
    let hide = |text: &str| key.map_or_else(|| text.to_owned(), |key| key.redact(text));
    match status {
        200..=299 => completion(*status, body, route, generation, key, &hide),
        300..=399 => {
            let location = shown(&hide(&response.location));
            Answer::new(Err(ApiProblem::Redirect { status: *status, location }))
        }
        _ => failure(*status, body, &hide),
    }
}

/// An answer with a status that is neither success nor redirect: the item's own fault, or the
/// run's. The body may be an object `{"error": …}` as OpenAI writes it, the error object itself, an
/// object with a `detail`, or any text, of which the beginning is shown. `hide` takes the key out.
fn failure(status: u16, body: &[u8], hide: &dyn Fn(&str) -> String) -> Answer {
    let json: Value = serde_json::from_slice(body).unwrap_or_default();
    let error = json.get("error").unwrap_or(&json);
    let text = |field: &str| error.get(field).and_then(Value::as_str);
    let message = text("message").or_else(|| error.as_str()).or_else(|| text("detail"));
    let listed = error.get("detail").and_then(details);
    let message = message.or(listed.as_deref());
    let said = hide(message.unwrap_or(&quoted(body)));
    let worded = |known: &[&str]| {
        let lower = said.to_lowercase();
        known.iter().any(|words| lower.contains(words))
    };
    let unscored = |reason| Answer::new(Ok(Outcome::Unscored(Unscored::new(reason, shown(&said)))));
    match status {
        400 | 403 | 422 | 451 if is_moderated(error) => unscored(Reason::Refused),
        451 if worded(&REFUSED_WORDS) => unscored(Reason::Refused),
        413 => unscored(Reason::TooLong),
        400 | 422 if is_coded(error, &TOO_LONG) || worded(&TOO_LONG_WORDS) => unscored(Reason::TooLong),
        _ => {
            let answer = Answer::new(Err(ApiProblem::Status { status, said: shown(&said) }));
            Answer { is_transient: answer.is_transient && !is_coded(error, &[NO_QUOTA]), ..answer }
        }
    }
}

/// Whether an error's `code` or `type` is one of these.
fn is_coded(error: &Value, known: &[&str]) -> bool {
    let text = |field: &str| error.get(field).and_then(Value::as_str).map(str::to_lowercase);
    ["code", "type"].into_iter().filter_map(text).any(|code| known.contains(&code.as_str()))
}

/// Whether an error says that the service will not answer this conversation.
fn is_moderated(error: &Value) -> bool {
    let found =
        |field: &&str| error.get("metadata").and_then(|metadata| metadata.get(field)).is_some_and(|v| !v.is_null());
    is_coded(error, &REFUSED) || MODERATED.iter().any(found)
}

/// The lines of FastAPI's list of what is wrong, `[{"loc": [place, …], "msg"}]`.
fn details(detail: &Value) -> Option<String> {
    let line = |entry: &Value| {
        let step = |step: &Value| step.as_str().map_or_else(|| step.to_string(), str::to_owned);
        let place: Vec<String> = entry.get("loc")?.as_array()?.iter().map(step).collect();
        Some(format!("{}: {}", place.join("."), entry.get("msg")?.as_str()?))
    };
    let lines: Vec<String> = detail.as_array()?.iter().map(line).collect::<Option<_>>()?;
    Some(lines.join("; "))
}

/// An answer with a status of success. Takes the key out of all texts before anything is read of
/// them. `hide` does it for what a problem quotes.
fn completion(
    status: u16,
    body: &[u8],
    route: ApiRoute,
    generation: &Generation,
    key: Option<&ApiKey>,
    hide: &dyn Fn(&str) -> String,
) -> Answer {
    let malformed = |problem: String| {
        let said = shown(&hide(&quoted(body)));
        Err(ApiProblem::Malformed { problem: hide(&problem), said })
    };
    let strict = serde_json::from_slice(body);
    let mut json: Value = match strict.or_else(|error| serde_json::from_str(&mended(body)).map_err(|_| error)) {
        Ok(json) => json,
        Err(error) => return Answer::new(malformed(format!("expected JSON: {error}"))),
    };
    if let Some(key) = key {
        key.redact_json(&mut json);
    }
    let tokens = tokens(&json);
    let model = json.get("model").and_then(Value::as_str).map(shown);
    let of_all = json.get("error").filter(|_| json.get("choices").is_none() && json.get("answers").is_none());
    if let Some(error) = of_all.or(json.pointer("/choices/0/error")).filter(|error| !error.is_null()) {
        let said = error.get("message").and_then(Value::as_str).or(error.as_str());
        let said = shown(said.unwrap_or(&error.to_string()));
        let result = match is_moderated(error) {
            true => Ok(Outcome::Unscored(Unscored::new(Reason::Refused, said))),
            false => Err(ApiProblem::Status { status, said }),
        };
        return Answer { tokens, model, is_transient: result.is_err(), ..Answer::new(result) };
    }
    let result = match route {
        ApiRoute::Chat => outcome(&json, generation, tokens),
        ApiRoute::Decisions(_) => decisions(&json, tokens),
    };
    let result = result.or_else(malformed);
    let answer = Answer::new(result);
    Answer { tokens, model, is_transient: answer.is_transient && !calls_tool(&json), ..answer }
}

/// Whether a service calls a tool instead of answering in words.
fn calls_tool(json: &Value) -> bool {
    let reason = json.pointer("/choices/0/finish_reason").and_then(Value::as_str).map(str::to_lowercase);
    reason.is_some_and(|reason| OF_TOOLS.contains(&&*reason))
}

/// A body that is no JSON to the letter, but what Python's servers write: the names `NaN`, `Infinity` and `-Infinity` become null, and a
/// half of a surrogate pair becomes U+FFFD.
fn mended(body: &[u8]) -> String {
    let body = String::from_utf8_lossy(body);
    let mut out = String::with_capacity(body.len());
    let (mut rest, mut quoted) = (&*body, false);
    let half = |text: &str, range: std::ops::Range<u32>| {
        let digits = text.strip_prefix("\\u").and_then(|t| t.get(..4))?;
        u32::from_str_radix(digits, 16).ok().filter(|n| range.contains(n))
    };
    while let Some(c) = rest.chars().next() {
        let mut length = c.len_utf8();
        match c {
            '"' => quoted = !quoted,
            '\\' if quoted => {
                length += rest[1..].chars().next().map_or(0, char::len_utf8);
                if half(rest, 0xD800..0xDC00).is_some() && half(rest.get(6..).unwrap_or(""), 0xDC00..0xE000).is_some() {
                    length = 12;
                } else if half(rest, 0xD800..0xE000).is_some() {
                    out.push(char::REPLACEMENT_CHARACTER);
                    rest = &rest[6..];
                    continue;
                }
            }
            _ if !quoted => {
                let name = ["NaN", "Infinity", "-Infinity"].into_iter().find(|name| rest.starts_with(name));
                if let Some(name) = name {
                    out.push_str("null");
                    rest = &rest[name.len()..];
                    continue;
                }
            }
            _ => {}
        }
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    out
}

/// The words of an answer: a text, or the texts among its parts without those of a chain of thought. `None` if there are none.
fn words(content: Option<&Value>) -> Result<Option<String>, &'static str> {
    match content {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(Value::Array(parts)) if parts.iter().all(Value::is_object) => {
            let is_text = |part: &&Value| matches!(part["type"].as_str(), Some("text" | "output_text"));
            let texts: Vec<&str> = parts.iter().filter(is_text).filter_map(|part| part["text"].as_str()).collect();
            Ok((!texts.is_empty()).then(|| texts.concat()))
        }
        Some(_) => Err("expected \"content\" to be text"),
    }
}

/// What a service says that it counted, in either form's words; `None` unless both numbers are there.
fn tokens(json: &Value) -> Option<Tokens> {
    let usage = json.get("usage")?;
    let whole = |count: &Value| {
        // More than any model reads or writes is no count.
        count.as_f64().filter(|count| count.fract() == 0.0 && (0.0..1e9).contains(count)).map(|count| count as u64)
    };
    let count = |of_chats: &str, of_decisions: &str| usage.get(of_chats).or(usage.get(of_decisions)).and_then(whole);
    let (prompt, completion) = (count("prompt_tokens", "input_tokens")?, count("completion_tokens", "output_tokens")?);
    Some(Tokens { prompt, completion })
}

/// The answers of a service of decisions, as the text that was written.
fn decisions(json: &Value, tokens: Option<Tokens>) -> Result<Outcome, String> {
    json.get("answers").filter(|answers| answers.is_object() || answers.is_array()).ok_or("expected \"answers\"")?;
    let mut reading = Reading::default();
    reading.prompt_tokens = tokens.and_then(|tokens| usize::try_from(tokens.prompt).ok());
    reading.generated = Some(Generated::text_only(json.to_string(), Finish::EndToken));
    Ok(Outcome::Read(reading))
}

/// The outcome, or what is wrong with the answer, in words that name what was expected.
fn outcome(json: &Value, generation: &Generation, tokens: Option<Tokens>) -> Result<Outcome, String> {
    let choices = json.get("choices").and_then(Value::as_array).ok_or("expected a list \"choices\"")?;
    let [choice] = &choices[..] else { return Err(format!("expected 1 choice, found {}", choices.len())) };
    let reason = match choice.get("finish_reason") {
        None | Some(Value::Null) => String::new(),
        Some(reason) => reason.as_str().ok_or("expected \"finish_reason\" to be text")?.to_lowercase(),
    };
    let reason = reason.as_str();
    let refused = |detail: &str| Ok(Outcome::Unscored(Unscored::new(Reason::Refused, shown(detail))));
    match choice.get("message").and_then(|message| message.get("refusal")) {
        None | Some(Value::Null) => {}
        Some(refusal) => match refusal.as_str().ok_or("expected \"refusal\" to be text")? {
            "" => {}
            refusal => return refused(refusal),
        },
    }
    if FILTERED.contains(&reason) {
        return refused("the service's content filter stopped the answer");
    }
    if OF_TOOLS.contains(&reason) {
        return Err(format!("expected an answer in words, found \"finish_reason\" {reason:?}"));
    }
    if BROKEN_OFF.contains(&reason) {
        return Err(format!("expected a whole answer, found \"finish_reason\" {reason:?}"));
    }
    let message = choice.get("message").filter(|message| message.is_object());
    let message = message.ok_or("expected an object \"message\" in the choice")?;
    let content = match words(message.get("content"))? {
        Some(content) => content,
        // All of the answer is a chain of thought; asked again it would be again.
        None if CUT.contains(&reason) || has_thought(message) => String::new(),
        None => return Err("expected \"content\" to be text".to_owned()),
    };
    // Some servers leave the stop text in. Those that cut it off say `stop` for it as for the end of the answer.
    let cut = generation.stop.iter().filter_map(|stop| content.find(stop.as_str())).min();
    let finish = match reason {
        _ if cut.is_some() => Finish::StopText,
        reason if CUT.contains(&reason) => Finish::Length,
        "stop" if !generation.stop.is_empty() => Finish::StopText,
        _ => Finish::EndToken,
    };
    let text = &content[..cut.unwrap_or(content.len())];
    let mut generated = Generated::text_only(text, finish);
    if generation.top_log_probs > 0 {
        generated.alternatives = alternatives::read(choice, text)?;
    }
    let size = |count: u64| usize::try_from(count).ok();
    generated.n_tokens = tokens.and_then(|tokens| size(tokens.completion));
    let mut reading = Reading::default();
    reading.prompt_tokens = tokens.and_then(|tokens| size(tokens.prompt));
    reading.generated = Some(generated);
    Ok(Outcome::Read(reading))
}

/// Whether a message has a chain of thought.
fn has_thought(message: &Value) -> bool {
    let is_some = |thought: &Value| match thought {
        Value::String(text) => !text.is_empty(),
        Value::Array(parts) => !parts.is_empty(),
        _ => false,
    };
    // Parts of a content without words among them are of thought.
    THOUGHTS.into_iter().chain(["content"]).filter_map(|field| message.get(field)).any(is_some)
}

/// At most the first [`SHOWN`] characters of a text.
fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
