//! The kinds of record that a data set holds.

use std::borrow::Cow;
use std::cmp::Ordering;

use judge_core::{Fields, ItemId, Message, Prompt};

use crate::rows::ids::mean_of_places;
use crate::rows::pair_verdict::{majority, preference};
use crate::rows::reading::{Reading, Rest};
use crate::rows::texts::{Texts, with_input};
use crate::{DatasetOptions, Error, Extra, Field, Row, RowColumns};

/// A prompt to put before a model: `{"id", "prompt"}` or `{"id", "messages"}`, with `human` if people graded it.
/// Messages are objects with `role` and `content`, or with `from` and `value` as ShareGPT has them.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptRecord {
    /// The item.
    pub id: ItemId,
    /// The text.
    pub input: PromptInput,
    /// A place for each rater, `None` for one who gave none; empty if the row has none.
    pub scores: Vec<Option<f64>>,
    /// Where the fields were found.
    pub columns: RowColumns,
    /// All other fields.
    pub extra: Extra,
}

/// The text of a [`PromptRecord`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PromptInput {
    /// From `prompt`.
    Text(String),
    /// From `messages`; may be empty.
    Messages(Vec<Message>),
}

impl PromptInput {
    /// As a conversation for the model's chat template; plain text becomes one user message.
    pub fn to_chat(&self) -> Prompt {
        match self {
            Self::Text(text) => Prompt::user(text.as_str()),
            Self::Messages(messages) => Prompt::chat(messages.clone()),
        }
    }

    /// As text for the tokenizer as it is; of messages, the contents with a blank line between them.
    pub fn to_raw(&self) -> Prompt {
        Prompt::Raw(self.text().into_owned())
    }

    /// The prompt, or the request or the answer that a conversation ends with; `None` if it has no such field.
    pub(crate) fn text_of(&mut self, field: &str) -> Option<&mut String> {
        let turn = match (self, field) {
            (Self::Text(text), "prompt") => return Some(text),
            (Self::Messages(turns), "instruction") => turns.iter_mut().rev().nth(1).filter(|turn| turn.role == "user"),
            (Self::Messages(turns), "response") => turns.last_mut().filter(|turn| turn.role == "assistant"),
            _ => None,
        };
        turn.map(|turn| &mut turn.content)
    }

    /// The text; of messages, the contents with a blank line between them.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => text.into(),
            Self::Messages(messages) => {
                messages.iter().map(|m| m.content.as_str()).collect::<Vec<_>>().join("\n\n").into()
            }
        }
    }
}

impl PromptRecord {
    /// Reads row number `index`, counted from 0.
    ///
    /// # Errors
    /// [`Error::MissingField`], [`Error::WrongType`], [`Error::AmbiguousColumns`], [`Error::FractionalId`];
    /// [`Error::BothFields`] for a row with both `prompt` and `messages`.
    pub fn from_row(row: Row, index: usize, options: &DatasetOptions) -> Result<Self, Error> {
        let (record, rest) = Self::read(&row, index, options)?;
        Ok(Self { extra: rest.of(row, &options.columns), ..record })
    }

    pub(crate) fn read(row: &Row, index: usize, options: &DatasetOptions) -> Result<(Self, Rest), Error> {
        let mut row = Reading::new(row, options);
        let id = row.id(index)?;
        let input = match (row.has(Field::Prompt), row.has(Field::Messages)) {
            (true, true) => {
                let place = row.row().place().clone();
                return Err(Error::BothFields { place, first: "prompt", second: "messages" });
            }
            (false, true) => PromptInput::Messages(row.messages()?),
            _ => PromptInput::Text(row.text(Field::Prompt)?),
        };
        row.ignore_null(&[Field::Prompt, Field::Messages]);
        let scores = row.raters();
        let (columns, rest) = row.finish();
        Ok((Self { id, input, scores, columns, extra: Extra::new() }, rest))
    }

    /// The mean of the raters; `None` without any.
    pub fn human(&self) -> Option<f64> {
        mean_of_places(&self.scores)
    }

    /// The turns before, the last request and the answer to it; `None` unless the messages end so.
    fn last_turn(&self) -> Option<(&[Message], &Message, &Message)> {
        let PromptInput::Messages(messages) = &self.input else { return None };
        let [before @ .., request, response] = &messages[..] else { return None };
        (request.role == "user" && response.role == "assistant").then_some((before, request, response))
    }

    fn texts(&self) -> Texts<'_> {
        let prompt = match &self.input {
            PromptInput::Text(text) => Some(text.as_str()),
            PromptInput::Messages(_) => None,
        };
        let mut own = vec![("prompt", prompt)];
        let Some((before, request, response)) = self.last_turn() else {
            return Texts::new(own, Some(&self.columns), &self.extra);
        };
        own.extend([("instruction", Some(&*request.content)), ("response", Some(&*response.content))]);
        Texts::new(own, Some(&self.columns), &self.extra).with("conversation", conversation(before))
    }
}

/// Turns as text: `User: …` or `Assistant: …`, with a blank line between.
pub(crate) fn conversation(messages: &[Message]) -> String {
    let turn = |message: &Message| {
        let role = match message.role.as_str() {
            "user" => "User",
            "assistant" => "Assistant",
            other => other,
        };
        format!("{role}: {}", message.content)
    };
    messages.iter().map(turn).collect::<Vec<_>>().join("\n\n")
}

/// A response that people graded: `{"id", "instruction", "response", "rubric"?, "reference"?, "human"?}`, or with the other
/// names that [`Field`] lists.
///
/// A text `input` beside `instruction`, as Alpaca's rows have it, is part of [what is asked](Self::asked), unless columns are chosen for
/// one of them.
#[derive(Clone, Debug, PartialEq)]
pub struct GradedRecord {
    /// The item.
    pub id: ItemId,
    /// What was asked, without an `input` beside it.
    pub instruction: String,
    /// What was answered.
    pub response: String,
    /// By what it is graded.
    pub rubric: Option<String>,
    /// A good answer.
    pub reference: Option<String>,
    /// A place for each rater, `None` for one who gave none; empty if the row has none.
    pub scores: Vec<Option<f64>>,
    /// Where the fields were found.
    pub columns: RowColumns,
    /// All other fields.
    pub extra: Extra,
}

impl GradedRecord {
    /// Reads row number `index`, counted from 0.
    ///
    /// # Errors
    /// [`Error::MissingField`], [`Error::WrongType`], [`Error::AmbiguousColumns`], [`Error::FractionalId`].
    pub fn from_row(row: Row, index: usize, options: &DatasetOptions) -> Result<Self, Error> {
        let (record, rest) = Self::read(&row, index, options)?;
        Ok(Self { extra: rest.of(row, &options.columns), ..record })
    }

    pub(crate) fn read(row: &Row, index: usize, options: &DatasetOptions) -> Result<(Self, Rest), Error> {
        let mut row = Reading::new(row, options);
        let id = row.id(index)?;
        let (instruction, response) = (row.instruction()?, row.text(Field::Response)?);
        let (rubric, reference) = (row.optional_text(Field::Rubric)?, row.optional_text(Field::Reference)?);
        let scores = row.raters();
        let (columns, rest) = row.finish();
        let extra = Extra::new();
        Ok((Self { id, instruction, response, rubric, reference, scores, columns, extra }, rest))
    }

    /// The mean of the raters; `None` without any.
    pub fn human(&self) -> Option<f64> {
        mean_of_places(&self.scores)
    }

    /// What the instruction is about, where that stands apart in `input`; `None` where it is empty.
    pub fn input(&self) -> Option<Cow<'_, str>> {
        self.columns.input(&self.extra)
    }

    /// What is asked: the instruction, and below it the [`input`](Self::input).
    pub fn asked(&self) -> Cow<'_, str> {
        with_input(&self.instruction, &self.input().unwrap_or_default())
    }

    fn texts(&self) -> Texts<'_> {
        let own = vec![
            ("instruction", Some(self.instruction.as_str())),
            ("response", Some(&self.response)),
            ("rubric", self.rubric.as_deref()),
            ("reference", self.reference.as_deref()),
        ];
        Texts::new(own, Some(&self.columns), &self.extra)
    }
}

/// Two responses to one instruction: `{"id", "instruction", "response_a", "response_b", "rubric"?, "reference"?, "human"?}`, where `human`
/// is `"A"`, `"B"` or `"tie"`,
/// or a list with one of them per rater. An `input` is part of [what is asked](Self::asked), as in a [`GradedRecord`].
#[derive(Clone, Debug, PartialEq)]
pub struct PairRecord {
    /// The item.
    pub id: ItemId,
    /// What was asked, without an `input` beside it.
    pub instruction: String,
    /// The first answer.
    pub response_a: String,
    /// The second one.
    pub response_b: String,
    /// By what they are compared.
    pub rubric: Option<String>,
    /// A good answer.
    pub reference: Option<String>,
    /// A place for each rater, `None` for one who gave none, `Greater` where the first answer is better; empty if the row has none.
    pub verdicts: Vec<Option<Ordering>>,
    /// Where the fields were found.
    pub columns: RowColumns,
    /// All other fields.
    pub extra: Extra,
}

impl PairRecord {
    pub(crate) fn read(row: &Row, index: usize, options: &DatasetOptions) -> Result<(Self, Rest), Error> {
        let mut row = Reading::new(row, options);
        let id = row.id(index)?;
        let instruction = row.instruction()?;
        let (response_a, response_b) = (row.text(Field::ResponseA)?, row.text(Field::ResponseB)?);
        let (rubric, reference) = (row.optional_text(Field::Rubric)?, row.optional_text(Field::Reference)?);
        let verdicts = row.choices();
        let (columns, rest) = row.finish();
        let extra = Extra::new();
        Ok((Self { id, instruction, response_a, response_b, rubric, reference, verdicts, columns, extra }, rest))
    }

    /// What each rater prefers, as a number: 1 for the first answer, 0 for the second, ½ for a tie.
    pub fn preferences(&self) -> Vec<Option<f64>> {
        self.verdicts.iter().map(|choice| choice.map(preference)).collect()
    }

    /// What [more than half](majority) of the raters prefer; `None` where they are split, or without any.
    pub fn majority(&self) -> Option<Ordering> {
        majority(&self.verdicts.iter().flatten().copied().collect::<Vec<_>>())
    }

    /// The mean of [`preferences`](Self::preferences); `None` without any.
    pub fn human(&self) -> Option<f64> {
        mean_of_places(&self.preferences())
    }

    /// What the instruction is about, where that stands apart in `input`; `None` where it is empty.
    pub fn input(&self) -> Option<Cow<'_, str>> {
        self.columns.input(&self.extra)
    }

    /// What is asked: the instruction, and below it the [`input`](Self::input).
    pub fn asked(&self) -> Cow<'_, str> {
        with_input(&self.instruction, &self.input().unwrap_or_default())
    }

    fn texts(&self) -> Texts<'_> {
        let own = vec![
            ("instruction", Some(self.instruction.as_str())),
            ("response_a", Some(&self.response_a)),
            ("response_b", Some(&self.response_b)),
            ("rubric", self.rubric.as_deref()),
            ("reference", self.reference.as_deref()),
        ];
        Texts::new(own, Some(&self.columns), &self.extra)
    }
}

/// A record of LAGER's benchmark files (FLASK, HelpSteer, BiGGen, validation): prompts ready to send and a human score.
#[derive(Clone, Debug, PartialEq)]
pub struct LagerRecord {
    /// The `id` where there is one, else the row's index from 0, which is what LAGER's result files call `idx`.
    pub id: ItemId,
    /// The prompt of the direct condition, `user_prompt`.
    pub direct: String,
    /// The prompt of the reasoning condition, `user_prompt_feedback`.
    pub reasoning: Option<String>,
    /// A place for each rater, `None` for one who gave none, from `score` unless another column is chosen for `human`; empty if the row has
    /// none.
    pub scores: Vec<Option<f64>>,
    /// Where the scores were found.
    pub columns: RowColumns,
    /// All other fields.
    pub extra: Extra,
}

impl LagerRecord {
    /// The columns of the prompts.
    pub(crate) const COLUMNS: [&str; 2] = ["user_prompt", "user_prompt_feedback"];

    pub(crate) fn read(row: &Row, index: usize, options: &DatasetOptions) -> Result<(Self, Rest), Error> {
        let mut reading = Reading::new(row, options);
        let (id, scores) = (reading.id_or_number(index)?, reading.raters());
        let (columns, rest) = reading.finish();
        let (direct, reasoning) = (row.string("user_prompt")?, row.optional("user_prompt_feedback", "a string")?);
        let extra = Extra::new();
        Ok((Self { id, direct, reasoning, scores, columns, extra }, rest.without(&Self::COLUMNS)))
    }

    /// The mean of the raters; `None` without any.
    pub fn human(&self) -> Option<f64> {
        mean_of_places(&self.scores)
    }

    fn texts(&self) -> Texts<'_> {
        let (direct, reasoning) = (Some(self.direct.as_str()), self.reasoning.as_deref());
        let own = vec![("user_prompt", direct), ("user_prompt_feedback", reasoning), ("prompt", direct)];
        Texts::new(own, None, &self.extra)
    }
}

/// How strongly a character of a dialogue feels an emotion, as LAGER took it from EQ-Bench.
#[derive(Clone, Debug, PartialEq)]
pub struct EmotionRecord {
    /// The `id` where there is one, else the row's index from 0.
    pub id: ItemId,
    /// The dialogue.
    pub dialogue: String,
    /// The character's name. (A field called `human` that is not a human score.)
    pub character: String,
    /// The emotion.
    pub emotion: String,
    /// The intensity: a place for each rater, `None` for one who gave none, from `emotion_score` unless another column is chosen for
    /// `human`; empty if the row has none. 1 to 9 in the published file, which has most as text.
    pub scores: Vec<Option<f64>>,
    /// Where the scores were found.
    pub columns: RowColumns,
    /// All other fields.
    pub extra: Extra,
}

impl EmotionRecord {
    /// The columns of the texts.
    pub(crate) const COLUMNS: [&str; 3] = ["dialogue", "human", "emotion"];

    pub(crate) fn read(row: &Row, index: usize, options: &DatasetOptions) -> Result<(Self, Rest), Error> {
        let mut reading = Reading::new(row, options);
        let (id, scores) = (reading.id_or_number(index)?, reading.raters());
        let (columns, rest) = reading.finish();
        let (dialogue, character, emotion) = (row.string("dialogue")?, row.string("human")?, row.string("emotion")?);
        let extra = Extra::new();
        Ok((Self { id, dialogue, character, emotion, scores, columns, extra }, rest.without(&Self::COLUMNS)))
    }

    fn texts(&self) -> Texts<'_> {
        let own = vec![
            ("dialogue", Some(self.dialogue.as_str())),
            ("human", Some(&self.character)),
            ("emotion", Some(&self.emotion)),
        ];
        Texts::new(own, None, &self.extra)
    }
}

/// Templates see the texts of a record.
macro_rules! fields_of_texts {
    ($($(#[$about:meta])* $record:ty;)*) => {$(
        $(#[$about])*
        impl Fields for $record {
            fn field(&self, name: &str) -> Option<Cow<'_, str>> {
                self.field_beside(name, &[])
            }

            fn field_beside(&self, name: &str, shown: &[&str]) -> Option<Cow<'_, str>> {
                self.texts().field_beside(name, shown)
            }

            fn names(&self) -> Vec<String> {
                self.texts().names()
            }
        }
    )*};
}

fields_of_texts! {
    /// `prompt` if it is text. Of a conversation that ends with an answer to a user:
    /// the last request as `instruction`, the answer as `response`, and the turns before
    /// as `conversation`, each as `User: …` or `Assistant: …` with a blank line between. And the other fields.
    PromptRecord;
    /// `instruction` (all that is asked), `response`, `rubric`, `reference`, the same under the names that the row has for them, and the other
    /// fields.
    GradedRecord;
    /// `instruction` (all that is asked), `response_a`, `response_b`, `rubric`, `reference`, the same under the names that the row has for
    /// them, and the other fields.
    PairRecord;
    /// `user_prompt` (also as `prompt`), `user_prompt_feedback`, and the other fields.
    LagerRecord;
    /// `dialogue`, `human` (the character), `emotion`, and the other fields.
    EmotionRecord;
}
