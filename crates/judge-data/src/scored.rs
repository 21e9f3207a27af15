//! Files of scores, read in one way by every program that compares them with people.

pub(crate) mod human_scores;
pub(crate) mod pair_reading;
pub(crate) mod score_file;
pub(crate) mod score_table;
pub(crate) mod trec;

use std::collections::BTreeMap;
use std::sync::Arc;

use judge_core::ItemId;
use serde_json::Value;

use crate::rows::cell::list_in_cell;
use crate::rows::grades::{self, Given};
use crate::rows::ids::{UniqueIds, optional_id_of};
use crate::rows::pair_verdict::{PREFERENCES, PairVerdict, choice};
use crate::{Error, Extra, Input, IntoInput, Place, Row, Rows};

/// Fields that hold a prediction, in the order in which they are looked for; the last is that of answers from contexts.
const PREDICTED: [&str; 4] = ["predicted", "score", "verdict", "faithfulness.mean"];

/// Fields that hold what people said. A file whose prediction is in `score` has its human scores elsewhere.
const HUMAN: [&str; 3] = ["human", "scores", "score"];

/// Fields of this project's score files that nobody gave as a grade.
const OWN: [&str; 7] = ["id", "probabilities", "label_mass", "labels", "layers", "logits", "step"];

/// Values of a field that say what it holds.
const LOOKED_AT: usize = 100;

/// How many names the field of an object has at most: what lies deeper is not looked for.
const LEVELS: usize = 8;

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
/// both: `faithfulness.mean`, of up to eight names.
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
///     assert_eq!(row.human.len(), 3, "each rater keeps the place");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ScoredFile {
    input: Input,
    limit: usize,
    /// Of each field in which a row has a value.
    seen: BTreeMap<String, Seen>,
    ids: Result<(), Error>,
}

/// What a value says of its field; a list says what the last of these in it does. An object says nothing, nor does a boolean, which is a
/// number or a label, nor a text that stands for no value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Says {
    Number,
    /// A text that writes a number, as every cell of a table does.
    Written,
    Word,
    /// `A`, `B` or `inconsistent`.
    Verdict,
    /// A verdict too, also where others are the numbers of responses.
    Tie,
}

/// What a field holds.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// How many of the first hundred values that say something [say](Says) what.
    says: [usize; 5],
    /// Whether any value is a text that is no verdict and stands for a value.
    has_others: bool,
}

/// What the grades of a file are: what is something else is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Numbers,
    Labels,
    /// On pairs: which response is better.
    Verdicts,
    /// Nobody has looked.
    Any,
}

impl ScoredFile {
    /// Reads a file once, or its first `limit` rows, and notes which fields have values.
    ///
    /// # Errors
    /// What is wrong with the file; [`Error::NoRows`].
    pub fn open(input: impl IntoInput, limit: Option<usize>) -> Result<Self, Error> {
        let limit = limit.unwrap_or(usize::MAX);
        let mut file = Self { input: input.into_input()?, limit, seen: BTreeMap::new(), ids: Ok(()) };
        let (mut n, mut ids) = (0, UniqueIds::default());
        for (number, row) in file.input.rows()?.take(limit).enumerate() {
            let row = row?;
            if file.ids.is_ok() {
                file.ids = optional_id_of(&row).and_then(|id| id.map_or(Ok(()), |id| ids.check(&id, row.place())));
            }
            for key in row.keys() {
                row.value(key).into_iter().for_each(|json| file.note(key, json, LEVELS));
            }
            n = number + 1;
        }
        if n == 0 {
            return Err(Error::NoRows { path: file.input.path().to_owned() });
        }
        Ok(file)
    }

    /// Notes what a field holds, and the fields of an object in it, each as `FIELD.NAME`, to so many levels.
    fn note(&mut self, field: &str, json: &str, levels: usize) {
        if !self.has(field) {
            self.seen.insert(field.to_owned(), Seen::default());
        }
        self.seen.get_mut(field).into_iter().for_each(|seen| seen.note(json));
        let is_noted = levels > 1 && json.starts_with('{');
        let inner: Option<Extra> = is_noted.then(|| serde_json::from_str(json).ok()).flatten();
        for (name, json) in inner.iter().flat_map(Extra::iter).filter(|(_, json)| *json != "null") {
            self.note(&format!("{field}.{name}"), json, levels - 1);
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
        self.seen.contains_key(field)
    }

    /// Whether what this field holds are numbers and not labels: of its first hundred values as many are numbers, or texts that write one,
    /// as are other texts. Empty texts and those that stand for no value, as `NaN` does, are not counted, and beside a tie texts are
    /// labels, whatever they write. What people gave is of the same kind as the predictions, and anything else is no grade.
    pub fn has_numbers(&self, field: &str) -> bool {
        let Some([numbers, written, words, verdicts, ties]) = self.seen.get(field).map(|seen| seen.says) else {
            return true;
        };
        numbers + written >= words + verdicts + ties && (numbers > 0 || ties == 0)
    }

    /// Whether predictions are verdicts on pairs, all that stand for a value, and people gave such verdicts too.
    fn has_verdicts(&self, fields: &ScoredFields) -> bool {
        let seen = |field: &Option<String>| self.seen.get(field.as_deref()?);
        seen(&fields.predicted).is_some_and(|seen| seen.n_verdicts() > 0 && !seen.has_others)
            && seen(&fields.human).is_none_or(|seen| seen.n_verdicts() > 0)
    }

    /// Every field in which a row has a value, in alphabetical order.
    pub fn present(&self) -> impl Iterator<Item = &str> {
        self.seen.keys().map(String::as_str)
    }

    /// Fields of which one of the first hundred values is a number, written as a text or not, or a list of them, other than the prediction
    /// and this project's own, in alphabetical order.
    pub fn candidates(&self, predicted: &str) -> impl Iterator<Item = &str> {
        let numeric = self.seen.iter().filter(|(_, seen)| seen.count(Says::Number) + seen.count(Says::Written) > 0);
        let numeric = numeric.map(|(name, _)| name.as_str());
        numeric.filter(move |name| *name != predicted && !OWN.contains(name))
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
        let kind = match &fields.predicted {
            None => Kind::Any,
            Some(field) if self.has_numbers(field) => Kind::Numbers,
            Some(_) if self.has_verdicts(fields) => Kind::Verdicts,
            Some(_) => Kind::Labels,
        };
        Ok(ScoredRows::of(self.input.rows()?.take(self.limit), fields, kind))
    }
}

impl Says {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Number(_) => Some(Self::Number),
            Value::String(text) if grades::is_gap(text) || grades::of_boolean(text).is_some() => None,
            Value::String(text) if grades::of_text(text).is_some() || grades::has_comma(text) => Some(Self::Written),
            Value::String(text) if text.trim().eq_ignore_ascii_case("tie") => Some(Self::Tie),
            Value::String(text) if PairVerdict::of_text(text).is_some() => Some(Self::Verdict),
            Value::String(_) => Some(Self::Word),
            // Lists in a list, such as states, are no grades.
            Value::Array(list) => list.iter().filter(|value| !value.is_array()).filter_map(Self::of).max(),
            _ => None,
        }
    }
}

impl Seen {
    fn count(&self, says: Says) -> usize {
        self.says[says as usize]
    }

    fn n_verdicts(&self) -> usize {
        self.count(Says::Verdict) + self.count(Says::Tie)
    }

    fn note(&mut self, json: &str) {
        if ["{", "[{", "[["].iter().any(|start| json.starts_with(start)) {
            return; // it may be large, and says nothing
        }
        if self.says.iter().sum::<usize>() < LOOKED_AT {
            let value: Option<Value> = serde_json::from_str(&list_in_cell(json)).ok();
            let says = value.as_ref().and_then(Says::of);
            says.into_iter().for_each(|says| self.says[says as usize] += 1);
        }
        if !self.has_others && json.starts_with('"') {
            let is_other = |text: String| !grades::is_gap(&text) && PairVerdict::of_text(&text).is_none();
            self.has_others = serde_json::from_str(json).is_ok_and(is_other);
        }
    }
}

/// The rows of a file of scores, in order. After the first error there are no further rows.
#[derive(Debug)]
pub struct ScoredRows {
    rows: std::iter::Take<Rows>,
    fields: Arc<ScoredFields>,
    kind: Kind,
    next: usize,
}

impl ScoredRows {
    /// The rows of a file whose fields are known: it is read once, where [`ScoredFile`] reads it before to find them.
    ///
    /// # Errors
    /// If it cannot be opened or read.
    pub fn open(input: impl IntoInput, fields: &ScoredFields) -> Result<Self, Error> {
        Ok(Self::of(Rows::open(input)?.take(usize::MAX), fields, Kind::Any))
    }

    fn of(rows: std::iter::Take<Rows>, fields: &ScoredFields, kind: Kind) -> Self {
        Self { rows, fields: Arc::new(fields.clone()), kind, next: 0 }
    }
}

impl Iterator for ScoredRows {
    type Item = Result<ScoredRow, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let row = self.rows.next()?;
        let number = self.next;
        self.next += 1;
        Some(row.map(|row| ScoredRow::new(row, number, &self.fields, self.kind)))
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
    /// [`ScoredFile`] [predicts numbers](ScoredFile::has_numbers), labels alone where it predicts labels, and of these only `A`, `B` and
    /// `tie` where all that it predicts are verdicts on pairs.
    pub human: Vec<Option<Grade>>,
    /// The first thing that a person gave and that is no such grade, in words: it is left out of `human`.
    pub no_grade: Option<String>,
    /// The row itself.
    pub row: Row,
    fields: Arc<ScoredFields>,
    kind: Kind,
}

impl ScoredRow {
    fn new(row: Row, number: usize, fields: &Arc<ScoredFields>, kind: Kind) -> Self {
        let id = optional_id_of(&row).unwrap_or_default();
        let why = row.optional::<Value>("unscored", "any value").unwrap_or_default();
        let unscored = why.and_then(|why| NoScore::of(&why, fields.predicted.as_deref()));
        let predicted = match &fields.predicted {
            Some(field) if unscored.is_none() => grade_as(&row, field, kind),
            _ => Ok(None),
        };
        let given = fields.human.as_deref().map(|field| raters_in(&row, field, kind));
        let (human, no_grade) = given.unwrap_or_default();
        Self { number, id, predicted, unscored, human, no_grade, row, fields: fields.clone(), kind }
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
        grade_as(&self.row, field, self.kind)
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
    /// A label is no number, and neither is what nobody gave a number beside.
    pub fn human_mean(&self) -> Result<Option<f64>, String> {
        let field = self.fields.human.as_deref().unwrap_or_default();
        let given = self.human.iter().flatten().cloned();
        let numbers: Vec<f64> = given.map(|grade| number(field, grade)).collect::<Result<_, _>>()?;
        match &self.no_grade {
            Some(why) if numbers.is_empty() => Err(why.clone()),
            _ => Ok(crate::rows::ids::mean(numbers)),
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

    /// Among numbers, a text that writes one is one, and no other is a grade; among labels no number is, and among verdicts no other text.
    fn among(self, field: &str, kind: Kind) -> Result<Self, String> {
        match (kind, self) {
            (Kind::Numbers, grade) => number(field, grade).map(Self::Number),
            (Kind::Labels, Self::Number(number)) => Err(format!("{field} is {number}, expected a label")),
            (Kind::Verdicts, Self::Number(number)) => Err(format!("{field} is {number}, expected {VERDICTS}")),
            (Kind::Verdicts, Self::Label(text)) if PairVerdict::of_text(&text).is_none() => {
                Err(format!("{field} is {text:?}, expected {VERDICTS}"))
            }
            (_, grade) => Ok(grade),
        }
    }
}

/// What verdicts of a judge are read from, in words.
const VERDICTS: &str = "\"A\", \"B\", \"tie\" or \"inconsistent\"";

/// A field's value. Nothing but the size of a number can be wrong in a row that was read as JSON.
fn read(field: &str, json: &str) -> Result<Value, String> {
    serde_json::from_str(json).map_err(|_| format!("{field} is {json}, not a finite number"))
}

fn grade(field: &str, value: Value) -> Result<Grade, String> {
    match value {
        Value::Bool(truth) => Ok(Grade::Number(f64::from(u8::from(truth)))),
        Value::String(text) if !text.trim().is_empty() => Ok(Grade::Label(text)),
        other => {
            let number = other.as_f64().filter(|number| number.is_finite());
            let number = number.ok_or_else(|| format!("{field} is {other}, not a finite number or a label"))?;
            Ok(Grade::Number(number + 0.0))
        }
    }
}

fn number(field: &str, grade: Grade) -> Result<f64, String> {
    match (grade.number(), grade) {
        (Some(number), _) | (None, Grade::Number(number)) => Ok(number),
        (None, Grade::Label(text)) => {
            let point = if grades::has_comma(&text) { ", with a point before the decimals" } else { "" };
            Err(format!("{field} is {text:?}, expected a number or a list of numbers{point}"))
        }
    }
}

/// The grade of this kind in a field, of a list of numbers their mean; null is none.
fn grade_as(row: &Row, field: &str, kind: Kind) -> Result<Option<Grade>, String> {
    let Some(json) = row.value_at(field) else { return Ok(None) };
    let found = match read(field, &list_in_cell(&json))? {
        Value::Array(samples) => {
            let all = samples.into_iter().filter(|sample| !sample.is_null());
            let numbers: Vec<f64> = all.map(|sample| number(field, grade(field, sample)?)).collect::<Result<_, _>>()?;
            crate::rows::ids::mean(numbers).map(Grade::Number)
        }
        value => Some(grade(field, value)?),
    };
    found.map(|found| found.among(field, kind)).transpose()
}

/// What each rater gave of this kind, and the first thing that is none, in words.
fn raters_in(row: &Row, field: &str, kind: Kind) -> (Vec<Option<Grade>>, Option<String>) {
    let Some(json) = row.value_at(field) else { return (Vec::new(), None) };
    let of_rater = |json: &str| match read(field, json)? {
        Value::Null => Ok(None),
        // A person's orders do not disagree.
        _ if kind == Kind::Verdicts && choice(json).is_none() => {
            Err(format!("{field} is {json}, expected {PREFERENCES}"))
        }
        value => grade(field, value)?.among(field, kind).map(Some),
    };
    let mut no_grade = None;
    let given = Given::of(&json, |json| {
        of_rater(json).unwrap_or_else(|why| {
            no_grade.get_or_insert(why);
            None
        })
    });
    (given.raters, no_grade)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of a table.
    fn rows_of(table: &str) -> Vec<ScoredRow> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.csv");
        std::fs::write(&path, table).unwrap();
        let file = ScoredFile::open(&path, None).unwrap();
        file.rows(&file.fields(None, None)).unwrap().collect::<Result<_, _>>().unwrap()
    }

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
        assert_eq!(read[0].human, [Some(Grade::Number(3.0))]);
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
    fn a_value_of_many_levels_is_read_to_the_eighth() {
        let deep = 60_000;
        let odd = format!("{}1{}", "{\"a\":".repeat(deep), "}".repeat(deep));
        let text = format!("{{\"score\": 1, \"human\": 2, \"a\": {odd}}}\n{{\"score\": 2, \"human\": 2}}\n");
        let input = Input::from_reader(text.as_bytes(), "rows").unwrap();
        let file = ScoredFile::open(&input, None).unwrap();
        let levels = file.present().filter(|field| field.starts_with('a')).map(|field| field.split('.').count());
        assert_eq!(levels.collect::<Vec<_>>(), (1..=LEVELS).collect::<Vec<_>>());
        assert_eq!(rows(&text).1[0].predicted, Ok(Some(Grade::Number(1.0))));
    }

    #[test]
    fn an_odd_value_is_its_rows_own() {
        let text = "{\"score\": [1, 3], \"human\": {\"a\": 1}}\n{\"score\": 1e400, \"human\": 2}\n{\"score\": \"A\", \"human\": [\"A\", null]}\n";
        let (_, read) = rows(text);
        assert_eq!(read[0].predicted_number(), Ok(Some(2.0)));
        assert_eq!(read[0].human, [None]);
        assert_eq!(read[0].no_grade.as_deref(), Some("human is {\"a\":1}, not a finite number or a label"));
        assert_eq!(read[1].predicted.clone().unwrap_err(), "score is 1e400, not a finite number");
        assert_eq!(read[2].predicted_number().unwrap_err(), "score is \"A\", expected a number or a list of numbers");
        assert_eq!(read[2].human, [None, None]);
        // Of a list of raters, the one grade.
        let (_, read) = rows("{\"score\": 1, \"human\": [4, {}, 1e400, [3], null]}\n");
        assert_eq!(read[0].human, [Some(Grade::Number(4.0)), None, None, None, None]);
        assert_eq!(read[0].no_grade.as_deref(), Some("human is {}, not a finite number or a label"));
    }

    // https://github.com/comet-ml/opik/issues/8398
    #[test]
    fn among_numbers_a_text_is_a_number_or_no_grade() {
        let (_, read) = rows(
            "{\"score\": 1, \"human\": \"4\"}\n{\"score\": \"2\", \"human\": [\"N/A\", \" 3.5\", true]}\n{\"score\": \"?\", \"human\": \"N/A\"}\n",
        );
        assert_eq!(read[0].human, [Some(Grade::Number(4.0))]);
        assert_eq!(read[1].predicted, Ok(Some(Grade::Number(2.0))));
        assert_eq!(read[1].human, [None, Some(Grade::Number(3.5)), Some(Grade::Number(1.0))]);
        assert_eq!(read[1].no_grade.as_deref(), Some("human is \"N/A\", expected a number or a list of numbers"));
        assert!(read[2].predicted.is_err() && read[2].human == [None] && read[2].human_mean().is_err());
        let (_, labels) = rows("{\"verdict\": \"1\", \"human\": \"1\"}\n{\"verdict\": \"tie\", \"human\": 1}\n");
        assert_eq!(labels[0].predicted, Ok(Some(Grade::Label("1".to_owned()))));
        assert_eq!(labels[1].human, [None]);
        assert_eq!(labels[1].no_grade.as_deref(), Some("human is 1, expected a label"));
    }

    #[test]
    fn one_odd_row_does_not_make_numbers_of_labels() {
        let label = "{\"verdict\": \"A\", \"human\": \"B\"}\n".repeat(9);
        for odd in [
            "{\"verdict\": \"A\", \"human\": 1}\n",
            "{\"verdict\": 1, \"human\": \"A\"}\n",
            "{\"verdict\": 1, \"human\": true}\n",
        ] {
            let (_, read) = rows(&(odd.to_owned() + &label));
            assert!(read[0].predicted.is_err() || read[0].no_grade.is_some(), "{odd}");
            let known = (Ok(Some(Grade::Label("A".to_owned()))), vec![Some(Grade::Label("B".to_owned()))]);
            assert!(read[1..].iter().all(|row| (&row.predicted, &row.human) == (&known.0, &known.1)), "{odd}");
        }
        // Nor labels of numbers.
        let number = "{\"score\": 2, \"human\": 3}\n".repeat(9);
        let (_, read) = rows(&format!("{{\"score\": \"N/A\", \"human\": 3}}\n{number}"));
        assert!(read[0].predicted.is_err() && read[9].predicted == Ok(Some(Grade::Number(2.0))));
    }

    #[test]
    fn cells_of_a_table_are_read_as_the_same_json() {
        let cells = |odd: &str| {
            let rows: String = (0..20).map(|i| format!("{}.5,{}\n", i % 5, i % 4)).collect();
            rows_of(&format!("score,human\n{odd}\n{rows}"))
        };
        for odd in ["NaN", "NA", "#DIV/0!", "?", "inf"] {
            let read = cells(&format!("{odd},3"));
            assert_eq!(read[0].predicted, Err(format!("score is {odd:?}, expected a number or a list of numbers")));
            assert_eq!(
                (&read[1].predicted, &read[1].human),
                (&Ok(Some(Grade::Number(0.5))), &vec![Some(Grade::Number(0.0))])
            );
            let read = cells(&format!("3,{odd}"));
            assert!(read[0].no_grade.is_some() && read[0].human == [None], "{odd}");
        }
        // Texts that most values are, and the numbers of responses beside a tie, are labels.
        let labels = rows_of("score,human\ngood,good\nNaN,NA\nbad,3\n3,bad\n");
        assert_eq!(labels[2].predicted, Ok(Some(Grade::Label("bad".to_owned()))));
        // However many come first that stand for no value.
        let gaps = rows_of(&format!("score,human\n{}good,good\n", "none,none\n".repeat(LOOKED_AT)));
        assert_eq!(gaps[LOOKED_AT].predicted, Ok(Some(Grade::Label("good".to_owned()))));
        assert_eq!(labels[3].predicted, Ok(Some(Grade::Label("3".to_owned()))));
        let ties = rows_of("score,human\n1,1\n2,2\n1,Tie\nTie,2\n");
        assert_eq!(ties[0].predicted, Ok(Some(Grade::Label("1".to_owned()))));
        // Booleans of pandas and of spreadsheets are 1 and 0, unless they are labels among others.
        let truths = rows_of("score,human\nTrue,TRUE\nFalse,False\n");
        assert_eq!((truths[0].predicted_number(), truths[1].human_mean()), (Ok(Some(1.0)), Ok(Some(0.0))));
        let mixed = rows_of("score,human\nTrue,True\nMixed,True\nFalse,False\n");
        assert_eq!(mixed[0].predicted, Ok(Some(Grade::Label("True".to_owned()))));
        // A comma before decimals is said to be one.
        let commas = rows_of("score;human\n3,5;3\n2,5;1,5\n");
        assert!(
            commas
                .iter()
                .all(|row| row.predicted.as_ref().is_err_and(|why| why.ends_with("with a point before the decimals")))
        );
    }

    #[test]
    fn among_verdicts_on_pairs_what_is_none_is_no_grade() {
        let people = r#""A" | "A " | "b" | "Tie" | "NA" | "" | ["A","NA","A"] | ["A","",null] | 1"#;
        let row = |human: &str| format!("{{\"verdict\": \"A\", \"human\": {human}}}\n");
        let text: String = people.split(" | ").map(row).collect();
        let (_, read) = rows(&text);
        let a = || Some(Grade::Label("A".to_owned()));
        let human: Vec<_> = read.iter().map(|row| row.human.clone()).collect();
        let none = || vec![None];
        let of_lists = [vec![a(), None, a()], vec![a(), None, None]];
        assert_eq!(human, [&[vec![a()], none(), none(), none(), none(), none()][..], &of_lists, &[none()]].concat());
        assert!(read[1..].iter().all(|row| row.no_grade.as_ref().is_some_and(|why| why.ends_with(PREFERENCES))));
        // A gap among the verdicts changes none of them; another judge's are read alike, and people's orders do not disagree.
        let more = "{\"verdict\": \"NA\", \"human\": \"A\", \"other\": \"a\"}\n\
                    {\"verdict\": \"inconsistent\", \"human\": \"inconsistent\"}\n";
        let (_, read) = rows(&(more.to_owned() + &text));
        assert!(read[0].predicted.is_err() && read[0].grade("other").is_err());
        assert_eq!(read[1].predicted, Ok(Some(Grade::Label("inconsistent".to_owned()))));
        assert!(read[1].human == [None] && read[3].human == [None]);
        // Another prediction makes labels of all, of which an empty text is still none.
        let (_, read) = rows(&(text + "{\"verdict\": \"C\", \"human\": \"C\"}\n"));
        assert_eq!((&read[2].human, &read[5].human), (&vec![Some(Grade::Label("b".to_owned()))], &vec![None]));
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
