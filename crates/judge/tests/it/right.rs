//! A probe of whether a judge is right, as a user trains it and asks it.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::program::{Desk, fails, ran, refused, rows, succeed, write_record};

#[test]
fn a_probe_learns_whether_the_judge_is_right() {
    let folder = &Desk::new();
    let generate = ["--pairs", "--split", "test", "--rows", "60", "--output", "pairs.jsonl"];
    succeed("generate_rows", folder, &generate);
    let judge = ["--input", "pairs.jsonl", "--output", "out.jsonl", "--template", "pair-forced", "--verdict", "logits"];
    succeed("prompt_judge", folder, &[&judge[..], &["--quiet"]].concat());
    let train = ["--input", "pairs.jsonl", "--verdicts", "out.jsonl", "--layers", "0,3,6", "--output", "right"];
    // A field that the judge has read is not in its output.
    let more = ["--c", "0.1", "--folds", "3", "--test-share", "0.4", "--group", "instruction", "--quiet"];
    let said = succeed("inspector_train", folder, &[&train[..], &more].concat());
    assert!(said.contains("lower class among the surest") && said.contains("negated Brier score"), "{said}");

    let report = folder.json("right/report.json");
    let right = &report["aspects"]["right"];
    assert_eq!(right["scoring"], "neg_brier_score");
    // A row for each order whose pair has a majority, and both are on one side of the split.
    let n = right["n"].as_u64().expect("rows");
    assert_eq!(n, 114);
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
    let judged = folder.rows("out.jsonl");
    let own = |order: &Value| {
        let verdict = order["verdict"].as_str().expect("a verdict");
        order["probabilities"][verdict].as_f64().expect("a probability")
    };
    let least = judged.iter().flat_map(|row| row["orders"].as_array().expect("orders")).map(own).fold(1.0, f64::min);
    assert!(least >= 0.5, "of two labels the likelier: {least}");

    // The states are the judge's own, of pairs that people have judged.
    let mut other = folder.json("out.jsonl.run.json");
    let text = serde_json::to_string(&other)
        .expect("text")
        .replace(other["content"]["model"]["fingerprint"].as_str().expect("a fingerprint"), "0000");
    other = serde_json::from_str(&text).expect("JSON");
    fs::copy(folder.join("out.jsonl"), folder.join("alone.jsonl")).expect("copied");
    fs::copy(folder.join("out.jsonl"), folder.join("foreign.jsonl")).expect("copied");
    folder.put("foreign.jsonl.run.json", serde_json::to_string(&other).expect("text"));
    folder.write("few.jsonl", &[json!({"id": 1, "instruction": "q", "response_a": "x", "response_b": "y"})]);
    let apart = ["--input", "pairs.jsonl", "--output", "apart.jsonl", "--verdict", "logits", "--apart", "--quiet"];
    succeed("prompt_judge", folder, &apart);
    fs::copy(folder.join("out.jsonl"), folder.join("scored.jsonl")).expect("copied");
    write_record(&folder.join("scored.jsonl"), 5, &Value::Null);
    for (verdicts, input, why) in [
        ("alone.jsonl", "pairs.jsonl", "run record"),
        ("scored.jsonl", "pairs.jsonl", "of scores that `judge score` reads of layers"),
        ("apart.jsonl", "pairs.jsonl", "pairs judged apart"),
        ("foreign.jsonl", "pairs.jsonl", "the judge's own --model"),
        ("out.jsonl", "few.jsonl", "no row with the id"),
    ] {
        let args = ["--input", input, "--verdicts", verdicts, "--output", "none", "--quiet"];
        fails("inspector_train", folder, &args, &[why]);
    }
}

/// The probabilities of `judge probe apply` that a verdict is right, by id.
fn applied(folder: &Path, probe: &str, states: &[&str]) -> Vec<(String, f64)> {
    let args =
        [&["--input"], states, &["--probe", probe, "--output", "applied.jsonl", "--overwrite", "--quiet"]].concat();
    succeed("probe_apply", folder, &args);
    let right = |row: &Value| row["probabilities"][1].as_f64().expect("a probability");
    let id = |row: &Value| row["id"].as_str().map_or_else(|| row["id"].to_string(), str::to_owned);
    rows(folder.join("applied.jsonl")).iter().map(|row| (id(row), right(row))).collect()
}

#[test]
fn a_probe_says_how_sure_a_verdict_on_a_pair_is() {
    let folder = &Desk::new();
    succeed("generate_rows", folder, &["--pairs", "--split", "test", "--rows", "40", "--output", "pairs.jsonl"]);
    let judge = ["--input", "pairs.jsonl", "--template", "pair-forced", "--verdict", "logits", "--quiet", "--output"];
    succeed("prompt_judge", folder, &[&judge[..], &["out.jsonl"]].concat());
    let train = ["--input", "pairs.jsonl", "--verdicts", "out.jsonl", "--output", "right", "--pooling", "last"];
    let more = ["--layers", "3", "--c", "0.1", "--folds", "2", "--quiet"];
    succeed("inspector_train", folder, &[&train[..], &more].concat());
    let sure = ["sure.jsonl", "--confidence", "right/right.safetensors"];
    succeed("prompt_judge", folder, &[&judge[..], &sure].concat());

    // The confidence is the probe's on the states that it was trained on, to the bit, and the verdicts stay what they are.
    let states = applied(folder, "right/right.safetensors", &["right/states/right.last-00001-of-00001.safetensors"]);
    let (plain, sure) = (folder.rows("out.jsonl"), folder.rows("sure.jsonl"));
    let mut found = Vec::new();
    for (plain, mut sure) in plain.into_iter().zip(sure) {
        let id = sure["id"].to_string();
        for order in sure["orders"].as_array_mut().expect("orders") {
            let confidence = order.as_object_mut().and_then(|order| order.remove("confidence"));
            let order = order["order"].as_str().expect("an order");
            found.push((format!("{id}/{order}"), confidence.and_then(|c| c.as_f64()).expect("a confidence")));
        }
        assert_eq!(plain, sure);
    }
    // It was trained on pairs that most raters decide.
    let trained = |(name, _): &(String, f64)| states.iter().any(|(known, _)| known == name);
    assert_eq!((states.len(), found.len()), (78, 80));
    assert_eq!(found.into_iter().filter(trained).collect::<Vec<_>>(), states);

    // Of one judge, and of nothing but whether it is right.
    let other = ["--input", "pairs.jsonl", "--template", "pair", "--verdict", "logits", "--output", "none.jsonl"];
    for (args, why) in [
        (&other[..], "trained on another judge: its family"),
        (&["--input", "pairs.jsonl", "--output", "none.jsonl", "--apart"], "--apart"),
    ] {
        let args = [args, &["--confidence", "right/right.safetensors", "--quiet"]].concat();
        fails("prompt_judge", folder, &args, &[why]);
    }
    let prompt = |i: i32| json!({"id": i, "prompt": format!("Is word {i} good?"), "score": 1 + i % 2});
    folder.write("graded.jsonl", &(0..40).map(prompt).collect::<Vec<_>>());
    let graded = ["--input", "graded.jsonl", "--layers", "3", "--c", "0.1", "--folds", "2", "--output", "graded"];
    succeed("inspector_train", folder, &[&graded[..], &["--quiet"]].concat());
    for (args, why) in [(["--classifier", "svm"], "no probabilities"), (["--within", "1"], "--within is for grades")] {
        let args = [&train[..4], &["--output", "none"], &args].concat();
        refused("inspector_train", folder, &args, 2, &[why]);
    }
    let args = ["none.jsonl", "--confidence", "graded/quality.safetensors"];
    fails("prompt_judge", folder, &[&judge[..], &args].concat(), &["does not say of which judge"]);
}

#[test]
fn a_probe_reads_what_the_judge_writes() {
    let folder = &Desk::new();
    succeed("generate_rows", folder, &["--split", "test", "--rows", "60", "--output", "rows.jsonl"]);
    let judge = ["--input", "rows.jsonl", "--quiet", "--output"];
    succeed("prompt_judge", folder, &[&judge[..], &["out.jsonl"]].concat());
    let train = ["--input", "rows.jsonl", "--verdicts", "out.jsonl", "--c", "0.1", "--folds", "2", "--quiet"];
    let more = ["--layers", "2,4", "--within", "1", "--output", "right"];
    succeed("inspector_train", folder, &[&train[..], &more].concat());
    let report = folder.json("right/report.json");
    assert_eq!(report["settings"]["pooling"], json!(["reply_last", "reply_mean"]), "what is read where a judge writes");

    let judged = folder.rows("out.jsonl");
    let scored: Vec<&Value> = judged.iter().filter(|row| row["score"].is_f64()).collect();
    assert_eq!(report["aspects"]["right"]["n"], scored.len());
    let near = |row: &&&Value| {
        let humans = row["human"].as_array().cloned().unwrap_or_else(|| vec![row["human"].clone()]);
        let humans: Vec<f64> = humans.iter().filter_map(Value::as_f64).collect();
        let mean = humans.iter().sum::<f64>() / humans.len() as f64;
        (mean - row["score"].as_f64().expect("a score")).abs() <= 1.0
    };
    let right = scored.iter().filter(near).count();
    assert!(right > 0 && right < scored.len(), "{right} of {}", scored.len());

    succeed("prompt_judge", folder, &[&judge[..], &["sure.jsonl", "--confidence", "right/right.safetensors"]].concat());
    let tables = [
        "right/states/right.reply_last-00001-of-00001.safetensors",
        "right/states/right.reply_mean-00001-of-00001.safetensors",
    ];
    let states = applied(folder, "right/right.safetensors", &tables);
    let mut found = Vec::new();
    for (plain, mut sure) in judged.into_iter().zip(folder.rows("sure.jsonl")) {
        let confidence = sure.as_object_mut().and_then(|row| row.remove("confidence"));
        let id = sure["id"].as_str().map_or_else(|| sure["id"].to_string(), str::to_owned);
        found.extend(confidence.map(|confidence| (id, confidence.as_f64().expect("a number"))));
        assert_eq!(plain, sure);
    }
    assert_eq!(found, states);

    // A text without a thought has no end of one, and rows alone have no text.
    let thought = ["--pooling", "thought_end", "--output", "none"];
    fails("inspector_train", folder, &[&train[..], &thought].concat(), &["no thought_end"]);
    let args = ["--pooling", "reply_mean", "--output", "none", "--limit", "50"];
    refused("inspector_train", folder, &args, 2, &["--verdicts in words"]);
}

/// What the judge writes must be what the verdict is of.
#[test]
fn another_text_is_not_learnt_from() {
    let folder = &Desk::new();
    succeed("generate_rows", folder, &["--split", "test", "--rows", "40", "--output", "rows.jsonl"]);
    succeed("prompt_judge", folder, &["--input", "rows.jsonl", "--quiet", "--output", "out.jsonl"]);
    let mut judged = folder.rows("out.jsonl");
    let texts: Vec<Value> = judged.iter_mut().take(5).map(|row| row["text"].take()).collect();
    folder.write("out.jsonl", &judged);
    let train = ["--input", "rows.jsonl", "--verdicts", "out.jsonl", "--c", "0.1", "--folds", "2", "--quiet"];
    refused("inspector_train", folder, &[&train[..], &["--output", "none"]].concat(), 1, &["line 1", "no \"text\""]);
    for row in judged.iter_mut().take(5) {
        row["text"] = json!("I say 3");
    }
    folder.write("out.jsonl", &judged);
    let learn = ["--layers", "2", "--states", "states", "--output"];
    succeed("inspector_train", folder, &[&train[..], &learn, &["right"]].concat());
    let report = folder.json("right/report.json");
    let right = &report["aspects"]["right"];
    let scored = judged.iter().filter(|row| row["score"].is_f64()).count();
    assert_eq!((right["n"].as_u64(), right["unscored"].as_u64()), (Some(scored as u64), Some(5)), "{right}");

    // States of other texts are never taken for those of these.
    judged.iter_mut().zip(texts).for_each(|(row, text)| row["text"] = text);
    folder.write("out.jsonl", &judged);
    fails("inspector_train", folder, &[&train[..], &learn, &["again"]].concat(), &["cannot resume these states"]);

    // A file that has no states is not resumed: what it says of itself is all there is to say.
    fs::create_dir(folder.join("foreign")).expect("folder");
    for file in fs::read_dir(folder.join("states")).expect("states") {
        fs::write(folder.join("foreign").join(file.expect("file").file_name()), "a letter").expect("file");
    }
    let foreign = ["--layers", "2", "--states", "foreign", "--output", "again"];
    let (code, _, stderr) = ran("inspector_train", folder, &[&train[..], &foreign].concat());
    assert!(code != Some(0) && stderr.contains("foreign/right.") && !stderr.contains("cannot resume"), "{stderr}");

    // A row that cannot be read costs itself.
    let mut input = folder.rows("rows.jsonl");
    input[7]["response"] = Value::Null;
    folder.write("odd.jsonl", &input);
    succeed("prompt_judge", folder, &["--input", "odd.jsonl", "--quiet", "--output", "odd-out.jsonl"]);
    let odd = ["--input", "odd.jsonl", "--verdicts", "odd-out.jsonl", "--c", "0.1", "--folds", "2", "--quiet"];
    succeed("inspector_train", folder, &[&odd[..], &["--layers", "2", "--output", "odd"]].concat());
    let report = folder.json("odd/report.json");
    assert_eq!(report["unread"], 1, "{report}");
}
