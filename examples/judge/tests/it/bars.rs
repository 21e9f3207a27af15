//! `--require` of `judge agree` and `judge bench`: exit 0, or 3 with a line for each bar that is missed.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::{ran, write_rows};

#[test]
fn a_missed_bar_is_exit_code_3() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let row = |n: usize| json!({"id": n, "score": n % 5, "human": if n.is_multiple_of(7) { 4 - n % 5 } else { n % 5 }});
    write_rows(path.join("in.jsonl"), &(0..60).map(row).collect::<Vec<Value>>());
    let agree = |more: &[&str]| ran("agree", path, &[&["--input", "in.jsonl", "--quiet"], more].concat());
    let (code, said, _) = agree(&["--require", "spearman>=0.5", "--require", "mae<=2", "--statistics", "bias"]);
    assert!(code == Some(0) && said.contains("reached: spearman>=0.5") && said.contains("reached: mae<=2"), "{said}");
    let missed = ["--require", "spearman.low>=0.99", "--require", "mae<=2", "--junit", "bars.xml", "--json", "a.json"];
    let (code, said, told) = agree(&missed);
    assert!(code == Some(3) && said.contains("MISSED:  spearman.low>=0.99: found 0."), "{said}");
    assert!(told.contains("1 of 2 bars are missed"), "{told}");
    let xml = fs::read_to_string(path.join("bars.xml")).unwrap();
    assert!(xml.contains("tests=\"2\" failures=\"1\"") && path.join("a.json").exists(), "{xml}");
    assert_eq!(agree(&missed).0, Some(3), "the second time too");
    // What is undefined is missed, and a name that is none is a wrong command line.
    assert_eq!(agree(&["--require", "auroc>=0"]).0, Some(3));
    let (code, _, told) = agree(&["--require", "spearmen>=0"]);
    assert!(code == Some(2) && told.contains("no such statistic"), "{told}");
    assert_eq!(agree(&["--require", "spearman>0.5"]).0, Some(2));
    assert_eq!(agree(&["--junit", "bars.xml"]).0, Some(2));

    let pair = |n: usize| json!({"id": n, "instruction": "?", "response_a": "a", "response_b": "b", "human": "A"});
    write_rows(path.join("pairs.jsonl"), &(0..9).map(pair).collect::<Vec<Value>>());
    write_rows(
        path.join("said.jsonl"),
        &(0..9).map(|n| json!({"id": n, "given": if n < 6 { "[[A]]" } else { "[[B]]" }})).collect::<Vec<_>>(),
    );
    let bench = |bar: &str| {
        let args = ["--benchmark", "pairs", "--data", "pairs.jsonl", "--verdicts", "said.jsonl", "--require", bar];
        ran("bench", path, &args).0
    };
    let votes = ["--benchmark", "mtbench", "--data", "in.jsonl", "--votes", "in.jsonl", "--require", "accuracy>=0"];
    assert_eq!(ran("bench", path, &votes).0, Some(2), "votes have no such statistics");
    let compare = |bar: &str| {
        let args =
            ["--input", "pairs.jsonl", "--verdict", "logits", "--apart", "--output", "v.jsonl", "--require", bar];
        ran("compare", path, &args).0
    };
    // The second time the rows are there.
    assert_eq!((compare("mean_preference<=1"), compare("mean_preference.low>=1")), (Some(0), Some(3)));
    assert_eq!((bench("accuracy>=0.6"), bench("accuracy>=0.7")), (Some(0), Some(3)));
}
