use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, TryRecvError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::{self, JoinHandle};

use super::flight::{Supplied, Supply};
use super::{ItemResult, RunEvent, RunSettings, Runner};
use crate::{Error, ItemId, Judge, TextModel, panicked};

/// Judges items as they come, one at a time from many places: the handle for a service.
///
/// A thread of its own holds the model and the judges. [`submit`](Self::submit) hands it an item and returns at once; the [`Pending`]
/// result is waited for on a thread, or awaited in any async program. Items that wait together share passes and batches as in a [`Runner`],
/// which does the work, and a result does not depend on its company here either.
///
/// ```
/// use judge_core::testing::ScriptedBackbone;
/// use judge_core::{runner::JudgeQueue, prompted::{PromptFamily, WrittenJudge}};
///
/// let model = ScriptedBackbone::new(2).with_reply(|prompt| if prompt.contains("4") { "[[9]]".into() } else { "[[2]]".into() });
/// let judge = WrittenJudge::new(PromptFamily::built_in("single")?);
/// let queue = JudgeQueue::start(model, vec![Box::new(judge)]);
/// let [right, wrong] = ["4", "5"].map(|answer| queue.submit([("instruction", "2 + 2?"), ("response", answer)]));
/// assert_eq!(wrong.wait()?.verdicts[0].value(), Some(2.0));
/// assert_eq!(right.wait()?.verdicts[0].value(), Some(9.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # How it ends
///
/// Dropping the queue ends the work at the model's next answer, and waits for the thread; [`finish`](Self::finish) waits for all results
/// first. What ends a [`Runner`]'s run ends the queue: an error of a judge or the model. Then every item that
/// has no result, also one that is submitted later, gets the [`QueueError`] that says why. Nobody waits for ever, unless the model does. To
/// go on, start another queue.
///
/// A panic costs the items that it is over, [`QueueError::ItemPanicked`]: of a judge, the one that it was asked about; of a model, those whose
/// requests it had taken. A model that panics three times without an answer between does not work, and ends the queue.
///
/// # What waits
///
/// An item whose [`Pending`] was dropped leaves the queue before the model takes anything again, with all requests that it has not taken.
/// Items of several [sources](Self::submit_from) take turns.
///
/// A model takes items when it has room for them: a local one between the groups of requests that it answers together, a client of a
/// service and [`Replicas`](crate::model::Replicas) when an answer comes. So an item may wait for the text of another one.
///
/// There is no bound on how many items wait: whoever submits faster than the model answers has to bound it.
pub struct JudgeQueue<Item> {
    /// `None` once no more items are taken.
    send: Option<mpsc::Sender<Submitted<Item>>>,
    thread: Option<JoinHandle<()>>,
    ended: Arc<OnceLock<QueueError>>,
    cancelled: Arc<AtomicBool>,
    /// Whether nobody waits for the thread.
    is_detached: AtomicBool,
}

impl<Item> fmt::Debug for JudgeQueue<Item> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JudgeQueue").field("ended", &self.ended.get()).finish_non_exhaustive()
    }
}

/// Why an item of a [`JudgeQueue`] has no result.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueueError {
    /// A judge or the model failed, which ended the queue. The message holds that of the error, which is no further source.
    #[error("the queue ended with an error: {0}")]
    Failed(Arc<Error>),
    /// A judge or the model panicked, which ended the queue.
    #[error("the queue ended with a panic: {message}")]
    Panicked {
        /// What the panic said.
        message: String,
    },
    /// A judge or the model panicked over this item, and perhaps over others that were under way with it. The queue goes on.
    #[error("a panic while the item was judged: {message}")]
    ItemPanicked {
        /// What the panic said.
        message: String,
    },
    /// The queue was dropped before the item was judged.
    #[error("the queue was closed before the item was judged")]
    Closed,
}

/// An item's result, once there is one; see [`JudgeQueue::submit`].
///
/// [`wait`](Self::wait) blocks the thread. In an async program, await it: it needs no particular runtime. Whoever drops
/// it gives up the result, and what the model has not taken of the item is not read.
pub struct Pending<Item> {
    slot: Arc<Slot<Item>>,
}

impl<Item> fmt::Debug for Pending<Item> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").finish_non_exhaustive()
    }
}

type Outcome<Item> = Result<ItemResult<Item>, QueueError>;

/// Where a result is put down and picked up.
struct Slot<Item> {
    state: Mutex<State<Item>>,
    known: Condvar,
}

struct State<Item> {
    result: Option<Outcome<Item>>,
    waker: Option<Waker>,
}

impl<Item> Slot<Item> {
    /// No user code runs under the lock, so a poisoned one holds a whole state.
    fn state(&self) -> MutexGuard<'_, State<Item>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The other end of a [`Pending`]: dropped without a result, it says why the queue ended.
struct Promise<Item> {
    slot: Arc<Slot<Item>>,
    ended: Arc<OnceLock<QueueError>>,
    kept: bool,
}

impl<Item> Promise<Item> {
    fn keep(mut self, result: Outcome<Item>) {
        self.kept = true;
        self.put(result);
    }

    /// Whether nobody waits for it any more.
    fn is_abandoned(&self) -> bool {
        Arc::strong_count(&self.slot) == 1
    }

    fn put(&self, result: Outcome<Item>) {
        let mut state = self.slot.state();
        state.result = Some(result);
        let waker = state.waker.take();
        drop(state);
        self.slot.known.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<Item> Drop for Promise<Item> {
    fn drop(&mut self) {
        if !self.kept {
            self.put(Err(self.ended.get().cloned().unwrap_or(QueueError::Closed)));
        }
    }
}

struct Submitted<Item> {
    item: Item,
    source: u64,
    promise: Promise<Item>,
}

impl<Item: Send + 'static> JudgeQueue<Item> {
    /// A queue for one model and these judges, each of which gives every item a verdict, in this order.
    /// Runs with [`RunSettings::default`], but for the order of
    /// results, which each come as soon as they are known.
    pub fn start(model: impl TextModel + 'static, judges: Vec<Box<dyn Judge<Item>>>) -> Self {
        Self::start_with(model, judges, RunSettings::default())
    }

    /// The same with a [window](RunSettings::window) and [rounds](RunSettings::max_rounds) of one's own;
    /// the other settings mean nothing here.
    pub fn start_with(
        model: impl TextModel + 'static,
        judges: Vec<Box<dyn Judge<Item>>>,
        settings: RunSettings,
    ) -> Self {
        let (send, receive) = mpsc::channel();
        let ended = Arc::new(OnceLock::new());
        let cancelled = Arc::new(AtomicBool::new(false));
        let thread = {
            let (ended, cancelled) = (Arc::clone(&ended), Arc::clone(&cancelled));
            thread::spawn(move || {
                // Outside of what may unwind, so that nobody is told before it is known why.
                let promises = RefCell::new(HashMap::new());
                let served = catch_unwind(AssertUnwindSafe(|| {
                    let mut queued = Queued { receive: &receive, promises: &promises, cancelled: &cancelled, next: 0 };
                    serve(&model, &judges, settings, &mut queued)
                }));
                let _ = ended.set(match served {
                    Ok(Ok(())) => QueueError::Closed,
                    Ok(Err(error)) => QueueError::Failed(Arc::new(error)),
                    Err(panic) => QueueError::Panicked { message: panicked::message(panic.as_ref()) },
                });
                // What is left in them is told so, and so is whatever comes later.
                drop((promises, receive));
            })
        };
        Self { send: Some(send), thread: Some(thread), ended, cancelled, is_detached: AtomicBool::new(false) }
    }

    /// Hands over an item, and returns at once. Its [id](ItemResult::id) is its number, from 0, among those that were taken up.
    pub fn submit(&self, item: Item) -> Pending<Item> {
        self.submit_from(0, item)
    }

    /// As [`submit`](Self::submit), for an item of one of several sources, such as a client of a service, by any number.
    ///
    /// Sources take turns before the model: while several ask, one that has little waiting goes before the next part of what another one
    /// has, so that none of them is kept waiting by how much the others ask. Equal prompts are shared within a source.
    pub fn submit_from(&self, source: u64, item: Item) -> Pending<Item> {
        let slot = Arc::new(Slot { state: Mutex::new(State { result: None, waker: None }), known: Condvar::new() });
        let promise = Promise { slot: Arc::clone(&slot), ended: Arc::clone(&self.ended), kept: false };
        if let Some(send) = &self.send {
            // Where nobody receives any more, what was sent is dropped, and so the promise says why.
            let _ = send.send(Submitted { item, source, promise });
        }
        Pending { slot }
    }

    /// From now on, dropping the queue does not wait for its thread, which ends at the model's next answer: for a program that ends at once.
    pub fn detach(&self) {
        self.is_detached.store(true, Ordering::Relaxed);
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Takes no more items, and returns when every one that was submitted has its result.
    ///
    /// # Errors
    /// [`QueueError`] if the queue ended before that.
    pub fn finish(mut self) -> Result<(), QueueError> {
        self.send = None;
        self.join();
        match self.ended.get() {
            None | Some(QueueError::Closed) => Ok(()),
            Some(error) => Err(error.clone()),
        }
    }
}

impl<Item> JudgeQueue<Item> {
    fn join(&mut self) {
        // A waker may drop the queue on the queue's own thread, which cannot wait for itself.
        let other = |thread: &JoinHandle<()>| thread.thread().id() != thread::current().id();
        if let Some(thread) = self.thread.take().filter(other) {
            // It catches what panics, and has nothing to return.
            let _ = thread.join();
        }
    }
}

impl<Item> Drop for JudgeQueue<Item> {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
        self.send = None;
        if !self.is_detached.load(Ordering::Relaxed) {
            self.join();
        }
    }
}

fn serve<Item>(
    model: &dyn TextModel,
    judges: &[Box<dyn Judge<Item>>],
    settings: RunSettings,
    queued: &mut Queued<'_, Item>,
) -> Result<(), Error> {
    let judges = judges.iter().map(AsRef::as_ref).collect();
    let settings = RunSettings { in_order: false, unique_ids: false, ..settings };
    let (promises, cancelled) = (queued.promises, queued.cancelled);
    let mut observe = |event| {
        if let RunEvent::Item(result) = event {
            let result: ItemResult<Item> = result;
            let promise = promises.borrow_mut().remove(&result.id);
            if let Some(promise) = promise {
                promise.keep(Ok(result));
            }
        }
        Ok(if cancelled.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    };
    Runner::new(model, judges).with_settings(settings).run_supply(queued, &mut observe).map(drop)
}

/// The items that were submitted, as a run takes them.
struct Queued<'q, Item> {
    receive: &'q mpsc::Receiver<Submitted<Item>>,
    promises: &'q RefCell<HashMap<ItemId, Promise<Item>>>,
    cancelled: &'q AtomicBool,
    next: usize,
}

impl<Item> Supply<Item> for Queued<'_, Item> {
    fn is_shared(&self) -> bool {
        true
    }

    fn abandoned(&mut self) -> Vec<ItemId> {
        let mut promises = self.promises.borrow_mut();
        let gone = promises.iter().filter(|(_, promise)| promise.is_abandoned()).map(|(id, _)| id.clone());
        let gone: Vec<ItemId> = gone.collect();
        for id in &gone {
            promises.remove(id);
        }
        gone
    }

    fn panicked(&mut self, id: &ItemId, message: &str) -> bool {
        let promise = self.promises.borrow_mut().remove(id);
        if let Some(promise) = promise {
            promise.keep(Err(QueueError::ItemPanicked { message: message.to_owned() }));
        }
        true
    }

    fn next(&mut self, idle: bool) -> Supplied<Item> {
        loop {
            let submitted = if idle {
                self.receive.recv().map_err(|_| TryRecvError::Disconnected)
            } else {
                self.receive.try_recv()
            };
            if self.cancelled.load(Ordering::Relaxed) {
                return Supplied::Ended;
            }
            match submitted {
                // Nobody waits for it any more.
                Ok(Submitted { promise, .. }) if promise.is_abandoned() => {}
                Ok(Submitted { item, source, promise }) => {
                    let id = ItemId::from(self.next);
                    self.next += 1;
                    self.promises.borrow_mut().insert(id.clone(), promise);
                    return Supplied::Item(id, item, source);
                }
                Err(TryRecvError::Empty) => return Supplied::NoneYet,
                Err(TryRecvError::Disconnected) => return Supplied::Ended,
            }
        }
    }
}

impl<Item> Pending<Item> {
    /// Blocks this thread until there is a result.
    ///
    /// # Errors
    /// [`QueueError`] if the queue ended before that.
    pub fn wait(self) -> Result<ItemResult<Item>, QueueError> {
        let mut state = self.slot.state();
        loop {
            if let Some(result) = state.result.take() {
                return result;
            }
            state = self.slot.known.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl<Item> Future for Pending<Item> {
    type Output = Result<ItemResult<Item>, QueueError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.slot.state();
        if let Some(result) = state.result.take() {
            return Poll::Ready(result);
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }
}
