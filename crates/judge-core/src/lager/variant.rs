use std::fmt;

use serde::{Deserialize, Serialize};

/// The ways to turn a [`LayerTable`](super::LayerTable) into a score.
/// In files and tables they have the names of LAGER's evaluation ([`as_str`](Self::as_str)).
///
/// With `z_l` the logits `[n_scores]` of the `K` layers that [`States`](super::States) names, `w` their weights (sum 1), `E` the expected
/// value of a distribution over the scale and "top" the point with the largest entry (ties to the smaller value). The last layer is the
/// table's last row, whatever the states. LAGER computes in `f32`, this crate in `f64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Variant {
    /// Top of the last layer: what greedy decoding restricted to the labels would write.
    #[serde(rename = "direct_score")]
    LastMode,
    /// `E[softmax(z_last)]`.
    #[serde(rename = "e_score")]
    LastExpected,
    /// `E[softmax(sum of w_l z_l)]`: LAGER with tuned weights.
    #[serde(rename = "lager_w")]
    WeightedExpected,
    /// `E[softmax(mean of z_l)]`: LAGER without tuning.
    #[serde(rename = "lager_wo")]
    MeanExpected,
    /// Top of the weighted sum of logits.
    #[serde(rename = "logits_agg_weighted_max_score")]
    WeightedMode,
    /// Top of the sum of logits.
    #[serde(rename = "logits_agg_max_score")]
    MeanMode,
    /// `E[softmax(q)]` with `q` the weighted sum of `softmax(z_l)`. The second softmax is the reference's: it squeezes every
    /// score towards the middle ([2.489, 3.511] on five points).
    #[serde(rename = "prob_weighted_agg_e_score")]
    WeightedResoftmaxExpected,
    /// Top of the weighted sum of `softmax(z_l)`.
    #[serde(rename = "prob_weighted_agg_max_score")]
    WeightedProbabilityMode,
    /// `E[softmax(q)]` with `q` the plain *sum* of `softmax(z_l)`, as the reference has it.
    #[serde(rename = "prob_agg_e_score")]
    SumResoftmaxExpected,
    /// Top of the sum of `softmax(z_l)`.
    #[serde(rename = "prob_agg_max_score")]
    SumProbabilityMode,
    /// `E` of the weighted sum of `softmax(z_l)`, itself a distribution: aggregation of probabilities as the paper means it.
    /// Not among the reference's ten.
    #[serde(rename = "prob_mean_e_score")]
    WeightedProbabilityExpected,
    /// The reference's own `e_score`: logits and softmax rounded to bfloat16, the sum of value times probability *not* divided by the sum
    /// of probabilities, so that it can leave the scale (up to 5.008 of 5 was seen). For reproduction only; it has no distribution.
    #[serde(rename = "e_score_bf16")]
    LastExpectedBf16,
}

impl Variant {
    /// The reference's ten in the order of its ablation table, then [`WeightedProbabilityExpected`](Self::WeightedProbabilityExpected).
    /// [`LastExpectedBf16`](Self::LastExpectedBf16) is available only by name.
    pub const ALL: [Self; 11] = [
        Self::WeightedExpected,
        Self::WeightedResoftmaxExpected,
        Self::WeightedMode,
        Self::WeightedProbabilityMode,
        Self::MeanExpected,
        Self::SumResoftmaxExpected,
        Self::MeanMode,
        Self::SumProbabilityMode,
        Self::LastExpected,
        Self::LastMode,
        Self::WeightedProbabilityExpected,
    ];

    /// The name in files and tables, e.g. `lager_w`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LastMode => "direct_score",
            Self::LastExpected => "e_score",
            Self::WeightedExpected => "lager_w",
            Self::MeanExpected => "lager_wo",
            Self::WeightedMode => "logits_agg_weighted_max_score",
            Self::MeanMode => "logits_agg_max_score",
            Self::WeightedResoftmaxExpected => "prob_weighted_agg_e_score",
            Self::WeightedProbabilityMode => "prob_weighted_agg_max_score",
            Self::SumResoftmaxExpected => "prob_agg_e_score",
            Self::SumProbabilityMode => "prob_agg_max_score",
            Self::WeightedProbabilityExpected => "prob_mean_e_score",
            Self::LastExpectedBf16 => "e_score_bf16",
        }
    }

    /// Whether a distribution comes with its score: not where it takes the largest entry, nor with
    /// [`LastExpectedBf16`](Self::LastExpectedBf16).
    pub fn has_distribution(self) -> bool {
        !matches!(
            self,
            Self::LastMode
                | Self::WeightedMode
                | Self::MeanMode
                | Self::WeightedProbabilityMode
                | Self::SumProbabilityMode
                | Self::LastExpectedBf16
        )
    }

    /// The score that is given where none is named: with weights theirs, and without them the last layer's, since untuned layers often make
    /// it worse.
    #[must_use]
    pub fn default_for(has_weights: bool) -> Self {
        if has_weights { Self::WeightedExpected } else { Self::LastExpected }
    }

    /// Whether it combines layers; else it is of the last one alone.
    #[must_use]
    pub fn combines_layers(self) -> bool {
        !matches!(self, Self::LastMode | Self::LastExpected | Self::LastExpectedBf16)
    }

    /// Whether it needs layer weights.
    pub fn needs_weights(self) -> bool {
        matches!(
            self,
            Self::WeightedExpected
                | Self::WeightedMode
                | Self::WeightedResoftmaxExpected
                | Self::WeightedProbabilityMode
                | Self::WeightedProbabilityExpected
        )
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
