//! A model that waits for the test, so that what is under way is known.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyper::StatusCode;
use judge_core::decision::{DecisionItem, DecisionJudge, DecisionSettings, Question, Questions};
use judge_core::testing::ScriptedBackbone;
use serde_json::{Map, Value, json};
use tokio::task::yield_now;

use super::{Bench, Desk, Limits, Seat};

/// Where a test and its model meet: the model says which state it reads, and waits to be let on.
struct Model {
    reads: Receiver<String>,
    go: Sender<()>,
}

/// A desk of so many places, and its model.
fn desk(queue: usize, answer: Duration) -> (Arc<Desk>, Model) {
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
    let limits = Limits { body: 1, read: answer, answer, connections: 1, queue };
    let bench = Arc::new(Bench { plain_name: "plain".to_owned(), plain: judge, named: Vec::new() });
    (Arc::new(Desk::new(model, bench, &limits)), Model { reads, go })
}

const LONG: Duration = Duration::from_secs(600);

fn item(state: &str) -> DecisionItem {
    of_options(state, 2)
}

fn of_options(state: &str, options: usize) -> DecisionItem {
    let criteria: Map<String, Value> = (0..options).map(|option| (format!("option {option}"), Value::Null)).collect();
    let question = Question::Choice { instructions: None, criteria };
    DecisionItem { state: json!(state), questions: Questions::one("which", question) }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(future)
}

/// A request that waits on the desk.
fn put(desk: &Arc<Desk>, state: &str) -> tokio::task::JoinHandle<Result<usize, (StatusCode, String)>> {
    let (desk, item) = (Arc::clone(desk), item(state));
    tokio::spawn(async move {
        let decided = desk.decide(item, Seat::Plain).await.map_err(|refused| (refused.status, refused.message()))?;
        assert!(decided.tokens > 0);
        Ok(decided.told.len())
    })
}

/// Lets tasks run until so many requests have a place.
async fn until_waiting(desk: &Desk, number: usize) {
    while desk.waiting() != number {
        yield_now().await;
    }
}

#[test]
fn a_full_desk_turns_away_and_a_place_that_is_given_up_is_free_at_once() {
    let (desk, model) = desk(2, LONG);
    block_on(async {
        let one = put(&desk, "one");
        until_waiting(&desk, 1).await;
        assert_eq!(model.reads.recv().unwrap(), "one", "a lone request starts at once");
        let two = put(&desk, "two");
        until_waiting(&desk, 2).await;
        let refused = desk.decide(item("three"), Seat::Plain).await.err().expect("no place");
        assert_eq!((refused.status, refused.retry_after), (StatusCode::TOO_MANY_REQUESTS, Some(1)));
        // Its client goes away while the model reads another one.
        two.abort();
        assert!(two.await.unwrap_err().is_cancelled());
        assert_eq!(desk.waiting(), 1);
        let four = put(&desk, "four");
        until_waiting(&desk, 2).await;
        model.go.send(()).unwrap();
        assert_eq!(one.await.unwrap(), Ok(1));
        model.go.send(()).unwrap();
        assert_eq!(four.await.unwrap(), Ok(1));
        assert_eq!(model.reads.try_iter().collect::<Vec<_>>(), ["four"], "the model read what was given up");
        assert_eq!(desk.waiting(), 0);
    });
}

#[test]
fn what_is_given_up_in_the_models_hands_stays_counted_there() {
    let (desk, model) = desk(1, LONG);
    block_on(async {
        let one = put(&desk, "one");
        until_waiting(&desk, 1).await;
        assert_eq!(model.reads.recv().unwrap(), "one");
        one.abort();
        let _ = one.await;
        // A place is free, but the only hand is not.
        let two = put(&desk, "two");
        until_waiting(&desk, 1).await;
        assert_eq!((desk.waiting(), desk.hands.available_permits()), (1, 0));
        model.go.send(()).unwrap();
        model.go.send(()).unwrap();
        assert_eq!(two.await.unwrap(), Ok(1));
        assert_eq!(desk.hands.available_permits(), 1);
    });
}

#[test]
fn a_request_whose_time_is_over_is_not_judged() {
    let (desk, model) = desk(3, Duration::from_millis(30));
    block_on(async {
        let one = put(&desk, "one");
        until_waiting(&desk, 1).await;
        assert_eq!(model.reads.recv().unwrap(), "one");
        let two = put(&desk, "two");
        for late in [one, two] {
            let (status, message) = late.await.unwrap().unwrap_err();
            assert!(status == StatusCode::GATEWAY_TIMEOUT && message.starts_with("no answer within"), "{message}");
        }
        assert_eq!(desk.waiting(), 0);
        // The model is let on, and answers who waits now, however often the time is over before that.
        drop(model.go);
        while put(&desk, "three").await.unwrap().is_err() {}
        assert!(!model.reads.try_iter().any(|state| state == "two"), "it was judged after its time");
    });
}

#[test]
fn a_model_that_fails_is_said_to_everybody() {
    let (desk, _model) = desk(3, LONG);
    block_on(async {
        let mut ended = desk.ended();
        assert!(ended.borrow().is_none());
        for state in ["broken", "two"] {
            let (status, message) = put(&desk, state).await.unwrap().unwrap_err();
            assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
            assert!(message.contains("the model answers no more") && message.contains("out of memory"), "{message}");
        }
        ended.changed().await.unwrap();
        assert!(ended.borrow().is_some());
    });
}

#[test]
fn a_question_without_an_answer_is_said_with_its_name() {
    let (desk, model) = desk(3, LONG);
    drop(model.go);
    block_on(async {
        let refused = desk.decide(of_options("one", 27), Seat::Plain).await.err().expect("too many options");
        assert_eq!(refused.status, StatusCode::BAD_REQUEST);
        let message = refused.message();
        assert!(message.starts_with("question \"which\": ") && message.contains("27 options"), "{message}");
    });
}
