//! Grades, the scale that they must lie on, and the classes that they become.
//!
//! A grade is what people gave, any finite number; a class is what a classifier learns, a whole number. Both are kept:
//! classifiers see classes, while correlations and the calibrator use the grade as it is. What classes a model's own logits
//! stand for is in `predictions`.

use std::collections::BTreeSet;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{GradeScale, GradedRow, TrainingError};

/// Most classes that a probe is trained to tell apart: more are no grades of a short scale.
/// A scale of 0 to 100 should be cut by [`Grading::AtLeast`]: with a handful of rows in each class nothing could be learnt or
/// stratified.
const MOST_CLASSES: usize = 20;

/// How grades become classes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grading {
    /// Each whole grade is a class. A grade between two, such as a mean over raters, is rounded, halves up;
    /// [`TrainingReport::rounded`](super::TrainingReport::rounded) counts these.
    Whole,
    /// Two classes: 1 for grades of at least this, 0 for those below.
    /// The threshold need not be a grade that occurs. Nothing is rounded.
    AtLeast(f64),
}

impl Grading {
    /// The class of a finite grade.
    ///
    /// Nothing checks here that the grade is finite or on a scale: [`ProbeTraining::train`](super::ProbeTraining::train) has
    /// done so before.
    ///
    /// ```
    /// use judge_probe::training::Grading;
    ///
    /// assert_eq!([2.4, 2.5, 3.0].map(|grade| Grading::Whole.class(grade)), [2, 3, 3]);
    /// assert_eq!([2.4, 2.5, 3.0].map(|grade| Grading::AtLeast(3.0).class(grade)), [0, 0, 1]);
    /// ```
    pub fn class(self, grade: f64) -> i64 {
        match self {
            Self::Whole => whole(grade),
            Self::AtLeast(threshold) => i64::from(grade >= threshold),
        }
    }

    /// Whether a grade has to be rounded to have a class.
    /// Never for [`AtLeast`](Self::AtLeast).
    pub fn rounds(self, grade: f64) -> bool {
        self == Self::Whole && grade.fract() != 0.0
    }

    /// What the published files call it: `multi` or `binary`.
    /// It becomes the note `classification` of a saved probe.
    pub(super) fn classification(self) -> &'static str {
        match self {
            Self::Whole => "multi",
            Self::AtLeast(_) => "binary",
        }
    }

    /// The classes that occur, ascending.
    ///
    /// Of all rows, read or not, so that a report has the same labels whatever the model could read.
    ///
    /// # Errors
    ///
    /// [`TrainingError::NoRows`], [`TrainingError::OneClass`], and [`TrainingError::ManyClasses`] for more than 20.
    pub(super) fn classes(self, rows: &[GradedRow]) -> Result<Vec<i64>, TrainingError> {
        let classes: BTreeSet<i64> = rows.iter().map(|row| self.class(row.grade)).collect();
        match classes.len() {
            0 => Err(TrainingError::NoRows),
            1 => Err(TrainingError::OneClass { class: self.class(rows[0].grade), n_rows: rows.len() }),
            found if found > MOST_CLASSES => Err(TrainingError::ManyClasses { found, most: MOST_CLASSES }),
            _ => Ok(classes.into_iter().collect()),
        }
    }
}

/// The nearest whole number, halves up.
/// Not `f64::round`, which takes -0.5 to -1: halves go up on both sides of 0.
pub(super) fn whole(grade: f64) -> i64 {
    (grade + 0.5).floor() as i64
}

impl GradeScale {
    /// Refuses the first grade that is not on the scale, or not finite.
    /// A grade of NaN is in no range, and so is refused like any other that is off the scale.
    pub(super) fn check(self, rows: &[GradedRow]) -> Result<(), TrainingError> {
        let off = |row: &&GradedRow| !(self.low..=self.high).contains(&row.grade);
        match rows.iter().find(off) {
            Some(row) => Err(TrainingError::OffScale { id: row.id.clone(), grade: row.grade, scale: self }),
            None => Ok(()),
        }
    }
}

impl FromStr for GradeScale {
    type Err = TrainingError;

    /// Reads `1-5`, `0-100` or `-1-1`.
    ///
    /// The ends may be fractions, and white space around them is ignored.
    ///
    /// # Errors
    ///
    /// [`TrainingError::UnknownScale`] for anything else, also where the lower end is not below the upper one or an end is not
    /// finite.
    fn from_str(text: &str) -> Result<Self, TrainingError> {
        let wrong = || TrainingError::UnknownScale { found: text.chars().take(100).collect() };
        // The first character may be the sign of the lower end.
        let dash = text.char_indices().skip(1).find(|&(_, c)| c == '-').map(|(at, _)| at).ok_or_else(wrong)?;
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
        match (number(&text[..dash]), number(&text[dash + 1..])) {
            (Some(low), Some(high)) if low < high => Ok(Self { low, high }),
            _ => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_rounded_up_and_counted() {
        for (grade, class) in [(1.0, 1), (1.49, 1), (2.5, 3), (3.5, 4), (-0.5, 0), (-1.2, -1)] {
            assert_eq!(Grading::Whole.class(grade), class, "{grade}");
            assert_eq!(Grading::Whole.rounds(grade), grade.fract() != 0.0);
        }
        assert_eq!([3.9, 4.0].map(|grade| Grading::AtLeast(4.0).class(grade)), [0, 1]);
        assert!(!Grading::AtLeast(4.0).rounds(3.5));
    }

    #[test]
    fn scales_are_read_as_they_are_written() {
        for (text, low, high) in [("1-5", 1.0, 5.0), ("0-100", 0.0, 100.0), ("-1-1", -1.0, 1.0), ("-2--1", -2.0, -1.0)]
        {
            let scale: GradeScale = text.parse().unwrap();
            assert_eq!((scale, scale.to_string().as_str()), (GradeScale { low, high }, text));
        }
        for text in ["", "5", "5-1", "a-b", "1-", "-", "é-é", "1-inf", "NaN-1"] {
            assert!(matches!(text.parse::<GradeScale>(), Err(TrainingError::UnknownScale { .. })), "{text:?}");
        }
    }
}
