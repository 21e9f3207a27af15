//! Reads the fields of one row of a user's file and keeps account of the columns that were used.

use std::borrow::Cow;
use std::cmp::Ordering;

use judge_core::settings::name_twice;
use judge_core::{ItemId, Message};
use serde::de::DeserializeOwned;

use crate::rows::cell::in_cell;
use crate::rows::columns::INPUT;
use crate::rows::grades::{self, Given, NUMBERS, unless_nobody};
use crate::rows::messages::{self, MESSAGES, Problem};
use crate::rows::pair_verdict::{PREFERENCES, choice};
use crate::rows::row::{describe, rendered};
use crate::{Columns, DatasetOptions, Error, Extra, Field, Ids, Row, RowColumns, with_input};

/// What text may be read from.
pub(crate) const TEXT: &str = "text, a number or a boolean";

pub(crate) struct Reading<'a> {
    row: &'a Row,
    columns: &'a Columns,
    ids: Ids,
    used: RowColumns,
    asked: Vec<Field>,
    /// Columns that are not kept, though nothing was read from them.
    left_out: Vec<String>,
}

impl<'a> Reading<'a> {
    pub(crate) fn new(row: &'a Row, options: &'a DatasetOptions) -> Self {
        Self::of(row, &options.columns, options.ids)
    }

    pub(crate) fn of(row: &'a Row, columns: &'a Columns, ids: Ids) -> Self {
        Self { row, columns, ids, used: RowColumns::default(), asked: Vec::new(), left_out: Vec::new() }
    }

    pub(crate) fn row(&self) -> &'a Row {
        self.row
    }

    pub(crate) fn has(&self, field: Field) -> bool {
        self.columns.has(self.row, field)
    }

    /// The JSON text of a field and the column it is in.
    fn value(&mut self, field: Field) -> Result<Option<(String, &'a str)>, Error> {
        self.asked.push(field);
        let Some(name) = self.columns.find_shared(self.row, field)? else { return Ok(None) };
        self.used.push(field, name.clone());
        Ok(self.row.value(name).map(|json| (name.to_string(), json)))
    }

    /// Finds the column of a field, whatever it holds, so that it is not kept.
    pub(crate) fn look_for(&mut self, field: Field) {
        // A field that cannot be found is in none.
        let _ = self.value(field);
    }

    /// Takes these fields for known, so that their columns are not kept where they are `null`.
    pub(crate) fn ignore_null(&mut self, fields: &[Field]) {
        self.asked.extend_from_slice(fields);
    }

    /// The field's id, or the row's number where that will do.
    pub(crate) fn id(&mut self, index: usize) -> Result<ItemId, Error> {
        let Some((column, json)) = self.value(Field::Id)? else {
            return match self.ids {
                Ids::Required if !self.columns.is_ignored(Field::Id) => Err(self.missing(Field::Id)),
                _ => Ok(ItemId::from(index as u64)),
            };
        };
        if let Ok(id) = serde_json::from_str(json) {
            return Ok(id);
        }
        let found = json.to_owned();
        if is_whole(json) {
            return Err(Error::IdTooLarge { place: self.row.place().clone(), column, found });
        }
        if found.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
            return Err(Error::FractionalId { place: self.row.place().clone(), column, found });
        }
        Err(self.wrong(Field::Id, column, "a string or a whole number"))
    }

    /// The field's id where a column is chosen for it or one is called so, else the row's number, as of files of a known form.
    pub(crate) fn id_or_number(&mut self, index: usize) -> Result<ItemId, Error> {
        let has_id = self.columns.is_chosen(Field::Id) || self.row.has(Field::Id.as_str());
        if has_id { self.id(index) } else { Ok(ItemId::from(index as u64)) }
    }

    /// Text, or a number or boolean as the file writes it.
    pub(crate) fn optional_text(&mut self, field: Field) -> Result<Option<String>, Error> {
        let Some((column, json)) = self.value(field)? else { return Ok(None) };
        match rendered(json) {
            Some(text) => Ok(Some(Cow::into_owned(text))),
            None => Err(self.wrong(field, column, TEXT)),
        }
    }

    pub(crate) fn text(&mut self, field: Field) -> Result<String, Error> {
        self.optional_text(field)?.ok_or_else(|| self.missing(field))
    }

    /// What was asked. A text `input` beside a column `instruction` belongs to it: it is shown below it, and kept among the other fields.
    pub(crate) fn instruction(&mut self) -> Result<String, Error> {
        let text = self.text(Field::Instruction)?;
        let is_plain = self.used.name(Field::Instruction) == Some(Field::Instruction.as_str());
        if is_plain && self.columns.joins_input() {
            self.used.has_input = true;
        }
        Ok(text)
    }

    /// An instruction that was read, with the `input` that belongs to it.
    pub(crate) fn with_input(&self, instruction: &str) -> String {
        let input = self.row.value(INPUT).filter(|_| self.used.has_input).and_then(rendered);
        with_input(instruction, &input.unwrap_or_default()).into_owned()
    }

    /// A value of any type.
    pub(crate) fn json<T: DeserializeOwned>(
        &mut self,
        field: Field,
        expected: &'static str,
    ) -> Result<Option<T>, Error> {
        self.json_by(field, expected, |json| serde_json::from_str(json))
    }

    /// As [`json`](Self::json), also of a table's cell, which holds it as a text.
    pub(crate) fn json_of_cell<T: DeserializeOwned>(
        &mut self,
        field: Field,
        expected: &'static str,
    ) -> Result<Option<T>, Error> {
        let Some((column, json)) = self.value(field)? else { return Ok(None) };
        self.read(field, column, expected, &in_cell(json), |json| serde_json::from_str(json))
    }

    /// As [`json`](Self::json), by a reader of its own.
    pub(crate) fn json_by<T>(
        &mut self,
        field: Field,
        expected: &'static str,
        read: impl FnOnce(&str) -> serde_json::Result<T>,
    ) -> Result<Option<T>, Error> {
        let Some((column, json)) = self.value(field)? else { return Ok(None) };
        self.read(field, column, expected, json, |json| read(json).map(Some))
    }

    /// The column that a field was read from.
    pub(crate) fn name(&self, field: Field) -> Option<&str> {
        self.used.name(field)
    }

    /// What JSON in a column holds. Of a name that an object has twice the last would count.
    fn read<T>(
        &self,
        field: Field,
        column: String,
        expected: &'static str,
        json: &str,
        read: impl FnOnce(&str) -> serde_json::Result<T>,
    ) -> Result<T, Error> {
        let Ok(found) = read(json) else { return Err(self.wrong(field, column, expected)) };
        match name_twice(json) {
            None => Ok(found),
            Some(twice) => {
                let expected = "JSON with each name of an object once";
                Err(self.wrong_value(field, column, expected, twice.to_string()))
            }
        }
    }

    /// A conversation.
    pub(crate) fn messages(&mut self) -> Result<Vec<Message>, Error> {
        let Some((column, json)) = self.value(Field::Messages)? else { return Err(self.missing(Field::Messages)) };
        messages::parse(json).map_err(|problem| self.no_messages(Field::Messages, column, problem))
    }

    /// A conversation in the place of a text; `None` where there is a text, or nothing.
    pub(crate) fn conversation(&mut self, field: Field) -> Result<Option<Vec<Message>>, Error> {
        let Some((column, json)) = self.value(field)?.filter(|(_, json)| json.starts_with('[')) else {
            return Ok(None);
        };
        messages::parse(json).map(Some).map_err(|problem| self.no_messages(field, column, problem))
    }

    /// The error for a column that holds no conversation.
    pub(crate) fn no_messages(&self, field: Field, column: String, problem: Problem) -> Error {
        match problem {
            Problem::NoList => self.wrong(field, column, MESSAGES),
            Problem::Turn { turn, expected, found } => {
                Error::Turn { place: self.row.place().clone(), column, turn, expected, found }
            }
        }
    }

    /// The score of each rater; empty for none. What is no score is none, and noted.
    pub(crate) fn raters(&mut self) -> Vec<Option<f64>> {
        self.given(NUMBERS, grades::number)
    }

    /// Which response each rater prefers; empty for none. What is no preference is none, and noted.
    pub(crate) fn choices(&mut self) -> Vec<Option<Ordering>> {
        self.given(PREFERENCES, choice)
    }

    /// The grade of each of so many responses; empty for none. What is no grade is left out, and noted.
    pub(crate) fn grades(&mut self, responses: usize) -> Vec<Option<f64>> {
        const EXPECTED: &str = "a list with a number or null for each of the responses";
        let grades = self.given(EXPECTED, grades::number);
        if grades.is_empty() || grades.len() == responses {
            return grades;
        }
        let column = self.used.name(Field::Human).unwrap_or(Field::Human.as_str()).to_owned();
        let found = format!("{} of {} responses", grades.len(), responses);
        self.note_no_grade(&self.wrong_value(Field::Human, column, EXPECTED, found));
        Vec::new()
    }

    /// What each rater gave, in the rater's place; empty for none. It is not judged, so nothing about it costs the row.
    fn given<T>(&mut self, expected: &'static str, grade: impl Fn(&str) -> Option<T>) -> Vec<Option<T>> {
        let (column, json) = match self.value(Field::Human) {
            Ok(Some(found)) => found,
            Ok(None) => return Vec::new(),
            Err(error) => {
                // Neither of the columns that may be it is carried as something else.
                self.left_out.extend(self.columns.names(Field::Human).map(str::to_owned));
                self.note_no_grade(&error);
                return Vec::new();
            }
        };
        let Given { raters, odd } = Given::of(json, grade);
        if let Some(found) = odd {
            self.note_no_grade(&self.wrong_value(Field::Human, column, expected, found));
        }
        unless_nobody(raters)
    }

    /// Notes what is wrong with people's grade.
    pub(crate) fn note_no_grade(&mut self, error: &Error) {
        self.used.note_no_grade(error.in_row());
    }

    /// The columns that were used, and what of the row is kept besides. What is `null` in place of a field that was asked for is not, and
    /// what an output would take for a field that is not to be read is not either.
    pub(crate) fn finish(self) -> (RowColumns, Rest) {
        let Self { row, columns, used, asked, left_out, .. } = self;
        let is_own = |field: &Field| used.name(*field) == Some(field.as_str()) || !row.has(field.as_str());
        let own = asked.iter().filter(|field| is_own(field)).map(|field| field.as_str().to_owned()).collect();
        let read = used.iter().map(|(_, name)| name.to_owned()).chain(left_out);
        let read = read.chain(columns.ignored().map(str::to_owned)).collect();
        let null = asked.iter().flat_map(|&field| columns.names(field)).map(str::to_owned).collect();
        (used, Rest { read, own, null })
    }

    pub(crate) fn missing(&self, field: Field) -> Error {
        self.row.orientation().unwrap_or_else(|| Error::MissingField {
            place: self.row.place().clone(),
            field: Some(field),
            names: self.columns.names(field).map(str::to_owned).collect(),
            found: self.row.found(),
        })
    }

    /// The error for a field that was read and is not usable.
    pub(crate) fn refused(&self, field: Field, expected: &'static str) -> Error {
        self.wrong(field, self.used.name(field).unwrap_or(field.as_str()), expected)
    }

    /// The error for a column that is not usable.
    pub(crate) fn wrong(&self, field: Field, column: impl Into<String>, expected: &'static str) -> Error {
        let column = column.into();
        let found = self.row.value(&column).map_or_else(|| "nothing".into(), describe);
        self.wrong_value(field, column, expected, found)
    }

    fn wrong_value(&self, field: Field, column: String, expected: &'static str, found: String) -> Error {
        let (place, field) = (self.row.place().clone(), Some(field));
        self.row.orientation().unwrap_or(Error::WrongType { place, field, column, expected, found })
    }
}

/// Whether JSON has a whole number here, of however many digits.
fn is_whole(json: &str) -> bool {
    let digits = json.strip_prefix('-').unwrap_or(json);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

impl Columns {
    /// The text of a field of this row, for records of your own; numbers and booleans as the file writes them.
    ///
    /// # Errors
    /// [`Error::MissingField`], [`Error::WrongType`], [`Error::AmbiguousColumns`].
    pub fn text(&self, row: &Row, field: Field) -> Result<String, Error> {
        Reading::of(row, self, Ids::default()).text(field)
    }
}

/// What is kept of a row besides its record: all fields, in the order of the file, but those that were read.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    /// Columns that were read.
    read: Vec<String>,
    /// Fields that were looked for, and whose columns of their own names were read, or hold nothing.
    own: Vec<String>,
    /// Columns that were looked for, and hold nothing where they are `null`.
    null: Vec<String>,
}

impl Rest {
    /// Without columns of these names besides.
    pub(crate) fn without(mut self, names: &[&str]) -> Self {
        self.read.extend(names.iter().map(|&name| name.to_owned()));
        self
    }

    /// The fields that are kept of a row whose fields are in these columns.
    pub(crate) fn of(&self, row: Row, columns: &Columns) -> Extra {
        let among = |names: &[String], name: &str| names.iter().any(|known| known == name);
        let is_other =
            |name: &str, json: &str| !among(&self.read, name) && (json != "null" || !among(&self.null, name));
        let mut extra = row.into_extra_where(|name, json| columns.keeps(name) || is_other(name, json));
        let is_kept = |names: &[String], name: &str| columns.keeps(name) && among(names, name);
        extra.note_read(|name| is_kept(&self.read, name), |name| is_kept(&self.own, name));
        extra
    }
}
