//! Correlation of two columns, one entry per judged item in each, and what two correlations say of two judges.

mod dependent;
mod fisher;
mod grouped;
mod inversions;
mod kendall;
mod pairs;
mod pairwise_accuracy;
mod partial;
mod pearson;
mod rank_interval;
pub(crate) mod ranks;
mod somers;
mod sorted_pairs;
mod spearman;
mod tree;
mod weighted_tau;

pub use dependent::{DependentCorrelations, DifferenceTest};
pub use fisher::fisher_interval;
pub(crate) use fisher::{is_perfect, on_fisher_scale};
pub use grouped::{GroupedCorrelation, grouped_correlation};
pub use kendall::{KendallTest, kendall_tau_b, kendall_tau_c};
pub(crate) use pairs::PairCounts;
pub use pairwise_accuracy::{PairwiseAccuracy, pairwise_accuracy, pairwise_accuracy_at};
pub use partial::{partial_pearson, partial_spearman};
pub use pearson::pearson;
pub use rank_interval::{RankVariance, spearman_interval};
pub use ranks::average_ranks;
pub use somers::somers_d;
pub(crate) use sorted_pairs::SortedPairs;
pub use spearman::spearman;
pub use weighted_tau::{TauWeights, weighted_tau};
