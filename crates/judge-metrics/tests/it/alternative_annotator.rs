//! Adjusted p-values and the alternative annotator test against statsmodels and SciPy (`scripts/metrics/alternative_fixtures.py`), and what
//! they refuse.

use judge_metrics::Error;
use judge_metrics::agreement::AlternativeAnnotatorTest;
use judge_metrics::multiplicity::Adjustment;
use proptest::prelude::*;
use serde_json::Value;

use crate::fixtures::{fixture, list, near, numbers};

#[test]
fn adjusted_p_values_equal_statsmodels() {
    for case in list(&fixture("alternative")["adjusted"]) {
        for (adjustment, name) in [
            (Adjustment::Holm, "holm"),
            (Adjustment::BenjaminiHochberg, "fdr_bh"),
            (Adjustment::BenjaminiYekutieli, "fdr_by"),
        ] {
            let ours = adjustment.adjust(&numbers(&case["p"])).unwrap();
            ours.iter().zip(list(&case[name])).for_each(|(ours, expected)| near(*ours, expected));
        }
    }
}

#[test]
fn annotators_are_left_out_as_the_paper_does() {
    let mut rates = Vec::new();
    for case in list(&fixture("alternative")["tests"]) {
        let ratings = |values: &Value| -> Vec<Option<f64>> { list(values).iter().map(Value::as_f64).collect() };
        let judge = ratings(&case["judge"]);
        let annotations: Vec<Vec<Option<f64>>> = list(&case["annotations"]).iter().map(ratings).collect();
        let test = AlternativeAnnotatorTest {
            epsilon: case["epsilon"].as_f64().unwrap(),
            ..AlternativeAnnotatorTest::default()
        };
        let found = match case["kind"].as_str().unwrap() {
            "labels" => test.of_labels(&judge, &annotations),
            _ => test.of_ratings(&judge, &annotations),
        }
        .unwrap();
        let expected = list(&case["annotators"]);
        assert_eq!(found.annotators.len(), expected.len());
        assert_eq!(found.annotators.len() + found.skipped.len(), annotations[0].len());
        for (ours, expected) in found.annotators.iter().zip(expected) {
            assert_eq!(ours.annotator as u64, expected["annotator"].as_u64().unwrap());
            assert_eq!(ours.judge.n as u64, expected["n"].as_u64().unwrap());
            near(ours.judge.estimate().unwrap(), &expected["judge"]);
            near(ours.p_value, &expected["p"]);
            near(ours.adjusted_p_value, &expected["adjusted"]);
            // What both are given is what neither has alone.
            let alone = ours.person.estimate().unwrap() - ours.judge.estimate().unwrap();
            near(ours.difference.estimate, &alone.into());
        }
        let rate = found.winning_rate().estimate().unwrap();
        near(rate, &case["winning_rate"]);
        near(found.advantage, &case["advantage"]);
        assert_eq!(found.may_replace().unwrap(), rate >= 0.5);
        rates.push(rate);
    }
    assert!(rates.contains(&0.0) && rates.contains(&1.0) && rates.len() == 5);
}

/// Two annotators who always agree: a judge that agrees too has no difference at all, one that never does loses every item.
#[test]
fn what_does_not_vary_is_decided() {
    let annotations = [[Some(1), Some(1)]; 30];
    let of = |label: i32, epsilon: f64| {
        let test = AlternativeAnnotatorTest { epsilon, ..AlternativeAnnotatorTest::default() };
        test.of_labels(&[Some(label); 30], &annotations).unwrap()
    };
    let same = of(1, 0.2);
    assert_eq!((same.annotators[0].p_value, same.may_replace().unwrap(), same.advantage), (0.0, true, 1.0));
    assert_eq!((of(1, 0.0).annotators[0].p_value, of(1, 0.0).may_replace().unwrap()), (1.0, false));
    let other = of(2, 0.2);
    assert_eq!((other.annotators[1].p_value, other.winning_rate().count, other.advantage), (1.0, 0, 0.0));
}

/// A judge and an annotator on opposite sides of two others, equally far: as good in any unit, so that the judge loses nothing.
#[test]
fn equally_close_ratings_are_equal_in_any_unit() {
    for away in [1, 2, 3, 7] {
        let rows = (10..70).map(|base| [base + away, base - away, base, base].map(f64::from));
        let found = |unit: f64, times: f64| {
            let rows: Vec<[Option<f64>; 4]> = rows.clone().map(|row| row.map(|x| Some(x / unit * times))).collect();
            let judge: Vec<Option<f64>> = rows.iter().map(|row| row[0]).collect();
            let people: Vec<&[Option<f64>]> = rows.iter().map(|row| &row[1..]).collect();
            AlternativeAnnotatorTest::default().of_ratings(&judge, &people).unwrap()
        };
        let whole = found(1.0, 1.0);
        assert_eq!((whole.annotators[0].judge.count, whole.annotators[0].person.count), (60, 60));
        assert!(whole.annotators[0].is_won && !whole.annotators[1].is_won);
        for (unit, times) in [(10.0, 1.0), (6.0, 1.0), (1.0, 0.7), (1.0, 2f64.powi(700)), (1.0, 2f64.powi(-700))] {
            assert_eq!(found(unit, times), whole, "{away} away, in units of {times} / {unit}");
        }
    }
    // One that is a little nearer wins, and no rating is too large.
    let near = [[Some(4.0), Some(4.000_001), Some(4.0)]; 30];
    let found = AlternativeAnnotatorTest::default().of_ratings(&[Some(4.0); 30], &near).unwrap();
    assert_eq!((found.annotators[1].judge.count, found.annotators[1].person.count), (30, 0));
    let far = [[Some(f64::MAX), Some(f64::MAX), Some(-f64::MAX)]; 30];
    let found = AlternativeAnnotatorTest::default().of_ratings(&[Some(f64::MAX); 30], &far).unwrap();
    assert_eq!((found.annotators[2].judge.count, found.annotators[2].person.count), (30, 0));
}

#[test]
fn bad_input_is_refused() {
    let test = AlternativeAnnotatorTest::default();
    let rows = vec![[Some(1.0), Some(2.0)]; 30];
    let judge = vec![Some(1.0); 30];
    assert_eq!(test.of_ratings(&judge[..29], &rows[..29]).unwrap_err(), Error::TooFewItems { required: 30, found: 29 });
    assert!(matches!(test.of_ratings(&judge[..29], &rows).unwrap_err(), Error::LengthMismatch { .. }));
    let alone = vec![[Some(1.0), None]; 30];
    assert_eq!(test.of_ratings(&judge, &alone).unwrap_err(), Error::TooFewItems { required: 30, found: 0 });
    let mut infinite = rows.clone();
    infinite[3][1] = Some(f64::INFINITY);
    assert!(matches!(test.of_ratings(&judge, &infinite).unwrap_err(), Error::InRow { row: 3, .. }));
    let nan = test.of(&judge, &rows, |_, _| f64::NAN).unwrap_err();
    assert!(matches!(nan, Error::NonFinite { argument: "score", index: 0, .. }));
    for test in [
        AlternativeAnnotatorTest { epsilon: 1.0, ..test },
        AlternativeAnnotatorTest { epsilon: f64::NAN, ..test },
        AlternativeAnnotatorTest { min_items: 1, ..test },
    ] {
        assert!(matches!(test.of_ratings(&judge, &rows).unwrap_err(), Error::OutOfRange { .. }));
    }
    let level = AlternativeAnnotatorTest { level: 0.0, ..test };
    assert!(matches!(level.of_ratings(&judge, &rows).unwrap_err(), Error::LevelOutOfRange { .. }));
    assert!(matches!(Adjustment::Holm.adjust(&[0.5, 1.5]).unwrap_err(), Error::OutOfRange { index: Some(1), .. }));
    assert!(matches!(Adjustment::Holm.adjust(&[f64::NAN]).unwrap_err(), Error::NonFinite { .. }));
    assert_eq!(Adjustment::BenjaminiYekutieli.adjust(&[]), Ok(Vec::new()));
}

proptest! {
    /// None is smaller than it was, order stays, and the stricter is never smaller.
    #[test]
    fn adjusted_p_values_are_in_order(p in prop::collection::vec(0.0_f64..=1.0, 0..20)) {
        let [holm, hochberg, yekutieli] =
            [Adjustment::Holm, Adjustment::BenjaminiHochberg, Adjustment::BenjaminiYekutieli].map(|a| a.adjust(&p).unwrap());
        for i in 0..p.len() {
            prop_assert!(hochberg[i] >= p[i] - 1e-15 && holm[i] >= hochberg[i] - 1e-15 && yekutieli[i] >= hochberg[i] && yekutieli[i] <= 1.0 && holm[i] <= 1.0);
            for j in 0..p.len() {
                prop_assert!(p[i] > p[j] || (holm[i] <= holm[j] && hochberg[i] <= hochberg[j] && yekutieli[i] <= yekutieli[j]));
            }
        }
    }
}
