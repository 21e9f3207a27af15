//! A whole run: step after step, with checkpoints, and a callback that looks at what was learnt.
//!
//! Batches are asked for by their number, so whoever makes them needs no state: a resumed run asks for those
//! that are left.

use std::ops::ControlFlow;
use std::path::Path;

use super::error::TrainError;
use super::loss::Loss;
use super::step::StepReport;
use super::trainer::Trainer;

/// How a run is kept and looked at.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The file that keeps the run's state, from the beginning on; a run that finds one there resumes. `None`: it is
    /// not kept.
    pub checkpoint: Option<&'a Path>,
    /// Steps between checkpoints. One is written at the end too, and where the run is stopped or a step fails.
    /// At least 1.
    pub every: u64,
}

/// What happens in a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RunEvent {
    /// A step was taken.
    Step(StepReport),
    /// A checkpoint is about to be written: the time to evaluate.
    Checkpoint,
}

impl<L: Loss> Trainer<L> {
    /// Takes the steps of [`Schedule::steps`](super::Schedule::steps) that are left. `batch` gives the examples of
    /// a step by the number of steps before it. `observe` is told what happens; [`ControlFlow::Break`] stops the
    /// run, which can be resumed.
    ///
    /// # Errors
    /// Those of `batch` and `observe`, and those of [`step`](Self::step), [`save`](Self::save) and
    /// [`resume`](Self::resume). A step that fails changes nothing, and the checkpoint has the state before it. Where
    /// `observe` fails, the checkpoint stays as it was, so a resumed run comes to the same event again.
    pub fn run<E: From<TrainError>>(
        &mut self,
        run: &Run<'_>,
        mut batch: impl FnMut(u64) -> Result<Vec<L::Example>, E>,
        mut observe: impl FnMut(&Self, RunEvent) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        if run.every == 0 {
            return Err(TrainError::setting("run.every", 0, "at least 1").into());
        }
        match run.checkpoint {
            Some(path) if path.is_file() => self.resume(path)?,
            // From here on a run that is killed resumes.
            Some(path) => self.save(path)?,
            None => {}
        }
        let save = |trainer: &Self| run.checkpoint.map_or(Ok(()), |path| trainer.save(path));
        let steps = self.settings.schedule.steps;
        while self.steps_done < steps {
            let taken = batch(self.steps_done).and_then(|examples| Ok(self.step(&examples)?));
            if taken.is_err() {
                // It changed nothing, so the state is worth keeping; what failed is said either way.
                let _ = save(self);
            }
            let mut flow = observe(self, RunEvent::Step(taken?))?;
            let is_due = self.steps_done.is_multiple_of(run.every) || self.steps_done == steps;
            // Also of a run that is stopped here, which resumes behind this checkpoint.
            if is_due && observe(self, RunEvent::Checkpoint)?.is_break() {
                flow = ControlFlow::Break(());
            }
            if is_due || flow.is_break() {
                save(self)?;
            }
            if flow.is_break() {
                break;
            }
        }
        Ok(())
    }
}
