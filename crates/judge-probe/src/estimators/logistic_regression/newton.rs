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

use faer::Mat;
use faer::traits::RealField;

use super::loss::{Expansion, Loss};
use super::points::Points;
use crate::Error;
use crate::estimators::descent::{Penalty, conjugate_gradients, inner, minimise};
use crate::matrices::products::Cholesky;
use crate::matrices::row_space;

/// (weighted mean loss) + lambda/2 ‖coefficients‖².
pub(super) struct Objective<'a> {
    /// `[n_coordinates, n_rows]`.
    /// The intercept's coordinate, 1 in every row and not penalised, comes last where there is one.
    pub(super) points: Points<'a>,
    /// Next to a mean instead of a sum.
    pub(super) penalty: Penalty,
    /// As many rows as `points` has columns.
    pub(super) loss: Loss<'a>,
}

/// More than these iterations of conjugate gradients and a new factorisation of the preconditioner pays.
/// It decides on time alone: with any preconditioner the step is the same but for its tolerance.
const ITERATIONS_WORTH_A_FACTORISATION: usize = 12;
/// After more than these iterations the next preconditioner is made in double precision. It decides on time alone too: a few dozen
/// are what several classes take with any.
const ITERATIONS_OF_A_ROUGH_ONE: usize = 48;

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
    /// Improves `coefficients`, `[n_coordinates, n_columns]`, until the objective is within about `tol` of its minimum. The preconditioner
    /// may come from a neighbouring objective.
    ///
    /// [`Error::NotConverged`]: `coefficients` are then where the last step ended, and `preconditioner` may be empty.
    pub(super) fn minimise(
        &self,
        coefficients: &mut Mat<f64>,
        preconditioner: &mut Option<Preconditioner>,
        max_iter: usize,
        tol: f64,
    ) -> Result<(), Error> {
        let mut logits = self.points.functions(coefficients.as_ref());
        minimise(max_iter, tol, |gap| {
            let expansion = self.loss.expand(&logits);
            let mut gradient = self.points.weighted_sum(&expansion.gradient);
            self.penalty.add(&mut gradient, coefficients);

            let preconditioner = match preconditioner.take() {
                Some(usable) if usable.iterations <= ITERATIONS_WORTH_A_FACTORISATION => preconditioner.insert(usable),
                last => {
                    let too_rough = |last: Preconditioner| last.iterations > ITERATIONS_OF_A_ROUGH_ONE;
                    let precise = last.is_some_and(|last| last.precise || too_rough(last));
                    preconditioner.insert(self.precondition(&expansion, precise)?)
                }
            };
            let step = self.newton_step(&expansion, &gradient, preconditioner);
            let slope = inner(&gradient, &step);
            *gap = -slope / 2.0;
            let of_step = self.points.functions(step.as_ref());
            let loss = |logits: &Mat<f64>| self.loss.value(logits);
            let start = loss(&logits);
            logits = self.penalty.search(loss, start, coefficients, &logits, (&step, &of_step), slope)?;
            Some(())
        })
    }

    /// The Hessian with each row's curvature the same in all directions, P diag(curvature) Pᵀ + lambda, scaled to a diagonal of 1 and
    /// factored. The scaling takes the spread of the features' scales out of the factorisation, whose error it would square. `None` where
    /// rounding has left nothing positive definite.
    ///
    /// How rough it is decides on the number of iterations and not on where they lead, so it is made in single precision unless
    /// that is known to be too rough, or turns out to be.
    fn precondition(&self, expansion: &Expansion, precise: bool) -> Option<Preconditioner> {
        let mut squares = self.points.gram_diagonal(&expansion.curvature);
        squares.iter_mut().take(self.points.n_penalised()).for_each(|square| *square += self.penalty.lambda);
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
            let penalty = if i < points.n_penalised() { self.penalty.lambda / (scale * scale) } else { 0.0 };
            matrix[(i, i)] += round(penalty + lift);
        }
        Cholesky::new(matrix, 0.0).ok()
    }

    /// −H⁻¹ gradient, the more exactly the smaller it is. The preconditioner keeps how many iterations were needed.
    fn newton_step(&self, expansion: &Expansion, gradient: &Mat<f64>, preconditioner: &mut Preconditioner) -> Mat<f64> {
        // By the definition of the method dᵀ H d > 0 unless d is 0 or lies in the null space.
        let curve = |direction: &Mat<f64>| {
            let mut in_logits = self.points.functions(direction.as_ref());
            self.loss.curve(expansion, &mut in_logits);
            let mut curved = self.points.weighted_sum(&in_logits);
            self.penalty.add(&mut curved, direction);
            curved
        };
        let (step, iterations) = conjugate_gradients(gradient, 1e-6, |residual| preconditioner.apply(residual), curve);
        preconditioner.iterations = iterations;
        step
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
