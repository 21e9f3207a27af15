//! MT-bench's votes: as they are read, and as they are made of a judge's verdicts.

use std::cmp::Ordering::{Equal, Greater, Less};

use judge_core::prompted::PairConvention;
use judge_data::{Benchmark, Error, PairVerdicts, PairVote};
use serde_json::{Value, json};

use crate::files::{lines, test_data, written};

fn vote(judge: &Value, models: [&str; 2], winner: &str) -> Value {
    json!({"question_id": 81, "model_a": models[0], "model_b": models[1], "turn": 1, "winner": winner, "judge": judge})
}

#[test]
fn votes_are_read_with_their_kind() {
    let folder = tempfile::tempdir().unwrap();
    let mut rows = vec![
        vote(&json!("expert_3"), ["x", "y"], "model_b"),
        vote(&json!("author_0"), ["y", "x"], "tie"),
        vote(&json!(["gpt-4", "pair-v2"]), ["x", "y"], "tie (inconsistent)"),
        // An expert may vote again.
        vote(&json!("expert_3"), ["x", "y"], "model_a"),
    ];
    rows[1]["question_id"] = json!("81");
    let votes = PairVote::read(written(folder.path(), "votes.jsonl", &lines(&rows))).unwrap();
    let found: Vec<_> = votes
        .iter()
        .map(|vote| (vote.kind(), vote.is_persons(), vote.verdict, vote.inconsistent, vote.question.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            ("human", true, Less, false, "81"),
            ("author", true, Equal, false, "81"),
            ("gpt-4/pair-v2", false, Equal, true, "81"),
            ("human", true, Greater, false, "81"),
        ]
    );
    assert_eq!((votes[1].models.clone(), votes[1].turn), (["y".to_owned(), "x".to_owned()], 1));
}

#[test]
fn damaged_votes_are_refused_by_line() {
    let folder = tempfile::tempdir().unwrap();
    let read = |rows: &[Value]| PairVote::read(written(folder.path(), "votes.jsonl", &lines(rows)));
    let good = vote(&json!("judge"), ["x", "y"], "model_a");
    let changed = |field: &str, value: Value| {
        let mut row = good.clone();
        row[field] = value;
        read(&[vote(&json!("expert_1"), ["x", "y"], "tie"), row]).unwrap_err().to_string()
    };
    for (field, value, expected) in [
        ("winner", json!("x"), "expected \"winner\" to be model_a, model_b, tie or tie (inconsistent), found string"),
        ("turn", json!(3), "expected \"turn\" to be 1 or 2, found number 3"),
        ("question_id", json!([81]), "expected \"question_id\" to be a string or a whole number"),
        ("judge", json!(null), "expected a field \"judge\""),
        ("judge", json!(""), "expected \"judge\" to be the name of who voted"),
        ("judge", json!([]), "expected \"judge\" to be the name of who voted"),
        ("model_b", json!("x"), "expected \"model_b\" to be another model than model_a"),
        ("model_a", json!(7), "expected \"model_a\" to be a string"),
    ] {
        let error = changed(field, value);
        assert!(error.contains("votes.jsonl, line 2: ") && error.contains(expected), "{field}: {error}");
    }
    // The same pair, named the other way round.
    let again = read(&[good.clone(), vote(&json!("judge"), ["y", "x"], "model_a")]).unwrap_err();
    assert!(again.to_string().ends_with("is on line 1), found a second one"), "{again}");
    assert!(again.to_string().contains("line 2: expected one vote of judge"), "{again}");
    assert!(matches!(read(&[]), Err(Error::NoRows { .. })));
}

#[test]
fn verdicts_in_both_orders_make_one_vote() {
    let folder = tempfile::tempdir().unwrap();
    let expert = |models| vote(&json!("expert_1"), models, "tie");
    let people = [expert(["x", "y"]), expert(["y", "x"]), expert(["x", "z"]), expert(["y", "z"]), expert(["z", "w"])];
    let path = written(folder.path(), "human.jsonl", &lines(&people));
    let (people, pairs) = (PairVote::read(&path).unwrap(), Benchmark::MtBench.read(&path).unwrap());
    let row = |id: usize, given: &str, swapped: &str| json!({"id": id, "given": given, "swapped": swapped});
    let rows = [
        row(0, "[[A]]", "[[B]]"),
        row(1, "[[A]]", "[[A]]"),
        row(2, "[[A]]", "[[A]]"),
        row(3, "?", "[[A]]"),
        row(4, "[[C]]", "[[C]]"),
    ];
    let written = written(folder.path(), "verdicts.jsonl", &lines(&rows));
    let verdicts = PairVerdicts::read(written, &pairs, PairConvention::Letters).unwrap();
    let votes = |unparsed| {
        let (votes, missing) = PairVote::of_verdicts("mine", &people, &verdicts, unparsed);
        let found = votes
            .into_iter()
            .map(|vote| (vote.annotator.clone(), vote.models.join("-"), vote.verdict, vote.inconsistent));
        (found.collect::<Vec<_>>(), missing)
    };
    let vote = |models: &str, verdict, inconsistent| ("mine".to_owned(), models.to_owned(), verdict, inconsistent);
    // The pair of the second row is that of the first, whose verdict counts; the text without a verdict is dropped or a tie.
    let expected = [vote("x-y", Greater, false), vote("x-z", Equal, true), vote("z-w", Equal, false)];
    assert_eq!(votes(None), (expected.to_vec(), 1));
    let (with_tie, missing) = votes(Some(Equal));
    assert_eq!((with_tie.len(), missing, &with_tie[2]), (4, 1, &vote("y-z", Equal, true)));
}

#[test]
fn published_votes_are_read_whole() {
    let Some(data) = test_data() else { return };
    let people = PairVote::read(data.join("mtbench/human.jsonl")).unwrap();
    let of = |kind: &str| people.iter().filter(|vote| vote.kind() == kind).count();
    assert_eq!((of("human"), of("author"), people.len()), (2668, 687, 3355));
    let judge = PairVote::read(data.join("mtbench/gpt4_pair.jsonl")).unwrap();
    assert!(judge.iter().all(|vote| vote.kind() == "gpt4_pair"));
    assert_eq!((judge.len(), judge.iter().filter(|vote| vote.inconsistent).count()), (2400, 380));
}
