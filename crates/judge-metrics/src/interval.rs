//! An interval as results carry it: both ends and the level that was asked for.

/// A two-sided interval of a statistic.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end, at least `low`.
    pub high: f64,
    /// Nominal coverage, in (0, 1).
    pub level: f64,
}
