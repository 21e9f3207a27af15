use std::fmt;
use std::path::{Path, PathBuf};

use judge_core::ItemId;

use crate::ids::UniqueIds;
use crate::{EmotionRecord, Error, GradedRecord, LagerRecord, PromptRecord, Row, Rows};

/// The kinds of data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DatasetFormat {
    /// [`PromptRecord`]s.
    Prompts,
    /// [`GradedRecord`]s.
    Graded,
    /// [`LagerRecord`]s.
    Lager,
    /// [`EmotionRecord`]s.
    Emotion,
}

impl DatasetFormat {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Prompts, Self::Graded, Self::Lager, Self::Emotion];

    /// `prompts`, `graded`, `lager` or `emotion`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prompts => "prompts",
            Self::Graded => "graded",
            Self::Lager => "lager",
            Self::Emotion => "emotion",
        }
    }

    /// The kind of this name; `None` if there is none.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.as_str() == name)
    }

    /// Tells the kind from a row's fields.
    ///
    /// # Errors
    /// [`Error::UnknownFormat`] if they fit no kind, or more than one.
    pub fn detect(row: &Row) -> Result<Self, Error> {
        let fitting: Vec<Self> = Self::ALL.into_iter().filter(|format| format.fits(row)).collect();
        match fitting[..] {
            [format] => Ok(format),
            _ => Err(Error::UnknownFormat {
                place: row.place().clone(),
                found: row.keys().map(str::to_owned).collect(),
                candidates: fitting.into_iter().map(Self::as_str).collect(),
                known: "prompts (prompt or messages), graded (instruction and response), lager (user_prompt), \
                        emotion (dialogue and emotion_score)",
            }),
        }
    }

    fn fits(self, row: &Row) -> bool {
        match self {
            Self::Prompts => row.has("prompt") || row.has("messages"),
            Self::Graded => row.has("instruction") && row.has("response"),
            Self::Lager => row.has("user_prompt"),
            Self::Emotion => row.has("dialogue") && row.has("emotion_score"),
        }
    }
}

impl fmt::Display for DatasetFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a data set is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatasetOptions {
    /// Its kind; told from the first row's fields if not given.
    pub format: Option<DatasetFormat>,
    /// At most this many rows are read. [`LagerDataset::row_cap`] is what LAGER's own loader stops at.
    pub max_rows: Option<usize>,
}

/// A data set, one record at a time. Ids are unique; memory is that of the ids.
#[derive(Debug)]
pub struct Dataset {
    rows: Rows,
    format: DatasetFormat,
    left: usize,
    index: usize,
    ids: UniqueIds,
}

impl Dataset {
    /// Opens a data set.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::UnknownFormat`] or [`Error::NoRows`] if the kind has to be told and cannot be; whatever is
    /// wrong with the first row.
    pub fn open(path: impl AsRef<Path>, options: &DatasetOptions) -> Result<Self, Error> {
        let path = path.as_ref();
        let mut rows = Rows::open(path)?;
        let format = match (options.format, rows.peek()?) {
            (Some(format), _) => format,
            (None, Some(row)) => DatasetFormat::detect(row)?,
            (None, None) => return Err(Error::NoRows { path: path.to_path_buf() }),
        };
        let left = options.max_rows.unwrap_or(usize::MAX);
        Ok(Self { rows, format, left, index: 0, ids: UniqueIds::default() })
    }

    /// The kind of its records, as given or as told from the first row.
    pub fn format(&self) -> DatasetFormat {
        self.format
    }

    fn record(&mut self, row: Row) -> Result<Record, Error> {
        let place = row.place().clone();
        let record = match self.format {
            DatasetFormat::Prompts => Record::Prompt(PromptRecord::from_row(row)?),
            DatasetFormat::Graded => Record::Graded(GradedRecord::from_row(row)?),
            DatasetFormat::Lager => Record::Lager(LagerRecord::from_row(row, self.index)?),
            DatasetFormat::Emotion => Record::Emotion(EmotionRecord::from_row(row, self.index)?),
        };
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

/// A record of any kind.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant)] // records come in thousands of one kind; a box would cost more than it saves
pub enum Record {
    /// A prompt.
    Prompt(PromptRecord),
    /// A graded response.
    Graded(GradedRecord),
    /// A record of LAGER's files.
    Lager(LagerRecord),
    /// An emotion.
    Emotion(EmotionRecord),
}

impl Record {
    /// Its id.
    pub fn id(&self) -> &ItemId {
        match self {
            Self::Prompt(record) => &record.id,
            Self::Graded(record) => &record.id,
            Self::Lager(record) => &record.id,
            Self::Emotion(record) => &record.id,
        }
    }

    /// What people gave it, the mean of several raters; `None` where nobody did.
    pub fn human(&self) -> Option<f64> {
        match self {
            Self::Prompt(_) => None,
            Self::Graded(record) => record.human(),
            Self::Lager(record) => record.human(),
            Self::Emotion(record) => Some(record.score as f64),
        }
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
