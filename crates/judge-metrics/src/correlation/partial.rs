use crate::correlation::pearson::centred;
use crate::correlation::ranks::doubled_ranks;
use crate::distribution::correlation_tail;
use crate::estimate::Spread;
use crate::input::{check_finite, check_lengths, check_paired, check_varies};
use crate::sum::dot;
use crate::{Error, Estimate, NullDistribution};

/// What is left of a column relative to its spread, below which it counts as a linear function of the others.
const COLLINEAR: f64 = 1e-10;

/// Pearson's correlation of `x` and `y` with `covariates` held fixed, as `pingouin.partial_corr`.
///
/// It is the correlation of what is left of both after least-squares regression on the covariates and a constant. `x`, `y` and each
/// of the k covariates: n ≥ k + 3 finite numbers. Without covariates it is [`pearson`](super::pearson).
///
/// The p-value is Student's t with n − k − 2 degrees of freedom, exact for normal samples. The interval is Fisher's with n − k in place of
/// n.
///
/// # Errors
///
/// [`Error::LengthMismatch`], [`Error::TooFewItems`], [`Error::NonFinite`], [`Error::Constant`]; [`Error::Collinear`] where a
/// covariate is constant or a linear function of those before it, or `x` or `y` is one of the covariates: of the column's own
/// spread less than 10⁻¹⁰ is left.
///
/// ```
/// use judge_metrics::correlation::partial_pearson;
///
/// let judge = [3.0, 4.5, 2.0, 5.0, 3.5, 4.0];
/// let human = [3.0, 4.0, 2.0, 4.0, 4.0, 3.0];
/// let words = [120.0, 180.0, 60.0, 260.0, 90.0, 210.0];
/// let given_length = partial_pearson(&judge, &human, &[&words])?;
/// assert!((given_length.estimate - 0.974_313).abs() < 1e-6);
/// let interval = given_length.interval(0.95)?;
/// assert!((interval.low - 0.656_0).abs() < 1e-3);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[doc(alias = "partial_corr")]
pub fn partial_pearson(x: &[f64], y: &[f64], covariates: &[&[f64]]) -> Result<Estimate, Error> {
    check(x, y, covariates)?;
    partial(centred(x), centred(y), covariates.iter().map(|column| centred(column)), NullDistribution::Beta)
}

/// Spearman's correlation of `x` and `y` with `covariates` held fixed, as `pingouin.partial_corr(…, method="spearman")`.
///
/// It is [`partial_pearson`] of the average ranks of all columns, with the same arguments and errors; the p-value is an
/// approximation, and no interval is known in closed form.
///
/// ```
/// use judge_metrics::correlation::partial_spearman;
///
/// let judge = [3.0, 4.5, 2.0, 5.0, 3.5, 4.0];
/// let human = [3.0, 4.0, 2.0, 4.0, 4.0, 3.0];
/// let words = [120.0, 180.0, 60.0, 260.0, 90.0, 210.0];
/// let same = words.map(f64::ln);
/// assert_eq!(partial_spearman(&judge, &human, &[&words])?, partial_spearman(&judge, &human, &[&same])?);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[doc(alias = "partial_corr")]
pub fn partial_spearman(x: &[f64], y: &[f64], covariates: &[&[f64]]) -> Result<Estimate, Error> {
    check(x, y, covariates)?;
    let ranks = |values: &[f64]| {
        let centre = values.len() as i64 + 1;
        doubled_ranks(values).into_iter().map(|rank| (rank - centre) as f64).collect()
    };
    partial(ranks(x), ranks(y), covariates.iter().map(|column| ranks(column)), NullDistribution::StudentT)
}

fn check(x: &[f64], y: &[f64], covariates: &[&[f64]]) -> Result<(), Error> {
    check_paired(x, y, covariates.len() + 3)?;
    for column in covariates {
        check_lengths("covariates", column.len(), "x", x.len())?;
        check_finite("covariates", column)?;
    }
    check_varies("x", x)?;
    check_varies("y", y)
}

/// Of columns of mean 0.
fn partial(
    mut x: Vec<f64>,
    mut y: Vec<f64>,
    covariates: impl Iterator<Item = Vec<f64>>,
    null_distribution: NullDistribution,
) -> Result<Estimate, Error> {
    let n = x.len();
    let mut basis: Vec<Vec<f64>> = Vec::new();
    for (index, mut column) in covariates.enumerate() {
        let left =
            remove(&basis, &mut column).ok_or(Error::Collinear { argument: "covariates", index: Some(index) })?;
        column.iter_mut().for_each(|value| *value /= left);
        basis.push(column);
    }
    let x_left = remove(&basis, &mut x).ok_or(Error::Collinear { argument: "x", index: None })?;
    let y_left = remove(&basis, &mut y).ok_or(Error::Collinear { argument: "y", index: None })?;

    let estimate = (dot(&x, &y) / x_left / y_left).clamp(-1.0, 1.0);
    let p_value = correlation_tail(estimate, (n - basis.len() - 2) as f64);
    let interval = Spread::Fisher { n: n - basis.len(), scale: 1.0, lost: 3 };
    let estimate = Estimate::new("the partial correlation", estimate, n)?.tested(p_value, null_distribution);
    // Of ranks no formula is known to cover.
    Ok(if null_distribution == NullDistribution::Beta { estimate.with_interval(interval) } else { estimate })
}

/// Subtracts the projection on the orthonormal `basis`; the length of what is left, unless that is rounding.
fn remove(basis: &[Vec<f64>], column: &mut [f64]) -> Option<f64> {
    let before = dot(column, column).sqrt();
    // Twice is enough (Kahan, in Parlett, *The Symmetric Eigenvalue Problem*, 6.9): what the first pass rounds, the second removes.
    for _ in 0..2 {
        for direction in basis {
            let share = dot(direction, column);
            column.iter_mut().zip(direction).for_each(|(value, direction)| *value -= share * direction);
        }
    }
    let left = dot(column, column).sqrt();
    (left > COLLINEAR * before).then_some(left)
}
