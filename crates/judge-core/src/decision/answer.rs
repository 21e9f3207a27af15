use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{DecisionProblem, Question, Questions};
use crate::{
    Error, JudgeError, Scale, Score, Unscored, Verdict,
    scale::{ScalePoint, ScoreDistribution, argmax},
    verdict::{CombinedBy, Part},
};

/// The answer to a [`Question`], in the form of the standard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Answer {
    /// To a yes-or-no question.
    Noul {
        /// The probability of yes.
        noul: f64,
    },
    /// To a choice.
    Choice {
        /// The first option with the largest probability.
        choice: String,
        /// `max(0, (p - 1/n) / (1 - 1/n))`, where `p` is the probability of the choice and `n` the number of options; 1 for one option.
        confidence: f64,
        /// The probability of each option, in their order.
        probabilities: Map<String, Value>,
    },
    /// To a question for a score.
    Score {
        /// The expected level, counted from 0.
        score: f64,
        /// What each level means.
        legend: Map<String, Value>,
        /// `max(0, 1 - D/U)`, where `D` is the expected distance to the likeliest level (the first of several), and `U` the mean over
        /// levels of the distance to the middle; 1 for one level.
        confidence: f64,
        /// The probability of each level.
        probabilities: Map<String, Value>,
    },
}

impl Question {
    /// The answer that these probabilities are, one for each of its [`options`](Self::options); `None` for another number of them, and for
    /// a question without options.
    #[must_use]
    pub fn answer(&self, probabilities: &[f64]) -> Option<Answer> {
        let options = self.options();
        let n = options.len();
        if probabilities.len() != n || n == 0 {
            return None;
        }
        let best = argmax(probabilities);
        let p = probabilities[best];
        let share = 1.0 / n as f64;
        let named = || options.iter().cloned().zip(probabilities.iter().map(|&p| Value::from(p))).collect();
        Some(match self {
            Self::Noul { .. } => Answer::Noul { noul: probabilities[0] },
            Self::Choice { .. } => {
                let confidence = if n == 1 { 1.0 } else { ((p - share) / (1.0 - share)).max(0.0) };
                Answer::Choice { choice: options[best].clone(), confidence, probabilities: named() }
            }
            Self::Score { criteria, .. } => {
                let distance: f64 =
                    probabilities.iter().enumerate().map(|(level, p)| p * level.abs_diff(best) as f64).sum();
                let middle = (n - 1) as f64 / 2.0;
                let of_uniform = (0..n).map(|level| (level as f64 - middle).abs()).sum::<f64>() * share;
                let confidence = if n == 1 { 1.0 } else { (1.0 - distance / of_uniform).max(0.0) };
                let score = probabilities.iter().enumerate().map(|(level, p)| level as f64 * p).sum();
                let legend = options.iter().cloned().zip(criteria.iter().cloned()).collect();
                Answer::Score { score, legend, confidence, probabilities: named() }
            }
        })
    }
}

/// What became of one question.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    /// The question's name.
    pub name: String,
    /// The answer, or why there is none.
    pub answer: Result<Answer, Unscored>,
    /// The share of the model's probability that lay on the labels of the options, where it was read. The probabilities of an answer are
    /// of the options alone; where this is small, the model was about to write something else.
    pub label_mass: Option<f64>,
}

impl Questions {
    /// The answers that a [`DecisionJudge`](super::DecisionJudge) gave to these questions, in their order.
    ///
    /// # Errors
    /// [`DecisionProblem::NotAnswered`] for a verdict on other questions.
    pub fn answers(&self, verdict: &Verdict) -> Result<Vec<Answered>, DecisionProblem> {
        let score = match verdict {
            Verdict::Scored(score) => score,
            Verdict::Unscored(unscored) => {
                let of = |(name, _): (&str, &Question)| {
                    let answer = Err(unscored.clone());
                    Answered { name: name.to_owned(), answer, label_mass: None }
                };
                return Ok(self.iter().map(of).collect());
            }
        };
        let of = |(name, question): (&str, &Question)| {
            let missing = || DecisionProblem::NotAnswered { name: name.to_owned() };
            let part = score.parts.iter().find(|part| part.name == name).ok_or_else(missing)?;
            let (answer, label_mass) = match &part.verdict {
                Verdict::Unscored(unscored) => (Err(unscored.clone()), None),
                Verdict::Scored(part) => {
                    let probabilities = question.probabilities(part).ok_or_else(missing)?;
                    (Ok(question.answer(&probabilities).ok_or_else(missing)?), part.label_mass)
                }
            };
            Ok(Answered { name: name.to_owned(), answer, label_mass })
        };
        self.iter().map(of).collect()
    }
}

impl Question {
    /// The probabilities of the options in a score of this question, in their order; `None` for a score of another one.
    #[must_use]
    pub fn probabilities(&self, score: &Score) -> Option<Vec<f64>> {
        let options = self.options();
        let Some(distribution) = &score.distribution else { return (options.len() == 1).then(|| vec![1.0]) };
        let points = distribution.scale().points();
        let of = |option: &String| {
            let place = points.iter().position(|point| point.label == *option)?;
            distribution.probabilities().get(place).copied()
        };
        (points.len() == options.len()).then(|| options.iter().map(of).collect()).flatten()
    }

    /// The score that these probabilities are, in the order of the options, each at least 0: the probability of yes, the place of the
    /// likeliest option (from 0), or the expected level.
    pub(super) fn score(&self, probabilities: &[f64]) -> Result<Score, Error> {
        let options = self.options();
        let is_noul = matches!(self, Self::Noul { .. });
        if options.len() == 1 {
            return Ok(Score::new(0.0));
        }
        // Of a yes-or-no question the first option is yes, which is the greater.
        let places: Vec<usize> = if is_noul { vec![1, 0] } else { (0..options.len()).collect() };
        let point = |(value, &place): (usize, &usize)| {
            let label = options.get(place).cloned().unwrap_or_default();
            ScalePoint { value: value as f64, label }
        };
        let scale = Scale::new(places.iter().enumerate().map(point).collect())?;
        let ordered: Vec<f64> = places.iter().filter_map(|&place| probabilities.get(place).copied()).collect();
        let distribution = ScoreDistribution::from_weights(&scale, &ordered)?;
        let score = Score::expected(distribution);
        Ok(if matches!(self, Self::Choice { .. }) {
            Score { value: argmax(probabilities) as f64, ..score }
        } else {
            score
        })
    }
}

/// The score of an item of which each part answers a question: the share of them that were answered, and the mean of their label masses.
/// One without any answer has no score.
pub(super) fn of_parts(parts: Vec<Part>) -> Result<Score, JudgeError> {
    let answered = parts.iter().filter(|part| part.verdict.score().is_some()).count();
    match parts.iter().find_map(|part| part.verdict.unscored()) {
        Some(unscored) if answered == 0 => Err(unscored.clone().into()),
        _ => {
            let value = answered as f64 / parts.len().max(1) as f64;
            Ok(Score::new(value).combined(CombinedBy::Questions, parts))
        }
    }
}
