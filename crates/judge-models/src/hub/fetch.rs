//! Downloads into the cache, each file compared with what the hub states of it.
//!
//! `ModelSource::resolve_with` calls [`fetch`] where the cache alone does not answer. The crate
//! `hf-hub` speaks the protocol, resumes partial files and lays out the cache. This file decides
//! which files are fetched, what a failure means, and what is trusted.
//!
//! ```text
//! ask the hub for the revision ──► a commit and the list of its files        no answer ──► the cache's folder, if whole
//! for each file that a model needs, is offered, and is not in the snapshot:
//!     ask for its metadata     ──► check_names    the commit, and the name its content is stored by
//!     download                 ──► problem        size, and SHA-256 where the hub gives one; a bad file is deleted
//! write refs/REVISION last, so that a branch never leads to a commit whose files did not all arrive
//! ```
//!
//! Nothing that the hub sends becomes a path unchecked: the commit must be one, contents must have
//! plain names, and shards stay inside the folder. A file that is in the snapshot is not compared
//! again. Files that a model does not need are never fetched; of GGUF files one, where there are no
//! safetensors.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use hf_hub::api::sync::{ApiBuilder, ApiError, Metadata};
use hf_hub::api::{Progress, RepoInfo};
use hf_hub::{Cache, Repo, RepoType};
use sha2::{Digest, Sha256};

use super::{Download, FoundModel, HubOptions, is_commit, repo_folder, shards};
use crate::folder::{file, stays_inside};
use crate::{Error, HubFileProblem};

/// How often a download that breaks off is resumed before it is an error. `hf-hub` waits longer
/// before each attempt.
const RETRIES: usize = 5;

/// Fetches what the cache lacks of `repo` at `revision`, and returns the snapshot's folder and
/// commit.
///
/// `cached` is what the cache has for the revision, if it is whole. It is returned, with a warning,
/// if the hub gives no answer; a hub that refuses is an error even then, because the model may be
/// gone or the token wrong. `progress` is called while bytes arrive.
///
/// A file that the hub does not offer is no error here: whoever loads the folder says what is
/// missing.
///
/// # Errors
/// Those of [`ModelSource::resolve`](super::ModelSource::resolve), without the ones for names and
/// for offline mode.
pub(super) fn fetch(
    repo: &str,
    revision: &str,
    options: &HubOptions,
    cached: Option<FoundModel>,
    progress: &mut dyn FnMut(Download<'_>),
) -> Result<FoundModel, Error> {
    let failed = |source: ApiError| Error::Hub {
        repo: repo.to_owned(),
        revision: revision.to_owned(),
        source: Box::new(source),
    };
    let mut builder = ApiBuilder::from_cache(Cache::new(options.cache.clone()))
        .with_retries(RETRIES)
        .with_token(options.token.clone());
    if let Some(endpoint) = &options.endpoint {
        builder = builder.with_endpoint(endpoint.clone());
    }
    let api = builder.build().map_err(failed)?;
    let at = |revision: &str| api.repo(Repo::with_revision(repo.to_owned(), RepoType::Model, revision.to_owned()));
    let info = match (at(revision).info(), cached) {
        (Ok(info), _) => info,
        (Err(error), Some(found)) if is_unreachable(&error) => {
            let commit = found.revision.as_deref();
            tracing::warn!(repo, revision, commit, %error, "the hub cannot be reached: taking what the cache has");
            return Ok(found);
        }
        (Err(error), _) => return Err(failed(error)),
    };
    if !is_commit(&info.sha) {
        return Err(Error::HubCommit { repo: repo.to_owned(), found: info.sha });
    }

    let (commit, folder) = (at(&info.sha), repo_folder(&options.cache, repo));
    let path = folder.join("snapshots").join(&info.sha);
    let offers = |name: &str| info.siblings.iter().any(|sibling| sibling.rfilename == name);
    // Fetches a file into the snapshot, unless it is there or the hub does not have it.
    let mut get = |name: &str| -> Result<(), Error> {
        let path = path.join(name);
        if !offers(name) || path.is_file() {
            return Ok(());
        }
        let fault = |problem| Error::HubFile { repo: repo.to_owned(), file: name.to_owned(), problem };
        let stated = api.metadata(&commit.url(name)).map_err(failed)?;
        check_names(&stated, &info.sha).map_err(fault)?;
        tracing::info!(repo, revision = info.sha, file = name, bytes = stated.size(), "downloading");
        let told = Told { download: Download { file: name, done: 0, size: 0 }, progress: &mut *progress };
        commit.download_with_progress(name, told).map_err(failed)?;
        if let Some(problem) = problem(&path, &stated)? {
            // The file that the link leads to, and the link.
            for path in [fs::canonicalize(&path), Ok(path)] {
                let path = path.map_err(|source| Error::Read { path: folder.clone(), source })?;
                fs::remove_file(&path).map_err(|source| Error::Write { path, source })?;
            }
            return Err(fault(problem));
        }
        Ok(())
    };
    // An adapter's configuration is fetched so that `Folder::open` can say that the model is one.
    for name in [file::CONFIG].into_iter().chain(file::OF_TEXT).chain([file::ADAPTER_CONFIG]) {
        get(name)?;
    }
    if offers(file::WEIGHTS) {
        get(file::WEIGHTS)?;
    } else if offers(file::WEIGHTS_INDEX) {
        get(file::WEIGHTS_INDEX)?;
        for shard in shards(&path.join(file::WEIGHTS_INDEX))? {
            get(&shard)?;
        }
    } else if let Some(name) = only_gguf(&info, &path)? {
        get(name)?;
    }
    let reference = folder.join("refs").join(revision);
    let write = |source| Error::Write { path: reference.clone(), source };
    if let Some(parent) = reference.parent() {
        fs::create_dir_all(parent).map_err(write)?;
    }
    fs::write(&reference, &info.sha).map_err(write)?;
    Ok(FoundModel { path, revision: Some(info.sha) })
}

/// The GGUF file of a repository that has one beside its configuration, if it has any.
///
/// # Errors
/// [`Error::Unsupported`] for several: nothing says which of them is meant.
fn only_gguf<'a>(info: &'a RepoInfo, snapshot: &Path) -> Result<Option<&'a str>, Error> {
    let names = info.siblings.iter().map(|sibling| sibling.rfilename.as_str());
    let names: Vec<&str> = names.filter(|name| name.ends_with(".gguf") && !name.contains(['/', '\\'])).collect();
    // One that somebody has chosen already.
    if names.iter().filter(|name| snapshot.join(name).is_file()).count() == 1 {
        return Ok(None);
    }
    match names[..] {
        [] => Ok(None),
        [name] => Ok(Some(name)),
        _ => Err(Error::Unsupported {
            path: snapshot.to_owned(),
            field: "weights".to_owned(),
            found: names.join(", "),
            supported: "one .gguf file in a repository: download the one that you want into a folder",
        }),
    }
}

/// Whether the hub gave no answer, or said that it cannot give one now: any fault of a request but
/// a status from 400 to 499, which is an answer.
fn is_unreachable(error: &ApiError) -> bool {
    matches!(error, ApiError::RequestError(error) if !matches!(**error, ureq::Error::StatusCode(400..=499)))
}

/// Checks the names that the hub gives, before they are used: the file must be of the commit that
/// was asked for, and the name of its content, which becomes the name of a file in the cache, must
/// be a single plain one.
fn check_names(stated: &Metadata, commit: &str) -> Result<(), HubFileProblem> {
    if stated.commit_hash() != commit {
        let found = stated.commit_hash().to_owned();
        return Err(HubFileProblem::Commit { expected: commit.to_owned(), found });
    }
    let etag = Path::new(stated.etag());
    if !stays_inside(etag) || etag.components().count() != 1 {
        return Err(HubFileProblem::Name { etag: stated.etag().to_owned() });
    }
    Ok(())
}

/// How a downloaded file differs from what the hub states; `None` if it does not, as far as can be
/// told. The size is always compared. The SHA-256 is, where the hub's name of the content is one.
///
/// # Errors
/// If the file cannot be read.
fn problem(path: &Path, stated: &Metadata) -> Result<Option<HubFileProblem>, Error> {
    let read = |source| Error::Read { path: path.to_owned(), source };
    let mut content = File::open(path).map_err(read)?;
    let (found, expected) = (content.metadata().map_err(read)?.len(), stated.size() as u64);
    if found != expected {
        return Ok(Some(HubFileProblem::Size { expected, found }));
    }
    // Files that are stored apart (the weights) are named by their SHA-256; others have a shorter
    // name, which is a Git hash.
    let expected = stated.etag();
    if expected.len() != 64 || !expected.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok(None);
    }
    let mut sum = Sha256::new();
    io::copy(&mut content, &mut sum).map_err(read)?;
    let found: String = sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let is_same = found.eq_ignore_ascii_case(expected);
    Ok((!is_same).then(|| HubFileProblem::Checksum { expected: expected.to_owned(), found }))
}

/// Counts what arrives of one file, and passes it on.
struct Told<'a> {
    /// How far the file is.
    download: Download<'a>,
    /// The caller's function, which is told after each piece that arrives.
    progress: &'a mut dyn FnMut(Download<'_>),
}

impl Progress for Told<'_> {
    /// Begins to count at 0. It is also called where a download is resumed; the bytes that are
    /// there already come as the first update.
    fn init(&mut self, size: usize, _file: &str) {
        self.download = Download { done: 0, size: size as u64, ..self.download };
    }

    /// Counts bytes that arrived and tells the caller.
    fn update(&mut self, bytes: usize) {
        self.download.done += bytes as u64;
        (self.progress)(self.download);
    }

    fn finish(&mut self) {}
}
