//! What defines the estimators, on any features.

use judge_probe::{Estimator, FittedEstimator, Matrix, Ridge, StandardScaler};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

fn features_and_targets() -> impl Strategy<Value = (Matrix, Vec<f64>)> {
    (1..12usize, 1..12usize).prop_flat_map(|(n_rows, n_features)| {
        (
            prop::collection::vec(-10.0..10.0f64, n_rows * n_features)
                .prop_map(move |values| Matrix::new(values, n_features).unwrap()),
            prop::collection::vec(-10.0..10.0f64, n_rows),
        )
    })
}

proptest! {
    // The same cases on every machine and in every run.
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(4), failure_persistence: None, ..ProptestConfig::default() })]

    /// The gradient of the objective vanishes, whichever of the two systems was solved.
    #[test]
    fn ridge_minimises_its_objective(
        (features, targets) in features_and_targets(), alpha in 0.01..100.0f64, fit_intercept: bool
    ) {
        let ridge = Ridge { alpha, fit_intercept }.fit(&features, &targets).unwrap();
        let predicted = ridge.predict(&features).unwrap();
        let residuals: Vec<f64> = targets.iter().zip(&predicted).map(|(target, ours)| target - ours).collect();
        for (feature, coefficient) in ridge.coefficients().iter().enumerate() {
            let pull: f64 = features.rows().zip(&residuals).map(|(row, residual)| row[feature] * residual).sum();
            prop_assert!((pull - alpha * coefficient).abs() < 1e-7, "{pull} against {}", alpha * coefficient);
        }
        if fit_intercept {
            prop_assert!(residuals.iter().sum::<f64>().abs() < 1e-9);
        } else {
            prop_assert_eq!(ridge.intercept(), 0.0);
        }
    }

    #[test]
    fn scaled_features_have_mean_0_and_variance_1_or_0((features, _) in features_and_targets()) {
        let scaled = StandardScaler::default().fit(&features).unwrap().transform(&features).unwrap();
        let n = scaled.n_rows() as f64;
        for feature in 0..scaled.n_features() {
            let mean = scaled.rows().map(|row| row[feature]).sum::<f64>() / n;
            let variance = scaled.rows().map(|row| row[feature].powi(2)).sum::<f64>() / n - mean * mean;
            prop_assert!(mean.abs() < 1e-9);
            prop_assert!((variance - 1.0).abs() < 1e-9 || variance.abs() < 1e-9, "{variance}");
        }
    }
}
