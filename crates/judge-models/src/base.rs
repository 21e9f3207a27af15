//! The base model of an adapter's folder that is given in the place of a model's.
//!
//! `model.rs` and `merge.rs` ask here first, so that an adapter is named as a model is. PEFT writes where its base was
//! (`base_model_name_or_path` of `adapter_config.json`): a folder, or `ORG/NAME` of the hub, perhaps with a `revision`.
//! Nothing is fetched: a base of the hub must be in its cache. [`BaseName`] is what adapters that are trained here say.

use std::cell::LazyCell;
use std::path::{Path, PathBuf};

#[cfg(feature = "train")]
use judge_hub::cache::repo_of_snapshot;
use judge_text::{Files, chat_template};
use serde_json::Value;

use crate::folder::{Folder, file, read_json};
use crate::hub::ModelSource;
use crate::{AdapterProblem, Error, FoundModel, HubOptions, WeightsError};

/// The field that names the base.
const BASE: &str = "base_model_name_or_path";

/// A model's folder and the adapters over it.
pub(crate) struct Based {
    /// The folder with the weights, or a GGUF file, and its revision where it is of the hub.
    pub(crate) model: FoundModel,
    /// The adapters, in the order in which they are merged.
    pub(crate) adapters: Vec<PathBuf>,
}

impl Based {
    /// What `path` is, with `adapters` over it. An adapter's folder without weights of a model stands for its base
    /// with the adapter as the first.
    ///
    /// # Errors
    /// Those of reading `adapter_config.json`, and [`AdapterProblem::NoBase`] for one that names no base, or one
    /// that is neither a folder here nor in the hub's cache.
    pub(crate) fn of(path: &Path, adapters: &[PathBuf], hub: &HubOptions) -> Result<Self, Error> {
        let has = |name: &str| path.join(name).is_file();
        let is_adapter = has(file::ADAPTER_CONFIG) && !file::OF_WEIGHTS.into_iter().any(has);
        if !is_adapter {
            let model = FoundModel { path: path.to_owned(), revision: None };
            return Ok(Self { model, adapters: adapters.to_vec() });
        }
        let config = read_json(&path.join(file::ADAPTER_CONFIG))?;
        let text = |field: &str| config.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
        let fault = |found: Option<&str>| {
            Error::Weights(WeightsError::Adapter {
                path: path.to_owned(),
                problem: AdapterProblem::NoBase { found: found.map(str::to_owned) },
            })
        };
        let name = text(BASE).ok_or_else(|| fault(None))?;
        // An absolute path stays what it is.
        let beside = path.join(name);
        let model = if beside.exists() {
            FoundModel { path: beside, revision: None }
        } else {
            let (repo, file) = name.split_once(':').map_or((name, None), |(repo, file)| (repo, Some(file)));
            let owned = |text: Option<&str>| text.map(str::to_owned);
            let source =
                ModelSource::Hub { repo: repo.to_owned(), revision: owned(text("revision")), file: owned(file) };
            source.resolve(&HubOptions { offline: true, ..hub.clone() }).map_err(|error| match error {
                Error::NotInCache { .. } | Error::ModelName { .. } => fault(Some(name)),
                other => other,
            })?
        };
        let all = [path.to_owned()].into_iter().chain(adapters.iter().cloned());
        Ok(Self { model, adapters: all.collect() })
    }

    /// The folder that has the files by these names: that of the last adapter with any of them, else the model's own, or that of a
    /// GGUF file.
    pub(crate) fn home(&self, names: &[&str]) -> PathBuf {
        let model = self.model.path.as_path();
        let own = match model.parent() {
            Some(parent) if model.is_file() && parent.as_os_str().is_empty() => Path::new("."),
            Some(parent) if model.is_file() => parent,
            _ => model,
        };
        last_with(self.adapters.iter().map(PathBuf::as_path), names).unwrap_or(own).to_owned()
    }
}

/// The last of some folders that has any of the files by these names.
fn last_with<'a>(mut folders: impl DoubleEndedIterator<Item = &'a Path>, names: &[&str]) -> Option<&'a Path> {
    folders.rfind(|folder| names.iter().any(|name| folder.join(name).is_file()))
}

/// [`Based::home`] of what `path` is with `adapters` over it. A base is looked for only where none of these folders has such a file.
///
/// # Errors
/// Those of finding an adapter's base.
pub(crate) fn home(path: &Path, adapters: &[PathBuf], names: &[&str]) -> Result<PathBuf, Error> {
    let given = [path].into_iter().chain(adapters.iter().map(PathBuf::as_path));
    match last_with(given, names) {
        Some(folder) => Ok(folder.to_owned()),
        None => Ok(Based::of(path, &[], &HubOptions::from_env())?.home(names)),
    }
}

/// Whether two paths are those of one folder that is there.
pub(crate) fn is_same_folder(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// The file [`JUDGE_TEMPLATE`](crate::JUDGE_TEMPLATE) of a model with adapters over it: in the folder of the last adapter that has one,
/// else in the model's, or beside a GGUF file. An adapter's folder in the place of the model's is the first of the adapters. `None` for a
/// model without one.
///
/// # Errors
/// Those of finding an adapter's base.
pub fn judge_template(model: impl AsRef<Path>, adapters: &[PathBuf]) -> Result<Option<PathBuf>, Error> {
    let path = home(model.as_ref(), adapters, &[file::JUDGE_TEMPLATE])?.join(file::JUDGE_TEMPLATE);
    Ok(path.is_file().then_some(path))
}

/// What is to be said of a model's folder and of adapters over it before a run: what lies there and does not count.
pub(crate) fn notes(folder: &Folder, adapters: &[PathBuf]) -> Vec<String> {
    let mut notes = Vec::new();
    let path = folder.path();
    let is_over = |adapter: &PathBuf| is_same_folder(adapter, path);
    if folder.gguf().is_none() && folder.has(file::ADAPTER_CONFIG) && !adapters.iter().any(is_over) {
        notes.push(format!(
            "{0} has {1} beside its weights: the weights are read as they are, and that adapter is not applied, though transformers \
             applies it to the base that it names; give {0} as an adapter too, or a folder with the adapter alone",
            path.display(),
            file::ADAPTER_CONFIG
        ));
    }
    if let (Some(head), Some(file)) = (folder.unread_head(), folder.gguf()) {
        notes.push(format!(
            "{}: its head of labels ({head}) is not read, only heads of folders with safetensors are: take the model's own folder",
            file.path().display()
        ));
    }
    let template = |files: &Files| chat_template(files).ok().flatten();
    let of_base = LazyCell::new(|| template(folder.files()));
    for adapter in adapters {
        let own = template(&Files::new(adapter.clone(), Value::Null));
        if own.is_some_and(|own| of_base.as_ref().is_none_or(|base| base.trim_end() != own.trim_end())) {
            notes.push(format!(
                "{}: its chat template is not that of the base model, which counts here: where the adapter was trained with its own, put \
                 that into the base's folder as {}",
                adapter.display(),
                file::CHAT_TEMPLATE
            ));
        }
    }
    notes
}

/// What an adapter's configuration says of its base.
#[cfg(feature = "train")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BaseName {
    /// `base_model_name_or_path`: a path that is absolute, since [`Based::of`] begins at the adapter's folder and PEFT at the
    /// current one; of the hub `ORG/NAME`, for a GGUF file `ORG/NAME:FILE`.
    pub(crate) name: String,
    /// `revision`: the commit of a model of the hub.
    pub(crate) revision: Option<String>,
}

#[cfg(feature = "train")]
impl BaseName {
    /// The name of the model in a folder or a GGUF file. It is one of the hub where the hub's cache has it, so that the adapter
    /// is of use on other machines.
    pub(crate) fn of(path: &Path, hub: &HubOptions) -> Self {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let in_cache = path.ancestors().find_map(|snapshot| {
            let repo = repo_of_snapshot(snapshot)?;
            let revision = snapshot.file_name()?.to_str()?.to_owned();
            let file = path.strip_prefix(snapshot).ok()?.to_str().filter(|file| !file.is_empty()).map(str::to_owned);
            let name = file.as_ref().map_or(repo.clone(), |file| format!("{repo}:{file}"));
            let source = ModelSource::Hub { repo, revision: Some(revision.clone()), file };
            let found = source.in_cache(hub)?;
            let is_same = found.path.canonicalize().ok()? == path.canonicalize().ok()?;
            is_same.then_some(Self { name, revision: Some(revision) })
        });
        in_cache.unwrap_or_else(|| Self { name: path.to_string_lossy().into_owned(), revision: None })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    /// A folder with an adapter's configuration alone.
    fn adapter(at: &Path, config: &Value) -> PathBuf {
        let path = at.join("adapter");
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join(file::ADAPTER_CONFIG), config.to_string()).unwrap();
        path
    }

    #[test]
    fn a_base_is_found_beside_the_adapter_anywhere_and_in_the_hubs_cache() {
        let at = tempfile::TempDir::new().unwrap();
        let hub = HubOptions { cache: at.path().join("hub"), endpoint: None, token: None, offline: false };
        let base = at.path().join("base");
        fs::create_dir_all(&base).unwrap();
        let other = [PathBuf::from("other")];
        for named in ["../base", base.to_str().unwrap()] {
            let path = adapter(at.path(), &json!({ BASE: named }));
            let found = Based::of(&path, &other, &hub).unwrap();
            assert_eq!(found.model.path.canonicalize().unwrap(), base.canonicalize().unwrap());
            assert_eq!(found.adapters, [path, other[0].clone()]);
        }
        let refused = |config: Value| match Based::of(&adapter(at.path(), &config), &[], &hub).map(|found| found.model)
        {
            Err(Error::Weights(WeightsError::Adapter { problem: AdapterProblem::NoBase { found }, .. })) => found,
            other => panic!("{other:?}"),
        };
        assert_eq!(refused(json!({})), None);
        assert_eq!(refused(json!({ BASE: null })), None);
        assert_eq!(refused(json!({ BASE: "../other/base" })).unwrap(), "../other/base");
        assert_eq!(refused(json!({ BASE: "org/name" })).unwrap(), "org/name");

        let commits = ["a".repeat(40), "b".repeat(40)];
        for (commit, revision) in commits.iter().zip(["main", "v1"]) {
            let repo = hub.cache.join("models--org--name");
            fs::create_dir_all(repo.join("refs")).unwrap();
            fs::write(repo.join("refs").join(revision), commit).unwrap();
            let snapshot = repo.join("snapshots").join(commit);
            fs::create_dir_all(&snapshot).unwrap();
            for name in [file::CONFIG, file::TOKENIZER, file::WEIGHTS] {
                fs::write(snapshot.join(name), "{}").unwrap();
            }
        }
        for (config, commit) in
            [(json!({ BASE: "org/name" }), &commits[0]), (json!({ BASE: "org/name", "revision": "v1" }), &commits[1])]
        {
            let found = Based::of(&adapter(at.path(), &config), &[], &hub).unwrap().model;
            assert_eq!(found.revision.as_ref(), Some(commit));
            assert!(found.path.ends_with(commit));
        }
        // What is written of a base leads back to it.
        #[cfg(feature = "train")]
        {
            let snapshot = hub.cache.join("models--org--name/snapshots").join(&commits[1]);
            fs::create_dir_all(snapshot.join("q")).unwrap();
            fs::write(snapshot.join("q/x.gguf"), "GGUF").unwrap();
            let elsewhere = at.path().join("elsewhere/models--org--name/snapshots").join(&commits[1]);
            fs::create_dir_all(&elsewhere).unwrap();
            for (path, expected) in [
                (&snapshot, "org/name"),
                (&snapshot.join("q/x.gguf"), "org/name:q/x.gguf"),
                (&base, base.to_str().unwrap()),
                (&elsewhere, elsewhere.to_str().unwrap()),
            ] {
                let BaseName { name, revision } = BaseName::of(path, &hub);
                assert_eq!((name.as_str(), revision.is_some()), (expected, expected.starts_with("org/name")));
                let written = adapter(at.path(), &json!({ BASE: name, "revision": revision }));
                assert_eq!(&Based::of(&written, &[], &hub).unwrap().model.path, path);
            }
            let here = BaseName::of(Path::new("a/base"), &hub).name;
            assert!(Path::new(&here).is_absolute() && here.ends_with("a/base"), "{here}");
        }
        assert!(matches!(
            Based::of(&adapter(at.path(), &json!({ BASE: "org/name", "revision": "v2" })), &[], &hub)
                .map(|found| found.model),
            Err(Error::Weights(WeightsError::Adapter { problem: AdapterProblem::NoBase { .. }, .. }))
        ));
        // The base's template is the adapter's, unless it has its own; a GGUF file has that of its folder.
        let path = adapter(at.path(), &json!({ BASE: "../base" }));
        fs::write(base.join("x.gguf"), "GGUF").unwrap();
        assert_eq!(judge_template(&path, &[]).unwrap(), None);
        for (own, models) in [(&base, &[&path, &base, &base.join("x.gguf")][..]), (&path, &[&path])] {
            let template = own.join(file::JUDGE_TEMPLATE);
            fs::write(&template, "{}").unwrap();
            for model in models {
                let found = judge_template(model, &[]).unwrap().unwrap();
                assert_eq!(found.canonicalize().unwrap(), template.canonicalize().unwrap());
            }
        }
        // Named beside the base, an adapter's file counts alike, and of several adapters that of the last with one.
        let [plain, last] = ["plain", "last"].map(|name| at.path().join(name));
        fs::create_dir_all(&plain).unwrap();
        fs::create_dir_all(&last).unwrap();
        let of = |adapters: &[&PathBuf]| {
            let adapters: Vec<PathBuf> = adapters.iter().map(|adapter| (*adapter).clone()).collect();
            judge_template(&base, &adapters).unwrap().unwrap().parent().unwrap().to_owned()
        };
        assert_eq!(of(&[&plain]), base);
        assert_eq!(of(&[&path, &plain]), path);
        fs::write(last.join(file::JUDGE_TEMPLATE), "{}").unwrap();
        assert_eq!(of(&[&last, &path]), path);
        assert_eq!(judge_template(&path, std::slice::from_ref(&last)).unwrap(), Some(last.join(file::JUDGE_TEMPLATE)));
        // Weights beside it make it a model.
        fs::write(path.join(file::WEIGHTS), "").unwrap();
        let found = Based::of(&path, &[], &hub).unwrap();
        assert!(found.model.path == path && found.adapters.is_empty());
    }
}
