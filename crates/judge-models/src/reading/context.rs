use judge_core::TokenId;

use crate::arch::Architecture;
use crate::text::TextCodec;

/// What is known of a model besides its weights.
pub(crate) struct Context {
    pub(crate) spec: Architecture,
    pub(crate) codec: TextCodec,
    /// Tokens that end a text.
    pub(crate) eos: Vec<TokenId>,
}
