use crate::estimate::{Spread, UNBOUNDED};
use crate::input::{check_count, check_varies};
use crate::newton::{Cholesky, Likelihood, log_logistic, logistic, maximise};
use crate::prediction::scoring::check_forecasts;
use crate::sum::{dot, sum};
use crate::{Error, Estimate};

/// Cox's logistic recalibration of probabilities of one event (1958): logit P(event) = intercept + slope · logit p, by maximum likelihood.
///
/// A judge whose probabilities mean what they say has intercept 0 and slope 1. A slope below 1 says that they are too extreme, above 1 that
/// they are too timid. Standard errors are those of the observed information, and intervals large-sample; equal to `GLM(outcomes,
/// add_constant(logit), Binomial())` of statsmodels 0.15. Items are taken as independent: where several belong to one question take the
/// [`Bootstrap`](crate::resampling::Bootstrap).
///
/// ```
/// use judge_metrics::calibration::LogisticRecalibration;
///
/// // Right three times in four where it says 90 %, and wrong three times in four where it says 10 %.
/// let outcomes = [true, true, true, false, false, false, false, true];
/// let probabilities = [0.9, 0.9, 0.9, 0.9, 0.1, 0.1, 0.1, 0.1];
/// let found = LogisticRecalibration::new(&outcomes, &probabilities)?;
/// assert!(found.intercept.estimate.abs() < 1e-12);
/// assert!((found.slope.estimate - 0.5).abs() < 1e-12, "the logit of 3/4 is half that of 9/10");
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct LogisticRecalibration {
    /// In nats of log odds, at p = ½, fitted together with the slope. It is not the "calibration in the large" of Van Calster et al.
    /// (2019), whose slope is fixed at 1. The p-value is Wald's of 0.
    pub intercept: Estimate,
    /// Without a unit. The p-value of 0 would not ask whether probabilities are calibrated, so there is none: see whether the interval
    /// holds 1.
    pub slope: Estimate,
}

impl LogisticRecalibration {
    /// Fits n ≥ 2 items.
    ///
    /// `outcomes`: whether the event came to be; `probabilities`: what the judge gave it, in [0, 1], ties in any number. A probability of 0
    /// or 1 has no finite logit, so one such leaves both undefined: moved inwards by however little, as a log loss moves it, it would
    /// decide the slope by how little that is.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`], [`Error::TooFewItems`], [`Error::NonFinite`]; [`Error::OutOfRange`] for probabilities;
    /// [`Error::Constant`] for probabilities that are all equal; [`Error::Undefined`] where the event always or never came to be, where a
    /// probability separates the items on which it did from the others (ties at that probability included), since the likelihood then has
    /// no maximum, and for a probability of 0 or 1; [`Error::NoConvergence`] where rounding keeps the fit from settling.
    pub fn new(outcomes: &[bool], probabilities: &[f64]) -> Result<Self, Error> {
        check_forecasts(outcomes, probabilities)?;
        let n = outcomes.len();
        check_count(2, n)?;
        if probabilities.iter().any(|&p| p == 0.0 || p == 1.0) {
            return Err(undefined("a probability is 0 or 1, which has no finite logit"));
        }
        check_varies("probabilities", probabilities)?;
        // ln(1 − p) from p itself: a small p loses no digits.
        let logits: Vec<f64> = probabilities.iter().map(|&p| p.ln() - (-p).ln_1p()).collect();
        check_overlap(outcomes, &logits)?;

        // Centred and scaled, so that the two parameters are nearly independent.
        let centre = sum(&logits) / n as f64;
        let deviations: Vec<f64> = logits.iter().map(|logit| logit - centre).collect();
        let scale = (dot(&deviations, &deviations) / n as f64).sqrt();
        let x: Vec<f64> = deviations.iter().map(|deviation| deviation / scale).collect();
        let no_convergence = Error::NoConvergence { statistic: STATISTIC, iterations: 200 };
        let (found, there) =
            maximise(2, |parameters| likelihood(outcomes, &x, parameters)).ok_or(no_convergence.clone())?;
        let covariance = Cholesky::new(&there.information, 2).ok_or(no_convergence)?.inverse();

        // Back: intercept + slope · logit = a + b (logit − centre) / scale.
        let shift = centre / scale;
        let variance = covariance[0] - 2.0 * shift * covariance[1] + shift * shift * covariance[3];
        let estimate = |name, value, error| {
            Ok::<_, Error>(Estimate::new(name, value, n)?.with_error(error, Spread::Normal { range: UNBOUNDED }))
        };
        let intercept = estimate("calibration intercept", found[0] - shift * found[1], variance.sqrt())?;
        Ok(Self {
            intercept: intercept.tested_against_zero("its standard error is 0"),
            slope: estimate("calibration slope", found[1] / scale, covariance[3].sqrt() / scale)?,
        })
    }
}

const STATISTIC: &str = "logistic recalibration";

fn undefined(reason: &'static str) -> Error {
    Error::Undefined { statistic: STATISTIC, reason }
}

/// That the logits of items with the event and of those without overlap by more than an end: only then has the likelihood a maximum (Albert
/// and Anderson, 1984).
fn check_overlap(outcomes: &[bool], logits: &[f64]) -> Result<(), Error> {
    let ends = |wanted: bool| {
        let of_these = outcomes.iter().zip(logits).filter(|(came, _)| **came == wanted);
        of_these.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], (_, &x)| [low.min(x), high.max(x)])
    };
    let [came, not] = [ends(true), ends(false)];
    if came[0] > came[1] || not[0] > not[1] {
        return Err(undefined("the event came to be on all items or on none"));
    }
    if came[0] >= not[1] || not[0] >= came[1] {
        return Err(undefined("a probability separates the items with the event from those without"));
    }
    Ok(())
}

fn likelihood(outcomes: &[bool], x: &[f64], parameters: &[f64]) -> Likelihood {
    let (mut value, mut gradient, mut information) = (0.0, vec![0.0; 2], vec![0.0; 4]);
    for (&came, &x) in outcomes.iter().zip(x) {
        let log_odds = parameters[0] + parameters[1] * x;
        let p = logistic(log_odds);
        value += log_logistic(if came { log_odds } else { -log_odds });
        let (residual, weight) = (f64::from(came) - p, p * (1.0 - p));
        gradient[0] += residual;
        gradient[1] += residual * x;
        information[0] += weight;
        information[1] += weight * x;
        information[3] += weight * x * x;
    }
    information[2] = information[1];
    Likelihood { value, gradient, information }
}
