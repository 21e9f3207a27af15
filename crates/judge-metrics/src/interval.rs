mod bootstrap;
mod fisher;

pub use bootstrap::{Bootstrap, BootstrapInterval};
pub use fisher::fisher_interval;

/// A two-sided confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end, at least `low`.
    pub high: f64,
    /// Nominal coverage, in (0, 1).
    pub level: f64,
}
