use std::fs;
use std::path::Path;

use judge_core::decision::DecisionWeights;
use judge_core::lager::LayerWeights;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::files::foreign::BOM;
use crate::rows::row::describe;
use crate::{Error, Place, write_atomic, write_new};

/// A thing that is saved whole in a JSON file of its own.
///
/// The file is `{"format", "version", "content"}`. Raise [`VERSION`](Self::VERSION) whenever older readers would
/// misunderstand the content; a newer version is refused rather than guessed at. Older versions are read from
/// [`OLDEST`](Self::OLDEST) on. A field that is only added needs no new version: fields of the content that are not known are
/// left out when a file is read. Settings within it that change what numbers mean, such as a
/// [`Generation`](judge_core::request::Generation), refuse what they do not know.
pub trait Document: Serialize + DeserializeOwned {
    /// Names the kind of file, e.g. `judge-layer-weights`.
    const FORMAT: &'static str;
    /// The version that is written, and the newest one that is read.
    const VERSION: u64;
    /// The oldest version that is still read.
    const OLDEST: u64 = Self::VERSION;

    /// The content of a file of an older version, from [`OLDEST`](Self::OLDEST) on, in the form of [`VERSION`](Self::VERSION). Whoever
    /// lowers `OLDEST` writes this too; the default changes nothing.
    fn upgrade(version: u64, content: Value) -> Value {
        let _ = version;
        content
    }
}

/// Fitted layer weights, with everything they were made from.
impl Document for LayerWeights {
    const FORMAT: &'static str = "judge-layer-weights";
    const VERSION: u64 = 1;
}

/// Fitted weights and temperatures of decisions, with what they belong to.
impl Document for DecisionWeights {
    const FORMAT: &'static str = "judge-decision-weights";
    const VERSION: u64 = 1;
}

#[derive(Serialize)]
struct Written<'a, T> {
    format: &'static str,
    version: u64,
    content: &'a T,
}

/// Saves a document; the file appears whole or not at all. A number in it that is not finite is written as null, which is not read back as
/// a number: check first.
///
/// # Errors
/// [`Error::Serialize`]; as [`write_atomic`].
pub fn save<T: Document>(path: impl AsRef<Path>, document: &T) -> Result<(), Error> {
    write_atomic(path.as_ref(), &text_of(document)?)
}

/// Saves a document that is kept: a file of other content is not replaced.
///
/// # Errors
/// [`Error::Serialize`]; as [`write_new`].
pub fn save_new<T: Document>(path: impl AsRef<Path>, document: &T, overwrite: bool) -> Result<(), Error> {
    write_new(path, &text_of(document)?, overwrite)
}

/// The text of a document's file.
pub(crate) fn text_of<T: Document>(document: &T) -> Result<Vec<u8>, Error> {
    let written = Written { format: T::FORMAT, version: T::VERSION, content: document };
    let mut text = serde_json::to_vec_pretty(&written).map_err(Error::serialize)?;
    text.push(b'\n');
    Ok(text)
}

/// Loads a document, also one of an older version that its type still reads.
///
/// # Errors
/// [`Error::FileFormat`] for a file of another kind, [`Error::Content`] for a newer version or one that is no longer read,
/// [`Error::Document`] if it is not JSON or the content is not what the format says, [`Error::Utf8`], [`Error::Io`].
pub fn load<T: Document>(path: impl AsRef<Path>) -> Result<T, Error> {
    let path = path.as_ref();
    let text = decoded(path, fs::read(path).map_err(Error::io("read", path))?)?;
    let failed = |source| Error::Document { path: path.to_path_buf(), source };
    let other = |found| Error::FileFormat { path: path.to_path_buf(), expected: T::FORMAT, found };
    let mut file = match serde_json::from_str::<Value>(&text).map_err(failed)? {
        Value::Object(file) => file,
        value => return Err(other(describe(&value.to_string()))),
    };
    match file.get("format") {
        Some(Value::String(format)) if format == T::FORMAT => {}
        None | Some(Value::Null) => return Err(other("no format field".into())),
        Some(format) => return Err(other(describe(&format.to_string()))),
    }
    let version = match file.get("version") {
        Some(version) => version.as_u64().ok_or_else(|| other(format!("version {version}")))?,
        None => return Err(other("no version field".into())),
    };
    if !(T::OLDEST..=T::VERSION).contains(&version) {
        let expected = format!("{} of a version from {} to {}", T::FORMAT, T::OLDEST, T::VERSION);
        let found = format!("version {version}");
        return Err(Error::content(path, "format", expected, found));
    }
    let content = file.remove("content").unwrap_or_default();
    let content = if version < T::VERSION { T::upgrade(version, content) } else { content };
    serde_json::from_value(content).map_err(failed)
}

/// The text of a file's bytes. A byte-order mark, which Windows editors write, is left out.
///
/// # Errors
/// [`Error::Utf8`].
pub(crate) fn decoded(path: &Path, mut bytes: Vec<u8>) -> Result<String, Error> {
    if bytes.starts_with(BOM) {
        bytes.drain(..BOM.len());
    }
    String::from_utf8(bytes).map_err(|e| {
        let before = &e.as_bytes()[..e.utf8_error().valid_up_to()]; // the index is the standard library's own
        let line = 1 + before.iter().filter(|&&b| b == b'\n').count();
        let column = 1 + before.iter().rev().take_while(|&&b| b != b'\n').count();
        Error::Utf8 { place: Place { path: path.to_path_buf(), line }, column }
    })
}
