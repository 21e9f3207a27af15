//! Why no probe could be trained: what is wrong with the graded rows. What is wrong with features or settings is the crate's error.

use judge_core::ItemId;

use super::GradeScale;

/// Why no probe could be trained.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TrainingError {
    /// No rows.
    #[error("there are no graded rows")]
    NoRows,

    /// A grade that is not on the scale, or not finite.
    #[error("the grade of {id} is {grade}, expected one on the scale {scale}")]
    OffScale {
        /// The row.
        id: ItemId,
        /// Its grade.
        grade: f64,
        /// Where grades should lie.
        scale: GradeScale,
    },

    /// Every row has the same class.
    #[error("all {n_rows} rows have the class {class}, so there is nothing to learn")]
    OneClass {
        /// The class.
        class: i64,
        /// Rows there are.
        n_rows: usize,
    },

    /// More classes than a short scale has.
    #[error("{found} different classes, at most {most} are told apart: train on two classes instead")]
    ManyClasses {
        /// Classes there are.
        found: usize,
        /// The limit.
        most: usize,
    },

    /// Some rows name a split and others do not.
    #[error("row {id} names no split, though others do")]
    NoSplit {
        /// The first row without one.
        id: ItemId,
    },

    /// Rows name splits, but none is trained on.
    #[error("no row is in the split \"train\", found {found:?}")]
    NoTrainRows {
        /// The splits there are.
        found: Vec<String>,
    },

    /// Every row is trained on.
    #[error("every row is in the split \"train\", so there is nothing to test on")]
    NoTestRows,

    /// Rows of other classes are so few that a fold has none of them to learn from.
    #[error("{}, so a fold has nothing to learn: add rows of other classes, or part the classes elsewhere", others(*class, ids))]
    OneClassFold {
        /// The class of all rows that are left.
        class: i64,
        /// The rows of other classes.
        ids: Vec<ItemId>,
    },

    /// The model could read no row.
    #[error("the model could read none of {n_rows} rows")]
    NothingRead {
        /// Rows there are.
        n_rows: usize,
    },

    /// A prompt without a JSON form, which cannot be hashed.
    #[error("the prompt of {id} cannot be hashed: {reason}")]
    Prompt {
        /// The row.
        id: ItemId,
        /// What the serialiser says.
        reason: String,
    },

    /// Another number of the model's logits than of grades.
    #[error("the model's own score of {id}: expected a logit for each of {expected} grades, found {found}")]
    GradeLogits {
        /// The row.
        id: ItemId,
        /// Grades that occur.
        expected: usize,
        /// Logits given.
        found: usize,
    },

    /// A logit that is NaN or infinite.
    #[error("the model's own score of {id}: the logit of a grade is {value}")]
    GradeLogit {
        /// The row.
        id: ItemId,
        /// The logit.
        value: f64,
    },

    /// Another number of rows with logits of a tuned model than were asked for.
    #[error("the tuned model's scores: expected logits of {expected} rows, found {found}")]
    TunedRows {
        /// Rows asked for.
        expected: usize,
        /// Rows given.
        found: usize,
    },

    /// A word that names no view.
    #[error(
        "{found:?} is no pooling: expected first, last, mean, min, max, concat, reply_last, reply_mean or thought_end"
    )]
    UnknownView {
        /// The word, cut at 100 characters.
        found: String,
    },

    /// Text that is no scale.
    #[error("{found:?} is no scale: expected the lowest and the highest grade, as in 1-5")]
    UnknownScale {
        /// The text, cut at 100 characters.
        found: String,
    },
}

/// How few rows that are trained on have another class than this one.
fn others(class: i64, ids: &[ItemId]) -> String {
    match ids {
        [] => format!("all rows trained on have the class {class}"),
        [id] => format!("of the rows trained on {id} alone is not of class {class}"),
        [first, ..] => {
            format!("of the rows trained on {}, the first of them {first}, are not of class {class}", ids.len())
        }
    }
}
