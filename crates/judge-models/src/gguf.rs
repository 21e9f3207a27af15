//! What a model folder would say in the place of a GGUF file of llama.cpp.
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
//! | `architectures.rs` | names of tensors, and what the converter does to them, by architecture |
//! | `config.rs` | the model's description |
//! | `tokenizer.rs`, `pre_tokenizers.rs`, `encoder_tokenizers.rs` | vocabulary, merges, special tokens and chat template |
//!
//! The file itself, its keys and tensors are read in `judge-weights`. `folder.rs` asks here for the texts of a model folder,
//! and `weights/gguf.rs` reads tensors.

mod architectures;
mod config;
mod encoder_tokenizers;
mod pre_tokenizers;
mod refused;
mod tokenizer;

pub(crate) use architectures::{A_LOG, Architecture, DIVISORS, FACTORS, Named, described};
pub(crate) use config::config;
pub(crate) use refused::refuse_others;
pub(crate) use tokenizer::TextFiles;
