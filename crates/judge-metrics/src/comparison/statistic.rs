//! What a report says of a statistic: an estimate with its interval and p-value, or why there is none.

use std::fmt;

use crate::resampling::BootstrapInterval;
use crate::{Error, Estimate, Interval};

/// A statistic, or why the data do not define it.
///
/// With the feature `serde` it is written as `{"estimate", "low", "high", "p", "method"}`, with `"p_adjusted"` where there is
/// one, or `{"undefined": reason}`, and without p-value and method by `brief`.
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
    /// Its interval; `None` where there is none, and `method` says why.
    pub interval: Option<Interval>,
    /// The chance of a value as far from 0, where a test is known that these rows allow.
    pub p: Option<f64>,
    /// The same, adjusted for the other tests that it was made with; `None` where it is one test.
    pub p_adjusted: Option<f64>,
    /// Where interval and p-value come from.
    pub method: String,
}

/// A p-value and where it comes from.
#[derive(Clone, Copy)]
pub(super) struct PValue {
    pub(super) value: f64,
    pub(super) source: &'static str,
    /// Whether it holds where rows come in clusters.
    pub(super) holds_in_clusters: bool,
}

impl PValue {
    /// Of a test that takes rows as independent.
    pub(super) fn of_rows(value: f64, source: &'static str) -> Self {
        Self { value, source, holds_in_clusters: false }
    }

    /// Of a test of whole clusters, where rows come in some.
    pub(super) fn of_clusters(value: f64, source: &'static str) -> Self {
        Self { value, source, holds_in_clusters: true }
    }
}

impl Statistic {
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
        Self { estimate, interval: None, p: None, p_adjusted: None, method }
    }

    /// With the interval of nominal coverage `level` and the p-value that the estimate knows.
    pub(super) fn new(found: &Estimate, level: f64) -> Self {
        let (interval, method) = match found.interval(level) {
            Ok(interval) => (Some(interval), found.method().unwrap_or_default().to_owned()),
            Err(error) => (None, format!("no interval: {error}")),
        };
        Self { estimate: found.estimate, interval, p: found.p_value().ok(), p_adjusted: None, method }
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
        let drawn = match found {
            Ok(drawn) => drawn,
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

    /// With the p-value of a test and its name, or without any.
    pub(super) fn tested(mut self, p: Option<PValue>) -> Self {
        self.p = p.map(|p| p.value);
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
            Self::Defined(Reported { estimate, interval: None, .. }) => write!(f, "{estimate:.digits$}"),
            Self::Defined(Reported { estimate, interval: Some(Interval { low, high, .. }), .. }) => {
                write!(f, "{estimate:.digits$} [{low:.digits$}, {high:.digits$}]")
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
    Ends {
        estimate: f64,
        low: f64,
        high: f64,
    },
    Alone {
        estimate: f64,
        no_interval: &'a str,
    },
    Undefined {
        undefined: &'a str,
    },
}

#[cfg(feature = "serde")]
impl serde::Serialize for Statistic {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let record = match self {
            Self::Defined(Reported { estimate, interval, p, p_adjusted, method }) => {
                let (low, high) = (interval.map(|interval| interval.low), interval.map(|interval| interval.high));
                Record::Whole { estimate: *estimate, low, high, p: *p, p_adjusted: *p_adjusted, method }
            }
            Self::Undefined { reason } => Record::Undefined { undefined: reason },
        };
        record.serialize(serializer)
    }
}

/// Writes a statistic without p-value and method, for `#[serde(serialize_with = "…")]`: `{"estimate", "low", "high"}`, or where there is no
/// interval `{"estimate", "no_interval": why}`, or `{"undefined": reason}`.
///
/// # Errors
///
/// Those of the serializer.
#[cfg(feature = "serde")]
pub fn brief<S: serde::Serializer>(statistic: &Statistic, serializer: S) -> Result<S::Ok, S::Error> {
    use serde::Serialize;

    let record = match statistic {
        Statistic::Defined(Reported { estimate, interval: Some(interval), .. }) => {
            Record::Ends { estimate: *estimate, low: interval.low, high: interval.high }
        }
        Statistic::Defined(Reported { estimate, interval: None, method, .. }) => {
            Record::Alone { estimate: *estimate, no_interval: method }
        }
        Statistic::Undefined { reason } => Record::Undefined { undefined: reason },
    };
    record.serialize(serializer)
}
