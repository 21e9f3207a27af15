use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Questions;
use crate::{JudgeError, Reason, Unscored};

/// What is decided: a state, and the questions about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DecisionItem {
    /// Text, or any JSON.
    pub state: Value,
    /// The questions.
    pub questions: Questions,
}

/// An item that a [`DecisionJudge`](super::DecisionJudge) can be asked about.
pub trait Decidable {
    /// Text, or any JSON.
    fn state(&self) -> &Value;

    /// The item's own questions; `None` for those of the judge's settings.
    fn questions(&self) -> Option<&Questions>;
}

impl Decidable for DecisionItem {
    fn state(&self) -> &Value {
        &self.state
    }

    fn questions(&self) -> Option<&Questions> {
        Some(&self.questions)
    }
}

/// The questions that are put about an item: its own, or else those for all items.
pub(super) fn questions_of<'a, Item: Decidable + ?Sized>(
    item: &'a Item,
    of_all: Option<&'a Questions>,
) -> Result<&'a Questions, JudgeError> {
    item.questions().or(of_all).ok_or_else(|| {
        Unscored::new(Reason::Missing, "the item has no questions, and there are none for all items").into()
    })
}
