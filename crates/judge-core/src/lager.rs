//! LAGER (arXiv 2508.03550): a score from the label logits of every layer.

mod condition;
mod judge;
mod names;
mod score;
mod states;
mod table;
mod variant;
mod weight_note;
mod weights;

pub use condition::{Condition, ScoreRule};
pub use judge::{LagerJudge, LagerSettings};
pub use score::VariantScore;
pub use states::States;
pub use table::LayerTable;
pub use variant::Variant;
pub use weight_note::WeightNote;
pub use weights::{LayerWeights, TableOrigin};
