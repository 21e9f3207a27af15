//! The base model of an adapter's folder that is given in the place of a model's.
//!
//! `model.rs` and `merge.rs` ask here first, so that an adapter is named as a model is. PEFT writes where its base was
//! (`base_model_name_or_path` of `adapter_config.json`): a folder, or `ORG/NAME` of the hub, perhaps with a `revision`.
//! Nothing is fetched: a base of the hub must be in its cache.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::folder::{file, read_json};
use crate::hub::{FoundModel, HubOptions, ModelSource};
use crate::{AdapterProblem, Error};

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
        let fault = |found: Option<&str>| Error::Adapter {
            path: path.to_owned(),
            problem: AdapterProblem::NoBase { found: found.map(str::to_owned) },
        };
        let name = text(BASE).ok_or_else(|| fault(None))?;
        // An absolute path stays what it is.
        let beside = path.join(name);
        let model = if beside.exists() {
            FoundModel { path: beside, revision: None }
        } else {
            let (repo, revision) = (name.to_owned(), text("revision").map(str::to_owned));
            let cached = HubOptions { offline: true, ..hub.clone() };
            ModelSource::Hub { repo, revision, file: None }.resolve(&cached).map_err(|error| match error {
                Error::NotInCache { .. } | Error::ModelName { .. } => fault(Some(name)),
                other => other,
            })?
        };
        let all = [path.to_owned()].into_iter().chain(adapters.iter().cloned());
        Ok(Self { model, adapters: all.collect() })
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
            Err(Error::Adapter { problem: AdapterProblem::NoBase { found }, .. }) => found,
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
        assert!(matches!(
            Based::of(&adapter(at.path(), &json!({ BASE: "org/name", "revision": "v2" })), &[], &hub)
                .map(|found| found.model),
            Err(Error::Adapter { problem: AdapterProblem::NoBase { .. }, .. })
        ));
        // Weights beside it make it a model.
        let path = adapter(at.path(), &json!({ BASE: "../base" }));
        fs::write(path.join(file::WEIGHTS), "").unwrap();
        let found = Based::of(&path, &[], &hub).unwrap();
        assert!(found.model.path == path && found.adapters.is_empty());
    }
}
