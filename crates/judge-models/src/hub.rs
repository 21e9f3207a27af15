//! Finding a model: a folder, or a hub id by way of the hub's cache.
//!
//! The cache has the layout that Hugging Face's own libraries share:
//! `models--ORG--NAME/refs/BRANCH` holds a commit, `models--ORG--NAME/snapshots/COMMIT/` the files.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::Error;
use crate::folder::file;

/// The branch that a hub id without a revision means.
const DEFAULT_REVISION: &str = "main";

/// Where a model is to be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelSource {
    /// A folder.
    Folder(PathBuf),
    /// A model of the hub.
    Hub {
        /// `ORG/NAME`.
        repo: String,
        /// A branch, a tag or a commit; `None`: the branch `main`.
        revision: Option<String>,
    },
}

/// A model's folder on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundModel {
    /// The folder.
    pub path: PathBuf,
    /// The commit, if it came from the hub.
    pub revision: Option<String>,
}

/// How the hub is reached. Nothing else, no environment variable and no other file, has a say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubOptions {
    /// The cache folder.
    pub cache: PathBuf,
    /// Address of the hub; `None`: the public one.
    pub endpoint: Option<String>,
    /// Access token, for models that need one.
    pub token: Option<String>,
    /// Only look in the cache; never open a connection.
    pub offline: bool,
}

impl HubOptions {
    /// What Hugging Face's own libraries would do: `HF_HUB_CACHE`, else `hub` in `HF_HOME` (or in `huggingface` in `XDG_CACHE_HOME` or
    /// `~/.cache`); `HF_TOKEN`, else the file `HF_TOKEN_PATH` or `token` in `HF_HOME`; `HF_ENDPOINT`; `HF_HUB_OFFLINE`
    /// (`1`, `on`, `yes` or `true`). Empty variables count as unset.
    #[must_use]
    pub fn from_env() -> Self {
        Self::from_variables(|name| env::var(name).ok())
    }

    fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let path = |name: &str| set(name).map(PathBuf::from);
        let user_cache = || path("XDG_CACHE_HOME").or_else(|| path("HOME").map(|home| home.join(".cache")));
        let home = path("HF_HOME").unwrap_or_else(|| user_cache().unwrap_or_default().join("huggingface"));
        let token_file = path("HF_TOKEN_PATH").unwrap_or_else(|| home.join("token"));
        let stored_token = || fs::read_to_string(&token_file).ok().map(|token| token.trim().to_owned());
        let on = |value: String| matches!(value.to_lowercase().as_str(), "1" | "on" | "yes" | "true");
        Self {
            token: set("HF_TOKEN").or_else(stored_token).filter(|token| !token.is_empty()),
            endpoint: set("HF_ENDPOINT"),
            offline: set("HF_HUB_OFFLINE").is_some_and(on),
            cache: path("HF_HUB_CACHE").unwrap_or_else(|| home.join("hub")),
        }
    }
}

impl FromStr for ModelSource {
    type Err = Error;

    /// Reads a folder or `ORG/NAME[@REVISION]`. A folder that exists wins.
    fn from_str(text: &str) -> Result<Self, Error> {
        if Path::new(text).is_dir() {
            return Ok(Self::Folder(text.into()));
        }
        let (repo, revision) = match text.split_once('@') {
            Some((repo, revision)) => (repo, Some(revision)),
            None => (text, None),
        };
        let word = |part: &str| {
            !part.is_empty()
                && !part.contains("..")
                && !part.starts_with(['.', '-'])
                && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        };
        let revision_is_safe = |revision: &str| revision.split('/').all(word);
        match repo.split_once('/') {
            Some((org, name)) if word(org) && word(name) && revision.is_none_or(revision_is_safe) => {
                Ok(Self::Hub { repo: repo.to_owned(), revision: revision.map(str::to_owned) })
            }
            _ => Err(Error::ModelName { found: text.to_owned() }),
        }
    }
}

impl ModelSource {
    /// The folder on this machine. A hub model that is in the cache is taken from there without a connection if its revision is a commit
    /// or if [`HubOptions::offline`]; otherwise the hub is asked what the revision is today, and what is not in the cache is fetched into it.
    ///
    /// # Errors
    /// [`Error::NotInCache`] if offline and not there, [`Error::NoHub`] if it would have to be fetched by a build without the feature `hub`,
    /// [`Error::Hub`] for what the hub says.
    pub fn resolve(&self, options: &HubOptions) -> Result<FoundModel, Error> {
        let (repo, revision) = match self {
            Self::Folder(path) => return Ok(FoundModel { path: path.clone(), revision: None }),
            Self::Hub { repo, revision } => (repo, revision.as_deref().unwrap_or(DEFAULT_REVISION)),
        };
        let cached = cached(&options.cache, repo, revision);
        match cached {
            Some(found) if options.offline || is_commit(revision) => Ok(found),
            _ if options.offline => Err(Error::NotInCache {
                repo: repo.clone(),
                revision: revision.to_owned(),
                cache: repo_folder(&options.cache, repo),
            }),
            _ => fetch(repo, revision, options),
        }
    }
}

fn is_commit(revision: &str) -> bool {
    revision.len() == 40 && revision.bytes().all(|b| b.is_ascii_hexdigit())
}

fn repo_folder(cache: &Path, repo: &str) -> PathBuf {
    cache.join(format!("models--{}", repo.replace('/', "--")))
}

/// The snapshot of a revision, if the cache has all of its files that a model needs.
fn cached(cache: &Path, repo: &str, revision: &str) -> Option<FoundModel> {
    let folder = repo_folder(cache, repo);
    let commit = match fs::read_to_string(folder.join("refs").join(revision)) {
        Ok(commit) => commit.trim().to_owned(),
        Err(_) => revision.to_owned(),
    };
    let path = folder.join("snapshots").join(&commit);
    let whole = path.join(file::CONFIG).is_file() && path.join(file::TOKENIZER).is_file() && has_weights(&path);
    (is_commit(&commit) && whole).then_some(FoundModel { path, revision: Some(commit) })
}

fn has_weights(path: &Path) -> bool {
    path.join(file::WEIGHTS).is_file()
        || shards(&path.join(file::WEIGHTS_INDEX))
            .is_ok_and(|shards| !shards.is_empty() && shards.iter().all(|s| path.join(s).is_file()))
}

/// The files that an index of shards names, each once.
fn shards(index: &Path) -> Result<Vec<String>, Error> {
    let json = crate::folder::read_json(index)?;
    let map = json.get("weight_map").and_then(|map| map.as_object());
    let mut shards: Vec<String> =
        map.into_iter().flat_map(|map| map.values()).filter_map(|shard| shard.as_str().map(str::to_owned)).collect();
    shards.sort_unstable();
    shards.dedup();
    Ok(shards)
}

#[cfg(not(feature = "hub"))]
fn fetch(repo: &str, _revision: &str, _options: &HubOptions) -> Result<FoundModel, Error> {
    Err(Error::NoHub { repo: repo.to_owned() })
}

#[cfg(feature = "hub")]
fn fetch(repo: &str, revision: &str, options: &HubOptions) -> Result<FoundModel, Error> {
    use hf_hub::api::sync::ApiBuilder;
    use hf_hub::{Cache, Repo, RepoType};

    let failed = |source: hf_hub::api::sync::ApiError| Error::Hub {
        repo: repo.to_owned(),
        revision: revision.to_owned(),
        source: Box::new(source),
    };
    let mut builder = ApiBuilder::from_cache(Cache::new(options.cache.clone()))
        .with_progress(false)
        .with_token(options.token.clone());
    if let Some(endpoint) = &options.endpoint {
        builder = builder.with_endpoint(endpoint.clone());
    }
    let api = builder.build().map_err(failed)?;
    let at = |revision: &str| api.repo(Repo::with_revision(repo.to_owned(), RepoType::Model, revision.to_owned()));
    let info = at(revision).info().map_err(failed)?;
    if !is_commit(&info.sha) {
        return Err(Error::HubCommit { repo: repo.to_owned(), found: info.sha });
    }

    let (commit, folder) = (at(&info.sha), repo_folder(&options.cache, repo));
    let path = folder.join("snapshots").join(&info.sha);
    let offers = |name: &str| info.siblings.iter().any(|sibling| sibling.rfilename == name);
    let get = |name: &str| -> Result<(), Error> {
        if offers(name) && !path.join(name).is_file() {
            tracing::info!(repo, revision = info.sha, file = name, "downloading");
            commit.download(name).map_err(failed)?;
        }
        Ok(())
    };
    for name in [
        file::CONFIG,
        file::GENERATION_CONFIG,
        file::TOKENIZER,
        file::TOKENIZER_CONFIG,
        file::SPECIAL_TOKENS_MAP,
        file::CHAT_TEMPLATE,
        file::CHAT_TEMPLATE_JSON,
        file::ADAPTER_CONFIG,
    ] {
        get(name)?;
    }
    if offers(file::WEIGHTS) {
        get(file::WEIGHTS)?;
    } else if offers(file::WEIGHTS_INDEX) {
        get(file::WEIGHTS_INDEX)?;
        // Only files that the hub lists are asked for, so an index cannot name a path of its own.
        for shard in shards(&path.join(file::WEIGHTS_INDEX))? {
            get(&shard)?;
        }
    }
    let reference = folder.join("refs").join(revision);
    let write = |source| Error::Read { path: reference.clone(), source };
    if let Some(parent) = reference.parent() {
        fs::create_dir_all(parent).map_err(write)?;
    }
    fs::write(&reference, &info.sha).map_err(write)?;
    Ok(FoundModel { path, revision: Some(info.sha) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    fn options(cache: &Path) -> HubOptions {
        HubOptions { cache: cache.to_owned(), endpoint: None, token: None, offline: true }
    }

    /// A cache with one model: branch `main`, one shard.
    fn cache() -> tempfile::TempDir {
        let cache = tempfile::tempdir().unwrap();
        let folder = cache.path().join("models--org--name");
        let snapshot = folder.join("snapshots").join(COMMIT);
        fs::create_dir_all(&snapshot).unwrap();
        fs::create_dir_all(folder.join("refs")).unwrap();
        fs::write(folder.join("refs/main"), COMMIT).unwrap();
        for name in ["config.json", "tokenizer.json", "model-1.safetensors"] {
            fs::write(snapshot.join(name), "{}").unwrap();
        }
        fs::write(snapshot.join("model.safetensors.index.json"), r#"{"weight_map": {"a": "model-1.safetensors"}}"#)
            .unwrap();
        cache
    }

    #[test]
    fn names_are_folders_or_hub_ids() {
        let hub = |repo: &str, revision: Option<&str>| ModelSource::Hub {
            repo: repo.into(),
            revision: revision.map(Into::into),
        };
        assert_eq!("org/name".parse::<ModelSource>().unwrap(), hub("org/name", None));
        assert_eq!("org/na.me-7B@refs/pr/1".parse::<ModelSource>().unwrap(), hub("org/na.me-7B", Some("refs/pr/1")));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        assert_eq!(path.parse::<ModelSource>().unwrap(), ModelSource::Folder(path.into()));
        for bad in ["", "name", "a/b/c", "../name", "a/..", "/no/such/folder", "a/b@", "a/b@../x", "a b/c", ".a/b"] {
            assert!(matches!(bad.parse::<ModelSource>(), Err(Error::ModelName { .. })), "{bad}");
        }
    }

    #[test]
    fn the_cache_serves_branches_and_commits_offline() {
        let cache = cache();
        for name in ["org/name", "org/name@main", &format!("org/name@{COMMIT}")] {
            let found = name.parse::<ModelSource>().unwrap().resolve(&options(cache.path())).unwrap();
            assert_eq!(found.revision.as_deref(), Some(COMMIT));
            assert!(found.path.join("config.json").is_file());
        }
    }

    #[test]
    fn a_commit_in_the_cache_needs_no_hub() {
        let cache = cache();
        let unreachable =
            HubOptions { offline: false, endpoint: Some("http://127.0.0.1:9".into()), ..options(cache.path()) };
        let source: ModelSource = format!("org/name@{COMMIT}").parse().unwrap();
        assert_eq!(source.resolve(&unreachable).unwrap().revision.as_deref(), Some(COMMIT));
    }

    #[test]
    fn an_offline_miss_says_where_it_looked() {
        let cache = cache();
        for name in ["org/other", "org/name@dev"] {
            let error = name.parse::<ModelSource>().unwrap().resolve(&options(cache.path())).unwrap_err();
            assert!(matches!(&error, Error::NotInCache { cache, .. } if cache.starts_with(cache)), "{error}");
        }
        // Half a download is no model.
        fs::remove_file(cache.path().join("models--org--name/snapshots").join(COMMIT).join("model-1.safetensors"))
            .unwrap();
        assert!("org/name".parse::<ModelSource>().unwrap().resolve(&options(cache.path())).is_err());
    }

    #[test]
    fn variables_are_resolved_as_the_hub_libraries_do() {
        let with = |pairs: &[(&str, &str)]| {
            let pairs: Vec<(String, String)> = pairs.iter().map(|&(k, v)| (k.into(), v.into())).collect();
            HubOptions::from_variables(move |name| pairs.iter().find(|(k, _)| k == name).map(|(_, v)| v.clone()))
        };
        assert_eq!(with(&[("HOME", "/h")]).cache, Path::new("/h/.cache/huggingface/hub"));
        assert_eq!(with(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/x")]).cache, Path::new("/x/huggingface/hub"));
        assert_eq!(with(&[("HOME", "/h"), ("HF_HOME", "/f")]).cache, Path::new("/f/hub"));
        assert_eq!(with(&[("HF_HOME", "/f"), ("HF_HUB_CACHE", "/c")]).cache, Path::new("/c"));
        let all = with(&[("HF_TOKEN", "t"), ("HF_ENDPOINT", "http://e"), ("HF_HUB_OFFLINE", "TRUE")]);
        assert_eq!((all.token.as_deref(), all.endpoint.as_deref(), all.offline), (Some("t"), Some("http://e"), true));
        let none = with(&[("HF_TOKEN", ""), ("HF_HUB_OFFLINE", "0"), ("HF_HOME", "/no/such")]);
        assert_eq!((none.token, none.endpoint, none.offline), (None, None, false));
    }

    /// The download path against a hub on the loopback interface that serves one tiny model.
    #[cfg(feature = "hub")]
    #[test]
    fn what_is_not_in_the_cache_is_fetched_once() {
        use std::io::{BufRead, BufReader, Write};
        use std::net::TcpListener;
        use std::sync::atomic::{AtomicUsize, Ordering};
        use std::thread;

        static DOWNLOADS: AtomicUsize = AtomicUsize::new(0);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        thread::spawn(move || {
            for stream in listener.incoming().take(100) {
                let mut stream = stream.unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
                let request = lines.next().unwrap_or_default();
                let range = lines
                    .by_ref()
                    .take_while(|line| !line.is_empty())
                    .any(|line| line.to_lowercase().starts_with("range: bytes=0-0"));
                let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
                let (body, kind) = if path.contains("/api/models/") {
                    let names = ["config.json", "tokenizer.json", "model.safetensors", "notes.md"];
                    let siblings: Vec<_> = names.iter().map(|name| serde_json::json!({ "rfilename": name })).collect();
                    (serde_json::json!({ "sha": COMMIT, "siblings": siblings }).to_string(), "200 OK")
                } else {
                    if !range {
                        DOWNLOADS.fetch_add(1, Ordering::SeqCst);
                    }
                    (r#"{"a": 1}"#.to_owned(), if range { "206 Partial Content" } else { "200 OK" })
                };
                let name = path.rsplit('/').next().unwrap_or_default();
                let (sent, total) = (if range { &body[..1] } else { &body[..] }, body.len());
                let _ = write!(
                    stream,
                    "HTTP/1.1 {kind}\r\nx-repo-commit: {COMMIT}\r\netag: \"{name}\"\r\ncontent-range: bytes 0-{}/{total}\r\n\
                     content-length: {}\r\nconnection: close\r\n\r\n{sent}",
                    sent.len() - 1,
                    sent.len()
                );
            }
        });
        let cache = tempfile::tempdir().unwrap();
        let online = HubOptions { offline: false, endpoint: Some(endpoint), ..options(cache.path()) };
        let source: ModelSource = "org/name".parse().unwrap();
        let found = source.resolve(&online).unwrap();
        assert_eq!(found.revision.as_deref(), Some(COMMIT));
        assert_eq!(fs::read_to_string(found.path.join("config.json")).unwrap(), r#"{"a": 1}"#);
        assert!(!found.path.join("notes.md").exists(), "only what a model needs");
        let downloads = DOWNLOADS.load(Ordering::SeqCst);
        assert!(downloads >= 3);
        assert_eq!(source.resolve(&online).unwrap(), found);
        assert_eq!(DOWNLOADS.load(Ordering::SeqCst), downloads, "nothing is fetched twice");
        assert_eq!(source.resolve(&options(cache.path())).unwrap(), found, "and it is there offline");
    }
}
