//! Calibrators of out-of-fold numbers: that they are of fits which had not seen the row, and what they are worth on new rows.

use judge_metrics::calibration::Calibrator;
use judge_probe::{
    Error, Estimator, GroupKFold, IntoProbe, KFold, LinearKernelSvc, LogisticRegression, Matrix, OrdinalRegression,
    Pipeline, Ridge, RidgeToClass, Split, StandardScaler, StratifiedKFold, calibrate_out_of_fold, cross_val_predict,
    out_of_fold_scores,
};

/// Numbers in [0, 1) that look like chance, the same wherever the test runs.
fn uniform(seed: u64, i: usize) -> f64 {
    // The finaliser of SplitMix64 (Steele, Lea and Flood, 2014).
    let mut z = (seed << 32).wrapping_add(i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Rows of features, the class of each and what people said, 10 to 30: the sum of a few features, in noise.
fn rows(seed: u64, n: usize, n_features: usize) -> (Matrix, Vec<i64>, Vec<f64>) {
    let values: Vec<f64> = (0..n * n_features).map(|i| uniform(seed, i) - 0.5).collect();
    let features = Matrix::new(values, n_features).unwrap();
    let truth = |(row, values): (usize, &[f64])| {
        (2.0 + values[0] + values[1] + 0.5 * (uniform(seed + 1000, row) - 0.5)).clamp(1.0, 3.0)
    };
    let truth: Vec<f64> = features.rows().enumerate().map(truth).collect();
    (features, truth.iter().map(|truth| truth.round() as i64).collect(), truth.iter().map(|t| 10.0 * t).collect())
}

/// What each fold's fit says of the rows it has not seen, put together by hand.
fn by_hand<E: Estimator<Label = i64, Fitted: IntoProbe>>(
    estimator: &E,
    features: &Matrix,
    classes: &[i64],
    folds: &[Split],
) -> Vec<f64> {
    let mut scores = vec![f64::NAN; classes.len()];
    for fold in folds {
        let train: Vec<i64> = fold.train.iter().map(|&row| classes[row]).collect();
        let fitted = estimator.fit(&features.select_rows(&fold.train).unwrap(), &train).unwrap();
        let found = fitted.into_probe().unwrap().scores(&features.select_rows(&fold.test).unwrap()).unwrap().unwrap();
        fold.test.iter().zip(found).for_each(|(&row, score)| scores[row] = score);
    }
    scores
}

#[test]
fn numbers_are_of_fits_that_had_not_seen_the_row() {
    let (features, classes, human) = rows(1, 90, 4);
    let folds = StratifiedKFold { n_splits: 5, shuffle: Some(3) }.split(&classes).unwrap();
    let scaled = |estimator| Pipeline { transformer: StandardScaler::default(), estimator };
    let logistic = scaled(LogisticRegression::default());
    let found = out_of_fold_scores(&logistic, &features, &classes, &folds).unwrap();
    assert_eq!(found, by_hand(&logistic, &features, &classes, &folds));
    // Where there are probabilities they are the expected classes that scikit-learn's recipe uses.
    let predicted = cross_val_predict(&logistic, &features, &classes, &folds).unwrap();
    assert_eq!(found, predicted.expected_classes().unwrap());

    let ridge = RidgeToClass { ridge: Ridge { alpha: 0.1, ..Ridge::default() } };
    let found = out_of_fold_scores(&ridge, &features, &classes, &folds).unwrap();
    assert_eq!(found, by_hand(&ridge, &features, &classes, &folds));
    assert!(found.iter().any(|number| number.fract() != 0.0), "numbers, not classes");
    assert!(cross_val_predict(&ridge, &features, &classes, &folds).unwrap().expected_classes().is_none());

    let settings = Calibrator::default();
    let calibrator = calibrate_out_of_fold(&ridge, &features, &classes, &human, &folds, settings).unwrap();
    assert_eq!(calibrator, settings.fit(&found, &human).unwrap());
}

#[test]
fn what_cannot_be_calibrated_is_refused() {
    let (features, classes, human) = rows(2, 30, 3);
    let folds = KFold { n_splits: 3, shuffle: None }.split(30).unwrap();
    let calibrator = Calibrator::default();
    let svc = calibrate_out_of_fold(&LinearKernelSvc::default(), &features, &classes, &human, &folds, calibrator);
    let Err(Error::InSplit { split: 0, error }) = svc else { panic!("{svc:?}") };
    assert!(matches!(*error, Error::NoNumber { .. }), "{error}");
    assert!(error.to_string().contains("classes alone"), "{error}");

    let ridge = RidgeToClass::default();
    let with = |human: &[f64], folds: &[Split], settings: Calibrator| {
        calibrate_out_of_fold(&ridge, &features, &classes, human, folds, settings)
    };
    assert!(matches!(with(&human, &folds[..2], calibrator), Err(Error::TestedTimes { times: 0, .. })));
    assert!(matches!(with(&human[1..], &folds, calibrator), Err(Error::Metric(_))));
    assert!(matches!(with(&[4.0; 30], &folds, calibrator), Err(Error::Metric(_))));
    let strict = Calibrator { level: 0.99, ..calibrator };
    assert!(matches!(
        with(&human, &folds, strict),
        Err(Error::Metric(judge_metrics::Error::TooFewItems { required: 99, found: 30 }))
    ));
}

/// As many features as rows, nearly, so that a fit knows its own rows by heart: 60 data sets whose truth is known.
#[test]
fn intervals_cover_new_rows_and_those_of_fitted_rows_do_not() {
    let ridge = RidgeToClass { ridge: Ridge { alpha: 0.01, ..Ridge::default() } };
    let calibrator = Calibrator { range: Some([10.0, 30.0]), ..Calibrator::default() };
    let (mut covered, mut covered_by_heart, mut n) = (0, 0, 0);
    for set in 0..60 {
        let (features, classes, human) = rows(10 + set, 60, 45);
        let folds = KFold { n_splits: 10, shuffle: Some(0) }.split(60).unwrap();
        let out_of_fold = calibrate_out_of_fold(&ridge, &features, &classes, &human, &folds, calibrator).unwrap();
        let probe = ridge.fit(&features, &classes).unwrap().into_probe().unwrap();
        let by_heart = calibrator.fit(&probe.scores(&features).unwrap().unwrap(), &human).unwrap();
        let (unseen, _, truth) = rows(5_000 + set, 40, 45);
        for (number, truth) in probe.scores(&unseen).unwrap().unwrap().into_iter().zip(truth) {
            let covers = |interval: judge_metrics::Interval| (interval.low..=interval.high).contains(&truth);
            covered += usize::from(covers(out_of_fold.calibrate(number).unwrap().interval));
            covered_by_heart += usize::from(covers(by_heart.calibrate(number).unwrap().interval));
            n += 1;
        }
    }
    let share = |count: usize| count as f64 / f64::from(n);
    assert!((0.88..0.97).contains(&share(covered)), "{}", share(covered));
    assert!(share(covered_by_heart) < 0.75, "{}", share(covered_by_heart));
}

/// Three copies of each row: folds by row show every fit the row that it is asked about.
#[test]
fn folds_by_question_do_not_flatter() {
    let (features, classes, human) = rows(77, 40, 30);
    let three = |i: usize| i % 40;
    let copies: Vec<usize> = (0..120).map(three).collect();
    let features = features.select_rows(&copies).unwrap();
    let classes: Vec<i64> = copies.iter().map(|&row| classes[row]).collect();
    let human: Vec<f64> = copies.iter().map(|&row| human[row]).collect();
    let width = |folds: &[Split]| {
        let settings = OrdinalRegression { c: 1000.0, ..OrdinalRegression::default() };
        let fitted =
            calibrate_out_of_fold(&settings, &features, &classes, &human, folds, Calibrator::default()).unwrap();
        let interval = fitted.calibrate(2.0).unwrap().interval;
        interval.high - interval.low
    };
    let by_row = KFold { n_splits: 5, shuffle: Some(1) }.split(120).unwrap();
    let by_question = GroupKFold { n_splits: 5, shuffle: Some(1) }.split(&copies).unwrap();
    assert!(width(&by_question) > 1.2 * width(&by_row), "{} {}", width(&by_question), width(&by_row));
}
