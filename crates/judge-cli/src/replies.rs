//! The reply at the end of a conversation: what `judge tune --objective completion` learns, and `judge sft-evaluate` measures.

use judge_core::reward::closed_conversation;
use judge_core::{Message, Prompt};
use judge_data::{PromptInput, Record};
use judge_models::Model;

use crate::args::model_args::ModelArgs;

/// A conversation that ends with a reply of the assistant.
pub struct Replied {
    /// All turns before the reply, with what opens it.
    pub before: Prompt,
    /// The whole, with what the chat template closes the reply with.
    pub whole: Prompt,
}

impl Replied {
    /// That of a row: `messages` whose last turn is the assistant's, or an instruction and its response.
    ///
    /// # Errors
    /// What the row lacks, in words.
    pub fn of(record: &Record, model: &ModelArgs) -> Result<Self, String> {
        let messages = match record {
            Record::Prompt(record) => match &record.input {
                PromptInput::Messages(messages) => messages.clone(),
                PromptInput::Text(_) => return Err("a prompt without a reply; `messages` end with one".to_owned()),
            },
            Record::Graded(row) => {
                vec![Message::user(row.asked()), Message::new("assistant", row.response.clone())]
            }
            _ => return Err("expected `messages`, or `instruction` and `response`".to_owned()),
        };
        let Some((last, before)) = messages.split_last().filter(|(last, _)| last.role == "assistant") else {
            return Err("expected the last turn to be the assistant's".to_owned());
        };
        if last.content.is_empty() {
            return Err("the reply is empty".to_owned());
        }
        let before = model.dress(Prompt::chat(before.to_vec()));
        Ok(Self { before, whole: model.dress(closed_conversation(messages)) })
    }

    /// The tokens before the reply, and those of the reply with what closes it; both together are those of the whole.
    ///
    /// # Errors
    /// If a text cannot be encoded, or the chat template does not render the whole as the turns before and a reply behind them.
    pub fn tokens(&self, model: &Model) -> Result<(Vec<u32>, Vec<u32>), String> {
        let encoded = |prompt: &Prompt| model.tokens(prompt).map_err(|error| error.to_string());
        let (before, whole) = (encoded(&self.before)?, encoded(&self.whole)?);
        let reply = whole.strip_prefix(&before[..]).filter(|reply| !reply.is_empty());
        let reply =
            reply.ok_or("the chat template does not render the conversation as its prompt and a reply behind it")?;
        let reply = reply.to_vec();
        Ok((before, reply))
    }
}
