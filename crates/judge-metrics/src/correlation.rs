//! Correlation of two columns, one entry per judged item in each, and what two correlations say of two judges.

mod dependent;
mod fisher;
mod kendall;
mod pairs;
mod pairwise_accuracy;
mod partial;
mod pearson;
mod point_biserial;
mod rank_interval;
pub(crate) mod ranks;
mod somers;
mod spearman;
mod weighted_tau;

pub use dependent::{DependentCorrelations, DifferenceTest};
pub use fisher::fisher_interval;
pub use kendall::{KendallTest, kendall_tau_b, kendall_tau_c};
pub use pairwise_accuracy::{PairwiseAccuracy, pairwise_accuracy, pairwise_accuracy_at};
pub use partial::{partial_pearson, partial_spearman};
pub use pearson::pearson;
pub use point_biserial::point_biserial;
pub use rank_interval::{RankVariance, kendall_interval, spearman_interval};
pub use ranks::average_ranks;
pub use somers::somers_d;
pub use spearman::spearman;
pub use weighted_tau::{TauWeights, weighted_tau};

/// A correlation of two columns and the test of the hypothesis that they are independent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Correlation {
    /// The coefficient, in [-1, 1].
    pub estimate: f64,
    /// Two-sided p-value, in [0, 1]: the probability of a coefficient at least as far from 0 under independence.
    pub p_value: f64,
    /// The distribution the p-value comes from.
    pub null_distribution: NullDistribution,
    /// Number of pairs.
    pub n: usize,
}

/// Where a p-value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NullDistribution {
    /// Beta on (-1, 1) with a = b = n/2 − 1, or (n − k)/2 − 1 with k covariates: exact for Pearson correlations of normal samples.
    Beta,
    /// Student's t with n − 2 degrees of freedom, n − k − 2 with k covariates: an approximation for rank correlations.
    StudentT,
    /// All n! orders equally likely: exact for ranks without ties.
    Permutation,
    /// Standard normal, the variance corrected for ties: an approximation for large n.
    Normal,
}
