//! The knowledge boundary: every question scored or listed, thresholds by each rule, and figures that other programs give too.

use std::path::Path;

use serde_json::{Value, json};

use crate::program::{Desk, QUICK_PROBES, finished, refused, rows, succeed, words, write_record};

fn questions() -> Vec<Value> {
    rows(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/self_knowledge/questions.jsonl"))
}

#[test]
fn questions_are_scored_and_the_boundary_is_found() {
    let folder = &Desk::new();
    let mut items = questions();
    assert!(items.len() >= 48);
    items[3]["question"] = json!("why ".repeat(2_000));
    items[4].as_object_mut().expect("an object").remove("answerable");
    folder.write("in.jsonl", &items);
    let args = ["--input", "in.jsonl", "--output", "out.jsonl", "--json", "out.json", "--quiet"];
    let said = succeed("self_knowledge", folder, &args);
    assert!(said.contains("47 of 48 questions scored") && said.contains("unscored, too_long: 1"), "{said}");
    let scored = folder.rows("out.jsonl");
    for (item, row) in items.iter().zip(&scored) {
        assert_eq!((&row["id"], row.get("answerable")), (&item["id"], item.get("answerable")));
        if let Some(score) = row["score"].as_f64() {
            assert!((row["answerable_p"].as_f64().expect("a share") - (score - 1.0) / 4.0).abs() < 1e-12);
        }
    }
    let found = folder.json("out.json");
    assert_eq!((&found["n"], &found["known"], &found["unscored"]), (&json!(47), &json!(46), &json!({"too_long": 1})));
    assert_eq!(found["threshold"]["rule"], "min-max");
    // By hand: the threshold, and F1 with the unanswerable class positive.
    let scores: Vec<(f64, Option<bool>)> =
        scored.iter().filter_map(|row| Some((row["score"].as_f64()?, row["answerable"].as_bool()))).collect();
    let (low, high) = scores.iter().fold((9.0_f64, 0.0_f64), |(low, high), (x, _)| (low.min(*x), high.max(*x)));
    let threshold = low + 0.75 * (high - low);
    assert_eq!(found["threshold"]["value"], threshold);
    let count = |called: bool, answerable: bool| {
        scores.iter().filter(|(score, known)| (*score < threshold) == called && *known == Some(answerable)).count()
            as f64
    };
    let f1 = 2.0 * count(true, false) / (2.0 * count(true, false) + count(true, true) + count(false, false));
    assert!((found["f1_unanswerable"]["estimate"].as_f64().expect("F1") - f1).abs() < 1e-12);
    // The AUROC of the program that compares any two columns.
    let known: Vec<Value> = scored.iter().filter(|row| row["answerable"].is_boolean()).cloned().collect();
    folder.write("known.jsonl", &known);
    let agreement =
        ["--input", "known.jsonl", "--human", "answerable", "--statistics", "auroc", "--json", "agreement.json"];
    succeed("agreement", folder, &agreement);
    let auroc = &folder.json("agreement.json")["statistics"]["auroc"];
    for field in ["estimate", "low", "high"] {
        assert_eq!(found["auroc"][field], auroc[field], "{field}");
    }
    let curve = found["risk_coverage"].as_array().expect("a curve");
    assert_eq!(curve.last().expect("a point")["coverage"], 1.0);
    assert!(curve.is_sorted_by_key(|point| point["coverage"].as_f64().expect("a share").to_bits()));

    // The figures do not depend on what else is carried, and a field that is not carried is in nobody's way.
    items[0]["answerable_p"] = json!("mine");
    folder.write("in.jsonl", &items);
    let none = ["--input", "in.jsonl", "--output", "none.jsonl", "--json", "none.json", "--quiet", "--carry", "none"];
    succeed("self_knowledge", folder, &none);
    assert_eq!(folder.json("none.json"), found);
    for (row, carried) in folder.rows("none.jsonl").iter().zip(&scored) {
        assert_eq!(row["answerable"], carried["answerable"]);
    }

    // A threshold fitted on other questions.
    folder.write("a.jsonl", &questions()[..24]);
    folder.write("b.jsonl", &questions()[24..]);
    succeed("self_knowledge", folder, &["--input", "a.jsonl", "--output", "valid.jsonl", "--quiet"]);
    let args =
        ["--input", "b.jsonl", "--output", "test.jsonl", "--valid", "valid.jsonl", "--json", "test.json", "--quiet"];
    let said = succeed("self_knowledge", folder, &args);
    assert!(said.contains("(fitted)"), "{said}");
    let valid = folder.rows("valid.jsonl");
    let fitted = folder.json("test.json")["threshold"]["value"].as_f64().expect("a threshold");
    assert!(valid.iter().all(|row| row["score"] != fitted));
}

#[test]
fn a_probe_is_the_second_method() {
    let folder = &Desk::new();
    let mut items = questions();
    for item in &mut items {
        item["grade"] = json!(i32::from(item["answerable"] == true));
    }
    folder.write("train.jsonl", &items[..32]);
    folder.write("in.jsonl", &items[32..]);
    let args = words("--input train.jsonl --columns prompt=question,human=grade --scale 0-1 --output probes --quiet");
    succeed("inspector_train", folder, &args);
    let probe = "probes/quality.safetensors";
    let args = ["--input", "in.jsonl", "--output", "out.jsonl", "--json", "out.json", "--probe", probe, "--quiet"];
    let said = succeed("self_knowledge", folder, &args);
    assert!(said.contains("AUROC of the probe on 16 questions"), "{said}");
    let (scored, found) = (folder.rows("out.jsonl"), folder.json("out.json"));
    let pairs: Vec<(f64, bool)> = scored
        .iter()
        .map(|row| (row["probe"].as_f64().expect("an expected class"), row["answerable"] == true))
        .collect();
    assert!(pairs.iter().all(|(expected, _)| (0.0..=1.0).contains(expected)));
    // By hand: the share of pairs in the right order, and the difference.
    let auroc = |score: &dyn Fn(usize) -> f64| {
        let (mut right, mut all) = (0.0, 0.0);
        for (a, b) in (0..16).flat_map(|a| (0..16).map(move |b| (a, b))).filter(|&(a, b)| pairs[a].1 && !pairs[b].1) {
            right += match score(a).total_cmp(&score(b)) {
                std::cmp::Ordering::Greater => 1.0,
                std::cmp::Ordering::Equal => 0.5,
                std::cmp::Ordering::Less => 0.0,
            };
            all += 1.0;
        }
        right / all
    };
    let (lager, probe) = (auroc(&|row| scored[row]["score"].as_f64().expect("a score")), auroc(&|row| pairs[row].0));
    let estimate = |found: &Value| found["estimate"].as_f64().expect("an estimate");
    assert!((estimate(&found["probe"]["auroc"]) - probe).abs() < 1e-12);
    assert!((estimate(&found["probe"]["difference"]) - (lager - probe)).abs() < 1e-12);
    // LAGER's scores are what they are without a probe.
    succeed("self_knowledge", folder, &["--input", "in.jsonl", "--output", "alone.jsonl", "--quiet"]);
    for (row, alone) in scored.iter().zip(folder.rows("alone.jsonl")) {
        assert_eq!(row["score"], alone["score"]);
    }
}

/// A column that is chosen replaces the names of its own field alone: questions stay where they are, and a score stays no grade.
#[test]
fn a_chosen_column_leaves_the_other_fields_as_they_are() {
    let folder = &Desk::new();
    let row = |of: &str, n: usize| json!({of: format!("What is {n} + {n}?"), "score": 3});
    for (of, columns) in [("question", "id="), ("q", "id=,prompt=q")] {
        folder.write("in.jsonl", &(0..3).map(|n| row(of, n)).collect::<Vec<_>>());
        let args = ["--input", "in.jsonl", "--columns", columns, "--output", "out.jsonl", "--overwrite", "--quiet"];
        succeed("self_knowledge", folder, &args);
        for (place, row) in folder.rows("out.jsonl").iter().enumerate() {
            assert!(row["id"] == place && row["score"].is_f64() && row["human"].is_null(), "{columns}: {row}");
        }
    }
}

/// A probe of responses finds none among questions, which is said before any work.
#[test]
fn a_probe_that_can_read_no_question_is_refused() {
    let folder = &Desk::new();
    succeed("generate_rows", folder, &["--output", "graded.jsonl", "--rows", "40"]);
    succeed("inspector_train", folder, &words(QUICK_PROBES));
    folder.write("in.jsonl", &questions());
    let args = words("--input in.jsonl --output out.jsonl --probe probes/quality.safetensors --model /nowhere");
    refused("self_knowledge", folder, &args, 1, &["the probe of quality", "has the field \"instruction\""]);
    assert!(!folder.join("out.jsonl").exists());
}

/// A cell of a table says it in its own way; what says neither costs nobody a score.
#[test]
fn what_can_be_answered_is_read_of_tables_too() {
    let folder = &Desk::new();
    let table = "id,question,answerable\n1,Is it?,True\n2,Is it so?,FALSE\n3,Why?,maybe\n4,Who?,\n";
    folder.put("in.csv", table);
    let args = words("--input in.csv --output out.jsonl --json out.json --quiet");
    let (_, told) = finished("self_knowledge", folder, &args);
    assert!(told.contains("expected \"answerable\" to be true or false, found \"maybe\""), "{told}");
    let found = folder.json("out.json");
    assert_eq!((&found["n"], &found["known"], &found["answerable"]), (&json!(4), &json!(2), &json!(1)));
    let mut valid = folder.rows("out.jsonl");
    assert_eq!((&valid[0]["answerable"], &valid[1]["answerable"]), (&json!(true), &json!(false)));
    valid.iter_mut().zip(["TRUE", "False", "?", ""]).for_each(|(row, cell)| row["answerable"] = json!(cell));
    valid[3]["answerable"] = Value::Null;
    folder.write("valid.jsonl", &valid);
    let args = words("--input in.csv --output test.jsonl --valid valid.jsonl --quiet");
    let (said, told) = finished("self_knowledge", folder, &args);
    assert!(said.contains("(fitted)"), "{said}");
    assert!(told.contains("1 of 4 rows do not say whether their question can be answered"), "{told}");
}

#[test]
fn wrong_use_and_wrong_rows_are_said_before_any_model_work() {
    let folder = &Desk::new();
    let fails = |rows: &[Value], args: &[&str], code: i32, said: &str| {
        folder.write("in.jsonl", rows);
        let all = [&["--input", "in.jsonl", "--output", "out.jsonl", "--quiet", "--model", "/nowhere"], args].concat();
        refused("self_knowledge", folder, &all, code, &[said]);
        assert!(!folder.join("out.jsonl").exists());
    };
    let good = json!({"id": 1, "question": "Is it?", "answerable": true});
    fails(std::slice::from_ref(&good), &["--threshold-rule", "fitted"], 2, "--threshold-rule fitted needs --valid");
    fails(
        std::slice::from_ref(&good),
        &["--threshold-rule", "min-max", "--valid", "in.jsonl"],
        2,
        "--valid FILE is for --threshold-rule fitted",
    );
    fails(std::slice::from_ref(&good), &["--valid", "in.jsonl"], 1, "neither a score nor why there is none");
    folder.write("valid.jsonl", &[json!({"id": 1, "score": 2.5, "answerable": true})]);
    write_record(&folder.join("valid.jsonl"), 9, &Value::Null);
    let nine = "valid.jsonl has scores on the scale 1, 2, 3, 4, 5, 6, 7, 8, 9, and this run is on 1, 2, 3, 4, 5";
    fails(std::slice::from_ref(&good), &["--valid", "valid.jsonl"], 1, nine);
    write_record(&folder.join("valid.jsonl"), 5, &Value::Null);
    let one_kind = "valid.jsonl: expected rows with \"answerable\" true and rows with it false; of 1 rows with a score 1 have it, 1 of them true";
    fails(std::slice::from_ref(&good), &["--valid", "valid.jsonl"], 1, one_kind);
    fails(&[good.clone(), good.clone()], &[], 1, "in.jsonl");
    fails(&[json!({"id": 2, "question": "Is it?", "answerable_p": 1})], &[], 1, "answerable_p");
    fails(&[good, json!({"id": 2, "text": "Is it?"})], &[], 1, "question");
}
