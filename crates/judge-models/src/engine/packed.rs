//! The CPU engine: weights packed in bf16 or f32, activations in f32, many sequences of any lengths
//! in one pass. What several sequences share at their beginning is computed once in a decoder.
//!
//! This file holds the two implementations of [`Engine`] and lists the parts. `model.rs` loads a
//! [`PackedDecoder`] or a [`PackedEncoder`] and asks it for [`Passes`] over one group of jobs at a
//! time. Tokens are chosen in `reading/driver.rs`, never here.
//!
//! ```text
//! load ──► decoder, encoder        the weights, packed by `pack`
//! Group ─► segments.rs             cuts the sequences of a decoder into segments, a trie of prefixes
//!       ─► run, encoder_passes     choose what shares a pass, keep keys, collect what is read
//!       ─► decoder, encoder        one pass: rows of all sequences through the blocks
//!             block_ops            the operations of a decoder's block, over the products of judge-kernels
//!             attention, gather    attention, over its small products
//!             entropy, conv, delta, mamba, experts, token_inputs, rotations
//!             keys, places         keys, values and memories of a sequence
//! ```
//!
//! | part | what it owns |
//! |---|---|
//! | `rows` | memory that passes reuse |
//! | `spans`, `reads` | what a pass is given, and what is taken from it |
//! | `kv_cache`, `kv_layout`, `cache` | keys and values; packed weights that are kept in a file |
//!
//! What callers rely on:
//!
//! - A row gets the same bits whatever else is in the pass, however a sequence is cut into passes,
//!   and however many threads work. No body chooses the order of a sum by the number of rows or
//!   threads. Sequences can therefore share passes and prefixes freely.
//! - Bits differ between kernels and between dtypes, and between nothing else.
//!
//! Where changes go:
//!
//! - An operation of a decoder's block: the trait `Ops` of `engine/block.rs`, `block_ops` here, and
//!   `engine/tensor/`, which is the reference that bodies are tested against.
//! - Products, and arithmetic along one row, such as an activation: `judge-kernels`.
//! - What a pass brings: `reads` for the last position, `run` for what runs over all positions.
//! - What shares a pass: `engine/segments.rs` and `run`. Results must keep their bits, which
//!   `tests/it/batch_invariance.rs` checks.

mod attention;
mod block_ops;
mod cache;
#[cfg(test)]
pub(super) mod cases;
mod conv;
mod decoder;
mod delta;
mod encoder;
mod encoder_passes;
mod entropy;
mod experts;
mod gather;
#[cfg(target_arch = "x86_64")]
mod gather_on_unit;
mod kv_cache;
mod kv_layout;
mod load;
mod mamba;
mod reads;
mod relative;
mod rotations;
mod rows;
mod run;
mod spans;
mod token_inputs;

pub(crate) use cache::{PackedCache, key as cache_key};
pub(crate) use decoder::PackedDecoder;
pub(crate) use encoder::PackedEncoder;
#[cfg(test)]
pub(crate) use kv_cache::KvCache;
#[cfg(test)]
pub(crate) use {rotations::Angles, rows::BufferPool, spans::Span};

use judge_core::request::TokenId;
use judge_kernels::kernel::Kernel;

use super::Engine;
use crate::Error;
use crate::reading::groups::Group;
use crate::reading::labels::HeadRows;
use crate::reading::passes::Passes;

impl Engine for PackedDecoder {
    /// The kernel that was chosen when the model was loaded.
    fn kernel(&self) -> Option<Kernel> {
        Some(self.kernel.kernel())
    }

    fn kernel_of_integers(&self) -> Option<Kernel> {
        self.kernel_of_integers
    }

    /// Rows of the output head, or of the embedding where both are one. Never fails.
    fn head_rows(&self, tokens: &[TokenId]) -> Result<HeadRows, Error> {
        Ok(self.rows_of_head(tokens))
    }

    /// Passes that compute shared prefixes once and keep keys for texts that are being written.
    fn passes<'a>(&'a self, group: &'a Group<'a>, room: usize) -> Box<dyn Passes + 'a> {
        Box::new(run::SharedPasses::new(self, group, room))
    }
}

impl Engine for PackedEncoder {
    /// The kernel that was chosen when the model was loaded.
    fn kernel(&self) -> Option<Kernel> {
        Some(self.kernel.kernel())
    }

    fn kernel_of_integers(&self) -> Option<Kernel> {
        self.kernel_of_integers
    }

    /// Passes over whole sequences; nothing is kept between them.
    fn passes<'a>(&'a self, group: &'a Group<'a>, room: usize) -> Box<dyn Passes + 'a> {
        Box::new(encoder_passes::EncoderPasses::new(self, group, room))
    }
}
