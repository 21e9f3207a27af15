//! One step: the loss of a batch, its gradient, and what is learnt moved against it.

use std::thread;

use super::adamw::Move;
use super::error::TrainError;
use super::gradients::{self, Sums};
use super::loss::Loss;
use super::trainer::Trainer;

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepReport {
    /// The mean loss before the step, as [`TrainSettings::mean`](super::TrainSettings::mean) divides it.
    pub loss: f64,
    /// Euclidean norm of that loss's gradient over all that is learnt, before it was scaled down.
    pub grad_norm: f64,
    /// The learning rate that was used.
    pub learning_rate: f64,
    /// What the batch counted: target tokens by their weights, or examples.
    pub count: f64,
}

impl<L: Loss> Trainer<L> {
    /// Moves what is learnt against the gradient of the batch's mean loss.
    ///
    /// # Errors
    /// If the batch is empty, an example is not what its type says, a trainable gets no gradient, or loss, gradient or what
    /// would be learnt are not finite. What is learnt is then as before.
    pub fn step(&mut self, batch: &[L::Example]) -> Result<StepReport, TrainError> {
        self.check_batch(batch)?;
        let Sums { loss, count, gradients, not_finite } = self.sums(batch)?;
        let divisor = self.divisor(count, batch.len());
        let loss = loss / divisor;
        let square: f64 = gradients.iter().flatten().map(|&g| f64::from(g).powi(2)).sum();
        let grad_norm = square.sqrt() / divisor;
        if !loss.is_finite() || !grad_norm.is_finite() {
            let (first, last) = not_finite.unwrap_or((0, batch.len() - 1));
            return Err(TrainError::Diverged { step: self.steps_done, loss, grad_norm, first, last });
        }
        // As torch has it, which does not divide by 0 either.
        let cut = self.settings.max_grad_norm.map_or(1.0, |most| (most / (grad_norm + 1e-6)).min(1.0));
        let learning_rate = self.settings.schedule.learning_rate(self.steps_done);
        let by = Move { factor: (cut / divisor) as f32, learning_rate, step: self.steps_done + 1 };
        let optimizer = &self.settings.optimizer;
        let mut all = self.trainables.iter().zip(&gradients);
        if let Some((trainable, _)) = all.find(|(trainable, gradient)| !optimizer.stays_finite(trainable, gradient, by))
        {
            let (step, parameter) = (self.steps_done, trainable.name.clone());
            return Err(TrainError::Overflow { step, learning_rate, parameter });
        }
        self.steps_done += 1;
        for (trainable, gradient) in self.trainables.iter_mut().zip(&gradients) {
            optimizer.update(trainable, gradient, by);
        }
        Ok(StepReport { loss, grad_norm, learning_rate, count })
    }

    /// Loss, count and gradients added up over micro-batches, in their order, some side by side.
    pub(super) fn sums(&self, batch: &[L::Example]) -> Result<Sums, TrainError> {
        let mut sums = Sums { loss: 0.0, count: 0.0, gradients: Vec::new(), not_finite: None };
        let parts: Vec<&[L::Example]> = batch.chunks(self.settings.micro_batch).collect();
        let at_once = self.settings.blocks_at_once;
        let mut first = 0;
        for wave in parts.chunks(self.settings.threads) {
            let results = thread::scope(|scope| {
                let of_part = |part| gradients::of_part(&self.base, &self.trainables, &self.loss, part, at_once);
                let running: Vec<_> = wave.iter().map(|&part| scope.spawn(move || of_part(part))).collect();
                running.into_iter().map(thread::ScopedJoinHandle::join).collect::<Vec<_>>()
            });
            for (result, part) in results.into_iter().zip(wave) {
                match result {
                    Ok(result) => sums.add(result?, (first, first + part.len() - 1)),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
                first += part.len();
            }
        }
        Ok(sums)
    }
}

impl Sums {
    /// Adds a micro-batch of the examples from one place to another.
    fn add(&mut self, part: Self, places: (usize, usize)) {
        if self.not_finite.is_none() {
            let is_finite = part.loss.is_finite() && part.gradients.iter().flatten().all(|x| x.is_finite());
            self.not_finite = (!is_finite).then_some(places);
        }
        self.loss += part.loss;
        self.count += part.count;
        if self.gradients.is_empty() {
            self.gradients = part.gradients;
            return;
        }
        for (all, one) in self.gradients.iter_mut().flatten().zip(part.gradients.iter().flatten()) {
            *all += one;
        }
    }
}
