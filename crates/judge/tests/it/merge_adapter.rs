//! Adapters merged into a folder, by the program that a user runs.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::program::{ran, rows, succeed, write_rows};

fn fixture(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../crates/judge-models/tests/fixtures").join(name);
    path.to_str().unwrap().to_owned()
}

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
    let report: Value = serde_json::from_slice(&fs::read(folder.path().join("report.json")).unwrap()).unwrap();
    assert!(report["files"].as_array().unwrap().contains(&json!("config.json")), "{report}");
    assert_eq!(report["dtype"], "f32");
    assert!(!folder.path().join(".merged.partial").exists());
    // What is there is never written over.
    let (code, _, stderr) = ran("merge_adapter", folder.path(), &args);
    assert!(code == Some(2) && stderr.contains("merged: is a folder with something in it"), "{code:?} {stderr}");
    let (code, _, stderr) = ran("merge_adapter", folder.path(), &["--model", &base, "--output", "other"]);
    assert!(code == Some(2) && stderr.contains("--adapter"), "{code:?} {stderr}");
    let (code, _, stderr) =
        ran("merge_adapter", folder.path(), &["--model", &base, "--adapter", &base, "--output", "other"]);
    assert!(code == Some(1) && stderr.contains("adapter_config.json"), "{code:?} {stderr}");
    assert!(!folder.path().join("other").exists() && !folder.path().join(".other.partial").exists());
    let merged = states(folder.path(), "merged", &[]);
    assert_eq!(merged, states(folder.path(), &base, &["--adapter", &adapter]));
    assert_ne!(merged, states(folder.path(), &base, &[]));
}
