use super::*;

fn close(ours: f64, expected: f64, relative: f64) -> bool {
    (ours - expected).abs() <= relative * expected.abs()
}

fn numbers(list: &serde_json::Value) -> Vec<f64> {
    list.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

/// mpmath 1.4.1 with 50 digits, and `scipy.stats.binomtest` 1.17.1: `scripts/metrics/distribution_fixtures.py`.
#[test]
fn tails_and_quantiles_equal_fifty_digit_arithmetic() {
    let fixture: serde_json::Value =
        serde_json::from_str(include_str!("../../tests/fixtures/distribution.json")).unwrap();
    let mut worst = std::collections::BTreeMap::new();
    for case in fixture["cases"].as_array().unwrap() {
        let (name, expected) = (case[0].as_str().unwrap(), case[2].as_f64().unwrap());
        let ours = match (name, &numbers(&case[1])[..]) {
            ("normal_cdf", &[z]) => normal_cdf(z),
            ("normal_tail", &[z]) => normal_tail(z),
            ("normal_quantile", &[p]) => normal_quantile(p),
            ("normal_two_sided_quantile", &[level]) => normal_two_sided_quantile(level),
            ("student_t_tail", &[t, dof]) => student_t_tail(t, dof),
            ("student_t_quantile", &[p, dof]) => student_t_quantile(p, dof),
            ("beta_quantile", &[a, b, p]) => beta_quantile(a, b, p),
            ("f_sf", &[x, d1, d2]) => f_sf(x, d1, d2),
            ("f_quantile", &[p, d1, d2]) => f_quantile(p, d1, d2),
            ("binomial_two_sided", &[k, n, p]) => binomial_two_sided(k as u64, n as u64, p),
            _ => panic!("unknown case {case}"),
        };
        assert!(ours.is_finite(), "{case}: {ours}");
        let error = if ours == expected { 0.0 } else { ((ours - expected) / expected).abs() };
        let most = worst.entry(name.to_owned()).or_insert((-1.0, String::new()));
        if error > most.0 {
            *most = (error, format!("{case}: {ours:e}"));
        }
    }
    assert_eq!(worst.len(), 10);
    let off: Vec<_> = worst.iter().filter(|(_, (error, _))| *error > 2e-13).collect();
    assert!(off.is_empty(), "{off:#?}");
}

/// `scipy.special.betainc` 1.17.1, and up to 998 degrees of freedom `mpmath.betainc`.
#[test]
fn correlation_tail_equals_the_incomplete_beta_function() {
    let fixture: serde_json::Value = serde_json::from_str(include_str!("../../tests/fixtures/tail.json")).unwrap();
    let cases = fixture["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 180);
    for case in cases {
        let [r, dof, expected] = [0, 1, 2].map(|i| case[i].as_f64().unwrap());
        let ours = correlation_tail(r, dof);
        assert!(close(ours, expected, 1e-12), "r {r:e}, dof {dof}: {ours:e}, not {expected:e}");
    }
    assert_eq!([correlation_tail(1.0, 5.0), correlation_tail(-1.0, 5.0), correlation_tail(0.0, 5.0)], [0.0, 0.0, 1.0]);
}
