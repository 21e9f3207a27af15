//! The ways of pooling that can be chosen from, by the words that name them in files and on command lines.
//!
//! It owns the words and what each stands for. How states are pooled is `judge_core`'s, and which layers are read is the
//! settings'.

use std::fmt;
use std::str::FromStr;

use judge_core::request::{Pooling, Signal};
use serde::{Deserialize, Serialize};

use super::TrainingError;

/// How the states of a layer become features: one pooling, or three of them side by side.
///
/// In files and on command lines it is one word: `first`, `last`, `mean`, `min`, `max` or `concat`.
///
/// A layer gives `d_model` features for one pooling, three times as many for [`Concat`](Self::Concat).
///
/// ```
/// use judge_probe::training::View;
///
/// assert_eq!("mean".parse::<View>(), Ok(View::Mean));
/// assert_eq!(View::Concat.poolings().len(), 3);
/// assert!("median".parse::<View>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum View {
    /// The state of the prompt's first token, where encoders gather what they make of the whole text.
    First,
    /// The state of the prompt's last token.
    /// In a causal model it is the only one that has read all of the prompt.
    Last,
    /// The mean over the prompt's tokens.
    Mean,
    /// The smallest value of each coordinate.
    /// It is taken coordinate by coordinate, so that it is in general the state of no one token.
    Min,
    /// The largest value of each coordinate.
    Max,
    /// Smallest, largest and mean side by side.
    Concat,
}

impl View {
    /// All of them.
    /// In the order of the variants, which is also the order of error messages.
    pub const ALL: [Self; 6] = [Self::First, Self::Last, Self::Mean, Self::Min, Self::Max, Self::Concat];

    /// The poolings that stand side by side, in this order.
    pub fn poolings(self) -> &'static [Pooling] {
        match self {
            Self::First => &[Pooling::First],
            Self::Last => &[Pooling::Last],
            Self::Mean => &[Pooling::Mean],
            Self::Min => &[Pooling::Min],
            Self::Max => &[Pooling::Max],
            Self::Concat => &[Pooling::Min, Pooling::Max, Pooling::Mean],
        }
    }

    /// The same as signals of a layer.
    pub fn signals(self) -> impl Iterator<Item = Signal> {
        self.poolings().iter().map(|&pooling| Signal::State(pooling))
    }

    /// Its word.
    /// The same word that serde writes and [`FromStr`] reads.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Last => "last",
            Self::Mean => "mean",
            Self::Min => "min",
            Self::Max => "max",
            Self::Concat => "concat",
        }
    }
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for View {
    type Err = TrainingError;

    /// Lower case only, without white space; anything else is [`TrainingError::UnknownView`], which lists the words.
    fn from_str(text: &str) -> Result<Self, TrainingError> {
        let named = Self::ALL.into_iter().find(|view| view.as_str() == text);
        named.ok_or_else(|| TrainingError::UnknownView { found: text.chars().take(100).collect() })
    }
}
