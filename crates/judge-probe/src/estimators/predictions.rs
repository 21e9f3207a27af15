//! What estimators say of rows: a label each, and the probabilities of classes where they are known.
//!
//! It owns their shapes and the checks of these. How good predictions are is `scoring`'s business, and how classes are decided
//! the classifiers'.

use crate::estimators::parameters::{check_ascending, check_count, check_each};
use crate::{Error, Matrix};

/// What an estimator says of some rows, one entry per row: classes (`i64`) or numbers (`f64`), and the probabilities of classes where they
/// are known.
///
/// ```
/// use judge_probe::{Matrix, Predictions, ProbabilityTable};
///
/// let probabilities = ProbabilityTable::new(vec![1, 3], Matrix::from_rows([[0.75, 0.25], [0.5, 0.5]])?)?;
/// let predictions = Predictions { labels: vec![1, 1], probabilities: Some(probabilities) };
/// assert_eq!(predictions.expected_classes(), Some(vec![1.5, 2.0]));
/// assert_eq!(Predictions::from(vec![1, 3]).expected_classes(), None);
/// # Ok::<(), judge_probe::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Predictions<L> {
    /// The label predicted of each row.
    pub labels: Vec<L>,
    /// The probability of each class, as many rows as labels; `None` of regressors and of classifiers without probabilities.
    pub probabilities: Option<ProbabilityTable>,
}

impl<L> From<Vec<L>> for Predictions<L> {
    /// Labels alone.
    fn from(labels: Vec<L>) -> Self {
        Self { labels, probabilities: None }
    }
}

impl<L> Predictions<L> {
    /// One after another, of one estimator, at least one.
    /// The classes are those of the first part; all parts have the same, as they come from one fitted estimator. Errors are
    /// those of [`ProbabilityTable::new`].
    pub(crate) fn joined(parts: Vec<Self>) -> Result<Self, Error> {
        let (mut labels, mut classes, mut values) = (Vec::new(), None, Vec::new());
        for part in parts {
            labels.extend(part.labels);
            if let Some(ProbabilityTable { classes: of_part, probabilities }) = part.probabilities {
                values.extend_from_slice(probabilities.values());
                classes.get_or_insert(of_part);
            }
        }
        let table = |classes: Vec<i64>| {
            let n_classes = classes.len();
            ProbabilityTable::new(classes, Matrix::new(values, n_classes)?)
        };
        Ok(Self { labels, probabilities: classes.map(table).transpose()? })
    }
}

impl Predictions<i64> {
    /// The mean of the classes under their probabilities, for each row; `None` where there are none.
    pub fn expected_classes(&self) -> Option<Vec<f64>> {
        self.probabilities.as_ref().map(ProbabilityTable::expected_classes)
    }
}

/// The probability of each class for several rows: `[n_rows, n_classes]`, and the class of each column.
///
/// Columns are in the order of the classes, whose values may be any integers. A class that a split has not learnt may be a
/// column of zeros.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbabilityTable {
    /// Ascending and distinct, as many as columns.
    classes: Vec<i64>,
    probabilities: Matrix,
}

impl ProbabilityTable {
    /// A table of classes, ascending, and of a row of as many probabilities for each item. That rows sum to 1 is not checked.
    ///
    /// # Errors
    ///
    /// [`Error::ParameterCount`] for another number of columns than of classes; [`Error::ClassOrder`]; [`Error::InvalidParameter`] for
    /// what is not in [0, 1], counted row by row.
    pub fn new(classes: Vec<i64>, probabilities: Matrix) -> Result<Self, Error> {
        check_count("columns of probabilities", classes.len(), probabilities.n_features())?;
        check_ascending(&classes)?;
        check_each("probability", probabilities.values(), |p| (0.0..=1.0).contains(&p))?;
        Ok(Self { classes, probabilities })
    }

    /// The class of each column, ascending.
    pub fn classes(&self) -> &[i64] {
        &self.classes
    }

    /// `[n_rows, n_classes]`.
    pub fn probabilities(&self) -> &Matrix {
        &self.probabilities
    }

    /// The probability of one class for each row; `None` of a class that the table does not have.
    pub fn of_class(&self, class: i64) -> Option<Vec<f64>> {
        let column = self.classes.binary_search(&class).ok()?;
        Some(self.probabilities.rows().map(|row| row[column]).collect())
    }

    /// The mean of the classes under their probabilities, for each row.
    /// Σ class · p over a row: in the range of the classes where the row sums to 1. Large classes are rounded to double
    /// precision.
    pub fn expected_classes(&self) -> Vec<f64> {
        let mean = |row: &[f64]| self.classes.iter().zip(row).map(|(&class, p)| class as f64 * p).sum();
        self.probabilities.rows().map(mean).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_table_of_probabilities_is_refused() {
        let new = |classes: &[i64], row: [f64; 2]| ProbabilityTable::new(classes.to_vec(), Matrix::from_rows([row])?);
        assert!(matches!(new(&[1], [1.0, 0.0]), Err(Error::ParameterCount { expected: 1, found: 2, .. })));
        assert_eq!(new(&[2, 2], [0.5, 0.5]), Err(Error::ClassOrder { before: 2, after: 2 }));
        assert!(matches!(new(&[1, 2], [0.5, 1.5]), Err(Error::InvalidParameter { index: 1, .. })));
        let table = new(&[-1, 3], [0.25, 0.75]).unwrap();
        assert_eq!((table.of_class(3), table.of_class(2)), (Some(vec![0.75]), None));
        assert_eq!(table.expected_classes(), [2.0]);
    }
}
