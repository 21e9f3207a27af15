//! The file of ids beside a file of states.

use std::path::{Path, PathBuf};

use judge_core::{ItemId, Unscored};
use serde::{Deserialize, Serialize};

use crate::files::paths::with_suffix;
use crate::rows::ids::id_of;
use crate::states::mapped::MappedStates;
use crate::{Error, Row, Rows};

/// The lines beside one file, checked against it. After an error there is nothing to ask for.
pub(super) fn ids_of(file: &MappedStates) -> impl Iterator<Item = Result<StatesRow, Error>> {
    let (path, mut lines) = (ids_path(&file.path), None::<Rows>);
    let mut line_of = move |row: usize| -> Result<Option<StatesRow>, Error> {
        let wrong = |what, expected: String, found: String| Err(Error::content(&path, what, expected, found));
        let lines = match &mut lines {
            Some(lines) => lines,
            None => lines.insert(Rows::open(&path)?),
        };
        let line = match lines.next().transpose()? {
            Some(line) if row < file.rows => read(&line)?,
            Some(_) => return wrong("rows", file.rows.to_string(), "more".into()),
            None if row < file.rows => return wrong("rows", file.rows.to_string(), row.to_string()),
            None => return Ok(None),
        };
        let scored = |scored| format!("row {row} {}", if scored { "scored" } else { "unscored" });
        match (file.is_scored(row), line.unscored.is_none()) {
            (expected, found) if expected != found => wrong("scored rows", scored(expected), scored(found)),
            _ => Ok(Some(line)),
        }
    };
    // One step more than there are rows, to see that there is no further line.
    (0..=file.rows).filter_map(move |row| line_of(row).transpose())
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
