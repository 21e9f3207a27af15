//! Numbers in messages.

/// The number with six significant digits at most: enough to find it, and no noise of the last bits.
pub(crate) fn six_digits(x: f64) -> String {
    let rounded = format!("{x:.5e}").parse::<f64>().unwrap_or(x);
    // Neither a row of zeros nor one of digits that are not meant.
    if rounded != 0.0 && !(1e-5..LARGE).contains(&rounded.abs()) { format!("{rounded:e}") } else { rounded.to_string() }
}

/// From here on numbers have an exponent: their digits fill a line and mean nothing.
const LARGE: f64 = 1e15;

/// The number with so many decimals, or from 1e15 on with six digits and an exponent.
///
/// ```
/// use judge_metrics::decimals;
///
/// assert_eq!(decimals(2.5, 2), "2.50");
/// assert_eq!(decimals(-4.5e299, 2), "-4.5e299");
/// ```
#[must_use]
pub fn decimals(x: f64, digits: usize) -> String {
    if x.abs() < LARGE { format!("{x:.digits$}") } else { six_digits(x) }
}

/// The number with all of its digits, or from 1e15 on with an exponent.
pub(crate) fn in_full(x: f64) -> String {
    if x.abs() < LARGE { x.to_string() } else { format!("{x:e}") }
}

#[cfg(test)]
mod tests {
    use super::{decimals, in_full, six_digits};

    #[test]
    fn large_numbers_have_an_exponent() {
        let cases = [
            (1e300, "1e300", "1e300"),
            (-f64::MAX, "-1.79769e308", "-1.7976931348623157e308"),
            (1e15, "1e15", "1e15"),
            (-123_456.25, "-123456.2500", "-123456.25"),
            (0.0, "0.0000", "0"),
            (f64::NAN, "NaN", "NaN"),
        ];
        for (x, fixed, full) in cases {
            assert_eq!((decimals(x, 4), in_full(x)), (fixed.to_owned(), full.to_owned()));
        }
    }

    #[test]
    fn six_digits_at_most_and_no_more_than_needed() {
        let cases = [
            (2.666_666_666_666_666_5, "2.66667"),
            (3.0, "3"),
            (-0.1, "-0.1"),
            (1_234_567.0, "1234570"),
            (0.0, "0"),
            (1e-300, "1e-300"),
            (f64::MAX, "1.79769e308"),
            (f64::INFINITY, "inf"),
        ];
        for (x, expected) in cases {
            assert_eq!(six_digits(x), expected);
        }
    }
}
