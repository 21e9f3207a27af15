use std::sync::Arc;

use judge_core::TokenId;

use crate::arch::ModelSpec;
use crate::text::TextCodec;

/// What is known of a model besides its weights.
pub(crate) struct Context {
    pub(crate) spec: Arc<ModelSpec>,
    pub(crate) codec: TextCodec,
    /// Tokens that end a text.
    pub(crate) eos: Vec<TokenId>,
}
