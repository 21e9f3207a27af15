//! `judge drift`: a run beside an earlier one.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::{ran, read_json, refused, rows, succeed, write_rows};

fn report(folder: &Path) -> Value {
    read_json(folder.join("a.json"))
}

#[test]
fn a_run_is_compared_with_an_earlier_one_by_id() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let row = |n: usize, score: f64| json!({"id": n, "score": score, "human": [(n % 5) as f64, (n % 5) as f64]});
    let before: Vec<Value> = (0..40).map(|n| row(n, (n % 5) as f64 + 0.1)).collect();
    // Half a point more, one row much more, one unscored, one alone on either side, in another order.
    let mut now: Vec<Value> = (1..40).rev().map(|n| row(n, (n % 5) as f64 + 0.6)).collect();
    now[0]["score"] = json!(9.1);
    now[1] = json!({"id": 38, "unscored": {"reason": "missing", "detail": "none"}});
    now.push(row(77, 1.0));
    write_rows(path.join("before.jsonl"), &before);
    write_rows(path.join("now.jsonl"), &now);
    let drift = |more: &[&str]| {
        ran("drift", path, &[&["--input", "now.jsonl", "--against", "before.jsonl", "--json", "a.json"], more].concat())
    };
    let (code, said, told) = drift(&["--require", "bias<=1", "--min-coverage", "0.9"]);
    assert_eq!(code, Some(0), "{said}{told}");
    assert!(told.contains("1 rows that the run now has alone, 1 of the run before, 1 without a score"), "{told}");
    assert!(said.contains("largest change: +5.0000, of 39"), "{said}");
    let found = report(path);
    let of = |name: &str| found["statistics"][name]["estimate"].as_f64().unwrap();
    assert_eq!(found["n"], 38);
    // 37 rows by half a point, one by 5.
    let mean = (37.0 * 0.5 + 5.0) / 38.0;
    assert!((of("bias") - mean).abs() < 1e-9 && (of("mae") - mean).abs() < 1e-9, "{found}");
    assert!(of("spearman") > 0.9 && of("difference_mae") > 0.4, "{found}");
    assert_eq!(found["largest_change"], json!({"id": "39", "change": 5.0}));
    let bars = ["--require", "mae<=0.05", "--require", "spearman>=0.2", "--min-coverage", "0.9", "--junit", "bars.xml"];
    let (code, said, _) = drift(&bars);
    assert!(code == Some(3) && said.contains("MISSED:  mae<=0.05"), "{said}");
    assert!(fs::read_to_string(path.join("bars.xml")).unwrap().contains("failures=\"1\""));

    // Verdicts in words have no mean.
    let said = |n: usize, verdict: &str| json!({"id": n, "verdict": verdict});
    write_rows(path.join("v1.jsonl"), &(0..20).map(|n| said(n, ["A", "B"][n % 2])).collect::<Vec<_>>());
    write_rows(
        path.join("v2.jsonl"),
        &(0..20).map(|n| said(n, if n == 3 { "A" } else { ["A", "B"][n % 2] })).collect::<Vec<_>>(),
    );
    let args = ["--input", "v2.jsonl", "--against", "v1.jsonl", "--json", "a.json"];
    succeed("drift", path, &args);
    assert_eq!(report(path)["statistics"]["accuracy"]["estimate"], json!(0.95));
    let refused = |args: &[&str], expected: &str| {
        refused("drift", path, args, 1, &[expected]);
    };
    // The field of the run now is that of both: a score is no earlier verdict.
    refused(
        &["--input", "v2.jsonl", "--against", "before.jsonl"],
        "before.jsonl: no row has a score: looked for verdict",
    );
    write_rows(path.join("v3.jsonl"), &[json!({"id": 1, "verdict": 1})]);
    refused(&["--input", "v2.jsonl", "--against", "v3.jsonl"], "expected a number in both runs or a text in both");
    write_rows(path.join("other.jsonl"), &[row(500, 1.0)]);
    refused(&["--input", "other.jsonl", "--against", "before.jsonl"], "no row in common");
    write_rows(path.join("none.jsonl"), &[json!({"id": 1, "text": "a"})]);
    refused(&["--input", "none.jsonl", "--against", "before.jsonl"], "name it with --predicted");
    write_rows(path.join("nameless.jsonl"), &[json!({"score": 1})]);
    refused(&["--input", "nameless.jsonl", "--against", "before.jsonl"], "has no id");
}

/// Of runs of the program the records are compared: the same run again has not drifted, another dtype is said.
#[test]
fn what_the_records_do_not_have_in_common_is_said() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    succeed("rows", path, &["--rows", "12", "--output", "in.jsonl"]);
    for (output, dtype) in [("one.jsonl", "f32"), ("two.jsonl", "f32"), ("three.jsonl", "bf16")] {
        succeed("score", path, &["--input", "in.jsonl", "--output", output, "--dtype", dtype]);
    }
    let drift = |now: &str| {
        ran("drift", path, &["--input", now, "--against", "one.jsonl", "--json", "a.json", "--require", "mae<=0"])
    };
    let (code, said, told) = drift("two.jsonl");
    assert!(code == Some(0) && !told.contains("it was") && !said.contains("largest change"), "{said}{told}");
    assert_eq!(report(path)["records"], json!({}));
    let (code, _, told) = drift("three.jsonl");
    assert!(code == Some(3) && told.contains("model.dtype is \"bf16\", it was \"f32\""), "{told}");
    assert_eq!(rows(path.join("one.jsonl")).len(), 12);
}
