//! Rows in single precision: they predict what a matrix of them predicts, and name what is wrong with them.

use judge_probe::{
    DecisionRule, Error, Estimator, F32Rows, FittedEstimator, FittedProbe, IntoProbe, LinearClassifier,
    LinearKernelSvc, LogisticRegression, Matrix, Pca, Pipeline, Precision, Ridge, RidgeToClass, StandardScaler,
};

/// More rows than two blocks of 256, and not a whole number of them.
const N_ROWS: usize = 601;

fn states(n_features: usize) -> Vec<f32> {
    (0..N_ROWS * n_features).map(|i| ((i * 7919 + i * i % 1013) % 997) as f32 / 331.0 - 1.5).collect()
}

fn labels() -> Vec<i64> {
    (0..N_ROWS).map(|row| [1, 2, 5][(row * 7919 % 997) % 3]).collect()
}

#[test]
fn predictions_are_those_of_the_matrix_to_the_bit() {
    let (states, labels) = (states(6), labels());
    let rows = F32Rows::new(&states, 6).unwrap();
    assert_eq!((rows.n_rows(), rows.n_features()), (N_ROWS, 6));
    let matrix = rows.to_matrix();
    assert_eq!(matrix, Matrix::new(states.iter().map(|&value| f64::from(value)).collect(), 6).unwrap());
    assert_eq!(matrix, Matrix::from_f32_rows(states.chunks(6)).unwrap());
    assert_eq!(matrix.select_rows(&[600, 0, 0, 7]), rows.select_rows(&[600, 0, 0, 7]));

    let logistic = Pipeline { transformer: StandardScaler::default(), estimator: LogisticRegression::default() };
    let logistic =
        Pipeline { transformer: Pca { n_components: 4 }, estimator: logistic }.fit(&matrix, &labels).unwrap();
    let svc = LinearKernelSvc { c: 0.01, ..LinearKernelSvc::default() }
        .fit(&matrix.select_rows(&(0..60).collect::<Vec<_>>()).unwrap(), &labels[..60])
        .unwrap();
    let ridge = RidgeToClass::default().fit(&matrix, &labels).unwrap();
    for probe in [logistic.into_probe().unwrap(), svc.into_probe().unwrap(), ridge.into_probe().unwrap()] {
        for precision in [Precision::F64, Precision::F32, Precision::F16] {
            let probe = FittedProbe::new(probe.stages().to_vec(), probe.classifier().clone(), precision).unwrap();
            assert_eq!(rows.predictions(&probe), probe.predictions(&matrix));
            assert_eq!(rows.scores(&probe), probe.scores(&matrix));
        }
    }
    let targets: Vec<f64> = labels.iter().map(|&label| label as f64).collect();
    let regression = Ridge::default().fit(&matrix, &targets).unwrap();
    assert_eq!(rows.predictions(&regression), regression.predictions(&matrix));
}

#[test]
fn blocks_are_all_rows_in_their_order() {
    let states = states(3);
    let rows = F32Rows::new(&states, 3).unwrap();
    for (n_rows, sizes) in [(0, 601), (1, 601), (256, 3), (600, 2), (601, 1), (usize::MAX, 1)] {
        let blocks: Vec<Matrix> = rows.blocks(n_rows).collect();
        assert_eq!(blocks.len(), sizes, "{n_rows}");
        let together: Vec<f64> = blocks.iter().flat_map(|block| block.values().to_vec()).collect();
        assert_eq!(together, rows.to_matrix().values());
    }
}

#[test]
fn what_is_no_table_of_features_is_refused() {
    assert_eq!(F32Rows::new(&[], 2), Err(Error::Empty { n_rows: 0, n_features: 2 }));
    assert_eq!(F32Rows::new(&[1.0], 0), Err(Error::Empty { n_rows: 0, n_features: 0 }));
    assert_eq!(F32Rows::new(&[1.0; 5], 2), Err(Error::PartialRow { n_values: 5, n_features: 2 }));
    let infinite = F32Rows::new(&[1.0, 2.0, 3.0, f32::NEG_INFINITY], 2);
    assert_eq!(infinite, Err(Error::NonFiniteFeature { row: 1, feature: 1, value: f64::NEG_INFINITY }));
    let rows = F32Rows::new(&[1.0, 2.0], 2).unwrap();
    assert_eq!(rows.select_rows(&[1]), Err(Error::RowOutOfRange { row: 1, n_rows: 1 }));
    assert_eq!(rows.select_rows(&[]), Err(Error::Empty { n_rows: 0, n_features: 2 }));

    assert_eq!(Matrix::from_f32_rows::<[f32; 2]>([]), Err(Error::Empty { n_rows: 0, n_features: 0 }));
    assert_eq!(Matrix::from_f32_rows([[0.0; 0]; 3]), Err(Error::Empty { n_rows: 3, n_features: 0 }));
    let ragged = Matrix::from_f32_rows([&[1.0, 2.0][..], &[3.0]]);
    assert_eq!(ragged, Err(Error::RaggedRow { row: 1, expected: 2, found: 1 }));
    let nan = Matrix::from_f32_rows([[1.0, 2.0], [f32::NAN, 0.0]]);
    assert!(matches!(nan, Err(Error::NonFiniteFeature { row: 1, feature: 0, .. })), "{nan:?}");
}

/// An error of the 513th row is one of the third block's first.
#[test]
fn rows_of_errors_are_counted_among_all() {
    let steep = FittedProbe::new(
        vec![],
        LinearClassifier::from_parts(
            DecisionRule::Logistic,
            vec![0, 1],
            Matrix::new(vec![1e300], 1).unwrap(),
            vec![0.0],
        )
        .unwrap(),
        Precision::F64,
    )
    .unwrap();
    let mut states = vec![1.0_f32; N_ROWS];
    states[512] = 1e30;
    let rows = F32Rows::new(&states, 1).unwrap();
    let overflow = Error::NonFiniteFeature { row: 512, feature: 0, value: f64::INFINITY };
    assert_eq!(rows.predictions(&steep), Err(overflow.clone()));
    assert_eq!(rows.scores(&steep), Err(overflow.clone()));
    assert_eq!(steep.predictions(&rows.to_matrix()), Err(overflow));
    assert_eq!(
        F32Rows::new(&states[..600], 2).unwrap().predictions(&steep),
        Err(Error::FeatureCount { expected: 1, found: 2 })
    );
}
