//! Newton's method on the penalised loss, each step by conjugate gradients. Their preconditioner is the Hessian with each row's curvature
//! taken as equal in all directions: of two classes the Hessian itself, so that one iteration solves; of more, the same matrix for every class,
//! which keeps coefficients summing to 0 over classes, as they do at the optimum.

use faer::{Mat, MatRef, Scale};

use super::loss::{Expansion, Loss};
use crate::Error;
use crate::products::{Cholesky, dot, lower_gram, multiply};

/// (weighted mean loss) + lambda/2 ‖coefficients‖².
pub(super) struct Objective<'a> {
    /// `[n_coordinates, n_rows]`.
    pub(super) points: MatRef<'a, f64>,
    /// How many of the coordinates are penalised, the first ones.
    pub(super) n_penalised: usize,
    pub(super) lambda: f64,
    pub(super) loss: Loss<'a>,
}

/// More than these iterations of conjugate gradients and a new factorisation of the preconditioner pays.
const ITERATIONS_WORTH_A_FACTORISATION: usize = 12;
/// Conjugate gradients end by themselves; rounding may keep them from it. A step that is cut short is still one downhill.
const MOST_ITERATIONS: usize = 2_000;

/// The symmetric matrix S (S⁻¹ M S⁻¹ + rounding) S for the diagonal S² of M, factored.
pub(super) struct Preconditioner {
    scale: Vec<f64>,
    factor: Cholesky,
    /// The last solution with it took long.
    stale: bool,
}

impl Objective<'_> {
    /// Improves `coefficients`, `[n_coordinates, n_columns]`, until the objective is within about `tol` of its minimum, by the estimate before
    /// the last step; gives the steps taken. The preconditioner may come from a neighbouring objective.
    ///
    /// [`Error::NotConverged`].
    pub(super) fn minimise(
        &self,
        coefficients: &mut Mat<f64>,
        preconditioner: &mut Option<Preconditioner>,
        max_iter: usize,
        tol: f64,
    ) -> Result<usize, Error> {
        let mut logits = self.logits(coefficients);
        let mut gap = f64::INFINITY;
        for n_iter in 1..=max_iter {
            let not_converged = |gap| Error::NotConverged { n_iter, max_iter, gap, tol };
            let expansion = self.loss.expand(&logits);
            let mut gradient = self.weighted_points(&expansion.gradient);
            self.add_penalised(&mut gradient, coefficients, self.lambda);

            let usable = preconditioner.take().filter(|preconditioner| !preconditioner.stale);
            let preconditioner = match usable {
                Some(usable) => preconditioner.insert(usable),
                None => preconditioner.insert(self.precondition(&expansion).ok_or_else(|| not_converged(gap))?),
            };
            let step = self.newton_step(&expansion, &gradient, preconditioner);
            let slope = inner(&gradient, &step);
            gap = -slope / 2.0;
            let length = self.search(coefficients, &logits, &step, slope).ok_or_else(|| not_converged(gap))?;
            *coefficients += Scale(length) * &step;
            if gap <= tol {
                return Ok(n_iter);
            }
            logits = self.logits(coefficients);
        }
        Err(Error::NotConverged { n_iter: max_iter, max_iter, gap, tol })
    }

    /// `[n_columns, n_rows]`.
    fn logits(&self, coefficients: &Mat<f64>) -> Mat<f64> {
        let mut logits = Mat::zeros(coefficients.ncols(), self.points.ncols());
        multiply(logits.as_mut(), coefficients.transpose(), self.points);
        logits
    }

    /// `[n_coordinates, n_columns]`: the sum over rows of the points, times what stands for each row, `[n_columns, n_rows]`.
    fn weighted_points(&self, of_rows: &Mat<f64>) -> Mat<f64> {
        let mut sum = Mat::zeros(self.points.nrows(), of_rows.nrows());
        multiply(sum.as_mut(), self.points, of_rows.transpose());
        sum
    }

    /// Adds `factor` times the penalised coordinates: the penalty's gradient, or its curvature times a direction.
    fn add_penalised(&self, to: &mut Mat<f64>, coefficients: &Mat<f64>, factor: f64) {
        for column in 0..to.ncols() {
            for row in 0..self.n_penalised {
                to[(row, column)] += factor * coefficients[(row, column)];
            }
        }
    }

    /// The inner product over the penalised coordinates alone.
    fn penalised_product(&self, x: &Mat<f64>, y: &Mat<f64>) -> f64 {
        (0..x.ncols())
            .map(|column| dot(&x.col_as_slice(column)[..self.n_penalised], &y.col_as_slice(column)[..self.n_penalised]))
            .sum()
    }

    /// The Hessian with each row's curvature the same in all directions, P diag(curvature) Pᵀ + lambda, scaled to a diagonal of 1 and factored. The scaling takes the
    /// spread of the features' scales out of the factorisation, whose error it would square.
    /// `None` where rounding has left nothing positive definite.
    fn precondition(&self, expansion: &Expansion) -> Option<Preconditioner> {
        let (n_coordinates, n_rows) = self.points.shape();
        let weighted =
            Mat::from_fn(n_coordinates, n_rows, |i, row| self.points[(i, row)] * expansion.curvature[row].sqrt());
        let mut matrix = lower_gram(weighted.as_ref());
        for i in 0..self.n_penalised {
            matrix[(i, i)] += self.lambda;
        }
        // Without curvature a coordinate that no penalty bounds has a diagonal of 0; any scale will do.
        let scale: Vec<f64> = (0..n_coordinates)
            .map(|i| matrix[(i, i)].sqrt())
            .map(|scale| if scale > 0.0 { scale } else { 1.0 })
            .collect();
        for column in 0..n_coordinates {
            for row in column..n_coordinates {
                matrix[(row, column)] /= scale[row] * scale[column];
            }
            // More than rounding can have taken away, so that the factorisation exists.
            matrix[(column, column)] += 4.0 * (n_rows + n_coordinates) as f64 * f64::EPSILON;
        }
        Some(Preconditioner { scale, factor: Cholesky::new(matrix, 0.0).ok()?, stale: false })
    }

    /// −H⁻¹ gradient, the more exactly the smaller it is.
    fn newton_step(&self, expansion: &Expansion, gradient: &Mat<f64>, preconditioner: &mut Preconditioner) -> Mat<f64> {
        let mut step = Mat::zeros(gradient.nrows(), gradient.ncols());
        let mut residual = -gradient;
        let mut image = preconditioner.apply(&residual);
        let mut product = inner(&residual, &image);
        let enough = product * product.clamp(1e-12, 1e-2);
        let mut direction = image.clone();
        for iteration in 1..=MOST_ITERATIONS {
            if product <= enough {
                break;
            }
            let mut in_logits = self.logits(&direction);
            self.loss.curve(expansion, &mut in_logits);
            let mut curved = self.weighted_points(&in_logits);
            self.add_penalised(&mut curved, &direction, self.lambda);
            let curvature = inner(&direction, &curved);
            // Rounding may be all that is left of both.
            if curvature.is_nan() || curvature <= 0.0 {
                break;
            }
            let length = product / curvature;
            step += Scale(length) * &direction;
            residual -= Scale(length) * &curved;
            image = preconditioner.apply(&residual);
            let next = inner(&residual, &image);
            direction = &image + Scale(next / product) * &direction;
            product = next;
            preconditioner.stale = iteration > ITERATIONS_WORTH_A_FACTORISATION;
        }
        step
    }

    /// The first of 1, 1/2, 1/4 … along the step that lowers the objective as its slope has it, but for rounding.
    fn search(&self, from: &Mat<f64>, logits: &Mat<f64>, step: &Mat<f64>, slope: f64) -> Option<f64> {
        let in_logits = self.logits(step);
        let (linear, square) = (self.penalised_product(from, step), self.penalised_product(step, step));
        let start = self.loss.value(logits);
        let penalty = self.lambda / 2.0 * self.penalised_product(from, from);
        let rounding = 16.0 * f64::EPSILON * (start + penalty);
        let mut length = 1.0;
        while length > 1e-12 {
            let moved = logits + Scale(length) * &in_logits;
            let change =
                self.loss.value(&moved) - start + self.lambda * (length * linear + length * length / 2.0 * square);
            if change <= 1e-4 * length * slope + rounding {
                return Some(length);
            }
            length /= 2.0;
        }
        None
    }
}

impl Preconditioner {
    /// M⁻¹ residual for each column. Of several classes the mean over classes is taken away, which lies in the loss's null space.
    fn apply(&self, residual: &Mat<f64>) -> Mat<f64> {
        let mut image = residual.clone();
        self.unscale(&mut image);
        self.factor.solve(image.as_mut());
        self.unscale(&mut image);
        if image.ncols() > 1 {
            centre(&mut image);
        }
        image
    }

    /// S⁻¹ of each column.
    fn unscale(&self, vectors: &mut Mat<f64>) {
        for column in 0..vectors.ncols() {
            vectors.col_as_slice_mut(column).iter_mut().zip(&self.scale).for_each(|(value, scale)| *value /= scale);
        }
    }
}

/// Takes from each coordinate its mean over classes, which is rounding: nothing but the penalty would ever hold it back.
fn centre(vectors: &mut Mat<f64>) {
    let n_columns = vectors.ncols();
    for i in 0..vectors.nrows() {
        let mean = (0..n_columns).map(|column| vectors[(i, column)]).sum::<f64>() / n_columns as f64;
        (0..n_columns).for_each(|column| vectors[(i, column)] -= mean);
    }
}

/// The inner product of two matrices as vectors.
fn inner(x: &Mat<f64>, y: &Mat<f64>) -> f64 {
    (0..x.ncols()).map(|column| dot(x.col_as_slice(column), y.col_as_slice(column))).sum()
}
