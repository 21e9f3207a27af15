//! A probe of whether a judge of pairs is right, as a user trains it.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::{ran, rows, succeed, write_rows};

#[test]
fn a_probe_learns_whether_the_judge_is_right() {
    let folder = TempDir::new().expect("folder");
    let folder = folder.path();
    let generate = ["--pairs", "--split", "test", "--rows", "60", "--output", "pairs.jsonl"];
    succeed("generate_rows", folder, &generate);
    let judge = ["--input", "pairs.jsonl", "--output", "out.jsonl", "--template", "pair-forced", "--verdict", "logits"];
    succeed("prompt_judge", folder, &[&judge[..], &["--quiet"]].concat());
    let train = ["--input", "pairs.jsonl", "--verdicts", "out.jsonl", "--layers", "0,3,6", "--output", "right"];
    let more = ["--c", "0.1", "--folds", "3", "--test-share", "0.4", "--quiet"];
    let said = succeed("inspector_train", folder, &[&train[..], &more].concat());
    assert!(said.contains("area under risk-coverage") && said.contains("negated Brier score"), "{said}");

    let report: Value =
        serde_json::from_slice(&fs::read(folder.join("right/report.json")).expect("report")).expect("JSON");
    let right = &report["aspects"]["right"];
    assert_eq!(right["scoring"], "neg_brier_score");
    // A row for each order whose pair has a majority, and both are on one side of the split.
    let n = right["n"].as_u64().expect("rows");
    assert_eq!(n, 120);
    let test = &right["splits"]["test"];
    assert!(test["n"].as_u64().expect("rows").is_multiple_of(2), "{test}");
    for name in ["probe", "prompted", "majority"] {
        let known = &test["predictors"][name];
        assert_eq!(known["brier_score"]["estimate"].is_f64(), name != "majority", "{name}: {known}");
    }
    for name in ["brier_score", "area_under_risk_coverage"] {
        assert!(test["gain_over"]["prompted"][name]["estimate"].is_f64(), "{test}");
    }
    // What it is compared with is the probability of the verdict, from the rows themselves: a Brier score of all rows is between those of
    // the parts.
    let judged = rows(folder.join("out.jsonl"));
    let own = |order: &Value| {
        let verdict = order["verdict"].as_str().expect("a verdict");
        order["probabilities"][verdict].as_f64().expect("a probability")
    };
    let least = judged.iter().flat_map(|row| row["orders"].as_array().expect("orders")).map(own).fold(1.0, f64::min);
    assert!(least >= 0.5, "of two labels the likelier: {least}");

    // The states are the judge's own, of pairs that people have judged.
    let mut other: Value =
        serde_json::from_slice(&fs::read(folder.join("out.jsonl.run.json")).expect("record")).expect("JSON");
    let text = serde_json::to_string(&other)
        .expect("text")
        .replace(other["content"]["model"]["fingerprint"].as_str().expect("a fingerprint"), "0000");
    other = serde_json::from_str(&text).expect("JSON");
    fs::copy(folder.join("out.jsonl"), folder.join("alone.jsonl")).expect("copied");
    fs::copy(folder.join("out.jsonl"), folder.join("foreign.jsonl")).expect("copied");
    fs::write(folder.join("foreign.jsonl.run.json"), serde_json::to_string(&other).expect("text")).expect("written");
    write_rows(folder.join("few.jsonl"), &[json!({"id": 1, "instruction": "q", "response_a": "x", "response_b": "y"})]);
    let apart = ["--input", "pairs.jsonl", "--output", "apart.jsonl", "--verdict", "logits", "--apart", "--quiet"];
    succeed("prompt_judge", folder, &apart);
    for (verdicts, input, why) in [
        ("alone.jsonl", "pairs.jsonl", "run record"),
        ("apart.jsonl", "pairs.jsonl", "responses judged apart"),
        ("foreign.jsonl", "pairs.jsonl", "the judge's own --model"),
        ("out.jsonl", "few.jsonl", "no pair with the id"),
    ] {
        let args = ["--input", input, "--verdicts", verdicts, "--output", "none", "--quiet"];
        let (code, stdout, stderr) = ran("inspector_train", folder, &args);
        assert!(code != Some(0) && stderr.contains(why), "{why}: {stdout}{stderr}");
    }
}
