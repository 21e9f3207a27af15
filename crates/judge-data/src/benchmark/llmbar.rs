use std::cmp::Ordering::{Greater, Less};
use std::fs;
use std::path::{Path, PathBuf};

use judge_core::ItemId;

use super::pair::{BenchmarkPair, PairTexts, order_of, read_rows};
use crate::rows::ids::UniqueIds;
use crate::{Error, Row};

const FILE: &str = "dataset.json";

/// A `dataset.json`, or all of a folder.
pub(super) fn read(path: &Path, ids: &mut UniqueIds) -> Result<Vec<BenchmarkPair>, Error> {
    if !path.is_dir() {
        let subset = subset_of(path);
        return read_rows(path, ids, |row, number| pair(row, ItemId::from(number as u64), subset.clone()));
    }
    let mut pairs = Vec::new();
    for file in files(path)? {
        // A file below a folder lies in a folder with a name.
        let subset = subset_of(&file).unwrap_or_else(|| file.display().to_string());
        let id = |number| ItemId::from(format!("{subset}/{number}"));
        pairs.extend(read_rows(&file, ids, |row, number| pair(row, id(number), Some(subset.clone())))?);
    }
    Ok(pairs)
}

/// The file itself, or all data sets below a folder, in the order of their paths.
pub(super) fn files(path: &Path) -> Result<Vec<PathBuf>, Error> {
    if !path.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let mut files = Vec::new();
    find(path, &mut files)?;
    if files.is_empty() {
        let expected = format!("files called {FILE} in the folder or below");
        return Err(Error::content(path, "subsets", expected, "none"));
    }
    files.sort();
    Ok(files)
}

/// The name of the folder that a file lies in; a file that is a link lies where the link does.
fn subset_of(file: &Path) -> Option<String> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some(fs::canonicalize(folder).ok()?.file_name()?.to_string_lossy().into_owned())
}

/// All data sets below a folder. Links to folders are not followed.
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
    let gold = order_of(row, "label", "1 or 2", [(1, Greater), (2, Less)])?;
    let texts = PairTexts::new(row.string("input")?, row.string("output_1")?, row.string("output_2")?);
    Ok(BenchmarkPair { groups: group.into_iter().collect(), ..BenchmarkPair::new(id, Some(gold), texts) })
}
