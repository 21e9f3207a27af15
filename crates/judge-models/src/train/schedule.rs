//! The learning rate over time: a pure function of the steps done, so a resumed run needs nothing
//! more.

use std::f64::consts::PI;

use serde::Serialize;

/// The learning rate over time: what `course` makes of the peak.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Schedule {
    /// The highest rate. Positive; by default 2e-4.
    pub peak: f64,
    /// Steps of the warm-up, by default 0. Not more than `steps`.
    pub warmup: u64,
    /// Steps of the whole run, at least 1. By default 1,000.
    pub steps: u64,
    /// How the rate falls. By default [`Course::Cosine`].
    pub course: Course,
}

/// How a learning rate rises and falls. `done` are the steps taken before.
///
/// In all but [`Eased`](Self::Eased) the warm-up is `done / warmup`, as in transformers: the first step of a
/// run with a warm-up has rate 0. After it `part = (done - warmup) / (steps - warmup)`, at most 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Course {
    /// The peak: `get_constant_schedule_with_warmup`.
    Constant,
    /// `peak * (1 - part)`: `get_linear_schedule_with_warmup`.
    Linear,
    /// `peak * (1 + cos(π * part)) / 2`: `get_cosine_schedule_with_warmup`.
    Cosine,
    /// For training from scratch: half a cosine over the whole run, the warm-up included, down to a
    /// fraction of the peak, with a warm-up whose first rate is not 0.
    ///
    /// ```text
    /// peak * min((done + 1) / warmup, 1) * (floor + (1 - floor) * (1 + cos(π * done / steps)) / 2)
    /// ```
    Eased {
        /// The lowest rate as a fraction of the peak, in [0, 1].
        floor: f64,
    },
}

impl Default for Schedule {
    fn default() -> Self {
        Self { peak: 2e-4, warmup: 0, steps: 1_000, course: Course::Cosine }
    }
}

impl Schedule {
    /// The rate of the step that follows `done` steps.
    #[must_use]
    pub fn learning_rate(&self, done: u64) -> f64 {
        let half_cosine = |part: f64| 0.5 * (1.0 + (PI * part).cos());
        if let Course::Eased { floor } = self.course {
            let warm = if done < self.warmup { (done + 1) as f64 / self.warmup as f64 } else { 1.0 };
            let part = (done as f64 / self.steps.max(1) as f64).min(1.0);
            return self.peak * warm * (floor + (1.0 - floor) * half_cosine(part));
        }
        if done < self.warmup {
            return self.peak * done as f64 / self.warmup as f64;
        }
        let left = self.steps.saturating_sub(self.warmup).max(1);
        let part = ((done - self.warmup) as f64 / left as f64).min(1.0);
        self.peak
            * match self.course {
                Course::Linear => 1.0 - part,
                Course::Cosine => half_cosine(part),
                Course::Constant | Course::Eased { .. } => 1.0,
            }
    }
}
