//! A record of whatever kind.

use std::borrow::Cow;

use judge_core::{Fields, ItemId, Unscored};
use serde_json::Value;

use crate::rows::ids::mean_of_places;
use crate::{
    AnswersRecord, EmotionRecord, Extra, GradedRecord, LagerRecord, PairRecord, PromptRecord, RowColumns, UnreadRecord,
};

/// A record of any kind.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant)] // records come in thousands of one kind; a box would cost more than it saves
pub enum Record {
    /// A prompt.
    Prompt(PromptRecord),
    /// A graded response.
    Graded(GradedRecord),
    /// Two responses.
    Pair(PairRecord),
    /// Many responses.
    Answers(AnswersRecord),
    /// A record of LAGER's files.
    Lager(LagerRecord),
    /// An emotion.
    Emotion(EmotionRecord),
    /// A row of any kind that could not be read.
    Unread(UnreadRecord),
}

impl Record {
    /// Its id.
    pub fn id(&self) -> &ItemId {
        self.parts().0
    }

    /// Its id, its other fields, and where its own were found.
    fn parts(&self) -> (&ItemId, &Extra, &RowColumns) {
        match self {
            Self::Prompt(PromptRecord { id, extra, columns, .. })
            | Self::Graded(GradedRecord { id, extra, columns, .. })
            | Self::Pair(PairRecord { id, extra, columns, .. })
            | Self::Answers(AnswersRecord { id, extra, columns, .. })
            | Self::Lager(LagerRecord { id, extra, columns, .. })
            | Self::Emotion(EmotionRecord { id, extra, columns, .. })
            | Self::Unread(UnreadRecord { id, extra, columns, .. }) => (id, extra, columns),
        }
    }

    /// What people gave it: a place for each rater in the order of the file, `None` for one who gave none; empty where nobody did. Of a
    /// pair: 1 for the first response, 0 for the second, ½ for a tie. Nothing of many responses, which have a grade each.
    pub fn raters(&self) -> Cow<'_, [Option<f64>]> {
        match self {
            Self::Prompt(record) => Cow::Borrowed(&record.scores),
            Self::Graded(record) => Cow::Borrowed(&record.scores),
            Self::Pair(record) => Cow::Owned(record.preferences()),
            Self::Answers(_) => Cow::Borrowed(&[]),
            Self::Lager(record) => Cow::Borrowed(&record.scores),
            Self::Emotion(record) => Cow::Borrowed(&record.scores),
            Self::Unread(record) => Cow::Borrowed(&record.scores),
        }
    }

    /// The mean of the raters; `None` without any.
    pub fn human(&self) -> Option<f64> {
        mean_of_places(&self.raters())
    }

    /// The fields that the record has no use for, as the file has them and in its order.
    pub fn extra(&self) -> &Extra {
        self.parts().1
    }

    /// The same, to be carried to an output.
    pub fn into_extra(mut self) -> Extra {
        std::mem::take(self.extra_mut())
    }

    /// Where they are kept.
    pub(crate) fn extra_mut(&mut self) -> &mut Extra {
        let (Self::Prompt(PromptRecord { extra, .. })
        | Self::Graded(GradedRecord { extra, .. })
        | Self::Pair(PairRecord { extra, .. })
        | Self::Answers(AnswersRecord { extra, .. })
        | Self::Lager(LagerRecord { extra, .. })
        | Self::Emotion(EmotionRecord { extra, .. })
        | Self::Unread(UnreadRecord { extra, .. })) = self;
        extra
    }

    /// Changes each text of a field, by its own name, or among the other fields.
    pub(crate) fn edit(&mut self, name: &str, change: &mut dyn FnMut(&mut String)) {
        let texts = self.texts_of(name);
        if texts.is_empty() {
            self.extra_mut().edit(name, change);
        } else {
            texts.into_iter().for_each(change);
        }
    }

    /// The texts of one of its own fields. Whole prompts are none: their end is what is asked.
    fn texts_of(&mut self, field: &str) -> Vec<&mut String> {
        match (self, field) {
            (Self::Prompt(PromptRecord { input, .. }), _) => input.text_of(field).into_iter().collect(),
            (
                Self::Graded(GradedRecord { instruction, .. })
                | Self::Pair(PairRecord { instruction, .. })
                | Self::Answers(AnswersRecord { instruction, .. }),
                "instruction",
            ) => vec![instruction],
            (
                Self::Graded(GradedRecord { rubric, .. })
                | Self::Pair(PairRecord { rubric, .. })
                | Self::Answers(AnswersRecord { rubric, .. }),
                "rubric",
            ) => rubric.iter_mut().collect(),
            (
                Self::Graded(GradedRecord { reference, .. })
                | Self::Pair(PairRecord { reference, .. })
                | Self::Answers(AnswersRecord { reference, .. }),
                "reference",
            ) => reference.iter_mut().collect(),
            (Self::Graded(GradedRecord { response, .. }), "response") => vec![response],
            (Self::Pair(PairRecord { response_a, .. }), "response_a") => vec![response_a],
            (Self::Pair(PairRecord { response_b, .. }), "response_b") => vec![response_b],
            (Self::Answers(AnswersRecord { responses, .. }), "responses") => responses.iter_mut().collect(),
            (Self::Emotion(EmotionRecord { dialogue, .. }), "dialogue") => vec![dialogue],
            _ => Vec::new(),
        }
    }

    /// Why it cannot be judged; `None` for a record that was read.
    pub fn unread(&self) -> Option<&Unscored> {
        match self {
            Self::Unread(record) => Some(&record.why),
            _ => None,
        }
    }

    /// What stands in the place of a person's grade and is none, with what was expected: see [`RowColumns::no_grade`].
    pub fn no_grade(&self) -> Option<&str> {
        self.parts().2.no_grade()
    }

    /// Which columns its fields were read from; `None` for kinds whose columns have fixed names.
    pub fn columns(&self) -> Option<&RowColumns> {
        Some(self.parts().2).filter(|_| !matches!(self, Self::Lager(_) | Self::Emotion(_)))
    }

    /// What has its texts; `None` of a record that was not read.
    fn fields(&self) -> Option<&dyn Fields> {
        let fields: &dyn Fields = match self {
            Self::Prompt(record) => record,
            Self::Graded(record) => record,
            Self::Pair(record) => record,
            Self::Answers(record) => record,
            Self::Lager(record) => record,
            Self::Emotion(record) => record,
            Self::Unread(_) => return None,
        };
        Some(fields)
    }
}

/// What the record of each kind has.
impl Fields for Record {
    fn field(&self, name: &str) -> Option<Cow<'_, str>> {
        self.field_beside(name, &[])
    }

    fn field_beside(&self, name: &str, shown: &[&str]) -> Option<Cow<'_, str>> {
        self.fields()?.field_beside(name, shown)
    }

    /// A list or an object among the fields that the record does not know.
    fn json(&self, name: &str) -> Option<Cow<'_, Value>> {
        self.extra().json(name).map(Cow::Owned)
    }

    fn names(&self) -> Vec<String> {
        self.fields().map(Fields::names).unwrap_or_default()
    }
}

/// A record with its place in the file, counted from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Numbered {
    /// The place.
    pub row: usize,
    /// The record.
    pub record: Record,
}

impl Numbered {
    /// Records with their places.
    pub fn all<E>(records: impl Iterator<Item = Result<Record, E>>) -> impl Iterator<Item = Result<Self, E>> {
        records.enumerate().map(|(row, record)| record.map(|record| Self { row, record }))
    }
}

impl Fields for Numbered {
    fn field(&self, name: &str) -> Option<Cow<'_, str>> {
        self.record.field(name)
    }

    fn field_beside(&self, name: &str, shown: &[&str]) -> Option<Cow<'_, str>> {
        self.record.field_beside(name, shown)
    }

    fn json(&self, name: &str) -> Option<Cow<'_, Value>> {
        self.record.json(name)
    }

    fn names(&self) -> Vec<String> {
        self.record.names()
    }
}
