//! From labels to positions of classes, which is what the solvers count with.
//!
//! Classes may be any integers, also negative ones or far apart; solvers never see them, so no class needs a place for each
//! number between two others.

use crate::estimators::parameters::check_rows;
use crate::selection::split::Distinct;
use crate::{Error, Matrix};

/// Labels by the position of their class.
/// As `numpy.unique` with `return_inverse` and `return_counts`. O(n log n).
pub(crate) struct EncodedLabels {
    /// The classes, ascending, two or more.
    pub(crate) classes: Vec<i64>,
    /// The position in `classes` of each row's class.
    /// `[n_rows]`, each below the number of classes.
    pub(crate) class_of_row: Vec<usize>,
    /// The rows of each class, at least one.
    pub(crate) counts: Vec<usize>,
}

impl EncodedLabels {
    /// [`Error::RowCount`], [`Error::OneClass`].
    /// Of the features only the number of rows is looked at.
    pub(crate) fn new(features: &Matrix, labels: &[i64]) -> Result<Self, Error> {
        Self::of_rows(features.n_rows(), labels)
    }

    /// The same of so many rows, whatever holds them.
    pub(crate) fn of_rows(n_rows: usize, labels: &[i64]) -> Result<Self, Error> {
        check_rows(n_rows, "labels", labels.len())?;
        let Distinct { values, place_of_row: class_of_row, counts } = Distinct::new(labels);
        if let [&class] = values[..] {
            return Err(Error::OneClass { class });
        }
        Ok(Self { classes: values.into_iter().copied().collect(), class_of_row, counts })
    }
}
