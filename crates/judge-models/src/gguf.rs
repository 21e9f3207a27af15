//! GGUF files of llama.cpp: what is in them, before anything is made of it.
//!
//! | file | owns |
//! |---|---|
//! | `header.rs` | the header: keys with values, and where tensors lie |
//! | `kind.rs` | types of tensors: names and sizes |
//! | `problem.rs` | what can be wrong |
//!
//! This module knows bytes and names alone. `folder.rs` asks it for the texts of a model folder,
//! `weights/gguf.rs` reads tensors.

mod header;
mod kind;
mod problem;

pub(crate) use header::{Entry, Header, listed, read};
pub(crate) use kind::Kind;
pub use problem::GgufProblem;
