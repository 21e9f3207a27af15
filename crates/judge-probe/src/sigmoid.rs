//! The logistic function and its integral.

/// 1 / (1 + e⁻ᶻ), without loss near 0.
pub(crate) fn sigmoid(logit: f64) -> f64 {
    if logit >= 0.0 {
        1.0 / (1.0 + (-logit).exp())
    } else {
        let odds = logit.exp();
        odds / (1.0 + odds)
    }
}

/// ln(1 + eᶻ).
pub(crate) fn softplus(z: f64) -> f64 {
    z.max(0.0) + (-z.abs()).exp().ln_1p()
}
