//! The penalised loss of the cumulative logit model and its minimum by Newton's method.
//!
//! σ(b) − σ(a) = σ(b) σ(−a) (1 − eᵃ⁻ᵇ), so that a row's −ln p is a logistic loss at the threshold above, one at the threshold below, and a
//! term that depends on their distance alone. Each is convex; the last grows without bound as thresholds meet, and so keeps them in order.
//!
//! It owns the objective in the coordinates of `RowSpace`; settings and their checks are the module above's. With classes
//! 0 to K − 1, p(class k) = σ(thresholdₖ − f) − σ(thresholdₖ₋₁ − f) for a row's function f, where the threshold below the
//! first class is −∞ and that above the last +∞.
//!
//! Thresholds are free parameters and not sums of exponentials as in statsmodels: the problem stays convex, and Newton's
//! method needs no start near the solution. Their order is kept by the search, which refuses steps to where the objective
//! is infinite.
//!
//! A step is O(n_coordinates² n_rows + n_coordinates³). The Hessian is formed and factored every time: there is a single
//! function, so its order is only n_coordinates + n_classes − 1.

use faer::Mat;

use crate::estimators::class_weight::Shares;
use crate::estimators::descent::{minimise, search};
use crate::estimators::labels::EncodedLabels;
use crate::estimators::sigmoid::{sigmoid, softplus};
use crate::matrices::products::{Cholesky, dot};
use crate::matrices::row_space::Points;
use crate::{ClassWeight, Error};

/// (weighted mean loss) + lambda/2 ‖coefficients‖².
pub(super) struct Objective<'a> {
    /// `[n_coordinates, n_rows]`.
    /// Without a row of ones.
    points: Points<'a>,
    /// `[n_rows]`, positions of classes in ascending order.
    class_of_row: &'a [usize],
    /// Above 0.
    shares: Shares,
    /// 1 / (c S), where S is the sum of all rows' weights before they are scaled.
    lambda: f64,
}

/// Where the objective is looked at.
#[derive(Clone)]
pub(super) struct Point {
    /// `[n_coordinates, 1]`.
    /// Of the coordinates, all penalised.
    pub(super) coefficients: Mat<f64>,
    /// Strictly ascending where the objective is finite.
    /// `[n_classes - 1]`, not penalised.
    pub(super) thresholds: Vec<f64>,
}

impl<'a> Objective<'a> {
    /// `c` is above 0, and every class has rows.
    pub(super) fn new(points: Points<'a>, labels: &'a EncodedLabels, class_weight: ClassWeight, c: f64) -> Self {
        let shares = class_weight.shares(&labels.counts);
        Self { points, class_of_row: &labels.class_of_row, lambda: 1.0 / (c * shares.sum), shares }
    }

    /// The minimum, to within about `tol` by the estimate before the last step.
    ///
    /// [`Error::NotConverged`].
    pub(super) fn minimise(&self, max_iter: usize, tol: f64) -> Result<Point, Error> {
        let mut at = self.start();
        minimise(max_iter, tol, |gap| {
            let (step, slope) = self.newton_step(&at)?;
            *gap = -slope / 2.0;
            at = self.search(&at, &step, slope)?;
            Some(())
        })?;
        Ok(at)
    }

    /// The minimum without features: thresholds at the logits of how many rows lie below.
    /// Finite and strictly ascending, since every class has rows.
    fn start(&self) -> Point {
        let mut below = 0.0;
        let thresholds = self.shares.of_class.windows(2).enumerate().map(|(class, pair)| {
            below += pair[0];
            let above: f64 = self.shares.of_class[class + 1..].iter().sum();
            f64::ln(below / above)
        });
        Point { thresholds: thresholds.collect(), coefficients: Mat::zeros(self.points.shape().0, 1) }
    }

    /// The linear function of each row.
    ///
    /// `[1, n_rows]`, without thresholds.
    fn functions(&self, coefficients: &Mat<f64>) -> Mat<f64> {
        self.points.functions(coefficients.as_ref())
    }

    /// What each row's loss is made of: its weight, the position of a threshold, and how far the row is on the wrong side of it, with the
    /// sign that the row's function has in it.
    ///
    /// A row of the first or the last class has one term, a row between has two. The width term of a row between depends
    /// on its class alone and is added by class where the terms are summed.
    fn terms(&self, functions: &Mat<f64>, thresholds: &[f64]) -> impl Iterator<Item = Term> {
        let of_row = move |(row, &class): (usize, &usize)| {
            let (weight, function) = (self.shares.of_row[class], functions[(0, row)]);
            let term = |threshold: usize, sign: f64| Term {
                row,
                weight,
                threshold,
                sign,
                excess: sign * (function - thresholds[threshold]),
            };
            let above = (class < thresholds.len()).then(|| term(class, 1.0));
            let below = (class > 0).then(|| term(class - 1, -1.0));
            above.into_iter().chain(below)
        };
        self.class_of_row.iter().enumerate().flat_map(of_row)
    }

    /// Infinite where thresholds are not in order.
    /// The objective at a point whose functions are known; O(n_rows).
    fn value(&self, functions: &Mat<f64>, at: &Point) -> f64 {
        let mut value: f64 =
            self.terms(functions, &at.thresholds).map(|term| term.weight * softplus(term.excess)).sum();
        for (pair, share) in at.thresholds.windows(2).zip(&self.shares.of_class[1..]) {
            let width = pair[1] - pair[0];
            // NaN arises where both are infinite after too long a step.
            if width.is_nan() || width <= 0.0 {
                return f64::INFINITY;
            }
            // −ln(1 − e⁻ʷ) of the width w between the thresholds, with all digits however close they are.
            value -= share * (-f64::exp_m1(-width)).ln();
        }
        let coefficients = at.coefficients.col_as_slice(0);
        value + self.lambda / 2.0 * dot(coefficients, coefficients)
    }

    /// −H⁻¹ gradient, first of the coordinates and then of the thresholds, and the gradient times it; `None` where rounding has left
    /// nothing positive definite.
    ///
    /// With p = σ(excess), a term's derivative by the row's function is weight · sign · p and by its threshold the
    /// negative; the second derivatives are weight p (1 − p), with a minus sign where one is by function and one by
    /// threshold. For a width w, −ln(1 − e⁻ʷ) has the derivatives −1 / (eʷ − 1) and 1 / ((eʷ − 1)(1 − e⁻ʷ)).
    fn newton_step(&self, at: &Point) -> Option<(Mat<f64>, f64)> {
        let ((n_coordinates, n_rows), n_thresholds) = (self.points.shape(), at.thresholds.len());
        let order = n_coordinates + n_thresholds;
        // Derivatives by the functions of the rows, and by thresholds; the second ones by a threshold and a row's function have a row a
        // threshold.
        let (mut by_row, mut curvature) = (Mat::zeros(1, n_rows), vec![0.0; n_rows]);
        let (mut gradient, mut mixed) = (Mat::zeros(order, 1), Mat::zeros(n_thresholds, n_rows));
        let mut between = Mat::<f64>::zeros(n_thresholds, n_thresholds);
        for term in self.terms(&self.functions(&at.coefficients), &at.thresholds) {
            let p = sigmoid(term.excess);
            let (first, second) = (term.weight * term.sign * p, term.weight * p * sigmoid(-term.excess));
            by_row[(0, term.row)] += first;
            gradient[(n_coordinates + term.threshold, 0)] -= first;
            curvature[term.row] += second;
            mixed[(term.threshold, term.row)] -= second;
            between[(term.threshold, term.threshold)] += second;
        }
        for (lower, (pair, share)) in at.thresholds.windows(2).zip(&self.shares.of_class[1..]).enumerate() {
            let width = pair[1] - pair[0];
            let (first, second) = (-share / width.exp_m1(), share / (width.exp_m1() * -f64::exp_m1(-width)));
            gradient[(n_coordinates + lower, 0)] -= first;
            gradient[(n_coordinates + lower + 1, 0)] += first;
            between[(lower, lower)] += second;
            between[(lower + 1, lower + 1)] += second;
            between[(lower + 1, lower)] -= second;
        }
        gradient.as_mut().subrows_mut(0, n_coordinates).copy_from(self.points.weighted_sum(by_row.as_ref()));
        for i in 0..n_coordinates {
            gradient[(i, 0)] += self.lambda * at.coefficients[(i, 0)];
        }

        let mut hessian = Mat::zeros(order, order);
        hessian.as_mut().submatrix_mut(0, 0, n_coordinates, n_coordinates).copy_from(self.points.lower_gram(
            &curvature,
            &vec![1.0; n_coordinates],
            |value| value,
        ));
        let mixed = self.points.weighted_sum(mixed.as_ref());
        hessian.as_mut().submatrix_mut(n_coordinates, 0, n_thresholds, n_coordinates).copy_from(mixed.transpose());
        // `between` is filled in its lower triangle; of the whole matrix no more is read.
        hessian.as_mut().submatrix_mut(n_coordinates, n_coordinates, n_thresholds, n_thresholds).copy_from(between);
        for i in 0..n_coordinates {
            hessian[(i, i)] += self.lambda;
        }
        let mut step = -&gradient;
        solve(hessian, &mut step, n_rows)?;
        let slope = dot(gradient.col_as_slice(0), step.col_as_slice(0));
        // Negative unless the gradient is 0.
        slope.is_finite().then_some((step, slope))
    }

    /// Where [`search`] leads from a point. Steps across which thresholds change places are infinite in value and so are halved.
    fn search(&self, from: &Point, step: &Mat<f64>, slope: f64) -> Option<Point> {
        let n_coordinates = self.points.shape().0;
        let start = self.value(&self.functions(&from.coefficients), from);
        let along = |length: f64| {
            let moved = |from: f64, i: usize| from + length * step[(i, 0)];
            let at = Point {
                coefficients: Mat::from_fn(n_coordinates, 1, |i, _| moved(from.coefficients[(i, 0)], i)),
                thresholds: from.thresholds.iter().zip(n_coordinates..).map(|(&from, i)| moved(from, i)).collect(),
            };
            (self.value(&self.functions(&at.coefficients), &at) - start, at)
        };
        search(slope, 16.0 * f64::EPSILON * start, along).map(|(_, at)| at)
    }
}

/// weight · ln(1 + e^excess), a part of one row's loss.
struct Term {
    /// Position among the rows.
    row: usize,
    /// That of the row's class, scaled.
    weight: f64,
    /// Its position: the class of the row for the threshold above, one less for the threshold below.
    threshold: usize,
    /// How the excess grows with the row's function: 1 or −1.
    sign: f64,
    /// sign · (function − threshold): above 0 on the wrong side.
    excess: f64,
}

/// Replaces b by A⁻¹ b; of A the lower triangle counts. Scaled to a diagonal of 1 first, to which more is added than rounding, over sums of
/// `n_terms`, can have taken away.
///
/// With D the roots of A's diagonal, it solves (D⁻¹ A D⁻¹ + δ I) D x = D⁻¹ b for a δ of 4 (n_terms + order) ε. The
/// scaling keeps features of very different scales, or thresholds next to features, from deciding on the accuracy. `None`
/// where the factorisation fails, which leaves b changed.
fn solve(mut a: Mat<f64>, b: &mut Mat<f64>, n_terms: usize) -> Option<()> {
    let order = a.nrows();
    // A coordinate without curvature has a diagonal of 0; any scale will do.
    let scale: Vec<f64> =
        (0..order).map(|i| a[(i, i)].sqrt()).map(|scale| if scale > 0.0 { scale } else { 1.0 }).collect();
    for column in 0..order {
        for row in column..order {
            a[(row, column)] /= scale[row] * scale[column];
        }
        a[(column, column)] += 4.0 * (n_terms + order) as f64 * f64::EPSILON;
    }
    let unscale = |b: &mut Mat<f64>| b.col_as_slice_mut(0).iter_mut().zip(&scale).for_each(|(b, scale)| *b /= scale);
    unscale(b);
    Cholesky::new(a, 0.0).ok()?.solve(b.as_mut());
    unscale(b);
    Some(())
}
