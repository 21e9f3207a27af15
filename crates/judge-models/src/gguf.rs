//! GGUF files of llama.cpp: what is in them, and what a model folder would say in their place.
//!
//! ```text
//!  one file, or its parts ─► GgufFile ─► keys and tensors
//!                               ├─► config      config.json
//!                               ├─► TextFiles   tokenizer.json, tokenizer_config.json, generation_config.json
//!                               └─► weights/gguf.rs, by the names of Architecture
//! ```
//!
//! | file | owns |
//! |---|---|
//! | `file.rs` | the file on disk, whole or split |
//! | `header.rs` | the header: keys with values, and where tensors lie |
//! | `kind.rs` | types of tensors: names and sizes |
//! | `architectures.rs` | names of tensors, and what the converter does to them, by architecture |
//! | `config.rs` | the model's description |
//! | `tokenizer.rs`, `pre_tokenizers.rs`, `encoder_tokenizers.rs` | vocabulary, merges, special tokens and chat template |
//! | `problem.rs` | what can be wrong |
//!
//! This module knows bytes, names and JSON alone. `folder.rs` asks it for the texts of a model folder,
//! and `weights/gguf.rs` reads tensors.

mod architectures;
mod config;
mod encoder_tokenizers;
mod file;
mod header;
mod kind;
mod pre_tokenizers;
mod problem;
mod refused;
mod tokenizer;

pub(crate) use architectures::{A_LOG, Architecture, DIVISORS, FACTORS, Named};
pub(crate) use config::config;
pub(crate) use file::{GgufFile, OpenProblem, SplitName};
pub(crate) use header::{Entry, Header, listed};
pub(crate) use kind::Kind;
pub use problem::GgufProblem;
pub(crate) use refused::refuse_others;
pub(crate) use tokenizer::TextFiles;
