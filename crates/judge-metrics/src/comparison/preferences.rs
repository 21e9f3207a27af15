//! What a judge's preferences on pairs are worth, beside its verdicts: the sign of its averaged probabilities and log-odds against
//! gold labels, of its log-odds in one order with the place's pull taken off, and of a layer that is chosen.

use super::collector::{Collector, Items, of_both};
use super::joined;
use super::out_of_fold::out_of_fold;
use super::pairs::{PairStatistic, of_pairs};
use crate::Error;
use crate::calibration::{Binning, LogisticRecalibration, ReliabilityCurve};
use crate::estimate::SHARE;
use crate::groups::take;
use crate::means::mean_of;
use crate::newton::logistic;
use crate::prediction::{auroc, brier_score};
use crate::preference::{PairReading, Preference, place_offset, place_pull, sign};
use crate::resampling::Bootstrap;

/// What a judge's probabilities say of one pair, and what is right.
#[derive(Debug, Clone, PartialEq)]
pub struct PreferredPair {
    /// The gold label.
    pub gold: Preference,
    /// What was read in each order, the given one first, all about the items as they are named; empty where an order has no probabilities.
    pub orders: Vec<PairReading>,
    /// The averaged log-odds of each layer ([`mean_log_odds`](crate::preference::mean_log_odds)), as many for every pair; empty
    /// where layers were not read.
    pub layers: Vec<f64>,
    /// Pairs with the same cluster are drawn together by the bootstrap. Where one of the pairs that a statistic rests on
    /// has none, all of them are taken as independent.
    pub cluster: Option<String>,
}

impl PreferredPair {
    /// Whether the sign of a number names the gold label. A gold tie is never named: a sign of 0 says nothing.
    fn is_named_by(&self, number: f64) -> bool {
        self.gold.is_decisive() && sign(number) == self.gold
    }
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
/// | `place_offset` | the median [pull of the place](place_pull) in nats, without gold labels |
/// | `accuracy_one_order` | the sign of the log-odds in one order, the mean of both orders |
/// | `accuracy_one_order_offset` | the same less the place offset that the pairs of other clusters teach, without their gold labels |
/// | `cost_one_order_offset` | `accuracy_mean_log_odds` less that: what is lost by asking in one order alone |
///
/// The last four rest on pairs that were read in both orders. Offsets, and the layer of [`chosen_layer`](Self::chosen_layer), are out of
/// fold: clusters are cut into ten folds by the bootstrap's seed, and what is used on a fold is learned on the others.
///
/// Shares rest on all pairs with a reading: a gold tie counts as wrong, as it does for any judge that cannot say one, also where the number is
/// 0. The others leave gold ties out. Wilson's interval, Student's, DeLong's and large-sample ones where pairs are independent; where they
/// come in clusters, clustered standard errors of shares and Brier scores, and the bootstrap of clusters for the others; the bootstrap for
/// `ece`.
///
/// ```
/// use judge_metrics::comparison::{PreferenceComparison, PreferredPair};
/// use judge_metrics::preference::{PairReading, Preference::{self, First, Second}};
///
/// // Shown first wins by 2 to 1 and more in every order; the averages are right all the same.
/// let pair = |gold: Preference, shown_first: [f64; 2]| {
///     let [given, swapped] = shown_first.map(|p| PairReading::from_probabilities(p, 1.0 - p, 0.0));
///     let orders = vec![given?, swapped?.swapped()];
///     Ok::<_, judge_metrics::Error>(PreferredPair { gold, orders, layers: Vec::new(), cluster: None })
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

/// What is found of the mean probability of each pair: accuracy, area under the ROC curve, Brier score, expected calibration error, slope and
/// intercept.
const PROBABILITY: [&str; 6] = [
    "accuracy_mean_probability",
    "auroc_mean_probability",
    "brier_mean_probability",
    "ece_mean_probability",
    "calibration_slope_mean_probability",
    "calibration_intercept_mean_probability",
];

/// The same of the mean log-odds.
const LOG_ODDS: [&str; 6] = [
    "accuracy_mean_log_odds",
    "auroc_mean_log_odds",
    "brier_mean_log_odds",
    "ece_mean_log_odds",
    "calibration_slope_mean_log_odds",
    "calibration_intercept_mean_log_odds",
];

/// The share of the commonest gold label.
const MAJORITY: &str = super::nominal::MAJORITY_SHARE;

/// What one order is worth, and what its place adds.
const ONE_ORDER: [&str; 4] =
    ["place_offset", "accuracy_one_order", "accuracy_one_order_offset", "cost_one_order_offset"];

/// The name of a layer's statistic in [`PreferenceComparison::by_layer`].
const OF_LAYER: &str = LOG_ODDS[0];

impl PreferenceComparison {
    /// The name of the statistic of [`chosen_layer`](Self::chosen_layer).
    pub const CHOSEN_LAYER: &'static str = "accuracy_chosen_layer";

    /// The names of all statistics of [`statistics`](Self::statistics), in the order of the table.
    pub const STATISTICS: [&'static str; 17] = joined(&[&[MAJORITY], &PROBABILITY, &LOG_ODDS, &ONE_ORDER]);

    /// With 10,000 resamples, as [`Bootstrap::default`] has them.
    pub fn new(pairs: Vec<PreferredPair>) -> Self {
        Self { pairs, bootstrap: Bootstrap::default() }
    }

    /// Whether any pair has a reading.
    pub fn has_readings(&self) -> bool {
        self.pairs.iter().any(|pair| !pair.orders.is_empty())
    }

    /// The statistics of some of the pairs, given by their indices, in the order of the table. Indices that no pair has, and
    /// pairs without a reading, are left out;
    /// what the others do not define is [`Statistic::Undefined`](crate::comparison::Statistic::Undefined).
    pub fn statistics(&self, rows: &[usize]) -> Vec<PairStatistic> {
        let of_rows = rows.iter().filter_map(|&row| self.pairs.get(row));
        let read: Vec<(&PreferredPair, PairReading)> =
            of_rows.filter_map(|pair| Some((pair, PairReading::mean(&pair.orders)?))).collect();
        let pairs: Vec<&PreferredPair> = read.iter().map(|(pair, _)| *pair).collect();
        let mut found = vec![self.majority(&pairs)];
        for ([accuracy, of_probability @ ..], number, probability) in [
            (
                PROBABILITY,
                (|reading: &PairReading| reading.probability() - 0.5) as fn(&PairReading) -> f64,
                PairReading::probability as fn(&PairReading) -> f64,
            ),
            (LOG_ODDS, PairReading::log_odds, |reading| logistic(reading.log_odds())),
        ] {
            let numbers: Vec<f64> = read.iter().map(|(_, reading)| number(reading)).collect();
            found.push(self.accuracy(accuracy, &pairs, &numbers));
            let decided = read.iter().filter(|(pair, _)| pair.gold.is_decisive());
            let (pairs, readings): (Vec<&PreferredPair>, Vec<PairReading>) = decided.copied().unzip();
            let probabilities: Vec<f64> = readings.iter().map(probability).collect();
            found.extend(self.as_probability(of_probability, &pairs, &probabilities));
        }
        found.extend(self.one_order(&pairs));
        found
    }

    /// What one order is worth, raw and less the place offset, of pairs that were read in both.
    fn one_order(&self, pairs: &[&PreferredPair]) -> Vec<PairStatistic> {
        let both = pairs.iter().copied().filter(|pair| pair.orders.len() == 2);
        let (pairs, pulls): (Vec<&PreferredPair>, Vec<f64>) =
            both.filter_map(|pair| Some((pair, place_pull(&pair.orders)?))).unzip();
        let [offset, raw, less, cost] = ONE_ORDER;
        // The mean over both orders of being right: in the exchanged one the second item is shown first.
        let right = |pair: &PreferredPair, offset: f64| -> f64 {
            let orders = pair.orders.iter().zip([offset, -offset]);
            let right = orders.map(|(order, offset)| pair.is_named_by(order.log_odds() - offset));
            right.map(|right| f64::from(u8::from(right))).sum::<f64>() / 2.0
        };
        let raws: Vec<f64> = pairs.iter().map(|pair| right(pair, 0.0)).collect();
        let learned = self.out_of_fold(&pairs, |rows| place_offset(&take(&pulls, rows)).ok());
        self.collect(&pairs, &ONE_ORDER, |found| {
            found.resample(offset, None, |rows| place_offset(&take(&pulls, rows)), pulls.len());
            found.mean(raw, &Items::within(&raws, SHARE), || Ok(mean_of(raw, &raws)?.within(SHARE)));
            let Some(learned) = learned else {
                return found.all_undefined(&[less, cost], "the pairs of other clusters define no offset");
            };
            let lesses: Vec<f64> = pairs.iter().zip(&learned).map(|(pair, &offset)| right(pair, offset)).collect();
            let averaged = |pair: &PreferredPair| {
                PairReading::mean(&pair.orders).is_some_and(|mean| pair.is_named_by(mean.log_odds()))
            };
            let costs = pairs.iter().zip(&lesses).map(|(pair, less)| f64::from(u8::from(averaged(pair))) - less);
            let costs: Vec<f64> = costs.collect();
            found.mean(less, &Items::within(&lesses, SHARE), || Ok(mean_of(less, &lesses)?.within(SHARE)));
            let range = [-1.0, 1.0];
            found.mean(cost, &Items::within(&costs, range), || Ok(mean_of(cost, &costs)?.within(range)));
        })
    }

    /// For each pair what is learned on the pairs of other folds, given by their numbers.
    fn out_of_fold<T: Clone>(&self, pairs: &[&PreferredPair], learn: impl Fn(&[usize]) -> Option<T>) -> Option<Vec<T>> {
        let names: Option<Vec<&str>> = pairs.iter().map(|pair| pair.cluster.as_deref()).collect();
        out_of_fold(names.as_deref(), pairs.len(), self.bootstrap.seed, learn)
    }

    /// The accuracy of the sign of each layer's averaged log-odds, in the order of [`PreferredPair::layers`], of some of the pairs. Pairs
    /// without layers are left out; empty where no pair has some.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] where pairs have different numbers of layers.
    pub fn by_layer(&self, rows: &[usize]) -> Result<Vec<PairStatistic>, Error> {
        let (pairs, layers) = self.with_layers(rows)?;
        let of_layer = |layer: usize| -> Vec<f64> { pairs.iter().map(|pair| pair.layers[layer]).collect() };
        Ok((0..layers).map(|layer| self.accuracy(OF_LAYER, &pairs, &of_layer(layer))).collect())
    }

    /// The layer whose averaged log-odds name the gold label most often, by its place in [`PreferredPair::layers`], the last of several;
    /// and `accuracy_chosen_layer`, what so choosing is worth: each fold is judged by the layer that is chosen on the others. Of the best
    /// of many layers [`by_layer`](Self::by_layer) says too much, on the pairs that it was chosen on. `None` where no pair has layers.
    ///
    /// # Errors
    ///
    /// As for [`by_layer`](Self::by_layer).
    pub fn chosen_layer(&self, rows: &[usize]) -> Result<Option<(usize, PairStatistic)>, Error> {
        let (pairs, layers) = self.with_layers(rows)?;
        let right = |row: usize, layer: usize| pairs[row].is_named_by(pairs[row].layers[layer]);
        let count = |rows: &[usize], layer: usize| rows.iter().filter(|&&row| right(row, layer)).count();
        let best = |rows: &[usize]| (0..layers).max_by_key(|&layer| count(rows, layer));
        let Some(chosen) = best(&(0..pairs.len()).collect::<Vec<_>>()) else { return Ok(None) };
        let known = match self.out_of_fold(&pairs, best) {
            Some(learned) => {
                let right: Vec<bool> = learned.into_iter().enumerate().map(|(row, layer)| right(row, layer)).collect();
                self.share(Self::CHOSEN_LAYER, &pairs, &right)
            }
            None => self
                .collect(&pairs, &[Self::CHOSEN_LAYER], |found| {
                    found.undefined(
                        Self::CHOSEN_LAYER,
                        "there are no pairs of another cluster on which a layer can be chosen",
                    );
                })
                .remove(0),
        };
        Ok(Some((chosen, known)))
    }

    /// The pairs that have layers, and how many each has.
    fn with_layers(&self, rows: &[usize]) -> Result<(Vec<&PreferredPair>, usize), Error> {
        let pairs = rows.iter().filter_map(|&row| self.pairs.get(row));
        let pairs: Vec<&PreferredPair> = pairs.filter(|pair| !pair.layers.is_empty()).collect();
        let layers = pairs.first().map_or(0, |pair| pair.layers.len());
        match pairs.iter().find(|pair| pair.layers.len() != layers) {
            Some(other) => {
                let found = other.layers.len();
                Err(Error::LengthMismatch { argument: "layers", found, other: "layers", expected: layers })
            }
            None => Ok((pairs, layers)),
        }
    }

    /// The share of pairs whose gold label the sign of their number names.
    fn accuracy(&self, name: &'static str, pairs: &[&PreferredPair], numbers: &[f64]) -> PairStatistic {
        let right = pairs.iter().zip(numbers).map(|(pair, &number)| pair.is_named_by(number));
        self.share(name, pairs, &right.collect::<Vec<_>>())
    }

    fn majority(&self, pairs: &[&PreferredPair]) -> PairStatistic {
        let gold: Vec<usize> = pairs.iter().map(|pair| pair.gold as usize).collect();
        self.collect(pairs, &[MAJORITY], |found| found.share_of_commonest(MAJORITY, &gold)).remove(0)
    }

    fn share(&self, name: &'static str, pairs: &[&PreferredPair], counts: &[bool]) -> PairStatistic {
        self.collect(pairs, &[name], |found| found.share(name, counts)).remove(0)
    }

    /// What is found of a number as a probability that the first item is better, of pairs without a gold tie.
    fn as_probability(
        &self,
        names: [&'static str; 5],
        pairs: &[&PreferredPair],
        probabilities: &[f64],
    ) -> Vec<PairStatistic> {
        let outcomes: Vec<bool> = pairs.iter().map(|pair| pair.gold == Preference::First).collect();
        let n = outcomes.len();
        let [order, brier, ece, slope, intercept] = names;
        self.collect(pairs, &names, |found| {
            found.closed(order, of_both(&outcomes, probabilities, auroc), n);
            let squares: Vec<f64> =
                outcomes.iter().zip(probabilities).map(|(&y, p)| (f64::from(u8::from(y)) - p).powi(2)).collect();
            found.mean(brier, &Items::within(&squares, SHARE), || brier_score(&outcomes, probabilities));
            let error = |y: &[bool], p: &[f64]| {
                Ok(ReliabilityCurve::new(y, p, Binning::EqualWidth { bins: 10 })?.expected_calibration_error())
            };
            found.resample(ece, None, of_both(&outcomes, probabilities, error), n);
            let recalibrated = of_both(&outcomes, probabilities, LogisticRecalibration::new);
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
        let why = pairs.is_empty().then_some("no pair has the probabilities that it needs");
        of_pairs(self.bootstrap, clusters, why, names, pairs.len(), of)
    }
}
