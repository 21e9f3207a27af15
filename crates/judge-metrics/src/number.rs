//! Numbers in messages.

/// The number with six significant digits at most: enough to find it, and no noise of the last bits.
pub(crate) fn six_digits(x: f64) -> String {
    let rounded = format!("{x:.5e}").parse::<f64>().unwrap_or(x);
    // Neither a row of zeros nor one of digits that are not meant.
    if rounded != 0.0 && !(1e-5..1e15).contains(&rounded.abs()) { format!("{rounded:e}") } else { rounded.to_string() }
}

#[cfg(test)]
mod tests {
    use super::six_digits;

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
