//! The exponential function in f32, with the same bits on every machine.
//!
//! The standard library's calls the platform's, which differs between systems. This one uses
//! additions and multiplications alone, in one order and not fused, and compilers can vectorise it.
//! Activations, softmax and entropies of the CPU engine take it, as do log-probabilities.
//!
//! ```text
//! x = n ln 2 + r,  n whole, |r| <= ln(2) / 2        e^x = 2^n e^r
//! ```

use std::f32::consts::LOG2_E;

/// `e^x` to about two units in the last place; 0 below -87.3, where the result would be subnormal,
/// and infinite above 88.3, a little early. NaN of a NaN.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    /// 1.5 * 2^23. Adding it rounds to a whole number, which then is in the low bits of the sum.
    const ROUND: f32 = 12_582_912.0;
    /// 355/512, the leading bits of ln 2: few enough that its product with `whole` is exact.
    const LN_2_HIGH: f32 = 0.693_359_4;
    /// What `LN_2_HIGH` lacks of ln 2.
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
