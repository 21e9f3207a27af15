//! The files of a model folder but for its weights, and what a GGUF file has in their place.
//!
//! `judge-models` finds out what a folder has (`folder.rs`) and makes a [`Files`] of it; readers ask that for each file by its name.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use judge_weights::error::Error;
use judge_weights::read::{read_json, read_text};
use serde_json::Value;

/// A folder with a parsed `config.json`, whose small files are read by their names.
///
/// A file that is not there may be made of a GGUF file. Readers see no difference: [`json`](Self::json), [`bytes`](Self::bytes) and
/// [`text`](Self::text) give what was made under the name that the file would have.
#[derive(Clone, Debug)]
pub struct Files {
    folder: PathBuf,
    config: Value,
    /// The GGUF file that has the weights, if one does.
    gguf: Option<PathBuf>,
    /// What was made of the GGUF file in the place of files that are not there, by their names.
    made: Arc<Vec<(&'static str, Value)>>,
}

impl Files {
    /// The files of a folder without a GGUF file. `config` is its `config.json`. Nothing is looked at yet.
    pub fn new(folder: PathBuf, config: Value) -> Self {
        Self { folder, config, gguf: None, made: Arc::default() }
    }

    /// The same of a folder whose weights are in this GGUF file, and what was made of that in the place of files that are not there, by
    /// their names.
    pub fn of_gguf(folder: PathBuf, config: Value, gguf: PathBuf, made: Vec<(&'static str, Value)>) -> Self {
        Self { folder, config, gguf: Some(gguf), made: Arc::new(made) }
    }

    /// Where the folder is, as given.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The parsed `config.json`.
    pub fn config(&self) -> &Value {
        &self.config
    }

    /// Whether the weights are in a GGUF file.
    pub fn has_gguf(&self) -> bool {
        self.gguf.is_some()
    }

    /// What was made of the GGUF file in the place of this one; `None` if it is there, or nothing was.
    pub(crate) fn made(&self, name: &str) -> Option<&Value> {
        self.made.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// The path of a file in the folder, whether or not it is there; that of the GGUF file where it was made of that. `name` must be a
    /// constant, or have passed [`stays_inside`](judge_weights::read::stays_inside).
    pub fn file(&self, name: &str) -> PathBuf {
        match (self.made(name), &self.gguf) {
            (Some(_), Some(gguf)) => gguf.clone(),
            _ => self.folder.join(name),
        }
    }

    /// Whether a file is there, or was made of the GGUF file.
    pub fn has(&self, name: &str) -> bool {
        self.made(name).is_some() || self.folder.join(name).is_file()
    }

    /// A JSON file that need not be there; `None` if it is not.
    ///
    /// # Errors
    /// Those of [`read_json`].
    pub fn json(&self, name: &str) -> Result<Option<Value>, Error> {
        if let Some(made) = self.made(name) {
            return Ok(Some(made.clone()));
        }
        let path = self.file(name);
        Ok(if path.is_file() { Some(read_json(&path)?) } else { None })
    }

    /// The content of any file that need not be there; `None` if it is not.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn bytes(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        if let Some(made) = self.made(name) {
            return Ok(Some(made.to_string().into_bytes()));
        }
        let path = self.file(name);
        if !path.is_file() {
            return Ok(None);
        }
        Ok(Some(fs::read(&path).map_err(|source| Error::Read { path, source })?))
    }

    /// A text file that need not be there; `None` if it is not.
    ///
    /// # Errors
    /// Those of [`read_text`].
    pub fn text(&self, name: &str) -> Result<Option<String>, Error> {
        if let Some(made) = self.made(name) {
            return Ok(Some(made.to_string()));
        }
        let path = self.file(name);
        Ok(if path.is_file() { Some(read_text(&path)?) } else { None })
    }
}

#[cfg(test)]
impl Files {
    /// The files of a folder with a `config.json`.
    pub(crate) fn open(folder: &Path) -> Result<Self, Error> {
        Ok(Self::new(folder.to_owned(), read_json(&folder.join(crate::file::CONFIG))?))
    }
}
