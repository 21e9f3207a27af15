//! What a finished or interrupted output is taken for: nothing is complete that another model, template or judge has made.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::program::{Desk, ran, read_json, succeed, words, write_rows};

/// A copy of the embedded model, and two rows.
fn desk() -> Desk {
    let desk = Desk::new();
    fs::create_dir(desk.join("model")).unwrap();
    tiny_judge::write(&desk.join("model")).unwrap();
    let row =
        |id: u32| json!({"id": id, "instruction": format!("{id} + 2?"), "response": "4", "rubric": "Is it right?"});
    desk.write("in.jsonl", &[row(1), row(2)]);
    desk
}

/// Other weights in the same file: same names, same shapes, same size, and here even the same time.
fn retrain(desk: &Path) {
    let path = desk.join("model/model.safetensors");
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let header = 8 + u64::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
    bytes[header..].chunks_exact_mut(2).for_each(|bf16| bf16[1] ^= 0x80);
    fs::write(&path, bytes).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
}

const LINES: [&str; 6] = [
    "lager_pointwise --input in.jsonl --output o.jsonl",
    "layer_logits --input prompts.jsonl --output o.jsonl",
    "hidden_states --input prompts.jsonl --output o.safetensors",
    "prompt_judge --input in.jsonl --output o.jsonl --verdict logits",
    "data_selection --input in.jsonl --output o.jsonl --baseline perplexity --compare longest",
    "rank_answers --input answers.jsonl --output o.jsonl --apart --verdict logits",
];

fn started(desk: &Path, line: &str, more: &[&str]) -> (Option<i32>, String, String) {
    write_rows(
        desk.join("prompts.jsonl"),
        &[json!({"id": 1, "prompt": "2 + 2?"}), json!({"id": 2, "prompt": "3 + 2?"})],
    );
    write_rows(desk.join("answers.jsonl"), &[json!({"id": 1, "instruction": "2 + 2?", "responses": ["4", "5"]})]);
    let words = words(line);
    ran(words[0], desk, &[&words[1..], &["--model", "model", "--quiet"], more].concat())
}

#[test]
fn a_model_that_was_retrained_into_the_same_folder_is_another_one() {
    for line in LINES {
        let desk = &desk();
        let (code, stdout, stderr) = started(desk, line, &[]);
        assert_eq!(code, Some(0), "{line}: {stdout}{stderr}");
        let (code, stdout, stderr) = started(desk, line, &[]);
        assert!(code == Some(0) && stdout.contains("complete"), "{line}: {stdout}{stderr}");
        retrain(desk);
        let (code, stdout, stderr) = started(desk, line, &[]);
        assert_eq!(code, Some(2), "{line}: {stdout}{stderr}");
        assert!(!stdout.contains("complete") && stderr.contains("model.fingerprint was"), "{line}: {stdout}{stderr}");
    }
}

#[test]
fn another_template_and_other_layer_weights_are_not_complete() {
    let desk = &desk();
    let line = "lager_pointwise --input in.jsonl --output o.jsonl";
    assert_eq!(started(desk, line, &[]).0, Some(0));
    // The template that the model's folder brings is no option, and decides all the same.
    let path = desk.join("model/judge_template.json");
    let template = fs::read_to_string(&path).unwrap();
    fs::write(&path, template.replacen("{response}", "{response}!", 1)).unwrap();
    let (code, stdout, stderr) = started(desk, line, &[]);
    assert!(code == Some(2) && stderr.contains("template was"), "{stdout}{stderr}");
    fs::write(&path, template).unwrap();
    assert_eq!(started(desk, line, &[]).0, Some(0));

    let graded = |id: u32| {
        let human = f64::from(1 + id % 5);
        json!({"id": id, "instruction": format!("{id} + 1?"), "response": format!("{}", id % 4), "rubric": "Is it right?", "human": human})
    };
    desk.write("graded.jsonl", &(0..30).map(graded).collect::<Vec<_>>());
    assert_eq!(started(desk, "lager_pointwise --input graded.jsonl --output valid.jsonl", &[]).0, Some(0));
    let fit = ["--valid", "valid.jsonl", "--weights-out", "w.json"];
    succeed("lager_evaluate", desk, &[&fit[..], &["--epochs", "1"]].concat());
    let weighted = "lager_pointwise --input in.jsonl --output weighted.jsonl --weights w.json";
    assert_eq!(started(desk, weighted, &[]).0, Some(0));
    succeed("lager_evaluate", desk, &[&fit[..], &["--epochs", "2", "--overwrite"]].concat());
    let (code, stdout, stderr) = started(desk, weighted, &[]);
    assert!(code == Some(2) && stderr.contains("lager.weights"), "{stdout}{stderr}");
}

#[test]
fn a_record_of_an_older_program_is_read_and_its_differences_are_named() {
    let desk = &desk();
    let line = "lager_pointwise --input in.jsonl --output o.jsonl";
    assert_eq!(started(desk, line, &[]).0, Some(0));
    let path = desk.join("o.jsonl.run.json");
    let mut record = read_json(&path);
    assert_eq!(record["content"]["judges"][0]["judge"], "lager");
    let content = record["content"].as_object_mut().unwrap();
    content.remove("judges");
    let settings = content["settings"].as_object_mut().unwrap();
    settings.remove("lager");
    settings.insert("model".to_owned(), json!("a hash of names and sizes"));
    fs::write(&path, record.to_string()).unwrap();
    let (code, stdout, stderr) = started(desk, line, &[]);
    assert_eq!(code, Some(2), "{stdout}{stderr}");
    assert!(stderr.contains("lager was unset") && stderr.contains("model was \"a hash"), "{stderr}");
}
