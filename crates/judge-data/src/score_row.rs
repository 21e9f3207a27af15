use judge_core::{ItemId, LabelLogits, LabelStep, Layer, Unscored};
use serde::ser::{Error as _, SerializeMap};
use serde::{Serialize, Serializer};

use crate::ids::{NUMBERS, Raters, id_of, mean};
use crate::{Error, Extra, Row};

const KNOWN: [&str; 8] = ["id", "human", "layers", "labels", "logits", "step", "completion", "unscored"];

/// One row of this project's score files, JSON lines:
/// `{"id", "human"?, "layers", "labels", "logits", "step", "completion", …}`, or `{"id", "human"?, "unscored": {"reason", "detail"}, …}`.
///
/// Written with [`ResumableJsonl`](crate::ResumableJsonl) or [`JsonlWriter`](crate::JsonlWriter), read from [`Rows`](crate::Rows).
#[derive(Clone, Debug, PartialEq)]
pub struct ScoreRow {
    /// The item.
    pub id: ItemId,
    /// What people gave it, where known.
    pub human: Option<f64>,
    /// What the model gave.
    pub outcome: ScoreOutcome,
    /// All other fields; kept when the row is written again.
    pub extra: Extra,
}

/// What the model gave.
#[derive(Clone, Debug, PartialEq)]
pub enum ScoreOutcome {
    /// Label logits.
    Read(LabelTable),
    /// Nothing, and why.
    Unscored(Unscored),
}

/// Label logits of some layers at one position.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelTable {
    /// The layers, the order of the first axis.
    pub layers: Vec<Layer>,
    /// The label texts, the order of the second axis.
    pub labels: Vec<String>,
    /// Shape `[layers, n_scores]`, row-major, finite.
    pub logits: Vec<f32>,
    /// Index of the generated token that is the label; 0 at the prompt's end.
    pub step: usize,
    /// The generated text; empty at the prompt's end.
    pub completion: String,
}

impl LabelTable {
    /// One step of a reading. `labels` are the texts of the reading's tokens.
    ///
    /// # Errors
    /// [`Error::Shape`] if there are not as many labels as tokens, or the step's table has another size.
    pub fn from_step(read: &LabelLogits, step: &LabelStep, labels: &[String], completion: &str) -> Result<Self, Error> {
        let table = Self {
            layers: read.layers.clone(),
            labels: labels.to_vec(),
            logits: step.logits.clone(),
            step: step.step,
            completion: completion.to_owned(),
        };
        let (expected, found) = (read.layers.len() * read.tokens.len(), step.logits.len());
        if labels.len() != read.tokens.len() {
            let (expected, found) = (read.tokens.len(), labels.len());
            return Err(Error::Shape { what: "labels of step", index: step.step, expected, found });
        }
        if expected != found {
            return Err(Error::Shape { what: "logits of step", index: step.step, expected, found });
        }
        Ok(table)
    }

    /// The rows `[n_scores]`, in the order of [`layers`](Self::layers).
    pub fn rows(&self) -> impl Iterator<Item = &[f32]> {
        // `chunks_exact` does not take 0; a table without labels has no logits either.
        self.logits.chunks_exact(self.labels.len().max(1))
    }

    fn from_row(row: &Row) -> Result<Self, Error> {
        let layers: Vec<Layer> = row.required("layers", "a list of layer numbers from 0")?;
        let labels: Vec<String> = row.required("labels", "a list of strings")?;
        let logits: Vec<Vec<f32>> = row.required("logits", "a list of lists of numbers")?;
        let ragged = |what, expected, found| Err(Error::Ragged { place: row.place().clone(), what, expected, found });
        if logits.len() != layers.len() {
            return ragged("logits".into(), layers.len(), logits.len());
        }
        for (layer, list) in layers.iter().zip(&logits) {
            if list.len() != labels.len() {
                return ragged(format!("logits of {layer}"), labels.len(), list.len());
            }
        }
        let logits = logits.concat();
        if logits.iter().any(|z| !z.is_finite()) {
            return Err(row.wrong("logits", "numbers in the range of f32"));
        }
        let step = row.required("step", "a whole number from 0")?;
        Ok(Self { layers, labels, logits, step, completion: row.string("completion")? })
    }
}

impl ScoreRow {
    /// Reads a row. `human` may be a list of raters, whose mean is taken.
    ///
    /// # Errors
    /// [`Error::MissingField`], [`Error::WrongType`]; [`Error::Ragged`] if `logits` is not `[layers, labels]`;
    /// [`Error::BothFields`] for a row with logits that calls itself unscored.
    pub fn from_row(row: Row) -> Result<Self, Error> {
        let outcome = match row.optional("unscored", "an object with a known reason and a detail")? {
            Some(_) if row.has("logits") => {
                let place = row.place().clone();
                return Err(Error::BothFields { place, first: "logits", second: "unscored" });
            }
            Some(unscored) => ScoreOutcome::Unscored(unscored),
            None => ScoreOutcome::Read(LabelTable::from_row(&row)?),
        };
        let human = row.optional::<Raters>("human", NUMBERS)?.and_then(|raters| mean(&raters.into_scores()));
        Ok(Self { id: id_of(&row)?, human, outcome, extra: row.into_extra(&KNOWN) })
    }
}

/// Fails for a number that is not finite, which JSON cannot hold, and for an extra field with a name of this format.
impl Serialize for ScoreRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        if let Some(human) = self.human {
            if !human.is_finite() {
                return Err(S::Error::custom(format!("human is {human}, expected a finite number")));
            }
            map.serialize_entry("human", &human)?;
        }
        match &self.outcome {
            ScoreOutcome::Read(table) => {
                if let Some(index) = table.logits.iter().position(|z| !z.is_finite()) {
                    let value = table.logits[index];
                    return Err(S::Error::custom(format!("logit {index} is {value}, expected a finite number")));
                }
                map.serialize_entry("layers", &table.layers)?;
                map.serialize_entry("labels", &table.labels)?;
                map.serialize_entry("logits", &table.rows().collect::<Vec<_>>())?;
                map.serialize_entry("step", &table.step)?;
                map.serialize_entry("completion", &table.completion)?;
            }
            ScoreOutcome::Unscored(unscored) => map.serialize_entry("unscored", unscored)?,
        }
        for (key, value) in self.extra.raw() {
            if KNOWN.contains(&key) {
                return Err(S::Error::custom(format!("extra field {key:?} has a name of the format itself")));
            }
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}
