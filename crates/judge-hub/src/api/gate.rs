//! How many requests are sent at once and per minute, over all runs of a model.
//!
//! `model` calls `enter` before each attempt, `wait` between attempts, `pause` when a service asks
//! for a wait, `is_idle` while it waits for an outcome, and `end` when a run is over. `Gate` is the
//! shared state under one lock; `Pace` is pure arithmetic on times and knows no clock.
//!
//! Pace is a schedule without bursts. Two clocks run ahead of the real one, and a request starts
//! when both have been caught up with:
//!
//! ```text
//! next_request = max(next_request, now) + 60 / requests_per_minute
//! next_token   = max(next_token,   now) + 60 / tokens_per_minute * estimated tokens
//! a request may start at   max(next_request, next_token, paused_until)
//! ```
//!
//! Time that nobody used is not saved up, since `max(…, now)` forgets it. When an answer brings the
//! service's own count, `next_token` moves by the difference to the estimate, forward by a minute at most: a count that is
//! beyond all sense stops no run.
//!
//! Invariants: a permit is held exactly while a request is in flight, not between attempts; waiting
//! ends at once when the run is over; a lock that a panic poisoned is used as it is.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What every request passes before it is sent.
#[derive(Debug)]
pub(super) struct Gate {
    /// Most requests in flight at once.
    concurrency: usize,
    /// Times in [`Pace`] are counted from here.
    origin: Instant,
    /// What changes as requests come and go.
    state: Mutex<State>,
    /// Notified when a permit is given back and when a run ends. Pauses and settled counts need no
    /// notice: a thread that waits looks at the times again when its own wait is over, and a permit's end
    /// follows its settling.
    changed: Condvar,
}

/// The state under the gate's lock.
#[derive(Debug)]
struct State {
    /// Requests in flight.
    open: usize,
    /// When the next one may start.
    pace: Pace,
}

/// Leave to have one request in flight. The place is free again when this is dropped.
pub(super) struct Permit<'g> {
    /// Where the place is.
    gate: &'g Gate,
    /// Tokens that the request is charged for now: the estimate, or the count once that is known.
    tokens: u64,
}

impl Gate {
    /// A gate for so many requests at once, with limits per minute where given. Limits must be
    /// finite and above 0, which the settings check.
    pub(super) fn new(concurrency: usize, requests_per_minute: Option<f64>, tokens_per_minute: Option<f64>) -> Self {
        let state = State { open: 0, pace: Pace::new(requests_per_minute, tokens_per_minute) };
        Self { concurrency, origin: Instant::now(), state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Waits until a request of about `tokens` tokens may be sent, and charges it. `None` once the
    /// run is `over`. Nothing orders those who wait: whichever thread wakes first goes first.
    pub(super) fn enter(&self, tokens: u64, over: &AtomicBool) -> Option<Permit<'_>> {
        let mut state = self.lock();
        loop {
            if over.load(Ordering::SeqCst) {
                return None;
            }
            let (now, earliest) = (self.origin.elapsed(), state.pace.earliest());
            state = match state.open < self.concurrency {
                true if earliest <= now => {
                    state.open += 1;
                    state.pace.start(now, tokens);
                    return Some(Permit { gate: self, tokens });
                }
                true => self.changed.wait_timeout(state, earliest - now).unwrap_or_else(PoisonError::into_inner).0,
                false => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Waits for `duration`; `None` once the run is `over`, even if the time has passed too.
    pub(super) fn wait(&self, duration: Duration, over: &AtomicBool) -> Option<()> {
        let until = self.origin.elapsed().saturating_add(duration);
        let mut state = self.lock();
        loop {
            let left = until.saturating_sub(self.origin.elapsed());
            match over.load(Ordering::SeqCst) {
                true => return None,
                false if left.is_zero() => return Some(()),
                false => state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
            }
        }
    }

    /// Whether no request is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.lock().open == 0
    }

    /// Lets no request start for `duration` from now, of any run. A longer pause that is in force
    /// stays.
    pub(super) fn pause(&self, duration: Duration) {
        let until = self.origin.elapsed().saturating_add(duration);
        self.lock().pace.pause_until(until);
    }

    /// Ends a run by setting its flag `over`: nothing of it waits here any longer, and nothing of
    /// it starts.
    pub(super) fn end(&self, over: &AtomicBool) {
        let _state = self.lock(); // a thread that has looked at `over` waits by now
        over.store(true, Ordering::SeqCst);
        self.changed.notify_all();
    }

    /// The state, also after a thread has panicked with the lock.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permit<'_> {
    /// Puts the service's own count of tokens in the place of the estimate.
    pub(super) fn settle(&mut self, tokens: u64) {
        self.gate.lock().pace.settle(self.tokens, tokens);
        self.tokens = tokens;
    }
}

impl Drop for Permit<'_> {
    /// Gives the place back and wakes those who wait for one.
    fn drop(&mut self) {
        self.gate.lock().open -= 1;
        self.gate.changed.notify_all();
    }
}

/// When requests may start. Each takes its share of a minute from when it starts; there are no
/// bursts. All times are counted from [`Gate::origin`].
#[derive(Debug)]
struct Pace {
    /// Time between two starts; zero without a limit.
    per_request: Duration,
    /// Seconds that a token takes; 0 without a limit.
    per_token: f64,
    /// When the limit of requests lets the next one start.
    next_request: Duration,
    /// When the limit of tokens lets the next request start.
    next_token: Duration,
    /// When the pause that a service asked for is over.
    paused_until: Duration,
}

impl Pace {
    /// The pace of limits per minute; `None` for no limit.
    fn new(requests_per_minute: Option<f64>, tokens_per_minute: Option<f64>) -> Self {
        let share = |per_minute: Option<f64>| per_minute.map_or(0.0, |rate| 60.0 / rate);
        Self {
            per_request: seconds(share(requests_per_minute)),
            per_token: share(tokens_per_minute),
            next_request: Duration::ZERO,
            next_token: Duration::ZERO,
            paused_until: Duration::ZERO,
        }
    }

    /// When the next request may start, at the earliest.
    fn earliest(&self) -> Duration {
        self.next_request.max(self.next_token).max(self.paused_until)
    }

    /// Charges a request of about `tokens` tokens that starts at `now`.
    fn start(&mut self, now: Duration, tokens: u64) {
        self.next_request = self.next_request.max(now).saturating_add(self.per_request);
        self.next_token = self.next_token.max(now).saturating_add(seconds(tokens as f64 * self.per_token));
    }

    /// Corrects the charge of a request that was estimated to take `estimated` tokens and took
    /// `counted`.
    fn settle(&mut self, estimated: u64, counted: u64) {
        let difference = seconds(counted.abs_diff(estimated) as f64 * self.per_token);
        self.next_token = match counted > estimated {
            true => self.next_token.saturating_add(difference),
            false => self.next_token.saturating_sub(difference),
        };
    }

    /// Lets nothing start before `until`.
    fn pause_until(&mut self, until: Duration) {
        self.paused_until = self.paused_until.max(until);
    }
}

/// A duration of so many seconds; the longest there is where no clock can hold it.
fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn requests_are_spaced_evenly() {
        let mut pace = Pace::new(Some(120.0), None);
        assert_eq!(pace.earliest(), Duration::ZERO);
        pace.start(SECOND, 1_000_000);
        assert_eq!(pace.earliest(), SECOND * 3 / 2);
        // One that starts late moves those after it, and time that was not used does not add up to a burst.
        pace.start(10 * SECOND, 0);
        assert_eq!(pace.earliest(), SECOND * 21 / 2);
    }

    #[test]
    fn tokens_are_paid_ahead_and_settled() {
        let mut pace = Pace::new(None, Some(600.0));
        pace.start(SECOND, 50);
        assert_eq!(pace.earliest(), 6 * SECOND);
        pace.settle(50, 20);
        assert_eq!(pace.earliest(), 3 * SECOND);
        pace.settle(20, 40);
        assert_eq!(pace.earliest(), 5 * SECOND);
        pace.pause_until(9 * SECOND);
        pace.pause_until(7 * SECOND);
        assert_eq!(pace.earliest(), 9 * SECOND);
    }

    #[test]
    fn rates_that_are_almost_none_wait_almost_forever() {
        let mut pace = Pace::new(Some(1e-300), Some(1e-300));
        pace.start(SECOND, 5);
        pace.settle(5, 9);
        assert_eq!(pace.earliest(), Duration::MAX);
    }

    #[test]
    fn a_run_that_is_over_waits_no_longer() {
        let (gate, over) = (Gate::new(1, Some(0.1), None), AtomicBool::new(false));
        let permit = gate.enter(1, &over).expect("the first request goes through");
        std::thread::scope(|scope| {
            let full = scope.spawn(|| gate.enter(1, &over).is_none());
            let late = scope.spawn(|| gate.wait(3600 * SECOND, &over).is_none());
            gate.end(&over);
            assert!(full.join().expect("ends") && late.join().expect("ends"));
        });
        drop(permit);
        assert_eq!(gate.lock().open, 0);
        assert!(gate.wait(Duration::ZERO, &AtomicBool::new(false)).is_some());
    }
}
