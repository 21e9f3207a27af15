//! The dual of a support vector machine for two classes, by sequential minimal optimisation: of all pairs of multipliers the one that
//! promises most to second order is optimised exactly, again and again (Fan, Chen and Lin, 2005), as libsvm does.
//!
//! The dual is to minimise ½ Σᵢⱼ yᵢ αᵢ Kᵢⱼ yⱼ αⱼ − Σ αᵢ with 0 ≤ αᵢ ≤ boundᵢ and Σ yᵢ αᵢ = 0, for inner products K, signs
//! y and multipliers α. It owns the solver alone: which classes meet, their weights and the coefficients are the module
//! above's.
//!
//! Differences from libsvm: products are all held at once, so there is neither a cache nor shrinking; a solution is
//! accepted only after its intercepts have been computed afresh; and a multiplier that rounding keeps from its bound does not
//! decide the intercept, see [`State::solution`]. One pair costs O(n_rows); the number of pairs grows with c and with how much
//! the classes overlap.

use faer::{Mat, MatRef};

/// Rows of two classes.
pub(super) struct TwoClasses<'a> {
    /// Inner products of the rows, `[n_rows, n_rows]`, in full.
    /// Column by column and row by row it is read alike, so the upper triangle must be filled too, see [`mirror_lower`].
    pub(super) products: MatRef<'a, f64>,
    /// 1 for the first class, −1 for the second.
    /// `[n_rows]`. Both signs occur.
    pub(super) signs: &'a [f64],
    /// The greatest multiplier of each row.
    /// `[n_rows]`, above 0: c times the weight of the row's class.
    pub(super) bounds: &'a [f64],
}

/// What [`TwoClasses::solve`] found.
pub(super) struct Solution {
    /// The multiplier of each row times its sign: the weights of the rows in the coefficients.
    /// `[n_rows]`; they sum to 0 but for rounding. 0 for rows that are no support vectors.
    pub(super) weights: Vec<f64>,
    /// b of w·x + b, which is positive for the first class: libsvm's −rho.
    pub(super) intercept: f64,
    /// Pairs optimised, at most `max_iter`.
    pub(super) n_iter: usize,
    /// How far the optimality conditions are from holding, in units of the margin.
    /// At `tol` or above it has not converged, which the caller has to check.
    pub(super) gap: f64,
}

/// Multipliers, and for each row the intercept that would put it on its margin.
struct State<'a> {
    problem: &'a TwoClasses<'a>,
    /// `[n_rows]`, each from 0 to its bound, both ends exact.
    multipliers: Vec<f64>,
    /// `[n_rows]`: y − Σⱼ yⱼ αⱼ Kⱼ, which is −y times the gradient of the dual. Those of rows on their margin agree at
    /// the optimum.
    intercepts: Vec<f64>,
}

/// The two rows that hold most against each other, and what they say.
struct Violation {
    /// The row whose weight is to grow.
    up: usize,
    /// The row whose weight is to shrink by as much; meaningless where the gap is 0 or less.
    low: usize,
    gap: f64,
}

/// In place of a curvature that rounding has taken away: rows that are equal.
/// libsvm's `TAU`.
const LEAST_CURVATURE: f64 = 1e-12;

/// How near a multiplier is to its bound, or next to the largest one to 0, that is there but for rounding.
const ROUNDING: f64 = 1e-12;

impl TwoClasses<'_> {
    /// Until `gap` is below `tol`, or for `max_iter` pairs.
    ///
    /// From multipliers of 0, where the intercepts are the signs. Deterministic: among equal candidates the first row is
    /// taken. The loop ends: a turn returns, optimises one of `max_iter` pairs, or refreshes, which it never does twice
    /// in a row.
    pub(super) fn solve(&self, max_iter: usize, tol: f64) -> Solution {
        let mut state =
            State { problem: self, multipliers: vec![0.0; self.signs.len()], intercepts: self.signs.to_vec() };
        // Whether no update has touched the intercepts since they were computed from the multipliers.
        let (mut fresh, mut n_iter) = (true, 0);
        loop {
            let violation = state.violation();
            if violation.gap < tol || n_iter == max_iter {
                if fresh {
                    return state.solution(n_iter, violation.gap);
                }
                state.refresh();
                fresh = true;
            } else {
                state.optimise(violation.up, violation.low);
                fresh = false;
                n_iter += 1;
            }
        }
    }
}

impl State<'_> {
    /// Whether the row may weigh more for the first class.
    /// The set that Fan, Chen and Lin call `I_up`.
    fn may_rise(&self, row: usize) -> bool {
        if self.problem.signs[row] > 0.0 {
            self.multipliers[row] < self.problem.bounds[row]
        } else {
            self.multipliers[row] > 0.0
        }
    }

    /// Whether it may weigh less.
    /// Their `I_low`.
    fn may_fall(&self, row: usize) -> bool {
        if self.problem.signs[row] > 0.0 {
            self.multipliers[row] > 0.0
        } else {
            self.multipliers[row] < self.problem.bounds[row]
        }
    }

    /// How fast the optimality of a pair changes as weight moves between its rows: ‖xᵢ − xⱼ‖², and at least a little, so that equal rows do
    /// not divide by 0.
    fn curvature(&self, i: usize, j: usize) -> f64 {
        let products = self.problem.products;
        (products[(i, i)] + products[(j, j)] - 2.0 * products[(i, j)]).max(LEAST_CURVATURE)
    }

    /// The pair to optimise next: as `up` the row that would gain most by rising, as `low`, of those that may fall, the one with which the
    /// objective falls most to second order (Fan, Chen and Lin, Journal of Machine Learning Research 6, 2005, working set selection 2). The
    /// gap is that of the first-order condition, which libsvm's `tol` bounds.
    fn violation(&self) -> Violation {
        let rows = 0..self.intercepts.len();
        let mut up = (0, f64::NEG_INFINITY);
        for row in rows.clone().filter(|&row| self.may_rise(row)) {
            if self.intercepts[row] > up.1 {
                up = (row, self.intercepts[row]);
            }
        }
        let (mut low, mut least, mut most) = (0, f64::INFINITY, 0.0);
        for row in rows.filter(|&row| self.may_fall(row)) {
            least = self.intercepts[row].min(least);
            let difference = up.1 - self.intercepts[row];
            if difference > 0.0 {
                let gain = difference * difference / self.curvature(up.0, row);
                if gain > most {
                    (low, most) = (row, gain);
                }
            }
        }
        Violation { up: up.0, low, gap: up.1 - least }
    }

    /// Moves weight from `low` to `up`: to the optimum of the pair, or until one of the two meets its bound, which it then gets exactly,
    /// without rounding, so that it counts as bounded from then on. The intercepts follow by the two columns of products.
    ///
    /// The equality constraint Σ yᵢ αᵢ = 0 is kept, because what one row gains the other loses. O(n_rows).
    fn optimise(&mut self, up: usize, low: usize) {
        let TwoClasses { products, signs, bounds } = *self.problem;
        let room = |row: usize, rising: bool| {
            if (signs[row] > 0.0) == rising { bounds[row] - self.multipliers[row] } else { self.multipliers[row] }
        };
        let (room_up, room_low) = (room(up, true), room(low, false));
        let best = (self.intercepts[up] - self.intercepts[low]) / self.curvature(up, low);
        let change = best.min(room_up).min(room_low);
        for (row, change, at_end) in [(up, change, change == room_up), (low, -change, change == room_low)] {
            let change = signs[row] * change;
            self.multipliers[row] = match at_end {
                true if change > 0.0 => bounds[row],
                true => 0.0,
                false => self.multipliers[row] + change,
            };
        }
        let columns = products.col(up).iter().zip(products.col(low).iter());
        for (intercept, (up, low)) in self.intercepts.iter_mut().zip(columns) {
            *intercept -= change * (up - low);
        }
    }

    /// Multipliers with the signs of their classes: what the rows are weighed by in the function.
    fn weights(&self) -> Vec<f64> {
        self.multipliers.iter().zip(self.problem.signs).map(|(multiplier, sign)| multiplier * sign).collect()
    }

    /// Computes the intercepts anew from the multipliers. Each update adds its rounding; a solution is only believed when this has taken it
    /// away.
    ///
    /// O(n_rows) for each support vector, as much as that many pairs; it happens once at the end of most fits.
    fn refresh(&mut self) {
        let weights = self.weights();
        self.intercepts.copy_from_slice(self.problem.signs);
        for (column, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight != 0.0) {
            let products = self.problem.products.col(column).iter();
            self.intercepts.iter_mut().zip(products).for_each(|(intercept, product)| *intercept -= weight * product);
        }
    }

    /// The intercept is the mean of those of the rows on their margin, where there are any, as libsvm has it.
    ///
    /// Else it is the middle of the interval that optimality leaves it. Balanced weights bound the multipliers of both classes by equal
    /// sums, so that with a small c all are at their bounds, but for one that the rounding of the sums leaves below: to libsvm that row is
    /// on its margin, which puts the intercept at an end of the interval, often one class for all rows.
    fn solution(&self, n_iter: usize, gap: f64) -> Solution {
        let n_rows = self.multipliers.len();
        // Each row adds the rounding of its own multiplier to the sums.
        let near = ROUNDING.max(8.0 * f64::EPSILON * n_rows as f64);
        let largest = self.multipliers.iter().copied().fold(0.0, f64::max);
        let (mut least, mut most) = (f64::NEG_INFINITY, f64::INFINITY);
        let mut on_margin = Vec::new();
        for row in 0..n_rows {
            let (multiplier, bound, intercept) =
                (self.multipliers[row], self.problem.bounds[row], self.intercepts[row]);
            let is_bounded = bound - multiplier <= near * bound;
            let is_zero = !is_bounded && multiplier <= near * largest;
            let [may_rise, may_fall] = match self.problem.signs[row] > 0.0 {
                true => [!is_bounded, !is_zero],
                false => [!is_zero, !is_bounded],
            };
            if may_rise {
                least = intercept.max(least);
            }
            if may_fall {
                most = intercept.min(most);
            }
            if may_rise && may_fall {
                on_margin.push(intercept);
            }
        }
        let intercept = match on_margin.len() {
            0 => f64::midpoint(least, most),
            n => on_margin.iter().sum::<f64>() / n as f64,
        };
        Solution { weights: self.weights(), intercept, n_iter, gap }
    }
}

/// Fills the upper triangle of a symmetric matrix from the lower one.
/// O(n²); `lower_gram` leaves the upper triangle 0, and columns are read whole here.
pub(super) fn mirror_lower(matrix: &mut Mat<f64>) {
    for column in 1..matrix.ncols() {
        for row in 0..column {
            matrix[(row, column)] = matrix[(column, row)];
        }
    }
}
