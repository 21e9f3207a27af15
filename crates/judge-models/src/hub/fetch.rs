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
use std::time::Duration;

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

/// How long to wait before the hub is asked again that had no time (status 429) or was not up (503).
const WAITS: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(25)];

/// Fetches what the cache lacks of `repo` at `revision`, and returns the snapshot's folder and
/// commit.
///
/// `cached` is what the cache has for the revision, if it is whole. It is returned, with a warning,
/// if the hub gives no answer or has no time; a hub that refuses is an error even then, because the model may be
/// gone or the token wrong. Without it a hub that has no time is asked again after each of [`WAITS`]. `progress` is called while bytes
/// arrive, and `wait` waits.
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
    wait: &dyn Fn(Duration),
) -> Result<FoundModel, Error> {
    let failed = |error: ApiError| {
        Error::Hub {
        repo: repo.to_owned(),
        revision: revision.to_owned(),
        source: match status(&error) {
            Some(401 | 403) => format!(
                "{error}: the model is gated or private, or there is none of this name: accept its licence on its page, and set HF_TOKEN to a \
                 token that may read it"
            )
            .into(),
            _ => Box::new(error),
        },
    }
    };
    let mut builder = ApiBuilder::from_cache(Cache::new(options.cache.clone()))
        .with_retries(RETRIES)
        .with_token(options.token.clone());
    if let Some(endpoint) = &options.endpoint {
        builder = builder.with_endpoint(endpoint.clone());
    }
    let api = builder.build().map_err(failed)?;
    let at = |revision: &str| api.repo(Repo::with_revision(repo.to_owned(), RepoType::Model, revision.to_owned()));
    let asked = match &cached {
        Some(_) => at(revision).info(),
        None => patiently(|| at(revision).info(), wait),
    };
    let info = match (asked, cached) {
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
        let stated = patiently(|| api.metadata(&commit.url(name)), wait).map_err(failed)?;
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

/// The status of an answer that was none of success.
fn status(error: &ApiError) -> Option<u16> {
    match error {
        ApiError::RequestError(error) => match **error {
            ureq::Error::StatusCode(status) => Some(status),
            _ => None,
        },
        _ => None,
    }
}

/// Whether the hub gave no answer, or said that it cannot give one now: any fault of a request but
/// a status from 400 to 499, which is an answer unless it is 429.
fn is_unreachable(error: &ApiError) -> bool {
    matches!(error, ApiError::RequestError(_)) && !matches!(status(error), Some(400..=428 | 430..=499))
}

/// Asks the hub, and again after each of [`WAITS`] while it says that it has no time or is not up.
fn patiently<T>(ask: impl Fn() -> Result<T, ApiError>, wait: &dyn Fn(Duration)) -> Result<T, ApiError> {
    for pause in WAITS {
        match ask() {
            Err(error) if matches!(status(&error), Some(429 | 503)) => {
                tracing::warn!(%error, seconds = pause.as_secs(), "the hub has no time: asking again");
                wait(pause);
            }
            answer => return answer,
        }
    }
    ask()
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
