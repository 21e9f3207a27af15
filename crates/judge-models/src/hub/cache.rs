//! Whether the hub's cache has all of a model.

use std::fs;
use std::path::Path;

use judge_hub::cache::{FoundModel, is_commit, repo_folder};
use judge_weights::gguf::file::SplitName;
use serde_json::Value;

use crate::folder::{file, read_json, stays_inside};
use crate::{Error, IndexProblem, WeightsError};

/// The files that a GGUF file consists of: itself, or all parts of a split one, whichever of them is
/// named.
pub(super) fn parts_of(file: &str) -> Vec<String> {
    let (folder, name) = file.rsplit_once('/').map_or(("", file), |(folder, name)| (folder, name));
    let within = |name: String| if folder.is_empty() { name } else { format!("{folder}/{name}") };
    match SplitName::of(name) {
        Some(split) => (1..=split.count).map(|number| within(split.part(number))).collect(),
        None => vec![file.to_owned()],
    }
}

/// The snapshot of a revision, if the cache has all of the files that a model needs: the parts of a GGUF file
/// where they are named; else `config.json`, a tokenizer and the weights, or offline a GGUF file alone. A download that
/// broke off left less, and is no snapshot yet. A revision without a file in `refs` may be a commit itself.
pub(super) fn cached(
    (cache, is_offline): (&Path, bool),
    repo: &str,
    revision: &str,
    parts: &[String],
) -> Option<FoundModel> {
    let folder = repo_folder(cache, repo);
    let commit = match fs::read_to_string(folder.join("refs").join(revision)) {
        Ok(commit) => commit.trim().to_owned(),
        Err(_) => revision.to_owned(),
    };
    let path = folder.join("snapshots").join(&commit);
    let has = |name: &str| path.join(name).is_file();
    let whole = match parts {
        [] if has(file::CONFIG) && (has(file::TOKENIZER) || file::OF_SENTENCEPIECE.into_iter().any(has)) => {
            has_weights(&path) || has_gguf(&path)
        }
        // A repository may have nothing else; whether it has, the hub alone knows.
        [] => is_offline && has_gguf(&path),
        parts => parts.iter().all(|part| has(part)),
    };
    let found = parts.first().map_or_else(|| path.clone(), |part| path.join(part));
    (is_commit(&commit) && whole).then_some(FoundModel { path: found, revision: Some(commit) })
}

/// Whether a snapshot has a GGUF file, with all of its parts. Whatever the repository has beside it was
/// fetched before.
fn has_gguf(path: &Path) -> bool {
    let files = fs::read_dir(path).into_iter().flatten().flatten();
    let mut names = files.filter_map(|file| file.file_name().into_string().ok());
    names.any(|name| name.ends_with(".gguf") && parts_of(&name).iter().all(|part| path.join(part).is_file()))
}

/// Whether a snapshot has its weights: in one file, or in all shards that the index names.
fn has_weights(path: &Path) -> bool {
    [(file::WEIGHTS, file::WEIGHTS_INDEX), (file::PICKLE, file::PICKLE_INDEX)].into_iter().any(|(single, index)| {
        path.join(single).is_file()
            || shards(&path.join(index))
                .is_ok_and(|shards| !shards.is_empty() && shards.iter().all(|s| path.join(s).is_file()))
    })
}

/// The files that an index of shards names, each once and sorted, all inside the folder. Entries
/// that are no text are passed over; `weights/` reports them when the model is loaded.
///
/// # Errors
/// Those of reading the file, and [`WeightsError::Index`] for a shard outside the folder.
pub(super) fn shards(index: &Path) -> Result<Vec<String>, Error> {
    let json = read_json(index)?;
    let map = json.get("weight_map").and_then(Value::as_object);
    let mut shards = Vec::new();
    for (tensor, shard) in map.into_iter().flatten() {
        let Some(shard) = shard.as_str() else { continue };
        if !stays_inside(Path::new(shard)) {
            let problem = IndexProblem::OutsideFolder { tensor: tensor.clone(), shard: shard.to_owned() };
            return Err(Error::Weights(WeightsError::Index { path: index.to_owned(), problem }));
        }
        shards.push(shard.to_owned());
    }
    shards.sort_unstable();
    shards.dedup();
    Ok(shards)
}
