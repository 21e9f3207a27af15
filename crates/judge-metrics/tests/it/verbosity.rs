//! Length preference on small cases, on published verdicts, and what it refuses.

use judge_metrics::Error;
use judge_metrics::bias::scale_use::ScaleUse;
use judge_metrics::bias::verbosity::{equal_opportunity, length_preference};
use judge_metrics::preference::Preference::{self, First, Second, Tie};
use judge_metrics::preference::Unparsed;
use proptest::prelude::*;
use serde_json::Value;

use crate::preference_properties::preference;
use crate::published::json as published;

/// Newcombe (1998), *Improved confidence intervals for the difference between binomial proportions based on paired data*: 36 both, 12
/// and 2 one only, none neither; method 10 gives .0569 to .3404.
#[test]
fn the_excess_has_newcombes_interval() {
    let lengths = [[2.0, 1.0]; 50];
    let judge: Vec<_> = (0..50).map(|i| Some(if i < 48 { First } else { Second })).collect();
    let human: Vec<_> = (0..50).map(|i| if (36..48).contains(&i) { Second } else { First }).collect();
    let excess = length_preference(&lengths, &human, &judge, Unparsed::Refused).unwrap().excess().unwrap();
    let interval = excess.interval(0.95).unwrap();
    assert!((excess.estimate - 0.2).abs() < 1e-15);
    assert!((interval.low - 0.0569).abs() < 5e-5 && (interval.high - 0.3404).abs() < 5e-5, "{interval:?}");
}

#[test]
fn opportunity_is_counted_by_what_people_prefer() {
    let lengths = [[9.0, 1.0], [9.0, 1.0], [9.0, 1.0], [1.0, 9.0], [5.0, 5.0], [9.0, 1.0], [1.0, 9.0]];
    let human = [First, First, Second, First, First, Tie, Second];
    let judge = [Some(First), Some(Tie), Some(First), None, Some(First), Some(First), Some(Second)];
    let found = equal_opportunity(&lengths, &human, &judge, Unparsed::Wrong).unwrap();
    assert_eq!(found.unparsed, 1);
    // Longer preferred: rows 0, 1 and 6, right twice; shorter preferred: rows 2 and 3, never right.
    assert_eq!((found.favoured.count, found.favoured.n, found.other.count, found.other.n), (2, 3, 0, 2));
    assert!((found.difference().unwrap().estimate - 2.0 / 3.0).abs() < 1e-15);
    let interval = found.difference().unwrap().interval(0.95).unwrap();
    assert!(interval.low < 2.0 / 3.0 && interval.high > 2.0 / 3.0 && interval.high <= 1.0);
    // A dropped verdict takes no part.
    let dropped = equal_opportunity(&lengths, &human, &judge, Unparsed::Dropped).unwrap();
    assert_eq!((dropped.favoured.n, dropped.other.n, dropped.unparsed), (3, 1, 1));
    let refused = Error::Unparsed { argument: "judge", index: 3 };
    assert_eq!(equal_opportunity(&lengths, &human, &judge, Unparsed::Refused), Err(refused));
}

proptest! {
    #[test]
    fn exchanging_the_answers_changes_nothing(
        pairs in prop::collection::vec((1_u8..9, 1_u8..9, prop::option::of(preference()), preference()), 1..40), more in 0_u8..50
    ) {
        let more = f64::from(more);
        let lengths: Vec<[f64; 2]> = pairs.iter().map(|&(a, b, ..)| [f64::from(a), f64::from(b)]).collect();
        let judge: Vec<_> = pairs.iter().map(|&(_, _, judge, _)| judge).collect();
        let human: Vec<_> = pairs.iter().map(|&(.., human)| human).collect();
        let swapped: Vec<[f64; 2]> = lengths.iter().map(|&[a, b]| [b + more, a + more]).collect();
        let others: Vec<_> = judge.iter().map(|judge| judge.map(Preference::swapped)).collect();
        let people: Vec<_> = human.iter().map(|human| human.swapped()).collect();
        let found = length_preference(&lengths, &human, &judge, Unparsed::Wrong).unwrap();
        prop_assert_eq!(found, length_preference(&swapped, &people, &others, Unparsed::Wrong).unwrap());
        prop_assert_eq!(
            equal_opportunity(&lengths, &human, &judge, Unparsed::Tie),
            equal_opportunity(&swapped, &people, &others, Unparsed::Tie)
        );
        if let Ok(excess) = found.excess() {
            let (excess, interval) = (excess.estimate, excess.interval(0.9).unwrap());
            prop_assert!(interval.low <= excess && excess <= interval.high && excess.abs() <= 1.0);
        }
    }
}

#[test]
fn bad_input_is_refused() {
    let lengths = [[1.0, 2.0], [3.0, 1.0]];
    let judge = [Some(First), None];
    let length = Error::LengthMismatch { argument: "human", found: 1, other: "lengths", expected: 2 };
    assert_eq!(length_preference(&lengths, &[First], &judge, Unparsed::Wrong), Err(length));
    assert_eq!(length_preference(&[], &[], &[], Unparsed::Wrong), Err(Error::TooFewItems { required: 1, found: 0 }));
    let nan = length_preference(&[[1.0, f64::NAN], [1.0, 2.0]], &[First, First], &judge, Unparsed::Wrong);
    assert!(matches!(nan, Err(Error::InRow { row: 0, .. })));
    let undecided = length_preference(&lengths, &[Tie, Tie], &judge, Unparsed::Wrong).unwrap();
    assert!(undecided.excess().unwrap_err().is_undefined());
    let none = equal_opportunity(&lengths, &[Tie, Tie], &judge, Unparsed::Wrong).unwrap();
    assert!(none.difference().unwrap_err().is_undefined());

    assert_eq!(ScaleUse::new(&[1, 2], &[]), Err(Error::TooFewItems { required: 1, found: 0 }));
    assert!(matches!(ScaleUse::new(&[1, 2], &[3]), Err(Error::UnknownLabel { argument: "scores", index: 0, .. })));
    assert!(matches!(ScaleUse::new(&[1, 1], &[1]), Err(Error::DuplicateLabel { index: 1, .. })));
    let one = ScaleUse::new(&[1, 2, 3, 4], &[2; 5]).unwrap();
    assert_eq!(one.entropy_bits(), 0.0);
    let even = ScaleUse::new(&[1, 2, 3, 4], &[4, 3, 2, 1]).unwrap();
    assert_eq!(even.entropy_bits(), 2.0);
    assert_eq!(even.ceiling().estimate(), even.floor().estimate());
}

/// Lengths are characters. Published: people prefer the longer response in 67.5 % of 887 pairs, PandaLM-7B in 65.5 % of 876.
#[test]
fn people_and_pandalm_prefer_longer_responses() {
    let Some(rows) = published::<Value>("pandalm/testset-v1.json") else { return };
    let verdicts = published::<Value>("pandalm/pandalm-7b-testset-v1.json").unwrap();
    let preference = |label: i64| [Tie, First, Second][label as usize];
    let rows = rows.as_array().unwrap();
    // Six responses are the JSON value true, which was the text "True".
    let chars = |value: &Value| value.as_str().map_or_else(|| "True".len(), |text| text.chars().count()) as f64;
    let lengths: Vec<[f64; 2]> = rows.iter().map(|row| [chars(&row["response1"]), chars(&row["response2"])]).collect();
    let human: Vec<Preference> = rows
        .iter()
        .map(|row| {
            let [a, b, c] = ["annotator1", "annotator2", "annotator3"].map(|name| row[name].as_i64().unwrap());
            preference(if a == b || a == c { a } else { b })
        })
        .collect();
    let judge: Vec<Option<Preference>> = rows
        .iter()
        .map(|row| {
            let verdict = verdicts.as_array().unwrap().iter().find(|found| found["idx"] == row["idx"]).unwrap();
            Some(preference(verdict["pandalm_result"].as_i64().unwrap()))
        })
        .collect();
    let found = length_preference(&lengths, &human, &judge, Unparsed::Refused).unwrap();
    assert_eq!((found.human.n, found.judge.n), (887, 876));
    assert!((found.human.estimate().unwrap() - 0.675).abs() < 5e-4, "{:?}", found.human);
    assert!((found.judge.estimate().unwrap() - 0.655).abs() < 5e-4, "{:?}", found.judge);
    // The judge is no fonder of length than people are.
    let excess = found.excess().unwrap();
    assert!(excess.estimate < 0.01 && excess.interval(0.95).unwrap().low < 0.0, "{excess:?}");
}

/// Gold is the longer output in 11.9 % of LLMBar's Neighbor and 56.6 % of its Natural pairs.
#[test]
fn llmbars_pairs_are_adversarial_to_length() {
    for (set, expected) in [("Natural", 0.566), ("Adversarial/Neighbor", 0.119)] {
        let Some(rows) = published::<Value>(&format!("llmbar/LLMBar/{set}/dataset.json")) else { return };
        let rows = rows.as_array().unwrap();
        let lengths: Vec<[f64; 2]> = rows
            .iter()
            .map(|row| ["output_1", "output_2"].map(|name| row[name].as_str().unwrap().chars().count() as f64))
            .collect();
        let gold: Vec<Preference> = rows.iter().map(|row| if row["label"] == 1 { First } else { Second }).collect();
        let judge: Vec<_> = gold.iter().copied().map(Some).collect();
        let found = length_preference(&lengths, &gold, &judge, Unparsed::Refused).unwrap();
        assert!((found.human.estimate().unwrap() - expected).abs() < 1e-3, "{set}: {:?}", found.human);
    }
}
