use crate::distribution::normal_two_sided_quantile;
use crate::input::{check_count, check_level};
use crate::{Error, Interval};

/// Fisher's interval of a Pearson correlation, as `scipy.stats.pearsonr(…).confidence_interval` computes it.
///
/// `r` in [-1, 1] is the correlation of `n` ≥ 2 pairs, `level` in (0, 1) the nominal coverage: tanh(atanh r ∓ z/√(n − 3)). Up to
/// n = 3 the data bound nothing and the interval is [-1, 1]; r = ±1, to 10⁻¹² in r², does not show how much it varies and has none, where
/// SciPy gives the point. It supposes normal samples; rank correlations and coarse or skewed scores have better intervals from
/// [`Bootstrap`](crate::resampling::Bootstrap).
///
/// # Errors
///
/// [`Error::NotACorrelation`], [`Error::TooFewItems`], [`Error::LevelOutOfRange`]; [`Error::Undefined`] for r = ±1 of more than three
/// pairs.
///
/// ```
/// let interval = judge_metrics::correlation::fisher_interval(0.6, 50, 0.95)?;
/// assert!((interval.low - 0.386_141).abs() < 1e-6 && (interval.high - 0.752_649).abs() < 1e-6);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn fisher_interval(r: f64, n: usize, level: f64) -> Result<Interval, Error> {
    on_fisher_scale(r, n, level, 1.0, 3)
}

/// tanh(atanh r ∓ z √(`scale` / (n − `lost`))): everything where nothing is left of n.
pub(crate) fn on_fisher_scale(r: f64, n: usize, level: f64, scale: f64, lost: usize) -> Result<Interval, Error> {
    check_correlation(r)?;
    check_count(2, n)?;
    check_level(level)?;
    if n <= lost {
        return Ok(Interval { low: -1.0, high: 1.0, level });
    }
    if is_perfect(r) {
        return Err(Error::Undefined {
            statistic: "Fisher's interval",
            reason: "a correlation of 1 or -1 has no Fisher z",
        });
    }
    let z = r.atanh();
    let half = normal_two_sided_quantile(level) * (scale / (n - lost) as f64).sqrt();
    Ok(Interval { low: (z - half).tanh(), high: (z + half).tanh(), level })
}

/// Whether a correlation is 1 or -1 but for rounding: that of equal columns may come out as 1 − 2⁻⁵³.
pub(crate) fn is_perfect(r: f64) -> bool {
    (0.0..1e-12).contains(&(1.0 - r * r))
}

pub(super) fn check_correlation(r: f64) -> Result<(), Error> {
    if (-1.0..=1.0).contains(&r) { Ok(()) } else { Err(Error::NotACorrelation { value: r }) }
}
