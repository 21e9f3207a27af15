//! The generated splits as files.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use judge_examples::planted::{Split, generate};
use serde_json::json;

/// Writes 1,000 items of each split to `SPLIT.jsonl` in `dir`, as generic records with topic, quality and defects besides.
pub(crate) fn write(dir: &Path, seed: u64) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    for split in Split::ALL {
        let path = dir.join(format!("{}.jsonl", split.name()));
        let mut file =
            BufWriter::new(fs::File::create(&path).with_context(|| format!("cannot write {}", path.display()))?);
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
            writeln!(file, "{record}")?;
        }
        file.flush()?;
    }
    Ok(())
}
