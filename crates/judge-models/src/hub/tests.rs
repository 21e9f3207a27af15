use std::fs;

use super::*;
use crate::fixtures::copy_into;

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
    let hub = |repo: &str, revision: Option<&str>, file: Option<&str>| {
        let [revision, file] = [revision, file].map(|text| text.map(str::to_owned));
        ModelSource::Hub { repo: repo.to_owned(), revision, file }
    };
    assert_eq!("org/name".parse::<ModelSource>().unwrap(), hub("org/name", None, None));
    for revision in ["refs/pr/1", "v1.0+q8"] {
        let name = format!("org/na.me-7B@{revision}");
        assert_eq!(name.parse::<ModelSource>().unwrap(), hub("org/na.me-7B", Some(revision), None));
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    assert_eq!(path.parse::<ModelSource>().unwrap(), ModelSource::Folder(path.into()));
    let file = hub("org/name", None, Some("a/b-Q4_K_M.gguf"));
    assert_eq!("org/name:a/b-Q4_K_M.gguf".parse::<ModelSource>().unwrap(), file);
    assert_eq!("org/name@v1:x.gguf".parse::<ModelSource>().unwrap(), hub("org/name", Some("v1"), Some("x.gguf")));
    for bad in ["org/name:", "org/name:x.bin", "org/name:../x.gguf", "org/name:/x.gguf", "name:x.gguf"] {
        assert!(matches!(bad.parse::<ModelSource>(), Err(Error::ModelName { .. })), "{bad}");
    }
    for bad in ["", "name", "a/b/c", "../name", "a/..", "/no/such/folder", "a/b@", "a/b@../x", "a b/c", ".a/b", "a+/b"]
    {
        assert!(matches!(bad.parse::<ModelSource>(), Err(Error::ModelName { .. })), "{bad}");
    }
}

#[test]
fn a_source_that_was_not_parsed_is_checked_when_it_is_used() {
    let cache = cache();
    let outside = cache.path().join("outside");
    for (repo, revision) in [("org/name", Some("../../outside")), ("../name", None), ("org/name", Some(""))] {
        let source = ModelSource::Hub { repo: repo.to_owned(), revision: revision.map(str::to_owned), file: None };
        for offline in [true, false] {
            let endpoint = Some("http://127.0.0.1:9".to_owned());
            let error = source.resolve(&HubOptions { offline, endpoint, ..options(cache.path()) }).unwrap_err();
            assert!(matches!(&error, Error::ModelName { .. }), "{error}");
        }
    }
    assert!(!outside.exists());
}

#[test]
fn a_model_is_opened_by_its_name() {
    use crate::{LoadOptions, Model};
    use judge_core::Backbone;

    let cache = cache();
    let snapshot = cache.path().join("models--org--name/snapshots").join(COMMIT);
    let fixture = crate::fixtures::folder("llama-on");
    fs::remove_dir_all(&snapshot).unwrap();
    copy_into(&fixture, &snapshot);
    let open = |name: &str, options| Model::open_with(name, &options, &self::options(cache.path()));
    let found = open("org/name@main", LoadOptions::default()).unwrap();
    assert_eq!((found.info().name.as_str(), found.info().revision.as_deref()), ("org/name", Some(COMMIT)));
    let folder = open(fixture.to_str().unwrap(), LoadOptions::default()).unwrap();
    assert_eq!((folder.info().name.as_str(), &folder.info().revision), ("llama-on", &None));
    assert_eq!(found.info().fingerprint, folder.info().fingerprint);
    let given = LoadOptions { revision: Some("v1".to_owned()), name: Some("n".to_owned()), ..LoadOptions::default() };
    let given = open("org/name", given).unwrap();
    assert_eq!((given.info().name.as_str(), given.info().revision.as_deref()), ("n", Some("v1")));
    assert!(matches!(open("org/other", LoadOptions::default()), Err(Error::NotInCache { .. })));
    assert!(matches!(open("no-such-folder", LoadOptions::default()), Err(Error::ModelName { .. })));
    let said = |name: &str| name.parse::<ModelSource>().unwrap_err().to_string();
    assert!(said("https://huggingface.co/ORG/NAME").ends_with("without the address before it"));
    assert!(said("~/x.gguf").ends_with("write the home folder out") && said("a b").ends_with("FILE.gguf"));
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
        let Error::NotInCache { cache: found, .. } = &error else { panic!("{error}") };
        assert!(found.starts_with(cache.path()), "{error}");
        assert!(error.to_string().contains("HF_HUB_OFFLINE"), "{error}");
    }
    // Half a download is no model.
    fs::remove_file(cache.path().join("models--org--name/snapshots").join(COMMIT).join("model-1.safetensors")).unwrap();
    assert!("org/name".parse::<ModelSource>().unwrap().resolve(&options(cache.path())).is_err());
}

/// A GGUF file that was named before is not the weights of a model that has others.
#[test]
fn a_gguf_file_stands_for_a_model_only_where_nothing_else_is_there() {
    let cache = cache();
    let snapshot = cache.path().join("models--org--name/snapshots").join(COMMIT);
    let absent = cache.path().join("models--org--name/.no_exist").join(COMMIT);
    fs::write(snapshot.join("a.gguf"), "GGUF").unwrap();
    fs::remove_file(snapshot.join("model-1.safetensors")).unwrap();
    let resolve = || "org/name".parse::<ModelSource>().unwrap().resolve(&options(cache.path()));
    assert!(resolve().is_err(), "a shard is missing");
    fs::create_dir_all(&absent).unwrap();
    fs::write(absent.join("model.safetensors"), "").unwrap();
    assert!(resolve().is_err(), "a shard is missing");
    fs::remove_file(snapshot.join("model.safetensors.index.json")).unwrap();
    assert!(resolve().is_err(), "the model may have shards");
    fs::write(absent.join("model.safetensors.index.json"), "").unwrap();
    assert_eq!(resolve().unwrap().path, snapshot, "it has none");
    fs::remove_dir_all(&absent).unwrap();
    fs::remove_file(snapshot.join("config.json")).unwrap();
    assert_eq!(resolve().unwrap().path, snapshot, "nothing else is there");
}

#[cfg(not(feature = "hub"))]
#[test]
fn without_the_hub_a_branch_is_what_the_cache_has() {
    let cache = cache();
    let online = HubOptions { offline: false, ..options(cache.path()) };
    let resolve = |name: &str| name.parse::<ModelSource>().unwrap().resolve(&online);
    assert_eq!(resolve("org/name").unwrap().revision.as_deref(), Some(COMMIT));
    assert!(matches!(resolve("org/other"), Err(Error::NoHub { .. })));
}

#[cfg(feature = "hub")]
mod downloads {
    use std::cell::RefCell;
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::sync::{Arc, Mutex};
    use std::thread;
    use std::time::Duration;

    use std::fs;

    use super::*;
    use crate::{HubError, HubFileProblem, WeightsError};

    const BODY: &str = r#"{"a": 1}"#;

    /// A hub on the loopback interface that serves one tiny model, of a single file or of shards.
    #[derive(Clone)]
    struct Hub {
        /// Names of its files; what the index of shards holds.
        names: Vec<&'static str>,
        index: &'static str,
        /// Headers of `config.json` where they are not the true ones.
        etag: Option<&'static str>,
        commit: &'static str,
        size: Option<usize>,
        /// How many downloads of it break off in the middle; whether answers with all of it do not say how long they are.
        broken: usize,
        is_silent: bool,
        /// What the first downloads of it bring in its place, from the status on.
        pages: Vec<&'static str>,
        /// Whether parts of files are sent where they are asked for.
        parts: bool,
        /// The status of every question, how often it is given instead of an answer, and its headers; 0 for none at all.
        busy: (usize, usize),
        refusal: &'static str,
        /// The folder whose files are served, in the place of small ones.
        folder: Option<PathBuf>,
        /// Where questions for files are sent: the status and headers, and what stands before the path. `HOST` is this hub.
        leads: Option<(&'static str, String)>,
        /// What is sent in the place of every answer.
        page: Option<&'static [u8]>,
    }

    impl Default for Hub {
        fn default() -> Self {
            Self {
                names: vec!["config.json", "tokenizer.json", "model.safetensors", "notes.md"],
                index: "",
                etag: None,
                commit: COMMIT,
                size: None,
                broken: 0,
                is_silent: false,
                pages: Vec::new(),
                parts: true,
                busy: (0, 0),
                refusal: "",
                folder: None,
                leads: None,
                page: None,
            }
        }
    }

    /// What a hub was asked, in lower case: the first line of each request, then `range: …` and `authorization: …`.
    #[derive(Clone, Default)]
    struct Asked(Arc<Mutex<Vec<String>>>);

    impl Asked {
        fn lines(&self) -> Vec<String> {
            self.0.lock().unwrap().clone()
        }

        /// How many files were asked for that did not lead elsewhere.
        fn downloads(&self) -> usize {
            self.lines().iter().filter(|line| line.starts_with("get ") && !line.contains("/api/models/")).count()
        }
    }

    impl Hub {
        /// Serves until the process ends; gives the options to reach it, and what it was asked so far.
        fn serve(mut self, cache: &Path) -> (HubOptions, Asked) {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let host = format!("http://{}", listener.local_addr().unwrap());
            let endpoint = Some(host.clone());
            let asked = Asked::default();
            let noted = asked.clone();
            thread::spawn(move || {
                for mut stream in listener.incoming().flatten() {
                    let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
                    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
                    let header = |name: &str| {
                        head.iter().map(|line| line.to_lowercase()).find(|line| line.starts_with(&format!("{name}: ")))
                    };
                    let first = head.first().map_or("", String::as_str).to_owned();
                    let words = [Some(first.to_lowercase()), header("range"), header("authorization")];
                    noted.0.lock().unwrap().push(words.into_iter().flatten().collect::<Vec<_>>().join(" "));
                    let path = first.split(' ').nth(1).unwrap_or_default();
                    let answer = self.answer(path, first.starts_with("HEAD"), header("range").as_deref());
                    let answer = match self.page.map(<[u8]>::to_vec).or_else(|| self.file(path)) {
                        Some(body) if answer.starts_with("20") => {
                            let head = Self::head(path, &body);
                            [head.as_bytes(), if first.starts_with("HEAD") { &[] } else { &body[..] }].concat()
                        }
                        _ if answer.starts_with("0 ") => Vec::new(),
                        _ => format!("HTTP/1.1 {}", answer.replace("HOST", &host)).into_bytes(),
                    };
                    let _ = stream.write_all(&answer);
                }
            });
            (HubOptions { offline: false, endpoint, ..options(cache) }, asked)
        }

        /// The bytes of a file of the folder that is served, if one is.
        fn file(&self, path: &str) -> Option<Vec<u8>> {
            let (_, name) = path.split_once(&format!("/resolve/{COMMIT}/"))?;
            Some(fs::read(self.folder.as_ref()?.join(name)).unwrap())
        }

        /// Status and headers of the answer with these bytes.
        fn head(path: &str, body: &[u8]) -> String {
            let etag = path.replace('/', "-");
            let size = body.len();
            format!(
                "HTTP/1.1 200 OK\r\nx-repo-commit: {COMMIT}\r\netag: \"{etag}\"\r\ncontent-length: {size}\r\nconnection: close\r\n\r\n"
            )
        }

        /// The answer to a question, from its status on.
        fn answer(&mut self, path: &str, is_head: bool, range: Option<&str>) -> String {
            let end = "connection: close\r\n\r\n";
            if self.busy.1 > 0 {
                self.busy.1 -= 1;
                return format!("{} No\r\n{}content-length: 0\r\n{end}", self.busy.0, self.refusal);
            }
            if path.contains("/api/models/") {
                let siblings: Vec<_> = self.names.iter().map(|name| serde_json::json!({ "rfilename": name })).collect();
                let body = serde_json::json!({ "sha": COMMIT, "siblings": siblings }).to_string();
                return format!("200 OK\r\ncontent-length: {}\r\n{end}{body}", body.len());
            }
            if let (Some((status, to)), false) = (&self.leads, path.starts_with("/real/")) {
                return format!("{status}\r\nlocation: {to}/real{path}\r\ncontent-length: 0\r\n{end}");
            }
            let name = path.rsplit('/').next().unwrap_or_default();
            let is_config = name == "config.json";
            let body = if name.ends_with("index.json") { self.index } else { BODY };
            let (etag, commit, size) = match is_config {
                true => (self.etag.unwrap_or(name), self.commit, self.size.unwrap_or(body.len())),
                false => (name, COMMIT, body.len()),
            };
            let etag = if etag.contains('"') { etag.to_owned() } else { format!("\"{etag}\"") };
            let stated = format!("x-repo-commit: {commit}\r\netag: {etag}\r\n");
            if is_head {
                return format!("200 OK\r\n{stated}content-length: {size}\r\n{end}");
            }
            if let Some(page) = self.pages.pop_if(|_| is_config) {
                return page.to_owned();
            }
            let start = range.filter(|_| self.parts).map(|range| range.trim_start_matches("range: bytes="));
            let start = start.map(|start| start.trim_end_matches('-').parse::<usize>().unwrap());
            let part = &body[start.unwrap_or(0)..];
            let range = start.map(|start| format!("content-range: bytes {start}-{}/{size}\r\n", body.len() - 1));
            let status = if range.is_some() { "206 Partial Content" } else { "200 OK" };
            let sent = if is_config && self.broken > 0 { &part[..3] } else { part };
            self.broken -= usize::from(sent != part);
            let length = if self.is_silent { String::new() } else { format!("content-length: {}\r\n", part.len()) };
            format!("{status}\r\n{stated}{}{length}{end}{sent}", range.unwrap_or_default())
        }

        /// What fetching the model into an empty cache brings, the cache, and what was asked.
        fn fetch(self) -> (Result<FoundModel, Error>, tempfile::TempDir, Asked) {
            let cache = tempfile::tempdir().unwrap();
            let (online, asked) = self.serve(cache.path());
            (source().resolve(&online), cache, asked)
        }

        /// What fetching the model into an empty cache brings, the cache, and the waits.
        fn waits(self) -> (Result<FoundModel, Error>, tempfile::TempDir, Vec<Duration>) {
            let cache = tempfile::tempdir().unwrap();
            let (online, _) = self.serve(cache.path());
            let waited = RefCell::new(Vec::new());
            let wait = |pause| waited.borrow_mut().push(pause);
            let found = super::super::fetch::fetch(("org/name", "main", &[]), &online, None, &mut |_| {}, &wait);
            (found, cache, waited.into_inner())
        }

        /// What fetching the model says is wrong with a file, and the cache.
        fn refusal(self) -> (HubFileProblem, tempfile::TempDir) {
            let (found, cache, _) = self.fetch();
            match found.unwrap_err() {
                Error::Hub(HubError::File { repo, file, problem }) => {
                    assert_eq!((repo.as_str(), file.as_str()), ("org/name", "config.json"));
                    (problem, cache)
                }
                other => panic!("{other}"),
            }
        }
    }

    fn source() -> ModelSource {
        "org/name".parse().unwrap()
    }

    fn snapshot(cache: &Path) -> PathBuf {
        cache.join("models--org--name/snapshots").join(COMMIT)
    }

    #[test]
    fn what_is_not_in_the_cache_is_fetched_once() {
        let cache = tempfile::tempdir().unwrap();
        let (online, asked) = Hub::default().serve(cache.path());
        let mut told = Vec::new();
        let found = source().resolve_with(&online, &mut |d| told.push((d.file.to_owned(), d.done, d.size))).unwrap();
        assert_eq!(found.revision.as_deref(), Some(COMMIT));
        assert_eq!(fs::read_to_string(found.path.join("config.json")).unwrap(), BODY);
        assert!(!found.path.join("notes.md").exists(), "only what a model needs");
        for name in ["config.json", "tokenizer.json", "model.safetensors"] {
            assert!(told.contains(&(name.to_owned(), 8, 8)), "{name}: {told:?}");
        }
        assert_eq!(asked.downloads(), 3);
        assert_eq!(source().resolve(&online).unwrap(), found);
        assert_eq!(asked.downloads(), 3, "nothing is fetched twice");
        assert_eq!(source().resolve(&options(cache.path())).unwrap(), found, "and it is there offline");
    }

    #[test]
    fn files_of_torch_save_and_of_sentencepiece_are_fetched_where_nothing_better_is_there() {
        let fetched = |names: &[&'static str], index| {
            let (found, cache, _) = Hub { names: names.to_vec(), index, ..Hub::default() }.fetch();
            let found = found.unwrap();
            assert_eq!(source().resolve(&options(cache.path())).unwrap(), found, "and it is there offline");
            crate::folder::names(&found.path).unwrap()
        };
        let old = ["added_tokens.json", "config.json", "pytorch_model.bin", "tokenizer.model", "value_head.bin"];
        assert_eq!(fetched(&old, ""), old);
        let both = [&old[..], &["model.safetensors", "tokenizer.json", "value_head.safetensors"]].concat();
        let new = ["added_tokens.json", "config.json", "model.safetensors", "tokenizer.json", "value_head.safetensors"];
        assert_eq!(fetched(&both, ""), new);
        let shards = ["1.bin", "config.json", "pytorch_model.bin.index.json", "spm.model"];
        assert_eq!(fetched(&shards, r#"{"weight_map": {"a": "1.bin"}}"#), shards);
        let beside = ["config.json", "model-Q8_0.gguf", "pytorch_model.bin", "tokenizer.json"];
        assert_eq!(fetched(&beside, ""), [beside[0], beside[1], beside[3]]);
    }

    /// The names of a folder's files, with the folders that they are in.
    fn files(at: &Path, below: &str) -> Vec<String> {
        let mut names = Vec::new();
        for name in crate::folder::names(at).unwrap() {
            let (path, below) = (at.join(&name), format!("{below}{name}"));
            if path.is_dir() { names.extend(files(&path, &format!("{below}/"))) } else { names.push(below) }
        }
        names
    }

    /// What `judge decide` reads of a folder is fetched: the same model answers alike by its folder and by its name.
    #[test]
    fn a_decision_model_is_whole_by_its_name() {
        let fixtures = crate::fixtures::folder("../decisions");
        let settings = |to: &Path| {
            fs::write(to.join("decision_template.jinja"), "{{ state }}<|mark|>").unwrap();
            fs::write(to.join("decision.json"), r#"{"labels": {"noul": ["1", "0"]}, "adapter": "lora/v1"}"#).unwrap();
            copy_into(&fixtures.join("jev/adapter"), &to.join("lora/v1"));
        };
        for name in ["settings", "jev", "jev_merged", "codes", "saved"] {
            let (at, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            copy_into(&crate::fixtures::folder("qwen3-off"), at.path());
            copy_into(&fixtures.join("tokenizer"), at.path());
            if name == "settings" {
                settings(at.path())
            } else {
                copy_into(&fixtures.join(name), at.path())
            }
            let all = files(at.path(), "");
            let names =
                all.iter().map(|name| &*name.clone().leak()).chain(["notes.md", "other/decision.json"]).collect();
            let hub = Hub { names, folder: Some(at.path().to_owned()), ..Hub::default() };
            let found = source().resolve(&hub.serve(cache.path()).0).unwrap().path;
            assert_eq!(files(&found, ""), all, "{name}");
            for file in &all {
                assert_eq!(fs::read(found.join(file)).unwrap(), fs::read(at.path().join(file)).unwrap(), "{file}");
            }
            let [fetched, given] = [&found, at.path()].map(|path| crate::DecisionFolder::open(path).unwrap());
            assert_eq!(format!("{:?}", fetched.form()), format!("{:?}", given.form()), "{name}");
            assert_eq!(fetched.adapter().is_some(), given.adapter().is_some(), "{name}");
            assert_eq!((fetched.has_template(), fetched.head()), (given.has_template(), given.head()), "{name}");
        }
        // Beside a GGUF file that is named too, from its own folder.
        let (at, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let q = at.path().join("q");
        fs::create_dir(&q).unwrap();
        settings(&q);
        fs::write(q.join("a.gguf"), "GGUF").unwrap();
        let all = files(at.path(), "");
        let names = all.iter().map(|name| &*name.clone().leak()).chain(["config.json", "decision.json"]).collect();
        let hub = Hub { names, folder: Some(at.path().to_owned()), ..Hub::default() };
        let source: ModelSource = "org/name:q/a.gguf".parse().unwrap();
        let found = source.resolve(&hub.serve(cache.path()).0).unwrap().path;
        assert_eq!(files(&snapshot(cache.path()), ""), all);
        let decisions = crate::DecisionFolder::open(&found).unwrap();
        assert!(decisions.has_template() && decisions.adapter().is_some());
    }

    #[test]
    fn a_gguf_file_is_fetched_where_there_is_one_and_nothing_else() {
        let hub = |weights: &[&'static str]| {
            let names = ["config.json", "tokenizer.json"].iter().chain(weights).copied().collect();
            Hub { names, ..Hub::default() }
        };
        let (found, cache, _) = hub(&["model-Q8_0.gguf", "other/model.gguf"]).fetch();
        let found = found.unwrap();
        assert!(found.path.join("model-Q8_0.gguf").is_file() && !found.path.join("other").exists());
        assert_eq!(source().resolve(&options(cache.path())).unwrap(), found, "and it is there offline");

        // Of several none is chosen, whatever was fetched before; offline it is the one that is there.
        let cache = tempfile::tempdir().unwrap();
        let (online, _) = hub(&["a-Q4_0.gguf", "a-Q8_0.gguf"]).serve(cache.path());
        let several = || {
            for name in ["org/name", &format!("org/name@{COMMIT}")] {
                let error = name.parse::<ModelSource>().unwrap().resolve(&online).unwrap_err();
                let names = "a-Q4_0.gguf, a-Q8_0.gguf";
                assert!(
                    matches!(&error, Error::Weights(WeightsError::Unsupported { found, .. }) if found == names),
                    "{error}"
                );
            }
        };
        several();
        let chosen: ModelSource = "org/name:a-Q4_0.gguf".parse().unwrap();
        let found = chosen.resolve(&online).unwrap().path;
        assert!(found.with_file_name("config.json").is_file() && found.with_file_name("tokenizer.json").is_file());
        several();
        assert_eq!(source().resolve(&options(cache.path())).unwrap().path, found.parent().unwrap());

        // No part of a file, in spite of its name.
        let (found, _cache, _) = hub(&["a-00001-of-00000.gguf"]).fetch();
        assert!(found.unwrap().path.join("a-00001-of-00000.gguf").is_file());

        let (found, _cache, _) = hub(&["a.gguf", "model.safetensors"]).fetch();
        let found = found.unwrap();
        assert!(found.path.join("model.safetensors").is_file() && !found.path.join("a.gguf").exists());
    }

    #[test]
    fn a_gguf_file_that_is_named_is_fetched_with_its_parts_and_nothing_else() {
        let cache = tempfile::tempdir().unwrap();
        let names =
            vec!["config.json", "q/a-00001-of-00002.gguf", "q/a-00002-of-00002.gguf", "b.gguf", "x.safetensors"];
        let hub = Hub { names, ..Hub::default() };
        let (online, asked) = hub.serve(cache.path());
        let source: ModelSource = "org/name:q/a-00001-of-00002.gguf".parse().unwrap();
        let found = source.resolve(&online).unwrap();
        assert_eq!(found.path, snapshot(cache.path()).join("q/a-00001-of-00002.gguf"));
        assert!(found.path.is_file() && asked.downloads() == 2);
        assert!(
            !snapshot(cache.path()).join("config.json").exists() && !snapshot(cache.path()).join("b.gguf").exists()
        );
        assert_eq!(source.resolve(&options(cache.path())).unwrap(), found, "and it is there offline");
        // The repository itself is not in the cache.
        assert!(matches!(
            "org/name".parse::<ModelSource>().unwrap().resolve(&options(cache.path())),
            Err(Error::NotInCache { .. })
        ));
    }

    #[test]
    fn a_download_that_breaks_off_is_taken_up_again() {
        let (found, _cache, asked) = Hub { broken: 1, ..Hub::default() }.fetch();
        assert_eq!(fs::read_to_string(found.unwrap().path.join("config.json")).unwrap(), BODY);
        assert_eq!(asked.downloads(), 4);
        assert!(asked.lines().iter().any(|line| line.ends_with("range: bytes=3-")), "{:?}", asked.lines());
    }

    /// What stands between may answer for the hub, with status 200.
    #[test]
    fn a_page_in_the_place_of_a_file_is_not_its_beginning() {
        let page = "200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\noops";
        for page in [
            page,
            "200 OK\r\nconnection: close\r\n\r\noops",
            "200 OK\r\ncontent-encoding: gzip\r\nconnection: close\r\n\r\noops",
            "206 Part\r\ncontent-range: bytes 0-3/4\r\ncontent-length: 4\r\nconnection: close\r\n\r\noops",
        ] {
            let (found, _cache, waited) = Hub { pages: vec![page], ..Hub::default() }.waits();
            assert_eq!(fs::read_to_string(found.unwrap().path.join("config.json")).unwrap(), BODY, "{page}");
            assert_eq!(waited.len(), 1, "{page}");
        }
        let (found, cache, _) = Hub { pages: vec![page; 4], ..Hub::default() }.waits();
        let error = found.unwrap_err().to_string();
        assert!(error.contains("expected a file of 8 bytes, found an answer of 4 bytes"), "{error}");
        let partial = cache.path().join("models--org--name/blobs/config.json.incomplete");
        assert_eq!(fs::read_to_string(&partial).unwrap(), "");
        // What came before it is kept.
        fs::write(&partial, &BODY[..5]).unwrap();
        let (online, asked) = Hub { pages: vec![page], ..Hub::default() }.serve(cache.path());
        let found = super::super::fetch::fetch(("org/name", "main", &[]), &online, None, &mut |_| {}, &|_| {}).unwrap();
        assert_eq!(fs::read_to_string(found.path.join("config.json")).unwrap(), BODY);
        assert_eq!(asked.lines().iter().filter(|line| line.ends_with("range: bytes=5-")).count(), 2);
    }

    /// Another program fetched the model, without a template that it does not read.
    #[test]
    fn what_the_cache_does_not_know_is_asked_for_once() {
        let cache = cache();
        let names = ["config.json", "tokenizer.json", "model.safetensors.index.json", "chat_template.jinja"];
        let names = names.into_iter().chain(["model-1.safetensors", "decision.json", "lora/adapter_config.json"]);
        let (at, index) = (tempfile::tempdir().unwrap(), r#"{"weight_map": {"a": "model-1.safetensors"}}"#);
        fs::create_dir(at.path().join("lora")).unwrap();
        for name in names.clone() {
            fs::write(at.path().join(name), "{}").unwrap();
        }
        fs::write(at.path().join("model.safetensors.index.json"), index).unwrap();
        fs::write(at.path().join("decision.json"), r#"{"adapter": "lora"}"#).unwrap();
        let hub = Hub { names: names.collect(), folder: Some(at.path().to_owned()), ..Hub::default() };
        let (online, asked) = hub.serve(cache.path());
        let pinned: ModelSource = format!("org/name@{COMMIT}").parse().unwrap();
        assert!(pinned.resolve(&options(cache.path())).is_ok() && pinned.in_cache(&online).is_some());
        assert_eq!(asked.lines().len(), 0);
        let found = pinned.resolve(&online).unwrap();
        for name in ["chat_template.jinja", "decision.json", "lora/adapter_config.json"] {
            assert!(found.path.join(name).is_file(), "{name}");
        }
        let absent = cache.path().join("models--org--name/.no_exist").join(COMMIT);
        for name in ["value_head.bin", "lora/adapter_model.bin", "model.safetensors"] {
            assert!(absent.join(name).is_file(), "{name}");
        }
        assert!(!absent.join("config.json").exists());
        let before = asked.lines().len();
        assert_eq!(pinned.resolve(&online).unwrap(), found);
        assert_eq!(asked.lines().len(), before, "it is whole now");
        assert!(!cache.path().join("models--org--name/refs").join(COMMIT).exists(), "a commit is no branch");

        // A hub that refuses cannot take back what a commit has.
        let cache = super::cache();
        let (refusing, _) = Hub { busy: (401, 9), ..Hub::default() }.serve(cache.path());
        assert!(pinned.resolve(&refusing).is_ok() && source().resolve(&refusing).is_err());
    }

    #[test]
    fn a_cache_that_cannot_be_written_is_read() {
        let (found, cache, _) = Hub::default().fetch();
        let folder = cache.path().join("models--org--name");
        for name in ["refs", ".no_exist"] {
            fs::remove_dir_all(folder.join(name)).unwrap();
            fs::write(folder.join(name), "in the way of a folder").unwrap();
        }
        let (online, asked) = Hub::default().serve(cache.path());
        assert_eq!(source().resolve(&online).unwrap(), found.unwrap());
        assert_eq!(asked.downloads(), 0);
    }

    #[test]
    fn what_an_earlier_run_left_and_is_wrong_is_fetched_anew() {
        let good = "f9d86028c6e0d64e225186f96acb69338b2c59764df79162107f5c4bb34d1310";
        let cache = tempfile::tempdir().unwrap();
        let blobs = cache.path().join("models--org--name/blobs");
        fs::create_dir_all(&blobs).unwrap();
        fs::write(blobs.join(format!("{good}.incomplete")), "x".repeat(BODY.len())).unwrap();
        let (online, asked) = Hub { etag: Some(good), ..Hub::default() }.serve(cache.path());
        let found = source().resolve(&online).unwrap();
        assert_eq!(fs::read_to_string(found.path.join("config.json")).unwrap(), BODY);
        assert_eq!(asked.downloads(), 3);
    }

    #[test]
    fn a_repository_without_a_model_is_named_with_what_it_has() {
        let error = Hub { names: vec!["README.md", "notes.md"], ..Hub::default() }.fetch().0.unwrap_err().to_string();
        let said = ["org/name has no file of a model", "the hub offers README.md, notes.md"];
        assert!(said.iter().all(|said| error.contains(said)), "{error}");
        let cache = tempfile::tempdir().unwrap();
        let (online, _) = Hub::default().serve(cache.path());
        let error = "org/name:a.gguf".parse::<ModelSource>().unwrap().resolve(&online).unwrap_err().to_string();
        assert!(error.contains("org/name has no a.gguf; the hub offers config.json,"), "{error}");
    }

    #[test]
    fn the_hub_cannot_name_a_path_of_its_own() {
        for name in ["../../../../evil", "/evil"] {
            let index = if name == "/evil" {
                r#"{"weight_map": {"t": "/evil"}}"#
            } else {
                r#"{"weight_map": {"t": "../../../../evil"}}"#
            };
            let names = vec!["config.json", "tokenizer.json", "model.safetensors.index.json", name];
            let (found, cache, _) = Hub { names, index, ..Hub::default() }.fetch();
            match found.unwrap_err() {
                Error::Weights(WeightsError::Index {
                    problem: crate::IndexProblem::OutsideFolder { shard, .. },
                    ..
                }) => {
                    assert_eq!(shard, name)
                }
                other => panic!("{other}"),
            }
            assert!(!cache.path().join("evil").exists());
        }
        for etag in ["../../evil", "/tmp/evil", "a/b", ".."] {
            let (problem, cache) = Hub { etag: Some(etag), ..Hub::default() }.refusal();
            assert_eq!(problem, HubFileProblem::Name { etag: etag.to_owned() });
            assert!(!snapshot(cache.path()).exists());
        }
        let (problem, _) = Hub { commit: "../../evil", ..Hub::default() }.refusal();
        assert_eq!(problem, HubFileProblem::Commit { expected: COMMIT.to_owned(), found: "../../evil".to_owned() });
    }

    #[test]
    fn a_file_that_is_not_what_the_hub_states_is_deleted() {
        // What `printf '{"a": 1}' | sha256sum` says, and another.
        let good = "f9d86028c6e0d64e225186f96acb69338b2c59764df79162107f5c4bb34d1310";
        let bad = "0000000000000000000000000000000000000000000000000000000000000000";
        let (found, _cache, _) = Hub { etag: Some(good), ..Hub::default() }.fetch();
        assert!(found.unwrap().path.join("config.json").is_file());

        let (problem, cache) = Hub { etag: Some(bad), ..Hub::default() }.refusal();
        assert_eq!(problem, HubFileProblem::Checksum { expected: bad.to_owned(), found: good.to_owned() });
        assert!(!cache.path().join("models--org--name/blobs").join(bad).exists());
        let (problem, cache) = Hub { size: Some(5), is_silent: true, ..Hub::default() }.refusal();
        assert_eq!(problem, HubFileProblem::Size { expected: 5, found: 6 });
        assert!(fs::symlink_metadata(snapshot(cache.path()).join("config.json")).is_err());

        // What is shorter may be whole the next time.
        for (is_silent, said) in
            [(false, "expected a file of 20 bytes, found an answer of 8"), (true, "8 of 20 bytes came")]
        {
            let (found, cache, waited) = Hub { size: Some(20), is_silent, ..Hub::default() }.waits();
            let error = found.unwrap_err().to_string();
            assert!(error.contains(said) && waited.len() == 3, "{error}");
            let partial = cache.path().join("models--org--name/blobs/config.json.incomplete");
            assert_eq!(fs::read_to_string(partial).unwrap(), "");
        }
    }

    #[test]
    fn what_cannot_be_written_is_said_to_be() {
        let cache = tempfile::tempdir().unwrap();
        let refs = cache.path().join("models--org--name/refs");
        fs::create_dir_all(&refs).unwrap();
        fs::write(refs.join("a"), "in the way of a folder").unwrap();
        let (online, _) = Hub::default().serve(cache.path());
        let error = "org/name@a/b".parse::<ModelSource>().unwrap().resolve(&online).unwrap_err();
        assert!(matches!(&error, Error::Write { path, .. } if *path == refs.join("a/b")), "{error}");
        assert!(error.to_string().starts_with("cannot write"), "{error}");
    }

    #[test]
    fn the_cache_stands_in_for_a_hub_that_cannot_be_reached() {
        let cache = cache();
        let nowhere =
            HubOptions { offline: false, endpoint: Some("http://127.0.0.1:9".into()), ..options(cache.path()) };
        assert_eq!(source().resolve(&nowhere).unwrap().revision.as_deref(), Some(COMMIT));
        let error = "org/other".parse::<ModelSource>().unwrap().resolve(&nowhere).unwrap_err();
        assert!(matches!(error, Error::Hub(HubError::Refused { .. })), "{error}");
    }

    #[test]
    fn a_hub_without_time_is_asked_again() {
        for (status, times, waits) in [(429, 2, 2), (503, 1, 1), (500, 1, 1), (0, 2, 2), (429, 4, 3)] {
            let (found, _cache, waited) = Hub { busy: (status, times), ..Hub::default() }.waits();
            assert_eq!(found.is_ok(), times == waits, "{status}: {found:?}");
            assert_eq!(waited, [1, 5, 25].map(Duration::from_secs)[..waits], "{status}");
        }
    }

    #[test]
    fn the_hub_says_how_long_to_wait() {
        let busy = |refusal| Hub { busy: (429, 1), refusal, ..Hub::default() }.waits();
        for (refusal, seconds) in [("retry-after: 7\r\n", 7), ("ratelimit: \"api\";r=0;t=3\r\n", 3)] {
            let (found, _cache, waited) = busy(refusal);
            assert!(found.is_ok(), "{found:?}");
            assert_eq!(waited, [Duration::from_secs(seconds)]);
        }
        let (found, _cache, waited) = busy("retry-after: 4000\r\n");
        let error = found.unwrap_err().to_string();
        assert!(error.contains("status 429: the hub asks to be left alone for 4000 s"), "{error}");
        assert_eq!(waited, []);
    }

    #[test]
    fn a_weak_tag_names_the_same_content() {
        let (found, cache, _) = Hub { etag: Some("W/\"abc\""), ..Hub::default() }.fetch();
        let found = found.unwrap();
        assert_eq!(fs::read_to_string(cache.path().join("models--org--name/blobs/abc")).unwrap(), BODY);
        assert_eq!(fs::read_to_string(found.path.join("config.json")).unwrap(), BODY);
        #[cfg(unix)]
        assert_eq!(fs::read_link(found.path.join("config.json")).unwrap(), Path::new("../../blobs/abc"));
        assert!(cache.path().join(".locks/models--org--name/abc.lock").is_file());
    }

    #[test]
    fn a_redirect_on_the_hub_is_followed() {
        for status in ["307 Temporary Redirect", "308 Permanent Redirect"] {
            for to in ["", "HOST", "../../../.."] {
                let (found, _cache, _) = Hub { leads: Some((status, to.to_owned())), ..Hub::default() }.fetch();
                assert_eq!(fs::read_to_string(found.unwrap().path.join("model.safetensors")).unwrap(), BODY);
            }
        }
    }

    #[test]
    fn a_redirect_to_another_host_is_where_the_bytes_are_and_the_token_stays() {
        let cache = tempfile::tempdir().unwrap();
        let (store, stored) = Hub::default().serve(cache.path());
        let elsewhere = store.endpoint.unwrap().replace("127.0.0.1", "localhost");
        let linked = "302 Found\r\nx-repo-commit: 0123456789abcdef0123456789abcdef01234567\r\n\
                      x-linked-etag: \"abc\"\r\nx-linked-size: 8";
        let names = vec!["config.json"];
        let hub = Hub { leads: Some((linked, elsewhere.clone())), names: names.clone(), ..Hub::default() };
        let (online, asked) = hub.serve(cache.path());
        let found = source().resolve(&HubOptions { token: Some("hf_secret".to_owned()), ..online }).unwrap();
        assert_eq!(fs::read_to_string(found.path.join("config.json")).unwrap(), BODY);
        let asked = asked.lines();
        assert!(asked.len() == 3 && asked.iter().all(|line| line.contains("bearer hf_secret")), "{asked:?}");
        let stored = stored.lines();
        assert!(stored.len() == 1 && !stored[0].contains("authorization"), "{stored:?}");

        // A mirror that leads away and states nothing.
        let hub = Hub { leads: Some(("308 Permanent Redirect", elsewhere.clone())), names, ..Hub::default() };
        let error = hub.fetch().0.unwrap_err().to_string();
        assert!(error.contains(&elsewhere) && error.contains("HF_ENDPOINT"), "{error}");
    }

    #[test]
    fn redirects_end() {
        let hub =
            Hub { leads: Some(("308 Permanent Redirect\r\nlocation: /org/name", String::new())), ..Hub::default() };
        let error = hub.fetch().0.unwrap_err().to_string();
        assert!(error.contains("redirected more than 10 times"), "{error}");
    }

    #[test]
    fn a_server_that_sends_no_parts_is_read_whole() {
        // Broken off twice at the same byte: the second time brings nothing new, and is waited for.
        for (broken, waits) in [(0, 0), (1, 0), (2, 1)] {
            let (found, _cache, waited) = Hub { parts: false, broken, ..Hub::default() }.waits();
            assert_eq!(fs::read_to_string(found.unwrap().path.join("config.json")).unwrap(), BODY);
            assert_eq!(waited.len(), waits);
        }
    }

    #[test]
    fn what_is_there_is_not_fetched_again() {
        let cache = tempfile::tempdir().unwrap();
        let blobs = cache.path().join("models--org--name/blobs");
        fs::create_dir_all(&blobs).unwrap();
        // A part of one file, the whole of another, and one that is longer than it should be.
        fs::write(blobs.join("config.json.incomplete"), &BODY[..5]).unwrap();
        fs::write(blobs.join("tokenizer.json"), BODY).unwrap();
        fs::write(blobs.join("model.safetensors.incomplete"), "much too long").unwrap();
        let (online, asked) = Hub::default().serve(cache.path());
        let found = source().resolve(&online).unwrap();
        for name in ["config.json", "tokenizer.json", "model.safetensors"] {
            assert_eq!(fs::read_to_string(found.path.join(name)).unwrap(), BODY, "{name}");
        }
        let lines = asked.lines();
        assert!(
            lines.iter().any(|line| line.contains("config.json") && line.ends_with("range: bytes=5-")),
            "{lines:?}"
        );
        assert_eq!(asked.downloads(), 2);
        assert!(!blobs.join("config.json.incomplete").exists());
    }

    #[test]
    fn a_file_in_a_folder_has_a_link_that_leads_out_of_it() {
        let index = r#"{"weight_map": {"t": "part 1/a.safetensors"}}"#;
        let names = vec!["config.json", "tokenizer.json", "model.safetensors.index.json", "part 1/a.safetensors"];
        let (found, _cache, asked) = Hub { names, index, ..Hub::default() }.fetch();
        assert_eq!(fs::read_to_string(found.unwrap().path.join("part 1/a.safetensors")).unwrap(), BODY);
        assert!(asked.lines().iter().any(|line| line.contains("/part%201/a.safetensors ")));
    }

    #[test]
    fn the_cache_stands_in_for_a_hub_without_time_and_a_gate_says_what_it_wants() {
        let filled = cache();
        let (busy, _) = Hub { busy: (429, 9), ..Hub::default() }.serve(filled.path());
        assert_eq!(source().resolve(&busy).unwrap().revision.as_deref(), Some(COMMIT));
        let refusal = "x-error-message: Access to model org/name is restricted.\r\n";
        let error = Hub { busy: (401, 9), refusal, ..Hub::default() }.fetch().0.unwrap_err().to_string();
        assert!(error.contains("accept its licence") && error.contains("set HF_TOKEN"), "{error}");
        assert!(error.contains("status 401: Access to model org/name is restricted: the model is gated"), "{error}");
    }

    #[test]
    fn an_endpoint_or_a_token_that_cannot_be_used_is_said_to_be() {
        let cache = tempfile::tempdir().unwrap();
        let online = HubOptions { offline: false, ..options(cache.path()) };
        for (endpoint, token, expected) in [
            ("mirror.example", None, "\"mirror.example\" is no address"),
            ("ftp://mirror.example", None, "is no address"),
            ("me:hidden@127.0.0.1:9", None, "\"127.0.0.1:9\" is no address"),
            ("http://127.0.0.1:92010", None, "its port is no number from 1 to 65535"),
            ("http://127.0.0.1:9", Some("two\nlines"), "the token (HF_TOKEN)"),
        ] {
            let (endpoint, token) = (Some(endpoint.to_owned()), token.map(str::to_owned));
            let error = source().resolve(&HubOptions { endpoint, token, ..online.clone() }).unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains("two") && !error.contains("hidden"), "{error}");
        }
    }

    /// Refusal is an answer: the model may be gone, or the token wrong.
    #[test]
    fn the_cache_does_not_stand_in_for_a_hub_that_refuses() {
        let cache = cache();
        let (online, _) = Hub { busy: (404, 9), ..Hub::default() }.serve(cache.path());
        assert!(matches!(source().resolve(&online), Err(Error::Hub(HubError::Refused { .. }))));
    }

    #[test]
    fn what_is_no_hub_is_said_to_be_none() {
        for (body, found) in [
            (&b"<html>log in</html>"[..], "found \"<html>log in</html>\""),
            (&br#"{"sha": "x"}"#[..], "missing field `siblings`"),
            (&b"\x1f\x8b\x08\x00\xff"[..], "compressed with gzip"),
        ] {
            let error = Hub { page: Some(body), ..Hub::default() }.fetch().0.unwrap_err().to_string();
            assert!(error.contains(found) && error.contains("is this a hub? HF_ENDPOINT names"), "{error}");
        }
    }
}
