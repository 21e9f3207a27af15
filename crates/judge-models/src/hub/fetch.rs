//! Which files of a model are fetched into the hub's cache.
//!
//! `ModelSource::resolve_with` calls [`fetch`] where the cache alone does not answer. A [`Snapshot`] of `judge-hub` asks the hub, fetches
//! each file by its name, and compares it with what the hub states of it. Shards and adapters, which files name, stay inside the folder.
//!
//! Which files are fetched is said by the table of `folder/file.rs`, the adapter by the file that names it. Weights come
//! last, in one form: of GGUF files one, where there are no safetensors. With a GGUF file that is named, all but weights is
//! fetched from the file's own folder, so that what is read does not depend on what was fetched before.

use std::path::Path;
use std::time::Duration;

use judge_hub::cache::{FoundModel, is_commit};
use judge_hub::error::HubError;
use judge_hub::options::{Download, HubOptions};
use judge_hub::snapshot::{Asked, Snapshot};

use super::cache::{Cached, OTHER_GGUF, beside, looked_for, parts_of, shards, wanted};
use crate::folder::{file, is_gguf_model};
use crate::{Error, WeightsError};

/// Fetches what the cache lacks of `repo` at `revision`, and returns the snapshot's folder and
/// commit.
///
/// `parts` are the parts of the one GGUF file that is wanted, which is fetched with the files beside it that are no weights; empty
/// where none was named, and all is fetched that a model needs. `cached` is what the cache has for the revision;
/// [`Snapshot::ask`] says when it stands in for the hub. `progress` is called while bytes
/// arrive, and `wait` waits.
///
/// That a model is not whole is no error here: the loader of the folder says what is
/// missing.
///
/// # Errors
/// Those of [`ModelSource::resolve`](super::ModelSource::resolve), without the ones for names and
/// for offline mode.
pub(super) fn fetch(
    wanted: (&str, &str, &[String]),
    options: &HubOptions,
    cached: Option<Cached>,
    progress: &mut dyn FnMut(Download<'_>),
    wait: &dyn Fn(Duration),
) -> Result<FoundModel, Error> {
    let (repo, revision, _) = wanted;
    let found = cached.as_ref().map(|cached| cached.found.clone());
    match (fetched(wanted, options, found, progress, wait), cached) {
        (Ok((_, true)), Some(cached)) => Ok(cached.taken(repo)),
        (Ok((found, _)), _) => Ok(found),
        // A commit does not change: what the cache has of it is no older than what the hub has.
        (Err(error @ Error::Hub(_)), Some(cached)) if is_commit(revision) => {
            tracing::warn!(repo, revision, %error, "the hub does not give the files: taking what the cache has");
            Ok(cached.taken(repo))
        }
        (Err(error), _) => Err(error),
    }
}

/// What [`fetch`] gets of the hub, and whether it is what the cache has.
fn fetched(
    (repo, revision, parts): (&str, &str, &[String]),
    options: &HubOptions,
    cached: Option<FoundModel>,
    progress: &mut dyn FnMut(Download<'_>),
    wait: &dyn Fn(Duration),
) -> Result<(FoundModel, bool), Error> {
    let mut snapshot = match Snapshot::ask((repo, revision), options, cached, progress, wait)? {
        Asked::Hub(snapshot) => snapshot,
        Asked::Cache(found) => return Ok((found, true)),
    };
    let lacks = |snapshot: &Snapshot<'_>, wanted: &str| {
        let offered = snapshot.names().map(str::to_owned).collect();
        Error::Hub(HubError::NoFile { repo: repo.to_owned(), wanted: wanted.to_owned(), offered })
    };
    if let Some(part) = parts.iter().find(|part| !snapshot.offers(part)) {
        return Err(lacks(&snapshot, part));
    }
    let (at, beside) = (snapshot.path().to_owned(), beside(parts));
    // Twice, because files that the first time brings name adapters.
    for _ in 0..2 {
        for name in wanted(&at, &beside, |name| snapshot.offers(name)) {
            snapshot.get(&name)?;
        }
    }
    for name in named_templates(&snapshot, &beside) {
        snapshot.get(&name)?;
    }
    let weights = if parts.is_empty() { weights(&mut snapshot)? } else { parts.to_vec() };
    for part in &weights {
        snapshot.get(part)?;
    }
    let path = parts.first().map_or_else(|| at.clone(), |part| at.join(part));
    if !path.exists() {
        return Err(lacks(&snapshot, "file of a model, such as config.json or a .gguf file"));
    }
    let looked_for = looked_for(&at, &beside).into_iter().map(|(folder, name, _)| format!("{folder}{name}"));
    let is_only_gguf = parts.is_empty() && weights.first().is_some_and(|name| is_gguf_model(name));
    let other = is_only_gguf.then(|| OTHER_GGUF.to_owned());
    Ok((snapshot.finish(path, looked_for.chain(other))?, false))
}

/// The files of a repository's weights, in one form. An index of shards is fetched, to know them.
///
/// # Errors
/// Those of fetching and reading an index, and of [`only_gguf`].
fn weights(snapshot: &mut Snapshot<'_>) -> Result<Vec<String>, Error> {
    let has_gguf = snapshot.names().any(is_gguf_model);
    let mut forms = vec![(file::WEIGHTS, file::WEIGHTS_INDEX)];
    forms.extend((!has_gguf).then_some((file::PICKLE, file::PICKLE_INDEX)));
    match forms.into_iter().find(|(single, index)| snapshot.offers(single) || snapshot.offers(index)) {
        Some((single, _)) if snapshot.offers(single) => Ok(vec![single.to_owned()]),
        Some((_, index)) => {
            snapshot.get(index)?;
            shards(&snapshot.path().join(index))
        }
        None => only_gguf(snapshot),
    }
}

/// The chat templates with names of a folder, `beside`, that has none which is the default: the loader refuses them.
fn named_templates(snapshot: &Snapshot<'_>, beside: &str) -> Vec<String> {
    let [default, only] = [file::DEFAULT_CHAT_TEMPLATE, file::CHAT_TEMPLATE].map(|name| format!("{beside}{name}"));
    if snapshot.offers(&default) || snapshot.offers(&only) {
        return Vec::new();
    }
    let folder = Path::new(&default).parent();
    let is_named = |name: &&str| name.ends_with(".jinja") && !name.contains('\\') && Path::new(name).parent() == folder;
    snapshot.names().filter(is_named).map(str::to_owned).collect()
}

/// The parts of the GGUF file of a repository that has one, if it has any. Files that begin with `mmproj`, for
/// pictures and sounds, do not count.
///
/// # Errors
/// `WeightsError::Unsupported` for several: nothing says which of them is meant.
fn only_gguf(snapshot: &Snapshot<'_>) -> Result<Vec<String>, Error> {
    let mut models: Vec<Vec<String>> = snapshot.names().filter(|name| is_gguf_model(name)).map(parts_of).collect();
    models.sort();
    models.dedup();
    let names: Vec<&str> = models.iter().map(|parts| parts[0].as_str()).collect();
    match models.len() {
        0 | 1 => Ok(models.pop().unwrap_or_default()),
        _ => {
            let supported = "one .gguf file in a repository: name the one that you want, as ORG/NAME:FILE";
            Err(WeightsError::unsupported(snapshot.path(), "weights", names.join(", "), supported).into())
        }
    }
}
