//! Fewer rows than features are fitted in coordinates that are as exact as the strictest setting asks. Which ones those are decides
//! on nothing that `tol` does not leave open.

use crate::fixtures::assert_close;
use judge_probe::{ClassWeight, Estimator, LinearClassifier, LogisticRegression, Matrix, OrdinalRegression};

const N_ROWS: usize = 30;

/// Rows that depend on each other: combinations of eight, so that no c fits all labels and the rounding of inner products counts.
fn features() -> Matrix {
    let number = |i: usize, j: usize| ((i * 37 + j * 101 + i * j * 7) % 23) as f64 / 11.0 - 1.0;
    let value = |i, j| (0..8).map(|factor| number(i, factor) * number(factor + 40, j)).sum::<f64>();
    Matrix::from_rows((0..N_ROWS).map(|i| (0..80).map(|j| value(i, j)).collect::<Vec<_>>())).unwrap()
}

fn labels(n_classes: i64) -> Vec<i64> {
    (0..N_ROWS).map(|i| (i * i + i / 7) as i64 % n_classes).collect()
}

fn assert_alike(one: &LinearClassifier, other: &LinearClassifier) {
    assert_close("coefficients", one.coefficients().values(), other.coefficients().values(), 1e-9);
    assert_close("intercepts", one.intercepts(), other.intercepts(), 1e-9);
}

/// A c of 1e9 asks for coordinates without any rounding of inner products, which the others then share.
#[test]
fn a_strict_setting_changes_no_other() {
    let features = features();
    for (n_classes, class_weight) in [(2, ClassWeight::Uniform), (3, ClassWeight::Balanced)] {
        let labels = labels(n_classes);
        for fit_intercept in [true, false] {
            let of = |c| LogisticRegression { c, fit_intercept, class_weight, ..LogisticRegression::default() };
            let settings = [of(0.01), of(1.0), of(1e9)];
            let strict = LogisticRegression::fit_each(&settings, &features, &labels);
            let others = LogisticRegression::fit_each(&settings[..2], &features, &labels);
            assert!(strict[2].is_ok());
            for (strict, other) in strict.iter().zip(&others) {
                assert_alike(strict.as_ref().unwrap(), other.as_ref().unwrap());
            }
        }
        let of = |c| OrdinalRegression { c, class_weight, ..OrdinalRegression::default() };
        let strict = OrdinalRegression::fit_each(&[of(1e9), of(1.0)], &features, &labels);
        assert!(strict[0].is_ok());
        assert_alike(strict[1].as_ref().unwrap(), &of(1.0).fit(&features, &labels).unwrap());
    }
}

/// What no fit can use asks for nothing: not even the last digit of the others moves.
#[test]
fn settings_out_of_range_change_no_other() {
    let (features, labels) = (features(), labels(2));
    let usual = LogisticRegression::default();
    let alone = usual.fit(&features, &labels).unwrap();
    for (c, tol) in [(f64::INFINITY, 1e-14), (f64::NAN, 1e-14), (-1.0, 1e-14), (1.0, 0.0), (1.0, f64::NAN)] {
        let mut fitted =
            LogisticRegression::fit_each(&[LogisticRegression { c, tol, ..usual }, usual], &features, &labels);
        assert_eq!(fitted.pop().unwrap().unwrap(), alone);
        assert!(fitted.pop().unwrap().is_err());
    }
}

/// Σ ln(1 + e⁻ʸᶠ) / n + ‖w‖² / (2 c n) for labels y of −1 and 1.
fn objective(features: &Matrix, labels: &[i64], fitted: &LinearClassifier, c: f64) -> f64 {
    let (w, n) = (fitted.coefficients().values(), labels.len() as f64);
    let loss = |(row, &label): (&[f64], &i64)| {
        let function: f64 = fitted.intercepts()[0] + row.iter().zip(w).map(|(x, w)| x * w).sum::<f64>();
        f64::ln_1p(f64::exp(if label == 1 { -function } else { function }))
    };
    let loss: f64 = features.rows().zip(labels).map(loss).sum();
    (loss + w.iter().map(|w| w * w).sum::<f64>() / (2.0 * c)) / n
}

/// The greatest c for which inner products of rows are still exact enough.
#[test]
fn just_exact_enough_is_within_tol() {
    let (features, labels) = (features(), labels(2));
    let greatest = features.rows().map(|row| row.iter().map(|x| x * x).sum::<f64>()).fold(0.0, f64::max);
    let rounding = 32.0 * f64::sqrt((N_ROWS + features.n_features()) as f64) * f64::EPSILON * greatest;
    for tol in [1e-4, 1e-8, 1e-14] {
        let c = 0.99 * f64::sqrt(tol) / rounding;
        let of = |tol| LogisticRegression { c, tol, ..LogisticRegression::default() }.fit(&features, &labels).unwrap();
        // The objective at the minimum, found without inner products of rows.
        let (least, found) = (of(1e-16), of(tol));
        let gap = objective(&features, &labels, &found, c) - objective(&features, &labels, &least, c);
        assert!(gap.abs() <= tol, "{gap} for a tol of {tol}");
    }
}
