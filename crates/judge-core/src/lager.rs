//! LAGER (arXiv 2508.03550): a score from the label logits of every layer.

mod condition;
mod judge;
mod table;
mod variant;
mod weights;

pub use condition::{Condition, ScoreRule};
pub use judge::{LagerJudge, LagerSettings};
pub use table::{LayerTable, States};
pub use variant::{Variant, VariantScore};
pub(crate) use weights::softmax;
pub use weights::{LayerWeights, TableOrigin, WeightMismatch};
