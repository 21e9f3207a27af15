//! What training is given: graded prompts, and whoever has the model's signals for them. No model is run here.

use judge_core::{ItemId, Layer, Prompt, request::Signal};

use crate::{Error, Matrix};

/// A graded prompt: all that training asks of a row besides its features.
#[derive(Debug, Clone, PartialEq)]
pub struct GradedRow {
    /// Its name, for error messages.
    pub id: ItemId,
    /// What the model read. It is hashed into the probe's provenance and not read otherwise.
    pub prompt: Prompt,
    /// The question, for baselines that do not read the model; empty where it is not known.
    pub question: String,
    /// The response; where the question is not known, all of the prompt's text.
    pub response: String,
    /// The grade that people gave, or the mean of several.
    pub grade: f64,
    /// The part of the data that it belongs to, where the data say so: rows of `train` are trained on, all others tested on.
    pub split: Option<String>,
    /// What must not be on both sides of a split, such as the question. Also what the bootstrap draws.
    pub group: String,
    /// Where it comes from (file, annotator, generator), for the report of artefacts.
    pub source: Option<String>,
}

impl GradedRow {
    /// A row without a known question, split or source, in a group of its own.
    pub fn new(id: impl Into<ItemId>, prompt: Prompt, grade: f64) -> Self {
        let id = id.into();
        let response = text_of(&prompt);
        Self { group: id.to_string(), id, prompt, question: String::new(), response, grade, split: None, source: None }
    }
}

fn text_of(prompt: &Prompt) -> String {
    match prompt {
        Prompt::Raw(text) => text.clone(),
        Prompt::Chat { messages, .. } => {
            messages.iter().map(|message| message.content.as_str()).collect::<Vec<_>>().join("\n\n")
        }
        Prompt::Whole(whole) => serde_json::Value::Object(whole.values.clone()).to_string(),
    }
}

/// What a model says of each row: where training takes its features from. Rows are numbered as they are given to
/// [`ProbeTraining::train`](super::ProbeTraining::train).
///
/// A closure `Fn(&[usize], Layer, &[Signal]) -> Result<Matrix, E>` is one whose rows were all read.
pub trait RowSignals: Sync {
    /// Why a signal cannot be had.
    type Error: From<Error> + Send;

    /// Whether the model could read the row. One that it could not is neither trained nor tested on, and is counted.
    fn is_read(&self, row: usize) -> bool;

    /// The signals of a layer side by side, in this order, for each of `rows`, which were read: `[rows.len(), widths of the signals]`.
    ///
    /// # Errors
    ///
    /// Where a signal is not there.
    fn matrix(&self, rows: &[usize], layer: Layer, signals: &[Signal]) -> Result<Matrix, Self::Error>;

    /// The model's own logits of the grades that occur, ascending, where the prompt asks for one of them: the baseline `prompted`.
    /// `None`, as it is unless this is overridden, leaves that baseline out.
    ///
    /// # Errors
    ///
    /// Where they should be there and are not.
    fn grade_logits(&self, row: usize) -> Result<Option<Vec<f64>>, Self::Error> {
        let _ = row;
        Ok(None)
    }

    /// Logits of the same grades for each of `tested`, by a model that was tuned on the rows `train` and on nothing else: the baseline
    /// `tuned`. `None`, as it is unless this is overridden, leaves that baseline out. It is asked once for each split, always with the same
    /// rows to learn from.
    ///
    /// # Errors
    ///
    /// Where the tuning fails.
    fn tuned_grade_logits(&self, train: &[usize], tested: &[usize]) -> Result<Option<Vec<Vec<f64>>>, Self::Error> {
        let _ = (train, tested);
        Ok(None)
    }
}

impl<F, E> RowSignals for F
where
    F: Fn(&[usize], Layer, &[Signal]) -> Result<Matrix, E> + Sync,
    E: From<Error> + Send,
{
    type Error = E;

    fn is_read(&self, _row: usize) -> bool {
        true
    }

    fn matrix(&self, rows: &[usize], layer: Layer, signals: &[Signal]) -> Result<Matrix, E> {
        self(rows, layer, signals)
    }
}
