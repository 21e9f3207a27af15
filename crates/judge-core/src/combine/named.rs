use serde_json::Value;

use crate::{Judge, JudgeError, Request, Rounds, Score};

/// A judge under another name, so that two judges of one kind can be told apart in verdicts, in a panel's parts and in errors.
///
/// Nothing else changes: a name is no [setting](Judge::settings).
///
/// ```
/// use judge_core::{Judge, combine::Named, prompted::{PromptFamily, WrittenJudge}};
///
/// let judge = Named::new("clarity", WrittenJudge::new(PromptFamily::built_in("single")?));
/// assert_eq!(judge.name(), "clarity");
/// # Ok::<(), judge_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Named<J> {
    name: String,
    judge: J,
}

impl<J> Named<J> {
    /// `judge`, called `name`.
    pub fn new(name: impl Into<String>, judge: J) -> Self {
        Self { name: name.into(), judge }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The judge behind it.
    pub fn judge(&self) -> &J {
        &self.judge
    }
}

impl<Item: ?Sized, J: Judge<Item>> Judge<Item> for Named<J> {
    fn name(&self) -> &str {
        &self.name
    }

    fn ask(&self, item: &Item) -> Result<Vec<Request>, JudgeError> {
        self.judge.ask(item)
    }

    fn follow_up(&self, item: &Item, rounds: &Rounds<'_>) -> Result<Vec<Request>, JudgeError> {
        self.judge.follow_up(item, rounds)
    }

    fn decide(&self, item: &Item, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        self.judge.decide(item, rounds)
    }

    fn settings(&self) -> Option<Value> {
        self.judge.settings()
    }
}
