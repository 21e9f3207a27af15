//! JudgeBench's released verdicts through `judge bench`: the figures that its repository reports.

use serde_json::{Value, json};

use crate::program::{Desk, finished, refused, succeed, words};
use crate::published::data;

#[test]
fn released_verdicts_give_the_released_figures() {
    let Some(data) = data() else { return };
    let folder = &Desk::new();
    // Over all pairs, and the mean over the four subsets.
    for (file, pairs, subsets) in [
        ("verdicts-Skywork_Skywork-Reward-Gemma-2-27B.jsonl", 0.6429, 0.6500),
        ("verdicts-Ray2333_GRM-Gemma-2B-rewardmodel-ft.jsonl", 0.5943, 0.5877),
        ("verdicts-o1-mini-2024-09-12.jsonl", 0.6571, 0.7035),
    ] {
        let file = data.join("judgebench").join(file);
        let file = file.to_str().unwrap();
        let args = ["--benchmark", "judgebench", "--data", file, "--verdicts", file, "--json", "a.json", "--overwrite"];
        let said = succeed("bench", folder, &args);
        assert!(said.contains("mean of groups") && said.contains("livecodebench"), "{said}");
        let report = folder.json("a.json");
        let found = report["statistics"]["accuracy_net"]["estimate"].as_f64().unwrap();
        assert!((found - pairs).abs() < 5e-5, "{file}: {found}");
        let mean = report["groups_mean"]["accuracy_net"].as_f64().unwrap();
        assert!((mean - subsets).abs() < 5e-5, "{file}: {mean}");
    }
}

#[test]
fn released_verdicts_of_one_order_and_of_other_forms_are_measured() {
    let folder = &Desk::new();
    let row = |id: &str, decision: &str| {
        json!({"pair_id": id, "source": "livebench-math", "question": "q", "response_A": "a", "response_B": "b", "label": "A>B",
               "judgments": [{"decision": decision}]})
    };
    folder.write("v.jsonl", &[row("x", "A>B"), row("y", "A<B"), row("z", "A=B")]);
    let args = words("--benchmark judgebench --data v.jsonl --verdicts v.jsonl --json a.json");
    let (_, told) = finished("bench", folder, &args);
    let note = "note: 1 of 3 rows of v.jsonl have a decision that is no verdict; the first is \"y\": ";
    assert!(told.contains(note) && told.contains("found \"A<B\""), "{told}");
    let found = folder.json("a.json");
    assert_eq!((&found["n"], &found["unparsed"]), (&json!(3), &json!(1)));
    assert!((found["statistics"]["accuracy"]["estimate"].as_f64().unwrap() - 1.0 / 3.0).abs() < 1e-12, "{found}");
}

#[test]
fn votes_that_are_ties_are_counted_and_left_out() {
    let folder = &Desk::new();
    let vote = |id: &str, winner: &str| {
        json!({"question_id": id, "winner": winner, "prompt": format!("What is {id}?"), "response_1": "It is good.",
               "response_2": "So so so.", "language": "English", "is_code": id == "b"})
    };
    let votes = [vote("a", "model_a"), vote("b", "model_b"), vote("c", "tie"), vote("d", "model_a")];
    folder.write("votes.jsonl", &votes);
    let verdicts = |ids: &[&str]| -> Vec<Value> { ids.iter().map(|id| json!({"id": id, "given": "[[A]]"})).collect() };
    let bench = ["--benchmark", "ppe", "--data", "votes.jsonl", "--json", "a.json", "--overwrite"];
    let report = || folder.json("a.json");
    for ids in [&["a", "b", "c", "d"][..], &["d", "b", "a"]] {
        folder.write("said.jsonl", &verdicts(ids));
        let said = succeed("bench", folder, &[&bench[..], &["--verdicts", "said.jsonl"]].concat());
        assert!(said.contains("ppe: 3 pairs, and 1 that people have not decided"), "{said}");
        // Groups overlap, so there is no mean over them.
        assert!(said.contains("is_code") && !said.contains("mean of groups"), "{said}");
        let found = report();
        assert_eq!((&found["n"], &found["undecided"]), (&json!(3), &json!(1)));
        let accuracy = found["statistics"]["accuracy"]["estimate"].as_f64().unwrap();
        assert!((accuracy - 2.0 / 3.0).abs() < 1e-12, "{accuracy}");
        assert_eq!(found["groups_mean"], json!({}));
    }
    let judged = ["--output", "judged.jsonl", "--verdict", "logits", "--quiet"];
    succeed("bench", folder, &[&bench[..], &judged].concat());
    assert_eq!((folder.rows("judged.jsonl").len(), &report()["undecided"]), (3, &json!(1)));
    let said = succeed("bias", folder, &[&bench[..], &["--verdicts", "judged.jsonl"]].concat());
    assert!(said.contains("ppe: 3 pairs, and 1 that people have not decided"), "{said}");
    assert_eq!((&report()["n"], &report()["unparsed"]), (&json!(3), &json!(0)));
}

#[test]
fn an_unknown_benchmark_is_answered_with_all_that_there_are() {
    let folder = &Desk::new();
    refused("bench", folder, &["--benchmark", "pandas", "--data", "in.jsonl"], 2, &["pandalm", "trec"]);
}
