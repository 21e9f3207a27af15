//! One step: the loss of a batch, its gradient, and the parameters moved against it.

use super::check;
use super::example::Example;
use super::gradients;
use super::problem::TrainProblem;
use super::trainer::Trainer;
use crate::Error;

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepReport {
    /// Weighted cross-entropy before the step, in nats, summed over tokens and divided by the
    /// number of examples.
    pub loss: f64,
    /// Euclidean norm of that loss's gradient over all parameters, before it was scaled down.
    pub grad_norm: f64,
    /// The learning rate that was used.
    pub learning_rate: f64,
}

impl Trainer {
    /// Moves the parameters against the gradient of the batch's loss: the examples' weighted
    /// cross-entropies, summed over tokens and divided by the number of examples.
    ///
    /// # Errors
    /// If the batch is empty, an example is not what [`Example`] says, or loss or gradient are not
    /// finite; the parameters are then as before.
    pub fn step(&mut self, batch: &[Example]) -> Result<StepReport, Error> {
        check::check_batch(batch, &self.config)?;
        let part = batch.len().div_ceil(self.settings.shards);
        let parts: Vec<&[Example]> = batch.chunks(part).collect();
        let this = &*self;
        let results = std::thread::scope(|scope| {
            let running: Vec<_> =
                parts.iter().map(|part| scope.spawn(move || gradients::of_part(this, part))).collect();
            running.into_iter().map(std::thread::ScopedJoinHandle::join).collect::<Vec<_>>()
        });
        let (mut loss, mut sum) = (0.0, Vec::new());
        for result in results {
            let (part_loss, part_sum) = match result {
                Ok(result) => result?,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            loss += part_loss;
            if sum.is_empty() {
                sum = part_sum;
            } else {
                for (all, one) in sum.iter_mut().flatten().zip(part_sum.iter().flatten()) {
                    *all += one;
                }
            }
        }
        let n = batch.len() as f64;
        let loss = loss / n;
        let square: f64 = sum.iter().flatten().map(|&g: &f32| f64::from(g).powi(2)).sum();
        let grad_norm = square.sqrt() / n;
        if !loss.is_finite() || !grad_norm.is_finite() {
            return Err(Error::Train { problem: TrainProblem::Diverged { step: self.steps_done, loss, grad_norm } });
        }
        let cut = (self.settings.max_grad_norm / grad_norm).min(1.0);
        let learning_rate = self.settings.schedule.learning_rate(self.steps_done);
        self.steps_done += 1;
        for (parameter, gradient) in self.parameters.iter_mut().zip(&sum) {
            let factor = (cut / n) as f32;
            self.settings.optimizer.update(parameter, gradient, factor, learning_rate, self.steps_done);
        }
        Ok(StepReport { loss, grad_norm, learning_rate })
    }
}
