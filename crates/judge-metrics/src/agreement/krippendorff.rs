use crate::agreement::influence::over_subjects;
use crate::estimate::Missing;
use crate::input::{check_lengths, unit_of};
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

/// Whether two raters or more give different ratings. Otherwise alpha is 0 but for its correction for small samples, and its standard error 0 to first order.
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
#[derive(Debug, Clone, PartialEq)]
pub struct RatedUnits {
    /// The ratings of each unit, without gaps, times `scale`.
    units: Vec<Vec<f64>>,
    /// A power of two.
    scale: f64,
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
        if n_raters < 2 {
            return Err(Error::TooFewItems { required: 2, found: n_raters });
        }
        for (row, unit) in ratings.iter().enumerate() {
            check_lengths("ratings", unit.as_ref().len(), "ratings[0]", n_raters)?;
            let mut known = unit.as_ref().iter().enumerate().filter_map(|(rater, rating)| Some((rater, (*rating)?)));
            if let Some((index, value)) = known.find(|(_, value)| !value.is_finite()) {
                let error = Box::new(Error::NonFinite { argument: "ratings", index, value });
                return Err(Error::InRow { row, error });
            }
        }
        // No level of measurement depends on the unit, but squares of very large or small ratings would not be numbers. -0 and +0 are one value.
        let all = ratings.iter().flat_map(|unit| unit.as_ref()).flatten();
        let scale = unit_of(all.fold(0.0, |largest: f64, x| largest.max(x.abs())));
        let scaled = |unit: &R| unit.as_ref().iter().flatten().map(|value| value * scale + 0.0).collect();
        Ok(Self { units: ratings.iter().map(scaled).collect(), scale })
    }

    /// Number of units, those with fewer than two ratings included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.units.len()
    }

    /// Whether there is no unit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// Alpha of some of the units, given by their indices, in any order, with repetition: pairs of ratings from two copies of one unit are
    /// left out of what chance would give. Of each unit once it is [`krippendorff_alpha`].
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] for an index that no unit has, and for a negative rating with [`Measurement::Ratio`]; [`Error::Undefined`]
    /// where no unit has two ratings or all ratings are one value.
    pub fn alpha(&self, units: &[usize], measurement: Measurement) -> Result<f64, Error> {
        let mut copies = vec![0_usize; self.units.len()];
        for (index, &unit) in units.iter().enumerate() {
            let Some(copies) = copies.get_mut(unit) else {
                let (value, high) = (unit as f64, self.units.len() as f64 - 1.0);
                return Err(Error::OutOfRange { argument: "units", index: Some(index), value, low: 0.0, high });
            };
            *copies += 1;
        }
        let drawn: Vec<(&Vec<f64>, usize)> =
            self.units.iter().zip(copies).filter(|(unit, copies)| *copies > 0 && unit.len() >= 2).collect();
        let mut values: Vec<f64> =
            drawn.iter().flat_map(|(unit, copies)| std::iter::repeat_n(*unit, *copies).flatten()).copied().collect();
        let undefined = |reason| Error::Undefined { statistic: "Krippendorff's alpha", reason };
        if values.is_empty() {
            return Err(undefined("no unit has two ratings"));
        }
        values.sort_unstable_by(f64::total_cmp);
        if let (Measurement::Ratio, Some(&value)) = (measurement, values.first().filter(|&&least| least < 0.0)) {
            let value = value / self.scale;
            return Err(Error::OutOfRange { argument: "ratings", index: None, value, low: 0.0, high: f64::MAX });
        }
        if values.first() == values.last() {
            return Err(undefined("all ratings are one value"));
        }
        let scaled = |unit: &[f64]| unit.iter().map(|&rating| place(&values, rating, measurement)).collect::<Vec<_>>();
        let (mut observed, mut between_copies, mut pairs_of_copies) = (0.0, 0.0, 0.0);
        for (unit, copies) in drawn {
            let (m, copies) = (unit.len() as f64, copies as f64);
            let within = pair_disagreement(&scaled(unit), measurement);
            observed += copies * within / (m - 1.0);
            between_copies += copies * (copies - 1.0) * within;
            pairs_of_copies += copies * (copies - 1.0) * m * m;
        }
        let n = values.len() as f64;
        let expected = pair_disagreement(&scaled(&values), measurement) - between_copies;
        // Both sums per pair of ratings: n for the observed one, n (n − 1) less the pairs left out for the expected one.
        Ok(1.0 - observed / expected * ((n * (n - 1.0) - pairs_of_copies) / n))
    }

    /// Of each unit once, with its standard error.
    fn estimate(&self, measurement: Measurement) -> Result<Estimate, Error> {
        let alpha = self.alpha(&(0..self.len()).collect::<Vec<_>>(), measurement)?;
        let units: Vec<&Vec<f64>> = self.units.iter().filter(|unit| unit.len() >= 2).collect();
        let mut values: Vec<f64> = units.iter().copied().flatten().copied().collect();
        values.sort_unstable_by(f64::total_cmp);
        let n = values.len() as f64;
        let with_all = disagreement_with_all(&values, measurement);
        let mean_ratings = n / units.len() as f64;
        // Disagreement within each unit, and of its ratings with all ratings, as shares of a rating.
        let of_units: Vec<[f64; 2]> = units
            .iter()
            .map(|unit| {
                let m = unit.len() as f64;
                let own: Vec<f64> = unit.iter().map(|&rating| place(&values, rating, measurement)).collect();
                let by_chance = |&rating: &f64| with_all[with_all.partition_point(|&(value, _)| value < rating)].1;
                let chance = unit.iter().map(by_chance).sum::<f64>() / mean_ratings;
                [pair_disagreement(&own, measurement) / (m - 1.0) / mean_ratings, chance]
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

/// Where a rating lies, of all ratings in ascending order: ordinal differences are those of ranks, as interval differences are those of values.
fn place(values: &[f64], rating: f64, measurement: Measurement) -> f64 {
    match measurement {
        Measurement::Ordinal => {
            let below = values.partition_point(|&other| other < rating);
            let up_to = values.partition_point(|&other| other <= rating);
            (below + up_to) as f64 / 2.0
        }
        _ => rating,
    }
}

/// Each distinct value of `values`, which ascend, with its mean squared difference from all of them.
fn disagreement_with_all(values: &[f64], measurement: Measurement) -> Vec<(f64, f64)> {
    let n = values.len() as f64;
    let counts: Vec<(f64, f64)> = counts(values).collect();
    let places: Vec<f64> = counts.iter().map(|&(value, _)| place(values, value, measurement)).collect();
    let weighed = |of: &dyn Fn(f64) -> f64| -> f64 {
        places.iter().zip(&counts).map(|(&place, (_, count))| count * of(place)).sum::<f64>() / n
    };
    let mean = weighed(&|place| place);
    let variance = weighed(&|place| (place - mean).powi(2));
    let with_all = |place: f64, count: f64| match measurement {
        Measurement::Nominal => 1.0 - count / n,
        Measurement::Ordinal | Measurement::Interval => (place - mean).powi(2) + variance,
        Measurement::Ratio => weighed(&|other| if other == place { 0.0 } else { relative(place, other) }),
    };
    counts.iter().zip(&places).map(|(&(value, count), &place)| (value, with_all(place, count))).collect()
}

/// Each distinct value of ascending `values`, and how often it occurs.
fn counts(values: &[f64]) -> impl Iterator<Item = (f64, f64)> + '_ {
    values.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as f64))
}

/// Of values that differ and are not negative, so that their sum is above 0.
fn relative(a: f64, b: f64) -> f64 {
    ((a - b) / (a + b)).powi(2)
}

/// Sum over all ordered pairs of values of their squared difference.
fn pair_disagreement(values: &[f64], measurement: Measurement) -> f64 {
    let n = values.len() as f64;
    match measurement {
        Measurement::Ordinal | Measurement::Interval => {
            let mean = values.iter().sum::<f64>() / n;
            2.0 * n * values.iter().map(|value| (value - mean).powi(2)).sum::<f64>()
        }
        Measurement::Nominal | Measurement::Ratio => {
            let mut values = values.to_vec();
            values.sort_unstable_by(f64::total_cmp);
            let counts: Vec<(f64, f64)> = counts(&values).collect();
            if measurement == Measurement::Nominal {
                return n * n - counts.iter().map(|(_, count)| count * count).sum::<f64>();
            }
            let pairs = counts.iter().enumerate().flat_map(|(i, a)| counts[..i].iter().map(move |b| (a, b)));
            pairs.map(|(&(a, of_a), &(b, of_b))| 2.0 * of_a * of_b * relative(a, b)).sum()
        }
    }
}
