//! GGUF files of llama.cpp as files of tensors: keys, tensors, and the numbers that blocks of codes stand for.
//!
//! | file | owns |
//! |---|---|
//! | `file.rs` | the file on disk, whole or split |
//! | `header.rs` | the header: keys with values, and where tensors lie |
//! | `kind.rs` | types of tensors: names and sizes |
//! | `blocks.rs`, `grids.rs`, `bits.rs` | what the bytes of a block stand for |
//! | `problem.rs` | what can be wrong |
//!
//! What keys mean for a model, which names its tensors have, and what the converter changed is the business of `judge-models`.

mod bits;
pub mod blocks;
pub mod file;
mod grids;
pub mod header;
pub mod kind;
pub mod problem;
