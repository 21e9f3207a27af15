//! What a report says of few rows, and of columns that hardly vary: no interval of no width, no p-value that chance cannot give, no NaN.
//!
//! `fixtures/degenerate.json` is made by `scripts/metrics/degenerate_fixtures.py`.

use judge_metrics::agreement::{
    AgreementWeights, ConfusionMatrix, McNemarTest, Measurement, RatingTable, krippendorff_alpha, mcnemar,
};
use judge_metrics::comparison::{BiasPair, BiasReport, ComparedItem, Comparisons, NO_VARIATION, Rating, Statistic};
use judge_metrics::correlation::{DependentCorrelations, fisher_interval};
use judge_metrics::means::{clustered_mean, sample_mean};
use judge_metrics::prediction::{average_precision, brier_score, log_loss, mean_absolute_error};
use judge_metrics::preference::Preference::{self, First, Second, Tie};
use judge_metrics::preference::Unparsed;
use judge_metrics::resampling::Bootstrap;
use judge_metrics::{Error, Proportion};
use serde_json::Value;

use crate::compared::rows;
use crate::fixtures::{count, fixture, list, numbers};

fn near(found: f64, expected: &Value) -> bool {
    (found - expected.as_f64().unwrap()).abs() < 1e-12
}

fn in_clusters(rows: Vec<ComparedItem>, size: usize) -> Vec<ComparedItem> {
    let named = |(i, row)| ComparedItem { cluster: Some(format!("q{}", i / size)), ..row };
    rows.into_iter().enumerate().map(named).collect()
}

fn compared(items: Vec<ComparedItem>) -> Comparisons {
    crate::compared::compared(items, 500, None)
}

#[track_caller]
fn estimate(found: &Comparisons, name: &str) -> f64 {
    found.get(name).and_then(Statistic::estimate).unwrap_or_else(|| panic!("{name}: {:?}", found.get(name)))
}

#[track_caller]
fn p_value(found: &Comparisons, name: &str) -> Option<f64> {
    found.get(name).and_then(Statistic::defined).unwrap_or_else(|| panic!("{name}: {:?}", found.get(name))).p
}

#[track_caller]
fn has_no_interval(found: &Comparisons, names: &[&str]) {
    for name in names {
        let known =
            found.get(name).and_then(Statistic::defined).unwrap_or_else(|| panic!("{name}: {:?}", found.get(name)));
        let said = known.method.starts_with(if known.no_variation { NO_VARIATION } else { "no interval: " });
        assert!(known.interval.is_none() && said, "{name}: {known:?}");
    }
}

/// Judges and people that do not vary, or that vary together.
fn degenerate() -> Vec<(&'static str, Vec<ComparedItem>)> {
    let grades: Vec<f64> = (0..5).map(|i| f64::from(i % 5 + 1)).collect();
    let many: Vec<f64> = (0..60).map(|i| f64::from(i * 7 % 5 + 1)).collect();
    let coin: Vec<f64> = (0..200).map(|i| f64::from(i * 37 % 101 % 2)).collect();
    let three = |row: ComparedItem, others: [f64; 2]| {
        let human = row.human.into_iter().chain(others.map(|other| Some(Rating::Number(other)))).collect();
        ComparedItem { human, ..row }
    };
    let raters: Vec<ComparedItem> =
        rows(&many, &many).into_iter().zip(&many).map(|(row, &grade)| three(row, [grade; 2])).collect();
    let second = |items: Vec<ComparedItem>| -> Vec<ComparedItem> {
        items.into_iter().map(|row| ComparedItem { second: Some(row.predicted.clone()), ..row }).collect()
    };
    vec![
        ("five rows in perfect order", rows(&grades, &grades)),
        ("sixty rows in perfect order", rows(&many, &many)),
        ("off by one throughout", rows(&many.iter().map(|x| x + 1.0).collect::<Vec<_>>(), &many)),
        ("a constant judge of a coin", rows(&[1.0; 200], &coin)),
        ("a constant judge of grades", rows(&[3.0; 60], &many)),
        ("thirty passes of thirty", rows(&[1.0; 30], &[1.0; 30])),
        ("no label in common", rows(&[1.0, 2.0, 1.0, 2.0], &[3.0, 4.0, 4.0, 3.0])),
        ("one class right, one wrong", rows(&[1.0; 20], &[[1.0; 10], [2.0; 10]].concat())),
        ("raters who never differ", raters),
        ("two judges alike", second(rows(&coin, &many[..].iter().cycle().take(200).copied().collect::<Vec<_>>()))),
        ("clusters in perfect order", in_clusters(rows(&many, &many), 4)),
        ("clusters of a constant judge", in_clusters(rows(&[1.0; 200], &coin), 4)),
    ]
}

#[test]
fn no_interval_has_no_width_and_no_number_is_nan() {
    for (what, items) in degenerate() {
        for (name, statistic) in &compared(items).statistics {
            let Some(known) = statistic.defined() else { continue };
            assert!(
                known.estimate.is_finite() && known.p.is_none_or(|p| (0.0..=1.0).contains(&p)),
                "{what}, {name}: {known:?}"
            );
            if let Some(interval) = known.interval {
                assert!(interval.high - interval.low > 1e-9, "{what}, {name}: {known:?}");
                assert!(interval.low <= known.estimate && known.estimate <= interval.high, "{what}, {name}: {known:?}");
            }
        }
    }
}

/// Equal runs, perfect agreement and a constant difference: the estimate is what bounds it, of six rows or more.
#[test]
fn where_rows_do_not_vary_the_estimate_is_the_bound() {
    let grades = |n: u32| -> Vec<f64> { (0..n).map(|i| f64::from(i * 7 % 5 + 1)).collect() };
    for n in [5, 6, 60] {
        let people = grades(n);
        for (judge, names) in [
            (people.clone(), &["mae", "bias", "rmse", "pearson", "spearman", "kendall_tau_b", "cohen_kappa"][..]),
            (people.iter().map(|x| x + 1.0).collect(), &["mae", "bias", "rmse", "pearson", "spearman"]),
        ] {
            let found = compared(rows(&judge, &people));
            for name in names {
                let known = found.get(name).and_then(Statistic::defined).unwrap();
                assert_eq!((known.interval, known.no_variation), (None, n >= 6), "{n}, {name}: {known:?}");
                assert_eq!(known.method.starts_with(NO_VARIATION), n >= 6, "{n}, {name}: {known:?}");
                let bound = (n >= 6).then_some(known.estimate);
                assert_eq!((known.low(), known.high()), (bound, bound), "{n}, {name}: {known:?}");
            }
        }
    }
    // Six clusters, not six rows.
    for (n, enough) in [(20, false), (24, true)] {
        let found = compared(in_clusters(rows(&grades(n), &grades(n)), 4));
        assert_eq!(found.get("mae").and_then(Statistic::defined).unwrap().no_variation, enough, "{n}");
    }
    let people: Vec<f64> = (0..40).map(|i| f64::from((i * 7 + i / 9) % 5 + 1)).collect();
    let varied = compared(rows(&grades(40), &people)).statistics;
    assert!(varied.iter().filter_map(|(_, known)| known.defined()).all(|known| !known.no_variation));
}

#[test]
fn a_judge_that_says_one_thing_has_no_interval_around_what_no_skill_reaches() {
    let coin: Vec<f64> = (0..200).map(|i| f64::from(i * 37 % 101 % 2)).collect();
    let found = compared(rows(&[1.0; 200], &coin));
    has_no_interval(
        &found,
        &["auroc", "balanced_accuracy", "recall_macro", "cohen_kappa", "krippendorff_alpha_interval"],
    );
    for name in
        ["cohen_kappa", "krippendorff_alpha_nominal", "krippendorff_alpha_ordinal", "krippendorff_alpha_interval"]
    {
        assert_eq!(p_value(&found, name), None, "{name}");
    }
    // 0 is not what a judge without skill reaches in AC1, so nothing is tested.
    assert!(estimate(&found, "gwet_ac1").abs() > 0.0 && p_value(&found, "gwet_ac1").is_none());
    // Of independent draws one of three raters that does not vary leaves two that do.
    let ratings: Vec<[Option<f64>; 3]> =
        (0..40).map(|i| [f64::from(i % 3), f64::from(i % 4 % 3), 1.0].map(Some)).collect();
    assert!(krippendorff_alpha(&ratings, Measurement::Ordinal).unwrap().p_value().is_ok());
    let one: Vec<[Option<f64>; 2]> = ratings.iter().map(|row| [row[0], row[2]]).collect();
    let one = krippendorff_alpha(&one, Measurement::Ordinal).unwrap();
    assert!(one.p_value().unwrap_err().is_undefined() && one.interval(0.95).unwrap_err().is_undefined());
    let table = RatingTable::from_counts(&[[2_u64, 0], [1, 1], [0, 2], [2, 0]]).unwrap();
    assert!(table.gwet(&AgreementWeights::Identity).unwrap().p_value().unwrap_err().is_undefined());
}

/// Whoever always gives the one label that occurs would be right.
#[test]
fn a_balanced_accuracy_takes_two_labels_of_people() {
    let judge: Vec<f64> = (0..40).map(|i| f64::from(i % 3 / 2)).collect();
    let found = compared(rows(&judge, &[1.0; 40]));
    assert!(found.get("balanced_accuracy").unwrap().defined().is_none());
    assert!(found.get("accuracy").unwrap().defined().is_some());
}

/// statsmodels' proportion_confint.
#[test]
fn losses_of_decisions_are_shares() {
    for case in list(&fixture("degenerate")["wilson"]) {
        let (count, n) = (count(&case["count"]), count(&case["n"]));
        let outcomes: Vec<bool> = (0..n).map(|i| i < count).collect();
        let people: Vec<f64> = outcomes.iter().map(|&came| f64::from(u8::from(came))).collect();
        let never = vec![0.0; n];
        let expected = numbers(&case["interval"]);
        // A column of zeros may be grades; of outcomes and probabilities it is known what they are.
        let errors = (count > 0).then(|| mean_absolute_error(&people, &never).unwrap());
        for found in errors.into_iter().chain([brier_score(&outcomes, &never).unwrap()]) {
            let interval = found.interval(0.95).unwrap();
            assert!(
                (interval.low - expected[0]).abs() < 1e-12 && (interval.high - expected[1]).abs() < 1e-12,
                "{case}"
            );
            assert_eq!(found.method(), Some("Wilson"));
        }
    }
    // Errors of grades are no shares, though they be 0 and 1 here.
    let grades = mean_absolute_error(&[1.0, 2.0, 3.0, 4.0], &[1.0, 3.0, 3.0, 4.0]).unwrap();
    assert_eq!(grades.method(), Some("Student t"));
}

#[test]
fn intervals_stay_in_their_range() {
    let (outcomes, p) = ([true, false, true, false], [0.1, 0.2, 0.9, 0.8]);
    for found in [
        brier_score(&outcomes, &p).unwrap(),
        log_loss(&outcomes, &p, 0.0).unwrap(),
        mean_absolute_error(&[1.0, 4.0, 2.0], &[1.0, 4.5, 5.0]).unwrap(),
    ] {
        let interval = found.interval(0.95).unwrap();
        assert!(interval.low >= 0.0 && interval.low <= found.estimate, "{found:?}: {interval:?}");
    }
    assert!(brier_score(&outcomes, &p).unwrap().interval(0.95).unwrap().high <= 1.0);
}

/// `scipy.stats.permutation_test` over all pairings.
#[test]
fn ranks_of_few_rows_are_tested_by_permutation() {
    for case in list(&fixture("degenerate")["ranks"]) {
        let found = compared(rows(&numbers(&case["judge"]), &numbers(&case["people"])));
        assert!(near(p_value(&found, "spearman").unwrap(), &case["spearman_p"]), "{case}: {:?}", found.get("spearman"));
        for name in ["kendall_tau_b", "kendall_tau_c", "somers_d"] {
            assert!(near(p_value(&found, name).unwrap(), &case["concordance_p"]), "{case}: {:?}", found.get(name));
        }
        assert!(near(estimate(&found, "somers_d"), &case["somers_d"]), "{case}");
    }
    // A perfect line has no p-value of normal theory but 0.
    let five = [1.0, 2.0, 3.0, 4.0, 5.0];
    assert!((p_value(&compared(rows(&five, &five)), "pearson").unwrap() - 2.0 / 120.0).abs() < 1e-12);
    // Nine rows: 2/9!, every order looked at; forty: as small as 9,999 permutations can tell.
    let nine: Vec<f64> = (0..9).map(f64::from).collect();
    let forty: Vec<f64> = (0..40).map(f64::from).collect();
    assert!((p_value(&compared(rows(&nine, &nine)), "spearman").unwrap() - 2.0 / 362_880.0).abs() < 1e-15);
    assert!((p_value(&compared(rows(&forty, &forty)), "spearman").unwrap() - 2.0 / 10_000.0).abs() < 1e-12);
    let ties: Vec<f64> = (0..9).map(|i| f64::from(i / 2)).collect();
    assert!(p_value(&compared(rows(&ties, &nine)), "somers_d").unwrap() > 2.0 / 362_880.0);
}

#[test]
fn somers_d_is_of_the_judge_given_people() {
    let case = &fixture("degenerate")["auroc"];
    let found = compared(rows(&numbers(&case["judge"]), &numbers(&case["human"])));
    assert!(near(estimate(&found, "somers_d"), &case["somers_d"]) && near(estimate(&found, "auroc"), &case["auroc"]));
    assert!((estimate(&found, "somers_d") - (2.0 * estimate(&found, "auroc") - 1.0)).abs() < 1e-12);
    // Ties of the judge count: one row told from ten is no order.
    let judge: Vec<f64> = (0..11).map(|i| if i == 10 { 5.0 } else { 3.0 }).collect();
    let people: Vec<f64> = (0..11).map(|i| f64::from(i % 5)).collect();
    assert!(estimate(&compared(rows(&judge, &people)), "somers_d").abs() < 0.4);
}

#[test]
fn resamples_that_define_nothing_leave_no_interval() {
    // In a third of resamples the one row that differs is not drawn.
    let judge: Vec<f64> = (0..11).map(|i| if i == 10 { 5.0 } else { 3.0 }).collect();
    let people: Vec<f64> = (0..11).map(|i| f64::from(i % 5 + i / 10)).collect();
    let found = compared(rows(&judge, &people));
    has_no_interval(&found, &["spearman", "kendall_tau_b", "somers_d", "weighted_tau"]);
    assert!(found.get("spearman").and_then(Statistic::defined).unwrap().method.contains("of 500 resamples"));
    let mean = |values: &'static [f64]| {
        move |rows: &[usize]| Ok(rows.iter().map(|&row| values[row]).sum::<f64>() / rows.len() as f64)
    };
    let bootstrap = Bootstrap { resamples: 400, ..Bootstrap::default() };
    assert!(bootstrap.interval(5, mean(&[1.0, 2.0, 3.0, 4.0, 5.0])).unwrap_err().is_undefined());
    assert!(bootstrap.interval(6, mean(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])).is_ok());
    assert!(bootstrap.interval(6, mean(&[0.1; 6])).unwrap_err().is_undefined());
    // As many as a tail holds may be undefined, and no more: the share without the last row is (1 − 1/n)^n.
    let without_last = |n: usize| {
        bootstrap.interval(n, move |rows: &[usize]| {
            if rows.contains(&(n - 1)) || rows.contains(&(n - 2)) && rows.contains(&(n - 3)) && rows.contains(&(n - 4))
            {
                Ok(rows[0] as f64)
            } else {
                Err(Error::Undefined { statistic: "a test", reason: "none of its rows" })
            }
        })
    };
    assert!(matches!(without_last(12), Err(Error::UndefinedResamples { undefined, resamples: 400 }) if undefined > 10));
}

#[test]
fn judges_that_are_perfect_or_alike_but_for_rounding_are_not_tested_on_fishers_scale() {
    // Their correlation comes out as 0.9999999999999998.
    let people = [0.1, 0.2, 0.3, 0.4, 0.5, 0.7];
    let first = [0.3, 0.1, 0.2, 0.5, 0.4, 0.6];
    let both = |first: &[f64], second: &[f64]| DependentCorrelations::of_columns(&people, first, second).unwrap();
    let scaled = people.map(|x| 3.0 * x + 0.1);
    for judges in
        [both(&first, &people), both(&first, &scaled), both(&first, &first), both(&first, &first.map(|x| 7.0 * x))]
    {
        for test in [judges.steiger(), judges.meng(), judges.dunn_clark()] {
            assert!(test.as_ref().is_err_and(Error::is_undefined), "{test:?}");
        }
        assert!(judges.zou_interval(0.95).unwrap_err().is_undefined());
        assert!(judges.meng_interval(0.95).unwrap_err().is_undefined());
    }
    assert!(both(&first, &first.map(|x| 7.0 * x)).williams().unwrap_err().is_undefined());
    assert!(fisher_interval(1.0 - f64::EPSILON, 10, 0.95).unwrap_err().is_undefined());
    assert!(fisher_interval(1.0, 3, 0.95).is_ok(), "three pairs bound nothing");
}

#[test]
fn clusters_of_one_row_are_no_clusters() {
    let judge: Vec<f64> = (0..40).map(|i| f64::from(i * 7 % 5)).collect();
    let people: Vec<f64> = (0..40).map(|i| f64::from((i * 7 + i / 9) % 5)).collect();
    let second = |row: ComparedItem| {
        let human = row.human.iter().cloned().chain([Some(row.predicted.clone()), row.human[0].clone()]).collect();
        ComparedItem { second: row.human[0].clone(), human, ..row }
    };
    let second = |items: Vec<ComparedItem>| items.into_iter().map(second).collect::<Vec<_>>();
    assert_eq!(compared(second(in_clusters(rows(&judge, &people), 1))), compared(second(rows(&judge, &people))));
    // Rows whose clusters are not shared once those without a majority are left out.
    let found = compared(in_clusters(rows(&judge, &people), 2));
    assert!(found.get("accuracy").and_then(Statistic::defined).unwrap().method.contains("of clusters"));
}

#[test]
fn means_of_clusters_take_the_clustered_standard_error() {
    let people: Vec<f64> = (0..40).map(|i| f64::from(u8::from(i / 4 * 7 % 5 > 2))).collect();
    let judge: Vec<f64> = (0..40).map(|i| f64::from(i * 7 % 20) / 19.0).collect();
    let clusters: Vec<usize> = (0..40).map(|i| i / 4).collect();
    let found = compared(in_clusters(rows(&judge, &people), 4));
    let errors: Vec<f64> = judge.iter().zip(&people).map(|(judge, people)| judge - people).collect();
    let items: [(&str, Vec<f64>); 3] = [
        ("mae", errors.iter().map(|error| error.abs()).collect()),
        ("bias", errors.clone()),
        ("brier", errors.iter().map(|error| error * error).collect()),
    ];
    for (name, items) in items {
        let expected = clustered_mean(&items, &clusters).unwrap();
        let known = found.get(name).and_then(Statistic::defined).unwrap();
        assert!((known.estimate - expected.estimate).abs() < 1e-15, "{name}");
        let (found, expected) = (known.interval.unwrap(), expected.interval(0.95).unwrap());
        assert!((found.high - expected.high).abs() < 1e-12 && (found.low - expected.low).abs() < 1e-12, "{name}");
        assert_eq!(known.method, "Student t of clusters", "{name}");
    }
    assert!(found.get("log_loss").and_then(Statistic::interval).is_none_or(|interval| interval.low >= 0.0));
}

/// `sklearn.metrics.log_loss`.
#[test]
fn certainty_that_is_wrong_costs_what_scikit_learn_says_and_has_no_slope() {
    let case = &fixture("degenerate")["log_loss"];
    let found = compared(rows(&numbers(&case["probabilities"]), &numbers(&case["outcomes"])));
    assert!(near(estimate(&found, "log_loss"), &case["loss"]), "{:?}", found.get("log_loss"));
    for name in ["calibration_slope", "calibration_intercept"] {
        let Some(Statistic::Undefined { reason }) = found.get(name) else { panic!("{name}: {:?}", found.get(name)) };
        assert!(reason.contains("a probability is 0 or 1"), "{reason}");
    }
}

/// Beside a difference of level of 10⁹ all that subjects differ by is less than the last digit of −1.
#[test]
fn an_intraclass_correlation_that_cannot_be_otherwise_has_no_interval() {
    let people: Vec<f64> = (0..40).map(|i| f64::from(i * 7 % 5 + 1)).collect();
    let judge: Vec<f64> = people.iter().enumerate().map(|(i, x)| 1e9 + x + f64::from(i as u8 % 3)).collect();
    let found = compared(rows(&judge, &people));
    let known = found.get("icc_1").and_then(Statistic::defined).unwrap();
    assert_eq!((known.estimate, known.low(), known.high()), (-1.0, None, None), "{known:?}");
    assert!(known.method.contains("rounding alone is left of it"), "{known:?}");
}

/// Squares of ratings near 1 vanish beside one of 10²⁰⁰.
#[test]
fn an_alpha_whose_arithmetic_leaves_nothing_is_undefined() {
    let row = |(i, first): (usize, f64)| ComparedItem {
        second: Some(Rating::Number((i % 3) as f64)),
        ..ComparedItem::new(Rating::Number(first), [Rating::Number((i * i % 4) as f64)])
    };
    for n in [3, 9] {
        let of_first = |i: usize| if i == 0 { 1e200 } else { i as f64 };
        let found = compared((0..n).map(of_first).enumerate().map(row).collect());
        let undefined = |name: &str| found.get(name).unwrap().to_string();
        let reason = undefined("difference_krippendorff_alpha_interval");
        assert!(reason.contains("too close together"), "{n}: {reason}");
        let estimates = found.statistics.iter().filter_map(|(_, known)| known.estimate());
        assert!(estimates.clone().all(f64::is_finite) && estimates.count() > 5, "{found:?}");
    }
    // A rating that is compared with nothing has no part in it.
    let ratings = [[Some(1.0), Some(2.0)], [Some(2.0), Some(2.0)], [Some(3.0), Some(2.0)]];
    let alone = [&ratings[..], &[[Some(1e300), None]]].concat();
    for measurement in [Measurement::Nominal, Measurement::Ordinal, Measurement::Interval, Measurement::Ratio] {
        let alpha = |ratings: &[[Option<f64>; 2]]| krippendorff_alpha(ratings, measurement).unwrap();
        assert_eq!(alpha(&alone), alpha(&ratings), "{measurement:?}");
    }
}

#[test]
fn kappa_does_not_depend_on_the_unit_of_the_values() {
    let table = ConfusionMatrix::new(vec![0, 1, 2], &[0, 1, 2, 2, 1, 0], &[0, 2, 2, 1, 1, 1]).unwrap();
    for weights in [AgreementWeights::LinearOf, AgreementWeights::QuadraticOf] {
        let kappa =
            |unit: f64| table.cohen_kappa(&weights([-1.0, 0.0, 1.0].map(|value| value * unit).to_vec())).unwrap();
        for exponent in [-1_060.0, -560.0, 560.0, 1_023.0_f64] {
            assert_eq!(kappa(exponent.exp2()), kappa(1.0), "2^{exponent}");
        }
    }
}

#[test]
fn kappa_of_labels_of_one_value_is_undefined() {
    for weights in [AgreementWeights::LinearOf(vec![1.0, 1.0, 2.0]), AgreementWeights::QuadraticOf(vec![1.0, 1.0, 2.0])]
    {
        let (truth, judged) = ([0, 1, 1], [1, 0, 0]);
        let kappa = ConfusionMatrix::new(vec![0, 1, 2], &truth, &judged).unwrap().cohen_kappa(&weights);
        assert!(kappa.as_ref().is_err_and(Error::is_undefined), "{kappa:?}");
    }
    // All small tables: a number or a reason.
    for cells in 0..4_usize.pow(4) {
        let (mut truth, mut judged) = (Vec::new(), Vec::new());
        for (cell, (i, j)) in [(0, 1), (1, 0), (1, 1), (0, 2)].into_iter().enumerate() {
            for _ in 0..cells / 4_usize.pow(cell as u32) % 4 {
                truth.push(i);
                judged.push(j);
            }
        }
        let Ok(table) = ConfusionMatrix::new(vec![0, 1, 2], &truth, &judged) else { continue };
        match table.cohen_kappa(&AgreementWeights::QuadraticOf(vec![1.0, 1.0, 2.0])) {
            Ok(kappa) => assert!(kappa.estimate.is_finite(), "{truth:?} {judged:?}"),
            Err(error) => assert!(error.is_undefined(), "{error}"),
        }
    }
}

#[test]
fn equal_items_are_a_mean_without_an_interval() {
    let mean = sample_mean(&[2.5; 8]).unwrap();
    assert!(mean.estimate == 2.5 && mean.interval(0.95).unwrap_err().is_undefined() && mean.method().is_none());
    assert_eq!(mean.standard_error(), Ok(0.0));
    let cut = sample_mean(&[0.0, 0.0, 1.0]).unwrap().within([0.0, 1.0]).interval(0.95).unwrap();
    assert_eq!(cut.low, 0.0);
    assert!(Proportion { count: 8, n: 8 }.wilson(0.95).unwrap().low < 0.7);
    // What whole numbers of this size differ by is no rounding.
    let large = 1_764_500_000_000_000.0;
    let judge: Vec<f64> = (0..20).map(|i| large + f64::from(i * 5 % 7) - 3.0).collect();
    let bias = compared(rows(&judge, &[large; 20])).get("bias").and_then(Statistic::interval);
    assert!(bias.is_some_and(|interval| interval.low < 0.0 && interval.high > 0.0), "{bias:?}");
}

#[test]
fn what_cannot_be_otherwise_says_so() {
    let found = average_precision(&[true; 4], &[0.1, 0.5, 0.2, 0.9]);
    assert!(found.is_err_and(|error| error.is_undefined()));
    let same = mcnemar(0, 0, McNemarTest::Exact).unwrap();
    assert!(near(same.p_value, &fixture("degenerate")["mcnemar_p"]));
    let judge: Vec<f64> = (0..30).map(|i| f64::from(i % 3)).collect();
    let people: Vec<f64> = (0..30).map(|i| f64::from(i % 4 % 3)).collect();
    let alike = rows(&judge, &people).into_iter();
    let found = compared(alike.map(|row| ComparedItem { second: Some(row.predicted.clone()), ..row }).collect());
    assert_eq!(p_value(&found, "difference_accuracy"), Some(1.0));
}

/// Labels need no numbers: krippendorff.alpha and sklearn's cohen_kappa_score.
#[test]
fn texts_have_a_nominal_alpha_and_in_an_order_more() {
    let case = &fixture("degenerate")["texts"];
    let labels = |name: &str| -> Vec<Rating> {
        let of = |label: &Value| Rating::Text(label.as_str().unwrap().to_owned());
        list(&case[name]).iter().map(of).collect()
    };
    let items: Vec<ComparedItem> = labels("judge")
        .into_iter()
        .zip(labels("people"))
        .map(|(judge, people)| ComparedItem::new(judge, [people]))
        .collect();
    let found = compared(items.clone());
    assert!(near(estimate(&found, "krippendorff_alpha_nominal"), &case["alpha_nominal"]));
    for name in ["krippendorff_alpha_ordinal", "cohen_kappa_quadratic", "krippendorff_alpha_interval"] {
        assert!(matches!(found.get(name), Some(Statistic::Undefined { .. })), "{name}");
    }
    let found = crate::compared::compared(items, 500, Some(&["A", "B", "C"]));
    assert!(near(estimate(&found, "krippendorff_alpha_nominal"), &case["alpha_nominal"]));
    assert!(near(estimate(&found, "krippendorff_alpha_ordinal"), &case["alpha_ordinal"]));
    assert!(near(estimate(&found, "cohen_kappa_quadratic"), &case["kappa_quadratic"]));
    assert!(found.get("krippendorff_alpha_interval").unwrap().to_string().contains("texts"));
}

#[test]
fn grades_of_several_people_have_fleiss_and_gwet() {
    let item = |i: i32| {
        let grades = [i % 5, (i + i32::from(i % 3 == 0)) % 5, (i + i32::from(i % 4 == 0)) % 5].map(f64::from);
        ComparedItem::new(Rating::Number(f64::from(i % 5)), grades.map(Rating::Number))
    };
    let found = compared((0..40).map(item).collect());
    let votes: Vec<Vec<Option<i32>>> = (0..40)
        .map(|i: i32| [i % 5, (i + i32::from(i % 3 == 0)) % 5, (i + i32::from(i % 4 == 0)) % 5].map(Some).to_vec())
        .collect();
    let table = RatingTable::new(&[0, 1, 2, 3, 4], &votes).unwrap();
    assert_eq!(estimate(&found, "human_fleiss_kappa"), table.fleiss_kappa().unwrap().estimate);
    assert_eq!(estimate(&found, "human_gwet_ac1"), table.gwet(&AgreementWeights::Identity).unwrap().estimate);
    assert_eq!(estimate(&found, "human_gwet_ac2"), table.gwet(&AgreementWeights::Quadratic).unwrap().estimate);
}

fn biases(verdicts: &[[Option<Preference>; 2]]) -> [judge_metrics::comparison::BiasFinding; 3] {
    let pair = |(i, &[given, swapped]): (usize, &[Option<Preference>; 2])| BiasPair {
        given,
        swapped,
        human: if i % 2 == 0 { First } else { Second },
        lengths: Some([1.0, 2.0]),
        own: Some(First),
        question: i.to_string(),
    };
    let pairs = verdicts.iter().enumerate().map(pair).collect();
    let bootstrap = Bootstrap { resamples: 300, ..Bootstrap::default() };
    BiasReport { pairs, both_orders: true, unparsed: Unparsed::Wrong, bootstrap }.findings().unwrap()
}

#[test]
fn a_judge_that_cannot_be_read_is_not_consistent() {
    for finding in biases(&[[None, None]; 8]) {
        assert_eq!(finding.direction(), None, "{}", finding.sentence());
        assert!(finding.sentence().contains("most texts hold no verdict"), "{}", finding.sentence());
        let (last, share) = finding.statistics.last().unwrap();
        assert_eq!((*last, share.estimate()), ("unparsed_share", Some(1.0)));
    }
    // Half of the pairs unreadable, half always for the first place.
    let half = [vec![[None, None]; 10], vec![[Some(First), Some(Second)]; 10]].concat();
    let [position, _, own] = biases(&half);
    let of = |name: &str| position.statistics.iter().find(|(known, _)| *known == name).unwrap().1.estimate();
    assert_eq!(
        (of("preference_fairness"), of("consistency"), of("unparsed_share")),
        (Some(-1.0), Some(0.0), Some(0.5))
    );
    // Of texts without a verdict none is against the judge's own response.
    assert_eq!(own.statistics[1].1.estimate(), Some(0.5));
    // Ten ties in both orders are consistent, and say nothing of places.
    let [position, ..] = biases(&[[Some(Tie), Some(Tie)]; 10]);
    assert_eq!((position.direction(), position.key().unwrap().estimate()), (Some(0), Some(0.0)));
}

#[test]
fn a_bias_on_every_question_is_larger_than_chance_without_an_interval() {
    let [position, ..] = biases(&[[Some(First), Some(Second)]; 6]);
    assert_eq!((position.direction(), position.key().unwrap().interval()), (Some(-1), None));
    let [position, ..] = biases(&[[Some(First), Some(Second)]; 5]);
    assert_eq!(position.direction(), None);
    // A question without a verdict says nothing.
    let unread = [vec![[None, None]; 2], vec![[Some(First), Some(Second)]; 6]].concat();
    assert_eq!(biases(&unread)[0].direction(), Some(-1));
}
