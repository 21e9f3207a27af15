//! Three people who grade, each in their own way.

use super::draw::Draw;

/// What a rater adds to the quality before rounding: a bias, and noise with the given standard deviation.
const RATERS: [(f64, f64); 3] = [(-0.3, 0.35), (0.0, 0.5), (0.25, 0.4)];

/// One mark per rater for an answer of the given quality: quality, bias and noise, rounded to a whole number from 1 to 5.
pub(super) fn marks(draw: &mut Draw, quality: f64) -> Vec<f64> {
    RATERS.iter().map(|(bias, spread)| (quality + bias + spread * draw.noise()).round().clamp(1.0, 5.0)).collect()
}
