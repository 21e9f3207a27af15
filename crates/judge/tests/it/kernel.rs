//! Tests of the program may run as on another processor: `JUDGE_TEST_KERNEL` names its fastest kernel.

use judge_models::Kernel;

use crate::program::{Desk, succeed};

/// A program that is built without the feature `emulated-unit` ignores the name, and all other tests would run with another kernel.
#[test]
fn the_program_runs_with_the_kernel_that_tests_name() {
    let path = &Desk::new();
    succeed("rows", path, &["--rows", "1", "--output", "rows.jsonl"]);
    succeed("score", path, &["--input", "rows.jsonl", "--output", "scores.jsonl"]);
    let record = path.json("scores.jsonl.run.json");
    let device = record["content"]["model"]["device"].as_str().expect("a device");
    let is_run = |kernel: &str| device == format!("cpu ({kernel})");
    match std::env::var("JUDGE_TEST_KERNEL") {
        Ok(named) => assert!(
            is_run(&named),
            "expected the kernel {named}, found {device}; build with --features judge-models/emulated-unit"
        ),
        Err(_) => assert!(Kernel::available().iter().any(|kernel| is_run(&kernel.to_string())), "{device}"),
    }
}
