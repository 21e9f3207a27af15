//! The percentile bootstrap against NumPy on shared resamples (`scripts/metrics/make_fixtures.py`), and what it refuses.

use judge_metrics::correlation::{pearson, spearman};
use judge_metrics::resampling::Bootstrap;
use judge_metrics::{Error, Interval};
use serde_json::Value;

fn numbers(list: &Value) -> Vec<f64> {
    list.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

fn rho(x: &[f64], y: &[f64]) -> Result<f64, Error> {
    Ok(spearman(x, y)?.estimate)
}

const X: [f64; 8] = [3.1, 4.7, 1.2, 2.8, 4.9, 2.0, 3.6, 1.9];
const Y: [f64; 8] = [3.0, 5.0, 1.0, 2.0, 4.0, 2.0, 4.0, 3.0];

#[test]
fn intervals_equal_numpys_on_the_same_resamples() {
    let fixture: Value = serde_json::from_str(include_str!("fixtures/bootstrap.json")).unwrap();
    let mut undefined = 0;
    for case in fixture["cases"].as_array().unwrap() {
        let (x, y) = (numbers(&case["x"]), numbers(&case["y"]));
        let bootstrap = Bootstrap {
            resamples: case["resamples"].as_u64().unwrap() as usize,
            level: case["level"].as_f64().unwrap(),
            seed: case["seed"].as_u64().unwrap(),
        };
        for pair in case["rows"].as_array().unwrap().chunks(2) {
            let rows = bootstrap.rows(x.len(), pair[0].as_u64().unwrap() as usize);
            let expected: Vec<usize> =
                pair[1].as_array().unwrap().iter().map(|i| i.as_u64().unwrap() as usize).collect();
            assert_eq!(rows, expected);
        }
        let r = |x: &[f64], y: &[f64]| Ok(pearson(x, y)?.estimate);
        for (name, ours) in [("pearson", bootstrap.paired(&x, &y, r)), ("spearman", bootstrap.paired(&x, &y, rho))] {
            let (ours, expected) = (ours.unwrap(), &case[name]);
            let [low, high] = ["low", "high"].map(|end| expected[end].as_f64().unwrap());
            assert!((ours.interval.low - low).abs() <= 1e-12, "{name}: {ours:?}, not {low}");
            assert!((ours.interval.high - high).abs() <= 1e-12, "{name}: {ours:?}, not {high}");
            assert_eq!(ours.undefined as u64, expected["undefined"].as_u64().unwrap(), "{name}");
            assert_eq!((ours.resamples, ours.interval.level), (bootstrap.resamples, bootstrap.level));
            undefined += ours.undefined;
        }
    }
    assert!(undefined > 0, "no fixture exercises undefined resamples");
}

#[test]
fn the_seed_decides_and_nothing_else() {
    let bootstrap = Bootstrap { resamples: 500, ..Bootstrap::default() };
    let first = bootstrap.paired(&X, &Y, rho).unwrap();
    assert_eq!(bootstrap.paired(&X, &Y, rho).unwrap(), first);
    assert_ne!(Bootstrap { seed: 1, ..bootstrap }.paired(&X, &Y, rho).unwrap().interval, first.interval);
    // A resample does not depend on how many there are: what threads share out is a range of numbers.
    assert_eq!(Bootstrap { resamples: 1, ..bootstrap }.rows(8, 300), bootstrap.rows(8, 300));
    assert_ne!(bootstrap.rows(8, 300), bootstrap.rows(8, 301));
}

#[test]
fn one_resample_is_its_own_interval() {
    let bootstrap = Bootstrap { resamples: 1, ..Bootstrap::default() };
    let mean = |rows: &[usize]| Ok(rows.iter().map(|&row| X[row]).sum::<f64>() / rows.len() as f64);
    let ours = bootstrap.interval(X.len(), mean).unwrap();
    let only = mean(&bootstrap.rows(X.len(), 0)).unwrap();
    assert_eq!(ours.interval, Interval { low: only, high: only, level: 0.95 });
    assert_eq!(ours.estimate, X.iter().sum::<f64>() / 8.0);
}

#[test]
fn bad_settings_and_statistics_are_refused() {
    let default = Bootstrap { resamples: 200, ..Bootstrap::default() };
    for level in [0.0, 1.0, -0.5, 95.0, f64::INFINITY] {
        let refused = Bootstrap { level, ..default }.paired(&X, &Y, rho).unwrap_err();
        assert_eq!(refused, Error::LevelOutOfRange { level });
    }
    let nan = Bootstrap { level: f64::NAN, ..default }.paired(&X, &Y, rho);
    assert!(matches!(nan, Err(Error::LevelOutOfRange { .. })));
    assert_eq!(Bootstrap { resamples: 0, ..default }.paired(&X, &Y, rho), Err(Error::NoResamples));
    assert_eq!(default.interval(0, |_| Ok(1.0)), Err(Error::TooFewItems { required: 1, found: 0 }));
    assert_eq!(
        default.paired(&X, &Y[1..], rho),
        Err(Error::LengthMismatch { argument: "y", found: 7, other: "x", expected: 8 })
    );
    assert_eq!(default.paired(&X, &[2.0; 8], rho), Err(Error::Constant { argument: "y", value: 2.0 }));

    let infinite = default.interval(8, |_| Ok(f64::INFINITY));
    assert_eq!(infinite, Err(Error::NonFiniteStatistic { resample: None, value: f64::INFINITY }));
    let first_bad = (0..default.resamples).find(|&resample| default.rows(8, resample)[0] == 3).unwrap();
    let sometimes = default.interval(8, |rows| Ok(if rows[0] == 3 { f64::NEG_INFINITY } else { 1.0 }));
    let expected = Error::NonFiniteStatistic { resample: Some(first_bad), value: f64::NEG_INFINITY };
    assert_eq!(sometimes, Err(expected));

    // Defined on the rows as given, where all eight differ, but on no resample.
    let distinct = default.interval(8, |rows| {
        if rows.is_sorted_by(|a, b| a < b) { Ok(1.0) } else { Err(Error::Constant { argument: "rows", value: 0.0 }) }
    });
    assert_eq!(distinct, Err(Error::UndefinedOnEveryResample { resamples: 200 }));
}
