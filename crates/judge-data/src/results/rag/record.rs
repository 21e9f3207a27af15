use std::borrow::Cow;

use judge_core::ItemId;
use judge_core::rag::{RagField, RagItem, Sentence};
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value;
use serde_json::value::RawValue;

use super::contexts::{CONTEXTS, contexts, list_of_cell};
use crate::results::numbered_rows::numbered_rows;
use crate::rows::cell::in_cell;
use crate::rows::columns::HEAD;
use crate::rows::grades::{self, Given, unless_nobody};
use crate::rows::reading::Reading;
use crate::run::of_fields;
use crate::{Columns, DatasetOptions, Error, Extra, Field, Input, Row, RowColumns, RowItem};

/// An answer from retrieved contexts: `{"id"?, "question"?, "contexts"?, "response"?, "reference"?, "sentences"?, "human"?, …}`, under the
/// names that ragas, deepeval, LangSmith, TruLens and promptfoo have for them, or with the columns that are chosen for these [`Field`]s.
///
/// `sentences` are those of the response, `[{"start", "end", "human"?}]` with places in characters, where they are cut already, or JSON of
/// them as a table's cell holds it; a row of `judge rag` has them. A row without an id goes by its number in the file. What cannot be read
/// costs the measures that need it, and so does what stands in another column than in most of the first rows.
#[derive(Clone, Debug, PartialEq)]
pub struct RagRecord {
    /// Its place in the file, from 0.
    pub row: usize,
    /// The item.
    pub id: ItemId,
    /// What is measured.
    pub rag: RagItem,
    /// What people said of the whole: a place for each rater, `None` for one who gave none; empty where nobody said anything.
    pub human: Vec<Option<f64>>,
    /// What people said of each sentence of [`RagItem::sentences`], in the same way.
    pub labels: Vec<Vec<Option<f64>>>,
    /// What stands in the place of a grade and is none, with what was expected.
    pub no_grade: Option<String>,
    /// Where the fields were found.
    pub columns: RowColumns,
    /// All other fields.
    pub extra: Extra,
}

/// Names for a response that other commands do not look for.
const RESPONSE: [&str; 1] = ["actual_output"];

/// Names for a right answer that other commands do not look for.
const REFERENCE: [&str; 4] = ["ground_truth", "ground_truths", "expected_output", "expected"];

/// Where deepeval has the contexts, also if nothing was retrieved.
const RETRIEVED: &str = "retrieval_context";

/// Whether a row is deepeval's, in which `context` is what should have been retrieved.
fn is_ideal(row: &Row, columns: &Columns) -> bool {
    !columns.is_chosen(Field::Contexts) && row.keys().any(|key| key == RETRIEVED)
}

/// What a reference is read from, in words.
const ONE_TEXT: &str = "one text, or a list of one";

/// What marks of a sentence are read from, in words.
const MARKS: &str = "a number from 0 to 1, or a list of them and nulls";

/// A sentence as a row has it.
#[derive(Deserialize)]
struct Cut {
    #[serde(deserialize_with = "character")]
    start: usize,
    #[serde(deserialize_with = "character")]
    end: usize,
    text: Option<String>,
    human: Option<Box<RawValue>>,
}

/// A place in a text. pandas writes those of a column with gaps as `19.0`.
fn character<'de, D: Deserializer<'de>>(place: D) -> Result<usize, D::Error> {
    let number = f64::deserialize(place)?;
    let whole = number as usize; // that of another number is another
    if whole as f64 == number { Ok(whole) } else { Err(D::Error::custom("no place")) }
}

impl RagRecord {
    /// The rows of a file, at most so many.
    ///
    /// # Errors
    /// Whatever is wrong with the file, and an id that is there twice; [`Error::NoSuchColumn`] behind the last row of a file in which no row
    /// has a column that was chosen.
    pub fn all(
        input: &Input,
        most: Option<usize>,
        columns: &Columns,
    ) -> Result<impl Iterator<Item = Result<Self, Error>> + use<>, Error> {
        numbered_rows(input, most, &Self::settled(input, columns)?, Self::of)
    }

    /// The columns of a file, each field in that in which most of its first rows have it.
    fn settled(input: &Input, columns: &Columns) -> Result<Columns, Error> {
        let head = input.whole().rows()?.take(HEAD).map_while(Result::ok);
        let head: Vec<Row> = head.map(|row| row.with_inner("vars").into_owned()).collect();
        let mut columns = Self::columns(columns);
        if head.iter().any(|row| is_ideal(row, &columns)) {
            columns = columns.held_to(Field::Contexts, RETRIEVED);
        }
        Ok(columns.settled(&head))
    }

    /// These columns, with the names that such rows have besides.
    pub(crate) fn columns(columns: &Columns) -> Columns {
        columns.clone().or_also(Field::Response, &RESPONSE).or_also(Field::Reference, &REFERENCE)
    }

    pub(crate) fn of(row: Row, place: usize, number: usize, options: &DatasetOptions) -> Result<Self, Error> {
        let flat = row.with_inner("vars");
        let columns = match is_ideal(&flat, &options.columns) {
            true => Cow::Owned(options.columns.clone().held_to(Field::Contexts, RETRIEVED)),
            false => Cow::Borrowed(&options.columns),
        };
        let mut reading = Reading::of(&flat, &columns, options.ids);
        let id = reading.id(number)?;
        let mut unread = Vec::new();
        let mut text = |field: RagField, read: Result<Option<String>, Error>| {
            read.unwrap_or_else(|error| {
                unread.push((field, error.in_row()));
                None
            })
        };
        let question = text(RagField::Question, reading.optional_text(Field::Question));
        let response = text(RagField::Response, reading.optional_text(Field::Response));
        let reference = text(RagField::Reference, one_text(&mut reading));
        let found = reading.json::<Value>(Field::Contexts, CONTEXTS).and_then(|json| match json {
            None => Ok(Vec::new()),
            Some(json) => contexts(&json).ok_or_else(|| reading.refused(Field::Contexts, CONTEXTS)),
        });
        let contexts = found.unwrap_or_else(|error| {
            unread.push((RagField::Contexts, error.in_row()));
            Vec::new()
        });
        let human = reading.raters();
        let (read, rest) = reading.finish();
        let mut no_grade = read.no_grade().map(str::to_owned);
        let (mut sentences, mut labels) = (None, Vec::new());
        if let (Some(json), Some(response)) = (row.value("sentences"), &response) {
            match cut(json, response, &mut no_grade) {
                Ok((cut, given)) => (sentences, labels) = (Some(cut), given),
                Err(why) => unread.push((RagField::Sentences, format!("its `sentences` cannot be used: {why}"))),
            }
        }
        let rag = RagItem { question, contexts, response, reference, sentences, unread };
        let extra = rest.without(&["sentences"]).of(row, &options.columns);
        Ok(Self { row: place, id, rag, human, labels, no_grade, columns: read, extra })
    }

    /// What the row has in a field, by its own name or by that of its column, whether it is measured or not: a text as it is, of contexts
    /// all with a blank line between them, anything else as JSON. `None` where there is nothing.
    pub fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        if let Some(json) = self.extra.text(name).filter(|json| *json != "null") {
            return Some(self.extra.rendered(name).unwrap_or_else(|| json.into()));
        }
        let RagItem { question, contexts, response, reference, .. } = &self.rag;
        let text = match self.columns.field_named(name) {
            "question" => question.as_deref()?.into(),
            "contexts" if !contexts.is_empty() => contexts.join("\n\n").into(),
            "response" => response.as_deref()?.into(),
            "reference" => reference.as_deref()?.into(),
            _ => return None,
        };
        Some(text)
    }
}

/// A reference, which older rows of ragas have as a list of one, `ground_truths`; a table's cell has that list as a text.
fn one_text(reading: &mut Reading<'_>) -> Result<Option<String>, Error> {
    let texts = match reading.json::<Value>(Field::Reference, ONE_TEXT)? {
        None => return Ok(None),
        Some(Value::Array(all)) => all.iter().map(|text| text.as_str().map(str::to_owned)).collect(),
        Some(Value::String(text)) => {
            let list = (reading.name(Field::Reference) == Some("ground_truths")).then(|| list_of_cell(&text)).flatten();
            Some(list.unwrap_or_else(|| vec![text]))
        }
        Some(number @ (Value::Number(_) | Value::Bool(_))) => Some(vec![number.to_string()]),
        Some(_) => None,
    };
    let mut texts: Vec<String> =
        texts.filter(|texts| texts.len() < 2).ok_or_else(|| reading.refused(Field::Reference, ONE_TEXT))?;
    Ok(texts.pop())
}

/// Sentences of a response and what people said of them.
type Labelled = (Vec<Sentence>, Vec<Vec<Option<f64>>>);

/// The sentences of a row, or what is wrong with their list.
fn cut(json: &str, response: &str, no_grade: &mut Option<String>) -> Result<Labelled, String> {
    let expected = "expected a list of objects with `start` and `end`, in characters of the response";
    let all: Vec<Cut> = serde_json::from_str(&in_cell(json))
        .map_err(|_| format!("{expected}, found {}", crate::rows::row::describe(json)))?;
    let chars: Vec<char> = response.chars().collect();
    let (mut sentences, mut labels, mut before) = (Vec::new(), Vec::new(), 0);
    for (number, Cut { start, end, text, human }) in (1..).zip(all) {
        if start < before || start >= end || end > chars.len() {
            return Err(format!(
                "sentence {number} is from {start} to {end}, expected places in their order, up to {} characters",
                chars.len()
            ));
        }
        before = end;
        let found: String = chars[start..end].iter().collect();
        if let Some(text) = text.filter(|text| *text != found) {
            return Err(format!(
                "sentence {number} is {text:?}, found {found:?} from character {start} to {end} of the response"
            ));
        }
        let given = human.as_ref().map_or("null", |human| human.get());
        let mark = |json: &str| grades::number(json).filter(|mark| (0.0..=1.0).contains(mark));
        let Given { raters, odd } = Given::of(given, mark);
        if let Some(odd) = odd {
            no_grade.get_or_insert_with(|| format!("sentence {number} has {odd} as `human`, expected {MARKS}"));
        }
        labels.push(unless_nobody(raters));
        sentences.push(Sentence { chars: start..end, text: found });
    }
    Ok((sentences, labels))
}

impl AsRef<RagItem> for RagRecord {
    fn as_ref(&self) -> &RagItem {
        &self.rag
    }
}

impl RowItem for RagRecord {
    of_fields!();

    fn columns(&self) -> Option<&RowColumns> {
        Some(&self.columns)
    }

    /// Of contexts each. A response is not cut, since its sentences have their places in it.
    fn edit(&mut self, field: &str, change: &mut dyn FnMut(&mut String)) {
        match field {
            "question" => self.rag.question.iter_mut().for_each(change),
            "contexts" => self.rag.contexts.iter_mut().for_each(change),
            "reference" => self.rag.reference.iter_mut().for_each(change),
            _ => {}
        }
    }
}
