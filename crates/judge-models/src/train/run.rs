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
    /// Steps between checkpoints. One is written at the end too, and where the run is stopped or fails.
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
    /// [`resume`](Self::resume). The checkpoint then has the last state that was good.
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
        let steps = self.settings.schedule.steps;
        let result = loop {
            if self.steps_done >= steps {
                break Ok(());
            }
            let flow = match self.next(&mut batch, &mut observe) {
                Ok(flow) => flow,
                Err(error) => break Err(error),
            };
            // Also of a run that is stopped here, which resumes behind this checkpoint.
            if self.steps_done.is_multiple_of(run.every) || self.steps_done == steps {
                match observe(self, RunEvent::Checkpoint) {
                    Ok(ControlFlow::Continue(())) => {}
                    Ok(ControlFlow::Break(())) => break Ok(()),
                    Err(error) => break Err(error),
                }
                run.checkpoint.map_or(Ok(()), |path| self.save(path))?;
            }
            if flow.is_break() {
                break Ok(());
            }
        };
        // A failed step changed nothing, so its state is worth keeping; what failed is said either way.
        let kept = run.checkpoint.map_or(Ok(()), |path| self.save(path));
        result.and_then(|()| Ok(kept?))
    }

    /// One step of a run.
    fn next<E: From<TrainError>>(
        &mut self,
        batch: &mut impl FnMut(u64) -> Result<Vec<L::Example>, E>,
        observe: &mut impl FnMut(&Self, RunEvent) -> Result<ControlFlow<()>, E>,
    ) -> Result<ControlFlow<()>, E> {
        let examples = batch(self.steps_done)?;
        let report = self.step(&examples)?;
        observe(self, RunEvent::Step(report))
    }
}
