//! A model folder on disk: which files it may have, and whether it has what a model needs.
//!
//! `Model::load` opens a [`Folder`] first and hands it to all that read files: the tokenizer (`judge-text`, which owns how the small
//! files are read), the weights (`weights/`), the fingerprint and `merge.rs`. Everything below it names
//! files through [`file`](mod@file), the one table of names: who reads a file, whether the hub's client fetches it,
//! and whether a merge copies it.
//!
//! Not here: what `config.json` means (`judge-arch`), what a file of weights holds (`weights/`), and
//! where a folder comes from (`hub.rs`).
//!
//! What a folder has:
//!
//! | file | needed | read by |
//! |---|---|---|
//! | `config.json` | yes, but for GGUF | here, then `judge-arch` |
//! | `model.safetensors`, or `model.safetensors.index.json` with shards | one of these rows; the first counts | `weights/` |
//! | exactly one `*.gguf` | | `weights/` |
//! | `pytorch_model.bin`, or `pytorch_model.bin.index.json` with shards | | `weights/` |
//! | `tokenizer.json` | yes, but for GGUF and SentencePiece | `tokenizer.rs` of `judge-text` |
//! | `tokenizer.model`, `sentencepiece.bpe.model`, `spm.model` | without `tokenizer.json` | `tokenizer/sentencepiece.rs` of `judge-text` |
//! | `tokenizer_config.json`, `special_tokens_map.json`, `added_tokens.json` | no | `tokenizer/special_tokens.rs` of `judge-text` |
//! | `additional_chat_templates/default.jinja`, `chat_template.jinja` | no | `tokenizer/special_tokens.rs` of `judge-text` |
//! | `generation_config.json` | no | `model.rs`, for the end tokens |
//! | `value_head.safetensors`, `value_head.bin` | no | `value_head.rs` |
//! | `decision.json`, `decision_template.jinja` and the files of heads of decisions | no | `decision/folder.rs` |
//!
//! A GGUF file stands for the files that are not beside it: without a `config.json` that has more than a type its keys describe the model,
//! and without a `tokenizer.json` its vocabulary, special tokens and chat template are those of the model
//! (`gguf/`, and `gguf.rs` of `judge-text`). Readers see no difference: [`Folder::json`] and [`Folder::text`] give what was made of the
//! file under the names that it would have. A GGUF file that is named itself is the one that counts in its folder, whatever its name.
//!
//! An adapter's folder, with `adapter_config.json` and `adapter_model.safetensors`, is no model
//! folder; `judge-weights` reads it, and `base.rs` finds its base model.
//!
//! Files that are not what their names say (pointers of Git LFS, pages of an error, nothing at all)
//! are recognised here by their first bytes, for all readers: [`refuse_stand_in`].

pub(crate) mod file;
pub(crate) mod named_adapter;

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use judge_text::Files;
use judge_text::gguf::TextFiles;
use judge_weights::gguf::file::{GgufFile, SplitName};
pub(crate) use judge_weights::read::{names, read_json, read_text, refuse_stand_in, stays_inside};
use serde_json::Value;

use crate::gguf;
use crate::{ConfigProblem, Error, WeightsError};

/// A Hugging Face model folder that has everything this crate needs.
///
/// Only files inside the folder are ever named. A name may be a symbolic link, which the file
/// system follows: the hub cache is made of links into a sibling folder.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    /// The folder's path as given to [`open`](Self::open), not resolved, or that of the folder of a file that was given;
    /// `config.json`, which is read once, or made of the GGUF file; and what else was made of that.
    files: Files,
    /// As given, a folder or a GGUF file.
    given: PathBuf,
    /// The one GGUF file, where there are no safetensors.
    gguf: Option<Arc<GgufFile>>,
}

impl Folder {
    /// Looks at the names in the folder, reads `config.json` and the header of a GGUF file. Other weights
    /// and the tokenizer are not opened.
    ///
    /// # Errors
    /// In this order, each with the names involved:
    ///
    /// - [`WeightsError::NotAFolder`], or [`WeightsError::Read`] for a folder that cannot be listed;
    /// - [`WeightsError::Unsupported`] for an adapter in the place of a base model, and for several `.gguf` files
    ///   without safetensors (parts of one file, and those that begin with `mmproj`, do not count);
    /// - [`WeightsError::MissingFile`] for no weights, or for the first part of a split GGUF file;
    /// - those of a GGUF file, among them [`WeightsError::Gguf`] for one that is no model;
    /// - [`WeightsError::MissingFile`] for no `config.json`, and the errors of reading it;
    /// - [`WeightsError::MissingFile`] for no `tokenizer.json` and no file of SentencePiece.
    pub(crate) fn open(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let given = path.into();
        let (path, chosen) = match given.file_name().and_then(|name| name.to_str()) {
            Some(name) if given.is_file() && (is_gguf(&given) || begins_as_gguf(&given)) => {
                let parent = given.parent().filter(|parent| !parent.as_os_str().is_empty());
                (parent.unwrap_or(Path::new(".")).to_owned(), Some(name.to_owned()))
            }
            _ => (given.clone(), None),
        };
        let found = names(&path)?;
        let has = |name: &str| found.iter().any(|f| f == name);
        let missing = |wanted| Error::missing_file(path.clone(), wanted, found.clone());

        let has_weights = chosen.is_none() && (has(file::WEIGHTS) || has(file::WEIGHTS_INDEX));
        let has_pickle = chosen.is_none() && (has(file::PICKLE) || has(file::PICKLE_INDEX));
        if has(file::ADAPTER_CONFIG) && chosen.is_none() && !has_weights && !has_pickle {
            return Err(WeightsError::unsupported(
                path.join(file::ADAPTER_CONFIG),
                "peft_type",
                "an adapter in the place of a base model",
                "folders with all weights: name its base and the adapters over it; `judge merge` makes one folder of them",
            )
            .into());
        }
        let gguf = match &chosen {
            _ if has_weights => None,
            Some(name) => Some(first_part(name)),
            None => {
                let mut all: Vec<String> =
                    found.iter().filter(|name| is_gguf_model(name)).map(|name| first_part(name)).collect();
                all.dedup();
                match &all[..] {
                    [] => None,
                    [name] => Some(name.clone()),
                    _ => {
                        let supported = "one model in a folder: name the file";
                        return Err(
                            WeightsError::unsupported(path.join(""), "weights", all.join(", "), supported).into()
                        );
                    }
                }
            }
        };
        let gguf = gguf.map(|name| open_gguf(&path.join(name))).transpose()?;
        if !has_weights && !has_pickle && gguf.is_none() && has(file::CONFIG) {
            return Err(missing("model.safetensors, model.safetensors.index.json, a .gguf file or pytorch_model.bin"));
        }
        let fault =
            |file: &GgufFile, problem| Error::Weights(WeightsError::Gguf { path: file.path().to_owned(), problem });
        let mut made = Vec::new();
        let described = if has(file::CONFIG) { Some(read_json(&path.join(file::CONFIG))?) } else { None };
        let config = match (&gguf, described) {
            (Some(file), described) if described.as_ref().is_none_or(is_stub) => {
                let config = gguf::config(file).map_err(|problem| fault(file, problem))?;
                made.push((file::CONFIG, config.clone()));
                config
            }
            (_, Some(described)) => described,
            (_, None) => return Err(missing(file::CONFIG)),
        };
        match &gguf {
            Some(file) if !has(file::TOKENIZER) => {
                let texts = TextFiles::of(file).map_err(|problem| fault(file, problem))?;
                made.push((file::TOKENIZER, texts.tokenizer));
                made.push((file::TOKENIZER_CONFIG, texts.tokenizer_config));
                made.push((file::GENERATION_CONFIG, texts.generation_config));
            }
            None if !has(file::TOKENIZER) && !file::OF_SENTENCEPIECE.into_iter().any(has) => {
                return Err(missing(file::TOKENIZER));
            }
            _ => {}
        }
        made.retain(|(name, _)| *name == file::CONFIG || !has(name));
        let files = match &gguf {
            Some(file) => Files::of_gguf(path, config, file.path().to_owned(), made),
            None => Files::new(path, config),
        };
        Ok(Self { files, given, gguf })
    }

    /// The GGUF file that has the weights; `None` if safetensors have them.
    pub(crate) fn gguf(&self) -> Option<&Arc<GgufFile>> {
        self.gguf.as_ref()
    }

    /// The matrix of a GGUF file's head of labels, where llama.cpp's converter has kept one; it is not read.
    pub(crate) fn unread_head(&self) -> Option<&'static str> {
        const HEAD: &str = "cls.output.weight";
        self.gguf.as_ref().filter(|file| file.header.tensors.contains_key(HEAD)).map(|_| HEAD)
    }

    /// The folder, or the GGUF file, as given.
    pub(crate) fn given(&self) -> &Path {
        &self.given
    }

    /// The files but for the weights, which say how texts become tokens.
    pub(crate) fn files(&self) -> &Files {
        &self.files
    }

    /// Where the folder is, as given; of a file that was given, the folder that it is in.
    pub(crate) fn path(&self) -> &Path {
        self.files.folder()
    }

    /// The parsed `config.json`.
    pub(crate) fn config(&self) -> &Value {
        self.files.config()
    }

    /// The error for a problem with what `config.json` says.
    pub(crate) fn wrong_config(&self, problem: ConfigProblem) -> Error {
        Error::Config { path: self.file(file::CONFIG), problem }
    }

    /// As [`Files::file`]. `name` must come from [`file`](mod@file), or have passed [`stays_inside`].
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.files.file(name)
    }

    /// As [`Files::has`].
    pub(crate) fn has(&self, name: &str) -> bool {
        self.files.has(name)
    }

    /// As [`Files::json`].
    pub(crate) fn json(&self, name: &str) -> Result<Option<Value>, WeightsError> {
        self.files.json(name)
    }

    /// As [`Files::bytes`].
    pub(crate) fn bytes(&self, name: &str) -> Result<Option<Vec<u8>>, WeightsError> {
        self.files.bytes(name)
    }

    /// As [`Files::text`].
    pub(crate) fn text(&self, name: &str) -> Result<Option<String>, WeightsError> {
        self.files.text(name)
    }
}

/// Whether a file that is named is a GGUF file by its first bytes: programs keep them under names of their own, such as a digest.
fn begins_as_gguf(path: &Path) -> bool {
    let mut start = [0; 4];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && &start == b"GGUF"
}

/// Whether a file is a GGUF file by its name, which is how one is found in a folder.
pub(crate) fn is_gguf(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"))
}

/// Whether a file of a folder is a model as GGUF, by its name: what lies beside one for pictures is none.
pub(crate) fn is_gguf_model(name: &str) -> bool {
    is_gguf(Path::new(name)) && !name.contains(['/', '\\']) && !name.starts_with("mmproj")
}

/// Whether a `config.json` describes no model: beside GGUF files some have the type alone, for the hub to count downloads by.
fn is_stub(config: &Value) -> bool {
    config.as_object().is_some_and(|fields| !fields.values().any(|value| value.is_number() || value.is_object()))
}

/// The name of the first part of a split GGUF file, given any of its parts; any other name as it is.
fn first_part(name: &str) -> String {
    SplitName::of(name).map_or_else(|| name.to_owned(), |split| split.part(1))
}

/// Opens a GGUF file that is a model.
///
/// # Errors
/// [`WeightsError::StandIn`], [`WeightsError::Read`] and [`WeightsError::Gguf`].
fn open_gguf(path: &Path) -> Result<Arc<GgufFile>, Error> {
    /// Enough to tell a file from what stands in its place.
    const START: u64 = 256;
    let mut start = Vec::new();
    let read = |source| WeightsError::Read { path: path.to_owned(), source };
    File::open(path).and_then(|file| file.take(START).read_to_end(&mut start)).map_err(read)?;
    refuse_stand_in(path, &start)?;
    let file = GgufFile::open(path)?;
    gguf::refuse_others(&file.header)
        .map_err(|problem| Error::Weights(WeightsError::Gguf { path: path.to_owned(), problem }))?;
    Ok(Arc::new(file))
}
