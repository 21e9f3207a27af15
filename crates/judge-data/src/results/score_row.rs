use judge_core::{
    ItemId, Layer, Score, Unscored,
    lager::LayerTable,
    reading::{LabelLogits, LabelStep},
};
use serde::ser::{Error as _, SerializeMap};
use serde::{Serialize, Serializer};

use crate::results::entry::entry;
use crate::rows::grades::{self, Given, NUMBERS};
use crate::rows::ids::{id_of, mean_of_places};
use crate::{Error, Extra, Human, Row};

/// One row of this project's score files, JSON lines:
/// `{"id", "human"?, "score"?, "probabilities"?, "label_mass"?, "labels", "layers", "logits", "step",
/// "completion", …}`, or `{"id", "human"?, "unscored": {"reason", "detail"}, …}`.
///
/// Written with [`Run`](crate::Run) or [`JsonlWriter`](crate::JsonlWriter), read from [`Rows`](crate::Rows).
#[derive(Clone, Debug, PartialEq)]
pub struct ScoreRow {
    /// The item.
    pub id: ItemId,
    /// What people gave it: a place for each rater, `None` for one who gave none; empty where nobody did. In files the number of one rater
    /// alone stands without a list.
    pub human: Vec<Option<f64>>,
    /// What the model gave.
    pub outcome: ScoreOutcome,
    /// All other fields; kept when the row is written again.
    pub extra: Extra,
}

/// What the model gave.
#[derive(Clone, Debug, PartialEq)]
pub enum ScoreOutcome {
    /// Label logits, and the score that a judge made of them, where one did.
    Read(LabelTable, Option<JudgedScore>),
    /// Nothing, and why.
    Unscored(Unscored),
}

/// What a judge made of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JudgedScore {
    /// The score.
    pub score: f64,
    /// The probability of each label, where the score has a distribution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probabilities: Option<Vec<f64>>,
    /// The share of the model's probability that lay on the labels, where it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_mass: Option<f64>,
}

impl From<&Score> for JudgedScore {
    fn from(score: &Score) -> Self {
        let probabilities = score.distribution.as_ref().map(|distribution| distribution.probabilities().to_vec());
        Self { score: score.value, probabilities, label_mass: score.label_mass }
    }
}

/// The label logits of an item at one position, with the texts of the labels.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelTable {
    /// The label texts, the order of the table's columns.
    pub labels: Vec<String>,
    /// Shape `[layers, n_scores]`. Numbers of a model are `f32` and written as such.
    pub table: LayerTable,
    /// Index of the generated token that is the label; 0 at the prompt's end.
    pub step: usize,
    /// The generated text; empty at the prompt's end.
    pub completion: String,
}

impl LabelTable {
    /// Some layers of one step of a reading. `labels` are the texts of the reading's tokens.
    ///
    /// # Errors
    /// [`Error::Shape`] if there are not as many labels as tokens; [`Error::Core`] if the step is not a table, or lacks a layer.
    pub fn from_step(
        read: &LabelLogits,
        step: &LabelStep,
        layers: &[Layer],
        labels: &[String],
        completion: &str,
    ) -> Result<Self, Error> {
        if labels.len() != read.tokens.len() {
            let (expected, found) = (read.tokens.len(), labels.len());
            return Err(Error::Shape { what: "labels of step", index: step.step, expected, found });
        }
        let table = LayerTable::from_step(read, step, layers)?;
        Ok(Self { labels: labels.to_vec(), table, step: step.step, completion: completion.to_owned() })
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
        if logits.iter().flatten().any(|z| !z.is_finite()) {
            return Err(row.wrong("logits", "numbers in the range of f32"));
        }
        let logits = logits.into_iter().flatten().map(f64::from).collect();
        let table = LayerTable::new(layers, labels.len(), logits);
        let table = table.map_err(|source| Error::Table { place: row.place().clone(), source: Box::new(source) })?;
        let step = row.required("step", "a whole number from 0")?;
        Ok(Self { labels, table, step, completion: row.string("completion")? })
    }
}

impl ScoreRow {
    /// The fields of a row's own, which no other field may be called.
    pub const KNOWN: [&'static str; 11] = [
        "id",
        "human",
        "score",
        "probabilities",
        "label_mass",
        "labels",
        "layers",
        "logits",
        "step",
        "completion",
        "unscored",
    ];

    /// The mean of the raters; `None` without any.
    pub fn human_mean(&self) -> Option<f64> {
        mean_of_places(&self.human)
    }

    /// Reads a row. `human` may be a number or a list of raters, of which `null` is nobody, and so is what is no number. A `score` that is
    /// no number is none.
    ///
    /// # Errors
    /// [`Error::MissingField`], [`Error::WrongType`]; [`Error::Ragged`] if `logits` is not `[layers, labels]`;
    /// [`Error::BothFields`] for a row with logits that calls itself unscored.
    pub fn from_row(row: Row) -> Result<Self, Error> {
        Ok(Self::read(row)?.0)
    }

    /// The same, and what a person gave that is no number, in words.
    pub(crate) fn read(row: Row) -> Result<(Self, Option<String>), Error> {
        let outcome = match row.optional("unscored", "an object with a known reason and a detail")? {
            Some(_) if row.has("logits") => {
                let place = row.place().clone();
                return Err(Error::BothFields { place, first: "logits", second: "unscored" });
            }
            Some(unscored) => ScoreOutcome::Unscored(unscored),
            None => {
                let score = row.value("score").and_then(grades::number);
                let probabilities = row.optional("probabilities", "a list of numbers")?;
                let label_mass = row.optional("label_mass", "a number")?;
                let judged = score.map(|score| JudgedScore { score, probabilities, label_mass });
                ScoreOutcome::Read(LabelTable::from_row(&row)?, judged)
            }
        };
        let given = row.value("human").map(|json| Given::of(json, grades::number).of_column("human", NUMBERS));
        let (human, no_grade) = given.unwrap_or_default();
        Ok((Self { id: id_of(&row)?, human, outcome, extra: row.into_extra(&Self::KNOWN) }, no_grade))
    }
}

/// Fails for a number that is not finite, which JSON cannot hold, and for an extra field with a name of this format.
impl Serialize for ScoreRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let finite = |what: &str, value: f64| match value.is_finite() {
            true => Ok(value),
            false => Err(S::Error::custom(format!("{what} is {value}, expected a finite number"))),
        };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        for &human in self.human.iter().flatten() {
            finite("human", human)?;
        }
        let human = Human::Numbers(self.human.clone());
        entry(&mut map, "human", Some(human).filter(|human| !human.is_empty()))?;
        match &self.outcome {
            ScoreOutcome::Read(read, judged) => {
                if let Some(JudgedScore { score, probabilities, label_mass }) = judged {
                    map.serialize_entry("score", &finite("score", *score)?)?;
                    entry(&mut map, "probabilities", probabilities.as_ref())?;
                    entry(&mut map, "label_mass", label_mass.as_ref())?;
                }
                map.serialize_entry("labels", &read.labels)?;
                map.serialize_entry("layers", read.table.layers())?;
                // Numbers that come from an `f32` are written with its digits.
                let rows: Vec<Vec<f32>> =
                    read.table.rows().map(|row| row.iter().map(|&z| z as f32).collect()).collect();
                if let Some(z) = rows.iter().flatten().find(|z| !z.is_finite()) {
                    return Err(S::Error::custom(format!("a logit is {z} as f32, expected a finite number")));
                }
                map.serialize_entry("logits", &rows)?;
                map.serialize_entry("step", &read.step)?;
                map.serialize_entry("completion", &read.completion)?;
            }
            ScoreOutcome::Unscored(unscored) => map.serialize_entry("unscored", unscored)?,
        }
        for (key, value) in self.extra.raw() {
            if Self::KNOWN.contains(&key) {
                return Err(S::Error::custom(format!("extra field {key:?} has a name of the format itself")));
            }
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}
