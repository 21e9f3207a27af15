use std::error::Error as StdError;

use serde_json::{Value, json};

use crate::{Judge, JudgeError, Request, Rounds, Score, verdict::Calibration};

/// A fitted map from a judge's value to the human scale, with an interval.
///
/// Any function from a value to a [`Calibration`], or an error of its own, is one; `judge_metrics::calibration` fits such maps.
pub trait Calibrator: Send + Sync {
    /// What people would say of an item with this value, a finite number. It depends on nothing else.
    ///
    /// # Errors
    /// The calibrator's own, which ends the run. For `?` in a function of `Box<dyn Error>`: `.map_err(|error| error as Box<dyn Error>)`.
    fn calibrate(&self, value: f64) -> Result<Calibration, Box<dyn StdError + Send + Sync>>;
}

impl<E, F> Calibrator for F
where
    E: Into<Box<dyn StdError + Send + Sync>>,
    F: Fn(f64) -> Result<Calibration, E> + Send + Sync,
{
    fn calibrate(&self, value: f64) -> Result<Calibration, Box<dyn StdError + Send + Sync>> {
        self(value).map_err(Into::into)
    }
}

/// A judge whose scores carry what a fitted calibrator makes of them. The value itself stays the judge's own.
#[derive(Clone, Debug)]
pub struct Calibrated<J, C> {
    judge: J,
    calibrator: C,
    settings: Option<Value>,
}

impl<J, C> Calibrated<J, C> {
    /// Attaches a calibrator that was fitted on values of this judge.
    pub fn new(judge: J, calibrator: C) -> Self {
        Self { judge, calibrator, settings: None }
    }

    /// The same judge, which says in its [settings](Judge::settings) which calibrator it has:
    /// anything that another one would not be called, such as its
    /// parameters or the hash of its file. A function does not say by itself what it computes.
    #[must_use]
    pub fn with_settings(self, calibrator: impl Into<Value>) -> Self {
        Self { settings: Some(calibrator.into()), ..self }
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

    fn settings(&self) -> Option<Value> {
        let calibrator = self.settings.as_ref()?;
        Some(json!({"judge": "calibrated", "member": self.judge.settings()?, "calibrator": calibrator}))
    }
}
