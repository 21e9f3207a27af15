//! What a model folder would say in the place of a GGUF file of llama.cpp.
//!
//! ```text
//!  one file, or its parts ─► GgufFile ─► keys and tensors
//!                               ├─► config      config.json
//!                               ├─► judge-text  tokenizer.json, tokenizer_config.json, generation_config.json
//!                               └─► weights/gguf.rs, by the names of Architecture
//! ```
//!
//! | file | owns |
//! |---|---|
//! | `architectures.rs` | names of tensors, and what the converter does to them, by architecture |
//! | `config.rs` | the model's description |
//! | `refused.rs` | files that are no models of text |
//!
//! The file itself, its keys and tensors are read in `judge-weights`, and its vocabulary in `judge-text`. `folder.rs` asks both for the
//! texts of a model folder, and `weights/gguf.rs` reads tensors.

mod architectures;
mod config;
mod refused;

pub(crate) use architectures::{A_LOG, Architecture, DIVISORS, FACTORS, Named, described};
pub(crate) use config::config;
pub(crate) use refused::refuse_others;
