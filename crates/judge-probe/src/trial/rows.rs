//! The graded rows, and how they are cut.

use std::collections::HashMap;

use judge_metrics::resampling::Bootstrap;
use judge_metrics::sampling::draw_alike;

use super::error::TrialError;
use super::reading::{ReadAs, Reading};
use crate::{Error, GroupKFold, Split};

/// Folds of the rows learnt from, in which a probe chooses its layer and penalty.
const INNER_FOLDS: usize = 3;

/// Rows that people have graded, and how readings of them are compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// People's grade of each row, finite. Of two different grades the area under the ROC curve counts, else Spearman's correlation.
    pub grades: Vec<f64>,
    /// What belongs together, such as the responses to one question: rows of a group are on one side of every split, and the bootstrap draws
    /// them together. One for each row.
    pub groups: Vec<usize>,
    /// Which rows answer the same question, as one number for those of a question: how often each reading chooses the best of them is told.
    /// One for each row.
    pub questions: Vec<usize>,
    /// In how many parts the rows are cut; each is judged by what was learnt from the others.
    pub folds: usize,
    /// With how many labels readings that learn are tried besides all, and half of all. Those of more than half are left out.
    pub labels: Vec<usize>,
    /// How intervals are made. Its level is that of all readings' agreement together; each interval has a higher one (Bonferroni), also those
    /// of distances and gains.
    pub bootstrap: Bootstrap,
    /// Chooses the rows of a smaller number of labels.
    pub seed: u64,
}

impl Trial {
    /// Five folds; 32, 128 and 512 labels; rows that do not belong together, each with a question of its own.
    #[must_use]
    pub fn new(grades: Vec<f64>) -> Self {
        let alone: Vec<usize> = (0..grades.len()).collect();
        Self {
            grades,
            groups: alone.clone(),
            questions: alone,
            folds: 5,
            labels: vec![32, 128, 512],
            bootstrap: Bootstrap::default(),
            seed: 0,
        }
    }
}

impl Trial {
    /// Refuses what does not fit together.
    pub(super) fn check<S>(&self, readings: &[Reading<'_, S>]) -> Result<(), Error> {
        let rows = self.grades.len();
        let counted = |what: &str, found: usize| match found == rows {
            true => Ok(()),
            false => Err(TrialError::Rows { what: what.to_owned(), expected: rows, found }),
        };
        let finite = |what: &str, values: &[f64]| match values.iter().position(|value| !value.is_finite()) {
            Some(row) => Err(TrialError::NonFinite { what: what.to_owned(), row, value: values[row] }),
            None => counted(what, values.len()),
        };
        finite("the grade", &self.grades)?;
        counted("groups", self.groups.len())?;
        counted("questions", self.questions.len())?;
        for Reading { name, read_as } in readings {
            match read_as {
                ReadAs::Plain(values) | ReadAs::Baseline(values) => finite(name, values)?,
                ReadAs::ChosenLayer(layers) => layers.iter().try_for_each(|layer| finite(name, layer))?,
                ReadAs::Weights { tables, targets, .. } => {
                    counted(name, tables.len())?;
                    finite(name, targets)?;
                }
                ReadAs::Probe { .. } => {}
            }
        }
        if let Some(&grade) = self.grades.first()
            && self.grades.iter().all(|&other| other == grade)
        {
            return Err(TrialError::OneGrade { rows, grade }.into());
        }
        let mut groups = self.groups.clone();
        groups.sort_unstable();
        groups.dedup();
        if groups.len() < 2 * self.folds {
            return Err(TrialError::FewGroups { groups: groups.len(), expected: 2 * self.folds }.into());
        }
        Ok(())
    }

    /// Each fold with the rows that it is judged by and those that are learnt from, of which so many are drawn.
    pub(super) fn splits(&self, labels: Option<usize>) -> Result<Vec<Split>, Error> {
        let mut splits = GroupKFold { n_splits: self.folds, shuffle: None }.split(&self.groups)?;
        for (fold, split) in splits.iter_mut().enumerate() {
            if let Some(labels) = labels {
                let drawn = draw_alike(split.train.len(), labels, self.seed.wrapping_add(fold as u64));
                split.train = drawn.iter().map(|drawn| split.train[drawn.item]).collect();
            }
        }
        Ok(splits)
    }

    /// The rows of each question that has answers of different grades, in the order of the questions' first rows.
    pub(super) fn answers(&self) -> Vec<Vec<usize>> {
        let mut first = HashMap::new();
        let mut answers: Vec<Vec<usize>> = vec![Vec::new(); self.questions.len()];
        for (row, question) in self.questions.iter().enumerate() {
            answers[*first.entry(question).or_insert(row)].push(row);
        }
        answers.retain(|rows| rows.iter().any(|&row| self.grades[row] != self.grades[rows[0]]));
        answers
    }

    pub(super) fn of(&self, rows: &[usize]) -> Vec<f64> {
        rows.iter().map(|&row| self.grades[row]).collect()
    }

    /// The folds in which a probe chooses, among the rows that it learns from.
    pub(super) fn inner(&self, rows: &[usize]) -> Result<Vec<Split>, Error> {
        let groups: Vec<usize> = rows.iter().map(|&row| self.groups[row]).collect();
        GroupKFold { n_splits: INNER_FOLDS, shuffle: None }.split(&groups)
    }
}
