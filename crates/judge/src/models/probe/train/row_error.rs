//! Why a row cannot be trained on, told from what ends the run.

use judge_core::JudgeError;

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

    /// Why the row is odd.
    ///
    /// # Errors
    /// What is wrong with more than one row.
    pub fn in_row(self) -> anyhow::Result<String> {
        match self {
            Self::Odd { why, .. } => Ok(why),
            Self::Run(error) => Err(error),
        }
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
