//! Answers from retrieved contexts, sentence by sentence, as rows of `judge rag` have them.

use anyhow::Result;
use judge_data::Row;
use serde::{Deserialize, Serialize};

use super::texts::{ID, TEXT, cut};

/// Answers that are listed.
const LISTED: usize = 25;
/// Sentences of an answer.
const SENTENCES: usize = 60;

/// The answers of which a sentence is supported least, that one first.
#[derive(Default, Serialize)]
#[serde(transparent)]
pub struct Answers(pub Vec<Answer>);

/// An answer from retrieved contexts.
#[derive(Serialize)]
pub struct Answer {
    pub id: String,
    pub faithfulness: f64,
    /// The probability of the sentence that is supported least.
    pub least: f64,
    pub sentences: Vec<Sentence>,
    /// How many more there are.
    pub more: usize,
}

/// A sentence and the probability that the contexts support it.
#[derive(Deserialize, Serialize)]
pub struct Sentence {
    pub text: String,
    pub supported: Option<f64>,
}

impl Answers {
    /// Looks at a row that has this faithfulness.
    pub fn see(&mut self, id: &str, row: &Row, faithfulness: f64) -> Result<()> {
        let mut sentences: Vec<Sentence> = row.optional("sentences", "a list of sentences")?.unwrap_or_default();
        let least = sentences.iter().filter_map(|sentence| sentence.supported).fold(1.0, f64::min);
        let place = self.0.partition_point(|other| other.least <= least);
        if place < LISTED {
            let more = sentences.len().saturating_sub(SENTENCES);
            sentences.truncate(SENTENCES);
            sentences.iter_mut().for_each(|sentence| sentence.text = cut(&sentence.text, TEXT));
            self.0.insert(place, Answer { id: cut(id, ID), faithfulness, least, sentences, more });
            self.0.truncate(LISTED);
        }
        Ok(())
    }
}
