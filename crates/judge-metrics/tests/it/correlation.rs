//! Equality with SciPy on the columns of `fixtures/correlation.json`, made by `scripts/metrics/correlation_fixtures.py`.

use judge_metrics::correlation::{
    KendallTest, RankVariance, TauWeights, fisher_interval, kendall_tau_b, kendall_tau_c, pearson, somers_d, spearman,
    spearman_interval, weighted_tau,
};
use judge_metrics::{Estimate, NullDistribution};
use serde_json::Value;

use crate::fixtures::{fixture, list, numbers};

struct Case {
    name: String,
    x: Vec<f64>,
    y: Vec<f64>,
    expected: Value,
}

fn cases() -> Vec<Case> {
    let fixture = fixture("correlation");
    let cases: Vec<Case> = fixture["cases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|case| {
            let (x, y) = match case.get("lattices") {
                Some(lattices) => {
                    let n = lattices[0].as_u64().unwrap();
                    let column = |lattice: &Value| -> Vec<f64> {
                        let [a, m] = [0, 1].map(|i| lattice[i].as_u64().unwrap());
                        (0..n).map(|i| (i * a % m) as f64).collect()
                    };
                    (column(&lattices[1]), column(&lattices[2]))
                }
                None => (numbers(&case["x"]), numbers(&case["y"])),
            };
            Case { name: case["name"].as_str().unwrap().to_owned(), x, y, expected: case.clone() }
        })
        .collect();
    assert_eq!(cases.len(), 53);
    cases
}

/// 1e-10 relative; coefficients that are 0 but for rounding are compared on the scale of 1.
#[track_caller]
fn assert_close(name: &str, what: &str, ours: f64, expected: f64, floor: f64) {
    let difference = (ours - expected).abs();
    assert!(difference <= 1e-10 * expected.abs() + floor, "{name}: {what} is {ours:e}, expected {expected:e}");
}

/// `floor` of a number whose true value may be 0.
const ROUNDING: f64 = 1e-15;

fn assert_p_value(name: &str, ours: &Estimate, expected: &Value) {
    let p = expected["p"].as_f64().unwrap();
    // Near a coefficient of 1 its last bits move the p-value by more than the tolerance.
    let [low, high] = [0, 1].map(|i| expected["p_bounds"][i].as_f64().unwrap());
    if !(low..=high).contains(&ours.p_value().unwrap()) {
        assert_close(name, "p-value", ours.p_value().unwrap(), p, 0.0);
    }
}

#[test]
fn pearson_equals_scipy() {
    for case in cases() {
        let ours = pearson(&case.x, &case.y).unwrap();
        let expected = &case.expected["pearson"];
        assert_close(&case.name, "r", ours.estimate, expected["estimate"].as_f64().unwrap(), ROUNDING);
        assert_p_value(&case.name, &ours, expected);
        assert_eq!((ours.n, ours.null_distribution()), (case.x.len(), Some(NullDistribution::Beta)));
    }
}

#[test]
fn fisher_intervals_equal_scipys() {
    for case in cases() {
        let expected = &case.expected["pearson"];
        let r = expected["estimate"].as_f64().unwrap();
        for interval in list(&expected["intervals"]) {
            let [level, low, high] = [0, 1, 2].map(|i| interval[i].as_f64().unwrap());
            if 1.0 - r * r < 1e-12 && case.x.len() > 3 {
                assert!(fisher_interval(r, case.x.len(), level).unwrap_err().is_undefined(), "SciPy gives the point");
                continue;
            }
            let ours = fisher_interval(r, case.x.len(), level).unwrap();
            assert_close(&case.name, "low", ours.low, low, ROUNDING);
            assert_close(&case.name, "high", ours.high, high, ROUNDING);
            assert_eq!(ours.level, level);
        }
    }
}

#[test]
fn fisher_intervals_of_extremes() {
    for r in [-1.0, 0.0, 0.3, 1.0] {
        let three = fisher_interval(r, 3, 0.95).unwrap();
        assert_eq!((three.low, three.high), (-1.0, 1.0), "three pairs bound nothing");
    }
    for r in [-1.0, 1.0] {
        assert!(fisher_interval(r, 4, 0.95).unwrap_err().is_undefined(), "SciPy gives the point");
    }
}

#[test]
fn spearman_equals_scipy() {
    for case in cases() {
        let ours = spearman(&case.x, &case.y).unwrap();
        let expected = &case.expected["spearman"];
        assert_close(&case.name, "rho", ours.estimate, expected["estimate"].as_f64().unwrap(), ROUNDING);
        assert_p_value(&case.name, &ours, expected);
        assert_eq!((ours.n, ours.null_distribution()), (case.x.len(), Some(NullDistribution::StudentT)));
    }
}

#[test]
fn kendall_equals_scipy_in_every_test() {
    let (mut exact, mut asymptotic) = (0, 0);
    for case in cases() {
        let expected = &case.expected["kendall"];
        let auto = kendall_tau_b(&case.x, &case.y, KendallTest::Auto).unwrap();
        assert_close(&case.name, "tau", auto.estimate, expected["estimate"].as_f64().unwrap(), ROUNDING);
        assert_close(&case.name, "auto p", auto.p_value().unwrap(), expected["auto"].as_f64().unwrap(), 0.0);
        let stuart = kendall_tau_c(&case.x, &case.y, KendallTest::Auto).unwrap();
        assert_close(&case.name, "tau-c", stuart.estimate, expected["c"].as_f64().unwrap(), ROUNDING);
        assert_eq!(
            (stuart.p_value(), stuart.null_distribution()),
            (auto.p_value(), auto.null_distribution()),
            "{}",
            case.name
        );
        if let Some(p) = expected["exact"].as_f64() {
            let ours = kendall_tau_b(&case.x, &case.y, KendallTest::Exact).unwrap();
            assert_close(&case.name, "exact p", ours.p_value().unwrap(), p, 0.0);
            assert_eq!(ours.null_distribution(), Some(NullDistribution::Permutation));
            exact += 1;
        }
        if let Some(p) = expected["asymptotic"].as_f64() {
            let ours = kendall_tau_b(&case.x, &case.y, KendallTest::Asymptotic).unwrap();
            assert_close(&case.name, "asymptotic p", ours.p_value().unwrap(), p, 0.0);
            assert_eq!(ours.null_distribution(), Some(NullDistribution::Normal));
            asymptotic += 1;
        }
    }
    assert!(exact >= 30 && asymptotic >= 50, "{exact} exact, {asymptotic} asymptotic");
}

/// A perfect order is 1 and not nearly so; SciPy's own last bit varies with the data.
#[test]
fn perfect_order_is_exact() {
    let x: Vec<f64> = (0..97).map(f64::from).collect();
    let y: Vec<f64> = x.iter().map(|x| -(x / 9.0).exp()).collect();
    let rho = spearman(&x, &y).unwrap();
    let tau = kendall_tau_b(&x, &y, KendallTest::Auto).unwrap();
    assert_eq!((rho.estimate, rho.p_value().unwrap(), tau.estimate), (-1.0, 0.0, -1.0));
}

/// `scipy.stats.somersd` 1.17.1.
#[test]
fn somers_d_equals_scipys_both_ways() {
    let mut compared = 0;
    for case in cases() {
        for (given, (x, y)) in [(&case.x, &case.y), (&case.y, &case.x)].into_iter().enumerate() {
            let expected = &case.expected["somers"][given];
            if expected.is_null() {
                continue;
            }
            let ours = somers_d(x, y).unwrap();
            assert_close(&case.name, "D", ours.estimate, expected[0].as_f64().unwrap(), ROUNDING);
            assert_close(&case.name, "p-value", ours.p_value().unwrap(), expected[1].as_f64().unwrap(), 1e-300);
            compared += 1;
        }
    }
    assert!(compared >= 100, "{compared}");
}

/// `scipy.stats.weightedtau` 1.17.1 with `rank` True, None and False.
#[test]
fn weighted_tau_equals_scipys() {
    for case in cases() {
        for (weights, expected) in [TauWeights::Mean, TauWeights::ByX, TauWeights::AsGiven]
            .into_iter()
            .zip(numbers(&case.expected["weighted_tau"]))
        {
            let ours = weighted_tau(&case.x, &case.y, weights).unwrap();
            assert_close(&case.name, "weighted tau", ours.estimate, expected, 1e-13);
        }
    }
}

/// The formulas of Bonett and Wright (2000), written out once more.
#[test]
fn rank_intervals_are_fishers_with_another_variance() {
    let z = 1.959963984540054;
    for (r, n) in [(0.6_f64, 50_usize), (-0.2, 5), (0.93, 1000)] {
        let at = |variance: f64| [-1.0, 1.0].map(|side| (r.atanh() + side * z * variance.sqrt()).tanh());
        let left = n as f64 - 3.0;
        let ours = [
            spearman_interval(r, n, 0.95, RankVariance::BonettWright),
            spearman_interval(r, n, 0.95, RankVariance::Fieller),
        ];
        let expected = [at((1.0 + r * r / 2.0) / left), at(1.06 / left)];
        for (ours, [low, high]) in ours.into_iter().zip(expected) {
            let ours = ours.unwrap();
            assert_close("interval", "low", ours.low, low, 0.0);
            assert_close("interval", "high", ours.high, high, 0.0);
        }
    }
    for rho in [1.0, -1.0] {
        assert!(spearman_interval(rho, 4, 0.95, RankVariance::BonettWright).unwrap_err().is_undefined());
    }
    // Kendall's, of columns without ties.
    let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let tau = kendall_tau_b(&x, &[2.0, 1.0, 3.0, 4.0, 6.0, 5.0], KendallTest::Auto).unwrap();
    let (centre, half) = (tau.estimate.atanh(), z * (0.437_f64 / 2.0).sqrt());
    let interval = tau.interval(0.95).unwrap();
    assert_close("interval", "low", interval.low, (centre - half).tanh(), 0.0);
    assert_close("interval", "high", interval.high, (centre + half).tanh(), 0.0);
    let open = kendall_tau_b(&x[..4], &[1.0, 3.0, 2.0, 4.0], KendallTest::Auto).unwrap().interval(0.9).unwrap();
    assert_eq!((open.low, open.high), (-1.0, 1.0), "four pairs bound nothing");
}
