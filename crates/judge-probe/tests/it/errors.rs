//! What matrices and estimators refuse, and that the error says where.

use judge_probe::{Error, Estimator, FittedEstimator, Matrix, Ridge, StandardScaler};

fn matrix(rows: &[[f64; 2]]) -> Matrix {
    Matrix::from_rows(rows).unwrap()
}

#[test]
fn a_matrix_is_rectangular_finite_and_not_empty() {
    assert_eq!(Matrix::new(vec![], 3), Err(Error::Empty { n_rows: 0, n_features: 3 }));
    assert_eq!(Matrix::new(vec![1.0], 0), Err(Error::Empty { n_rows: 0, n_features: 0 }));
    assert_eq!(Matrix::from_rows::<[f64; 2]>([]), Err(Error::Empty { n_rows: 0, n_features: 0 }));
    assert_eq!(Matrix::from_rows([[], []]), Err(Error::Empty { n_rows: 2, n_features: 0 }));
    assert_eq!(Matrix::new(vec![1.0; 5], 2), Err(Error::PartialRow { n_values: 5, n_features: 2 }));
    let ragged = Matrix::from_rows([vec![1.0, 2.0], vec![3.0, 4.0], vec![5.0]]);
    assert_eq!(ragged, Err(Error::RaggedRow { row: 2, expected: 2, found: 1 }));
    let infinite = Matrix::new(vec![1.0, 2.0, 3.0, f64::INFINITY], 2);
    assert_eq!(infinite, Err(Error::NonFiniteFeature { row: 1, feature: 1, value: f64::INFINITY }));
    assert!(matches!(Matrix::from_rows([[f64::NAN]]), Err(Error::NonFiniteFeature { row: 0, feature: 0, .. })));

    let whole = Matrix::new(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 3).unwrap();
    assert_eq!((whole.n_rows(), whole.n_features()), (2, 3));
    assert_eq!(whole.rows().collect::<Vec<_>>(), [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    assert_eq!(Matrix::from_rows(whole.rows()), Ok(whole));
}

#[test]
fn a_scaler_refuses_other_features_and_overflow() {
    let scaler = StandardScaler::default().fit(&matrix(&[[1.0, 2.0], [3.0, 5.0]])).unwrap();
    let other = Matrix::new(vec![1.0; 3], 3).unwrap();
    assert_eq!(scaler.transform(&other), Err(Error::FeatureCount { expected: 2, found: 3 }));

    let huge = matrix(&[[1.0, 1.7e308], [2.0, 1.6e308]]);
    assert_eq!(StandardScaler::default().fit(&huge), Err(Error::Overflow { feature: 1 }));
    let wide = matrix(&[[1e200, 0.0], [-1e200, 1.0]]);
    assert_eq!(StandardScaler::default().fit(&wide), Err(Error::Overflow { feature: 0 }));
    let narrow = StandardScaler::default().fit(&matrix(&[[1e-10, 0.0], [2e-10, 1.0]])).unwrap();
    let beyond = narrow.transform(&matrix(&[[0.0, 0.0], [1e300, 0.0]]));
    assert_eq!(beyond, Err(Error::NonFiniteFeature { row: 1, feature: 0, value: f64::INFINITY }));
}

#[test]
fn ridge_refuses_bad_settings_and_targets() {
    let features = matrix(&[[1.0, 2.0], [3.0, 5.0], [4.0, 4.0]]);
    let targets = [1.0, 2.0, 3.0];
    for alpha in [-1e-9, f64::INFINITY] {
        let ridge = Ridge { alpha, ..Ridge::default() };
        let range = "be a finite number of at least 0";
        let refused = Err(Error::OutOfRange { setting: "alpha", range, found: alpha });
        assert_eq!(ridge.fit(&features, &targets), refused);
    }
    let nan = Ridge { alpha: f64::NAN, ..Ridge::default() }.fit(&features, &targets);
    assert!(matches!(nan, Err(Error::OutOfRange { setting: "alpha", .. })));

    let ridge = Ridge::default();
    assert_eq!(ridge.fit(&features, &targets[1..]), Err(Error::RowCount { n_rows: 3, what: "labels", found: 2 }));
    let infinite = ridge.fit(&features, &[1.0, f64::NEG_INFINITY, 2.0]);
    assert_eq!(infinite, Err(Error::NonFiniteTarget { row: 1, value: f64::NEG_INFINITY }));
    let fitted = ridge.fit(&features, &targets).unwrap();
    let other = Matrix::new(vec![1.0], 1).unwrap();
    assert_eq!(fitted.predict(&other), Err(Error::FeatureCount { expected: 2, found: 1 }));
}

#[test]
fn ridge_says_when_the_coefficients_are_undefined() {
    let least_squares = Ridge { alpha: 0.0, ..Ridge::default() };
    let twins = matrix(&[[0.1, 0.3], [0.2, 0.6], [0.7, 2.1], [0.4, 1.2]]);
    let targets = [1.0, 2.0, 3.0, 5.0];
    assert_eq!(least_squares.fit(&twins, &targets), Err(Error::Singular { order: 2, pivot: 1, alpha: 0.0 }));
    assert!(Ridge { alpha: 1e-3, ..least_squares }.fit(&twins, &targets).is_ok());

    // A combination is found whatever rounding leaves of its pivot, over many rows too.
    for (shift, n_rows) in (1..40).zip([10, 300, 2_000].into_iter().cycle()) {
        let rows = (0..n_rows).map(|i| {
            let (a, b) = ((i * 7919 + shift) as f64 % 97.1, (i * shift * 31) as f64 % 89.3);
            [a, b, 0.3 * a - 1.7 * b]
        });
        let combined = Matrix::from_rows(rows).unwrap();
        let targets: Vec<f64> = (0..n_rows).map(|i| (i % 5) as f64).collect();
        let undefined = least_squares.fit(&combined, &targets);
        assert_eq!(undefined, Err(Error::Singular { order: 3, pivot: 2, alpha: 0.0 }), "{shift}, {n_rows} rows");
    }

    let constant = matrix(&[[5.0, 1.0], [5.0, 2.0], [5.0, 4.0]]);
    let undefined = least_squares.fit(&constant, &targets[..3]);
    assert_eq!(undefined, Err(Error::Singular { order: 2, pivot: 0, alpha: 0.0 }));
    // Without an intercept the same feature stands for one.
    assert!(Ridge { fit_intercept: false, ..least_squares }.fit(&constant, &targets[..3]).is_ok());

    for fit_intercept in [true, false] {
        let wide = Matrix::new(vec![1.0, 5.0, 2.0, 3.0, 1.0, 1.0], 3).unwrap();
        let undefined = Ridge { alpha: 0.0, fit_intercept }.fit(&wide, &targets[..2]);
        assert!(matches!(undefined, Err(Error::Singular { order: 3, alpha: 0.0, .. })), "{undefined:?}");
    }
}

#[test]
fn ridge_refuses_overflow() {
    let ridge = Ridge::default();
    let sums = matrix(&[[1.0, 1.7e308], [2.0, 1.6e308]]);
    assert_eq!(ridge.fit(&sums, &[1.0, 2.0]), Err(Error::Overflow { feature: 1 }));
    let squares = matrix(&[[1e200, 0.0], [-1e200, 1.0]]);
    assert_eq!(ridge.fit(&squares, &[1.0, 2.0]), Err(Error::Overflow { feature: 0 }));
    let targets = ridge.fit(&matrix(&[[1.0, 20.0], [2.0, 10.0]]), &[1.7e308, -1.7e308]);
    assert!(matches!(targets, Err(Error::Overflow { .. })), "{targets:?}");
}
