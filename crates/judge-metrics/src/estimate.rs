//! One type for everything that is estimated: its value, its standard error, its interval and its test, as far as each is known.
//!
//! Methods differ in how an interval is made, not in what a caller does with it: how is the private `Spread`, one variant to a method. What
//! is not known is a reason, kept where the number would be, so that no caller meets a NaN.

use crate::agreement::McGrawWong;
use crate::correlation::{is_perfect, on_fisher_scale};
use crate::distribution::{normal_tail, normal_two_sided_quantile, student_t_quantile, student_t_tail};
use crate::input::{check_level, in_range};
use crate::{Error, Interval, Proportion};

/// A statistic of a sample, how sure it is, and whether it could be chance.
///
/// Every statistic of this crate for which a standard error, an interval or a test is known comes as this type. What is not known of one is
/// an error that says why, and mostly that resampling will do: [`Bootstrap`](crate::resampling::Bootstrap) for an interval,
/// [`PermutationTest`](crate::resampling::PermutationTest) for a test. All of it takes items as independent, unless the statistic's own
/// documentation says otherwise.
///
/// ```
/// use judge_metrics::correlation::spearman;
///
/// let rho = spearman(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2.0, 1.0, 3.0, 5.0, 4.0, 6.0])?;
/// assert!((rho.estimate - 0.885_714).abs() < 1e-6 && (rho.p_value()? - 0.018_845).abs() < 1e-6);
/// let interval = rho.interval(0.95)?;
/// assert!(interval.low < rho.estimate && rho.estimate < interval.high);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The statistic of the items given. Finite as it comes from this crate.
    pub estimate: f64,
    /// Number of items it is made of.
    pub n: usize,
    /// What it is called in errors.
    statistic: &'static str,
    standard_error: Result<f64, Missing>,
    interval: Result<Spread, Missing>,
    test: Result<Test, Missing>,
}

/// Why something is not known of a statistic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Missing {
    /// It takes more items.
    TooFewItems { required: usize, found: usize },
    /// As a sentence without its end.
    Because(&'static str),
    /// It is the same whichever items are drawn, of [`ENOUGH_UNITS`] or more.
    NoVariation,
}

/// How an interval is made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Spread {
    /// estimate ∓ z · standard error, cut off at the ends of the statistic's range.
    Normal { range: [f64; 2] },
    /// estimate ∓ t · standard error, cut off likewise.
    StudentT { degrees_of_freedom: f64, range: [f64; 2] },
    /// logit estimate ∓ z · standard error / (estimate (1 − estimate)), turned back.
    Logit,
    /// ln estimate ∓ t · standard error / estimate, turned back, of an estimate above 0; cut off at the least that it can be.
    Log { degrees_of_freedom: f64, least: f64 },
    /// tanh(atanh estimate ∓ z √(scale / (n − lost))).
    Fisher { n: usize, scale: f64, lost: usize },
    /// tanh(atanh estimate ∓ z · standard error / (1 − estimate²)).
    FisherOfError,
    /// Of a share.
    Wilson(Proportion),
    /// Of a share that a judge counted whose errors are known from these shares.
    Misclassified { judged: Proportion, sensitivity: Proportion, specificity: Proportion },
    /// Of a difference of shares with this correlation.
    Newcombe([Proportion; 2], f64),
    /// Of an intraclass correlation.
    McGrawWong(McGrawWong),
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Test {
    p_value: f64,
    null_distribution: NullDistribution,
}

/// Where a p-value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum NullDistribution {
    /// Beta on (-1, 1) with a = b = n/2 − 1, or (n − k)/2 − 1 with k covariates: exact for Pearson correlations of normal samples.
    Beta,
    /// Student's t; for correlations with n − 2 degrees of freedom, n − k − 2 with k covariates: an approximation for rank correlations.
    StudentT,
    /// All n! orders equally likely: exact for ranks without ties.
    Permutation,
    /// Standard normal, an approximation for large n; for correlations with the variance corrected for ties.
    Normal,
    /// Fisher's F, one-sided: exact for intraclass correlations of normal ratings.
    F,
}

pub(crate) const UNBOUNDED: [f64; 2] = [f64::NEG_INFINITY, f64::INFINITY];
/// Of losses and errors.
pub(crate) const NOT_NEGATIVE: [f64; 2] = [0.0, f64::INFINITY];
/// Of shares and probabilities.
pub(crate) const SHARE: [f64; 2] = [0.0, 1.0];

/// So many items or clusters show whether a statistic varies. Fewer neither make a bootstrap interval nor say that there is no variation.
pub(crate) const ENOUGH_UNITS: usize = 6;

/// Why a standard error of 0 makes no interval of fewer.
const NO_SPREAD: Missing = Missing::Because("fewer than six items or clusters do not show whether it varies");

impl Spread {
    /// The largest standard error that may be rounding alone: relative to the scale of a statistic that has one, and to the estimate.
    fn rounding(self, estimate: f64) -> f64 {
        match self {
            Self::Logit | Self::FisherOfError => 1e-12,
            Self::Normal { range: [_, most] } | Self::StudentT { range: [_, most], .. } if most.is_finite() => {
                1e-12 * most.abs()
            }
            _ => 1e-14 * estimate.abs(),
        }
    }
}

impl Estimate {
    /// Nothing is known of it but its value. Undefined where the arithmetic left no finite number: no estimate is NaN.
    pub(crate) fn new(statistic: &'static str, estimate: f64, n: usize) -> Result<Self, Error> {
        let estimate = in_range(statistic, estimate)?;
        let no_error = Missing::Because("no standard error is known in closed form: take a bootstrap");
        let no_interval = Missing::Because("no interval is known in closed form: take a bootstrap");
        let no_test = Missing::Because("no test is known in closed form: take a permutation test");
        Ok(Self {
            estimate,
            n,
            statistic,
            standard_error: Err(no_error),
            interval: Err(no_interval),
            test: Err(no_test),
        })
    }

    /// With a standard error, and the interval that goes with it. Where the error is 0, but for rounding, there is no interval: one of no
    /// width would look like certainty, and says only that these items do not vary.
    pub(crate) fn with_error(self, standard_error: f64, interval: Spread) -> Self {
        self.with_error_of(self.n, standard_error, interval)
    }

    /// The same of so many units, each an item or a cluster of them, that vary independently.
    pub(crate) fn with_error_of(self, units: usize, standard_error: f64, interval: Spread) -> Self {
        if standard_error.is_nan() {
            self.without_error(Missing::Because("the arithmetic of its standard error leaves no number"))
        } else if standard_error > interval.rounding(self.estimate) {
            Self { standard_error: Ok(standard_error), interval: Ok(interval), ..self }
        } else {
            Self { standard_error: Ok(0.0), ..self }.without_variation(units)
        }
    }

    /// Only the interval: no standard error on the statistic's own scale goes with it. A perfect correlation has none on Fisher's scale.
    pub(crate) fn with_interval(self, interval: Spread) -> Self {
        match interval {
            Spread::Fisher { .. } if is_perfect(self.estimate) => self.without_variation(self.n),
            _ => Self { interval: Ok(interval), ..self },
        }
    }

    /// Its interval cut off at the ends of a range that the statistic cannot leave. Of what cannot be below 0, such as a share, nobody asks
    /// whether it is 0 but for chance: it has no test.
    #[must_use]
    pub fn within(mut self, range: [f64; 2]) -> Self {
        if let Ok(Spread::Normal { range: ends } | Spread::StudentT { range: ends, .. }) = &mut self.interval {
            *ends = range;
        }
        if range[0] < 0.0 || self.test.is_err() {
            return self;
        }
        self.untested(Missing::Because("what cannot be below 0 is not tested for 0"))
    }

    pub(crate) const fn without_error(self, missing: Missing) -> Self {
        Self { standard_error: Err(missing), interval: Err(missing), ..self }
    }

    pub(crate) const fn without_interval(self, reason: &'static str) -> Self {
        Self { interval: Err(Missing::Because(reason)), ..self }
    }

    /// Without an interval, since it would be the same whichever of so many units were drawn.
    pub(crate) const fn without_variation(self, units: usize) -> Self {
        Self { interval: Err(if units < ENOUGH_UNITS { NO_SPREAD } else { Missing::NoVariation }), ..self }
    }

    /// With the p-value of a test; without one where its arithmetic is 0/0, as where an estimate of 0 cannot vary under the hypothesis
    /// either.
    pub(crate) const fn tested(self, p_value: f64, null_distribution: NullDistribution) -> Self {
        if p_value.is_nan() {
            return self.untested(Missing::Because("these items cannot vary under the hypothesis"));
        }
        Self { test: Ok(Test { p_value, null_distribution }), ..self }
    }

    /// Tested for 0 by its standard error, with the distribution of its interval; `certain` is why there is no test where the standard
    /// error is 0. Without a standard error it has no test for the same reason.
    pub(crate) fn tested_against_zero(self, certain: &'static str) -> Self {
        let error = match self.standard_error {
            Ok(0.0) => return self.untested(Missing::Because(certain)),
            Ok(error) => error,
            Err(missing) => return self.untested(missing),
        };
        let ratio = self.estimate / error;
        match self.interval {
            Ok(Spread::StudentT { degrees_of_freedom, .. }) => {
                self.tested(student_t_tail(ratio, degrees_of_freedom), NullDistribution::StudentT)
            }
            _ => self.tested(normal_tail(ratio), NullDistribution::Normal),
        }
    }

    pub(crate) const fn untested(self, missing: Missing) -> Self {
        Self { test: Err(missing), ..self }
    }

    /// The standard error, in the unit of the estimate. At least 0.
    ///
    /// # Errors
    ///
    /// [`Error::TooFewItems`], [`Error::Undefined`] where none is known.
    pub fn standard_error(&self) -> Result<f64, Error> {
        self.standard_error.map_err(|missing| self.error(missing))
    }

    /// The interval of nominal coverage `level` in (0, 1), two-sided with equal tails, by the method that the statistic's documentation
    /// names. Where the standard error is 0 or a correlation is perfect there is none.
    ///
    /// # Errors
    ///
    /// [`Error::LevelOutOfRange`]; [`Error::NoVariation`] where the standard error is 0 or a correlation is perfect, of six items or more;
    /// [`Error::TooFewItems`], [`Error::Undefined`] where none is known, and where an end exceeds the largest finite number.
    pub fn interval(&self, level: f64) -> Result<Interval, Error> {
        check_level(level)?;
        let spread = self.interval.map_err(|missing| self.error(missing))?;
        let around = |half: f64, [least, most]: [f64; 2]| {
            let end = |end| in_range(self.statistic, end);
            // The estimate may lie beyond its range by a rounding error: cut off without passing it.
            let low = end(self.estimate - half)?.max(least.min(self.estimate));
            Ok(Interval { low, high: end(self.estimate + half)?.min(most.max(self.estimate)), level })
        };
        let z = || normal_two_sided_quantile(level);
        match spread {
            Spread::Normal { range } => around(z() * self.standard_error()?, range),
            Spread::StudentT { degrees_of_freedom, range } => {
                let t = student_t_quantile(0.5 + level / 2.0, degrees_of_freedom);
                around(t * self.standard_error()?, range)
            }
            Spread::Logit => {
                let (share, rest) = (self.estimate, 1.0 - self.estimate);
                let odds_ratio = (z() * self.standard_error()? / share / rest).exp();
                let (low, high) = (share / (share + rest * odds_ratio), share / (share + rest / odds_ratio));
                Ok(Interval { low, high, level })
            }
            Spread::Log { degrees_of_freedom, least } => {
                let t = student_t_quantile(0.5 + level / 2.0, degrees_of_freedom);
                let ratio = (t * self.standard_error()? / self.estimate).exp();
                let high = in_range(self.statistic, self.estimate * ratio)?;
                // As above: the estimate itself may be below the least by a rounding error.
                Ok(Interval { low: (self.estimate / ratio).max(least.min(self.estimate)), high, level })
            }
            Spread::Fisher { n, scale, lost } => on_fisher_scale(self.estimate, n, level, scale, lost),
            Spread::FisherOfError => {
                let half = z() * self.standard_error()? / (1.0 - self.estimate * self.estimate);
                let centre = self.estimate.atanh();
                Ok(Interval { low: (centre - half).tanh(), high: (centre + half).tanh(), level })
            }
            Spread::Wilson(share) => share.wilson(level),
            Spread::Misclassified { judged, sensitivity, specificity } => {
                let interval = Proportion::lang_reiczigel(judged, [sensitivity, specificity], level)?;
                Ok(Interval { low: interval.low.min(self.estimate), high: interval.high.max(self.estimate), level })
            }
            Spread::Newcombe(shares, correlation) => Proportion::newcombe(shares, correlation, level),
            Spread::McGrawWong(squares) => squares.interval(level),
        }
    }

    /// Two-sided p-value of the hypothesis that it is 0 but for chance, or ½ where ½ is what chance gives; one-sided for
    /// [`NullDistribution::F`]. In [0, 1].
    ///
    /// # Errors
    ///
    /// [`Error::TooFewItems`], [`Error::Undefined`] where no test is known.
    pub fn p_value(&self) -> Result<f64, Error> {
        self.test.map(|test| test.p_value).map_err(|missing| self.error(missing))
    }

    /// The distribution the p-value comes from, where there is one.
    pub fn null_distribution(&self) -> Option<NullDistribution> {
        self.test.ok().map(|test| test.null_distribution)
    }

    /// How the interval is made, in a word or two for a report; `None` where there is none.
    pub fn method(&self) -> Option<&'static str> {
        self.interval.ok().map(|spread| match spread {
            Spread::Normal { .. } => "large sample",
            Spread::StudentT { .. } => "Student t",
            Spread::Logit => "large sample, logit",
            Spread::Log { .. } => "Student t, logarithm",
            Spread::Fisher { .. } | Spread::FisherOfError => "Fisher",
            Spread::Wilson(_) => "Wilson",
            Spread::Misclassified { .. } => "Lang and Reiczigel",
            Spread::Newcombe(..) => "Newcombe",
            Spread::McGrawWong(_) => "F",
        })
    }

    fn error(&self, missing: Missing) -> Error {
        match missing {
            Missing::TooFewItems { required, found } => Error::TooFewItems { required, found },
            Missing::Because(reason) => Error::Undefined { statistic: self.statistic, reason },
            Missing::NoVariation => Error::NoVariation { statistic: self.statistic },
        }
    }
}

/// A record of `estimate`, `n`, `standard_error` and `p_value`, what is not known being null; intervals come at a level of your choice from
/// [`interval`](Estimate::interval).
#[cfg(feature = "serde")]
impl serde::Serialize for Estimate {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;

        let mut record = serializer.serialize_struct("Estimate", 4)?;
        record.serialize_field("estimate", &self.estimate)?;
        record.serialize_field("n", &self.n)?;
        record.serialize_field("standard_error", &self.standard_error().ok())?;
        record.serialize_field("p_value", &self.p_value().ok())?;
        record.end()
    }
}

/// With Wilson's interval.
impl TryFrom<Proportion> for Estimate {
    type Error = Error;

    fn try_from(share: Proportion) -> Result<Self, Error> {
        Ok(Self::new("proportion", share.estimate()?, share.n)?.with_interval(Spread::Wilson(share)))
    }
}
