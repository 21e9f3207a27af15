//! Every program that carries fields along: from an indented array they come back as they were, each row on one line, and a field that
//! has the name of one of the output's own is refused before any work.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use judge_data::{Field, Row, Rows};
use serde_json::{Value, json};
use tiny_judge::planted::{Split, generate};

use crate::program::{Desk, QUICK_PROBES, fails, finished, fixture, succeed, words, write_parquet};
use crate::server::{Reply, Server};

/// A field as `json.dump(rows, f, indent=2)` writes it, and a number that no `f64` holds.
const WRITTEN: &str = "{\n    \"tags\": [\n      \"a  b\",\n      1.50\n    ],\n    \"n\": 123456789012345678901234567890,\n    \"t\":\t\"x\\ny\"\n  }";
const KEPT: &str = r#"{"tags":["a  b",1.50],"n":123456789012345678901234567890,"t":"x\ny"}"#;

/// Writes rows as an indented array, each with `more`, fields as JSON text.
fn write(path: &Path, rows: &[Value], more: &str) {
    let row = |row: &Value| {
        let text = serde_json::to_string_pretty(row).expect("JSON");
        format!("{},\n  {more}\n}}", text.trim_end_matches('}').trim_end())
    };
    fs::write(path, format!("[\n{}\n]\n", rows.iter().map(row).collect::<Vec<_>>().join(",\n"))).expect("written");
}

/// Runs a program on rows, each of which it must write so many times with the field `meta` as it is. A row that has one of the program's
/// own fields is refused, or kept as it is by a filter, which judges beside it.
fn carries(folder: &Path, name: &str, rows: &[Value], args: &[&str], times: usize) {
    // A filter's own output is the input's rows; those that it judged lie beside it.
    let output = folder.join(if name == "inspector_filter" { "out.jsonl.judged.jsonl" } else { "out.jsonl" });
    let input = folder.join("in.json");
    write(&input, rows, &format!("\"meta\": {WRITTEN}"));
    let args = [&["--input", "in.json", "--output", "out.jsonl"], args].concat();
    succeed(name, folder, &args);
    let (mut found, mut own) = (0, BTreeSet::new());
    for row in Rows::open(&output).expect("output") {
        let row = row.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(row.value("meta"), Some(KEPT), "{name}");
        own.extend(row.keys().filter(|key| rows[0].get(key).is_none() && *key != "meta").map(str::to_owned));
        found += 1;
    }
    assert_eq!(found, times * rows.len(), "{name}");
    assert!(!own.is_empty(), "{name}");
    remove_output(folder);
    let is_read = |name: &str| Field::ALL.iter().any(|field| field.aliases().contains(&name));
    for field in own.iter().filter(|field| !is_read(field)) {
        write(&input, rows, &format!("{field:?}: {WRITTEN}"));
        if name == "inspector_filter" {
            let (_, said) = finished(name, folder, &args);
            assert!(said.contains(&format!("not what the input has: {field}")), "{said}");
            let value = |row: Result<Row, _>| row.expect("a row").value(field).map(str::to_owned);
            let mut kept = Rows::open(folder.join("out.jsonl")).expect("output").map(value);
            assert!(kept.all(|value| value.as_deref() == Some(KEPT)), "{field}");
            let mut judged = Rows::open(&output).expect("output").map(value);
            assert!(judged.all(|value| value.as_deref() != Some(KEPT)), "{field}");
            remove_output(folder);
            continue;
        }
        let said = fails(name, folder, &args, &[&format!("{field:?}")]);
        // What is advised can be done.
        if ["inspector_evaluate", "data_selection"].contains(&name) {
            assert!(said.contains("rename it in the input") && !said.contains("carr"), "{name}: {said}");
        }
        assert!(!output.exists(), "{name}: {field}");
    }
    remove_output(folder);
}

/// Removes what a run has left, so that the next one is a new one.
fn remove_output(folder: &Path) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let is_its = path.file_name().is_some_and(|found| found.to_string_lossy().starts_with("out.jsonl"));
        if is_its && path.is_file() {
            fs::remove_file(path).expect("removed");
        }
    }
}

fn graded() -> Vec<Value> {
    let row = |(id, item): (usize, tiny_judge::planted::Item)| json!({"id": id, "instruction": item.instruction, "response": item.response, "human": 1 + id % 5});
    generate(Split::Test, 4, 0).into_iter().enumerate().map(row).collect()
}

fn pairs() -> Vec<Value> {
    let row = |row: &Value| {
        let (id, instruction, response) = (&row["id"], &row["instruction"], &row["response"]);
        json!({"id": id, "instruction": instruction, "response_a": response, "response_b": "It is.", "human": "A"})
    };
    graded().iter().map(row).collect()
}

#[test]
fn judges_of_rows() {
    let folder = &Desk::new();
    let prompts = vec![json!({"id": 1, "prompt": "1 + 1?"}), json!({"id": 2, "prompt": ""})];
    for (name, rows, args) in [
        ("layer_logits", prompts, &[][..]),
        ("lager_pointwise", graded(), &[]),
        ("prompt_judge", graded(), &["--verdict", "logits"]),
        ("prompt_judge", pairs(), &["--verdict", "logits"]),
    ] {
        carries(folder, name, &rows, args, 1);
    }
}

/// A rater who gave nothing keeps the place, so what is known of raters is the same before and after.
#[test]
fn places_of_raters() {
    let folder = &Desk::new();
    let human = [json!([null, 1, 1]), json!([2, null, 3]), json!([null, null, 4]), json!([null, null, null])];
    let responses: Vec<Value> =
        (0..4).map(|at| json!({"id": at, "instruction": "q", "response": "r", "human": human[at]})).collect();
    folder.write("responses.jsonl", &responses);
    let choices = [json!(["A", null, "B"]), json!([null, "tie"])];
    let pairs: Vec<Value> = (0..2)
        .map(|at| json!({"id": at, "instruction": "q", "response_a": "r", "response_b": "s", "human": choices[at]}))
        .collect();
    folder.write("pairs.jsonl", &pairs);
    let prompts: Vec<Value> = (0..2).map(|at| json!({"id": at, "prompt": "q", "human": human[at]})).collect();
    folder.write("prompts.jsonl", &prompts);
    for (name, input, expected) in [
        (
            "score",
            "responses.jsonl",
            &[json!([null, 1.0, 1.0]), json!([2.0, null, 3.0]), json!([null, null, 4.0]), json!(null)][..],
        ),
        ("compare", "pairs.jsonl", &choices),
        ("logits", "prompts.jsonl", &[json!([null, 1.0, 1.0]), json!([2.0, null, 3.0])]),
    ] {
        let output = format!("{name}.jsonl");
        let verdict: &[&str] = if name == "compare" { &["--verdict", "logits"] } else { &[] };
        let args = [&["--input", input, "--output", &output, "--quiet"], verdict].concat();
        succeed(name, folder, &args);
        let found = folder.rows(&output);
        let human: Vec<Value> = found.iter().map(|row| row.get("human").cloned().unwrap_or_default()).collect();
        assert_eq!(human, expected, "{name}");
    }
}

#[test]
fn experiments() {
    let folder = &Desk::new();
    let questions = vec![json!({"id": 1, "question": "1 + 1?", "answerable": true}), json!({"id": 2, "question": "?"})];
    let item = |score| json!({"dialogue": "Ann: No!", "human": "Ann", "emotion": "Anger", "emotion_score": score});
    for (name, rows, args) in [
        ("self_knowledge", questions, &[][..]),
        ("emotional_understanding", vec![item(3), item(7), item(5)], &[]),
        ("data_selection", graded(), &["--aspects", "answer_accuracy,relevance"]),
    ] {
        carries(folder, name, &rows, args, 1);
    }
}

#[test]
fn calibrated_scores() {
    let folder = &Desk::new();
    let row = |id: usize| json!({"id": id, "score": id % 5, "human": (id + id / 7 % 2) % 5});
    let rows: Vec<Value> = (0..60).map(row).collect();
    folder.write("graded.jsonl", &rows);
    carries(folder, "calibrate", &rows, &["--graded", "graded.jsonl"], 1);
}

#[test]
fn rewards_and_rankings() {
    let folder = &Desk::new();
    let model = fixture("heads/llama");
    let long = "ba ".repeat(99);
    let graded = |(id, response): (usize, &str)| json!({"id": id, "instruction": "de", "response": response});
    let answers =
        |(id, last): (usize, &str)| json!({"id": id, "instruction": "de", "responses": ["fi go", "zo", last]});
    let last = || ["la me ni", &long].into_iter().enumerate();
    let compared = json!({"id": 1, "instruction": "1 + 1?", "responses": ["2", "3", "4"], "human": [5, 1, null]});
    for (name, rows, args) in [
        ("reward_scores", last().map(graded).collect(), &["--model", &model][..]),
        ("rank_answers", last().map(answers).collect(), &["--model", &model, "--reward"]),
        ("rank_answers", vec![compared], &["--verdict", "logits"]),
    ] {
        carries(folder, name, &rows, args, 1);
    }
}

#[test]
fn probes() {
    let folder = &Desk::new();
    let row = |(id, item): (usize, tiny_judge::planted::Item)| {
        let (question, answer) = (item.instruction, item.response);
        json!({"id": id, "aspect": "fluency", "question": question, "answer": answer, "score": 2 + id % 3})
    };
    let rows: Vec<Value> = generate(Split::Test, 40, 0).into_iter().enumerate().map(row).collect();
    folder.write("graded.jsonl", &rows);
    succeed("inspector_train", folder, &words(QUICK_PROBES));
    let rows = &graded()[..3];
    carries(folder, "inspector_evaluate", rows, &["--probes", "probes"], 1);
    carries(folder, "inspector_filter", rows, &["--probes", "probes", "--top-share", "0.5"], 1);
}

#[test]
fn labels_of_a_service() {
    let folder = &Desk::new();
    let server = Server::start(|_, _| Reply::text("{\"reason\": \"so\", \"score\": 4}"));
    let service = ["--base-url", &server.base_url, "--api-model", "test-model", "--no-key"];
    let args = [&service[..], &["--aspects", "logicality,fluency"]].concat();
    carries(folder, "label_with_api", &graded()[..2], &args, 2);
}

/// Of a Parquet file, the fields that the template uses come back.
#[test]
fn an_export_of_shards() {
    let folder = &Desk::new();
    let texts = ["a\nb", "{\"x\":\n1}", "\t\"\\ \u{2028}é"];
    let columns = [("id", vec!["0", "1", "2"]), ("instruction", texts.to_vec()), ("response", texts.to_vec())];
    write_parquet(folder.join("in.parquet"), &columns);
    for line in [
        "plan --input in.parquet --output plan.json",
        "run --plan plan.json --output parts --shard 0/1",
        "check --plan plan.json --output parts --export out.jsonl",
    ] {
        succeed("score_files", folder, &words(line));
    }
    let found = folder.rows("out.jsonl");
    assert_eq!(found.iter().map(|row| row["response"].as_str().expect("a text")).collect::<Vec<_>>(), texts);
}
