//! The page learns what its grades say, and writes an adapter's folder.

use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn a_judge_learns_what_its_grades_say() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tune-page");
    if folder.exists() {
        fs::remove_dir_all(&folder).unwrap();
    }
    fs::create_dir_all(&folder).unwrap();
    let adapter = folder.join("adapter");
    let rows = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/rows/validation.jsonl");
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/tiny-judge");
    let output = Command::new(env!("CARGO_BIN_EXE_tune")).args([rows, model]).arg(&adapter).output().unwrap();
    let (said, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && told.is_empty(), "{told}");
    let number = |before: &str| -> f64 {
        let rest = said.split(before).nth(1).unwrap();
        rest.split([',', '\n']).next().unwrap().parse().unwrap()
    };
    let (frozen, tuned) = (number("with the desk "), number("200 grades: "));
    assert!(tuned > frozen + 0.3 && tuned > 0.6, "{said}");
    assert!(adapter.join("adapter_model.safetensors").is_file());
}
