//! Comparisons of whole sets of rows: every name, every interval, every reason.

use std::collections::BTreeSet;

use judge_metrics::Error;
use judge_metrics::agreement::{Measurement, RatedUnits, krippendorff_alpha};
use judge_metrics::comparison::{
    ComparedItem, Comparison, ComparisonSettings, Labels, Rating, STATISTICS, Statistic, rank_agreement,
    spearman_difference,
};
use judge_metrics::resampling::Bootstrap;

fn settings() -> ComparisonSettings {
    ComparisonSettings {
        bootstrap: Bootstrap { resamples: 200, ..Bootstrap::default() },
        ..ComparisonSettings::default()
    }
}

fn item(predicted: f64, human: &[f64]) -> ComparedItem {
    let human = human.iter().copied().map(Rating::Number).collect();
    ComparedItem { predicted: Rating::Number(predicted), second: None, human, cluster: None }
}

fn text(predicted: &str, human: &[&str]) -> ComparedItem {
    let text = |text: &&str| Rating::Text((*text).to_owned());
    ComparedItem { predicted: text(&predicted), second: None, human: human.iter().map(text).collect(), cluster: None }
}

#[test]
fn every_name_is_listed_and_every_listed_name_occurs() {
    let numbers = (0..30).map(|i| {
        let (a, b) = (f64::from(i % 5), f64::from((i * 3 + i / 7) % 5));
        ComparedItem { second: Some(Rating::Number(f64::from(i % 4))), ..item(a, &[b, f64::from(i % 3)]) }
    });
    let texts = (0..9).map(|i| text(["a", "b", "c"][i % 3], &[["a", "b"][i % 2], "a"]));
    let mut names = BTreeSet::new();
    for items in [numbers.collect::<Vec<_>>(), texts.collect()] {
        let comparison = Comparison::new(items, settings()).unwrap();
        let found = comparison.statistics(&(0..comparison.items().len()).collect::<Vec<_>>());
        for (name, statistic) in &found.statistics {
            names.insert(name.clone());
            if let Some(interval) = statistic.interval() {
                let estimate = statistic.estimate().unwrap();
                assert!(interval.low <= estimate && estimate <= interval.high, "{name}: {statistic:?}");
            }
        }
    }
    assert_eq!(names, STATISTICS.iter().map(|name| (*name).to_owned()).collect());
}

/// Copies of a unit are no two units: counted as such, they put all of a hardly varying alpha's interval below the estimate.
#[test]
fn resampled_alphas_are_centred_on_the_estimate() {
    let n = 41;
    let ratings: Vec<_> =
        (0..n).map(|i| [f64::from(i * 37 % 41), f64::from(i * 37 % 41) + f64::from(i % 5) - 1.7].map(Some)).collect();
    let units = RatedUnits::new(&ratings).unwrap();
    let bootstrap = Bootstrap { resamples: 2_000, ..Bootstrap::default() };
    for measurement in [Measurement::Nominal, Measurement::Ordinal, Measurement::Interval] {
        let found = bootstrap.interval(units.len(), |rows| units.alpha(rows, measurement)).unwrap();
        assert_eq!(found.estimate, krippendorff_alpha(&ratings, measurement).unwrap().estimate);
        let (low, high) = (found.interval.low - 1e-12, found.interval.high + 1e-12);
        assert!(low <= found.estimate && found.estimate <= high, "{measurement:?}: {found:?}");
    }
    // The mean over all resamples of two units, by hand: the observed disagreement is a mean over units, the expected one that of all pairs of
    // ratings but those between copies.
    let two = RatedUnits::new(&[[Some(1.0), Some(2.0)], [Some(4.0), Some(6.0)]]).unwrap();
    let alpha = |units: &[usize]| two.alpha(units, Measurement::Interval).unwrap();
    // Differences squared within are 1 and 4, between 9, 25, 4, 16.
    let expected = (1.0 + 4.0 + 9.0 + 25.0 + 4.0 + 16.0) / 6.0;
    assert!((alpha(&[0, 1]) - (1.0 - 2.5 / expected)).abs() < 1e-12);
    // Copies of one unit: both disagreements are its own.
    assert!(alpha(&[0, 0]).abs() < 1e-12 && alpha(&[1, 1]).abs() < 1e-12);
    assert!(matches!(two.alpha(&[2], Measurement::Interval), Err(Error::OutOfRange { argument: "units", .. })));
}

#[test]
fn continuous_scores_have_no_nominal_agreement() {
    let items: Vec<_> = (0..20).map(|i| item(f64::from(i) * 8.0 / 3.0, &[f64::from(i * i % 7)])).collect();
    let found = Comparison::new(items, settings()).unwrap().statistics(&(0..20).collect::<Vec<_>>());
    for name in ["krippendorff_alpha_nominal", "accuracy", "cohen_kappa", "gwet_ac1"] {
        let Some(Statistic::Undefined { reason }) = found.get(name) else { panic!("{name}: {:?}", found.get(name)) };
        assert!(reason.starts_with("2.66667 is not a whole number"), "{reason}");
    }
    assert!(found.get("krippendorff_alpha_interval").and_then(Statistic::interval).is_some());
    // Labels that lie between whole numbers are labels once they are named; the mean of two raters may be none.
    let named = ComparisonSettings { labels: Some(["1", "1.5", "2"].map(str::to_owned).to_vec()), ..settings() };
    let halves = vec![item(1.5, &[1.5]), item(1.0, &[1.0]), item(2.0, &[1.5]), item(2.0, &[2.0])];
    let found = Comparison::new(halves.clone(), named.clone()).unwrap().statistics(&[0, 1, 2, 3]);
    assert!(found.get("krippendorff_alpha_nominal").and_then(Statistic::estimate).is_some());
    let two = vec![item(1.5, &[1.0, 1.5]), item(1.0, &[1.0, 1.0])];
    let found = Comparison::new(two, named).unwrap().statistics(&[0, 1]);
    assert!(
        found.get("krippendorff_alpha_nominal").unwrap().to_string().contains("1.25, not one of the labels 1, 1.5, 2")
    );
    assert!(found.get("human_krippendorff_alpha_nominal").and_then(Statistic::estimate).is_some());
}

#[test]
fn one_cluster_or_row_has_an_estimate_without_an_interval() {
    let rows: Vec<_> = (0..8)
        .map(|i| ComparedItem { cluster: Some("q".to_owned()), ..item(f64::from(i), &[f64::from(i % 5)]) })
        .collect();
    let found = Comparison::new(rows, settings()).unwrap().statistics(&(0..8).collect::<Vec<_>>());
    for name in ["pearson", "spearman", "mae", "rmse"] {
        let known = found.get(name).and_then(Statistic::defined).unwrap();
        assert!(known.interval.is_none() && known.method.contains("one cluster"), "{name}: {known:?}");
    }
    let one = Comparison::new(vec![item(1.0, &[3.0])], settings()).unwrap().statistics(&[0]);
    let rmse = one.get("rmse").and_then(Statistic::defined).unwrap();
    assert!(rmse.estimate == 2.0 && rmse.interval.is_none() && rmse.method.contains("2 items or more"), "{rmse:?}");
    let one = Comparison::new(vec![item(0.5, &[1.0])], settings()).unwrap().statistics(&[0]);
    let precision = one.get("average_precision").and_then(Statistic::defined).unwrap();
    assert!(precision.interval.is_none() && precision.method.contains("only one row"), "{precision:?}");
}

#[test]
fn unusable_rows_and_settings_are_refused() {
    let new = |items| Comparison::new(items, settings()).map(|_| ());
    assert_eq!(new(Vec::new()), Err(Error::TooFewItems { required: 1, found: 0 }));
    let in_row = |row, error| Err(Error::InRow { row, error: Box::new(error) });
    assert_eq!(new(vec![item(1.0, &[1.0]), item(1.0, &[])]), in_row(1, Error::TooFewItems { required: 1, found: 0 }));
    let mixed = Error::MixedRatings { found: "good".into(), numeric: true };
    assert_eq!(mixed.to_string(), "the rating good is a text, but the first one is a number");
    assert_eq!(new(vec![item(1.0, &[1.0]), text("good", &["good"])]), in_row(1, mixed));
    assert!(matches!(new(vec![item(f64::NAN, &[1.0])]), Err(Error::InRow { row: 0, .. })));
    let only = ComparisonSettings { only: Some(vec!["rho".into()]), ..settings() };
    let unknown = Comparison::new(vec![item(1.0, &[1.0])], only).unwrap_err();
    assert!(matches!(unknown, Error::UnknownLabel { argument: "only", index: 0, .. }));
    let named = |names: &[&str], numeric| {
        Labels::named(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), numeric)
    };
    assert_eq!(named(&["1", "1.0"], true), Err(Error::DuplicateLabel { index: 1, label: "1.0".into() }));
    assert!(named(&["1", "1.0"], false).is_ok());
    assert_eq!(
        named(&["1", "nan"], true),
        Err(Error::NotANumber { argument: "labels", index: 1, found: "nan".into() })
    );
    assert_eq!(named(&["1"], true), Err(Error::TooFewItems { required: 2, found: 1 }));
}

#[test]
fn groups_and_chosen_statistics() {
    let items: Vec<_> = (0..12).map(|i| item(f64::from(i), &[f64::from(i % 4)])).collect();
    let only = ComparisonSettings { only: Some(vec!["mae".into(), "spearman".into()]), ..settings() };
    let comparison = Comparison::new(items, only).unwrap();
    let groups: Vec<&str> = (0..12).map(|i| if i < 4 { "a" } else { "b" }).collect();
    let found = comparison.by_group(&groups);
    assert_eq!(found.iter().map(|(group, found)| (**group, found.n)).collect::<Vec<_>>(), [("a", 4), ("b", 8)]);
    let names = found[&"a"].statistics.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>();
    assert_eq!(names, ["spearman", "mae"]);
    assert_eq!(found[&"a"].get("mae").and_then(Statistic::estimate), Some(0.0));
    assert_eq!(found[&"b"], comparison.statistics(&(4..12).collect::<Vec<_>>()));
}

#[test]
fn rank_agreement_refuses_what_is_unusable_and_explains_the_rest() {
    let bootstrap = Bootstrap { resamples: 100, ..Bootstrap::default() };
    let human = [1.0, 2.0, 3.0, 4.0, 5.0];
    let constant = rank_agreement(&[3.0; 5], &human, &bootstrap).unwrap();
    assert!(matches!(&constant.spearman, Statistic::Undefined { reason } if reason.contains("every value of x is 3")));
    assert!(matches!(rank_agreement(&[1.0, f64::NAN], &human[..2], &bootstrap), Err(Error::NonFinite { .. })));
    assert!(matches!(rank_agreement(&human, &human[..2], &bootstrap), Err(Error::LengthMismatch { .. })));
    let same = spearman_difference(&human, &human, &human, &bootstrap).unwrap();
    assert_eq!((same.estimate(), same.interval().map(|i| (i.low, i.high))), (Some(0.0), Some((0.0, 0.0))));
    assert_eq!(format!("{same:.1}"), "0.0 [0.0, 0.0]");
    assert!(matches!(spearman_difference(&human, &human[..4], &human, &bootstrap), Err(Error::LengthMismatch { .. })));
}
