//! Ridge regression in closed form. The products and the factorisation are those of `products`; a function read as classes is
//! `ridge_to_class`'s.

use faer::{Mat, MatRef};

use crate::estimators::linear_functions::linear_functions;
use crate::estimators::parameters::{check_alpha, check_rows};
use crate::matrices::matrix::check_overflow;
use crate::matrices::products::{Cholesky, check_squares, lower_gram, multiply, transposed};
use crate::{Error, Estimator, FittedEstimator, Matrix, Predictions};

/// Least squares with an L2 penalty on the coefficients: minimises ‖y − X w − intercept‖² + alpha ‖w‖², as
/// `sklearn.linear_model.Ridge` does. The intercept is not penalised.
///
/// Several alphas are best fitted by [`fit_each`](Estimator::fit_each), which [`GridSearch`](crate::GridSearch) and
/// [`LayerSelection`](crate::LayerSelection) do: they share all that does not depend on alpha.
///
/// ```
/// use judge_probe::{Estimator, FittedEstimator, Matrix, Ridge};
///
/// let features = Matrix::from_rows([[0.0], [1.0], [2.0]])?;
/// let targets = [1.0, 3.0, 5.0];
/// let plain = Ridge { alpha: 0.0, ..Ridge::default() }.fit(&features, &targets)?;
/// assert!((plain.coefficients()[0] - 2.0).abs() < 1e-12 && (plain.intercept() - 1.0).abs() < 1e-12);
/// // The feature's squares about its mean add up to 2: a penalty of 2 halves its coefficient.
/// let halved = Ridge { alpha: 2.0, ..Ridge::default() }.fit(&features, &targets)?;
/// assert!((halved.coefficients()[0] - 1.0).abs() < 1e-12);
/// assert!((halved.predict(&Matrix::from_rows([[1.0]])?)?[0] - 3.0).abs() < 1e-12);
/// # Ok::<(), judge_probe::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ridge {
    /// Strength of the penalty, at least 0; 0 is ordinary least squares.
    /// It stands next to a sum over rows and not a mean: twice the rows need twice the alpha for the same coefficients.
    pub alpha: f64,
    /// Whether to fit an intercept; without one it is 0.
    /// With one, the prediction at the mean of the training features is the mean of the targets.
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
    /// [`Error::OutOfRange`], [`Error::RowCount`], [`Error::NonFiniteTarget`]; [`Error::Singular`] where alpha is 0, or too
    /// small to matter, and features are combinations of others (always so with more features than rows);
    /// [`Error::Overflow`].
    fn fit(&self, features: &Matrix, targets: &[f64]) -> Result<FittedRidge, Error> {
        self.check(features, targets)?;
        NormalEquations::new(features, targets, self.kind(features))?.solve(self.alpha)
    }

    /// Of settings that differ in alpha alone, the data are centred and multiplied once, m²(n_rows + n_features) of the work; each alpha
    /// then costs a factorisation, m³/3. An eigendecomposition would serve all alphas at once, but takes about 9 m³ (Golub and Van Loan,
    /// *Matrix Computations*, section 8.3), as much as 27 factorisations, and searches have fewer alphas.
    fn fit_each(settings: &[Self], features: &Matrix, targets: &[f64]) -> Vec<Result<FittedRidge, Error>> {
        let mut known: Vec<(Kind, Result<NormalEquations, Error>)> = Vec::new();
        let fit = |settings: &Self| {
            settings.check(features, targets)?;
            let kind = settings.kind(features);
            let place = known.iter().position(|(other, _)| *other == kind).unwrap_or_else(|| {
                known.push((kind, NormalEquations::new(features, targets, kind)));
                known.len() - 1
            });
            known[place].1.as_ref().map_err(Clone::clone)?.solve(settings.alpha)
        };
        settings.iter().map(fit).collect()
    }
}

impl Ridge {
    /// [`Error::OutOfRange`], [`Error::RowCount`], [`Error::NonFiniteTarget`].
    fn check(&self, features: &Matrix, targets: &[f64]) -> Result<(), Error> {
        check_alpha(self.alpha)?;
        check_rows(features.n_rows(), "labels", targets.len())?;
        match targets.iter().position(|target| !target.is_finite()) {
            Some(row) => Err(Error::NonFiniteTarget { row, value: targets[row] }),
            None => Ok(()),
        }
    }

    /// Which normal equations these settings need for features of this shape.
    fn kind(&self, features: &Matrix) -> Kind {
        // Without a penalty only the primal system shows that too many features leave the coefficients undefined.
        Kind { centred: self.fit_intercept, dual: features.n_rows() < features.n_features() && self.alpha > 0.0 }
    }
}

/// What settings must have in common to share their normal equations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kind {
    /// Whether the data are centred, which is how an intercept goes without a penalty.
    centred: bool,
    /// Whether there is an equation for each row instead of one for each feature.
    dual: bool,
}

/// A x = b without the penalty on A's diagonal: all of a fit that does not depend on alpha.
struct NormalEquations {
    kind: Kind,
    /// The features less their means.
    features: Matrix,
    /// `[n_features]`, 0 without an intercept.
    means: Vec<f64>,
    /// 0 without an intercept.
    target_mean: f64,
    /// X Xᵀ or Xᵀ X, of which the lower triangle counts.
    a: Mat<f64>,
    /// y or Xᵀ y.
    b: Mat<f64>,
}

impl NormalEquations {
    /// [`Error::Overflow`]. The targets are finite, one for each row.
    ///
    /// Holds a centred copy of the features and the table A, 8 (n_rows n_features + m²) bytes.
    fn new(features: &Matrix, targets: &[f64], kind: Kind) -> Result<Self, Error> {
        check_squares(features)?;
        let (n_rows, n_features) = (features.n_rows(), features.n_features());
        let (means, target_mean) = if kind.centred {
            // Divided before they are summed, so that the sum stays in range.
            (features.means(), targets.iter().map(|target| target / n_rows as f64).sum())
        } else {
            (vec![0.0; n_features], 0.0)
        };
        let centred = features.rows().flat_map(|row| row.iter().zip(&means).map(|(value, mean)| value - mean));
        let features = Matrix::new(centred.collect(), n_features)?;
        let y = Mat::from_fn(n_rows, 1, |row, _| targets[row] - target_mean);
        let columns = transposed(&features);
        let (a, b) = if kind.dual {
            (lower_gram(columns.transpose()), y)
        } else {
            (lower_gram(columns), product(columns, y.as_ref()))
        };
        Ok(Self { kind, features, means, target_mean, a, b })
    }

    /// With the penalty on the diagonal.
    ///
    /// Works on a copy of A, since other alphas follow. [`Error::Singular`] names the pivot, which in the primal system
    /// is the position of a feature and in the dual one that of a row.
    fn solve(&self, alpha: f64) -> Result<FittedRidge, Error> {
        let (n_rows, n_features) = (self.features.n_rows(), self.features.n_features());
        let (order, mut a, mut x) = (self.b.nrows(), self.a.clone(), self.b.clone());
        for i in 0..order {
            a[(i, i)] += alpha;
        }
        // The bound on the rounding of an inner product, in which a pivot without substance drowns.
        let rounding = n_rows.max(n_features) as f64 * f64::EPSILON;
        let factor =
            Cholesky::new(a, rounding).map_err(|error| Error::Singular { order, pivot: error.pivot, alpha })?;
        factor.solve(x.as_mut());
        let x = if self.kind.dual { product(transposed(&self.features), x.as_ref()) } else { x };
        let coefficients = x.col_as_slice(0).to_vec();
        check_overflow(&coefficients)?;
        // Summed in order, so that the feature that overflows can be named.
        let mut intercept = self.target_mean;
        for (feature, (coefficient, mean)) in coefficients.iter().zip(&self.means).enumerate() {
            intercept -= coefficient * mean;
            if !intercept.is_finite() {
                return Err(Error::Overflow { feature });
            }
        }
        Ok(FittedRidge { coefficients: Matrix::new(coefficients, n_features)?, intercept })
    }
}

/// `left` times `right` in a matrix of its own.
fn product(left: MatRef<'_, f64>, right: MatRef<'_, f64>) -> Mat<f64> {
    let mut product = Mat::zeros(left.nrows(), right.ncols());
    multiply(product.as_mut(), left, right);
    product
}

impl FittedRidge {
    /// The weight of each feature, `[n_features]`.
    pub fn coefficients(&self) -> &[f64] {
        self.coefficients.values()
    }

    /// The value at the origin.
    ///
    /// The mean of the targets less the function of the features' means.
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
