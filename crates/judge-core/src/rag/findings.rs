use std::collections::BTreeMap;

use serde::Serialize;

use super::{RagMeasure, Sentence};
use crate::lager::LayerTable;
use crate::verdict::likelier;
use crate::{Reason, Unscored};

/// All that a [`RagJudge`](super::RagJudge) found of an item.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RagFindings {
    /// What was to be measured; of what could not be, why.
    pub measures: BTreeMap<RagMeasure, Result<RagValue, Unscored>>,
    /// The sentences of the response, in their order, where [`RagMeasure::Faithfulness`] is measured; else empty.
    pub sentences: Vec<JudgedSentence>,
    /// The probability that each context helps to answer the question, in their order, where [`RagMeasure::ContextRelevance`] is measured;
    /// else empty. `None`: it could not be read.
    pub relevance: Vec<Option<f64>>,
    /// Whether each context was read by itself.
    pub by_context: bool,
    /// The share of the model's probability that lay on yes and no, as a mean over all questions, where it was read.
    pub label_mass: Option<f64>,
}

/// A sentence of a response, as it was judged.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedSentence {
    /// The sentence and its place.
    pub sentence: Sentence,
    /// The probability that the contexts support it; `None` if that could not be read.
    pub supported: Option<f64>,
    /// The probability that it claims anything, where that was asked.
    pub claims: Option<f64>,
    /// The logits of yes and no at every layer, in this order, where all layers are read
    /// ([`every_layer`](crate::decision::DecisionSettings::every_layer)) and all contexts together.
    pub table: Option<LayerTable>,
}

/// A measure of one item, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RagValue {
    /// Of probabilities as they are.
    pub mean: f64,
    /// Of probabilities as 1 from one half on, else 0.
    pub share: f64,
}

impl RagValue {
    /// Of no probability there is no value.
    pub(super) fn of(p: &[f64], statistic: impl Fn(&[f64]) -> f64) -> Result<Self, Unscored> {
        if p.is_empty() {
            return Err(Unscored::new(Reason::Missing, "nothing was asked for it"));
        }
        Ok(Self { mean: statistic(p), share: statistic(&decided(p)) })
    }

    pub(super) fn of_two(p: &[f64], q: &[f64], statistic: impl Fn(f64, f64) -> f64) -> Result<Self, Unscored> {
        let (p, q) = (Self::of(p, mean)?, Self::of(q, mean)?);
        Ok(Self { mean: statistic(p.mean, q.mean), share: statistic(p.share, q.share) })
    }
}

/// 1 from one half on, else 0.
fn decided(p: &[f64]) -> Vec<f64> {
    p.iter().map(|&p| if likelier(p).is_ge() { 1.0 } else { 0.0 }).collect()
}

/// The mean of at least one number.
pub(super) fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

/// `Σ_k precision@k · p_k / Σ_k p_k`; 0 where the sum is 0.
pub(super) fn average_precision(p: &[f64]) -> f64 {
    let (mut so_far, mut weighted) = (0.0, 0.0);
    for (before, &p) in p.iter().enumerate() {
        so_far += p;
        weighted += so_far / (before + 1) as f64 * p;
    }
    if so_far > 0.0 { weighted / so_far } else { 0.0 }
}

/// `2 a b / (a + b)`; 0 where both are.
pub(super) fn harmonic_mean(a: f64, b: f64) -> f64 {
    if a + b > 0.0 { 2.0 * a * b / (a + b) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values by hand, of the formulas that ragas documents for context precision and for the F1 of factual correctness.
    #[test]
    fn formulas_are_those_of_the_field() {
        let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-15, "{found} {expected}");
        close(average_precision(&[1.0, 0.0, 1.0]), (1.0 + 2.0 / 3.0) / 2.0);
        close(average_precision(&[0.0, 0.0, 1.0]), 1.0 / 3.0);
        close(average_precision(&[0.0, 0.0]), 0.0);
        close(average_precision(&[0.5, 1.0]), (0.5 * 0.5 + 0.75) / 1.5);
        close(harmonic_mean(0.5, 1.0), 2.0 / 3.0);
        close(harmonic_mean(0.0, 0.0), 0.0);
        let value = RagValue::of(&[0.5, 0.25, 0.75, 0.1], mean).unwrap();
        close(value.mean, 0.4);
        close(value.share, 0.5);
        let value = RagValue::of_two(&[0.9], &[0.6, 0.4], harmonic_mean).unwrap();
        close(value.mean, 2.0 * 0.9 * 0.5 / 1.4);
        close(value.share, 2.0 * 0.5 / 1.5);
        for nothing in [
            RagValue::of(&[], average_precision),
            RagValue::of_two(&[], &[0.5], harmonic_mean),
            RagValue::of_two(&[0.5], &[], harmonic_mean),
        ] {
            assert_eq!(nothing.unwrap_err().reason, Reason::Missing);
        }
    }
}
