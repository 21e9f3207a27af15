//! Features as estimators take them: shapes and finite values are checked once, here, and by nobody after. What is made of them is the
//! estimators' business.

mod f32_rows;

pub use f32_rows::F32Rows;

use crate::Error;

/// Features of several items, `[n_rows, n_features]`, row by row: at least one of each, every value finite.
///
/// In double precision, whatever they came in. Hidden states are in single precision: [`F32Rows`] predicts from them without making a
/// matrix of them all, and [`from_f32_rows`](Self::from_f32_rows) collects rows to learn from.
///
/// Row by row, since rows are what is selected, split and predicted; a feature is a stride of `n_features` values. There are no
/// names of columns and no missing values.
///
/// ```
/// use judge_probe::Matrix;
///
/// let features = Matrix::from_rows([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])?;
/// assert_eq!((features.n_rows(), features.n_features()), (3, 2));
/// assert_eq!(features.select_rows(&[2, 0])?.values(), [5.0, 6.0, 1.0, 2.0]);
/// assert!(Matrix::new(vec![1.0, f64::NAN], 2).is_err());
/// # Ok::<(), judge_probe::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    /// Row by row; its length is a multiple of `n_features`, and not 0.
    values: Vec<f64>,
    n_features: usize,
}

impl Matrix {
    /// A matrix of values that stand row by row.
    ///
    /// # Errors
    ///
    /// [`Error::Empty`], [`Error::PartialRow`], [`Error::NonFiniteFeature`].
    pub fn new(values: Vec<f64>, n_features: usize) -> Result<Self, Error> {
        check_shape(values.len(), n_features)?;
        match values.iter().position(|value| !value.is_finite()) {
            Some(index) => Err(not_finite(index, n_features, values[index])),
            None => Ok(Self { values, n_features }),
        }
    }

    /// A matrix of rows of equal length.
    ///
    /// # Errors
    ///
    /// [`Error::Empty`], [`Error::RaggedRow`], [`Error::NonFiniteFeature`].
    pub fn from_rows<R: AsRef<[f64]>>(rows: impl IntoIterator<Item = R>) -> Result<Self, Error> {
        Self::collected(rows, |values, row: &R| {
            values.extend_from_slice(row.as_ref());
            row.as_ref().len()
        })
    }

    /// The same of rows in single precision, such as states that are read one by one: widened as they come, so that they are never all
    /// there in both precisions. Memory is asked for once where `rows` knows how many there are.
    ///
    /// # Errors
    ///
    /// As [`from_rows`](Self::from_rows).
    pub fn from_f32_rows<R: AsRef<[f32]>>(rows: impl IntoIterator<Item = R>) -> Result<Self, Error> {
        Self::collected(rows, |values, row: &R| {
            values.extend(row.as_ref().iter().map(|&value| f64::from(value)));
            row.as_ref().len()
        })
    }

    /// Rows that `append` adds to the values, one by one, and says how many numbers it added.
    ///
    /// The first row fixes the width. Memory for the others is asked for after it, once its width is known: the number of
    /// rows is the iterator's lower bound, and where it is too low the list grows as usual.
    fn collected<R>(
        rows: impl IntoIterator<Item = R>,
        append: impl Fn(&mut Vec<f64>, &R) -> usize,
    ) -> Result<Self, Error> {
        let rows = rows.into_iter();
        let (expected_rows, _) = rows.size_hint();
        let (mut values, mut n_features, mut n_rows) = (Vec::new(), None, 0);
        for (index, row) in rows.enumerate() {
            let found = append(&mut values, &row);
            let expected = *n_features.get_or_insert(found);
            if found != expected {
                return Err(Error::RaggedRow { row: index, expected, found });
            }
            if index == 0 {
                values.reserve_exact(expected_rows.saturating_sub(1).saturating_mul(found));
            }
            n_rows += 1;
        }
        match n_features {
            Some(n_features) if n_features > 0 => Self::new(values, n_features),
            _ => Err(Error::Empty { n_rows, n_features: 0 }),
        }
    }

    /// Number of rows, at least 1.
    pub fn n_rows(&self) -> usize {
        self.values.len() / self.n_features
    }

    /// Number of features of each row, at least 1.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// The rows in order, each a slice of `n_features` values.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f64]> {
        self.values.chunks_exact(self.n_features)
    }

    /// All values, row by row.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The rows at these positions, in this order; one may come several times.
    ///
    /// # Errors
    ///
    /// [`Error::RowOutOfRange`]; [`Error::Empty`] for none.
    pub fn select_rows(&self, rows: &[usize]) -> Result<Self, Error> {
        let n_rows = self.n_rows();
        if rows.is_empty() {
            return Err(Error::Empty { n_rows: 0, n_features: self.n_features });
        }
        let mut values = Vec::with_capacity(rows.len() * self.n_features);
        for &row in rows {
            values.extend_from_slice(self.rows().nth(row).ok_or(Error::RowOutOfRange { row, n_rows })?);
        }
        Ok(Self { values, n_features: self.n_features })
    }

    /// The features of several matrices side by side, `numpy.hstack`.
    ///
    /// # Errors
    ///
    /// [`Error::Beside`] for matrices with different numbers of rows; [`Error::Empty`] for none.
    pub fn beside(matrices: &[Self]) -> Result<Self, Error> {
        let Some(first) = matrices.first() else { return Err(Error::Empty { n_rows: 0, n_features: 0 }) };
        let n_rows = first.n_rows();
        if let Some(other) = matrices.iter().find(|other| other.n_rows() != n_rows) {
            return Err(Error::Beside { n_rows, other: other.n_rows() });
        }
        let n_features = matrices.iter().map(Self::n_features).sum();
        let mut values = Vec::with_capacity(n_rows * n_features);
        let mut rows: Vec<_> = matrices.iter().map(Self::rows).collect();
        for _ in 0..n_rows {
            rows.iter_mut().filter_map(Iterator::next).for_each(|row| values.extend_from_slice(row));
        }
        Ok(Self { values, n_features })
    }

    /// The mean of every feature; an overflowing one is infinite or NaN.
    /// One pass, row after row; `[n_features]`.
    pub(crate) fn means(&self) -> Vec<f64> {
        let mut means = vec![0.0; self.n_features];
        for row in self.rows() {
            means.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
        means.iter_mut().for_each(|sum| *sum /= self.n_rows() as f64);
        means
    }

    /// [`Error::FeatureCount`] for another number of features than `expected`.
    pub(crate) fn check_features(&self, expected: usize) -> Result<(), Error> {
        if self.n_features == expected { Ok(()) } else { Err(Error::FeatureCount { expected, found: self.n_features }) }
    }
}

/// Refuses what does not make one whole row or more.
fn check_shape(n_values: usize, n_features: usize) -> Result<(), Error> {
    if n_values == 0 || n_features == 0 {
        let n_rows = n_values.checked_div(n_features).unwrap_or(0);
        return Err(Error::Empty { n_rows, n_features });
    }
    if n_values.is_multiple_of(n_features) { Ok(()) } else { Err(Error::PartialRow { n_values, n_features }) }
}

/// The error of a value by its place among all.
/// `index` counts values row by row.
fn not_finite(index: usize, n_features: usize, value: f64) -> Error {
    Error::NonFiniteFeature { row: index / n_features, feature: index % n_features, value }
}

/// Refuses a vector with one number per feature that has left the range of double precision.
/// Sums of finite values may overflow; the first feature with such a number is named.
pub(crate) fn check_overflow(per_feature: &[f64]) -> Result<(), Error> {
    match per_feature.iter().position(|number| !number.is_finite()) {
        Some(feature) => Err(Error::Overflow { feature }),
        None => Ok(()),
    }
}
