use std::collections::BTreeMap;

use crate::agreement::influence::over_subjects;
use crate::estimate::Missing;
use crate::input::{check_count, check_lengths, unit_of};
use crate::means::largest;
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
/// Ratings are sorted, and units with the same ratings put together, once for all resamples: a resample costs O(units), and O(raters) for
/// each kind of unit that it holds.
#[derive(Debug, Clone, PartialEq)]
pub struct RatedUnits {
    /// The distinct ratings that are compared, ascending, times `scale`.
    values: Vec<f64>,
    /// Each unit's kind; `None` with fewer than two ratings.
    kinds: Vec<Option<usize>>,
    /// Units of two ratings or more that differ in some rating: places in `values`, ascending.
    distinct: Vec<Vec<usize>>,
    /// A power of two.
    scale: f64,
}

/// Ratings and how often each occurs: where it lies, and its count.
type Counted = (f64, f64);

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
        let mut known: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
        let mut kind = |unit: &R| {
            let given = unit.as_ref().iter().flatten().map(scaled);
            let mut places: Vec<usize> = given.map(|value| values.partition_point(|&other| other < value)).collect();
            places.sort_unstable();
            let next = known.len();
            *known.entry(places).or_insert(next)
        };
        let kinds: Vec<Option<usize>> = ratings.iter().map(|unit| compared(&unit).then(|| kind(unit))).collect();
        let mut distinct = vec![Vec::new(); known.len()];
        known.into_iter().for_each(|(places, kind)| distinct[kind] = places);
        Ok(Self { values, kinds, distinct, scale })
    }

    /// Number of units, those with fewer than two ratings included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Whether there is no unit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Alpha of some of the units, given by their indices, in any order, with repetition: pairs of ratings from two copies of one unit are
    /// left out of what chance would give. Of each unit once it is [`krippendorff_alpha`].
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] for an index that no unit has, and for a negative rating with [`Measurement::Ratio`]; [`Error::Undefined`]
    /// where no unit has two ratings, all ratings are one value, or those drawn are too small beside the others for squares.
    pub fn alpha(&self, units: &[usize], measurement: Measurement) -> Result<f64, Error> {
        let mut copies = vec![0_u32; self.kinds.len()];
        for (index, &unit) in units.iter().enumerate() {
            let Some(copies) = copies.get_mut(unit) else {
                let (value, high) = (unit as f64, self.kinds.len() as f64 - 1.0);
                return Err(Error::OutOfRange { argument: "units", index: Some(index), value, low: 0.0, high });
            };
            *copies += 1;
        }
        // Of each kind: units, and pairs of copies of one unit.
        let mut drawn = vec![(0.0, 0.0); self.distinct.len()];
        for (kind, copies) in self.kinds.iter().zip(copies) {
            if let Some(kind) = kind {
                let copies = f64::from(copies);
                drawn[*kind].0 += copies;
                drawn[*kind].1 += copies * (copies - 1.0);
            }
        }
        let counts = self.counts(drawn.iter().map(|&(units, _)| units));
        let undefined = |reason| Error::Undefined { statistic: "Krippendorff's alpha", reason };
        let mut found = self.values.iter().zip(&counts).filter(|(_, count)| **count > 0.0).map(|(value, _)| *value);
        let Some(least) = found.next() else { return Err(undefined("no unit has two ratings")) };
        if measurement == Measurement::Ratio && least < 0.0 {
            let value = least / self.scale;
            return Err(Error::OutOfRange { argument: "ratings", index: None, value, low: 0.0, high: f64::MAX });
        }
        if found.next().is_none() {
            return Err(undefined("all ratings are one value"));
        }
        let places = self.places(&counts, measurement);
        let (mut observed, mut between_copies, mut pairs_of_copies) = (0.0, 0.0, 0.0);
        let mut own = Vec::new();
        for (unit, (units, pairs)) in self.distinct.iter().zip(drawn) {
            if units > 0.0 {
                let m = unit.len() as f64;
                count_places(unit, &places, &mut own);
                let within = pair_disagreement(&own, measurement);
                observed += units * within / (m - 1.0);
                between_copies += pairs * within;
                pairs_of_copies += pairs * m * m;
            }
        }
        let n: f64 = counts.iter().sum();
        let all: Vec<Counted> = places.into_iter().zip(counts).filter(|(_, count)| *count > 0.0).collect();
        let expected = pair_disagreement(&all, measurement) - between_copies;
        if expected <= 0.0 {
            return Err(undefined("its ratings are too close together for the squares of their differences"));
        }
        // Both sums per pair of ratings: n for the observed one, n (n − 1) less the pairs left out for the expected one.
        Ok(1.0 - observed / expected * ((n * (n - 1.0) - pairs_of_copies) / n))
    }

    /// How often each value is given, of so many units of each kind.
    fn counts(&self, units: impl Iterator<Item = f64>) -> Vec<f64> {
        let mut counts = vec![0.0; self.values.len()];
        for (places, units) in self.distinct.iter().zip(units) {
            places.iter().for_each(|&place| counts[place] += units);
        }
        counts
    }

    /// Where each value lies when values occur so often: ordinal differences are those of ranks, as interval ones are those of values.
    fn places(&self, counts: &[f64], measurement: Measurement) -> Vec<f64> {
        if measurement != Measurement::Ordinal {
            return self.values.clone();
        }
        let ranks = counts.iter().scan(0.0, |below, count| {
            let rank = *below + count / 2.0;
            *below += count;
            Some(rank)
        });
        ranks.collect()
    }

    /// Of each unit once, with its standard error.
    fn estimate(&self, measurement: Measurement) -> Result<Estimate, Error> {
        let alpha = self.alpha(&(0..self.len()).collect::<Vec<_>>(), measurement)?;
        let units: Vec<usize> = self.kinds.iter().copied().flatten().collect();
        let mut of_kind = vec![0.0; self.distinct.len()];
        units.iter().for_each(|&kind| of_kind[kind] += 1.0);
        let counts = self.counts(of_kind.into_iter());
        let places = self.places(&counts, measurement);
        let with_all = disagreement_with_all(&places, &counts, measurement);
        let mean_ratings = counts.iter().sum::<f64>() / units.len() as f64;
        // Disagreement within a unit of each kind, and of its ratings with all ratings, as shares of a rating.
        let mut own = Vec::new();
        let of_kinds: Vec<[f64; 2]> = self
            .distinct
            .iter()
            .map(|unit| {
                count_places(unit, &places, &mut own);
                let chance = unit.iter().map(|&place| with_all[place]).sum::<f64>() / mean_ratings;
                [pair_disagreement(&own, measurement) / (unit.len() as f64 - 1.0) / mean_ratings, chance]
            })
            .collect();
        let mean = |of: usize| units.iter().map(|&kind| of_kinds[kind][of]).sum::<f64>() / units.len() as f64;
        let chance = mean(1);
        // What alpha would be short of 1 in infinitely many units like these.
        let missed = mean(0) / chance;
        let influences: Vec<f64> = units
            .iter()
            .map(|&kind| {
                let [observed, expected] = of_kinds[kind];
                let weight = self.distinct[kind].len() as f64 / mean_ratings;
                let own = missed - observed / chance - (1.0 - alpha) * (1.0 - weight);
                own - 2.0 * missed * (weight - expected / chance)
            })
            .collect();
        Ok(over_subjects("Krippendorff's alpha", alpha, &influences)?
            .tested_against_zero("all units are alike: the standard error is 0"))
    }
}

/// Of a unit, whose ratings ascend: where each distinct one lies, and how often it is given.
fn count_places(unit: &[usize], places: &[f64], counted: &mut Vec<Counted>) {
    counted.clear();
    counted.extend(unit.chunk_by(|a, b| a == b).map(|same| (places[same[0]], same.len() as f64)));
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

/// Of values that differ and are not negative, so that their sum is above 0.
fn relative(a: f64, b: f64) -> f64 {
    ((a - b) / (a + b)).powi(2)
}

/// Sum over all ordered pairs of ratings of their squared difference, distinct ratings being given with their counts.
fn pair_disagreement(ratings: &[Counted], measurement: Measurement) -> f64 {
    let n: f64 = ratings.iter().map(|(_, count)| count).sum();
    match measurement {
        Measurement::Ordinal | Measurement::Interval => {
            let mean = ratings.iter().map(|(place, count)| count * place).sum::<f64>() / n;
            2.0 * n * ratings.iter().map(|(place, count)| count * (place - mean).powi(2)).sum::<f64>()
        }
        Measurement::Nominal => n * n - ratings.iter().map(|(_, count)| count * count).sum::<f64>(),
        Measurement::Ratio => {
            let pairs = ratings.iter().enumerate().flat_map(|(i, a)| ratings[..i].iter().map(move |b| (a, b)));
            pairs.map(|(&(a, of_a), &(b, of_b))| 2.0 * of_a * of_b * relative(a, b)).sum()
        }
    }
}
