//! What is known of a model besides its weights. `model.rs` makes it once; `check`, `jobs` and
//! `driver` read it.

use judge_arch::Architecture;
use judge_core::request::TokenId;
use judge_text::TextCodec;

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

impl Context {
    /// What is to be said of tokens that a text can become though the model has no embedding for
    /// them; `None` if there are none. Prompts with such a token are unscored, one by one.
    pub(crate) fn tokens_beyond(&self) -> Option<String> {
        /// Tokens that are named.
        const SHOWN: usize = 5;
        let d_vocab = self.spec.dimensions().d_vocab;
        let beyond = self.codec.tokens_from(d_vocab);
        let named = beyond.iter().take(SHOWN).map(|(id, text)| format!("{text:?} ({id})")).collect::<Vec<_>>();
        let more = beyond.len().checked_sub(SHOWN).filter(|&more| more > 0);
        let more = more.map_or_else(String::new, |more| format!(" and {more} more"));
        (!beyond.is_empty()).then(|| {
            let named = named.join(", ");
            format!(
                "the tokenizer has tokens that the model, which has {d_vocab}, has no embedding for: {named}{more}; \
                prompts with one of them get no score"
            )
        })
    }
}
