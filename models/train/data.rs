//! The generated splits as files.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use judge_data::{check_new, write_new};
use serde_json::json;
use tiny_judge::planted::{Split, generate};

/// Writes 1,000 items of each split to `SPLIT.jsonl` in `dir`, as generic records with topic, quality and defects besides. A file with
/// other content is replaced only with `overwrite`.
pub(crate) fn write(dir: &Path, seed: u64, overwrite: bool) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let mut files = Vec::new();
    for split in Split::ALL {
        let path = dir.join(format!("{}.jsonl", split.name()));
        let mut rows: Vec<u8> = Vec::new();
        for item in generate(split, 1_000, seed) {
            let defects: Vec<String> = item.defects.iter().map(ToString::to_string).collect();
            let record = json!({
                "id": item.id,
                "instruction": item.instruction,
                "response": item.response,
                "rubric": item.rubric,
                "scores": item.scores,
                "topic": item.topic,
                "quality": item.quality,
                "defects": defects,
            });
            writeln!(rows, "{record}")?;
        }
        check_new(&path, &rows, overwrite)?;
        files.push((path, rows));
    }
    files.iter().try_for_each(|(path, rows)| Ok(write_new(path, rows, overwrite)?))
}
