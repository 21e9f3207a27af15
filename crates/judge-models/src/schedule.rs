//! Several independent sequences at a time.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError, mpsc};
use std::thread;

use judge_core::Outcome;
use rayon::ThreadPoolBuilder;

use crate::Error;

/// The tokens that may be in flight at once.
struct Budget {
    limit: usize,
    free: Mutex<usize>,
    freed: Condvar,
}

impl Budget {
    /// Waits until there is room for `tokens`, which is taken until the returned value is dropped. What exceeds the limit
    /// waits until nothing else is in flight.
    fn take(&self, tokens: usize) -> Room<'_> {
        let tokens = tokens.min(self.limit);
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = self.freed.wait_while(free, |free| *free < tokens).unwrap_or_else(PoisonError::into_inner);
        *free -= tokens;
        Room { budget: self, tokens }
    }
}

/// Tokens taken from a [`Budget`].
pub(crate) struct Room<'a> {
    budget: &'a Budget,
    tokens: usize,
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        *self.budget.free.lock().unwrap_or_else(PoisonError::into_inner) += self.tokens;
        self.budget.freed.notify_all();
    }
}

/// What a request that is being answered knows of the run around it.
pub(crate) struct Flight {
    budget: Budget,
    cancelled: AtomicBool,
}

impl Flight {
    /// A run that has not begun, with room for `max_tokens` at once.
    pub(crate) fn new(max_tokens: usize) -> Self {
        let budget = Budget { limit: max_tokens, free: Mutex::new(max_tokens), freed: Condvar::new() };
        Self { budget, cancelled: AtomicBool::new(false) }
    }

    /// Waits for room; see [`Budget::take`].
    pub(crate) fn room(&self, tokens: usize) -> Room<'_> {
        self.budget.take(tokens)
    }

    /// Says that nobody waits for answers any more.
    pub(crate) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether nobody waits for the answer any more.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// Answers `0..count` and hands each answer to `sink`, on this thread, as soon as it is known. After
/// [`ControlFlow::Break`] or an error nothing new is begun, and what is under way may be given up: its answer is `None`.
///
/// As many answers are worked on at a time as rayon has threads here. Each worker has a pool of its own with an equal
/// share of the threads, so that the operations within one forward pass stay within it: waiting for one's own
/// operations never means working on another request's.
pub(crate) fn in_parallel(
    count: usize,
    max_tokens: usize,
    answer: impl Fn(usize, &Flight) -> Result<Option<Outcome>, Error> + Sync,
    sink: &mut dyn FnMut(usize, Outcome) -> ControlFlow<()>,
) -> Result<(), Error> {
    let threads = rayon::current_num_threads();
    let workers = threads.clamp(1, count.max(1));
    let flight = Flight::new(max_tokens);
    let next = AtomicUsize::new(0);
    let mut pools = Vec::with_capacity(workers);
    for _ in 0..workers {
        let pool = ThreadPoolBuilder::new().num_threads(threads / workers).build();
        pools.push(pool.map_err(|source| Error::Threads { source: Box::new(source) })?);
    }
    thread::scope(|scope| {
        // A short channel: answers wait here rather than pile up if the sink is slow.
        let (send, receive) = mpsc::sync_channel(2 * workers);
        for pool in pools {
            let send = send.clone();
            let (next, flight, answer) = (&next, &flight, &answer);
            scope.spawn(move || {
                while !flight.is_cancelled() {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count {
                        break;
                    }
                    let Some(answer) = pool.install(|| answer(index, flight)).transpose() else { break };
                    if send.send((index, answer)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(send);
        for (index, outcome) in &receive {
            let flow = outcome.map(|outcome| sink(index, outcome));
            if !matches!(flow, Ok(ControlFlow::Continue(()))) {
                flight.cancel();
                // Dropping the receiver wakes whoever waits to send.
                drop(receive);
                return flow.map(|_| ());
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use judge_core::Reading;

    fn outcome(index: usize) -> Outcome {
        let mut reading = Reading::default();
        reading.prompt_tokens = Some(index);
        Outcome::Read(reading)
    }

    #[test]
    fn each_is_answered_once_with_its_own_answer() {
        let mut seen = vec![0; 100];
        in_parallel(
            100,
            8,
            |index, flight| {
                let _room = flight.room(index % 20); // more than the limit now and then
                Ok(Some(outcome(index)))
            },
            &mut |index, found| {
                assert_eq!(found, outcome(index));
                seen[index] += 1;
                ControlFlow::Continue(())
            },
        )
        .unwrap();
        assert_eq!(seen, [1; 100]);
    }

    #[test]
    fn a_break_ends_it_without_another_call() {
        let mut calls = 0;
        let begun = AtomicUsize::new(0);
        in_parallel(
            10_000,
            8,
            |index, _| {
                begun.fetch_add(1, Ordering::Relaxed);
                Ok(Some(outcome(index)))
            },
            &mut |_, _| {
                calls += 1;
                if calls == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            },
        )
        .unwrap();
        assert_eq!(calls, 3);
        assert!(begun.into_inner() < 10_000);
    }

    #[test]
    fn an_error_ends_it_and_nothing_is_no_work() {
        let failed = in_parallel(
            50,
            8,
            |index, _| match index {
                7 => Err(Error::UnknownDevice { found: "seven".into() }),
                _ => Ok(Some(outcome(index))),
            },
            &mut |_, _| ControlFlow::Continue(()),
        );
        assert!(matches!(failed, Err(Error::UnknownDevice { .. })));
        in_parallel(0, 8, |index, _| Ok(Some(outcome(index))), &mut |_, _| unreachable!()).unwrap();
    }

    /// The first answer cancels the run; the others wait for that, and are then given up.
    #[test]
    fn what_is_under_way_learns_of_a_break() {
        let pool = ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        let mut calls = 0;
        pool.install(|| {
            in_parallel(
                3,
                8,
                |index, flight| {
                    if index > 0 {
                        while !flight.is_cancelled() {
                            thread::yield_now();
                        }
                        return Ok(None);
                    }
                    Ok(Some(outcome(index)))
                },
                &mut |_, _| {
                    calls += 1;
                    ControlFlow::Break(())
                },
            )
            .unwrap();
        });
        assert_eq!(calls, 1);
    }
}
