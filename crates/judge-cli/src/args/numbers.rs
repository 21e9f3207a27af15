//! Numbers on the command line: each is refused where it is read, with what was expected.

/// A whole number from `least` on, as large as its type takes. `T` is unsigned.
pub fn at_least<T: TryFrom<u64> + 'static>(
    least: u64,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    within(least, u64::MAX >> (64 - 8 * size_of::<T>()))
}

/// A whole number from `least` to `most`. `T` is unsigned.
pub fn within<T: TryFrom<u64> + 'static>(
    least: u64,
    most: u64,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text: &str| {
        let number = text.parse().ok().filter(|number: &u64| (least..=most).contains(number));
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| match most {
            u64::MAX => format!("expected a whole number of at least {least}"),
            most => format!("expected a whole number from {least} to {most}"),
        })
    }
}

/// A number that is finite.
///
/// # Errors
/// In words, for another text.
pub fn number(text: &str) -> Result<f64, String> {
    checked(text, |_| true, "a number")
}

/// A number of at least 0.
///
/// # Errors
/// In words, for another text.
pub fn not_negative(text: &str) -> Result<f64, String> {
    checked(text, |number| number >= 0.0, "a number of at least 0")
}

/// A number above 0.
///
/// # Errors
/// In words, for another text.
pub fn positive(text: &str) -> Result<f64, String> {
    checked(text, |number| number > 0.0, "a number above 0")
}

/// A number of seconds above 0; what is longer than thirty years no clock can add.
///
/// # Errors
/// In words, for another text.
pub fn seconds(text: &str) -> Result<f64, String> {
    checked(text, |number| number > 0.0 && number <= 1e9, "a number of seconds above 0, at most 1000000000")
}

/// A number from 0 to 1.
///
/// # Errors
/// In words, for another text.
pub fn share(text: &str) -> Result<f64, String> {
    checked(text, |number| (0.0..=1.0).contains(&number), "a share from 0 to 1, such as 0.98")
}

/// A number between 0 and 1, and neither of them.
///
/// # Errors
/// In words, for another text.
pub fn part(text: &str) -> Result<f64, String> {
    checked(text, |number| number > 0.0 && number < 1.0, "a number between 0 and 1")
}

fn checked(text: &str, fits: impl Fn(f64) -> bool, expected: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|&number: &f64| number.is_finite() && fits(number));
    number.ok_or_else(|| format!("expected {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_such_number_is_told_what_was_expected() {
        for text in ["-1", "x", "1.5", "", "300"] {
            assert_eq!(at_least::<u8>(0)(text).unwrap_err(), "expected a whole number from 0 to 255", "{text}");
        }
        assert_eq!(at_least::<usize>(2)("1").unwrap_err(), "expected a whole number of at least 2");
        assert_eq!(at_least::<u64>(0)("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(within::<u8>(2, 16)("17").unwrap_err(), "expected a whole number from 2 to 16");
        assert_eq!(within::<u8>(2, 16)("16"), Ok(16));
        for text in ["nan", "inf", "1e999", "one", ""] {
            assert_eq!(number(text).unwrap_err(), "expected a number", "{text}");
        }
        assert_eq!((number("-1e-3"), not_negative("0"), share("1")), (Ok(-1e-3), Ok(0.0), Ok(1.0)));
        for wrong in [positive("0"), not_negative("-1"), share("1.1"), part("1"), part("0"), seconds("1e300")] {
            assert!(wrong.unwrap_err().starts_with("expected a "));
        }
    }
}
