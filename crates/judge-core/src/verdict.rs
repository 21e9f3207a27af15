//! What a judge says of an item: a score and what it rests on, or why there is none.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::{Reason, Unscored, scale::ScoreDistribution};

/// What a judge says of one item.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// A score.
    Scored(Score),
    /// No score, and why.
    Unscored(Unscored),
}

impl Verdict {
    /// The score, if there is one.
    pub fn score(&self) -> Option<&Score> {
        match self {
            Self::Scored(score) => Some(score),
            Self::Unscored(_) => None,
        }
    }

    /// The score's value, if there is one.
    pub fn value(&self) -> Option<f64> {
        self.score().map(|score| score.value)
    }

    /// Why there is no score, if there is none.
    pub fn unscored(&self) -> Option<&Unscored> {
        match self {
            Self::Scored(_) => None,
            Self::Unscored(unscored) => Some(unscored),
        }
    }
}

/// A score and what it rests on. What is not known is absent; nothing is made up.
///
/// Made with [`Score::new`] or [`Score::expected`]: fields may be added.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Score {
    /// The score, in units of the judge's scale; of a pair, the preference for the first response, from 0 to 1 with ties at one half.
    pub value: f64,
    /// The number that an [activation](crate::rerank::Activation) made the value of, where one did. It orders what the activation rounds to
    /// the same value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_activation: Option<f64>,
    /// The distribution over the scale, where one was read. A grade that was written has one only where the model shows the alternatives of
    /// its token; the value is what was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distribution: Option<ScoreDistribution>,
    /// The text that the score was found in, where one was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The share of the model's probability that lay on the labels, where it was read; see
    /// [`LabelStep::label_mass`](crate::reading::LabelStep::label_mass). Of a combination, the mean of what its
    /// members say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_mass: Option<f64>,
    /// What a fitted calibrator makes of the value, where one is attached ([`Calibrated`](crate::combine::Calibrated)).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibrated: Option<Calibration>,
    /// The probability that people would say the same, from 0 to 1, by a probe on the states in which the judge came to its verdict, where
    /// one is attached ([`Confident`](crate::combine::Confident)).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// What several verdicts were combined by, where they were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub combined_by: Option<CombinedBy>,
    /// The verdicts that were combined, by name: a panel's members, the samples of one judge, or the two orders of a pair, both in terms of
    /// the given order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
}

/// One of the verdicts that a score combines.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    /// A member's name, a sample's number, or `given` and `swapped`.
    pub name: String,
    /// Its verdict.
    pub verdict: Verdict,
}

/// How the parts of a score became one value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CombinedBy {
    /// By a panel's rule.
    Panel(PanelRule),
    /// As the mean of so many samples.
    Samples(usize),
    /// As the comparison of grades, of two or of many.
    Grades,
    /// As the win rates of so many comparisons.
    Comparisons(usize),
    /// By the policy for the two orders of a pair.
    Orders(OrderPolicy),
    /// As the answers to several questions about one state.
    Questions,
    /// As the weighted share of a checklist's criteria that are met.
    Checklist,
    /// As the largest score of several documents for one query.
    Documents,
}

/// How the members' values become one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PanelRule {
    /// Their mean.
    Mean,
    /// Their median; of an even number, the mean of the two in the middle.
    Median,
    /// The most frequent value, ties to the smaller. Of a member with a distribution, its most likely point counts.
    Majority,
    /// Their mean with these weights, one per member, none negative;
    /// members without a score are left out and the others' weights count in proportion.
    Weighted(Vec<f64>),
}

/// How the two orders of a pair become one preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderPolicy {
    /// The mean of the two preferences.
    Average,
    /// What the mean of the log-probabilities of both orders says, in which a pull of the place that adds the same log-odds in both orders
    /// cancels: between the two responses the mean of the log-odds. A probability of 0 counts as the smallest positive number. The mean
    /// of the preferences where an order has no distribution.
    LogOdds,
    /// The mean where both orders choose the same, else a tie.
    TieUnlessAgreed,
    /// That of the given order; the other one is read, and kept as evidence.
    Given,
}

/// What a fitted calibrator makes of a score. All numbers are finite, and the value lies in the interval: where the calibrator's rows bound
/// an end by nothing, that end is the end of the human scale, since files have no infinity; on a scale without ends a calibrator has no
/// interval to give, which is its error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The expected human score, in units of the human scale.
    pub value: f64,
    /// Lower end of the interval for the human score of one item.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Nominal coverage, in (0, 1).
    pub level: f64,
}

impl Score {
    /// A value of which nothing else is known, such as a grade that was written.
    pub fn new(value: f64) -> Self {
        Self {
            value,
            before_activation: None,
            distribution: None,
            text: None,
            label_mass: None,
            calibrated: None,
            confidence: None,
            combined_by: None,
            parts: Vec::new(),
        }
    }

    /// The expected value of a distribution, with the distribution.
    pub fn expected(distribution: ScoreDistribution) -> Self {
        Self { distribution: Some(distribution.clone()), ..Self::new(distribution.expected()) }
    }

    /// The same score, found in `text`.
    #[must_use]
    pub fn with_text(self, text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..self }
    }

    /// The same score with the share of probability that lay on the labels.
    #[must_use]
    pub fn with_label_mass(self, mass: Option<f32>) -> Self {
        Self { label_mass: mass.map(f64::from), ..self }
    }

    /// The same score, combined from these verdicts.
    #[must_use]
    pub fn with_parts(self, combined_by: CombinedBy, parts: Vec<Part>) -> Self {
        Self { combined_by: Some(combined_by), parts, ..self }
    }

    /// The same score, combined from these verdicts, with the mean share of probability that lay on their labels.
    pub(crate) fn combined(self, combined_by: CombinedBy, parts: Vec<Part>) -> Self {
        let label_mass = mean_label_mass(parts.iter().map(|part| &part.verdict));
        Self { label_mass, ..self.with_parts(combined_by, parts) }
    }

    /// The same score if all of its numbers are finite. A part whose numbers are not is a part without a score.
    ///
    /// Every score goes through here before anyone sees it: in the runner, and in the combinations that compute with
    /// the scores of their members.
    ///
    /// # Errors
    /// [`Reason::NonFinite`], with the first number that is NaN or infinite.
    pub(crate) fn finite(mut self) -> Result<Self, Unscored> {
        for part in &mut self.parts {
            if let Verdict::Scored(score) = &part.verdict {
                part.verdict = score.clone().finite().map_or_else(Verdict::Unscored, Verdict::Scored);
            }
        }
        let calibrated = self.calibrated.iter().flat_map(|&Calibration { value, low, high, level }| {
            [
                ("the calibrated value", value),
                ("the lower end of the interval", low),
                ("the upper end", high),
                ("its level", level),
            ]
        });
        let mass = self.label_mass.map(|mass| ("the labels' share of the probability", mass));
        match [("the score", self.value)]
            .into_iter()
            .chain(self.before_activation.map(|number| ("the score before its activation", number)))
            .chain(mass)
            .chain(self.confidence.map(|confidence| ("the confidence", confidence)))
            .chain(calibrated)
            .find(|(_, number)| !number.is_finite())
        {
            None => Ok(self),
            Some((what, number)) => {
                Err(Unscored::new(Reason::NonFinite, format!("{what} is {number}, expected a finite number")))
            }
        }
    }

    /// The most likely point of the distribution, or the value where there is no distribution.
    pub fn mode(&self) -> f64 {
        self.distribution.as_ref().map_or(self.value, |distribution| distribution.mode().value)
    }
}

/// Which of two is the likelier, by the probability of the first or a preference for it, from 0 to 1: [`Greater`](Ordering::Greater) for
/// the first, [`Less`](Ordering::Less) for the second, [`Equal`](Ordering::Equal) within 10⁻¹² of one half, since of equal ones rounding
/// leaves as much. Every tie of a preference is told by this.
///
/// ```
/// use std::cmp::Ordering;
/// use judge_core::verdict::likelier;
///
/// assert_eq!([0.7, 0.3, 0.5 - 1e-16].map(likelier), [Ordering::Greater, Ordering::Less, Ordering::Equal]);
/// ```
pub fn likelier(first: f64) -> Ordering {
    if (first - 0.5).abs() <= 1e-12 { Ordering::Equal } else { first.total_cmp(&0.5) }
}

/// The mean share of the model's probability that lay on the labels, over the scores that say it; `None` if none does.
pub(crate) fn mean_label_mass<'v>(verdicts: impl IntoIterator<Item = &'v Verdict>) -> Option<f64> {
    let masses: Vec<f64> = verdicts.into_iter().filter_map(|verdict| verdict.score()?.label_mass).collect();
    (!masses.is_empty()).then(|| masses.iter().sum::<f64>() / masses.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_parts_were_combined_is_read_back() {
        let weighted = PanelRule::Weighted(vec![1.0, 2.0]);
        for combined_by in [CombinedBy::Panel(weighted), CombinedBy::Samples(3), CombinedBy::Orders(OrderPolicy::Given)]
        {
            let json = serde_json::to_string(&combined_by).unwrap();
            assert_eq!(serde_json::from_str::<CombinedBy>(&json).unwrap(), combined_by);
        }
        let calibration = Calibration { value: 2.0, low: 1.0, high: 3.0, level: 0.9 };
        let json = serde_json::to_string(&calibration).unwrap();
        assert_eq!(serde_json::from_str::<Calibration>(&json).unwrap(), calibration);
    }
}
