use std::fmt;
use std::path::{Path, PathBuf};

use crate::columns::ColumnWatch;
use crate::ids::UniqueIds;
use crate::prometheus::Graded;
use crate::row::rendered;
use crate::{
    AnswersRecord, Columns, EmotionRecord, Error, Field, GradedRecord, Ids, IntoInput, LagerRecord, PairRecord,
    PromptRecord, Record, Row, Rows,
};

/// The kinds of data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DatasetFormat {
    /// [`PromptRecord`]s.
    Prompts,
    /// [`GradedRecord`]s.
    Graded,
    /// [`PairRecord`]s.
    Pairs,
    /// [`AnswersRecord`]s.
    Answers,
    /// [`LagerRecord`]s.
    Lager,
    /// [`EmotionRecord`]s.
    Emotion,
    /// [`GradedRecord`]s in the form of prometheus-eval's `mt_bench_eval.json`: see [`GradedRecord::from_prometheus`].
    Prometheus,
}

impl DatasetFormat {
    /// All kinds.
    pub const ALL: [Self; 7] =
        [Self::Prompts, Self::Graded, Self::Pairs, Self::Answers, Self::Lager, Self::Emotion, Self::Prometheus];

    /// `prompts`, `graded`, `pairs`, `answers`, `lager`, `emotion` or `prometheus`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prompts => "prompts",
            Self::Graded => "graded",
            Self::Pairs => "pairs",
            Self::Answers => "answers",
            Self::Lager => "lager",
            Self::Emotion => "emotion",
            Self::Prometheus => "prometheus",
        }
    }

    /// The kind of this name; `None` if there is none.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.as_str() == name)
    }

    /// Tells the kind from a row's fields; `null` is absent.
    ///
    /// A prompt with a response is a graded record, and so is a row with `instruction`, `response` and `prompt`. A row with
    /// `response_a` and `response_b` beside what was asked is a pair, and one with `responses` a list of answers. A row with
    /// the fields of LAGER's benchmark or emotion items is one, whatever else it has, unless it also has `prompt`,
    /// `messages`, or both `instruction` and `response` under exactly these names. A row that is nothing else and whose instruction is a whole prompt of Prometheus is one of its evaluations.
    ///
    /// # Errors
    /// [`Error::UnknownFormat`] if they fit no kind, or more than one; [`Error::TableByColumns`] for a table written by columns.
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
                        and response_b), answers (instruction and responses), lager (user_prompt), emotion (dialogue and emotion_score), prometheus (a whole prompt as instruction)",
            })),
        }
    }

    fn fits(self, row: &Row, columns: &Columns) -> bool {
        match self {
            Self::Prompts => columns.has(row, Field::Prompt) || columns.has(row, Field::Messages),
            Self::Graded => columns.has(row, Field::Instruction) && columns.has(row, Field::Response),
            Self::Pairs => {
                [Field::Instruction, Field::ResponseA, Field::ResponseB].iter().all(|&field| columns.has(row, field))
            }
            Self::Answers => columns.has(row, Field::Instruction) && columns.has(row, Field::Responses),
            Self::Lager => row.has("user_prompt"),
            Self::Emotion => row.has("dialogue") && row.has("emotion_score"),
            Self::Prometheus => {
                let prompts = columns.names(Field::Instruction).filter_map(|name| rendered(row.value(name)?));
                prompts.into_iter().any(|prompt| Graded::parse(&prompt).is_some())
            }
        }
    }
}

impl fmt::Display for DatasetFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a data set is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatasetOptions {
    /// Its kind; told from the first row's fields if not given.
    pub format: Option<DatasetFormat>,
    /// At most this many rows are read. [`LagerDataset::row_cap`] is what LAGER's own loader stops at.
    pub max_rows: Option<usize>,
    /// Which columns hold which fields.
    pub columns: Columns,
    /// What rows without an id are called.
    pub ids: Ids,
}

/// A data set, one record at a time. Ids are unique; memory is some 40 bytes per row for them.
///
/// A field that is in one column on one row and in another on a later one is an error, unless [`DatasetOptions::columns`]
/// chooses these columns: an `answer` would be graded where a `response` is `null`.
#[derive(Debug)]
pub struct Dataset {
    rows: Rows,
    format: DatasetFormat,
    options: DatasetOptions,
    left: usize,
    index: usize,
    ids: UniqueIds,
    used: ColumnWatch,
}

impl Dataset {
    /// Opens a data set: a path, `-` for standard input, or an [`Input`](crate::Input) that is read several times.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::UnknownFormat`] or [`Error::NoRows`] if the kind has to be told and cannot be; whatever is
    /// wrong with the first row.
    pub fn open(input: impl IntoInput, options: &DatasetOptions) -> Result<Self, Error> {
        let mut rows = Rows::open(input)?;
        let path = rows.path().to_path_buf();
        let format = match (options.format, rows.peek()?) {
            (Some(format), _) => format,
            (None, Some(row)) => DatasetFormat::detect(row, &options.columns)?,
            (None, None) => return Err(Error::NoRows { path }),
        };
        let (options, left) = (options.clone(), options.max_rows.unwrap_or(usize::MAX));
        let (ids, used) = (UniqueIds::default(), ColumnWatch::default());
        Ok(Self { rows, format, options, left, index: 0, ids, used })
    }

    /// The kind of its records, as given or as told from the first row.
    pub fn format(&self) -> DatasetFormat {
        self.format
    }

    fn record(&mut self, row: Row) -> Result<Record, Error> {
        let place = row.place().clone();
        let (options, index) = (&self.options, self.index);
        // A file that begins with prompts may not go on with responses, whose prompts alone would be read.
        if options.format.is_none()
            && self.format == DatasetFormat::Prompts
            && let Some(format) = [DatasetFormat::Graded, DatasetFormat::Pairs, DatasetFormat::Answers]
                .into_iter()
                .find(|format| format.fits(&row, &options.columns))
        {
            let (expected, found) = (self.format.as_str(), format.as_str());
            return Err(Error::MixedFormats { place, expected, found });
        }
        let record = match self.format {
            DatasetFormat::Prompts => Record::Prompt(PromptRecord::from_row(row, index, options)?),
            DatasetFormat::Graded => Record::Graded(GradedRecord::from_row(row, index, options)?),
            DatasetFormat::Pairs => Record::Pair(PairRecord::from_row(row, index, options)?),
            DatasetFormat::Answers => Record::Answers(AnswersRecord::from_row(row, index, options)?),
            DatasetFormat::Lager => Record::Lager(LagerRecord::from_row(row, index, options)?),
            DatasetFormat::Emotion => Record::Emotion(EmotionRecord::from_row(row, index)?),
            DatasetFormat::Prometheus => Record::Graded(GradedRecord::from_prometheus(row, index, options)?),
        };
        if let Some(columns) = record.columns() {
            self.used.check(columns, &options.columns, &place)?;
        }
        self.ids.check(record.id(), &place)?;
        self.index += 1;
        Ok(record)
    }
}

impl Iterator for Dataset {
    type Item = Result<Record, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let record = self.rows.next()?.and_then(|row| self.record(row));
        if record.is_err() {
            self.left = 0;
        }
        Some(record)
    }
}

/// What LAGER's program takes a data file for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LagerDataset {
    /// FLASK.
    Flask,
    /// The validation split that layer weights are fitted on.
    Valid,
    /// HelpSteer.
    HelpSteer,
    /// BiGGen Bench.
    BiGGen,
    /// Anything else, by its file name up to the first dot.
    Other(String),
}

impl LagerDataset {
    /// Goes by the *whole* path, upper and lower case alike, first match in the order flask, valid, helpsteer, biggen:
    /// `valid_runs/helpsteer.json` is [`Valid`](Self::Valid). For comparison with LAGER's program only.
    pub fn from_path(path: &Path) -> Self {
        let lower = path.to_string_lossy().to_lowercase();
        let known = [Self::Flask, Self::Valid, Self::HelpSteer, Self::BiGGen];
        known.into_iter().find(|dataset| lower.contains(dataset.name())).unwrap_or_else(|| {
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            Self::Other(file.split('.').next().unwrap_or_default().to_owned())
        })
    }

    /// The name of its folder of results.
    pub fn name(&self) -> &str {
        match self {
            Self::Flask => "flask",
            Self::Valid => "valid",
            Self::HelpSteer => "helpsteer",
            Self::BiGGen => "biggen",
            Self::Other(name) => name,
        }
    }

    /// The number of rows after which LAGER's loader stops: 2,001 for HelpSteer (2,000 were meant), none else.
    pub fn row_cap(&self) -> Option<usize> {
        (*self == Self::HelpSteer).then_some(2001)
    }

    /// Where LAGER's program puts, and looks for, the results of `model` in the direct or the reasoning condition.
    pub fn result_path(&self, save_dir: &Path, model: &Path, reasoning: bool) -> PathBuf {
        let model = model.file_name().unwrap_or_default().to_string_lossy();
        let feedback = if reasoning { "_with_feedback" } else { "" };
        save_dir.join(self.name()).join(format!("{model}{feedback}_logits.json"))
    }
}
