use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

use crate::{
    Backbone, Layer, ModelInfo, Outcome, Prompt, Request, TextModel,
    model::{BackboneError, Exchange, LabelInContext, ModelIdentity},
    panicked,
    request::TokenId,
};

/// Requests per copy that the dealer keeps at hand, at most, are [`SHARES`] times as many as this.
const MAX_CHUNK: usize = 1024;

/// Shares per copy into which what is at hand is cut.
const SHARES: usize = 2;

/// Several copies of one model, one per device, as one backbone.
///
/// Each copy has a thread and takes the next requests whenever it is done with its own. What a request brings does not depend on the
/// copy that answers it, as far as the copies themselves agree: to the bit where they are of one kind, within the device's tolerance
/// elsewhere.
///
/// A copy that fails ends the run with its error, and one that panics with [`BackboneError::CopyPanicked`]: the
/// others stop at their next answer.
///
/// ```
/// use std::ops::ControlFlow;
///
/// use judge_core::testing::ScriptedBackbone;
/// use judge_core::{Prompt, Request, TextModel, Want, model::Replicas};
///
/// let replicas = Replicas::new(vec![Box::new(ScriptedBackbone::new(3)), Box::new(ScriptedBackbone::new(3))])?;
/// let requests = ["a", "b c"].map(|text| Request { prompt: Prompt::Raw(text.into()), want: Want::default() });
/// let mut answered = 0;
/// replicas.run(&requests, &mut |_, _| {
///     answered += 1;
///     ControlFlow::Continue(())
/// })?;
/// assert_eq!(answered, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Replicas {
    backbones: Vec<Box<dyn Backbone>>,
}

/// Backbones that are no copies of one model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplicasProblem {
    /// There is none.
    #[error("there is no backbone to run on")]
    Empty,
    /// One is of another model than the first.
    #[error("backbone {index} is {found}, the first is {expected}")]
    OtherModel {
        /// Its index.
        index: usize,
        /// Fingerprint and dtype of the first.
        expected: String,
        /// Its own.
        found: String,
    },
}

impl Replicas {
    /// Joins copies of one model.
    ///
    /// # Errors
    /// If there is none, or if one has other weights or another dtype than the first.
    pub fn new(backbones: Vec<Box<dyn Backbone>>) -> Result<Self, ReplicasProblem> {
        let what = |backbone: &dyn Backbone| format!("{} in {}", backbone.info().fingerprint, backbone.info().dtype);
        let expected = what(backbones.first().ok_or(ReplicasProblem::Empty)?.as_ref());
        for (index, backbone) in backbones.iter().enumerate() {
            let found = what(backbone.as_ref());
            if found != expected {
                return Err(ReplicasProblem::OtherModel { index, expected, found });
            }
        }
        Ok(Self { backbones })
    }

    fn first(&self) -> &dyn Backbone {
        self.backbones[0].as_ref() // `new` refuses an empty list
    }
}

impl Backbone for Replicas {
    /// That of the first copy.
    fn info(&self) -> &ModelInfo {
        self.first().info()
    }

    fn token(&self, label: &str) -> Result<TokenId, BackboneError> {
        self.first().token(label)
    }

    fn label_token(&self, label: &str) -> Result<TokenId, BackboneError> {
        self.first().label_token(label)
    }

    fn label_in_context(&self, prompt: &Prompt, label: &str) -> Result<LabelInContext, BackboneError> {
        self.first().label_in_context(prompt, label)
    }

    fn attention_layers(&self) -> Vec<Layer> {
        self.first().attention_layers()
    }
}

impl TextModel for Replicas {
    /// That of the first copy.
    fn identity(&self) -> ModelIdentity {
        self.first().identity()
    }

    fn tokens_in(&self, text: &str) -> Option<usize> {
        self.first().tokens_in(text)
    }

    fn serve(&self, exchange: &mut dyn Exchange) -> Result<(), BackboneError> {
        let cancelled = AtomicBool::new(false);
        thread::scope(|scope| {
            // A short channel: answers wait in the copies rather than pile up if the exchange is slow.
            let (send, receive) = mpsc::sync_channel(2 * self.backbones.len());
            let mut copies = Vec::with_capacity(self.backbones.len());
            for (copy, backbone) in self.backbones.iter().enumerate() {
                let (supply, requests) = mpsc::channel();
                copies.push(Copy { supply, numbers: Vec::new(), open: 0, asks: None });
                let (send, cancelled) = (send.clone(), &cancelled);
                scope.spawn(move || {
                    let mut end = CopyEnd { copy, send, requests, cancelled };
                    // A copy that unwinds says so like any other that ends: nobody may wait for it. Nothing of it is
                    // used again in this run.
                    let served = catch_unwind(AssertUnwindSafe(|| backbone.serve(&mut end)));
                    let done = served.unwrap_or_else(|panic| {
                        Err(BackboneError::CopyPanicked { copy, message: panicked::message(panic.as_ref()) })
                    });
                    // If nobody listens any more, the run is over for another reason already.
                    let _ = end.send.send((copy, Message::Done(done)));
                });
            }
            drop(send);
            let result = Dealer { exchange, copies, waiting: VecDeque::new(), taken: 0 }.run(&receive);
            cancelled.store(true, Ordering::Relaxed);
            // Dropping the receiver wakes whoever waits to send; the suppliers are gone with the dealer.
            drop(receive);
            result
        })
    }
}

/// What a copy's thread says.
enum Message {
    /// It has room for so many requests, at least one.
    Ask(usize),
    /// The outcome of a request, by the copy's own number.
    Answer(usize, Box<Outcome>),
    /// It has ended.
    Done(Result<(), BackboneError>),
}

/// The exchange as one copy sees it.
struct CopyEnd<'a> {
    copy: usize,
    send: mpsc::SyncSender<(usize, Message)>,
    requests: mpsc::Receiver<Vec<Request>>,
    cancelled: &'a AtomicBool,
}

impl Exchange for CopyEnd<'_> {
    fn take(&mut self, most: usize) -> Vec<Request> {
        // Whoever has no room is not kept waiting for requests.
        if most == 0 || self.send.send((self.copy, Message::Ask(most))).is_err() {
            return Vec::new();
        }
        self.requests.recv().unwrap_or_default()
    }

    fn give(&mut self, index: usize, outcome: Outcome) -> ControlFlow<()> {
        let gone = self.send.send((self.copy, Message::Answer(index, Box::new(outcome)))).is_err();
        if gone || self.cancelled.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// One copy as the dealer sees it.
struct Copy {
    supply: mpsc::Sender<Vec<Request>>,
    /// The number in the whole run of each request that it has taken, in its own order.
    numbers: Vec<usize>,
    /// Requests that it has not answered.
    open: usize,
    /// It waits for so many requests.
    asks: Option<usize>,
}

/// Hands requests to the copies and outcomes back, on the thread of the exchange.
struct Dealer<'a> {
    exchange: &'a mut dyn Exchange,
    copies: Vec<Copy>,
    /// Requests that are taken from the exchange and not handed out.
    waiting: VecDeque<Request>,
    /// Requests that were handed out.
    taken: usize,
}

impl Dealer<'_> {
    fn run(mut self, receive: &mpsc::Receiver<(usize, Message)>) -> Result<(), BackboneError> {
        let mut running = self.copies.len();
        while running > 0 {
            // A sender is dropped only after its `Done`.
            let Ok((copy, message)) = receive.recv() else { break };
            match message {
                Message::Ask(most) => self.copies[copy].asks = Some(most),
                Message::Answer(index, outcome) => {
                    // A number that the copy has made up is one that the exchange does not know either.
                    let number = self.copies[copy].numbers.get(index).copied().unwrap_or(usize::MAX);
                    self.copies[copy].open = self.copies[copy].open.saturating_sub(1);
                    if self.exchange.give(number, *outcome).is_break() {
                        return Ok(());
                    }
                }
                // Without their answers the other copies would be kept waiting; the exchange knows which are missing.
                Message::Done(Ok(())) if self.copies[copy].open > 0 => return Ok(()),
                Message::Done(Ok(())) => running -= 1,
                Message::Done(Err(error)) => return Err(error.renumbered(&self.copies[copy].numbers)),
            }
            self.deal();
        }
        Ok(())
    }

    /// Supplies the copies that ask. One that has nothing to do waits for requests as long as an outcome that is still to come may lead to
    /// some.
    fn deal(&mut self) {
        for copy in 0..self.copies.len() {
            let Some(most) = self.copies[copy].asks else { continue };
            let wanted = SHARES * most.min(MAX_CHUNK) * self.copies.len();
            if self.waiting.len() < wanted {
                let more = self.exchange.take(wanted - self.waiting.len());
                self.waiting.extend(more);
            }
            // The fewer are left, the smaller the share, and the less a fast copy waits for a slow one at the end.
            let share = self.waiting.len().div_ceil(SHARES * self.copies.len()).min(most);
            let none_open = self.copies.iter().all(|copy| copy.open == 0);
            if share == 0 && self.copies[copy].open == 0 && !none_open {
                continue;
            }
            let some: Vec<Request> = self.waiting.drain(..share).collect();
            let one = &mut self.copies[copy];
            one.asks = None;
            one.open += share;
            one.numbers.extend(self.taken..self.taken + share);
            self.taken += share;
            // A copy that has ended in the meantime has said so.
            let _ = one.supply.send(some);
        }
    }
}

impl fmt::Debug for Replicas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let infos: Vec<&ModelInfo> = self.backbones.iter().map(|backbone| backbone.info()).collect();
        f.debug_struct("Replicas").field("infos", &infos).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ScriptedBackbone, check_backbone};
    use crate::{
        Lens, Want,
        request::{LabelRead, ReadAt},
    };

    fn replicas(count: usize) -> Replicas {
        Replicas::new((0..count).map(|_| Box::new(ScriptedBackbone::new(3)) as Box<dyn Backbone>).collect()).unwrap()
    }

    fn requests(count: u32) -> Vec<Request> {
        let labels = |layer| LabelRead {
            tokens: vec!['1' as u32, '2' as u32],
            layers: vec![Layer(layer)],
            lens: Lens::Raw,
            at: ReadAt::PromptEnd,
            label_mass: false,
        };
        (0..count)
            .map(|i| Request {
                prompt: Prompt::Raw(format!("item {i}")),
                want: Want { labels: vec![labels(i as usize % 4)], ..Want::default() },
            })
            .collect()
    }

    fn answers(backbone: &dyn Backbone, requests: &[Request]) -> Vec<Outcome> {
        let mut answers = vec![None; requests.len()];
        backbone
            .run(requests, &mut |index, outcome| {
                assert!(answers[index].replace(outcome).is_none(), "request {index} is answered twice");
                ControlFlow::Continue(())
            })
            .unwrap();
        answers.into_iter().map(Option::unwrap).collect()
    }

    #[test]
    fn many_answer_as_one() {
        for count in [0, 1, 7, 100, 3000] {
            let requests = requests(count);
            let expected = answers(&ScriptedBackbone::new(3), &requests);
            for copies in [1, 2, 5] {
                assert_eq!(answers(&replicas(copies), &requests), expected, "{count} requests, {copies} copies");
            }
        }
    }

    #[test]
    fn the_contract_of_a_backbone_holds() {
        check_backbone(&replicas(3), &["a", "b c", "d"].map(|text| Prompt::Raw(text.to_owned()))).unwrap();
    }

    #[test]
    fn a_break_ends_it_without_another_call() {
        let mut calls = 0;
        let run = replicas(3).run(&requests(500), &mut |_, _| {
            calls += 1;
            if calls == 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert!(run.is_ok());
        assert_eq!(calls, 5);
    }

    #[test]
    fn an_error_names_the_request_in_the_whole_list() {
        let mut requests = requests(300);
        requests[271].want.labels[0].layers = vec![Layer(9)];
        let error = replicas(2).run(&requests, &mut |_, _| ControlFlow::Continue(())).unwrap_err();
        assert!(matches!(error, BackboneError::Layer { request: 271, layer: Layer(9), .. }), "{error}");
    }

    /// A copy that serves in its own way, and says of itself what no other model does.
    struct Own<S>(ScriptedBackbone, S);

    impl<S> TextModel for Own<S>
    where
        S: Fn(&ScriptedBackbone, &mut dyn Exchange) -> Result<(), BackboneError> + Send + Sync,
    {
        fn identity(&self) -> ModelIdentity {
            self.0.identity()
        }

        fn tokens_in(&self, text: &str) -> Option<usize> {
            Some(text.len() * 10)
        }

        fn serve(&self, exchange: &mut dyn Exchange) -> Result<(), BackboneError> {
            (self.1)(&self.0, exchange)
        }
    }

    impl<S> Backbone for Own<S>
    where
        S: Fn(&ScriptedBackbone, &mut dyn Exchange) -> Result<(), BackboneError> + Send + Sync,
    {
        fn info(&self) -> &ModelInfo {
            self.0.info()
        }

        fn token(&self, label: &str) -> Result<TokenId, BackboneError> {
            self.0.token(label)
        }

        fn label_token(&self, label: &str) -> Result<TokenId, BackboneError> {
            Ok(self.0.token(label)? + 1)
        }

        fn label_in_context(&self, prompt: &Prompt, label: &str) -> Result<LabelInContext, BackboneError> {
            self.0.label_in_context(prompt, &label.to_lowercase())
        }

        fn attention_layers(&self) -> Vec<Layer> {
            vec![Layer(2)]
        }
    }

    /// What a copy says is what all say together: else a judge would read other tokens on two devices than on one.
    #[test]
    fn copies_say_of_themselves_what_one_says() {
        let serve = |model: &ScriptedBackbone, exchange: &mut dyn Exchange| model.serve(exchange);
        let one = Own(ScriptedBackbone::new(3), serve);
        let copies = Replicas::new(vec![Box::new(Own(ScriptedBackbone::new(3), serve))]).unwrap();
        assert_eq!((copies.info(), copies.identity()), (one.info(), one.identity()));
        assert_eq!((copies.token("Y").unwrap(), copies.label_token("Y").unwrap()), ('Y' as u32, 'Z' as u32));
        let prompt = Prompt::Raw("a".into());
        let in_context = |model: &dyn Backbone| model.label_in_context(&prompt, "Y").unwrap();
        assert_eq!(in_context(&copies), in_context(&one));
        assert_eq!((copies.attention_layers(), copies.tokens_in("ab")), (vec![Layer(2)], Some(20)));
    }

    /// A service whose connections are all taken, for example.
    #[test]
    fn a_copy_that_has_no_room_is_given_nothing() {
        let serve = |model: &ScriptedBackbone, exchange: &mut dyn Exchange| {
            assert!(exchange.take(0).is_empty());
            model.serve(exchange)
        };
        let copy = || Box::new(Own(ScriptedBackbone::new(3), serve)) as Box<dyn Backbone>;
        let copies = Replicas::new(vec![copy(), copy()]).unwrap();
        assert_eq!(answers(&copies, &requests(50)), answers(&ScriptedBackbone::new(3), &requests(50)));
    }

    /// The end of a run of one copy that ends so and a good one before and behind it; a run that hangs fails.
    fn end(ends: fn() -> Result<(), BackboneError>) -> Result<crate::runner::RunSummary, crate::Error> {
        let (send, receive) = mpsc::channel();
        thread::spawn(move || {
            let good = || Box::new(ScriptedBackbone::new(3)) as Box<dyn Backbone>;
            // Once it has some requests.
            let bad = move |_: &ScriptedBackbone, exchange: &mut dyn Exchange| {
                assert!(!exchange.take(3).is_empty());
                ends()
            };
            let copies = Replicas::new(vec![good(), Box::new(Own(ScriptedBackbone::new(3), bad)), good()]).unwrap();
            let read = crate::runner::ReadOnly::new(Want::default());
            let items = (0..5000_u64).map(|n| (n.into(), (n, Prompt::Raw(format!("item {n}")))));
            send.send(crate::Runner::new(&copies, vec![&read]).run(items, |_| ()))
        });
        receive.recv_timeout(std::time::Duration::from_secs(60)).expect("the run has ended")
    }

    #[test]
    fn a_copy_that_panics_ends_the_run() {
        let error = end(|| panic!("out of memory on device {}", 1)).unwrap_err();
        assert_eq!(error.to_string(), "copy 1 of the model panicked: out of memory on device 1");
        assert!(matches!(error, crate::Error::Backbone(BackboneError::CopyPanicked { copy: 1, .. })));
        let error = end(|| panic!("no format")).unwrap_err();
        assert_eq!(error.to_string(), "copy 1 of the model panicked: no format");
        let error = end(|| Err(BackboneError::Model("lost the device".into()))).unwrap_err();
        assert_eq!(error.to_string(), "the model failed: lost the device");
    }

    #[test]
    fn a_copy_that_leaves_requests_unanswered_ends_the_run() {
        let error = end(|| Ok(())).unwrap_err();
        let breach = |error| match error {
            crate::Error::Contract { breach } => breach,
            other => panic!("{other}"),
        };
        assert!(matches!(breach(error), crate::testing::ContractBreach::Unanswered { .. }));
    }

    #[test]
    fn copies_of_another_model_are_refused() {
        assert_eq!(Replicas::new(Vec::new()).unwrap_err(), ReplicasProblem::Empty);
        let mixed: Vec<Box<dyn Backbone>> =
            vec![Box::new(ScriptedBackbone::new(3)), Box::new(ScriptedBackbone::new(4))];
        assert!(matches!(Replicas::new(mixed), Err(ReplicasProblem::OtherModel { index: 1, .. })));
    }
}
