//! Ridge regressions fitted together: what they share does not change what each of them is. Equality with scikit-learn is in
//! `scikit_learn.rs`.

use judge_probe::{Error, Estimator, LinearClassifier, Matrix, Ridge, RidgeToClass};

fn data(n_rows: usize, n_features: usize) -> (Matrix, Vec<f64>) {
    let value = |i: usize| ((i * 7919 + i * i) % 1009) as f64 / 101.0 - 5.0;
    let features = Matrix::new((0..n_rows * n_features).map(value).collect(), n_features).unwrap();
    (features, (0..n_rows).map(|row| 1.0 + ((row * 31) % 5) as f64).collect())
}

#[test]
fn alphas_fitted_together_are_those_fitted_alone() {
    // More rows than features, and fewer: the primal and the dual system; with alpha 0 the primal one of both.
    for (n_rows, n_features) in [(40, 6), (12, 30)] {
        let (features, targets) = data(n_rows, n_features);
        let alphas = [1.0, 0.0, 10.0, -1.0, 0.01, 1e6];
        let settings: Vec<Ridge> = [true, false]
            .iter()
            .flat_map(|&fit_intercept| alphas.map(|alpha| Ridge { alpha, fit_intercept }))
            .collect();
        let together = Ridge::fit_each(&settings, &features, &targets);
        let alone: Vec<_> = settings.iter().map(|settings| settings.fit(&features, &targets)).collect();
        assert_eq!(together, alone);
        assert_eq!(alone.iter().filter(|fitted| fitted.is_ok()).count(), if n_rows > n_features { 10 } else { 8 });
        assert!(matches!(alone[3], Err(Error::OutOfRange { setting: "alpha", found: -1.0, .. })));

        let classes: Vec<i64> = targets.iter().map(|&target| target as i64).collect();
        let to_class: Vec<RidgeToClass> = settings.iter().map(|&ridge| RidgeToClass { ridge }).collect();
        let together = RidgeToClass::fit_each(&to_class, &features, &classes);
        let alone: Vec<_> = to_class.iter().map(|settings| settings.fit(&features, &classes)).collect();
        assert_eq!(together, alone);
    }
}

#[test]
fn what_is_wrong_with_the_data_is_wrong_for_all() {
    let (features, targets) = data(8, 3);
    let ridges = [Ridge::default(), Ridge { alpha: 2.0, ..Ridge::default() }];
    let short = Err(Error::RowCount { n_rows: 8, what: "labels", found: 7 });
    assert_eq!(Ridge::fit_each(&ridges, &features, &targets[1..]), [short.clone(), short]);
    let one: [Result<LinearClassifier, Error>; 2] =
        [Err(Error::OneClass { class: 3 }), Err(Error::OneClass { class: 3 })];
    let to_class = ridges.map(|ridge| RidgeToClass { ridge });
    assert_eq!(RidgeToClass::fit_each(&to_class, &features, &[3; 8]), one);
}
