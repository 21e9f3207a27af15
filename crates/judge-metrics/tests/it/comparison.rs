//! Comparisons of whole sets of rows: every name, every interval, every reason.

use std::cell::RefCell;
use std::collections::BTreeSet;

use judge_metrics::Error;
use judge_metrics::aggregation::DawidSkene;
use judge_metrics::agreement::{
    AlternativeAnnotatorTest, HumanCeiling, IntraclassCorrelations, McNemarTest, Measurement, RatedUnits,
    clustered_mcnemar, krippendorff_alpha, mcnemar,
};
use judge_metrics::calibration::LogisticRecalibration;
use judge_metrics::comparison::{
    ComparedItem, Comparison, ComparisonSettings, Comparisons, Labels, Loss, Rating, STATISTICS, Statistic,
    rank_agreement,
};
use judge_metrics::correlation::{grouped_correlation, pairwise_accuracy, spearman};
use judge_metrics::prediction::area_under_risk_coverage;
use judge_metrics::resampling::Bootstrap;

use crate::compared::compared;

fn settings() -> ComparisonSettings {
    ComparisonSettings {
        bootstrap: Bootstrap { resamples: 200, ..Bootstrap::default() },
        ..ComparisonSettings::default()
    }
}

fn item(predicted: f64, human: &[f64]) -> ComparedItem {
    ComparedItem::new(Rating::Number(predicted), human.iter().copied().map(Rating::Number))
}

fn text(predicted: &str, human: &[&str]) -> ComparedItem {
    let text = |text: &&str| Rating::Text((*text).to_owned());
    ComparedItem::new(text(&predicted), human.iter().map(text))
}

#[test]
fn every_name_is_listed_and_every_listed_name_occurs() {
    let numbers = (0..30).map(|i| {
        let (a, b) = (f64::from(i % 5), f64::from((i * 3 + i / 7) % 5));
        ComparedItem { second: Some(Rating::Number(f64::from(i % 4))), ..item(a, &[b, f64::from(i % 3)]) }
    });
    let of_questions = (0..40).map(|i| ComparedItem {
        cluster: Some((i / 4).to_string()),
        confidence: Some(f64::from(i % 7)),
        ..item(f64::from(i * 3 % 8), &[f64::from(i % 5), f64::from(i % 4), f64::from(i % 6)])
    });
    let texts = (0..9).map(|i| text(["a", "b", "c"][i % 3], &[["a", "b"][i % 2], "a"]));
    let mut names = BTreeSet::new();
    for items in [numbers.collect::<Vec<_>>(), of_questions.collect(), texts.collect()] {
        for (name, statistic) in &all(items).statistics {
            names.insert(name.clone());
            if let Some(interval) = statistic.interval() {
                let estimate = statistic.estimate().unwrap();
                assert!(interval.low <= estimate && estimate <= interval.high, "{name}: {statistic:?}");
            }
        }
    }
    assert_eq!(names, STATISTICS.iter().map(|name| (*name).to_owned()).collect());
}

/// By its definition, without a shortcut: `drawn` are units, in any order, with repetition, of which copies are no two units.
fn plain_alpha(ratings: &[Vec<Option<f64>>], drawn: &[usize], measurement: Measurement) -> f64 {
    let rated = drawn.iter().enumerate().map(|(copy, &unit)| {
        let given: Vec<f64> = ratings[unit].iter().copied().flatten().collect();
        (copy, unit, given)
    });
    let rated: Vec<_> = rated.filter(|(_, _, given)| given.len() >= 2).collect();
    let all: Vec<(usize, usize, f64)> =
        rated.iter().flat_map(|(copy, unit, given)| given.iter().map(move |&value| (*copy, *unit, value))).collect();
    let below = |value: f64| all.iter().filter(|rating| rating.2 < value).count() as f64;
    let same = |value: f64| all.iter().filter(|rating| rating.2 == value).count() as f64;
    let rank = |value: f64| below(value) + same(value) / 2.0;
    let distance = |a: f64, b: f64| match measurement {
        Measurement::Nominal => f64::from(a != b),
        Measurement::Ordinal => (rank(a) - rank(b)).powi(2),
        Measurement::Interval => (a - b).powi(2),
        Measurement::Ratio if a == b => 0.0,
        Measurement::Ratio => ((a - b) / (a + b)).powi(2),
    };
    let mut observed = 0.0;
    for (_, _, given) in &rated {
        for (a, b) in given.iter().flat_map(|a| given.iter().map(move |b| (a, b))) {
            observed += distance(*a, *b) / (given.len() - 1) as f64;
        }
    }
    let (mut expected, mut pairs) = (0.0, 0.0);
    for (i, &(copy, unit, a)) in all.iter().enumerate() {
        for (j, &(other_copy, other, b)) in all.iter().enumerate() {
            if i != j && (unit != other || copy == other_copy) {
                expected += distance(a, b);
                pairs += 1.0;
            }
        }
    }
    1.0 - observed / all.len() as f64 / (expected / pairs)
}

/// Missing ratings, units with one rating and clusters of one to nine rows included.
#[test]
fn resamples_of_clusters_equal_a_plain_computation_of_their_rows() {
    let rating = |row: u32, rater: u32| f64::from(1 + (row * 7 + rater * row % 5 + row / 3) % 5);
    let given = |row: u32, rater: u32| (row + rater) % 5 >= 2;
    let of_row = |row| (0..3).map(|rater| given(row, rater).then(|| rating(row, rater))).collect();
    let ratings: Vec<Vec<Option<f64>>> = (0..45).map(of_row).collect();
    assert!((1..=3).all(|n| ratings.iter().any(|row| row.iter().flatten().count() == n)));
    // Clusters 0 to 8, of one row, two rows and so on.
    let clusters: Vec<usize> = (0..9).flat_map(|cluster| std::iter::repeat_n(cluster, cluster + 1)).collect();
    let judge = |row: usize| [1.0, 2.5, 3.0, 4.25, 5.0][row * row % 5] + (row % 3) as f64 / 8.0;
    let items = (0..45).map(|row| ComparedItem {
        human: ratings[row].iter().map(|rating| rating.map(Rating::Number)).collect(),
        cluster: Some(clusters[row].to_string()),
        ..item(judge(row), &[])
    });
    let items: Vec<_> = items.collect();
    let both: Vec<[f64; 2]> = (0..45).map(|row| [judge(row), items[row].mean_human().unwrap()]).collect();
    let labels = Some((1..=5).map(|label| label.to_string()).collect());
    let comparison = Comparison::new(items, ComparisonSettings { labels, ..settings() }).unwrap();
    let found = comparison.statistics(&(0..45).collect::<Vec<_>>());
    let bootstrap = settings().bootstrap;
    let same = |name: &str, plain: &(dyn Fn(&[usize]) -> Result<f64, Error> + Sync)| {
        let expected = bootstrap.clustered(&clusters, plain).unwrap();
        let (estimate, interval) = (found.get(name).unwrap().estimate().unwrap(), found.get(name).unwrap().interval());
        let interval = interval.unwrap_or_else(|| panic!("{name}: {:?}", found.get(name)));
        for (a, b) in [
            (estimate, expected.estimate),
            (interval.low, expected.interval.low),
            (interval.high, expected.interval.high),
        ] {
            assert!((a - b).abs() < 1e-9, "{name}: {a} is not {b}");
        }
    };
    let units = RatedUnits::new(&ratings).unwrap();
    let (mut some, all): (Vec<usize>, Vec<usize>) = (vec![3, 3, 3, 44, 17, 0, 17, 8], (0..45).collect());
    some.extend(20..30);
    for (kind, measurement) in [
        ("nominal", Measurement::Nominal),
        ("ordinal", Measurement::Ordinal),
        ("interval", Measurement::Interval),
        ("ratio", Measurement::Ratio),
    ] {
        let plain = |rows: &[usize]| Ok(plain_alpha(&ratings, rows, measurement));
        for rows in [&some, &all] {
            assert!((units.alpha(rows, measurement).unwrap() - plain(rows).unwrap()).abs() < 1e-12, "{kind}");
        }
        if measurement != Measurement::Ratio {
            same(&format!("human_krippendorff_alpha_{kind}"), &plain);
        }
    }
    let drawn = |rows: &[usize]| IntraclassCorrelations::new(&rows.iter().map(|&row| both[row]).collect::<Vec<_>>());
    same("icc_1", &|rows| Ok(drawn(rows)?.one_way()?.estimate));
    same("icc_a1", &|rows| Ok(drawn(rows)?.agreement()?.estimate));
    same("icc_c1", &|rows| Ok(drawn(rows)?.consistency()?.estimate));
}

#[test]
fn whoever_waits_is_told_which_statistic_is_computed() {
    let items = (0..40).map(|i| ComparedItem {
        cluster: Some((i / 4).to_string()),
        ..item(f64::from(i * 3 % 8), &[f64::from(i % 5), f64::from(i % 4), f64::from(i % 6)])
    });
    let items: Vec<_> = items.collect();
    let all: Vec<usize> = (0..40).collect();
    let told = |only: Option<&[&str]>| {
        let only = only.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        let comparison = Comparison::new(items.clone(), ComparisonSettings { only, ..settings() }).unwrap();
        let told = RefCell::new(Vec::new());
        let found = comparison.statistics_observed(&all, &|started| {
            told.borrow_mut().push((started.name.to_owned(), started.number, started.of));
        });
        assert_eq!(found, comparison.statistics(&all));
        (told.into_inner(), found)
    };
    let (of_all, found) = told(None);
    for (name, number, of) in &of_all {
        assert_eq!((STATISTICS[number - 1], *of), (name.as_str(), STATISTICS.len()));
    }
    assert!(of_all.is_sorted_by(|one, next| one.1 < next.1), "{of_all:?}");
    // Whatever has an interval took resamples or sums.
    for (name, statistic) in &found.statistics {
        assert!(statistic.interval().is_none() || of_all.iter().any(|(told, ..)| told == name), "{name}");
    }
    let (of_two, _) = told(Some(&["icc_a1", "spearman"]));
    assert_eq!(of_two, [("spearman".to_owned(), 1, 2), ("icc_a1".to_owned(), 2, 2)]);
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
    // The mean over all resamples of two units, by hand: the observed disagreement is a mean over units, the expected one that of all pairs
    // of ratings but those between copies.
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
    let precision = one.get("average_precision").unwrap();
    assert!(precision.to_string().contains("no outcome is false"), "{precision:?}");
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
    let not_finite = new(vec![item(f64::NAN, &[1.0])]).unwrap_err().to_string();
    assert_eq!(not_finite, "row 0: predicted[0] is NaN, not a finite number");
    let second = ComparedItem { human: vec![None, Some(Rating::Number(f64::NAN))], ..item(1.0, &[]) };
    assert_eq!(new(vec![second]).unwrap_err().to_string(), "row 0: human[1] is NaN, not a finite number");
    // One row without a value would leave all rows without it.
    let whole = ComparedItem {
        second: Some(Rating::Number(1.0)),
        confidence: Some(1.0),
        cluster: Some("q".to_owned()),
        sampling_probability: Some(0.5),
        ..item(1.0, &[1.0])
    };
    for (argument, lacking) in [
        ("second", ComparedItem { second: None, ..whole.clone() }),
        ("confidence", ComparedItem { confidence: None, ..whole.clone() }),
        ("cluster", ComparedItem { cluster: None, ..whole.clone() }),
        ("sampling_probability", ComparedItem { sampling_probability: None, ..whole.clone() }),
    ] {
        assert_eq!(new(vec![whole.clone(), lacking]), in_row(1, Error::Missing { argument }));
    }
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
    let few = comparison.by_group(&groups[1..]).unwrap_err();
    assert_eq!(few, Error::LengthMismatch { argument: "groups", found: 11, other: "items", expected: 12 });
    let found = comparison.by_group(&groups).unwrap();
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
}

/// The statistics of all rows.
fn all(items: Vec<ComparedItem>) -> Comparisons {
    compared(items, settings().bootstrap.resamples, None)
}

#[track_caller]
fn p_value(found: &Comparisons, name: &str) -> f64 {
    found
        .get(name)
        .and_then(Statistic::defined)
        .and_then(|known| known.p)
        .unwrap_or_else(|| panic!("{name}: {found:?}"))
}

/// Rows of three raters, of whom the second leaves some out; a rater keeps their place.
#[test]
fn the_judge_may_take_a_raters_place() {
    let truth = |i: u32| f64::from(i * 7 % 5);
    let rated = |i: u32| {
        let off = |every: u32| truth(i) + f64::from(u8::from(i.is_multiple_of(every)));
        [Some(off(2)), (i % 9 != 4).then(|| off(3)), Some(off(4))]
    };
    let items = (0..60).map(|i| ComparedItem {
        human: rated(i).map(|rating| rating.map(Rating::Number)).to_vec(),
        ..item(truth(i) + f64::from(u8::from(i % 20 == 0)), &[])
    });
    let found = all(items.collect());
    let (judge, ratings): (Vec<_>, Vec<_>) =
        (0..60).map(|i| (Some(truth(i) + f64::from(u8::from(i % 20 == 0))), rated(i))).unzip();
    let direct = AlternativeAnnotatorTest::default().of_ratings(&judge, &ratings).unwrap();
    assert_eq!(direct.winning_rate().n, 3);
    let of = |name: &str| found.get(name).and_then(Statistic::estimate).unwrap();
    assert_eq!(of("alternative_winning_rate"), direct.winning_rate().estimate().unwrap());
    assert_eq!(of("alternative_advantage"), direct.advantage);
    assert!(found.get("alternative_advantage").and_then(Statistic::interval).is_some());

    let ceiling = HumanCeiling::of_ratings(&judge, &ratings).unwrap();
    assert_eq!(of("against_rest_judge"), ceiling.judge.estimate);
    assert_eq!(of("against_rest_human"), ceiling.people.estimate);
    assert_eq!(of("against_rest_difference"), ceiling.difference.estimate);
    assert_eq!(p_value(&found, "against_rest_difference"), ceiling.difference.p_value().unwrap());
    let (places, columns): (Vec<usize>, Vec<Vec<Option<usize>>>) = judge
        .iter()
        .zip(&ratings)
        .map(|(judge, row)| (judge.unwrap() as usize, row.iter().map(|r| r.map(|r| r as usize)).collect()))
        .unzip();
    let consensus = DawidSkene::default().fit(&[0, 1, 2, 3, 4, 5], &columns).unwrap().posteriors;
    let right: f64 = places.iter().zip(&consensus).map(|(place, of_row)| of_row[*place]).sum();
    assert!((of("accuracy_dawid_skene") - right / 60.0).abs() < 1e-12);

    // Two raters are too few, and rows of questions are not independent.
    let reason = |items: Vec<ComparedItem>| all(items).get("alternative_winning_rate").unwrap().to_string();
    assert!(reason((0..40).map(|i| item(truth(i), &[truth(i), 1.0])).collect()).contains("three raters or more"));
    let clustered =
        |i: u32| ComparedItem { cluster: Some((i / 2).to_string()), ..item(truth(i), &[truth(i), 1.0, 2.0]) };
    assert!(reason((0..40).map(clustered).collect()).contains("clusters"));
}

#[test]
fn within_questions_are_the_functions_of_groups() {
    let (human, judge): (Vec<f64>, Vec<f64>) = (0..40).map(|i| (f64::from(i * 7 % 5), f64::from(i * 3 % 11))).unzip();
    let question: Vec<String> = (0..40).map(|i| (i / 4).to_string()).collect();
    let items = (0..40).map(|i| ComparedItem { cluster: Some(question[i].clone()), ..item(judge[i], &human[i..=i]) });
    let found = all(items.collect());
    let within = grouped_correlation(&human, &judge, &question, spearman).unwrap().mean;
    let pairs = pairwise_accuracy(&human, &judge, &question).unwrap().accuracy;
    for (name, expected) in [("spearman_within_clusters", within), ("pairwise_accuracy", pairs)] {
        let statistic = found.get(name).unwrap();
        assert_eq!(statistic.estimate(), Some(expected.estimate), "{name}");
        assert_eq!(statistic.interval(), expected.interval(settings().bootstrap.level).ok(), "{name}");
    }
    // Without questions there is nothing within them.
    let plain = all((0..40).map(|i| item(judge[i], &human[i..=i])).collect());
    assert!(plain.get("pairwise_accuracy").is_none() && plain.get("spearman_within_clusters").is_none());
}

#[test]
fn two_judges_are_compared_by_tests_that_suit_the_rows() {
    let human: Vec<f64> = (0..40).map(|i| f64::from(i * 7 % 3)).collect();
    let first: Vec<f64> = (0..40).map(|i| f64::from((i * 7 + i32::from(i % 5 == 0)) % 3)).collect();
    let second: Vec<f64> = (0..40).map(|i| f64::from((i * 7 + i32::from(i % 2 == 0)) % 3)).collect();
    let question: Vec<String> = (0..40).map(|i| (i / 4).to_string()).collect();
    let rows = |clusters: bool| -> Vec<ComparedItem> {
        let row = |i: usize| ComparedItem {
            second: Some(Rating::Number(second[i])),
            cluster: clusters.then(|| question[i].clone()),
            ..item(first[i], &human[i..=i])
        };
        (0..40).map(row).collect()
    };
    let right =
        |judge: &[f64]| -> Vec<bool> { judge.iter().zip(&human).map(|(judge, human)| judge == human).collect() };
    let (one, other) = (right(&first), right(&second));
    let alone = |a: &[bool], b: &[bool]| a.iter().zip(b).filter(|(a, b)| **a && !**b).count();
    let (independent, clustered) = (all(rows(false)), all(rows(true)));
    let exact = mcnemar(alone(&one, &other), alone(&other, &one), McNemarTest::Exact).unwrap().p_value;
    assert_eq!(p_value(&independent, "difference_accuracy"), exact);
    assert_eq!(p_value(&clustered, "difference_accuracy"), clustered_mcnemar(&one, &other, &question).unwrap().p_value);
    let gain = independent.get("difference_accuracy").and_then(Statistic::estimate).unwrap();
    let share = |right: &[bool]| right.iter().filter(|right| **right).count() as f64 / 40.0;
    assert!((gain - (share(&one) - share(&other))).abs() < 1e-12);

    // Ranks change places, so the unit of a judge does not matter.
    let ranked = p_value(&independent, "difference_spearman");
    let of_100: Vec<ComparedItem> = rows(false)
        .into_iter()
        .zip(&second)
        .map(|(row, score)| ComparedItem { second: Some(Rating::Number(100.0 * score)), ..row })
        .collect();
    assert_eq!(p_value(&all(of_100), "difference_spearman"), ranked);
    assert!(ranked > 0.0 && ranked < 0.2 && p_value(&clustered, "difference_spearman") < 0.5, "{ranked}");
}

#[test]
fn what_is_risked_depends_on_what_is_rated() {
    let sure = |i: u32| Some(f64::from(i % 4));
    let area = |found: &Comparisons| found.get("area_under_risk_coverage").map(|area| area.estimate().unwrap());
    let expected = |losses: &[f64], confidence: &[f64]| Some(area_under_risk_coverage(losses, confidence).unwrap());
    let confidence: Vec<f64> = (0..20).map(|i| f64::from(i % 4)).collect();

    let grades: Vec<ComparedItem> =
        (0..20).map(|i| ComparedItem { confidence: sure(i), ..item(3.0, &[f64::from(i % 5), 3.0]) }).collect();
    let losses: Vec<f64> = (0..20).map(|i| (3.0 - (f64::from(i % 5) + 3.0) / 2.0).abs()).collect();
    assert_eq!(area(&all(grades)), expected(&losses, &confidence));

    // Probabilities say it themselves.
    let p = |i: u32| f64::from(i + 1) / 22.0;
    let yes = |i: u32| f64::from(u8::from(i * 7 % 20 > 8));
    let losses: Vec<f64> = (0..20).map(|i| f64::from(u8::from((p(i) > 0.5) != (yes(i) == 1.0)))).collect();
    let from_half: Vec<f64> = (0..20).map(|i| (p(i) - 0.5).abs()).collect();
    let comparison = Comparison::new((0..20).map(|i| item(p(i), &[yes(i)])).collect(), settings()).unwrap();
    let rows: Vec<usize> = (0..20).collect();
    assert_eq!(area(&comparison.statistics(&rows)), expected(&losses, &from_half));
    let risk = comparison.selective_risk(&rows).unwrap();
    assert_eq!((risk.loss, &risk.losses, &risk.confidence), (Loss::WrongDecision, &losses, &from_half));
    let slope = LogisticRecalibration::new(
        &(0..20).map(|i| yes(i) == 1.0).collect::<Vec<_>>(),
        &(0..20).map(p).collect::<Vec<_>>(),
    );
    let found = comparison.statistics(&rows);
    assert_eq!(found.get("calibration_slope").and_then(Statistic::estimate), Some(slope.unwrap().slope.estimate));

    let labels = (0..20).map(|i| ComparedItem { confidence: sure(i), ..text("a", &["a", ["a", "b"][i as usize % 2]]) });
    let losses: Vec<f64> = (0..20).map(|i| f64::from(i % 2) / 2.0).collect();
    assert_eq!(area(&all(labels.collect())), expected(&losses, &confidence));
}
