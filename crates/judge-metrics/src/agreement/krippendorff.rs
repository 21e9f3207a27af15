use crate::Error;
use crate::input::{check_lengths, unit_of};

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
/// An interval comes from [`RatedUnits`].
///
/// ```
/// use judge_metrics::agreement::{Measurement, krippendorff_alpha};
///
/// let ratings = [[Some(1.0), Some(1.0)], [Some(2.0), Some(2.0)], [Some(3.0), Some(2.0)], [Some(3.0), None]];
/// let alpha = krippendorff_alpha(&ratings, Measurement::Ordinal)?;
/// assert!((alpha - 7.0 / 9.0).abs() < 1e-12);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
///
/// O(ratings · log ratings); for [`Measurement::Ratio`] also quadratic in the number of distinct values.
///
/// # Errors
///
/// Those of [`RatedUnits::new`] and [`RatedUnits::alpha`].
pub fn krippendorff_alpha<R: AsRef<[Option<f64>]>>(ratings: &[R], measurement: Measurement) -> Result<f64, Error> {
    let units = RatedUnits::new(ratings)?;
    units.alpha(&(0..units.len()).collect::<Vec<_>>(), measurement)
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
        // Ordinal differences are those of ranks, as interval differences are those of values.
        let scaled = |unit: &[f64]| -> Vec<f64> {
            let rank = |&value: &f64| match measurement {
                Measurement::Ordinal => {
                    let below = values.partition_point(|&other| other < value);
                    let up_to = values.partition_point(|&other| other <= value);
                    (below + up_to) as f64 / 2.0
                }
                _ => value,
            };
            unit.iter().map(rank).collect()
        };
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
            let counts: Vec<(f64, f64)> =
                values.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as f64)).collect();
            if measurement == Measurement::Nominal {
                return n * n - counts.iter().map(|(_, count)| count * count).sum::<f64>();
            }
            let pairs = counts.iter().enumerate().flat_map(|(i, a)| counts[..i].iter().map(move |b| (a, b)));
            // The values differ and are not negative: their sum is above 0.
            pairs.map(|((a, of_a), (b, of_b))| 2.0 * of_a * of_b * ((a - b) / (a + b)).powi(2)).sum()
        }
    }
}
