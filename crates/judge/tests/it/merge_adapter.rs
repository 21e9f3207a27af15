//! Adapters merged into a folder, by the program that a user runs.

use std::path::Path;

use serde_json::{Value, json};

use crate::program::{Desk, fixture, refused, rows, succeed, write_rows};

/// States of some prompts by a model, with or without an adapter.
fn states(folder: &Path, model: &str, more: &[&str]) -> Vec<Value> {
    write_rows(folder.join("rows.jsonl"), &[json!({"id": 1, "prompt": "de fi go"}), json!({"id": 2, "prompt": "zo"})]);
    let args = ["--model", model, "--input", "rows.jsonl", "--output", "states.jsonl", "--points", "5", "--raw-prompt"];
    succeed("layer_logits", folder, &[&args[..], &["--overwrite"], more].concat());
    rows(folder.join("states.jsonl"))
}

#[test]
fn a_merged_folder_is_the_model_with_its_adapter() {
    let folder = &Desk::new();
    let (base, adapter) = (fixture("families/llama-off"), fixture("adapters/plain"));
    let args = ["--model", &base, "--adapter", &adapter, "--output", "merged", "--json", "report.json"];
    let said = succeed("merge_adapter", folder, &args);
    assert!(said.contains("-> merged") && said.contains("model.safetensors"), "{said}");
    let report = folder.json("report.json");
    assert!(report["files"].as_array().unwrap().contains(&json!("config.json")), "{report}");
    assert_eq!(report["dtype"], "f32");
    assert!(!folder.join(".merged.partial").exists());
    // What is there is never written over.
    refused("merge_adapter", folder, &args, 2, &["merged: it is a folder with something in it"]);
    // Without an adapter the model is written as it is.
    succeed("merge_adapter", folder, &["--model", &base, "--output", "alone"]);
    assert!(folder.join("alone/model.safetensors").exists());
    let line = ["--model", &base, "--adapter", &base, "--output", "other"];
    refused("merge_adapter", folder, &line, 1, &["adapter_config.json"]);
    let line = ["--model", &base, "--adapter", "ORG/NAME", "--output", "other"];
    refused("merge_adapter", folder, &line, 1, &["as PEFT saves it", "the name of one on the hub is not taken"]);
    let line = ["--model", &base, "--adapter", &adapter, "--output", "other", "--dtype", "tf32"];
    refused("merge_adapter", folder, &line, 2, &["expected f32 or bf16"]);
    assert!(!folder.join("other").exists() && !folder.join(".other.partial").exists());
    // One process at a time writes a folder.
    let lock = std::fs::File::create(folder.join(".other.lock")).unwrap();
    lock.lock().unwrap();
    let line = ["--model", &base, "--adapter", &adapter, "--output", "other"];
    refused("merge_adapter", folder, &line, 1, &["another process is writing"]);
    lock.unlock().unwrap();
    succeed("merge_adapter", folder, &line);
    let merged = states(folder, "merged", &[]);
    assert_eq!(merged, states(folder, &base, &["--adapter", &adapter]));
    assert_ne!(merged, states(folder, &base, &[]));
}
