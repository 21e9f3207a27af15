//! What comes next, over the whole vocabulary: the choice of a token, log-probabilities, and the
//! mass of some tokens.
//!
//! `driver` makes a `NextToken` from the logits of one position; `engine/packed/run.rs` makes them
//! for the tokens of prompts that are scored. It is the one place on the host where the soft-cap is
//! applied and where logits are checked:
//!
//! ```text
//! z_i  = cap * tanh(h_i / cap)          with a soft-cap, else h_i (the product with the head)
//! ln p = z_i - ln Σ_j exp(z_j)
//! ```
//!
//! Sums have one fixed order, so a number depends on its own row of logits alone.

use std::cell::OnceCell;
use std::fmt::Display;

use judge_core::{
    Reason, Unscored,
    request::{Sampling, TokenId},
};
use judge_kernels::exp::exp;

use super::sampling::choose;
use super::side_by_side::{highest, sum};

/// Rows of logits over the whole vocabulary that an engine holds at once: 32 rows of 262,144 logits
/// are 32 MiB in f32.
pub(crate) const LOGIT_ROWS: usize = 32;

/// What is known of the token that follows one position.
pub(crate) enum NextToken<'a> {
    /// The last layer's logits `[d_vocab]`, soft-capped and all finite.
    Logits {
        /// The logits.
        logits: &'a [f32],
        /// `ln Σ e^z`, computed when the first log-probability is asked for: greedy writing needs none.
        normalizer: OnceCell<f64>,
    },
    /// What an engine has found on its device.
    Found(FoundNext),
}

/// The most likely token and log-probabilities of some others, from engines that look for them on the device.
pub(crate) struct FoundNext {
    /// The token with the largest logit, of several the one with the smallest id; `None` where a
    /// logit of the vocabulary is not finite, and where nothing is written.
    pub(crate) token: Option<TokenId>,
    /// `ln p` of the tokens of `Job::next_tokens`, NaN where a logit of the vocabulary is not finite.
    pub(crate) log_probs: Vec<(TokenId, f32)>,
}

impl<'a> NextToken<'a> {
    /// From the products with the head `[d_vocab]`, at least one, which are soft-capped in place.
    /// `place` says where in the sequence they are, for the error's text.
    ///
    /// # Errors
    /// If a logit is not finite once it is soft-capped: neither a choice nor a probability can rest
    /// on it.
    pub(crate) fn new(logits: &'a mut [f32], soft_cap: Option<f64>, place: impl Display) -> Result<Self, Unscored> {
        if let Some(cap) = soft_cap {
            let cap = cap as f32;
            logits.iter_mut().for_each(|z| *z = cap * libm::tanhf(*z / cap));
        }
        let not_finite = if all_finite(logits) { None } else { logits.iter().position(|z| !z.is_finite()) };
        match not_finite {
            Some(token) => {
                let detail = format!("the logit of token {token} at {place} is {}", logits[token]);
                Err(Unscored::new(Reason::NonFinite, detail))
            }
            None => Ok(Self::Logits { logits, normalizer: OnceCell::new() }),
        }
    }

    /// The token that follows, where `step` tokens were written before it; see [`choose`]. What an engine has found
    /// is the token of [`Sampling::Greedy`].
    ///
    /// # Errors
    /// If an engine has met a logit that is not finite.
    pub(crate) fn choose(&self, sampling: &Sampling, step: usize) -> Result<TokenId, Unscored> {
        match self {
            Self::Logits { logits, .. } => Ok(choose(logits, sampling, step)),
            Self::Found(found) => found
                .token
                .ok_or_else(|| Unscored::new(Reason::NonFinite, format!("a logit at step {step} is not finite"))),
        }
    }

    /// `ln p` of a token, at most 0. Of logits, minus infinity for a token that is not in the vocabulary; of what an
    /// engine has found, NaN, which is refused with the reading, where the logits are not finite or the token is not
    /// among those asked for.
    pub(crate) fn log_prob(&self, token: TokenId) -> f64 {
        match self {
            Self::Logits { logits, normalizer } => {
                let logit = logits.get(token as usize).map_or(f64::NEG_INFINITY, |&z| f64::from(z));
                (logit - *normalizer.get_or_init(|| log_sum_exp(logits))).min(0.0)
            }
            Self::Found(found) => {
                let known = found.log_probs.iter().find(|(known, _)| *known == token);
                known.map_or(f64::NAN, |&(_, log_prob)| f64::from(log_prob))
            }
        }
    }

    /// The share of the probability that lies on the tokens, each counted once; from 0 to 1, or NaN
    /// if one log-probability is.
    pub(crate) fn mass(&self, tokens: &[TokenId]) -> f32 {
        let distinct = tokens.iter().enumerate().filter(|(place, token)| !tokens[..*place].contains(token));
        distinct.map(|(_, &token)| libm::exp(self.log_prob(token))).sum::<f64>().clamp(0.0, 1.0) as f32
    }
}

/// Whether all logits are finite. 0 times a number is 0 then and NaN else, and a sum of that is made
/// faster than a search for the first that is not.
fn all_finite(logits: &[f32]) -> bool {
    let nothing = sum(
        logits,
        #[inline(always)]
        |z| f64::from(z * 0.0),
    );
    nothing.is_finite()
}

/// `ln Σ e^z`, computed as `m + ln Σ e^(z - m)` with the largest logit `m`. The terms are f32, to
/// about two units in the last place; their sum is `f64`.
fn log_sum_exp(logits: &[f32]) -> f64 {
    let highest = highest(logits);
    let sum = sum(
        logits,
        #[inline(always)]
        |z| f64::from(exp(z - highest)),
    );
    f64::from(highest) + libm::log(sum)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn log_probabilities_are_those_of_a_softmax(logits in prop::collection::vec(-60.0_f32..60.0, 1..200)) {
            let total: f64 = logits.iter().map(|&z| f64::from(z).exp()).sum();
            let mut copy = logits.clone();
            let next = NextToken::new(&mut copy, None, "step 0").unwrap();
            for (token, &z) in logits.iter().enumerate() {
                let (found, expected) = (next.log_prob(token as TokenId), f64::from(z) - total.ln());
                prop_assert!(found <= 0.0 && (found - expected).abs() < 1e-6, "{found} {expected}");
            }
            let all: Vec<TokenId> = (0..logits.len() as TokenId).collect();
            prop_assert!(next.mass(&all) <= 1.0 && next.mass(&all) > 0.999_999);
            prop_assert_eq!(next.mass(&[0, 0]), next.mass(&[0]));
            prop_assert!((f64::from(next.mass(&[0])) - f64::from(logits[0]).exp() / total).abs() < 1e-6);
        }
    }

    #[test]
    fn the_cap_comes_first_and_what_is_not_finite_is_refused() {
        let capped = |z: f32| 30.0 * (f64::from(z) / 30.0).tanh();
        let mut logits = [1.0, f32::INFINITY, -40.0];
        let next = NextToken::new(&mut logits, Some(30.0), "step 0").unwrap();
        let total = capped(1.0).exp() + 30.0_f64.exp() + capped(-40.0).exp();
        assert!((next.log_prob(2) - (capped(-40.0) - total.ln())).abs() < 1e-5);
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut logits = [0.0, bad];
            let Err(fault) = NextToken::new(&mut logits, None, "step 3") else { panic!("{bad} is accepted") };
            assert_eq!(
                (fault.reason, fault.detail),
                (Reason::NonFinite, format!("the logit of token 1 at step 3 is {bad}"))
            );
        }
    }
}
