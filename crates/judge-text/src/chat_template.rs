//! A model's own chat template, with the variables that transformers gives it. `judge-jinja` renders it.
//!
//! Not here: the files that have a template (`tokenizer/special_tokens.rs`), a prefill, and which control tokens of the text are real
//! (`tokenizer/literal.rs`).

use std::collections::BTreeMap;

use judge_core::{Message, decision::exact_json};
use judge_jinja::{Date, Template, TemplateError};
use serde_json::{Value, json};

/// A chat template that is read, ready to be rendered any number of times, from several threads at once.
pub struct ChatTemplate {
    template: Template,
    /// Whether `content` is a list of parts, as in [`render`](Self::render).
    takes_parts: bool,
}

impl ChatTemplate {
    /// Reads a template. `date` is the day that its `strftime_now` shows.
    ///
    /// # Errors
    /// Those of [`Template::new`].
    pub fn new(source: &str, date: Date) -> Result<Self, TemplateError> {
        let template = Template::new(source, date)?.with_whole_numbers(exact_json::whole_number);
        Ok(Self { template, takes_parts: false })
    }

    /// The same template, given the form of `content` that it reads: the text itself, unless nothing of that is in what it makes of a
    /// user's turn, and the text of a part is. So are those of models that see pictures and walk over a list of parts.
    #[must_use]
    pub(crate) fn with_its_content(mut self, special_tokens: &BTreeMap<String, String>) -> Self {
        self.takes_parts = !self.writes_content(special_tokens);
        self.takes_parts = self.takes_parts && self.writes_content(special_tokens);
        self
    }

    /// Whether other texts of a user's turn, which is the first or follows the system's, make other outputs.
    fn writes_content(&self, special_tokens: &BTreeMap<String, String>) -> bool {
        let rendered = |before: &[Message], content: &str| {
            let turns: Vec<Message> = before.iter().cloned().chain([Message::user(content)]).collect();
            self.render(&turns, special_tokens, &BTreeMap::new()).ok()
        };
        let system = [Message::new("system", "a")];
        let differs = |before: &[Message], one: String| rendered(before, "c d").is_some_and(|other| one != other);
        [&[], &system[..]].into_iter().any(|before| rendered(before, "b").is_some_and(|one| differs(before, one)))
    }

    /// The template's text as its file has it. `Control` looks in it for the
    /// added tokens that it writes.
    pub fn source(&self) -> &str {
        self.template.source()
    }

    /// Whether a tag of the template reads a variable of this name, or sets one.
    pub fn names(&self, name: &str) -> bool {
        self.template.names(name)
    }

    /// Renders the conversation and opens the generation prompt after it.
    ///
    /// The template sees these variables; each row goes over those above it:
    ///
    /// | variable | value |
    /// |---|---|
    /// | `tools`, `documents` | none |
    /// | `add_generation_prompt` | true |
    /// | `bos_token`, `eos_token`, … | `special_tokens`, as texts |
    /// | any other name | `args` |
    /// | `messages` | a list of maps with `role` and `content` |
    ///
    /// `content` is a text, or `[{"type": "text", "text": …}]` for a template that walks over parts.
    ///
    /// # Errors
    /// Those of [`Template::render`]. They cost the item, not the run.
    pub fn render(
        &self,
        messages: &[Message],
        special_tokens: &BTreeMap<String, String>,
        args: &BTreeMap<String, Value>,
    ) -> Result<String, TemplateError> {
        let messages = messages.iter().map(|Message { role, content, .. }| match self.takes_parts {
            false => json!({ "role": role, "content": content }),
            true => json!({ "role": role, "content": [{ "type": "text", "text": content }] }),
        });
        let messages = Value::Array(messages.collect());
        let (none, opens) = (Value::Null, Value::Bool(true));
        let special: Vec<(&str, Value)> =
            special_tokens.iter().map(|(name, token)| (name.as_str(), token.as_str().into())).collect();
        let before = [("tools", &none), ("documents", &none), ("add_generation_prompt", &opens)];
        let special = special.iter().map(|(name, token)| (*name, token));
        let args = args.iter().map(|(name, value)| (name.as_str(), value));
        self.template.render(before.into_iter().chain(special).chain(args).chain([("messages", &messages)]))
    }
}
