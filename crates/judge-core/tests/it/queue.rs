//! A queue for services: results that do not depend on company, and an end that everybody hears of.

use std::error::Error as _;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use crate::asking;
use judge_core::testing::ScriptedBackbone;
use judge_core::{
    Backbone, Judge, JudgeError, Prompt, Reason, Request, Runner, Score, TextModel, Want,
    combine::{Panel, PanelRule},
    model::Replicas,
    prompted::{PromptFamily, WrittenJudge},
    request::Generation,
    runner::{JudgeQueue, Pending, QueueError},
};

type Item = Vec<(&'static str, String)>;

fn item(response: impl ToString) -> Item {
    vec![("instruction", "Count.".to_owned()), ("response", response.to_string())]
}

fn judge() -> WrittenJudge {
    WrittenJudge::new(PromptFamily::built_in("single").unwrap())
}

/// Grades a response by its length, and writes no grade for `none`.
fn model() -> ScriptedBackbone {
    ScriptedBackbone::new(2).with_reply(|prompt| match prompt {
        prompt if prompt.contains("none") => "no grade".into(),
        prompt => format!("[[{}]]", prompt.len() % 10 + 1),
    })
}

fn queue(model: impl TextModel + 'static) -> JudgeQueue<Item> {
    JudgeQueue::start(model, vec![Box::new(judge()), Box::new(judge())])
}

/// A runtime in eight lines: parks the thread until it is woken.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let (mut future, waker) = (pin!(future), Waker::from(Arc::new(Unpark(thread::current()))));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn items_from_many_threads_get_what_each_gets_alone() {
    let copies = || (0..2).map(|_| Box::new(model()) as Box<dyn Backbone>).collect();
    let models: [Box<dyn TextModel>; 2] = [Box::new(model()), Box::new(Replicas::new(copies()).unwrap())];
    for one in models {
        let queue = queue(one);
        thread::scope(|scope| {
            for thread in 0..4 {
                let queue = &queue;
                scope.spawn(move || {
                    let texts: Vec<String> = (0..20).map(|n| "x".repeat(thread * n)).collect();
                    let pending: Vec<Pending<Item>> = texts.iter().map(|text| queue.submit(item(text))).collect();
                    for (text, pending) in texts.iter().zip(pending) {
                        let (model, judge) = (model(), judge());
                        let alone = Runner::new(&model, vec![&judge]).collect([(0.into(), item(text))]).unwrap();
                        let found = if text.len() % 2 == 0 { pending.wait() } else { block_on(pending) }.unwrap();
                        assert_eq!(found.item, item(text));
                        assert_eq!(found.verdicts, [alone[0].verdicts[0].clone(), alone[0].verdicts[0].clone()]);
                    }
                });
            }
        });
        // One item at a time is never kept waiting for company, and an item's fault is its own.
        let unscored = queue.submit(item("none")).wait().unwrap();
        assert_eq!(unscored.verdicts[0].unscored().unwrap().reason, Reason::Unparsed);
        assert!(queue.submit(item("5")).wait().unwrap().verdicts[0].value().is_some());
        queue.finish().unwrap();
    }
}

#[test]
fn what_was_submitted_is_judged_before_a_queue_is_finished() {
    let model = Arc::new(model());
    let queue = queue(Arc::clone(&model));
    let pending: Vec<_> = (0..50).map(|n| queue.submit(item(n))).collect();
    queue.finish().unwrap();
    assert_eq!(Arc::strong_count(&model), 1, "the thread is gone, and the model with it");
    assert!(pending.into_iter().all(|pending| pending.wait().is_ok()));
}

/// Asks as many prompts about an item as it says, each with the item's text.
fn many() -> Box<dyn Judge<(usize, &'static str)>> {
    let ask = |(number, text): &(usize, &'static str)| {
        assert!(*text != "judge", "no rendering");
        let want = Want { generate: Some(Generation::default()), ..Want::default() };
        let request = |place| Request { prompt: Prompt::user(format!("{text} {place}")), want: want.clone() };
        Ok((0..*number).map(request).collect())
    };
    Box::new(asking::judge("many", ask, |_, rounds| Ok(Score::new(rounds.outcomes().count() as f64))))
}

/// A queue whose model says of which item each prompt is that it reads, and waits before the first to be let on.
fn watched() -> (JudgeQueue<(usize, &'static str)>, mpsc::Receiver<String>, mpsc::Sender<()>) {
    let (say, reads) = mpsc::channel();
    let (go, gone) = mpsc::channel::<()>();
    let (say, gone) = (Mutex::new(say), Mutex::new(gone));
    let model = ScriptedBackbone::new(1).with_reply(move |prompt| {
        let _ = say.lock().unwrap().send(prompt.split(' ').nth(1).unwrap().to_owned());
        let _ = gone.lock().unwrap().recv();
        String::new()
    });
    (JudgeQueue::start(model, vec![many()]), reads, go)
}

/// So many requests a scripted model takes at once.
const BATCH: usize = 64;

// https://github.com/ggml-org/llama.cpp/pull/24496 is a service with this fault.
#[test]
fn what_nobody_waits_for_costs_no_more_than_the_pass_that_runs() {
    let (queue, reads, go) = watched();
    let long = queue.submit((400, "long"));
    assert_eq!(reads.recv().unwrap(), "long");
    drop(long);
    let short = queue.submit((1, "short"));
    drop(go);
    assert_eq!(short.wait().unwrap().verdicts[0].value(), Some(1.0));
    let mut read: Vec<String> = reads.try_iter().collect();
    assert_eq!(read.pop().as_deref(), Some("short"));
    assert_eq!(read.len(), BATCH - 1, "of 400 prompts");
    queue.finish().unwrap();
}

#[test]
fn a_source_that_asks_much_keeps_others_waiting_for_one_turn() {
    let (queue, reads, go) = watched();
    let long = queue.submit_from(1, (400, "long"));
    assert_eq!(reads.recv().unwrap(), "long");
    let [first, second] = ["first", "second"].map(|text| queue.submit_from(2, (1, text)));
    drop(go);
    for (pending, prompts) in [(first, 1.0), (second, 1.0), (long, 400.0)] {
        assert_eq!(pending.wait().unwrap().verdicts[0].value(), Some(prompts));
    }
    let read: Vec<String> = reads.try_iter().collect();
    assert_eq!(read.len(), 401);
    let mut next = read[BATCH - 1..BATCH + 1].to_vec();
    next.sort();
    assert_eq!(next, ["first", "second"]);
    queue.finish().unwrap();
}

#[test]
fn a_panic_costs_the_items_that_it_is_over() {
    // Of a judge: the item that it was asked about.
    let (queue, _reads, go) = watched();
    drop(go);
    let broken = queue.submit((1, "judge"));
    let error = broken.wait().unwrap_err();
    assert_eq!(error.to_string(), "a panic while the item was judged: no rendering");
    assert!(queue.submit((1, "right")).wait().is_ok());
    queue.finish().unwrap();
    // Of a model: those that it had taken.
    let model = ScriptedBackbone::new(1).with_reply(|prompt| {
        assert!(!prompt.contains("model"), "no kernel");
        String::new()
    });
    let queue = JudgeQueue::start(model, vec![many()]);
    for _ in 0..5 {
        let error = queue.submit((100, "model")).wait().unwrap_err();
        assert!(matches!(&error, QueueError::ItemPanicked { message } if message == "no kernel"), "{error}");
        assert_eq!(queue.submit((100, "right")).wait().unwrap().verdicts[0].value(), Some(100.0));
    }
    queue.finish().unwrap();
}

#[test]
fn a_model_that_panics_each_time_ends_the_queue() {
    let queue = queue(ScriptedBackbone::new(2).with_reply(|_| panic!("out of memory")));
    let texts: Vec<String> = (0..5).map(|n| queue.submit(item(n)).wait().unwrap_err().to_string()).collect();
    let (of_item, of_queue) =
        ("a panic while the item was judged: out of memory", "the queue ended with a panic: out of memory");
    assert_eq!(texts, [of_item, of_item, of_queue, of_queue, of_queue]);
    assert!(matches!(queue.finish(), Err(QueueError::Panicked { .. })));
}

#[test]
fn an_error_ends_the_queue_with_its_reason() {
    let ask = |_: &Item| Err(JudgeError::failed("no licence"));
    let broken = asking::judge("broken", ask, |_, _| unreachable!("it never asks"));
    let queue = JudgeQueue::start(model(), vec![Box::new(broken)]);
    let error = block_on(queue.submit(item("4"))).unwrap_err();
    assert_eq!(error.to_string(), "the queue ended with an error: judge broken, item 0: no licence");
    assert!(error.source().is_none(), "its message is whole");
    assert!(matches!(queue.submit(item("5")).wait(), Err(QueueError::Failed(_))));
}

#[test]
fn a_dropped_queue_ends_its_thread_and_tells_who_waits() {
    let model = Arc::new(model());
    drop(queue(Arc::clone(&model)));
    assert_eq!(Arc::strong_count(&model), 1);

    // Dropped while the model works, by the model's own thread: there is no better time to show that nobody hangs.
    let own: Arc<Mutex<Option<JudgeQueue<Item>>>> = Arc::default();
    let dropped = Arc::clone(&own);
    let model = ScriptedBackbone::new(2).with_reply(move |_| {
        drop(dropped.lock().unwrap().take());
        "[[1]]".into()
    });
    let mut guard = own.lock().unwrap();
    let queue = guard.insert(queue(model));
    let pending: Vec<_> = (0..3).map(|n| queue.submit(item(n))).collect();
    drop(guard);
    for pending in pending {
        assert!(matches!(pending.wait(), Err(QueueError::Closed)));
    }
}

#[test]
fn what_a_service_holds_can_be_looked_at() {
    let queue = JudgeQueue::start(model(), vec![Box::new(judge()) as Box<dyn Judge<Item>>]);
    let pending = queue.submit(item("4"));
    assert_eq!(format!("{queue:?} {pending:?}"), "JudgeQueue { ended: None, .. } Pending { .. }");
    pending.wait().unwrap();
    let (model, single) = (model(), judge());
    assert!(format!("{model:?}").contains("scripted"));
    let runner = Runner::new(&model, vec![&single as &dyn Judge<Item>]);
    assert!(format!("{runner:?}").starts_with("Runner { judges: ["), "{runner:?}");
    let panel = Panel::<Item>::new("two", [&single, &single], PanelRule::Median).unwrap();
    assert!(format!("{panel:?}").starts_with("Panel { name: \"two\", judges: ["), "{panel:?}");
}
