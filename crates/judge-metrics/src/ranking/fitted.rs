//! Fitted Bradley–Terry strengths: asked for by name, each with its interval, each difference with its test.

use std::f64::consts::LN_10;

use crate::estimate::{Spread, UNBOUNDED};
use crate::newton::logistic;
use crate::{Error, Estimate};

/// Strengths by maximum likelihood, their sum 0.
///
/// Standard errors are those of the observed information, which takes verdicts as independent, and intervals are normal; games that come in
/// clusters have the standard errors of cluster sums, and Student's intervals with one degree of freedom less than clusters. Half wins
/// understate how much ties say, and probabilities of a judge how much it says, so that intervals from the information are then a little
/// too wide.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct FittedBradleyTerry {
    pub(super) items: Vec<String>,
    pub(super) strengths: Vec<f64>,
    /// Of the strengths, row-major.
    pub(super) covariance: Vec<f64>,
    /// Each with its standard error.
    pub(super) coefficients: Vec<(f64, f64)>,
    pub(super) n: usize,
    pub(super) clusters: Option<usize>,
    pub(super) tie_parameter: Option<f64>,
    pub(super) log_likelihood: f64,
}

impl FittedBradleyTerry {
    /// Names, in ascending order.
    pub fn items(&self) -> &[String] {
        &self.items
    }

    /// Log-strengths θ in the order of the items; they add up to 0.
    pub fn strengths(&self) -> &[f64] {
        &self.strengths
    }

    /// Strengths as arenas show them: `base` + 400 θ / ln 10.
    pub fn elo(&self, base: f64) -> Vec<f64> {
        self.strengths.iter().map(|strength| base + 400.0 * strength / LN_10).collect()
    }

    /// Davidson's ν; `None` where ties are half wins.
    pub fn tie_parameter(&self) -> Option<f64> {
        self.tie_parameter
    }

    /// The log-likelihood at the maximum, the prior included.
    pub fn log_likelihood(&self) -> f64 {
        self.log_likelihood
    }

    /// One strength. The p-value is Wald's, that it is no more or less than the mean of all.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownLabel`] for an item that is not there.
    pub fn strength(&self, item: &str) -> Result<Estimate, Error> {
        let item = self.number("item", item)?;
        self.estimate("a Bradley-Terry strength", self.strengths[item], self.covariance(item, item))
    }

    /// The difference of two strengths: does `first` beat `second`? The p-value is Wald's.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownLabel`] for an item that is not there.
    pub fn difference(&self, first: &str, second: &str) -> Result<Estimate, Error> {
        let items = [self.number("first", first)?, self.number("second", second)?];
        let (difference, variance) = self.difference_of(items);
        self.estimate("a difference of Bradley-Terry strengths", difference, variance)
    }

    /// What one unit of each covariate adds to the log-odds of the first item, in the order of the games' covariates, with Wald's p-values.
    /// Empty without covariates.
    ///
    /// # Errors
    ///
    /// [`Error::Undefined`] for one that is not finite.
    pub fn coefficients(&self) -> Result<Vec<Estimate>, Error> {
        let of = |&(value, error): &(f64, f64)| self.estimate("a Bradley-Terry coefficient", value, error * error);
        self.coefficients.iter().map(of).collect()
    }

    /// Probability that `first` beats `second` at equal covariates; with Davidson's ties the rest is shared by loss and tie.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownLabel`] for an item that is not there.
    pub fn win_probability(&self, first: &str, second: &str) -> Result<f64, Error> {
        let (d, _) = self.difference_of([self.number("first", first)?, self.number("second", second)?]);
        Ok(match self.tie_parameter {
            None => logistic(d),
            Some(ties) => 1.0 / (1.0 + (-d).exp() + ties * (-d / 2.0).exp()),
        })
    }

    /// The difference of two strengths by number, and its variance.
    pub(super) fn difference_of(&self, [first, second]: [usize; 2]) -> (f64, f64) {
        let variance =
            self.covariance(first, first) + self.covariance(second, second) - 2.0 * self.covariance(first, second);
        (self.strengths[first] - self.strengths[second], variance)
    }

    /// The covariance of two strengths.
    pub(super) fn covariance(&self, a: usize, b: usize) -> f64 {
        self.covariance[a * self.items.len() + b]
    }

    fn estimate(&self, statistic: &'static str, value: f64, variance: f64) -> Result<Estimate, Error> {
        let error = variance.max(0.0).sqrt();
        let spread = match self.clusters {
            Some(clusters) => Spread::StudentT { degrees_of_freedom: (clusters - 1) as f64, range: UNBOUNDED },
            None => Spread::Normal { range: UNBOUNDED },
        };
        Ok(Estimate::new(statistic, value, self.n)?
            .with_error(error, spread)
            .tested_against_zero("its standard error is 0"))
    }

    fn number(&self, argument: &'static str, item: &str) -> Result<usize, Error> {
        self.items.iter().position(|known| known == item).ok_or_else(|| {
            let (found, known) = (item.to_owned(), self.items.join(", "));
            Error::UnknownLabel { argument, index: 0, found, known }
        })
    }
}
