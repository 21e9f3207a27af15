//! Tests of small tables beside SciPy's and statsmodels', shares that are 0 or 1, and raters who are missing.
//!
//! `fixtures/small_tables.json` is made by `scripts/metrics/small_tables_fixtures.py`.

use judge_metrics::agreement::{IntraclassForm, MixedRatings};
use judge_metrics::comparison::{
    BestOf, ComparedDecision, ComparedItem, Comparisons, DecisionComparison, PairTally, RankedAnswers, Rating,
    Reported, Statistic, TalliedPair,
};
use judge_metrics::prediction::bias;
use judge_metrics::preference::Preference;
use judge_metrics::resampling::Bootstrap;

use crate::compared::rows;
use crate::fixtures::{fixture, list, numbers};

fn compared(items: Vec<ComparedItem>, labels: Option<&[&str]>) -> Comparisons {
    crate::compared::compared(items, 200, labels)
}

#[track_caller]
fn known<'c>(found: &'c Comparisons, name: &str) -> &'c Reported {
    found.get(name).and_then(Statistic::defined).unwrap_or_else(|| panic!("{name}: {:?}", found.get(name)))
}

/// Five rows that were all right had p = 7.7e-6, where one order in 120 is as good.
#[test]
fn kappas_of_few_rows_are_tested_by_permutation() {
    for case in list(&fixture("small_tables")["kappa"]) {
        let found = compared(rows(&numbers(&case["judge"]), &numbers(&case["people"])), None);
        let names = ["cohen_kappa", "cohen_kappa_linear", "cohen_kappa_quadratic"];
        for (name, expected) in names.iter().zip(numbers(&case["p"])) {
            assert!((known(&found, name).p.unwrap() - expected).abs() < 1e-12, "{case}: {:?}", known(&found, name));
        }
    }
    for case in list(&fixture("small_tables")["fleiss"]) {
        let columns: Vec<Vec<f64>> = list(&case["columns"]).iter().map(numbers).collect();
        let row =
            |i: usize| ComparedItem::new(Rating::Number(0.0), columns.iter().map(|column| Rating::Number(column[i])));
        let found = compared((0..columns[0].len()).map(row).collect(), Some(&["0", "1", "2"]));
        let fleiss = known(&found, "human_fleiss_kappa");
        assert!((fleiss.p.unwrap() - case["p"].as_f64().unwrap()).abs() < 1e-12, "{case}: {fleiss:?}");
        assert!((fleiss.estimate - case["kappa"].as_f64().unwrap()).abs() < 1e-12, "{case}: {fleiss:?}");
    }
}

/// `scipy.stats.ttest_rel`; of a constant difference, the signs.
#[test]
fn bias_is_tested() {
    for case in list(&fixture("small_tables")["bias"]) {
        let (judge, people) = (numbers(&case["judge"]), numbers(&case["people"]));
        let found = compared(rows(&judge, &people), None);
        let known = known(&found, "bias");
        let (p, ends) = (case["p"].as_f64().unwrap(), numbers(&case["interval"]));
        assert!((known.p.unwrap() - p).abs() < 1e-12, "{known:?}");
        let interval = known.interval.unwrap();
        assert!((interval.low - ends[0]).abs() < 1e-12 && (interval.high - ends[1]).abs() < 1e-12, "{known:?}");
        assert!((bias(&people, &judge).unwrap().p_value().unwrap() - p).abs() < 1e-12);
    }
    for (by, n) in [(1.0, 60), (0.3, 60), (-1.3, 6), (100.1, 40), (0.3, 5)] {
        let people: Vec<f64> = (0..n).map(|i| f64::from(i * 7 % 5 + 1)).collect();
        let judge: Vec<f64> = people.iter().map(|x| x + by).collect();
        let found = compared(rows(&judge, &people), None);
        let signs = (n >= 6).then(|| 2f64.powi(1 - n));
        let known = known(&found, "bias");
        assert_eq!((known.interval, known.no_variation, known.p), (None, n >= 6, signs), "{by}, {n}: {known:?}");
        // Clusters of three: signs of clusters.
        let in_cluster = |(i, item): (usize, ComparedItem)| ComparedItem { cluster: Some((i / 3).to_string()), ..item };
        let found = compared(rows(&judge, &people).into_iter().enumerate().map(in_cluster).collect(), None);
        let clusters = (n + 2) / 3;
        let signs = (clusters >= 6).then(|| 2f64.powi(1 - clusters));
        assert_eq!(self::known(&found, "bias").p, signs, "{by}, {n}: {:?}", self::known(&found, "bias"));
    }
    let same = compared(rows(&[2.0; 8], &[2.0; 8]), None);
    assert_eq!((known(&same, "bias").p, known(&same, "bias").no_variation), (None, true));
}

#[test]
fn kendalls_exact_distribution_is_taken_wherever_there_are_no_ties() {
    for case in list(&fixture("small_tables")["kendall"]) {
        let found = compared(rows(&numbers(&case["judge"]), &numbers(&case["people"])), None);
        let expected = case["p"].as_f64().unwrap();
        for name in ["kendall_tau_b", "kendall_tau_c", "somers_d"] {
            let known = known(&found, name);
            assert!((known.p.unwrap() / expected - 1.0).abs() < 1e-9, "{expected}: {known:?}");
            assert!(known.method.ends_with("p: exact") && !known.p_at_most, "{known:?}");
        }
    }
    // Random orders of which none is as extreme bound the chance, and say so.
    let forty: Vec<f64> = (0..40).map(|i| f64::from(i / 2)).collect();
    let found = compared(rows(&forty, &forty), None);
    for name in ["spearman", "kendall_tau_b"] {
        assert!(known(&found, name).p_at_most && known(&found, name).p == Some(2.0 / 10_000.0), "{name}");
    }
    let weak: Vec<f64> = (0..40).map(|i| f64::from(i * 7 % 11)).collect();
    assert!(!known(&compared(rows(&weak, &forty), None), "spearman").p_at_most);
}

/// People and judge gave 1 of 1 to 5 on every row: a mean below 1 cannot be, and above 1 can.
#[test]
fn a_constant_grade_is_no_decision() {
    let ones = rows(&[1.0; 30], &[1.0; 30]);
    for labels in [None, Some(&["1", "2", "3", "4", "5"][..])] {
        let found = compared(ones.clone(), labels);
        assert_eq!((known(&found, "mae").interval, known(&found, "mae").no_variation), (None, true), "{labels:?}");
    }
    for labels in [&["0", "1"][..], &["1", "0"]] {
        let found = compared(ones.clone(), Some(labels));
        assert!(known(&found, "mae").interval.is_some_and(|interval| interval.high > 0.1), "{labels:?}");
        assert_eq!(known(&found, "mae").method, "Wilson");
    }
    let mixed = compared(rows(&[[1.0; 10], [0.0; 10]].concat(), &[[1.0; 10], [0.0; 10]].concat()), None);
    assert_eq!(known(&mixed, "mae").method, "Wilson");
}

/// Raters split by topic: of a group's rows, some gave no label.
#[test]
fn raters_without_a_label_are_left_out_and_named() {
    let row = |i: u32, absent: &[usize]| {
        let given = |rater: u32| f64::from((i * 7 + u32::from((i + rater).is_multiple_of(4))) % 3);
        let mut item = ComparedItem::new(Rating::Number(given(9)), (0..3).map(|rater| Rating::Number(given(rater))));
        absent.iter().for_each(|&place| item.human.insert(place, None));
        item
    };
    let of = |absent: &[usize]| compared((0..40).map(|i| row(i, absent)).collect(), None);
    let whole = of(&[]);
    let plain = known(&whole, "accuracy_dawid_skene");
    for absent in [&[3][..], &[0], &[1, 4]] {
        let found = of(absent);
        let known = known(&found, "accuracy_dawid_skene");
        assert!((known.estimate - plain.estimate).abs() < 1e-9, "{absent:?}: {known:?}");
        let named = absent.iter().map(|place| (place + 1).to_string()).collect::<Vec<_>>().join(", ");
        assert!(known.method.ends_with(&format!("without raters who gave no label here: {named}")), "{known:?}");
    }
}

#[test]
fn raters_who_agree_exactly_leave_no_residual_with_gaps_too() {
    let mut ratings: Vec<Vec<Option<f64>>> = (0..8).map(|i| vec![Some(f64::from(i % 5)); 3]).collect();
    ratings[2][1] = None;
    let model = MixedRatings::new(&ratings).unwrap();
    for form in [IntraclassForm::OneWay, IntraclassForm::Agreement, IntraclassForm::Consistency] {
        let found = model.intraclass(form, 0.95);
        assert!(found.as_ref().is_err_and(|error| error.to_string().contains("agree exactly")), "{form:?}: {found:?}");
    }
    // Without gaps the correlation is 1, and does not vary; where the raters' means are all equal it is as low as can be.
    let row = |raters: [f64; 3]| ComparedItem::new(Rating::Number(1.0), raters.map(Rating::Number));
    let exact = compared((0..8).map(|i| row([f64::from(i % 5); 3])).collect(), None);
    for name in ["human_icc_1", "human_icc_a1", "human_icc_c1"] {
        assert_eq!((known(&exact, name).estimate, known(&exact, name).no_variation), (1.0, true), "{name}");
    }
    let turns = |i: usize| row(if i.is_multiple_of(2) { [1.0, 2.0, 1.0] } else { [2.0, 1.0, 1.0] });
    let level = compared((0..40).map(turns).collect(), None);
    for name in ["human_icc_1", "human_icc_c1"] {
        assert_eq!(known(&level, name).interval, None, "{:?}", known(&level, name));
    }
}

#[test]
fn agreement_has_the_interval_of_the_profile_likelihood() {
    let given = |i: u32, rater: u32| f64::from((i * 7 + (i * (rater + 2)) % 5) % 11 + rater);
    let row =
        |i: u32| ComparedItem::new(Rating::Number(given(i, 3)), (0..3).map(|rater| Rating::Number(given(i, rater))));
    let found = compared((0..40).map(row).collect(), None);
    let people: Vec<Vec<Option<f64>>> = (0..40).map(|i| (0..3).map(|rater| Some(given(i, rater))).collect()).collect();
    let profile = MixedRatings::new(&people).unwrap().intraclass(IntraclassForm::Agreement, 0.95).unwrap();
    let reported = known(&found, "human_icc_a1");
    assert_eq!((reported.interval, reported.method.as_str()), (Some(profile.interval), "profile likelihood"));
    assert!((reported.estimate - profile.estimate).abs() < 1e-6, "{reported:?}");
    assert_eq!(known(&found, "icc_a1").method, "profile likelihood");
    assert_eq!(known(&found, "icc_c1").method, "F");
}

/// statsmodels: `proportion_confint(40, 40, method="wilson")` is (0.912, 1).
#[test]
fn shares_have_wilsons_interval_everywhere() {
    let perfect = |statistic: &Statistic, n: usize| {
        let known = statistic.defined().unwrap();
        let low = n as f64 / (n as f64 + 3.841_458_820_694_124);
        assert_eq!(known.method, "Wilson", "{known:?}");
        assert!(known.interval.is_some_and(|ends| ends.high == 1.0 && (ends.low - low).abs() < 1e-12), "{known:?}");
    };
    let decision = |group| ComparedDecision { observed: vec![1.0, 0.0], predicted: vec![0.9, 0.1], group, question: 0 };
    let decisions: Vec<ComparedDecision> = (0..40).map(decision).collect();
    let found = DecisionComparison::new(&decisions, &Bootstrap::default()).unwrap();
    perfect(&found.accuracy, 40);
    // Decisions about the same state are not independent.
    let shared: Vec<ComparedDecision> = (0..40).map(|i| decision(i / 2)).collect();
    let found = DecisionComparison::new(&shared, &Bootstrap::default()).unwrap();
    assert!(found.accuracy.interval().is_none() && found.accuracy.defined().unwrap().no_variation);
    let question = RankedAnswers { scores: vec![Some(2.0), Some(1.0)], grades: vec![4.0, 3.0] };
    let best = BestOf { questions: vec![question; 40], bootstrap: Bootstrap::default() }.statistics().unwrap();
    perfect(&best[0].1, 40);
    let win = Some(Preference::First);
    let pair = TalliedPair { given: win, swapped: win, preference: None, averaged: None };
    let tally =
        PairTally { bootstrap: Bootstrap { resamples: 200, ..Bootstrap::default() }, ..PairTally::new(vec![pair; 40]) };
    let tally = tally.found().unwrap();
    perfect(&tally.statistics[0].statistic, 40);
}
