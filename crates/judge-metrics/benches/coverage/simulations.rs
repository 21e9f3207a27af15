//! What is simulated: intervals on populations whose parameter is known.

use judge_metrics::{Error, Interval};

use crate::agreement::raters;
use crate::bootstraps::bootstraps;
use crate::calibrated_mean::calibrated_means;
use crate::calibration::{conformal, recalibration};
use crate::correlation::correlations;
use crate::draw::Draw;
use crate::labels::{calibration_error, labels};
use crate::means::proportions_and_means;
use crate::prediction_powered::prediction_powered;
use crate::ranking::rankings;

pub(crate) const LEVEL: f64 = 0.95;

/// Says of one sample whether its interval holds the truth.
type Holds = dyn Fn(&mut Draw) -> Result<bool, Error> + Sync;

/// One interval on one kind of data.
pub(crate) struct Simulation {
    pub(crate) name: &'static str,
    pub(crate) n: usize,
    /// Samples drawn at most, where one takes long.
    pub(crate) most: Option<usize>,
    /// What the interval promises, or "power": then it is a test, and the share that of samples in which it finds what is there.
    pub(crate) nominal: &'static str,
    /// Whether the interval of one sample holds the truth.
    pub(crate) holds: Box<Holds>,
}

impl Simulation {
    /// With fewer samples than others: each takes long.
    pub(crate) fn of_at_most(self, samples: usize) -> Self {
        Self { most: Some(samples), ..self }
    }
}

pub(crate) fn simulation(
    name: &'static str,
    n: usize,
    holds: impl Fn(&mut Draw, usize) -> Result<bool, Error> + Sync + 'static,
) -> Simulation {
    Simulation { name, n, most: None, nominal: "95 %", holds: Box::new(move |draw| holds(draw, n)) }
}

/// The same for intervals that promise no less, and may hold more often.
pub(crate) fn at_least(
    name: &'static str,
    n: usize,
    holds: impl Fn(&mut Draw, usize) -> Result<bool, Error> + Sync + 'static,
) -> Simulation {
    Simulation { nominal: "≥ 95 %", ..simulation(name, n, holds) }
}

/// How often a test finds what is there.
pub(crate) fn power(
    name: &'static str,
    n: usize,
    finds: impl Fn(&mut Draw, usize) -> Result<bool, Error> + Sync + 'static,
) -> Simulation {
    Simulation { nominal: "power", ..simulation(name, n, finds) }
}

pub(crate) fn holds(interval: Interval, truth: f64) -> bool {
    interval.low <= truth && truth <= interval.high
}

/// Every line: some small n, then 100 and 1,000.
pub(crate) fn simulations() -> Vec<Simulation> {
    type Lines = fn(usize) -> Vec<Simulation>;
    let all: [(Lines, &[usize]); 11] = [
        (correlations, &[10, 20, 50, 100, 1_000]),
        (bootstraps, &[20, 50, 100, 200, 1_000]),
        (proportions_and_means, &[20, 50, 100, 1_000]),
        (prediction_powered, &[20, 100, 1_000]),
        (calibrated_means, &[20, 100, 1_000]),
        (raters, &[10, 20, 50, 100, 1_000]),
        (rankings, &[10, 20, 50, 100, 1_000]),
        (conformal, &[20, 100, 1_000]),
        (recalibration, &[20, 50, 100, 1_000]),
        (labels, &[20, 50, 100, 1_000]),
        (calibration_error, &[100, 1_000]),
    ];
    all.into_iter().flat_map(|(lines, sizes)| sizes.iter().flat_map(move |&n| lines(n))).collect()
}
