//! What a model is fed for a prompt: the tokens that the tokenizer and the chat template make, or for a cross-encoder a
//! pair of texts.
//!
//! A cross-encoder is an encoder trained on pairs: a query and a document, a request and a response. It has no chat
//! template. So a closed conversation (`add_generation_prompt` false, as rewards are asked for)
//! of one turn is its text, and of two turns its pair, as they are: white space around them counts, as in transformers and in
//! sentence-transformers 6.2 (`CrossEncoder`).

use judge_arch::{Architecture, EncoderSpec};
use judge_core::{Message, Prompt, Reason, Unscored};
use judge_text::Typed;
use serde_json::Value;

use super::context::Context;
use crate::Error;

impl Context {
    /// The tokens of a prompt with their types (`token_type_ids`), which are empty where all are 0. A prompt that
    /// [may be cut](Prompt::with_truncation) is, to what the model can read. Another whose bytes show that it has
    /// more than `most` tokens is not tokenised: it is [`Reason::TooLong`].
    ///
    /// # Errors
    /// [`Error::Prompt`] for what the prompt itself is to blame for; those of the tokenizer and of the chat template.
    pub(crate) fn fed(&self, prompt: &Prompt, most: usize) -> Result<Typed, Error> {
        let cut_to = prompt.truncation().map(|most| most.unwrap_or(usize::MAX).min(self.spec.dimensions().max_len));
        let Some((encoder, messages)) = self.closed_texts(prompt) else {
            let (ids, cut) = match cut_to {
                Some(most) => self.codec.encode_cut(prompt, most)?,
                None => (self.codec.encode_within(prompt, most)?, 0),
            };
            return Ok(Typed { ids, types: Vec::new(), lengths: None, cut });
        };
        let unscored = |reason, detail: String| Err(Error::from(Unscored::new(reason, detail)));
        let (first, second) = match messages {
            _ if prompt.is_empty() => return unscored(Reason::EmptyPrompt, "the prompt has no text".to_owned()),
            [only] => (only.content.as_str(), None),
            [first, second] => (first.content.as_str(), Some(second.content.as_str())),
            more => {
                let count = more.len();
                let detail = format!("a cross-encoder reads one text or two, and the conversation has {count} turns");
                return unscored(Reason::Template, detail);
            }
        };
        let longer = if second.is_some_and(|second| second.len() > first.len()) { second } else { Some(first) };
        if let Some(text) = longer.filter(|_| cut_to.is_none()) {
            self.codec.fits(text, most)?;
        }
        let Typed { ids, mut types, lengths, cut } = self.codec.encode_texts(first, second, cut_to)?;
        match &encoder.embedding.types {
            Some(table) if table.of_pairs => {
                if let Some(found) = types.iter().find(|&&found| found as usize >= table.rows) {
                    let detail =
                        format!("the tokenizer gives tokens the type {found}, the model has {} types", table.rows);
                    return unscored(Reason::Tokenizer, detail);
                }
            }
            _ => types.clear(),
        }
        Ok(Typed { ids, types, lengths, cut })
    }

    /// The turns of a closed conversation, where the model is an encoder without a template, which is a cross-encoder or
    /// is to become one; `None` for any other prompt or model.
    fn closed_texts<'p>(&self, prompt: &'p Prompt) -> Option<(&EncoderSpec, &'p [Message])> {
        let Architecture::Encoder(encoder) = &self.spec else { return None };
        let Prompt::Chat { messages, template_args, trusted_prefill, prefill } = prompt else { return None };
        let is_closed = template_args.get("add_generation_prompt") == Some(&Value::Bool(false));
        (!self.codec.has_template() && is_closed && trusted_prefill.is_empty() && prefill.is_empty())
            .then_some((encoder, messages))
    }
}
