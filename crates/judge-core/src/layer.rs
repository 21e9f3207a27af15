use std::fmt;

use serde::{Deserialize, Serialize};

/// Which state of a decoder, numbered as Hugging Face's `hidden_states`.
///
/// * `Layer(0)` is the embedding output (after an embedding scale, where the model has one),
/// * `Layer(i)`, `0 < i < n_layers`, is the residual stream after block `i` (counted from 1), *not* normed,
/// * `Layer(n_layers)` is the output of the last block *after* the final norm.
///
/// A model of `n_layers` blocks therefore has `n_layers + 1` layers. Other conventions (INSPECTOR counts
/// from block 0) are converted where such a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Layer(pub usize);

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "layer {}", self.0)
    }
}

/// How a state meets the rows of the output head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lens {
    /// The state as it is times the head's row. This is what LAGER does (arXiv 2508.03550, section 3).
    #[default]
    Raw,
    /// The model's final norm is applied to inner states first (the "logit lens"). `Layer(n_layers)` is
    /// already normed and is not normed twice.
    Normed,
}
