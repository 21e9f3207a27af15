//! The two steps of expectation maximisation for annotators whose errors are independent given the label that is right.

use super::AnnotatorModel;
use crate::agreement::PlacedRatings;
use crate::sum::sum;

/// Prevalences of the labels, and how each annotator confuses them.
pub(super) struct Parameters {
    pub(super) prevalences: Vec<f64>,
    /// Row-major `[annotators, n_labels, n_labels]`: what is given, where a label is right.
    pub(super) confusion: Vec<f64>,
}

/// What the parameters say of the subjects.
pub(super) struct Expected {
    /// One distribution over the labels to a subject.
    pub(super) posteriors: Vec<Vec<f64>>,
    pub(super) log_likelihood: f64,
}

impl Parameters {
    /// The maximum step: parameters of the largest expected log-likelihood, `smoothing` added to each cell of the expected counts.
    pub(super) fn maximised(
        model: AnnotatorModel,
        smoothing: f64,
        ratings: &PlacedRatings,
        posteriors: &[Vec<f64>],
    ) -> Self {
        let (k, n) = (ratings.n_labels, posteriors.len() as f64);
        let prevalence = |label: usize| sum(&posteriors.iter().map(|row| row[label]).collect::<Vec<_>>()) / n;
        let prevalences: Vec<f64> = (0..k).map(prevalence).collect();
        let mut counts = vec![0.0; ratings.n_raters * k * k];
        for (given, posterior) in ratings.subjects.iter().zip(posteriors) {
            for &(annotator, label) in given {
                for (truth, weight) in posterior.iter().enumerate() {
                    counts[(annotator * k + truth) * k + label] += weight;
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
    pub(super) fn expected(&self, ratings: &PlacedRatings) -> Expected {
        let k = ratings.n_labels;
        let logarithms: Vec<f64> = self.confusion.iter().map(|p| p.ln()).collect();
        let prevalences: Vec<f64> = self.prevalences.iter().map(|p| p.ln()).collect();
        let of_subject = |given: &Vec<(usize, usize)>| {
            // Products of many probabilities would vanish: logarithms do not.
            let joint: Vec<f64> = (0..k)
                .map(|truth| {
                    let of = |&(annotator, label): &(usize, usize)| logarithms[(annotator * k + truth) * k + label];
                    prevalences[truth] + given.iter().map(of).sum::<f64>()
                })
                .collect();
            let largest = joint.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let weights: Vec<f64> = joint.iter().map(|log| (log - largest).exp()).collect();
            let total: f64 = weights.iter().sum();
            (weights.iter().map(|weight| weight / total).collect(), largest + total.ln())
        };
        let (posteriors, logs): (Vec<Vec<f64>>, Vec<f64>) = ratings.subjects.iter().map(of_subject).unzip();
        Expected { posteriors, log_likelihood: sum(&logs) }
    }
}
