//! The file of ids beside a file of states.

use std::path::{Path, PathBuf};

use judge_core::{ItemId, Unscored};
use serde::{Deserialize, Serialize};

use crate::files::paths::with_suffix;
use crate::rows::ids::id_of;
use crate::states::mapped::MappedStates;
use crate::{Error, Row, Rows};

/// The lines beside one file, checked against it.
pub(super) fn ids_of(file: &MappedStates) -> impl Iterator<Item = Result<StatesRow, Error>> {
    let path = ids_path(file.path());
    let mut lines = Rows::open(&path).map_err(Some);
    let wrong = move |what, expected: String, found: String| {
        Some(Err(Error::Content { path: path.clone(), what, expected, found }))
    };
    let rows = file.rows();
    // One step more than there are rows, to see that there is no further line.
    (0..=rows).filter_map(move |row| {
        let lines = match &mut lines {
            Ok(lines) => lines,
            Err(error) => return error.take().map(Err),
        };
        let line = match lines.next() {
            Some(Err(error)) => return Some(Err(error)),
            Some(Ok(line)) if row < rows => line,
            Some(Ok(_)) => return wrong("rows", rows.to_string(), "more".into()),
            None if row < rows => return wrong("rows", rows.to_string(), row.to_string()),
            None => return None,
        };
        let line = match read(&line) {
            Ok(line) => line,
            Err(error) => return Some(Err(error)),
        };
        let scored = |scored| format!("row {row} {}", if scored { "scored" } else { "unscored" });
        match (file.is_scored(row), line.unscored.is_none()) {
            (expected, found) if expected != found => wrong("scored rows", scored(expected), scored(found)),
            _ => Some(Ok(line)),
        }
    })
}

fn read(line: &Row) -> Result<StatesRow, Error> {
    let unscored: Option<Unscored> = line.optional("unscored", "a reason with its detail")?;
    Ok(StatesRow { id: id_of(line)?, unscored })
}

/// One line of `FILE.ids.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatesRow {
    /// The item.
    pub id: ItemId,
    /// Why it has no states; `None` if it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unscored: Option<Unscored>,
}

/// `x.safetensors` → `x.ids.jsonl`; another name gets `.ids.jsonl` appended. Each shard has its own.
pub fn ids_path(path: &Path) -> PathBuf {
    match path.extension() {
        Some(extension) if extension == "safetensors" => path.with_extension("ids.jsonl"),
        _ => with_suffix(path, ".ids.jsonl"),
    }
}
