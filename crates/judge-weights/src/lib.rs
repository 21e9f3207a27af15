//! Files of tensors, and what they stand for, as numbers or codes by name and shape: for `judge-models`, without a promise of stability.
//!
//! This crate owns the way from the bytes of files to rounded numbers. It does not know what a model is: which names and shapes there must
//! be is said by whoever asks, and names can be changed before that.
//!
//! ```text
//!  safetensors, .bin ──► Checkpoint ───────┐
//!                     │ codes and scales   ├──► dyn Store ──► Adapted ──► dyn Tensors
//!                     └──► Quantised ──────┘                     ▲
//!  PEFT folder ──► Adapter ──────────────────────────────────────┘
//!  one .gguf ────► GgufFile: keys, tensors, blocks (`judge-models` makes a Store of it)
//! ```
//!
//! | file | owns |
//! |---|---|
//! | `tensors.rs` | the traits [`Tensors`] and [`Store`] |
//! | `safetensors.rs` | safetensors, in one file or in shards; stacks of experts cut into their parts |
//! | `pytorch.rs` | what a file of torch.save says of its tensors, which `safetensors.rs` hands out |
//! | `quantised.rs` | quantised safetensors, one file for each method |
//! | `gguf.rs` | GGUF files of llama.cpp: keys, tensors and blocks |
//! | `lora.rs` | LoRA, rsLoRA and DoRA adapters of PEFT |
//! | `replaced.rs` | tensors of which some are replaced by numbers in memory |
//! | `int8.rs` | weights rounded to eight bits as they are loaded |
//! | `table.rs` | matrices whose rows are looked up one by one |
//! | `stack.rs` | descriptions of tensors that hold several others |
//! | `codes.rs` | matrices that are codes, by the formula of `judge-kernels` |
//! | `rows.rs` | the loops that hand over the rows of a matrix: dequantised, or as codes |
//! | `raw.rs`, `convert.rs` | bytes: single elements of codes and scales, whole rows of plain numbers |
//! | `names.rs` | names that say something by themselves, and the comparison of expected names with those that are there |
//! | `read.rs`, `file.rs` | files as they are on disk, and the names that they have in folders |
//!
//! Engines see the trait [`Tensors`] alone. What a file holds instead of plain numbers ends here:
//! codes with scales, stacks of experts, the names and the order of rows of another program.
//!
//! Invariants that callers rely on:
//!
//! - A number is computed in f32 or wider and rounded to the dtype asked for once, to nearest with
//!   ties to even.
//! - Its bits depend neither on how many rows are handed over at a time nor on the number of
//!   threads.
//! - No value that is NaN or infinite gets out without an error, before rounding or after it. The
//!   one exception is a [`Table`](table::Table) that stays in its file.
//! - Every count, offset and shape of a file is checked before anything is allocated for it.

pub mod codes;
mod convert;
pub mod dtype;
pub mod error;
pub mod file;
pub mod gguf;
pub mod int8;
pub mod lora;
pub mod map;
pub mod names;
mod pytorch;
pub mod quantised;
mod raw;
pub mod read;
pub mod replaced;
pub mod rows;
pub mod safetensors;
pub mod stack;
pub mod table;
pub mod tensors;

pub use dtype::Dtype;
pub use error::Error;
pub use tensors::{Store, Tensors};
