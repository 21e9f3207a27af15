//! How rows are compared, and what is told while they are.

use crate::agreement::AlternativeAnnotatorTest;
use crate::resampling::Bootstrap;

/// How rows are compared.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ComparisonSettings {
    /// For each statistic without an interval of its own, and for all where rows come in clusters.
    pub bootstrap: Bootstrap,
    /// All labels, in their order, which is what they are worth where they are texts; else those that occur, where all ratings are whole
    /// numbers or texts.
    pub labels: Option<Vec<String>>,
    /// The test whether the judge may take the place of a rater, of three raters or more.
    pub alternative: AlternativeAnnotatorTest,
    /// Names out of [`STATISTICS`](super::STATISTICS): only these are computed. `None` for all.
    pub only: Option<Vec<String>>,
}

/// A statistic whose computation starts now, for showing progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatisticStarted<'a> {
    /// Its name, out of [`STATISTICS`](super::STATISTICS).
    pub name: &'a str,
    /// Its place among those that are wanted, from 1.
    pub number: usize,
    /// How many are wanted, those that the rows do not bring included.
    pub of: usize,
}
