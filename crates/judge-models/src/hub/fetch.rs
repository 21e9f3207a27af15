//! Downloads into the cache, each file compared with what the hub states of it.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use hf_hub::api::Progress;
use hf_hub::api::sync::{ApiBuilder, ApiError, Metadata};
use hf_hub::{Cache, Repo, RepoType};
use sha2::{Digest, Sha256};

use super::{Download, FoundModel, HubOptions, is_commit, repo_folder, shards};
use crate::folder::{file, stays_inside};
use crate::{Error, HubFileProblem};

/// How often a download that breaks off is taken up again.
const RETRIES: usize = 5;

/// Fetches what is missing, or takes `cached` if the hub cannot be reached.
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
            // The link, and the file that it leads to.
            for path in [fs::canonicalize(&path), Ok(path)] {
                let path = path.map_err(|source| Error::Read { path: folder.clone(), source })?;
                fs::remove_file(&path).map_err(|source| Error::Write { path, source })?;
            }
            return Err(fault(problem));
        }
        Ok(())
    };
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
    }
    let reference = folder.join("refs").join(revision);
    let write = |source| Error::Write { path: reference.clone(), source };
    if let Some(parent) = reference.parent() {
        fs::create_dir_all(parent).map_err(write)?;
    }
    fs::write(&reference, &info.sha).map_err(write)?;
    Ok(FoundModel { path, revision: Some(info.sha) })
}

/// Whether the hub gave no answer, or said that it cannot give one now.
fn is_unreachable(error: &ApiError) -> bool {
    matches!(error, ApiError::RequestError(error) if !matches!(**error, ureq::Error::StatusCode(400..=499)))
}

/// The names that the hub gives to contents become names of files in the cache.
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

/// How a downloaded file differs from what the hub states.
fn problem(path: &Path, stated: &Metadata) -> Result<Option<HubFileProblem>, Error> {
    let read = |source| Error::Read { path: path.to_owned(), source };
    let mut content = File::open(path).map_err(read)?;
    let (found, expected) = (content.metadata().map_err(read)?.len(), stated.size() as u64);
    if found != expected {
        return Ok(Some(HubFileProblem::Size { expected, found }));
    }
    // Of files that are stored apart the hub gives the SHA-256 as their name; others have a shorter one.
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

/// Counts what arrives of one file.
struct Told<'a> {
    download: Download<'a>,
    progress: &'a mut dyn FnMut(Download<'_>),
}

impl Progress for Told<'_> {
    /// Also called where a download is taken up again; what is there already comes as the first update.
    fn init(&mut self, size: usize, _file: &str) {
        self.download = Download { done: 0, size: size as u64, ..self.download };
    }

    fn update(&mut self, bytes: usize) {
        self.download.done += bytes as u64;
        (self.progress)(self.download);
    }

    fn finish(&mut self) {}
}
