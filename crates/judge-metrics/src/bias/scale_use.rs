//! Which part of a scale a judge uses: one that gives everybody a four agrees with nobody in particular.

use std::fmt::Display;

use crate::agreement::{check_labels, place};
use crate::input::check_count;
use crate::{Error, Proportion};

/// How scores spread over the levels of a scale.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ScaleUse {
    /// Scores at each level, in the order of the scale.
    pub counts: Vec<usize>,
}

impl ScaleUse {
    /// `levels` are all of the scale, lowest first.
    ///
    /// # Errors
    ///
    /// [`Error::TooFewItems`] for fewer than two levels or no scores, [`Error::DuplicateLabel`], [`Error::UnknownLabel`].
    ///
    /// ```
    /// use judge_metrics::bias::scale_use::ScaleUse;
    ///
    /// let uses = ScaleUse::new(&[1, 2, 3, 4, 5], &[4, 4, 5, 4, 4, 3, 5, 4])?;
    /// assert_eq!(uses.mode_share().estimate()?, 0.625);
    /// assert_eq!(uses.ceiling().estimate()?, 0.25);
    /// assert!((uses.entropy_bits() - 1.298_795).abs() < 1e-6);
    /// # Ok::<(), judge_metrics::Error>(())
    /// ```
    pub fn new<L: PartialEq + Display + Clone>(levels: &[L], scores: &[L]) -> Result<Self, Error> {
        check_count(1, scores.len())?;
        check_labels(levels)?;
        let mut counts = vec![0; levels.len()];
        for (index, score) in scores.iter().enumerate() {
            counts[place(levels, "scores", index, score)?] += 1;
        }
        Ok(Self { counts })
    }

    /// Of the places of levels, at least one, among so many levels.
    pub(crate) fn of_places(levels: usize, places: impl Iterator<Item = usize>) -> Self {
        let mut counts = vec![0; levels];
        places.for_each(|place| counts[place] += 1);
        Self { counts }
    }

    fn n(&self) -> usize {
        self.counts.iter().sum()
    }

    /// Shannon's entropy of the levels in bits, from 0 (one level) to log₂ of their number (all alike).
    pub fn entropy_bits(&self) -> f64 {
        let n = self.n() as f64;
        let entropy: f64 = self
            .counts
            .iter()
            .filter(|&&count| count > 0)
            .map(|&count| -(count as f64 / n) * (count as f64 / n).log2())
            .sum();
        entropy.max(0.0)
    }

    /// Share of scores at the most frequent level.
    pub fn mode_share(&self) -> Proportion {
        Proportion { count: self.counts.iter().copied().max().unwrap_or(0), n: self.n() }
    }

    /// Share of scores at the highest level.
    pub fn ceiling(&self) -> Proportion {
        Proportion { count: self.counts.last().copied().unwrap_or(0), n: self.n() }
    }

    /// Share of scores at the lowest level.
    pub fn floor(&self) -> Proportion {
        Proportion { count: self.counts.first().copied().unwrap_or(0), n: self.n() }
    }
}
