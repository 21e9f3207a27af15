//! The exponential function in f32, with the same bits on every machine.

use std::f32::consts::LOG2_E;

/// `e^x` to about two units in the last place; 0 below -87.3, where the result would be subnormal, and infinite above 88.3, a little early.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    /// Adding it rounds to a whole number, which then stands in the low bits.
    const ROUND: f32 = 12_582_912.0;
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let shifted = x * LOG2_E + ROUND;
    let whole = shifted - ROUND;
    let rest = x - whole * LN_2_HIGH - whole * LN_2_LOW;
    // Taylor's series to the seventh power; |rest| is at most ln(2) / 2.
    let mut power = 1.0 / 5040.0;
    for coefficient in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        power = power * rest + coefficient;
    }
    let scale = f32::from_bits(shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23);
    if x < -87.3 {
        0.0
    } else if x > 88.3 {
        f32::INFINITY
    } else {
        power * scale
    }
}
