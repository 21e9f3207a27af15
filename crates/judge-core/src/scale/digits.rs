/// A number on a scale, or off it, in a message: with all of its digits, or from 1e15 on with an exponent.
#[must_use]
pub fn in_digits(x: f64) -> String {
    if x.abs() < 1e15 { x.to_string() } else { format!("{x:e}") }
}

#[cfg(test)]
mod tests {
    use super::in_digits;

    #[test]
    fn large_numbers_have_an_exponent() {
        let found = [70.0, -2.5, 1e15, -1e300, f64::NAN].map(in_digits);
        assert_eq!(found, ["70", "-2.5", "1e15", "-1e300", "NaN"]);
    }
}
