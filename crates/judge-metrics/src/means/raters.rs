//! What several raters say of one item, as one number.

use super::sample::largest;
use crate::input::unit_of;

/// The mean of what raters gave one item, finite numbers; `None` of none.
///
/// Statistics of ranks ask whether two items have the same mean, and people give decimal digits, or points of a scale that a program has
/// divided by its length, such as 1/6. So this is the number nearest to the mean of the digits, or of the fractions up to hundredths: it
/// depends on the order of the raters no more than that mean does, and where two such means are equal so are these numbers. Of other grades
/// the order still does not matter.
///
/// ```
/// use judge_metrics::means::mean_of_raters;
///
/// let means = [[0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [0.2, 0.2, 0.2]].map(|raters| mean_of_raters(&raters));
/// assert_eq!(means, [Some(0.2); 3]);
/// ```
#[must_use]
pub fn mean_of_raters(given: &[f64]) -> Option<f64> {
    let first = *given.first()?;
    if given.iter().all(|&value| value == first) {
        return Some(first);
    }
    let n = given.len() as f64;
    // As whole numbers of one unit the grades have an exact sum, and the quotient is rounded once.
    for unit in (0..=15).map(|digits| 10_f64.powi(digits)).chain((3..100).map(f64::from)) {
        let whole = given.iter().map(|value| (value * unit).round());
        let is_exact = |(whole, value): (f64, &f64)| whole.abs() <= 2_f64.powi(53) / n && whole / unit == *value;
        if whole.clone().zip(given).all(is_exact) {
            return Some(whole.sum::<f64>() / (n * unit));
        }
    }
    let mut sorted = given.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    // A sum of large grades is not too large in this unit.
    let unit = unit_of(largest(&sorted));
    Some(sorted.iter().map(|value| value * unit).sum::<f64>() / n / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_equal_where_those_of_the_digits_are_whatever_the_order() {
        for (one, other) in [
            (&[0.1, 0.2, 0.3][..], &[0.2][..]),
            (&[0.3, 0.2, 0.1], &[0.1, 0.2, 0.3]),
            (&[0.1, 0.2, -0.3], &[0.0]),
            (&[1.1, 1.3, 1.4], &[1.1, 1.1, 1.3, 1.3, 1.4, 1.4]),
            (&[1.1, 1.1, 1.2, 1.3, 1.4, 1.6, 1.9], &[1.9, 1.6, 1.4, 1.3, 1.2, 1.1, 1.1]),
            (&[80.1, 80.2, 80.6], &[80.3, 80.3]),
            (&[0.000_001, 0.000_003], &[0.000_002]),
            (&[1e16, 3e16], &[2e16]),
            (&[1.0 / 3.0, 0.1, 1e-9], &[1e-9, 1.0 / 3.0, 0.1]),
            (&[1.0 / 6.0, 0.5], &[1.0 / 3.0]),
            (&[2.0 / 7.0, 3.0 / 7.0, 1.0], &[4.0 / 7.0]),
            (&[1.0 / 30.0, 0.1, 1.0 / 6.0], &[0.1]),
        ] {
            assert_eq!(mean_of_raters(one), mean_of_raters(other), "{one:?} and {other:?}");
        }
        // The order of every three grades of one digit.
        let grade = |digit: u32| f64::from(digit) / 10.0;
        for number in 0..1000 {
            let [a, b, c] = [number / 100, number / 10 % 10, number % 10];
            let mean = mean_of_raters(&[grade(a), grade(b), grade(c)]);
            assert_eq!(mean, mean_of_raters(&[grade(c), grade(a), grade(b)]), "{a}, {b}, {c}");
            assert_eq!(mean, Some(f64::from(a + b + c) / 30.0), "{a}, {b}, {c}");
        }
    }

    /// A scale of 3 to 12 points that a program has brought to [0, 1], and one in a unit far from 1: equal means are one number.
    #[test]
    fn means_of_normalised_grades_and_in_other_units_are_equal_where_those_of_the_points_are() {
        for steps in 2_u32..12 {
            for unit in [1.0 / f64::from(steps), 2_f64.powi(-40), 2_f64.powi(-700), 2_f64.powi(700)] {
                let is_fraction = f64::from(steps) * unit == 1.0;
                let point = |k: u32| if is_fraction { f64::from(k) / f64::from(steps) } else { f64::from(k) * unit };
                let mut seen = std::collections::BTreeMap::new();
                for number in 0..(steps + 1).pow(3) {
                    let [a, b, c] =
                        [number, number / (steps + 1), number / (steps + 1).pow(2)].map(|k| k % (steps + 1));
                    let mean = mean_of_raters(&[point(a), point(b), point(c)]);
                    let known = *seen.entry(a + b + c).or_insert(mean);
                    assert_eq!(mean, known, "{a}, {b}, {c} of {steps} in {unit}");
                }
            }
        }
    }

    #[test]
    fn none_has_no_mean_and_large_grades_have_one() {
        assert_eq!(mean_of_raters(&[]), None);
        assert_eq!(mean_of_raters(&[0.123_456_789_012_345_67; 3]), Some(0.123_456_789_012_345_67));
        assert_eq!(mean_of_raters(&[2.0, 2.0, 3.0]), Some(7.0 / 3.0));
        assert!(mean_of_raters(&[1e308, 1.5e308]).is_some_and(|mean| (mean / 1.25e308 - 1.0).abs() < 1e-12));
        assert_eq!(mean_of_raters(&[-1e308, 1e308]), Some(0.0));
    }
}
