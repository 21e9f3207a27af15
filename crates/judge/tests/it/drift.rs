//! `judge drift`: a run beside an earlier one.

use serde_json::{Value, json};

use crate::program::{Desk, finished, ran, refused, succeed};

#[test]
fn a_run_is_compared_with_an_earlier_one_by_id() {
    let path = &Desk::new();
    let row = |n: usize, score: f64| json!({"id": n, "score": score, "human": [(n % 5) as f64, (n % 5) as f64]});
    let before: Vec<Value> = (0..40).map(|n| row(n, (n % 5) as f64 + 0.1)).collect();
    // Half a point more, one row much more, one unscored, one alone on either side, in another order.
    let mut now: Vec<Value> = (1..40).rev().map(|n| row(n, (n % 5) as f64 + 0.6)).collect();
    now[0]["score"] = json!(9.1);
    now[1] = json!({"id": 38, "unscored": {"reason": "missing", "detail": "none"}});
    now.push(row(77, 1.0));
    path.write("before.jsonl", &before);
    path.write("now.jsonl", &now);
    let drift = |more: &[&str]| {
        ran("drift", path, &[&["--input", "now.jsonl", "--against", "before.jsonl", "--json", "a.json"], more].concat())
    };
    let (code, said, told) = drift(&["--require", "bias<=1", "--min-coverage", "0.9"]);
    assert_eq!(code, Some(0), "{said}{told}");
    assert!(told.contains("1 row that the run now has alone, 1 of the run before, 1 without a score"), "{told}");
    assert!(said.contains("largest change: +5.0000, of 39"), "{said}");
    let found = path.json("a.json");
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
    assert!(path.text("bars.xml").contains("failures=\"1\""));
    // Rows that one run lacks, and those without a score, are named at the bar of the coverage, in the order of the files.
    assert_eq!(drift(&["--require", "coverage>=1", "--junit", "bars.xml"]).0, Some(3));
    assert!(path.text("bars.xml").contains(">not counted: 77, 0, 38</failure>"));
    // For programs a p-value has a column of its own, as the ends of an interval have.
    let (_, csv, _) = drift(&["--tables", "csv"]);
    assert!(csv.lines().next().unwrap().ends_with(",estimate,estimate low,estimate high,p"), "{csv}");
    let pearson = csv.lines().find_map(|line| line.strip_prefix("pearson,")).unwrap();
    let is_number = |cell: &str| cell.trim_start_matches(['<', '=']).parse::<f64>().is_ok();
    assert!(pearson.split(',').count() == 4 && pearson.split(',').all(is_number), "{pearson}");

    // Verdicts in words have no mean.
    let said = |n: usize, verdict: &str| json!({"id": n, "verdict": verdict});
    path.write("v1.jsonl", &(0..20).map(|n| said(n, ["A", "B"][n % 2])).collect::<Vec<_>>());
    path.write("v2.jsonl", &(0..20).map(|n| said(n, if n == 3 { "A" } else { ["A", "B"][n % 2] })).collect::<Vec<_>>());
    let args = ["--input", "v2.jsonl", "--against", "v1.jsonl", "--json", "a.json"];
    succeed("drift", path, &args);
    assert_eq!(path.json("a.json")["statistics"]["accuracy"]["estimate"], json!(0.95));
    let refused = |args: &[&str], expected: &str| {
        refused("drift", path, args, 1, &[expected]);
    };
    // The field of the run now is that of both: a score is no earlier verdict.
    refused(
        &["--input", "v2.jsonl", "--against", "before.jsonl"],
        "before.jsonl: no row has a score: looked for verdict",
    );
    path.write("v3.jsonl", &[json!({"id": 1, "verdict": 1})]);
    refused(&["--input", "v2.jsonl", "--against", "v3.jsonl"], "expected a number in both runs or a text in both");
    path.write("other.jsonl", &[row(500, 1.0)]);
    refused(&["--input", "other.jsonl", "--against", "before.jsonl"], "no row in common");
    path.write("none.jsonl", &[json!({"id": 1, "text": "a"})]);
    refused(&["--input", "none.jsonl", "--against", "before.jsonl"], "name it with --predicted");
    path.write("nameless.jsonl", &[json!({"score": 1})]);
    refused(&["--input", "nameless.jsonl", "--against", "before.jsonl"], "has no id");
}

/// The agreement with people is weighted by the chance that a row had of being graded, as `judge agree` weighs it; the change is not.
#[test]
fn the_agreement_with_people_is_weighted() {
    let path = &Desk::new();
    let row = |n: usize, is_off: bool| {
        let (human, drawn) = ((n % 5) as f64, if n < 4 { 0.1 } else { 1.0 });
        json!({"id": n, "score": human + if is_off { 0.5 } else { 0.0 }, "human": human, "sampling_probability": drawn})
    };
    let mut now: Vec<Value> = (0..10).map(|n| row(n, n < 4)).collect();
    path.write("now.jsonl", &now);
    path.write("before.jsonl", &(0..10).map(|n| row(n, n >= 4)).collect::<Vec<_>>());
    let args = ["--input", "now.jsonl", "--against", "before.jsonl", "--json", "a.json"];
    let (said, told) = finished("drift", path, &args);
    assert!(told.contains("rows are weighted by \"sampling_probability\""), "{said}{told}");
    let found = path.json("a.json");
    let near = |name: &str, expected: f64| {
        let estimate = found["statistics"][name]["estimate"].as_f64().unwrap();
        assert!((estimate - expected).abs() < 1e-12, "{name}: {estimate}");
    };
    near("bias", -0.1);
    // Four rows stand for 40, and six for themselves.
    near("difference_mae", 0.5 * (40.0 - 6.0) / 46.0);
    now[7].as_object_mut().unwrap().remove("sampling_probability");
    path.write("now.jsonl", &now);
    refused("drift", path, &args, 1, &["line 8", "sampling_probability is nothing", "give every graded row one"]);
}

#[test]
fn one_row_is_one_row() {
    let path = &Desk::new();
    path.write("a.jsonl", &[json!({"id": 1, "score": 2.0})]);
    path.write("b.jsonl", &[json!({"id": 1, "score": 2.5})]);
    let said = |now: &str| succeed("drift", path, &["--input", now, "--against", "a.jsonl"]);
    let (same, changed) = (said("a.jsonl"), said("b.jsonl"));
    assert!(same.contains("of 1 row is the same") && same.contains("now against before, 1 row"), "{same}");
    assert!(changed.contains("1 of 1 row has changed"), "{changed}");
}

/// An odd score or grade costs itself, in either run, and is said.
#[test]
fn one_odd_row_does_not_end_the_comparison() {
    let path = &Desk::new();
    let row = |n: usize| json!({"id": n, "score": n % 5, "human": [n % 4, n % 3]}).to_string();
    let run = |now: &[String], before: &[String]| {
        path.put("now.jsonl", now.join("\n"));
        path.put("before.jsonl", before.join("\n"));
        let args = ["--input", "now.jsonl", "--against", "before.jsonl", "--json", "a.json"];
        let (_, told) = finished("drift", path, &args);
        (path.json("a.json"), told)
    };
    let good: Vec<String> = (0..30).map(row).collect();
    let odd_at = |place: usize, odd: &str| {
        let mut rows = good.clone();
        rows[place] = format!("{{\"id\": {place}, {odd}}}");
        rows
    };
    for odd in ["\"N/A\"", "{}", "1e400", "[\"a\"]"] {
        let rows = odd_at(3, &format!("\"score\": {odd}"));
        for (now, before) in [(&rows, &good), (&good, &rows)] {
            let (found, told) = run(now, before);
            assert_eq!((&found["n"], &found["unscored"]), (&json!(29), &json!(1)), "{odd}");
            assert!(
                told.contains("1 of 30 rows have a score that cannot be read and count as unscored"),
                "{odd}: {told}"
            );
            assert!(told.contains(".jsonl, line 4: score is "), "{odd}: {told}");
        }
    }
    for odd in ["{}", "\"N/A\"", "[1, {}]"] {
        let (found, told) = run(&odd_at(3, &format!("\"score\": 3, \"human\": {odd}")), &good);
        assert_eq!((&found["n"], &found["unscored"]), (&json!(30), &json!(0)), "{odd}");
        assert!(told.contains("1 of 30 rows have a rater whose grade is none and is left out"), "{odd}: {told}");
        assert!(told.contains("now.jsonl, line 4: human is "), "{odd}: {told}");
    }
}

/// Of runs of the program the records are compared: the same run again has not drifted, another dtype is said.
#[test]
fn what_the_records_do_not_have_in_common_is_said() {
    let path = &Desk::new();
    succeed("rows", path, &["--rows", "12", "--output", "in.jsonl"]);
    for (output, dtype) in [("one.jsonl", "f32"), ("two.jsonl", "f32"), ("three.jsonl", "bf16")] {
        // Who names the default variant asks the same, and finds a finished output complete.
        let variant: &[&str] = if output == "two.jsonl" { &["--variant", "e_score"] } else { &[] };
        let args = ["--input", "in.jsonl", "--output", output, "--dtype", dtype];
        succeed("score", path, &[&args[..], variant].concat());
        assert!(succeed("score", path, &args).contains("is complete"));
    }
    let drift = |now: &str| {
        ran("drift", path, &["--input", now, "--against", "one.jsonl", "--json", "a.json", "--require", "mae<=0"])
    };
    let (code, said, told) = drift("two.jsonl");
    assert!(code == Some(0) && !told.contains("dtype") && !said.contains("largest change"), "{said}{told}");
    assert_eq!(path.json("a.json")["records"], json!({}));
    let (code, _, told) = drift("three.jsonl");
    assert!(code == Some(3) && told.contains("model.dtype was \"f32\", is \"bf16\""), "{told}");
    assert_eq!(path.json("a.json")["records"]["model.dtype"], json!(["\"bf16\"", "\"f32\""]));
    // A setting of kilobytes, such as layer weights, is cut where it is told.
    let mut record = path.json("three.jsonl.run.json");
    record["content"]["settings"]["weights"] = json!((0..500).collect::<Vec<i32>>());
    path.put("three.jsonl.run.json", record.to_string());
    let (_, _, told) = drift("three.jsonl");
    let line = told.lines().find(|line| line.contains("settings.weights")).unwrap();
    assert!(line.contains("is [0,1,2,") && line.ends_with('…') && line.len() < 200, "{line}");
    assert_eq!(path.rows("one.jsonl").len(), 12);
}
