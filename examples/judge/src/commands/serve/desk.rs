//! The bounded queue before the model.
//!
//! A request has a *place* from when it was read until it is answered or given up, and everybody without one is turned away. Of those with
//! a place, some are in the model's *hands*; what is there stays there until the model lets go of it, even if nobody waits for it any
//! more. So memory is bounded by both numbers, whatever clients do.

use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use judge_core::decision::DecisionItem;
use judge_core::runner::{JudgeQueue, QueueError};
use judge_core::{Outcome, Reason, TextModel, Unscored};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

use super::bench::{Bench, Brought, Seat, Told};
use super::refused::Refused;
use super::routes::Limits;

/// Requests in the model's hands at once: more than join one pass.
const HANDS: usize = 128;

/// Where requests wait for the model.
pub(super) struct Desk {
    queue: JudgeQueue<Brought>,
    bench: Arc<Bench>,
    places: Semaphore,
    most: usize,
    hands: Arc<Semaphore>,
    patience: Duration,
    /// Why the model answers no more, once it does not.
    ended: watch::Sender<Option<QueueError>>,
}

/// What became of a request.
pub(super) struct Decided {
    /// One for each question, in their order; all are answered.
    pub(super) told: Vec<Told>,
    /// Tokens of the prompts of all questions.
    pub(super) tokens: usize,
}

impl Decided {
    /// Has the answers say what share of the model's probability lay on the labels of the options.
    pub(super) fn add_label_mass(&mut self) {
        for Told { answered, beside } in &mut self.told {
            beside.insert("label_mass".to_owned(), answered.label_mass.into());
        }
    }
}

impl Desk {
    pub(super) fn new(model: impl TextModel + 'static, bench: Arc<Bench>, limits: &Limits) -> Self {
        Self {
            queue: JudgeQueue::start(model, vec![Box::new(Arc::clone(&bench))]),
            bench,
            places: Semaphore::new(limits.queue),
            most: limits.queue,
            hands: Arc::new(Semaphore::new(limits.queue.min(HANDS))),
            patience: limits.answer,
            ended: watch::Sender::new(None),
        }
    }

    /// How many requests wait or are judged.
    pub(super) fn waiting(&self) -> usize {
        self.most - self.places.available_permits()
    }

    /// Why the model answers no more.
    pub(super) fn ended(&self) -> watch::Receiver<Option<QueueError>> {
        self.ended.subscribe()
    }

    /// Has a judge answer a request. Whoever drops this gives up its place at once.
    pub(super) async fn decide(&self, item: DecisionItem, seat: Seat) -> Result<Decided, Refused> {
        let Ok(_place) = self.places.try_acquire() else {
            let msg = format!("all {} places are taken by requests that wait; try again later", self.most);
            return Err(Refused::new(StatusCode::TOO_MANY_REQUESTS, "queue_full", msg).retry_after(1));
        };
        timeout(self.patience, self.judged(item, seat)).await.unwrap_or_else(|_| {
            let msg = format!("no answer within {} seconds, the time that a request has", self.patience.as_secs());
            Err(Refused::new(StatusCode::GATEWAY_TIMEOUT, "timeout", msg))
        })
    }

    async fn judged(&self, item: DecisionItem, seat: Seat) -> Result<Decided, Refused> {
        let failed = |msg: String| Refused::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", msg);
        let hand = Arc::clone(&self.hands).acquire_owned().await.map_err(|error| failed(error.to_string()))?;
        let result = self.queue.submit(Brought { item, seat, _hand: hand }).await.map_err(|error| {
            self.ended.send_replace(Some(error.clone()));
            failed(format!("the model answers no more: {error}"))
        })?;
        let read = result.outcomes.iter().flatten().flatten();
        let tokens = read.filter_map(|outcome| match outcome {
            Outcome::Read(reading) => reading.prompt_tokens,
            Outcome::Unscored(_) => None,
        });
        let tokens = tokens.sum();
        let verdict = result.verdicts.first().ok_or_else(|| failed("no verdict".to_owned()))?;
        let told = self.bench.told(seat, &result.item.item.questions, verdict)?;
        match unanswered(&told) {
            Some(refused) => Err(refused),
            None => Ok(Decided { told, tokens }),
        }
    }
}

/// Why some questions have no answer, which no form of an answer can say.
fn unanswered(told: &[Told]) -> Option<Refused> {
    let answered = told.iter().map(|told| &told.answered);
    let missing: Vec<(&String, &Unscored)> =
        answered.filter_map(|question| Some((&question.name, question.answer.as_ref().err()?))).collect();
    let are = |reason: Reason| move |(_, unscored): &(&String, &Unscored)| unscored.reason == reason;
    let (status, kind) = match &missing[..] {
        [] => return None,
        all if all.iter().any(are(Reason::NonFinite)) => (StatusCode::INTERNAL_SERVER_ERROR, "not_answered"),
        all if all.iter().all(are(Reason::TooLong)) => (StatusCode::BAD_REQUEST, "context_length_exceeded"),
        _ => (StatusCode::BAD_REQUEST, "not_answered"),
    };
    let lines: Vec<String> = missing.iter().map(|(name, unscored)| format!("question {name:?}: {unscored}")).collect();
    Some(Refused::new(status, kind, lines.join("\n")))
}

#[cfg(test)]
mod tests;
