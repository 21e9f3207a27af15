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
    let hub =
        |repo: &str, revision: Option<&str>| ModelSource::Hub { repo: repo.into(), revision: revision.map(Into::into) };
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
fn a_source_that_was_not_parsed_is_checked_when_it_is_used() {
    let cache = cache();
    let outside = cache.path().join("outside");
    for (repo, revision) in [("org/name", Some("../../outside")), ("../name", None), ("org/name", Some(""))] {
        let source = ModelSource::Hub { repo: repo.to_owned(), revision: revision.map(str::to_owned) };
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
    fs::create_dir(&snapshot).unwrap();
    for file in fs::read_dir(&fixture).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), snapshot.join(file.file_name())).unwrap();
    }
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
}

#[test]
fn the_token_is_not_shown() {
    let secret = HubOptions { token: Some("hf_secret".to_owned()), ..options(Path::new("c")) };
    let shown = format!("{secret:?}");
    assert!(!shown.contains("hf_secret") && shown.contains("hidden"), "{shown}");
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
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;
    use crate::HubFileProblem;

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
        /// How many downloads of it break off in the middle.
        broken: usize,
        /// The status of every question but downloads, and how often it is given instead of an answer.
        busy: (usize, usize),
    }

    impl Default for Hub {
        fn default() -> Self {
            let names = vec!["config.json", "tokenizer.json", "model.safetensors", "notes.md"];
            Self { names, index: "", etag: None, commit: COMMIT, size: None, broken: 0, busy: (0, 0) }
        }
    }

    impl Hub {
        /// Serves until the process ends; gives the options to reach it, and the number of downloads so far.
        fn serve(self, cache: &Path) -> (HubOptions, Arc<AtomicUsize>) {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let endpoint = Some(format!("http://{}", listener.local_addr().unwrap()));
            let downloads = Arc::new(AtomicUsize::new(0));
            let counted = downloads.clone();
            let mut broken = self.broken;
            let (refused, mut busy) = self.busy;
            thread::spawn(move || {
                for mut stream in listener.incoming().flatten() {
                    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
                    let path = lines.next().unwrap_or_default().split(' ').nth(1).unwrap_or_default().to_owned();
                    let range = lines
                        .take_while(|line| !line.is_empty())
                        .find_map(|line| line.to_lowercase().strip_prefix("range: bytes=").map(str::to_owned));
                    if busy > 0 {
                        busy -= 1;
                        let _ =
                            write!(stream, "HTTP/1.1 {refused} No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                        continue;
                    }
                    let name = path.rsplit('/').next().unwrap_or_default();
                    let is_config = name == "config.json";
                    let body = if path.contains("/api/models/") {
                        let siblings: Vec<_> =
                            self.names.iter().map(|name| serde_json::json!({ "rfilename": name })).collect();
                        serde_json::json!({ "sha": COMMIT, "siblings": siblings }).to_string()
                    } else if name.ends_with("index.json") {
                        self.index.to_owned()
                    } else {
                        BODY.to_owned()
                    };
                    let (etag, commit, size) = match is_config {
                        true => (self.etag.unwrap_or(name), self.commit, self.size.unwrap_or(body.len())),
                        false => (name, COMMIT, body.len()),
                    };
                    let (start, end) = range.as_deref().and_then(|r| r.split_once('-')).unwrap_or(("0", ""));
                    let start = start.parse().unwrap_or(0).min(body.len());
                    let part = &body[start..end.parse().map_or(body.len(), |end: usize| end + 1)];
                    let is_download = range.is_some() && end.is_empty();
                    counted.fetch_add(usize::from(is_download), Ordering::SeqCst);
                    let sent = match is_download && is_config && broken > 0 {
                        true => {
                            broken -= 1;
                            &part[..3]
                        }
                        false => part,
                    };
                    let status = if range.is_some() { "206 Partial Content" } else { "200 OK" };
                    let _ = write!(
                        stream,
                        "HTTP/1.1 {status}\r\nx-repo-commit: {commit}\r\netag: \"{etag}\"\r\n\
                         content-range: bytes {start}-{}/{size}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{sent}",
                        (start + part.len()).max(1) - 1,
                        part.len()
                    );
                }
            });
            (HubOptions { offline: false, endpoint, ..options(cache) }, downloads)
        }

        /// What fetching the model into an empty cache says, and the cache.
        fn refusal(self) -> (HubFileProblem, tempfile::TempDir) {
            let cache = tempfile::tempdir().unwrap();
            let (online, _) = self.serve(cache.path());
            match source().resolve(&online).unwrap_err() {
                Error::HubFile { repo, file, problem } => {
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
        let (online, downloads) = Hub::default().serve(cache.path());
        let mut told = Vec::new();
        let found = source().resolve_with(&online, &mut |d| told.push((d.file.to_owned(), d.done, d.size))).unwrap();
        assert_eq!(found.revision.as_deref(), Some(COMMIT));
        assert_eq!(fs::read_to_string(found.path.join("config.json")).unwrap(), BODY);
        assert!(!found.path.join("notes.md").exists(), "only what a model needs");
        for name in ["config.json", "tokenizer.json", "model.safetensors"] {
            assert!(told.contains(&(name.to_owned(), 8, 8)), "{name}: {told:?}");
        }
        assert_eq!(downloads.load(Ordering::SeqCst), 3);
        assert_eq!(source().resolve(&online).unwrap(), found);
        assert_eq!(downloads.load(Ordering::SeqCst), 3, "nothing is fetched twice");
        assert_eq!(source().resolve(&options(cache.path())).unwrap(), found, "and it is there offline");
    }

    #[test]
    fn a_gguf_file_is_fetched_where_there_is_one_and_nothing_else() {
        let names =
            |weights: &[&'static str]| ["config.json", "tokenizer.json"].iter().chain(weights).copied().collect();
        let cache = tempfile::tempdir().unwrap();
        let hub = Hub { names: names(&["model-Q8_0.gguf", "other/model.gguf"]), ..Hub::default() };
        let found = source().resolve(&hub.serve(cache.path()).0).unwrap();
        assert!(found.path.join("model-Q8_0.gguf").is_file() && !found.path.join("other").exists());
        assert_eq!(source().resolve(&options(cache.path())).unwrap(), found, "and it is there offline");

        let cache = tempfile::tempdir().unwrap();
        let hub = Hub { names: names(&["a-Q4_0.gguf", "a-Q8_0.gguf"]), ..Hub::default() };
        let error = source().resolve(&hub.serve(cache.path()).0).unwrap_err();
        assert!(matches!(&error, Error::Unsupported { found, .. } if found == "a-Q4_0.gguf, a-Q8_0.gguf"), "{error}");

        fs::create_dir_all(snapshot(cache.path())).unwrap();
        fs::write(snapshot(cache.path()).join("a-Q4_0.gguf"), "chosen").unwrap();
        let hub = Hub { names: names(&["a-Q4_0.gguf", "a-Q8_0.gguf"]), ..Hub::default() };
        let found = source().resolve(&hub.serve(cache.path()).0).unwrap();
        assert!(found.path.join("a-Q4_0.gguf").is_file() && !found.path.join("a-Q8_0.gguf").exists());

        let cache = tempfile::tempdir().unwrap();
        let hub = Hub { names: names(&["a.gguf", "model.safetensors"]), ..Hub::default() };
        let found = source().resolve(&hub.serve(cache.path()).0).unwrap();
        assert!(found.path.join("model.safetensors").is_file() && !found.path.join("a.gguf").exists());
    }

    #[test]
    fn a_download_that_breaks_off_is_taken_up_again() {
        let cache = tempfile::tempdir().unwrap();
        let (online, downloads) = Hub { broken: 1, ..Hub::default() }.serve(cache.path());
        let found = source().resolve(&online).unwrap();
        assert_eq!(fs::read_to_string(found.path.join("config.json")).unwrap(), BODY);
        assert_eq!(downloads.load(Ordering::SeqCst), 4);
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
            let cache = tempfile::tempdir().unwrap();
            let (online, _) = Hub { names, index, ..Hub::default() }.serve(cache.path());
            match source().resolve(&online).unwrap_err() {
                Error::Index { problem: IndexProblem::OutsideFolder { shard, .. }, .. } => assert_eq!(shard, name),
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
        let cache = tempfile::tempdir().unwrap();
        let (online, _) = Hub { etag: Some(good), ..Hub::default() }.serve(cache.path());
        assert!(source().resolve(&online).unwrap().path.join("config.json").is_file());

        let (problem, cache) = Hub { etag: Some(bad), ..Hub::default() }.refusal();
        assert_eq!(problem, HubFileProblem::Checksum { expected: bad.to_owned(), found: good.to_owned() });
        assert!(!cache.path().join("models--org--name/blobs").join(bad).exists());
        let (problem, cache) = Hub { size: Some(20), ..Hub::default() }.refusal();
        assert_eq!(problem, HubFileProblem::Size { expected: 20, found: 8 });
        assert!(fs::symlink_metadata(snapshot(cache.path()).join("config.json")).is_err());
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
        assert!(matches!(error, Error::Hub { .. }) && error.to_string().contains("HF_HUB_OFFLINE"), "{error}");
    }

    #[test]
    fn a_hub_without_time_is_asked_again() {
        for (status, times, waits) in [(429, 2, 2), (503, 1, 1), (429, 4, 3)] {
            let cache = tempfile::tempdir().unwrap();
            let (online, _) = Hub { busy: (status, times), ..Hub::default() }.serve(cache.path());
            let waited = std::cell::RefCell::new(Vec::new());
            let wait = |pause| waited.borrow_mut().push(pause);
            let found = super::super::fetch::fetch("org/name", "main", &online, None, &mut |_| {}, &wait);
            assert_eq!(found.is_ok(), times == waits, "{status}: {found:?}");
            assert_eq!(waited.borrow().len(), waits, "{status}");
        }
    }

    #[test]
    fn the_cache_stands_in_for_a_hub_without_time_and_a_gate_says_what_it_wants() {
        let filled = cache();
        let (busy, _) = Hub { busy: (429, 9), ..Hub::default() }.serve(filled.path());
        assert_eq!(source().resolve(&busy).unwrap().revision.as_deref(), Some(COMMIT));
        let empty = tempfile::tempdir().unwrap();
        let (gated, _) = Hub { busy: (401, 9), ..Hub::default() }.serve(empty.path());
        let error = source().resolve(&gated).unwrap_err().to_string();
        assert!(error.contains("accept its licence") && error.contains("set HF_TOKEN"), "{error}");
    }

    /// Refusal is an answer: the model may be gone, or the token wrong.
    #[test]
    fn the_cache_does_not_stand_in_for_a_hub_that_refuses() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = Some(format!("http://{}", listener.local_addr().unwrap()));
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
                lines.take_while(|line| !line.is_empty()).for_each(drop);
                let _ = write!(stream, "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            }
        });
        let cache = cache();
        let online = HubOptions { offline: false, endpoint, ..options(cache.path()) };
        assert!(matches!(source().resolve(&online), Err(Error::Hub { .. })));
    }
}
