//! The two steps of expectation maximisation for annotators whose errors are independent given the label that is right.
//!
//! Subjects with the same ratings have the same posterior: both steps go over [`Patterns`] of ratings, of which three annotators of five
//! labels have at most 215, however many subjects there are.

use super::patterns::Patterns;
use crate::sum::{dot, sum};

/// What the errors of an annotator depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnnotatorModel {
    /// The label that is right and the one that is given: a confusion matrix to an annotator (Dawid and Skene, 1979). It takes many labels
    /// of each annotator.
    ConfusionMatrix,
    /// Nothing: one accuracy to an annotator, all errors being equally likely (the one-coin model; Zhang, Chen, Zhou and Jordan, 2016). It
    /// takes few labels, and label bias misleads it.
    OneCoin,
}

/// Prevalences of the labels, and how each annotator confuses them.
pub(super) struct Parameters {
    pub(super) prevalences: Vec<f64>,
    /// Row-major `[annotators, n_labels, n_labels]`: what is given, where a label is right.
    pub(super) confusion: Vec<f64>,
}

/// What the parameters say of the subjects.
pub(super) struct Expected {
    /// Row-major `[patterns, n_labels]`: a distribution over the labels to a pattern.
    pub(super) posteriors: Vec<f64>,
    /// Of all subjects.
    pub(super) log_likelihood: f64,
}

impl Parameters {
    /// The maximum step: parameters of the largest expected log-likelihood, `smoothing` added to each cell of the expected counts.
    pub(super) fn maximised(
        model: AnnotatorModel,
        smoothing: f64,
        patterns: &Patterns<'_>,
        posteriors: &[f64],
    ) -> Self {
        let k = patterns.n_labels;
        let subjects = sum(&patterns.weights);
        let of_label = |label: usize| posteriors.iter().skip(label).step_by(k).copied().collect::<Vec<_>>();
        let prevalences: Vec<f64> = (0..k).map(|label| dot(&of_label(label), &patterns.weights) / subjects).collect();
        let mut counts = vec![0.0; patterns.n_raters * k * k];
        for ((given, weight), posterior) in patterns.iter().zip(posteriors.chunks_exact(k)) {
            for &(annotator, label) in given {
                for (truth, share) in posterior.iter().enumerate() {
                    counts[(annotator * k + truth) * k + label] += weight * share;
                }
            }
        }
        let mut confusion = counts;
        match model {
            AnnotatorModel::ConfusionMatrix => confusion.chunks_exact_mut(k).for_each(|row| {
                let total = row.iter().sum::<f64>() + smoothing * k as f64;
                // An annotator who saw nothing of a label is not known to confuse it one way or another: the limit of little smoothing.
                let share = |count: f64| if total > 0.0 { (count + smoothing) / total } else { 1.0 / k as f64 };
                row.iter_mut().for_each(|cell| *cell = share(*cell));
            }),
            AnnotatorModel::OneCoin => confusion.chunks_exact_mut(k * k).for_each(|matrix| {
                let right: f64 = (0..k).map(|label| matrix[label * (k + 1)]).sum();
                let total = matrix.iter().sum::<f64>() + smoothing * k as f64;
                let accuracy = ((right + smoothing) / total).min(1.0);
                let error = (1.0 - accuracy) / (k - 1) as f64;
                for (cell, value) in matrix.iter_mut().enumerate() {
                    *value = if cell % (k + 1) == 0 { accuracy } else { error };
                }
            }),
        }
        Self { prevalences, confusion }
    }

    /// The expectation step: how probable each label is to be right, by Bayes' rule.
    ///
    /// Some label of each subject has a likelihood above 0: the one that was most probable when these parameters were fitted.
    pub(super) fn expected(&self, patterns: &Patterns<'_>) -> Expected {
        let k = patterns.n_labels;
        let logarithms: Vec<f64> = self.confusion.iter().map(|p| p.ln()).collect();
        let prevalences: Vec<f64> = self.prevalences.iter().map(|p| p.ln()).collect();
        let mut posteriors = vec![0.0; patterns.weights.len() * k];
        let log_likelihood = |given: &[(usize, usize)], row: &mut [f64]| {
            // Products of many probabilities would vanish: logarithms do not.
            for (truth, (joint, prevalence)) in row.iter_mut().zip(&prevalences).enumerate() {
                let of = |&(annotator, label): &(usize, usize)| logarithms[(annotator * k + truth) * k + label];
                *joint = prevalence + given.iter().map(of).sum::<f64>();
            }
            let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            row.iter_mut().for_each(|joint| *joint = (*joint - largest).exp());
            let total: f64 = row.iter().sum();
            row.iter_mut().for_each(|share| *share /= total);
            largest + total.ln()
        };
        let patterns = patterns.iter().zip(posteriors.chunks_exact_mut(k));
        let logs: Vec<f64> = patterns.map(|((given, weight), row)| weight * log_likelihood(given, row)).collect();
        Expected { posteriors, log_likelihood: sum(&logs) }
    }

    /// What the logarithm of the prior adds to the log-likelihood, but for a constant: the iteration climbs the sum of both.
    pub(super) fn log_prior(&self, model: AnnotatorModel, smoothing: f64) -> f64 {
        if smoothing == 0.0 {
            return 0.0;
        }
        let k = self.prevalences.len();
        let logarithm = |cells: &[f64]| cells.iter().map(|p| p.ln()).sum::<f64>();
        smoothing
            * match model {
                AnnotatorModel::ConfusionMatrix => logarithm(&self.confusion),
                // All rows of a matrix are one distribution in another order.
                AnnotatorModel::OneCoin => {
                    self.confusion.chunks_exact(k * k).map(|matrix| logarithm(&matrix[..k])).sum()
                }
            }
    }

    /// The point that a straight path through `start`, `middle` and `self`, of which each step is shorter than the last, would come to
    /// (scheme S3 of Varadhan and Roland, 2008). Probabilities stay above a tenth of what they are here, so that those above 0 remain so.
    /// `None` where it would not go beyond `self`.
    pub(super) fn extrapolated(&self, start: &Self, middle: &Self) -> Option<Self> {
        let triples = || self.values().zip(middle.values()).zip(start.values()).map(|((c, b), a)| (a, b - a, c - b));
        let step: f64 = triples().map(|(_, first, _)| first * first).sum();
        let bend: f64 = triples().map(|(_, first, second)| (second - first).powi(2)).sum();
        let length = (step / bend).sqrt();
        if !(length.is_finite() && length > 1.0) {
            return None;
        }
        let k = self.prevalences.len();
        let mut values: Vec<f64> = self
            .values()
            .zip(triples())
            .map(|(here, (start, first, second))| {
                (start + 2.0 * length * first + length * length * (second - first)).max(here / 10.0)
            })
            .collect();
        for distribution in values.chunks_exact_mut(k) {
            let total: f64 = distribution.iter().sum();
            distribution.iter_mut().for_each(|share| *share /= total);
        }
        let confusion = values.split_off(k);
        Some(Self { prevalences: values, confusion })
    }

    fn values(&self) -> impl Iterator<Item = f64> + '_ {
        self.prevalences.iter().chain(&self.confusion).copied()
    }
}
