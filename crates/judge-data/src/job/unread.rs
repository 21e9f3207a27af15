use std::fmt::Display;

use crate::{Record, RowItem};

/// Counts the rows that get no score whatever a model says, and those whose grade of a person's is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unread {
    rows: usize,
    unread: usize,
    first: Option<(String, String)>,
    without_grade: usize,
    first_without_grade: Option<(String, String)>,
}

impl Unread {
    /// Takes note of a record.
    pub fn see(&mut self, record: &Record) {
        self.note(record.id(), record.unread().map(|why| why.detail.clone()));
        self.note_grade(record.id(), record.no_grade());
    }

    /// Takes note of a row, and of why it gets no score besides what it may lack itself.
    pub(super) fn see_item(&mut self, item: &impl RowItem, why: Option<String>) {
        self.note(item.id(), item.unread().map(|why| why.detail.clone()).or(why));
        self.note_grade(item.id(), item.no_grade());
    }

    /// Takes note of a row, by its id or its place, and of why it gets no score if it does not.
    pub fn note(&mut self, name: impl Display, why: Option<String>) {
        self.rows += 1;
        if let Some(why) = why {
            self.unread += 1;
            self.first.get_or_insert_with(|| (name.to_string(), why));
        }
    }

    /// Takes note of a row, by its id or its place, and of what stands in the place of a person's grade and is none.
    pub fn note_grade(&mut self, name: impl Display, why: Option<&str>) {
        if let Some(why) = why {
            self.without_grade += 1;
            self.first_without_grade.get_or_insert_with(|| (name.to_string(), why.to_owned()));
        }
    }

    /// The first row that gets no score, and why, if none gets one.
    #[must_use]
    pub fn all(&self) -> Option<(&str, &str)> {
        self.first().filter(|_| self.unread == self.rows)
    }

    /// The first row that gets no score, and why.
    #[must_use]
    pub fn first(&self) -> Option<(&str, &str)> {
        self.first.as_ref().map(|(name, why)| (name.as_str(), why.as_str()))
    }

    /// How many get no score.
    #[must_use]
    pub fn count(&self) -> usize {
        self.unread
    }

    /// How many they are, in words, and `what` it costs them; nothing where there are none.
    pub fn notes(&self, what: &str) -> impl Iterator<Item = String> + use<> {
        let rows = self.rows;
        let unread = self.first.as_ref().map(|(name, why)| {
            let unread = self.unread;
            format!("{unread} of {rows} rows {what}; the first is {name}: {why}")
        });
        let without = self.first_without_grade.as_ref().map(|(name, why)| {
            let without = self.without_grade;
            format!(
                "in {without} of {rows} rows what people gave is no grade and is left out; the first is {name}: {why}"
            )
        });
        unread.into_iter().chain(without)
    }
}
