//! The example `calibrate` on small files: what it writes, reports and refuses.

use serde_json::{Value, json};

use crate::program::{Desk, finished, ran, refused, succeed, words, write_record};

/// 60 graded rows: people's grade rises with the score, of a judge that knows half of the scale only.
fn graded() -> String {
    let row = |i: i64| {
        let score = (i % 12) as f64 / 6.0;
        let human = (1 + i % 12 / 3 + i % 2).min(5);
        format!(
            "{}\n",
            json!({"id": i, "score": score, "human": [human, human], "topic": format!("t{}", i % 3), "half": i % 2})
        )
    };
    (0..60).map(row).collect()
}

fn started(input: &str, args: &[&str]) -> (Desk, Option<i32>, String, String) {
    let folder = Desk::new();
    folder.put("graded.jsonl", graded());
    folder.put("new.jsonl", input);
    let all = [&["--graded", "graded.jsonl", "--input", "new.jsonl"], args].concat();
    let (code, said, error) = ran("calibrate", &folder, &all);
    (folder, code, said, error)
}

const NEW: &str = "{\"id\": \"a\", \"score\": 0.1, \"big\": 12345678901234567890123}\n{\"id\": \"b\", \"score\": null}\n\
    {\"id\": \"c\", \"score\": 1.8, \"note\": \"x\"}\n{\"id\": \"d\", \"unscored\": {\"reason\": \"too_long\", \"detail\": \"\"}}\n";

#[test]
fn every_row_is_carried_through_with_its_calibrated_score() {
    for method in ["isotonic", "ordinal"] {
        let args = ["--output", "out.jsonl", "--json", "report.json", "--method", method, "--range", "1,5"];
        let (folder, code, said, error) = started(NEW, &args);
        assert_eq!(code, Some(0), "{error}");
        assert!(said.contains("fitted on 60 graded rows") && said.contains("2 of 4 rows calibrated"), "{said}");
        let text = folder.text("out.jsonl");
        assert!(text.contains("12345678901234567890123"), "digits are kept: {text}");
        let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(rows.iter().map(|row| row["id"].as_str().unwrap()).collect::<String>(), "abcd");
        assert!(rows[1]["calibrated"].is_null() && rows[3]["calibrated"].is_null() && rows[3]["unscored"].is_object());
        assert_eq!(rows[2]["note"], "x");
        let [low, high] = [&rows[0], &rows[2]].map(|row| {
            let number = |name: &str| row["calibrated"][name].as_f64().unwrap();
            assert!(1.0 <= number("low") && number("low") <= number("value"), "{row}");
            assert!(number("value") <= number("high") && number("high") <= 5.0, "{row}");
            assert_eq!(number("level"), 0.9);
            number("value")
        });
        // The judge's 0.1 and 1.8 stand for the lower and the upper end of people's scale.
        assert!(low < 2.0 && high > 4.0, "{low}, {high}");
        let report = folder.json("report.json");
        assert_eq!((&report["graded"], &report["n"], &report["without_score"]), (&json!(60), &json!(4), &json!(2)));
        assert_eq!((&report["method"], &report["folds"]), (&json!(method), &json!(10)));
        let held = &report["out_of_fold"];
        assert!(
            held["coverage"]["estimate"].as_f64().unwrap() > 0.8 && held["mean_width"].as_f64().unwrap() < 4.0,
            "{report}"
        );
    }
}

#[test]
fn what_cannot_be_calibrated_is_refused_and_leaves_no_file() {
    for (input, args, code, expected) in [
        (
            "{\"id\": 1, \"score\": 1, \"calibrated\": 2}\n",
            &["--output", "o.jsonl"][..],
            1,
            "has a field \"calibrated\" already",
        ),
        ("{\"id\": 1, \"score\": \"good\"}\n", &["--output", "o.jsonl"], 1, "score is \"good\", expected a number"),
        ("{\"id\": 1, \"score\": null}\n", &["--output", "o.jsonl"], 1, "none of 1 rows has a number in \"score\""),
        (NEW, &["--output", "o.jsonl", "--level", "0.999"], 1, "are needed, found 60; a lower --level takes fewer"),
        (NEW, &["--output", "o.jsonl", "--human", "people"], 1, "none has a human score in people"),
        (
            NEW,
            &["--output", "o.jsonl", "--range", "6,9"],
            1,
            "graded.jsonl, line 1: the human score of 0 is 1, expected one from 6 to 9",
        ),
        (NEW, &["--output", "o.jsonl", "--range", "5"], 2, "--range needs two numbers"),
        (NEW, &["--output", "o.jsonl", "--level", "90"], 2, "expected a number between 0 and 1"),
        (NEW, &["--output", "new.jsonl"], 2, "is the same file as the input"),
        (NEW, &["--output", "o.jsonl", "--json", "graded.jsonl"], 2, "is the same file as the input"),
    ] {
        let (folder, found, _, error) = started(input, args);
        assert_eq!(found, Some(code), "{args:?}: {error}");
        assert!(error.contains(expected), "{args:?}: {error}");
        assert!(!folder.join("o.jsonl").exists());
        assert_eq!(folder.text("new.jsonl"), input);
        assert_eq!(folder.text("graded.jsonl"), graded());
    }
}

#[test]
fn scores_of_another_scale_are_refused_and_another_judge_is_named() {
    let folder = &Desk::new();
    folder.put("graded.jsonl", graded());
    folder.put("new.jsonl", NEW);
    write_record(&folder.join("graded.jsonl"), 5, &Value::Null);
    write_record(&folder.join("new.jsonl"), 3, &Value::Null);
    let args = words("--graded graded.jsonl --input new.jsonl --output out.jsonl");
    let scales = "--graded: graded.jsonl has scores on the scale 1, 2, 3, 4, 5, and new.jsonl is on 1, 2, 3";
    refused("calibrate", folder, &args, 1, &[scales]);
    assert!(!folder.join("out.jsonl").exists());
    write_record(&folder.join("new.jsonl"), 5, &json!("lager_wo"));
    let (_, told) = finished("calibrate", folder, &args);
    let differs = "of another judge than new.jsonl: its variant is \"e_score\", there \"lager_wo\"";
    assert!(told.contains(differs), "{told}");
    // The default under its name.
    write_record(&folder.join("new.jsonl"), 5, &json!("e_score"));
    let (_, told) = finished("calibrate", folder, &[&args[..], &["--overwrite"]].concat());
    assert!(!told.contains("another judge"), "{told}");
}

#[test]
fn a_grade_outside_the_range_costs_its_row() {
    let (_, code, said, told) = started(NEW, &["--output", "out.jsonl", "--range", "2,5"]);
    assert!(code == Some(0) && said.contains("fitted on 50 graded rows"), "{said}{told}");
    let note = "note: 10 of 60 rows with both scores are outside the range and are not fitted on; the first is graded.jsonl, line 1: the \
                human score of 0 is 1, expected one from 2 to 5";
    assert!(told.contains(note), "{told}");
}

/// The rows stay as they are; what is said of them was not said where they were finished.
#[test]
fn a_finished_output_is_reported_all_the_same() {
    let (folder, code, first, error) = started(NEW, &["--output", "out.jsonl"]);
    assert_eq!(code, Some(0), "{error}");
    let rows = folder.read("out.jsonl");
    let args = words("--graded graded.jsonl --input new.jsonl --output out.jsonl --json report.json --width 0.1");
    let again = succeed("calibrate", &folder, &args);
    assert!(
        again.contains("out.jsonl is complete: ")
            && again.contains(" rows calibrated; nothing to do")
            && again.contains("0.1 wide takes 141"),
        "{again}"
    );
    let coverage = first.lines().find(|line| line.contains("lie in their interval")).unwrap();
    assert!(again.contains(coverage), "{again}");
    assert_eq!(folder.json("report.json")["graded"], 60);
    assert_eq!(folder.read("out.jsonl"), rows);
}

#[test]
fn questions_are_on_one_side_of_the_folds_and_rows_are_planned_for() {
    let report = |args: &[&str]| -> (Value, String) {
        let all = [&["--output", "out.jsonl", "--json", "report.json", "--folds", "3"], args].concat();
        let (folder, code, said, error) = started(NEW, &all);
        assert_eq!(code, Some(0), "{error}");
        (folder.json("report.json"), said)
    };
    let (plain, said) = report(&["--width", "0.1"]);
    // statsmodels 0.15.0 normal_power_het, and Wilson's interval of 90 %.
    let planned = &plain["planning"];
    assert!((planned["found_below"].as_f64().unwrap() - 0.779_009).abs() < 1e-3 && planned["rows"] == 141, "{planned}");
    assert!(
        plain["proved_coverage"].as_f64().unwrap() > 0.5
            && said.contains("an interval of the coverage 0.1 wide takes 141"),
        "{said}"
    );
    let (clustered, said) = report(&["--cluster", "topic"]);
    assert_eq!((&clustered["proved_coverage"], &clustered["cluster"]), (&json!(0.0), &json!("topic")));
    assert!(said.contains("none guaranteed") && clustered["out_of_fold"] != plain["out_of_fold"], "{said}");
    for (args, code, expected) in [
        (&["--cluster", "nowhere"], 1, "--cluster: the row has no \"nowhere\""),
        (&["--cluster", "half"], 1, "graded.jsonl: expected 3 clusters or more of \"half\", found 2"),
        (&["--width", "2"], 2, "expected a number between 0 and 1"),
    ] {
        let (_, found, _, error) = started(NEW, &[&["--output", "o.jsonl"], &args[..]].concat());
        assert!(found == Some(code) && error.contains(expected), "{error}");
    }
}

/// Issue 59, kind 9: where a field repeats as a question's number does, rows with one value are in one fold without being told.
#[test]
fn rows_of_one_question_are_kept_together_by_default() {
    let folder = &Desk::new();
    let with = |field: &str, more: &str| {
        let row = |(i, line): (usize, &str)| {
            let mut row: Value = serde_json::from_str(line).unwrap();
            row[field] = json!(i / 3);
            if !more.is_empty() {
                row[more] = json!(i % 20);
            }
            format!("{row}\n")
        };
        graded().lines().enumerate().map(row).collect::<String>()
    };
    let report = |graded: String, args: &[&str]| {
        folder.put("graded.jsonl", graded);
        folder.put("new.jsonl", NEW);
        let all = words("--graded graded.jsonl --input new.jsonl --output out.jsonl --json report.json --overwrite");
        let (code, _, said) = ran("calibrate", folder, &[&all[..], args].concat());
        ((code == Some(0)).then(|| folder.json("report.json")), said)
    };
    let (found, said) = report(with("question_id", ""), &[]);
    let (named, _) = report(with("question_id", ""), &["--cluster", "question_id"]);
    let (found, named) = (found.unwrap(), named.unwrap());
    assert!(said.contains("note: rows with the same \"question_id\" are in one fold, 20 groups of 60 rows"), "{said}");
    assert_eq!((&found["cluster"], &found["proved_coverage"]), (&json!("question_id"), &json!(0.0)));
    assert_eq!(found["graded"], named["graded"]);
    // A number that is no identifier's says nothing.
    let (plain, said) = report(with("length", ""), &[]);
    assert!(!said.contains("note") && plain.unwrap()["cluster"].is_null(), "{said}");
    // Calibration takes rows as drawn alike.
    let (_, said) = report(with("sampling_probability", ""), &[]);
    assert!(said.contains("graded rows are not weighted by their \"sampling_probability\""), "{said}");
    // Two that contradict each other are asked about.
    let (none, said) = report(with("question_id", "writer_id"), &[]);
    assert!(
        none.is_none() && said.contains("\"question_id\" (20 values)") && said.contains("--cluster FIELD"),
        "{said}"
    );
}
