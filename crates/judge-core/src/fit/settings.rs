use serde::{Deserialize, Serialize};

use crate::lager::States;

/// How layer weights are learned; [`fit`](Self::fit) gives the [`LayerWeights`](crate::lager::LayerWeights).
///
/// With `theta` one parameter per layer, `w = softmax(theta)`, `zhat_b` the sum over layers of `w_l z_bl`, `p_b = softmax(zhat_b)` and
/// `E_b` its expected value on the scale, a step on a batch of `B` items minimises
///
/// ```text
/// a · mean_b(-ln p_b[class of y_b]) + (1 - a) · mean_b(distance(E_b, y_b))
/// ```
///
/// by Adam as PyTorch computes it (betas 0.9 and 0.999, eps 1e-8, no decay), in `f64` with the analytic gradient. The
/// last batch of an epoch may be short. After each epoch the learning rate follows [`Plateau`] on the mean of the
/// epoch's batch losses.
///
/// Two regimes are published. [`paper`](Self::paper) (the default) is arXiv 2508.03550: cross-entropy plus absolute
/// error, all layers. The paper does not give `a`; this crate takes the one that the program effectively uses, sigmoid(0.5) = 0.6225.
/// [`reference_program`](Self::reference_program) is the program beside it:
/// cross-entropy plus squared error, the last layer left out, `a` learned, human scores truncated.
///
/// ```
/// use judge_core::fit::{LayerWeightFit, RegressionLoss};
///
/// let fit = LayerWeightFit { epochs: 2, ..LayerWeightFit::paper() };
/// assert_eq!(fit.loss, RegressionLoss::Mae);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerWeightFit {
    /// Distance between expected and human score.
    pub loss: RegressionLoss,
    /// Share of the cross-entropy.
    pub alpha: Alpha,
    /// Learning rate of the first epoch; above 0.
    pub lr: f64,
    /// Passes over the items; at least 1.
    pub epochs: usize,
    /// Items per step; at least 1.
    pub batch: usize,
    /// Seed of the order of items.
    pub seed: u64,
    /// Where `theta` starts.
    pub init: ThetaInit,
    /// Which layers get a weight.
    pub states: States,
    /// When the learning rate falls.
    pub plateau: Plateau,
    /// The order in which items are visited.
    pub order: ItemOrder,
    /// What a human score between two points counts as.
    pub targets: TargetRule,
}

impl LayerWeightFit {
    /// Cross-entropy and absolute error, all layers: one epoch, batches of 4, seed 42.
    pub fn paper() -> Self {
        Self {
            loss: RegressionLoss::Mae,
            alpha: Alpha::Fixed(sigmoid(0.5)),
            lr: 0.01,
            epochs: 1,
            batch: 4,
            seed: 42,
            init: ThetaInit::Zeros,
            states: States::All,
            plateau: Plateau::default(),
            order: ItemOrder::TorchShuffle,
            targets: TargetRule::Nearest,
        }
    }

    /// Cross-entropy and squared error as the published program has them.
    pub fn reference_program() -> Self {
        Self {
            loss: RegressionLoss::Mse,
            alpha: Alpha::Learned { init: 0.5 },
            states: States::DropLast,
            targets: TargetRule::Truncate,
            ..Self::paper()
        }
    }
}

impl Default for LayerWeightFit {
    /// [`paper`](Self::paper).
    fn default() -> Self {
        Self::paper()
    }
}

/// Distance between the expected and the human score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RegressionLoss {
    /// Absolute difference; its gradient at 0 is 0, as in PyTorch.
    Mae,
    /// Squared difference.
    Mse,
}

/// Share of the cross-entropy in the loss.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Alpha {
    /// This share, in [0, 1].
    Fixed(f64),
    /// The sigmoid of a parameter that Adam updates at every step, but whose sigmoid is taken at the start of each epoch only:
    /// in a fit of one epoch the share stays where it began.
    Learned {
        /// Where the parameter starts; the published program has 0.5.
        init: f64,
    },
}

impl Alpha {
    pub(crate) fn start(self) -> f64 {
        match self {
            Self::Fixed(value) | Self::Learned { init: value } => value,
        }
    }

    pub(super) fn share(self, alpha: f64) -> f64 {
        match self {
            Self::Fixed(share) => share,
            Self::Learned { .. } => sigmoid(alpha),
        }
    }

    pub(super) fn is_valid(self) -> bool {
        match self {
            Self::Fixed(share) => (0.0..=1.0).contains(&share),
            Self::Learned { init } => init.is_finite(),
        }
    }
}

/// Where the parameters start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThetaInit {
    /// All 0: equal weights.
    Zeros,
    /// All 0 but the last, which is 1.
    LastOne,
}

/// When the learning rate falls; the meaning of each setting is that of PyTorch's `ReduceLROnPlateau` (mode `min`, relative threshold, no
/// cooldown, eps 1e-8).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plateau {
    /// The rate is multiplied by this; in (0, 1).
    pub factor: f64,
    /// Epochs without improvement that are borne.
    pub patience: usize,
    /// An epoch improves if its loss is below the best times one minus this; in [0, 1).
    pub threshold: f64,
    /// The rate falls no further.
    pub min_lr: f64,
}

impl Default for Plateau {
    /// Factor 0.5, patience 1, threshold 1e-4, at least 1e-3.
    fn default() -> Self {
        Self { factor: 0.5, patience: 1, threshold: 1e-4, min_lr: 1e-3 }
    }
}

/// The order in which an epoch visits the items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ItemOrder {
    /// What a shuffling PyTorch `DataLoader` gives after `torch.manual_seed(seed)`, on the CPU, fewer than 2^31 items.
    TorchShuffle,
    /// As they are given.
    AsGiven,
}

/// What a human score counts as when it is no point of the scale, e.g. the mean of three raters. Cross-entropy needs a point;
/// the distance need not.
/// Scores outside the scale's range are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TargetRule {
    /// Cross-entropy takes the nearest point (the smaller of two equally near), the distance the score as it is.
    Nearest,
    /// The same, but two equally near points share the cross-entropy, so that turning the scale round changes nothing:
    /// for preferences, of which a tie must not count for one side where a
    /// judge cannot say so.
    Shared,
    /// Both take the largest point that is not above the score. The published program does this; for comparison with it.
    Truncate,
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}
