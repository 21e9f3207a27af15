//! What `pingouin.partial_corr` 0.7.0 computes, in `fixtures/partial_correlation.json`, made by
//! `scripts/metrics/correlation_fixtures.py`, which says where pingouin itself falls short of the 60 digits used there.

use judge_metrics::Error;
use judge_metrics::correlation::{fisher_interval, partial_pearson, partial_spearman, pearson, spearman};

use crate::fixtures::{fixture, list, numbers};

#[test]
fn both_equal_pingouins() {
    let fixture = fixture("partial_correlation");
    for case in list(&fixture["cases"]) {
        let columns: Vec<Vec<f64>> = list(&case["columns"]).iter().map(numbers).collect();
        let covariates: Vec<&[f64]> = columns[2..].iter().map(Vec::as_slice).collect();
        // A covariate offset by 10⁷ of its spread has lost seven digits before it comes here; so has what 10⁻⁶ tells apart.
        let name = case["name"].as_str().unwrap();
        let tolerance = if name.starts_with("nearly") { 1e-8 } else { 1e-10 };
        let close = |ours: f64, expected: f64| (ours - expected).abs() <= tolerance * expected.abs();
        for (method, ours) in [
            ("pearson", partial_pearson(&columns[0], &columns[1], &covariates)),
            ("spearman", partial_spearman(&columns[0], &columns[1], &covariates)),
        ] {
            let expected = &case[method];
            if expected.is_null() {
                assert_eq!(ours, Err(Error::Collinear { argument: "covariates", index: Some(1) }), "{name}");
                continue;
            }
            let ours = ours.unwrap();
            assert!(close(ours.estimate, expected["estimate"].as_f64().unwrap()), "{name}, {method}: {ours:?}");
            assert!(close(ours.p_value().unwrap(), expected["p"].as_f64().unwrap()), "{name}, {method}: {ours:?}");
            let interval = fisher_interval(ours.estimate, ours.n - covariates.len(), 0.95).unwrap();
            let [low, high] = [0, 1].map(|i| expected["interval"][i].as_f64().unwrap());
            assert!(close(interval.low, low) && close(interval.high, high), "{name}, {method}: {interval:?}");
        }
    }
}

#[test]
fn without_covariates_they_are_the_plain_correlations() {
    let (x, y) = ([1.0, 4.0, 2.0, 8.0, 5.0], [2.0, 3.0, 3.0, 9.0, 1.0]);
    let (ours, plain) = (partial_pearson(&x, &y, &[]).unwrap(), pearson(&x, &y).unwrap());
    assert!(
        (ours.estimate - plain.estimate).abs() < 1e-15
            && (ours.p_value().unwrap() - plain.p_value().unwrap()).abs() < 1e-14
    );
    let (ours, plain) = (partial_spearman(&x, &y, &[]).unwrap(), spearman(&x, &y).unwrap());
    assert!(
        (ours.estimate - plain.estimate).abs() < 1e-15
            && (ours.p_value().unwrap() - plain.p_value().unwrap()).abs() < 1e-14
    );
}

#[test]
fn what_is_refused() {
    let (x, y, z) = ([1.0, 4.0, 2.0, 8.0, 5.0], [2.0, 3.0, 3.0, 9.0, 1.0], [0.3, 0.1, 0.9, 0.4, 0.6]);
    for partial in [partial_pearson, partial_spearman] {
        assert_eq!(
            partial(&x, &y, &[&z, &z[..4]]),
            Err(Error::LengthMismatch { argument: "covariates", found: 4, other: "x", expected: 5 })
        );
        assert_eq!(partial(&x, &y, &[&z, &z, &z]), Err(Error::TooFewItems { required: 6, found: 5 }));
        assert_eq!(partial(&x, &[7.0; 5], &[&z]), Err(Error::Constant { argument: "y", value: 7.0 }));
        assert_eq!(
            partial(&x, &y, &[&[1.0, 2.0, f64::INFINITY, 0.0, 0.0]]),
            Err(Error::NonFinite { argument: "covariates", index: 2, value: f64::INFINITY })
        );
        let collinear = |argument, index| Err(Error::Collinear { argument, index });
        assert_eq!(partial(&x, &y, &[&z, &z]), collinear("covariates", Some(1)));
        assert_eq!(partial(&x, &y, &[&[3.0; 5]]), collinear("covariates", Some(0)));
        assert_eq!(partial(&x, &y, &[&x]), collinear("x", None));
        assert_eq!(partial(&x, &y, &[&z, &y]), collinear("y", None));
        assert!(partial(&x, &y, &[&x]).unwrap_err().is_undefined());
    }
}
