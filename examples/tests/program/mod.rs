//! The examples' programs, for tests that run them as a user does.

#![allow(dead_code)] // each test takes what it needs

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Arguments with which `inspector_train` makes probes, in the folder `probes`, of a few rows in `graded.jsonl`.
pub const QUICK_PROBES: [&str; 14] = [
    "--input",
    "graded.jsonl",
    "--output",
    "probes",
    "--layers",
    "2",
    "--pooling",
    "mean",
    "--folds",
    "2",
    "--c",
    "0.01",
    "--top-k",
    "1",
];

/// A command that starts an example.
pub fn example(name: &str) -> Command {
    // target/PROFILE/deps/this-test -> target/PROFILE/examples/NAME
    let test = std::env::current_exe().expect("path of this test");
    let profile = test.parent().and_then(Path::parent).expect("target folder");
    let program = profile.join("examples").join(name).with_extension(std::env::consts::EXE_EXTENSION);
    assert!(
        program.is_file(),
        "{} is not built; run `cargo test -p judge-examples`, which builds examples",
        program.display()
    );
    Command::new(program)
}

/// Runs an example in a folder to its end.
pub fn run(name: &str, folder: &Path, args: &[&str]) -> Output {
    example(name).args(args).current_dir(folder).stdin(Stdio::null()).output().expect("the example starts")
}

/// Runs an example: exit code, stdout and stderr.
pub fn ran(name: &str, folder: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let output = run(name, folder, args);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Runs an example that must succeed; its stdout.
pub fn succeed(name: &str, folder: &Path, args: &[&str]) -> String {
    let (code, stdout, stderr) = ran(name, folder, args);
    assert_eq!(code, Some(0), "{name} {args:?}: {stdout}{stderr}");
    stdout
}

/// Writes JSON lines.
pub fn write_rows(path: impl AsRef<Path>, rows: &[Value]) {
    fs::write(path, rows.iter().map(|row| format!("{row}\n")).collect::<String>()).expect("input");
}

/// Reads JSON lines.
pub fn rows(path: impl AsRef<Path>) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("output");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}
