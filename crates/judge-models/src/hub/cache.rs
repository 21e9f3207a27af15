//! Whether the hub's cache has all of a model.

use std::fs;
use std::path::Path;

use judge_hub::cache::{FoundModel, absent_folder, is_commit, repo_folder};
use judge_weights::gguf::file::SplitName;
use judge_weights::read::shard_path;
use serde_json::Value;

use crate::folder::file::Fetched;
use crate::folder::named_adapter::adapter_of;
use crate::folder::{file, is_gguf_model, read_json};
use crate::{Error, WeightsError};

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

/// The folder of a repository, with a slash at its end, that has a GGUF file of these parts; the repository itself where none is named.
pub(super) fn beside(parts: &[String]) -> String {
    let folder = parts.first().and_then(|part| part.rsplit_once('/'));
    folder.map_or(String::new(), |(folder, _)| format!("{folder}/"))
}

/// The files of an adapter's folder.
const OF_ADAPTER: [(&str, Fetched); 3] = [
    (file::ADAPTER_CONFIG, Fetched::Always),
    (file::ADAPTER_WEIGHTS, Fetched::Always),
    (file::ADAPTER_PICKLE, Fetched::Without(file::ADAPTER_WEIGHTS)),
];

/// Every file of a fixed name that is fetched of a folder of a repository in one case or another: its folder with a slash at the end, its
/// name, and when it is fetched. Adapters are those that files of decisions name which are in the snapshot already; what is wrong with such
/// a file is said where it is read.
pub(super) fn looked_for(snapshot: &Path, beside: &str) -> Vec<(String, &'static str, Fetched)> {
    let fetched = file::FILES.iter().filter(|role| role.fetched != Fetched::Never);
    let of_folder = fetched.map(|role| (beside.to_owned(), role.name, role.fetched));
    let adapters = [file::DECISION, file::JEV].into_iter().filter_map(|name| {
        let settings = read_json(&snapshot.join(beside).join(name)).ok()?;
        Some(format!("{beside}{}/", adapter_of(name, &settings).ok()??.name))
    });
    let of_adapters = adapters.flat_map(|folder| OF_ADAPTER.map(|(name, fetched)| (folder.clone(), name, fetched)));
    of_folder.chain(of_adapters).collect()
}

/// Those of the files that are fetched for themselves, from a repository of which `has` says what it has.
pub(super) fn wanted(snapshot: &Path, beside: &str, has: impl Fn(&str) -> bool) -> Vec<String> {
    let mut files = looked_for(snapshot, beside);
    files.retain(|(folder, _, fetched)| fetched.applies(|other| has(&format!("{folder}{other}"))));
    files.into_iter().map(|(folder, name, _)| format!("{folder}{name}")).collect()
}

/// What stands among the files that a repository does not have where it has one GGUF file alone.
pub(super) const OTHER_GGUF: &str = "other.gguf";

/// What the cache has of a model.
pub(super) struct Cached {
    /// Where it is. All is there without which it could not be loaded.
    pub(super) found: FoundModel,
    /// What the repository may have too, for all that the cache says, and what would be read. Empty for a whole model.
    pub(super) unknown: Vec<String>,
}

impl Cached {
    /// The model, with a warning of what it may lack.
    pub(super) fn taken(self, repo: &str) -> FoundModel {
        if !self.unknown.is_empty() {
            let files = self.unknown.join(", ");
            tracing::warn!(
                repo,
                %files,
                "the cache does not say whether the model has these files too, without which scores may differ; \
                 with a connection to the hub they are fetched"
            );
        }
        self.found
    }
}

/// The folder of a revision, whatever is in it, and its commit.
fn snapshot(cache: &Path, repo: &str, revision: &str) -> Option<FoundModel> {
    let folder = repo_folder(cache, repo);
    let commit = match fs::read_to_string(folder.join("refs").join(revision)) {
        Ok(commit) => commit.trim().to_owned(),
        Err(_) => revision.to_owned(),
    };
    let path = folder.join("snapshots").join(&commit);
    is_commit(&commit).then_some(FoundModel { path, revision: Some(commit) })
}

/// Where the cache has an adapter, which is no model by itself.
pub(super) fn adapter(cache: &Path, repo: &str, revision: &str) -> Option<FoundModel> {
    let found = snapshot(cache, repo, revision)?;
    let has = |name: &str| found.path.join(name).is_file();
    (has(file::ADAPTER_CONFIG) && !file::OF_WEIGHTS.into_iter().any(has)).then_some(found)
}

/// What the cache has of a revision: the parts of a GGUF file where they are named; else `config.json`, a tokenizer and the weights.
/// A GGUF file stands for them where the revision is known to have no safetensors, or where there is nothing else. A download that broke
/// off left less, and is no model yet. A revision without a file in `refs` may be a commit itself.
///
/// What a fetch of all found missing is marked, as `huggingface_hub` does it; a file that is neither there nor marked is not known.
pub(super) fn cached(cache: &Path, repo: &str, revision: &str, parts: &[String]) -> Option<Cached> {
    let FoundModel { path, revision } = snapshot(cache, repo, revision)?;
    let commit = revision?;
    let absent = absent_folder(&repo_folder(cache, repo), &commit);
    let has = |name: &str| path.join(name).is_file();
    let is_absent = |name: &str| absent.join(name).is_file();
    let mut unknown = wanted(&path, &beside(parts), has);
    let safetensors = [file::WEIGHTS, file::WEIGHTS_INDEX];
    let is_text_whole = has(file::CONFIG) && (has(file::TOKENIZER) || file::OF_SENTENCEPIECE.into_iter().any(has));
    match parts {
        [] if is_text_whole && has_weights(&path, safetensors) => {}
        [] if is_text_whole && has_weights(&path, [file::PICKLE, file::PICKLE_INDEX]) => {
            unknown.extend(safetensors.map(str::to_owned));
        }
        [] if has_gguf(&path) && (safetensors.into_iter().all(is_absent) || !has(file::CONFIG)) => {
            unknown.extend(safetensors.map(str::to_owned));
            unknown.push(OTHER_GGUF.to_owned());
        }
        parts if !parts.is_empty() && parts.iter().all(|part| has(part)) => {}
        _ => return None,
    }
    unknown.retain(|name| !has(name) && !is_absent(name));
    let found = parts.first().map_or_else(|| path.clone(), |part| path.join(part));
    Some(Cached { found: FoundModel { path: found, revision: Some(commit) }, unknown })
}

/// Whether a snapshot has a GGUF file, with all of its parts.
fn has_gguf(path: &Path) -> bool {
    let files = fs::read_dir(path).into_iter().flatten().flatten();
    let mut names = files.filter_map(|file| file.file_name().into_string().ok());
    names.any(|name| is_gguf_model(&name) && parts_of(&name).iter().all(|part| path.join(part).is_file()))
}

/// Whether a snapshot has its weights: in one file, or in all shards that the index names.
fn has_weights(path: &Path, [single, index]: [&str; 2]) -> bool {
    path.join(single).is_file()
        || shards(&path.join(index))
            .is_ok_and(|shards| !shards.is_empty() && shards.iter().all(|shard| path.join(shard).is_file()))
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
        let outside = |problem| Error::Weights(WeightsError::Index { path: index.to_owned(), problem });
        shards.push(shard_path(tensor, shard).map_err(outside)?.to_owned());
    }
    shards.sort_unstable();
    shards.dedup();
    Ok(shards)
}
