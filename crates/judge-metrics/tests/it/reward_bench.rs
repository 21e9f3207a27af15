//! RewardBench 2: the released scoring functions on drawn scores, and what they leave out by hand.

use judge_metrics::Error;
use judge_metrics::comparison::{RankedAnswers, RewardBench, RewardBenchRow, RewardBenchSubset, Statistic};
use judge_metrics::resampling::Bootstrap;

use crate::fixtures::{count, fixture, list, numbers};

fn row(id: &str, subset: &str, scores: &[f64], right: usize) -> RewardBenchRow {
    let grades = (0..scores.len()).map(|place| f64::from(u8::from(place < right))).collect();
    let answers = RankedAnswers { scores: scores.iter().copied().map(Some).collect(), grades };
    RewardBenchRow { id: id.to_owned(), subset: subset.to_owned(), answers }
}

fn bench(rows: Vec<RewardBenchRow>) -> RewardBench {
    RewardBench { rows, bootstrap: Bootstrap { resamples: 200, ..Bootstrap::default() } }
}

fn estimate(subset: &RewardBenchSubset, name: &str) -> f64 {
    subset.statistics.iter().find(|(known, _)| *known == name).unwrap().1.estimate().unwrap()
}

/// Expected values: `scripts/metrics/reward_bench_fixtures.py`, the functions of rewardbench 0.1.4.
#[test]
fn scores_are_those_of_the_released_functions() {
    let expected = fixture("reward_bench");
    let rows = list(&expected["rows"]).iter().map(|entry| {
        let text = |name: &str| entry[name].as_str().unwrap();
        row(text("id"), text("subset"), &numbers(&entry["scores"]), count(&entry["num_correct"]))
    });
    let bench = bench(rows.collect());
    let found = bench.subsets().unwrap();
    for (name, share) in expected["subsets"].as_object().unwrap() {
        assert!((estimate(&found[name.as_str()], "accuracy") - share.as_f64().unwrap()).abs() < 1e-12, "{name}");
    }
    let ties = expected["ties"].as_f64().unwrap();
    assert!((estimate(&found["Ties"], "score") - ties).abs() < 1e-12, "{found:?}");
    let subsets: f64 = expected["subsets"].as_object().unwrap().values().map(|share| share.as_f64().unwrap()).sum();
    assert!((RewardBench::mean(&found).unwrap() - (subsets + ties) / 3.0).abs() < 1e-12);
    let Statistic::Defined(score) = &found["Ties"].statistics[0].1 else { panic!("{found:?}") };
    let interval = score.interval.unwrap();
    assert!(interval.low < score.estimate && score.estimate < interval.high);
}

#[test]
fn equal_answers_and_unscored_ones_by_hand() {
    let unscored = |mut row: RewardBenchRow| {
        row.answers.scores[0] = None;
        row
    };
    let rows = vec![
        row("ref:1", "ties", &[2.0, 1.0], 1),
        row("tied:1", "ties", &[3.0, 3.0, 1.0], 2), // inner 0, outer 2, the smaller 1: tanh of infinity
        row("ref:2", "ties", &[1.0, 1.0], 1),
        row("tied:2", "ties", &[1.0, 1.0, 1.0], 2), // 0 / 0
        unscored(row("ref:3", "ties", &[1.0, 0.0], 1)),
        row("tied:3", "ties", &[5.0, 5.0, 0.0], 2),
        row("ref:4", "ties", &[1.0, 0.0], 1), // without answers that are tied
    ];
    let bench = bench(rows);
    let found = &bench.subsets().unwrap()["ties"];
    let names = ["accuracy_ref", "accuracy_tied", "preferred", "preferred_hard", "margin"];
    let values = names.map(|name| estimate(found, name));
    let third = 1.0 / 3.0;
    // The third prompt's margin is tanh of minus infinity.
    for (value, expected) in values.into_iter().zip([0.5, 2.0 * third, third, third, 0.0]) {
        assert!((value - expected).abs() < 1e-12, "{values:?}");
    }
    let score = 0.3 * 0.5 + 0.3 * 2.0 * third + 0.4 * third;
    assert!((estimate(found, "score") - score).abs() < 1e-12);
}

/// Of six prompts of which the judge could read two, the score is not that of the two.
#[test]
fn prompts_without_any_score_are_wrong_and_lone_ones_are_counted() {
    let unread = |mut row: RewardBenchRow| {
        row.answers.scores.fill(None);
        row
    };
    let mut rows: Vec<_> = (0..4).map(|i| unread(row(&format!("m{i}"), "Math", &[2.0, 1.0], 1))).collect();
    rows.extend((4..6).map(|i| row(&format!("m{i}"), "Math", &[2.0, 1.0], 1)));
    rows.extend((0..8).map(|i| row(&format!("ref:{i}"), "Ties", &[2.0, 1.0], 1)));
    // The judge could not read one of the single right answers; another is not in the input.
    rows.extend((0..10).map(|i| row(&format!("tied:{i}"), "Ties", &[3.0, 2.9, 1.0], 2)));
    rows.push(unread(row("ref:8", "Ties", &[2.0, 1.0], 1)));
    let bench = bench(rows);
    let found = bench.subsets().unwrap();
    assert!((estimate(&found["Math"], "accuracy") - 2.0 / 6.0).abs() < 1e-12, "{found:?}");
    let values = ["accuracy_ref", "accuracy_tied", "preferred"].map(|name| estimate(&found["Ties"], name));
    assert_eq!(values, [8.0 / 9.0, 1.0, 8.0 / 9.0]);
    for (name, known) in &found["Ties"].statistics {
        let known = known.defined().unwrap();
        let alone = known.method.ends_with("prompt numbers that lack ref or tied, left out: 1");
        assert_eq!(alone, !name.starts_with("accuracy"), "{name}: {known:?}");
        assert_eq!(known.method.starts_with("Wilson"), !["score", "margin"].contains(name), "{name}: {known:?}");
    }
}

#[test]
fn what_is_no_row_of_the_benchmark_is_refused() {
    let of = |rows| bench(rows).subsets().map(|found| found.len());
    assert!(matches!(of(vec![]), Err(Error::TooFewItems { .. })));
    for id in ["7", "other:7", "ref:seven", "ref:"] {
        assert!(matches!(of(vec![row(id, "Ties", &[1.0, 0.0], 1)]), Err(Error::RewardBenchId { .. })), "{id}");
    }
    let twice = vec![row("ref:1", "Ties", &[1.0, 0.0], 1), row("ref:1", "Ties", &[1.0, 0.0], 1)];
    assert!(matches!(of(twice), Err(Error::RewardBenchId { .. })));
    assert!(matches!(of(vec![row("ref:1", "Ties", &[1.0, 0.0], 2)]), Err(Error::TooFewItems { .. })));
    assert!(matches!(of(vec![row("ref:1", "Ties", &[f64::NAN, 0.0], 1)]), Err(Error::NonFinite { .. })));
    // Without prompts of both kinds the parts that need them are undefined, and the mean over subsets with them.
    let bench = bench(vec![row("ref:1", "Ties", &[1.0, 0.0], 1)]);
    let found = bench.subsets().unwrap();
    assert!(matches!(found["Ties"].statistics[0].1, Statistic::Undefined { .. }));
    assert_eq!(RewardBench::mean(&found), None);
}
