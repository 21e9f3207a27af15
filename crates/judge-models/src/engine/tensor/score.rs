//! Log-probabilities over the whole vocabulary, computed on the device, so that only those of a few
//! tokens are fetched.
//!
//! `reads.rs` calls [`score`] for tokens that may come next and for tokens that are scored. The
//! host has its own body of the same formula for rows of logits that it gets whole
//! (`reading/next_token.rs`). With the product `h` of state and head:
//!
//! ```text
//! z_i  = cap * tanh(h_i / cap)      with a soft-cap, else h_i
//! ln p = (z_i - max z) - ln Σ_j exp(z_j - max z)
//! ```

use burn::tensor::{Int, Tensor, TensorData};
use judge_core::TokenId;

use super::decoder::Decoder;
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

/// The log-probabilities of `tokens` `[rows, k]`, which follow the normed states
/// `[1, rows, d_model]`: `[1, rows, k]` in f32 on the head's device. `head` is the decoder's in
/// f32.
///
/// All of a row are NaN where a logit over the vocabulary is not finite once it is soft-capped,
/// whether or not its token is asked for. No more than [`LOGIT_ROWS`] rows of logits are in memory
/// at once. There must be at least one row.
pub(super) fn score(decoder: &Decoder, head: Tensor<2>, states: Tensor<3>, tokens: &Tokens) -> Tensor<3> {
    let device = head.device();
    let [_, rows, _] = states.dims();
    let mut found = Vec::with_capacity(rows.div_ceil(LOGIT_ROWS));
    for (start, ids) in (0..rows).step_by(LOGIT_ROWS).zip(tokens.ids.chunks(LOGIT_ROWS * tokens.k)) {
        let count = ids.len() / tokens.k;
        let ids = Tensor::<3, Int>::from_data(TensorData::new(ids.to_vec(), [1, count, tokens.k]), &device);
        let mut logits = decoder.logits_by(head.clone(), states.clone().narrow(1, start, count)); // [1, count, d_vocab]
        if let Some(cap) = decoder.spec().final_soft_cap {
            logits = logits.div_scalar(cap).tanh().mul_scalar(cap);
        }
        let below = logits.clone() - logits.max_dim(2); // [1, count, d_vocab]
        let total = below.clone().exp().sum_dim(2).log(); // -> [1, count, 1]
        // Zero, or NaN if any logit is not finite: the exponential of -inf alone would not show.
        let fault = below.clone().mul_scalar(0.0).sum_dim(2); // -> [1, count, 1]
        found.push(below.gather(2, ids) - total + fault); // -> [1, count, k]
    }
    Tensor::cat(found, 1)
}
