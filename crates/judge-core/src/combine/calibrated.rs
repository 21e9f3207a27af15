use std::error::Error as StdError;

use crate::{Calibration, Judge, JudgeError, Request, Rounds, Score};

/// A fitted map from a judge's value to the human scale, with an interval.
///
/// Any function from a value to a [`Calibration`], or an error of its own, is one; `judge_metrics::calibration` fits such maps.
pub trait Calibrator {
    /// What people would say of an item with this value, a finite number. It depends on nothing else.
    ///
    /// # Errors
    /// The calibrator's own, which ends the run.
    fn calibrate(&self, value: f64) -> Result<Calibration, Box<dyn StdError + Send + Sync>>;
}

impl<E: Into<Box<dyn StdError + Send + Sync>>, F: Fn(f64) -> Result<Calibration, E>> Calibrator for F {
    fn calibrate(&self, value: f64) -> Result<Calibration, Box<dyn StdError + Send + Sync>> {
        self(value).map_err(Into::into)
    }
}

/// A judge whose scores carry what a fitted calibrator makes of them. The value itself stays the judge's own.
#[derive(Clone, Debug)]
pub struct Calibrated<J, C> {
    judge: J,
    calibrator: C,
}

impl<J, C> Calibrated<J, C> {
    /// Attaches a calibrator that was fitted on values of this judge.
    pub fn new(judge: J, calibrator: C) -> Self {
        Self { judge, calibrator }
    }
}

impl<Item: ?Sized, J: Judge<Item>, C: Calibrator> Judge<Item> for Calibrated<J, C> {
    fn name(&self) -> &str {
        self.judge.name()
    }

    fn ask(&self, item: &Item) -> Result<Vec<Request>, JudgeError> {
        self.judge.ask(item)
    }

    fn follow_up(&self, item: &Item, rounds: &Rounds<'_>) -> Result<Vec<Request>, JudgeError> {
        self.judge.follow_up(item, rounds)
    }

    fn decide(&self, item: &Item, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        let score = self.judge.decide(item, rounds)?.finite()?;
        let found = self.calibrator.calibrate(score.value).map_err(JudgeError::Failed)?;
        Ok(Score { calibrated: Some(found), ..score })
    }
}
