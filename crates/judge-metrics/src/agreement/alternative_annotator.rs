use crate::agreement::leave_one_out::{ScoredAnnotator, ScoredItem, check_ratings, leave_one_out};
use crate::distribution::student_t_tail;
use crate::input::{check_count, check_level, check_range};
use crate::means::{root_mean_square, sample_mean};
use crate::multiplicity::Adjustment;
use crate::{Error, Estimate, Proportion};

/// The alternative annotator test: may a judge take the place of the people who annotate? (Calderon, Reichart and Dror, 2025, arXiv
/// 2501.10970.)
///
/// Each annotator is left out in turn. On each of their items, judge and annotator are scored by how well they agree with the other
/// annotators; the judge has the advantage where its score is at least as high. The hypothesis against the judge is that the annotator has
/// the advantage more often by ε or more, ε being what a person costs beyond the judge; it is tested by Student's t on the differences of
/// the two indicators. The judge wins against those annotators whose hypothesis is rejected, all tests taken together. With a winning rate
/// of one half or more the authors hold the judge to be as good as the annotators.
///
/// ```
/// use judge_metrics::agreement::AlternativeAnnotatorTest;
///
/// // Forty items: two annotators who slip now and then, and a judge that seldom does.
/// let truth: Vec<u8> = (0..40).map(|item| item % 3).collect();
/// let off = |every: usize, at: usize| -> Vec<u8> {
///     truth.iter().enumerate().map(|(item, &label)| if item % every == at { (label + 1) % 3 } else { label }).collect()
/// };
/// let (a, b, c, judge) = (off(5, 0), off(6, 1), off(7, 2), off(39, 3));
/// let annotations: Vec<[Option<u8>; 3]> = (0..40).map(|item| [Some(a[item]), Some(b[item]), Some(c[item])]).collect();
/// let judge: Vec<Option<u8>> = judge.into_iter().map(Some).collect();
/// let found = AlternativeAnnotatorTest::default().of_labels(&judge, &annotations)?;
/// assert_eq!(found.winning_rate().estimate()?, 1.0);
/// assert!(found.may_replace()? && found.advantage > 0.9);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AlternativeAnnotatorTest {
    /// ε in [0, 1): the authors propose 0.2 against experts, 0.15 against skilled annotators and 0.1 against crowd workers.
    pub epsilon: f64,
    /// The level that the adjustment keeps, in (0, 1).
    pub level: f64,
    /// How the tests are taken together; the authors' is Benjamini and Yekutieli's.
    pub adjustment: Adjustment,
    /// Annotators of fewer items are left out of the result, at least 2.
    pub min_items: usize,
}

impl Default for AlternativeAnnotatorTest {
    /// As published: ε = 0.2, level 0.05, Benjamini–Yekutieli, at least 30 items.
    fn default() -> Self {
        Self { epsilon: 0.2, level: 0.05, adjustment: Adjustment::BenjaminiYekutieli, min_items: 30 }
    }
}

/// How far rounding may part two scores of one item, as a share of its largest rating.
const ROUNDING: f64 = 16.0 * f64::EPSILON;

/// The result of an [`AlternativeAnnotatorTest`].
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct AlternativeAnnotators {
    /// The mean over annotators of the share of items on which the judge is at least as good: what judges are compared by. In [0, 1].
    pub advantage: f64,
    /// Each annotator who was tested, in the order of the columns.
    pub annotators: Vec<LeftOut>,
    /// The columns of those who have too few items.
    pub skipped: Vec<usize>,
    /// Items that the judge and at least two annotators have labelled.
    pub n_items: usize,
}

/// The judge against one annotator.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct LeftOut {
    /// The annotator's column.
    pub annotator: usize,
    /// Items on which the judge agrees with the others at least as well as the annotator.
    pub judge: Proportion,
    /// Items on which the annotator does at least as well as the judge.
    pub person: Proportion,
    /// The annotator's share less the judge's, with its standard error.
    pub difference: Estimate,
    /// One-sided p-value of the hypothesis that the difference is ε or more.
    pub p_value: f64,
    /// The same, all tests taken together.
    pub adjusted_p_value: f64,
    /// Whether it is rejected.
    pub is_won: bool,
}

impl AlternativeAnnotatorTest {
    /// For labels: a score is the share of the other annotators who gave the same label. `judge` and `annotations` have one entry and one
    /// row to an item; a row one entry to an annotator, `None` where there is none.
    ///
    /// # Errors
    ///
    /// As [`of`](Self::of).
    pub fn of_labels<L: PartialEq, R: AsRef<[Option<L>]>>(
        &self,
        judge: &[Option<L>],
        annotations: &[R],
    ) -> Result<AlternativeAnnotators, Error> {
        self.of(judge, annotations, share_of_equals)
    }

    /// For numbers: a score is the negative root mean squared distance from the other annotators. Distances that rounding alone parts are
    /// equal: 1.4 is as far from 1.7 as 2.0 is.
    ///
    /// # Errors
    ///
    /// As [`of`](Self::of); [`Error::NonFinite`] for a rating that is no number.
    pub fn of_ratings<R: AsRef<[Option<f64>]>>(
        &self,
        judge: &[Option<f64>],
        annotations: &[R],
    ) -> Result<AlternativeAnnotators, Error> {
        check_ratings(judge, annotations)?;
        self.of_scored(&self.scored(judge, annotations, closeness, |rating| rating.abs())?)
    }

    /// What all of the test follows from, of annotations that have a size, 0 where they are no numbers: scores of one item that differ by
    /// no more than the rounding of its largest annotation are equal.
    ///
    /// # Errors
    ///
    /// As [`of`](Self::of).
    pub(crate) fn scored<L, R: AsRef<[Option<L>]>>(
        &self,
        judge: &[Option<L>],
        annotations: &[R],
        score: impl Fn(&L, &[&L]) -> f64,
        size: impl Fn(&L) -> f64,
    ) -> Result<Scored, Error> {
        check_level(self.level)?;
        check_range("epsilon", None, self.epsilon, [0.0, 1.0_f64.next_down()])?;
        check_range("min_items", None, self.min_items as f64, [2.0, f64::MAX])?;
        let (n_annotators, mut items) = leave_one_out(judge, annotations, score)?;
        for ScoredItem { item, left_out } in &mut items {
            let said = annotations[*item].as_ref().iter().chain([&judge[*item]]).flatten();
            let rounding = ROUNDING * said.map(&size).fold(0.0, f64::max);
            let alike = left_out.iter_mut().filter(|one| (one.judge - one.person).abs() <= rounding);
            alike.for_each(|one| one.judge = one.person);
        }
        let mut counts = vec![0; n_annotators];
        items.iter().flat_map(|item| &item.left_out).for_each(|one| counts[one.annotator] += 1);
        check_count(self.min_items, counts.iter().copied().max().unwrap_or(0))?;
        let (tested, skipped) = (0..n_annotators).partition(|&annotator| counts[annotator] >= self.min_items);
        Ok(Scored { n_rows: judge.len(), n_annotators, items, tested, skipped })
    }

    /// For any annotation, with a score of your own: how well one annotation agrees with the others (at least one) of the same item; larger
    /// is better.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] for ε or the number of items, [`Error::LevelOutOfRange`], [`Error::LengthMismatch`]; [`Error::NonFinite`] for
    /// a score that is NaN; [`Error::TooFewItems`] if no annotator has enough items that the judge and another annotator labelled too.
    pub fn of<L, R: AsRef<[Option<L>]>>(
        &self,
        judge: &[Option<L>],
        annotations: &[R],
        score: impl Fn(&L, &[&L]) -> f64,
    ) -> Result<AlternativeAnnotators, Error> {
        self.of_scored(&self.scored(judge, annotations, score, |_| 0.0)?)
    }

    /// The test of what these settings have scored.
    ///
    /// # Errors
    ///
    /// None that is known of: [`scored`](Self::scored) has checked the settings, and somebody is tested.
    pub(crate) fn of_scored(&self, scored: &Scored) -> Result<AlternativeAnnotators, Error> {
        let Scored { n_annotators, items, tested, skipped, .. } = scored;
        // Per annotator, 1 where they alone have the advantage, -1 where the judge alone has it, 0 where both score alike.
        let mut differences: Vec<Vec<f64>> = vec![Vec::new(); *n_annotators];
        for ScoredAnnotator { annotator, person, judge } in items.iter().flat_map(|item| &item.left_out) {
            differences[*annotator].push(f64::from(i8::from(person >= judge) - i8::from(judge >= person)));
        }
        let mut annotators = Vec::with_capacity(tested.len());
        for &annotator in tested {
            let found = &differences[annotator];
            let count = |loses: f64| found.iter().filter(|difference| **difference != loses).count();
            let difference = sample_mean(found)?;
            annotators.push(LeftOut {
                annotator,
                judge: Proportion { count: count(1.0), n: found.len() },
                person: Proportion { count: count(-1.0), n: found.len() },
                p_value: below(&difference, self.epsilon),
                difference,
                adjusted_p_value: 1.0,
                is_won: false,
            });
        }
        let p_values: Vec<f64> = annotators.iter().map(|left_out| left_out.p_value).collect();
        for (left_out, adjusted) in annotators.iter_mut().zip(self.adjustment.adjust(&p_values)?) {
            left_out.adjusted_p_value = adjusted;
            left_out.is_won = adjusted <= self.level;
        }
        let shares =
            annotators.iter().map(|left_out| left_out.judge.estimate()).collect::<Result<Vec<f64>, Error>>()?;
        let advantage = shares.iter().sum::<f64>() / shares.len() as f64;
        Ok(AlternativeAnnotators { advantage, annotators, skipped: skipped.clone(), n_items: items.len() })
    }
}

/// The scores of each annotator and of the judge beside them, and which annotators have items enough.
pub(crate) struct Scored {
    /// Items, also those that nobody is scored on.
    n_rows: usize,
    n_annotators: usize,
    items: Vec<ScoredItem>,
    tested: Vec<usize>,
    skipped: Vec<usize>,
}

impl Scored {
    /// What the advantage of any of the items follows from.
    pub(crate) fn advantages(&self) -> Advantages {
        let mut as_good = vec![None; self.n_rows * self.n_annotators];
        for item in &self.items {
            for one in &item.left_out {
                as_good[item.item * self.n_annotators + one.annotator] = Some(one.judge >= one.person);
            }
        }
        Advantages { n_annotators: self.n_annotators, tested: self.tested.clone(), as_good }
    }
}

impl AlternativeAnnotators {
    /// The share of the annotators tested against whom the judge wins.
    #[must_use]
    pub fn winning_rate(&self) -> Proportion {
        Proportion { count: self.annotators.iter().filter(|one| one.is_won).count(), n: self.annotators.len() }
    }

    /// Whether the winning rate is at least one half.
    ///
    /// # Errors
    ///
    /// None that is known of: somebody was tested.
    pub fn may_replace(&self) -> Result<bool, Error> {
        Ok(self.winning_rate().estimate()? >= 0.5)
    }
}

/// On which items the judge is at least as good as which annotator: the [`advantage`](AlternativeAnnotators::advantage) of many resamples
/// of the items, scored once.
pub(crate) struct Advantages {
    n_annotators: usize,
    /// Annotators with enough items: a resample that leaves one of them fewer still counts him.
    tested: Vec<usize>,
    /// Row-major `[items, n_annotators]`: whether the judge scores at least as high, where it can be compared with the annotator.
    as_good: Vec<Option<bool>>,
}

impl Advantages {
    /// Of some of the items, given by their indices, in any order, with repetition.
    ///
    /// # Errors
    ///
    /// [`Error::Undefined`] if an annotator has none of them.
    pub(crate) fn advantage(&self, items: &[usize]) -> Result<f64, Error> {
        let k = self.n_annotators;
        let mut shares = vec![Proportion { count: 0, n: 0 }; k];
        for &item in items {
            for (share, as_good) in shares.iter_mut().zip(&self.as_good[item * k..(item + 1) * k]) {
                share.n += usize::from(as_good.is_some());
                share.count += usize::from(*as_good == Some(true));
            }
        }
        let tested: Vec<f64> =
            self.tested.iter().map(|&annotator| shares[annotator].estimate()).collect::<Result<_, Error>>()?;
        Ok(tested.iter().sum::<f64>() / tested.len() as f64)
    }
}

/// The share of the others who gave the same label.
pub(crate) fn share_of_equals<L: PartialEq>(label: &L, others: &[&L]) -> f64 {
    others.iter().filter(|other| **other == label).count() as f64 / others.len() as f64
}

/// Half of the root mean squared distance from the others, negated: half, so that no rating is too far away to be a number.
pub(crate) fn closeness(rating: &f64, others: &[&f64]) -> f64 {
    let halves: Vec<f64> = others.iter().map(|other| rating / 2.0 - **other / 2.0).collect();
    -root_mean_square(&halves)
}

/// P(T ≤ t) for the mean's distance from `bound` in standard errors: `scipy.stats.ttest_1samp(…, bound, alternative="less")`. Items that do
/// not vary leave no doubt on which side of the bound they lie; on it, nothing speaks for less.
fn below(mean: &Estimate, bound: f64) -> f64 {
    let distance = mean.estimate - bound;
    match mean.standard_error() {
        Ok(error) if error > 0.0 => {
            let tail = student_t_tail(distance / error, mean.n as f64 - 1.0) / 2.0;
            if distance < 0.0 { tail } else { 1.0 - tail }
        }
        _ if distance < 0.0 => 0.0,
        _ => 1.0,
    }
}
