//! Features that the scripts of fixtures and the tests make from the same formula of integers.

use judge_probe::{ClassWeight, Matrix};
use serde::Deserialize;

/// Data that a script has fitted settings to, and what each of them found.
#[derive(Deserialize)]
pub(crate) struct Case<E> {
    pub(crate) name: String,
    #[serde(flatten)]
    pub(crate) data: Data,
    pub(crate) balanced: bool,
    pub(crate) results: Vec<E>,
}

impl<E> Case<E> {
    pub(crate) fn class_weight(&self) -> ClassWeight {
        if self.balanced { ClassWeight::Balanced } else { ClassWeight::Uniform }
    }

    /// What each row to fit counts.
    pub(crate) fn weights(&self) -> Vec<f64> {
        let labels = self.data.labels();
        let mut classes = labels.to_vec();
        classes.sort_unstable();
        classes.dedup();
        let count = |label: &i64| labels.iter().filter(|other| *other == label).count() as f64;
        let weight =
            |label: &i64| if self.balanced { labels.len() as f64 / (classes.len() as f64 * count(label)) } else { 1.0 };
        labels.iter().map(weight).collect()
    }
}

#[derive(Deserialize)]
pub(crate) struct Data {
    seed: u64,
    n_features: usize,
    signal: f64,
    column_scales: Vec<f64>,
    every_tenth: f64,
    /// Steps to 1 that features are rounded down to.
    grid: Option<f64>,
    /// Of `n_rows` rows to fit and some more.
    labels: Vec<i64>,
    n_rows: usize,
}

impl Data {
    /// Of the rows to fit.
    pub(crate) fn labels(&self) -> &[i64] {
        &self.labels[..self.n_rows]
    }

    /// As `scripts/probe/formula.py`: of the rows to fit, and of the others.
    pub(crate) fn features(&self) -> (Matrix, Matrix) {
        let value = |row: usize, feature: usize| {
            let mut value = uniform(self.seed, (row * self.n_features + feature) as u64);
            if feature.is_multiple_of(5) {
                value += self.signal * self.labels[row] as f64;
            }
            if let Some(grid) = self.grid {
                value = (value * grid).floor() / grid;
            }
            value *= self.column_scales[feature % self.column_scales.len()];
            if row.is_multiple_of(10) { value * self.every_tenth } else { value }
        };
        let rows = |range: std::ops::Range<usize>| {
            let values = range.flat_map(|row| (0..self.n_features).map(move |feature| value(row, feature))).collect();
            Matrix::new(values, self.n_features).unwrap()
        };
        (rows(0..self.n_rows), rows(self.n_rows..self.labels.len()))
    }
}

/// SplitMix64's outputs as numbers in [-1, 1).
fn uniform(seed: u64, counter: u64) -> f64 {
    let mut z = seed.wrapping_add((counter + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^= z >> 31;
    (z >> 11) as f64 / 2f64.powi(52) - 1.0
}
