use std::fs;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use crate::Error;

/// Names of the files that this crate reads from a model folder.
pub(crate) mod file {
    pub(crate) const CONFIG: &str = "config.json";
    pub(crate) const GENERATION_CONFIG: &str = "generation_config.json";
    pub(crate) const WEIGHTS: &str = "model.safetensors";
    pub(crate) const WEIGHTS_INDEX: &str = "model.safetensors.index.json";
    pub(crate) const TOKENIZER: &str = "tokenizer.json";
    pub(crate) const TOKENIZER_CONFIG: &str = "tokenizer_config.json";
    pub(crate) const CHAT_TEMPLATE: &str = "chat_template.jinja";
    pub(crate) const CHAT_TEMPLATE_JSON: &str = "chat_template.json";
    pub(crate) const SPECIAL_TOKENS_MAP: &str = "special_tokens_map.json";
    /// What a folder may have beside `config.json` and weights: how text becomes tokens, and where writing ends.
    pub(crate) const OF_TEXT: [&str; 6] =
        [GENERATION_CONFIG, TOKENIZER, TOKENIZER_CONFIG, SPECIAL_TOKENS_MAP, CHAT_TEMPLATE, CHAT_TEMPLATE_JSON];
    pub(crate) const ADAPTER_CONFIG: &str = "adapter_config.json";
    pub(crate) const ADAPTER_WEIGHTS: &str = "adapter_model.safetensors";
}

/// A Hugging Face model folder that has everything this crate needs.
///
/// Only files inside the folder are ever named. That a name may be a symbolic link is the file system's business: the
/// hub cache is made of links into a sibling folder.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    config: Value,
    /// The name of the one GGUF file, where there are no safetensors.
    gguf: Option<String>,
}

impl Folder {
    /// Looks at the folder and refuses, by name, what cannot be loaded: no `config.json`, an adapter without its base model, weights in another format
    /// than safetensors or one GGUF file, no `tokenizer.json`.
    pub(crate) fn open(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        let found = names(&path)?;
        let has = |name: &str| found.iter().any(|f| f == name);
        let unsupported = |file: &str, field: &str, found: String, supported: &'static str| Error::Unsupported {
            path: path.join(file),
            field: field.to_owned(),
            found,
            supported,
        };
        let missing = |wanted: &'static str, found: &[String]| Error::MissingFile {
            folder: path.clone(),
            wanted,
            found: found.to_vec(),
        };

        let has_weights = has(file::WEIGHTS) || has(file::WEIGHTS_INDEX);
        if has(file::ADAPTER_CONFIG) && !has_weights {
            return Err(unsupported(
                file::ADAPTER_CONFIG,
                "peft_type",
                "an adapter without its base model".to_owned(),
                "folders with all weights: load its base model, and name the adapter beside it (LoadOptions::adapters)",
            ));
        }
        if !has(file::CONFIG) {
            return Err(missing(file::CONFIG, &found));
        }
        let config = read_json(&path.join(file::CONFIG))?;
        let mut gguf: Vec<String> = Vec::new();
        if !has_weights {
            gguf = found.iter().filter(|name| name.ends_with(".gguf")).cloned().collect();
            match gguf.len() {
                0 => {
                    let wanted = "model.safetensors, model.safetensors.index.json or a .gguf file";
                    return Err(missing(wanted, &found));
                }
                1 => {}
                _ => return Err(unsupported("", "weights", gguf.join(", "), "one .gguf file in a folder")),
            }
        }
        if !has(file::TOKENIZER) {
            return Err(missing(file::TOKENIZER, &found));
        }
        Ok(Self { path, config, gguf: gguf.pop() })
    }

    /// The name of the GGUF file that has its weights, if it has no safetensors.
    pub(crate) fn gguf(&self) -> Option<&str> {
        self.gguf.as_deref()
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The parsed `config.json`.
    pub(crate) fn config(&self) -> &Value {
        &self.config
    }

    /// Path of a file that this crate names.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// A JSON file that need not be there.
    pub(crate) fn json(&self, name: &str) -> Result<Option<Value>, Error> {
        let path = self.file(name);
        if path.is_file() { read_json(&path).map(Some) } else { Ok(None) }
    }

    /// A text file that need not be there.
    pub(crate) fn text(&self, name: &str) -> Result<Option<String>, Error> {
        let path = self.file(name);
        if path.is_file() { read_text(&path).map(Some) } else { Ok(None) }
    }
}

/// Names of the files in a folder, sorted, so that an error can say what was there.
fn names(path: &Path) -> Result<Vec<String>, Error> {
    if !path.is_dir() {
        return Err(Error::NotAFolder { path: path.to_owned() });
    }
    let read = |source| Error::Read { path: path.to_owned(), source };
    let mut names = Vec::new();
    for entry in fs::read_dir(path).map_err(read)? {
        names.push(entry.map_err(read)?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// The name of a file, which may lead into a folder but never out of it.
pub(crate) fn stays_inside(path: &Path) -> bool {
    !path.as_os_str().is_empty() && path.components().all(|c| matches!(c, Component::Normal(_)))
}

/// UTF-8 text without the byte-order mark that some editors put first.
pub(crate) fn read_text(path: &Path) -> Result<String, Error> {
    let bytes = fs::read(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    let text = String::from_utf8(bytes)
        .map_err(|e| Error::Encoding { path: path.to_owned(), offset: e.utf8_error().valid_up_to() })?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// Any JSON file; a byte-order mark is accepted.
pub(crate) fn read_json(path: &Path) -> Result<Value, Error> {
    serde_json::from_str(&read_text(path)?).map_err(|source| Error::Json { path: path.to_owned(), source })
}
