//! How predictions of any origin agree with the grades.

use std::collections::BTreeMap;

use anyhow::Result;
use judge_examples::report::{BOOTSTRAP, Statistic};
use judge_metrics::agreement::{Average, AverageScores, ConfusionMatrix, ZeroDivision};
use judge_metrics::correlation::spearman;
use judge_metrics::{Error, resampling::BootstrapInterval};
use judge_probe::{FittedClassifier, Matrix};
use serde::Serialize;

/// What was predicted of some rows.
#[derive(Clone)]
pub struct Predictions {
    pub labels: Vec<i64>,
    /// The expected class, where probabilities are known; else the class itself.
    pub values: Vec<f64>,
}

impl Predictions {
    pub fn of(classifier: &impl FittedClassifier, features: &Matrix) -> Result<Self> {
        let labels = classifier.predict(features)?;
        let values = match classifier.expected_classes(features)? {
            Some(values) => values,
            None => labels.iter().map(|&label| label as f64).collect(),
        };
        Ok(Self { labels, values })
    }

    pub fn constant(label: i64, n: usize) -> Self {
        Self { labels: vec![label; n], values: vec![label as f64; n] }
    }
}

/// Rows that nothing was learnt from.
pub struct Truth<'a> {
    pub labels: Vec<i64>,
    pub scores: Vec<f64>,
    pub groups: Vec<&'a str>,
    pub classes: &'a [i64],
}

/// Intervals are percentile bootstraps over groups of rows.
#[derive(Serialize)]
pub struct Agreement {
    pub weighted_f1: Statistic,
    pub macro_f1: Statistic,
    pub accuracy: Statistic,
    /// Of the expected class with the grades.
    pub spearman: Statistic,
}

impl Truth<'_> {
    pub fn agreement(&self, predictions: &Predictions) -> Result<Agreement> {
        Ok(Agreement {
            weighted_f1: self.statistic(|rows| Ok(self.f1(predictions, rows, Average::Weighted)?.f1))?,
            macro_f1: self.statistic(|rows| Ok(self.f1(predictions, rows, Average::Macro)?.f1))?,
            accuracy: self.statistic(|rows| Ok(self.f1(predictions, rows, Average::Micro)?.f1))?,
            spearman: self.statistic(|rows| self.spearman(predictions, rows))?,
        })
    }

    /// The first predictions less the others, on the same resamples: weighted F1 and Spearman's correlation.
    pub fn gain(&self, predictions: &Predictions, others: &Predictions) -> Result<BTreeMap<&'static str, Statistic>> {
        let f1 = |of: &Predictions, rows: &[usize]| Ok::<_, Error>(self.f1(of, rows, Average::Weighted)?.f1);
        let f1 = self.statistic(|rows| Ok(f1(predictions, rows)? - f1(others, rows)?))?;
        let rank = |rows: &[usize]| Ok(self.spearman(predictions, rows)? - self.spearman(others, rows)?);
        Ok(BTreeMap::from([("weighted_f1", f1), ("spearman", self.statistic(rank)?)]))
    }

    fn statistic(&self, of: impl Fn(&[usize]) -> Result<f64, Error> + Sync) -> Result<Statistic> {
        let found: Result<BootstrapInterval, Error> = BOOTSTRAP.clustered(&self.groups, of);
        Ok(Statistic::of(found)?)
    }

    fn f1(&self, predictions: &Predictions, rows: &[usize], average: Average) -> Result<AverageScores, Error> {
        let pick = |labels: &[i64]| rows.iter().map(|&row| labels[row]).collect::<Vec<_>>();
        let matrix = ConfusionMatrix::new(self.classes.to_vec(), &pick(&self.labels), &pick(&predictions.labels))?;
        // A class that neither occurs nor is predicted has no F1, and no part in the mean.
        matrix.average(average, ZeroDivision::LeftOut)
    }

    fn spearman(&self, predictions: &Predictions, rows: &[usize]) -> Result<f64, Error> {
        let pick = |values: &[f64]| rows.iter().map(|&row| values[row]).collect::<Vec<_>>();
        Ok(spearman(&pick(&predictions.values), &pick(&self.scores))?.estimate)
    }
}
