//! Soft labels and the human ceiling against NumPy, SciPy and scikit-learn (`scripts/metrics/people_fixtures.py`), and what they refuse.

use judge_metrics::agreement::{AlternativeAnnotatorTest, HumanCeiling, SoftLabels, SoftMeasure};
use judge_metrics::means::clustered_mean;
use judge_metrics::{Error, Estimate};
use proptest::prelude::*;
use serde_json::Value;

use crate::fixtures::{counts, fixture, list, near, numbers};

fn table(value: &Value) -> Vec<Vec<Option<usize>>> {
    list(value).iter().map(|row| list(row).iter().map(|label| label.as_u64().map(|k| k as usize)).collect()).collect()
}

#[track_caller]
fn mean(ours: &Estimate, expected: &Value) {
    near(ours.estimate, &expected["mean"]);
    let interval = ours.interval(0.95).unwrap();
    near(interval.low, &expected["low"]);
    near(interval.high, &expected["high"]);
}

#[test]
fn soft_labels_equal_scipy() {
    for case in list(&fixture("people")["soft_labels"]) {
        let rows = |name: &str| list(&case[name]).iter().map(numbers).collect::<Vec<_>>();
        let (people, judge) = (rows("people"), rows("judge"));
        let soft = SoftLabels::new(&people, &judge).unwrap();
        let clip = case["clip"].as_f64().unwrap();
        for (measure, name) in [
            (SoftMeasure::ExpectedAgreement, "expected_agreement"),
            (SoftMeasure::CrossEntropy { clip: 0.0 }, "cross_entropy"),
            (SoftMeasure::CrossEntropy { clip }, "clipped_cross_entropy"),
            (SoftMeasure::KlDivergence, "kl"),
            (SoftMeasure::JensenShannon, "js"),
            (SoftMeasure::TotalVariation, "total_variation"),
            (SoftMeasure::Brier, "brier"),
        ] {
            mean(&soft.mean(measure).unwrap(), &case[name]);
            let groups: Vec<usize> = (0..people.len()).map(|item| item / 3).collect();
            let clustered = soft.clustered(measure, &groups).unwrap();
            assert_eq!(clustered, clustered_mean(&soft.items(measure).unwrap(), &groups).unwrap());
        }
        mean(&soft.best(SoftMeasure::ExpectedAgreement).unwrap(), &case["best_agreement"]);
        mean(&soft.best(SoftMeasure::CrossEntropy { clip }).unwrap(), &case["entropy"]);
        assert_eq!(soft.best(SoftMeasure::Brier).unwrap().estimate, 0.0);

        let chosen = SoftLabels::of_labels(&people, &counts(&case["chosen"])).unwrap();
        mean(&chosen.mean(SoftMeasure::ExpectedAgreement).unwrap(), &case["chosen_agreement"]);
        let infinite = chosen.mean(SoftMeasure::CrossEntropy { clip: 0.0 }).unwrap_err();
        assert!(matches!(infinite, Error::InRow { error, .. } if error.is_undefined()));
    }
}

#[test]
fn ceilings_equal_leaving_out_by_loops() {
    let fixture = fixture("people");
    let check = |found: HumanCeiling, case: &Value| {
        mean(&found.people, &case["people_figure"]);
        mean(&found.judge, &case["judge_figure"]);
        mean(&found.difference, &case["difference"]);
        near(found.difference.p_value().unwrap(), &case["difference"]["p"]);
        assert_eq!(found.items.len() as u64, case["n"].as_u64().unwrap());
        let expected = list(&case["annotators"]);
        assert_eq!(found.annotators.len(), expected.len());
        for (ours, expected) in found.annotators.iter().zip(expected) {
            assert_eq!(ours.annotator as u64, expected["annotator"].as_u64().unwrap());
            assert_eq!(ours.n as u64, expected["n"].as_u64().unwrap());
            near(ours.person, &expected["person"]);
            near(ours.judge, &expected["judge"]);
        }
        // Each item a cluster of its own: the same standard error.
        let rows = list(&case["judge"]).len();
        let alone = found.clustered_difference(&(0..rows).collect::<Vec<_>>()).unwrap();
        assert!((alone.standard_error().unwrap() - found.difference.standard_error().unwrap()).abs() < 1e-12);
    };
    for case in list(&fixture["label_ceilings"]) {
        let judge: Vec<Option<usize>> = list(&case["judge"]).iter().map(|k| k.as_u64().map(|k| k as usize)).collect();
        check(HumanCeiling::of_labels(&judge, &table(&case["ratings"])).unwrap(), case);
    }
    for case in list(&fixture["number_ceilings"]) {
        let row = |row: &Value| list(row).iter().map(Value::as_f64).collect::<Vec<_>>();
        let ratings: Vec<Vec<Option<f64>>> = list(&case["ratings"]).iter().map(row).collect();
        check(HumanCeiling::of_ratings(&row(&case["judge"]), &ratings).unwrap(), case);
    }
}

/// A judge that repeats one annotator scores as that annotator does against the same rest, and better against the others'.
#[test]
fn a_judge_that_copies_an_annotator_has_that_annotators_figure() {
    for case in list(&fixture("people")["label_ceilings"]) {
        let ratings = table(&case["ratings"]);
        let judge: Vec<Option<usize>> = ratings.iter().map(|row| row[0]).collect();
        let found = HumanCeiling::of_labels(&judge, &ratings).unwrap();
        assert!((found.annotators[0].person - found.annotators[0].judge).abs() < 1e-15);
        assert!(found.annotators[1].judge > found.annotators[0].judge);
    }
}

#[test]
fn what_is_no_soft_label_is_refused() {
    let people = [[0.5, 0.5], [1.0, 0.0]];
    let far = SoftLabels::new(&people, &[[0.5, 0.5], [0.5, 0.6]]).unwrap_err();
    assert!(
        matches!(far, Error::InRow { row: 1, error } if matches!(*error, Error::NotADistribution { argument: "judge", .. }))
    );
    assert!(matches!(SoftLabels::new(&people, &[[0.5, 0.5]]), Err(Error::LengthMismatch { .. })));
    assert!(matches!(SoftLabels::new(&people, &[vec![0.5, 0.5], vec![1.0]]), Err(Error::InRow { row: 1, .. })));
    let empty: [[f64; 2]; 0] = [];
    assert_eq!(SoftLabels::new(&empty, &empty).unwrap_err(), Error::TooFewItems { required: 1, found: 0 });
    assert!(matches!(SoftLabels::of_labels(&people, &[0, 2]), Err(Error::UnknownLabel { index: 1, .. })));
    let soft = SoftLabels::new(&people, &[[0.5, 0.5], [0.0, 1.0]]).unwrap();
    for measure in [SoftMeasure::KlDivergence, SoftMeasure::CrossEntropy { clip: 0.0 }] {
        assert!(matches!(soft.mean(measure), Err(Error::InRow { row: 1, error }) if error.is_undefined()));
    }
    let clip = soft.mean(SoftMeasure::CrossEntropy { clip: 0.5 });
    assert!(matches!(clip, Err(Error::OutOfRange { argument: "clip", .. })));
}

#[test]
fn what_has_no_ceiling_is_refused() {
    let alone = HumanCeiling::of_labels(&[Some(1), Some(1)], &[[Some(1), None], [None, Some(1)]]).unwrap_err();
    assert_eq!(alone, Error::TooFewItems { required: 2, found: 0 });
    let ragged = HumanCeiling::of_labels(&[Some(1), Some(1)], &[vec![Some(1), None], vec![Some(1)]]).unwrap_err();
    assert!(matches!(ragged, Error::LengthMismatch { .. }));
    let nan = HumanCeiling::of_ratings(&[Some(1.0), Some(f64::NAN)], &[[Some(1.0); 2]; 2]).unwrap_err();
    assert!(matches!(nan, Error::NonFinite { argument: "judge", index: 1, .. }));
    let far = [[Some(f64::MAX), Some(f64::MAX)]; 2];
    assert!(HumanCeiling::of_ratings(&[Some(f64::MIN); 2], &far).unwrap_err().is_undefined());
    // All alike: figures, but nothing that shows how they vary.
    let same = HumanCeiling::of_labels(&[Some(1); 3], &[[Some(1); 3]; 3]).unwrap();
    assert_eq!((same.judge.estimate, same.people.estimate, same.difference.estimate), (1.0, 1.0, 0.0));
    assert!(same.difference.interval(0.95).unwrap_err().is_undefined());
    let few = same.clustered_difference(&[0, 1]).unwrap_err();
    assert_eq!(few, Error::LengthMismatch { argument: "groups", found: 2, other: "judge", expected: 3 });
}

proptest! {
    /// Annotators and items in another order, and labels by other names, give the same ceiling; and with two annotators leaving one out is
    /// comparing with the other.
    #[test]
    fn order_and_names_do_not_change_the_ceiling(
        rows in prop::collection::vec((prop::option::weighted(0.9, 0_usize..4), prop::collection::vec(prop::option::weighted(0.8, 0_usize..4), 4)), 2..30),
        order in Just(vec![0_usize, 1, 2, 3]).prop_shuffle(),
        names in Just(vec!["a", "b", "c", "d"]).prop_shuffle(),
    ) {
        let (judge, ratings): (Vec<_>, Vec<_>) = rows.iter().cloned().unzip();
        let renamed_judge: Vec<Option<&str>> = judge.iter().rev().map(|label| label.map(|k| names[k])).collect();
        let renamed: Vec<Vec<Option<&str>>> =
            ratings.iter().rev().map(|row| order.iter().map(|&rater| row[rater].map(|k| names[k])).collect()).collect();
        match (HumanCeiling::of_labels(&judge, &ratings), HumanCeiling::of_labels(&renamed_judge, &renamed)) {
            (Ok(a), Ok(b)) => {
                for (a, b) in [(a.judge, b.judge), (a.people, b.people), (a.difference, b.difference)] {
                    prop_assert!((a.estimate - b.estimate).abs() < 1e-12);
                }
                prop_assert!((0.0..=1.0).contains(&a.people.estimate) && (0.0..=1.0).contains(&a.judge.estimate));
                prop_assert!((a.judge.estimate - a.people.estimate - a.difference.estimate).abs() < 1e-12);
                // The same items as those of the alternative annotator test, which leaves out in the same way.
                let test = AlternativeAnnotatorTest { min_items: 2, ..AlternativeAnnotatorTest::default() };
                if let Ok(tested) = test.of_labels(&judge, &ratings) {
                    prop_assert_eq!(tested.n_items, a.items.len());
                }
            }
            (a, b) => prop_assert_eq!(a.unwrap_err(), b.unwrap_err()),
        }
    }

    /// Labels in another order, in people's and judge's distributions alike, change nothing; and no judge does better than the best.
    #[test]
    fn order_of_labels_does_not_change_soft_agreement(
        weights in prop::collection::vec((prop::array::uniform3(0.01_f64..1.0), prop::array::uniform3(0.01_f64..1.0)), 2..20),
        order in Just([0_usize, 1, 2]).prop_shuffle(),
    ) {
        let distribution = |weights: &[f64; 3]| weights.map(|weight| weight / weights.iter().sum::<f64>());
        let (people, judge): (Vec<[f64; 3]>, Vec<[f64; 3]>) = weights.iter().map(|(p, q)| (distribution(p), distribution(q))).unzip();
        let mixed = |rows: &[[f64; 3]]| rows.iter().map(|row| order.map(|label| row[label])).collect::<Vec<_>>();
        let (plain, other) = (SoftLabels::new(&people, &judge).unwrap(), SoftLabels::new(&mixed(&people), &mixed(&judge)).unwrap());
        for measure in [
            SoftMeasure::ExpectedAgreement, SoftMeasure::CrossEntropy { clip: 0.0 }, SoftMeasure::KlDivergence,
            SoftMeasure::JensenShannon, SoftMeasure::TotalVariation, SoftMeasure::Brier,
        ] {
            let (a, b) = (plain.mean(measure).unwrap().estimate, other.mean(measure).unwrap().estimate);
            prop_assert!((a - b).abs() < 1e-12);
            let best = plain.best(measure).unwrap().estimate;
            if measure == SoftMeasure::ExpectedAgreement { prop_assert!(a <= best + 1e-12) } else { prop_assert!(a >= best - 1e-12) }
        }
        // Cross entropy is entropy and divergence together.
        let cross = SoftMeasure::CrossEntropy { clip: 0.0 };
        let parts = plain.best(cross).unwrap().estimate + plain.mean(SoftMeasure::KlDivergence).unwrap().estimate;
        prop_assert!((plain.mean(cross).unwrap().estimate - parts).abs() < 1e-12);
    }
}
