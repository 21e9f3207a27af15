//! Intraclass correlations of ratings with gaps, from the variance components of a mixed model.

use std::collections::BTreeMap;

use super::mean_squares::{IntraclassForm, STATISTIC};
use crate::distribution::normal_two_sided_quantile;
use crate::input::{check_count, check_finite, check_lengths, check_level, unit_of};
use crate::means::largest;
use crate::newton::{Cholesky, logistic};
use crate::{Error, Interval};

/// An intraclass correlation and its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct MixedIntraclass {
    /// In [0, 1).
    pub estimate: f64,
    /// Those values whose profile likelihood is not significantly less.
    pub interval: Interval,
}

/// Ratings of subjects by raters, any of which may be missing, for intraclass correlations by restricted maximum likelihood (REML).
///
/// A rating is a mean, plus what is the subject's, plus what is the rater's (not in [`IntraclassForm::OneWay`]), plus a residual, all
/// normal and independent: the random model of McGraw and Wong (1996) without its balance. Where no rating is missing and no component is
/// below 0, the estimates are those of [`IntraclassCorrelations`](super::IntraclassCorrelations); a component that would be below 0 is 0.
/// Ratings must be missing for reasons that have nothing to do with the residual.
///
/// Components equal those of `statsmodels.regression.mixed_linear_model.MixedLM` with subjects and raters as variance components, but
/// are found to more digits: the likelihood depends on counts and sums of the subjects with 1, 2, … ratings alone, and is minimised
/// over two ratios of variances, the mean and the scale being eliminated.
///
/// The interval has the values whose deviance, with the best values of the other parameters, is within the quantile of χ² with one degree
/// of freedom. Few raters say little about how raters differ: of agreement it is then too narrow.
///
/// ```
/// use judge_metrics::agreement::{IntraclassForm, MixedRatings};
///
/// // Shrout and Fleiss (1979), table 2, without three of the ratings.
/// let known = [[9, 0, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 0, 6], [10, 5, 6, 9], [0, 2, 4, 7]];
/// let ratings = known.map(|row| row.map(|rating| (rating > 0).then(|| f64::from(rating))));
/// let found = MixedRatings::new(&ratings)?.intraclass(IntraclassForm::Agreement, 0.95)?;
/// assert!((found.estimate - 0.302_08).abs() < 1e-5);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct MixedRatings {
    n_raters: usize,
    /// Ratings of each rater, and their sum.
    by_rater: Vec<[f64; 2]>,
    /// Ratings, and the sum of their squares; they are centred.
    ratings: f64,
    squares: f64,
    /// The subjects with each number of ratings that occurs.
    subjects: BTreeMap<usize, Subjects>,
}

/// The subjects with so many ratings each.
#[derive(Debug, Clone, PartialEq)]
struct Subjects {
    count: f64,
    /// Of the subjects' sums: their sum, and that of their squares.
    sum: f64,
    squares: f64,
    /// Per rater, of those that it rated: their sums.
    by_rater: Vec<f64>,
    /// Per pair of raters, row-major: how many both rated.
    by_pair: Vec<f64>,
}

/// No share of the variance is larger: nearer to 1 rounding decides, and at 1 there is no residual.
const MOST: f64 = 1.0 - 1e-5;

impl MixedRatings {
    /// `ratings` has one row to a subject, one entry to a rater.
    ///
    /// # Errors
    ///
    /// [`Error::TooFewItems`] for fewer than two subjects with a rating, or two raters; [`Error::LengthMismatch`]; [`Error::InRow`] around
    /// [`Error::NonFinite`]; [`Error::Undefined`] where no subject has two ratings, or all ratings are one value.
    pub fn new<R: AsRef<[Option<f64>]>>(ratings: &[R]) -> Result<Self, Error> {
        let n_raters = ratings.first().map_or(0, |row| row.as_ref().len());
        for (row, of_subject) in ratings.iter().enumerate() {
            check_lengths("ratings", of_subject.as_ref().len(), "ratings[0]", n_raters)?;
            let given: Vec<f64> = of_subject.as_ref().iter().flatten().copied().collect();
            check_finite("ratings", &given).map_err(Error::in_row(row))?;
        }
        let all: Vec<f64> = ratings.iter().flat_map(|row| row.as_ref()).flatten().copied().collect();
        let rated: Vec<&[Option<f64>]> =
            ratings.iter().map(AsRef::as_ref).filter(|row| row.iter().any(Option::is_some)).collect();
        for found in [rated.len(), n_raters] {
            check_count(2, found)?;
        }
        if all.len() == rated.len() {
            return Err(Error::Undefined { statistic: STATISTIC, reason: "no subject has two ratings" });
        }
        if all.iter().all(|&rating| rating == all[0]) {
            return Err(Error::Undefined { statistic: STATISTIC, reason: "all ratings are one value" });
        }
        // No correlation depends on level or unit.
        let unit = unit_of(largest(&all));
        let mean = all.iter().map(|rating| rating * unit).sum::<f64>() / all.len() as f64;
        let centred = |rating: f64| rating * unit - mean;
        let none = Subjects {
            count: 0.0,
            sum: 0.0,
            squares: 0.0,
            by_rater: vec![0.0; n_raters],
            by_pair: vec![0.0; n_raters * n_raters],
        };
        let mut by_rater = vec![[0.0; 2]; n_raters];
        let mut subjects = BTreeMap::new();
        for row in rated {
            let given: Vec<(usize, f64)> =
                row.iter().enumerate().filter_map(|(rater, rating)| Some((rater, centred((*rating)?)))).collect();
            let sum: f64 = given.iter().map(|(_, rating)| rating).sum();
            let alike = subjects.entry(given.len()).or_insert_with(|| none.clone());
            (alike.count, alike.sum, alike.squares) = (alike.count + 1.0, alike.sum + sum, alike.squares + sum * sum);
            for &(rater, rating) in &given {
                by_rater[rater][0] += 1.0;
                by_rater[rater][1] += rating;
                alike.by_rater[rater] += sum;
                given.iter().for_each(|(other, _)| alike.by_pair[rater * n_raters + other] += 1.0);
            }
        }
        let squares = all.iter().map(|&rating| centred(rating).powi(2)).sum();
        Ok(Self { n_raters, by_rater, ratings: all.len() as f64, squares, subjects })
    }

    /// An intraclass correlation with its interval of nominal coverage `level` in (0, 1).
    ///
    /// # Errors
    ///
    /// [`Error::LevelOutOfRange`]; [`Error::Undefined`] where the model leaves no residual, as where raters agree exactly.
    pub fn intraclass(&self, form: IntraclassForm, level: f64) -> Result<MixedIntraclass, Error> {
        check_level(level)?;
        let profile = |icc: f64| match form {
            IntraclassForm::OneWay => self.deviance(icc, 0.0, 1.0 - icc),
            // The share of the raters in what is not the subjects'.
            IntraclassForm::Agreement => {
                minimum(|share| self.deviance(icc, (1.0 - icc) * share, (1.0 - icc) * (1.0 - share))).1
            }
            // Their share in all.
            IntraclassForm::Consistency => {
                minimum(|share| self.deviance(icc * (1.0 - share), share, (1.0 - icc) * (1.0 - share))).1
            }
        };
        let (estimate, least) = minimum(profile);
        // The search may end beside the largest value that it looks at.
        if estimate > MOST - 1e-7 {
            return Err(Error::Undefined {
                statistic: STATISTIC,
                reason: "the model leaves no residual: raters agree exactly",
            });
        }
        let limit = least + normal_two_sided_quantile(level).powi(2);
        // From inside to outside the interval.
        let end = |outside: f64| {
            if profile(outside) <= limit {
                return outside;
            }
            let (mut inside, mut outside) = (estimate, outside);
            for _ in 0..50 {
                let middle = f64::midpoint(inside, outside);
                if profile(middle) <= limit { inside = middle } else { outside = middle }
            }
            inside
        };
        Ok(MixedIntraclass { estimate, interval: Interval { low: end(0.0), high: end(MOST), level } })
    }

    /// −2 · restricted log-likelihood, but for a constant, with the best mean and scale, where the variances of subjects, raters and
    /// residuals are in these proportions, the last above 0.
    ///
    /// The covariance is residual · (I + s Zs Zs' + r Zr Zr'). Its inverse without raters is I less a(m) = s / (1 + s m) in each block of a
    /// subject with m ratings; raters are added by Woodbury's identity.
    fn deviance(&self, subject: f64, rater: f64, residual: f64) -> f64 {
        let (s, r, k) = (subject / residual, rater / residual, self.n_raters);
        let mut of_y = self.squares;
        let (mut of_both, mut of_ones, mut ln_determinant) = (0.0, self.ratings, 0.0);
        let mut y: Vec<f64> = self.by_rater.iter().map(|rater| rater[1]).collect();
        let mut ones: Vec<f64> = self.by_rater.iter().map(|rater| rater[0]).collect();
        let mut matrix = vec![0.0; k * k];
        (0..k).for_each(|rater| matrix[rater * k + rater] = 1.0 + r * self.by_rater[rater][0]);
        for (&m, subjects) in &self.subjects {
            let m = m as f64;
            let a = s / (1.0 + s * m);
            of_y -= a * subjects.squares;
            of_both -= a * m * subjects.sum;
            of_ones -= a * m * m * subjects.count;
            ln_determinant += subjects.count * (s * m).ln_1p();
            for rater in 0..k {
                y[rater] -= a * subjects.by_rater[rater];
                ones[rater] -= a * m * subjects.by_pair[rater * k + rater];
            }
            matrix.iter_mut().zip(&subjects.by_pair).for_each(|(cell, pairs)| *cell -= r * a * pairs);
        }
        // All eigenvalues are 1 or more; a matrix that rounding spoils is as unlikely as can be.
        let Some(factor) = Cholesky::new(&matrix, k) else { return f64::INFINITY };
        let (of_rater_y, of_rater_ones) = (factor.solve(&y), factor.solve(&ones));
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        of_y -= r * dot(&y, &of_rater_y);
        of_both -= r * dot(&ones, &of_rater_y);
        of_ones -= r * dot(&ones, &of_rater_ones);
        let rest = of_y - of_both * of_both / of_ones;
        let deviance = (self.ratings - 1.0) * rest.ln() + ln_determinant + factor.ln_determinant() + of_ones.ln();
        // What rounding leaves of a rest near 0 may be below it.
        if deviance.is_nan() { f64::INFINITY } else { deviance }
    }
}

/// Where on [0, [`MOST`]] a function is least, and its value there: 0, or the best point of a grid of log-odds and a golden section around
/// it. There may be several minima, one of them near 1.
fn minimum(of: impl Fn(f64) -> f64) -> (f64, f64) {
    const GRID: usize = 24;
    const STEPS: usize = 45;
    let ends = (MOST / (1.0 - MOST)).ln();
    let at = |point: usize| ends * (2.0 * point as f64 / GRID as f64 - 1.0);
    let of_odds = |log_odds: f64| (log_odds, of(logistic(log_odds).min(MOST)));
    let best = (0..=GRID).map(|point| (point, of_odds(at(point)).1)).min_by(|a, b| a.1.total_cmp(&b.1));
    let point = best.map_or(0, |(point, _)| point);
    let golden = (5_f64.sqrt() - 1.0) / 2.0;
    let (mut low, mut high) = (at(point.saturating_sub(1)), at((point + 1).min(GRID)));
    let inner = |low: f64, high: f64| [high - golden * (high - low), low + golden * (high - low)];
    let [mut left, mut right] = inner(low, high).map(of_odds);
    for _ in 0..STEPS {
        if left.1 <= right.1 {
            (high, right) = (right.0, left);
            left = of_odds(inner(low, high)[0]);
        } else {
            (low, left) = (left.0, right);
            right = of_odds(inner(low, high)[1]);
        }
    }
    let odds = [of_odds(at(point)), left, right].map(|(log_odds, value)| (logistic(log_odds).min(MOST), value));
    odds.into_iter().chain([(0.0, of(0.0))]).min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0.0, f64::INFINITY))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of pairs of raters for each number of ratings that might be would make time and memory cubic in the number of raters.
    #[test]
    fn numbers_of_ratings_that_do_not_occur_cost_nothing() {
        let row = |subject: usize| {
            let given = |rater: usize| (rater % 17 == subject % 17).then_some(((subject + rater) % 5) as f64);
            (0..51).map(given).collect()
        };
        let ratings: Vec<Vec<Option<f64>>> = (0..40).map(row).collect();
        let model = MixedRatings::new(&ratings).unwrap();
        assert_eq!(model.subjects.keys().collect::<Vec<_>>(), [&3]);
        assert!(model.intraclass(IntraclassForm::OneWay, 0.95).is_ok());
    }
}
