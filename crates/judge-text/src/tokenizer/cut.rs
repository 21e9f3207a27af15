//! Prompts that are cut where they are too long: one text loses tokens at its end, and what the template writes behind it stays.
//!
//! ```text
//! all     <s> query : a document of many words </s> yes or no :
//! empty   <s> query : </s> yes or no :                              the text is left out: what stays behind it is what both end with
//! cut     <s> query : a document </s> yes or no :
//! ```
//!
//! Tokens are cut, not characters, so that what stays is read as it would be of the whole text. A pair of texts without a template is
//! cut in `pair.rs`.

use judge_core::{Prompt, Reason, Unscored, request::TokenId};
use serde_json::Value;

use super::TextCodec;
use crate::error::Error;

impl TextCodec {
    /// The tokens of a prompt, cut to `most` of them, and how many were cut.
    ///
    /// # Errors
    /// As [`encode_within`](Self::encode_within), also of a template that refuses every shorter text; a prompt that is too long without
    /// the text that may be cut is [`Reason::TooLong`].
    pub fn encode_cut(&self, prompt: &Prompt, most: usize) -> Result<(Vec<TokenId>, usize), Error> {
        let all = self.encode_within(prompt, usize::MAX)?;
        let Some(text) = text(prompt).filter(|_| all.len() > most) else { return Ok((all, 0)) };
        let half = &text[..text.floor_char_boundary(text.len() / 2)];
        let (mut behind, mut least, mut refused) = (all.len(), usize::MAX, None);
        // Of a text that happens to end as what is before it does, or as its own half, these would show too long an end: one that ends in
        // another letter does not.
        let other = if text.ends_with('x') { "y" } else { "x" };
        for shorter in ["", half, other] {
            let mut shortened = prompt.clone();
            set_text(&mut shortened, shorter);
            let mut ids = match self.open_ended(&shortened) {
                Ok(ids) => ids,
                // A template may want a text, or a longer one.
                Err(error) => {
                    refused = Some(error);
                    continue;
                }
            };
            if self.is_surrounded(&shortened) {
                ids.extend(&self.surround.after);
            }
            behind = behind.min(all.iter().rev().zip(ids.iter().rev()).take_while(|(a, b)| a == b).count());
            least = least.min(ids.len());
        }
        if let (usize::MAX, Some(error)) = (least, refused) {
            return Err(error);
        }
        if least > most {
            let limit = match prompt.truncation().flatten() {
                Some(given) if given == most => "the limit of the prompt is",
                _ => "the context has",
            };
            let detail = format!("{least} prompt tokens without the text that may be cut, {limit} {most}");
            return Err(Unscored::new(Reason::TooLong, detail).into());
        }
        let cut = all.len() - most;
        let kept = most.saturating_sub(behind);
        let ids = all[..kept].iter().chain(&all[all.len() - (most - kept)..]).copied().collect();
        Ok((ids, cut))
    }
}

/// The text that may be cut: of a conversation its last turn, else the value that the prompt names.
fn text(prompt: &Prompt) -> Option<&str> {
    match prompt {
        Prompt::Raw(_) => None,
        Prompt::Chat { messages, .. } => messages.last().map(|message| message.content.as_str()),
        Prompt::Whole(whole) => whole.values.get(&whole.cut.as_ref()?.value)?.as_str(),
    }
}

/// Puts another text in its place.
fn set_text(prompt: &mut Prompt, text: &str) {
    match prompt {
        Prompt::Raw(_) => {}
        Prompt::Chat { messages, .. } => {
            if let Some(last) = messages.last_mut() {
                last.content = text.to_owned();
            }
        }
        Prompt::Whole(whole) => {
            if let Some(cut) = &whole.cut {
                whole.values.insert(cut.value.clone(), Value::from(text));
            }
        }
    }
}
