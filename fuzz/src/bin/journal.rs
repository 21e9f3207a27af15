//! Any lines behind the first of an unfinished output are read or refused, and a run that goes on from them ends with every row once.
//!
//! An input is a list of lines with bytes 0xff between them. The first byte of each says whether what follows gets the check that it needs
//! to be believed, or is a line as it is.
#![no_main]

use std::path::Path;

use judge_data::{Fate, Opened, Program, Resolved, Run, RunPlan};
use libfuzzer_sys::fuzz_target;

const ROWS: usize = 4;

fuzz_target!(|bytes: &[u8]| {
    let folder = judge_fuzz::folder(&[]);
    let output = folder.join("out.jsonl");
    let mut run = start(&output).expect("a new run");
    run.push(1, &serde_json::json!({"id": 1}), Fate::SCORED).unwrap();
    drop(run);
    let partial = folder.join("out.jsonl.partial");
    let mut text = std::fs::read(&partial).unwrap();
    for line in bytes.split(|&byte| byte == 0xff) {
        match line.split_first() {
            Some((kind, body)) if kind % 2 == 0 => {
                text.extend(&blake3::hash(body).to_hex().as_bytes()[..16]);
                text.push(b'\t');
                text.extend(body);
                text.push(b'\n');
            }
            Some((_, line)) => text.extend(line),
            None => {}
        }
    }
    std::fs::write(&partial, text).unwrap();
    let Some(mut run) = start(&output) else { return };
    assert_eq!(run.rows(), ROWS);
    assert_eq!(run.resumed().rows, (0..ROWS).filter(|&row| run.is_done(row)).count());
    let pending: Vec<usize> = run.pending().collect();
    for row in pending {
        assert!(!run.is_done(row));
        run.push(row, &serde_json::json!({"id": row}), Fate::SCORED).unwrap();
    }
    let record = run.finish().unwrap();
    assert_eq!(record.counts.rows(), ROWS);
    let text = std::fs::read(&output).unwrap();
    assert_eq!(text.iter().filter(|&&byte| byte == b'\n').count(), ROWS);
});

/// The run, if it is not refused or over.
fn start(output: &Path) -> Option<Run> {
    match RunPlan::new(output, ROWS, Program::new("fuzz", "1")).open() {
        Ok(Opened::Ready(start)) => start.begin(Resolved::default()).ok(),
        _ => None,
    }
}
