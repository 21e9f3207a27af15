//! The numbers of `config.json` that all encoders have, and how they are checked.

use serde::Deserialize;

use crate::arch::shape::{is_positive, size};
use crate::arch::{ConfigProblem, MAX_CONTEXT};

/// The numbers that all encoders have, under their names in a file.
#[derive(Deserialize)]
pub(super) struct Sizes {
    pub(super) vocab_size: usize,
    pub(super) hidden_size: usize,
    pub(super) intermediate_size: usize,
    pub(super) num_hidden_layers: usize,
    pub(super) num_attention_heads: usize,
    pub(super) max_position_embeddings: usize,
}

impl Sizes {
    /// The same, if they can be believed.
    pub(super) fn check(self) -> Result<Self, ConfigProblem> {
        size("vocab_size", self.vocab_size, 1 << 26)?;
        size("hidden_size", self.hidden_size, 1 << 20)?;
        size("intermediate_size", self.intermediate_size, 1 << 22)?;
        size("num_hidden_layers", self.num_hidden_layers, 1 << 12)?;
        size("num_attention_heads", self.num_attention_heads, 1 << 16)?;
        size("max_position_embeddings", self.max_position_embeddings, MAX_CONTEXT)?;
        if !self.hidden_size.is_multiple_of(self.num_attention_heads) {
            let expected = format!("a multiple of num_attention_heads {}", self.num_attention_heads);
            let found = self.hidden_size.to_string();
            return Err(ConfigProblem::Value { field: "hidden_size", found, expected });
        }
        Ok(self)
    }
}

/// What keeps the square root of a norm from 0.
pub(super) fn eps(field: &'static str, found: f64) -> Result<f64, ConfigProblem> {
    if is_positive(found) {
        return Ok(found);
    }
    let expected = "a finite number above 0 in f32".to_owned();
    Err(ConfigProblem::Value { field, found: found.to_string(), expected })
}
