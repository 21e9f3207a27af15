use crate::correlation::pearson;
use crate::estimate::{Missing, Spread};
use crate::input::{check_count, check_finite, check_lengths, unit_of};
use crate::sum::sum;
use crate::{Error, Estimate};

/// How many independent raters a panel is worth whose errors correlate, such as judges of one family.
///
/// It is the mean variance of a member's error over the variance of the panel's, whose score is the mean of its members': averaging k
/// raters with independent errors of one variance divides the variance by k, and whatever divides it by less is worth fewer. With errors of
/// one variance and a mean correlation r between two members it is k / (1 + (k − 1) r), k over Kish's design effect (1965, section 8.2),
/// and it cannot exceed 1 / r however many such raters join. The algebra is that of the formula of Spearman and Brown for the reliability
/// of k parallel tests, k r / (1 + (k − 1) r), which is r times this; but there r is of what is to be measured, and here of what is not.
///
/// Errors are taken about their means: a bias that a member has on all items neither counts nor averages out. Correlations below 0 give
/// more than k. Unequal variances are averaged as they are, so a member with little error makes the figure low where averaging with others
/// adds to its error.
///
/// ```
/// use judge_metrics::aggregation::PanelSize;
///
/// // Of three judges two are copies of each other: worth about two.
/// let people = [1.0, 2.0, 3.0, 4.0, 5.0, 3.0, 2.0, 4.0];
/// let (a, b) = ([1.5, 1.5, 3.5, 3.5, 5.5, 2.5, 2.5, 3.5], [1.5, 2.5, 2.5, 3.5, 5.5, 3.5, 1.5, 3.5]);
/// let panel: Vec<[f64; 3]> = (0..8).map(|item| [a[item], a[item], b[item]]).collect();
/// let size = PanelSize::of_scores(&people, &panel)?;
/// assert!((size.effective.estimate - 1.8).abs() < 1e-12);
/// assert!((size.correlation - 1.0 / 3.0).abs() < 1e-12);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct PanelSize {
    /// The effective number of raters, at least 1 but for rounding. Its standard error and interval are those of the jackknife over items,
    /// on the scale of logarithms with Student's t of n − 1 degrees of freedom, cut off at 1, items being independent: of nominal 95 % it
    /// covered 94.1 to 95.2 % for panels of 3 to 10 right or wrong members with 30 to 100 items (the test
    /// `intervals_of_a_panels_size_cover_it`).
    pub effective: Estimate,
    /// Raters on the panel, k.
    pub n_raters: usize,
    /// The mean covariance of two members' errors over their mean variance, in [−1/(k − 1), 1]: with it Kish's formula gives the effective
    /// number exactly.
    pub correlation: f64,
    /// The mean over pairs of members of Pearson's correlation of their errors, which is the same where variances are; `None` where some
    /// member's error does not vary.
    pub mean_correlation: Option<f64>,
}

const STATISTIC: &str = "the effective number of raters";

impl PanelSize {
    /// A panel that gives numbers: an error is a member's score minus people's. `people` has one number to an item; `ratings` one row to an
    /// item and one entry to a rater, no gaps; all in one unit.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`], [`Error::NonFinite`]; [`Error::InRow`] around what is wrong with a row; [`Error::TooFewItems`] for fewer
    /// than two items or raters; [`Error::Undefined`] where no member's error varies by more than rounding, where the errors of all cancel
    /// out on every item, and on overflow.
    pub fn of_scores<R: AsRef<[f64]>>(people: &[f64], ratings: &[R]) -> Result<Self, Error> {
        check_finite("people", people)?;
        check_lengths("ratings", ratings.len(), "people", people.len())?;
        let n_raters = raters(ratings.iter().map(|row| row.as_ref().len()))?;
        for (row, scores) in ratings.iter().enumerate() {
            check_finite("ratings", scores.as_ref()).map_err(Error::in_row(row))?;
        }
        let largest = ratings.iter().flat_map(AsRef::as_ref).chain(people).fold(0.0, |most: f64, x| most.max(x.abs()));
        let unit = unit_of(largest);
        let rows = people.iter().zip(ratings);
        let errors = rows.map(|(right, row)| row.as_ref().iter().map(|x| x * unit - right * unit).collect()).collect();
        Self::of_errors(n_raters, errors, largest * unit)
    }

    /// A panel whose verdicts are right or wrong: an error is 1 where a member is wrong, and what is averaged is the share of the panel
    /// that is. One row to an item, one entry to a rater, no gaps.
    ///
    /// Wrong verdicts correlate where items differ in difficulty, not only where judges are alike; both cost a panel the same.
    ///
    /// # Errors
    ///
    /// As [`of_scores`](Self::of_scores), but for numbers that are not finite.
    pub fn of_verdicts<R: AsRef<[bool]>>(right: &[R]) -> Result<Self, Error> {
        let n_raters = raters(right.iter().map(|row| row.as_ref().len()))?;
        let wrong = |row: &R| row.as_ref().iter().map(|&right| f64::from(!right)).collect();
        Self::of_errors(n_raters, right.iter().map(wrong).collect(), 1.0)
    }

    /// `largest` is the size of what the errors are differences of, which they are rounded by.
    fn of_errors(n_raters: usize, errors: Vec<Vec<f64>>, largest: f64) -> Result<Self, Error> {
        let n = errors.len();
        check_count(2, n)?;
        let k = n_raters as f64;
        let column = |rater: usize| errors.iter().map(|row| row[rater]).collect::<Vec<f64>>();
        let deviations: Vec<Vec<f64>> = (0..n_raters).map(|rater| about_mean(&column(rater))).collect();
        let of_panel: Vec<f64> = errors.iter().map(|row| row.iter().sum::<f64>() / k).collect();
        // Each item's part in the mean variance of a member, and in that of the panel; both times n − 1.
        let of_members: Vec<f64> =
            (0..n).map(|item| deviations.iter().map(|of| of[item] * of[item]).sum::<f64>() / k).collect();
        let of_panel: Vec<f64> = about_mean(&of_panel).iter().map(|deviation| deviation * deviation).collect();
        let (members, panel) = (sum(&of_members), sum(&of_panel));

        let rounding = n as f64 * (1e-14 * largest).powi(2);
        let undefined = |reason| Err(Error::Undefined { statistic: STATISTIC, reason });
        if members <= rounding {
            return undefined("no rater's error varies");
        }
        if panel <= rounding {
            return undefined("the raters' errors cancel out on every item");
        }
        let effective = members / panel;
        let varies = |of: &Vec<f64>| of.iter().map(|deviation| deviation * deviation).sum::<f64>() > rounding;
        Ok(Self {
            effective: with_jackknife(Estimate::new(STATISTIC, effective, n)?, [&of_members, &of_panel]),
            n_raters,
            correlation: (k / effective - 1.0) / (k - 1.0),
            mean_correlation: if deviations.iter().all(varies) { Some(mean_correlation(&deviations)?) } else { None },
        })
    }

    /// The most that any number of raters with errors of this correlation would be worth, 1/r; `None` where r is not above 0, so that there
    /// is no limit.
    #[must_use]
    pub fn limit(&self) -> Option<f64> {
        (self.correlation > 0.0).then(|| 1.0 / self.correlation)
    }
}

/// The width that all rows have, at least 2.
fn raters(widths: impl Iterator<Item = usize>) -> Result<usize, Error> {
    let mut known = None;
    for (row, width) in widths.enumerate() {
        let first = *known.get_or_insert(width);
        check_lengths("ratings", width, "the first row", first).map_err(Error::in_row(row))?;
    }
    match known {
        Some(width) if width >= 2 => Ok(width),
        other => Err(Error::TooFewItems { required: 2, found: other.unwrap_or(0) }),
    }
}

fn about_mean(values: &[f64]) -> Vec<f64> {
    let mean = sum(values) / values.len() as f64;
    values.iter().map(|value| value - mean).collect()
}

/// Leaving out an item with the squared deviation d² from the mean lowers a sum of n squares by d² n / (n − 1).
fn with_jackknife(ratio: Estimate, squares: [&[f64]; 2]) -> Estimate {
    let n = ratio.n as f64;
    if ratio.n < 3 {
        return ratio.without_error(Missing::TooFewItems { required: 3, found: ratio.n });
    }
    let totals = squares.map(sum);
    let left_out = |item: usize| -> f64 {
        let [members, panel] = [0, 1].map(|of| totals[of] - squares[of][item] * n / (n - 1.0));
        // Rounding may leave a little of nothing.
        if members > 1e-12 * totals[0] && panel > 1e-12 * totals[1] { (members / panel).ln() } else { f64::NAN }
    };
    let replicates: Vec<f64> = (0..ratio.n).map(left_out).collect();
    if replicates.iter().any(|replicate| replicate.is_nan()) {
        return ratio.without_error(Missing::Because("without one of the items errors do not vary: no jackknife"));
    }
    let spread: f64 = about_mean(&replicates).iter().map(|deviation| deviation * deviation).sum();
    let standard_error = ratio.estimate * ((n - 1.0) / n * spread).sqrt();
    ratio.with_error(standard_error, Spread::Log { degrees_of_freedom: n - 1.0, least: 1.0 })
}

fn mean_correlation(columns: &[Vec<f64>]) -> Result<f64, Error> {
    let (mut total, mut pairs) = (0.0, 0.0);
    for (i, first) in columns.iter().enumerate() {
        for second in &columns[..i] {
            total += pearson(first, second)?.estimate;
            pairs += 1.0;
        }
    }
    Ok(total / pairs)
}
