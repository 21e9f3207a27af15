use std::sync::Arc;

use judge_core::TokenId;

use crate::arch::DecoderConfig;
use crate::text::TextCodec;

/// What is known of a model besides its weights.
pub(crate) struct Context {
    pub(crate) config: Arc<DecoderConfig>,
    pub(crate) codec: TextCodec,
    /// Tokens that end a text.
    pub(crate) eos: Vec<TokenId>,
}
