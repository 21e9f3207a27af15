//! Arithmetic in the precision of the features, where a probe was fitted on numbers that had been rounded. What is computed in it is the
//! scaling (`probe_stage`); classifiers compute in double precision.
//!
//! It rounds values and holds no arrays: numbers are `f64` everywhere, and a value of a lesser precision is an `f64` that happens to have
//! one.

/// Arithmetic in which features come and are scaled.
///
/// scikit-learn's `StandardScaler` keeps the dtype of what it is given: `float16` features are rounded to `float16` again after the mean is
/// subtracted and after the division, and only then widened for the classifier. Its `PCA` widens what it is given, so that a scaler after it
/// is in double precision. A probe that was fitted on such features repeats that.
///
/// For the other precisions the least spacing at 1 is 2⁻²³ (`F32`) and 2⁻¹⁰ (`F16`); the largest finite numbers are about 3.4 · 10³⁸ and
/// exactly 65504. In a saved probe the names are `f64`, `f32` and `f16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Double precision: nothing is rounded.
    #[default]
    F64,
    /// Single precision.
    F32,
    /// Half precision (IEEE 754 binary16).
    F16,
}

impl Precision {
    /// The nearest number of this precision, ties to even; beyond its range an infinity.
    ///
    /// NaN stays NaN, and zeros keep their sign. Rounding twice changes nothing more.
    ///
    /// ```
    /// use judge_probe::Precision;
    ///
    /// assert_eq!(Precision::F16.round(0.1), 0.0999755859375);
    /// assert_eq!(Precision::F16.round(65520.0), f64::INFINITY);
    /// ```
    pub fn round(self, value: f64) -> f64 {
        match self {
            Self::F64 => value,
            Self::F32 => f64::from(value as f32),
            Self::F16 => round_f16(value),
        }
    }
}

/// Rounds once, directly from double precision.
///
/// A detour by single precision would round twice and can miss a tie. The spacing of halves in [2^e, 2^(e+1)) is 2^(e − 10), and 2⁻²⁴
/// below 2⁻¹⁴, where numbers are subnormal. What rounds to 65536 or more has no half and becomes infinite; that begins at 65520, the
/// middle between 65504 and 65536.
fn round_f16(value: f64) -> f64 {
    const LEAST_NORMAL_EXPONENT: i32 = -14;
    const FRACTION_BITS: i32 = 10;
    // The exponent of a double; what is not normal there is far below the least of a half, and infinities and NaN stay what they are.
    let exponent = ((value.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    let unit = 2f64.powi(exponent.max(LEAST_NORMAL_EXPONENT) - FRACTION_BITS);
    // Both products are by a power of two, so that only the rounding itself rounds.
    let rounded = (value / unit).round_ties_even() * unit;
    if rounded.abs() >= 65536.0 { f64::INFINITY.copysign(value) } else { rounded }
}

#[cfg(test)]
mod tests {
    use super::Precision;

    #[test]
    fn halves_are_rounded_once_and_to_even() {
        let cases = [
            (1.0, 1.0),
            (-0.0, -0.0),
            (0.1, 0.0999755859375),
            // Ties: between 1 and the next half, and between that and the one after.
            (1.0 + 2f64.powi(-11), 1.0),
            (1.0 + 3.0 * 2f64.powi(-11), 1.0 + 2f64.powi(-9)),
            // A tie but for its last bit, which a detour by single precision would lose.
            (1.0 + 2f64.powi(-11) + 2f64.powi(-52), 1.0 + 2f64.powi(-10)),
            (65519.999, 65504.0),
            (65520.0, f64::INFINITY),
            (-1e300, f64::NEG_INFINITY),
            // Below the least normal number the distance stays.
            (2f64.powi(-24), 2f64.powi(-24)),
            (2f64.powi(-25), 0.0),
            (-1.5 * 2f64.powi(-25), -2f64.powi(-24)),
            (5e-324, 0.0),
        ];
        for (value, rounded) in cases {
            assert_eq!(Precision::F16.round(value).to_bits(), f64::to_bits(rounded), "{value:e}");
        }
        assert!(Precision::F16.round(f64::NAN).is_nan());
        assert_eq!(Precision::F16.round(f64::INFINITY), f64::INFINITY);
        assert_eq!(Precision::F32.round(1.0 + 2f64.powi(-24)), 1.0);
        assert_eq!(Precision::F64.round(0.1), 0.1);
    }
}
