//! Which files of a model are fetched into the hub's cache.
//!
//! `ModelSource::resolve_with` calls [`fetch`] where the cache alone does not answer. A [`Snapshot`] of `judge-hub` asks the hub, fetches
//! each file by its name, and compares it with what the hub states of it. Shards and adapters, which files name, stay inside the folder.
//!
//! Which files are fetched is said by the table of `folder/file.rs`, the adapter by the file that names it. Weights come
//! last, in one form: of GGUF files one, where there are no safetensors. With a GGUF file that is named, what a folder says of
//! decisions is fetched from the file's own folder.

use std::path::Path;
use std::time::Duration;

use judge_hub::cache::FoundModel;
use judge_hub::options::{Download, HubOptions};
use judge_hub::snapshot::{Asked, Snapshot};

use super::cache::{parts_of, shards};
use crate::Error;
use crate::folder::file::{Fetched, Reader};
use crate::folder::named_adapter::adapter_of;
use crate::folder::{file, read_json};

/// Fetches what the cache lacks of `repo` at `revision`, and returns the snapshot's folder and
/// commit.
///
/// `parts` are the parts of the one GGUF file that is wanted, which is fetched with the files of decisions beside it; empty
/// where none was named, and all is fetched that a model needs. `cached` is what the cache has for the revision, if it is
/// whole; [`Snapshot::ask`] says when it stands in for the hub. `progress` is called while bytes
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
    let mut snapshot = match Snapshot::ask((repo, revision), options, cached, progress, wait)? {
        Asked::Hub(snapshot) => snapshot,
        Asked::Cache(found) => return Ok(found),
    };
    if let Some(first) = parts.first() {
        let beside = first.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
        for name in wanted(&snapshot, &beside, &[Reader::Decisions, Reader::Rerankers]) {
            snapshot.get(&format!("{beside}{name}"))?;
        }
        get_adapters(&mut snapshot, &beside)?;
        for part in parts {
            snapshot.get(part)?;
        }
        let path = snapshot.path().join(first);
        return Ok(snapshot.finish(path)?);
    }
    for name in wanted(&snapshot, "", &OF_MODELS) {
        snapshot.get(name)?;
    }
    for name in named_templates(&snapshot) {
        snapshot.get(&name)?;
    }
    get_adapters(&mut snapshot, "")?;
    let has_gguf = snapshot.names().any(is_gguf);
    let mut forms = vec![(file::WEIGHTS, file::WEIGHTS_INDEX)];
    forms.extend((!has_gguf).then_some((file::PICKLE, file::PICKLE_INDEX)));
    match forms.into_iter().find(|(single, index)| snapshot.offers(single) || snapshot.offers(index)) {
        Some((single, _)) if snapshot.offers(single) => snapshot.get(single)?,
        Some((_, index)) => {
            snapshot.get(index)?;
            for shard in shards(&snapshot.path().join(index))? {
                snapshot.get(&shard)?;
            }
        }
        None => {
            for part in only_gguf(&snapshot)? {
                snapshot.get(&part)?;
            }
        }
    }
    let path = snapshot.path().to_owned();
    Ok(snapshot.finish(path)?)
}

/// Whose files are fetched with a model.
const OF_MODELS: [Reader; 5] = [Reader::Model, Reader::Adapter, Reader::Decisions, Reader::Rerankers, Reader::Others];

/// The files with fixed names, weights aside, that are fetched for these readers; `beside` is the folder of the repository
/// that has them, with its slash.
fn wanted(snapshot: &Snapshot<'_>, beside: &str, readers: &[Reader]) -> Vec<&'static str> {
    let offers = |name: &str| snapshot.offers(&format!("{beside}{name}"));
    let of_readers = file::FILES.iter().filter(|role| readers.contains(&role.reader));
    let fetched = of_readers.filter(|role| match role.fetched {
        Fetched::Always => true,
        Fetched::Without(other) => !offers(other),
        Fetched::With(other) => offers(other),
        Fetched::AsWeights | Fetched::Never => false,
    });
    fetched.map(|role| role.name).collect()
}

/// The chat templates with names of a repository where none is the default: the loader refuses them.
fn named_templates(snapshot: &Snapshot<'_>) -> Vec<String> {
    if snapshot.offers(file::DEFAULT_CHAT_TEMPLATE) || snapshot.offers(file::CHAT_TEMPLATE) {
        return Vec::new();
    }
    let folder = Path::new(file::DEFAULT_CHAT_TEMPLATE).parent();
    let is_named = |name: &&str| name.ends_with(".jinja") && !name.contains('\\') && Path::new(name).parent() == folder;
    snapshot.names().filter(is_named).map(str::to_owned).collect()
}

/// Fetches the adapters that files of decisions name, which are in the snapshot already; `beside` is the folder of the
/// repository that has these files, with its slash. What is wrong with such a file is said where it is read.
fn get_adapters(snapshot: &mut Snapshot<'_>, beside: &str) -> Result<(), Error> {
    for name in [file::DECISION, file::JEV] {
        let Ok(settings) = read_json(&snapshot.path().join(beside).join(name)) else { continue };
        let Ok(Some(adapter)) = adapter_of(name, &settings) else { continue };
        let within = |name: &str| format!("{beside}{}/{name}", adapter.name);
        snapshot.get(&within(file::ADAPTER_CONFIG))?;
        snapshot.get(&within(file::ADAPTER_WEIGHTS))?;
        if !snapshot.path().join(within(file::ADAPTER_WEIGHTS)).is_file() {
            snapshot.get(&within(file::ADAPTER_PICKLE))?;
        }
    }
    Ok(())
}

/// The parts of the GGUF file of a repository that has one, if it has any. Files that begin with `mmproj`, for
/// pictures and sounds, do not count.
///
/// # Errors
/// [`Error::Unsupported`] for several: nothing says which of them is meant.
fn only_gguf(snapshot: &Snapshot<'_>) -> Result<Vec<String>, Error> {
    let mut models: Vec<Vec<String>> = snapshot.names().filter(|name| is_gguf(name)).map(parts_of).collect();
    models.sort();
    models.dedup();
    // One that somebody has chosen already.
    if models.iter().filter(|parts| parts.iter().all(|part| snapshot.path().join(part).is_file())).count() == 1 {
        return Ok(Vec::new());
    }
    let names: Vec<&str> = models.iter().map(|parts| parts[0].as_str()).collect();
    match models.len() {
        0 | 1 => Ok(models.pop().unwrap_or_default()),
        _ => Err(Error::Unsupported {
            path: snapshot.path().to_owned(),
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
