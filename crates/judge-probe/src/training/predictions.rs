//! What is predicted of rows by the model itself, and the one number that each prediction comes to.
//!
//! It owns the baseline `prompted`, for which nothing is fitted, and `tuned`, whose logits others have learnt; the baselines that learn here
//! are in `baselines`.

use crate::estimators::linear_functions::first_greatest;
use crate::estimators::sigmoid::softmax;
use crate::{Error, Matrix, Predictions, ProbabilityTable};

use super::grading::whole;
use super::{GradedRow, Grading, RowSignals, TrainingError};

/// The expected class of each row where probabilities are known; else the class itself.
/// Spearman's correlation is computed of these. A support vector machine and the majority have classes alone.
pub(super) fn values(predictions: &Predictions<i64>) -> Vec<f64> {
    let classes = || predictions.labels.iter().map(|&class| class as f64).collect();
    predictions.expected_classes().unwrap_or_else(classes)
}

/// The model's own score: the softmax over the grades' logits. A prompt asks for a grade, so for two classes the probabilities of the
/// grades of each are added up, and a tie goes to the lower class. `None` where the logits were not read.
///
/// The grades are those that occur among all `rows`, rounded to whole numbers as in [`Grading::Whole`], ascending: one logit
/// belongs to each. For whole grades ties go to the lowest grade. One row without logits leaves the baseline out for the split,
/// since a comparison needs the same rows for all.
///
/// # Errors
///
/// [`TrainingError::GradeLogits`], [`TrainingError::GradeLogit`]; what `signals` returns.
pub(super) fn prompted<S: RowSignals>(
    signals: &S,
    tested: &[usize],
    rows: &[GradedRow],
    grading: Grading,
) -> Result<Option<Predictions<i64>>, S::Error> {
    let logits = tested.iter().map(|&row| signals.grade_logits(row)).collect::<Result<Option<Vec<_>>, _>>()?;
    logits.map(|logits| Ok(of_logits(&logits, tested, rows, grading)?)).transpose()
}

/// What a model that was tuned on the rows `train` says in the same way; `None` where there is none.
///
/// # Errors
///
/// As [`prompted`], and [`TrainingError::TunedRows`].
pub(super) fn tuned<S: RowSignals>(
    signals: &S,
    (train, tested): (&[usize], &[usize]),
    rows: &[GradedRow],
    grading: Grading,
) -> Result<Option<Predictions<i64>>, S::Error> {
    let logits = signals.tuned_grade_logits(train, tested)?;
    logits.map(|logits| Ok(of_logits(&logits, tested, rows, grading)?)).transpose()
}

/// Predictions by the softmax of each row's logits.
fn of_logits(
    logits: &[Vec<f64>],
    tested: &[usize],
    rows: &[GradedRow],
    grading: Grading,
) -> Result<Predictions<i64>, Error> {
    if logits.len() != tested.len() {
        return Err(TrainingError::TunedRows { expected: tested.len(), found: logits.len() }.into());
    }
    // Of all rows, not of those tested on alone: a logit's place must not depend on the split.
    let mut grades: Vec<i64> = rows.iter().map(|row| whole(row.grade)).collect();
    grades.sort_unstable();
    grades.dedup();
    let (mut labels, mut table) = (Vec::new(), Vec::new());
    for (&row, logits) in tested.iter().zip(logits) {
        let probabilities = of_grades(&rows[row], logits, grades.len())?;
        match grading {
            Grading::AtLeast(_) => {
                let good = grades.iter().zip(&probabilities).filter(|&(&grade, _)| grading.class(grade as f64) == 1);
                // Rounding may take the sum of all past 1.
                let share = good.map(|(_, p)| p).sum::<f64>().min(1.0);
                labels.push(i64::from(share > 0.5));
                table.extend([1.0 - share, share]);
            }
            Grading::Whole => {
                labels.push(grades[first_greatest(&probabilities)]);
                table.extend(probabilities);
            }
        }
    }
    // A table of two classes has both columns, whatever grades occur.
    let classes = if let Grading::AtLeast(_) = grading { vec![0, 1] } else { grades };
    let table = Matrix::new(table, classes.len()).and_then(|table| ProbabilityTable::new(classes, table))?;
    Ok(Predictions { labels, probabilities: Some(table) })
}

/// The probabilities of one row's grades. As many logits as grades occur are asked for: with fewer, a probability would be that of another
/// grade.
fn of_grades(row: &GradedRow, logits: &[f64], expected: usize) -> Result<Vec<f64>, TrainingError> {
    if logits.len() != expected {
        return Err(TrainingError::GradeLogits { id: row.id.clone(), expected, found: logits.len() });
    }
    if let Some(&value) = logits.iter().find(|logit| !logit.is_finite()) {
        return Err(TrainingError::GradeLogit { id: row.id.clone(), value });
    }
    let mut probabilities = logits.to_vec();
    softmax(&mut probabilities);
    Ok(probabilities)
}
