//! Scales, and distributions over their points.

mod digits;
mod problem;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Error;
pub use digits::in_digits;
pub use problem::ScaleProblem;

/// The points of a scale: values in ascending order, each with the label text that stands for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<ScalePoint>", into = "Vec<ScalePoint>")]
pub struct Scale {
    points: Arc<[ScalePoint]>,
}

/// One point of a [`Scale`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScalePoint {
    /// The value that counts.
    pub value: f64,
    /// The text that the model writes for it. Whoever reads its logit needs it to be one vocabulary entry.
    pub label: String,
}

impl Scale {
    /// A scale from its points.
    ///
    /// # Errors
    /// [`Error::Scale`] if there are fewer than two points, a value is not finite, values do not ascend strictly, or a
    /// label is empty or appears twice.
    pub fn new(points: Vec<ScalePoint>) -> Result<Self, Error> {
        let problem = |problem| Err(Error::Scale { problem });
        if points.len() < 2 {
            return problem(ScaleProblem::TooFew { found: points.len() });
        }
        for (index, point) in points.iter().enumerate() {
            if !point.value.is_finite() {
                return problem(ScaleProblem::NotFinite { index, value: point.value });
            }
            if point.label.is_empty() {
                return problem(ScaleProblem::EmptyLabel { index });
            }
            if let Some(first) = points[..index].iter().position(|p| p.label == point.label) {
                return problem(ScaleProblem::SameLabel { label: point.label.clone(), first, second: index });
            }
            if index > 0 && points[index - 1].value >= point.value {
                return problem(ScaleProblem::NotAscending { index });
            }
        }
        Ok(Self { points: points.into() })
    }

    /// The integers `low` to `high`, labelled by their decimal text.
    ///
    /// # Errors
    /// [`Error::Scale`] if `high <= low`.
    pub fn integers(low: i32, high: i32) -> Result<Self, Error> {
        Self::new((low..=high).map(|v| ScalePoint { value: f64::from(v), label: v.to_string() }).collect())
    }

    /// The points, ascending. Shape `[n_scores]`.
    pub fn points(&self) -> &[ScalePoint] {
        &self.points
    }

    /// Number of points, at least 2.
    #[allow(clippy::len_without_is_empty)] // a scale is never empty
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// The label texts, ascending by value.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.points.iter().map(|p| p.label.as_str())
    }

    /// The values, ascending.
    pub fn values(&self) -> impl Iterator<Item = f64> {
        self.points.iter().map(|p| p.value)
    }

    /// Smallest and largest value.
    pub fn range(&self) -> (f64, f64) {
        (self.points[0].value, self.points[self.points.len() - 1].value) // `new` admits no empty scale
    }
}

impl TryFrom<Vec<ScalePoint>> for Scale {
    type Error = Error;

    fn try_from(points: Vec<ScalePoint>) -> Result<Self, Error> {
        Self::new(points)
    }
}

impl From<Scale> for Vec<ScalePoint> {
    fn from(scale: Scale) -> Self {
        scale.points.to_vec()
    }
}

/// Probabilities over the points of a [`Scale`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScoreDistribution {
    scale: Scale,
    probabilities: Vec<f64>,
}

impl ScoreDistribution {
    /// The softmax of `logits` `[n_scores]`, in `f64`, with the largest logit subtracted first.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of logits is not that of the scale, [`Error::NonFinite`] for NaN or infinity.
    pub fn softmax(scale: &Scale, logits: &[f64]) -> Result<Self, Error> {
        check(scale, "score logits", logits)?;
        Ok(Self { scale: scale.clone(), probabilities: softmax(logits) })
    }

    /// A distribution from non-negative weights, divided by their sum. A weight of -0, which the sum of no numbers is, counts as 0.
    ///
    /// ```
    /// use judge_core::{Scale, scale::ScoreDistribution};
    ///
    /// let nothing: f64 = [0.0; 0].iter().sum();
    /// let found = ScoreDistribution::from_weights(&Scale::integers(1, 2)?, &[nothing, 3.0])?;
    /// assert_eq!(found.probabilities(), [0.0, 1.0]);
    /// assert!(found.probabilities()[0].is_sign_positive());
    /// # Ok::<(), judge_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`softmax`](Self::softmax), and [`Error::NotADistribution`] if a weight is negative, all are 0, or their sum is infinite.
    pub fn from_weights(scale: &Scale, weights: &[f64]) -> Result<Self, Error> {
        check(scale, "score weights", weights)?;
        let sum = Error::check_weights(weights)?;
        Ok(Self { scale: scale.clone(), probabilities: weights.iter().map(|w| w / sum + 0.0).collect() })
    }

    /// The scale.
    pub fn scale(&self) -> &Scale {
        &self.scale
    }

    /// Probabilities in the order of the scale; they sum to 1 up to rounding. Shape `[n_scores]`.
    pub fn probabilities(&self) -> &[f64] {
        &self.probabilities
    }

    /// The expected value, in units of the scale.
    pub fn expected(&self) -> f64 {
        self.scale.values().zip(&self.probabilities).map(|(v, p)| v * p).sum()
    }

    /// The variance, in squared units of the scale.
    pub fn variance(&self) -> f64 {
        let mean = self.expected();
        self.scale.values().zip(&self.probabilities).map(|(v, p)| (v - mean).powi(2) * p).sum()
    }

    /// The most likely point; ties go to the smaller value, as NumPy's and PyTorch's `argmax` on the CPU.
    pub fn mode(&self) -> &ScalePoint {
        &self.scale.points()[argmax(&self.probabilities)]
    }
}

/// Softmax with the largest entry subtracted first; empty for no entries.
pub(crate) fn softmax(logits: &[f64]) -> Vec<f64> {
    let max = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut weights: Vec<f64> = logits.iter().map(|&z| (z - max).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|w| *w /= sum);
    weights
}

/// Index of the largest value; ties go to the first. 0 for an empty slice.
pub(crate) fn argmax(values: &[f64]) -> usize {
    let mut best = 0;
    for (index, value) in values.iter().enumerate() {
        if *value > values[best] {
            best = index;
        }
    }
    best
}

fn check(scale: &Scale, what: &'static str, values: &[f64]) -> Result<(), Error> {
    Error::check_count("values per score", scale.len(), values.len())?;
    Error::check_finite(what, values)
}
