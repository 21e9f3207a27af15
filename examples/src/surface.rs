//! What can be said of an answer without reading it: the baselines that a judge has to beat.
//!
//! These are not the features of `judge_probe::surface_features`, which make a weaker baseline of the generated items (Spearman on the test
//! split: all by ridge regression 0.346 instead of 0.393, overlap 0.263 instead of 0.348). A word has two letters or more there, so that no
//! digit is one.

use anyhow::Result;
use judge_probe::{Estimator, FittedEstimator, FittedRidge, FittedStandardScaler, Matrix, Ridge, StandardScaler};

use crate::planted::Item;

/// Names of the features of [`features`].
pub const FEATURES: [&str; 7] =
    ["characters", "words", "sentences", "digits", "word length", "distinct words", "overlap"];

/// Surface features of an answer, in the order of [`FEATURES`]; shares are in [0, 1], all else are counts or characters.
#[must_use]
pub fn features(item: &Item) -> [f64; 7] {
    let words: Vec<String> = words(&item.response).collect();
    let count = |test: fn(char) -> bool| item.response.chars().filter(|&c| test(c)).count() as f64;
    let n = (words.len() as f64).max(1.0);
    let mut distinct = words.clone();
    distinct.sort_unstable();
    distinct.dedup();
    [
        item.response.chars().count() as f64,
        words.len() as f64,
        count(|c| matches!(c, '.' | '!' | '?')),
        count(|c| c.is_ascii_digit()),
        words.iter().map(|word| word.chars().count()).sum::<usize>() as f64 / n,
        distinct.len() as f64 / n,
        overlap(item),
    ]
}

/// Share of the question's distinct words that the answer has too, in [0, 1].
#[must_use]
pub fn overlap(item: &Item) -> f64 {
    let answer: Vec<String> = words(&item.response).collect();
    let mut question: Vec<String> = words(&item.instruction).collect();
    question.sort_unstable();
    question.dedup();
    let shared = question.iter().filter(|word| answer.contains(word)).count();
    shared as f64 / (question.len() as f64).max(1.0)
}

fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// A ridge regression of the human score on all surface features.
pub struct SurfaceModel {
    scaler: FittedStandardScaler,
    ridge: FittedRidge,
}

impl SurfaceModel {
    /// Fits on graded items.
    ///
    /// # Errors
    /// If there are none.
    pub fn fit(items: &[Item]) -> Result<Self> {
        let table = Matrix::from_rows(items.iter().map(features))?;
        let scaler = StandardScaler::default().fit(&table)?;
        let human: Vec<f64> = items.iter().map(Item::human).collect();
        let ridge = Ridge::default().fit(&scaler.transform(&table)?, &human)?;
        Ok(Self { scaler, ridge })
    }

    /// Predicted human scores.
    ///
    /// # Errors
    /// If there are no items.
    pub fn predict(&self, items: &[Item]) -> Result<Vec<f64>> {
        let table = Matrix::from_rows(items.iter().map(features))?;
        Ok(self.ridge.predict(&self.scaler.transform(&table)?)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planted::{Split, generate};

    #[test]
    fn features_count_what_they_say() {
        let mut item = generate(Split::Test, 1, 0).remove(0);
        item.instruction = "How many red red hats?".to_owned();
        item.response = "Red hats. 12 hats!".to_owned();
        assert_eq!(features(&item), [18.0, 4.0, 2.0, 2.0, 13.0 / 4.0, 0.75, 0.5]);
    }

    #[test]
    fn the_surface_model_finds_what_is_on_the_surface() {
        let mut items = generate(Split::Validation, 80, 0);
        for item in &mut items {
            item.scores = vec![item.response.len() as f64 / 50.0];
        }
        let predicted = SurfaceModel::fit(&items[..40]).unwrap().predict(&items[40..]).unwrap();
        let human: Vec<f64> = items[40..].iter().map(Item::human).collect();
        assert!(judge_metrics::correlation::pearson(&predicted, &human).unwrap().estimate > 0.98);
    }
}
