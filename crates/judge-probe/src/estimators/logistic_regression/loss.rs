//! The logistic loss over logits `[n_columns, n_rows]`: of two classes one for each row, that of the second against the first; else one a
//! class.
//!
//! It knows nothing of features, coefficients or the penalty, which are `newton`'s. Logits stand one column a row, so
//! that what one row needs is contiguous; faer keeps matrices by columns.
//!
//! Of two classes the single logit z gives p(second) = σ(z). Of more, p(class) = exp(z of the class) / Σ exp(z), in which
//! adding one number to all logits of a row changes nothing: the loss is flat in that direction, see `newton` for what
//! holds it.

use faer::Mat;

use crate::estimators::sigmoid::{sigmoid, softplus};

/// Rows, their classes and what each counts; weights sum to 1.
pub(super) struct Loss<'a> {
    /// The position of each row's class, `[n_rows]`, below the number of classes.
    pub(super) class_of_row: &'a [usize],
    /// What each row counts, `[n_rows]`, above 0: the weight of its class over the sum of all rows' weights.
    pub(super) weights: Vec<f64>,
}

/// The loss near some logits, to second order.
pub(super) struct Expansion {
    /// Of the second class, or of each.
    /// Shaped like the logits, `[n_columns, n_rows]`.
    probabilities: Mat<f64>,
    /// Derivatives by the logits.
    /// `[n_columns, n_rows]`, each row's weight included: weight (p − 1) for the class of the row, weight p for the
    /// others.
    pub(super) gradient: Mat<f64>,
    /// Of each row the mean curvature over the directions that change the loss: of two classes the curvature itself.
    /// `[n_rows]`, weights included. Of more classes it is Σ p (1 − p) / (n_classes − 1), the trace of diag(p) − p pᵀ
    /// over its rank.
    pub(super) curvature: Vec<f64>,
}

impl Loss<'_> {
    /// The weighted mean of −ln p(class of the row).
    ///
    /// Never negative, and finite for finite logits: neither [`softplus`] nor the logarithm of the sum overflows.
    pub(super) fn value(&self, logits: &Mat<f64>) -> f64 {
        let of_row = |(row, (&class, weight)): (usize, (&usize, &f64))| {
            let loss = match logits.col_as_slice(row) {
                [logit] => softplus(if class == 1 { -logit } else { *logit }),
                logits => log_sum_exp(logits) - logits[class],
            };
            weight * loss
        };
        self.class_of_row.iter().zip(&self.weights).enumerate().map(of_row).sum()
    }

    /// Gradient and curvatures at these logits. A probability's complement is computed as such and not as 1 − p, so that gradients of rows
    /// that are all but certain keep their digits.
    ///
    /// O(n_rows n_columns), and one exponential for each logit or two.
    pub(super) fn expand(&self, logits: &Mat<f64>) -> Expansion {
        let mut probabilities = logits.clone();
        let mut gradient = logits.clone();
        let mut curvature = vec![0.0; logits.ncols()];
        for (row, (&class, &weight)) in self.class_of_row.iter().zip(&self.weights).enumerate() {
            let gradient = gradient.col_as_slice_mut(row);
            match probabilities.col_as_slice_mut(row) {
                [p] => {
                    let q = sigmoid(-*p);
                    *p = sigmoid(*p);
                    gradient[0] = weight * if class == 1 { -q } else { *p };
                    curvature[row] = weight * *p * q;
                }
                probabilities => {
                    let normaliser = log_sum_exp(probabilities);
                    let (mut others, mut spread) = (0.0, 0.0);
                    for (column, (p, gradient)) in probabilities.iter_mut().zip(&mut *gradient).enumerate() {
                        *p = (*p - normaliser).exp();
                        *gradient = weight * *p;
                        others += if column == class { 0.0 } else { *p };
                        spread += *p * (1.0 - *p);
                    }
                    // Exact where p − 1 would be rounding.
                    gradient[class] = -weight * others;
                    curvature[row] = weight * spread / (gradient.len() - 1) as f64;
                }
            }
        }
        Expansion { probabilities, gradient, curvature }
    }

    /// Replaces a direction in logits by the second derivative times it.
    ///
    /// A row's second derivative is weight (diag(p) − p pᵀ), applied as weight p (d − Σ p d) without forming the
    /// `[n_columns, n_columns]` matrix. The result is 0 for a direction that is the same for all classes.
    pub(super) fn curve(&self, at: &Expansion, direction: &mut Mat<f64>) {
        for (row, weight) in self.weights.iter().enumerate() {
            match direction.col_as_slice_mut(row) {
                [direction] => *direction *= at.curvature[row],
                direction => {
                    let probabilities = at.probabilities.col_as_slice(row);
                    let mean: f64 = probabilities.iter().zip(&*direction).map(|(p, direction)| p * direction).sum();
                    direction.iter_mut().zip(probabilities).for_each(|(to, p)| *to = weight * p * (*to - mean));
                }
            }
        }
    }
}

/// ln Σ eᶻ of one row, which its own maximum keeps in range.
///
/// The greatest exponent is 0 after the shift, so that the sum lies between 1 and the number of classes.
fn log_sum_exp(logits: &[f64]) -> f64 {
    let maximum = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    maximum + logits.iter().map(|logit| (logit - maximum).exp()).sum::<f64>().ln()
}
