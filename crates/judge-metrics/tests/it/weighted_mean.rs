//! Means of items drawn with unequal probabilities, against statsmodels (`scripts/metrics/weighted_fixtures.py`) and by simulation.

use judge_metrics::comparison::{ComparedItem, Comparison, ComparisonSettings, Rating};
use judge_metrics::means::{PredictionPoweredMean, Tuning, clustered_mean, weighted_mean};
use judge_metrics::resampling::Bootstrap;
use judge_metrics::{Error, Estimate};
use serde_json::Value;

use crate::compared::compared;
use crate::draw::Draw;
use crate::fixtures::{counts, fixture, list, numbers};

#[track_caller]
fn near(mean: &Estimate, case: &Value, tolerance: f64) {
    let interval = mean.interval(0.95).unwrap();
    let ours = [mean.estimate, mean.standard_error().unwrap(), interval.low, interval.high];
    for (ours, name) in ours.into_iter().zip(["mean", "se", "low", "high"]) {
        let expected = case[name].as_f64().unwrap();
        assert!((ours - expected).abs() <= tolerance * case["se"].as_f64().unwrap(), "{name}: {ours}, not {expected}");
    }
}

#[test]
fn they_equal_statsmodels() {
    let fixture = fixture("weighted");
    for case in list(&fixture["means"]) {
        let (values, probabilities) = (numbers(&case["values"]), numbers(&case["probabilities"]));
        let mean = weighted_mean(&values, &probabilities, &counts(&case["groups"])).unwrap();
        near(&mean, case, 1e-10);
        let p = case["p"].as_f64().unwrap();
        assert!((mean.p_value().unwrap() - p).abs() <= 1e-9 * p, "{mean:?}");
        // Equal probabilities weigh nothing.
        let alike = weighted_mean(&values, &vec![0.25; values.len()], &counts(&case["groups"])).unwrap();
        let plain = clustered_mean(&values, &counts(&case["groups"])).unwrap();
        assert!((alike.estimate - plain.estimate).abs() < 1e-14);
    }
    for case in list(&fixture["powered"]) {
        let fixed = case["fixed"].as_f64();
        let settings = PredictionPoweredMean { tuning: fixed.map_or(Tuning::Optimal, Tuning::Fixed) };
        let both = |name: &str, place: usize| &case[name][place];
        let found = settings.sampled(
            &numbers(&case["labels"]),
            &numbers(both("scores", 0)),
            &numbers(&case["probabilities"]),
            &counts(both("groups", 0)),
            &numbers(both("scores", 1)),
            &counts(both("groups", 1)),
        );
        let found = found.unwrap();
        // A minimiser leaves half of the digits.
        let tolerance = if fixed.is_some() { 1e-10 } else { 1e-6 };
        assert!((found.lambda - case["lambda"].as_f64().unwrap()).abs() <= tolerance, "{found:?}");
        near(&found.mean, case, tolerance);
    }
}

/// Rows with a high score are three times as likely to be graded: the plain mean of grades is not the population's.
#[test]
fn intervals_hold_the_mean_of_all_rows() {
    const TRIALS: usize = 1_000;
    let mut draw = Draw::new(5);
    let (mut weighted, mut powered, mut plain, mut gain) = (0, 0, 0, 0.0);
    for _ in 0..TRIALS {
        let (mut labels, mut scores, mut probabilities, mut others) = (vec![], vec![], vec![], vec![]);
        for _ in 0..400 {
            let score = 4.0 * draw.uniform();
            let label = 1.0 + score + 2.0 * (draw.uniform() - 0.5);
            let p = if score > 2.0 { 0.3 } else { 0.1 };
            if draw.uniform() < p {
                labels.push(label);
                scores.push(score);
                probabilities.push(p);
            } else {
                others.push(score);
            }
        }
        let rows: Vec<usize> = (0..400).collect();
        let (graded, rest) = rows.split_at(labels.len());
        let mean = weighted_mean(&labels, &probabilities, graded).unwrap();
        let settings = PredictionPoweredMean::default();
        let helped = settings.sampled(&labels, &scores, &probabilities, graded, &others, rest).unwrap();
        let holds = |mean: &Estimate| mean.interval(0.95).is_ok_and(|known| known.low <= 3.0 && 3.0 <= known.high);
        weighted += usize::from(holds(&mean));
        powered += usize::from(holds(&helped.mean));
        plain += usize::from(holds(&clustered_mean(&labels, graded).unwrap()));
        gain += helped.mean.standard_error().unwrap() / mean.standard_error().unwrap() / TRIALS as f64;
    }
    assert!((925..=970).contains(&weighted) && (925..=970).contains(&powered), "{weighted} {powered}");
    assert!(plain < 100 && gain < 0.75, "{plain} {gain}");
}

#[test]
fn what_is_no_probability_is_refused() {
    for p in [0.0, -0.1, 1.5] {
        let found = weighted_mean(&[1.0, 2.0], &[0.5, p], &[0, 1]).unwrap_err();
        assert!(matches!(found, Error::OutOfRange { argument: "probabilities", index: Some(1), .. }), "{found:?}");
    }
    assert!(matches!(weighted_mean(&[1.0, 2.0], &[0.5, f64::NAN], &[0, 1]), Err(Error::NonFinite { .. })));
    assert!(matches!(weighted_mean(&[1.0, 2.0], &[0.5], &[0, 1]), Err(Error::LengthMismatch { .. })));
    assert!(matches!(weighted_mean(&[1.0, 2.0], &[0.5, 0.2], &[0, 0]), Err(Error::TooFewClusters { .. })));
}

/// In a comparison means of rows, correlations and kappas are weighted, and whatever takes rows as drawn alike says so.
#[test]
fn a_comparison_weighs_means_and_refuses_the_rest() {
    let probability = |i: usize| [1.0, 0.25, 0.5][i % 3];
    let items = |unequal: bool| -> Vec<ComparedItem> {
        let row = |i: usize| {
            let [judge, human, second] = [i % 3, i * 2 % 3, i % 2].map(|grade| Rating::Number(grade as f64));
            let sampling_probability = Some(if unequal { probability(i) } else { 0.5 });
            ComparedItem { second: Some(second), sampling_probability, ..ComparedItem::new(judge, [human]) }
        };
        (0..30).map(row).collect()
    };
    let compared = |items: Vec<ComparedItem>| compared(items, Bootstrap::default().resamples, None);
    let found = compared(items(true));
    let rows: Vec<usize> = (0..30).collect();
    let probabilities: Vec<f64> = rows.iter().map(|&i| probability(i)).collect();
    let right: Vec<f64> = rows.iter().map(|&i| f64::from(u8::from(i % 3 == i * 2 % 3))).collect();
    let of = |name: &str| found.get(name).unwrap_or_else(|| panic!("{name}: {found:?}")).defined();
    let expected = weighted_mean(&right, &probabilities, &rows).unwrap();
    let accuracy = of("accuracy").unwrap();
    assert!((accuracy.estimate - expected.estimate).abs() < 1e-12 && accuracy.p.is_none(), "{accuracy:?}");
    assert_eq!(accuracy.interval, expected.within([0.0, 1.0]).interval(0.95).ok());
    assert!(accuracy.method.contains("weighted"), "{accuracy:?}");
    // The commonest label is that of the rows with most weight: 4 of 1 + 4 + 2.
    assert!((of("majority_share").unwrap().estimate - 4.0 / 7.0).abs() < 1e-12, "{found:?}");
    // The tests of a difference that take rows as drawn alike give way to Student's.
    let gains: Vec<f64> = rows.iter().map(|&i| right[i] - f64::from(u8::from(i % 2 == i * 2 % 3))).collect();
    let difference = of("difference_accuracy").unwrap();
    assert_eq!(difference.p, weighted_mean(&gains, &probabilities, &rows).unwrap().p_value().ok());
    for name in ["rmse", "krippendorff_alpha_ordinal", "icc_a1", "f1_macro", "weighted_tau"] {
        let reason = found.get(name).unwrap().to_string();
        assert!(reason.contains("drawn with unequal probabilities"), "{name}: {reason}");
    }
    // Rows in proportion to their weights, 1, 4 and 2, have the same correlations and kappas.
    let alike: Vec<ComparedItem> = (0..30)
        .flat_map(|i| {
            let item = ComparedItem { sampling_probability: None, ..items(true)[i].clone() };
            vec![item; [1, 4, 2][i % 3]]
        })
        .collect();
    let alike = compared(alike);
    for name in ["pearson", "spearman", "cohen_kappa", "cohen_kappa_linear", "cohen_kappa_quadratic"] {
        let (weighted, repeated) = (of(name).unwrap(), alike.get(name).unwrap().defined().unwrap());
        assert!((weighted.estimate - repeated.estimate).abs() < 1e-12, "{name}: {weighted:?} {repeated:?}");
        assert!(
            weighted.method.contains("weighted") && weighted.interval.is_some() && weighted.p.is_none(),
            "{weighted:?}"
        );
    }
    for name in
        ["difference_spearman", "difference_cohen_kappa", "difference_pearson_williams", "predicted_entropy_bits"]
    {
        assert!(of(name).is_none(), "{name}");
    }
    for name in ["mae", "bias", "difference_mae", "predicted_ceiling"] {
        assert!(of(name).is_some_and(|known| known.interval.is_some()), "{name}");
    }
    // Equal ones say nothing.
    assert!(compared(items(false)).get("spearman").unwrap().defined().is_some());
    let mut wrong = items(true);
    wrong[3].sampling_probability = Some(2.0);
    let error = Comparison::new(wrong, ComparisonSettings::default()).unwrap_err();
    assert!(matches!(error, Error::InRow { row: 3, .. }), "{error:?}");
}
