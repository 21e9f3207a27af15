//! The ways of pooling that can be chosen from, by the words that name them in files and on command lines.
//!
//! It owns the words and what each stands for. How states are pooled is `judge_core`'s, and which layers are read is the
//! settings'.

use std::fmt;
use std::str::FromStr;

use judge_core::request::{Pooling, ReplyPooling, Signal};
use serde::{Deserialize, Serialize};

use super::TrainingError;

/// How the states of a layer become features: one pooling, or three of them side by side.
///
/// In files and on command lines it is one word: `first`, `last`, `mean`, `min`, `max` or `concat`, and of a text that is written
/// `reply_last`, `reply_mean` or `thought_end`.
///
/// A layer gives `d_model` features for one pooling, three times as many for [`Concat`](Self::Concat).
///
/// ```
/// use judge_probe::training::View;
///
/// assert_eq!("mean".parse::<View>(), Ok(View::Mean));
/// assert_eq!(View::Concat.signals().count(), 3);
/// assert!("median".parse::<View>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
    /// The state of the last token that is written behind the prompt; see [`ReplyPooling`].
    ReplyLast,
    /// The mean over the tokens that are written.
    ReplyMean,
    /// The state of the token that ends the thought in what is written.
    ThoughtEnd,
}

impl View {
    /// All of them.
    /// In the order of the variants, which is also the order of error messages.
    pub const ALL: [Self; 9] = [
        Self::First,
        Self::Last,
        Self::Mean,
        Self::Min,
        Self::Max,
        Self::Concat,
        Self::ReplyLast,
        Self::ReplyMean,
        Self::ThoughtEnd,
    ];

    /// The signals of a layer that stand side by side, in this order.
    pub fn signals(self) -> impl Iterator<Item = Signal> {
        self.listed().iter().copied()
    }

    /// The same as a list.
    fn listed(self) -> &'static [Signal] {
        match self {
            Self::First => &[Signal::State(Pooling::First)],
            Self::Last => &[Signal::State(Pooling::Last)],
            Self::Mean => &[Signal::State(Pooling::Mean)],
            Self::Min => &[Signal::State(Pooling::Min)],
            Self::Max => &[Signal::State(Pooling::Max)],
            Self::Concat => &[Signal::State(Pooling::Min), Signal::State(Pooling::Max), Signal::State(Pooling::Mean)],
            Self::ReplyLast => &[Signal::Reply(ReplyPooling::Last)],
            Self::ReplyMean => &[Signal::Reply(ReplyPooling::Mean)],
            Self::ThoughtEnd => &[Signal::Reply(ReplyPooling::ThoughtEnd)],
        }
    }

    /// Whether it is of a text that is written, which a prompt alone does not have.
    pub fn is_of_reply(self) -> bool {
        self.signals().any(Signal::is_of_reply)
    }

    /// Its word: that of its signal, if it is one.
    /// The same word that serde writes and [`FromStr`] reads.
    pub fn as_str(self) -> &'static str {
        match self.listed() {
            [only] => only.as_str(),
            _ => "concat",
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
