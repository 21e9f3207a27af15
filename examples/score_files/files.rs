//! Which files are meant.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use judge_examples::console::usage;

/// Parquet files by their paths, their folders or patterns such as `data/*.parquet`, in the order of their names. Names that begin with a dot or an
/// underscore, which engines use for what is no data, are passed over in folders.
///
/// # Errors
/// If one of them names no file.
pub(crate) fn parquet_files(names: &[String]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for name in names {
        let before = files.len();
        let path = Path::new(name);
        if path.is_dir() {
            walk(path, &mut files)?;
        } else if path.exists() {
            files.push(path.to_path_buf());
        } else {
            let found = glob::glob(name).map_err(|error| usage(format!("{name:?} is no pattern of files: {error}")))?;
            for path in found {
                let path = path.with_context(|| format!("cannot list {name:?}"))?;
                match path.is_dir() {
                    true => walk(&path, &mut files)?,
                    false => files.push(path),
                }
            }
        }
        if files.len() == before {
            return Err(usage(format!("{name:?} names no Parquet file")));
        }
    }
    files.sort();
    files.dedup();
    Ok(files)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(['.', '_']) {
            continue;
        }
        if path.is_dir() {
            walk(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "parquet") {
            files.push(path);
        }
    }
    Ok(())
}
