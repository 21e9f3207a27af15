//! The standard normal distribution: tails and quantiles, to the digits that SciPy gives.

use std::f64::consts::{PI, SQRT_2};

use libm::{erf, erfc};
use statrs::function::erf::{erf_inv, erfc_inv};

/// P(Z ≤ z) for a standard normal Z.
pub(crate) fn normal_cdf(z: f64) -> f64 {
    0.5 * erfc(-z / SQRT_2)
}

/// P(|Z| ≥ |z|) for a standard normal Z.
pub(crate) fn normal_tail(z: f64) -> f64 {
    erfc(z.abs() / SQRT_2)
}

/// z with P(Z ≤ z) = `p`; 0 < `p` < 1.
pub(crate) fn normal_quantile(p: f64) -> f64 {
    // 2p − 1 and 1 − p are exact where each is used: the one from p = 1/4 to 3/4, the other above 1/2.
    let magnitude = quantile((2.0 * p - 1.0).abs(), 2.0 * p.min(1.0 - p));
    if p < 0.5 { -magnitude } else { magnitude }
}

/// z with P(|Z| ≤ z) = `level`; 0 < `level` < 1.
pub(crate) fn normal_two_sided_quantile(level: f64) -> f64 {
    quantile(level, 1.0 - level)
}

/// z ≥ 0 with P(|Z| ≤ z) = `centre` and P(|Z| > z) = `tails`, of which the smaller one is exact.
fn quantile(centre: f64, tails: f64) -> f64 {
    // Good to about ten digits; one Newton step in the smaller of the two doubles them.
    let start = SQRT_2 * if centre < 0.5 { erf_inv(centre) } else { erfc_inv(tails) };
    let density = (2.0 / PI).sqrt() * (-0.5 * start * start).exp();
    if density == 0.0 {
        return start;
    }
    let excess = if centre < 0.5 { erf(start / SQRT_2) - centre } else { tails - erfc(start / SQRT_2) };
    let step = excess / density;
    // Halley's correction: the density falls with z.
    start - step / (1.0 + 0.5 * start * step)
}
