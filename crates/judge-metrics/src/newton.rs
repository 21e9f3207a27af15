//! Maximum likelihood for a few parameters: Newton steps, and the small symmetric systems they solve.

/// Lower factor of a positive definite matrix, row-major `[n, n]`.
pub(crate) struct Cholesky {
    n: usize,
    lower: Vec<f64>,
}

impl Cholesky {
    /// `None` if the matrix is not positive definite.
    pub(crate) fn new(matrix: &[f64], n: usize) -> Option<Self> {
        let mut lower = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..=i {
                let known: f64 = (0..j).map(|k| lower[i * n + k] * lower[j * n + k]).sum();
                let rest = matrix[i * n + j] - known;
                lower[i * n + j] = if i == j {
                    // Below rounding it is no longer told from a singular one.
                    if rest <= matrix[i * n + i].abs() * 1e-13 {
                        return None;
                    }
                    rest.sqrt()
                } else {
                    rest / lower[j * n + j]
                };
            }
        }
        Some(Self { n, lower })
    }

    /// The logarithm of the matrix's determinant.
    pub(crate) fn ln_determinant(&self) -> f64 {
        (0..self.n).map(|i| 2.0 * self.lower[i * self.n + i].ln()).sum()
    }

    /// The factor times a vector.
    pub(crate) fn times(&self, z: &[f64]) -> Vec<f64> {
        (0..self.n).map(|i| (0..=i).map(|j| self.lower[i * self.n + j] * z[j]).sum()).collect()
    }

    /// Solves for one right side.
    pub(crate) fn solve(&self, right: &[f64]) -> Vec<f64> {
        let (n, l) = (self.n, &self.lower);
        let mut x = right.to_vec();
        for i in 0..n {
            let known: f64 = (0..i).map(|k| l[i * n + k] * x[k]).sum();
            x[i] = (x[i] - known) / l[i * n + i];
        }
        for i in (0..n).rev() {
            let known: f64 = (i + 1..n).map(|k| l[k * n + i] * x[k]).sum();
            x[i] = (x[i] - known) / l[i * n + i];
        }
        x
    }

    /// The inverse, row-major.
    pub(crate) fn inverse(&self) -> Vec<f64> {
        let n = self.n;
        (0..n)
            .flat_map(|i| {
                let mut unit = vec![0.0; n];
                unit[i] = 1.0;
                self.solve(&unit)
            })
            .collect()
    }
}

/// What a log-likelihood is at some parameters: value, gradient, and minus the matrix of second derivatives.
pub(crate) struct Likelihood {
    pub(crate) value: f64,
    pub(crate) gradient: Vec<f64>,
    pub(crate) information: Vec<f64>,
}

/// The maximum of a concave log-likelihood by Newton's method with halved steps, from zero, and the likelihood there; `None` if the
/// information is singular or the iteration does not settle.
pub(crate) fn maximise(n: usize, at: impl Fn(&[f64]) -> Likelihood) -> Option<(Vec<f64>, Likelihood)> {
    const ITERATIONS: usize = 200;
    let mut x = vec![0.0; n];
    let mut here = at(&x);
    for _ in 0..ITERATIONS {
        let step = Cholesky::new(&here.information, n)?.solve(&here.gradient);
        let size = step.iter().map(|s| s.abs()).fold(0.0, f64::max);
        let mut share = 1.0;
        let (next, there) = loop {
            let next: Vec<f64> = x.iter().zip(&step).map(|(x, s)| x + share * s).collect();
            let there = at(&next);
            // Near the maximum the value no longer changes; the gradient then decides.
            if there.value >= here.value - 1e-12 * here.value.abs() || share < 1e-10 {
                break (next, there);
            }
            share /= 2.0;
        };
        (x, here) = (next, there);
        if size * share <= 1e-12 * (1.0 + x.iter().map(|x| x.abs()).fold(0.0, f64::max)) {
            return Some((x, here));
        }
    }
    None
}

/// 1 / (1 + e^-x), without overflow.
pub(crate) fn logistic(x: f64) -> f64 {
    if x >= 0.0 { 1.0 / (1.0 + (-x).exp()) } else { x.exp() / (1.0 + x.exp()) }
}

/// ln(1 / (1 + e^-x)), without cancellation.
pub(crate) fn log_logistic(x: f64) -> f64 {
    x.min(0.0) - (-x.abs()).exp().ln_1p()
}
