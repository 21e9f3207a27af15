//! What is found of readings beside each other.

use judge_metrics::comparison::{Statistic, brief};
use serde::Serialize;

use crate::training::brief_or_null;

/// What readings are worth.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// How agreement is measured.
    pub measure: Measure,
    /// The level of each interval, by which those of all readings' agreement together have the bootstrap's.
    pub level: f64,
    /// What is chosen from, where questions have answers of different grades.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best_of: Option<BestOfAnswers>,
    /// In the order in which they were given: from the simplest on.
    pub readings: Vec<Tried>,
    /// The position of the best.
    pub best: Option<usize>,
    /// That of the first reading that is not shown to be worse than the best, and is itself shown to agree with people, if any is; baselines
    /// aside.
    pub recommended: Option<usize>,
}

/// How the agreement with people is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Spearman's correlation with the grades.
    Spearman,
    /// The area under the ROC curve: how well the higher of two grades is told from the lower.
    Auroc,
}

impl Measure {
    /// The agreement of what knows nothing of the grades.
    #[must_use]
    pub fn of_chance(self) -> f64 {
        match self {
            Self::Spearman => 0.0,
            Self::Auroc => 0.5,
        }
    }
}

/// Questions of which a reading can choose the best answer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BestOfAnswers {
    /// Questions that have answers of different grades.
    pub questions: usize,
    /// How often an answer that is drawn at random is one that people graded highest.
    pub at_random: f64,
}

/// What one reading is worth.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tried {
    /// What it is called.
    pub name: String,
    /// Whether it is no judge, and only to be beaten.
    pub is_baseline: bool,
    /// Whether it learns or chooses by grades.
    pub learns: bool,
    /// Agreement with people on rows that it has learnt nothing from.
    #[serde(serialize_with = "brief")]
    pub agreement: Statistic,
    /// By how much the best reading agrees better, on the same rows; 0 for the best.
    #[serde(serialize_with = "brief")]
    pub behind_best: Statistic,
    /// How often it chooses an answer that people graded highest: that of its highest number among the answers to one question, of several
    /// with that number each as often. `None` where no question has answers of different grades.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "brief_or_null")]
    pub best_chosen: Option<Statistic>,
    /// The agreement by the number of labels that it learns from in each fold.
    pub by_labels: Vec<ByLabels>,
    /// By how much all labels are better than half of them; of those that learn.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "brief_or_null")]
    pub more_labels: Option<Statistic>,
    /// The number of each row, by what was learnt from other folds.
    #[serde(skip)]
    pub values: Vec<f64>,
}

impl Tried {
    /// Whether its agreement with people is shown to be above that of chance: its interval is, or where the rows that are drawn make no
    /// difference, the agreement itself.
    #[must_use]
    pub fn is_shown_to_agree(&self, measure: Measure) -> bool {
        self.agreement.defined().and_then(|known| known.low()).is_some_and(|low| low > measure.of_chance())
    }
}

/// The agreement with so many labels.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ByLabels {
    /// Rows that were learnt from in each fold, or the fewest of them.
    pub labels: usize,
    /// `None` where it is undefined.
    pub agreement: Option<f64>,
}
