//! Downloads into the cache, each file compared with what the hub states of it.
//!
//! `ModelSource::resolve_with` calls [`fetch`] where the cache alone does not answer. `client` sends the requests, `store`
//! writes a file into the cache. This file decides which files are fetched, what a failure means, and which names are trusted.
//!
//! ```text
//! ask the hub for the revision ──► a commit and the list of its files        no answer ──► the cache's folder, if whole
//! for each file that a model needs, is offered, and is not in the snapshot:
//!     ask what the hub states  ──► check_names    the commit, and the name its content is stored by
//!     store                    ──► size, and SHA-256 where the hub gives one; a bad file is deleted
//! write refs/REVISION last, so that a branch never leads to a commit whose files did not all arrive
//! ```
//!
//! Nothing that the hub sends becomes a path unchecked: the commit must be one, contents must have
//! plain names, and shards and adapters stay inside the folder. A file that is in the snapshot is not compared
//! again.
//!
//! Which files are fetched is said by the table of `folder/file.rs`, the adapter by the file that names it. Weights come
//! last, in one form: of GGUF files one, where there are no safetensors. With a GGUF file that is named, what a folder says of
//! decisions is fetched from the file's own folder.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::cache::{FoundModel, is_commit, parts_of, repo_folder, shards};
use super::client::{Client, HubProblem, RepoInfo, Stated, patiently};
use super::options::{Download, HubOptions};
use super::store::{Place, store};
use crate::folder::file::{Fetched, Reader};
use crate::folder::named_adapter::adapter_of;
use crate::folder::{file, read_json, stays_inside};
use crate::{Error, HubFileProblem};

/// Fetches what the cache lacks of `repo` at `revision`, and returns the snapshot's folder and
/// commit.
///
/// `parts` are the parts of the one GGUF file that is wanted, which is fetched with the files of decisions beside it; empty
/// where none was named, and all is fetched that a model needs. `cached` is what the cache has for the revision, if it is
/// whole. It is returned, with a warning, if the hub gives no answer or has no time; a hub that refuses is an error even then, because the model may be
/// gone or the token wrong. Without it a hub that has no time is asked again, as [`patiently`] does. `progress` is called while bytes
/// arrive, and `wait` waits.
///
/// A file that the hub does not offer is no error here: the loader of the folder says what is
/// missing.
///
/// # Errors
/// Those of [`ModelSource::resolve`](super::ModelSource::resolve), without the ones for names and
/// for offline mode.
pub(super) fn fetch(
    (repo, revision, parts): (&str, &str, &[String]),
    options: &HubOptions,
    cached: Option<FoundModel>,
    progress: &mut dyn FnMut(Download<'_>),
    wait: &dyn Fn(Duration),
) -> Result<FoundModel, Error> {
    let folder = repo_folder(&options.cache, repo);
    let failed = |problem| match problem {
        HubProblem::Write(source) => Error::Write { path: folder.join("blobs"), source },
        problem => Error::Hub { repo: repo.to_owned(), revision: revision.to_owned(), source: Box::new(problem) },
    };
    let client = Client::new(repo, options).map_err(failed)?;
    let asked = match &cached {
        Some(_) => client.info(revision),
        None => patiently(|| client.info(revision), HubProblem::is_busy, wait),
    };
    let info = match (asked, cached) {
        (Ok(info), _) => info,
        (Err(error), Some(found)) if error.is_unreachable() => {
            let commit = found.revision.as_deref();
            tracing::warn!(repo, revision, commit, %error, "the hub cannot be reached: taking what the cache has");
            return Ok(found);
        }
        (Err(error), _) => return Err(failed(error)),
    };
    if !is_commit(&info.sha) {
        return Err(Error::HubCommit { repo: repo.to_owned(), found: info.sha });
    }

    let path = folder.join("snapshots").join(&info.sha);
    let offers = |name: &str| info.siblings.iter().any(|sibling| sibling.rfilename == name);
    // Fetches a file into the snapshot, unless it is there or the hub does not have it.
    let mut get = |name: &str| -> Result<(), Error> {
        if !offers(name) || path.join(name).is_file() {
            return Ok(());
        }
        let fault = |problem| Error::HubFile { repo: repo.to_owned(), file: name.to_owned(), problem };
        let stated = patiently(|| client.stated(&info.sha, name), HubProblem::is_busy, wait).map_err(failed)?;
        check_names(&stated, &info.sha).map_err(fault)?;
        tracing::info!(repo, revision = info.sha, file = name, bytes = stated.size, "downloading");
        let mut told = |done| progress(Download { file: name, done, size: stated.size });
        let download = &mut |partial: &mut File| {
            client.download((&info.sha, name), stated.size, partial, &mut told, wait).map_err(failed)
        };
        let place = Place { cache: &options.cache, repo: &folder, commit: &info.sha, name };
        store(&place, &stated, download)?.map_or(Ok(()), |problem| Err(fault(problem)))
    };
    if let Some(first) = parts.first() {
        let beside = first.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
        for name in wanted(&|name| offers(&format!("{beside}{name}")), &[Reader::Decisions]) {
            get(&format!("{beside}{name}"))?;
        }
        get_adapters(&path, &beside, &mut get)?;
        parts.iter().try_for_each(|part| get(part))?;
        return found_at(&folder, revision, &info.sha, path.join(first));
    }
    for name in wanted(&offers, &[Reader::Model, Reader::Adapter, Reader::Decisions, Reader::Others]) {
        get(name)?;
    }
    get_adapters(&path, "", &mut get)?;
    let has_gguf = info.siblings.iter().any(|sibling| is_gguf(&sibling.rfilename));
    let mut forms = vec![(file::WEIGHTS, file::WEIGHTS_INDEX)];
    forms.extend((!has_gguf).then_some((file::PICKLE, file::PICKLE_INDEX)));
    match forms.into_iter().find(|(single, index)| offers(single) || offers(index)) {
        Some((single, _)) if offers(single) => get(single)?,
        Some((_, index)) => {
            get(index)?;
            for shard in shards(&path.join(index))? {
                get(&shard)?;
            }
        }
        None => only_gguf(&info, &path)?.iter().try_for_each(|part| get(part))?,
    }
    found_at(&folder, revision, &info.sha, path)
}

/// The files with fixed names, weights aside, that are fetched for these readers of a repository.
fn wanted(offers: &dyn Fn(&str) -> bool, readers: &[Reader]) -> impl Iterator<Item = &'static str> {
    let of_readers = file::FILES.iter().filter(|role| readers.contains(&role.reader));
    of_readers
        .map(|role| (role.name, role.fetched))
        .filter(|(_, fetched)| match fetched {
            Fetched::Always => true,
            Fetched::Without(other) => !offers(other),
            Fetched::With(other) => offers(other),
            Fetched::AsWeights | Fetched::Never => false,
        })
        .map(|(name, _)| name)
}

/// Fetches the adapters that files of decisions name, which are in the snapshot already; `beside` is the folder of the
/// repository that has these files, with its slash. What is wrong with such a file is said where it is read.
fn get_adapters(snapshot: &Path, beside: &str, get: &mut dyn FnMut(&str) -> Result<(), Error>) -> Result<(), Error> {
    for name in [file::DECISION, file::JEV] {
        let Ok(settings) = read_json(&snapshot.join(beside).join(name)) else { continue };
        let Ok(Some(adapter)) = adapter_of(name, &settings) else { continue };
        let within = |name: &str| format!("{beside}{}/{name}", adapter.name);
        get(&within(file::ADAPTER_CONFIG))?;
        get(&within(file::ADAPTER_WEIGHTS))?;
        if !snapshot.join(within(file::ADAPTER_WEIGHTS)).is_file() {
            get(&within(file::ADAPTER_PICKLE))?;
        }
    }
    Ok(())
}

/// Says in the cache what a revision is, now that all files are there.
fn found_at(folder: &Path, revision: &str, commit: &str, path: PathBuf) -> Result<FoundModel, Error> {
    let reference = folder.join("refs").join(revision);
    let write = |source| Error::Write { path: reference.clone(), source };
    if let Some(parent) = reference.parent() {
        fs::create_dir_all(parent).map_err(write)?;
    }
    fs::write(&reference, commit).map_err(write)?;
    Ok(FoundModel { path, revision: Some(commit.to_owned()) })
}

/// The parts of the GGUF file of a repository that has one, if it has any. Files that begin with `mmproj`, for
/// pictures and sounds, do not count.
///
/// # Errors
/// [`Error::Unsupported`] for several: nothing says which of them is meant.
fn only_gguf(info: &RepoInfo, snapshot: &Path) -> Result<Vec<String>, Error> {
    let names = info.siblings.iter().map(|sibling| sibling.rfilename.as_str());
    let mut models: Vec<Vec<String>> = names.filter(|name| is_gguf(name)).map(parts_of).collect();
    models.sort();
    models.dedup();
    // One that somebody has chosen already.
    if models.iter().filter(|parts| parts.iter().all(|part| snapshot.join(part).is_file())).count() == 1 {
        return Ok(Vec::new());
    }
    let names: Vec<&str> = models.iter().map(|parts| parts[0].as_str()).collect();
    match models.len() {
        0 | 1 => Ok(models.pop().unwrap_or_default()),
        _ => Err(Error::Unsupported {
            path: snapshot.to_owned(),
            field: "weights".to_owned(),
            found: names.join(", "),
            supported: "one .gguf file in a repository: name the one that you want, as ORG/NAME:FILE",
        }),
    }
}

/// Whether a file is one of a model, by its name.
fn is_gguf(name: &str) -> bool {
    name.ends_with(".gguf") && !name.contains(['/', '\\']) && !name.starts_with("mmproj")
}

/// Checks the names that the hub gives, before they are used: the file must be of the commit that
/// was asked for, and the name of its content, which becomes the name of a file in the cache, must
/// be a single plain one.
fn check_names(stated: &Stated, commit: &str) -> Result<(), HubFileProblem> {
    if stated.commit != commit {
        let found = stated.commit.clone();
        return Err(HubFileProblem::Commit { expected: commit.to_owned(), found });
    }
    let etag = Path::new(&stated.etag);
    if !stays_inside(etag) || etag.components().count() != 1 {
        return Err(HubFileProblem::Name { etag: stated.etag.clone() });
    }
    Ok(())
}
