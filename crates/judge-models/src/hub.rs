//! Finding a model: a folder, or a hub id by way of the hub's cache.
//!
//! `Model::open` parses a name into a [`ModelSource`] and resolves it into a folder on this
//! machine, which it then loads like any other. This file knows names, settings and the cache; it
//! opens no connection. Downloads are in `hub/fetch.rs`, `hub/client.rs` and `hub/store.rs`, which exist with the feature `hub` only.
//! What a folder must hold to be loaded is `folder.rs`'s business.
//!
//! The cache has the layout that Hugging Face's own libraries share:
//!
//! ```text
//! CACHE/models--ORG--NAME/
//!   refs/BRANCH                     the commit that the branch or tag was at when it was last asked for
//!   snapshots/COMMIT/config.json    the files of that commit, mostly links to …
//!   blobs/ETAG                      … their contents; ETAG.incomplete while they are fetched
//! CACHE/.locks/models--ORG--NAME/ETAG.lock
//! ```
//!
//! What [`ModelSource::resolve`] does with a hub id; the first row that fits counts:
//!
//! | revision | in the cache | offline | result |
//! |---|---|---|---|
//! | a commit | whole | either | the cache's folder, no connection |
//! | branch or tag | whole | yes | the cache's folder, no connection |
//! | any | not, or in part | yes | [`Error::NotInCache`] |
//! | any other | either | no, built without the feature `hub` | [`Error::NoHub`] |
//! | any other | whole | no, but the hub gives no answer | the cache's folder, with a warning |
//! | any other | either | no | the hub is asked; what is missing is fetched |
//!
//! Invariants: repository and revision are checked ([`is_hub_id`]) before they become parts of a
//! path or an address, and so are names that an index of shards gives ([`shards`]). A folder is
//! taken from the cache only if it is whole ([`cached`]).

#[cfg(feature = "hub")]
mod client;
#[cfg(feature = "hub")]
mod fetch;
#[cfg(feature = "hub")]
mod store;

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::{env, fmt, fs};

use serde_json::Value;

use crate::folder::{file, read_json, stays_inside};
use crate::gguf::SplitName;
use crate::{Error, IndexProblem};

/// The branch that a hub id without a revision means.
const DEFAULT_REVISION: &str = "main";

/// Where a model comes from. Parsed from a name, or built by the caller; [`resolve`](Self::resolve)
/// finds its folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelSource {
    /// A folder on this machine.
    Folder(PathBuf),
    /// A model of the hub.
    Hub {
        /// `ORG/NAME`.
        repo: String,
        /// A branch, a tag or a commit; `None`: the branch `main`.
        revision: Option<String>,
        /// The GGUF file that is the model, by its path in the repository; the first one of a split file.
        /// `None`: what a folder of the repository's files would be.
        file: Option<String>,
    },
}

/// A model's folder on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundModel {
    /// The folder, or the GGUF file. In the hub's cache it is a snapshot or in one, where files are mostly links.
    pub path: PathBuf,
    /// The commit, if the model came from the hub; 40 hexadecimal digits.
    pub revision: Option<String>,
}

/// How far the download of one file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Download<'a> {
    /// The file's name in the repository.
    pub file: &'a str,
    /// Bytes that are there, those of an earlier attempt included.
    pub done: u64,
    /// Bytes in all, as the hub states them.
    pub size: u64,
}

/// How the hub is reached. Nothing else, no environment variable and no other file, has a say.
#[derive(Clone, PartialEq, Eq)]
pub struct HubOptions {
    /// The cache folder, which holds a folder for each repository. It need not exist.
    pub cache: PathBuf,
    /// Address of the hub; `None`: the public one, `https://huggingface.co`.
    pub endpoint: Option<String>,
    /// Access token, for models that need one. It is not shown by `Debug`.
    pub token: Option<String>,
    /// Only look in the cache; never open a connection.
    pub offline: bool,
}

impl fmt::Debug for HubOptions {
    /// Does not show the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cache, endpoint, token, offline } = self;
        f.debug_struct("HubOptions")
            .field("cache", cache)
            .field("endpoint", endpoint)
            .field("token", &token.as_ref().map(|_| "hidden"))
            .field("offline", offline)
            .finish()
    }
}

impl HubOptions {
    /// What Hugging Face's own libraries would do. Empty variables count as unset.
    ///
    /// | setting | first of |
    /// |---|---|
    /// | `cache` | `HF_HUB_CACHE`; `hub` in `HF_HOME` |
    /// | `HF_HOME` | itself; `huggingface` in `XDG_CACHE_HOME`; `huggingface` in `~/.cache` |
    /// | `token` | `HF_TOKEN`; the file `HF_TOKEN_PATH`; the file `token` in `HF_HOME` |
    /// | `endpoint` | `HF_ENDPOINT`; the public hub |
    /// | `offline` | `HF_HUB_OFFLINE`, if it is `1`, `on`, `yes` or `true` in any case; else false |
    #[must_use]
    pub fn from_env() -> Self {
        Self::from_variables(|name| env::var(name).ok())
    }

    /// [`from_env`](Self::from_env) over any variables, so that tests need not change the process's
    /// own. A token file that cannot be read counts as absent.
    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let path = |name: &str| set(name).map(PathBuf::from);
        let user_cache = || path("XDG_CACHE_HOME").or_else(|| path("HOME").map(|home| home.join(".cache")));
        let home = path("HF_HOME").unwrap_or_else(|| user_cache().unwrap_or_default().join("huggingface"));
        let token_file = path("HF_TOKEN_PATH").unwrap_or_else(|| home.join("token"));
        let stored_token = || fs::read_to_string(&token_file).ok().map(|token| token.trim().to_owned());
        let on = |value: String| matches!(value.to_lowercase().as_str(), "1" | "on" | "yes" | "true");
        Self {
            token: set("HF_TOKEN").or_else(stored_token).filter(|token| !token.is_empty()),
            endpoint: set("HF_ENDPOINT"),
            offline: set("HF_HUB_OFFLINE").is_some_and(on),
            cache: path("HF_HUB_CACHE").unwrap_or_else(|| home.join("hub")),
        }
    }
}

impl FromStr for ModelSource {
    type Err = Error;

    /// Reads a folder, a GGUF file, `ORG/NAME[@REVISION]` or `ORG/NAME[@REVISION]:FILE.gguf`. What exists wins;
    /// that a file is no model is said when it is loaded.
    ///
    /// # Errors
    /// [`Error::ModelName`] for a text that is neither.
    fn from_str(text: &str) -> Result<Self, Error> {
        if Path::new(text).exists() {
            return Ok(Self::Folder(text.into()));
        }
        let (id, file) = match text.split_once(':') {
            Some((id, file)) => (id, Some(file)),
            None => (text, None),
        };
        let (repo, revision) = match id.split_once('@') {
            Some((repo, revision)) => (repo, Some(revision)),
            None => (id, None),
        };
        if !is_hub_id(repo, revision.unwrap_or(DEFAULT_REVISION)) || file.is_some_and(|file| !is_hub_file(file)) {
            return Err(Error::ModelName { found: text.to_owned() });
        }
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Ok(Self::Hub { repo: repo.to_owned(), revision: owned(revision), file: owned(file) })
    }
}

/// Whether both are of a form that can be part of a path and of an address. Words are letters,
/// digits, `-`, `_` and `.`, do not begin with `.` or `-`, and have no `..`. A repository is two
/// words with a slash between them, a revision one or more.
fn is_hub_id(repo: &str, revision: &str) -> bool {
    let is_word = |part: &str| {
        !part.is_empty()
            && !part.contains("..")
            && !part.starts_with(['.', '-'])
            && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
    };
    repo.split_once('/').is_some_and(|(org, name)| is_word(org) && is_word(name)) && revision.split('/').all(is_word)
}

/// Whether a name can be that of a GGUF file of a repository: it ends with `.gguf`, and every part of it is a
/// name.
fn is_hub_file(file: &str) -> bool {
    file.ends_with(".gguf") && !file.contains('\\') && stays_inside(Path::new(file))
}

/// The files that a GGUF file consists of: itself, or all parts of a split one, whichever of them is
/// named.
fn parts_of(file: &str) -> Vec<String> {
    let (folder, name) = file.rsplit_once('/').map_or(("", file), |(folder, name)| (folder, name));
    let within = |name: String| if folder.is_empty() { name } else { format!("{folder}/{name}") };
    match SplitName::of(name) {
        Some(split) => (1..=split.count).map(|number| within(split.part(number))).collect(),
        None => vec![file.to_owned()],
    }
}

impl ModelSource {
    /// The folder on this machine, or the GGUF file.
    ///
    /// A hub model that is in the cache is taken from there without a connection if its revision is
    /// a commit or if [`HubOptions::offline`] is set. Otherwise the hub is asked what the revision
    /// is today, and what is not in the cache is fetched into it. If the hub cannot be reached, or
    /// this build lacks the feature `hub`, what the cache has for the revision is taken, with a
    /// warning.
    ///
    /// Downloads are resumed where they broke off and tried again a few times; so is a question to a hub that has no time (status 429)
    /// or is not up (502 to 504), unless the cache can stand in. How long to wait is what the hub asks for (`Retry-After`), up to five
    /// minutes. Downloads are compared with the size that the hub states, and with the SHA-256 of files that it stores apart (the
    /// weights); [`resolve_with`](Self::resolve_with) shows how far they are. The token is sent to the endpoint alone, never to
    /// where it redirects. A folder is not looked at.
    ///
    /// # Errors
    /// - [`Error::ModelName`] for a name or revision that cannot be one.
    /// - [`Error::NotInCache`] if offline and not there.
    /// - [`Error::NoHub`] if it is not in the cache and this build lacks the feature `hub`.
    /// - [`Error::Unsupported`] for a repository without safetensors that has several GGUF files.
    /// - [`Error::Hub`] for what the hub says, [`Error::HubCommit`] if that names no commit.
    /// - [`Error::HubFile`] and [`Error::Index`] for a file that is not what it should be.
    /// - [`Error::Read`] and [`Error::Write`] for the cache.
    pub fn resolve(&self, options: &HubOptions) -> Result<FoundModel, Error> {
        self.resolve_with(options, &mut |_| {})
    }

    /// [`resolve`](Self::resolve), with a function that is called often while a file is downloaded,
    /// and never where none is.
    ///
    /// # Errors
    /// As [`resolve`](Self::resolve).
    #[cfg_attr(not(feature = "hub"), expect(unused_variables, reason = "nothing is downloaded"))]
    pub fn resolve_with(
        &self,
        options: &HubOptions,
        progress: &mut dyn FnMut(Download<'_>),
    ) -> Result<FoundModel, Error> {
        let (repo, revision, file) = match self {
            Self::Folder(path) => return Ok(FoundModel { path: path.clone(), revision: None }),
            Self::Hub { repo, revision, file } => {
                (repo, revision.as_deref().unwrap_or(DEFAULT_REVISION), file.as_deref())
            }
        };
        if !is_hub_id(repo, revision) || file.is_some_and(|file| !is_hub_file(file)) {
            let file = file.map_or(String::new(), |file| format!(":{file}"));
            return Err(Error::ModelName { found: format!("{repo}@{revision}{file}") });
        }
        let parts = file.map(parts_of).unwrap_or_default();
        let cached = cached((&options.cache, options.offline), repo, revision, &parts);
        match cached {
            Some(found) if options.offline || is_commit(revision) => Ok(found),
            None if options.offline => Err(Error::NotInCache {
                repo: repo.clone(),
                revision: revision.to_owned(),
                cache: repo_folder(&options.cache, repo),
            }),
            #[cfg(not(feature = "hub"))]
            Some(found) => {
                let commit = found.revision.as_deref();
                tracing::warn!(repo, revision, commit, "this build cannot ask the hub: taking what the cache has");
                Ok(found)
            }
            #[cfg(not(feature = "hub"))]
            None => Err(Error::NoHub { repo: repo.clone() }),
            #[cfg(feature = "hub")]
            cached => fetch::fetch((repo, revision, &parts), options, cached, progress, &std::thread::sleep),
        }
    }
}

/// Whether a revision is a whole commit, 40 hexadecimal digits. Only that is certain to mean the
/// same files tomorrow.
fn is_commit(revision: &str) -> bool {
    revision.len() == 40 && revision.bytes().all(|b| b.is_ascii_hexdigit())
}

/// The folder of a repository in the cache.
fn repo_folder(cache: &Path, repo: &str) -> PathBuf {
    cache.join(format!("models--{}", repo.replace('/', "--")))
}

/// `ORG/NAME` of a snapshot's folder in the cache, for a model's name; `None` for a folder
/// elsewhere. Only the path's last three parts are looked at.
pub(crate) fn repo_of_snapshot(path: &Path) -> Option<String> {
    let name = |path: &Path| Some(path.file_name()?.to_str()?.to_owned());
    let snapshots = path.parent()?;
    let repo = name(snapshots.parent()?)?;
    let (org, model) = repo.strip_prefix("models--")?.split_once("--")?;
    (name(snapshots)? == "snapshots" && is_commit(&name(path)?)).then(|| format!("{org}/{model}"))
}

/// The snapshot of a revision, if the cache has all of the files that a model needs: the parts of a GGUF file
/// where they are named; else `config.json`, `tokenizer.json` and the weights, or offline a GGUF file alone. A download that broke off left less, and is no snapshot yet. A
/// revision without a file in `refs` may be a commit itself.
fn cached((cache, is_offline): (&Path, bool), repo: &str, revision: &str, parts: &[String]) -> Option<FoundModel> {
    let folder = repo_folder(cache, repo);
    let commit = match fs::read_to_string(folder.join("refs").join(revision)) {
        Ok(commit) => commit.trim().to_owned(),
        Err(_) => revision.to_owned(),
    };
    let path = folder.join("snapshots").join(&commit);
    let has = |name: &str| path.join(name).is_file();
    let whole = match parts {
        [] if has(file::CONFIG) && has(file::TOKENIZER) => has_weights(&path) || has_gguf(&path),
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
    path.join(file::WEIGHTS).is_file()
        || shards(&path.join(file::WEIGHTS_INDEX))
            .is_ok_and(|shards| !shards.is_empty() && shards.iter().all(|s| path.join(s).is_file()))
}

/// The files that an index of shards names, each once and sorted, all inside the folder. Entries
/// that are no text are passed over; `weights/` reports them when the model is loaded.
///
/// # Errors
/// Those of reading the file, and [`Error::Index`] for a shard outside the folder.
fn shards(index: &Path) -> Result<Vec<String>, Error> {
    let json = read_json(index)?;
    let map = json.get("weight_map").and_then(Value::as_object);
    let mut shards = Vec::new();
    for (tensor, shard) in map.into_iter().flatten() {
        let Some(shard) = shard.as_str() else { continue };
        if !stays_inside(Path::new(shard)) {
            let problem = IndexProblem::OutsideFolder { tensor: tensor.clone(), shard: shard.to_owned() };
            return Err(Error::Index { path: index.to_owned(), problem });
        }
        shards.push(shard.to_owned());
    }
    shards.sort_unstable();
    shards.dedup();
    Ok(shards)
}

#[cfg(test)]
mod tests;
