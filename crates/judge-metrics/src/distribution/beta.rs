//! The beta distribution's tail and inverse, from which Student's t, F and the binomial follow.

use std::f64::consts::TAU;

use crate::distribution::solve::solve;
use crate::distribution::stirling::{deviance, stirling_remainder};

/// x with P(X ≤ x) = `p` for a beta distribution, a, b > 0: the inverse of the regularised incomplete beta function I_x(a, b). 0 ≤ `p` ≤ 1.
pub(crate) fn beta_quantile(a: f64, b: f64, p: f64) -> f64 {
    quantile_log_odds(a, b, p).1
}

/// P(X > x) for Fisher's F with `d1` and `d2` > 0 degrees of freedom; `x` ≥ 0.
pub(crate) fn f_sf(x: f64, d1: f64, d2: f64) -> f64 {
    let odds = d1 * x / d2;
    let y = 1.0 / (1.0 + odds);
    let x = if odds.is_finite() { odds * y } else { 1.0 };
    Beta::at(d1 / 2.0, d2 / 2.0, x, y).upper
}

/// x with P(X ≤ x) = `p` for Fisher's F; 0 ≤ `p` < 1.
pub(crate) fn f_quantile(p: f64, d1: f64, d2: f64) -> f64 {
    quantile_log_odds(d1 / 2.0, d2 / 2.0, p).0.exp() * d2 / d1
}

/// P(|T| ≥ |t|) for Student's t with `dof` > 0 degrees of freedom; |`t`| below 1e150.
pub(crate) fn student_t_tail(t: f64, dof: f64) -> f64 {
    let sum = dof + t * t;
    Beta::at(dof / 2.0, 0.5, dof / sum, t * t / sum).lower
}

/// t with P(T ≤ t) = `p` for Student's t with `dof` > 0 degrees of freedom; 0 < `p` < 1.
pub(crate) fn student_t_quantile(p: f64, dof: f64) -> f64 {
    // Of P(|T| > |t|) and its complement the smaller one is exact.
    let log_odds = log_odds(dof / 2.0, 0.5, 2.0 * p.min(1.0 - p), (2.0 * p - 1.0).abs());
    let magnitude = dof.sqrt() * (-0.5 * log_odds).exp();
    if p < 0.5 { -magnitude } else { magnitude }
}

/// P(|R| ≥ |r|) for the correlation R of independent normal samples, with `dof` = n − 2 ≥ 1 degrees of freedom.
///
/// It is both the two-sided tail of the beta distribution on (−1, 1) with a = b = n/2 − 1 and that of Student's t at
/// t = r √(dof / (1 − r²)): I_{1−r²}(dof/2, 1/2) (DLMF 8.17).
pub(crate) fn correlation_tail(r: f64, dof: f64) -> f64 {
    Beta::at(dof / 2.0, 0.5, (1.0 - r) * (1.0 + r), r * r).lower
}

/// P(|K − np| ≥ |k − np|) for K binomial with `n` trials and 0 ≤ `p` ≤ 1, in the sense of `scipy.stats.binomtest`: the sum of all
/// probabilities that are no larger than that of `k` ≤ `n`, up to one part in 10⁷.
pub(crate) fn binomial_two_sided(k: u64, n: u64, p: f64) -> f64 {
    let mean = p * n as f64;
    if k as f64 == mean {
        return 1.0;
    }
    // In logarithms: what counts as no larger must not depend on what underflows.
    let limit = ln_binomial_probability(k, n, p) + 1e-7_f64.ln_1p();
    let at_most = |k: u64| if k >= n { 1.0 } else { Beta::at((k + 1) as f64, (n - k) as f64, p, 1.0 - p).upper };
    let at_least = |k: u64| if k == 0 { 1.0 } else { Beta::at(k as f64, (n - k + 1) as f64, p, 1.0 - p).lower };
    // On the far side of the mean the probabilities fall outwards, so that a bisection finds where they pass the limit.
    let sum = if (k as f64) < mean {
        let (mut inside, mut outside) = (mean.ceil() as u64, n + 1);
        while inside < outside {
            let middle = inside.midpoint(outside);
            if ln_binomial_probability(middle, n, p) <= limit { outside = middle } else { inside = middle + 1 }
        }
        at_most(k) + if inside > n { 0.0 } else { at_least(inside) }
    } else {
        // `below` counts the numbers from 0 on whose probability is within the limit.
        let (mut below, mut above) = (0, mean.floor() as u64 + 1);
        while below < above {
            let middle = below.midpoint(above);
            if ln_binomial_probability(middle, n, p) <= limit { below = middle + 1 } else { above = middle }
        }
        at_least(k) + if below == 0 { 0.0 } else { at_most(below - 1) }
    };
    sum.min(1.0)
}

/// ln P(K = k) for K binomial, k ≤ n.
fn ln_binomial_probability(k: u64, n: u64, p: f64) -> f64 {
    let [hits, misses, trials] = [k, n - k, n].map(|count| count as f64);
    if k == 0 {
        trials * (-p).ln_1p()
    } else if k == n {
        trials * p.ln()
    } else {
        let q = 1.0 - p;
        let (factor, exponent) = slope(hits, misses, p, q, excess(hits, misses, p, q));
        (factor * trials / hits / misses).ln() + exponent
    }
}

/// ln(x / (1 − x)) of the quantile x of a beta distribution, and x.
fn quantile_log_odds(a: f64, b: f64, p: f64) -> (f64, f64) {
    let log_odds = log_odds(a, b, p, 1.0 - p);
    (log_odds, 1.0 / (1.0 + (-log_odds).exp()))
}

/// ln(x / (1 − x)) where P(X ≤ x) = `lower` and P(X > x) = `upper`, of which the smaller one is exact.
fn log_odds(a: f64, b: f64, lower: f64, upper: f64) -> f64 {
    if lower > upper {
        return -log_odds(b, a, upper, lower);
    }
    // The logarithm of the odds of a beta variate has a log-concave density, and so a log-concave distribution function.
    solve((a / b).ln(), lower, |log_odds| {
        let odds = log_odds.exp();
        let here = Beta::at(a, b, 1.0 / (1.0 + 1.0 / odds), 1.0 / (1.0 + odds));
        (here.lower, here.slope)
    })
}

/// The beta distribution at a point.
struct Beta {
    /// I_x(a, b)
    lower: f64,
    /// I_y(b, a)
    upper: f64,
    /// d I_x(a, b) / d ln(x/y)
    slope: f64,
}

impl Beta {
    /// `x` + `y` = 1, of which at least the smaller one is exact.
    fn at(a: f64, b: f64, x: f64, y: f64) -> Self {
        if x <= 0.0 || y <= 0.0 {
            let lower = if x <= 0.0 { 0.0 } else { 1.0 };
            return Self { lower, upper: 1.0 - lower, slope: 0.0 };
        }
        let excess = excess(a, b, x, y);
        let (factor, exponent) = slope(a, b, x, y, excess);
        let slope = factor * exponent.exp();
        // The continued fraction converges fast below the mean, for its mirror image above.
        if excess >= 0.0 {
            let lower = slope * fraction(a, b, x, y, excess);
            Self { lower, upper: 1.0 - lower, slope }
        } else {
            let upper = slope * fraction(b, a, y, x, -excess);
            Self { lower: 1.0 - upper, upper, slope }
        }
    }
}

/// a y − b x = a − (a + b) x, positive below the mean a/(a + b), without cancellation where the two nearly meet.
fn excess(a: f64, b: f64, x: f64, y: f64) -> f64 {
    if x > y {
        return -excess(b, a, y, x);
    }
    let sum = a + b;
    let rounded_off = a.min(b) - (sum - a.max(b));
    let product = sum * x;
    (a - product) - sum.mul_add(x, -product) - rounded_off * x
}

/// xᵃ yᵇ / B(a, b), the density in ln(x/y), as a factor and the exponent of e, by Stirling's formula with its remainders and the deviances
/// from the mean (Loader, 2000): log-gammas of large arguments would cancel.
fn slope(a: f64, b: f64, x: f64, y: f64, excess: f64) -> (f64, f64) {
    let sum = a + b;
    let remainder = stirling_remainder(sum) - stirling_remainder(a) - stirling_remainder(b);
    let exponent = remainder - deviance(a, sum * x, excess) - deviance(b, sum * y, -excess);
    ((a / TAU * (b / sum)).sqrt(), exponent)
}

/// I_x(a, b) B(a, b) / (xᵃ yᵇ) for x up to the mean, where `excess` = a y − b x ≥ 0: the even part of the continued fraction of
/// the incomplete beta function (Didonato and Morris, 1992, equation 9; DLMF 8.17.22) by Lentz's method, O(√max(a, b)) terms.
fn fraction(a: f64, b: f64, x: f64, y: f64, excess: f64) -> f64 {
    let denominator = |m: f64| {
        m + m * (b - m) * x / (a + 2.0 * m - 1.0) + (a + m) * (excess + 1.0 + m * (1.0 + y)) / (a + 2.0 * m + 1.0)
    };
    // At m = 0 the middle term vanishes, also where a = 1 and its own denominator does.
    let mut fraction = a * (excess + 1.0) / (a + 1.0);
    let (mut c, mut d) = (fraction, 0.0);
    let mut m = 0.0;
    while m < super::MAX_TERMS {
        m += 1.0;
        let step = a + 2.0 * m - 1.0;
        let numerator = (a + m - 1.0) / step * ((a + b + m - 1.0) / step) * (m * (b - m)) * (x * x);
        d = 1.0 / (denominator(m) + numerator * d);
        c = denominator(m) + numerator / c;
        fraction *= c * d;
        if (c * d - 1.0).abs() <= f64::EPSILON {
            break;
        }
    }
    1.0 / fraction
}
