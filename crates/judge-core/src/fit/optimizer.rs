use super::Plateau;

const BETA1: f64 = 0.9;
const BETA2: f64 = 0.999;
const EPS: f64 = 1e-8;
/// PyTorch's `ReduceLROnPlateau` leaves the rate alone if it would fall by less.
const SMALLEST_FALL: f64 = 1e-8;

/// Adam in the form of `torch.optim.Adam`: bias corrections apart, eps added outside the root.
pub(crate) struct Adam {
    first: Vec<f64>,
    second: Vec<f64>,
    steps: i32,
}

impl Adam {
    pub(crate) fn new(parameters: usize) -> Self {
        Self { first: vec![0.0; parameters], second: vec![0.0; parameters], steps: 0 }
    }

    /// One update of parameters, each given with its gradient, in the same order every time.
    pub(crate) fn step<'p>(&mut self, lr: f64, parameters: impl Iterator<Item = (&'p mut f64, f64)>) {
        self.steps = self.steps.saturating_add(1);
        let correction1 = 1.0 - BETA1.powi(self.steps);
        let correction2 = (1.0 - BETA2.powi(self.steps)).sqrt();
        for ((parameter, gradient), (m, v)) in parameters.zip(self.first.iter_mut().zip(&mut self.second)) {
            *m += (1.0 - BETA1) * (gradient - *m);
            *v = BETA2 * *v + (1.0 - BETA2) * gradient * gradient;
            *parameter -= lr / correction1 * *m / (v.sqrt() / correction2 + EPS);
        }
    }
}

/// A learning rate that falls when the loss stops falling, as `torch.optim.lr_scheduler.ReduceLROnPlateau`.
pub(super) struct LearningRate {
    rate: f64,
    plateau: Plateau,
    best: f64,
    bad_epochs: usize,
}

impl LearningRate {
    pub(super) fn new(rate: f64, plateau: Plateau) -> Self {
        Self { rate, plateau, best: f64::INFINITY, bad_epochs: 0 }
    }

    pub(super) fn current(&self) -> f64 {
        self.rate
    }

    pub(super) fn after_epoch(&mut self, loss: f64) {
        if loss < self.best * (1.0 - self.plateau.threshold) {
            self.best = loss;
            self.bad_epochs = 0;
        } else {
            self.bad_epochs += 1;
        }
        if self.bad_epochs > self.plateau.patience {
            self.bad_epochs = 0;
            let lower = (self.rate * self.plateau.factor).max(self.plateau.min_lr);
            if self.rate - lower > SMALLEST_FALL {
                self.rate = lower;
            }
        }
    }
}
