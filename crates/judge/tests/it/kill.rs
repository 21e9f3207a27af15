//! `kill -9` in the middle of every example that writes rows: the same command resumes, to the bytes of an unbroken run.

#![cfg(unix)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;
use tiny_judge::planted::{Split, generate};

use crate::program::{judge, run};

/// Enough rows that a run can be killed before its end.
const ROWS: usize = 240;

/// SIGKILL.
const KILL: i32 = 9;

struct Case {
    name: &'static str,
    args: &'static [&'static str],
    /// The output.
    output: &'static str,
    /// What of it says how many rows are done.
    journal: &'static str,
    /// The files that must be there in the end, as an unbroken run writes them.
    files: &'static [&'static str],
    /// The run records among them.
    records: &'static [&'static str],
}

fn case(name: &str) -> Case {
    let cases = [
        Case {
            name: "layer_logits",
            args: &["--input", "prompts.jsonl"],
            output: "l.jsonl",
            journal: "l.jsonl.partial",
            files: &["l.jsonl"],
            records: &["l.jsonl.run.json"],
        },
        Case {
            name: "hidden_states",
            args: &["--input", "prompts.jsonl", "--layers", "1,6"],
            output: "h.safetensors",
            journal: "h.ids.jsonl.partial",
            files: &["h.safetensors", "h.ids.jsonl"],
            records: &["h.safetensors.run.json"],
        },
        Case {
            name: "lager_pointwise",
            args: &["--input", "pairs.jsonl"],
            output: "s.jsonl",
            journal: "s.jsonl.partial",
            files: &["s.jsonl"],
            records: &["s.jsonl.run.json"],
        },
        Case {
            name: "inspector_evaluate",
            args: &["--input", "pairs.jsonl", "--probes", "probes"],
            output: "e.json",
            journal: "e.json.partial",
            files: &["e.json"],
            records: &["e.json.run.json"],
        },
        Case {
            name: "inspector_filter",
            args: &["--input", "pairs.jsonl", "--probes", "probes", "--top-share", "0.3"],
            output: "f.jsonl",
            journal: "f.jsonl.judged.jsonl.partial",
            files: &["f.jsonl", "f.jsonl.judged.jsonl"],
            records: &["f.jsonl.run.json", "f.jsonl.judged.jsonl.run.json"],
        },
        Case {
            name: "prompt_judge",
            args: &["--input", "two.jsonl", "--verdict", "logits"],
            output: "v.jsonl",
            journal: "v.jsonl.partial",
            files: &["v.jsonl"],
            records: &["v.jsonl.run.json"],
        },
        Case {
            name: "pairwise_benchmark",
            args: &["--benchmark", "llmbar", "--data", "dataset.json", "--verdict", "logits"],
            output: "b.jsonl",
            journal: "b.jsonl.partial",
            files: &["b.jsonl"],
            records: &["b.jsonl.run.json"],
        },
        Case {
            name: "sft-evaluate",
            args: &["--input", "pairs.jsonl", "--max-new-tokens", "2"],
            output: "t.jsonl",
            journal: "t.jsonl.partial",
            files: &["t.jsonl"],
            records: &["t.jsonl.run.json"],
        },
    ];
    cases.into_iter().find(|case| case.name == name).unwrap()
}

/// A folder with the inputs of every case, indented arrays; probes only where they are needed.
fn folder(case: &Case) -> TempDir {
    let folder = TempDir::new().unwrap();
    let (mut prompts, mut pairs, mut two, mut benchmark) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (id, item) in generate(Split::Test, ROWS, 0).into_iter().enumerate() {
        let (question, answer) = (item.instruction, item.response);
        // Carried along, and over several lines in the indented files below.
        let meta = json!({"tags": ["x y", {"n": id}], "note": "a\nb"});
        prompts.push(json!({"id": id, "prompt": format!("{question}\n{answer}"), "meta": meta}));
        // Pairs are long prompts in both orders.
        if id < ROWS / 4 {
            let worse = answer.split(' ').next().unwrap_or_default();
            two.push(json!({
                "id": id, "instruction": question, "response_a": answer, "response_b": worse, "human": "A", "meta": meta
            }));
            benchmark.push(json!({"input": question, "output_1": answer, "output_2": worse, "label": 1}));
        }
        let score = 2 + id % 3;
        pairs.push(json!({
            "id": id, "aspect": "fluency", "question": question, "answer": answer, "score": score, "meta": meta
        }));
    }
    if case.args.contains(&"probes") {
        crate::program::write_rows(folder.path().join("graded.jsonl"), &pairs[..40]);
        finished(run("inspector_train", folder.path(), &crate::program::QUICK_PROBES));
    }
    for (name, rows) in [("prompts.jsonl", prompts), ("pairs.jsonl", pairs), ("two.jsonl", two)] {
        fs::write(folder.path().join(name), serde_json::to_string_pretty(&rows).unwrap()).unwrap();
    }
    fs::write(folder.path().join("dataset.json"), Value::from(benchmark).to_string()).unwrap();
    folder
}

#[track_caller]
fn finished(output: Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
    (stdout, stderr)
}

/// Starts the program and kills it as soon as its journal has some rows.
fn killed(case: &Case, folder: &Path, args: &[&str]) {
    let quiet = || Stdio::null();
    let mut child = judge(case.name).args(args).current_dir(folder).stdout(quiet()).stderr(quiet()).spawn().unwrap();
    let journal = folder.join(case.journal);
    let lines = || fs::read(&journal).unwrap_or_default().iter().filter(|&&byte| byte == b'\n').count();
    let before = lines();
    while lines() < before.max(1) + 4 {
        assert!(child.try_wait().unwrap().is_none(), "{}: it ended before it could be killed", case.name);
    }
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(KILL), "{}: it ended before it could be killed", case.name);
}

fn read(folder: &Path, files: &[&'static str]) -> BTreeMap<&'static str, Vec<u8>> {
    files.iter().map(|&file| (file, fs::read(folder.join(file)).unwrap())).collect()
}

/// Kills a run twice, resumes it, and compares with an unbroken one.
fn a_killed_run_ends_with_the_same_bytes(name: &str) {
    let case = case(name);
    let folder = folder(&case);
    let here = folder.path();
    let args = [case.args, &["--output", case.output]].concat();
    finished(run(name, here, &args));
    let whole = read(here, case.files);
    for file in case.files.iter().chain(case.records) {
        fs::remove_file(here.join(file)).unwrap();
    }

    for _ in 0..2 {
        killed(&case, here, &args);
        for file in case.files.iter().chain(case.records) {
            assert!(!here.join(file).exists(), "{name}: {file} appears with the last row");
        }
    }
    let (_, said) = finished(run(name, here, &args));
    let resumed = said.lines().find_map(|line| line.strip_prefix("resuming: ")).expect("it resumes");
    let before: usize = resumed.split(' ').next().unwrap().parse().unwrap();
    assert!((1..ROWS).contains(&before), "{name}: {resumed}");
    assert_eq!(read(here, case.files), whole, "{name}");
    assert!(!here.join(case.journal).exists());
    for record in case.records {
        let record: Value = serde_json::from_slice(&fs::read(here.join(record)).unwrap()).unwrap();
        assert_eq!(record["content"]["program"]["name"], name);
        assert!(record["content"]["finished"].is_string(), "{record}");
    }

    // A third start knows that nothing is left to do.
    let (said, notes) = finished(run(name, here, &args));
    assert!(said.contains("is complete") && !notes.contains("fingerprint"), "{name}: {said}{notes}");
    assert_eq!(read(here, case.files), whole, "{name}");
}

#[test]
fn layer_logits() {
    a_killed_run_ends_with_the_same_bytes("layer_logits");
}

#[test]
fn hidden_states() {
    a_killed_run_ends_with_the_same_bytes("hidden_states");
}

#[test]
fn lager_pointwise() {
    a_killed_run_ends_with_the_same_bytes("lager_pointwise");
}

#[test]
fn inspector_evaluate() {
    a_killed_run_ends_with_the_same_bytes("inspector_evaluate");
}

#[test]
fn inspector_filter() {
    a_killed_run_ends_with_the_same_bytes("inspector_filter");
}

/// States have their record a moment after they are in place: a kill in between must not make a stranger's file of them.
#[test]
fn states_without_their_record_get_it_and_are_not_read_again() {
    let case = case("hidden_states");
    let folder = folder(&case);
    let here = folder.path();
    let args = [case.args, &["--output", case.output, "--limit", "3"]].concat();
    finished(run(case.name, here, &args));
    let whole = read(here, case.files);
    fs::remove_file(here.join(case.records[0])).unwrap();
    let (said, _) = finished(run(case.name, here, &args));
    assert!(said.contains("3 rows, 3 of them done before: 3 read, 0 unscored"), "{said}");
    assert_eq!(read(here, case.files), whole);
    assert!(here.join(case.records[0]).exists());
    // Another run's states, or what are no states, are still refused.
    fs::remove_file(here.join(case.records[0])).unwrap();
    let other = run(case.name, here, &[&args[..], &["--pooling", "mean"]].concat());
    assert!(!other.status.success());
    fs::write(here.join("x.safetensors"), "mine").unwrap();
    let other = run(case.name, here, &["--input", "prompts.jsonl", "--output", "x.safetensors"]);
    assert_eq!(other.status.code(), Some(2), "a file of the user's is never replaced");
    assert_eq!((read(here, case.files), fs::read(here.join("x.safetensors")).unwrap()), (whole, b"mine".to_vec()));
}

#[test]
fn prompt_judge() {
    a_killed_run_ends_with_the_same_bytes("prompt_judge");
}

#[test]
fn pairwise_benchmark() {
    a_killed_run_ends_with_the_same_bytes("pairwise_benchmark");
}

#[test]
fn sft_evaluate() {
    a_killed_run_ends_with_the_same_bytes("sft-evaluate");
}
