//! A model's own chat template, with the variables that transformers gives it. `judge-jinja` renders it.
//!
//! Not here: the files that have a template (`tokenizer/special_tokens.rs`), a prefill, and which control tokens of the text are real
//! (`tokenizer/literal.rs`).

use std::collections::BTreeMap;

use judge_core::{Message, decision::exact_json};
use judge_jinja::{Date, Template, TemplateError};
use serde_json::{Value, json};

/// A chat template that is read, ready to be rendered any number of times, from several threads at once.
pub(crate) struct ChatTemplate(Template);

impl ChatTemplate {
    /// Reads a template. `date` is the day that its `strftime_now` shows.
    ///
    /// # Errors
    /// Those of [`Template::new`].
    pub(crate) fn new(source: &str, date: Date) -> Result<Self, TemplateError> {
        Ok(Self(Template::new(source, date)?.with_whole_numbers(exact_json::whole_number)))
    }

    /// The template's text as its file has it. `Control` looks in it for the
    /// added tokens that it writes.
    pub(crate) fn source(&self) -> &str {
        self.0.source()
    }

    /// Whether a tag of the template reads a variable of this name, or sets one.
    pub(crate) fn names(&self, name: &str) -> bool {
        self.0.names(name)
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
    /// # Errors
    /// Those of [`Template::render`]. They cost the item, not the run.
    pub(crate) fn render(
        &self,
        messages: &[Message],
        special_tokens: &BTreeMap<String, String>,
        args: &BTreeMap<String, Value>,
    ) -> Result<String, TemplateError> {
        let messages = messages.iter().map(|Message { role, content, .. }| json!({ "role": role, "content": content }));
        let messages = Value::Array(messages.collect());
        let (none, opens) = (Value::Null, Value::Bool(true));
        let special: Vec<(&str, Value)> =
            special_tokens.iter().map(|(name, token)| (name.as_str(), token.as_str().into())).collect();
        let before = [("tools", &none), ("documents", &none), ("add_generation_prompt", &opens)];
        let special = special.iter().map(|(name, token)| (*name, token));
        let args = args.iter().map(|(name, value)| (name.as_str(), value));
        self.0.render(before.into_iter().chain(special).chain(args).chain([("messages", &messages)]))
    }
}
