//! The same command twice: it ends with the same code and the same last word, whether it made the rows or found them made.

use std::fs;

use serde_json::{Value, json};

use crate::program::{Desk, QUICK_PROBES, embedded_model, ended, fixture, succeed, turn, words, write_rows};
use crate::serve::model_with_yes_and_no;
use crate::server::{Reply, Server};

/// Rows of every kind, of which each is too long for the model.
fn write_inputs(folder: &std::path::Path) {
    let long = "word ".repeat(2_000);
    let write = |name: &str, row: &dyn Fn(usize) -> Value| {
        write_rows(folder.join(name), &(0..3).map(row).collect::<Vec<_>>());
    };
    write(
        "graded.in",
        &|n| json!({"id": n, "instruction": "2 + 2?", "response": long, "rubric": "Right?", "human": 3}),
    );
    write("pairs.in", &|n| json!({"id": n, "instruction": long, "response_a": "4", "response_b": "5", "human": "A"}));
    write("answers.in", &|n| json!({"id": n, "instruction": long, "responses": ["4", "5"], "human": [5, 1]}));
    write("prompts.in", &|n| json!({"id": n, "prompt": long}));
    write("states.in", &|n| json!({"id": n, "state": long, "questions": {"q": {"type": "noul", "instructions": "?"}}}));
    write("questions.in", &|n| json!({"id": n, "question": long, "answerable": n == 1}));
    write(
        "dialogues.in",
        &|n| json!({"dialogue": format!("Ana: {long}"), "human": "Ana", "emotion": "joy", "emotion_score": n}),
    );
    write("chats.in", &|n| json!({"id": n, "messages": [turn("user", &long), turn("assistant", "yes")]}));
    fs::write(folder.join("list.json"), json!(["is short"]).to_string()).unwrap();
}

fn twice(folder: &std::path::Path, name: &str, args: &[&str]) {
    let of = || {
        let (said, told) = ended(name, folder, args, 1);
        let error = told.lines().rfind(|line| line.starts_with("error:")).unwrap_or_default().to_owned();
        assert!(error.contains("no row was scored"), "{name}: {told}");
        let unscored: Vec<String> =
            said.lines().filter(|line| line.starts_with("unscored")).map(str::to_owned).collect();
        (error, unscored)
    };
    let (first, second) = (of(), of());
    assert!(first.0.starts_with("error: no row was scored: 3 "), "{name}: {first:?}");
    assert_eq!(first, second, "{name}");
}

#[test]
fn a_command_that_scored_nothing_fails_each_time() {
    let path = &Desk::new();
    write_inputs(path);
    let model = embedded_model();
    let model = model.to_str().unwrap();
    let decider = model_with_yes_and_no(path);
    let (decider, rewarding) = (decider.to_str().unwrap(), fixture("heads/llama"));
    for (model, line) in [
        (model, "score --input graded.in --output score.out"),
        (model, "compare --input graded.in --output single.out --verdict logits"),
        (model, "compare --input pairs.in --output pairs.out --verdict logits --require mean_preference>=0"),
        (model, "rank --input answers.in --output ranked.out --apart --verdict logits"),
        (model, "logits --input prompts.in --output logits.out"),
        (model, "states --input prompts.in --output states.safetensors"),
        (model, "emotion --input dialogues.in --output emotion.out"),
        (model, "knowledge --input questions.in --output knowledge.out"),
        (model, "sft-evaluate --input chats.in --output replies.out"),
        (model, "bench --benchmark pairs --data pairs.in --output bench.out --verdict logits"),
        (&*rewarding, "reward --input chats.in --output rewards.out"),
        (decider, "decide --input states.in --output decided.out"),
        (decider, "checklist --input graded.in --output checked.out --checklist list.json"),
    ] {
        let words = words(line);
        twice(path, words[0], &[&words[1..], &["--model", model, "--quiet"]].concat());
    }
}

#[test]
fn labels_and_probes_that_scored_nothing_fail_each_time() {
    let path = &Desk::new();
    write_inputs(path);
    let server = Server::start(|_, _| Reply::text("no grade"));
    let api = ["--base-url", &server.base_url, "--api-model", "m", "--no-key", "--aspects", "fluency", "--quiet"];
    twice(path, "label", &[&["--input", "graded.in", "--output", "labels.out"], &api[..]].concat());
    let row = |n: usize| json!({"id": n, "question": format!("What is {n}?"), "response": format!("It is {}.", n % 5), "aspect": "fluency", "score": 1 + n % 3});
    path.write("graded.jsonl", &(0..24).map(row).collect::<Vec<_>>());
    succeed("probe train", path, &words(QUICK_PROBES));
    let judge = ["--input", "graded.in", "--probes", "probes", "--quiet"];
    twice(path, "probe evaluate", &[&judge[..], &["--output", "judged.out"]].concat());
    twice(path, "probe filter", &[&judge[..], &["--output", "kept.out", "--min-total", "1"]].concat());
}
