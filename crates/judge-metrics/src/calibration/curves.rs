//! What calibration fits: one isotonic curve for numbers, one for each cut of a scale of grades.

use super::ordinal::growth;
use super::{FittedIsotonicRegression, IsotonicRegression};
use crate::Error;
use crate::input::in_range;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Curves {
    /// Of numbers: the fitted mean. Of grades: the probability of each grade but the lowest, or a higher one.
    pub(super) curves: Vec<FittedIsotonicRegression>,
    /// Of grades: how often each occurred, from 0 to 1. Empty for numbers.
    pub(super) shares: Vec<f64>,
    /// How much of a distribution is made of `shares`: as if one more row had been graded at random. Without it a grade that no row near a
    /// score has would be impossible, and all impossible grades would be alike.
    pub(super) mixed: f64,
}

impl Curves {
    pub(super) fn fit(
        fit: &IsotonicRegression,
        scores: &[f64],
        human: &[f64],
        grades: Option<&[f64]>,
    ) -> Result<Self, Error> {
        let Some(grades) = grades else {
            return Ok(Self { curves: vec![fit.fit(scores, human)?], shares: Vec::new(), mixed: 0.0 });
        };
        let cut = |grade: &f64| {
            let reached: Vec<f64> = human.iter().map(|human| f64::from(u8::from(human >= grade))).collect();
            fit.fit(scores, &reached)
        };
        let n = human.len() as f64;
        let shares =
            grades.iter().map(|grade| human.iter().filter(|&human| human == grade).count() as f64 / n).collect();
        let curves = grades[1..].iter().map(cut).collect::<Result<_, _>>()?;
        Ok(Self { curves, shares, mixed: 1.0 / (n + 1.0) })
    }

    /// The fitted mean, or the expected grade: the lowest grade, and each step upwards times the probability of reaching it.
    pub(super) fn value(&self, score: f64, grades: Option<&[f64]>) -> f64 {
        match grades {
            None => self.curves[0].at(score),
            Some(grades) => {
                let steps = grades.windows(2).zip(&self.curves);
                grades[0] + steps.map(|(step, curve)| (step[1] - step[0]) * curve.at(score)).sum::<f64>()
            }
        }
    }

    /// How wrong the curves are about a row: the distance of the mean, or the probability of all grades that join a set before the row's.
    pub(super) fn error(&self, score: f64, human: f64, grades: Option<&[f64]>) -> Result<f64, Error> {
        match grades {
            None => in_range("calibration error", (human - self.value(score, None)).abs()),
            Some(grades) => {
                // `grades` are all that occur.
                let of_grade = self.errors(score).find(|&(grade, _)| grades[grade] == human);
                of_grade.map(|(_, error)| error).ok_or(Error::Undefined {
                    statistic: "calibration error",
                    reason: "the row's grade is not on the scale",
                })
            }
        }
    }

    /// Each grade, in the order in which they join a set, and the probability of the set before.
    pub(super) fn errors(&self, score: f64) -> impl Iterator<Item = (usize, f64)> {
        let p = self.distribution(score);
        let sets: Vec<_> = growth(&p).collect();
        let mut before = None;
        sets.into_iter().map(move |set| {
            let (grade, error) = match before.replace(set) {
                None => (set.low, 0.0),
                Some(smaller) if set.low < smaller.low => (set.low, smaller.probability),
                Some(smaller) => (set.high, smaller.probability),
            };
            (grade, error)
        })
    }

    fn distribution(&self, score: f64) -> Vec<f64> {
        let reached: Vec<f64> = self.curves.iter().map(|curve| curve.at(score)).collect();
        let probability = |(grade, share): (usize, &f64)| {
            let at_least = if grade == 0 { 1.0 } else { reached[grade - 1] };
            let above = reached.get(grade).copied().unwrap_or(0.0);
            // Cuts are in order but for rounding.
            (1.0 - self.mixed) * (at_least - above).max(0.0) + self.mixed * share
        };
        self.shares.iter().enumerate().map(probability).collect()
    }
}

/// The k-th smallest of all shift + x, for several ascending lists of x with a shift each; 1 ≤ k ≤ their number. Bisects over the
/// floating-point numbers themselves, so the result is exact and no list is merged.
pub(super) fn kth_smallest(lists: &[(f64, &[f64])], k: usize) -> f64 {
    let ends = lists.iter().filter_map(|&(shift, list)| Some((shift + list.first()?, shift + list.last()?)));
    let (least, most) =
        ends.fold((f64::INFINITY, f64::NEG_INFINITY), |ends, list| (ends.0.min(list.0), ends.1.max(list.1)));
    let up_to =
        |limit: f64| -> usize { lists.iter().map(|&(shift, list)| list.partition_point(|x| shift + x <= limit)).sum() };
    let (mut low, mut high) = (ordered(least), ordered(most));
    while low < high {
        let middle = ((i128::from(low) + i128::from(high)).div_euclid(2)) as i64;
        if up_to(number(middle)) >= k {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    // −0 and 0 are one number.
    number(low) + 0.0
}

/// An integer that is ordered as the number is (`f64::total_cmp`).
fn ordered(x: f64) -> i64 {
    let bits = x.to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// The number of an integer from [`ordered`], which is its own inverse.
fn number(ordered: i64) -> f64 {
    f64::from_bits((ordered ^ (((ordered >> 63) as u64) >> 1) as i64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kth_smallest_is_that_of_the_merged_lists() {
        let lists: [(f64, &[f64]); 4] =
            [(-1.5, &[0.0, 0.25, 3.0]), (0.0, &[]), (2.0, &[0.0, 1e-300, 7.5]), (-1.0, &[1.0])];
        let mut merged: Vec<f64> = lists.iter().flat_map(|(shift, list)| list.iter().map(move |x| shift + x)).collect();
        merged.sort_by(f64::total_cmp);
        for (k, expected) in merged.iter().enumerate() {
            assert_eq!(kth_smallest(&lists, k + 1), *expected, "{k}");
        }
    }
}
