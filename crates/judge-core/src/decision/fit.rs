mod settings;

use super::{ByKind, DecisionOrigin, DecisionProblem, DecisionWeights, KindWeights, QuestionKind, Unsettled};
use crate::{Layer, fit::Adam, lager::LayerTable, scale::softmax};
pub use settings::DecisionFit;

/// A decision and what people say of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Labelled {
    /// The kind of question.
    pub kind: QuestionKind,
    /// The label logits of all layers, one column for each option, in the order of the prompt.
    pub table: LayerTable,
    /// The share of each option in the answers of people, in the same order: at least 0, sum 1. Where all agree, one of them is 1.
    pub target: Vec<f64>,
}

/// The last layer's share of the weight where a fit begins.
const OF_LAST: f64 = 0.875;
/// A target's shares may be off 1 by rounding.
const ROUNDING: f64 = 1e-6;
/// A loss that fell by more in the last quarter of the steps is still falling.
const STILL_FALLS: f64 = 1e-3;
/// A temperature at which all options have the same probability, to the last bit, while their order is still that of their logits.
const UNIFORM: f64 = 1e30;
/// Halvings until 1 / T is known to its last bit.
const BISECTIONS: usize = 200;

impl DecisionFit {
    /// Learns from labelled decisions of one origin. Kinds of question of which there is none get nothing.
    ///
    /// # Errors
    /// [`DecisionProblem::Setting`] for a setting out of range; [`DecisionProblem::Labelled`] for no decision, a table that lacks layers, a
    /// target that is not a distribution over the table's options, or numbers that overflow.
    pub fn fit(&self, decisions: &[Labelled], origin: &DecisionOrigin) -> Result<DecisionWeights, DecisionProblem> {
        let setting = |setting: &str, expected, found: String| {
            Err(DecisionProblem::Setting { setting: setting.to_owned(), expected, found })
        };
        if self.steps == 0 {
            return setting("steps", "at least 1", "0".to_owned());
        }
        if !self.lr.is_finite() || self.lr <= 0.0 {
            return setting("lr", "a number above 0", self.lr.to_string());
        }
        if decisions.is_empty() {
            let (expected, found) = ("at least one decision with an answer of people", "none".to_owned());
            return Err(DecisionProblem::Labelled { item: 0, expected, found });
        }
        let mut kinds = ByKind::of(|_| None);
        for kind in QuestionKind::ALL {
            let rows = self.rows(decisions, kind, origin.n_layers)?;
            if !rows.is_empty() {
                *kinds.get_mut(kind) = Some(self.of_kind(&rows)?);
            }
        }
        DecisionWeights::of_fit(kinds, origin.clone(), *self)
    }

    /// The decisions of a kind. Without weights for layers, of the last one alone.
    fn rows<'d>(
        &self,
        decisions: &'d [Labelled],
        kind: QuestionKind,
        n_layers: usize,
    ) -> Result<Vec<Row<'d>>, DecisionProblem> {
        let first = if self.layers { 0 } else { n_layers };
        let row = |(item, labelled): (usize, &'d Labelled)| {
            let wrong = |expected, found: String| DecisionProblem::Labelled { item, expected, found };
            let of_layer = |layer| labelled.table.row(Layer(layer));
            let layers: Option<Vec<&[f64]>> = (first..=n_layers).map(of_layer).collect();
            let layers = layers.ok_or_else(|| {
                wrong("the logits of all layers of the model", format!("{:?}", labelled.table.layers()))
            })?;
            let target = labelled.target.clone();
            let is_one = (target.iter().sum::<f64>() - 1.0).abs() <= ROUNDING;
            if target.len() != labelled.table.n_scores() || !is_one || target.iter().any(|&t| t < 0.0) {
                return Err(wrong("a share for each option, none negative, with the sum 1", format!("{target:?}")));
            }
            Ok(Row { item, layers, target })
        };
        decisions.iter().enumerate().filter(|(_, labelled)| labelled.kind == kind).map(row).collect()
    }

    fn of_kind(&self, rows: &[Row<'_>]) -> Result<KindWeights, DecisionProblem> {
        let n_layers = rows.first().map_or(1, |row| row.layers.len());
        let before = step(rows, &alone(n_layers), 0.0)?.loss;
        if !self.layers {
            let (temperature, unsettled) = best_temperature(rows);
            let after = step(rows, &alone(n_layers), temperature.ln())?.loss;
            return Ok(KindWeights { layers: None, temperature, n: rows.len(), loss: [before, after], unsettled });
        }
        let mut theta = vec![0.0; n_layers];
        if let (Some(last), inner @ 1..) = (theta.last_mut(), n_layers - 1) {
            *last = (OF_LAST / (1.0 - OF_LAST) * inner as f64).ln();
        }
        let mut tau = 0.0;
        let mut adam = Adam::new(n_layers + 1);
        let (last_quarter, mut late) = (self.steps - self.steps.div_ceil(4), before);
        for done in 0..self.steps {
            let weights = softmax(&theta);
            let found = step(rows, &weights, tau)?;
            if done == last_quarter {
                late = found.loss;
            }
            let mean: f64 = weights.iter().zip(&found.by_weight).map(|(w, g)| w * g).sum();
            let of_theta = weights.iter().zip(&found.by_weight).map(|(w, g)| w * (g - mean));
            let parameters = theta.iter_mut().zip(of_theta).chain([(&mut tau, found.by_tau)]);
            adam.step(self.lr, parameters);
        }
        let weights = softmax(&theta);
        let after = step(rows, &weights, tau)?.loss;
        let fell = late - after;
        let unsettled = (fell > STILL_FALLS).then_some(Unsettled::StillFalling { fell });
        let (layers, temperature) = (Some(weights), tau.exp());
        Ok(KindWeights { layers, temperature, n: rows.len(), loss: [before, after], unsettled })
    }
}

/// The temperature at which the last layer's logits fit best. Their loss is convex in 1 / T, and its slope at both ends says whether the
/// best one lies between.
fn best_temperature(rows: &[Row<'_>]) -> (f64, Option<Unsettled>) {
    if slope(rows, 0.0) >= 0.0 {
        return (UNIFORM, Some(Unsettled::Uniform));
    }
    let agrees = |row: &Row<'_>| row.below_best().zip(&row.target).all(|(z, &t)| z == 0.0 || t == 0.0);
    if rows.iter().all(agrees) {
        let n = rows.len() as f64;
        let mut spread = rows.to_vec();
        for Row { target, .. } in &mut spread {
            let even = 1.0 / target.len() as f64;
            target.iter_mut().for_each(|t| *t = (n * *t + even) / (n + 1.0));
        }
        return (root(&spread), Some(Unsettled::AllAgree));
    }
    (root(rows), None)
}

/// The temperature at which the slope is 0, of a loss that falls at 1 / T = 0 and rises without end.
fn root(rows: &[Row<'_>]) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while slope(rows, high) < 0.0 {
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..BISECTIONS {
        let middle = f64::midpoint(low, high);
        if slope(rows, middle) < 0.0 { low = middle } else { high = middle }
    }
    (1.0 / high).min(UNIFORM)
}

/// The derivative of the sum of all losses by `cold`, which is 1 / T, of the last layer alone: `(p_o - t_o) z_o`, summed over options. As
/// the first factors add up to 0, the largest logit may be taken off, and nothing overflows or cancels.
fn slope(rows: &[Row<'_>], cold: f64) -> f64 {
    let of = |row: &Row<'_>| {
        let weights: Vec<f64> = row.below_best().map(|z| (z * cold).exp()).collect();
        let sum: f64 = weights.iter().sum();
        row.below_best().zip(&weights).zip(&row.target).map(|((z, w), t)| (w / sum - t) * z).sum::<f64>()
    };
    rows.iter().map(of).sum()
}

/// All weight on the last layer.
fn alone(n_layers: usize) -> Vec<f64> {
    (1..=n_layers).map(|layer| if layer == n_layers { 1.0 } else { 0.0 }).collect()
}

/// One decision.
#[derive(Clone)]
struct Row<'d> {
    item: usize,
    /// The logits of each layer `[options]`.
    layers: Vec<&'d [f64]>,
    target: Vec<f64>,
}

impl Row<'_> {
    /// The last layer's logits, less the largest of them.
    fn below_best(&self) -> impl Iterator<Item = f64> {
        let last = self.layers.last().copied().unwrap_or_default();
        let best = last.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        last.iter().map(move |z| z - best)
    }
}

struct Step {
    loss: f64,
    /// The derivative by each weight.
    by_weight: Vec<f64>,
    /// The derivative by `tau`.
    by_tau: f64,
}

/// Loss and gradient over all rows. With `s = z / T`, the derivative by `s_o` is `p_o - t_o`.
fn step(rows: &[Row<'_>], weights: &[f64], tau: f64) -> Result<Step, DecisionProblem> {
    let cold = (-tau).exp();
    let (mut loss, mut by_tau) = (0.0, 0.0);
    let mut by_weight = vec![0.0; weights.len()];
    for row in rows {
        let mut scores = vec![0.0; row.target.len()];
        for (layer, w) in row.layers.iter().zip(weights) {
            scores.iter_mut().zip(*layer).for_each(|(sum, z)| *sum += w * z * cold);
        }
        let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let log_sum = max + scores.iter().map(|s| (s - max).exp()).sum::<f64>().ln();
        let entropy: f64 = row.target.iter().zip(&scores).map(|(t, s)| t * (log_sum - s)).sum();
        if !entropy.is_finite() {
            let (expected, found) = ("logits with a finite cross-entropy", entropy.to_string());
            return Err(DecisionProblem::Labelled { item: row.item, expected, found });
        }
        loss += entropy;
        let slopes: Vec<f64> = scores.iter().zip(&row.target).map(|(s, t)| (s - log_sum).exp() - t).collect();
        by_tau -= slopes.iter().zip(&scores).map(|(g, s)| g * s).sum::<f64>();
        for (layer, sum) in row.layers.iter().zip(&mut by_weight) {
            *sum += slopes.iter().zip(*layer).map(|(g, z)| g * z * cold).sum::<f64>();
        }
    }
    let n = rows.len().max(1) as f64;
    by_weight.iter_mut().for_each(|sum| *sum /= n);
    Ok(Step { loss: loss / n, by_weight, by_tau: by_tau / n })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(tables: &[(LayerTable, Vec<f64>)]) -> Vec<Row<'_>> {
        tables
            .iter()
            .enumerate()
            .map(|(item, (table, target))| Row { item, layers: table.rows().collect(), target: target.clone() })
            .collect()
    }

    #[test]
    fn the_gradient_is_that_of_the_loss() {
        let table = |logits: &[f64]| LayerTable::new((0..3).map(Layer).collect(), 2, logits.to_vec()).unwrap();
        let tables = [
            (table(&[0.3, -0.2, 1.0, 0.4, 2.0, -1.0]), vec![0.25, 0.75]),
            (table(&[-1.3, 0.2, 0.1, 0.9, -0.5, 0.5]), vec![1.0, 0.0]),
        ];
        let rows = rows(&tables);
        let (weights, tau, small) = (vec![0.2, 0.5, 0.3], 0.4, 1e-6);
        let at = |weights: &[f64], tau| step(&rows, weights, tau).unwrap().loss;
        let found = step(&rows, &weights, tau).unwrap();
        let slope = (at(&weights, tau + small) - at(&weights, tau - small)) / (2.0 * small);
        assert!((slope - found.by_tau).abs() < 1e-8, "{slope} {}", found.by_tau);
        for layer in 0..3 {
            let moved = |by: f64| {
                let mut weights = weights.clone();
                weights[layer] += by;
                at(&weights, tau)
            };
            let slope = (moved(small) - moved(-small)) / (2.0 * small);
            assert!((slope - found.by_weight[layer]).abs() < 1e-8);
        }
    }
}
