use crate::linear_functions::first_greatest;
use crate::{Error, FittedClassifier, Matrix};

use super::grading::whole;
use super::{GradedRow, Grading, RowSignals, TrainingError};

/// What was predicted of some rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Predictions {
    /// The class of each row.
    pub classes: Vec<i64>,
    /// Its expected class, where probabilities are known; else the class itself.
    pub values: Vec<f64>,
}

impl Predictions {
    /// Of a classifier.
    ///
    /// # Errors
    ///
    /// As [`FittedClassifier::predict`].
    pub fn of(classifier: &impl FittedClassifier, features: &Matrix) -> Result<Self, Error> {
        let classes = classifier.predict(features)?;
        let values = match classifier.expected_classes(features)? {
            Some(values) => values,
            None => classes.iter().map(|&class| class as f64).collect(),
        };
        Ok(Self { classes, values })
    }

    /// The same class for each of `n` rows.
    pub fn constant(class: i64, n: usize) -> Self {
        Self { classes: vec![class; n], values: vec![class as f64; n] }
    }

    /// The model's own score: the softmax over the grades' logits. A prompt asks for a grade, so for two classes the probabilities of the grades of each
    /// are added up, and a tie goes to the lower class. `None` where the logits were not read.
    pub(super) fn prompted<S: RowSignals>(
        signals: &S,
        tested: &[usize],
        rows: &[GradedRow],
        grading: Grading,
    ) -> Result<Option<Self>, S::Error> {
        let mut grades: Vec<i64> = rows.iter().map(|row| whole(row.grade)).collect();
        grades.sort_unstable();
        grades.dedup();
        let mut found = Self { classes: Vec::new(), values: Vec::new() };
        for &row in tested {
            let Some(logits) = signals.grade_logits(row)? else { return Ok(None) };
            let probabilities = softmax(&rows[row], &logits, grades.len()).map_err(Error::from)?;
            let (class, value) = match grading {
                Grading::AtLeast(_) => {
                    let good =
                        grades.iter().zip(&probabilities).filter(|&(&grade, _)| grading.class(grade as f64) == 1);
                    let share: f64 = good.map(|(_, p)| p).sum();
                    (i64::from(share > 0.5), share)
                }
                Grading::Whole => {
                    let expected = grades.iter().zip(&probabilities).map(|(&grade, p)| grade as f64 * p).sum();
                    (grades[first_greatest(&probabilities)], expected)
                }
            };
            found.classes.push(class);
            found.values.push(value);
        }
        Ok(Some(found))
    }
}

fn softmax(row: &GradedRow, logits: &[f64], expected: usize) -> Result<Vec<f64>, TrainingError> {
    if logits.len() != expected {
        return Err(TrainingError::GradeLogits { id: row.id.clone(), expected, found: logits.len() });
    }
    if let Some(&value) = logits.iter().find(|logit| !logit.is_finite()) {
        return Err(TrainingError::GradeLogit { id: row.id.clone(), value });
    }
    let max = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logits.iter().map(|&logit| (logit - max).exp()).collect();
    let sum: f64 = weights.iter().sum();
    Ok(weights.into_iter().map(|weight| weight / sum).collect())
}
