//! The embedded model judges its own exercises, and nothing else unless somebody insists.

use std::path::Path;
use std::process::Stdio;

use serde_json::json;

use crate::program::{COMMANDS, Desk, QUICK_PROBES, judge, succeed, turn, words, write_rows};

/// Commands with a model that are not in the table below, and why.
const OTHERS: [&str; 4] = [
    "serve",  // it has no rows to look at when it starts, and says that the embedded model answers
    "shards", // Parquet: `score_files.rs`
    "stream", // Arrow: `score_stream.rs`
    "merge",  // it asks for a model
];

/// Command lines on rows that no `judge rows` has written.
const FOREIGN: [&str; 19] = [
    "rerank --input queries.jsonl --output o.jsonl",
    "score --input strange.jsonl --output o.jsonl",
    "score --input strange.jsonl --output o.jsonl --condition direct",
    "compare --input pairs.jsonl --output o.jsonl --verdict logits",
    "rank --input lists.jsonl --output o.jsonl --apart",
    "reward --input strange.jsonl --output o.jsonl",
    "decide --input states.jsonl --questions questions.json --output o.jsonl",
    "checklist --input strange.jsonl --checklist list.json --output o.jsonl",
    "logits --input prompts.jsonl --output o.jsonl",
    "states --input prompts.jsonl --output o.safetensors",
    "tune --input strange.jsonl --output adapter --objective mark",
    "sft-evaluate --input said.jsonl --output o.jsonl",
    "bench --benchmark pairs --data pairs.jsonl --output o.jsonl",
    "select --input strange.jsonl --output o.jsonl --aspects relevance --top 1",
    "emotion --input dialogues.jsonl --output o.jsonl",
    "knowledge --input asked.jsonl --output o.jsonl",
    "probe train --input strange.jsonl --output more-probes",
    "speed --input prompts.jsonl --read probe",
    "try --input strange.jsonl --output o",
];

const WITH_PROBES: [&str; 2] = [
    "probe evaluate --probes probes --input strange.jsonl --output o.jsonl",
    "probe filter --probes probes --input strange.jsonl --output o.jsonl --top-share 0.5",
];

/// Exit code and stderr of a command line, cut at spaces, of somebody who does not insist.
fn said(folder: &Path, line: &str) -> (Option<i32>, String) {
    let names = COMMANDS.iter().map(|(name, _)| *name).filter(|name| line.starts_with(&format!("{name} ")));
    let name = names.max_by_key(|name| name.len()).expect("a command");
    let words = line[name.len()..].split_whitespace();
    let command =
        judge(name).env_remove("JUDGE_EMBEDDED").args(words).current_dir(folder).stdin(Stdio::null()).output();
    let output = command.expect("the program starts");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn foreign_rows(folder: &Path) {
    // A long answer holds the words of an exercise in their order.
    let answer = "The Rhine has 3 sources and gets 4 more. How many rivers does Europe have now? Hard to say.";
    let mut strange = json!({"id": 1, "instruction": "Name a river.", "rubric": "Good?", "aspect": "fluency"});
    strange["response"] = json!(answer);
    strange["human"] = json!(3);
    write_rows(folder.join("strange.jsonl"), &[strange]);
    let pair =
        json!({"id": 1, "instruction": "Name a river.", "response_a": answer, "response_b": "Rhine.", "human": "A"});
    write_rows(folder.join("pairs.jsonl"), &[pair]);
    let list = json!({"id": 1, "instruction": "Name a river.", "responses": [answer, "Rhine."]});
    write_rows(folder.join("lists.jsonl"), &[list]);
    write_rows(folder.join("states.jsonl"), &[json!({"id": 1, "state": {"text": answer}})]);
    let question = json!({"tone": {"type": "choice", "criteria": {"calm": null, "angry": null}}});
    write_rows(folder.join("questions.json"), &[question]);
    write_rows(folder.join("list.json"), &[json!(["Is it short?"])]);
    write_rows(folder.join("queries.jsonl"), &[json!({"id": 1, "query": "Name a river.", "documents": [answer]})]);
    write_rows(folder.join("prompts.jsonl"), &[json!({"id": 1, "prompt": "Name a river."})]);
    write_rows(folder.join("asked.jsonl"), &[json!({"id": 1, "question": "Name a river."})]);
    let said = json!({"id": 1, "messages": [turn("user", "Name a river."), turn("assistant", answer)]});
    write_rows(folder.join("said.jsonl"), &[said]);
    let dialogue = json!({"dialogue": "A: I lost my keys.", "human": "A", "emotion": "sadness", "emotion_score": 5});
    write_rows(folder.join("dialogues.jsonl"), &[dialogue]);
}

#[test]
fn a_choice_without_a_model_takes_any_rows() {
    let path = &Desk::new();
    foreign_rows(path);
    let longest = "select --input strange.jsonl --output o.jsonl --baseline longest";
    let (code, stderr) = said(path, longest);
    assert!(code == Some(0) && !stderr.contains("no exercise"), "{stderr}");
    for more in ["--compare expected", "--diversity 0.5", "--compare perplexity"] {
        let (code, stderr) = said(path, &format!("{longest} --overwrite {more}"));
        assert!(code == Some(2) && stderr.contains("name a model"), "{more}: {stderr}");
    }
}

#[test]
fn rows_of_others_are_refused_before_any_work_by_every_command() {
    let path = &Desk::new();
    foreign_rows(path);
    path.write("graded.jsonl", &crate::newcomer::pairs(40));
    succeed("probe train", path, &[&words(QUICK_PROBES)[..], &["--quiet"]].concat());
    for line in FOREIGN.into_iter().chain(WITH_PROBES) {
        let (code, stderr) = said(path, line);
        assert_eq!(code, Some(2), "{line}: {stderr}");
        for words in ["line 1", "--model", "--embedded"] {
            assert!(stderr.contains(words) || (words == "line 1" && stderr.contains("row 1")), "{line}: {stderr}");
        }
        assert!(!stderr.contains("model tiny-judge"), "{line} loaded the model: {stderr}");
        let made =
            ["o.jsonl", "o.jsonl.partial", "o.safetensors", "adapter", "more-probes"].map(|name| path.join(name));
        assert_eq!(made.into_iter().find(|path| path.exists()), None, "{line}");
    }
    // Of a plan's command by the plan.
    for command in ["score", "rank --apart", "select --aspects relevance", "probe evaluate --probes probes"] {
        let rows = if command.starts_with("rank") { "lists.jsonl" } else { "strange.jsonl" };
        let (code, stderr) = said(path, &format!("shards plan --input {rows} --output plan.json -- {command}"));
        assert!(code == Some(2) && stderr.contains("line 1: expected an exercise"), "{command}: {stderr}");
        assert!(!path.join("plan.json").exists(), "{command}");
    }
    let lines = FOREIGN.into_iter().chain(WITH_PROBES);
    let tried: Vec<&str> = lines.filter_map(|line| line.split(" --").next()).chain(OTHERS).collect();
    for (name, _) in COMMANDS {
        let help = judge(name).arg("--help").output().expect("the program starts");
        let has_model = String::from_utf8_lossy(&help.stdout).contains("--embedded");
        assert!(!has_model || tried.contains(&name), "{name} has a model, and is not tried");
    }
}

#[test]
fn who_insists_is_told_and_exercises_need_no_model() {
    let path = &Desk::new();
    foreign_rows(path);
    let note = "note: strange.jsonl, line 1 is no exercise";
    let (code, stderr) = said(path, "score --input strange.jsonl --output o.jsonl --embedded");
    assert!(code == Some(0) && stderr.contains(note), "{stderr}");
    let model = crate::program::embedded_model();
    let named = format!("score --input strange.jsonl --output named.jsonl --model {}", model.display());
    let (code, stderr) = said(path, &named);
    assert!(code == Some(0) && !stderr.contains("exercise"), "{stderr}");
    let (code, stderr) = said(path, &format!("{named} --embedded"));
    assert!(code == Some(2) && stderr.contains("cannot be used with"), "{stderr}");
    for (rows, own, line) in [
        ("--split shifted --pairs", "own-pairs.jsonl", "compare --output verdicts.jsonl --verdict logits --apart"),
        ("--answers 3", "own-lists.jsonl", "rank --output ranks.jsonl --apart"),
        ("--split train", "own.jsonl", "score --output own-scores.jsonl"),
    ] {
        let rows = words(rows);
        succeed("rows", path, &[&rows[..], &["--rows", "5", "--output", own]].concat());
        let (code, stderr) = said(path, &format!("{line} --input {own}"));
        assert!(code == Some(0) && !stderr.contains("exercise"), "{line}: {stderr}");
    }
    // One row of another kind among them is enough.
    let own = path.text("own.jsonl");
    let strange = path.text("strange.jsonl");
    path.put("mixed.jsonl", own + &strange);
    let (code, stderr) = said(path, "score --input mixed.jsonl --output mixed-scores.jsonl");
    assert!(code == Some(2) && stderr.contains("line 6"), "{stderr}");
}
