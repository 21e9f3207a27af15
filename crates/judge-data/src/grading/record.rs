use judge_core::decision::{Questions, exact_json};
use judge_core::rag::{RagField, RagItem};
use judge_core::{ItemId, Message, Unscored};
use serde_json::Value;

use crate::dataset::preference;
use crate::results::decision_row::questions_of;
use crate::results::numbered_rows::numbered_rows;
use crate::results::rag::RagRecord;
use crate::rows::reading::Reading;
use crate::run::of_fields;
use crate::{Columns, DatasetOptions, Error, Extra, Field, Input, PairRecord, Row, RowItem};

/// A row as people see it when they grade it: its texts, and no score, verdict or name of a model.
///
/// The texts are those of the known [`Field`]s, under all names that other commands know for them, or in the columns that are chosen.
/// Where pairs are graded, replies that were `chosen` and `rejected` are one, in an order that is drawn by the id.
/// A row without an id goes by its number in the file.
#[derive(Clone, Debug, PartialEq)]
pub struct GradingRecord {
    /// Its place in the file, from 0.
    pub row: usize,
    /// The item.
    pub id: ItemId,
    /// What is shown, in this order.
    pub texts: Vec<(Field, Shown)>,
    /// The answer and its contexts, where sentences are marked.
    pub rag: RagItem,
    /// Its own typed questions, or what is wrong with them.
    pub questions: Result<Option<Questions>, String>,
    /// The names of its fields, for messages.
    pub found: Vec<String>,
    /// All fields but the id, as the file has them.
    pub extra: Extra,
    /// The pair that replies `chosen` and `rejected` are, or what is wrong with it.
    pub(super) pair: Option<Result<PairRecord, String>>,
    unread: Option<Unscored>,
}

/// What is shown of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Shown {
    /// One text.
    Text(String),
    /// A conversation.
    Turns(Vec<Message>),
    /// Several texts.
    List(Vec<String>),
    /// Anything else.
    Json(Value),
}

impl GradingRecord {
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
        numbered_rows(input, most, &RagRecord::columns(columns), Self::of)
    }

    fn of(row: Row, place: usize, number: usize, options: &DatasetOptions) -> Result<Self, Error> {
        let rag = RagRecord::of(row.clone(), place, number, options)?.rag;
        let mut reading = Reading::new(&row, options);
        let id = reading.id(number)?;
        let (mut texts, mut unread) = (Vec::new(), Vec::new());
        // An answer of no words is one.
        let is_answer = |field: Field| matches!(field, Field::Response | Field::ResponseA | Field::ResponseB);
        let mut show = |field: Field, read: Result<Option<Shown>, Error>| match read {
            Ok(shown) => {
                let shown = shown.filter(|shown| is_answer(field) || !shown.is_empty());
                texts.extend(shown.map(|shown| (field, shown)));
            }
            Err(error) => unread.push(error.in_row()),
        };
        if reading.has(Field::Messages) {
            show(Field::Messages, reading.messages().map(|turns| Some(Shown::Turns(turns))));
        }
        let turns = reading.conversation(Field::Instruction).ok().flatten();
        let is_of_turns = turns.is_some();
        let asked = match turns {
            Some(turns) => Ok(Some(Shown::Turns(turns))),
            None if reading.has(Field::Instruction) => {
                reading.instruction().map(|text| Some(Shown::Text(reading.with_input(&text))))
            }
            None => Ok(rag.question.clone().map(Shown::Text)),
        };
        show(Field::Instruction, asked);
        let state = reading.json_by(Field::State, "JSON with finite numbers", exact_json::from_text);
        show(Field::State, state.map(|state| state.map(of_json)));
        show(Field::Contexts, Ok(Some(Shown::List(rag.contexts.clone()))));
        show(Field::Response, Ok(rag.response.clone().map(Shown::Text)));
        for field in [Field::ResponseA, Field::ResponseB] {
            show(field, reading.optional_text(field).map(|text| text.map(Shown::Text)));
        }
        show(Field::Reference, Ok(rag.reference.clone().map(Shown::Text)));
        show(Field::Rubric, reading.optional_text(Field::Rubric).map(|text| text.map(Shown::Text)));
        // A context that cannot be read is not missed unless it is asked about, and neither are sentences.
        let is_missed = |field: RagField| match field {
            RagField::Question => !is_of_turns,
            RagField::Contexts | RagField::Sentences => false,
            RagField::Response | RagField::Reference => true,
        };
        unread.extend(rag.unread.iter().filter(|(field, _)| is_missed(*field)).map(|(_, why)| why.clone()));
        let questions = questions_of(&mut reading);
        let (read, _) = reading.finish();
        let id_column = read.name(Field::Id).unwrap_or("id").to_owned();
        let found = row.keys().map(str::to_owned).collect();
        let unread = unread.into_iter().next().map(|why| Unscored::new(judge_core::Reason::Missing, why));
        let pair = preference::pair_of(&row, number, options).map(|pair| pair.map_err(|error| error.in_row()));
        let extra = row.into_extra(&[&id_column]);
        Ok(Self { row: place, id, texts, rag, questions, found, extra, pair, unread })
    }
}

/// What makes a pair, by its fields.
pub(super) fn fields_of(pair: &PairRecord) -> [(Field, &String); 3] {
    [
        (Field::Instruction, &pair.instruction),
        (Field::ResponseA, &pair.response_a),
        (Field::ResponseB, &pair.response_b),
    ]
}

/// Text as text, and the rest as JSON.
fn of_json(value: Value) -> Shown {
    match value {
        Value::String(text) => Shown::Text(text),
        other => Shown::Json(other),
    }
}

impl RowItem for GradingRecord {
    of_fields!();

    fn unread(&self) -> Option<&Unscored> {
        self.unread.as_ref()
    }
}
