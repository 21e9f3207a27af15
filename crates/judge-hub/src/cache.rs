//! Where the hub's cache has what, in the layout that Hugging Face's own libraries share.
//!
//! ```text
//! CACHE/models--ORG--NAME/
//!   .no_exist/COMMIT/config.json    an empty file: that commit is known to have none of this name
//!   refs/BRANCH                     the commit that the branch or tag was at when it was last asked for
//!   snapshots/COMMIT/config.json    the files of that commit, mostly links to …
//!   blobs/ETAG                      … their contents; ETAG.incomplete while they are fetched
//! CACHE/.locks/models--ORG--NAME/ETAG.lock
//! ```

use std::path::{Path, PathBuf};

/// A model's folder on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundModel {
    /// The folder, or the GGUF file. In the hub's cache it is a snapshot or in one, where files are mostly links.
    pub path: PathBuf,
    /// The commit, if the model came from the hub; 40 hexadecimal digits.
    pub revision: Option<String>,
}

/// Whether both are of a form that can be part of a path and of an address. Words are letters,
/// digits, `-`, `_` and `.`, do not begin with `.` or `-`, and have no `..`. A repository is two
/// words with a slash between them, a revision one or more, which may have `+` in them too.
#[must_use]
pub fn is_hub_id(repo: &str, revision: &str) -> bool {
    let is_word = |part: &str| {
        !part.is_empty()
            && !part.contains("..")
            && !part.starts_with(['.', '-'])
            && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
    };
    let is_repo = repo.split_once('/').is_some_and(|(org, name)| is_word(org) && is_word(name));
    is_repo && revision.split('/').all(|part| is_word(&part.replace('+', "_")))
}

/// Whether a revision is a whole commit, 40 hexadecimal digits. Only that is certain to mean the
/// same files tomorrow.
#[must_use]
pub fn is_commit(revision: &str) -> bool {
    revision.len() == 40 && revision.bytes().all(|b| b.is_ascii_hexdigit())
}

/// The folder of a repository in the cache.
#[must_use]
pub fn repo_folder(cache: &Path, repo: &str) -> PathBuf {
    cache.join(format!("models--{}", repo.replace('/', "--")))
}

/// Where an empty file says that a commit has none of its name; `folder` is the repository's.
#[must_use]
pub fn absent_folder(folder: &Path, commit: &str) -> PathBuf {
    folder.join(".no_exist").join(commit)
}

/// `ORG/NAME` of a snapshot's folder in the cache, for a model's name; `None` for a folder
/// elsewhere. Only the path's last three parts are looked at.
#[must_use]
pub fn repo_of_snapshot(path: &Path) -> Option<String> {
    let name = |path: &Path| Some(path.file_name()?.to_str()?.to_owned());
    let snapshots = path.parent()?;
    let repo = name(snapshots.parent()?)?;
    let (org, model) = repo.strip_prefix("models--")?.split_once("--")?;
    (name(snapshots)? == "snapshots" && is_commit(&name(path)?)).then(|| format!("{org}/{model}"))
}
