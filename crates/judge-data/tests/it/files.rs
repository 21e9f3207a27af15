//! The files of tests.

#![allow(clippy::print_stderr)] // a skipped test says so

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

/// A folder that lasts as long as the `TempDir` is kept, and the path of a file in it that is not there yet.
pub(crate) fn place(name: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    (folder, path)
}

pub(crate) fn written(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path
}

/// Rows as JSON lines.
pub(crate) fn lines(rows: &[Value]) -> String {
    rows.iter().map(|row| format!("{row}\n")).collect()
}

/// What the files of a folder hold, by their names.
pub(crate) fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.map(|e| (e.file_name().into_string().unwrap(), fs::read(e.path()).unwrap())).collect()
}

/// The sorted names of all that is in a folder, folders included.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The folder of published files; `None` if the variable is not set. A folder that is named but missing fails the test.
pub(crate) fn test_data() -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("JUDGE_TEST_DATA") else {
        eprintln!("skipped: JUDGE_TEST_DATA is not set");
        return None;
    };
    let folder = PathBuf::from(folder);
    assert!(folder.is_dir(), "JUDGE_TEST_DATA is {folder:?}, which is no folder");
    Some(folder)
}
