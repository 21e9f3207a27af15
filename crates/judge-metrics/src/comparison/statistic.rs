//! What a report says of a statistic: an estimate with its interval and p-value, or why there is none.

use std::fmt;

use crate::input::in_range;
use crate::number::decimals;
use crate::resampling::BootstrapInterval;
use crate::{Error, Estimate, Interval};

/// A statistic, or why the data do not define it.
///
/// Where rows do not vary there is no interval, the method begins with [`NO_VARIATION`], and [`Reported::low`] and [`Reported::high`] are
/// the estimate.
///
/// With the feature `serde` it is written as `{"estimate", "low", "high", "p", "method"}`, with `"p_adjusted"` where there is
/// one, or `{"undefined": reason}`, and without the p-value by `brief`.
#[derive(Debug, Clone, PartialEq)]
pub enum Statistic {
    /// It is defined.
    Defined(Reported),
    /// It is not, e.g. because all scores are equal.
    Undefined {
        /// Why.
        reason: String,
    },
}

/// What a report says of a statistic.
#[derive(Debug, Clone, PartialEq)]
pub struct Reported {
    /// On the rows as they are.
    pub estimate: f64,
    /// Its interval; `None` where there is none, and `method` says why. Its ends are asked for by [`low`](Self::low) and
    /// [`high`](Self::high), which know the case without variation too.
    pub interval: Option<Interval>,
    /// Whether the statistic is the same whichever rows are drawn, of six rows or clusters or more: there is no interval then, `method`
    /// begins with [`NO_VARIATION`], and the estimate is the only bound.
    pub no_variation: bool,
    /// The chance of a value as far from 0, where a test is known that these rows allow.
    pub p: Option<f64>,
    /// Whether that is the least that the random permutations of the test can show, so that the chance itself may be smaller.
    pub p_at_most: bool,
    /// The same, adjusted for the other tests that it was made with; `None` where it is one test.
    pub p_adjusted: Option<f64>,
    /// Where interval and p-value come from.
    pub method: String,
}

/// How `method` begins where rows do not vary, as where two runs are equal or a judge is off by the same amount on each row.
pub const NO_VARIATION: &str = "no variation";

/// A p-value and where it comes from.
#[derive(Clone, Copy)]
pub(super) struct PValue {
    pub(super) value: f64,
    pub(super) source: &'static str,
    /// Whether it is the least that so many random orders can show: it may be smaller.
    pub(super) is_bound: bool,
    /// Whether it holds where rows come in clusters.
    pub(super) holds_in_clusters: bool,
}

impl PValue {
    /// Of a test that takes rows as independent.
    pub(super) fn of_rows(value: f64, source: &'static str) -> Self {
        Self { value, source, is_bound: false, holds_in_clusters: false }
    }

    /// Of a test of whole clusters, where rows come in some.
    pub(super) fn of_clusters(value: f64, source: &'static str) -> Self {
        Self { value, source, is_bound: false, holds_in_clusters: true }
    }
}

impl Statistic {
    /// A mean over clusters, or why it is undefined. Where all rows are of one cluster the mean itself is defined: it is `mean`.
    pub fn of_clusters(found: Result<Estimate, Error>, mean: f64, level: f64) -> Self {
        match found {
            Err(Error::TooFewItems { found: 1, .. } | Error::TooFewClusters { found: 1, .. }) => {
                Self::Defined(Reported::of_one_cluster(mean))
            }
            found => Self::estimated(found, level),
        }
    }

    /// An estimate, with its interval of nominal coverage `level` and its p-value, or why it is undefined.
    pub fn estimated(found: Result<Estimate, Error>, level: f64) -> Self {
        match found {
            Ok(found) => Self::Defined(Reported::new(&found, level)),
            Err(error) => Self::Undefined { reason: error.to_string() },
        }
    }
}

impl Reported {
    /// Without interval and p-value; `method` says why.
    pub fn alone(estimate: f64, method: String) -> Self {
        Self { estimate, interval: None, no_variation: false, p: None, p_at_most: false, p_adjusted: None, method }
    }

    pub(super) fn of_one_cluster(estimate: f64) -> Self {
        let method = "no interval: all rows belong to one cluster, which does not show how much it varies";
        Self::alone(estimate, method.to_owned())
    }

    /// Of rows that do not vary.
    pub(super) fn without_variation(estimate: f64) -> Self {
        Self { no_variation: true, ..Self::alone(estimate, NO_VARIATION.to_owned()) }
    }

    /// The low end of the interval, or the estimate where rows do not vary; `None` where nothing bounds it.
    pub fn low(&self) -> Option<f64> {
        self.end(|interval| interval.low)
    }

    /// The high end likewise.
    pub fn high(&self) -> Option<f64> {
        self.end(|interval| interval.high)
    }

    fn end(&self, of: impl Fn(&Interval) -> f64) -> Option<f64> {
        self.interval.as_ref().map(of).or(self.no_variation.then_some(self.estimate))
    }

    /// With the interval of nominal coverage `level` and the p-value that the estimate knows.
    pub(super) fn new(found: &Estimate, level: f64) -> Self {
        let known = match found.interval(level) {
            Ok(interval) => {
                let method = found.method().unwrap_or_default().to_owned();
                Self { interval: Some(interval), ..Self::alone(found.estimate, method) }
            }
            Err(Error::NoVariation { .. }) => Self::without_variation(found.estimate),
            Err(error) => Self::alone(found.estimate, format!("no interval: {error}")),
        };
        Self { p: found.p_value().ok(), ..known }
    }

    /// What resamples found, drawn as `what` says. The statistic, which `estimate` computes, may be defined where its interval is not;
    /// `method` then says why.
    ///
    /// A percentile interval that does not hold the estimate shows that resamples are biased by more than they vary (as a calibration
    /// error's are, upwards): it says nothing about the statistic.
    pub(super) fn drawn(
        found: Result<BootstrapInterval, Error>,
        what: &str,
        estimate: impl FnOnce() -> Result<f64, Error>,
    ) -> Result<Self, Error> {
        let alone = |estimate, why: String| Self::alone(estimate, format!("no interval: {why}"));
        // No report has a NaN for a number.
        let estimate = || in_range("the statistic", estimate()?);
        let drawn = match found {
            Ok(drawn) => drawn,
            Err(Error::NoVariation { .. }) => return Ok(Self::without_variation(estimate()?)),
            Err(error) if error.is_undefined() => return Ok(alone(estimate()?, error.to_string())),
            Err(error) => return Err(error),
        };
        let Interval { low, high, .. } = drawn.interval;
        // Rounding alone may part an end from the estimate.
        let slack = 1e-12 * drawn.estimate.abs();
        if drawn.estimate < low - slack || drawn.estimate > high + slack {
            let why = format!("that of the {what} misses the estimate, so resamples are biased");
            return Ok(alone(drawn.estimate, why));
        }
        let interval = Interval { low: low.min(drawn.estimate), high: high.max(drawn.estimate), ..drawn.interval };
        let method = match drawn.undefined {
            0 => what.to_owned(),
            undefined => format!("{what}; undefined in {undefined} of {}", drawn.resamples),
        };
        Ok(Self { interval: Some(interval), ..Self::alone(drawn.estimate, method) })
    }

    /// With another name of how its interval was made, where it has one.
    pub(super) fn by(mut self, method: &str) -> Self {
        if self.interval.is_some() {
            method.clone_into(&mut self.method);
        }
        self
    }

    /// With the p-value of a test and its name, or without any.
    pub(super) fn tested(mut self, p: Option<PValue>) -> Self {
        self.p = p.map(|p| p.value);
        self.p_at_most = p.is_some_and(|p| p.is_bound);
        if let Some(p) = p {
            self.method = format!("{}; p: {}", self.method, p.source);
        }
        self
    }
}

impl Statistic {
    /// A bootstrap interval. Where resamples give no interval, the statistic alone, which `estimate` computes.
    ///
    /// # Errors
    ///
    /// Those that do not mean that the data leave it undefined.
    pub fn of(
        found: Result<BootstrapInterval, Error>,
        estimate: impl FnOnce() -> Result<f64, Error>,
    ) -> Result<Self, Error> {
        match Reported::drawn(found, "bootstrap", estimate) {
            Ok(found) => Ok(Self::Defined(found)),
            Err(error) if error.is_undefined() || matches!(error, Error::TooFewItems { .. }) => {
                Ok(Self::Undefined { reason: error.to_string() })
            }
            Err(error) => Err(error),
        }
    }

    /// The estimate, where there is one.
    pub fn estimate(&self) -> Option<f64> {
        self.defined().map(|known| known.estimate)
    }

    /// The interval, where there is one.
    pub fn interval(&self) -> Option<Interval> {
        self.defined().and_then(|known| known.interval)
    }

    /// Everything that is reported of it, where it is defined.
    pub fn defined(&self) -> Option<&Reported> {
        match self {
            Self::Defined(known) => Some(known),
            Self::Undefined { .. } => None,
        }
    }
}

/// `0.834 [0.801, 0.860]`, with as many decimals as the precision says (3); `undefined: reason`, and in the alternate form (`{:#}`)
/// `undefined` alone.
impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(3);
        match self {
            Self::Defined(Reported { estimate, interval: None, .. }) => f.write_str(&decimals(*estimate, digits)),
            Self::Defined(Reported { estimate, interval: Some(Interval { low, high, .. }), .. }) => {
                let [estimate, low, high] = [estimate, low, high].map(|x| decimals(*x, digits));
                write!(f, "{estimate} [{low}, {high}]")
            }
            Self::Undefined { .. } if f.alternate() => f.write_str("undefined"),
            Self::Undefined { reason } => write!(f, "undefined: {reason}"),
        }
    }
}

/// A statistic as it is written.
#[cfg(feature = "serde")]
#[derive(serde::Serialize)]
#[serde(untagged)]
enum Record<'a> {
    Whole {
        estimate: f64,
        low: Option<f64>,
        high: Option<f64>,
        p: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        p_adjusted: Option<f64>,
        method: &'a str,
    },
    Brief {
        estimate: f64,
        low: Option<f64>,
        high: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        method: Option<&'a str>,
    },
    Undefined {
        undefined: &'a str,
    },
}

#[cfg(feature = "serde")]
impl serde::Serialize for Statistic {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let record = match self {
            Self::Defined(Reported { estimate, interval, p, p_adjusted, method, .. }) => {
                let (low, high) = (interval.map(|interval| interval.low), interval.map(|interval| interval.high));
                Record::Whole { estimate: *estimate, low, high, p: *p, p_adjusted: *p_adjusted, method }
            }
            Self::Undefined { reason } => Record::Undefined { undefined: reason },
        };
        record.serialize(serializer)
    }
}

/// Writes a statistic without its p-value, for `#[serde(serialize_with = "…")]`: `{"estimate", "low", "high"}`, with `"method"` where there
/// is no interval, which says why, or `{"undefined": reason}`.
///
/// # Errors
///
/// Those of the serializer.
#[cfg(feature = "serde")]
pub fn brief<S: serde::Serializer>(statistic: &Statistic, serializer: S) -> Result<S::Ok, S::Error> {
    use serde::Serialize;

    let record = match statistic {
        Statistic::Defined(Reported { estimate, interval, method, .. }) => Record::Brief {
            estimate: *estimate,
            low: interval.map(|interval| interval.low),
            high: interval.map(|interval| interval.high),
            method: interval.is_none().then_some(method),
        },
        Statistic::Undefined { reason } => Record::Undefined { undefined: reason },
    };
    record.serialize(serializer)
}
