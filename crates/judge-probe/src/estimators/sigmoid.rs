//! The logistic function, its integral, and its like for several logits.

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

/// eᶻ / Σ eᶻ in the place of logits, kept in range by the greatest; of (0, z) the sigmoid of z.
///
/// The result sums to 1 but for rounding, and has no NaN for finite logits: the greatest power is 1.
pub(crate) fn softmax(logits: &mut [f64]) {
    let greatest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    logits.iter_mut().for_each(|logit| *logit = (*logit - greatest).exp());
    let sum: f64 = logits.iter().sum();
    logits.iter_mut().for_each(|power| *power /= sum);
}

/// ln(1 + eᶻ).
/// Computed as max(0, z) + ln(1 + exp(−|z|)): it does not overflow for large z and keeps its digits for very negative z.
pub(crate) fn softplus(z: f64) -> f64 {
    z.max(0.0) + (-z.abs()).exp().ln_1p()
}
