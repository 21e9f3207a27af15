//! Features of which few are not 0, such as the words of a text: their shape and where the others stand. What is learnt from them is
//! `logistic_regression`'s business.

use crate::Error;

/// Features of several texts, `[n_rows, n_features]`, of which only those above 0 are kept: memory is 12 bytes for each of these,
/// whatever the number of features. At least one row and one feature, every value finite.
///
/// [`FittedTfidfVectorizer::transform`](crate::FittedTfidfVectorizer::transform) makes it, and
/// [`LogisticRegression::fit_sparse`](crate::LogisticRegression::fit_sparse) learns from it.
#[derive(Debug, Clone, PartialEq)]
pub struct SparseMatrix {
    /// Where each row ends in `features` and `values`.
    ends: Vec<usize>,
    /// Ascending within a row, each below `n_features`.
    features: Vec<u32>,
    /// One for each of `features`.
    values: Vec<f64>,
    n_features: usize,
}

impl SparseMatrix {
    /// Rows of pairs of feature and value. Features ascend within a row and are below `n_features`; a row has length 1 or is 0.
    ///
    /// [`Error::Empty`] for no rows or no features.
    pub(crate) fn of_unit_rows(
        rows: impl IntoIterator<Item = Vec<(u32, f64)>>,
        n_features: usize,
    ) -> Result<Self, Error> {
        let (mut ends, mut features, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            for (feature, value) in row {
                features.push(feature);
                values.push(value);
            }
            ends.push(values.len());
        }
        if ends.is_empty() || n_features == 0 {
            return Err(Error::Empty { n_rows: ends.len(), n_features });
        }
        Ok(Self { ends, features, values, n_features })
    }

    /// Number of rows, at least 1.
    pub fn n_rows(&self) -> usize {
        self.ends.len()
    }

    /// Number of features that each row has, most of them 0; at least 1.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// The features of each row that are not 0, ascending, and their values.
    ///
    /// ```
    /// use judge_probe::TfidfVectorizer;
    ///
    /// let weights = TfidfVectorizer::default().fit(&["one two", "two two"])?.transform(&["two", "three"])?;
    /// let rows: Vec<Vec<(usize, f64)>> = weights.rows().map(Iterator::collect).collect();
    /// assert_eq!(rows, [vec![(1, 1.0)], vec![]]);
    /// # Ok::<(), judge_probe::Error>(())
    /// ```
    pub fn rows(&self) -> impl ExactSizeIterator<Item = impl Iterator<Item = (usize, f64)> + '_> {
        (0..self.n_rows()).map(|row| {
            let start = if row == 0 { 0 } else { self.ends[row - 1] };
            let range = start..self.ends[row];
            let features = self.features[range.clone()].iter();
            features.zip(&self.values[range]).map(|(&feature, &value)| (feature as usize, value))
        })
    }
}
