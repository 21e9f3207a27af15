//! The dual of a support vector machine for two classes, by sequential minimal optimisation: of all pairs of multipliers the one that promises
//! most to second order is optimised exactly, again and again (Fan, Chen and Lin, 2005), as libsvm does.

use faer::{Mat, MatRef};

/// Rows of two classes.
pub(super) struct TwoClasses<'a> {
    /// Inner products of the rows, `[n_rows, n_rows]`, in full.
    pub(super) products: MatRef<'a, f64>,
    /// 1 for the first class, −1 for the second.
    pub(super) signs: &'a [f64],
    /// The greatest multiplier of each row.
    pub(super) bounds: &'a [f64],
}

/// What [`TwoClasses::solve`] found.
pub(super) struct Solution {
    /// The multiplier of each row times its sign: the weights of the rows in the coefficients.
    pub(super) weights: Vec<f64>,
    pub(super) intercept: f64,
    pub(super) n_iter: usize,
    /// How far the optimality conditions are from holding, in units of the margin.
    pub(super) gap: f64,
}

/// Multipliers, and for each row the intercept that would put it on its margin.
struct State<'a> {
    problem: &'a TwoClasses<'a>,
    multipliers: Vec<f64>,
    intercepts: Vec<f64>,
}

/// The two rows that hold most against each other, and what they say.
struct Violation {
    up: usize,
    low: usize,
    gap: f64,
    middle: f64,
}

/// In place of a curvature that rounding has taken away: rows that are equal.
const LEAST_CURVATURE: f64 = 1e-12;

impl TwoClasses<'_> {
    /// Until `gap` is below `tol`, or for `max_iter` pairs.
    pub(super) fn solve(&self, max_iter: usize, tol: f64) -> Solution {
        let mut state =
            State { problem: self, multipliers: vec![0.0; self.signs.len()], intercepts: self.signs.to_vec() };
        // Whether no update has touched the intercepts since they were computed from the multipliers.
        let (mut fresh, mut n_iter) = (true, 0);
        loop {
            let violation = state.violation();
            if violation.gap < tol || n_iter == max_iter {
                if fresh {
                    return state.solution(n_iter, &violation);
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
    fn may_rise(&self, row: usize) -> bool {
        if self.problem.signs[row] > 0.0 {
            self.multipliers[row] < self.problem.bounds[row]
        } else {
            self.multipliers[row] > 0.0
        }
    }

    /// Whether it may weigh less.
    fn may_fall(&self, row: usize) -> bool {
        if self.problem.signs[row] > 0.0 {
            self.multipliers[row] > 0.0
        } else {
            self.multipliers[row] < self.problem.bounds[row]
        }
    }

    /// How fast the optimality of a pair changes as weight moves between its rows: ‖xᵢ − xⱼ‖², and at least a little, so that equal rows do not divide by 0.
    fn curvature(&self, i: usize, j: usize) -> f64 {
        let products = self.problem.products;
        (products[(i, i)] + products[(j, j)] - 2.0 * products[(i, j)]).max(LEAST_CURVATURE)
    }

    /// The pair to optimise next: as `up` the row that would gain most by rising, as `low`, of those that may fall, the one with which the objective falls most to second
    /// order (Fan, Chen and Lin, Journal of Machine Learning Research 6, 2005, working set selection 2). The gap is that of the first-order condition, which libsvm's `tol`
    /// bounds.
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
        Violation { up: up.0, low, gap: up.1 - least, middle: (up.1 + least) / 2.0 }
    }

    /// Moves weight from `low` to `up`: to the optimum of the pair, or until one of the two meets its bound, which it then gets exactly, without rounding, so that
    /// it counts as bounded from then on. The intercepts follow by the two columns of products.
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

    /// Computes the intercepts anew from the multipliers. Each update adds its rounding; a solution is only believed when this has taken it away.
    fn refresh(&mut self) {
        let weights = self.weights();
        self.intercepts.copy_from_slice(self.problem.signs);
        for (column, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight != 0.0) {
            let products = self.problem.products.col(column).iter();
            self.intercepts.iter_mut().zip(products).for_each(|(intercept, product)| *intercept -= weight * product);
        }
    }

    /// The intercept is the mean of those of the rows on their margin, where there are any, as libsvm has it.
    fn solution(&self, n_iter: usize, violation: &Violation) -> Solution {
        let between = |row: &usize| 0.0 < self.multipliers[*row] && self.multipliers[*row] < self.problem.bounds[*row];
        let on_margin: Vec<f64> = (0..self.intercepts.len()).filter(between).map(|row| self.intercepts[row]).collect();
        let intercept = match on_margin.len() {
            0 => violation.middle,
            n => on_margin.iter().sum::<f64>() / n as f64,
        };
        Solution { weights: self.weights(), intercept, n_iter, gap: violation.gap }
    }
}

/// Fills the upper triangle of a symmetric matrix from the lower one.
pub(super) fn mirror_lower(matrix: &mut Mat<f64>) {
    for column in 1..matrix.ncols() {
        for row in 0..column {
            matrix[(row, column)] = matrix[(column, row)];
        }
    }
}
