//! What Stirling's formula leaves of ln Γ: the piece that keeps ratios of gamma functions exact where their logarithms are large and
//! cancel.

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
