use std::borrow::Cow;

use judge_core::{Fields, ItemId, Message, Prompt};

use crate::ids::{NUMBERS, OneOrMany, id_of, mean};
use crate::{Error, Extra, Row};

/// A prompt to put before a model: `{"id", "prompt"}` or `{"id", "messages"}`.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptRecord {
    /// The item.
    pub id: ItemId,
    /// The text.
    pub input: PromptInput,
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
        Prompt::Raw(match self {
            Self::Text(text) => text.clone(),
            Self::Messages(messages) => messages.iter().map(|m| m.content.as_str()).collect::<Vec<_>>().join("\n\n"),
        })
    }
}

impl PromptRecord {
    /// Reads a row.
    ///
    /// # Errors
    /// [`Error::MissingField`], [`Error::WrongType`]; [`Error::BothFields`] for a row with both `prompt` and `messages`.
    pub fn from_row(row: Row) -> Result<Self, Error> {
        let input = match (row.has("prompt"), row.has("messages")) {
            (true, true) => {
                let place = row.place().clone();
                return Err(Error::BothFields { place, first: "prompt", second: "messages" });
            }
            (false, true) => PromptInput::Messages(
                row.required("messages", "a list of objects with the strings \"role\" and \"content\"")?,
            ),
            _ => PromptInput::Text(row.string("prompt")?),
        };
        Ok(Self { id: id_of(&row)?, input, extra: row.into_extra(&["id", "prompt", "messages"]) })
    }
}

/// A response that people graded: `{"id", "instruction", "response", "rubric"?, "reference"?, "scores"?}`.
#[derive(Clone, Debug, PartialEq)]
pub struct GradedRecord {
    /// The item.
    pub id: ItemId,
    /// What was asked.
    pub instruction: String,
    /// What was answered.
    pub response: String,
    /// By what it is graded.
    pub rubric: Option<String>,
    /// A good answer.
    pub reference: Option<String>,
    /// One per rater, from a number or a list; empty if the row has none.
    pub scores: Vec<f64>,
    /// All other fields.
    pub extra: Extra,
}

impl GradedRecord {
    /// Reads a row.
    ///
    /// # Errors
    /// [`Error::MissingField`], [`Error::WrongType`].
    pub fn from_row(row: Row) -> Result<Self, Error> {
        let scores = match row.optional::<OneOrMany>("scores", NUMBERS)? {
            None => Vec::new(),
            Some(scores) => scores.into_vec().ok_or_else(|| row.wrong("scores", NUMBERS))?,
        };
        Ok(Self {
            id: id_of(&row)?,
            instruction: row.string("instruction")?,
            response: row.string("response")?,
            rubric: row.optional("rubric", "a string")?,
            reference: row.optional("reference", "a string")?,
            scores,
            extra: row.into_extra(&["id", "instruction", "response", "rubric", "reference", "scores"]),
        })
    }

    /// The mean of the raters; `None` without any.
    pub fn human(&self) -> Option<f64> {
        mean(&self.scores)
    }
}

impl Fields for GradedRecord {
    fn field(&self, name: &str) -> Option<Cow<'_, str>> {
        match name {
            "instruction" => Some(self.instruction.as_str().into()),
            "response" => Some(self.response.as_str().into()),
            "rubric" => self.rubric.as_deref().map(Cow::from),
            "reference" => self.reference.as_deref().map(Cow::from),
            _ => self.extra.string(name).map(Cow::from),
        }
    }

    fn names(&self) -> Vec<String> {
        let optional = [("rubric", &self.rubric), ("reference", &self.reference)];
        let optional = optional.into_iter().filter(|(_, value)| value.is_some()).map(|(name, _)| name);
        let extra = self.extra.iter().map(|(name, _)| name);
        ["instruction", "response"].into_iter().chain(optional).chain(extra).map(str::to_owned).collect()
    }
}

/// A record of LAGER's benchmark files (FLASK, HelpSteer, BiGGen, validation): prompts ready to send and a human score.
#[derive(Clone, Debug, PartialEq)]
pub struct LagerRecord {
    /// The row's index from 0, which is what LAGER's result files call `idx`.
    pub id: ItemId,
    /// The prompt of the direct condition, `user_prompt`.
    pub direct: String,
    /// The prompt of the reasoning condition, `user_prompt_feedback`.
    pub reasoning: Option<String>,
    /// One per rater, from a number or a list; at least one.
    pub scores: Vec<f64>,
    /// All other fields.
    pub extra: Extra,
}

impl LagerRecord {
    /// Reads row number `index`, counted from 0.
    ///
    /// # Errors
    /// [`Error::MissingField`], [`Error::WrongType`].
    pub fn from_row(row: Row, index: usize) -> Result<Self, Error> {
        let scores = row.required::<OneOrMany>("score", NUMBERS)?;
        Ok(Self {
            id: ItemId::from(index as u64),
            direct: row.string("user_prompt")?,
            reasoning: row.optional("user_prompt_feedback", "a string")?,
            scores: scores.into_vec().ok_or_else(|| row.wrong("score", NUMBERS))?,
            extra: row.into_extra(&["user_prompt", "user_prompt_feedback", "score"]),
        })
    }

    /// The mean of the raters.
    pub fn human(&self) -> Option<f64> {
        mean(&self.scores)
    }
}

/// How strongly a character of a dialogue feels an emotion, as LAGER took it from EQ-Bench.
#[derive(Clone, Debug, PartialEq)]
pub struct EmotionRecord {
    /// The row's index from 0.
    pub id: ItemId,
    /// The dialogue.
    pub dialogue: String,
    /// The character's name. (A field called `human` that is not a human score.)
    pub character: String,
    /// The emotion.
    pub emotion: String,
    /// The intensity; 1 to 9 in the published file, which has most as text.
    pub score: i64,
    /// All other fields.
    pub extra: Extra,
}

impl EmotionRecord {
    /// Reads row number `index`, counted from 0.
    ///
    /// # Errors
    /// [`Error::MissingField`], [`Error::WrongType`].
    pub fn from_row(row: Row, index: usize) -> Result<Self, Error> {
        const EXPECTED: &str = "a whole number, bare or as a string";
        let score = match row.required("emotion_score", EXPECTED)? {
            ItemId::Integer(score) => i64::try_from(score).ok(),
            ItemId::Text(text) => text.trim().parse().ok(),
        };
        Ok(Self {
            id: ItemId::from(index as u64),
            dialogue: row.string("dialogue")?,
            character: row.string("human")?,
            emotion: row.string("emotion")?,
            score: score.ok_or_else(|| row.wrong("emotion_score", EXPECTED))?,
            extra: row.into_extra(&["dialogue", "human", "emotion", "emotion_score"]),
        })
    }
}

impl Fields for EmotionRecord {
    fn field(&self, name: &str) -> Option<Cow<'_, str>> {
        match name {
            "dialogue" => Some(self.dialogue.as_str().into()),
            "human" => Some(self.character.as_str().into()),
            "emotion" => Some(self.emotion.as_str().into()),
            _ => self.extra.string(name).map(Cow::from),
        }
    }

    fn names(&self) -> Vec<String> {
        let extra = self.extra.iter().map(|(name, _)| name);
        ["dialogue", "human", "emotion"].into_iter().chain(extra).map(str::to_owned).collect()
    }
}
