//! The penalised Brier score of a sigmoid or a softmax of linear functions, and its minimum by Newton's method, each step by conjugate
//! gradients (Nocedal and Wright, *Numerical Optimization*, section 7.1).
//!
//! With J = diag(p) − p pᵀ, the derivatives of a row's softmax, and e = p − y its |e|² has the gradient 2 J e, and its Hessian times d is 2
//! (J v + v ∘ e − v (p·e) − p (v·e)) for v = J d. Of two classes there is one function z with p = σ(z) and q = 1 − p, and e² has the
//! derivatives 2 e p q and 2 p q (p q + e (q − p)). Either is negative somewhere for a row that is far on the wrong side, so the objective
//! is not convex: conjugate gradients end where they meet a direction of negative curvature, and the step is what they have by then, or the
//! steepest descent.

use faer::Mat;

use crate::estimators::class_weight::Shares;
use crate::estimators::descent::{Penalty, conjugate_gradients, inner, minimise};
use crate::estimators::labels::EncodedLabels;
use crate::estimators::sigmoid::{sigmoid, softmax};
use crate::matrices::row_space::Points;
use crate::{ClassWeight, Error};

/// (weighted mean Brier score) + lambda/2 ‖coefficients‖².
pub(super) struct Objective<'a> {
    /// `[n_coordinates, n_rows]`, the intercept's ones last.
    points: Points<'a>,
    /// `[n_rows]`, positions of classes.
    class_of_row: &'a [usize],
    shares: Shares,
    penalty: Penalty,
}

/// The loss near some functions of the rows.
struct Expansion {
    value: f64,
    /// Of the second class, or of each, `[n_columns, n_rows]`.
    probabilities: Mat<f64>,
    /// Derivatives by the functions, `[n_columns, n_rows]`.
    gradient: Mat<f64>,
}

impl<'a> Objective<'a> {
    /// Every class has rows.
    pub(super) fn new(points: Points<'a>, labels: &'a EncodedLabels, class_weight: ClassWeight, c: f64) -> Self {
        let shares = class_weight.shares(&labels.counts);
        let penalty = Penalty { lambda: 1.0 / (c * shares.sum), n: points.n_penalised() };
        Self { points, class_of_row: &labels.class_of_row, shares, penalty }
    }

    /// The minimum, `[n_coordinates, n_columns]`, to within about `tol` by the estimate before the last step.
    pub(super) fn minimise(&self, max_iter: usize, tol: f64) -> Result<Mat<f64>, Error> {
        let mut at = self.start();
        let mut functions = self.points.functions(at.as_ref());
        minimise(max_iter, tol, |gap| {
            let here = self.expand(&functions);
            let mut gradient = self.points.weighted_sum(here.gradient.as_ref());
            self.penalty.add(&mut gradient, &at);
            let step = self.step(&here, &gradient);
            let slope = inner(&gradient, &step);
            *gap = -slope / 2.0;
            let of_step = self.points.functions(step.as_ref());
            let loss = |functions: &Mat<f64>| self.expand(functions).value;
            functions = self.penalty.search(loss, here.value, &mut at, &functions, (&step, &of_step), slope)?;
            Some(())
        })?;
        Ok(at)
    }

    /// What fits best without features: probabilities that are the shares of the classes.
    fn start(&self) -> Mat<f64> {
        let shares = &self.shares.of_class;
        let intercept = |column: usize| match shares[..] {
            [first, second] => f64::ln(second / first),
            _ => shares[column].ln() - shares.iter().map(|share| share.ln()).sum::<f64>() / shares.len() as f64,
        };
        let (n, n_columns) = (self.penalty.n, if shares.len() == 2 { 1 } else { shares.len() });
        Mat::from_fn(self.points.shape().0, n_columns, |i, column| if i == n { intercept(column) } else { 0.0 })
    }

    fn expand(&self, functions: &Mat<f64>) -> Expansion {
        let (mut value, mut probabilities) = (0.0, functions.clone());
        let mut gradient = functions.clone();
        for (row, &class) in self.class_of_row.iter().enumerate() {
            let weight = self.shares.of_row[class];
            let gradient = gradient.col_as_slice_mut(row);
            match probabilities.col_as_slice_mut(row) {
                [p] => {
                    // 1 − p, with all its digits.
                    let q = sigmoid(-*p);
                    *p = sigmoid(*p);
                    let error = if class == 1 { -q } else { *p };
                    value += weight * error * error;
                    gradient[0] = 2.0 * weight * error * *p * q;
                }
                p => {
                    softmax(p);
                    let error = |column: usize, p: f64| if column == class { p - 1.0 } else { p };
                    let along: f64 = p.iter().enumerate().map(|(column, &p)| p * error(column, p)).sum();
                    for (column, (gradient, &p)) in gradient.iter_mut().zip(&*p).enumerate() {
                        value += weight * error(column, p).powi(2);
                        *gradient = 2.0 * weight * p * (error(column, p) - along);
                    }
                }
            }
        }
        Expansion { value, probabilities, gradient }
    }

    /// The Hessian times a direction.
    fn curve(&self, here: &Expansion, direction: &Mat<f64>) -> Mat<f64> {
        let mut of_rows = self.points.functions(direction.as_ref());
        for (row, &class) in self.class_of_row.iter().enumerate() {
            let weight = 2.0 * self.shares.of_row[class];
            let p = here.probabilities.col_as_slice(row);
            match of_rows.col_as_slice_mut(row) {
                [d] => {
                    let (p, q) = (p[0], 1.0 - p[0]);
                    let error = if class == 1 { -q } else { p };
                    *d *= weight * p * q * (p * q + error * (q - p));
                }
                d => {
                    let along = |of: &[f64]| p.iter().zip(of).map(|(p, of)| p * of).sum::<f64>();
                    let mean = along(d);
                    let v: Vec<f64> = p.iter().zip(&*d).map(|(p, d)| p * (d - mean)).collect();
                    let errors: Vec<f64> =
                        p.iter().enumerate().map(|(column, &p)| if column == class { p - 1.0 } else { p }).collect();
                    let (of_v, of_errors) = (along(&v), along(&errors));
                    let both: f64 = v.iter().zip(&errors).map(|(v, e)| v * e).sum();
                    for (column, d) in d.iter_mut().enumerate() {
                        let (p, v, e) = (p[column], v[column], errors[column]);
                        *d = weight * (p * (v - of_v) + v * (e - of_errors) - p * both);
                    }
                }
            }
        }
        let mut curved = self.points.weighted_sum(of_rows.as_ref());
        self.penalty.add(&mut curved, direction);
        curved
    }

    /// A direction of descent, near the minimum Newton's: conjugate gradients, preconditioned by the diagonal of a Hessian of the same
    /// size, the same for every class.
    fn step(&self, here: &Expansion, gradient: &Mat<f64>) -> Mat<f64> {
        let size = |(row, &class): (usize, &usize)| {
            let spread: f64 = here.probabilities.col_as_slice(row).iter().map(|p| (p * (1.0 - p)).powi(2)).sum();
            2.0 * self.shares.of_row[class] * spread
        };
        let mut scale = self.points.gram_diagonal(&self.class_of_row.iter().enumerate().map(size).collect::<Vec<_>>());
        scale.iter_mut().take(self.penalty.n).for_each(|scale| *scale += self.penalty.lambda);
        // Without curvature any scale will do.
        scale.iter_mut().filter(|scale| **scale <= 0.0).for_each(|scale| *scale = 1.0);
        let scaled = |of: &Mat<f64>| Mat::from_fn(of.nrows(), of.ncols(), |i, column| of[(i, column)] / scale[i]);
        let (step, iterations) = conjugate_gradients(gradient, 1e-12, scaled, |direction| self.curve(here, direction));
        // Where not even the first direction has positive curvature, it is that of the steepest descent.
        if iterations == 0 { scaled(&-gradient) } else { step }
    }
}
