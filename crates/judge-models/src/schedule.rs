//! Several independent sequences at a time.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError, mpsc};
use std::thread;

use judge_core::Outcome;

use crate::Error;

/// The tokens that may be in flight at once.
pub(crate) struct Budget {
    limit: usize,
    free: Mutex<usize>,
    freed: Condvar,
}

impl Budget {
    /// Waits until there is room for `tokens`, which is taken until the returned value is dropped. What exceeds the limit
    /// waits until nothing else is in flight.
    pub(crate) fn take(&self, tokens: usize) -> Room<'_> {
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

/// Answers `0..count` on as many threads as rayon has, and hands each answer to `sink`, on this thread, as soon as it is
/// known. After [`ControlFlow::Break`] or an error nothing new is begun.
pub(crate) fn in_parallel(
    count: usize,
    max_tokens: usize,
    answer: impl Fn(usize, &Budget) -> Result<Outcome, Error> + Sync,
    sink: &mut dyn FnMut(usize, Outcome) -> ControlFlow<()>,
) -> Result<(), Error> {
    let workers = rayon::current_num_threads().clamp(1, count.max(1));
    let budget = Budget { limit: max_tokens, free: Mutex::new(max_tokens), freed: Condvar::new() };
    let (next, cancelled) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        // A short channel: answers wait here rather than pile up if the sink is slow.
        let (send, receive) = mpsc::sync_channel(2 * workers);
        for _ in 0..workers {
            let send = send.clone();
            let (next, cancelled, budget, answer) = (&next, &cancelled, &budget, &answer);
            scope.spawn(move || {
                while !cancelled.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count || send.send((index, answer(index, budget))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(send);
        for (index, outcome) in &receive {
            let flow = outcome.map(|outcome| sink(index, outcome));
            if !matches!(flow, Ok(ControlFlow::Continue(()))) {
                cancelled.store(true, Ordering::Relaxed);
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
        Outcome::Read(Reading { prompt_tokens: index, ..Reading::default() })
    }

    #[test]
    fn each_is_answered_once_with_its_own_answer() {
        let mut seen = vec![0; 100];
        in_parallel(
            100,
            8,
            |index, budget| {
                let _room = budget.take(index % 20); // more than the limit now and then
                Ok(outcome(index))
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
                Ok(outcome(index))
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
                _ => Ok(outcome(index)),
            },
            &mut |_, _| ControlFlow::Continue(()),
        );
        assert!(matches!(failed, Err(Error::UnknownDevice { .. })));
        in_parallel(0, 8, |index, _| Ok(outcome(index)), &mut |_, _| unreachable!()).unwrap();
    }
}
