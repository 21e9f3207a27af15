//! The sizes in `config.json` that all encoders have, and how they are checked.
//!
//! The counterpart of `shape.rs`, whose limits it shares.

use serde::Deserialize;

use crate::ConfigProblem;
use crate::checks::{MAX_CONTEXT, size};

/// Sizes by their names in the file, flattened into each family's fields.
#[derive(Deserialize)]
pub(super) struct Sizes {
    /// Rows of the table of tokens.
    pub(super) vocab_size: usize,
    /// `d_model`.
    pub(super) hidden_size: usize,
    /// Width inside the MLP.
    pub(super) intermediate_size: usize,
    /// Number of blocks.
    pub(super) num_hidden_layers: usize,
    /// Heads of a block; divides `hidden_size`.
    pub(super) num_attention_heads: usize,
    /// Rows of the table of positions, or the context of a rotation.
    pub(super) max_position_embeddings: usize,
}

impl Sizes {
    /// Returns the sizes unchanged if all are in range.
    ///
    /// # Errors
    /// [`ConfigProblem::Value`] for one that is not, and for heads that do not divide
    /// `hidden_size`.
    pub(super) fn check(self) -> Result<Self, ConfigProblem> {
        size("vocab_size", self.vocab_size, 1 << 26)?;
        size("hidden_size", self.hidden_size, 1 << 20)?;
        size("intermediate_size", self.intermediate_size, 1 << 22)?;
        size("num_hidden_layers", self.num_hidden_layers, 1 << 12)?;
        size("num_attention_heads", self.num_attention_heads, 1 << 16)?;
        size("max_position_embeddings", self.max_position_embeddings, MAX_CONTEXT)?;
        if !self.hidden_size.is_multiple_of(self.num_attention_heads) {
            let expected = format!("a multiple of num_attention_heads {}", self.num_attention_heads);
            return Err(ConfigProblem::value("hidden_size", self.hidden_size, expected));
        }
        Ok(self)
    }
}
