//! What a step learns from.

use judge_core::request::TokenId;

/// A sequence to learn from.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    /// The tokens: at least two, at most the model's context, all in the vocabulary.
    pub tokens: Vec<TokenId>,
    /// For each token how much its cross-entropy, given the tokens before it, counts. Finite and
    /// not negative, shape `[tokens.len()]`; nothing precedes the first token, so its weight is not
    /// used.
    pub weights: Vec<f32>,
}
