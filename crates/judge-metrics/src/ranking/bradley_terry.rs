use std::collections::{BTreeMap, BTreeSet};

use crate::Error;
use crate::input::{check_amount, check_range};
use crate::newton::{Cholesky, Likelihood, log_logistic, logistic, maximise};
use crate::preference::Preference;
use crate::ranking::{Comparison, FittedBradleyTerry};

/// The Bradley–Terry model (1952): item i beats item j with probability 1 / (1 + exp(θ_j − θ_i)).
///
/// [`fit`](Self::fit) takes verdicts, [`fit_soft`](Self::fit_soft) probabilities of numbered items, and [`fit_games`](Self::fit_games)
/// probabilities, weights, covariates such as length, and clusters.
///
/// ```
/// use judge_metrics::preference::Preference::{First, Second, Tie};
/// use judge_metrics::ranking::{BradleyTerry, Comparison};
///
/// let games = [("a", "b", First), ("b", "c", First), ("a", "c", First), ("c", "a", First), ("b", "a", Tie), ("c", "b", Second)];
/// let games: Vec<_> = games.map(|(x, y, preference)| Comparison { items: [x, y], preference }).to_vec();
/// let fitted = BradleyTerry::default().fit(&games)?;
/// assert_eq!(fitted.items(), ["a", "b", "c"]);
/// assert!(fitted.strengths()[0] > fitted.strengths()[2]);
/// assert!(fitted.difference("a", "c")?.interval(0.95)?.low < 0.0, "so few games show little");
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BradleyTerry {
    /// What ties say.
    pub ties: TieModel,
    /// Precision of a normal prior around 0 on every strength, 0 for none. With one, items that win or lose always have
    /// finite strengths too, and intervals are those of the posterior's mode.
    pub prior_precision: f64,
}

/// What ties say of strengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TieModel {
    /// A tie is half a win for each: the practice of arenas.
    #[default]
    HalfWin,
    /// Davidson's model (1970): ties have a probability of their own, proportional to ν times the geometric mean of both strengths.
    Davidson,
}

impl Default for BradleyTerry {
    /// Ties are half wins, no prior.
    fn default() -> Self {
        Self { ties: TieModel::HalfWin, prior_precision: 0.0 }
    }
}

/// Verdicts on two items, numbered.
#[derive(Default)]
pub(super) struct Pair {
    pub(super) wins: f64,
    pub(super) losses: f64,
    ties: f64,
}

/// Verdicts by pair of items, the item of the lower number first.
#[derive(Default)]
pub(super) struct Pairs(pub(super) BTreeMap<[usize; 2], Pair>);

impl Pairs {
    /// Of preferences between `n` numbered items.
    pub(super) fn soft(n: usize, comparisons: &[([usize; 2], f64)]) -> Result<Self, Error> {
        let mut pairs = Self::default();
        for (index, &(items, preference)) in comparisons.iter().enumerate() {
            if let Some(item) = items.into_iter().find(|item| *item >= n) {
                let (value, high) = (item as f64, n.saturating_sub(1) as f64);
                return Err(Error::OutOfRange { argument: "comparisons", index: Some(index), value, low: 0.0, high });
            }
            check_amount("preference", index, preference, 1.0)?;
            pairs.divide(index, items, preference, 1.0)?;
        }
        Ok(pairs)
    }

    /// Comparison number `index` as that many games of which the first item wins the share `preference`.
    pub(super) fn divide(
        &mut self,
        index: usize,
        items: [usize; 2],
        preference: f64,
        weight: f64,
    ) -> Result<(), Error> {
        self.add(index, items, |pair, turned| {
            let first = if turned { 1.0 - preference } else { preference };
            pair.wins += weight * first;
            pair.losses += weight * (1.0 - first);
        })
    }

    /// Counts comparison number `index`; `count` is told whether the pair's items are in the other order.
    fn add(&mut self, index: usize, items: [usize; 2], count: impl FnOnce(&mut Pair, bool)) -> Result<(), Error> {
        let [first, second] = items;
        if first == second {
            return Err(Error::SelfComparison { argument: "comparisons", index });
        }
        let turned = first > second;
        count(self.0.entry(if turned { [second, first] } else { items }).or_default(), turned);
        Ok(())
    }
}

/// All names once, in ascending order, and their numbers.
pub(super) fn numbered<'a>(names: impl Iterator<Item = &'a str>) -> (Vec<&'a str>, BTreeMap<&'a str, usize>) {
    let names: BTreeSet<&str> = names.collect();
    (names.iter().copied().collect(), names.into_iter().zip(0..).collect())
}

impl BradleyTerry {
    /// Fits strengths to verdicts, in any order and number.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] for a prior that is negative or not finite, [`Error::TooFewItems`] for no verdict,
    /// [`Error::SelfComparison`]; without a prior [`Error::Unconnected`] where some items never lost or tied against the others,
    /// or never met them, so that no finite strengths are best (Ford, 1957); [`Error::Undefined`] for [`TieModel::Davidson`] without a
    /// tie or without anything else; [`Error::NoConvergence`], which [`TieModel::Davidson`] also returns where strengths and ν grow
    /// together without end, as few verdicts in a circle can make them.
    pub fn fit(&self, comparisons: &[Comparison<'_>]) -> Result<FittedBradleyTerry, Error> {
        let (names, number) = numbered(comparisons.iter().flat_map(|comparison| comparison.items));
        let mut pairs = Pairs::default();
        for (index, comparison) in comparisons.iter().enumerate() {
            pairs.add(index, comparison.items.map(|name| number[name]), |pair, turned| {
                let preference = if turned { comparison.preference.swapped() } else { comparison.preference };
                match preference {
                    Preference::First => pair.wins += 1.0,
                    Preference::Second => pair.losses += 1.0,
                    Preference::Tie => pair.ties += 1.0,
                }
            })?;
        }
        self.fit_pairs(names.into_iter().map(str::to_owned).collect(), &pairs.0, comparisons.len())
    }

    /// Fits strengths of `n` items, numbered from 0 and named by their numbers, to preferences for the first of two that are probabilities,
    /// in [0, 1] with ties at one half: those of a judge that reads logits, or the mean of both orders of a pair. Each counts as one game
    /// that is divided between the two, as a tie that is half a win for each is; there are no ties besides, so [`TieModel::Davidson`] is
    /// undefined.
    ///
    /// # Errors
    ///
    /// As [`fit`](Self::fit); [`Error::NonFinite`] and [`Error::OutOfRange`] for a preference; [`Error::OutOfRange`] for an item that is
    /// not there.
    pub fn fit_soft(&self, n: usize, comparisons: &[([usize; 2], f64)]) -> Result<FittedBradleyTerry, Error> {
        let pairs = Pairs::soft(n, comparisons)?;
        self.fit_pairs((0..n).map(|item| item.to_string()).collect(), &pairs.0, comparisons.len())
    }

    /// Fits strengths to comparisons of the items of these names.
    fn fit_pairs(
        &self,
        names: Vec<String>,
        pairs: &BTreeMap<[usize; 2], Pair>,
        n_comparisons: usize,
    ) -> Result<FittedBradleyTerry, Error> {
        self.check(&names, pairs, n_comparisons)?;
        let ties: f64 = pairs.values().map(|pair| pair.ties).sum();
        let davidson = self.ties == TieModel::Davidson;
        if davidson && (ties == 0.0 || ties == n_comparisons as f64) {
            let reason = "Davidson's tie parameter needs ties and decisive verdicts";
            return Err(Error::Undefined { statistic: "the Bradley-Terry model", reason });
        }
        let m = names.len();
        let n = m + usize::from(davidson);
        let (x, at, inverse) = self.maximum(m, n, |x| self.likelihood(pairs, m, n, x))?;
        let excess = self.common_variance(m);
        let covariance = (0..m * m).map(|cell| inverse[cell / m * n + cell % m] - excess).collect();
        Ok(FittedBradleyTerry {
            items: names,
            strengths: of_sum_zero(&x[..m]),
            covariance,
            coefficients: Vec::new(),
            n: n_comparisons,
            clusters: None,
            tie_parameter: davidson.then(|| x[m].exp()),
            log_likelihood: at.value,
        })
    }

    /// That there is something to fit, and that finite strengths fit it best.
    pub(super) fn check(
        &self,
        names: &[String],
        pairs: &BTreeMap<[usize; 2], Pair>,
        n_comparisons: usize,
    ) -> Result<(), Error> {
        check_range("prior_precision", None, self.prior_precision, [0.0, f64::MAX])?;
        if names.is_empty() || (n_comparisons == 0 && self.prior_precision == 0.0) {
            return Err(Error::TooFewItems { required: 1, found: 0 });
        }
        if self.prior_precision == 0.0 { check_connected(names, pairs) } else { Ok(()) }
    }

    /// The last of n parameters is Davidson's ln ν, where there is one.
    fn likelihood(&self, pairs: &BTreeMap<[usize; 2], Pair>, m: usize, n: usize, x: &[f64]) -> Likelihood {
        let (mut value, mut gradient, mut information) = (0.0, vec![0.0; n], vec![0.0; n * n]);
        for (&[i, j], pair) in pairs {
            let d = x[i] - x[j];
            let total = pair.wins + pair.losses + pair.ties;
            let (slope, bend) = if n > m {
                let tie = x[m];
                let largest = (d.abs() / 2.0).max(tie);
                let weight = [d / 2.0, -d / 2.0, tie].map(|exponent| (exponent - largest).exp());
                let sum: f64 = weight.iter().sum();
                let [win, loss, drawn] = weight.map(|weight| weight / sum);
                let normaliser = largest + sum.ln();
                value += (pair.wins - pair.losses) * d / 2.0 + pair.ties * tie - total * normaliser;
                let lead = (win - loss) / 2.0;
                gradient[m] += pair.ties - total * drawn;
                information[m * n + m] += total * drawn * (1.0 - drawn);
                for (item, sign) in [(i, 1.0), (j, -1.0)] {
                    information[item * n + m] -= sign * total * lead * drawn;
                    information[m * n + item] -= sign * total * lead * drawn;
                }
                ((pair.wins - pair.losses) / 2.0 - total * lead, total * ((win + loss) / 4.0 - lead * lead))
            } else {
                let won = pair.wins + pair.ties / 2.0;
                let p = logistic(d);
                value += won * log_logistic(d) + (total - won) * log_logistic(-d);
                (won - total * p, total * p * (1.0 - p))
            };
            gradient[i] += slope;
            gradient[j] -= slope;
            for (a, b, sign) in [(i, i, 1.0), (j, j, 1.0), (i, j, -1.0), (j, i, -1.0)] {
                information[a * n + b] += sign * bend;
            }
        }
        self.with_prior(Likelihood { value, gradient, information }, m, x)
    }

    /// A likelihood of m strengths, and what else there is, with the prior of the strengths.
    pub(super) fn with_prior(&self, mut at: Likelihood, m: usize, x: &[f64]) -> Likelihood {
        // Without a prior only differences matter: the sum is held at 0.
        let (n, prior) = (x.len(), self.prior_precision);
        let held = if prior == 0.0 { 1.0 / m as f64 } else { 0.0 };
        let sum: f64 = x[..m].iter().sum();
        for (i, strength) in x[..m].iter().enumerate() {
            at.value -= prior * strength * strength / 2.0;
            at.gradient[i] -= prior * strength + held * sum;
            at.information[i * n + i] += prior;
            (0..m).for_each(|j| at.information[i * n + j] += held);
        }
        at.value -= held * sum * sum / 2.0;
        at
    }

    /// The maximum of a likelihood of m strengths and n parameters in all, the likelihood there, and the inverse of the information, in
    /// which what all strengths have in common is held by 1/m in every cell.
    pub(super) fn maximum(
        &self,
        m: usize,
        n: usize,
        at: impl Fn(&[f64]) -> Likelihood,
    ) -> Result<(Vec<f64>, Likelihood, Vec<f64>), Error> {
        let failed = || Error::NoConvergence { statistic: "the Bradley-Terry model", iterations: 200 };
        let (x, at) = maximise(n, at).ok_or_else(failed)?;
        // Only differences are known. Where there is a prior the common part is held here, since a small prior alone would leave a matrix
        // that cannot be inverted well.
        let mut information = at.information.clone();
        if self.prior_precision != 0.0 {
            (0..m * m).for_each(|cell| information[cell / m * n + cell % m] += 1.0 / m as f64);
        }
        let inverse = Cholesky::new(&information, n).ok_or_else(failed)?.inverse();
        Ok((x, at, inverse))
    }

    /// The sum of m strengths is 0, so what its share of the inverse is in every cell is no variance of theirs.
    pub(super) fn common_variance(&self, m: usize) -> f64 {
        1.0 / (m as f64 * (1.0 + self.prior_precision))
    }
}

/// The same strengths, added up to 0.
pub(super) fn of_sum_zero(strengths: &[f64]) -> Vec<f64> {
    let mean = strengths.iter().sum::<f64>() / strengths.len() as f64;
    strengths.iter().map(|strength| strength - mean).collect()
}

/// Every item must have beaten or tied another, and so on, until all are reached, and the other way round.
fn check_connected(names: &[String], pairs: &BTreeMap<[usize; 2], Pair>) -> Result<(), Error> {
    let reached = |beats: &dyn Fn(&Pair) -> [bool; 2]| {
        let mut reached = vec![false; names.len()];
        let mut waiting = vec![0];
        reached[0] = true;
        while let Some(item) = waiting.pop() {
            for (&[i, j], pair) in pairs {
                let [forth, back] = beats(pair);
                for (from, to, open) in [(i, j, forth), (j, i, back)] {
                    if from == item && open && !reached[to] {
                        reached[to] = true;
                        waiting.push(to);
                    }
                }
            }
        }
        reached
    };
    let won = |pair: &Pair| [pair.wins + pair.ties > 0.0, pair.losses + pair.ties > 0.0];
    let lost = |pair: &Pair| [pair.losses + pair.ties > 0.0, pair.wins + pair.ties > 0.0];
    for reached in [reached(&won), reached(&lost)] {
        if reached.contains(&false) {
            let of = |wanted: bool| {
                let names = names.iter().zip(&reached).filter(|(_, reached)| **reached == wanted);
                names.map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
            };
            return Err(Error::Unconnected { some: of(true), others: of(false) });
        }
    }
    Ok(())
}
