//! The kinds of record that can be judged, and their prompts.

use std::borrow::Cow;

use anyhow::{Result, bail};
use judge_core::{Fields, Prompt, PromptTemplate, Scale};
use judge_data::{PromptInput, Record};

/// A record with its place in the file.
pub(crate) struct Item {
    pub(crate) row: usize,
    pub(crate) record: Record,
    /// Whether the reasoning prompt of a record that brings its own prompts is meant.
    pub(crate) reasoning: bool,
}

impl Fields for Item {
    fn field(&self, name: &str) -> Option<Cow<'_, str>> {
        match &self.record {
            Record::Graded(record) => record.field(name),
            Record::Emotion(record) => record.field(name),
            Record::Prompt(_) | Record::Lager(_) => (name == "prompt").then(|| text(&self.record, self.reasoning)),
        }
    }

    fn names(&self) -> Vec<String> {
        match &self.record {
            Record::Graded(record) => record.names(),
            Record::Emotion(record) => record.names(),
            Record::Prompt(_) | Record::Lager(_) => vec!["prompt".to_owned()],
        }
    }
}

/// What of a record can be asked: says so before any model work if it cannot.
pub(crate) fn check(record: &Record, reasoning: bool) -> Result<()> {
    match record {
        Record::Prompt(prompt) if matches!(prompt.input, PromptInput::Messages(_)) => {
            bail!("item {}: a conversation has no place in a judge's template; give its text as `prompt`", prompt.id)
        }
        Record::Lager(lager) if reasoning && lager.reasoning.is_none() => {
            bail!("item {}: the reasoning condition needs `user_prompt_feedback`", lager.id)
        }
        _ => Ok(()),
    }
}

/// The prompt that a record brings, or the response that is judged.
pub(crate) fn text(record: &Record, reasoning: bool) -> Cow<'_, str> {
    match record {
        Record::Prompt(prompt) => match &prompt.input {
            PromptInput::Text(text) => text.as_str().into(),
            PromptInput::Messages(messages) => {
                messages.iter().map(|m| m.content.as_str()).collect::<Vec<_>>().join("\n\n").into()
            }
        },
        Record::Lager(lager) => match (&lager.reasoning, reasoning) {
            (Some(reasoning), true) => reasoning.as_str().into(),
            _ => lager.direct.as_str().into(),
        },
        Record::Graded(graded) => graded.response.as_str().into(),
        Record::Emotion(emotion) => emotion.dialogue.as_str().into(),
    }
}

/// The record's own prompt and nothing else.
pub(crate) fn verbatim() -> Result<PromptTemplate> {
    Ok(PromptTemplate::new(Prompt::user("{prompt}"))?)
}

/// How strongly a character of a dialogue feels an emotion. Own wording; the reference's is not licensed.
pub(crate) fn emotion(scale: &Scale) -> Result<PromptTemplate> {
    let (low, high) = scale.range();
    Ok(PromptTemplate::new(Prompt::user(format!(
        "Read this dialogue, then judge what one of its characters feels at its end.\n\n\
         {{dialogue}}\n\n\
         How strongly does {{human}} feel {{emotion}} now? {low} means not at all, {high} means as strongly as can be. \
         Reply with one line of the form\nscore: <number>"
    )))?)
}
