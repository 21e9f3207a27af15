//! Adapters merged into a folder, by the program that a user runs.

use std::path::Path;

use serde_json::{Value, json};

use crate::program::{fixture, read_json, refused, rows, succeed, write_rows};

/// States of some prompts by a model, with or without an adapter.
fn states(folder: &Path, model: &str, more: &[&str]) -> Vec<Value> {
    write_rows(folder.join("rows.jsonl"), &[json!({"id": 1, "prompt": "de fi go"}), json!({"id": 2, "prompt": "zo"})]);
    let args = ["--model", model, "--input", "rows.jsonl", "--output", "states.jsonl", "--points", "5", "--raw-prompt"];
    succeed("layer_logits", folder, &[&args[..], &["--overwrite"], more].concat());
    rows(folder.join("states.jsonl"))
}

#[test]
fn a_merged_folder_is_the_model_with_its_adapter() {
    let folder = tempfile::tempdir().unwrap();
    let (base, adapter) = (fixture("families/llama-off"), fixture("adapters/plain"));
    let args = ["--model", &base, "--adapter", &adapter, "--output", "merged", "--json", "report.json"];
    let said = succeed("merge_adapter", folder.path(), &args);
    assert!(said.contains("-> merged") && said.contains("model.safetensors"), "{said}");
    let report = read_json(folder.path().join("report.json"));
    assert!(report["files"].as_array().unwrap().contains(&json!("config.json")), "{report}");
    assert_eq!(report["dtype"], "f32");
    assert!(!folder.path().join(".merged.partial").exists());
    // What is there is never written over.
    refused("merge_adapter", folder.path(), &args, 2, &["merged: it is a folder with something in it"]);
    // Without an adapter the model is written as it is.
    succeed("merge_adapter", folder.path(), &["--model", &base, "--output", "alone"]);
    assert!(folder.path().join("alone/model.safetensors").exists());
    let line = ["--model", &base, "--adapter", &base, "--output", "other"];
    refused("merge_adapter", folder.path(), &line, 1, &["adapter_config.json"]);
    let line = ["--model", &base, "--adapter", "ORG/NAME", "--output", "other"];
    refused("merge_adapter", folder.path(), &line, 1, &["as PEFT saves it", "the name of one on the hub is not taken"]);
    let line = ["--model", &base, "--adapter", &adapter, "--output", "other", "--dtype", "tf32"];
    refused("merge_adapter", folder.path(), &line, 2, &["expected f32 or bf16"]);
    assert!(!folder.path().join("other").exists() && !folder.path().join(".other.partial").exists());
    // One process at a time writes a folder.
    let lock = std::fs::File::create(folder.path().join(".other.lock")).unwrap();
    lock.lock().unwrap();
    let line = ["--model", &base, "--adapter", &adapter, "--output", "other"];
    refused("merge_adapter", folder.path(), &line, 1, &["another process is writing"]);
    lock.unlock().unwrap();
    succeed("merge_adapter", folder.path(), &line);
    let merged = states(folder.path(), "merged", &[]);
    assert_eq!(merged, states(folder.path(), &base, &["--adapter", &adapter]));
    assert_ne!(merged, states(folder.path(), &base, &[]));
}
