//! `kill -9` in the middle of every example that writes rows: the same command resumes, to the bytes of an unbroken run.

#![cfg(unix)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use tiny_judge::planted::{Split, generate};

use crate::program::{Desk, QUICK_PROBES, fails, finished, judge, refused, succeed, words};

/// Enough rows that a run can be killed before its end.
const ROWS: usize = 240;

/// SIGKILL.
const KILL: i32 = 9;

struct Case {
    name: &'static str,
    args: &'static [&'static str],
    /// The files that must be there in the end, as an unbroken run writes them. The first is the output.
    files: &'static [&'static str],
}

impl Case {
    fn args(&self) -> Vec<&'static str> {
        [self.args, &["--output", self.files[0]]].concat()
    }

    /// What says how many rows are done: the last of the files while it is not complete.
    fn journal(&self) -> String {
        format!("{}.partial", self.files[self.files.len() - 1])
    }

    /// The run records. Ids have that of their states.
    fn records(&self) -> impl Iterator<Item = String> {
        self.files.iter().filter(|file| !file.ends_with(".ids.jsonl")).map(|file| format!("{file}.run.json"))
    }
}

const STATES: Case = Case {
    name: "hidden_states",
    args: &["--input", "prompts.jsonl", "--layers", "1,6"],
    files: &["h.safetensors", "h.ids.jsonl"],
};

/// A folder with the inputs of every case, indented arrays; probes only where they are needed.
fn folder(case: &Case) -> Desk {
    let folder = Desk::new();
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
        folder.write("graded.jsonl", &pairs[..40]);
        succeed("inspector_train", &folder, &words(QUICK_PROBES));
    }
    for (name, rows) in [("prompts.jsonl", prompts), ("pairs.jsonl", pairs), ("two.jsonl", two)] {
        folder.put(name, serde_json::to_string_pretty(&rows).unwrap());
    }
    folder.put("dataset.json", Value::from(benchmark).to_string());
    folder
}

/// Starts the program and kills it as soon as its journal has some rows.
fn killed(case: &Case, folder: &Path, args: &[&str]) {
    let quiet = || Stdio::null();
    let mut child = judge(case.name).args(args).current_dir(folder).stdout(quiet()).stderr(quiet()).spawn().unwrap();
    let journal = folder.join(case.journal());
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
fn resumes(case: &Case) {
    let name = case.name;
    let here = &folder(case);
    let args = case.args();
    finished(name, here, &args);
    let whole = read(here, case.files);
    let made: Vec<String> = case.files.iter().map(|file| file.to_string()).chain(case.records()).collect();
    for file in &made {
        fs::remove_file(here.join(file)).unwrap();
    }

    for _ in 0..2 {
        killed(case, here, &args);
        for file in &made {
            assert!(!here.join(file).exists(), "{name}: {file} appears with the last row");
        }
    }
    if name == "lager_pointwise" {
        let other = [&args[..], &["--variant", "lager_wo", "--states", "drop-last"]].concat();
        refused(name, here, &other, 1, &["states"]);
    }
    let (_, said) = finished(name, here, &args);
    let resumed = said.lines().find_map(|line| line.strip_prefix("resuming: ")).expect("it resumes");
    let before: usize = resumed.split(' ').next().unwrap().parse().unwrap();
    assert!((1..ROWS).contains(&before), "{name}: {resumed}");
    assert_eq!(read(here, case.files), whole, "{name}");
    assert!(!here.join(case.journal()).exists());
    for record in case.records() {
        let record = here.json(record);
        assert_eq!(record["content"]["program"]["name"], name);
        assert!(record["content"]["finished"].is_string(), "{record}");
    }

    // A third start knows that nothing is left to do.
    let (said, notes) = finished(name, here, &args);
    assert!(said.contains("is complete") && !notes.contains("fingerprint"), "{name}: {said}{notes}");
    assert_eq!(read(here, case.files), whole, "{name}");
}

#[test]
fn hidden_states() {
    resumes(&STATES);
}

#[test]
fn layer_logits() {
    resumes(&Case { name: "layer_logits", args: &["--input", "prompts.jsonl"], files: &["l.jsonl"] });
}

#[test]
fn lager_pointwise() {
    resumes(&Case { name: "lager_pointwise", args: &["--input", "pairs.jsonl"], files: &["s.jsonl"] });
}

#[test]
fn inspector_evaluate() {
    let args = &["--input", "pairs.jsonl", "--probes", "probes"];
    resumes(&Case { name: "inspector_evaluate", args, files: &["e.json"] });
}

#[test]
fn inspector_filter() {
    let args = &["--input", "pairs.jsonl", "--probes", "probes", "--top-share", "0.3"];
    resumes(&Case { name: "inspector_filter", args, files: &["f.jsonl", "f.jsonl.judged.jsonl"] });
}

#[test]
fn prompt_judge() {
    let args = &["--input", "two.jsonl", "--verdict", "logits"];
    resumes(&Case { name: "prompt_judge", args, files: &["v.jsonl"] });
}

#[test]
fn pairwise_benchmark() {
    let args = &["--benchmark", "llmbar", "--data", "dataset.json", "--verdict", "logits"];
    resumes(&Case { name: "pairwise_benchmark", args, files: &["b.jsonl"] });
}

#[test]
fn sft_evaluate() {
    let args = &["--input", "pairs.jsonl", "--max-new-tokens", "2"];
    resumes(&Case { name: "sft-evaluate", args, files: &["t.jsonl"] });
}

/// States have their record a moment after they are in place: a kill in between must not make a stranger's file of them.
#[test]
fn states_without_their_record_get_it_and_are_not_read_again() {
    let case = STATES;
    let here = &folder(&case);
    let args = [&case.args()[..], &["--limit", "3"]].concat();
    let record = here.join("h.safetensors.run.json");
    finished(case.name, here, &args);
    let whole = read(here, case.files);
    fs::remove_file(&record).unwrap();
    let (said, _) = finished(case.name, here, &args);
    assert!(said.contains("3 rows, 3 of them done before: 3 read, 0 unscored"), "{said}");
    assert_eq!(read(here, case.files), whole);
    assert!(record.exists());
    // Another run's states, or what are no states, are still refused.
    fs::remove_file(&record).unwrap();
    fails(case.name, here, &[&args[..], &["--pooling", "mean"]].concat(), &[]);
    here.put("x.safetensors", "mine");
    // A file of the user's is never replaced.
    refused(case.name, here, &["--input", "prompts.jsonl", "--output", "x.safetensors"], 2, &[]);
    assert_eq!((read(here, case.files), here.read("x.safetensors")), (whole, b"mine".to_vec()));
}
