//! One text, or a pair of texts, as a cross-encoder reads them: what the post-processor of `tokenizer.json` makes of
//! both, with the type of each token.
//!
//! As in transformers each text is tokenised by itself, and the post-processor puts the special tokens around and
//! between them (`[CLS] a [SEP] b [SEP]`). Text never becomes a control token, even if it spells one.

use judge_core::request::TokenId;
use tokenizers::utils::truncation::{TruncationParams, truncate_encodings};
use tokenizers::{Encoding, PostProcessor as _, Token};

use super::TextCodec;
use super::guarded::{guarded, ids};
use crate::error::Error;

/// Texts as tokens.
pub struct Typed {
    /// The tokens, special ones included.
    pub ids: Vec<TokenId>,
    /// `token_type_ids`, one for each token; empty where the model is given none, and all are 0.
    pub types: Vec<u32>,
    /// The tokens of both texts of a pair, without special ones.
    pub lengths: Option<[usize; 2]>,
    /// How many tokens were cut.
    pub cut: usize,
}

impl TextCodec {
    /// The tokens of one text or of a pair, cut to `most` with the special ones, if that is given: the end of the longer text first.
    ///
    /// # Errors
    /// [`Error::Tokenizer`].
    pub fn encode_texts(&self, first: &str, second: Option<&str>, most: Option<usize>) -> Result<Typed, Error> {
        let fault = |source: tokenizers::Error| self.refused(source);
        let encoding = |text: &str| -> Result<Encoding, Error> {
            let found = if self.control.is_spelt_in(text) {
                self.plain()?.encode_text(text)
            } else {
                ids(&self.tokenizer, text)
            };
            // Offsets and spellings play no part here.
            let tokens = found.map_err(fault)?.into_iter().map(|id| Token::new(id, String::new(), (0, 0)));
            Ok(Encoding::from_tokens(tokens.collect(), 0))
        };
        let (first, second) = (encoding(first)?, second.map(encoding).transpose()?);
        let lengths = second.as_ref().map(|second| [first.len(), second.len()]);
        let count =
            |first: &Encoding, second: &Option<Encoding>| first.len() + second.as_ref().map_or(0, Encoding::len);
        let all = count(&first, &second);
        let (first, second) = match most {
            Some(most) => {
                let special = self.tokenizer.get_post_processor().map_or(0, |made| made.added_tokens(second.is_some()));
                let params =
                    TruncationParams { max_length: most.saturating_sub(special), ..TruncationParams::default() };
                truncate_encodings(first, second, &params).map_err(fault)?
            }
            None => (first, second),
        };
        let cut = all - count(&first, &second);
        let both = guarded(|| self.tokenizer.post_process(first, second, true)).map_err(fault)?;
        let types = if self.has_types { both.get_type_ids().to_vec() } else { Vec::new() };
        Ok(Typed { ids: both.get_ids().to_vec(), types, lengths, cut })
    }

    /// Whether the folder brings a chat template, though it may not compile.
    pub fn has_template(&self) -> bool {
        !matches!(self.template, super::Template::Absent { .. })
    }
}
