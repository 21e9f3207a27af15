use crate::cholesky::{self, dot};
use crate::linear_functions::linear_functions;
use crate::matrix::check_overflow;
use crate::{Error, Estimator, FittedEstimator, Matrix, Predictions};

/// Least squares with an L2 penalty on the coefficients: minimises ‖y − X w − intercept‖² + alpha ‖w‖², as
/// `sklearn.linear_model.Ridge` does. The intercept is not penalised.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ridge {
    /// Strength of the penalty, at least 0; 0 is ordinary least squares.
    pub alpha: f64,
    /// Whether to fit an intercept; without one it is 0.
    pub fit_intercept: bool,
}

impl Default for Ridge {
    /// alpha 1, with an intercept.
    fn default() -> Self {
        Self { alpha: 1.0, fit_intercept: true }
    }
}

/// The linear function that a [`Ridge`] found.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedRidge {
    /// `[1, n_features]`.
    coefficients: Matrix,
    intercept: f64,
}

impl Estimator for Ridge {
    type Label = f64;
    type Fitted = FittedRidge;

    /// Fits features `[n_rows, n_features]` to one target per row, in closed form.
    ///
    /// The normal equations of the centred data are solved by Cholesky's method, in O(m²(n_rows + n_features)) for the smaller m
    /// of the two sides: with fewer rows than features the dual system (X Xᵀ + alpha I) v = y has the same solution w = Xᵀ v.
    /// The features should have similar scales (see [`StandardScaler`](crate::StandardScaler)): the penalty treats all alike.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidAlpha`], [`Error::LabelCount`], [`Error::NonFiniteTarget`]; [`Error::Singular`] where alpha is 0, or too
    /// small to matter, and features are combinations of others (always so with more features than rows);
    /// [`Error::Overflow`].
    fn fit(&self, features: &Matrix, targets: &[f64]) -> Result<FittedRidge, Error> {
        let (n_rows, n_features) = (features.n_rows(), features.n_features());
        if !(self.alpha.is_finite() && self.alpha >= 0.0) {
            return Err(Error::InvalidAlpha { alpha: self.alpha });
        }
        if targets.len() != n_rows {
            return Err(Error::LabelCount { n_rows, n_labels: targets.len() });
        }
        if let Some(row) = targets.iter().position(|target| !target.is_finite()) {
            return Err(Error::NonFiniteTarget { row, value: targets[row] });
        }

        let (feature_means, target_mean) = if self.fit_intercept {
            // Divided before they are summed, so that the sum stays in range.
            (features.means(), targets.iter().map(|target| target / n_rows as f64).sum())
        } else {
            (vec![0.0; n_features], 0.0)
        };
        check_overflow(&feature_means)?;
        let rows: Vec<Vec<f64>> = features.rows().map(|row| subtract(row, &feature_means)).collect();
        let columns = transposed(&rows);
        check_overflow(&columns.iter().map(|column| dot(column, column)).collect::<Vec<_>>())?;
        let y: Vec<f64> = targets.iter().map(|target| target - target_mean).collect();

        // Without a penalty only the primal system shows that too many features leave the coefficients undefined.
        let coefficients = if n_rows < n_features && self.alpha > 0.0 {
            let dual = self.solve(gram(&rows), y, n_features)?;
            columns.iter().map(|column| dot(column, &dual)).collect()
        } else {
            self.solve(gram(&columns), columns.iter().map(|column| dot(column, &y)).collect(), n_rows)?
        };
        check_overflow(&coefficients)?;
        let mut intercept = target_mean;
        for (feature, (coefficient, mean)) in coefficients.iter().zip(&feature_means).enumerate() {
            intercept -= coefficient * mean;
            if !intercept.is_finite() {
                return Err(Error::Overflow { feature });
            }
        }
        Ok(FittedRidge { coefficients: Matrix::new(coefficients, n_features)?, intercept })
    }
}

impl Ridge {
    /// (A + alpha I)⁻¹ b for an A of inner products of `length` terms.
    fn solve(&self, mut a: Vec<f64>, mut b: Vec<f64>, length: usize) -> Result<Vec<f64>, Error> {
        let order = b.len();
        a.iter_mut().step_by(order + 1).for_each(|diagonal| *diagonal += self.alpha);
        // The bound on the rounding of an inner product, in which a pivot without substance drowns.
        let rounding = order.max(length) as f64 * f64::EPSILON;
        cholesky::solve(a, &mut b, rounding)
            .map_err(|error| Error::Singular { order, pivot: error.pivot, alpha: self.alpha })
            .map(|()| b)
    }
}

impl FittedRidge {
    /// The weight of each feature, `[n_features]`.
    pub fn coefficients(&self) -> &[f64] {
        self.coefficients.values()
    }

    /// The value at the origin.
    pub fn intercept(&self) -> f64 {
        self.intercept
    }
}

impl FittedEstimator for FittedRidge {
    type Label = f64;

    fn n_features(&self) -> usize {
        self.coefficients.n_features()
    }

    fn predict(&self, features: &Matrix) -> Result<Vec<f64>, Error> {
        Ok(linear_functions(features, &self.coefficients, &[self.intercept])?.values().to_vec())
    }

    fn predictions(&self, features: &Matrix) -> Result<Predictions<f64>, Error> {
        Ok(self.predict(features)?.into())
    }
}

fn subtract(row: &[f64], means: &[f64]) -> Vec<f64> {
    row.iter().zip(means).map(|(value, mean)| value - mean).collect()
}

/// At least one row, all of the same length.
fn transposed(rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
    (0..rows[0].len()).map(|feature| rows.iter().map(|row| row[feature]).collect()).collect()
}

/// Inner products of every two vectors, `[n, n]`; the lower triangle alone is filled.
fn gram(vectors: &[Vec<f64>]) -> Vec<f64> {
    let mut gram = vec![0.0; vectors.len() * vectors.len()];
    for (i, row) in gram.chunks_exact_mut(vectors.len()).enumerate() {
        row.iter_mut().zip(&vectors[..=i]).for_each(|(product, other)| *product = dot(&vectors[i], other));
    }
    gram
}
