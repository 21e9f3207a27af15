//! Finding a model: a folder, or a hub id by way of the hub's cache.
//!
//! `Model::open` parses a name into a [`ModelSource`] and resolves it into a folder on this
//! machine, which it then loads like any other. This file knows names, and when the cache will do; `hub/cache.rs` knows which snapshot
//! of the cache is whole, `hub/fetch.rs` which files are fetched (with the feature `hub` only). The cache's layout and the hub itself
//! are in the crate `judge-hub`; what a folder must hold to be loaded is `folder.rs`'s business.
//!
//! What [`ModelSource::resolve`] does with a hub id; the first row that fits counts:
//!
//! | revision | in the cache | offline | result |
//! |---|---|---|---|
//! | a commit | whole | either | the cache's folder, no connection |
//! | any | whole, or enough to load | yes | the cache's folder, no connection; a warning unless it is whole |
//! | any | less | yes | [`Error::NotInCache`] |
//! | any other | less | no, built without the feature `hub` | [`Error::NoHub`] |
//! | any other | enough | no, but the hub gives no answer, or there is no feature `hub` | the cache's folder, with a warning |
//! | a commit | enough | no, but the hub refuses | the same |
//! | any other | any | no | the hub is asked; what is missing is fetched |
//!
//! Whole is a model of which every file that would be read is there or known not to exist (`.no_exist`): another program may
//! have fetched a part of it.
//!
//! Invariants: repository and revision are checked ([`is_hub_id`]) before they become parts of a
//! path or an address, and so are names that an index of shards gives ([`cache::shards`]). A folder is
//! taken from the cache only if it can be loaded ([`cached`]).

mod cache;
#[cfg(feature = "hub")]
mod fetch;

use std::path::{Path, PathBuf};
use std::str::FromStr;

use judge_hub::cache::{FoundModel, is_commit, is_hub_id, repo_folder};
use judge_hub::options::{Download, HubOptions};

use crate::error::Error;
use crate::folder::{is_gguf, stays_inside};
use cache::{cached, parts_of};

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

/// Whether a name can be that of a GGUF file of a repository: it ends with `.gguf`, and every part of it is a
/// name.
fn is_hub_file(file: &str) -> bool {
    is_gguf(Path::new(file)) && !file.contains('\\') && stays_inside(Path::new(file))
}

impl ModelSource {
    /// The folder on this machine, or the GGUF file.
    ///
    /// A hub model that is whole in the cache is taken from there without a connection if its revision is
    /// a commit or if [`HubOptions::offline`] is set. Otherwise the hub is asked what the revision
    /// is today, and what is not in the cache is fetched into it. If the hub cannot be reached, or
    /// this build lacks the feature `hub`, what the cache has for the revision is taken, with a
    /// warning. A warning also names the files of which the cache does not say whether the repository has them.
    ///
    /// Downloads are resumed where they broke off and tried again a few times; so is a question to a hub that has no time (status 429),
    /// is not up (500, 502 to 504) or breaks off, unless the cache can stand in. How long to wait is what the hub asks for
    /// (`Retry-After`, `RateLimit`), up to five minutes. Downloads are compared with the size that the hub states, and with the SHA-256 of files that it stores apart (the
    /// weights); [`resolve_with`](Self::resolve_with) shows how far they are. The token is sent to the endpoint alone, never to
    /// where it redirects. A folder is not looked at.
    ///
    /// # Errors
    /// - [`Error::ModelName`] for a name or revision that cannot be one.
    /// - [`Error::NotInCache`] if offline and not there.
    /// - [`Error::NoHub`] if it is not in the cache and this build lacks the feature `hub`.
    /// - [`WeightsError::Unsupported`](crate::WeightsError::Unsupported) for a repository without safetensors that has several GGUF files.
    /// - [`Error::Hub`] for what the hub says, for a repository without the file or without a model, and for a file that is not what
    ///   the hub says it is.
    /// - [`WeightsError::Index`](crate::WeightsError::Index) for an index of shards that names a file outside the folder.
    /// - [`WeightsError::Read`](crate::WeightsError::Read) and [`Error::Write`] for the cache.
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
        let (repo, revision, parts) = match self {
            Self::Folder(path) => return Ok(FoundModel { path: path.clone(), revision: None }),
            Self::Hub { repo, revision, file } => named(repo, revision.as_deref(), file.as_deref())?,
        };
        match cached(&options.cache, repo, revision, &parts) {
            Some(cached) if options.offline || is_commit(revision) && cached.unknown.is_empty() => {
                Ok(cached.taken(repo))
            }
            None if options.offline => Err(Error::NotInCache {
                repo: repo.to_owned(),
                revision: revision.to_owned(),
                cache: repo_folder(&options.cache, repo),
            }),
            #[cfg(not(feature = "hub"))]
            Some(cached) => {
                let commit = cached.found.revision.as_deref();
                tracing::warn!(repo, revision, commit, "this build cannot ask the hub: taking what the cache has");
                Ok(cached.taken(repo))
            }
            #[cfg(not(feature = "hub"))]
            None => Err(Error::NoHub { repo: repo.to_owned() }),
            #[cfg(feature = "hub")]
            cached => fetch::fetch((repo, revision, &parts), options, cached, progress, &std::thread::sleep),
        }
    }

    /// Where the hub's cache has a model of the hub, without a connection and without a warning. `None` for a folder, and for a model
    /// that is not there or cannot be loaded.
    #[must_use]
    pub fn in_cache(&self, options: &HubOptions) -> Option<FoundModel> {
        let Self::Hub { repo, revision, file } = self else { return None };
        let (repo, revision, parts) = named(repo, revision.as_deref(), file.as_deref()).ok()?;
        cached(&options.cache, repo, revision, &parts).map(|cached| cached.found)
    }

    /// Where the hub's cache has an adapter by this name, whose folder can be named in its place; `None` for anything else.
    #[must_use]
    pub fn adapter_in_cache(&self, options: &HubOptions) -> Option<FoundModel> {
        let Self::Hub { repo, revision, file: None } = self else { return None };
        let (repo, revision, _) = named(repo, revision.as_deref(), None).ok()?;
        cache::adapter(&options.cache, repo, revision)
    }
}

/// A repository, its revision, and the parts of the GGUF file that is named of it.
///
/// # Errors
/// [`Error::ModelName`] for what cannot be one.
fn named<'a>(
    repo: &'a str,
    revision: Option<&'a str>,
    file: Option<&str>,
) -> Result<(&'a str, &'a str, Vec<String>), Error> {
    let revision = revision.unwrap_or(DEFAULT_REVISION);
    if !is_hub_id(repo, revision) || file.is_some_and(|file| !is_hub_file(file)) {
        let file = file.map_or(String::new(), |file| format!(":{file}"));
        return Err(Error::ModelName { found: format!("{repo}@{revision}{file}") });
    }
    Ok((repo, revision, file.map(parts_of).unwrap_or_default()))
}

#[cfg(test)]
mod tests;
