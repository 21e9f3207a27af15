use std::path::Path;

use judge_core::LayerWeights;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::resumable::read_text;
use crate::row::describe;
use crate::{Error, write_atomic};

/// A thing that is saved whole in a JSON file of its own.
///
/// The file is `{"format", "version", "content"}`. Raise [`VERSION`](Self::VERSION) whenever older readers would
/// misunderstand the content; a file of any other version is refused rather than guessed at.
pub trait Document: Serialize + DeserializeOwned {
    /// Names the kind of file, e.g. `judge-layer-weights`.
    const FORMAT: &'static str;
    /// The version that is written, and the only one that is read.
    const VERSION: u64;
}

/// Fitted layer weights, with everything they were made from.
impl Document for LayerWeights {
    const FORMAT: &'static str = "judge-layer-weights";
    const VERSION: u64 = 1;
}

#[derive(Serialize)]
struct Written<'a, T> {
    format: &'static str,
    version: u64,
    content: &'a T,
}

#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    format: Value,
    #[serde(default)]
    version: Value,
}

#[derive(Deserialize)]
struct Read<T> {
    content: T,
}

/// Saves a document; the file appears whole or not at all.
///
/// # Errors
/// [`Error::Serialize`], [`Error::Io`].
pub fn save<T: Document>(path: impl AsRef<Path>, document: &T) -> Result<(), Error> {
    let written = Written { format: T::FORMAT, version: T::VERSION, content: document };
    let mut text = serde_json::to_vec_pretty(&written).map_err(Error::serialize)?;
    text.push(b'\n');
    write_atomic(path.as_ref(), &text)
}

/// Loads a document.
///
/// # Errors
/// [`Error::FileFormat`] for a file of another kind, [`Error::FileVersion`] for another version, [`Error::Document`] if
/// it is not JSON or the content is not what the format says, [`Error::Utf8`], [`Error::Io`].
pub fn load<T: Document>(path: impl AsRef<Path>) -> Result<T, Error> {
    let path = path.as_ref();
    let text = read_text(path)?;
    let failed = |source| Error::Document { path: path.to_path_buf(), source };
    let other = |found| Error::FileFormat { path: path.to_path_buf(), expected: T::FORMAT, found };
    let head = match serde_json::from_str::<Value>(&text).map_err(failed)? {
        object @ Value::Object(_) => serde_json::from_value::<Head>(object).map_err(failed)?,
        value => return Err(other(describe(&value.to_string()))),
    };
    match head.format {
        Value::String(format) if format == T::FORMAT => {}
        Value::Null => return Err(other("no format field".into())),
        format => return Err(other(describe(&format.to_string()))),
    }
    match head.version.as_u64() {
        Some(version) if version == T::VERSION => {}
        Some(found) => {
            let (path, expected) = (path.to_path_buf(), T::VERSION);
            return Err(Error::FileVersion { path, format: T::FORMAT, expected, found });
        }
        None => return Err(other(format!("version {}", head.version))),
    }
    serde_json::from_str::<Read<T>>(&text).map(|read| read.content).map_err(failed)
}
