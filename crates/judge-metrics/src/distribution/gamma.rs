use crate::distribution::solve::solve;

/// ln |Γ(x)| for x > 0.
pub(crate) fn ln_gamma(x: f64) -> f64 {
    libm::lgamma(x)
}

/// ln Γ(x) − ((x − 1/2) ln x − x + ln √(2π)) for x > 0: what Stirling's formula leaves (DLMF 5.11.1), to about 1e-15 absolute.
pub(super) fn stirling_remainder(x: f64) -> f64 {
    // Above this the first term left out is below 1e-17; smaller arguments are carried up by Γ(x + 1) = x Γ(x).
    let (mut x, mut carried) = (x, 0.0);
    while x < 16.0 {
        carried += (x + 0.5) * (1.0 / x).ln_1p() - 1.0;
        x += 1.0;
    }
    let u = 1.0 / (x * x);
    let terms = [1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0, -691.0 / 360_360.0];
    carried + terms.iter().rev().fold(0.0, |sum, term| sum * u + term) / x
}

/// The deviance k ln(k/m) − (k − m) ≥ 0 of k > 0 from m > 0, given `difference` = k − m, to full relative accuracy (Loader,
/// *Fast and Accurate Computation of Binomial Probabilities*, 2000).
pub(super) fn deviance(k: f64, m: f64, difference: f64) -> f64 {
    let v = difference / (k + m);
    if v.abs() > 0.5 {
        return k * (k / m).ln() - difference;
    }
    // ln(k/m) = 2 artanh v, and the first term of its series cancels against k − m.
    let squared = v * v;
    let (mut power, mut sum) = (2.0 * k * v, difference * v);
    let mut odd = 1.0;
    loop {
        power *= squared;
        odd += 2.0;
        let next = sum + power / odd;
        if next == sum {
            return sum;
        }
        sum = next;
    }
}

/// P(X > x) for χ² with `dof` > 0 degrees of freedom; `x` ≥ 0.
pub(crate) fn chi_squared_sf(x: f64, dof: f64) -> f64 {
    Gamma::at(dof / 2.0, x / 2.0).upper
}

/// x with P(X ≤ x) = `p` for χ² with `dof` > 0 degrees of freedom; 0 ≤ `p` < 1.
pub(crate) fn chi_squared_quantile(p: f64, dof: f64) -> f64 {
    let a = dof / 2.0;
    // As a function of ln x the distribution function and its complement are log-concave.
    let log = if p <= 0.5 {
        solve(a.ln(), p, |log| {
            let here = Gamma::at(a, log.exp());
            (here.lower, here.slope)
        })
    } else {
        -solve(-a.ln(), 1.0 - p, |log| {
            let here = Gamma::at(a, (-log).exp());
            (here.upper, here.slope)
        })
    };
    2.0 * log.exp()
}

/// The gamma distribution of shape a and scale 1 at a point.
struct Gamma {
    /// P(a, x)
    lower: f64,
    /// Q(a, x)
    upper: f64,
    /// d P / d ln x = xᵃ e⁻ˣ / Γ(a)
    slope: f64,
}

impl Gamma {
    fn at(a: f64, x: f64) -> Self {
        if x <= 0.0 {
            return Self { lower: 0.0, upper: 1.0, slope: 0.0 };
        }
        let exponent = -stirling_remainder(a) - deviance(a, x, a - x);
        let slope = (a / std::f64::consts::TAU).sqrt() * exponent.exp();
        if slope == 0.0 {
            let lower = if x < a { 0.0 } else { 1.0 };
            return Self { lower, upper: 1.0 - lower, slope };
        }
        if x < a + 1.0 {
            let lower = slope * lower_series(a, x);
            Self { lower, upper: 1.0 - lower, slope }
        } else {
            let upper = slope * upper_fraction(a, x);
            Self { lower: 1.0 - upper, upper, slope }
        }
    }
}

/// Σ xⁿ / (a (a + 1) … (a + n)) (DLMF 8.7.1), O(√a) terms for x up to a + 1.
fn lower_series(a: f64, x: f64) -> f64 {
    let mut term = 1.0 / a;
    let mut sum = term;
    let mut divisor = a;
    while term > sum * f64::EPSILON / 8.0 {
        divisor += 1.0;
        term *= x / divisor;
        sum += term;
    }
    sum
}

/// Γ(a, x) / (xᵃ e⁻ˣ) by the even part of the continued fraction (DLMF 8.9.2), for x from a + 1 on, by Lentz's method.
fn upper_fraction(a: f64, x: f64) -> f64 {
    let mut partial = x + 1.0 - a;
    let (mut fraction, mut c, mut d) = (partial, partial, 0.0);
    let mut m = 0.0;
    loop {
        m += 1.0;
        let numerator = m * (a - m);
        partial += 2.0;
        d = 1.0 / (partial + numerator * d);
        c = partial + numerator / c;
        fraction *= c * d;
        if (c * d - 1.0).abs() <= f64::EPSILON || m > super::MAX_TERMS {
            return 1.0 / fraction;
        }
    }
}
