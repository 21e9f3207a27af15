//! [`ApiModel`]: takes requests from an exchange, sends each on a thread of its own, retries what
//! failed for a while, and gives outcomes as they come.
//!
//! This file owns the order of events only. What is sent is made in `wire`, what comes back is read
//! in `answer`, waits are bounded in `gate` and chosen in `backoff`.
//!
//! ```text
//! attempt 1..=max_attempts:
//!     gate.enter                  waits for a place and for the pace; ends if the run is over
//!     transport.post              the place is held until the answer is read, and then given back
//!     an outcome             ─►   done
//!     a final failure        ─►   its row is unscored, or the run ends, as ApiProblem::is_rows says
//!     a transient failure    ─►   the last attempt, or Retry-After above the bound: a final failure
//!                                 else wait max(backoff, Retry-After), without a place, and try again
//! ```
//!
//! A run is one call of `serve`. Its threads are not joined: when it ends, a flag tells those that
//! wait to give up, and answers that still come find nobody listening. Limits and counts belong to
//! the model, so runs that go on at the same time share them.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use judge_core::{
    Outcome, Reason, TextModel, Unscored,
    model::{BackboneError, Exchange, ModelIdentity},
};

use super::answer::{self, Answer};
use super::gate::Gate;
use super::problem::ApiError;
use super::transport::Transport;
use super::usage::Counters;
use super::wire::{self, Call};
use super::{ApiProblem, ApiSettings, ApiUsage, backoff};

/// How many names are kept of those with which a service says it answered. A service that invents a
/// name for each answer cannot fill memory.
const MOST_NAMES: usize = 16;

/// A model behind a service that speaks OpenAI's chat-completions API. It writes text; what cannot
/// be had from outside is [`BackboneError::Unsupported`], raw prompts among it. With another [`ApiRoute`](super::ApiRoute) it
/// answers decisions, and only raw prompts are sent.
///
/// Requests are sent as [`ApiSettings`] allow, many at a time; each outcome is given as it comes
/// and depends on its own request alone.
///
/// | what happens | what becomes of it |
/// |---|---|
/// | a closed connection, no complete answer in time, status 408, 409, 425, 499 or 5xx, an answer that is too long or no chat completion, or that ended by a fault of the service | sent again after a wait, at least as long as `Retry-After` asks; when all attempts have failed, [`Reason::NoAnswer`](judge_core::Reason::NoAnswer) |
/// | status 400 or 422, a call of a tool instead of words | [`Reason::NoAnswer`](judge_core::Reason::NoAnswer) with what the service says, at once |
/// | ten requests in a row with `NoAnswer` | the run ends, before more is spent; those of them whose attempts all failed are asked again by a run that is resumed |
/// | no connection, status 429 | sent again in the same way; when all attempts have failed, the run ends |
/// | any other status, a redirect, a quota that is used up | the run ends |
/// | no words because the limit of tokens was reached, or nothing but a thought | the reading of an empty text |
/// | a prompt that is too long for the model | [`Reason::TooLong`](judge_core::Reason::TooLong) |
/// | a refusal, a content filter, what moderation found (status 403 or 451 too) | [`Reason::Refused`](judge_core::Reason::Refused) |
/// | any text, whether it is of use to a judge or not | the reading; it is never asked for again, which would change what is measured |
///
/// If a request has stop texts, a service's `stop` as the reason for the end of an answer is taken
/// for one of them, because most services do not tell a stop text and the model's own end apart.
///
/// ```
/// use judge_core::{prompted::{PromptFamily, WrittenJudge}, Runner};
/// use judge_hub::api::{ApiKey, ApiModel, ApiSettings, Prices};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let key = ApiKey::new("no-secret")?; // or ApiKey::from_env("MY_KEY")?
/// let model = ApiModel::new(ApiSettings {
///     base_url: "http://127.0.0.1:9/v1".into(),
///     model: "some-model".into(),
///     key: Some(key),
///     max_attempts: 1,
///     ..ApiSettings::default()
/// })?;
/// let judge = WrittenJudge::new(PromptFamily::built_in_on("single-json", Some(5))?);
/// let item = [("instruction", "2 + 2?"), ("response", "4")];
/// let result = Runner::new(&model, vec![&judge]).collect([("sum".into(), item)]);
/// assert!(result.is_err(), "nobody listens on port 9");
/// let usage = model.usage(); // at any time, also while it runs
/// println!("{} requests, {:.4}", usage.requests, usage.cost(&Prices { input: 0.15, output: 0.6 }));
/// # Ok(())
/// # }
/// ```
pub struct ApiModel {
    /// Shared with the threads of requests, which may outlive a run and the model.
    inner: Arc<Inner>,
}

/// What a model's threads share, over all of its runs.
struct Inner {
    /// Checked by `ApiSettings::endpoint` before this was made.
    settings: ApiSettings,
    /// Sends to the settings' address.
    transport: Transport,
    /// Bounds requests in flight and per minute.
    gate: Gate,
    /// What [`ApiModel::usage`] shows.
    counters: Counters,
    /// The models that the service says it answered with; at most [`MOST_NAMES`].
    names: Mutex<BTreeSet<String>>,
}

/// How often a run whose requests all wait asks whether it is to go on.
const LOOK: Duration = Duration::from_millis(200);

/// How many requests in a row may get no answer before the run ends. They are counted as they come back.
const FAILED_IN_A_ROW: usize = 10;

/// One run. When it is dropped, however `serve` returns, the requests that still wait on its behalf
/// give up.
struct RunGuard {
    /// The model's shared part.
    inner: Arc<Inner>,
    /// Set when the run is over. Each of its threads looks at it before it sends and while it
    /// waits.
    over: Arc<AtomicBool>,
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        self.inner.gate.end(&self.over);
    }
}

impl ApiModel {
    /// A client for the service. Nothing is sent yet.
    ///
    /// # Errors
    /// [`ApiError::Service`] for settings that cannot work, and for a variable of the environment that should name a proxy or certificates
    /// and does not.
    pub fn new(settings: ApiSettings) -> Result<Self, ApiError> {
        let transport = Transport::new(settings.endpoint()?, &settings)?;
        let gate = Gate::new(settings.concurrency, settings.requests_per_minute, settings.tokens_per_minute);
        let (counters, names) = (Counters::default(), Mutex::default());
        Ok(Self { inner: Arc::new(Inner { settings, transport, gate, counters, names }) })
    }

    /// What was asked of the service so far, by all runs.
    pub fn usage(&self) -> ApiUsage {
        self.inner.counters.now()
    }

    /// The models that the service says it answered with so far, in its own words and sorted: a
    /// version, as a rule. Sixteen at most.
    pub fn stated_models(&self) -> Vec<String> {
        self.inner.names.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

impl TextModel for ApiModel {
    /// The name that was asked for. Its revision is the name that the service answered with, if
    /// that was the same each time, and `None` before the first answer.
    fn identity(&self) -> ModelIdentity {
        let mut identity = ModelIdentity::named(&self.inner.settings.model);
        if let [revision] = &self.stated_models()[..] {
            identity.revision = Some(revision.clone());
        }
        identity
    }

    /// `None`: a service does not show its tokenizer.
    fn tokens_in(&self, _: &str) -> Option<usize> {
        None
    }

    /// Keeps up to `concurrency` requests open, those that wait for another attempt included, and
    /// takes more as outcomes leave. Returns when the exchange has no more requests and all
    /// outcomes are given, or when a receiver breaks off, which it may also do while all requests wait.
    ///
    /// # Errors
    /// [`BackboneError::Unsupported`] and [`BackboneError::Request`] for a request that cannot be
    /// sent as it is; [`BackboneError::Failed`] for the first final failure of any request. The
    /// other requests in flight are given up then.
    ///
    /// # Panics
    /// If the thread of a request panicked, with its panic.
    fn serve(&self, exchange: &mut dyn Exchange) -> Result<(), BackboneError> {
        let run = RunGuard { inner: self.inner.clone(), over: Arc::default() };
        let (send, receive) = mpsc::channel();
        let (mut open, mut next, mut failed) = (0, 0, 0);
        // Requests whose attempts all failed, until another one has an answer: if the service is down, that is no fault of theirs.
        let mut unanswered: Vec<(usize, Unscored)> = Vec::new();
        loop {
            let room = self.inner.settings.concurrency - open;
            let mut gave = false;
            for request in if room > 0 { exchange.take(room) } else { Vec::new() } {
                let number = next;
                next += 1;
                match wire::call(&request, number, &self.inner.settings)? {
                    Ok(call) => {
                        run.spawn(number, call, send.clone()).map_err(|source| {
                            BackboneError::Model(Box::new(ApiError::Threads { source: source.into() }))
                        })?;
                        open += 1;
                    }
                    Err(unscored) => {
                        gave = true;
                        if exchange.give(number, Outcome::Unscored(unscored)).is_break() {
                            return Ok(());
                        }
                    }
                }
            }
            if gave {
                continue; // what was given may have led to more requests
            }
            let mut sent = None;
            while open > 0 && sent.is_none() {
                sent = receive.recv_timeout(LOOK).ok();
                if sent.is_none() && self.inner.gate.is_idle() {
                    // An answer may have come since.
                    sent = receive.try_recv().ok();
                    if sent.is_none() && exchange.wait().is_break() {
                        return Ok(());
                    }
                }
            }
            let Some((number, outcome)) = sent else {
                if unanswered.is_empty() || give_all(&mut unanswered, exchange).is_break() {
                    return Ok(());
                }
                continue; // what was given may have led to more requests
            };
            open -= 1;
            let outcome = outcome.unwrap_or_else(|panic| resume_unwind(panic));
            let outcome = match outcome {
                Ok(outcome) => {
                    failed = 0;
                    if give_all(&mut unanswered, exchange).is_break() {
                        return Ok(());
                    }
                    outcome
                }
                Err(problem) => {
                    failed += 1;
                    let problem = match problem {
                        problem if !problem.is_rows() => problem,
                        last if failed == FAILED_IN_A_ROW => ApiProblem::InARow { count: failed, last: Box::new(last) },
                        problem => {
                            let may_be_the_services = matches!(problem, ApiProblem::Exhausted { .. });
                            let unscored = Unscored::new(Reason::NoAnswer, problem.to_string());
                            if may_be_the_services {
                                unanswered.push((number, unscored));
                            } else if exchange.give(number, Outcome::Unscored(unscored)).is_break() {
                                return Ok(());
                            }
                            continue;
                        }
                    };
                    let url = self.inner.transport.url();
                    let source = Box::new(ApiError::Service { url, problem });
                    return Err(BackboneError::Failed { request: number, source });
                }
            };
            if exchange.give(number, outcome).is_break() {
                return Ok(());
            }
        }
    }
}

/// Gives these requests' outcomes, which are taken out.
fn give_all(unanswered: &mut Vec<(usize, Unscored)>, exchange: &mut dyn Exchange) -> ControlFlow<()> {
    unanswered.drain(..).try_for_each(|(number, unscored)| exchange.give(number, Outcome::Unscored(unscored)))
}

/// What a request's thread sends back: the request's number, and its outcome unless the thread
/// panicked.
type Sent = (usize, thread::Result<Result<Outcome, ApiProblem>>);

impl RunGuard {
    /// Asks on a thread of its own. The thread is not waited for when the run is over: an answer
    /// that nobody wants may take as long as the timeout. Fails if the system has no thread left.
    fn spawn(&self, number: usize, call: Call, send: mpsc::Sender<Sent>) -> std::io::Result<()> {
        let (inner, over) = (self.inner.clone(), self.over.clone());
        let ask = move || {
            let asked = catch_unwind(AssertUnwindSafe(|| inner.ask(number, &call, &over)));
            if let Some(outcome) = asked.transpose() {
                let _ = send.send((number, outcome)); // nobody listens if the run is over
            }
        };
        thread::Builder::new().name("judge-api".to_owned()).spawn(ask).map(drop)
    }
}

impl Inner {
    /// Sends request number `number` of a run until it is answered or its failure is final; `None`
    /// if the run is over first.
    fn ask(&self, number: usize, call: &Call, over: &AtomicBool) -> Option<Result<Outcome, ApiProblem>> {
        let ApiSettings { max_attempts, max_retry_after, .. } = self.settings;
        let failed = |problem| Some(Err(problem));
        let mut attempt = 1;
        loop {
            let mut permit = self.gate.enter(call.tokens, over)?;
            self.counters.sent(attempt > 1);
            let (problem, is_transient, retry_after) = match self.transport.post(&call.body) {
                Err(problem) => {
                    let is_transient = problem.is_transient();
                    (problem, is_transient, None)
                }
                Ok(response) => {
                    let answer =
                        answer::read(&response, self.settings.route, &call.generation, self.settings.key.as_ref());
                    let Answer { result, is_transient, tokens, model } = answer;
                    if (200..300).contains(&response.status) {
                        self.counters.answered(tokens);
                        tokens.inspect(|tokens| permit.settle(tokens.prompt.saturating_add(tokens.completion)));
                        self.note(model);
                    }
                    match result {
                        Ok(outcome) => return Some(Ok(outcome)),
                        Err(problem) => (problem, is_transient, response.retry_after),
                    }
                }
            };
            drop(permit);
            if !is_transient {
                return failed(problem);
            }
            if attempt == max_attempts {
                return failed(ApiProblem::Exhausted { attempts: attempt, last: Box::new(problem) });
            }
            if let Some(asked) = retry_after {
                if asked > max_retry_after {
                    let last = Box::new(problem);
                    return failed(ApiProblem::RetryAfter { asked, most: max_retry_after, last });
                }
                self.gate.pause(asked); // a service that asks one request to wait asks all
            }
            let wait = backoff::wait(self.settings.backoff, self.settings.max_backoff, number, attempt);
            self.gate.wait(wait.max(retry_after.unwrap_or_default()), over)?;
            attempt += 1;
        }
    }

    /// Keeps the name with which the service says it answered, while there is room for another.
    fn note(&self, model: Option<String>) {
        let Some(name) = model else { return };
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if names.len() < MOST_NAMES {
            names.insert(name);
        }
    }
}
