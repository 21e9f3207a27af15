//! The logistic function and its integral.

/// 1 / (1 + e⁻ᶻ), without loss near 0.
/// The exponential never overflows: its argument is at most 0 on either side. 1 − σ(z) is σ(−z), which keeps its digits
/// where the difference would lose them.
pub(crate) fn sigmoid(logit: f64) -> f64 {
    if logit >= 0.0 {
        1.0 / (1.0 + (-logit).exp())
    } else {
        let odds = logit.exp();
        odds / (1.0 + odds)
    }
}

/// ln(1 + eᶻ).
/// Computed as max(0, z) + ln(1 + exp(−|z|)): it does not overflow for large z and keeps its digits for very negative z.
pub(crate) fn softplus(z: f64) -> f64 {
    z.max(0.0) + (-z.abs()).exp().ln_1p()
}
