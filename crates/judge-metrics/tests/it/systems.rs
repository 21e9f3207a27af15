//! Comparisons of clustered pairs, correlations by group and Somers' D, against SciPy (`scripts/metrics/systems_fixtures.py`).

use judge_metrics::Error;
use judge_metrics::agreement::{McNemarTest, clustered_mcnemar, mcnemar};
use judge_metrics::correlation::{KendallTest, grouped_correlation, kendall_tau_b, pearson, somers_d};

use crate::fixtures::{cases, counts, flags, near, numbers};

#[test]
fn grouped_correlations_are_means_of_scipys() {
    for case in cases("systems", "grouped", 2) {
        let (human, scores, group) = (numbers(&case["human"]), numbers(&case["scores"]), counts(&case["group"]));
        let found = grouped_correlation(&human, &scores, &group, pearson).unwrap();
        near(found.mean.estimate, &case["pearson"]);
        near(found.mean.standard_error().unwrap(), &case["pearson_se"]);
        assert_eq!(Some(found.undefined as u64), case["undefined"].as_u64());
        let tau = |x: &[f64], y: &[f64]| kendall_tau_b(x, y, KendallTest::Auto);
        near(grouped_correlation(&human, &scores, &group, tau).unwrap().mean.estimate, &case["kendall"]);
    }
    let alone = grouped_correlation(&[1.0, 2.0], &[1.0, 2.0], &["a", "b"], pearson);
    assert!(alone.unwrap_err().is_undefined());
    let nan = grouped_correlation(&[1.0, f64::NAN], &[1.0, 2.0], &["a", "a"], pearson);
    assert!(matches!(nan, Err(Error::NonFinite { argument: "x", .. })));
}

#[test]
fn clustered_mcnemar_is_a_score_test() {
    for case in cases("systems", "mcnemar", 2) {
        let (first, second, group) = (flags(&case["first"]), flags(&case["second"]), counts(&case["group"]));
        let ours = clustered_mcnemar(&first, &second, &group).unwrap();
        near(ours.statistic, &case["statistic"]);
        near(ours.p_value, &case["p"]);
        assert_eq!(clustered_mcnemar(&second, &first, &group), Ok(ours));
        // With an item to a cluster it is the plain test.
        let alone: Vec<usize> = (0..first.len()).collect();
        let only = |a: &[bool], b: &[bool]| a.iter().zip(b).filter(|(a, b)| **a && !**b).count();
        let plain = mcnemar(only(&first, &second), only(&second, &first), McNemarTest::ChiSquared).unwrap();
        let of_one = clustered_mcnemar(&first, &second, &alone).unwrap();
        assert!((of_one.statistic - plain.statistic).abs() < 1e-12 && (of_one.p_value - plain.p_value).abs() < 1e-12);
    }
    assert!(clustered_mcnemar(&[true], &[true], &[1]).unwrap_err().is_undefined());
    assert!(matches!(clustered_mcnemar(&[true], &[], &[1]), Err(Error::LengthMismatch { argument: "second", .. })));
}

#[test]
fn somers_d_has_the_standard_error_of_sas() {
    for case in cases("systems", "somers", 3) {
        let (x, y) = (numbers(&case["x"]), numbers(&case["y"]));
        let ours = somers_d(&x, &y).unwrap();
        near(ours.estimate, &case["d"]);
        near(ours.p_value().unwrap(), &case["p"]);
        near(ours.standard_error().unwrap(), &case["se"]);
        let interval = ours.interval(0.95).unwrap();
        assert!(
            -1.0 < interval.low && interval.low < ours.estimate && ours.estimate < interval.high && interval.high < 1.0
        );
    }
    assert!(somers_d(&[1.0, 2.0, 3.0], &[2.0, 4.0, 9.0]).unwrap().interval(0.95).unwrap_err().is_undefined());
}
