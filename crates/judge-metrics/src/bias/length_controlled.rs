//! The win rate that would be if answers were equally long: the idea of AlpacaEval 2 (Dubois et al., 2024). Its numbers are not those of
//! the leaderboard: [`LengthControlled`] lists what differs.

use crate::estimate::Spread;
use crate::input::{check_count, check_each_in, check_finite, check_lengths, check_range, check_varies, unit_of};
use crate::means::largest;
use crate::newton::{Cholesky, Likelihood, log_logistic, logistic, maximise};
use crate::{Error, Estimate};

/// Length-controlled win rate of one system against a baseline.
///
/// The model of AlpacaEval's `length_controlled_v1`: the preference p for the system over the baseline on instruction x is
/// σ(θ + φ tanh(Δ / s) + ψ γ_x), with Δ the system's length less the baseline's, s the standard deviation of Δ (n − 1), and γ_x
/// how hard the instruction is. The win rate is the mean of that probability with Δ = 0. A system against itself has 50 % by construction,
/// which the caller knows and this fit need not find.
///
/// As upstream, preferences may be soft, θ counts as any other weight and the fit minimises the log loss. Unlike upstream, whose
/// weights have an L1 penalty chosen by cross-validation, and whose data are joined by those of two baselines made to game it (weight
/// 0.1 each), this is the maximum of the likelihood with an L2 penalty of the caller's choice; and γ, which upstream takes from a
/// published pool of judged systems, is the caller's column, or is left out.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LengthControlled {
    /// Half of it times the sum of squared weights is taken off the log-likelihood; 0, the default, is maximum likelihood.
    pub l2: f64,
}

/// A fitted length-controlled win rate.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct LengthControlledWinRate {
    /// In [0, 1]. The interval is normal, cut off at 0 and 1, with the standard error of the delta method: it takes instructions as given
    /// and verdicts as independent. Preferences of ½ make it a little too wide.
    pub win_rate: Estimate,
    /// The plain mean preference, in [0, 1].
    pub raw: f64,
    /// θ.
    pub quality: f64,
    /// φ: positive where longer answers are preferred.
    pub length: f64,
    /// ψ, where difficulties were given.
    pub difficulty: Option<f64>,
}

impl LengthControlled {
    /// `preferences[i]` in [0, 1] is that for the system (1, ½ for a tie, 0, or a probability), `lengths[i]` are the system's and the
    /// baseline's, in any unit; `difficulties`, where given, has one number for each.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`], [`Error::TooFewItems`] for fewer than two, [`Error::NonFinite`], [`Error::OutOfRange`] for a preference
    /// outside [0, 1] or a negative penalty; [`Error::Constant`] where all differences in length, or all difficulties, are the same;
    /// [`Error::Collinear`] where difficulties are a straight function of tanh(Δ / s) and there is no penalty; [`Error::NoConvergence`]
    /// where one side always wins and there is no penalty.
    ///
    /// ```
    /// use judge_metrics::bias::length_controlled::LengthControlled;
    ///
    /// // The system wins when it is longer.
    /// let lengths = [[90.0, 50.0], [80.0, 60.0], [70.0, 75.0], [95.0, 40.0], [50.0, 66.0], [85.0, 80.0], [60.0, 55.0], [88.0, 50.0]];
    /// let preferences = [1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.5];
    /// let found = LengthControlled::default().fit(&preferences, &lengths, None)?;
    /// assert!(found.length > 0.0 && found.win_rate.estimate < found.raw);
    /// # Ok::<(), judge_metrics::Error>(())
    /// ```
    pub fn fit(
        &self,
        preferences: &[f64],
        lengths: &[[f64; 2]],
        difficulties: Option<&[f64]>,
    ) -> Result<LengthControlledWinRate, Error> {
        let n = preferences.len();
        check_lengths("lengths", lengths.len(), "preferences", n)?;
        check_count(2, n)?;
        check_finite("preferences", preferences)?;
        check_each_in("preferences", preferences, [0.0, 1.0])?;
        check_range("l2", None, self.l2, [0.0, f64::MAX])?;
        let mut differences: Vec<f64> = lengths.iter().map(|[system, baseline]| system - baseline).collect();
        check_finite("lengths", &differences)?;
        check_varies("lengths", &differences)?;
        if let Some(difficulties) = difficulties {
            check_lengths("difficulties", difficulties.len(), "preferences", n)?;
            check_finite("difficulties", difficulties)?;
            check_varies("difficulties", difficulties)?;
        }
        let unit = unit_of(largest(&differences));
        differences.iter_mut().for_each(|difference| *difference *= unit);
        let mean = differences.iter().sum::<f64>() / n as f64;
        let spread = (differences.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / (n - 1) as f64).sqrt();
        let difficulty = |row: usize| difficulties.map(|difficulties| difficulties[row]);
        let features: Vec<Vec<f64>> = differences
            .iter()
            .enumerate()
            .map(|(row, d)| [1.0, (d / spread).tanh()].into_iter().chain(difficulty(row)).collect())
            .collect();
        let k = features[0].len();
        if self.l2 == 0.0 && difficulties.is_some() && are_collinear(&features) {
            return Err(Error::Collinear { argument: "difficulties", index: None });
        }
        let likelihood = |weights: &[f64]| {
            let mut at = Likelihood { value: 0.0, gradient: vec![0.0; k], information: vec![0.0; k * k] };
            for (x, &p) in features.iter().zip(preferences) {
                let score: f64 = x.iter().zip(weights).map(|(x, w)| x * w).sum();
                let fitted = logistic(score);
                at.value += p * log_logistic(score) + (1.0 - p) * log_logistic(-score);
                for i in 0..k {
                    at.gradient[i] += (p - fitted) * x[i];
                    (0..k).for_each(|j| at.information[i * k + j] += fitted * (1.0 - fitted) * x[i] * x[j]);
                }
            }
            for (i, w) in weights.iter().enumerate() {
                at.value -= self.l2 * w * w / 2.0;
                at.gradient[i] -= self.l2 * w;
                at.information[i * k + i] += self.l2;
            }
            at
        };
        let failed = || Error::NoConvergence { statistic: "the length-controlled win rate", iterations: 200 };
        let (weights, at) = maximise(k, likelihood).ok_or_else(failed)?;
        let covariance = Cholesky::new(&at.information, k).ok_or_else(failed)?;
        let (mut estimate, mut slope) = (0.0, vec![0.0; k]);
        for x in &features {
            // As it would be at equal lengths.
            let level: Vec<f64> = x.iter().enumerate().map(|(i, &x)| if i == 1 { 0.0 } else { x }).collect();
            let p = logistic(level.iter().zip(&weights).map(|(x, w)| x * w).sum());
            estimate += p / n as f64;
            slope.iter_mut().zip(&level).for_each(|(slope, x)| *slope += p * (1.0 - p) * x / n as f64);
        }
        let variance: f64 = covariance.solve(&slope).iter().zip(&slope).map(|(a, b)| a * b).sum();
        let interval = Spread::Normal { range: [0.0, 1.0] };
        let win_rate = Estimate::new("the length-controlled win rate", estimate, n)?;
        Ok(LengthControlledWinRate {
            win_rate: win_rate.with_error(variance.max(0.0).sqrt(), interval),
            raw: preferences.iter().sum::<f64>() / n as f64,
            quality: weights[0],
            length: weights[1],
            difficulty: weights.get(2).copied(),
        })
    }
}

/// Whether the third of three columns is a straight function of the second, but for rounding; the first is constant.
fn are_collinear(features: &[Vec<f64>]) -> bool {
    let n = features.len() as f64;
    let centred = |column: usize| -> Vec<f64> {
        let mean = features.iter().map(|x| x[column]).sum::<f64>() / n;
        let largest = features.iter().fold(0.0, |largest: f64, x| largest.max((x[column] - mean).abs()));
        features.iter().map(|x| (x[column] - mean) / largest.max(f64::MIN_POSITIVE)).collect()
    };
    let (a, b) = (centred(1), centred(2));
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let slope = dot(&a, &b) / dot(&a, &a);
    let left: Vec<f64> = a.iter().zip(&b).map(|(a, b)| b - slope * a).collect();
    dot(&left, &left) <= 1e-20 * dot(&b, &b)
}
