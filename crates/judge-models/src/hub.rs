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
//! | branch or tag | whole | yes | the cache's folder, no connection |
//! | any | not, or in part | yes | [`Error::NotInCache`] |
//! | any other | either | no, built without the feature `hub` | [`Error::NoHub`] |
//! | any other | whole | no, but the hub gives no answer | the cache's folder, with a warning |
//! | any other | either | no | the hub is asked; what is missing is fetched |
//!
//! Invariants: repository and revision are checked ([`is_hub_id`]) before they become parts of a
//! path or an address, and so are names that an index of shards gives ([`cache::shards`]). A folder is
//! taken from the cache only if it is whole ([`cached`]).

mod cache;
#[cfg(feature = "hub")]
mod fetch;

use std::path::{Path, PathBuf};
use std::str::FromStr;

use judge_hub::cache::{FoundModel, is_commit, is_hub_id, repo_folder};
use judge_hub::options::{Download, HubOptions};

use crate::error::Error;
use crate::folder::stays_inside;
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
    file.ends_with(".gguf") && !file.contains('\\') && stays_inside(Path::new(file))
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
    /// - [`Error::Hub`] for what the hub says, and for a file that is not what the hub says it is.
    /// - [`WeightsError::Index`](crate::WeightsError::Index) for an index of shards that names a file outside the folder.
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

#[cfg(test)]
mod tests;
