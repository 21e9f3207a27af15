use std::collections::HashMap;

use crate::agreement::PlacedRatings;

/// The different rows of ratings, and how often each occurs.
pub(super) struct Patterns<'r> {
    pub(super) n_labels: usize,
    pub(super) n_raters: usize,
    /// Per pattern, in the order of its first subject, the annotators and the labels that they gave.
    given: Vec<&'r [(usize, usize)]>,
    /// How many subjects have each pattern.
    pub(super) weights: Vec<f64>,
    /// Which pattern each subject has.
    pub(super) of_subject: Vec<usize>,
}

impl<'r> Patterns<'r> {
    pub(super) fn new(ratings: &'r PlacedRatings) -> Self {
        let mut known: HashMap<&[(usize, usize)], usize> = HashMap::new();
        let (mut given, mut weights) = (Vec::new(), Vec::new());
        let mut place = |row: &'r Vec<(usize, usize)>| {
            let pattern = *known.entry(row).or_insert_with(|| {
                given.push(row.as_slice());
                weights.push(0.0);
                given.len() - 1
            });
            weights[pattern] += 1.0;
            pattern
        };
        let of_subject = ratings.subjects.iter().map(&mut place).collect();
        Self { n_labels: ratings.n_labels, n_raters: ratings.n_raters, given, weights, of_subject }
    }

    /// Ratings and weights.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'r [(usize, usize)], f64)> + '_ {
        self.given.iter().copied().zip(self.weights.iter().copied())
    }

    /// Per pattern the share of its annotators who gave each label, row-major `[patterns, n_labels]`. Each pattern has a rating.
    pub(super) fn shares(&self) -> Vec<f64> {
        let mut shares = vec![0.0; self.given.len() * self.n_labels];
        for (given, row) in self.given.iter().zip(shares.chunks_exact_mut(self.n_labels)) {
            given.iter().for_each(|&(_, label)| row[label] += 1.0);
            row.iter_mut().for_each(|count| *count /= given.len() as f64);
        }
        shares
    }
}
