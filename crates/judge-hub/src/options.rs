//! How the hub is reached, and how far a download is.

use std::path::PathBuf;
use std::{env, fmt, fs};

/// How far the download of one file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Download<'a> {
    /// The file's name in the repository.
    pub file: &'a str,
    /// Bytes that are there, those of an earlier attempt included.
    pub done: u64,
    /// Bytes in all, as the hub states them.
    pub size: u64,
}

/// How the hub is reached. Nothing else, no environment variable and no other file, has a say.
#[derive(Clone, PartialEq, Eq)]
pub struct HubOptions {
    /// The cache folder, which holds a folder for each repository. It need not exist.
    pub cache: PathBuf,
    /// Address of the hub; `None`: the public one, `https://huggingface.co`.
    pub endpoint: Option<String>,
    /// Access token, for models that need one. It is not shown by `Debug`.
    pub token: Option<String>,
    /// Only look in the cache; never open a connection.
    pub offline: bool,
}

impl fmt::Debug for HubOptions {
    /// Does not show the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cache, endpoint, token, offline } = self;
        f.debug_struct("HubOptions")
            .field("cache", cache)
            .field("endpoint", endpoint)
            .field("token", &token.as_ref().map(|_| "hidden"))
            .field("offline", offline)
            .finish()
    }
}

impl HubOptions {
    /// What Hugging Face's own libraries would do. Empty variables count as unset.
    ///
    /// | setting | first of |
    /// |---|---|
    /// | `cache` | `HF_HUB_CACHE`; `HUGGINGFACE_HUB_CACHE`; `hub` in `HF_HOME` |
    /// | `HF_HOME` | itself; `huggingface` in `XDG_CACHE_HOME`; `huggingface` in `~/.cache` |
    /// | `token` | `HF_TOKEN` or `HUGGING_FACE_HUB_TOKEN`; the file `HF_TOKEN_PATH`; the file `token` in `HF_HOME` |
    /// | `endpoint` | `HF_ENDPOINT`; the public hub |
    /// | `offline` | `HF_HUB_OFFLINE` or `TRANSFORMERS_OFFLINE`, if it is `1`, `on`, `yes` or `true` in any case; else false |
    ///
    /// Paths may begin with `~` and have variables in them, `$NAME` or `${NAME}`. White space around a token is none of it.
    #[must_use]
    pub fn from_env() -> Self {
        Self::from_variables(|name| env::var(name).ok())
    }

    /// [`from_env`](Self::from_env) over any variables, so that tests need not change the process's
    /// own. A token file that cannot be read counts as absent.
    pub(crate) fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let first = |names: [&str; 2]| names.into_iter().find_map(set);
        let path = |name: &str| set(name).map(|path| expanded(&path, &variable));
        let user_cache = || path("XDG_CACHE_HOME").or_else(|| path("HOME").map(|home| home.join(".cache")));
        let home = path("HF_HOME").unwrap_or_else(|| user_cache().unwrap_or_default().join("huggingface"));
        let token_file = path("HF_TOKEN_PATH").unwrap_or_else(|| home.join("token"));
        let clean = |token: String| Some(token.replace(['\r', '\n'], "").trim().to_owned()).filter(|t| !t.is_empty());
        let stored_token = || fs::read_to_string(&token_file).ok().and_then(clean);
        let on = |value: String| matches!(value.to_lowercase().as_str(), "1" | "on" | "yes" | "true");
        let cache = path("HF_HUB_CACHE").or_else(|| path("HUGGINGFACE_HUB_CACHE"));
        Self {
            token: first(["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"]).and_then(clean).or_else(stored_token),
            endpoint: set("HF_ENDPOINT"),
            offline: first(["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"]).is_some_and(on),
            cache: cache.unwrap_or_else(|| home.join("hub")),
        }
    }
}

/// A path as Python's `expanduser` and `expandvars` make it: `~` at its beginning, `$NAME` and `${NAME}`. What is not set stays as it is.
fn expanded(path: &str, variable: &impl Fn(&str) -> Option<String>) -> PathBuf {
    let begins = path.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let path = begins.and_then(|rest| Some(variable("HOME")? + rest)).unwrap_or_else(|| path.to_owned());
    let (mut out, mut rest) = (String::new(), path.as_str());
    while let Some((before, after)) = rest.split_once('$') {
        let braced = after.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let (name, behind) = braced.unwrap_or_else(|| {
            let end = after.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
            after.split_at(end.unwrap_or(after.len()))
        });
        let value = variable(name);
        out += before;
        out += value.as_deref().unwrap_or("$");
        rest = if value.is_some() { behind } else { after };
    }
    PathBuf::from(out + rest)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_token_is_not_shown() {
        let token = Some("hf_secret".to_owned());
        let secret = HubOptions { cache: "c".into(), endpoint: None, token, offline: true };
        let shown = format!("{secret:?}");
        assert!(!shown.contains("hf_secret") && shown.contains("hidden"), "{shown}");
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
        assert_eq!(with(&[("HF_HOME", "/f"), ("HUGGINGFACE_HUB_CACHE", "/c")]).cache, Path::new("/c"));
        for (path, expected) in [
            ("~/f", "/h/f/hub"),
            ("$DISK/f", "/d/f/hub"),
            ("/a/${DISK}f", "/a//df/hub"),
            ("/a~/$NONE/${NONE}", "/a~/$NONE/${NONE}/hub"),
            ("~you/$", "~you/$/hub"),
        ] {
            assert_eq!(with(&[("HOME", "/h"), ("DISK", "/d"), ("HF_HOME", path)]).cache, Path::new(expected), "{path}");
        }
        let all = with(&[("HF_TOKEN", "t"), ("HF_ENDPOINT", "http://e"), ("HF_HUB_OFFLINE", "TRUE")]);
        assert_eq!((all.token.as_deref(), all.endpoint.as_deref(), all.offline), (Some("t"), Some("http://e"), true));
        let old = with(&[("HUGGING_FACE_HUB_TOKEN", " t\r\n"), ("TRANSFORMERS_OFFLINE", "1"), ("HF_HOME", "/no/such")]);
        assert_eq!((old.token.as_deref(), old.offline), (Some("t"), true));
        assert!(!with(&[("HF_HUB_OFFLINE", "0"), ("TRANSFORMERS_OFFLINE", "1")]).offline, "the first that is set");
        let none = with(&[("HF_TOKEN", ""), ("HF_HUB_OFFLINE", "0"), ("HF_HOME", "/no/such")]);
        assert_eq!((none.token, none.endpoint, none.offline), (None, None, false));
    }
}
