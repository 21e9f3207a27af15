//! A model that waits for the test, so that what is under way is known.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyper::StatusCode;
use judge_core::Backbone as _;
use judge_core::decision::{DecisionItem, DecisionJudge, DecisionSettings, Question, Questions};
use judge_core::testing::ScriptedBackbone;
use serde_json::{Map, Value, json};
use tokio::task::{JoinHandle, yield_now};

use super::{Brought, Client, Decided, Decision, Handler, Limits, Refusal, Registry, RequestQueue};
use crate::reranker::NextTokens;
use crate::shares::Percent;
use crate::state::State;

/// Where a test and its model meet: the model says which state it reads, and waits to be let on.
struct Model {
    reads: Receiver<String>,
    go: Sender<()>,
}

/// A queue of so many places, and its model.
fn queue(queue: usize, answer: Duration) -> (Arc<RequestQueue>, Model) {
    shared_queue(queue, answer, 100)
}

/// One of which a client has at most so many per cent.
fn shared_queue(queue: usize, answer: Duration, share: u8) -> (Arc<RequestQueue>, Model) {
    let (say, reads) = mpsc::channel();
    let (go, gone) = mpsc::channel();
    let (say, gone) = (Mutex::new(say), Mutex::new(gone));
    let model = ScriptedBackbone::new(1).with_logits(move |before, _, label| {
        if label == 'A' {
            let state = ["one", "two", "three", "four", "broken"].into_iter().find(|state| before.contains(state));
            let state = state.expect("a state of these tests");
            assert!(state != "broken", "out of memory");
            // A test that has ended lets everything on.
            let _ = say.lock().expect("one thread").send(state.to_owned());
            let _ = gone.lock().expect("one thread").recv();
        }
        0.0
    });
    let judge = DecisionJudge::new(DecisionSettings::default(), &model).expect("a judge");
    let limits = Limits {
        queue,
        queue_bytes: 1,
        client_share: Percent(share),
        connections: 1,
        max_body: 1,
        max_prompt_bytes: 1 << 20,
        timeout: answer,
        read_timeout: answer,
    };
    let (plain_name, info) = ("plain".to_owned(), model.info().clone());
    let registry = Registry { plain_name, plain: Some(judge), reranker: None, model: info, named: Vec::new() };
    let registry = Arc::new(registry);
    (Arc::new(RequestQueue::new(model, registry, &limits)), Model { reads, go })
}

const LONG: Duration = Duration::from_secs(600);

fn item(state: &str) -> DecisionItem {
    of_options(state, 2)
}

fn of_options(state: &str, options: usize) -> DecisionItem {
    let criteria: Map<String, Value> = (0..options).map(|option| (format!("option {option}"), Value::Null)).collect();
    let question = Question::Choice { instructions: None, criteria };
    DecisionItem { state: json!(state), questions: Questions::one("which", question).expect("options") }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(future)
}

fn client(number: u8) -> Client {
    Client::of([127, 0, 0, number].into())
}

async fn decide(queue: &RequestQueue, of: Client, item: DecisionItem) -> Result<Decided, Refusal> {
    let read = || Ok((Decision { item, handler: Handler::Plain, state: State::Other }, ()));
    queue.decide(of, 0, read).await.map(|(.., decided)| decided)
}

/// How many questions are answered, or the refusal.
type Put = JoinHandle<Result<usize, (StatusCode, String)>>;

/// A request that waits in the queue.
fn put(queue: &Arc<RequestQueue>, state: &str) -> Put {
    put_of(queue, client(1), item(state))
}

fn put_of(queue: &Arc<RequestQueue>, of: Client, item: DecisionItem) -> Put {
    let queue = Arc::clone(queue);
    tokio::spawn(async move {
        let decided = decide(&queue, of, item).await.map_err(|refused| (refused.status, refused.message()))?;
        assert!(decided.tokens > 0);
        Ok(decided.told.len())
    })
}

/// Lets tasks run until so many requests have a place.
async fn until_waiting(queue: &RequestQueue, number: usize) {
    while queue.waiting() != number {
        yield_now().await;
    }
}

#[test]
fn a_full_queue_turns_away_and_a_place_that_is_given_up_is_free_at_once() {
    let (queue, model) = queue(2, LONG);
    block_on(async {
        let one = put(&queue, "one");
        until_waiting(&queue, 1).await;
        assert_eq!(model.reads.recv().unwrap(), "one", "a lone request starts at once");
        let two = put(&queue, "two");
        until_waiting(&queue, 2).await;
        let refused = decide(&queue, client(1), item("three")).await.err().expect("no place");
        assert_eq!((refused.status, refused.retry_after), (StatusCode::TOO_MANY_REQUESTS, Some(1)));
        // Its client goes away while the model reads another one.
        two.abort();
        assert!(two.await.unwrap_err().is_cancelled());
        assert_eq!(queue.waiting(), 1);
        let four = put(&queue, "four");
        until_waiting(&queue, 2).await;
        model.go.send(()).unwrap();
        assert_eq!(one.await.unwrap(), Ok(1));
        model.go.send(()).unwrap();
        assert_eq!(four.await.unwrap(), Ok(1));
        assert_eq!(model.reads.try_iter().collect::<Vec<_>>(), ["four"], "the model read what was given up");
        assert_eq!(queue.waiting(), 0);
    });
}

#[test]
fn what_is_given_up_in_the_models_hands_stays_counted_there() {
    let (queue, model) = queue(1, LONG);
    block_on(async {
        let one = put(&queue, "one");
        until_waiting(&queue, 1).await;
        assert_eq!(model.reads.recv().unwrap(), "one");
        one.abort();
        let _ = one.await;
        // A place is free, but the only slot is not.
        let two = put(&queue, "two");
        until_waiting(&queue, 1).await;
        assert_eq!((queue.waiting(), queue.in_model()), (1, 1));
        model.go.send(()).unwrap();
        model.go.send(()).unwrap();
        assert_eq!(two.await.unwrap(), Ok(1));
        assert_eq!(queue.in_model(), 0);
    });
}

#[test]
fn a_request_whose_time_is_over_is_not_judged() {
    let (queue, model) = queue(3, Duration::from_millis(30));
    block_on(async {
        let one = put(&queue, "one");
        until_waiting(&queue, 1).await;
        assert_eq!(model.reads.recv().unwrap(), "one");
        let two = put(&queue, "two");
        for late in [one, two] {
            let (status, message) = late.await.unwrap().unwrap_err();
            assert!(status == StatusCode::GATEWAY_TIMEOUT && message.starts_with("no answer within"), "{message}");
        }
        assert_eq!(queue.waiting(), 0);
        // The model is let on, and answers who waits now, however often the time is over before that.
        drop(model.go);
        while put(&queue, "three").await.unwrap().is_err() {}
        assert!(!model.reads.try_iter().any(|state| state == "two"), "it was judged after its time");
    });
}

#[test]
fn a_panic_is_said_to_its_own_request_and_a_model_that_always_panics_to_everybody() {
    let (queue, model) = queue(3, LONG);
    drop(model.go);
    block_on(async {
        let mut ended = queue.ended();
        let panicked = "a panic while the item was judged: out of memory";
        let over = "the model answers no more: the queue ended with a panic: out of memory";
        for (state, words) in [
            ("broken", panicked),
            ("broken", panicked),
            ("one", ""),
            ("broken", panicked),
            ("broken", panicked),
            ("broken", over),
            ("two", over),
        ] {
            assert_eq!(ended.borrow().is_some(), state == "two");
            let answer = put(&queue, state).await.unwrap();
            if words.is_empty() {
                assert_eq!(answer, Ok(1));
            } else {
                assert_eq!(answer, Err((StatusCode::INTERNAL_SERVER_ERROR, words.to_owned())));
            }
        }
        ended.changed().await.unwrap();
    });
}

/// So many questions, of two options each, about a state of so many bytes.
fn many(state: &str, bytes: usize, questions: usize) -> DecisionItem {
    let named = |number: usize| {
        // Equal questions would share a pass.
        let criteria = [("a", Value::Null), ("b", Value::Null)].map(|(name, value)| (name.to_owned(), value));
        let instructions = Some(json!(format!("Question {number}")));
        (number.to_string(), Question::Choice { instructions, criteria: Map::from_iter(criteria) })
    };
    let questions = Questions::new((0..questions).map(named)).expect("questions");
    DecisionItem { state: json!(state.to_owned() + &" x".repeat(bytes / 2)), questions }
}

// https://github.com/ggml-org/llama.cpp/pull/24496: clients that hang up, and what they asked keeps the model.
#[test]
fn a_client_that_hangs_up_on_many_questions_costs_no_more_than_the_pass_that_runs() {
    let (queue, model) = queue(3, LONG);
    block_on(async {
        let long = put_of(&queue, client(1), many("one", 2000, 400));
        until_waiting(&queue, 1).await;
        assert_eq!(model.reads.recv().unwrap(), "one");
        long.abort();
        let _ = long.await;
        let short = put(&queue, "two");
        until_waiting(&queue, 1).await;
        drop(model.go);
        assert_eq!(short.await.unwrap(), Ok(1));
        let reads: Vec<String> = model.reads.try_iter().collect();
        assert_eq!(reads.iter().filter(|state| *state == "one").count(), 63, "of 399 questions that were left");
        assert_eq!(reads.last().map(String::as_str), Some("two"));
        assert_eq!(queue.in_model(), 0);
    });
}

#[test]
fn one_client_gets_its_share_of_places_and_of_the_model() {
    let (queue, model) = shared_queue(4, LONG, 50);
    block_on(async {
        let first = ["one", "four"].map(|state| put_of(&queue, client(1), many(state, 0, 100)));
        until_waiting(&queue, 2).await;
        assert_eq!(model.reads.recv().unwrap(), "one");
        let (status, message) = put(&queue, "two").await.unwrap().unwrap_err();
        assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
        assert!(message.contains("all 2 places of waiting requests that one client may have"), "{message}");
        // Somebody else is answered after the pass that runs, before the rest.
        let other = put_of(&queue, client(2), item("three"));
        until_waiting(&queue, 3).await;
        drop(model.go);
        assert_eq!(other.await.unwrap(), Ok(1));
        for first in first {
            assert_eq!(first.await.unwrap(), Ok(100));
        }
        let reads: Vec<String> = model.reads.try_iter().collect();
        assert_eq!(reads.iter().position(|state| state == "three"), Some(63));
    });
}

#[test]
fn texts_are_refused_by_their_length_before_they_are_joined() {
    let (queue, model) = queue(1, LONG);
    block_on(async {
        let (query, items) = ("one ".repeat(250_000), vec!["x".to_owned(); 2]);
        let next = NextTokens { query, items, item_first: false, tokens: vec![1], among: true };
        let read = || Ok((Brought::Tokens(next), ()));
        let refused = queue.answer(client(1), 0, read).await.err().expect("too much");
        assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
        assert!(refused.message().contains("have 2000002 bytes"), "{}", refused.message());
        let refused = decide(&queue, client(1), many("one", 100_000, 11)).await.err().expect("too much");
        assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
        assert!(refused.message().contains("is read 11 times"), "{}", refused.message());
        assert!(model.reads.try_recv().is_err() && queue.waiting() == 0);
    });
}

#[test]
fn a_question_without_an_answer_is_said_with_its_name() {
    let (queue, model) = queue(3, LONG);
    drop(model.go);
    block_on(async {
        let refused = decide(&queue, client(1), of_options("one", 27)).await.err().expect("too many options");
        assert_eq!(refused.status, StatusCode::BAD_REQUEST);
        let message = refused.message();
        assert!(message.starts_with("question \"which\": ") && message.contains("27 options"), "{message}");
    });
}
