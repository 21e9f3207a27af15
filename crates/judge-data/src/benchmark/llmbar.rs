use std::cmp::Ordering::{Greater, Less};
use std::fs;
use std::path::{Path, PathBuf};

use judge_core::ItemId;

use super::{BenchmarkPair, PairTexts, order_of, read_rows};
use crate::{Error, Row};

const FILE: &str = "dataset.json";

/// A `dataset.json`, or all of a folder.
pub(super) fn read(path: &Path) -> Result<Vec<BenchmarkPair>, Error> {
    if !path.is_dir() {
        let subset = subset_of(path);
        return read_rows(path, |row, number| pair(row, ItemId::from(number as u64), subset.clone()));
    }
    let mut files = Vec::new();
    find(path, &mut files)?;
    if files.is_empty() {
        return Err(Error::NoSubset { path: path.to_path_buf(), file: FILE });
    }
    files.sort();
    let mut pairs = Vec::new();
    for file in files {
        let subset = subset_of(&file).unwrap_or_default();
        let id = |number| ItemId::from(format!("{subset}/{number}"));
        pairs.extend(read_rows(&file, |row, number| pair(row, id(number), Some(subset.clone())))?);
    }
    Ok(pairs)
}

/// The name of the folder that a file lies in.
fn subset_of(file: &Path) -> Option<String> {
    let file = fs::canonicalize(file).ok()?;
    Some(file.parent()?.file_name()?.to_string_lossy().into_owned())
}

/// All data sets below a folder. Links are not followed.
fn find(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Error> {
    let failed = |source| Error::Io { action: "read", path: folder.to_path_buf(), source };
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() {
            find(&entry.path(), files)?;
        } else if entry.file_name() == FILE {
            files.push(entry.path());
        }
    }
    Ok(())
}

fn pair(row: &Row, id: ItemId, group: Option<String>) -> Result<BenchmarkPair, Error> {
    let instruction = row.string("input")?;
    Ok(BenchmarkPair {
        id,
        gold: order_of(row, "label", "1 or 2", [(1, Greater), (2, Less)])?,
        group,
        question: instruction.clone(),
        rubric: None,
        reference: None,
        models: None,
        texts: Some(PairTexts {
            instruction,
            response_a: row.string("output_1")?,
            response_b: row.string("output_2")?,
        }),
    })
}
