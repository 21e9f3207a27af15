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

judge_core::names! { DatasetFormat {
    Prompts: "prompts",
    Graded: "graded",
    Pairs: "pairs",
    Answers: "answers",
    Lager: "lager",
    Emotion: "emotion",
    Prometheus: "prometheus",
}}

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
