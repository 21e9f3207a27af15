//! Rows of features in single precision, as models give their states: read where they are, and widened a block at a time.

use super::Matrix;
use crate::{Error, FittedEstimator, FittedProbe, Predictions};

/// Rows that are widened at a time: at a width of 4,096 a block is 8 MiB.
const BLOCK_ROWS: usize = 256;

/// Features of several items in single precision, `[n_rows, n_features]`, row by row, borrowed: hidden states as a model or a memory map
/// has them. At least one row and one feature, every value finite.
///
/// A [`Matrix`] is in double precision, twice as large, and a scaler makes a second one of it. Where rows are only *predicted*, which
/// happens row by row, none of that need exist: [`predictions`](Self::predictions) and [`scores`](Self::scores) widen a few hundred rows at
/// a time, and [`blocks`](Self::blocks) gives these for anything else. To *learn* from rows, widen those that are learnt from, by
/// [`to_matrix`](Self::to_matrix) or [`select_rows`](Self::select_rows): every solver needs several copies of them in double precision
/// anyway, beside which one more in single precision does not count.
///
/// Every number of single precision is one of double precision, so all results are those of the matrix, to the bit.
///
/// ```
/// use judge_probe::{Estimator, F32Rows, FittedEstimator, LogisticRegression, Pipeline, StandardScaler};
///
/// # fn main() -> Result<(), judge_probe::Error> {
/// let states: Vec<f32> = vec![120.0, 0.6, 80.0, 0.3, 200.0, 0.5, 40.0, 0.1];
/// let rows = F32Rows::new(&states, 2)?;
/// let probe = Pipeline { transformer: StandardScaler::default(), estimator: LogisticRegression::default() };
/// let fitted = probe.fit(&rows.select_rows(&[0, 1, 2])?, &[1, 0, 1])?;
/// assert_eq!(rows.predictions(&fitted)?.labels, [1, 0, 1, 0]);
/// assert_eq!(rows.predictions(&fitted)?, fitted.predictions(&rows.to_matrix())?);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct F32Rows<'a> {
    values: &'a [f32],
    n_features: usize,
}

impl<'a> F32Rows<'a> {
    /// Values that stand row by row.
    ///
    /// # Errors
    ///
    /// [`Error::Empty`], [`Error::PartialRow`], [`Error::NonFiniteFeature`].
    pub fn new(values: &'a [f32], n_features: usize) -> Result<Self, Error> {
        super::check_shape(values.len(), n_features)?;
        match values.iter().position(|value| !value.is_finite()) {
            Some(index) => Err(super::not_finite(index, n_features, values[index].into())),
            None => Ok(Self { values, n_features }),
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

    /// All rows in double precision: 8 bytes a value beside the 4 that are there.
    pub fn to_matrix(&self) -> Matrix {
        Matrix { values: self.values.iter().map(|&value| value.into()).collect(), n_features: self.n_features }
    }

    /// The rows at these positions in double precision, in this order; one may come several times.
    ///
    /// # Errors
    ///
    /// [`Error::RowOutOfRange`]; [`Error::Empty`] for none.
    pub fn select_rows(&self, rows: &[usize]) -> Result<Matrix, Error> {
        let (n_rows, n_features) = (self.n_rows(), self.n_features);
        if rows.is_empty() {
            return Err(Error::Empty { n_rows: 0, n_features });
        }
        let mut values = Vec::with_capacity(rows.len() * n_features);
        for &row in rows {
            if row >= n_rows {
                return Err(Error::RowOutOfRange { row, n_rows });
            }
            values.extend(self.values[row * n_features..(row + 1) * n_features].iter().map(|&value| f64::from(value)));
        }
        Ok(Matrix { values, n_features })
    }

    /// The rows in double precision, in order, at most `n_rows` of them at a time, and at least 1.
    pub fn blocks(&self, n_rows: usize) -> impl Iterator<Item = Matrix> {
        let n_features = self.n_features;
        let block =
            move |values: &[f32]| Matrix { values: values.iter().map(|&value| value.into()).collect(), n_features };
        self.values.chunks(n_rows.max(1).saturating_mul(n_features)).map(block)
    }

    /// What a fitted estimator says of each row: [`FittedEstimator::predictions`] of all rows, of which no more than a block is ever in
    /// double precision.
    ///
    /// # Errors
    ///
    /// As [`FittedEstimator::predictions`].
    pub fn predictions<F: FittedEstimator>(&self, fitted: &F) -> Result<Predictions<F::Label>, Error> {
        Predictions::joined(self.by_block(|block| fitted.predictions(block))?)
    }

    /// The number of each row, likewise: [`FittedProbe::scores`].
    ///
    /// # Errors
    ///
    /// As [`FittedProbe::scores`].
    pub fn scores(&self, probe: &FittedProbe) -> Result<Option<Vec<f64>>, Error> {
        let blocks: Option<Vec<Vec<f64>>> = self.by_block(|block| probe.scores(block))?.into_iter().collect();
        Ok(blocks.map(|blocks| blocks.concat()))
    }

    /// What `work` makes of each block; a row that an error names is counted among all rows.
    fn by_block<T>(&self, work: impl Fn(&Matrix) -> Result<T, Error>) -> Result<Vec<T>, Error> {
        let of_block = |(block, features): (usize, Matrix)| {
            work(&features).map_err(|error| match error {
                Error::NonFiniteFeature { row, feature, value } => {
                    Error::NonFiniteFeature { row: block * BLOCK_ROWS + row, feature, value }
                }
                error => error,
            })
        };
        self.blocks(BLOCK_ROWS).enumerate().map(of_block).collect()
    }
}
