use std::collections::BTreeMap;

use crate::{ItemId, Outcome, Reason, Rounds, Score, Verdict};

/// How a run goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSettings {
    /// Upper bound on open items: those that were taken from the iterator and whose results were not delivered; 0 counts as 1. Enough that
    /// it never keeps a model waiting, few enough for memory where readings are large.
    pub window: usize,
    /// Whether results come in the order of the items. If not, each comes as soon as it is known.
    pub in_order: bool,
    /// Rounds of requests that a judge may make about one item, the first included.
    pub max_rounds: usize,
    /// Whether an id that appears twice is an error. It costs some 30 bytes per item;
    /// a source that has seen to it already, such as a data set of `judge-data`,
    /// need not pay for it again.
    pub unique_ids: bool,
}

impl Default for RunSettings {
    /// 4,096 items, in order, 64 rounds, ids checked.
    fn default() -> Self {
        Self { window: 4096, in_order: true, max_rounds: 64, unique_ids: true }
    }
}

/// What a run tells its observer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RunEvent<Item> {
    /// The model has answered.
    Progress(Progress),
    /// An item's verdicts.
    Item(ItemResult<Item>),
    /// The model waits, and nothing is under way: a run that ends now loses no answer.
    Waiting,
}

/// One item and what the judges say of it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ItemResult<Item> {
    /// Its id.
    pub id: ItemId,
    /// The item, handed back.
    pub item: Item,
    /// One verdict per judge.
    pub verdicts: Vec<Verdict>,
    /// Per judge and round, what the model answered to its requests, in their order.
    pub outcomes: Vec<Vec<Vec<Outcome>>>,
}

impl<Item> ItemResult<Item> {
    /// The rounds of one judge; none for a judge that does not exist.
    pub fn rounds(&self, judge: usize) -> Rounds<'_> {
        Rounds::new(self.outcomes.get(judge).into_iter().flatten().map(Vec::as_slice))
    }
}

/// Counts of a run so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Items taken from the iterator.
    pub items_read: usize,
    /// Items whose result was delivered.
    pub items_done: usize,
    /// Requests that judges have made.
    pub requests: usize,
    /// Passes put before the model; fewer than requests where prompts are shared.
    pub passes: usize,
    /// Passes answered.
    pub passes_answered: usize,
    /// Tokens read and written in these passes, as far as the model counts them; those of a pass count once, however many judges share it.
    pub tokens: usize,
}

/// What a run came to.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RunSummary {
    /// The counts at its end.
    pub progress: Progress,
    /// Per judge, how many items it scored and did not.
    pub judges: Vec<Tally>,
    /// Whether the observer ended it before the items did.
    pub cancelled: bool,
}

/// How many items a judge scored, and why it did not score the others.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Tally {
    /// The judge's name.
    pub name: String,
    /// Items with a score.
    pub scored: usize,
    /// Items without, by reason.
    pub unscored: BTreeMap<Reason, usize>,
    /// Scores that say how much of the model's probability lay on the labels.
    pub with_label_mass: usize,
    /// The sum of these shares.
    pub label_mass: f64,
}

impl Tally {
    /// No verdict yet, of the judge of this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Counts one verdict.
    pub fn count(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Scored(Score { label_mass, .. }) => {
                self.scored += 1;
                if let Some(mass) = label_mass {
                    self.with_label_mass += 1;
                    self.label_mass += mass;
                }
            }
            Verdict::Unscored(unscored) => *self.unscored.entry(unscored.reason).or_default() += 1,
        }
    }

    /// The mean share of the model's probability that lay on the labels, where any score says it.
    /// Where it is small, the prompt does not lead the
    /// model to a label, and the scores rest on what it hardly considered.
    pub fn mean_label_mass(&self) -> Option<f64> {
        (self.with_label_mass > 0).then(|| self.label_mass / self.with_label_mass as f64)
    }
}
