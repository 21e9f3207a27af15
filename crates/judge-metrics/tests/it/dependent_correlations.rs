//! Two correlations that share a variable: the papers' worked examples, and their formulas with 60 digits in
//! `fixtures/dependent_correlations.json`, made by `scripts/metrics/correlation_fixtures.py`.

use judge_metrics::correlation::{DependentCorrelations, DifferenceTest};
use judge_metrics::{Error, Interval};

use crate::fixtures::cases;

fn rounded(value: f64, digits: i32) -> f64 {
    (value * 10f64.powi(digits)).round() / 10f64.powi(digits)
}

fn close(ours: f64, expected: f64) -> bool {
    (ours - expected).abs() <= 1e-10 * expected.abs() + 1e-300
}

#[test]
fn every_method_equals_its_formula() {
    for case in cases("dependent_correlations", "cases", 14) {
        let number = |name: &str| case[name].as_f64().unwrap();
        let pair = |name: &str| [0, 1].map(|i| case[name][i].as_f64().unwrap());
        let ours =
            DependentCorrelations::new(number("r12"), number("r13"), number("r23"), number("n") as usize).unwrap();
        let tests: [(&str, DifferenceTest); 4] = [
            ("williams", ours.williams().unwrap()),
            ("steiger", ours.steiger().unwrap()),
            ("dunn_clark", ours.dunn_clark().unwrap()),
            ("meng", ours.meng().unwrap()),
        ];
        for (name, test) in tests {
            let [statistic, p_value] = pair(name);
            assert!(close(test.statistic, statistic), "{name} {}, not {statistic}: {ours:?}", test.statistic);
            assert!(close(test.p_value, p_value), "{name} p {}, not {p_value}: {ours:?}", test.p_value);
        }
        let intervals: [(&str, Interval); 2] =
            [("meng_interval", ours.meng_interval(0.95).unwrap()), ("zou_interval", ours.zou_interval(0.95).unwrap())];
        for (name, interval) in intervals {
            let [low, high] = pair(name);
            assert!(close(interval.low, low) && close(interval.high, high), "{name} {interval:?}: {ours:?}");
        }
    }
}

/// As the papers print them, and depcor (Silver, Hittner and May, 2006) for r = .3, .4, .5 and n = 100.
#[test]
fn worked_examples_of_the_papers() {
    let depcor = DependentCorrelations::new(0.3, 0.4, 0.5, 100).unwrap();
    let printed = [
        (depcor.williams(), -1.0767, 0.2843),
        (depcor.dunn_clark(), -1.0730, 0.2833),
        (depcor.steiger(), -1.0718, 0.2838),
        (depcor.meng(), -1.0707, 0.2843),
    ];
    for (test, statistic, p_value) in printed {
        let test = test.unwrap();
        assert_eq!((rounded(test.statistic, 4), rounded(test.p_value, 4)), (statistic, p_value));
    }

    // Meng, Rosenthal and Rubin (1992): z = 1.68, one-sided p = .047, interval (-.129, 1.671), the latter from rounded terms.
    let meng = DependentCorrelations::new(0.63, -0.03, -0.19, 15).unwrap();
    let test = meng.meng().unwrap();
    assert_eq!((rounded(test.statistic, 2), rounded(test.p_value / 2.0, 3)), (1.68, 0.047));
    let interval = meng.meng_interval(0.95).unwrap();
    assert_eq!((rounded(interval.low, 3), rounded(interval.high, 3)), (-0.129, 1.672));

    // May and Hittner (1997), Meng's z for r = .5, .2 and .7, .4 at n = 50 over the third correlation.
    for (r23, expected) in [(0.0, [1.62, 2.03]), (0.3, [1.91, 2.32]), (0.6, [2.50, 2.94]), (0.8, [3.50, 4.05])] {
        let z = [(0.5, 0.2), (0.7, 0.4)]
            .map(|(r12, r13)| DependentCorrelations::new(r12, r13, r23, 50).unwrap().meng().unwrap().statistic);
        assert_eq!(z.map(|z| rounded(z, 2)), expected);
    }

    // Zou (2007): .396 and .179 with .088 between, n = 66.
    let zou = DependentCorrelations::new(0.396, 0.179, 0.088, 66).unwrap().zou_interval(0.95).unwrap();
    assert_eq!((rounded(zou.low, 3), rounded(zou.high, 3)), (-0.093, 0.517));
}

#[test]
fn exchanging_the_judges_changes_the_sign() {
    for (r12, r13, r23) in [(0.3, 0.4, 0.5), (-0.2, 0.35, -0.6), (0.99, 0.985, 0.97)] {
        let ours = DependentCorrelations::new(r12, r13, r23, 40).unwrap();
        let exchanged = DependentCorrelations::new(r13, r12, r23, 40).unwrap();
        for method in [
            DependentCorrelations::williams,
            DependentCorrelations::steiger,
            DependentCorrelations::dunn_clark,
            DependentCorrelations::meng,
        ] {
            let (a, b) = (method(&ours).unwrap(), method(&exchanged).unwrap());
            assert!(close(a.statistic, -b.statistic) && close(a.p_value, b.p_value), "{a:?} {b:?}");
        }
        for interval in [DependentCorrelations::meng_interval, DependentCorrelations::zou_interval] {
            let (a, b) = (interval(&ours, 0.9).unwrap(), interval(&exchanged, 0.9).unwrap());
            assert!(close(a.low, -b.high) && close(a.high, -b.low), "{a:?} {b:?}");
        }
    }
}

#[test]
fn columns_give_their_correlations() {
    let human = [3.0, 5.0, 1.0, 2.0, 4.0, 2.0];
    let first = [3.1, 4.7, 1.2, 2.8, 4.9, 2.0];
    let second = [4.0, 5.0, 3.0, 2.0, 4.0, 4.0];
    let ours = DependentCorrelations::of_columns(&human, &first, &second).unwrap();
    let r = |x: &[f64], y: &[f64]| judge_metrics::correlation::pearson(x, y).unwrap().estimate;
    let expected =
        DependentCorrelations::new(r(&human, &first), r(&human, &second), r(&first, &second), human.len()).unwrap();
    assert_eq!(ours, expected);
    assert_eq!(ours.difference(), r(&human, &first) - r(&human, &second));
}

#[test]
fn what_is_refused() {
    assert_eq!(DependentCorrelations::new(1.2, 0.0, 0.0, 9), Err(Error::NotACorrelation { value: 1.2 }));
    let nan = DependentCorrelations::new(0.1, f64::NAN, 0.0, 9);
    assert!(matches!(nan, Err(Error::NotACorrelation { value }) if value.is_nan()));
    assert_eq!(DependentCorrelations::new(0.1, 0.2, 0.3, 3), Err(Error::TooFewItems { required: 4, found: 3 }));
    let impossible = DependentCorrelations::new(0.9, 0.9, -0.9, 50);
    assert!(matches!(impossible, Err(Error::NotPositiveSemidefinite { determinant }) if determinant < -2.0));

    // One judge twice: no difference and no noise.
    let same = DependentCorrelations::new(0.5, 0.5, 1.0, 50).unwrap();
    for test in [same.williams(), same.steiger(), same.dunn_clark(), same.meng()] {
        assert!(test.unwrap_err().is_undefined());
    }
    assert!(same.meng_interval(0.95).unwrap_err().is_undefined());
    assert!(same.zou_interval(0.95).unwrap_err().is_undefined());

    // A judge that is the people: Fisher's z is infinite, Williams' t is not.
    let perfect = DependentCorrelations::new(1.0, 0.5, 0.5, 50).unwrap();
    assert!(perfect.williams().is_ok());
    for error in [perfect.steiger().map(|_| ()), perfect.meng().map(|_| ()), perfect.zou_interval(0.95).map(|_| ())] {
        assert!(error.unwrap_err().is_undefined());
    }
    let level = Err(Error::LevelOutOfRange { level: 1.0 });
    assert_eq!([perfect.zou_interval(1.0), same.meng_interval(1.0)], [level.clone(), level]);

    let columns = DependentCorrelations::of_columns(&[1.0, 2.0, 3.0, 4.0], &[2.0; 4], &[1.0, 2.0, 4.0, 3.0]);
    assert_eq!(columns, Err(Error::Constant { argument: "y", value: 2.0 }));
}
