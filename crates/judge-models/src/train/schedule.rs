//! The learning rate over time: a pure function of the steps done, so a resumed run needs nothing
//! more.

use std::f64::consts::PI;

use serde::Serialize;

/// The learning rate over time: half a cosine over the whole run, down to a fraction of the peak,
/// times a linear warm-up.
///
/// ```text
/// warm(done) = min((done + 1) / warmup, 1)
/// rate(done) = peak * warm * (floor + (1 - floor) * (1 + cos(π * min(done / steps, 1))) / 2)
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Schedule {
    /// The rate from which the cosine falls. It falls during the warm-up too, so the highest rate
    /// is a little lower. Positive; by default 3e-3.
    pub peak: f64,
    /// Steps of the warm-up, by default 100; 0 for none.
    pub warmup: u64,
    /// Steps of the whole run, by default 2,000; afterwards the rate stays at its lowest.
    pub steps: u64,
    /// The lowest rate as a fraction of the peak, in [0, 1]. By default 0.05.
    pub floor: f64,
}

impl Default for Schedule {
    fn default() -> Self {
        Self { peak: 3e-3, warmup: 100, steps: 2_000, floor: 0.05 }
    }
}

impl Schedule {
    /// The rate of the step that follows `done` steps.
    #[must_use]
    pub fn learning_rate(&self, done: u64) -> f64 {
        let warm = if done < self.warmup { (done + 1) as f64 / self.warmup as f64 } else { 1.0 };
        let part = (done as f64 / self.steps.max(1) as f64).min(1.0);
        self.peak * warm * (self.floor + (1.0 - self.floor) * 0.5 * (1.0 + (PI * part).cos()))
    }
}
