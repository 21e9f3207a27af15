use serde::{Deserialize, Serialize};

/// How layer weights and a temperature are learned for each kind of question.
///
/// With `theta` one parameter for each layer and `tau` one more, `w = softmax(theta)`, `T = exp(tau)` and
/// `p = softmax(sum over layers of w_l z_l / T)`, it minimises the mean cross-entropy `-sum over options of t_o ln p_o` by Adam as PyTorch
/// computes it (betas 0.9 and 0.999, eps 1e-8, no decay), each step on all decisions of a kind, in `f64` with the analytic gradient.
/// `T` begins at 1 and `w` at the last layer, which has seven eighths of the weight. Without weights only `T` is learned, for the last
/// layer, and without steps: the loss is convex in `1 / T`, and the best one is found. A fit that ends at no optimum
/// [says so](crate::decision::KindWeights::unsettled). Logits are plain products of states with the head's rows: a final soft cap has no
/// part in them. Same input, same bits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecisionFit {
    /// Whether layers get a weight each; if not, the last layer's temperature alone is learned.
    pub layers: bool,
    /// Steps of weights; at least 1.
    pub steps: usize,
    /// Learning rate of weights; above 0.
    pub lr: f64,
}

impl Default for DecisionFit {
    /// Weights and temperature, 300 steps at 0.05.
    fn default() -> Self {
        Self { layers: true, steps: 300, lr: 0.05 }
    }
}
