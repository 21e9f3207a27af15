use crate::agreement::leave_one_out::{ScoredAnnotator, check_ratings, leave_one_out};
use crate::input::{check_finite, check_lengths};
use crate::means::{clustered_mean, mean_of, paired_difference_of};
use crate::{Error, Estimate};

/// The human ceiling: how well people agree with one another, by the same measure that the judge gets.
///
/// Each annotator of an item is left out in turn. The annotator and the judge are then scored against the same rest, so that neither has
/// the better yardstick: a judge that is compared with all annotators, and a person with all others, would not be compared like with like.
/// An item's figure is the mean over its annotators, and all items weigh alike. Items are those that the judge and at least two annotators
/// have labelled.
///
/// Intervals are Student's over items, which are taken as independent, and they are of these annotators, not of others who might have been
/// asked. Unlike the [`AlternativeAnnotatorTest`](super::AlternativeAnnotatorTest) it says by how much the judge agrees better, not how
/// often.
///
/// ```
/// use judge_metrics::agreement::HumanCeiling;
///
/// let annotations = [["a", "a", "a"], ["b", "b", "a"], ["b", "b", "b"], ["a", "b", "a"]].map(|row| row.map(Some));
/// let judge = ["a", "b", "b", "b"].map(Some);
/// let ceiling = HumanCeiling::of_labels(&judge, &annotations)?;
/// // On the second item two of the rests are split, and either label is worth one half.
/// assert!((ceiling.people.estimate - 2.0 / 3.0).abs() < 1e-12);
/// assert!((ceiling.judge.estimate - 0.75).abs() < 1e-12);
/// assert!(ceiling.difference.interval(0.95)?.low < 0.0);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct HumanCeiling {
    /// The judge's figure: the mean over items of its mean score against each rest.
    pub judge: Estimate,
    /// People's figure by the same measure: the ceiling, if a larger score is better.
    pub people: Estimate,
    /// The judge's less people's; its p-value is that of no difference. Without interval where all items' differences are equal.
    pub difference: Estimate,
    /// Each annotator who shares an item with the judge and another annotator, in the order of the columns.
    pub annotators: Vec<AnnotatorCeiling>,
    /// Each item that counts, rows ascending.
    pub items: Vec<ItemCeiling>,
}

/// One annotator and the judge against the rest, over the annotator's items.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct AnnotatorCeiling {
    /// The annotator's column.
    pub annotator: usize,
    /// Items.
    pub n: usize,
    /// The annotator's mean score.
    pub person: f64,
    /// The judge's, against the same rest.
    pub judge: f64,
}

/// One item's figures.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ItemCeiling {
    /// The item's row.
    pub item: usize,
    /// The mean score of its annotators, each against the rest.
    pub people: f64,
    /// The judge's mean score against the same rests.
    pub judge: f64,
}

impl HumanCeiling {
    /// For labels: a score is 1 for the label that the rest gave most often and 0 for any other. Where the rest is tied between t labels,
    /// each of them scores 1/t, what tossing for one would score on average. `judge` and `annotations` have one entry and one row to an
    /// item; a row one entry to an annotator, `None` where there is none.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`]; [`Error::TooFewItems`] for fewer than two items that the judge and at least two annotators have labelled.
    pub fn of_labels<L: PartialEq, R: AsRef<[Option<L>]>>(
        judge: &[Option<L>],
        annotations: &[R],
    ) -> Result<Self, Error> {
        Self::of(judge, annotations, |label, others| {
            let count = |label: &L| others.iter().filter(|other| **other == label).count();
            let most = others.iter().map(|other| count(other)).max().unwrap_or(0);
            // Each tied label is held by `most` of the others.
            let holders = others.iter().filter(|other| count(other) == most).count();
            if count(label) == most { most as f64 / holders as f64 } else { 0.0 }
        })
    }

    /// For numbers: a score is the distance from the mean of the rest, in the unit of the ratings. Smaller is better, so the judge does at
    /// least as well as people where the difference is not above 0.
    ///
    /// # Errors
    ///
    /// As [`of_labels`](Self::of_labels); [`Error::NonFinite`], for an annotator's rating in [`Error::InRow`]; [`Error::Undefined`] on
    /// overflow.
    pub fn of_ratings<R: AsRef<[Option<f64>]>>(judge: &[Option<f64>], annotations: &[R]) -> Result<Self, Error> {
        check_ratings(judge, annotations)?;
        Self::of(judge, annotations, |rating, others| {
            let n = others.len() as f64;
            // Divided first: the mean of large numbers is in range where their sum is not.
            (rating - others.iter().map(|other| **other / n).sum::<f64>()).abs()
        })
    }

    /// For any annotation, with a score of your own: how well one annotation agrees with the others (at least one) of the same item.
    ///
    /// # Errors
    ///
    /// As [`of_labels`](Self::of_labels); [`Error::NonFinite`] for a score that is NaN, [`Error::Undefined`] where means of scores are
    /// infinite.
    pub fn of<L, R: AsRef<[Option<L>]>>(
        judge: &[Option<L>],
        annotations: &[R],
        score: impl Fn(&L, &[&L]) -> f64,
    ) -> Result<Self, Error> {
        let (n_annotators, scored) = leave_one_out(judge, annotations, score)?;
        let mut items = Vec::with_capacity(scored.len());
        let mut by_annotator: Vec<Vec<ScoredAnnotator>> = vec![Vec::new(); n_annotators];
        for known in &scored {
            let (people, judge) = mean_scores(&known.left_out)?;
            items.push(ItemCeiling { item: known.item, people, judge });
            known.left_out.iter().for_each(|one| by_annotator[one.annotator].push(*one));
        }
        let mut annotators = Vec::new();
        for (annotator, scores) in by_annotator.iter().enumerate().filter(|(_, scores)| !scores.is_empty()) {
            let (person, judge) = mean_scores(scores)?;
            annotators.push(AnnotatorCeiling { annotator, n: scores.len(), person, judge });
        }
        let (people, judge): (Vec<f64>, Vec<f64>) = items.iter().map(|item| (item.people, item.judge)).unzip();
        Ok(Self {
            difference: paired_difference_of(("people", &people), ("judge", &judge))?,
            judge: mean_of("the judge's agreement with people", &judge)?,
            people: mean_of("people's agreement", &people)?,
            annotators,
            items,
        })
    }

    /// The difference with the standard error of [`clustered_mean`], for items of which several belong to one question. `groups[i]` is the
    /// cluster of row i, of the rows that were given.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] if there are fewer groups than rows that count; those of [`clustered_mean`].
    pub fn clustered_difference<G: Ord>(&self, groups: &[G]) -> Result<Estimate, Error> {
        let rows = self.items.last().map_or(0, |last| last.item + 1);
        if groups.len() < rows {
            check_lengths("groups", groups.len(), "judge", rows)?;
        }
        let differences: Vec<f64> = self.items.iter().map(|item| item.judge - item.people).collect();
        check_finite("differences", &differences)?;
        clustered_mean(&differences, &self.items.iter().map(|item| &groups[item.item]).collect::<Vec<_>>())
    }
}

/// Of the annotators and of the judge, of at least one score each.
fn mean_scores(scores: &[ScoredAnnotator]) -> Result<(f64, f64), Error> {
    let (people, judge): (Vec<f64>, Vec<f64>) = scores.iter().map(|one| (one.person, one.judge)).unzip();
    let mean = |scores: &[f64]| Ok(mean_of("a mean score against the rest", scores)?.estimate);
    Ok((mean(&people)?, mean(&judge)?))
}
