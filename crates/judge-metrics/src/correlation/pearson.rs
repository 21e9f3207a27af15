use crate::distribution::correlation_tail;
use crate::estimate::Spread;
use crate::input::check_varying_pair;
use crate::means::largest;
use crate::sum::{dot, sum};
use crate::{Error, Estimate, NullDistribution};

/// Pearson's product-moment correlation, with the p-value of `scipy.stats.pearsonr`.
///
/// `x`, `y`: n ≥ 2 finite numbers each, of any magnitude. The p-value is exact for independent normal samples, and so is, nearly,
/// the interval, [Fisher's](super::fisher_interval), for normal samples that depend on each other. With n = 2 the coefficient is 1 or -1
/// whatever the data, and the p-value 1.
///
/// The means are corrected by the mean of what is left after subtracting them, so a large common offset costs no accuracy;
/// SciPy subtracts once, which from offsets of about 1e11 times the spread on shows in its tenth digit.
///
/// # Errors
///
/// [`Error::LengthMismatch`], [`Error::TooFewItems`], [`Error::NonFinite`]; [`Error::Constant`] where all of `x` or all of
/// `y` is one value.
///
/// ```
/// let r = judge_metrics::correlation::pearson(&[1.0, 2.0, 3.0, 4.0], &[1.0, 3.0, 2.0, 5.0])?;
/// assert!((r.estimate - 0.831_522).abs() < 1e-6 && (r.p_value()? - 0.168_478).abs() < 1e-6);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[doc(alias = "pearsonr")]
#[doc(alias = "pointbiserialr")]
pub fn pearson(x: &[f64], y: &[f64]) -> Result<Estimate, Error> {
    check_varying_pair(x, y)?;

    let (x, y) = (centred(x), centred(y));
    let n = x.len();
    let r = (dot(&x, &y) / (dot(&x, &x).sqrt() * dot(&y, &y).sqrt())).clamp(-1.0, 1.0);
    let (estimate, p_value) = if n == 2 { (r.signum(), 1.0) } else { (r, correlation_tail(r, (n - 2) as f64)) };
    let interval = Spread::Fisher { n, scale: 1.0, lost: 3 };
    Ok(Estimate::new("Pearson's correlation", estimate, n)?
        .with_interval(interval)
        .tested(p_value, NullDistribution::Beta))
}

/// The deviations from the mean of finite `values`, up to a power of two that keeps sums of their squares in range.
pub(super) fn centred(values: &[f64]) -> Vec<f64> {
    let largest = largest(values);
    // Powers of two scale without rounding. Both land far enough from either end for squares of the smallest
    // deviations, 2^-53 of the largest value, and for sums of squares of the largest.
    let scale = match largest {
        huge if huge > 2f64.powi(300) => 2f64.powi(-600),
        tiny if tiny < 2f64.powi(-300) => 2f64.powi(700),
        _ => 1.0,
    };
    let mut deviations: Vec<f64> = values.iter().map(|value| value * scale).collect();
    // Twice: the first mean is rounded at the magnitude of the offset, the second at that of the spread.
    for _ in 0..2 {
        let mean = sum(&deviations) / deviations.len() as f64;
        deviations.iter_mut().for_each(|deviation| *deviation -= mean);
    }
    deviations
}
