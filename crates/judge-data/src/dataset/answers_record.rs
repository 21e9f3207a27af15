use std::borrow::Cow;

use judge_core::{Fields, ItemId};
use serde::de::Error as _;

use crate::rows::cell::list_in_cell;
use crate::rows::reading::{Reading, Rest};
use crate::rows::texts::Texts;
use crate::{DatasetOptions, Error, Extra, Field, Row, RowColumns};

/// Many responses to one instruction, to be ranked: `{"id", "instruction", "responses", "rubric"?, "reference"?, "human"?}`, where
/// `responses` is a list of texts, also as a text that holds one, and `human` a list with the grade of each.
///
/// Templates see the responses as `response_1`, `response_2` and so on, and the text of an `input` below the `instruction`, as of a
/// [`GradedRecord`](crate::GradedRecord).
#[derive(Clone, Debug, PartialEq)]
pub struct AnswersRecord {
    /// The item.
    pub id: ItemId,
    /// What was asked, without an `input` beside it.
    pub instruction: String,
    /// The answers, at least one.
    pub responses: Vec<String>,
    /// By what they are judged.
    pub rubric: Option<String>,
    /// A good answer.
    pub reference: Option<String>,
    /// What people gave each response; empty if the row has no grades.
    pub grades: Vec<Option<f64>>,
    /// Where the fields were found.
    pub columns: RowColumns,
    /// All other fields.
    pub extra: Extra,
}

impl AnswersRecord {
    pub(crate) fn read(row: &Row, index: usize, options: &DatasetOptions) -> Result<(Self, Rest), Error> {
        let mut row = Reading::new(row, options);
        let id = row.id(index)?;
        let instruction = row.instruction()?;
        let responses = row.json_by(Field::Responses, "a list of texts, at least one", texts_of)?;
        let responses = responses.ok_or_else(|| row.missing(Field::Responses))?;
        let (rubric, reference) = (row.optional_text(Field::Rubric)?, row.optional_text(Field::Reference)?);
        let grades = row.grades(responses.len());
        let (columns, rest) = row.finish();
        let extra = Extra::new();
        Ok((Self { id, instruction, responses, rubric, reference, grades, columns, extra }, rest))
    }

    /// All texts but the responses.
    fn texts(&self) -> Texts<'_> {
        let own = vec![
            ("instruction", Some(self.instruction.as_str())),
            ("rubric", self.rubric.as_deref()),
            ("reference", self.reference.as_deref()),
        ];
        Texts::new(own, Some(&self.columns), &self.extra)
    }
}

/// The texts of a list that has some, or of a text that holds it, as a cell of a table does.
fn texts_of(json: &str) -> serde_json::Result<Vec<String>> {
    let list: Vec<String> = serde_json::from_str(&list_in_cell(json))?;
    if list.is_empty() { Err(serde_json::Error::custom("no text")) } else { Ok(list) }
}

/// The number of a response, from 1; a column of such a name is never one.
fn number(name: &str) -> Option<usize> {
    name.strip_prefix("response_")?.parse().ok()
}

impl Fields for AnswersRecord {
    fn field(&self, name: &str) -> Option<Cow<'_, str>> {
        self.field_beside(name, &[])
    }

    fn field_beside(&self, name: &str, shown: &[&str]) -> Option<Cow<'_, str>> {
        match number(name) {
            Some(number) => Some(self.responses.get(number.checked_sub(1)?)?.as_str().into()),
            None => self.texts().field_beside(name, shown),
        }
    }

    fn names(&self) -> Vec<String> {
        let texts = self.texts().names().into_iter().filter(|name| number(name).is_none());
        texts.chain((1..=self.responses.len()).map(|number| format!("response_{number}"))).collect()
    }
}
