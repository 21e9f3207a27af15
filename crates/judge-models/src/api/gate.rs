//! How many requests are sent at once and per minute, over all runs of a model.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What every request passes before it is sent.
#[derive(Debug)]
pub(super) struct Gate {
    concurrency: usize,
    /// Times are counted from here.
    origin: Instant,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// Requests in flight.
    open: usize,
    pace: Pace,
}

/// Leave to have one request in flight; it ends with its drop.
pub(super) struct Permit<'g> {
    gate: &'g Gate,
    tokens: u64,
}

impl Gate {
    pub(super) fn new(concurrency: usize, requests_per_minute: Option<f64>, tokens_per_minute: Option<f64>) -> Self {
        let state = State { open: 0, pace: Pace::new(requests_per_minute, tokens_per_minute) };
        Self { concurrency, origin: Instant::now(), state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Waits until a request of about so many tokens may be sent; `None` once the run is `over`.
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

    /// Waits so long; `None` once the run is `over`.
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

    /// Sends nothing for so long.
    pub(super) fn pause(&self, duration: Duration) {
        let until = self.origin.elapsed().saturating_add(duration);
        self.lock().pace.pause_until(until);
    }

    /// Ends a run: nothing of it waits here any longer.
    pub(super) fn end(&self, over: &AtomicBool) {
        let _state = self.lock(); // whoever has looked at `over` already waits by now
        over.store(true, Ordering::SeqCst);
        self.changed.notify_all();
    }

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
    fn drop(&mut self) {
        self.gate.lock().open -= 1;
        self.gate.changed.notify_all();
    }
}

/// When requests may start. Each takes its share of a minute from when it starts; there are no bursts.
#[derive(Debug)]
struct Pace {
    per_request: Duration,
    /// In seconds.
    per_token: f64,
    next_request: Duration,
    next_token: Duration,
    paused_until: Duration,
}

impl Pace {
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

    /// A request of about so many tokens starts.
    fn start(&mut self, now: Duration, tokens: u64) {
        self.next_request = self.next_request.max(now).saturating_add(self.per_request);
        self.next_token = self.next_token.max(now).saturating_add(seconds(tokens as f64 * self.per_token));
    }

    /// A request that was thought to take so many tokens took another number of them.
    fn settle(&mut self, estimated: u64, counted: u64) {
        let difference = seconds(counted.abs_diff(estimated) as f64 * self.per_token);
        self.next_token = match counted > estimated {
            true => self.next_token.saturating_add(difference),
            false => self.next_token.saturating_sub(difference),
        };
    }

    fn pause_until(&mut self, until: Duration) {
        self.paused_until = self.paused_until.max(until);
    }
}

/// A wait that no clock can hold is as long as one can.
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
