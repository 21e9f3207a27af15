use rand_chacha::rand_core::Rng;

use super::BradleyTerry;
use super::FittedBradleyTerry;
use super::bradley_terry::Pairs;
use crate::Error;
use crate::distribution::normal_quantile;
use crate::newton::{Cholesky, logistic};
use crate::resampling::stream::{Purpose, stream};

/// Chooses which items to compare next: those whose comparison is expected to tell most, about which item is the best or about all
/// strengths ([`Goal`]).
///
/// Strengths are those of [`BradleyTerry`] with a normal prior, their posterior taken as normal around its mode. The expected information
/// of a comparison is the mutual information of its outcome and what is to be learnt, in nats: the entropy of the outcome less its mean
/// entropy when that is known (Lindley, 1956; Houlsby et al., 2011). About the best item it is taken over 512 draws from the posterior,
/// always the same ones. Comparisons come in rounds in which no item appears twice, the most informative first, of equal ones the one of
/// the lowest numbers; no two items meet twice, since a judge that draws nothing would repeat itself.
///
/// ```
/// use judge_metrics::ranking::{AdaptivePairing, Goal};
///
/// let pairing = AdaptivePairing { budget: 5, goal: Goal::Strengths, ..AdaptivePairing::default() };
/// assert_eq!(pairing.next(4, &[])?, [[0, 1], [2, 3]]);
/// // The winners meet, and the losers.
/// assert_eq!(pairing.next(4, &[([0, 1], Some(1.0)), ([2, 3], Some(0.0))])?, [[0, 3], [1, 2]]);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdaptivePairing {
    /// Comparisons in all.
    pub budget: usize,
    /// Precision of the normal prior around 0 on every strength, above 0.
    pub prior_precision: f64,
    /// What is to be learnt.
    pub goal: Goal,
}

/// What the comparisons are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Goal {
    /// Which item is the best.
    #[default]
    Best,
    /// How strong all of them are.
    Strengths,
}

impl Default for AdaptivePairing {
    /// No bound on the comparisons; a prior of precision 1; the best item is sought.
    fn default() -> Self {
        Self { budget: usize::MAX, prior_precision: 1.0, goal: Goal::Best }
    }
}

impl AdaptivePairing {
    /// 2n comparisons of n items, so that each meets four others on average: all pairs of up to five items, 12 of 15 of six, 32 of 120 of
    /// sixteen.
    #[must_use]
    pub fn of_items(n: usize) -> Self {
        let all = n.saturating_mul(n.saturating_sub(1)) / 2;
        Self { budget: n.saturating_mul(2).min(all), ..Self::default() }
    }

    /// The comparisons of the next round of `n` items, numbered from 0; none when the budget is spent or all have met. `known` has the
    /// comparisons so far with the preference for the first of both, in [0, 1], or `None` for one without a verdict, which counts as made.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] for a prior that is not above 0 and finite, for an item that is not there, and for a preference;
    /// [`Error::SelfComparison`]; [`Error::NonFinite`]; [`Error::NoConvergence`].
    pub fn next(&self, n: usize, known: &[([usize; 2], Option<f64>)]) -> Result<Vec<[usize; 2]>, Error> {
        let (value, high) = (self.prior_precision, f64::MAX);
        if !(value > 0.0 && value.is_finite()) {
            return Err(Error::OutOfRange { argument: "prior_precision", index: None, value, low: 0.0, high });
        }
        // Those without a verdict have been made, whatever it was.
        let made: Vec<_> = known.iter().map(|&(items, preference)| (items, preference.unwrap_or(0.5))).collect();
        let met = Pairs::soft(n, &made)?.0;
        let left = self.budget.saturating_sub(known.len());
        if n < 2 || left == 0 {
            return Ok(Vec::new());
        }
        let verdicts: Vec<_> = known.iter().filter_map(|&(items, preference)| Some((items, preference?))).collect();
        let model = BradleyTerry { prior_precision: self.prior_precision, ..BradleyTerry::default() };
        let fitted = model.fit_soft(n, &verdicts)?;
        let all = (0..n).flat_map(|first| (first + 1..n).map(move |second| [first, second]));
        let singular = Error::NoConvergence { statistic: "draws of strengths", iterations: 1 };
        let draws = match self.goal {
            Goal::Best => Some(Draws::new(&fitted, self.prior_precision).ok_or(singular)?),
            Goal::Strengths => None,
        };
        let information = |pair| match &draws {
            Some(draws) => draws.about_the_best(pair),
            None => about_strengths(&fitted, pair),
        };
        let open = all.filter(|pair| !met.contains_key(pair)).map(|pair| (pair, information(pair)));
        let mut open: Vec<([usize; 2], f64)> = open.collect();
        // Rounding must not decide between comparisons that are equally good.
        let rounded = |information: f64| (information * 1e9).round() + 0.0;
        open.sort_by(|(a, x), (b, y)| rounded(*y).total_cmp(&rounded(*x)).then(a.cmp(b)));
        let mut busy = vec![false; n];
        let mut round = Vec::new();
        for ([first, second], _) in open {
            if round.len() < left && !busy[first] && !busy[second] {
                (busy[first], busy[second]) = (true, true);
                round.push([first, second]);
            }
        }
        Ok(round)
    }
}

/// Draws from the posterior of all strengths.
struct Draws {
    /// One list of strengths for each draw.
    strengths: Vec<Vec<f64>>,
    /// The best item of each draw.
    best: Vec<usize>,
}

impl Draws {
    const COUNT: usize = 512;

    fn new(fitted: &FittedBradleyTerry, prior_precision: f64) -> Option<Self> {
        let n = fitted.items().len();
        // The common offset that strengths of sum 0 lack makes the covariance regular again; no difference and no best item depends on it.
        let offset = 1.0 / (n as f64 * prior_precision);
        let covariance: Vec<f64> = (0..n * n).map(|cell| fitted.covariance(cell / n, cell % n) + offset).collect();
        let factor = Cholesky::new(&covariance, n)?;
        let mut words = stream(0, Purpose::Posterior, n);
        let mut normal = || normal_quantile(((words.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64);
        let strengths = (0..Self::COUNT).map(|_| {
            let z: Vec<f64> = (0..n).map(|_| normal()).collect();
            factor.times(&z).iter().zip(fitted.strengths()).map(|(noise, mean)| mean + noise).collect()
        });
        let strengths: Vec<Vec<f64>> = strengths.collect();
        let top = |drawn: &Vec<f64>| (0..n).max_by(|a, b| drawn[*a].total_cmp(&drawn[*b])).unwrap_or_default();
        let best = strengths.iter().map(top).collect();
        Some(Self { strengths, best })
    }

    /// What a comparison is expected to tell about which item is the best, in nats.
    fn about_the_best(&self, [first, second]: [usize; 2]) -> f64 {
        let n = self.strengths.first().map_or(0, Vec::len);
        let mut by_best = vec![(0.0, 0.0); n];
        for (drawn, &best) in self.strengths.iter().zip(&self.best) {
            by_best[best].0 += 1.0;
            by_best[best].1 += logistic(drawn[first] - drawn[second]);
        }
        let all = self.best.len() as f64;
        let won = by_best.iter().map(|(_, won)| won).sum::<f64>() / all;
        let known = by_best.iter().filter(|(count, _)| *count > 0.0);
        let left: f64 = known.map(|(count, won)| count / all * entropy(won / count)).sum();
        (entropy(won) - left).max(0.0)
    }
}

/// Entropy of the outcome less its mean entropy given the strengths, in nats, by the trapezoidal rule over six standard deviations.
fn about_strengths(fitted: &FittedBradleyTerry, items: [usize; 2]) -> f64 {
    const STEPS: i32 = 48;
    let (mean, variance) = fitted.difference_of(items);
    let spread = variance.max(0.0).sqrt();
    let (mut weights, mut won, mut entropies) = (0.0, 0.0, 0.0);
    for step in -STEPS..=STEPS {
        let z = 6.0 * f64::from(step) / f64::from(STEPS);
        let (weight, p) = ((-z * z / 2.0).exp(), logistic(mean + spread * z));
        weights += weight;
        won += weight * p;
        entropies += weight * entropy(p);
    }
    (entropy(won / weights) - entropies / weights).max(0.0)
}

/// Of a win or a loss, in nats.
fn entropy(p: f64) -> f64 {
    let term = |p: f64| if p > 0.0 { -p * p.ln() } else { 0.0 };
    term(p) + term(1.0 - p)
}
