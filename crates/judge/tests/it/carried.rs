//! Every program that carries fields along: from an indented array they come back as they were, each row on one line, and a field that
//! has the name of one of the output's own is refused before any work.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use judge_data::{Field, Rows};
use parquet::arrow::ArrowWriter;
use serde_json::{Value, json};
use tempfile::TempDir;
use tiny_judge::planted::{Split, generate};

use crate::program::{ran, succeed, write_rows};
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

/// A program, what it is given, and where its rows lie.
struct Case<'a> {
    name: &'a str,
    rows: Vec<Value>,
    args: &'a [&'a str],
    output: &'a str,
    /// Rows of the output for one of the input.
    times: usize,
}

impl Case<'_> {
    fn check(&self, folder: &Path) {
        let Self { name, rows, args, output, times } = self;
        let (input, output) = (folder.join("in.json"), folder.join(output));
        write(&input, rows, &format!("\"meta\": {WRITTEN}"));
        let args = [&["--input", "in.json"], *args].concat();
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
        remove(&output);
        let is_read = |name: &str| Field::ALL.iter().any(|field| field.aliases().contains(&name));
        for field in own.iter().filter(|field| !is_read(field)) {
            write(&input, rows, &format!("{field:?}: {WRITTEN}"));
            let (code, _, stderr) = ran(name, folder, &args);
            assert!(code.is_some_and(|code| code != 0) && stderr.contains(&format!("{field:?}")), "{name}: {stderr}");
            assert!(!output.exists(), "{name}: {field}");
        }
    }
}

/// Removes what a run has left, so that the next one is a new one.
fn remove(output: &Path) {
    let name = output.file_name().expect("a name").to_string_lossy().into_owned();
    for entry in fs::read_dir(output.parent().expect("a folder")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let is_its = path.file_name().is_some_and(|found| found.to_string_lossy().starts_with(&name));
        if is_its && path.is_file() {
            fs::remove_file(path).expect("removed");
        }
    }
}

fn folder() -> TempDir {
    TempDir::new().expect("folder")
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

/// A small random classifier.
fn classifier() -> String {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../crates/judge-models/tests/fixtures/heads").join("llama");
    path.to_str().expect("text").to_owned()
}

#[test]
fn judges_of_rows() {
    let folder = folder();
    let prompts = vec![json!({"id": 1, "prompt": "1 + 1?"}), json!({"id": 2, "prompt": ""})];
    let cases = [
        Case {
            name: "layer_logits",
            rows: prompts,
            args: &["--output", "layers.jsonl"],
            output: "layers.jsonl",
            times: 1,
        },
        Case {
            name: "lager_pointwise",
            rows: graded(),
            args: &["--output", "lager.jsonl"],
            output: "lager.jsonl",
            times: 1,
        },
        Case {
            name: "prompt_judge",
            rows: graded(),
            args: &["--output", "single.jsonl", "--verdict", "logits"],
            output: "single.jsonl",
            times: 1,
        },
        Case {
            name: "prompt_judge",
            rows: pairs(),
            args: &["--output", "pairs.jsonl", "--verdict", "logits"],
            output: "pairs.jsonl",
            times: 1,
        },
    ];
    for case in cases {
        case.check(folder.path());
    }
}

#[test]
fn experiments() {
    let folder = folder();
    let questions = vec![json!({"id": 1, "question": "1 + 1?", "answerable": true}), json!({"id": 2, "question": "?"})];
    let item = |score| json!({"dialogue": "Ann: No!", "human": "Ann", "emotion": "Anger", "emotion_score": score});
    let cases = [
        Case {
            name: "self_knowledge",
            rows: questions,
            args: &["--output", "known.jsonl"],
            output: "known.jsonl",
            times: 1,
        },
        Case {
            name: "emotional_understanding",
            rows: vec![item(3), item(7), item(5)],
            args: &["--output", "emotions.jsonl"],
            output: "emotions.jsonl",
            times: 1,
        },
        Case {
            name: "data_selection",
            rows: graded(),
            args: &["--output", "graded.jsonl", "--aspects", "answer_accuracy,relevance"],
            output: "graded.jsonl",
            times: 1,
        },
    ];
    for case in cases {
        case.check(folder.path());
    }
}

#[test]
fn calibrated_scores() {
    let folder = folder();
    let row = |id: usize| json!({"id": id, "score": id % 5, "human": (id + id / 7 % 2) % 5});
    let rows: Vec<Value> = (0..60).map(row).collect();
    write_rows(folder.path().join("graded.jsonl"), &rows);
    let args = &["--graded", "graded.jsonl", "--output", "out.jsonl"];
    Case { name: "calibrate", rows, args, output: "out.jsonl", times: 1 }.check(folder.path());
}

#[test]
fn rewards_and_rankings() {
    let folder = folder();
    let model = classifier();
    let long = "ba ".repeat(99);
    let graded = |(id, response): (usize, &str)| json!({"id": id, "instruction": "de", "response": response});
    let answers =
        |(id, last): (usize, &str)| json!({"id": id, "instruction": "de", "responses": ["fi go", "zo", last]});
    let last = || ["la me ni", &long].into_iter().enumerate();
    let cases = [
        Case {
            name: "reward_scores",
            rows: last().map(graded).collect(),
            args: &["--model", &model, "--output", "rewards.jsonl"],
            output: "rewards.jsonl",
            times: 1,
        },
        Case {
            name: "rank_answers",
            rows: last().map(answers).collect(),
            args: &["--model", &model, "--reward", "--output", "ranked.jsonl"],
            output: "ranked.jsonl",
            times: 1,
        },
        Case {
            name: "rank_answers",
            rows: vec![json!({"id": 1, "instruction": "1 + 1?", "responses": ["2", "3", "4"], "human": [5, 1, null]})],
            args: &["--verdict", "logits", "--output", "compared.jsonl"],
            output: "compared.jsonl",
            times: 1,
        },
    ];
    for case in cases {
        case.check(folder.path());
    }
}

#[test]
fn probes() {
    let folder = folder();
    let row = |(id, item): (usize, tiny_judge::planted::Item)| {
        let (question, answer) = (item.instruction, item.response);
        json!({"id": id, "aspect": "fluency", "question": question, "answer": answer, "score": 2 + id % 3})
    };
    let rows: Vec<Value> = generate(Split::Test, 40, 0).into_iter().enumerate().map(row).collect();
    write_rows(folder.path().join("graded.jsonl"), &rows);
    succeed("inspector_train", folder.path(), &crate::program::QUICK_PROBES);
    let rows = || graded().into_iter().take(3).collect();
    let cases = [
        Case {
            name: "inspector_evaluate",
            rows: rows(),
            args: &["--probes", "probes", "--output", "judged.jsonl"],
            output: "judged.jsonl",
            times: 1,
        },
        Case {
            name: "inspector_filter",
            rows: rows(),
            args: &["--probes", "probes", "--output", "best.jsonl", "--top-share", "0.5"],
            output: "best.jsonl.judged.jsonl",
            times: 1,
        },
    ];
    for case in cases {
        case.check(folder.path());
        remove(&folder.path().join("best.jsonl"));
    }
}

#[test]
fn labels_of_a_service() {
    let folder = folder();
    let server = Server::start(|_, _| Reply::text("{\"reason\": \"so\", \"score\": 4}"));
    let args = [
        "--base-url",
        &server.base_url,
        "--api-model",
        "test-model",
        "--no-key",
        "--aspects",
        "logicality,fluency",
        "--output",
        "labels.jsonl",
    ];
    let rows = graded().into_iter().take(2).collect();
    Case { name: "label_with_api", rows, args: &args, output: "labels.jsonl", times: 2 }.check(folder.path());
}

/// Of a Parquet file, the fields that the template uses come back.
#[test]
fn an_export_of_shards() {
    let folder = folder();
    let texts = ["a\nb", "{\"x\":\n1}", "\t\"\\ \u{2028}é"];
    let column = |texts: Vec<&str>| -> ArrayRef { Arc::new(StringArray::from(texts)) };
    let columns = [("id", vec!["0", "1", "2"]), ("instruction", texts.to_vec()), ("response", texts.to_vec())];
    let batch = RecordBatch::try_from_iter(columns.map(|(name, texts)| (name, column(texts)))).expect("a batch");
    let file = fs::File::create(folder.path().join("in.parquet")).expect("a file");
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).expect("a writer");
    writer.write(&batch).expect("written");
    writer.close().expect("written");
    for args in [
        &["plan", "--input", "in.parquet", "--output", "plan.json"][..],
        &["run", "--plan", "plan.json", "--output", "parts", "--shard", "0/1"],
        &["check", "--plan", "plan.json", "--output", "parts", "--export", "out.jsonl"],
    ] {
        succeed("score_files", folder.path(), args);
    }
    let found: Vec<Value> = crate::program::rows(folder.path().join("out.jsonl"));
    assert_eq!(found.iter().map(|row| row["response"].as_str().expect("a text")).collect::<Vec<_>>(), texts);
}
