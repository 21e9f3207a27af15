use serde::{Deserialize, Serialize};

/// The kinds of question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QuestionKind {
    /// Yes or no.
    Noul,
    /// One of some named options.
    Choice,
    /// One of some ordered levels.
    Score,
}

crate::names! { QuestionKind {
    Noul: "noul",
    Choice: "choice",
    Score: "score",
}}

impl QuestionKind {
    /// A question of this kind as JSON, for messages.
    #[must_use]
    pub fn example(self) -> &'static str {
        match self {
            Self::Noul => {
                r#"{"type": "noul", "instructions": "Is a refund asked for?", "criteria": {"true": "It is", "false": "It is not"}}"#
            }
            Self::Choice => {
                r#"{"type": "choice", "instructions": "What is the tone?", "criteria": {"calm": null, "angry": "Accuses or shouts"}}"#
            }
            Self::Score => {
                r#"{"type": "score", "instructions": "How urgent is it?", "criteria": ["can wait", "this week", "today"]}"#
            }
        }
    }
}

/// One of something for each kind of question.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByKind<T> {
    /// For yes-or-no questions.
    pub noul: T,
    /// For choices.
    pub choice: T,
    /// For scores.
    pub score: T,
}

impl<T> ByKind<T> {
    /// One for each kind.
    pub fn of(mut make: impl FnMut(QuestionKind) -> T) -> Self {
        let [noul, choice, score] = QuestionKind::ALL.map(&mut make);
        Self { noul, choice, score }
    }

    /// That of a kind.
    pub fn get(&self, kind: QuestionKind) -> &T {
        match kind {
            QuestionKind::Noul => &self.noul,
            QuestionKind::Choice => &self.choice,
            QuestionKind::Score => &self.score,
        }
    }

    /// That of a kind, to be changed.
    pub fn get_mut(&mut self, kind: QuestionKind) -> &mut T {
        match kind {
            QuestionKind::Noul => &mut self.noul,
            QuestionKind::Choice => &mut self.choice,
            QuestionKind::Score => &mut self.score,
        }
    }
}
