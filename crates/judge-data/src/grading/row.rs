//! The row that is written: the input's, with what each rater said of it in the rater's place.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::record::fields_of;
use super::{GradingGroup, GradingRecord, GradingTask};
use crate::rows::columns::INPUT;
use crate::{Carry, Error, Extra};

/// What one rater said of a row.
#[derive(Clone, Debug, PartialEq)]
pub struct RaterGrade {
    /// The answers, or why there are none.
    pub given: Given,
    /// How long the row was looked at, where that is known.
    pub seconds: Option<f64>,
    /// What else was said.
    pub note: Option<String>,
    /// Of a pair: whether the second response was shown first.
    pub swapped: bool,
}

/// Answers, or why there are none.
#[derive(Clone, Debug, PartialEq)]
pub enum Given {
    /// The value of an option for each [`GradingGroup`] of the row, in their order.
    Values(Vec<Value>),
    /// The row was skipped, for this reason.
    Skipped(String),
}

impl Given {
    fn value(&self, place: usize) -> Value {
        match self {
            Self::Values(values) => values.get(place).cloned().unwrap_or_default(),
            Self::Skipped(_) => Value::Null,
        }
    }
}

/// A row of grades: `{"id", "human"?: [grade or null], "raters": [name], "seconds": [number or null], "notes"?, "skipped"?, "swapped"?,
/// "sampling_probability"?, …all fields of the input…}`.
///
/// Every list has a place for each of `raters`, null for one who gave nothing, so that a rater has the same place in every row of a file.
/// `human` has numbers, and for pairs `"A"`, `"B"` and `"tie"` in the letters of the input. Typed questions are in `labels`, as
/// [`DecisionRecord`](crate::DecisionRecord) reads them (where raters differ, the share of each option), and each rater's own in
/// `rater_labels`; one question alone is in `human` too. Marks of sentences are in `sentences`, as [`RagRecord`](crate::RagRecord) reads them,
/// and `human` is the share of sentences that are supported.
///
/// # Errors
/// [`Error::FieldClash`] for a field of the input that the row has one of its own for.
pub fn graded_row(
    record: &GradingRecord,
    task: &GradingTask,
    raters: &[String],
    grades: &BTreeMap<String, RaterGrade>,
    sampling_probability: Option<f64>,
    carry: &Carry,
) -> Result<Extra, Error> {
    let groups = task.groups(record);
    let each: Vec<Option<&RaterGrade>> = raters.iter().map(|rater| grades.get(rater)).collect();
    let list = |of: &dyn Fn(&RaterGrade) -> Value| -> Vec<Value> {
        each.iter().map(|grade| grade.map_or(Value::Null, of)).collect()
    };
    let mut row = Extra::new();
    row.set("id", &record.id)?;
    let human = |grade: &RaterGrade| match (&grade.given, task) {
        (Given::Skipped(_), _) => Value::Null,
        (Given::Values(values), GradingTask::Sentences) => {
            let supported = values.iter().filter(|value| **value == json!(1)).count();
            json!(supported as f64 / values.len().max(1) as f64)
        }
        (given, _) => number_of_truth(given.value(0)),
    };
    if groups.len() == 1 || !matches!(task, GradingTask::Questions(_)) {
        row.set("human", &list(&human))?;
    }
    row.set("raters", raters)?;
    row.set("seconds", &list(&|grade| json!(grade.seconds)))?;
    let mut where_any = |name: &str, values: Vec<Value>| match values.iter().all(Value::is_null) {
        true => Ok(()),
        false => row.set(name, &values),
    };
    where_any("notes", list(&|grade| json!(grade.note)))?;
    where_any(
        "skipped",
        list(&|grade| match &grade.given {
            Given::Skipped(why) => json!(why),
            Given::Values(_) => Value::Null,
        }),
    )?;
    match task {
        GradingTask::Pairs => where_any("swapped", list(&|grade| json!(grade.swapped)))?,
        GradingTask::Questions(_) => {
            where_any(
                "rater_labels",
                list(&|grade| match &grade.given {
                    Given::Skipped(_) => Value::Null,
                    given => groups
                        .iter()
                        .enumerate()
                        .map(|(place, group)| (group.name.clone(), given.value(place)))
                        .collect(),
                }),
            )?;
            let labels: Map<String, Value> =
                groups.iter().enumerate().filter_map(|(place, group)| label(group, place, &each)).collect();
            if !labels.is_empty() {
                row.set("labels", &labels)?;
            }
        }
        GradingTask::Scale(_) | GradingTask::YesNo | GradingTask::Sentences => {}
    }
    if let Some(probability) = sampling_probability {
        row.set("sampling_probability", &probability)?;
    }
    let extra = carry.of_row(record.extra.clone(), task.known())?;
    for (name, value) in extra.raw() {
        row.set(name, value)?;
    }
    // What `A` and `B` are, whatever is carried.
    if let (GradingTask::Pairs, Some(Ok(pair))) = (task, &record.pair) {
        for (field, text) in fields_of(pair) {
            row.set(field.as_str(), text)?;
        }
        if let (Some(input), None) = (pair.input(), row.text(INPUT)) {
            row.set(INPUT, &input)?;
        }
    }
    if *task == GradingTask::Sentences {
        row.set("sentences", &sentences(record, &each)?)?;
    }
    Ok(row)
}

/// The number of a truth value.
fn number_of_truth(value: Value) -> Value {
    match value {
        Value::Bool(truth) => json!(u8::from(truth)),
        other => other,
    }
}

/// What raters answered to a question: what all say, or the share of each option.
fn label(group: &GradingGroup, place: usize, each: &[Option<&RaterGrade>]) -> Option<(String, Value)> {
    let given = each.iter().flatten().map(|grade| grade.given.value(place)).filter(|value| !value.is_null());
    let given: Vec<Value> = given.collect();
    let first = given.first()?;
    if given.iter().all(|value| value == first) {
        return Some((group.name.clone(), first.clone()));
    }
    let name = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut shares = Map::new();
    for option in &group.options {
        let count = given.iter().filter(|value| **value == option.value).count();
        if count > 0 {
            shares.insert(name(&option.value), json!(count as f64 / given.len() as f64));
        }
    }
    Some((group.name.clone(), shares.into()))
}

/// The sentences with what raters said of each; what the input has of them is kept.
fn sentences(record: &GradingRecord, each: &[Option<&RaterGrade>]) -> Result<Vec<Value>, Error> {
    let given = |place: usize| -> Vec<Value> {
        each.iter().map(|grade| grade.map_or(Value::Null, |grade| grade.given.value(place))).collect()
    };
    let before = record.extra.of_cell("sentences").filter(|json| json != "null");
    let before = before.map(|json| serde_json::from_str::<Vec<Map<String, Value>>>(&json));
    let before = before.transpose().map_err(Error::serialize)?.unwrap_or_default();
    let sentences = record.rag.response_sentences();
    let sentence = |(place, sentence): (usize, &judge_core::rag::Sentence)| {
        let mut fields = before.get(place).cloned().unwrap_or_default();
        fields.insert("start".to_owned(), json!(sentence.chars.start));
        fields.insert("end".to_owned(), json!(sentence.chars.end));
        fields.insert("text".to_owned(), json!(sentence.text));
        fields.insert("human".to_owned(), given(place).into());
        Value::Object(fields)
    };
    Ok(sentences.iter().enumerate().map(sentence).collect())
}

/// What is read back of a row.
#[derive(Deserialize)]
struct Written {
    raters: Vec<String>,
    #[serde(default)]
    human: Vec<Value>,
    #[serde(default)]
    seconds: Vec<Option<f64>>,
    #[serde(default)]
    notes: Vec<Option<String>>,
    #[serde(default)]
    skipped: Vec<Option<String>>,
    #[serde(default)]
    swapped: Vec<Option<bool>>,
    #[serde(default)]
    rater_labels: Vec<Option<Map<String, Value>>>,
    #[serde(default)]
    sentences: Vec<WrittenSentence>,
}

#[derive(Deserialize)]
struct WrittenSentence {
    #[serde(default)]
    human: Vec<Value>,
}

/// What raters have said of a row that [`graded_row`] made, by their names.
///
/// # Errors
/// If it is no such row.
pub fn grades_of(
    row: &Extra,
    task: &GradingTask,
    groups: &[GradingGroup],
) -> Result<BTreeMap<String, RaterGrade>, Error> {
    fn at<T: Clone + Default>(all: &[T], place: usize) -> T {
        all.get(place).cloned().unwrap_or_default()
    }
    let json = serde_json::to_string(row).map_err(Error::serialize)?;
    let mut fields: Map<String, Value> = serde_json::from_str(&json).map_err(Error::serialize)?;
    // Fields of the input, which may be called as those of another task are.
    let is_own = |name: &str| task.known().contains(&name) || (*task == GradingTask::Sentences && name == "sentences");
    fields.retain(|name, _| is_own(name));
    let written: Written = serde_json::from_value(fields.into()).map_err(Error::serialize)?;
    let mut grades = BTreeMap::new();
    for (place, rater) in written.raters.iter().enumerate() {
        let given = match (at(&written.skipped, place), task) {
            (Some(why), _) => Some(Given::Skipped(why)),
            (None, GradingTask::Questions(_)) => at(&written.rater_labels, place)
                .map(|labels| Given::Values(groups.iter().map(|group| at_name(&labels, &group.name)).collect())),
            (None, GradingTask::Sentences) => {
                let marks: Vec<Value> = written.sentences.iter().map(|sentence| at(&sentence.human, place)).collect();
                (!at(&written.human, place).is_null()).then_some(Given::Values(marks))
            }
            (None, _) => {
                Some(at(&written.human, place)).filter(|value| !value.is_null()).map(|value| Given::Values(vec![value]))
            }
        };
        if let Some(given) = given {
            let (seconds, note) = (at(&written.seconds, place), at(&written.notes, place));
            let swapped = at(&written.swapped, place).unwrap_or_default();
            grades.insert(rater.clone(), RaterGrade { given, seconds, note, swapped });
        }
    }
    Ok(grades)
}

fn at_name(labels: &Map<String, Value>, name: &str) -> Value {
    labels.get(name).cloned().unwrap_or_default()
}
