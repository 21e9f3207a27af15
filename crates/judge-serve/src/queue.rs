//! The bounded queue before the model.
//!
//! ```text
//! place    from the end of a request's body to its answer, or until it is given up; whoever gets none is turned away
//!   slot     waited for, in the client's line and then in everybody's: until the model lets go of the request
//!     parser   while the body is parsed, which is kept as bytes until then, and until there is memory
//!     memory   for what the model's judges make of it: prompts, and the parsed state
//! ```
//!
//! Of all four a client gets its share and no more. So memory is bounded, and nobody's, whatever clients do.

use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use judge_core::rerank::RerankItem;
use judge_core::runner::{JudgeQueue, QueueError};
use judge_core::{ItemResult, Reason, TextModel, Unscored};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::limits::Limits;
use super::refusal::Refusal;
use super::registry::{AnsweredQuestion, Brought, Decision, Handler, QueuedRequest, Registry};
use super::reranker::tokens_of;
use super::shares::{Client, Lack, Lines};

/// Requests that the model has at once: more than join one pass.
const IN_FLIGHT: usize = 128;

/// Bodies that are parsed at once, or parsed and waiting for memory.
const PARSERS: usize = 4;

/// Bytes of prompts and of parsed states that the model has at once; whoever needs more than its share of them has it alone.
const MEMORY: usize = 1 << 26;

/// What a value takes besides its text, roughly: its place in a list or an object, with what these keep free.
const BYTES_PER_VALUE: usize = 80;

/// A body of fewer bytes is parsed where it is; a longer one on a thread of its own, so that nobody else waits for it.
const PARSED_AT_ONCE: usize = 1 << 14;

/// Where requests wait for the model.
pub(super) struct RequestQueue {
    queue: JudgeQueue<QueuedRequest>,
    registry: Arc<Registry>,
    places: Lines,
    in_flight: Lines,
    parsers: Lines,
    memory: Lines,
    /// Most bytes of the states of all prompts of a request.
    prompt_bytes: usize,
    answer_within: Duration,
    /// Why the model answers no more, once it does not.
    ended: watch::Sender<Option<QueueError>>,
}

/// What became of a request.
pub(super) struct Decided {
    /// One for each question, in their order; all are answered.
    pub(super) told: Vec<AnsweredQuestion>,
    /// Tokens of the prompts of all questions.
    pub(super) tokens: usize,
}

impl Decided {
    /// Has the answers say what share of the model's probability lay on the labels of the options.
    pub(super) fn add_label_mass(&mut self) {
        for AnsweredQuestion { answered, beside } in &mut self.told {
            beside.insert("label_mass".to_owned(), answered.label_mass.into());
        }
    }
}

/// A request for which there is no room: 429.
pub(super) fn queue_full(what: &str, lack: Lack) -> Refusal {
    let msg = format!("{}; try again later", lack.of(&format!("{what} of waiting requests")));
    Refusal::new(StatusCode::TOO_MANY_REQUESTS, "queue_full", msg).retry_after(1)
}

impl RequestQueue {
    pub(super) fn new(model: impl TextModel + 'static, registry: Arc<Registry>, limits: &Limits) -> Self {
        let share = limits.client_share;
        Self {
            queue: JudgeQueue::start(model, vec![Box::new(Arc::clone(&registry))]),
            registry,
            places: Lines::new(limits.queue, share),
            in_flight: Lines::new(limits.queue.min(IN_FLIGHT), share),
            parsers: Lines::new(PARSERS, share),
            memory: Lines::new(MEMORY, share),
            prompt_bytes: limits.max_prompt_bytes,
            answer_within: limits.timeout,
            ended: watch::Sender::new(None),
        }
    }

    /// How many requests wait or are judged.
    pub(super) fn waiting(&self) -> usize {
        self.places.held()
    }

    /// How many requests the model has, given up or not.
    pub(super) fn in_model(&self) -> usize {
        self.in_flight.held()
    }

    /// Why the model answers no more.
    pub(super) fn ended(&self) -> watch::Receiver<Option<QueueError>> {
        self.ended.subscribe()
    }

    /// From now on, nobody waits for the model at the end.
    pub(super) fn detach(&self) {
        self.queue.detach();
    }

    /// Has a judge answer a request's questions, whose body of so many bytes `read` parses, beside what the answer is written with. Whoever
    /// drops this gives up its place at once.
    pub(super) async fn decide<Form: Send + 'static>(
        &self,
        client: Client,
        bytes: usize,
        read: impl FnOnce() -> Result<(Decision, Form), Refusal> + Send + 'static,
    ) -> Result<(Form, Handler, Decided), Refusal> {
        let read = move || read().map(|(decision, form)| (Brought::Decision(decision), form));
        let (form, result) = self.answer(client, bytes, read).await?;
        let Brought::Decision(Decision { item, handler, .. }) = &result.item.brought else {
            return Err(Refusal::failed("no questions"));
        };
        let verdict = result.verdicts.first().ok_or_else(|| Refusal::failed("no verdict"))?;
        let told = self.registry.told(*handler, &item.questions, verdict)?;
        match unanswered(&told) {
            Some(refused) => Err(refused),
            None => Ok((form, *handler, Decided { told, tokens: tokens_of(&result) })),
        }
    }

    /// What the model says of a request, whose body of so many bytes `read` parses. Whoever drops this gives up its place at once.
    pub(super) async fn answer<Form: Send + 'static>(
        &self,
        client: Client,
        bytes: usize,
        read: impl FnOnce() -> Result<(Brought, Form), Refusal> + Send + 'static,
    ) -> Result<(Form, ItemResult<QueuedRequest>), Refusal> {
        let _place = self.places.try_take(client, 1).map_err(|lack| queue_full("places", lack))?;
        timeout(self.answer_within, self.judged(client, bytes, read)).await.unwrap_or_else(|_| {
            let msg = format!("no answer within {} seconds, the time that a request has", self.answer_within.as_secs());
            Err(Refusal::new(StatusCode::GATEWAY_TIMEOUT, "timeout", msg))
        })
    }

    async fn judged<Form: Send + 'static>(
        &self,
        client: Client,
        bytes: usize,
        read: impl FnOnce() -> Result<(Brought, Form), Refusal> + Send + 'static,
    ) -> Result<(Form, ItemResult<QueuedRequest>), Refusal> {
        let slot = self.in_flight.take(client, 1).await.map_err(Refusal::failed)?;
        let parser = self.parsers.take(client, 1).await.map_err(Refusal::failed)?;
        let (parser, read) = match bytes {
            ..PARSED_AT_ONCE => (parser, read()),
            // Given up in between, it is parsed to its end.
            _ => spawn_blocking(move || (parser, read())).await.map_err(Refusal::failed)?,
        };
        let (brought, form) = read?;
        let needed = self.needed(&brought)?;
        let memory = self.memory.take(client, needed).await.map_err(Refusal::failed)?;
        drop(parser);
        let brought = QueuedRequest { brought, _held: [slot, memory] };
        let result = self.queue.submit_from(client.number(), brought).await.map_err(|error| match error {
            QueueError::ItemPanicked { .. } => Refusal::failed(error),
            error => {
                self.ended.send_replace(Some(error.clone()));
                Refusal::failed(format!("the model answers no more: {error}"))
            }
        })?;
        Ok((form, result))
    }

    /// The bytes that a request needs while the model has it, unless its prompts have too many.
    fn needed(&self, brought: &Brought) -> Result<usize, Refusal> {
        let most = self.prompt_bytes;
        let too_long = |msg: String| Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "prompts_too_long", msg);
        let (all, values) = match brought {
            Brought::Decision(decision) => {
                let Size { text, values } = size(&decision.item.state);
                let prompts = self.registry.prompts(decision);
                let all = text.saturating_mul(prompts);
                if all > most {
                    return Err(too_long(format!(
                        "the state has {text} bytes and is read {prompts} times, once for each question or criterion: {all} bytes, and \
                        the limit here is {most}; ask fewer at once"
                    )));
                }
                (all, values)
            }
            Brought::Documents { items, .. } => {
                let of = |item: &RerankItem| {
                    item.documents
                        .iter()
                        .flatten()
                        .map(|text| text.len().saturating_add(item.query.len()))
                        .sum::<usize>()
                };
                (items.iter().map(of).sum(), items.iter().map(|item| item.documents.len()).sum())
            }
            Brought::Tokens(tokens) => (tokens.bytes(), tokens.items.len()),
        };
        if all > most {
            return Err(too_long(format!(
                "the documents, each with its query, have {all} bytes, and the limit here is {most}; send fewer at once"
            )));
        }
        Ok(all.saturating_add(values.saturating_mul(BYTES_PER_VALUE)).max(1))
    }
}

/// How large a value is.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    /// Bytes of its text, roughly.
    text: usize,
    /// The values in it, itself included.
    values: usize,
}

fn size(value: &Value) -> Size {
    let all = |sizes: &mut dyn Iterator<Item = Size>| {
        sizes.fold(Size { text: 2, values: 1 }, |all, one| Size {
            text: all.text + one.text + 1,
            values: all.values + one.values,
        })
    };
    match value {
        Value::String(text) => Size { text: text.len(), values: 1 },
        Value::Array(list) => all(&mut list.iter().map(size)),
        Value::Object(fields) => all(&mut fields.iter().map(|(name, value)| {
            let Size { text, values } = size(value);
            Size { text: text + name.len() + 3, values: values + 1 }
        })),
        other => Size { text: other.to_string().len(), values: 1 },
    }
}

/// Why some questions have no answer, which no form of an answer can say.
fn unanswered(told: &[AnsweredQuestion]) -> Option<Refusal> {
    let answered = told.iter().map(|told| &told.answered);
    let missing: Vec<(&String, &Unscored)> =
        answered.filter_map(|question| Some((&question.name, question.answer.as_ref().err()?))).collect();
    let reasons: Vec<Reason> = missing.iter().map(|(_, unscored)| unscored.reason).collect();
    let lines: Vec<String> = missing.iter().map(|(name, unscored)| format!("question {name:?}: {unscored}")).collect();
    (!missing.is_empty()).then(|| Refusal::not_answered(&reasons, lines.join("\n")))
}

#[cfg(test)]
mod tests;
