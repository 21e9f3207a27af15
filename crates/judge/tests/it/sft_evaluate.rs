//! `judge sft-evaluate`: replies measured as `judge tune` measures them, and answers compared by their rule.

use std::fs;

use serde_json::{Value, json};

use crate::program::{Desk, fails, finished, refused, succeed, turn};

#[test]
fn replies_are_measured_as_tune_measures_them_and_answers_are_compared() {
    let path = &Desk::new();
    let said = |id: usize| {
        let messages = [turn("user", &format!("Say {id}.")), turn("assistant", &format!("It is {id}."))];
        match id {
            0..4 => json!({"id": id, "messages": messages}),
            4..6 => json!({"id": id, "messages": messages, "answer": id}),
            6 => json!({"id": id, "messages": messages, "answer": "word by word", "from": "x"}),
            _ => json!({"id": id, "messages": messages, "reference": format!("#### {id}")}),
        }
    };
    let mut all: Vec<Value> = (0..8).map(said).collect();
    path.write("said.jsonl", &all);
    let tune = ["--objective", "completion", "--input", "said.jsonl", "--eval", "said.jsonl", "--json", "tuned.json"];
    let own = ["--output", "tuned", "--epochs", "2", "--rank", "2", "--top-blocks", "1", "--lr", "0.005", "--quiet"];
    succeed("tune", path, &[&tune[..], &own].concat());
    let tuned = path.json("tuned.json");
    let held_out = tuned["held_out"].as_array().unwrap();
    let kept = held_out.iter().find(|at| at["step"] == tuned["kept_step"]).unwrap();

    all.push(json!({"id": 8, "messages": [turn("user", "Say nothing.")], "answer": 1}));
    all.push(json!({"id": 9, "messages": [turn("user", &"long ".repeat(4000)), turn("assistant", "yes")], "answer": ["yes"]}));
    path.write("held-out.jsonl", &all);
    let args = ["--input", "held-out.jsonl", "--output", "o.jsonl", "--adapter", "tuned", "--dtype", "f32"];
    let own = ["--max-new-tokens", "8", "--json", "a.json", "--quiet"];
    let (said, told) = finished("sft-evaluate", path, &[&args[..], &own].concat());
    assert!(told.contains("note: 1 row has an `answer` or `reference` that is a list"), "{told}");
    assert!(said.contains("8 of 10 rows measured") && said.contains("unscored, missing: 1"), "{said}");
    assert!(said.contains("unscored, too_long: 1") && said.contains("nats per token"), "{said}");
    let figures = path.json("a.json");
    let nats = figures["nats_per_token"]["estimate"].as_f64().unwrap();
    assert!((nats - kept["figures"]["loss"].as_f64().unwrap()).abs() < 1e-4, "{nats} {kept}");
    assert!((figures["perplexity"].as_f64().unwrap() - nats.exp()).abs() < 1e-9);
    assert!(figures["nats_per_token"]["low"].as_f64().unwrap() < nats, "{figures}");

    let found = path.rows("o.jsonl");
    assert!(found[..4].iter().all(|row| row.get("correct").is_none() && row["nats_per_token"].is_number()));
    assert_eq!((&found[6]["from"], &found[8]["unscored"]["reason"]), (&json!("x"), &json!("missing")));
    let (mut correct, mut undecided) = (0, Vec::new());
    for (row, right) in found[4..8].iter().zip(["4", "5", "word by word", "7"]) {
        let written = row["written"].as_str().unwrap();
        let digits: Vec<&str> = written.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty()).collect();
        let expected = match (right.parse::<u32>(), digits.last()) {
            _ if written.trim().is_empty() => None,
            (Err(_), _) => Some(written.trim() == right),
            (Ok(_), None) => None,
            (Ok(_), Some(last)) => Some(*last == right),
        };
        assert_eq!(row["correct"], json!(expected), "{row}");
        assert_eq!(row.get("undecided").is_some(), expected.is_none(), "{row}");
        correct += usize::from(expected == Some(true));
        undecided.extend(expected.is_none().then(|| row["id"].clone()));
    }
    let answers = &figures["answers"];
    assert_eq!((&answers["n"], &answers["correct"]), (&json!(4), &json!(correct)));
    assert_eq!(answers["undecided"], json!(undecided));
    let accuracy = &answers["accuracy"];
    assert_eq!(accuracy["estimate"], json!(correct as f64 / 4.0));
    assert!(accuracy["low"].as_f64() < accuracy["high"].as_f64(), "{accuracy}");

    // The same command again does nothing and says the same; another bound is another run.
    fs::remove_file(path.join("a.json")).unwrap();
    let again = succeed("sft-evaluate", path, &[&args[..], &own].concat());
    assert!(again.contains("o.jsonl is complete: 8 of 10 rows measured"), "{again}");
    assert_eq!(path.json("a.json"), figures);
    fails("sft-evaluate", path, &[&args[..], &["--max-new-tokens", "9"]].concat(), &["o.jsonl"]);
}

#[test]
fn what_has_no_reply_is_refused() {
    let path = &Desk::new();
    path.write("in.jsonl", &[json!({"id": 1, "prompt": "2 + 2?"})]);
    for (args, expected, exit) in [
        (&["--input", "in.jsonl"][..], "no row has a reply; the first is 1: a prompt without a reply", 1),
        (&["--input", "in.jsonl", "--raw-prompt"], "--raw-prompt", 2),
        (&["--input", "in.jsonl", "--max-new-tokens", "0"], "--max-new-tokens", 2),
    ] {
        refused("sft-evaluate", path, &[args, &["--output", "o.jsonl"]].concat(), exit, &[expected]);
        assert!(!path.join("o.jsonl").exists());
    }
}
