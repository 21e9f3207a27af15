use std::borrow::Cow;

use crate::agreement::influence::over_subjects;
use crate::estimate::Missing;
use crate::input::{check_count, check_lengths, unit_of};
use crate::means::largest;
use crate::resampling::ranks_of_counts;
use crate::{Error, Estimate};

/// What differences between ratings mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measurement {
    /// Names: different or the same.
    Nominal,
    /// Grades in an order: the number of ratings between them.
    Ordinal,
    /// Numbers: the square of their difference.
    Interval,
    /// Numbers from a true zero, not negative: the square of their difference relative to their sum.
    Ratio,
}

/// Krippendorff's alpha, reliability of any number of raters with any ratings missing: `krippendorff.alpha` 0.9.0
/// (Krippendorff, *Content Analysis*, chapter 12).
///
/// `ratings` has one row to a unit, one entry to a rater; units with fewer than two ratings are left out. At most 1, which is full
/// agreement; 0 is what chance gives; below 0 raters disagree systematically. Names are numbers here: any code will do for
/// [`Measurement::Nominal`], but continuous scores will not, since hardly two of them are the same name.
///
/// The standard error is over units, the raters being given (Gwet, *Handbook of Inter-Rater Reliability*; `irrCAC.raw.CAC.krippendorff` of
/// Python); interval, cut off at 1, and test of no agreement beyond chance are Student's and take two units;
/// there is neither where fewer than two raters give different ratings, as with a constant judge. `n` counts the units with two
/// ratings or more. For [`Measurement::Ordinal`] it takes the distances of grades as given, though ranks are of the sample: in
/// simulations this cost 2 % of the standard error. Where units come in clusters, resample [`RatedUnits`].
///
/// ```
/// use judge_metrics::agreement::{Measurement, krippendorff_alpha};
///
/// let ratings = [[Some(1.0), Some(1.0)], [Some(2.0), Some(2.0)], [Some(3.0), Some(2.0)], [Some(3.0), None]];
/// let alpha = krippendorff_alpha(&ratings, Measurement::Ordinal)?;
/// assert!((alpha.estimate - 7.0 / 9.0).abs() < 1e-12 && alpha.n == 3);
/// assert!((alpha.standard_error()? - 0.254_383_8).abs() < 1e-7);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
///
/// O(ratings · log ratings); for [`Measurement::Ratio`] also quadratic in the number of distinct values.
///
/// # Errors
///
/// Those of [`RatedUnits::new`] and [`RatedUnits::alpha`].
pub fn krippendorff_alpha<R: AsRef<[Option<f64>]>>(ratings: &[R], measurement: Measurement) -> Result<Estimate, Error> {
    let alpha = RatedUnits::new(ratings)?.estimate(measurement)?;
    // Of one unit the reason is that it is one.
    Ok(if alpha.n < 2 || two_raters_vary(ratings) {
        alpha
    } else {
        alpha.without_interval(ONE_RATER_VARIES).untested(Missing::Because(ONE_RATER_VARIES))
    })
}

const ONE_RATER_VARIES: &str =
    "fewer than two raters give different ratings, so that no agreement beyond chance can show";

/// Whether two raters or more give different ratings. Otherwise alpha is 0 but for its correction for small samples, and its standard error
/// 0 to first order.
pub(crate) fn two_raters_vary<R: AsRef<[Option<f64>]>>(ratings: &[R]) -> bool {
    let n_raters = ratings.first().map_or(0, |unit| unit.as_ref().len());
    let varies = |rater: &usize| {
        let mut given = ratings.iter().filter_map(|unit| unit.as_ref().get(*rater).copied().flatten());
        given.next().is_some_and(|first| given.any(|other| other != first))
    };
    (0..n_raters).filter(varies).count() >= 2
}

/// Units and their ratings, for Krippendorff's alpha of resamples of the units.
///
/// Alpha compares the disagreement within units with that between all ratings. A bootstrap that computed [`krippendorff_alpha`] of
/// the drawn units would count two copies of one unit as two units: they disagree no more than one does, so the disagreement expected by
/// chance comes out too small by a factor of about 1 − 1/n, and alpha too low by about (1 − α)/n. Where alpha hardly varies, the
/// whole percentile interval then lies below the estimate. [`alpha`](Self::alpha) leaves out the pairs between copies of a unit. What is
/// expected by chance is then a U-statistic of the drawn units, whose mean over resamples is the expected disagreement of the data (on the
/// bootstrap of U-statistics: Arcones and Giné, 1992).
///
/// Krippendorff's own bootstrap keeps the expected disagreement as it is and draws the observed one alone.
///
/// ```
/// use judge_metrics::agreement::{Measurement, RatedUnits};
/// use judge_metrics::resampling::Bootstrap;
///
/// let ratings = [
///     [Some(1.0), Some(1.0), None],
///     [Some(2.0), Some(2.0), Some(3.0)],
///     [Some(3.0), Some(3.0), Some(3.0)],
///     [Some(3.0), Some(3.0), Some(3.0)],
///     [Some(2.0), Some(2.0), Some(2.0)],
///     [Some(1.0), Some(2.0), Some(3.0)],
///     [Some(4.0), Some(4.0), Some(4.0)],
///     [None, Some(1.0), Some(1.0)],
/// ];
/// let units = RatedUnits::new(&ratings)?;
/// let bootstrap = Bootstrap { resamples: 500, ..Bootstrap::default() };
/// let alpha = bootstrap.interval(units.len(), |drawn| units.alpha(drawn, Measurement::Ordinal))?;
/// assert!((alpha.estimate - 0.804_458_9).abs() < 1e-7);
/// assert!(alpha.interval.low < alpha.estimate && alpha.estimate < alpha.interval.high);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
///
/// Ratings are sorted once for all resamples: a resample costs O(its ratings), for [`Measurement::Ordinal`] and
/// [`Measurement::Nominal`] also O(distinct ratings), and for [`Measurement::Ratio`] the square of these.
#[derive(Debug, Clone, PartialEq)]
pub struct RatedUnits {
    /// The distinct ratings that are compared, ascending, times `scale`.
    values: Vec<f64>,
    /// Where in `values` the ratings of each unit are, ascending, unit after unit; none of a unit with fewer than two ratings.
    places: Vec<usize>,
    /// Where in `places` each unit begins, and where the last one ends.
    starts: Vec<usize>,
    /// What is the same of a unit whatever is drawn with it.
    own: Vec<Own>,
    /// A power of two.
    scale: f64,
}

/// A unit's ratings by themselves; without ratings all is 0, and no place is least.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Own {
    count: f64,
    least: f64,
    /// How far the mean is above the least: of ratings that are large beside their differences, the mean itself would round these away.
    above: f64,
    /// Sum of the squared differences from the mean.
    squares: f64,
    /// Places of the least and the largest.
    ends: [usize; 2],
}

impl RatedUnits {
    /// `ratings` has one row to a unit, one entry to a rater, `None` where a rater gave none.
    ///
    /// # Errors
    ///
    /// [`Error::TooFewItems`] for no unit or fewer than two raters, [`Error::LengthMismatch`]; [`Error::InRow`] around
    /// [`Error::NonFinite`].
    pub fn new<R: AsRef<[Option<f64>]>>(ratings: &[R]) -> Result<Self, Error> {
        let Some(first) = ratings.first() else { return Err(Error::TooFewItems { required: 1, found: 0 }) };
        let n_raters = first.as_ref().len();
        check_count(2, n_raters)?;
        for (row, unit) in ratings.iter().enumerate() {
            check_lengths("ratings", unit.as_ref().len(), "ratings[0]", n_raters)?;
            let mut known = unit.as_ref().iter().enumerate().filter_map(|(rater, rating)| Some((rater, (*rating)?)));
            if let Some((index, value)) = known.find(|(_, value)| !value.is_finite()) {
                let error = Box::new(Error::NonFinite { argument: "ratings", index, value });
                return Err(Error::InRow { row, error });
            }
        }
        // No level of measurement depends on the unit, but squares of very large or small ratings would not be numbers. -0 and +0 are one
        // value.
        let compared = |unit: &&R| unit.as_ref().iter().flatten().count() >= 2;
        let given: Vec<f64> =
            ratings.iter().filter(compared).flat_map(|unit| unit.as_ref()).flatten().copied().collect();
        let scale = unit_of(largest(&given));
        let scaled = |value: &f64| value * scale + 0.0;
        let mut values: Vec<f64> = given.iter().map(scaled).collect();
        values.sort_unstable_by(f64::total_cmp);
        values.dedup();
        let mut places: Vec<usize> = Vec::with_capacity(given.len());
        let (mut starts, mut own) = (vec![0], Vec::with_capacity(ratings.len()));
        for unit in ratings {
            let start = places.len();
            if compared(&unit) {
                let given = unit.as_ref().iter().flatten().map(scaled);
                places.extend(given.map(|value| values.partition_point(|&other| other < value)));
                places[start..].sort_unstable();
            }
            starts.push(places.len());
            own.push(Own::new(&places[start..], &values));
        }
        Ok(Self { values, places, starts, own, scale })
    }

    /// Number of units, those with fewer than two ratings included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.own.len()
    }

    /// Whether there is no unit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.own.is_empty()
    }

    /// Alpha of some of the units, given by their indices, in any order, with repetition: pairs of ratings from two copies of one unit are
    /// left out of what chance would give. Of each unit once it is [`krippendorff_alpha`].
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] for an index that no unit has, and for a negative rating with [`Measurement::Ratio`]; [`Error::Undefined`]
    /// where no unit has two ratings, all ratings are one value, or those drawn are too small beside the others for squares.
    pub fn alpha(&self, units: &[usize], measurement: Measurement) -> Result<f64, Error> {
        let mut copies = vec![0_u32; self.len()];
        let (mut n, mut sum, mut ends) = (0.0, 0.0, NO_ENDS);
        for (index, &unit) in units.iter().enumerate() {
            let (Some(copies), Some(own)) = (copies.get_mut(unit), self.own.get(unit)) else {
                let (value, high) = (unit as f64, self.len() as f64 - 1.0);
                return Err(Error::OutOfRange { argument: "units", index: Some(index), value, low: 0.0, high });
            };
            *copies += 1;
            n += own.count;
            sum += own.count * (own.least + own.above);
            ends = [ends[0].min(own.ends[0]), ends[1].max(own.ends[1])];
        }
        let undefined = |reason| Error::Undefined { statistic: "Krippendorff's alpha", reason };
        let Some(&least) = self.values.get(ends[0]) else { return Err(undefined("no unit has two ratings")) };
        if measurement == Measurement::Ratio && least < 0.0 {
            let value = least / self.scale;
            return Err(Error::OutOfRange { argument: "ratings", index: None, value, low: 0.0, high: f64::MAX });
        }
        if ends[0] == ends[1] {
            return Err(undefined("all ratings are one value"));
        }
        // Where each value lies, and the disagreement of all ratings that are drawn.
        let values = Cow::Borrowed(self.values.as_slice());
        let (places, all) = match measurement {
            Measurement::Interval => {
                let mean = sum / n;
                let of_unit = |own: &Own| own.squares + own.count * (own.least - mean + own.above).powi(2);
                (values, 2.0 * n * units.iter().map(|&unit| of_unit(&self.own[unit])).sum::<f64>())
            }
            Measurement::Ordinal => {
                let (ranks, squares) = self.ranks(units);
                (Cow::Owned(ranks), 2.0 * n * squares)
            }
            Measurement::Nominal => {
                let equal: f64 = self.counts(units).into_iter().map(|count| (count as f64).powi(2)).sum();
                (values, n * n - equal)
            }
            Measurement::Ratio => {
                let counts = self.counts(units).into_iter().map(|count| count as f64);
                let given: Vec<(f64, f64)> = values.iter().copied().zip(counts).filter(|given| given.1 > 0.0).collect();
                (values, relative_disagreement(&given))
            }
        };
        let (mut observed, mut between_copies, mut pairs_of_copies) = (0.0, 0.0, 0.0);
        for &unit in units {
            let Own { count, squares, .. } = self.own[unit];
            let within = match measurement {
                Measurement::Interval => 2.0 * count * squares,
                _ => disagreement(self.unit(unit), &places, measurement),
            };
            let others = f64::from(copies[unit] - 1);
            observed += within / (count - 1.0);
            between_copies += others * within;
            pairs_of_copies += others * count * count;
        }
        let expected = all - between_copies;
        if expected <= 0.0 {
            return Err(undefined("its ratings are too close together for the squares of their differences"));
        }
        // Both sums per pair of ratings: n for the observed one, n (n − 1) less the pairs left out for the expected one.
        Ok(1.0 - observed / expected * ((n * (n - 1.0) - pairs_of_copies) / n))
    }

    /// Where in `values` the ratings of a unit are.
    fn unit(&self, unit: usize) -> &[usize] {
        &self.places[self.starts[unit]..self.starts[unit + 1]]
    }

    /// How often these units give each value.
    fn counts(&self, units: &[usize]) -> Vec<i64> {
        let mut counts = vec![0; self.values.len()];
        units.iter().flat_map(|&unit| self.unit(unit)).for_each(|&place| counts[place] += 1);
        counts
    }

    /// Twice each value's rank among the ratings of these units, less twice the mean rank, and the sum of their squares over all ratings:
    /// ordinal differences are those of ranks, as interval ones are those of values.
    fn ranks(&self, units: &[usize]) -> (Vec<f64>, f64) {
        let mut ranks = self.counts(units);
        let n = ranks.iter().sum();
        let squares = ranks_of_counts(&mut ranks, n);
        (ranks.into_iter().map(|rank| rank as f64).collect(), squares as f64)
    }

    /// Of each unit once, with its standard error.
    fn estimate(&self, measurement: Measurement) -> Result<Estimate, Error> {
        let all: Vec<usize> = (0..self.len()).collect();
        let alpha = self.alpha(&all, measurement)?;
        let counts: Vec<f64> = self.counts(&all).into_iter().map(|count| count as f64).collect();
        let places = match measurement {
            Measurement::Ordinal => Cow::Owned(self.ranks(&all).0),
            _ => Cow::Borrowed(self.values.as_slice()),
        };
        let with_all = disagreement_with_all(&places, &counts, measurement);
        let units: Vec<&[usize]> = all.iter().map(|&unit| self.unit(unit)).filter(|unit| !unit.is_empty()).collect();
        let mean_ratings = self.places.len() as f64 / units.len() as f64;
        // Disagreement within each unit, and of its ratings with all ratings, as shares of a rating.
        let of_units: Vec<[f64; 2]> = units
            .iter()
            .map(|unit| {
                let chance = unit.iter().map(|&place| with_all[place]).sum::<f64>() / mean_ratings;
                [disagreement(unit, &places, measurement) / (unit.len() as f64 - 1.0) / mean_ratings, chance]
            })
            .collect();
        let mean = |of: usize| of_units.iter().map(|unit| unit[of]).sum::<f64>() / units.len() as f64;
        let chance = mean(1);
        // What alpha would be short of 1 in infinitely many units like these.
        let missed = mean(0) / chance;
        let influences: Vec<f64> = units
            .iter()
            .zip(&of_units)
            .map(|(unit, [observed, expected])| {
                let weight = unit.len() as f64 / mean_ratings;
                let own = missed - observed / chance - (1.0 - alpha) * (1.0 - weight);
                own - 2.0 * missed * (weight - expected / chance)
            })
            .collect();
        Ok(over_subjects("Krippendorff's alpha", alpha, &influences)?
            .tested_against_zero("all units are alike: the standard error is 0"))
    }
}

/// The ends of no rating.
const NO_ENDS: [usize; 2] = [usize::MAX, 0];

impl Own {
    /// Of a unit whose ratings are at these places of the values, ascending.
    fn new(unit: &[usize], values: &[f64]) -> Self {
        let (Some(&first), Some(&last)) = (unit.first(), unit.last()) else {
            return Self { count: 0.0, least: 0.0, above: 0.0, squares: 0.0, ends: NO_ENDS };
        };
        let count = unit.len() as f64;
        let least = values[first];
        let above = unit.iter().map(|&place| values[place] - least).sum::<f64>() / count;
        let squares = disagreement(unit, values, Measurement::Interval) / (2.0 * count);
        Self { count, least, above, squares, ends: [first, last] }
    }
}

/// Sum over all ordered pairs of a unit's ratings of their squared difference. The unit has the places of its ratings, ascending, and
/// `values` says where these lie.
fn disagreement(unit: &[usize], values: &[f64], measurement: Measurement) -> f64 {
    let n = unit.len() as f64;
    match measurement {
        Measurement::Ordinal | Measurement::Interval => {
            // From one of them, so that equal ratings differ by nothing.
            let origin = unit.first().map_or(0.0, |&place| values[place]);
            let (mut sum, mut squares) = (0.0, 0.0);
            for &place in unit {
                let from_origin = values[place] - origin;
                sum += from_origin;
                squares += from_origin * from_origin;
            }
            2.0 * (n * squares - sum * sum)
        }
        Measurement::Nominal => {
            n * n - unit.chunk_by(|a, b| a == b).map(|same| (same.len() as f64).powi(2)).sum::<f64>()
        }
        Measurement::Ratio => {
            let given = unit.chunk_by(|a, b| a == b).map(|same| (values[same[0]], same.len() as f64));
            relative_disagreement(&given.collect::<Vec<_>>())
        }
    }
}

/// Each value's mean squared difference from all, which occur `counts` times.
fn disagreement_with_all(places: &[f64], counts: &[f64], measurement: Measurement) -> Vec<f64> {
    let n: f64 = counts.iter().sum();
    let weighed = |of: &dyn Fn(f64) -> f64| -> f64 {
        places.iter().zip(counts).map(|(&place, count)| count * of(place)).sum::<f64>() / n
    };
    let mean = weighed(&|place| place);
    let variance = weighed(&|place| (place - mean).powi(2));
    let with_all = |(&place, count): (&f64, &f64)| match measurement {
        Measurement::Nominal => 1.0 - count / n,
        Measurement::Ordinal | Measurement::Interval => (place - mean).powi(2) + variance,
        Measurement::Ratio => weighed(&|other| if other == place { 0.0 } else { relative(place, other) }),
    };
    places.iter().zip(counts).map(with_all).collect()
}

/// The same of distinct ratings and how often each is given, of their differences relative to their sums.
fn relative_disagreement(given: &[(f64, f64)]) -> f64 {
    let pairs = given.iter().enumerate().flat_map(|(i, a)| given[..i].iter().map(move |b| (a, b)));
    pairs.map(|(&(a, of_a), &(b, of_b))| 2.0 * of_a * of_b * relative(a, b)).sum()
}

/// Of values that differ and are not negative, so that their sum is above 0.
fn relative(a: f64, b: f64) -> f64 {
    ((a - b) / (a + b)).powi(2)
}
