use std::collections::BTreeMap;

use crate::Error;
use crate::calibration::{Binning, ReliabilityCurve};
use crate::comparison::Statistic;
use crate::comparison::collector::{Collector, Items};
use crate::estimate::NOT_NEGATIVE;
use crate::input::check_count;
use crate::prediction::kl_divergence;
use crate::resampling::Bootstrap;

/// A decision and what people say of it: two distributions over the same options.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedDecision {
    /// The share of each option in the answers of people; where all agree, one of them is 1.
    pub observed: Vec<f64>,
    /// The probability that the judge gives each option.
    pub predicted: Vec<f64>,
    /// Which decisions belong together, such as all about one state: they are drawn together.
    pub group: usize,
    /// Which decisions answer the same question, so that one answer can be the same for all of them: its options are in the same order in
    /// each.
    pub question: usize,
}

/// How good the probabilities of decisions are, beside the answers of people.
///
/// | statistic | of |
/// |---|---|
/// | `accuracy` | the share of decisions whose likeliest option (the first of several) is the one that most people chose |
/// | `majority_share` | the share of decisions that are right if each question always has the answer that people give it most often |
/// | `predicted_mode_share` | the share of decisions that are the judge's commonest answer to their question; 1 where it always says the same |
/// | `kl` | the mean Kullback–Leibler divergence of the judge's distribution from that of people, in nats; 0 is best |
/// | `brier` | the mean of Σ (p − y)² over the options, from 0 to 2; 0 is best |
/// | `ece` | the expected calibration error of the likeliest option's probability, in ten bins of equal width; 0 is best |
///
/// `accuracy` has Wilson's interval where each decision is a group of its own, and otherwise, as the other means, Student's of groups; the
/// calibration error has the bootstrap's, which draws whole groups. Decisions on which people are divided evenly, so that no one option is
/// what most chose, have no part in `accuracy`, `majority_share` and `ece`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct DecisionComparison {
    /// How many decisions.
    pub n: usize,
    /// On how many of them people are divided evenly.
    pub divided: usize,
    /// Share of right decisions.
    pub accuracy: Statistic,
    /// Share that the commonest answers of people would have right.
    pub majority_share: Statistic,
    /// Share of the judge's commonest answers.
    pub predicted_mode_share: Statistic,
    /// Kullback–Leibler divergence.
    pub kl: Statistic,
    /// Brier score.
    pub brier: Statistic,
    /// Expected calibration error.
    pub ece: Statistic,
}

/// Bins of the calibration error, as in the published figures of decision models.
const BINS: usize = 10;
/// Why there is nothing to be right about.
const DIVIDED: &str = "people are divided evenly on every decision";

impl DecisionComparison {
    /// Compares decisions with people's.
    ///
    /// What the decisions do not define, such as a divergence where the judge gives 0 to an option that people chose, is
    /// [`Statistic::Undefined`].
    ///
    /// # Errors
    ///
    /// [`Error::TooFewItems`] for none; [`Error::InRow`] around what is wrong with the distributions of a decision.
    ///
    /// ```
    /// use judge_metrics::comparison::{ComparedDecision, DecisionComparison};
    /// use judge_metrics::resampling::Bootstrap;
    ///
    /// let decision = |group, observed: [f64; 2], predicted: [f64; 2]| {
    ///     ComparedDecision { observed: observed.into(), predicted: predicted.into(), group, question: 0 }
    /// };
    /// let decisions = [decision(0, [1.0, 0.0], [0.8, 0.2]), decision(1, [0.0, 1.0], [0.6, 0.4]), decision(2, [0.5, 0.5], [0.7, 0.3])];
    /// let found = DecisionComparison::new(&decisions, &Bootstrap::default())?;
    /// // Of one decision there is no answer that most people gave.
    /// assert_eq!((found.accuracy.estimate(), found.divided), (Some(0.5), 1));
    /// // The judge always says the same, and is right as often as that is.
    /// assert_eq!((found.majority_share.estimate(), found.predicted_mode_share.estimate()), (Some(0.5), Some(1.0)));
    /// assert!((found.brier.estimate().unwrap() - (0.08 + 0.72 + 0.08) / 3.0).abs() < 1e-15);
    /// # Ok::<(), judge_metrics::Error>(())
    /// ```
    pub fn new(decisions: &[ComparedDecision], bootstrap: &Bootstrap) -> Result<Self, Error> {
        check_count(1, decisions.len())?;
        let mut rows = Vec::with_capacity(decisions.len());
        for (row, decision) in decisions.iter().enumerate() {
            let divergence = match kl_divergence(&decision.observed, &decision.predicted) {
                Ok(divergence) => Some(divergence),
                Err(error) if error.is_undefined() => None,
                Err(error) => return Err(Error::InRow { row, error: Box::new(error) }),
            };
            let [people, judge] = [&decision.observed, &decision.predicted].map(|shares| likeliest(shares));
            let most = decision.observed.get(people);
            let people =
                Some(people).filter(|_| decision.observed.iter().filter(|&share| Some(share) == most).count() == 1);
            let squares = decision.observed.iter().zip(&decision.predicted).map(|(y, p)| (p - y).powi(2));
            rows.push(Compared {
                people,
                judge,
                divergence,
                square: squares.sum(),
                confidence: decision.predicted.get(judge).copied().unwrap_or_default().min(1.0),
            });
        }
        let groups: Vec<String> = decisions.iter().map(|decision| decision.group.to_string()).collect();
        let mut found = Collector::of_rows(*bootstrap, Some(groups.iter().map(String::as_str).collect()));
        let clear: Vec<usize> = (0..rows.len()).filter(|&row| rows[row].people.is_some()).collect();
        let is_right: Vec<bool> = clear.iter().map(|&row| rows[row].people == Some(rows[row].judge)).collect();
        let question = |row: usize| decisions[row].question;
        let people = clear.iter().filter_map(|&row| Some((question(row), rows[row].people?))).collect::<Vec<_>>();
        let judge = rows.iter().enumerate().map(|(row, found)| (question(row), found.judge)).collect::<Vec<_>>();
        found.on_rows(&clear, |found| match clear.is_empty() {
            true => found.all_undefined(&["accuracy", "majority_share"], DIVIDED),
            false => {
                found.share("accuracy", &is_right);
                found.share("majority_share", &are_commonest(&people));
            }
        });
        found.share("predicted_mode_share", &are_commonest(&judge));
        match rows.iter().map(|row| row.divergence).collect::<Option<Vec<f64>>>() {
            Some(divergences) => found.mean_or_share("kl", &Items::within(&divergences, NOT_NEGATIVE)),
            None => found.undefined("kl", "an option that people chose has probability 0"),
        }
        let squares: Vec<f64> = rows.iter().map(|row| row.square).collect();
        found.mean_or_share("brier", &Items::within(&squares, [0.0, 2.0]));
        let ece = |drawn: &[usize]| {
            let (outcomes, confidence): (Vec<bool>, Vec<f64>) =
                drawn.iter().map(|&row| (is_right[row], rows[clear[row]].confidence)).unzip();
            let curve = ReliabilityCurve::new(&outcomes, &confidence, Binning::EqualWidth { bins: BINS })?;
            Ok(curve.expected_calibration_error())
        };
        found.on_rows(&clear, |found| match clear.is_empty() {
            true => found.undefined("ece", DIVIDED),
            false => found.resample("ece", None, ece, clear.len()),
        });
        let mut found = found.found.into_iter().map(|(_, statistic)| statistic);
        let mut next =
            || found.next().ok_or(Error::Undefined { statistic: "a decision's", reason: "it was not computed" });
        Ok(Self {
            n: rows.len(),
            divided: rows.len() - clear.len(),
            accuracy: next()?,
            majority_share: next()?,
            predicted_mode_share: next()?,
            kl: next()?,
            brier: next()?,
            ece: next()?,
        })
    }
}

/// What is known of one decision.
struct Compared {
    /// What most people chose; `None` where they are divided evenly.
    people: Option<usize>,
    /// The likeliest option.
    judge: usize,
    divergence: Option<f64>,
    square: f64,
    confidence: f64,
}

/// Whether each answer, given with its question, is the commonest one to it (the first of several).
fn are_commonest(answers: &[(usize, usize)]) -> Vec<bool> {
    let mut counts: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    answers.iter().for_each(|&answer| *counts.entry(answer).or_default() += 1);
    let mut commonest: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    for (&(question, option), &count) in &counts {
        let best = commonest.entry(question).or_insert((count, option));
        if count > best.0 {
            *best = (count, option);
        }
    }
    answers.iter().map(|(question, option)| commonest[question].1 == *option).collect()
}

/// The first of the largest.
fn likeliest(shares: &[f64]) -> usize {
    let mut best = 0;
    for (place, share) in shares.iter().enumerate() {
        if *share > shares[best] {
            best = place;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(group: usize, observed: &[f64], predicted: &[f64]) -> ComparedDecision {
        ComparedDecision { observed: observed.to_vec(), predicted: predicted.to_vec(), group, question: 0 }
    }

    #[test]
    fn statistics_are_those_of_their_definitions() {
        let decisions = [
            decision(0, &[0.2, 0.8, 0.0], &[0.1, 0.7, 0.2]),
            decision(0, &[1.0, 0.0], &[0.45, 0.55]),
            decision(1, &[0.0, 1.0], &[0.1, 0.9]),
            decision(2, &[0.5, 0.5], &[0.75, 0.25]),
        ];
        let found = DecisionComparison::new(&decisions, &Bootstrap::default()).unwrap();
        assert_eq!((found.n, found.divided, found.accuracy.estimate()), (4, 1, Some(2.0 / 3.0)));
        let kl = (0.2 * 2f64.ln() + 0.8 * (0.8f64 / 0.7).ln() - 0.45f64.ln() - 0.9f64.ln()
            + 0.5 * (0.5f64 / 0.75).ln()
            + 0.5 * 2f64.ln())
            / 4.0;
        assert!((found.kl.estimate().unwrap() - kl).abs() < 1e-15);
        let brier = (0.01 + 0.01 + 0.04 + 2.0 * 0.55 * 0.55 + 0.02 + 2.0 * 0.0625) / 4.0;
        assert!((found.brier.estimate().unwrap() - brier).abs() < 1e-15);
        // Three bins with one decision each, and none of that on which people are divided.
        let ece = (0.3 + 0.55 + 0.1) / 3.0;
        assert!((found.ece.estimate().unwrap() - ece).abs() < 1e-15);
        let many: Vec<ComparedDecision> = (0..12)
            .map(|group| decision(group, &[1.0, 0.0], if group % 2 == 0 { &[0.9, 0.1] } else { &[0.4, 0.6] }))
            .collect();
        let found = DecisionComparison::new(&many, &Bootstrap::default()).unwrap();
        let interval = found.accuracy.interval().unwrap();
        assert!(interval.low < 0.5 && 0.5 < interval.high, "{interval:?}");
    }

    #[test]
    fn constant_answers_are_those_of_each_question() {
        let of = |question, observed: &[f64], predicted: &[f64]| ComparedDecision {
            question,
            ..decision(0, observed, predicted)
        };
        let (yes, no) = ([1.0, 0.0], [0.0, 1.0]);
        let decisions = [of(0, &yes, &yes), of(0, &yes, &yes), of(0, &no, &yes), of(1, &no, &yes), of(1, &no, &no)];
        let found = DecisionComparison::new(&decisions, &Bootstrap::default()).unwrap();
        assert_eq!((found.accuracy.estimate(), found.majority_share.estimate()), (Some(0.6), Some(0.8)));
        assert_eq!(found.predicted_mode_share.estimate(), Some(0.8), "three of three and one of two");
    }

    /// The first option of the question passed for what people chose, whichever it was.
    #[test]
    fn where_people_are_divided_nobody_is_right() {
        let of = |observed: &[f64], predicted: &[f64]| {
            let decisions: Vec<_> = (0..4).map(|group| decision(group, observed, predicted)).collect();
            DecisionComparison::new(&decisions, &Bootstrap::default()).unwrap()
        };
        for predicted in [[0.8, 0.2], [0.2, 0.8]] {
            let found = of(&[0.5, 0.5], &predicted);
            assert_eq!(found.divided, 4);
            for statistic in [&found.accuracy, &found.majority_share, &found.ece] {
                assert!(statistic.to_string().contains("divided evenly"), "{statistic}");
            }
            let brier = found.brier.estimate().unwrap();
            assert!((brier - 0.18).abs() < 1e-12 && found.kl.estimate().is_some(), "{brier}");
        }
        // Of three options the third is behind.
        assert_eq!(of(&[0.4, 0.4, 0.2], &[0.1, 0.1, 0.8]).divided, 4);
        assert_eq!(of(&[0.4, 0.3, 0.3], &[0.6, 0.2, 0.2]).accuracy.estimate(), Some(1.0));
    }

    #[test]
    fn what_is_not_defined_says_so_and_the_rest_stays() {
        let decisions = [decision(0, &[1.0, 0.0], &[0.0, 1.0]), decision(1, &[0.0, 1.0], &[0.0, 1.0])];
        let found = DecisionComparison::new(&decisions, &Bootstrap::default()).unwrap();
        assert!(found.kl.to_string().contains("probability 0"), "{}", found.kl);
        assert_eq!(found.accuracy.estimate(), Some(0.5));
        assert!(DecisionComparison::new(&[], &Bootstrap::default()).is_err());
        let wrong = DecisionComparison::new(&[decision(0, &[1.0], &[0.5, 0.5])], &Bootstrap::default());
        assert!(matches!(wrong, Err(Error::InRow { row: 0, .. })));
    }
}
