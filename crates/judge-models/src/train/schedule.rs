use std::f64::consts::PI;

/// The learning rate over time: a linear warm-up, then half a cosine down to a fraction of the peak.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// The highest learning rate. Positive.
    pub peak: f64,
    /// Steps until it is reached.
    pub warmup: u64,
    /// Steps of the whole run; afterwards the rate stays at its lowest.
    pub steps: u64,
    /// The lowest rate as a fraction of the peak, in [0, 1].
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
