//! Reports on pairs: published figures, and what cannot depend on how pairs are named.

use judge_metrics::Error;
use judge_metrics::comparison::{JudgedPair, PairComparison, PairComparisons};
use judge_metrics::preference::Preference::{self, First, Second, Tie};
use judge_metrics::preference::Unparsed;
use judge_metrics::resampling::Bootstrap;
use proptest::prelude::*;
use serde_json::Value;

use crate::preference_properties::preference;
use crate::published::json as published;

fn few(comparison: PairComparison) -> PairComparison {
    PairComparison { bootstrap: Bootstrap { resamples: 50, ..Bootstrap::default() }, ..comparison }
}

fn all(comparison: &PairComparison) -> PairComparisons {
    comparison.statistics(&(0..comparison.pairs.len()).collect::<Vec<_>>()).unwrap()
}

fn estimate(found: &PairComparisons, name: &str) -> f64 {
    found.get(name).unwrap().statistic.estimate().unwrap()
}

/// scikit-learn on the same files: `accuracy_score`, `precision_recall_fscore_support(average="macro", labels=[1, 2, 0])`,
/// `cohen_kappa_score`. The two rows of the published table are those of PandaLM-7B and of GPT-3.5 with ties.
#[test]
fn pandalms_table_comes_back() {
    let Some(rows) = published::<Vec<Value>>("pandalm/testset-v1.json") else { return };
    let preference = |label: &Value| [Tie, First, Second][label.as_u64().unwrap() as usize];
    let gold = |row: &Value| {
        let [a, b, c] = ["annotator1", "annotator2", "annotator3"].map(|name| preference(&row[name]));
        if a == b || a == c { a } else { b }
    };
    let pairs = |file: &str, verdict: &dyn Fn(&Value) -> Option<Preference>| -> Vec<JudgedPair> {
        let verdicts: Vec<Value> = published(&format!("pandalm/{file}")).unwrap();
        let pair = |(row, judged): (&Value, &Value)| {
            let cluster = Some(format!("{}{}", row["instruction"], row["input"]));
            JudgedPair { gold: gold(row), given: verdict(judged), swapped: None, cluster }
        };
        rows.iter().zip(&verdicts).map(pair).collect()
    };
    let seven = pairs("pandalm-7b-testset-v1.json", &|row| Some(preference(&row["pandalm_result"])));
    let gpt = pairs("gpt-3.5-turbo-testset-v1.json", &|row| match row["gpt_result"].as_str().unwrap() {
        "1" => Some(First),
        "2" => Some(Second),
        "Tie" => Some(Tie),
        _ => None,
    });
    for (pairs, unparsed, n, expected) in [
        (
            &seven,
            Unparsed::Tie,
            999,
            [0.6676676676676677, 0.5738306408653328, 0.5749686976833736, 0.574305184944992, 0.4353549248202223],
        ),
        (
            &gpt,
            Unparsed::Tie,
            999,
            [0.7107107107107107, 0.5879186457191573, 0.5736234312184187, 0.5755379507639905, 0.495784098331453],
        ),
        (
            &gpt,
            Unparsed::Dropped,
            974,
            [0.715605749486653, 0.536540199603869, 0.5416523126683604, 0.5330817182313562, 0.49286471530289244],
        ),
        (
            &gpt,
            Unparsed::OwnLabel,
            999,
            [0.6976976976976977, 0.536540199603869, 0.5323535899485775, 0.5274194026454424, 0.475507589283386],
        ),
    ] {
        let found = all(&few(PairComparison { both_orders: false, ..PairComparison::new(pairs.clone(), unparsed) }));
        // Beside the published figures, what a constant answer would have, and how often the judge's commonest one is given.
        let of_constants = ["majority_share", "predicted_mode_share"];
        let statistics = found.statistics.iter().filter(|known| !of_constants.contains(&known.name));
        assert_eq!((statistics.clone().count(), found.statistics.len()), (5, 7));
        assert!(of_constants.iter().all(|name| (1.0 / 3.0..1.0).contains(&estimate(&found, name))));
        for (statistic, expected) in statistics.zip(expected) {
            let estimate = statistic.statistic.estimate().unwrap();
            assert!((estimate - expected).abs() < 1e-12, "{unparsed:?}, {}: {estimate}", statistic.name);
            assert_eq!(statistic.n, n);
            let interval = statistic.statistic.interval().unwrap();
            assert!(interval.low < estimate && estimate < interval.high);
        }
    }
}

#[test]
fn what_pairs_do_not_define_says_why() {
    let pair = |given, swapped| JudgedPair { gold: First, given, swapped, cluster: None };
    let ties = few(PairComparison::new(vec![pair(Some(Tie), Some(Tie)); 4], Unparsed::Tie));
    let found = all(&ties);
    assert!(found.get("first_share").unwrap().statistic.to_string().contains("no item"), "{found:?}");
    assert_eq!(found.get("first_share").unwrap().n, 0);
    assert_eq!((estimate(&found, "accuracy"), estimate(&found, "consistency")), (0.0, 1.0));

    let none = few(PairComparison::new(vec![pair(None, Some(First)); 4], Unparsed::Dropped));
    let found = all(&none);
    assert!(found.get("accuracy").unwrap().statistic.to_string().contains("no pair"), "{found:?}");
    assert_eq!((found.n, found.unparsed, found.get("pair_agreement").unwrap().n), (4, 4, 0));
    assert_eq!((estimate(&found, "accuracy_swapped"), estimate(&found, "first_share")), (1.0, 0.0));

    let refused = PairComparison { unparsed: Unparsed::Refused, ..none };
    assert_eq!(refused.statistics(&[0, 1]), Err(Error::Unparsed { argument: "pairs", index: 0 }));
    assert_eq!(refused.statistics(&[9]).unwrap().n, 0);
}

#[test]
fn two_judges_are_compared_on_the_pairs_that_both_judged() {
    let pair = |given: Option<Preference>, swapped: Option<Preference>| JudgedPair {
        gold: First,
        given,
        swapped,
        cluster: None,
    };
    let right = few(PairComparison::new(vec![pair(Some(First), Some(First)); 6], Unparsed::Dropped));
    let mut half = vec![pair(Some(First), Some(Second)); 5];
    half.push(pair(None, Some(First)));
    let half = few(PairComparison::new(half, Unparsed::Dropped));
    let found = right.difference(&half).unwrap();
    let known: Vec<_> = found.statistics.iter().map(|s| (s.name, s.n, s.statistic.estimate())).collect();
    assert_eq!(known, [("difference_accuracy", 5, Some(0.0)), ("difference_accuracy_mean", 5, Some(0.5))]);
    let back = half.difference(&right).unwrap();
    assert_eq!(back.statistics[1].statistic.estimate(), Some(-0.5));
    let fewer = PairComparison::new(vec![pair(None, None)], Unparsed::Tie);
    assert!(matches!(right.difference(&fewer), Err(Error::LengthMismatch { .. })));
}

proptest! {
    #[test]
    fn renaming_the_items_exchanges_the_orders(
        pairs in prop::collection::vec((preference(), prop::option::of(preference()), prop::option::of(preference())), 1..30),
        unparsed in prop::sample::select(vec![Unparsed::Tie, Unparsed::Dropped, Unparsed::OwnLabel, Unparsed::Wrong])
    ) {
        let pair = |&(gold, given, swapped): &(Preference, Option<Preference>, Option<Preference>)| {
            JudgedPair { gold, given, swapped, cluster: None }
        };
        let renamed = |pair: &JudgedPair| JudgedPair {
            gold: pair.gold.swapped(),
            given: pair.swapped.map(Preference::swapped),
            swapped: pair.given.map(Preference::swapped),
            cluster: None,
        };
        let pairs: Vec<JudgedPair> = pairs.iter().map(pair).collect();
        let others = pairs.iter().map(renamed).collect();
        let (found, other) = (all(&few(PairComparison::new(pairs, unparsed))), all(&few(PairComparison::new(others, unparsed))));
        for name in ["accuracy_mean", "pair_agreement", "consistency", "first_share"] {
            let (a, b) = (found.get(name).unwrap(), other.get(name).unwrap());
            prop_assert_eq!(a.n, b.n);
            prop_assert_eq!(a.statistic.estimate(), b.statistic.estimate());
        }
        let (a, b) = (found.get("accuracy").unwrap(), other.get("accuracy_swapped").unwrap());
        prop_assert_eq!((a.n, a.statistic.estimate()), (b.n, b.statistic.estimate()));
        prop_assert_eq!(found.unparsed, other.unparsed);
        let value = |name: &str| found.get(name).unwrap().statistic.estimate();
        if let (Some(both), Some(mean), Some(consistent)) = (value("pair_agreement"), value("accuracy_mean"), value("consistency")) {
            prop_assert!(both <= mean + 1e-12 && both <= consistent + 1e-12 && consistent <= 1.0);
        }
    }
}
