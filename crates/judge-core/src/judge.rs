use serde::{Deserialize, Serialize};

use crate::{Error, Outcome, Request, ScoreDistribution, Unscored};

/// Turns an item into requests and their outcomes into a verdict.
///
/// A judge is pure: it owns no model and does no input or output, so the runner can put the requests
/// of many judges and items before one backbone at once.
pub trait Judge<Item: ?Sized> {
    /// The requests for one item: one, or several (aspects, both orders).
    ///
    /// # Errors
    /// If the item cannot be asked about with this judge's template; that ends the run.
    fn ask(&self, item: &Item) -> Result<Vec<Request>, Error>;

    /// Requests that depend on the outcomes so far (all outcomes of this item in order). Called until it returns none.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    fn follow_up(&self, item: &Item, done: &[Outcome]) -> Result<Vec<Request>, Error> {
        let _ = (item, done);
        Ok(Vec::new())
    }

    /// The verdict from all outcomes, in the order of the requests.
    ///
    /// # Errors
    /// Only if the outcomes do not fit the requests; an item's fault is [`Verdict::Unscored`].
    fn decide(&self, item: &Item, done: &[Outcome]) -> Result<Verdict, Error>;
}

/// What a judge says of one item.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// A score.
    Scored {
        /// The distribution over the scale; its [`expected`](ScoreDistribution::expected) value is the score.
        distribution: ScoreDistribution,
        /// What a fitted calibrator adds.
        interval: Option<Interval>,
    },
    /// No score, and why.
    Unscored(Unscored),
}

/// A range that holds the true score with the stated probability.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end, in units of the scale.
    pub low: f64,
    /// Upper end, in units of the scale.
    pub high: f64,
    /// Nominal coverage, in (0, 1).
    pub level: f64,
}
