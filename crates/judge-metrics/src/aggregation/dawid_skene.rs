use std::fmt::Display;

use super::expectation::{AnnotatorModel, Expected, Parameters};
use super::patterns::Patterns;
use crate::Error;
use crate::agreement::PlacedRatings;
use crate::input::check_range;

/// The label that is right of each subject, and how good each annotator is, from labels alone: Dawid and Skene's model (1979), by
/// expectation maximisation.
///
/// Annotators, people or judges, err independently of one another given the label that is right. Where they differ in skill, good ones come
/// to count for more than in a majority vote. Where errors are shared, as those of judges of one family are, the model takes agreement for
/// skill: see [`PanelSize`](super::PanelSize).
///
/// The iteration starts from each subject's shares of votes, so the result depends on the data alone, and ends at a local maximum of the
/// likelihood near the majority vote. Labels that are split evenly by annotators who never agree may leave it where it started. For an
/// interval of an accuracy or a prevalence draw subjects by the [`Bootstrap`](crate::resampling::Bootstrap). Settings are public fields;
/// [`fit`](Self::fit) checks them.
///
/// Subjects with equal ratings count as one with a weight, so that a step costs as many terms as there are different rows of ratings. Every
/// second step is extrapolated (SQUAREM; Varadhan and Roland, 2008), and what lowers the likelihood is dropped: the maximum is that of
/// plain steps, in a tenth of them or fewer.
///
/// ```
/// use judge_metrics::aggregation::{DawidSkene, MajorityVote};
///
/// // Two annotators who are always right on subjects 0 to 5, and three who say "no" whatever they see: the majority is wrong on "yes".
/// let ratings: Vec<[Option<&str>; 5]> = (0..12)
///     .map(|subject| {
///         let right = Some(if subject % 2 == 0 { "yes" } else { "no" });
///         let lazy = Some(if subject == 4 { "yes" } else { "no" });
///         [right, right, lazy, lazy, Some(if subject == 0 { "yes" } else { "no" })]
///     })
///     .collect();
/// let labels = ["yes", "no"];
/// assert_eq!(MajorityVote::new(&labels, &ratings)?.winners[2], Some(1));
/// let found = DawidSkene::default().fit(&labels, &ratings)?;
/// assert_eq!(found.most_probable[2], 0);
/// assert!(found.annotators[0].accuracy > 0.99 && found.annotators[2].accuracy < 0.7);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DawidSkene {
    /// What an annotator's errors depend on.
    pub model: AnnotatorModel,
    /// Pseudo-counts, in [0, 10⁹], added to every cell of each annotator's confusion matrix; of [`AnnotatorModel::OneCoin`], to each label
    /// that may be given, so that accuracies shrink towards one in as many as there are labels. The fit is then the mode under a Dirichlet
    /// prior. 0 is maximum likelihood, under which an annotator with few labels soon seems infallible.
    pub smoothing: f64,
    /// The iteration ends where a step moves no posterior probability by more than this; in [0, 1]. What is left to go may be many times
    /// that where the iteration is slow.
    pub tolerance: f64,
    /// Iterations after which it is given up, at least 1. Labels of people take tens to hundreds; where nobody agrees with anybody there
    /// may be no end.
    pub max_iterations: usize,
}

impl Default for DawidSkene {
    /// Confusion matrices by maximum likelihood, 10⁻⁸, 10,000 iterations.
    fn default() -> Self {
        Self { model: AnnotatorModel::ConfusionMatrix, smoothing: 0.0, tolerance: 1e-8, max_iterations: 10_000 }
    }
}

/// What [`DawidSkene::fit`] found.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct AggregatedLabels {
    /// Per subject how probable each label is to be right, in the order of the labels: a distribution. The model's assumptions make it
    /// surer than it should be.
    pub posteriors: Vec<Vec<f64>>,
    /// Per subject the place of the most probable label; of labels within 10⁻⁹ of it, which rounding alone would tell apart, the first in
    /// the list.
    pub most_probable: Vec<usize>,
    /// How often each label is right: a distribution.
    pub prevalences: Vec<f64>,
    /// Each annotator, in the order of the columns.
    pub annotators: Vec<Annotator>,
    /// Of all ratings under the parameters found, in nats, without a part for the prior.
    pub log_likelihood: f64,
    /// Made, each of a maximum and an expectation step.
    pub iterations: usize,
}

/// How good an annotator is, as far as the model can tell.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Annotator {
    /// Labels given.
    pub n: usize,
    /// The mean probability that a label given is right, in [0, 1]; of [`AnnotatorModel::OneCoin`] the model's accuracy, which smoothing
    /// moves.
    pub accuracy: f64,
    /// `confusion[truth][given]`: how probable each label is to be given where one is right. Each row is a distribution; even where nothing
    /// that the annotator saw may have had that label.
    pub confusion: Vec<Vec<f64>>,
}

const STATISTIC: &str = "Dawid and Skene's model";

impl DawidSkene {
    /// Fits ratings: one row to a subject, one entry to an annotator, `None` where an annotator gave none. Labels are pinned by the caller;
    /// one that nobody gives has prevalence 0.
    ///
    /// Equals `crowdkit.aggregation.DawidSkene` and `OneCoinDawidSkene` of crowd-kit 1.4 run to convergence, but that those keep
    /// probabilities from 0 by 10⁻¹⁰, and spread what is not known of an annotator over the labels that they gave rather than all.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`] for a setting; [`Error::TooFewItems`] for fewer than two labels or no subject, [`Error::LengthMismatch`],
    /// [`Error::DuplicateLabel`]; [`Error::InRow`] around [`Error::UnknownLabel`], and around [`Error::TooFewItems`] for a subject that
    /// nobody rated; [`Error::Undefined`] for fewer than three annotators, of whom the likelihood cannot tell who is right, and where an
    /// annotator gave no label; [`Error::NoConvergence`].
    pub fn fit<L, R>(&self, labels: &[L], ratings: &[R]) -> Result<AggregatedLabels, Error>
    where
        L: PartialEq + Display,
        R: AsRef<[Option<L>]>,
    {
        self.check()?;
        let placed = PlacedRatings::new(labels, ratings)?;
        placed.check_all_rated()?;
        let undefined = |reason| Err(Error::Undefined { statistic: STATISTIC, reason });
        if placed.n_raters < 3 {
            return undefined("of fewer than three annotators the likelihood cannot tell who is right");
        }
        let mut given = vec![0; placed.n_raters];
        placed.subjects.iter().flatten().for_each(|&(annotator, _)| given[annotator] += 1);
        if given.contains(&0) {
            return undefined("an annotator gave no label");
        }
        let patterns = Patterns::new(&placed);
        let (fitted, iterations) = self.climb(&patterns)?;
        Ok(self.aggregated(&patterns, &given, fitted, iterations))
    }

    /// Expectation maximisation, extrapolated after every second step. An extrapolation that lowers the objective is dropped.
    fn climb(&self, patterns: &Patterns<'_>) -> Result<(State, usize), Error> {
        let mut iterations = 0;
        // The state after a step from these posteriors, and whether the step was small enough.
        let mut step = |posteriors: &[f64]| {
            if iterations == self.max_iterations {
                return Err(Error::NoConvergence { statistic: STATISTIC, iterations });
            }
            iterations += 1;
            let parameters = Parameters::maximised(self.model, self.smoothing, patterns, posteriors);
            let state = self.state(patterns, parameters);
            let ended = furthest(posteriors, &state.expected.posteriors) <= self.tolerance;
            Ok((state, ended, iterations))
        };
        let (mut start, mut ended, mut made) = step(&patterns.shares())?;
        while !ended {
            let (middle, small, after) = step(&start.expected.posteriors)?;
            if small {
                return Ok((middle, after));
            }
            let end;
            (end, ended, made) = step(&middle.expected.posteriors)?;
            let further = if ended { None } else { end.parameters.extrapolated(&start.parameters, &middle.parameters) };
            start = match further.map(|parameters| self.state(patterns, parameters)) {
                Some(further) if further.objective >= end.objective => further,
                _ => end,
            };
        }
        Ok((start, made))
    }

    fn state(&self, patterns: &Patterns<'_>, parameters: Parameters) -> State {
        let expected = parameters.expected(patterns);
        let objective = expected.log_likelihood + parameters.log_prior(self.model, self.smoothing);
        State { parameters, expected, objective }
    }

    fn check(&self) -> Result<(), Error> {
        let settings = [
            ("smoothing", self.smoothing, [0.0, 1e9]),
            ("tolerance", self.tolerance, [0.0, 1.0]),
            ("max_iterations", self.max_iterations as f64, [1.0, f64::MAX]),
        ];
        settings.into_iter().try_for_each(|(argument, value, ends)| check_range(argument, None, value, ends))
    }

    fn aggregated(
        &self,
        patterns: &Patterns<'_>,
        given: &[usize],
        fitted: State,
        iterations: usize,
    ) -> AggregatedLabels {
        let State { parameters, expected, .. } = fitted;
        let k = patterns.n_labels;
        let posteriors: Vec<&[f64]> = expected.posteriors.chunks_exact(k).collect();
        let mut right = vec![0.0; given.len()];
        for ((labels, weight), posterior) in patterns.iter().zip(&posteriors) {
            labels.iter().for_each(|&(annotator, label)| right[annotator] += weight * posterior[label]);
        }
        let annotator = |(column, matrix): (usize, &[f64])| Annotator {
            n: given[column],
            accuracy: match self.model {
                AnnotatorModel::ConfusionMatrix => (right[column] / given[column] as f64).min(1.0),
                AnnotatorModel::OneCoin => matrix[0],
            },
            confusion: matrix.chunks_exact(k).map(<[f64]>::to_vec).collect(),
        };
        let annotators = parameters.confusion.chunks_exact(k * k).enumerate().map(annotator).collect();
        let most_probable: Vec<usize> = posteriors.iter().map(|posterior| first_of_largest(posterior)).collect();
        AggregatedLabels {
            most_probable: patterns.of_subject.iter().map(|&pattern| most_probable[pattern]).collect(),
            posteriors: patterns.of_subject.iter().map(|&pattern| posteriors[pattern].to_vec()).collect(),
            prevalences: parameters.prevalences,
            annotators,
            log_likelihood: expected.log_likelihood,
            iterations,
        }
    }
}

/// Parameters and what follows from them.
struct State {
    parameters: Parameters,
    expected: Expected,
    /// The log-likelihood and the logarithm of the prior, which no step lowers.
    objective: f64,
}

/// The largest difference of two probabilities of one pattern and label.
fn furthest(before: &[f64], after: &[f64]) -> f64 {
    before.iter().zip(after).map(|(before, after)| (before - after).abs()).fold(0.0, f64::max)
}

/// Of the labels whose probability is the largest but for rounding, the first.
fn first_of_largest(posterior: &[f64]) -> usize {
    const ROUNDING: f64 = 1e-9;
    let largest = posterior.iter().copied().fold(0.0, f64::max);
    // Some label has the largest probability.
    posterior.iter().position(|&p| p >= largest - ROUNDING).unwrap_or_default()
}
