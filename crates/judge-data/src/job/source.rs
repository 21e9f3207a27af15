//! What a job reads.

use std::borrow::Cow;
use std::path::Path;

use judge_core::ItemId;

use crate::{
    Carry, Columns, Dataset, DatasetOptions, DecisionRecord, Error, GradingRecord, Input, InputFile, Numbered, PART,
    Part, RagRecord, Record, RerankRecord, RowItem, Settings,
};

/// What errors name where rows come from no file.
const NO_FILE: &str = "the source";

/// Rows that a [`Job`](super::Job) reads: as often as needed, and the same each time.
///
/// Rows of your own say how they are read ([`items`](Self::items)) and from where ([`input`](Self::input)); all else follows, but that
/// those from no file say what identifies them ([`identity`](Self::identity)).
pub trait Source: Clone {
    /// A row, before a judge.
    type Item: RowItem;

    /// The rows, from the first.
    ///
    /// # Errors
    /// Whatever is wrong before the first of them.
    fn items(&self) -> Result<impl Iterator<Item = Result<Self::Item, Error>>, Error>;

    /// How many rows of the output each record has, one after another, of which each is an item.
    fn rows_of_each(&self) -> usize {
        1
    }

    /// The file that they are read from; `None` where they are made of others.
    fn input(&self) -> Option<&Input>;

    /// Where its fields have other names.
    fn columns(&self) -> Option<&Columns> {
        None
    }

    /// The same rows, whose other fields include what is carried by name, also where a field is read of it.
    fn keeping(&self, _carry: &Carry) -> Cow<'_, Self> {
        Cow::Borrowed(self)
    }

    /// The files whose content decides about the rows; of `records` records. By default the [`input`](Self::input). A job refuses a source
    /// that names none, [`Error::NoIdentity`], since it could not tell a finished output from that of other rows: rows from no file
    /// are named by [`InputFile::of_rows`].
    ///
    /// # Errors
    /// [`Error::Io`].
    fn identity(&self, records: usize) -> Result<Vec<InputFile>, Error> {
        self.input().map(|input| Ok(input.identity()?.with_rows(records))).into_iter().collect()
    }

    /// What else of how they are read decides about the rows.
    fn settings(&self) -> Settings {
        let chosen = self.columns().map(Columns::to_string).filter(|chosen| !chosen.is_empty());
        let columns = chosen.map(|chosen| ("columns".to_owned(), chosen.into()));
        let part = self.part().map(|part| (PART.to_owned(), part.to_string().into()));
        columns.into_iter().chain(part).collect()
    }

    /// Whether its rows have other fields, of which a job carries some. If not, the record of a run says nothing of them.
    fn has_other_fields(&self) -> bool {
        true
    }

    /// Whether reading the rows refuses an id that is there twice. If not, a job does so before any row is judged.
    fn checks_ids(&self) -> bool {
        false
    }

    /// What errors name: the file, and where there is none "the source", unless it says more.
    fn path(&self) -> &Path {
        self.input().map_or(Path::new(NO_FILE), Input::path)
    }

    /// Which part of a file it is; `None` for all of it.
    fn part(&self) -> Option<&Part> {
        self.input().and_then(Input::part)
    }

    /// Tells of the id of every record, in their order.
    ///
    /// # Errors
    /// Whatever is wrong with a row; those of `see`.
    fn see_ids(&self, see: &mut dyn FnMut(ItemId) -> Result<(), Error>) -> Result<(), Error> {
        self.items()?.step_by(self.rows_of_each()).try_for_each(|item| see(item?.id()))
    }

    /// All of the file of which this is a part.
    #[must_use]
    fn whole(&self) -> Self {
        self.clone()
    }
}

/// The records of a file.
#[derive(Clone, Debug)]
pub struct Records {
    /// The file.
    pub input: Input,
    /// How it is read: format, columns, ids, at most how many.
    pub options: DatasetOptions,
    /// How many rows of the output each record has, at least 1.
    pub rows_of_each: usize,
}

impl Records {
    /// Each as one row.
    #[must_use]
    pub fn new(input: Input, options: DatasetOptions) -> Self {
        Self { input, options, rows_of_each: 1 }
    }

    /// The records themselves.
    ///
    /// # Errors
    /// As [`Dataset::open`].
    pub fn dataset(&self) -> Result<Dataset, Error> {
        Dataset::open(&self.input, &self.options)
    }
}

impl Source for Records {
    type Item = Numbered;

    fn items(&self) -> Result<impl Iterator<Item = Result<Numbered, Error>>, Error> {
        let each = self.rows_of_each;
        let records = self.dataset()?.flat_map(move |record| {
            let (copies, last) = match record {
                Ok(record) => (vec![record.clone(); each.saturating_sub(1)], Ok(record)),
                Err(error) => (Vec::new(), Err(error)),
            };
            copies.into_iter().map(Ok).chain([last])
        });
        Ok(Numbered::all(records))
    }

    fn rows_of_each(&self) -> usize {
        self.rows_of_each
    }

    fn input(&self) -> Option<&Input> {
        Some(&self.input)
    }

    fn columns(&self) -> Option<&Columns> {
        Some(&self.options.columns)
    }

    fn keeping(&self, carry: &Carry) -> Cow<'_, Self> {
        let columns = self.options.columns.clone().keeping(carry.names());
        Cow::Owned(Self { options: DatasetOptions { columns, ..self.options.clone() }, ..self.clone() })
    }

    fn checks_ids(&self) -> bool {
        true
    }

    fn whole(&self) -> Self {
        Self { input: self.input.whole(), ..self.clone() }
    }
}

/// Sources whose records read their own file: the source, its record.
macro_rules! own_records {
    ($($(#[$about:meta])* $source:ident of $record:ident;)+) => {$(
        $(#[$about])*
        #[derive(Clone, Debug)]
        pub struct $source {
            /// The file.
            pub input: Input,
            /// Where fields have other names.
            pub columns: Columns,
            /// At most how many.
            pub max_rows: Option<usize>,
        }

        impl Source for $source {
            type Item = $record;

            fn items(&self) -> Result<impl Iterator<Item = Result<$record, Error>>, Error> {
                $record::all(&self.input, self.max_rows, &self.columns)
            }

            fn input(&self) -> Option<&Input> {
                Some(&self.input)
            }

            fn columns(&self) -> Option<&Columns> {
                Some(&self.columns)
            }

            fn keeping(&self, carry: &Carry) -> Cow<'_, Self> {
                Cow::Owned(Self { columns: self.columns.clone().keeping(carry.names()), ..self.clone() })
            }

            fn checks_ids(&self) -> bool {
                true
            }

            fn whole(&self) -> Self {
                Self { input: self.input.whole(), ..self.clone() }
            }
        }
    )+};
}

own_records! {
    /// The states of a file, with typed questions about them.
    DecisionRecords of DecisionRecord;
    /// The rows of a file, as people see them.
    GradingRecords of GradingRecord;
    /// The answers of a file, with what was retrieved for them.
    RagRecords of RagRecord;
    /// The queries of a file, with their documents.
    RerankRecords of RerankRecord;
}

/// Records that are made of files of another form.
#[derive(Clone, Debug)]
pub struct RecordList {
    /// The records.
    pub records: Vec<Record>,
    /// The files that they are made of, of which the first is named in errors.
    pub files: Vec<InputFile>,
}

impl Source for RecordList {
    type Item = Numbered;

    fn items(&self) -> Result<impl Iterator<Item = Result<Numbered, Error>>, Error> {
        Ok(Numbered::all(self.records.iter().cloned().map(Ok)))
    }

    fn input(&self) -> Option<&Input> {
        None
    }

    fn identity(&self, _: usize) -> Result<Vec<InputFile>, Error> {
        Ok(self.files.clone())
    }

    fn path(&self) -> &Path {
        self.files.first().map_or(Path::new(NO_FILE), |file| &file.path)
    }
}
