//! The state of a request as a judge with a name of its own sees it.

use std::borrow::Cow;

use judge_core::Fields;
use judge_core::decision::ChecklistJudge;
use judge_data::{DatasetFormat, DatasetOptions, Extra, GradedRecord, Ids, PromptRecord, Record, Row, Rows};
use serde_json::Value;

/// What such a judge reads.
pub(super) enum State {
    /// A row, read as those of files are: so it gets the score that it has there.
    Row(Box<Record>),
    /// The fields of an object that is no such row, as they are written.
    Fields(Extra),
    /// A text or a list, which has no fields.
    Other,
}

impl State {
    /// Of JSON, or of another text.
    pub(super) fn of(json: &str) -> Self {
        let row = || {
            let mut rows = Rows::new(json.as_bytes(), "state").ok()?;
            let row = rows.next()?.ok()?;
            rows.next().is_none().then_some(row)
        };
        match json.trim_start().starts_with('{').then(row).flatten() {
            None => Self::Other,
            Some(row) => match record(row.clone()) {
                Some(record) => Self::Row(Box::new(record)),
                None => Self::Fields(row.into_extra(&[])),
            },
        }
    }

    /// How many criteria the list has that it brings.
    pub(super) fn listed(&self) -> Option<usize> {
        ChecklistJudge::own(self)?.as_array().map(Vec::len)
    }
}

/// The record of a row with a response or a prompt; `None` for any other.
fn record(row: Row) -> Option<Record> {
    let options = DatasetOptions { ids: Ids::RowNumber, ..DatasetOptions::default() };
    match DatasetFormat::detect(&row, &options.columns).ok()? {
        DatasetFormat::Graded => GradedRecord::from_row(row, 0, &options).ok().map(Record::Graded),
        DatasetFormat::Prompts => PromptRecord::from_row(row, 0, &options).ok().map(Record::Prompt),
        _ => None,
    }
}

impl Fields for State {
    fn field(&self, name: &str) -> Option<Cow<'_, str>> {
        self.field_beside(name, &[])
    }

    fn field_beside(&self, name: &str, shown: &[&str]) -> Option<Cow<'_, str>> {
        match self {
            Self::Row(record) => record.field_beside(name, shown),
            Self::Fields(fields) => fields.rendered(name),
            Self::Other => None,
        }
    }

    fn json(&self, name: &str) -> Option<Cow<'_, Value>> {
        match self {
            Self::Row(record) => record.json(name),
            Self::Fields(fields) => fields.json(name).map(Cow::Owned),
            Self::Other => None,
        }
    }

    fn names(&self) -> Vec<String> {
        match self {
            Self::Row(record) => record.names(),
            Self::Fields(fields) => fields.iter().map(|(name, _)| name.to_owned()).collect(),
            Self::Other => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_has_the_fields_that_its_row_has_in_a_file() {
        let field = |json: &str, name: &str| State::of(json).field(name).map(Cow::into_owned);
        for (json, name, text) in [
            (r#"{"instruction": "Add.", "input": "7 + 5", "response": "12"}"#, "instruction", Some("Add.\n\n7 + 5")),
            (r#"{"question": "Add.", "answer": "12"}"#, "response", Some("12")),
            (
                "{\n\"instruction\": \"Add.\", \"response\": 4.50,\n \"n\": 12345678901234567890123}",
                "response",
                Some("4.50"),
            ),
            (
                r#"{"instruction": "Add.", "response": "12", "n": 0.10000000000000000001}"#,
                "n",
                Some("0.10000000000000000001"),
            ),
            (
                r#"{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}]}"#,
                "response",
                Some("Yes?"),
            ),
            // What is no row of a file has its fields all the same.
            (r#"{"response": 1e400}"#, "response", Some("1e400")),
            (r#"{"response": "12"}"#, "instruction", None),
            (r#"[{"response": "12"}]"#, "response", None),
            ("{\"response\": \"12\"}\n{\"response\": \"13\"}", "response", None),
            ("a text", "response", None),
        ] {
            assert_eq!(field(json, name).as_deref(), text, "{name} of {json}");
        }
        let listed = |json: &str| State::of(json).listed();
        assert_eq!(listed(r#"{"response": "a", "checklist": ["b", "c"]}"#), Some(2));
        assert_eq!(listed(r#"{"response": "a", "checklist": "[\"b\", \"c\"]"}"#), Some(2), "as a cell of a table");
        assert_eq!(listed(r#"{"instruction": "?", "response": "a", "checklist": ["b"]}"#), Some(1));
        assert_eq!(listed(r#"{"response": "a"}"#), None);
    }
}
