//! What is known of a model besides its weights. `model.rs` makes it once; `check`, `jobs` and
//! `driver` read it.

use judge_core::TokenId;

use crate::arch::Architecture;
use crate::text::TextCodec;

/// A model without its weights: enough to check, tokenise and group requests, and to end texts.
pub(crate) struct Context {
    /// The description of its blocks, head and dimensions.
    pub(crate) spec: Architecture,
    /// Tokenizer and chat template.
    pub(crate) codec: TextCodec,
    /// Tokens that end a text: those of `generation_config.json`, or else of `config.json`. May be
    /// empty.
    pub(crate) eos: Vec<TokenId>,
}
