//! What a judge's preferences on pairs are worth, beside its verdicts: the sign of its averaged probabilities and log-odds against
//! gold labels.

use super::collector::{Collector, take};
use super::pairs::PairStatistic;
use crate::Error;
use crate::calibration::{Binning, LogisticRecalibration, ReliabilityCurve};
use crate::estimate::SHARE;
use crate::newton::logistic;
use crate::prediction::{auroc, brier_score};
use crate::preference::{PairReading, Preference, sign};
use crate::resampling::Bootstrap;

/// What a judge's probabilities say of one pair, and what is right.
#[derive(Debug, Clone, PartialEq)]
pub struct PreferredPair {
    /// The gold label.
    pub gold: Preference,
    /// The average over the orders that were read ([`PairReading::mean`]); `None` where an order has no probabilities.
    pub reading: Option<PairReading>,
    /// The averaged log-odds of each layer ([`mean_log_odds`](crate::preference::mean_log_odds)), as many for every pair; empty
    /// where layers were not read.
    pub layers: Vec<f64>,
    /// Pairs with the same cluster are drawn together by the bootstrap. Used where all pairs have one.
    pub cluster: Option<String>,
}

/// What preferences on pairs are worth.
///
/// A judge that nearly always names the response shown first has worthless verdicts, and its averaged probabilities may still order
/// the items as people do.
///
/// | statistic | of |
/// |---|---|
/// | `majority_share` | gold labels: the share of the commonest, which is what always saying it would be right in |
/// | `accuracy_mean_probability` | the sign of the mean probability less ½: share of pairs whose gold label it names |
/// | `accuracy_mean_log_odds` | the sign of the mean log-odds, likewise |
/// | `auroc_…` | how well either number tells pairs whose first item is better from pairs whose second one is |
/// | `brier_…`, `ece_…` | the number as a probability that the first item is better (log-odds l as 1 / (1 + e⁻ˡ)); ten bins of equal width |
/// | `calibration_slope_…`, `calibration_intercept_…` | Cox's recalibration of it: 1 and 0 of a judge that means what it says; undefined where it is 0 or 1 |
///
/// Shares rest on all pairs with a reading: a sign is hardly ever a tie, so a gold tie counts as wrong as it does for any judge that cannot
/// say one. The others leave gold ties out. Wilson's interval, Student's, DeLong's and large-sample ones where pairs are independent; where
/// they come in clusters, clustered standard errors of shares and Brier scores, and the bootstrap of clusters for the others; the bootstrap
/// for `ece`.
///
/// ```
/// use judge_metrics::comparison::{PreferenceComparison, PreferredPair};
/// use judge_metrics::preference::{PairReading, Preference::{self, First, Second}};
///
/// // Shown first wins by 2 to 1 and more in every order; the averages are right all the same.
/// let pair = |gold: Preference, shown_first: [f64; 2]| {
///     let [given, swapped] = shown_first.map(|p| PairReading::from_probabilities(p, 1.0 - p, 0.0));
///     let reading = PairReading::mean(&[given?, swapped?.swapped()]);
///     Ok::<_, judge_metrics::Error>(PreferredPair { gold, reading, layers: Vec::new(), cluster: None })
/// };
/// let pairs = vec![pair(First, [0.9, 0.8])?, pair(Second, [0.7, 0.8])?, pair(First, [0.9, 0.7])?];
/// let found = PreferenceComparison::new(pairs).statistics(&[0, 1, 2]);
/// let estimate = |name| found.iter().find(|known| known.name == name).and_then(|known| known.statistic.estimate());
/// assert_eq!(estimate("accuracy_mean_log_odds"), Some(1.0));
/// assert_eq!(estimate("majority_share"), Some(2.0 / 3.0));
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct PreferenceComparison {
    /// The pairs.
    pub pairs: Vec<PreferredPair>,
    /// For statistics without an interval of their own, and for all where pairs come in clusters.
    pub bootstrap: Bootstrap,
}

/// One number of each pair, and what is found of it.
struct Names {
    accuracy: &'static str,
    auroc: &'static str,
    /// Brier score, expected calibration error, slope and intercept.
    calibration: [&'static str; 4],
}

const PROBABILITY: Names = Names {
    accuracy: "accuracy_mean_probability",
    auroc: "auroc_mean_probability",
    calibration: [
        "brier_mean_probability",
        "ece_mean_probability",
        "calibration_slope_mean_probability",
        "calibration_intercept_mean_probability",
    ],
};

const LOG_ODDS: Names = Names {
    accuracy: "accuracy_mean_log_odds",
    auroc: "auroc_mean_log_odds",
    calibration: [
        "brier_mean_log_odds",
        "ece_mean_log_odds",
        "calibration_slope_mean_log_odds",
        "calibration_intercept_mean_log_odds",
    ],
};

/// The share of the commonest gold label.
const MAJORITY: &str = "majority_share";

/// The name of a layer's statistic in [`PreferenceComparison::by_layer`].
const OF_LAYER: &str = LOG_ODDS.accuracy;

impl PreferenceComparison {
    /// The names of all statistics, in the order of the table.
    pub const STATISTICS: [&'static str; 13] = [
        MAJORITY,
        PROBABILITY.accuracy,
        PROBABILITY.auroc,
        PROBABILITY.calibration[0],
        PROBABILITY.calibration[1],
        PROBABILITY.calibration[2],
        PROBABILITY.calibration[3],
        LOG_ODDS.accuracy,
        LOG_ODDS.auroc,
        LOG_ODDS.calibration[0],
        LOG_ODDS.calibration[1],
        LOG_ODDS.calibration[2],
        LOG_ODDS.calibration[3],
    ];

    /// With 10,000 resamples, as [`Bootstrap::default`] has them.
    pub fn new(pairs: Vec<PreferredPair>) -> Self {
        Self { pairs, bootstrap: Bootstrap::default() }
    }

    /// Whether any pair has a reading.
    pub fn has_readings(&self) -> bool {
        self.pairs.iter().any(|pair| pair.reading.is_some())
    }

    /// The statistics of some of the pairs, given by their indices, in the order of the table. Indices that no pair has, and
    /// pairs without a reading, are left out;
    /// what the others do not define is [`Statistic::Undefined`](crate::comparison::Statistic::Undefined).
    pub fn statistics(&self, rows: &[usize]) -> Vec<PairStatistic> {
        let read: Vec<(&PreferredPair, PairReading)> =
            rows.iter().filter_map(|&row| self.pairs.get(row)).filter_map(|pair| Some((pair, pair.reading?))).collect();
        let pairs: Vec<&PreferredPair> = read.iter().map(|(pair, _)| *pair).collect();
        let mut found = vec![self.majority(&pairs)];
        for (names, number, probability) in [
            (
                &PROBABILITY,
                (|reading: &PairReading| reading.probability() - 0.5) as fn(&PairReading) -> f64,
                PairReading::probability as fn(&PairReading) -> f64,
            ),
            (&LOG_ODDS, PairReading::log_odds, |reading| logistic(reading.log_odds())),
        ] {
            let numbers: Vec<f64> = read.iter().map(|(_, reading)| number(reading)).collect();
            found.push(self.accuracy(names.accuracy, &pairs, &numbers));
            let decided = read.iter().filter(|(pair, _)| pair.gold.is_decisive());
            let (pairs, readings): (Vec<&PreferredPair>, Vec<PairReading>) = decided.copied().unzip();
            let probabilities: Vec<f64> = readings.iter().map(probability).collect();
            found.extend(self.as_probability(names, &pairs, &probabilities));
        }
        found
    }

    /// The accuracy of the sign of each layer's averaged log-odds, in the order of [`PreferredPair::layers`], of some of the pairs. Pairs
    /// without layers are left out; empty where no pair has some.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] where pairs have different numbers of layers.
    pub fn by_layer(&self, rows: &[usize]) -> Result<Vec<PairStatistic>, Error> {
        let pairs = rows.iter().filter_map(|&row| self.pairs.get(row));
        let pairs: Vec<&PreferredPair> = pairs.filter(|pair| !pair.layers.is_empty()).collect();
        let Some(layers) = pairs.first().map(|pair| pair.layers.len()) else { return Ok(Vec::new()) };
        if let Some(other) = pairs.iter().find(|pair| pair.layers.len() != layers) {
            let found = other.layers.len();
            return Err(Error::LengthMismatch { argument: "layers", found, other: "layers", expected: layers });
        }
        let of_layer = |layer: usize| -> Vec<f64> { pairs.iter().map(|pair| pair.layers[layer]).collect() };
        Ok((0..layers).map(|layer| self.accuracy(OF_LAYER, &pairs, &of_layer(layer))).collect())
    }

    /// The share of pairs whose gold label the sign of their number names.
    fn accuracy(&self, name: &'static str, pairs: &[&PreferredPair], numbers: &[f64]) -> PairStatistic {
        let right = pairs.iter().zip(numbers).map(|(pair, &number)| sign(number) == pair.gold);
        self.share(name, pairs, &right.collect::<Vec<_>>())
    }

    fn majority(&self, pairs: &[&PreferredPair]) -> PairStatistic {
        let labels = [Preference::First, Preference::Second, Preference::Tie];
        let count = |label: &Preference| pairs.iter().filter(|pair| pair.gold == *label).count();
        let commonest = labels.into_iter().rev().max_by_key(count);
        let counts: Vec<bool> = pairs.iter().map(|pair| Some(pair.gold) == commonest).collect();
        self.share(MAJORITY, pairs, &counts)
    }

    fn share(&self, name: &'static str, pairs: &[&PreferredPair], counts: &[bool]) -> PairStatistic {
        self.collect(pairs, &[name], |found| found.share(name, counts)).remove(0)
    }

    /// What is found of a number as a probability that the first item is better, of pairs without a gold tie.
    fn as_probability(&self, names: &Names, pairs: &[&PreferredPair], probabilities: &[f64]) -> Vec<PairStatistic> {
        let outcomes: Vec<bool> = pairs.iter().map(|pair| pair.gold == Preference::First).collect();
        let n = outcomes.len();
        let on = |rows: &[usize]| (take(&outcomes, rows), take(probabilities, rows));
        let [brier, ece, slope, intercept] = names.calibration;
        self.collect(pairs, &[names.auroc, brier, ece, slope, intercept], |found| {
            let area = |rows: &[usize]| {
                let (y, p) = on(rows);
                auroc(&y, &p)
            };
            found.closed(names.auroc, area, n);
            let squares: Vec<f64> =
                outcomes.iter().zip(probabilities).map(|(&y, p)| (f64::from(u8::from(y)) - p).powi(2)).collect();
            found.mean(brier, &squares, SHARE, || brier_score(&outcomes, probabilities));
            let error = |rows: &[usize]| {
                let (y, p) = on(rows);
                Ok(ReliabilityCurve::new(&y, &p, Binning::EqualWidth { bins: 10 })?.expected_calibration_error())
            };
            found.resample(ece, None, error, n);
            let recalibrated = |rows: &[usize]| {
                let (y, p) = on(rows);
                LogisticRecalibration::new(&y, &p)
            };
            found.closed(slope, |rows| Ok(recalibrated(rows)?.slope), n);
            found.closed(intercept, |rows| Ok(recalibrated(rows)?.intercept), n);
        })
    }

    fn collect(
        &self,
        pairs: &[&PreferredPair],
        names: &[&'static str],
        of: impl FnOnce(&mut Collector<'_>),
    ) -> Vec<PairStatistic> {
        let clusters = pairs.iter().map(|pair| pair.cluster.as_deref()).collect();
        let mut found = Collector::of_rows(self.bootstrap, clusters);
        if pairs.is_empty() {
            found.all_undefined(names, "no pair has the probabilities that it needs");
        } else {
            of(&mut found);
        }
        let n = pairs.len();
        let found = names.iter().zip(found.found);
        found.map(|(&name, (_, statistic))| PairStatistic { name, n, statistic }).collect()
    }
}
