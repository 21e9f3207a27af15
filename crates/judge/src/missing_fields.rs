//! Says before any model work that rows lack what is judged, or what is learnt from. Each costs itself alone.

use std::fmt::Display;

use judge_core::JudgeError;
use judge_data::Record;

use crate::terminal::console::tell;

/// Counts the rows that get no score whatever the model says, and those whose grade of a person's is none.
#[derive(Debug, Default)]
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
        self.see_as(record, record.unread().map(|why| why.detail.clone()));
    }

    /// Takes note of a record, and of why it gets no score if it does not.
    pub fn see_as(&mut self, record: &Record, why: Option<String>) {
        self.note(record.id(), why);
        if let Some(why) = record.no_grade() {
            self.without_grade += 1;
            self.first_without_grade.get_or_insert_with(|| (record.id().to_string(), why.to_owned()));
        }
    }

    /// Takes note of a row, by its id or its place, and of why it gets no score if it does not.
    pub fn note(&mut self, name: impl Display, why: Option<String>) {
        self.rows += 1;
        if let Some(why) = why {
            self.unread += 1;
            self.first.get_or_insert_with(|| (name.to_string(), why));
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

    /// Says how many they are, if there are any.
    pub fn tell(&self) {
        self.tell_that("lack what is judged and get no score");
    }

    /// Says how many they are, if there are any, and `what` it costs them.
    pub fn tell_that(&self, what: &str) {
        if let Some((name, why)) = self.first() {
            let Self { rows, unread, .. } = self;
            tell(format_args!("note: {unread} of {rows} rows {what}; the first is {name}: {why}"));
        }
        if let Some((name, why)) = &self.first_without_grade {
            let Self { rows, without_grade, .. } = self;
            tell(format_args!(
                "note: in {without_grade} of {rows} rows what people gave is no grade and is left out; the first is {name}: {why}"
            ));
        }
    }
}

/// Why a row cannot be taken.
#[derive(Debug)]
pub enum RowError {
    /// Its own fault, which costs it alone.
    Odd {
        /// What was expected and found.
        why: String,
        /// What to say where no row can be taken.
        error: anyhow::Error,
    },
    /// What is wrong with more than one row.
    Run(anyhow::Error),
}

impl RowError {
    /// A row's own fault.
    #[must_use]
    pub fn odd(why: String) -> Self {
        Self::Odd { error: anyhow::anyhow!("{why}"), why }
    }
}

impl From<judge_data::Error> for RowError {
    fn from(error: judge_data::Error) -> Self {
        match error.of_row() {
            Some(why) => Self::Odd { why: why.detail, error: error.into() },
            None => Self::Run(error.into()),
        }
    }
}

impl From<judge_core::Error> for RowError {
    fn from(error: judge_core::Error) -> Self {
        match JudgeError::from(error) {
            JudgeError::Unscored(why) => Self::odd(why.detail),
            JudgeError::Failed(source) => Self::Run(anyhow::Error::from_boxed(source)),
        }
    }
}

impl From<anyhow::Error> for RowError {
    fn from(error: anyhow::Error) -> Self {
        Self::Run(error)
    }
}
