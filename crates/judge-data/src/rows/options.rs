use std::fmt;

use crate::{Columns, Ids};

/// The kinds of data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DatasetFormat {
    /// [`PromptRecord`](crate::PromptRecord)s.
    Prompts,
    /// [`GradedRecord`](crate::GradedRecord)s.
    Graded,
    /// [`PairRecord`](crate::PairRecord)s; also rows with one reply in each of `chosen` and `rejected`.
    Pairs,
    /// [`AnswersRecord`](crate::AnswersRecord)s; also rows with lists of replies in `chosen` and `rejected`.
    Answers,
    /// [`LagerRecord`](crate::LagerRecord)s.
    Lager,
    /// [`EmotionRecord`](crate::EmotionRecord)s.
    Emotion,
    /// [`GradedRecord`](crate::GradedRecord)s in the form of prometheus-eval's `mt_bench_eval.json`:
    /// see [`GradedRecord::from_prometheus`](crate::GradedRecord::from_prometheus).
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
}

impl fmt::Display for DatasetFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a data set is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatasetOptions {
    /// Its kind; told from the fields of the first rows if not given.
    pub format: Option<DatasetFormat>,
    /// At most this many rows are read.
    pub max_rows: Option<usize>,
    /// Which columns hold which fields.
    pub columns: Columns,
    /// What rows without an id are called.
    pub ids: Ids,
    /// Draws, with a row's id, in which order replies stand that were chosen and rejected.
    pub seed: u64,
}
