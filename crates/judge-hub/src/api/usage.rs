//! Counts of requests and tokens, and their price.
//!
//! `model` counts through `Counters` from many threads; users see `ApiUsage`, a copy of the counts
//! at one moment.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

/// What was asked of a service so far, by all runs of an [`ApiModel`](super::ApiModel).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ApiUsage {
    /// Requests sent, repeated ones and failed ones included.
    pub requests: u64,
    /// How many of the requests repeat one that failed.
    pub retries: u64,
    /// Tokens read, as the service counts them. Includes answers that had to be asked for again.
    pub prompt_tokens: u64,
    /// Tokens written, as the service counts them. Includes answers that had to be asked for again.
    pub completion_tokens: u64,
    /// Answers with a status of success of which the service did not count the tokens.
    pub uncounted: u64,
}

/// What a million tokens cost, in the currency of the caller who gives the prices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    /// Price of a million tokens that are read.
    pub input: f64,
    /// Price of a million tokens that are written.
    pub output: f64,
}

impl ApiUsage {
    /// What the counted tokens cost, in the prices' currency: tokens by their price, divided by a
    /// million. Answers that were not counted add nothing.
    pub fn cost(&self, prices: &Prices) -> f64 {
        (self.prompt_tokens as f64 * prices.input + self.completion_tokens as f64 * prices.output) / 1e6
    }
}

/// The counts, as threads add to them.
#[derive(Debug, Default)]
pub(super) struct Counters(Mutex<ApiUsage>);

/// The tokens of one answer, as the service counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tokens {
    /// `usage.prompt_tokens`.
    pub(super) prompt: u64,
    /// `usage.completion_tokens`.
    pub(super) completion: u64,
}

impl Counters {
    /// Counts a request that is about to be sent.
    pub(super) fn sent(&self, is_retry: bool) {
        let mut usage = self.lock();
        usage.requests += 1;
        usage.retries += u64::from(is_retry);
    }

    /// Counts the tokens of an answer with a status of success; `None` if the service does not say
    /// them.
    pub(super) fn answered(&self, tokens: Option<Tokens>) {
        let mut usage = self.lock();
        match tokens {
            // A service may say any number: the sum wraps and does not panic.
            Some(Tokens { prompt, completion }) => {
                usage.prompt_tokens = usage.prompt_tokens.wrapping_add(prompt);
                usage.completion_tokens = usage.completion_tokens.wrapping_add(completion);
            }
            None => usage.uncounted += 1,
        }
    }

    /// The counts at this moment.
    pub(super) fn now(&self) -> ApiUsage {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, ApiUsage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_counted_and_priced() {
        let counters = Counters::default();
        counters.sent(false);
        counters.sent(true);
        counters.answered(Some(Tokens { prompt: 300_000, completion: 1_000 }));
        counters.answered(None);
        let usage = counters.now();
        assert_eq!((usage.requests, usage.retries, usage.uncounted), (2, 1, 1));
        assert!((usage.cost(&Prices { input: 0.5, output: 10.0 }) - 0.16).abs() < 1e-12);
    }
}
