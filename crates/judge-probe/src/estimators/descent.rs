//! What fits by Newton's method have in common: when they end, how far they go along a step, and conjugate gradients for steps of several
//! columns.
//!
//! What a row loses and which matrix conditions a step are the estimators' own. References are to Nocedal and Wright, *Numerical
//! Optimization*.

use faer::{Mat, Scale};

use crate::Error;
use crate::matrices::products::dot;

/// Conjugate gradients end by themselves; rounding may keep them from it. A step that is cut short is still one downhill.
const MOST_ITERATIONS: usize = 2_000;

/// Makes steps until the objective is within about `tol` of its minimum, by the estimate before the last step.
///
/// `step` says how far that is, −gradient · step / 2, what a quadratic function would fall by in a full step, and moves; `None` where
/// nothing lowers the objective. The estimate is looked at after the step is taken: near the minimum the step that shows the gap to be small
/// is the one that closes it.
///
/// [`Error::NotConverged`].
pub(crate) fn minimise(max_iter: usize, tol: f64, mut step: impl FnMut(&mut f64) -> Option<()>) -> Result<(), Error> {
    let mut gap = f64::INFINITY;
    for n_iter in 1..=max_iter {
        if step(&mut gap).is_none() {
            return Err(Error::NotConverged { n_iter, max_iter, gap, tol });
        }
        if gap <= tol {
            return Ok(());
        }
    }
    Err(Error::NotConverged { n_iter: max_iter, max_iter, gap, tol })
}

/// The first of 1, 1/2, 1/4 … along a step that changes the objective as its slope has it, but for rounding, and where that leads. `moved`
/// gives both for a length.
///
/// Sufficient decrease with constant 1e-4 (section 3.1), plus an allowance for rounding: close to the minimum the true change is less than
/// the last digit of the objective. `None` where not even 1e-12 of the step lowers it, or where it is NaN.
pub(crate) fn search<P>(slope: f64, rounding: f64, moved: impl Fn(f64) -> (f64, P)) -> Option<(f64, P)> {
    let mut length = 1.0;
    while length > 1e-12 {
        let (change, place) = moved(length);
        if change <= 1e-4 * length * slope + rounding {
            return Some((length, place));
        }
        length /= 2.0;
    }
    None
}

/// −H⁻¹ gradient by preconditioned conjugate gradients from 0 (section 5.1), the more exactly the smaller it is, and the iterations done.
///
/// They end once rᵀ M⁻¹ r has fallen to its first value squared, or to between `least` and 1e-2 of it, and where they meet a direction
/// without positive curvature. Whatever iteration they end at, the step is a direction of descent; of none it is 0.
pub(crate) fn conjugate_gradients(
    gradient: &Mat<f64>,
    least: f64,
    precondition: impl Fn(&Mat<f64>) -> Mat<f64>,
    curve: impl Fn(&Mat<f64>) -> Mat<f64>,
) -> (Mat<f64>, usize) {
    let mut step = Mat::zeros(gradient.nrows(), gradient.ncols());
    let mut residual = -gradient;
    let mut image = precondition(&residual);
    let mut product = inner(&residual, &image);
    let enough = product * product.clamp(least, 1e-2);
    let mut direction = image.clone();
    for iteration in 0..MOST_ITERATIONS {
        if product <= enough {
            return (step, iteration);
        }
        let curved = curve(&direction);
        let curvature = inner(&direction, &curved);
        // Rounding may be all that is left of both.
        if curvature.is_nan() || curvature <= 0.0 {
            return (step, iteration);
        }
        let length = product / curvature;
        step += Scale(length) * &direction;
        residual -= Scale(length) * &curved;
        image = precondition(&residual);
        let next = inner(&residual, &image);
        direction = &image + Scale(next / product) * &direction;
        product = next;
    }
    (step, MOST_ITERATIONS)
}

/// The inner product of two matrices of one shape as vectors, summed column by column.
pub(crate) fn inner(x: &Mat<f64>, y: &Mat<f64>) -> f64 {
    inner_of_first(x.nrows(), x, y)
}

/// That of their first `n` rows.
fn inner_of_first(n: usize, x: &Mat<f64>, y: &Mat<f64>) -> f64 {
    (0..x.ncols()).map(|column| dot(&x.col_as_slice(column)[..n], &y.col_as_slice(column)[..n])).sum()
}

/// lambda/2 ‖coefficients‖² over all coordinates but the intercept's, which comes last where there is one.
#[derive(Clone, Copy)]
pub(crate) struct Penalty {
    /// 1 / (c S), where S is the sum of all rows' weights before they are scaled.
    pub(crate) lambda: f64,
    /// Coordinates that are penalised.
    pub(crate) n: usize,
}

impl Penalty {
    /// Adds the penalty's gradient at some coefficients, or its curvature times a direction.
    pub(crate) fn add(self, to: &mut Mat<f64>, at: &Mat<f64>) {
        for column in 0..to.ncols() {
            let penalised = &at.col_as_slice(column)[..self.n];
            to.col_as_slice_mut(column).iter_mut().zip(penalised).for_each(|(to, value)| *to += self.lambda * value);
        }
    }

    /// Moves coefficients along a step as [`search`] has it, of a loss of linear functions of the rows, and gives the functions there.
    ///
    /// `start` is the loss before it. The functions of the step are computed once. The penalty's change is taken in closed form and not as
    /// a difference of two large numbers.
    pub(crate) fn search(
        self,
        loss: impl Fn(&Mat<f64>) -> f64,
        start: f64,
        at: &mut Mat<f64>,
        functions: &Mat<f64>,
        (step, of_step): (&Mat<f64>, &Mat<f64>),
        slope: f64,
    ) -> Option<Mat<f64>> {
        let (linear, square) = (inner_of_first(self.n, at, step), inner_of_first(self.n, step, step));
        let rounding = 16.0 * f64::EPSILON * (start + self.lambda / 2.0 * inner_of_first(self.n, at, at));
        let (length, moved) = search(slope, rounding, |length| {
            let moved = functions + Scale(length) * of_step;
            let change = loss(&moved) - start + self.lambda * (length * linear + length * length / 2.0 * square);
            (change, moved)
        })?;
        *at += Scale(length) * step;
        Some(moved)
    }
}
