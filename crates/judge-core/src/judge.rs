use std::error::Error as StdError;
use std::sync::Arc;

use serde_json::Value;

use crate::{
    Error, Outcome, Reading, Reason, Request, Score, Unscored, model::BackboneError, template::TemplateProblem,
    testing::ContractBreach,
};

/// Turns an item into requests and their outcomes into a score.
///
/// A judge is pure: it owns no model and does no input or output, so the runner can put the requests
/// of many judges and items before one model at once. The same item always leads to the same requests; the combinators
/// ([`Panel`](crate::combine::Panel), [`Repeated`](crate::combine::Repeated), [`Swapped`](crate::combine::Swapped)) count on it.
/// [`check_judge`](crate::testing::check_judge) looks at a judge of your own.
///
/// A judge can be shared between threads. References, boxes and `Arc`s of judges are judges, so a program can choose one at run time and
/// keep it as `Box<dyn Judge<Item>>`.
pub trait Judge<Item: ?Sized>: Send + Sync {
    /// The name that verdicts, counts and errors go by.
    fn name(&self) -> &str;

    /// The requests for one item: one, several, or none if the item can be judged without a model.
    ///
    /// # Errors
    /// [`JudgeError::Unscored`] if this item cannot be asked about; the run goes on. [`JudgeError::Failed`] ends the run.
    fn ask(&self, item: &Item) -> Result<Vec<Request>, JudgeError>;

    /// Requests that depend on the outcomes so far, one round of outcomes per round of requests. Called until it returns none.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    fn follow_up(&self, item: &Item, rounds: &Rounds<'_>) -> Result<Vec<Request>, JudgeError> {
        let _ = (item, rounds);
        Ok(Vec::new())
    }

    /// The score, from all outcomes. One with a number that is NaN or infinite is no score: the item is unscored for [`Reason::NonFinite`].
    ///
    /// # Errors
    /// [`JudgeError::Unscored`] if there is none, by the item's own fault. [`JudgeError::Failed`] if the outcomes do not fit the requests.
    fn decide(&self, item: &Item, rounds: &Rounds<'_>) -> Result<Score, JudgeError>;

    /// Everything but the item and the model that a verdict depends on, as JSON: prompt, scale, layers, weights, sampling, and the settings
    /// of judges inside. Two judges with equal settings give equal verdicts. A run keeps them beside its rows, so that it is never resumed
    /// with another judge and a finished output is never taken for that of another.
    ///
    /// `None`, the default, is of a judge that does not say. It works everywhere but in runs that are resumed, which refuse it. A combined
    /// judge says `None` if one of its members does.
    fn settings(&self) -> Option<Value> {
        None
    }
}

/// What refers to a judge is one: `&J`, `Box<J>` and `Arc<J>`, `Box<dyn Judge<Item>>` among them.
macro_rules! judge_behind {
    ($($pointer:ty),+) => {$(
        impl<Item: ?Sized, J: Judge<Item> + ?Sized> Judge<Item> for $pointer {
            fn name(&self) -> &str {
                (**self).name()
            }

            fn ask(&self, item: &Item) -> Result<Vec<Request>, JudgeError> {
                (**self).ask(item)
            }

            fn follow_up(&self, item: &Item, rounds: &Rounds<'_>) -> Result<Vec<Request>, JudgeError> {
                (**self).follow_up(item, rounds)
            }

            fn decide(&self, item: &Item, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
                (**self).decide(item, rounds)
            }

            fn settings(&self) -> Option<Value> {
                (**self).settings()
            }
        }
    )+};
}

judge_behind!(&J, Box<J>, Arc<J>);

/// Why a judge gives no score.
#[derive(Debug, thiserror::Error)]
pub enum JudgeError {
    /// The item's own fault: it is counted and kept, and the run goes on.
    #[error(transparent)]
    Unscored(#[from] Unscored),
    /// The judge cannot work; the run ends. Any error fits: see [`JudgeError::failed`].
    #[error(transparent)]
    Failed(Box<dyn StdError + Send + Sync>),
}

impl JudgeError {
    /// A judge's own error, which ends the run.
    pub fn failed(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Failed(error.into())
    }
}

impl From<Error> for JudgeError {
    /// An item that lacks a field, or has a list in its place, is [`Reason::Missing`], and one of which a number is NaN or infinite
    /// [`Reason::NonFinite`]: its own fault. Everything else ends the run.
    fn from(error: Error) -> Self {
        match error {
            Error::Template {
                problem: problem @ (TemplateProblem::MissingField { .. } | TemplateProblem::NotText { .. }),
            } => Self::Unscored(Unscored::new(Reason::Missing, problem.to_string())),
            number @ Error::NonFinite { .. } => Self::Unscored(Unscored::new(Reason::NonFinite, number.to_string())),
            other => Self::Failed(Box::new(other)),
        }
    }
}

impl From<BackboneError> for JudgeError {
    fn from(error: BackboneError) -> Self {
        Self::Failed(Box::new(error))
    }
}

impl From<ContractBreach> for JudgeError {
    fn from(breach: ContractBreach) -> Self {
        Error::from(breach).into()
    }
}

/// The outcomes of a judge's requests about one item, round by round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rounds<'a> {
    rounds: Vec<&'a [Outcome]>,
}

impl<'a> Rounds<'a> {
    /// Rounds from their outcomes, each in the order of its requests.
    pub fn new(rounds: impl IntoIterator<Item = &'a [Outcome]>) -> Self {
        Self { rounds: rounds.into_iter().collect() }
    }

    /// The rounds, the first one first.
    pub fn as_slices(&self) -> &[&'a [Outcome]] {
        &self.rounds
    }

    /// All outcomes, in the order of the requests.
    pub fn outcomes(&self) -> impl Iterator<Item = &'a Outcome> {
        self.rounds.iter().flat_map(|round| round.iter())
    }

    /// All readings, in the order of the requests.
    ///
    /// # Errors
    /// [`JudgeError::Unscored`] with the reason of the first request that was not read.
    pub fn readings(&self) -> Result<Vec<&'a Reading>, JudgeError> {
        self.outcomes().map(|outcome| Ok(outcome.reading()?)).collect()
    }

    /// Tokens of all prompts that were read, as far as the model counts them; `None` where it counts none.
    pub fn prompt_tokens(&self) -> Option<usize> {
        let tokens = |outcome: &Outcome| outcome.reading().ok().and_then(|reading| reading.prompt_tokens);
        self.outcomes().filter_map(tokens).reduce(|sum, tokens| sum + tokens)
    }

    /// The reading of a judge that asks once, for one thing.
    ///
    /// # Errors
    /// [`JudgeError::Unscored`] if it was not read, [`JudgeError::Failed`] if there is not exactly one outcome.
    pub fn only(&self) -> Result<&'a Reading, JudgeError> {
        match self.rounds[..] {
            [[outcome]] => Ok(outcome.reading()?),
            _ => Err(Error::shape("outcomes", 1, self.outcomes().count()).into()),
        }
    }

    pub(crate) fn push(&mut self, round: &'a [Outcome]) {
        self.rounds.push(round);
    }
}
