use crate::Error;
use crate::input::check_lengths;

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
/// `ratings` has one row to a rater, one entry to a unit; units with fewer than two ratings are left out. At most 1, which is full
/// agreement; 0 is what chance gives; below 0 raters disagree systematically. Names are numbers here: any code will do for
/// [`Measurement::Nominal`].
///
/// Krippendorff's own bootstrap draws disagreements; the usual one draws units:
///
/// ```
/// use judge_metrics::agreement::{Measurement, krippendorff_alpha};
/// use judge_metrics::resampling::Bootstrap;
///
/// let ratings = [
///     [Some(1.0), Some(2.0), Some(3.0), Some(3.0), Some(2.0), Some(1.0), Some(4.0), None],
///     [Some(1.0), Some(2.0), Some(3.0), Some(3.0), Some(2.0), Some(2.0), Some(4.0), Some(1.0)],
///     [None, Some(3.0), Some(3.0), Some(3.0), Some(2.0), Some(3.0), Some(4.0), Some(1.0)],
/// ];
/// let alpha = krippendorff_alpha(&ratings, Measurement::Ordinal)?;
/// assert!((alpha - 0.804_458_9).abs() < 1e-7);
/// let interval = Bootstrap { resamples: 500, ..Bootstrap::default() }.interval(8, |units| {
///     let drawn = ratings.map(|rater| units.iter().map(|&unit| rater[unit]).collect::<Vec<_>>());
///     krippendorff_alpha(&drawn, Measurement::Ordinal)
/// })?;
/// assert!(interval.interval.low < alpha);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
///
/// O(ratings · log ratings); for [`Measurement::Ratio`] also quadratic in the number of distinct values.
///
/// # Errors
///
/// [`Error::TooFewItems`] for fewer than two raters, [`Error::LengthMismatch`], [`Error::NonFinite`], [`Error::OutOfRange`] for a negative
/// rating with [`Measurement::Ratio`]; [`Error::Undefined`] where no unit has two ratings or all ratings are one value.
pub fn krippendorff_alpha<R: AsRef<[Option<f64>]>>(ratings: &[R], measurement: Measurement) -> Result<f64, Error> {
    if ratings.len() < 2 {
        return Err(Error::TooFewItems { required: 2, found: ratings.len() });
    }
    let n_units = ratings[0].as_ref().len();
    for rater in ratings {
        check_lengths("ratings", rater.as_ref().len(), "ratings[0]", n_units)?;
        for (index, &value) in rater.as_ref().iter().enumerate() {
            let Some(value) = value else { continue };
            if !value.is_finite() {
                return Err(Error::NonFinite { argument: "ratings", index, value });
            }
            if measurement == Measurement::Ratio && value < 0.0 {
                let (low, high) = (0.0, f64::MAX);
                return Err(Error::OutOfRange { argument: "ratings", index: Some(index), value, low, high });
            }
        }
    }
    let units: Vec<Vec<f64>> = (0..n_units)
        // -0 and +0 are one value.
        .map(|unit| ratings.iter().filter_map(|rater| rater.as_ref()[unit]).map(|value| value + 0.0).collect())
        .filter(|unit: &Vec<f64>| unit.len() >= 2)
        .collect();
    let mut values: Vec<f64> = units.iter().flatten().copied().collect();
    let undefined = |reason| Error::Undefined { statistic: "Krippendorff's alpha", reason };
    if values.is_empty() {
        return Err(undefined("no unit has two ratings"));
    }
    values.sort_unstable_by(f64::total_cmp);
    if values.first() == values.last() {
        return Err(undefined("all ratings are one value"));
    }
    // Ordinal differences are those of ranks, as interval differences are those of values.
    let scale = |value: f64| match measurement {
        Measurement::Ordinal => {
            let below = values.partition_point(|&other| other < value);
            let up_to = values.partition_point(|&other| other <= value);
            (below + up_to) as f64 / 2.0
        }
        _ => value,
    };
    let disagreement = |values: &[f64]| -> f64 {
        let scaled: Vec<f64> = values.iter().map(|&value| scale(value)).collect();
        pair_disagreement(&scaled, measurement) / (values.len() - 1) as f64
    };
    let observed: f64 = units.iter().map(|unit| disagreement(unit)).sum();
    Ok(1.0 - observed / disagreement(&values))
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
