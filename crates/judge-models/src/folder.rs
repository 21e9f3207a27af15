//! A model folder on disk: which files it may have, whether it has what a model needs, and how its
//! small text files are read.
//!
//! `Model::load` opens a [`Folder`] first and hands it to all that read files: the tokenizer
//! (`text/`), the weights (`weights/`), the fingerprint and `merge.rs`. Everything below it names
//! files through [`file`](mod@file), so this is the one list of names.
//!
//! Not here: what `config.json` means (`arch/`), what a file of weights holds (`weights/`), and
//! where a folder comes from (`hub.rs`).
//!
//! What a folder has:
//!
//! | file | needed | read by |
//! |---|---|---|
//! | `config.json` | yes | here, then `arch/` |
//! | `model.safetensors`, or `model.safetensors.index.json` with shards, or exactly one `*.gguf` | one of them | `weights/` |
//! | `tokenizer.json` | yes | `text/tokenizer.rs` |
//! | `tokenizer_config.json`, `special_tokens_map.json` | no | `text/tokenizer/special_tokens.rs` |
//! | `chat_template.jinja` | no | `text/tokenizer/special_tokens.rs` |
//! | `generation_config.json` | no | `model.rs`, for the end tokens |
//!
//! An adapter's folder, with `adapter_config.json` and `adapter_model.safetensors`, is no model
//! folder; `weights/lora.rs` reads it.

use std::fs;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use crate::Error;

/// Names of the files that this crate reads from a model folder.
pub(crate) mod file {
    /// The description of the model.
    pub(crate) const CONFIG: &str = "config.json";
    /// Defaults of generation, of which only the end tokens are read.
    pub(crate) const GENERATION_CONFIG: &str = "generation_config.json";
    /// All weights in one file.
    pub(crate) const WEIGHTS: &str = "model.safetensors";
    /// The index that says which shard has which tensor.
    pub(crate) const WEIGHTS_INDEX: &str = "model.safetensors.index.json";
    /// The tokenizer, in the format of the crate `tokenizers`.
    pub(crate) const TOKENIZER: &str = "tokenizer.json";
    /// transformers' settings of the tokenizer; may hold the chat template.
    pub(crate) const TOKENIZER_CONFIG: &str = "tokenizer_config.json";
    /// The chat template as a file of its own; wins over the others.
    pub(crate) const CHAT_TEMPLATE: &str = "chat_template.jinja";
    /// The template of a processor of images and sounds; it is kept beside the others and not read.
    pub(crate) const CHAT_TEMPLATE_JSON: &str = "chat_template.json";
    /// Named special tokens; read where there is no `tokenizer_config.json`, or one of the old kind.
    pub(crate) const SPECIAL_TOKENS_MAP: &str = "special_tokens_map.json";
    /// What a folder may have beside `config.json` and weights: how text becomes tokens, and where
    /// writing ends. The hub's client fetches these, and `merge.rs` copies them.
    pub(crate) const OF_TEXT: [&str; 6] =
        [GENERATION_CONFIG, TOKENIZER, TOKENIZER_CONFIG, SPECIAL_TOKENS_MAP, CHAT_TEMPLATE, CHAT_TEMPLATE_JSON];
    /// PEFT's description of an adapter. Beside whole weights it does not count.
    pub(crate) const ADAPTER_CONFIG: &str = "adapter_config.json";
    /// The tensors of an adapter.
    pub(crate) const ADAPTER_WEIGHTS: &str = "adapter_model.safetensors";
}

/// A Hugging Face model folder that has everything this crate needs.
///
/// Only files inside the folder are ever named. A name may be a symbolic link, which the file
/// system follows: the hub cache is made of links into a sibling folder.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    /// As given to [`open`](Self::open), not resolved.
    path: PathBuf,
    /// `config.json`, which is read once.
    config: Value,
    /// The name of the one GGUF file, where there are no safetensors.
    gguf: Option<String>,
}

impl Folder {
    /// Looks at the names in the folder and reads `config.json`. Weights and tokenizer are not
    /// opened.
    ///
    /// # Errors
    /// In this order, each with the names involved:
    ///
    /// - [`Error::NotAFolder`], or [`Error::Read`] for a folder that cannot be listed;
    /// - [`Error::Unsupported`] for an adapter without its base model;
    /// - [`Error::MissingFile`] for no `config.json`, and the errors of reading it;
    /// - [`Error::MissingFile`] for no weights, [`Error::Unsupported`] for several `.gguf` files
    ///   without safetensors;
    /// - [`Error::MissingFile`] for no `tokenizer.json`.
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

    /// The name of the GGUF file that has the weights; `None` if safetensors have them.
    pub(crate) fn gguf(&self) -> Option<&str> {
        self.gguf.as_deref()
    }

    /// Where the folder is, as given.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The parsed `config.json`.
    pub(crate) fn config(&self) -> &Value {
        &self.config
    }

    /// The path of a file in the folder, whether or not it is there. `name` must come from
    /// [`file`](mod@file), or have passed [`stays_inside`].
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// A JSON file that need not be there; `None` if it is not. Errors are those of [`read_json`].
    pub(crate) fn json(&self, name: &str) -> Result<Option<Value>, Error> {
        let path = self.file(name);
        if path.is_file() { read_json(&path).map(Some) } else { Ok(None) }
    }

    /// A text file that need not be there; `None` if it is not. Errors are those of [`read_text`].
    pub(crate) fn text(&self, name: &str) -> Result<Option<String>, Error> {
        let path = self.file(name);
        if path.is_file() { read_text(&path).map(Some) } else { Ok(None) }
    }
}

/// Names in a folder, sorted, so that an error can say what was there. Bytes that are no UTF-8 are
/// replaced.
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

/// Whether a path, such as a shard's name from an index, stays inside the folder that it is joined
/// to. It must have names only: no root, no `..`, no `.` at its start. Links are not looked at.
pub(crate) fn stays_inside(path: &Path) -> bool {
    !path.as_os_str().is_empty() && path.components().all(|c| matches!(c, Component::Normal(_)))
}

/// UTF-8 text without the byte-order mark that some editors put first.
///
/// # Errors
/// [`Error::Read`], or [`Error::Encoding`] with the offset of the first byte that is not UTF-8.
pub(crate) fn read_text(path: &Path) -> Result<String, Error> {
    let bytes = fs::read(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    let text = String::from_utf8(bytes)
        .map_err(|e| Error::Encoding { path: path.to_owned(), offset: e.utf8_error().valid_up_to() })?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// Any JSON file; a byte-order mark is accepted. Objects keep the order of their fields.
///
/// # Errors
/// Those of [`read_text`], and [`Error::Json`] with line and column.
pub(crate) fn read_json(path: &Path) -> Result<Value, Error> {
    serde_json::from_str(&read_text(path)?).map_err(|source| Error::Json { path: path.to_owned(), source })
}
