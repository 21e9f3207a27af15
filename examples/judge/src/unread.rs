//! Says before any model work that rows lack what is judged. Each costs itself alone.

use judge_core::ItemId;
use judge_data::Record;

use crate::terminal::console::tell;

/// Counts the rows that get no score whatever the model says.
#[derive(Debug, Default)]
pub struct Unread {
    rows: usize,
    unread: usize,
    first: Option<(ItemId, String)>,
}

impl Unread {
    /// Takes note of a record.
    pub fn see(&mut self, record: &Record) {
        self.note(record.id(), record.unread().map(|why| why.detail.clone()));
    }

    /// Takes note of a row, and of why it gets no score if it does not.
    pub fn note(&mut self, id: &ItemId, why: Option<String>) {
        self.rows += 1;
        if let Some(why) = why {
            self.unread += 1;
            self.first.get_or_insert_with(|| (id.clone(), why));
        }
    }

    /// The first row that gets no score, if none gets one.
    #[must_use]
    pub fn all(&self) -> Option<(&ItemId, &str)> {
        self.first.as_ref().filter(|_| self.unread == self.rows).map(|(id, why)| (id, why.as_str()))
    }

    /// Says how many they are, if there are any.
    pub fn tell(&self) {
        if let Some((id, why)) = &self.first {
            let Self { rows, unread, .. } = self;
            tell(format_args!(
                "note: {unread} of {rows} rows lack what is judged and get no score; the first is {id}: {why}"
            ));
        }
    }
}
