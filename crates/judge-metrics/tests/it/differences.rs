//! Differences of two judges against scikit-learn, krippendorff, SciPy and statsmodels (`scripts/metrics/differences_fixtures.py`).

use judge_metrics::Error;
use judge_metrics::agreement::{Measurement, krippendorff_alpha};
use judge_metrics::comparison::{ComparedItem, Comparisons, Rating, Statistic};
use judge_metrics::correlation::{average_ranks, pearson};
use judge_metrics::prediction::auroc_difference;
use judge_metrics::resampling::PermutationTest;
use serde_json::Value;

use crate::compared::compared;
use crate::fixtures::{fixture, list, numbers};

fn rows(case: &Value) -> Vec<ComparedItem> {
    let column = |name: &str| numbers(&case[name]);
    let (human, first, second, groups) = (column("human"), column("first"), column("second"), column("groups"));
    let row = |i: usize| ComparedItem {
        second: Some(Rating::Number(second[i])),
        cluster: Some(groups[i].to_string()),
        ..ComparedItem::new(Rating::Number(first[i]), [Rating::Number(human[i])])
    };
    (0..human.len()).map(row).collect()
}

#[test]
fn estimates_and_p_values_equal_the_references() {
    let fixture = fixture("differences");
    for case in list(&fixture["cases"]) {
        let of_labels = case["found"].get("difference_brier").is_none();
        let found = compared(rows(case), 400, of_labels.then_some(&["1", "2", "3"]));
        for (name, expected) in case["found"].as_object().unwrap() {
            let known =
                found.get(name).and_then(|known| known.defined()).unwrap_or_else(|| panic!("{name}: {found:?}"));
            let interval = known.interval.unwrap_or_else(|| panic!("{name}: {known:?}"));
            assert!(interval.low < known.estimate && known.estimate < interval.high, "{name}: {known:?}");
            let ours = [Some(known.estimate), known.p, Some(interval.low), Some(interval.high)];
            for (ours, what) in ours.into_iter().zip(["estimate", "p", "low", "high"]) {
                if let Some(expected) = expected[what].as_f64() {
                    let near = ours.is_some_and(|ours| (ours - expected).abs() <= 1e-10 * expected.abs());
                    assert!(near, "{name}, {what}: {ours:?}, not {expected}");
                }
            }
        }
    }
    // Of independent rows the area's test is DeLong's, which has its own fixture.
    let case = &fixture["cases"][2];
    let outcomes: Vec<bool> = numbers(&case["human"]).iter().map(|&human| human == 1.0).collect();
    let delong = auroc_difference(&outcomes, &numbers(&case["first"]), &numbers(&case["second"])).unwrap();
    let found = compared(rows(case), 400, None);
    let known = found.get("difference_auroc").and_then(|known| known.defined()).unwrap();
    assert_eq!((known.p, known.method.as_str()), (delong.p_value().ok(), "DeLong"));
}

/// The p-values of a plain computation of the same draws.
#[test]
fn judges_change_places_as_permutations_of_columns_do() {
    let column = |of: usize| (0..40).map(|i| ((i * 7 + of * i * i) % 11) as f64 / 4.0 + (i % 5) as f64).collect();
    let columns: [Vec<f64>; 3] = [0, 1, 3].map(column);
    let [people, first, second] = &columns;
    let row = |i: usize| ComparedItem {
        second: Some(Rating::Number(second[i])),
        ..ComparedItem::new(Rating::Number(first[i]), [Rating::Number(people[i])])
    };
    let found = compared((0..40).map(row).collect(), 50, None);
    let p = |name: &str| found.get(name).and_then(Statistic::defined).and_then(|known| known.p).unwrap();
    let test = PermutationTest { rounding: 1e-13, ..PermutationTest::default() };
    let ranks = average_ranks(people).unwrap();
    let gain = |x: &[f64], y: &[f64]| Ok(pearson(x, &ranks)?.estimate - pearson(y, &ranks)?.estimate);
    assert_eq!(p("difference_spearman"), test.paired_ranks(first, second, gain).unwrap().p_value);
    for (name, measurement) in [
        ("difference_krippendorff_alpha_ordinal", Measurement::Ordinal),
        ("difference_krippendorff_alpha_interval", Measurement::Interval),
    ] {
        let alpha = |judge: &[f64]| -> Result<f64, Error> {
            let ratings: Vec<_> = judge.iter().zip(people).map(|(&judge, &people)| [judge, people].map(Some)).collect();
            Ok(krippendorff_alpha(&ratings, measurement)?.estimate)
        };
        let expected = test.paired(first, second, |x, y| Ok(alpha(x)? - alpha(y)?)).unwrap();
        assert_eq!(p(name), expected.p_value, "{name}");
    }
}

#[test]
fn what_two_judges_do_not_define_is_said_of_their_difference() {
    let text = |text: &str| Rating::Text(text.to_owned());
    let said = ["a", "b", "b", "a", "b", "a", "a", "b"];
    let of_texts: Vec<ComparedItem> = (0..8)
        .map(|i| ComparedItem {
            second: Some(text(said[(i + 1) % 8])),
            ..ComparedItem::new(text(said[i]), [text(said[i])])
        })
        .collect();
    let found = compared(of_texts.clone(), 400, None);
    let undefined = |found: &Comparisons, name: &str| found.get(name).unwrap().to_string();
    assert!(found.get("difference_krippendorff_alpha_nominal").unwrap().estimate().unwrap() > 0.5);
    assert!(undefined(&found, "difference_krippendorff_alpha_ordinal").contains("the labels have no order"));
    assert!(undefined(&found, "difference_cohen_kappa_linear").contains("nor named in their order"));
    assert!(undefined(&found, "difference_brier").contains("texts, not numbers"));
    let ordered = compared(of_texts, 400, Some(&["a", "b"]));
    assert!(ordered.get("difference_krippendorff_alpha_ordinal").unwrap().estimate().unwrap() > 0.5);
    // A label that only the second judge gives.
    let own = |of: fn(usize) -> Rating| {
        let items = (0..8).map(|i| ComparedItem {
            second: Some(of(if i == 3 { 4 } else { i % 2 })),
            ..ComparedItem::new(of(i % 2), [of(i / 2 % 2)])
        });
        compared(items.collect(), 400, None)
    };
    for found in [own(|i| Rating::Number(i as f64)), own(|i| Rating::Text(["a", "b", "c", "d", "e"][i].to_owned()))] {
        for name in ["difference_cohen_kappa", "difference_krippendorff_alpha_nominal"] {
            let why = undefined(&found, name);
            assert!(
                why.contains("of the second judge, a score is") && why.contains("name all labels"),
                "{name}: {why}"
            );
        }
        assert!(found.get("krippendorff_alpha_nominal").unwrap().estimate().is_some());
    }
    // Whatever the labels, texts have no intervals.
    let texts = own(|i| Rating::Text(["a", "b", "c", "d", "e"][i].to_owned()));
    assert!(undefined(&texts, "difference_krippendorff_alpha_interval").contains("texts, not numbers"));
    // A second judge on another scale is no probability.
    let items: Vec<ComparedItem> = (0..8)
        .map(|i| ComparedItem {
            second: Some(Rating::Number(f64::from(i))),
            ..ComparedItem::new(Rating::Number(f64::from(i) / 8.0), [Rating::Number(f64::from(i % 2))])
        })
        .collect();
    let found = compared(items, 400, None);
    assert!(undefined(&found, "difference_brier").contains("2 is no probability"));
    // Scores in the same order are alike.
    let alike = found.get("difference_auroc").and_then(Statistic::defined).unwrap();
    assert_eq!((alike.estimate, alike.p, alike.no_variation), (0.0, Some(1.0), true));
}
