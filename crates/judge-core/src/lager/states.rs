use serde::{Deserialize, Serialize};

use crate::Layer;

/// Which layers a score combines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum States {
    /// All `n_layers + 1`, the embedding output included, as the paper's formula has it.
    #[default]
    All,
    /// All but the last, the only one after the final norm. LAGER's published program does this; for comparison with it.
    DropLast,
}

crate::names! { States {
    All: "all",
    DropLast: "drop-last",
}}

impl States {
    /// The layers of a model with `n_layers` blocks, ascending.
    pub fn layers(self, n_layers: usize) -> Vec<Layer> {
        (0..self.count(n_layers)).map(Layer).collect()
    }

    /// Their number: `n_layers + 1` or `n_layers`.
    pub fn count(self, n_layers: usize) -> usize {
        match self {
            Self::All => n_layers.saturating_add(1),
            Self::DropLast => n_layers,
        }
    }
}
