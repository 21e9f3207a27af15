//! A model that takes requests as it has room for them.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use judge_core::{
    Layer, Outcome, Request, TextModel, Want,
    model::{BackboneError, Exchange},
    request::Pooling,
};
use judge_models::{LoadOptions, Model};

use crate::common::{fixtures, raw};

fn model(max_batch_tokens: usize) -> Model {
    let options = LoadOptions { max_batch_tokens: Some(max_batch_tokens), ..LoadOptions::default() };
    Model::load(fixtures().join("families/llama-off"), &options).unwrap()
}

fn request(words: usize) -> Request {
    let prompt = raw(&vec!["ba"; words].join(" "));
    Request { prompt, want: Want { pooled: vec![(Layer(0), Pooling::Last)], ..Want::default() } }
}

/// Requests that wait, of which an answer may make more.
struct Counting {
    waiting: VecDeque<Request>,
    taken: usize,
    /// Numbers of those that were taken and not answered.
    open: Vec<usize>,
    most_open: usize,
    answered: usize,
    /// Requests that the next answers make.
    more: VecDeque<Request>,
    /// Answers after which it breaks off.
    enough: usize,
}

impl Counting {
    fn new(waiting: Vec<Request>) -> Self {
        let (open, more) = (Vec::new(), VecDeque::new());
        Self { waiting: waiting.into(), taken: 0, open, most_open: 0, answered: 0, more, enough: usize::MAX }
    }
}

impl Exchange for Counting {
    fn take(&mut self, most: usize) -> Vec<Request> {
        let some: Vec<Request> = self.waiting.drain(..most.min(self.waiting.len())).collect();
        self.open.extend(self.taken..self.taken + some.len());
        self.taken += some.len();
        self.most_open = self.most_open.max(self.open.len());
        some
    }

    fn give(&mut self, index: usize, outcome: Outcome) -> ControlFlow<()> {
        assert!(self.answered < self.enough, "an answer after a break");
        assert!(matches!(outcome, Outcome::Read(_)), "{outcome:?}");
        let place = self.open.iter().position(|&open| open == index).expect("taken, and answered once");
        self.open.swap_remove(place);
        self.answered += 1;
        self.waiting.extend(self.more.pop_front());
        if self.answered == self.enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[test]
fn requests_that_answers_lead_to_are_answered_too() {
    let mut exchange = Counting::new(vec![request(3)]);
    exchange.more = (1..=200).map(|words| request(words % 20 + 1)).collect();
    model(1000).serve(&mut exchange).unwrap();
    assert_eq!((exchange.answered, exchange.open), (201, vec![]));
}

#[test]
fn what_waits_for_an_answer_is_bounded_by_texts_and_by_number() {
    let requests = || (0..3000).map(|_| request(30)).collect::<Vec<_>>();
    let mut exchange = Counting::new(requests());
    model(100_000).serve(&mut exchange).unwrap();
    assert_eq!((exchange.answered, exchange.most_open), (3000, 1024));
    // Eight passes of 200 tokens of four bytes each: 6,400 bytes are 72 texts of 89, taken 64 at a time.
    let mut exchange = Counting::new(requests());
    model(200).serve(&mut exchange).unwrap();
    assert_eq!((exchange.answered, exchange.most_open), (3000, 128));
}

#[test]
fn a_break_or_an_error_ends_it_at_any_request() {
    for enough in [1, 700, 1024, 1025, 1500] {
        let mut exchange = Counting::new((0..1600).map(|_| request(2)).collect());
        exchange.enough = enough;
        model(100_000).serve(&mut exchange).unwrap();
        assert_eq!(exchange.answered, enough);
    }
    let mut requests: Vec<Request> = (0..1600).map(|_| request(2)).collect();
    requests[1300].want.pooled[0].0 = Layer(9);
    let mut exchange = Counting::new(requests);
    let ended = model(100_000).serve(&mut exchange);
    assert!(matches!(ended, Err(BackboneError::Layer { request: 1300, layer: Layer(9), .. })), "{ended:?}");
}
