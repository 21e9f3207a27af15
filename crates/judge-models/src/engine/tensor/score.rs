//! Log-probabilities over the whole vocabulary and the most likely token, computed on the device, so
//! that a few numbers of each row are fetched and not all logits.
//!
//! `reads.rs` calls [`score`] for tokens that may come next and for tokens that are scored, and
//! [`greedy`] where text is written without chance. The
//! host has its own body of the same formula for rows of logits that it gets whole
//! (`reading/next_token.rs`). With the product `h` of state and head:
//!
//! ```text
//! z_i  = cap * tanh(h_i / cap)      with a soft-cap, else h_i
//! ln p = (z_i - max z) - ln Σ_j exp(z_j - max z)
//! ```

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use judge_core::request::TokenId;

use super::decoder::Decoder;
use super::precision::cast;
use crate::reading::next_token::LOGIT_ROWS;

/// Tokens whose log-probabilities are wanted, as many for each of some rows: `[rows, k]`.
pub(super) struct Tokens {
    /// Row-major.
    ids: Vec<i32>,
    /// Tokens of a row; at least 1.
    k: usize,
}

impl Tokens {
    /// Rows of tokens, filled up with token 0 where one has fewer than another; `None` if no row
    /// has a token.
    pub(super) fn new(rows: Vec<Vec<TokenId>>) -> Option<Self> {
        let k = rows.iter().map(Vec::len).max().filter(|&k| k > 0)?;
        let padded = rows.into_iter().flat_map(|row| row.into_iter().chain(std::iter::repeat(0)).take(k));
        Some(Self { ids: padded.map(TokenId::cast_signed).collect(), k })
    }
}

impl Tokens {
    /// Those of some successive rows, `[1, count, k]` on a device.
    fn rows(&self, start: usize, count: usize, device: &Device) -> Tensor<3, Int> {
        let ids = self.ids[start * self.k..(start + count) * self.k].to_vec();
        Tensor::from_data(TensorData::new(ids, [1, count, self.k]), device)
    }
}

/// The log-probabilities of `tokens` `[rows, k]`, which follow the normed states
/// `[1, rows, d_model]`: `[1, rows, k]` in f32 on the head's device.
///
/// All of a row are NaN where a logit over the vocabulary is not finite once it is soft-capped,
/// whether or not its token is asked for. No more than [`LOGIT_ROWS`] rows of logits are in memory
/// at once. There must be at least one row.
pub(super) fn score(decoder: &Decoder, states: Tensor<3>, tokens: &Tokens) -> Tensor<3> {
    let [_, rows, _] = states.dims();
    let found = (0..rows).step_by(LOGIT_ROWS).map(|start| {
        let count = LOGIT_ROWS.min(rows - start);
        let logits = decoder.logits(states.clone().narrow(1, start, count));
        let device = logits.device();
        log_probs(capped(decoder, logits), tokens.rows(start, count, &device))
    });
    Tensor::cat(found.collect(), 1)
}

/// The token with the largest logit of each of the normed states `[1, rows, d_model]`, as a number
/// in f32, which holds every id below 2^24: `[1, rows, 1]`. Of equal logits the smallest id is
/// taken. NaN where a logit is not finite once it is soft-capped. Behind it, in the last axis, come
/// the log-probabilities of `tokens`, if any are asked for, as [`score`] gives them.
///
/// Also the tokens alone, `[rows]`, to be fed: some token of the vocabulary where a logit is not
/// finite.
pub(super) fn greedy(decoder: &Decoder, states: Tensor<3>, tokens: Option<&Tokens>) -> (Tensor<3>, Tensor<1>) {
    let [_, rows, _] = states.dims();
    let (found, chosen): (Vec<_>, Vec<_>) = (0..rows)
        .step_by(LOGIT_ROWS)
        .map(|start| {
            let count = LOGIT_ROWS.min(rows - start);
            let logits = decoder.logits(states.clone().narrow(1, start, count));
            let logits = capped(decoder, logits);
            let device = logits.device();
            let chosen = first_highest(logits.clone());
            let token = chosen.clone() + fault(logits.clone());
            let found = match tokens {
                Some(tokens) => Tensor::cat(vec![token, log_probs(logits, tokens.rows(start, count, &device))], 2),
                None => token,
            };
            (found, chosen)
        })
        .unzip();
    (Tensor::cat(found, 1), Tensor::cat(chosen, 1).reshape([rows]))
}

/// Logits with the family's soft-cap. Keeps the shape.
fn capped(decoder: &Decoder, logits: Tensor<3>) -> Tensor<3> {
    match decoder.spec().final_soft_cap {
        Some(cap) => logits.div_scalar(cap).tanh().mul_scalar(cap),
        None => logits,
    }
}

/// The place of the first of the largest logits `[1, rows, d_vocab]`: `[1, rows, 1]` in f32. Which of
/// equal ones a device's own search finds is not said anywhere. Of logits that are no numbers, any place.
fn first_highest(logits: Tensor<3>) -> Tensor<3> {
    let [one, rows, d_vocab] = logits.dims();
    let ids = Tensor::<1, Int>::arange(0..d_vocab as i64, &logits.device()).float();
    let ids = cast(ids, DType::F32).reshape([1, 1, d_vocab]).expand([one, rows, d_vocab]);
    let is_lower = logits.clone().lower(logits.max_dim(2).expand([one, rows, d_vocab]));
    ids.mask_fill(is_lower, d_vocab.saturating_sub(1) as f32).min_dim(2)
}

/// Zero, or NaN if any logit of a row is not finite: the exponential of -inf alone would not show.
/// `[1, rows, d_vocab]` to `[1, rows, 1]`.
fn fault(logits: Tensor<3>) -> Tensor<3> {
    logits.mul_scalar(0.0).sum_dim(2)
}

/// The log-probabilities of tokens `[1, rows, k]` by their logits `[1, rows, d_vocab]`.
fn log_probs(logits: Tensor<3>, ids: Tensor<3, Int>) -> Tensor<3> {
    let below = logits.clone() - logits.max_dim(2); // [1, rows, d_vocab]
    let total = below.clone().exp().sum_dim(2).log(); // -> [1, rows, 1]
    let fault = fault(below.clone());
    below.gather(2, ids) - total + fault // -> [1, rows, k]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equal_logits_the_first_is_chosen_and_what_is_not_finite_shows() {
        let device = Device::flex();
        let find = |logits: [f32; 4]| {
            let logits = Tensor::<1>::from_floats(logits, &device).reshape([1, 1, 4]);
            let found = first_highest(logits.clone()) + fault(logits.clone());
            let place = first_highest(logits.clone()).into_data().try_to_vec::<f32>().unwrap()[0];
            assert!((0.0..=3.0).contains(&place), "{place}");
            found.into_data().try_to_vec::<f32>().unwrap()[0]
        };
        assert_eq!(find([1.0, 3.0, 3.0, -2.0]), 1.0);
        assert_eq!(find([-5.0, -5.0, -6.0, -5.0]), 0.0);
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert!(find([1.0, bad, 3.0, 0.0]).is_nan(), "{bad}");
        }
    }
}
