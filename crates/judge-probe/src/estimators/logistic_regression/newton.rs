//! Newton's method on the penalised loss, each step by conjugate gradients. Their preconditioner is the Hessian with each row's curvature
//! taken as equal in all directions: of two classes the Hessian itself, so that one iteration solves; of more, the same matrix for every
//! class, which keeps coefficients summing to 0 over classes, as they do at the optimum. Of sparse rows it is the diagonal of that matrix
//! alone, since the matrix has as many entries as there are pairs of words.
//!
//! Which steps are taken, and when they end, is decided here; what a row loses is `loss`'s. Sizes: `n_coordinates` is
//! what `RowSpace` left of the features, at most the number of rows, plus one for the intercept; `n_columns` is 1 for two
//! classes and else the number of classes.
//!
//! A step forms and factors the preconditioner, O(n_coordinates² n_rows) and O(n_coordinates³), unless the last one still
//! serves; each iteration of conjugate gradients is O(n_coordinates n_rows n_columns). The full Hessian of several
//! classes, of order n_coordinates n_columns, is never formed.
//!
//! The step is inexact far from the minimum and closer to exact near it, where each divides the distance by a million or
//! more (Nocedal and Wright, *Numerical Optimization*, section 7.1).

use faer::traits::RealField;
use faer::{Mat, Scale};

use super::loss::{Expansion, Loss};
use super::points::Points;
use crate::Error;
use crate::matrices::products::{Cholesky, dot};
use crate::matrices::row_space;

/// (weighted mean loss) + lambda/2 ‖coefficients‖².
pub(super) struct Objective<'a> {
    /// `[n_coordinates, n_rows]`.
    /// The intercept's coordinate, 1 in every row and not penalised, comes last where there is one.
    pub(super) points: Points<'a>,
    /// 1 / (c S): the penalty's strength next to a mean instead of a sum.
    pub(super) lambda: f64,
    /// As many rows as `points` has columns.
    pub(super) loss: Loss<'a>,
}

/// More than these iterations of conjugate gradients and a new factorisation of the preconditioner pays.
/// It decides on time alone: with any preconditioner the step is the same but for its tolerance.
const ITERATIONS_WORTH_A_FACTORISATION: usize = 12;
/// After more than these iterations the next preconditioner is made in double precision. It decides on time alone too: a few dozen
/// are what several classes take with any.
const ITERATIONS_OF_A_ROUGH_ONE: usize = 48;
/// Conjugate gradients end by themselves; rounding may keep them from it. A step that is cut short is still one downhill.
const MOST_ITERATIONS: usize = 2_000;

/// The symmetric matrix S (S⁻¹ M S⁻¹ + rounding) S for the diagonal S² of M, factored; or S² alone.
pub(super) struct Preconditioner {
    /// The diagonal of S, `[n_coordinates]`, all above 0: roots of the diagonal of M.
    scale: Vec<f64>,
    /// Of the matrix scaled to a diagonal of 1, which is lifted a little so that it is positive definite in spite of
    /// rounding. `None` where the diagonal is all there is.
    factor: Option<Cholesky<f32>>,
    /// Whether M was formed and factored in double precision and the factor rounded, or all was done in single precision, in half
    /// the time.
    precise: bool,
    /// What the last solution with it took, 0 before the first.
    iterations: usize,
}

impl Objective<'_> {
    /// Improves `coefficients`, `[n_coordinates, n_columns]`, until the objective is within about `tol` of its minimum, by the estimate
    /// before the last step. The preconditioner may come from a neighbouring objective.
    ///
    /// [`Error::NotConverged`].
    ///
    /// The estimate is −gradient · step / 2, what a quadratic function would fall by in a full step. It is checked after
    /// the step is taken: near the minimum the step that shows the gap to be small is the one that closes it.
    ///
    /// On an error `coefficients` are where the last step ended, and `preconditioner` may be empty.
    pub(super) fn minimise(
        &self,
        coefficients: &mut Mat<f64>,
        preconditioner: &mut Option<Preconditioner>,
        max_iter: usize,
        tol: f64,
    ) -> Result<(), Error> {
        let mut logits = self.points.functions(coefficients.as_ref());
        let mut gap = f64::INFINITY;
        for n_iter in 1..=max_iter {
            let not_converged = |gap| Error::NotConverged { n_iter, max_iter, gap, tol };
            let expansion = self.loss.expand(&logits);
            let mut gradient = self.points.weighted_sum(&expansion.gradient);
            self.add_penalised(&mut gradient, coefficients, self.lambda);

            let preconditioner = match preconditioner.take() {
                Some(usable) if usable.iterations <= ITERATIONS_WORTH_A_FACTORISATION => preconditioner.insert(usable),
                last => {
                    let too_rough = |last: Preconditioner| last.iterations > ITERATIONS_OF_A_ROUGH_ONE;
                    let precise = last.is_some_and(|last| last.precise || too_rough(last));
                    let made = self.precondition(&expansion, precise).ok_or_else(|| not_converged(gap))?;
                    preconditioner.insert(made)
                }
            };
            let step = self.newton_step(&expansion, &gradient, preconditioner);
            let slope = inner(&gradient, &step);
            gap = -slope / 2.0;
            let (length, moved) = self.search(coefficients, &logits, &step, slope).ok_or_else(|| not_converged(gap))?;
            *coefficients += Scale(length) * &step;
            if gap <= tol {
                return Ok(());
            }
            logits = moved;
        }
        Err(Error::NotConverged { n_iter: max_iter, max_iter, gap, tol })
    }

    /// Adds `factor` times the penalised coordinates: the penalty's gradient, or its curvature times a direction.
    ///
    /// The intercept's coordinate is left alone.
    fn add_penalised(&self, to: &mut Mat<f64>, coefficients: &Mat<f64>, factor: f64) {
        for column in 0..to.ncols() {
            let penalised = &coefficients.col_as_slice(column)[..self.points.n_penalised()];
            to.col_as_slice_mut(column).iter_mut().zip(penalised).for_each(|(to, value)| *to += factor * value);
        }
    }

    /// The inner product over the penalised coordinates alone.
    fn penalised_product(&self, x: &Mat<f64>, y: &Mat<f64>) -> f64 {
        let n = self.points.n_penalised();
        (0..x.ncols()).map(|column| dot(&x.col_as_slice(column)[..n], &y.col_as_slice(column)[..n])).sum()
    }

    /// The Hessian with each row's curvature the same in all directions, P diag(curvature) Pᵀ + lambda, scaled to a diagonal of 1 and
    /// factored. The scaling takes the spread of the features' scales out of the factorisation, whose error it would square. `None` where
    /// rounding has left nothing positive definite.
    ///
    /// How rough it is decides on the number of iterations and not on where they lead, so it is made in single precision unless
    /// that is known to be too rough, or turns out to be.
    fn precondition(&self, expansion: &Expansion, precise: bool) -> Option<Preconditioner> {
        let mut squares = self.points.gram_diagonal(&expansion.curvature);
        squares.iter_mut().take(self.points.n_penalised()).for_each(|square| *square += self.lambda);
        // Without curvature a coordinate that no penalty bounds has a square of 0; any scale will do.
        let scale: Vec<f64> = squares.iter().map(|square| if *square > 0.0 { square.sqrt() } else { 1.0 }).collect();
        let Points::Dense(points) = &self.points else {
            return Some(Preconditioner { scale, factor: None, precise: true, iterations: 0 });
        };
        let n = (points.shape().0 + points.shape().1) as f64;
        // What rounding takes away as a rule; where it takes more, the factorisation may not exist.
        let rough = || self.factor(points, expansion, &scale, 16.0 * n.sqrt(), |value| value as f32);
        let (factor, precise) = match (!precise).then(rough).flatten() {
            Some(factor) => (factor, false),
            // More than rounding can take away, so that the factorisation exists.
            None => (self.factor(points, expansion, &scale, 4.0 * n, |value| value)?.rounded(), true),
        };
        Some(Preconditioner { scale, factor: Some(factor), precise, iterations: 0 })
    }

    /// The scaled matrix in the precision that `round` gives, factored. Its diagonal is lifted by so many times that precision's epsilon.
    fn factor<T: RealField + Copy + Into<f64>>(
        &self,
        points: &row_space::Points<'_>,
        expansion: &Expansion,
        scale: &[f64],
        lift: f64,
        round: impl Fn(f64) -> T,
    ) -> Option<Cholesky<T>> {
        // Only the lower triangle counts; `Cholesky` reads no other.
        let mut matrix = points.lower_gram(&expansion.curvature, scale, &round);
        let lift = lift * T::epsilon_impl().into();
        for (i, scale) in scale.iter().enumerate() {
            let penalty = if i < points.n_penalised() { self.lambda / (scale * scale) } else { 0.0 };
            matrix[(i, i)] += round(penalty + lift);
        }
        Cholesky::new(matrix, 0.0).ok()
    }

    /// −H⁻¹ gradient, the more exactly the smaller it is.
    ///
    /// Preconditioned conjugate gradients from 0 on H step = −gradient (Nocedal and Wright, *Numerical Optimization*,
    /// section 5.1). They end once rᵀ M⁻¹ r has fallen to its first value squared, or to between 1e-6 and 1e-2 of it.
    /// Whatever iteration they end at, the step is a direction of descent. The preconditioner keeps how many were needed.
    fn newton_step(&self, expansion: &Expansion, gradient: &Mat<f64>, preconditioner: &mut Preconditioner) -> Mat<f64> {
        let mut step = Mat::zeros(gradient.nrows(), gradient.ncols());
        let mut residual = -gradient;
        let mut image = preconditioner.apply(&residual);
        let mut product = inner(&residual, &image);
        let enough = product * product.clamp(1e-6, 1e-2);
        let mut direction = image.clone();
        preconditioner.iterations = 0;
        for iteration in 1..=MOST_ITERATIONS {
            if product <= enough {
                break;
            }
            let mut in_logits = self.points.functions(direction.as_ref());
            self.loss.curve(expansion, &mut in_logits);
            let mut curved = self.points.weighted_sum(&in_logits);
            self.add_penalised(&mut curved, &direction, self.lambda);
            // By the definition of the method dᵀ H d > 0 unless d is 0 or lies in the null space.
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
            preconditioner.iterations = iteration;
        }
        step
    }

    /// The first of 1, 1/2, 1/4 … along the step that lowers the objective as its slope has it, but for rounding, and the logits there.
    ///
    /// Sufficient decrease with constant 1e-4 (Nocedal and Wright, *Numerical Optimization*, section 3.1), plus an
    /// allowance for the rounding of the loss: close to the minimum its true change is less than its last digit. The
    /// logits of the step are computed once, so that a trial costs O(n_rows n_columns). The penalty's change is taken as
    /// a difference in closed form and not as that of two large numbers.
    ///
    /// `None` where not even 1e-12 of the step lowers the objective, or where it is NaN.
    fn search(&self, from: &Mat<f64>, logits: &Mat<f64>, step: &Mat<f64>, slope: f64) -> Option<(f64, Mat<f64>)> {
        let in_logits = self.points.functions(step.as_ref());
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
                return Some((length, moved));
            }
            length /= 2.0;
        }
        None
    }
}

impl Preconditioner {
    /// M⁻¹ residual for each column. Of several classes the mean over classes is taken away, which lies in the loss's null space.
    ///
    /// O(n_coordinates² n_columns). The same factor serves every class.
    fn apply(&self, residual: &Mat<f64>) -> Mat<f64> {
        let mut image = residual.clone();
        self.unscale(&mut image);
        if let Some(factor) = &self.factor {
            factor.solve_roughly(image.as_mut());
        }
        self.unscale(&mut image);
        if image.ncols() > 1 {
            centre(&mut image);
        }
        image
    }

    /// S⁻¹ of each column.
    ///
    /// Applied before and after the factor it undoes the scaling of M on both sides.
    fn unscale(&self, vectors: &mut Mat<f64>) {
        for column in 0..vectors.ncols() {
            vectors.col_as_slice_mut(column).iter_mut().zip(&self.scale).for_each(|(value, scale)| *value /= scale);
        }
    }
}

/// Takes from each coordinate its mean over classes, which is rounding: nothing but the penalty would ever hold it back.
/// O(n_coordinates n_columns).
fn centre(vectors: &mut Mat<f64>) {
    let n_columns = vectors.ncols();
    for i in 0..vectors.nrows() {
        let mean = (0..n_columns).map(|column| vectors[(i, column)]).sum::<f64>() / n_columns as f64;
        (0..n_columns).for_each(|column| vectors[(i, column)] -= mean);
    }
}

/// The inner product of two matrices as vectors.
/// That of equal shapes; summed column by column.
fn inner(x: &Mat<f64>, y: &Mat<f64>) -> f64 {
    (0..x.ncols()).map(|column| dot(x.col_as_slice(column), y.col_as_slice(column))).sum()
}
