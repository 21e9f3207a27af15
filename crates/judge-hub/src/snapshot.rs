//! A revision of a repository: which files the hub offers of it, and those that are fetched into the cache.
//!
//! `client` sends the requests, `store` writes a file into the cache. This file decides what a failure means, and which names are
//! trusted; which files are fetched is decided by whoever asks.
//!
//! ```text
//! Snapshot::ask      a commit and the list of its files; no answer ──► what the cache has, if it is given
//! Snapshot::get      for a file that is offered and is not in the snapshot:
//!     ask what the hub states  ──► check_names    the commit, and the name its content is stored by
//!     store                    ──► size, and SHA-256 where the hub gives one; a bad file is deleted
//! Snapshot::finish   write refs/REVISION, so that a branch never leads to a commit whose files did not all arrive, and .no_exist
//! ```
//!
//! Nothing that the hub sends becomes a path unchecked: the commit must be one, and contents must have plain names. Names of files
//! are checked by whoever asks for them, revisions and repositories by [`is_hub_id`](crate::cache::is_hub_id). A file that is in
//! the snapshot is not compared again.

use std::fs::{self, File};
use std::path::{Component, Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::cache::{FoundModel, absent_folder, is_commit, repo_folder};
use crate::client::{Client, HubProblem, RepoInfo, Stated, patiently};
use crate::error::{HubError, HubFileProblem};
use crate::options::{Download, HubOptions};
use crate::store::{Place, make_parent, store, write};

/// What asking the hub for a revision brought.
pub enum Asked<'a> {
    /// The hub's answer.
    Hub(Box<Snapshot<'a>>),
    /// No answer, so what the cache has.
    Cache(FoundModel),
}

/// A revision of a repository, as the hub has it today.
pub struct Snapshot<'a> {
    client: Client,
    info: RepoInfo,
    /// `ORG/NAME`.
    repo: &'a str,
    /// Branch, tag or commit.
    revision: &'a str,
    cache: &'a Path,
    /// The repository's folder in the cache.
    folder: PathBuf,
    /// The commit's folder in it.
    path: PathBuf,
    /// Whether a file was fetched.
    has_fetched: bool,
    progress: &'a mut dyn FnMut(Download<'_>),
    wait: &'a dyn Fn(Duration),
}

impl<'a> Snapshot<'a> {
    /// Asks the hub what a revision of a repository is.
    ///
    /// `cached` is what the cache has for the revision, if that will do. It is returned, with a warning, if the hub gives no
    /// answer or has no time; a hub that refuses is an error even then, because the model may be gone or the token wrong. Without it
    /// a hub that has no time, or breaks off, is asked again, a few times. `progress` is called while bytes arrive, and `wait` waits.
    ///
    /// # Errors
    /// [`HubError::Refused`], and [`HubError::Commit`] for an answer that names none.
    pub fn ask(
        (repo, revision): (&'a str, &'a str),
        options: &'a HubOptions,
        cached: Option<FoundModel>,
        progress: &'a mut dyn FnMut(Download<'_>),
        wait: &'a dyn Fn(Duration),
    ) -> Result<Asked<'a>, HubError> {
        let folder = repo_folder(&options.cache, repo);
        let failed = |problem| failed(problem, repo, revision, &folder);
        let client = Client::new(repo, options).map_err(failed)?;
        let asked = match &cached {
            Some(_) => client.info(revision),
            None => patiently(|| client.info(revision), HubProblem::may_pass, wait),
        };
        let info = match (asked, cached) {
            (Ok(info), _) => info,
            (Err(error), Some(found)) if error.is_unreachable() => {
                let commit = found.revision.as_deref();
                tracing::warn!(repo, revision, commit, %error, "the hub cannot be reached: taking what the cache has");
                return Ok(Asked::Cache(found));
            }
            (Err(error), _) => return Err(failed(error)),
        };
        if !is_commit(&info.sha) {
            return Err(HubError::Commit { repo: repo.to_owned(), found: info.sha });
        }
        let path = folder.join("snapshots").join(&info.sha);
        let cache = &options.cache;
        let snapshot = Self { client, info, repo, revision, cache, folder, path, has_fetched: false, progress, wait };
        Ok(Asked::Hub(Box::new(snapshot)))
    }

    /// The commit's folder in the cache, which need not be there yet.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The names of all files that the hub has.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.info.siblings.iter().map(|sibling| sibling.rfilename.as_str())
    }

    /// Whether the hub has a file.
    #[must_use]
    pub fn offers(&self, name: &str) -> bool {
        self.names().any(|offered| offered == name)
    }

    /// Fetches a file into the snapshot, unless it is there or the hub does not have it. The name must be one inside a folder.
    ///
    /// # Errors
    /// [`HubError`].
    pub fn get(&mut self, name: &str) -> Result<(), HubError> {
        if !self.offers(name) || self.path.join(name).is_file() {
            return Ok(());
        }
        self.has_fetched = true;
        let Self { client, info, repo, revision, cache, folder, progress, wait, .. } = self;
        let fault = |problem| HubError::File { repo: (*repo).to_owned(), file: name.to_owned(), problem };
        let failed = |problem| failed(problem, repo, revision, folder);
        let stated = patiently(|| client.stated(&info.sha, name), HubProblem::may_pass, wait).map_err(failed)?;
        check_names(&stated, &info.sha).map_err(fault)?;
        tracing::info!(repo, revision = info.sha, file = name, bytes = stated.size, "downloading");
        let mut told = |done| progress(Download { file: name, done, size: stated.size });
        let download = &mut |partial: &mut File| {
            client.download((&info.sha, name), stated.size, partial, &mut told, wait).map_err(failed)
        };
        let place = Place { cache, repo: folder, commit: &info.sha, name };
        store(&place, &stated, download)?.map_or(Ok(()), |problem| Err(fault(problem)))
    }

    /// Says in the cache what the revision is, now that all files are there, and which of the files in `looked_for` it does not have.
    /// `path` is what was wanted of the snapshot.
    ///
    /// # Errors
    /// [`HubError::Write`], unless nothing was fetched: such a cache may be one that cannot be written.
    pub fn finish(self, path: PathBuf, looked_for: impl IntoIterator<Item = String>) -> Result<FoundModel, HubError> {
        let none = absent_folder(&self.folder, &self.info.sha);
        let absent = looked_for.into_iter().filter(|name| !self.offers(name));
        // Without a mark the hub is asked once more, no worse.
        absent.for_each(|name| drop(write_if_new(&none.join(name), "")));
        let branch = Some(self.folder.join("refs").join(self.revision)).filter(|_| self.revision != self.info.sha);
        match branch.map_or(Ok(()), |path| write_if_new(&path, &self.info.sha)) {
            Err(error) if self.has_fetched => Err(error),
            _ => Ok(FoundModel { path, revision: Some(self.info.sha) }),
        }
    }
}

/// Writes a small file unless it says so already. Whoever reads it at that time reads all of the old one or of the new one.
fn write_if_new(path: &Path, text: &str) -> Result<(), HubError> {
    if fs::read_to_string(path).is_ok_and(|found| found == text) {
        return Ok(());
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    let partial = path.with_file_name(format!(".{name}.{}.{}", process::id(), WRITTEN.fetch_add(1, Ordering::Relaxed)));
    make_parent(path)?;
    let written = fs::write(&partial, text).and_then(|()| fs::rename(&partial, path));
    let _ = fs::remove_file(&partial); // which is not there but for an error
    match written {
        // Another process has written the same.
        Err(_) if fs::read_to_string(path).is_ok_and(|found| found == text) => Ok(()),
        written => written.map_err(write(path)),
    }
}

/// The problem of a request, with what was asked for.
fn failed(problem: HubProblem, repo: &str, revision: &str, folder: &Path) -> HubError {
    match problem {
        HubProblem::Write(source) => HubError::Write { path: folder.join("blobs"), source },
        problem => {
            HubError::Refused { repo: repo.to_owned(), revision: revision.to_owned(), source: Box::new(problem) }
        }
    }
}

/// Checks the names that the hub gives, before they are used: the file must be of the commit that
/// was asked for, and the name of its content, which becomes the name of a file in the cache, must
/// be a single plain one.
fn check_names(stated: &Stated, commit: &str) -> Result<(), HubFileProblem> {
    if stated.commit != commit {
        let found = stated.commit.clone();
        return Err(HubFileProblem::Commit { expected: commit.to_owned(), found });
    }
    let mut parts = Path::new(&stated.etag).components();
    if !matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None)) {
        return Err(HubFileProblem::Name { etag: stated.etag.clone() });
    }
    Ok(())
}
