//! Bradley–Terry strengths of single comparisons with weights, probabilities, covariates and clusters.
//!
//! Without covariates and clusters, comparisons of a pair of items add up, and `bradley_terry.rs` is enough; here each comparison keeps
//! what came with it.

use super::bradley_terry::{Pairs, numbered, of_sum_zero};
use crate::Error;
use crate::groups::clusters;
use crate::input::{check_amount, check_clusters, check_finite, check_lengths};
use crate::newton::{Likelihood, log_logistic, logistic};
use crate::ranking::{BradleyTerry, Comparison, FittedBradleyTerry, TieModel};

/// A comparison and what may come with it: how much it counts, what else may have decided it, and what it shares with others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Game<'a> {
    /// The two items, in any order.
    pub items: [&'a str; 2],
    /// The preference for `items[0]`, in [0, 1]: 1, 0, ½ for a tie, or a judge's probability.
    pub preference: f64,
    /// How many games it counts as, at least 0.
    pub weight: f64,
    /// What differs besides the items, `items[0]` less `items[1]`, such as the logarithm of length or a count of headings; all games have
    /// as many. In any unit, but near 1 in size is best.
    pub covariates: &'a [f64],
    /// Games of one cluster, such as those on one question, may depend on each other in any way. A game without one is a cluster of its
    /// own, where others have clusters.
    pub cluster: Option<&'a str>,
}

/// Counted once, without covariates and clusters, a tie being half a win.
impl<'a> From<Comparison<'a>> for Game<'a> {
    fn from(comparison: Comparison<'a>) -> Self {
        let preference = comparison.preference.credit();
        Self { items: comparison.items, preference, weight: 1.0, covariates: &[], cluster: None }
    }
}

impl BradleyTerry {
    /// Fits strengths and coefficients to games: the log-odds of the first item are θ_i − θ_j + β·x (arenas call it style control).
    ///
    /// Where no game names a cluster, standard errors come from the observed information, which is right for verdicts that are independent
    /// and weights that count repetitions. Where some do, they come from cluster sums of scores, times G / (G − 1) for G clusters (Liang
    /// and Zeger, 1986; `GLM(…, Binomial()).fit(cov_type="cluster")` of statsmodels but for that factor), which allows for any dependence
    /// within clusters and for probabilities and weights of any kind. The prior is on strengths alone. Preferences leave no ties, so
    /// [`TieModel::Davidson`] is undefined.
    ///
    /// # Errors
    ///
    /// As [`fit`](Self::fit); [`Error::OutOfRange`] and [`Error::NonFinite`] for a preference or a weight, [`Error::InRow`] around what is
    /// wrong with covariates; [`Error::TooFewClusters`] for one cluster of several games, [`Error::TooFewItems`] for one game in a cluster;
    /// [`Error::NoConvergence`] also for covariates that are linear functions of the items and of each other, or that decide every game.
    ///
    /// ```
    /// use judge_metrics::ranking::{BradleyTerry, Game};
    ///
    /// // Does a win because it is better, or because it is longer?
    /// let game = |items: [&'static str; 2], preference: f64, length: &'static [f64]| Game {
    ///     items, preference, weight: 1.0, covariates: length, cluster: None,
    /// };
    /// let games = [
    ///     game(["a", "b"], 1.0, &[1.2]), game(["a", "b"], 1.0, &[0.9]), game(["a", "b"], 0.0, &[-0.5]), game(["a", "b"], 0.0, &[0.1]),
    ///     game(["b", "a"], 0.8, &[0.4]), game(["b", "a"], 0.3, &[-0.2]), game(["b", "a"], 0.2, &[0.6]), game(["a", "b"], 1.0, &[-0.4]),
    /// ];
    /// let controlled = BradleyTerry::default().fit_games(&games)?;
    /// assert!(controlled.coefficients()?[0].estimate > 0.0, "longer answers win more often");
    /// assert!(controlled.difference("a", "b")?.interval(0.95)?.low < 0.0, "so few games show little beyond that");
    /// # Ok::<(), judge_metrics::Error>(())
    /// ```
    pub fn fit_games(&self, games: &[Game<'_>]) -> Result<FittedBradleyTerry, Error> {
        let k = games.first().map_or(0, |game| game.covariates.len());
        for (row, game) in games.iter().enumerate() {
            check_amount("preference", row, game.preference, 1.0)?;
            check_amount("weight", row, game.weight, f64::MAX)?;
            check_lengths("covariates", game.covariates.len(), "covariates of the first game", k)
                .and_then(|()| check_finite("covariates", game.covariates))
                .map_err(Error::in_row(row))?;
        }
        if self.ties == TieModel::Davidson {
            let reason = "games have preferences and no ties, which Davidson's model needs";
            return Err(Error::Undefined { statistic: "the Bradley-Terry model", reason });
        }
        let (names, number) = numbered(games.iter().flat_map(|game| game.items));
        let mut pairs = Pairs::default();
        for (index, game) in games.iter().enumerate() {
            pairs.divide(index, game.items.map(|name| number[name]), game.preference, game.weight)?;
        }
        let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        self.check(&names, &pairs.0, games.len())?;
        let m = names.len();
        let played: Vec<Played<'_>> = games
            .iter()
            .map(|game| {
                let [first, second] = game.items.map(|name| number[name]);
                Played { first, second, game: *game }
            })
            .collect();
        let n = m + k;
        let (x, at, mut covariance) = self.maximum(m, n, |x| self.of_games(&played, m, x))?;
        let clusters = if games.iter().any(|game| game.cluster.is_some()) {
            let (robust, count) = sandwich(&covariance, &played, m, &x)?;
            covariance = robust;
            Some(count)
        } else {
            let excess = self.common_variance(m);
            (0..m * m).for_each(|cell| covariance[cell / m * n + cell % m] -= excess);
            None
        };
        Ok(FittedBradleyTerry {
            items: names,
            strengths: of_sum_zero(&x[..m]),
            coefficients: (m..n).map(|place| (x[place], covariance[place * n + place].max(0.0).sqrt())).collect(),
            covariance: (0..m * m).map(|cell| covariance[cell / m * n + cell % m]).collect(),
            n: games.len(),
            clusters,
            tie_parameter: None,
            log_likelihood: at.value,
        })
    }

    /// Parameters are m strengths, then coefficients.
    fn of_games(&self, games: &[Played<'_>], m: usize, x: &[f64]) -> Likelihood {
        let n = x.len();
        let (mut value, mut gradient, mut information) = (0.0, vec![0.0; n], vec![0.0; n * n]);
        for game in games {
            let (score, weight) = (game.log_odds(m, x), game.game.weight);
            let p = logistic(score);
            value += weight
                * (game.game.preference * log_logistic(score) + (1.0 - game.game.preference) * log_logistic(-score));
            let bend = weight * p * (1.0 - p);
            for (i, a) in game.design(m) {
                gradient[i] += weight * (game.game.preference - p) * a;
                for (j, b) in game.design(m) {
                    information[i * n + j] += bend * a * b;
                }
            }
        }
        self.with_prior(Likelihood { value, gradient, information }, m, x)
    }
}

/// A game of numbered items.
struct Played<'a> {
    first: usize,
    second: usize,
    game: Game<'a>,
}

impl Played<'_> {
    /// Its row of the design: which parameters count, and how much.
    fn design(&self, m: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let covariates = self.game.covariates.iter().enumerate().map(move |(place, x)| (m + place, *x));
        [(self.first, 1.0), (self.second, -1.0)].into_iter().chain(covariates)
    }

    fn log_odds(&self, m: usize, x: &[f64]) -> f64 {
        self.design(m).map(|(place, a)| a * x[place]).sum()
    }
}

/// The covariance of the parameters from cluster sums of the games' scores, and the number of clusters.
fn sandwich(inverse: &[f64], games: &[Played<'_>], m: usize, x: &[f64]) -> Result<(Vec<f64>, usize), Error> {
    let n = x.len();
    // A game without a cluster is one of its own.
    let of_game: Vec<Result<&str, usize>> =
        games.iter().enumerate().map(|(row, game)| game.game.cluster.ok_or(row)).collect();
    let clusters = clusters(&of_game);
    check_clusters(2, games.len(), clusters.len())?;
    let mut covariance = vec![0.0; n * n];
    for rows in &clusters {
        let mut score = vec![0.0; n];
        for game in rows.iter().map(|&row| &games[row]) {
            let residual = game.game.weight * (game.game.preference - logistic(game.log_odds(m, x)));
            game.design(m).for_each(|(place, a)| score[place] += residual * a);
        }
        let moved: Vec<f64> =
            inverse.chunks_exact(n).map(|row| row.iter().zip(&score).map(|(a, s)| a * s).sum()).collect();
        for i in 0..n {
            (0..n).for_each(|j| covariance[i * n + j] += moved[i] * moved[j]);
        }
    }
    let count = clusters.len() as f64;
    covariance.iter_mut().for_each(|cell| *cell *= count / (count - 1.0));
    Ok((covariance, clusters.len()))
}
