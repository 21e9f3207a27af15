//! The example `agreement` on small files: its numbers, what it excludes, what it refuses.

#![allow(clippy::print_stderr)] // what was skipped

mod program;

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use program::run;

/// The results of a run on these lines.
fn results(text: &str, args: &[&str]) -> Value {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("pairs.jsonl"), text).unwrap();
    let all = [&["--input", "pairs.jsonl", "--json", "out.json", "--quiet", "--resamples", "200"], args].concat();
    let output = run("agreement", folder.path(), &all);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&fs::read(folder.path().join("out.json")).unwrap()).unwrap()
}

fn refused(text: &str, args: &[&str]) -> (Option<i32>, String) {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("pairs.jsonl"), text).unwrap();
    let output = run("agreement", folder.path(), &[&["--input", "pairs.jsonl", "--quiet"], args].concat());
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[track_caller]
fn near(found: &Value, name: &str, expected: f64) {
    let estimate = found["statistics"][name]["estimate"].as_f64();
    let estimate = estimate.unwrap_or_else(|| panic!("{name}: {}", found["statistics"][name]));
    assert!((estimate - expected).abs() < 1e-9, "{name}: {estimate}, not {expected}");
}

#[track_caller]
fn undefined(found: &Value, name: &str, expected: &str) {
    let statistic = &found["statistics"][name];
    assert!(statistic["undefined"].as_str().is_some_and(|reason| reason.contains(expected)), "{name}: {statistic}");
}

const GRADES: &str = "\u{feff}{\"id\": 1, \"predicted\": 3, \"human\": 2, \"set\": \"a\"}\r\n\
    {\"id\": 2, \"predicted\": 5, \"human\": 5, \"set\": \"a\"}\n\n\
    {\"id\": 3, \"predicted\": 1, \"human\": 1, \"set\": \"b\"}\n\
    {\"id\": 4, \"predicted\": 4, \"human\": 4, \"set\": \"b\"}\n\
    {\"id\": 5, \"predicted\": 2, \"human\": 4, \"set\": \"b\"}\n\
    {\"id\": 6, \"predicted\": 4, \"human\": 3, \"set\": \"b\"}\n\
    {\"id\": 7, \"predicted\": null, \"human\": 3, \"set\": \"b\"}\n\
    {\"id\": 8, \"human\": 3, \"set\": \"b\", \"unscored\": {\"reason\": \"too_long\", \"detail\": \"\"}}\n";

#[test]
fn grades_bring_every_statistic() {
    let found = results(GRADES, &["--group", "set", "--labels", "1,2,3,4,5"]);
    assert_eq!((&found["n"], &found["excluded"]), (&json!(6), &json!(2)));
    assert_eq!(found["excluded_by_reason"], json!({"no_prediction": 1, "too_long": 1}));
    // scipy.stats 1.17.1 pearsonr, spearmanr, kendalltau; numpy; sklearn 1.9.1 cohen_kappa_score, f1_score(average="macro").
    near(&found, "pearson", 0.723_076_923_076_923);
    near(&found, "spearman", 0.720_588_235_294_117_6);
    near(&found, "kendall_tau_b", 0.642_857_142_857_142_9);
    near(&found, "mae", 4.0 / 6.0);
    near(&found, "rmse", 1.0);
    near(&found, "bias", 0.0);
    near(&found, "accuracy", 0.5);
    near(&found, "cohen_kappa", 0.357_142_857_142_857_1);
    near(&found, "cohen_kappa_quadratic", 0.723_076_923_076_923);
    near(&found, "f1_macro", 0.5);
    let pearson = &found["statistics"]["pearson"];
    assert!(pearson["low"].as_f64() < pearson["estimate"].as_f64() && pearson["method"] == "Fisher");
    assert_eq!(found["groups"]["a"]["n"], 2);
    assert_eq!(found["groups"]["b"]["n"], 4);
    // Whole numbers are no probabilities.
    undefined(&found, "brier", "not all 0 or 1");
}

#[test]
fn what_the_data_do_not_define_is_said() {
    let found = results("{\"predicted\": 2, \"human\": 1}\n{\"predicted\": 2, \"human\": 3}\n", &[]);
    let reason = found["statistics"]["pearson"]["undefined"].as_str().unwrap();
    assert!(reason.contains("every value of x is 2"), "{reason}");
    near(&found, "mae", 1.0);
}

#[test]
fn labels_raters_probabilities_and_a_second_judge() {
    let text = "{\"predicted\": \"A\", \"human\": [\"A\", \"A\", \"B\"]}\n{\"predicted\": \"B\", \"human\": [\"B\", \"B\", \"B\"]}\n\
        {\"predicted\": \"A\", \"human\": [\"B\", \"B\", \"A\"]}\n";
    let found = results(text, &[]);
    near(&found, "accuracy", 2.0 / 3.0);
    // statsmodels 0.15.0 fleiss_kappa([[2, 1], [0, 3], [1, 2]])
    near(&found, "human_fleiss_kappa", 0.0);
    undefined(&found, "pearson", "texts");
    undefined(&found, "cohen_kappa_linear", "not numbers");

    let mut rows = String::new();
    for i in 0..60 {
        let (p, human) = (f64::from(i) / 60.0, u8::from(i % 7 > 0 && i > 20));
        rows += &format!("{{\"predicted\": {p}, \"human\": {human}, \"other\": {}, \"q\": {}}}\n", 1.0 - p, i / 3);
    }
    let found = results(&rows, &["--second", "other", "--cluster", "q"]);
    for name in [
        "brier",
        "log_loss",
        "auroc",
        "average_precision",
        "ece",
        "ece_adaptive",
        "difference_spearman",
        "difference_mae",
    ] {
        assert!(found["statistics"][name]["estimate"].is_f64(), "{name}: {}", found["statistics"][name]);
    }
    assert_eq!(found["statistics"]["auroc"]["method"], "bootstrap of clusters");
    assert!(found["statistics"]["difference_spearman"]["low"].as_f64().unwrap() > 0.0);
    // What takes rows as independent is not said of clusters.
    assert!(found["statistics"]["difference_pearson_williams"]["undefined"].is_string());
    assert!(found["statistics"]["difference_mae"]["p"].is_f64() && found["statistics"]["spearman"]["p"].is_null());

    // One prediction outside the scale leaves no label statistic, and says so of each.
    let found = results("{\"predicted\": 9, \"human\": 1}\n{\"predicted\": 2, \"human\": 2}\n", &["--labels", "1,2,3"]);
    for name in ["accuracy", "cohen_kappa", "f1_macro"] {
        let reason = found["statistics"][name]["undefined"].as_str().unwrap();
        assert!(reason.contains("is 9, not one of the labels 1, 2, 3"), "{reason}");
    }
    let found =
        results("{\"predicted\": 1, \"human\": [1, 2]}\n{\"predicted\": 2, \"human\": [2, 2]}\n", &["--labels", "1,2"]);
    near(&found, "rows_with_a_majority", 0.5);
    near(&found, "human_krippendorff_alpha_nominal", 0.0);
}

#[test]
fn labels_are_those_of_the_file() {
    // Group b lacks label 3, and has the same labels all the same: the average runs over three classes.
    let rows = "{\"predicted\": 3, \"human\": 3, \"set\": \"a\"}\n{\"predicted\": 1, \"human\": 1, \"set\": \"b\"}\n\
        {\"predicted\": -0.0, \"human\": 0, \"set\": \"b\"}\n{\"predicted\": 1, \"human\": 0, \"set\": \"b\"}\n";
    let found = results(rows, &["--group", "set"]);
    let group = &found["groups"]["b"];
    near(group, "accuracy", 2.0 / 3.0);
    near(group, "f1_macro", (2.0 / 3.0 + 2.0 / 3.0) / 3.0);
    // The same labels by name, however they are written.
    assert_eq!(results(rows, &["--group", "set", "--labels", "0,1.0,3"])["groups"]["b"], *group);

    let fractions = results("{\"predicted\": 1.5, \"human\": 1}\n{\"predicted\": 2, \"human\": 2}\n", &[]);
    undefined(&fractions, "accuracy", "1.5 is no whole number");
    // Words that a number parser takes are labels like others.
    let words = "{\"predicted\": \"nan\", \"human\": \"nan\"}\n{\"predicted\": \"inf\", \"human\": \"1.5\"}\n";
    let words = results(words, &[]);
    near(&words, "accuracy", 0.5);
    undefined(&words, "cohen_kappa_quadratic", "not numbers");
    let many: String = (0..21).map(|i| format!("{{\"predicted\": \"l{i}\", \"human\": \"l0\"}}\n")).collect();
    undefined(&results(&many, &[]), "accuracy", "more than 20 different scores");

    // Rows whose raters disagree have no label, but the judge's use of the scale is seen on all.
    let votes = "{\"predicted\": 1, \"human\": [1, 1]}\n{\"predicted\": 2, \"human\": [1, 2]}\n\
        {\"predicted\": 2, \"human\": [2, 2]}\n";
    let found = results(votes, &[]);
    near(&found, "accuracy", 1.0);
    near(&found, "predicted_ceiling", 2.0 / 3.0);

    let good = "{\"predicted\": 1, \"human\": 1}\n{\"predicted\": 2, \"human\": 2}\n";
    for (labels, expected) in [("1,1", "twice"), ("1,1.0", "twice"), ("1,b", "no number"), ("1", "at least two")] {
        let (code, message) = refused(good, &["--labels", labels]);
        assert!(code == Some(2) && message.contains(expected), "{labels}: {message}");
    }
}

#[test]
fn resamples_that_define_nothing_are_counted() {
    let rows = "{\"predicted\": 1, \"human\": 1}\n{\"predicted\": 2, \"human\": 2}\n{\"predicted\": 3, \"human\": 2}\n";
    let found = results(rows, &[]);
    let method = found["statistics"]["spearman"]["method"].as_str().unwrap();
    assert!(method.contains("undefined in ") && method.ends_with(" of 200"), "{method}");
}

#[test]
fn a_plot_is_drawn() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("pairs.jsonl"), GRADES).unwrap();
    let output =
        run("agreement", folder.path(), &["--input", "pairs.jsonl", "--plot", "plot.svg", "--resamples", "10"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let svg = fs::read_to_string(folder.path().join("plot.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("human by predicted, n = 6") && svg.contains("<circle"));
}

#[test]
fn bad_rows_are_named_by_their_line() {
    let good = "{\"id\": 1, \"predicted\": 1, \"human\": 1}\n";
    for (row, expected) in [
        ("{\"id\": 2, \"predicted\": 1, \"human\": ", "2"),
        ("{\"id\": 2, \"predicted\": 1}", "there is no field \"human\""),
        ("{\"id\": 1, \"predicted\": 1, \"human\": 1}", "was there before"),
        ("{\"id\": 2, \"predicted\": \"NaN\", \"human\": 1}", "is a text, but"),
        ("{\"id\": 2, \"predicted\": [1], \"human\": 1}", "not a finite number or a label"),
        ("{\"id\": 2, \"predicted\": 1, \"human\": [{}]}", "not a finite number or a label"),
    ] {
        let (code, message) = refused(&format!("{good}{row}\n"), &[]);
        assert_eq!(code, Some(1), "{row}: {message}");
        assert!(message.contains(expected) && message.contains("pairs.jsonl"), "{row}: {message}");
    }
    let escaped = "{\"id\": \"a\", \"predicted\": 1, \"human\": 1}\n\
        {\"id\": \"\\u0061\", \"predicted\": 1, \"human\": 1}\n";
    assert!(refused(escaped, &[]).1.contains("was there before"));
    let (code, message) = refused("{\"predicted\": \"a\", \"human\": \"b\"}\n", &["--plot", "p.svg"]);
    assert!(code == Some(1) && message.contains("--plot needs scores that are numbers"), "{message}");
    let (code, message) = refused("{\"predicted\": null, \"human\": 1}\n", &[]);
    assert!(code == Some(1) && message.contains("no row has both"), "{message}");
    for args in [["--level", "95"], ["--resamples", "0"], ["--no-such", "flag"]] {
        assert_eq!(refused(good, &args).0, Some(2), "{args:?}");
    }
}

/// Two runs of GPT-4 over MT-bench answers: the figures computed with SciPy and scikit-learn.
#[test]
fn published_grades_bring_the_published_figures() {
    let Some(data) = std::env::var_os("JUDGE_TEST_DATA").map(PathBuf::from) else {
        eprintln!("skipped: JUDGE_TEST_DATA is not set");
        return;
    };
    let read = |path: &str| -> Value { serde_json::from_slice(&fs::read(data.join(path)).unwrap()).unwrap() };
    let rows = read("prometheus_eval/mt_bench_eval.json");
    let mut text = String::new();
    for row in rows.as_array().unwrap() {
        text += &json!({"predicted": row["gpt4_score"][0], "human": row["gpt4_score"][1]}).to_string();
        text.push('\n');
    }
    let found = results(&text, &["--labels", "1,2,3,4,5"]);
    let expected = &read("expected.json")["prometheus_mt_bench_eval"];
    for (ours, theirs) in [
        ("pearson", "pearson12"),
        ("spearman", "spearman12"),
        ("kendall_tau_b", "tau_b12"),
        ("kendall_tau_c", "tau_c12"),
        ("cohen_kappa", "kappa12"),
        ("cohen_kappa_linear", "kappa_lin12"),
        ("cohen_kappa_quadratic", "kappa_quad12"),
    ] {
        near(&found, ours, expected[theirs].as_f64().unwrap());
    }
}
