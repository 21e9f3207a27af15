//! Scores on the human scale: equal to scikit-learn 1.9.1, MAPIE 1.5.0 and the papers' definitions on `fixtures/calibrator.json`
//! (`scripts/metrics/calibrator_fixtures.py`), as covering as they say, and what is refused.

use judge_metrics::Error;
use judge_metrics::calibration::{CalibrationMethod, Calibrator, Direction, FittedCalibrator};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::draw::Draw;
use crate::fixtures::{fixture, list, numbers};

#[test]
fn every_row_a_fold_equals_mapie_and_the_definitions() {
    let cases = fixture("calibrator");
    let (mut intervals, mut sets) = (0, 0);
    for case in list(&cases) {
        let [x, y, at, values] = ["x", "y", "at", "values"].map(|key| numbers(&case[key]));
        let ordinal = case["kind"] == "ordinal";
        let method = if ordinal { CalibrationMethod::Ordinal } else { CalibrationMethod::Isotonic };
        let level = case["level"].as_f64().unwrap();
        let fitted = Calibrator { method, level, folds: x.len(), ..Calibrator::default() }.fit(&x, &y).unwrap();
        assert_eq!((fitted.n(), fitted.level()), (x.len(), level));
        for (i, calibrated) in fitted.calibrate_all(&at).unwrap().iter().enumerate() {
            let what = format!("{} {} at {}: {calibrated:?}", case["kind"], case["name"], at[i]);
            assert!((calibrated.value - values[i]).abs() < 1e-10, "{what}, not {}", values[i]);
            let [low, high] = match ordinal {
                true => numbers(&case["sets"][i])[..].try_into().unwrap(),
                false => [&case["low"][i], &case["high"][i]].map(|end| end.as_f64().unwrap()),
            };
            // Widened to hold the value, which the references are not.
            if low <= calibrated.value && calibrated.value <= high {
                let interval = calibrated.interval;
                assert!(
                    (interval.low - low).abs() < 1e-10 && (interval.high - high).abs() < 1e-10,
                    "{what}, not {low}, {high}"
                );
                *(if ordinal { &mut sets } else { &mut intervals }) += 1;
            }
        }
    }
    assert!(intervals >= 55 && sets >= 50, "{intervals} intervals and {sets} sets compared, of 60 each");
}

impl Draw {
    /// A judge's score and a person's: the judge squeezes the scale and is the less sure the higher it is.
    fn row(&mut self, grades: bool) -> (f64, f64) {
        let quality = 5.0 * self.uniform();
        let noise = (0.3 + quality / 5.0) * (self.uniform() + self.uniform() - 1.0);
        let human = (quality + noise).clamp(0.0, 5.0);
        (quality.sqrt(), if grades { human.round() } else { human })
    }
}

/// A bound on the chance of this share of hits or a lower one, if each trial hits with probability p (Chernoff).
fn chance_of_at_most(share: f64, trials: usize, p: f64) -> f64 {
    if share >= p {
        return 1.0;
    }
    let other = |q: f64, p: f64| if q == 0.0 { 0.0 } else { q * (q / p).ln() };
    (-(trials as f64) * (other(share, p) + other(1.0 - share, 1.0 - p))).exp()
}

/// Each trial draws its own graded rows and one new row, so hits are binomial. Proved is far less than the level; in practice it is held.
#[test]
fn new_rows_lie_in_their_intervals_as_often_as_the_level_says() {
    const TRIALS: usize = 1_500;
    for (method, n, level) in [
        (CalibrationMethod::Isotonic, 30, 0.9),
        (CalibrationMethod::Isotonic, 100, 0.8),
        (CalibrationMethod::Ordinal, 30, 0.9),
        (CalibrationMethod::Ordinal, 100, 0.8),
    ] {
        let settings = Calibrator { method, level, ..Calibrator::default() };
        let mut draw = Draw::new(21);
        let (mut hits, mut width) = (0, 0.0);
        for _ in 0..TRIALS {
            let rows = (0..n).map(|_| draw.row(method == CalibrationMethod::Ordinal));
            let (scores, human): (Vec<f64>, Vec<f64>) = rows.unzip();
            let (score, truth) = draw.row(method == CalibrationMethod::Ordinal);
            let calibrated = settings.fit(&scores, &human).unwrap().calibrate(score).unwrap();
            hits += usize::from(calibrated.interval.low <= truth && truth <= calibrated.interval.high);
            width += (calibrated.interval.high - calibrated.interval.low) / TRIALS as f64;
        }
        let rate = hits as f64 / TRIALS as f64;
        let what = format!("{method:?}, n = {n}, level {level}: {rate}, mean width {width}");
        assert!(chance_of_at_most(rate, TRIALS, level) > 1e-6, "{what}");
        // The whole scale, of width 5, would hold any level.
        assert!(rate < 0.99 && width < 3.0, "{what}");
    }
}

#[test]
fn what_is_assessed_is_what_new_rows_get() {
    let mut draw = Draw::new(3);
    for method in [CalibrationMethod::Isotonic, CalibrationMethod::Ordinal] {
        let mut sample =
            |n| -> (Vec<f64>, Vec<f64>) { (0..n).map(|_| draw.row(method == CalibrationMethod::Ordinal)).unzip() };
        let ((scores, human), (new, truth)) = (sample(300), sample(4_000));
        let settings = Calibrator { method, ..Calibrator::default() };
        let report = settings.assess(&scores, &human).unwrap();
        assert_eq!((report.n, report.folds, report.level, report.coverage.n), (300, 10, 0.9, 300));
        assert!(report.guaranteed > 0.7 && report.guaranteed < 0.8);
        let calibrated = settings.fit(&scores, &human).unwrap().calibrate_all(&new).unwrap();
        let held =
            calibrated.iter().zip(&truth).filter(|(c, truth)| (c.interval.low..=c.interval.high).contains(*truth));
        let rate = held.count() as f64 / 4_000.0;
        // 300 rows: the interval that holds the true share in all but one of a million cases.
        let known = report.coverage.wilson(1.0 - 1e-6).unwrap();
        assert!(known.low < rate && rate < known.high, "{method:?}: {rate}, not within {known:?}");
        let width = calibrated.iter().map(|c| c.interval.high - c.interval.low).sum::<f64>() / 4_000.0;
        assert!((report.width.estimate / width - 1.0).abs() < 0.15, "{method:?}: {width}, {:?}", report.width);
        assert_eq!(settings.assess(&scores, &human), Ok(report));
    }
}

/// Rows of a question share an offset of the judge's: held-out rows whose companions were fitted on look too easy.
#[test]
fn questions_are_on_one_side_of_each_fold() {
    let mut draw = Draw::new(8);
    // Each question has a score of its own, which tells a fit its grade, for ten rows.
    let (mut scores, mut human, mut question) = (Vec::new(), Vec::new(), Vec::new());
    for q in 0..30 {
        let (score, grade) = (draw.uniform(), 5.0 * draw.uniform());
        for _ in 0..10 {
            scores.push(score);
            human.push(grade + 0.1 * draw.uniform());
            question.push(q);
        }
    }
    let settings = Calibrator::default();
    let by_rows = settings.assess(&scores, &human).unwrap();
    let report = settings.assess_clustered(&scores, &human, &question).unwrap();
    assert_eq!((report.n, report.folds, report.guaranteed), (300, 10, 0.0));
    // A new question is as far off as questions are, which folds of rows do not see.
    assert!(report.error.estimate > 1.05 * by_rows.error.estimate, "{report:?} {by_rows:?}");
    let width = |of: judge_metrics::Estimate| of.interval(0.95).map(|interval| interval.high - interval.low).unwrap();
    assert!(width(report.covered) > 1.5 * width(by_rows.covered), "{report:?} {by_rows:?}");
    assert_eq!(by_rows.covered.interval(0.95), by_rows.coverage.wilson(0.95));
    // Without a question that a fold leaves out, the curves of that fold have none of its rows.
    let fitted = settings.fit_clustered(&scores, &human, &question).unwrap();
    for fold in fitted.parts().folds {
        assert_eq!(fold.errors.len(), 30);
    }
    // Clusters of one row each are rows.
    let each: Vec<usize> = (0..300).collect();
    assert_eq!(settings.fit_clustered(&scores, &human, &each), settings.fit(&scores, &human));
    assert_eq!(settings.assess_clustered(&scores, &human, &each), Ok(by_rows));
    // One question says nothing about others, and of two nothing is left to assess.
    let few = |clusters: usize| -> Vec<usize> { (0..300).map(|row| row % clusters).collect() };
    let one = settings.fit_clustered(&scores, &human, &few(1)).unwrap_err();
    assert_eq!(one, Error::TooFewClusters { required: 2, found: 1 });
    let two = settings.assess_clustered(&scores, &human, &few(2)).unwrap_err();
    assert_eq!(two, Error::TooFewClusters { required: 3, found: 2 });
    assert!(matches!(settings.fit_clustered(&scores, &human, &each[1..]), Err(Error::LengthMismatch { .. })));
}

fn rows() -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
    let score = prop_oneof![(0..6i32).prop_map(f64::from), -3.0..9.0f64];
    prop::collection::vec((score, (1..6i32).prop_map(f64::from)), 10..50).prop_map(|rows| rows.into_iter().unzip())
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(5), failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn values_are_monotone_and_within_their_intervals((scores, human) in rows(), ordinal in any::<bool>()) {
        let method = if ordinal { CalibrationMethod::Ordinal } else { CalibrationMethod::Isotonic };
        let settings = Calibrator { method, range: Some([1.0, 5.0]), ..Calibrator::default() };
        let Ok(fitted) = settings.fit(&scores, &human) else { return Ok(()) };
        let at: Vec<f64> = (-40..110).map(|tenth| f64::from(tenth) / 10.0).collect();
        let calibrated = fitted.calibrate_all(&at).unwrap();
        prop_assert!(calibrated.windows(2).all(|pair| pair[0].value <= pair[1].value + 1e-12));
        for c in &calibrated {
            prop_assert!(1.0 <= c.interval.low && c.interval.low <= c.value);
            prop_assert!(c.value <= c.interval.high && c.interval.high <= 5.0);
            prop_assert!(!ordinal || [c.interval.low, c.interval.high].iter().all(|end| human.contains(end)), "{:?}", c);
        }
        // A higher level never narrows.
        if let Ok(wider) = (Calibrator { level: 0.6, ..settings }).fit(&scores, &human) {
            let narrow = wider.calibrate_all(&at).unwrap();
            prop_assert!(narrow.iter().zip(&calibrated).all(|(a, b)| a.interval.low >= b.interval.low && a.interval.high <= b.interval.high));
        }
        // Saved and read back, it is the same to the bit.
        prop_assert_eq!(&FittedCalibrator::from_parts(fitted.parts()).unwrap(), &fitted);
        // Scores of the other sign stand for the same.
        let mirrored: Vec<f64> = scores.iter().map(|score| -score).collect();
        let falling = Calibrator { direction: Direction::Decreasing, ..settings }.fit(&mirrored, &human).unwrap();
        for (x, c) in at.iter().zip(&calibrated) {
            prop_assert!((falling.calibrate(-x).unwrap().value - c.value).abs() < 1e-9);
        }
    }
}

#[test]
fn too_few_rows_are_counted() {
    let column = |n: u32| (0..n).map(f64::from).collect::<Vec<_>>();
    for (level, enough, to_assess) in [(0.9, 9, 10), (0.95, 19, 22), (0.5, 2, 3)] {
        let settings = Calibrator { level, ..Calibrator::default() };
        let found = enough - 1;
        let few = settings.fit(&column(found), &column(found));
        assert_eq!(few.unwrap_err(), Error::TooFewItems { required: enough as usize, found: found as usize });
        assert!(settings.fit(&column(enough), &column(enough)).is_ok());
        let few = settings.assess(&column(to_assess - 1), &column(to_assess - 1)).unwrap_err();
        assert_eq!(few, Error::TooFewItems { required: to_assess as usize, found: to_assess as usize - 1 });
        let enough = settings.assess(&column(to_assess), &column(to_assess));
        assert!(enough.is_ok(), "{enough:?}");
    }
}

#[test]
fn an_interval_that_begins_at_zero_has_no_negative_zero() {
    let column: Vec<f64> = (0..20).map(|i| f64::from(i % 2)).collect();
    let low = Calibrator::default().fit(&column, &column).unwrap().calibrate(0.0).unwrap().interval.low;
    assert!(low == 0.0 && low.is_sign_positive(), "{low}");
}

#[test]
fn rows_that_teach_nothing_are_refused() {
    let (x, y): (Vec<f64>, Vec<f64>) = (0..20).map(|i| (f64::from(i), f64::from(i % 4))).unzip();
    let settings = Calibrator::default();
    for method in [CalibrationMethod::Isotonic, CalibrationMethod::Ordinal] {
        let settings = Calibrator { method, ..settings };
        for result in [settings.fit(&[2.0; 20], &y).err(), settings.assess(&[2.0; 20], &y).err()] {
            assert_eq!(result, Some(Error::Constant { argument: "scores", value: 2.0 }));
        }
        assert_eq!(settings.fit(&x, &[3.0; 20]).unwrap_err(), Error::Constant { argument: "human", value: 3.0 });
        let mut gap = y.clone();
        gap[7] = f64::NAN;
        assert!(matches!(settings.fit(&x, &gap), Err(Error::NonFinite { argument: "y", index: 7, .. })));
        assert!(matches!(settings.fit(&x, &y[1..]), Err(Error::LengthMismatch { .. })));
        let fitted = settings.fit(&x, &y).unwrap();
        assert!(matches!(fitted.calibrate(f64::NAN), Err(Error::NonFinite { argument: "score", .. })));
        assert!(matches!(fitted.calibrate_all(&[0.0, f64::INFINITY]), Err(Error::NonFinite { index: 1, .. })));
        // One grade in each of nearly all folds, and scores in ties.
        let (mut one, ties) = (vec![2.0; 20], (0..20).map(|i| f64::from(i / 10)).collect::<Vec<_>>());
        one[19] = 4.0;
        let rare = settings.fit(&ties, &one).unwrap().calibrate(1.0).unwrap();
        assert!((rare.value - 2.2).abs() < 1e-12 && rare.interval.low <= 2.2 && 2.2 <= rare.interval.high, "{rare:?}");
        assert!(settings.assess(&ties, &one).is_ok());
    }
    for level in [0.0, 1.0, f64::NAN] {
        assert!(matches!(Calibrator { level, ..settings }.fit(&x, &y), Err(Error::LevelOutOfRange { .. })));
    }
    let one_fold = Calibrator { folds: 1, ..settings };
    for result in [one_fold.fit(&x, &y).err(), one_fold.assess(&x, &y).err()] {
        assert!(matches!(result, Some(Error::OutOfRange { argument: "folds", .. })));
    }
    let off_scale = Calibrator { range: Some([1.0, 5.0]), ..settings }.fit(&x, &y).unwrap_err();
    assert!(matches!(off_scale, Error::OutOfRange { argument: "human", index: Some(0), .. }));
    let descends = Calibrator { range: Some([5.0, 1.0]), ..settings }.fit(&x, &y).unwrap_err();
    assert!(matches!(descends, Error::OutOfRange { argument: "range", value: 5.0, high: 1.0, .. }), "{descends}");
    // An expected grade that is no number.
    let far: Vec<f64> = y.iter().map(|grade| if *grade > 1.0 { f64::MAX } else { f64::MIN }).collect();
    let far = Calibrator { method: CalibrationMethod::Ordinal, ..settings }.fit(&x, &far).unwrap();
    assert!(matches!(far.calibrate(12.0), Err(Error::Undefined { .. })));
    let many: Vec<f64> = (0..200).map(f64::from).collect();
    let ordinal = Calibrator { method: CalibrationMethod::Ordinal, ..settings };
    assert_eq!(ordinal.fit(&many, &many).unwrap_err(), Error::TooManyItems { limit: 101, found: 200 });
}

#[test]
fn damaged_parts_are_refused() {
    let (x, y): (Vec<f64>, Vec<f64>) = (0..20).map(|i| (f64::from(i), f64::from(i % 4))).unzip();
    let parts = Calibrator { method: CalibrationMethod::Ordinal, ..Calibrator::default() }.fit(&x, &y).unwrap().parts();
    let damaged = |damage: &dyn Fn(&mut judge_metrics::calibration::CalibratorParts)| {
        let mut parts = parts.clone();
        damage(&mut parts);
        FittedCalibrator::from_parts(parts).unwrap_err()
    };
    assert!(matches!(damaged(&|p| p.level = 2.0), Error::LevelOutOfRange { .. }));
    assert!(matches!(damaged(&|p| p.folds.truncate(1)), Error::TooFewItems { required: 9, found: 2 }));
    assert!(matches!(damaged(&|p| p.grades = None), Error::LengthMismatch { argument: "curves", .. }));
    assert!(matches!(
        damaged(&|p| p.grades = Some(vec![2.0, 1.0])),
        Error::NotAscending { argument: "grades", index: 1 }
    ));
    assert!(matches!(damaged(&|p| p.folds[3].errors[0] = f64::NAN), Error::NonFinite { argument: "errors", .. }));
    assert!(matches!(damaged(&|p| p.whole.shares[0] = 1.5), Error::OutOfRange { argument: "shares", .. }));
    assert!(matches!(damaged(&|p| p.whole.curves[0].y[0] = 9.0), Error::Undefined { .. }));
    assert!(matches!(damaged(&|p| p.range = Some([5.0, 1.0])), Error::OutOfRange { argument: "range", .. }));
}
