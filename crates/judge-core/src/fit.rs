//! Learning one weight per layer from human scores.

mod optimizer;
mod problem;
mod settings;
mod torch_order;

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::scale::softmax;
use crate::{
    Error, Scale,
    lager::{LayerTable, LayerWeights, TableOrigin},
};
pub(crate) use optimizer::Adam;
use optimizer::LearningRate;
pub use problem::FitProblem;
pub use settings::{Alpha, ItemOrder, LayerWeightFit, Plateau, RegressionLoss, TargetRule, ThetaInit};
use torch_order::TorchOrder;

impl LayerWeightFit {
    /// Learns the weights. Each table must hold every layer of [`states`](Self::states) for a model of `origin.n_layers` blocks, on
    /// `origin.scale`;
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

/// A table and what people said of the same response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Graded {
    /// The model's side.
    pub table: LayerTable,
    /// The human score, in units of the scale.
    pub human: f64,
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

    /// Loss and gradient on a batch. With `g_s = [a (p_s - t_s) + (1 - a) D'(E - y) p_s (v_s - E)] / B` and `t_s` 1 for the item's class (½
    /// each where two share it), `G_l` the sum over the batch of `g · z_l`, the derivative by `theta_l` is `w_l (G_l - sum_k w_k G_k)`.
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
