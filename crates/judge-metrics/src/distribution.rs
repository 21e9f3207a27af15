//! Tail probabilities of the null distributions, accurate in relative terms down to the smallest normal number.
//!
//! `statrs` has these functions too, but its erfc is good to ten digits, and its incomplete beta function stops after 140 terms
//! and takes a factor from differences of log-gammas, which at a million items leaves six.

use std::f64::consts::{PI, SQRT_2};

use libm::erfc;
use statrs::function::erf::erf_inv;

/// P(|R| ≥ |r|) for the correlation R of independent normal samples, with `dof` = n − 2 ≥ 1 degrees of freedom.
///
/// It is both the two-sided tail of the beta distribution on (−1, 1) with a = b = n/2 − 1 and that of Student's t at
/// t = r √(dof / (1 − r²)): I_{1−r²}(dof/2, 1/2), the regularised incomplete beta function (DLMF 8.17).
pub(crate) fn correlation_tail(r: f64, dof: f64) -> f64 {
    let a = dof / 2.0;
    let squared = r * r;
    let rest = (1.0 - r) * (1.0 + r);
    // Near r = 0 the logarithm must see r² itself, not a rounded 1 − r²: it is multiplied by a.
    let log_rest = if squared < 0.5 { (-squared).ln_1p() } else { rest.ln() };
    let factor = (a * log_rest).exp() * r.abs() * gamma_ratio(a) / PI.sqrt();
    // The continued fraction converges fast on this side of the mean, for its mirror image on the other.
    if rest < (a + 1.0) / (a + 2.5) {
        factor * beta_fraction(a, 0.5, rest, squared)
    } else {
        1.0 - factor * beta_fraction(0.5, a, squared, rest)
    }
}

/// P(|Z| ≥ |z|) for a standard normal Z.
pub(crate) fn normal_tail(z: f64) -> f64 {
    erfc(z.abs() / SQRT_2)
}

/// z with P(|Z| ≤ z) = `level` for a standard normal Z; 0 < `level` < 1.
pub(crate) fn normal_two_sided_quantile(level: f64) -> f64 {
    SQRT_2 * erf_inv(level)
}

/// Γ(a + 1/2) / Γ(a) for a > 0, by the asymptotic series in 1/(a − 1/4)², to which small a are carried by recurrence.
fn gamma_ratio(a: f64) -> f64 {
    // From 30 on the first term left out is below 1e-17.
    let (mut a, mut carried) = (a, 1.0);
    while a < 30.5 {
        carried *= a / (a + 0.5);
        a += 1.0;
    }
    let w = a - 0.25;
    let u = 1.0 / (w * w);
    let series =
        1.0 + u * (1.0 / 64.0 + u * (-19.0 / 8192.0 + u * (631.0 / 524_288.0 - u * 174_317.0 / 134_217_728.0)));
    carried * w.sqrt() * series
}

/// I_x(a, b) B(a, b) / (xᵃ yᵇ) with y = 1 − x, for x up to about the mean a/(a + b): the even part of the continued fraction of
/// the incomplete beta function (Didonato and Morris, 1992, equation 9; DLMF 8.17.22) by Lentz's method, O(√max(a, b)) terms.
///
/// It takes y beside x because x may be within rounding of 1, and a·y − b·x is then all that matters.
fn beta_fraction(a: f64, b: f64, x: f64, y: f64) -> f64 {
    // Far above what any sample that fits in memory needs: a guard against rounding that never settles.
    const MAX_TERMS: u32 = 1_000_000;
    let denominator = |m: f64| {
        m + m * (b - m) * x / (a + 2.0 * m - 1.0)
            + (a + m) * (a * y - b * x + 1.0 + m * (1.0 + y)) / (a + 2.0 * m + 1.0)
    };
    // At m = 0 the middle term vanishes, also where a = 1 and its own denominator does.
    let mut fraction = a * (a * y - b * x + 1.0) / (a + 1.0);
    let (mut c, mut d) = (fraction, 0.0);
    for m in 1..MAX_TERMS {
        let m = f64::from(m);
        let step = a + 2.0 * m - 1.0;
        let numerator = (a + m - 1.0) * (a + b + m - 1.0) * m * (b - m) * x * x / (step * step);
        d = 1.0 / (denominator(m) + numerator * d);
        c = denominator(m) + numerator / c;
        fraction *= c * d;
        if (c * d - 1.0).abs() <= f64::EPSILON {
            break;
        }
    }
    1.0 / fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(ours: f64, expected: f64, relative: f64) -> bool {
        (ours - expected).abs() <= relative * expected.abs()
    }

    /// `scipy.special.betainc` 1.17.1, and up to 998 degrees of freedom `mpmath.betainc`.
    #[test]
    fn correlation_tail_equals_the_incomplete_beta_function() {
        let fixture: serde_json::Value = serde_json::from_str(include_str!("../tests/fixtures/tail.json")).unwrap();
        let cases = fixture["cases"].as_array().unwrap();
        assert_eq!(cases.len(), 180);
        for case in cases {
            let [r, dof, expected] = [0, 1, 2].map(|i| case[i].as_f64().unwrap());
            let ours = correlation_tail(r, dof);
            assert!(close(ours, expected, 1e-12), "r {r:e}, dof {dof}: {ours:e}, not {expected:e}");
        }
        assert_eq!(
            [correlation_tail(1.0, 5.0), correlation_tail(-1.0, 5.0), correlation_tail(0.0, 5.0)],
            [0.0, 0.0, 1.0]
        );
    }

    /// `scipy.stats.norm.sf` and `ppf`, 1.17.1.
    #[test]
    fn the_normal_tail_and_its_quantile_equal_scipys() {
        let tails = [
            (0.0, 1.0),
            (1e-08, 0.9999999920211544),
            (0.3, 0.7641771556220948),
            (1.0, 0.31731050786291415),
            (1.96, 0.04999579029644087),
            (3.5, 0.00046525815807105003),
            (6.0, 1.973175290075389e-09),
            (12.0, 3.552964224155306e-33),
            (25.0, 6.113393412765122e-138),
            (37.0, 1.1451142445047853e-299),
        ];
        for (z, expected) in tails {
            assert!(close(normal_tail(-z), expected, 1e-12), "{z}");
        }
        let quantiles = [
            (1e-06, 1.2533141372127224e-06),
            (0.1, 0.12566134685507416),
            (0.5, 0.6744897501960817),
            (0.8, 1.2815515655446004),
            (0.9, 1.6448536269514722),
            (0.95, 1.959963984540054),
            (0.99, 2.5758293035489004),
            (0.999, 3.2905267314919255),
            (0.999999, 4.891638475671085),
        ];
        for (level, expected) in quantiles {
            assert!(close(normal_two_sided_quantile(level), expected, 1e-10), "{level}");
        }
    }
}
