//! Records of data sets: what the fields of a row make of it, and files of rows as records, one at a time.

pub(crate) mod answers_record;
pub(crate) mod preference;
pub(crate) mod prometheus;
pub(crate) mod record;
pub(crate) mod records;
pub(crate) mod unread_record;

use std::collections::VecDeque;
use std::path::Path;

use crate::dataset::prometheus::Graded;
use crate::rows::columns::{HEAD, Unseen};
use crate::rows::ids::UniqueIds;
use crate::rows::reading::Rest;
use crate::rows::row::rendered;
use crate::{
    AnswersRecord, Columns, DatasetFormat, DatasetOptions, EmotionRecord, Error, Field, GradedRecord, Ids, Input,
    IntoInput, LagerRecord, PairRecord, PromptRecord, Record, Row, Rows, UnreadRecord,
};

impl DatasetFormat {
    /// Tells the kind from a row's fields; `null` is absent.
    ///
    /// A prompt with a response is a graded record, and so is a row with `instruction`, `response` and `prompt`. A row with
    /// `response_a` and `response_b` beside what was asked is a pair, and one with `responses` a list of answers; with `chosen` and
    /// `rejected` it is a pair, or a list of answers where one of them is a list of replies. A row with
    /// the fields of LAGER's benchmark or emotion items is one, whatever else it has, unless it also has `prompt`,
    /// `messages`, or both `instruction` and `response` under exactly these names.
    /// A row that is nothing else and whose instruction is a whole prompt of Prometheus is one of its evaluations.
    ///
    /// # Errors
    /// [`Error::UnknownFormat`] if they fit no kind, or more than one; [`Error::At`] for a table written by columns.
    pub fn detect(row: &Row, columns: &Columns) -> Result<Self, Error> {
        let mut fitting: Vec<Self> =
            [Self::Lager, Self::Emotion].into_iter().filter(|format| format.fits(row, columns)).collect();
        if !fitting.is_empty() {
            let plain = [Field::Prompt, Field::Messages].map(|field| row.has(field.as_str()));
            let graded = [Field::Instruction, Field::Response].map(|field| row.has(field.as_str()));
            fitting.extend(plain.contains(&true).then_some(Self::Prompts));
            fitting.extend((!graded.contains(&false)).then_some(Self::Graded));
        } else if Self::Pairs.fits(row, columns) {
            fitting.push(Self::Pairs);
            fitting.extend([Self::Graded, Self::Answers].into_iter().filter(|format| format.fits(row, columns)));
        } else if Self::Answers.fits(row, columns) {
            fitting.push(Self::Answers);
            fitting.extend(Self::Graded.fits(row, columns).then_some(Self::Graded));
        } else if Self::Graded.fits(row, columns) {
            fitting.push(Self::Graded);
            fitting.extend(columns.has(row, Field::Messages).then_some(Self::Prompts));
        } else if Self::Prompts.fits(row, columns) {
            fitting.push(Self::Prompts);
        } else if Self::Prometheus.fits(row, columns) {
            fitting.push(Self::Prometheus);
        }
        match fitting[..] {
            [format] => Ok(format),
            _ => Err(row.orientation().unwrap_or_else(|| Error::UnknownFormat {
                place: row.place().clone(),
                found: row.found(),
                candidates: fitting.into_iter().map(Self::as_str).collect(),
                known: "prompts (prompt or messages), graded (instruction and response), pairs (instruction, response_a \
                        and response_b, or chosen and rejected), answers (instruction and responses), lager (user_prompt), emotion (dialogue and emotion_score), prometheus (a whole prompt as instruction)",
            })),
        }
    }

    /// What a row with a prompt may be besides.
    const MORE: [Self; 3] = [Self::Graded, Self::Pairs, Self::Answers];

    /// Tells the kind from the rows that a file begins with: that of the first row which fits one, or of a later one if that one has a
    /// prompt alone, as rows do whose response is `null`. `None` without rows.
    ///
    /// # Errors
    /// As [`detect`](Self::detect), of the first row.
    fn of_head(head: &[Row], columns: &Columns) -> Result<Option<Self>, Error> {
        let mut first = None;
        for row in head {
            match Self::detect(row, columns) {
                Ok(Self::Prompts) => first = Some(Self::Prompts),
                Ok(format) if first.is_none() || Self::MORE.contains(&format) => return Ok(Some(format)),
                Err(Error::UnknownFormat { candidates, .. }) if candidates.is_empty() => {}
                Err(error) if first.is_none() => return Err(error),
                _ => {} // it costs that row
            }
        }
        match (first, head) {
            (None, [row, ..]) => Self::detect(row, columns).map(Some),
            _ => Ok(first),
        }
    }

    /// Whether the rows of a file that begins so go by their numbers: where no row has a place for an id, a table's do, and those with replies
    /// that were chosen and rejected, which are published without ids.
    fn goes_by_numbers(self, is_table: bool, head: &[Row], columns: &Columns) -> bool {
        let needs_ids = matches!(self, Self::Prompts | Self::Graded | Self::Pairs | Self::Answers);
        let is_of_pairs = matches!(self, Self::Pairs | Self::Answers);
        let has_replies = || is_of_pairs && head.iter().any(|row| preference::is_one(row, columns));
        needs_ids && (is_table || has_replies()) && has_no_ids(head, columns)
    }

    /// These columns for files of this kind: where its names are fixed, so is that of what people gave, unless another column is chosen.
    fn columns(self, columns: Columns) -> Columns {
        match self {
            Self::Lager if !columns.is_chosen(Field::Human) => columns.held_to(Field::Human, "score"),
            Self::Emotion if !columns.is_chosen(Field::Human) => columns.held_to(Field::Human, "emotion_score"),
            _ => columns,
        }
    }

    fn fits(self, row: &Row, columns: &Columns) -> bool {
        match self {
            Self::Prompts => columns.has(row, Field::Prompt) || columns.has(row, Field::Messages),
            Self::Graded => columns.has(row, Field::Instruction) && columns.has(row, Field::Response),
            Self::Pairs => {
                let named = [Field::Instruction, Field::ResponseA, Field::ResponseB];
                named.iter().all(|&field| columns.has(row, field)) || preference::is_pair(row, columns)
            }
            Self::Answers => {
                let is_listed = columns.has(row, Field::Instruction) && columns.has(row, Field::Responses);
                is_listed || preference::is_one(row, columns) && !preference::is_pair(row, columns)
            }
            Self::Lager => row.has("user_prompt"),
            Self::Emotion => row.has("dialogue") && row.has("emotion_score"),
            Self::Prometheus => {
                let prompts = columns.names(Field::Instruction).filter_map(|name| rendered(row.value(name)?));
                prompts.into_iter().any(|prompt| Graded::parse(&prompt).is_some())
            }
        }
    }
}

/// Whether nobody has chosen a column for ids and no row has a place for one.
fn has_no_ids(head: &[Row], columns: &Columns) -> bool {
    let has_place = |row: &Row| row.keys().any(|key| columns.names(Field::Id).any(|name| name == key));
    !columns.is_chosen(Field::Id) && !head.iter().any(has_place)
}

impl Ids {
    /// How the rows of a file have ids that are read one by one, and not as a [`Dataset`]: those of a table in whose first
    /// [`HEAD`](Dataset::HEAD) rows there is no place for one go by their numbers, which a [note](Input::notes) says.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::InputChanged`], and what is wrong with the file before its first row.
    pub fn of_rows(input: &Input, columns: &Columns) -> Result<Self, Error> {
        let mut rows = input.whole().rows()?;
        // What is wrong with a row is said by who reads it.
        let head: Vec<Row> = rows.by_ref().take(Dataset::HEAD).map_while(Result::ok).collect();
        if !rows.is_of_table() || !has_no_ids(&head, columns) {
            return Ok(Self::Required);
        }
        note_numbers(input);
        Ok(Self::RowNumber)
    }
}

/// Notes that rows go by their numbers.
fn note_numbers(input: &Input) {
    let (path, first) = (input.path().display(), input.part().map_or(0, |part| part.first_number));
    input.note(format!("{path}: no row has an id: rows are numbered from {first}"));
}

/// A data set, one record at a time. Ids are unique; memory is some 40 bytes per row for them, and the rows that the file begins with.
///
/// The file's head, its first [`HEAD`](Self::HEAD) rows, says what kind of data set it is and in which column it has each field. A row that
/// lacks a field, has it in another column, or as something that is not read, is a [`Record::Unread`] and costs itself alone; a head
/// without a single row that can be read is an error. What is wrong with the file, such as text that is no JSON or an id that is absent or
/// appears twice, is an error too, and nothing follows it.
#[derive(Debug)]
pub struct Dataset {
    rows: Rows,
    /// The rows that were looked at already.
    head: VecDeque<Result<Record, Error>>,
    /// What the whole file begins with, where only a part of it is read.
    head_of_file: Option<Vec<Record>>,
    reader: Reader,
    left: usize,
    /// Columns that no row has had; `None` where only a part of the file is read, whose rows need not have what others have.
    unseen: Option<Unseen>,
}

impl Dataset {
    /// How many rows say what a file is, if it has as many.
    pub const HEAD: usize = HEAD;

    /// Opens a data set: a path, `-` for standard input, or an [`Input`](crate::Input) that is read several times.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::UnknownFormat`] or [`Error::NoRows`] if the kind has to be told and cannot be;
    /// [`Error::NoRowFits`], or of a single row what is wrong with it, if no row of the head can be read; [`Error::NoSuchColumn`] if no row
    /// of the file has a column that was chosen, which of a longer file is said behind its last row; whatever is
    /// wrong with the file before its first row.
    pub fn open(input: impl IntoInput, options: &DatasetOptions) -> Result<Self, Error> {
        let input = input.into_input()?;
        let mut rows = input.whole().rows()?;
        let path = rows.path().to_path_buf();
        let (mut head, mut end) = (Vec::new(), None);
        while head.len() < Self::HEAD && end.is_none() {
            match rows.next() {
                Some(Ok(row)) => head.push(row),
                Some(Err(error)) if head.is_empty() => return Err(error),
                end_of_head => end = Some(end_of_head.and_then(Result::err)),
            }
        }
        let mut unseen = Unseen::new(&options.columns);
        head.iter().for_each(|row| unseen.see(row));
        // A column that is misspelt explains what the rows seem to lack.
        let misspelt = |error| unseen.error(&path).unwrap_or(error);
        if let (Some(None), Some(error)) = (&end, unseen.error(&path)) {
            return Err(error);
        }
        let format = match options.format {
            Some(format) => format,
            None => {
                let found = DatasetFormat::of_head(&head, &options.columns).map_err(misspelt)?;
                found.ok_or(Error::NoRows { path: path.clone() })?
            }
        };
        let columns = format.columns(options.columns.settled(&head));
        let ids = match options.ids {
            Ids::Required if format.goes_by_numbers(rows.is_of_table(), &head, &columns) => {
                note_numbers(&input);
                Ids::RowNumber
            }
            ids => ids,
        };
        let asks = matches!(format, DatasetFormat::Graded | DatasetFormat::Pairs | DatasetFormat::Answers);
        if asks && options.columns.leaves_input(&head) {
            input.note(format!(
                "{}: \"input\" is not shown with the instruction, whose column is chosen; without that choice it is",
                path.display()
            ));
        }
        let mut reader = Reader {
            format,
            is_given: options.format.is_some(),
            options: DatasetOptions { columns, ids, ..options.clone() },
            index: 0,
            ids: UniqueIds::default(),
            fault: None,
        };
        let n = head.len();
        let mut head: VecDeque<_> = head.into_iter().map(|row| reader.record(row)).collect();
        let is_read = |record: &Result<Record, Error>| record.as_ref().is_ok_and(|record| record.unread().is_none());
        match reader.fault.take() {
            Some(first) if !head.iter().any(is_read) => {
                let none = |first| Error::NoRowFits { path: path.clone(), rows: n, first: Box::new(first) };
                return Err(misspelt(if n == 1 { first } else { none(first) }));
            }
            _ => {}
        }
        let left = options.max_rows.unwrap_or(usize::MAX);
        if let Some(part) = input.part() {
            let head_of_file = Some(head.into_iter().map_while(Result::ok).collect());
            let reader = Reader { index: part.first_number + part.rows.start, ids: UniqueIds::default(), ..reader };
            return Ok(Self { rows: input.rows()?, head: VecDeque::new(), head_of_file, reader, left, unseen: None });
        }
        head.extend(end.flatten().map(Err));
        Ok(Self { rows, head, head_of_file: None, reader, left, unseen: Some(unseen) })
    }

    /// The records that the file begins with, a hundred at most, also where only a later part of it is read.
    ///
    /// # Errors
    /// Whatever is wrong with one of them.
    pub fn into_head(self) -> Result<Vec<Record>, Error> {
        match self.head_of_file {
            Some(head) => Ok(head),
            None => self.take(Self::HEAD).collect(),
        }
    }

    /// The file's name.
    pub fn path(&self) -> &Path {
        self.rows.path()
    }

    /// The kind of its records, as given or as told from the head.
    pub fn format(&self) -> DatasetFormat {
        self.reader.format
    }
}

/// What makes records of rows.
#[derive(Debug)]
struct Reader {
    format: DatasetFormat,
    /// Whether the format was given, and not told from the head.
    is_given: bool,
    options: DatasetOptions,
    index: usize,
    ids: UniqueIds,
    /// What was wrong with the first row that could not be read.
    fault: Option<Error>,
}

impl Reader {
    fn record(&mut self, row: Row) -> Result<Record, Error> {
        let (options, index, format) = (&self.options, self.index, self.format);
        let (mut record, rest) = match self.read(&row) {
            Ok(read) => read,
            Err(error) => {
                let Some(why) = error.of_row() else { return Err(error) };
                let (unread, rest) = UnreadRecord::read(&row, index, format, options, why)?;
                self.fault.get_or_insert(error);
                (Record::Unread(unread), rest)
            }
        };
        self.ids.check(record.id(), row.place())?;
        *record.extra_mut() = rest.of(row, &self.options.columns);
        self.index += 1;
        Ok(record)
    }

    fn read(&self, row: &Row) -> Result<(Record, Rest), Error> {
        let (options, index) = (&self.options, self.index);
        // A file of prompts may not go on with responses, whose prompts alone would be read.
        if !self.is_given
            && self.format == DatasetFormat::Prompts
            && let Some(found) = DatasetFormat::MORE.into_iter().find(|format| format.fits(row, &options.columns))
        {
            let (expected, found) = (self.format.as_str(), found.as_str());
            return Err(Error::MixedFormats { place: row.place().clone(), expected, found });
        }
        fn of<R>(of: fn(R) -> Record) -> impl FnOnce((R, Rest)) -> (Record, Rest) {
            move |(record, rest)| (of(record), rest)
        }
        let is_preference = preference::is_one(row, &options.columns);
        match self.format {
            DatasetFormat::Pairs if is_preference => preference::pair(row, index, options).map(of(Record::Pair)),
            DatasetFormat::Answers if is_preference => {
                preference::answers(row, index, options).map(of(Record::Answers))
            }
            DatasetFormat::Prompts => PromptRecord::read(row, index, options).map(of(Record::Prompt)),
            DatasetFormat::Graded => GradedRecord::read(row, index, options).map(of(Record::Graded)),
            DatasetFormat::Pairs => PairRecord::read(row, index, options).map(of(Record::Pair)),
            DatasetFormat::Answers => AnswersRecord::read(row, index, options).map(of(Record::Answers)),
            DatasetFormat::Lager => LagerRecord::read(row, index, options).map(of(Record::Lager)),
            DatasetFormat::Emotion => EmotionRecord::read(row, index, options).map(of(Record::Emotion)),
            DatasetFormat::Prometheus => GradedRecord::read_prometheus(row, index, options).map(of(Record::Graded)),
        }
    }
}

impl Iterator for Dataset {
    type Item = Result<Record, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let record = match self.head.pop_front() {
            Some(record) => record,
            None => match self.rows.next() {
                Some(row) => row.and_then(|row| {
                    self.unseen.iter_mut().for_each(|unseen| unseen.see(&row));
                    self.reader.record(row)
                }),
                None => Err(self.unseen.take()?.error(self.rows.path())?),
            },
        };
        if record.is_err() {
            self.left = 0;
        }
        Some(record)
    }
}
