//! `judge doctor`: what a machine has.

use std::fs;
use std::path::Path;

use judge_models::Kernel;
use serde_json::Value;

use crate::program::{Desk, embedded_model, judge};

/// A snapshot in the hub's cache with these files of the embedded model.
fn cache(cache: &Path, repo: &str, files: &[&str]) {
    let (folder, commit) = (cache.join(format!("models--{repo}")), "a".repeat(40));
    let snapshot = folder.join("snapshots").join(&commit);
    fs::create_dir_all(&snapshot).expect("a folder");
    fs::create_dir_all(folder.join("refs")).expect("a folder");
    fs::write(folder.join("refs/main"), commit).expect("a branch");
    for file in files {
        fs::copy(embedded_model().join(file), snapshot.join(file)).expect("a file");
    }
}

#[test]
fn a_machine_is_described_with_what_is_missing_and_the_models_that_are_there() {
    let folder = &Desk::new();
    let hub = folder.join("hub");
    cache(&hub, "org--whole-model", &["config.json", "tokenizer.json", "model.safetensors"]);
    cache(&hub, "org--half", &["config.json", "tokenizer.json"]);
    cache(&hub, "org--lora", &[]);
    let lora = hub.join("models--org--lora/snapshots").join("a".repeat(40));
    fs::write(lora.join("adapter_config.json"), "{}").expect("a file");
    cache(&hub, "gpt2", &["config.json"]);
    let mut command = judge("doctor");
    command.current_dir(folder).args(["--json", "found.json"]).env("HF_HUB_CACHE", &hub).env("HF_TOKEN", "hf_secret");
    let output = command.output().expect("the program runs");
    let told = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let json = folder.text("found.json");
    assert!(!json.contains("hf_secret") && !told.contains("hf_secret"));

    let found: Value = serde_json::from_str(&json).expect("JSON");
    let kernels: Vec<String> = Kernel::available().iter().map(Kernel::to_string).collect();
    assert_eq!(found["kernels"], serde_json::json!(kernels));
    assert_eq!(found["kernel"], Kernel::fastest().to_string());
    assert_eq!(found["cache"]["token"], true);
    let models = found["cache"]["models"].as_array().expect("a list");
    let state = |at: usize| (models[at]["repo"].as_str().expect("a name"), models[at]["path"].is_string());
    let states = [("gpt2", false), ("org/half", false), ("org/lora", false), ("org/whole-model", true)];
    assert_eq!([0, 1, 2, 3].map(state), states);
    assert!(told.contains("org/half, in part") && told.contains(&kernels[0]), "{told}");
    assert!(told.contains("gpt2, which has no name here"), "{told}");
    assert!(told.contains(&format!("org/lora, an adapter: name its folder, {}", lora.display())), "{told}");
    for gpu in found["gpus"].as_array().expect("a list") {
        let (device, problem) = (gpu["device"].as_str().expect("a name"), &gpu["problem"]);
        assert!(told.lines().any(|line| line.starts_with(device)), "{told}");
        // A build without GPUs says so and no more.
        let in_build = cfg!(feature = "cuda") || cfg!(feature = "wgpu");
        assert!(in_build || problem.as_str().is_some_and(|why| why.contains("docs/gpu.md")), "{gpu}");
    }
    if cfg!(target_os = "linux") {
        let [total, available] = ["total", "available"].map(|of| found["memory"][of].as_u64().expect("bytes"));
        assert!(0 < available && available <= total);
    }
}
