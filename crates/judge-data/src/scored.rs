//! Files of scores, read in one way by every program that compares them with people.

use std::collections::BTreeSet;
use std::sync::Arc;

use judge_core::ItemId;
use serde_json::Value;

use crate::grades;
use crate::ids::{UniqueIds, optional_id_of};
use crate::{Error, Extra, Input, IntoInput, Place, Row, Rows};

/// Fields that hold a prediction, in the order in which they are looked for; the last is that of answers from contexts.
const PREDICTED: [&str; 4] = ["predicted", "score", "verdict", "faithfulness.mean"];

/// Fields that hold what people said. A file whose prediction is in `score` has its human scores elsewhere.
const HUMAN: [&str; 3] = ["human", "scores", "score"];

/// Fields of this project's score files that nobody gave as a grade.
const OWN: [&str; 7] = ["id", "probabilities", "label_mass", "labels", "layers", "logits", "step"];

/// Rows in which fields that look like scores are looked for.
const LOOKED_AT: usize = 100;

/// What a judge or a person said of an item.
#[derive(Clone, Debug, PartialEq)]
pub enum Grade {
    /// A finite number; true is 1, false is 0.
    Number(f64),
    /// A label, such as `A` or `tie`; also one that writes a number, such as `4`: see [`number`](Self::number).
    Label(String),
}

/// Which fields hold the prediction and the human score; `None` where no row has one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScoredFields {
    /// The judge's.
    pub predicted: Option<String>,
    /// People's.
    pub human: Option<String>,
}

/// A file of scores whose fields and ids are known: it has been read once, and can be read again. A field of an object is named by
/// both: `faithfulness.mean`.
///
/// ```
/// use judge_data::{Grade, ScoredFile, write_atomic};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("scores.jsonl");
/// write_atomic(&path, br#"{"id": 1, "score": 3.5, "human": [4, null, 3]}"#)?;
/// let file = ScoredFile::open(&path, None)?;
/// let fields = file.fields(None, None);
/// assert_eq!((fields.predicted.as_deref(), fields.human.as_deref()), (Some("score"), Some("human")));
/// for row in file.rows(&fields)? {
///     let row = row?;
///     assert_eq!(row.predicted, Ok(Some(Grade::Number(3.5))));
///     assert_eq!(row.human.unwrap().len(), 3, "each rater keeps the place");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ScoredFile {
    input: Input,
    limit: usize,
    present: BTreeSet<String>,
    numeric: BTreeSet<String>,
    /// Fields in which a row has a text that is no number.
    labelled: BTreeSet<String>,
    ids: Result<(), Error>,
}

impl ScoredFile {
    /// Reads a file once, or its first `limit` rows, and notes which fields have values.
    ///
    /// # Errors
    /// What is wrong with the file; [`Error::NoRows`].
    pub fn open(input: impl IntoInput, limit: Option<usize>) -> Result<Self, Error> {
        let limit = limit.unwrap_or(usize::MAX);
        let (present, numeric, labelled) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let mut file = Self { input: input.into_input()?, limit, present, numeric, labelled, ids: Ok(()) };
        let (mut n, mut ids) = (0, UniqueIds::default());
        for (number, row) in file.input.rows()?.take(limit).enumerate() {
            let row = row?;
            if file.ids.is_ok() {
                file.ids = optional_id_of(&row).and_then(|id| id.map_or(Ok(()), |id| ids.check(&id, row.place())));
            }
            for key in row.keys() {
                row.value(key).into_iter().for_each(|json| file.note(key, json, number < LOOKED_AT));
            }
            n = number + 1;
        }
        if n == 0 {
            return Err(Error::NoRows { path: file.input.path().to_owned() });
        }
        Ok(file)
    }

    /// Notes what a field holds, and the fields of an object in it, each as `FIELD.NAME`.
    fn note(&mut self, field: &str, json: &str, is_early: bool) {
        if is_early && !self.numeric.contains(field) && is_numeric(json) {
            self.numeric.insert(field.to_owned());
        }
        if !self.labelled.contains(field) && is_labelled(json) {
            self.labelled.insert(field.to_owned());
        }
        if !self.present.contains(field) {
            self.present.insert(field.to_owned());
        }
        let inner: Option<Extra> = json.starts_with('{').then(|| serde_json::from_str(json).ok()).flatten();
        for (name, json) in inner.iter().flat_map(Extra::iter).filter(|(_, json)| *json != "null") {
            self.note(&format!("{field}.{name}"), json, is_early);
        }
    }

    /// The file, in which each row that has an id has one of its own.
    ///
    /// # Errors
    /// [`Error::DuplicateId`]; [`Error::WrongType`] for what is no id.
    pub fn with_unique_ids(self) -> Result<Self, Error> {
        self.ids?;
        Ok(Self { ids: Ok(()), ..self })
    }

    /// The fields that are named, whether a row has them or not. Those that are not named are found: the prediction is `predicted`,
    /// else `score`, else `verdict`, else `faithfulness.mean`; the human score is `human`, else `scores`, else `score`, and never the
    /// prediction.
    pub fn fields(&self, predicted: Option<&str>, human: Option<&str>) -> ScoredFields {
        let found = |names: &[&str], but: Option<&str>| {
            let name = names.iter().find(|name| Some(**name) != but && self.has(name));
            name.map(|name| (*name).to_owned())
        };
        let predicted = predicted.map(str::to_owned).or_else(|| found(&PREDICTED, None));
        let human = human.map(str::to_owned).or_else(|| found(&HUMAN, predicted.as_deref()));
        ScoredFields { predicted, human }
    }

    /// Where a prediction is looked for.
    pub fn predicted_names() -> &'static [&'static str] {
        &PREDICTED
    }

    /// Where a human score is looked for beside this prediction.
    pub fn human_names(predicted: &str) -> impl Iterator<Item = &'static str> {
        HUMAN.into_iter().filter(move |name| *name != predicted)
    }

    /// Whether any row has a value in this field.
    pub fn has(&self, field: &str) -> bool {
        self.present.contains(field)
    }

    /// Whether what this field holds are numbers: one of the first hundred rows has one, or all texts write one. What people gave are
    /// numbers too where the predictions are, and anything else is no grade.
    pub fn has_numbers(&self, field: &str) -> bool {
        self.numeric.contains(field) || !self.labelled.contains(field)
    }

    /// Every field in which a row has a value, in alphabetical order.
    pub fn present(&self) -> impl Iterator<Item = &str> {
        self.present.iter().map(String::as_str)
    }

    /// Fields that hold a number or a list of numbers in one of the first hundred rows, other than the prediction and this
    /// project's own, in alphabetical order.
    pub fn candidates(&self, predicted: &str) -> impl Iterator<Item = &str> {
        self.numeric.iter().map(String::as_str).filter(move |name| *name != predicted && !OWN.contains(name))
    }

    /// The file.
    pub fn input(&self) -> &Input {
        &self.input
    }

    /// Reads the rows.
    ///
    /// # Errors
    /// If the file cannot be read again.
    pub fn rows(&self, fields: &ScoredFields) -> Result<ScoredRows, Error> {
        let numeric = fields.predicted.as_ref().is_some_and(|field| self.has_numbers(field));
        Ok(ScoredRows::of(self.input.rows()?.take(self.limit), fields, numeric))
    }
}

/// The rows of a file of scores, in order. After the first error there are no further rows.
#[derive(Debug)]
pub struct ScoredRows {
    rows: std::iter::Take<Rows>,
    fields: Arc<ScoredFields>,
    numeric: bool,
    next: usize,
}

impl ScoredRows {
    /// The rows of a file whose fields are known: it is read once, where [`ScoredFile`] reads it before to find them.
    ///
    /// # Errors
    /// If it cannot be opened or read.
    pub fn open(input: impl IntoInput, fields: &ScoredFields) -> Result<Self, Error> {
        Ok(Self::of(Rows::open(input)?.take(usize::MAX), fields, false))
    }

    fn of(rows: std::iter::Take<Rows>, fields: &ScoredFields, numeric: bool) -> Self {
        Self { rows, fields: Arc::new(fields.clone()), numeric, next: 0 }
    }
}

impl Iterator for ScoredRows {
    type Item = Result<ScoredRow, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let row = self.rows.next()?;
        let number = self.next;
        self.next += 1;
        Some(row.map(|row| ScoredRow::new(row, number, &self.fields, self.numeric)))
    }
}

/// Why a row has no score, as its `unscored` tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoScore {
    /// A word.
    pub reason: String,
    /// A sentence; empty where there is none.
    pub detail: String,
}

impl NoScore {
    /// What `unscored` says of a field: that of answers from contexts has a reason for each measure that is absent.
    fn of(why: &Value, field: Option<&str>) -> Option<Self> {
        let by_measure = why.as_object().filter(|all| !all.is_empty() && all.values().all(Value::is_object));
        let why = match by_measure {
            Some(all) => all.get(field?.split('.').next()?)?,
            None => why,
        };
        let text = |name: &str| why.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let reason = Some(text("reason")).filter(|reason| !reason.is_empty());
        Some(Self { reason: reason.unwrap_or_else(|| "unscored".to_owned()), detail: text("detail") })
    }
}

/// A row of a judge's score and of people's. A value that is no grade is the row's own fault, said as what was found and expected.
#[derive(Clone, Debug)]
pub struct ScoredRow {
    /// Its number in the file, from 0.
    pub number: usize,
    /// Its `id`, where it has one that is a text or a whole number.
    pub id: Option<ItemId>,
    /// The judge's score; of a list of numbers their mean. `None` where there is none, or `unscored` says so.
    pub predicted: Result<Option<Grade>, String>,
    /// Why there is none, where the row says so.
    pub unscored: Option<NoScore>,
    /// People's scores: a place for each rater, `None` for one who gave none; empty where nobody was asked. Numbers alone where a
    /// [`ScoredFile`] [predicts numbers](ScoredFile::has_numbers).
    pub human: Result<Vec<Option<Grade>>, String>,
    /// What a person gave that is no number, where the predictions of the file are: it is left out of `human`.
    pub no_grade: Option<String>,
    /// The row itself.
    pub row: Row,
    fields: Arc<ScoredFields>,
    numeric: bool,
}

impl ScoredRow {
    fn new(row: Row, number: usize, fields: &Arc<ScoredFields>, numeric: bool) -> Self {
        let id = optional_id_of(&row).unwrap_or_default();
        let why = row.optional::<Value>("unscored", "any value").unwrap_or_default();
        let unscored = why.and_then(|why| NoScore::of(&why, fields.predicted.as_deref()));
        let predicted = match &fields.predicted {
            Some(field) if unscored.is_none() => grade_as(&row, field, numeric),
            _ => Ok(None),
        };
        let mut no_grade = None;
        let human = fields.human.as_deref().map_or_else(
            || Ok(Vec::new()),
            |field| {
                let mut rater = |grade: Grade| match grade.among(field, numeric) {
                    Ok(grade) => Some(grade),
                    Err(why) => {
                        no_grade.get_or_insert(why);
                        None
                    }
                };
                Ok(raters_in(&row, field)?.into_iter().map(|grade| rater(grade?)).collect())
            },
        );
        Self { number, id, predicted, unscored, human, no_grade, row, fields: fields.clone(), numeric }
    }

    /// Where the row is.
    pub fn place(&self) -> &Place {
        self.row.place()
    }

    /// The grade in another field; of a list of numbers their mean. `None` where there is none.
    ///
    /// # Errors
    /// What is there instead, and what was expected.
    pub fn grade(&self, field: &str) -> Result<Option<Grade>, String> {
        grade_as(&self.row, field, self.numeric)
    }

    /// The prediction where it is a number; `None` where there is none.
    ///
    /// # Errors
    /// As [`predicted`](Self::predicted); a label is none either.
    pub fn predicted_number(&self) -> Result<Option<f64>, String> {
        let field = self.fields.predicted.as_deref().unwrap_or_default();
        self.predicted.clone()?.map(|grade| number(field, grade)).transpose()
    }

    /// The mean of the human scores, which are numbers; `None` where there are none.
    ///
    /// # Errors
    /// As [`human`](Self::human); a label is no number, and neither is what nobody gave a number beside.
    pub fn human_mean(&self) -> Result<Option<f64>, String> {
        let field = self.fields.human.as_deref().unwrap_or_default();
        let given = self.human.clone()?.into_iter().flatten();
        let numbers: Vec<f64> = given.map(|grade| number(field, grade)).collect::<Result<_, _>>()?;
        match &self.no_grade {
            Some(why) if numbers.is_empty() => Err(why.clone()),
            _ => Ok(crate::ids::mean(&numbers)),
        }
    }
}

impl Grade {
    /// The number that it is, or that its text writes; `None` for any other label.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Label(text) => grades::of_text(text),
        }
    }

    /// Among numbers, a text that writes one is one, and no other is a grade.
    fn among(self, field: &str, numeric: bool) -> Result<Self, String> {
        if numeric { number(field, self).map(Self::Number) } else { Ok(self) }
    }

    fn of(value: Value) -> Result<Self, Value> {
        match value {
            Value::Number(number) => match number.as_f64().filter(|number| number.is_finite()) {
                Some(number) => Ok(Self::Number(number + 0.0)),
                None => Err(Value::Number(number)),
            },
            Value::Bool(truth) => Ok(Self::Number(f64::from(u8::from(truth)))),
            Value::String(text) => Ok(Self::Label(text)),
            other => Err(other),
        }
    }
}

/// A field's value; null is none. Nothing but the size of a number can be wrong in a row that was read as JSON.
fn value(row: &Row, field: &str) -> Result<Option<Value>, String> {
    let Some(text) = row.value_at(field) else { return Ok(None) };
    serde_json::from_str(&text).map(Some).map_err(|_| format!("{field} is {text}, not a finite number"))
}

fn grade(field: &str, value: Value) -> Result<Grade, String> {
    Grade::of(value).map_err(|value| format!("{field} is {value}, not a finite number or a label"))
}

fn number(field: &str, grade: Grade) -> Result<f64, String> {
    match (grade.number(), grade) {
        (Some(number), _) | (None, Grade::Number(number)) => Ok(number),
        (None, Grade::Label(text)) => Err(format!("{field} is {text:?}, expected a number or a list of numbers")),
    }
}

fn grade_in(row: &Row, field: &str) -> Result<Option<Grade>, String> {
    match value(row, field)? {
        None => Ok(None),
        Some(Value::Array(samples)) => {
            let all = samples.into_iter().filter(|sample| !sample.is_null());
            let numbers: Vec<f64> = all.map(|sample| number(field, grade(field, sample)?)).collect::<Result<_, _>>()?;
            Ok(crate::ids::mean(&numbers).map(Grade::Number))
        }
        Some(value) => grade(field, value).map(Some),
    }
}

/// A grade, where all are numbers or any is a label.
fn grade_as(row: &Row, field: &str, numeric: bool) -> Result<Option<Grade>, String> {
    grade_in(row, field)?.map(|grade| grade.among(field, numeric)).transpose()
}

fn raters_in(row: &Row, field: &str) -> Result<Vec<Option<Grade>>, String> {
    match value(row, field)? {
        None => Ok(Vec::new()),
        Some(Value::Array(raters)) => {
            raters.into_iter().map(|rater| (!rater.is_null()).then(|| grade(field, rater)).transpose()).collect()
        }
        Some(value) => Ok(vec![Some(grade(field, value)?)]),
    }
}

fn is_numeric(json: &str) -> bool {
    !json.starts_with('{')
        && serde_json::from_str(json).is_ok_and(|value: Value| match &value {
            Value::Array(list) => !list.is_empty() && list.iter().all(|x| x.is_number() || x.is_null()),
            other => other.is_number(),
        })
}

fn is_labelled(json: &str) -> bool {
    let is_label = |value: &Value| value.as_str().is_some_and(|text| grades::of_text(text).is_none());
    // Most values are numbers, or long lists of them, which need not be read for it.
    !json.starts_with('{')
        && json.contains('"')
        && serde_json::from_str(json).is_ok_and(|value: Value| match &value {
            Value::Array(list) => list.iter().any(is_label),
            other => is_label(other),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> (ScoredFields, Vec<ScoredRow>) {
        let input = Input::from_reader(text.as_bytes(), "rows").unwrap();
        let file = ScoredFile::open(&input, None).unwrap();
        let fields = file.fields(None, None);
        let rows = file.rows(&fields).unwrap().collect::<Result<_, _>>().unwrap();
        (fields, rows)
    }

    #[test]
    fn fields_are_those_of_the_whole_file_and_not_of_its_first_row() {
        let (fields, read) = rows("{\"score\": 3, \"human\": null}\n{\"score\": 2, \"predicted\": 1}\n");
        assert_eq!((fields.predicted.as_deref(), fields.human.as_deref()), (Some("predicted"), Some("score")));
        assert_eq!(read[0].predicted, Ok(None));
        assert_eq!(read[0].human, Ok(vec![Some(Grade::Number(3.0))]));
    }

    #[test]
    fn a_field_of_an_object_is_named_by_both() {
        let text = "{\"id\": 1, \"a\": {\"b\": {\"c\": 2}, \"d\": null}, \"human\": 3}\n{\"id\": 2, \"a.b.c\": 4, \"a\": {\"b\": 1}}\n";
        let file = ScoredFile::open(Input::from_reader(text.as_bytes(), "rows").unwrap(), None).unwrap();
        assert!(file.has("a.b.c") && file.has_numbers("a.b.c") && !file.has("a.d") && !file.has("a.b.d"));
        let fields = file.fields(Some("a.b.c"), None);
        let read: Vec<ScoredRow> = file.rows(&fields).unwrap().collect::<Result<_, _>>().unwrap();
        assert_eq!((read[0].predicted_number(), read[1].predicted_number()), (Ok(Some(2.0)), Ok(Some(4.0))));
        assert_eq!(read[1].grade("a.b.c.d"), Ok(None));
    }

    #[test]
    fn an_odd_value_is_its_rows_own() {
        let text = "{\"score\": [1, 3], \"human\": {\"a\": 1}}\n{\"score\": 1e400, \"human\": 2}\n{\"score\": \"A\", \"human\": [\"A\", null]}\n";
        let (_, read) = rows(text);
        assert_eq!(read[0].predicted_number(), Ok(Some(2.0)));
        assert_eq!(read[0].human.clone().unwrap_err(), "human is {\"a\":1}, not a finite number or a label");
        assert_eq!(read[1].predicted.clone().unwrap_err(), "score is 1e400, not a finite number");
        assert_eq!(read[2].predicted_number().unwrap_err(), "score is \"A\", expected a number or a list of numbers");
        assert_eq!(read[2].human.as_ref().unwrap().len(), 2);
    }

    // https://github.com/comet-ml/opik/issues/8398
    #[test]
    fn among_numbers_a_text_is_a_number_or_no_grade() {
        let (_, read) = rows(
            "{\"score\": 1, \"human\": \"4\"}\n{\"score\": \"2\", \"human\": [\"N/A\", \" 3.5\", true]}\n{\"score\": \"?\", \"human\": \"N/A\"}\n",
        );
        assert_eq!(read[0].human, Ok(vec![Some(Grade::Number(4.0))]));
        assert_eq!(read[1].predicted, Ok(Some(Grade::Number(2.0))));
        assert_eq!(read[1].human, Ok(vec![None, Some(Grade::Number(3.5)), Some(Grade::Number(1.0))]));
        assert_eq!(read[1].no_grade.as_deref(), Some("human is \"N/A\", expected a number or a list of numbers"));
        assert!(read[2].predicted.is_err() && read[2].human == Ok(vec![None]) && read[2].human_mean().is_err());
        let (_, labels) = rows("{\"verdict\": \"1\", \"human\": \"1\"}\n{\"verdict\": \"tie\", \"human\": 1}\n");
        assert_eq!(labels[0].predicted, Ok(Some(Grade::Label("1".to_owned()))));
        assert_eq!((&labels[1].human, &labels[1].no_grade), (&Ok(vec![Some(Grade::Number(1.0))]), &None));
    }

    #[test]
    fn what_says_that_it_has_no_score_has_none() {
        let (_, read) = rows(
            "{\"score\": 1, \"unscored\": {\"reason\": \"too_long\", \"detail\": \"9 tokens\"}}\n{\"score\": 1}\n",
        );
        assert_eq!(read[0].predicted, Ok(None));
        assert_eq!(read[0].unscored.as_ref().unwrap().reason, "too_long");
        assert_eq!((&read[1].predicted, &read[1].unscored), (&Ok(Some(Grade::Number(1.0))), &None));
        // Of answers from contexts each measure has its own reason.
        let (fields, read) = rows(
            "{\"faithfulness\": {\"mean\": 0.5}, \"unscored\": {\"correctness\": {\"reason\": \"missing\"}}}\n\
             {\"unscored\": {\"faithfulness\": {\"reason\": \"too_long\"}}}\n",
        );
        assert_eq!(fields.predicted.as_deref(), Some("faithfulness.mean"));
        assert_eq!((&read[0].predicted, &read[0].unscored), (&Ok(Some(Grade::Number(0.5))), &None));
        assert_eq!(read[1].unscored.as_ref().unwrap().reason, "too_long");
    }

    #[test]
    fn an_id_is_there_once() {
        let input = Input::from_reader(&b"{\"id\": 1}\n{\"id\": 1}\n"[..], "rows").unwrap();
        let open = |limit| ScoredFile::open(&input, limit).unwrap();
        assert!(matches!(open(None).with_unique_ids(), Err(Error::DuplicateId { .. })));
        assert!(open(Some(1)).with_unique_ids().is_ok());
    }
}
