//! Learning one weight per layer from human scores.

mod optimizer;
mod problem;
mod torch_order;

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::lager::softmax;
use crate::{Error, LayerTable, LayerWeights, Scale, States, TableOrigin};
use optimizer::{Adam, LearningRate};
pub use problem::FitProblem;
use torch_order::TorchOrder;

/// How layer weights are learned; [`fit`](Self::fit) gives the [`LayerWeights`].
///
/// With `theta` one parameter per layer, `w = softmax(theta)`, `zhat_b` the sum over layers of `w_l z_bl`, `p_b = softmax(zhat_b)` and
/// `E_b` its expected value on the scale, a step on a batch of `B` items minimises
///
/// ```text
/// a · mean_b(-ln p_b[class of y_b]) + (1 - a) · mean_b(distance(E_b, y_b))
/// ```
///
/// by Adam as PyTorch computes it (betas 0.9 and 0.999, eps 1e-8, no decay), in `f64` with the analytic gradient. The last batch of an epoch
/// may be short. After each epoch the learning rate follows [`Plateau`] on the mean of the epoch's batch losses.
///
/// Two regimes are published. [`paper`](Self::paper) (the default) is arXiv 2508.03550: cross-entropy plus absolute
/// error, all layers. The paper does not give `a`; this crate takes the one that the program effectively uses, sigmoid(0.5) = 0.6225.
/// [`reference_program`](Self::reference_program) is the program beside it: cross-entropy plus squared error, the last layer left out, `a` learned, human scores truncated.
///
/// ```
/// use judge_core::{LayerWeightFit, RegressionLoss};
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

    /// Learns the weights. Each table must hold every layer of [`states`](Self::states) for a model of `origin.n_layers` blocks, on `origin.scale`;
    /// further layers are left aside. Same input, same bits.
    ///
    /// # Errors
    /// [`Error::Fit`] for a setting out of range, no items, a table that lacks a layer or has another number of scores, a human
    /// score that is not finite or off the scale, scores that are all equal, and numbers that overflow on the way.
    pub fn fit(&self, items: &[Graded], origin: &TableOrigin) -> Result<LayerWeights, Error> {
        self.check()?;
        let examples = Examples::new(items, origin, self)?;
        let k = examples.n_states;
        let mut theta = vec![0.0; k];
        if self.init == ThetaInit::LastOne {
            theta[k - 1] = 1.0; // `Examples::new` refuses k = 0
        }
        let mut alpha = self.alpha.start();
        let mut adam = Adam::new(k + 1);
        let mut rate = LearningRate::new(self.lr, self.plateau);
        let mut order = TorchOrder::new(self.seed);
        let (mut losses, mut rates) = (Vec::new(), Vec::new());

        for _ in 0..self.epochs {
            rates.push(rate.current());
            let share = self.alpha.share(alpha);
            let visited = match self.order {
                ItemOrder::AsGiven => (0..items.len()).collect(),
                ItemOrder::TorchShuffle => order.next_epoch(items.len()),
            };
            let first = losses.len();
            for batch in visited.chunks(self.batch) {
                let step = examples.step(&theta, share, self.loss, batch);
                if !step.loss.is_finite() || step.theta_gradient.iter().any(|g| !g.is_finite()) {
                    return Err(FitProblem::Overflow { step: losses.len(), loss: step.loss }.into());
                }
                losses.push(step.loss);
                // The program takes the share once per epoch, yet its gradient reaches alpha at every step.
                let alpha_gradient = share * (1.0 - share) * (step.cross_entropy - step.distance);
                let learned = matches!(self.alpha, Alpha::Learned { .. });
                let parameters = theta.iter_mut().zip(step.theta_gradient);
                adam.step(rate.current(), parameters.chain(learned.then_some((&mut alpha, alpha_gradient))));
            }
            let epoch = &losses[first..];
            rate.after_epoch(epoch.iter().sum::<f64>() / epoch.len() as f64);
        }
        LayerWeights::from_fit(theta, alpha, losses, rates, items.len(), origin.clone(), self.clone())
    }

    fn check(&self) -> Result<(), FitProblem> {
        let plateau = self.plateau;
        let checks = [
            ("lr", self.lr, self.lr.is_finite() && self.lr > 0.0, "finite and above 0"),
            ("epochs", self.epochs as f64, self.epochs > 0, "at least 1"),
            ("batch", self.batch as f64, self.batch > 0, "at least 1"),
            ("alpha", self.alpha.start(), self.alpha.is_valid(), "in [0, 1] if fixed, finite if learned"),
            ("plateau.factor", plateau.factor, plateau.factor > 0.0 && plateau.factor < 1.0, "in (0, 1)"),
            ("plateau.threshold", plateau.threshold, (0.0..1.0).contains(&plateau.threshold), "in [0, 1)"),
            (
                "plateau.min_lr",
                plateau.min_lr,
                plateau.min_lr.is_finite() && plateau.min_lr >= 0.0,
                "finite, not negative",
            ),
        ];
        match checks.into_iter().find(|(_, _, good, _)| !good) {
            Some((setting, found, _, expected)) => Err(FitProblem::Setting { setting, found, expected }),
            None => Ok(()),
        }
    }
}

impl Default for LayerWeightFit {
    /// [`paper`](Self::paper).
    fn default() -> Self {
        Self::paper()
    }
}

/// A table and what people said of the same response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Graded {
    /// The model's side.
    pub table: LayerTable,
    /// The human score, in units of the scale.
    pub human: f64,
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
    fn start(self) -> f64 {
        match self {
            Self::Fixed(value) | Self::Learned { init: value } => value,
        }
    }

    fn share(self, alpha: f64) -> f64 {
        match self {
            Self::Fixed(share) => share,
            Self::Learned { .. } => sigmoid(alpha),
        }
    }

    fn is_valid(self) -> bool {
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

/// What a human score counts as when it is no point of the scale, e.g. the mean of three raters. Cross-entropy needs a point; the distance need not.
/// Scores outside the scale's range are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TargetRule {
    /// Cross-entropy takes the nearest point (the smaller of two equally near), the distance the score as it is.
    Nearest,
    /// The same, but two equally near points share the cross-entropy, so that turning the scale round changes nothing: for preferences, of which a tie must not count for one side where a
    /// judge cannot say so.
    Shared,
    /// Both take the largest point that is not above the score. The published program does this; for comparison with it.
    Truncate,
}

impl TargetRule {
    /// Classes, equally often the same one or each of two, and target of a score within the range of the scale.
    fn target(self, scale: &Scale, human: f64) -> ([usize; 2], f64) {
        let points = scale.points();
        let below = points.iter().rposition(|p| p.value <= human).unwrap_or(0);
        if self == Self::Truncate {
            return ([below; 2], points[below].value);
        }
        let Some(above) = points.get(below + 1) else { return ([below; 2], human) };
        let classes = match (above.value - human).total_cmp(&(human - points[below].value)) {
            Ordering::Less => [below + 1; 2],
            Ordering::Equal if self == Self::Shared => [below, below + 1],
            _ => [below; 2],
        };
        (classes, human)
    }
}

/// The items in the form that the inner loop wants.
struct Examples {
    values: Vec<f64>,
    n_states: usize,
    rows: Vec<Example>,
}

struct Example {
    /// `[n_states, n_scores]`
    logits: Vec<f64>,
    classes: [usize; 2],
    target: f64,
}

struct Step {
    loss: f64,
    cross_entropy: f64,
    distance: f64,
    theta_gradient: Vec<f64>,
}

impl Examples {
    fn new(items: &[Graded], origin: &TableOrigin, fit: &LayerWeightFit) -> Result<Self, FitProblem> {
        let layers = fit.states.layers(origin.n_layers);
        let values: Vec<f64> = origin.scale.values().collect();
        let (low, high) = origin.scale.range();
        let Some(first) = items.first() else { return Err(FitProblem::NoItems) };
        if layers.is_empty() {
            return Err(FitProblem::NoLayers);
        }
        let mut rows = Vec::with_capacity(items.len());
        for (item, Graded { table, human }) in items.iter().enumerate() {
            if table.n_scores() != values.len() {
                return Err(FitProblem::Scores { item, expected: values.len(), found: table.n_scores() });
            }
            if !(low..=high).contains(human) {
                return Err(FitProblem::OffScale { item, human: *human, low, high });
            }
            let mut logits = Vec::with_capacity(layers.len() * values.len());
            for &layer in &layers {
                logits.extend_from_slice(table.row(layer).ok_or(FitProblem::MissingLayer { item, layer })?);
            }
            let (classes, target) = fit.targets.target(&origin.scale, *human);
            rows.push(Example { logits, classes, target });
        }
        if items.iter().all(|item| item.human == first.human) {
            return Err(FitProblem::ConstantTargets { human: first.human, items: items.len() });
        }
        Ok(Self { values, n_states: layers.len(), rows })
    }

    /// Loss and gradient on a batch. With `g_s = [a (p_s - t_s) + (1 - a) D'(E - y) p_s (v_s - E)] / B` and `t_s` 1 for the item's class (½ each where two share it), `G_l` the sum over the
    /// batch of `g · z_l`, the derivative by `theta_l` is `w_l (G_l - sum_k w_k G_k)`.
    fn step(&self, theta: &[f64], share: f64, loss: RegressionLoss, batch: &[usize]) -> Step {
        let weights = softmax(theta);
        let n_scores = self.values.len();
        let size = batch.len() as f64;
        let (mut cross_entropy, mut distance) = (0.0, 0.0);
        let mut by_weight = vec![0.0; self.n_states];
        let mut logits = vec![0.0; n_scores];
        for example in batch.iter().filter_map(|&index| self.rows.get(index)) {
            logits.fill(0.0);
            for (row, &w) in example.logits.chunks_exact(n_scores).zip(&weights) {
                logits.iter_mut().zip(row).for_each(|(sum, z)| *sum += w * z);
            }
            let max = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let log_sum = max + logits.iter().map(|z| (z - max).exp()).sum::<f64>().ln();
            let [one, other] = example.classes;
            cross_entropy += log_sum - f64::midpoint(logits[one], logits[other]);
            let p: Vec<f64> = logits.iter().map(|z| (z - log_sum).exp()).collect();
            let expected: f64 = p.iter().zip(&self.values).map(|(p, v)| p * v).sum();
            let off = expected - example.target;
            let slope = match loss {
                RegressionLoss::Mse => {
                    distance += off * off;
                    2.0 * off
                }
                RegressionLoss::Mae => {
                    distance += off.abs();
                    if off == 0.0 { 0.0 } else { off.signum() }
                }
            };
            let gradient = |s: usize| {
                let hit = 0.5 * example.classes.iter().filter(|&&class| class == s).count() as f64;
                (share * (p[s] - hit) + (1.0 - share) * slope * p[s] * (self.values[s] - expected)) / size
            };
            let g: Vec<f64> = (0..n_scores).map(gradient).collect();
            for (row, sum) in example.logits.chunks_exact(n_scores).zip(&mut by_weight) {
                *sum += row.iter().zip(&g).map(|(z, g)| z * g).sum::<f64>();
            }
        }
        cross_entropy /= size;
        distance /= size;
        let mean: f64 = weights.iter().zip(&by_weight).map(|(w, g)| w * g).sum();
        let theta_gradient = weights.iter().zip(&by_weight).map(|(w, g)| w * (g - mean)).collect();
        Step { loss: share * cross_entropy + (1.0 - share) * distance, cross_entropy, distance, theta_gradient }
    }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}
