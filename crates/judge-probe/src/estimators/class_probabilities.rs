//! Probabilities of one row with their classes, for files. Tables of many rows are `predictions::ProbabilityTable`.

use serde::{Serialize, Serializer};

use crate::Error;
use crate::estimators::parameters::{check_ascending, check_count, check_each};

/// The probability of each class, with the class beside it: as JSON `{"2": 0.42, "3": 0.58}`, classes ascending.
///
/// A bare list of probabilities says nothing of which grades it is about: a grade that never occurred in training has no entry.
///
/// ```
/// use judge_probe::ClassProbabilities;
///
/// let probabilities = ClassProbabilities::new(&[2, 3, 5], &[0.5, 0.125, 0.375])?;
/// assert_eq!(serde_json::to_string(&probabilities).unwrap(), r#"{"2":0.5,"3":0.125,"5":0.375}"#);
/// assert_eq!((probabilities.get(5), probabilities.get(1)), (Some(0.375), None));
/// # Ok::<(), judge_probe::Error>(())
/// ```
///
/// Classes are strings in JSON because its keys have to be.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassProbabilities(Vec<(i64, f64)>);

impl ClassProbabilities {
    /// Of classes, ascending, and as many probabilities, each in [0, 1].
    ///
    /// # Errors
    ///
    /// [`Error::ParameterCount`], [`Error::ClassOrder`]; [`Error::InvalidParameter`] for what is no probability.
    /// That they sum to 1 is not checked.
    pub fn new(classes: &[i64], probabilities: &[f64]) -> Result<Self, Error> {
        check_count("probabilities", classes.len(), probabilities.len())?;
        check_ascending(classes)?;
        check_each("probability", probabilities, |p| (0.0..=1.0).contains(&p))?;
        Ok(Self(classes.iter().copied().zip(probabilities.iter().copied()).collect()))
    }

    /// The probability of a class; `None` of one that the probe does not know.
    pub fn get(&self, class: i64) -> Option<f64> {
        self.0.iter().find(|&&(known, _)| known == class).map(|&(_, probability)| probability)
    }

    /// Classes and probabilities, classes ascending.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (i64, f64)> {
        self.0.iter().copied()
    }
}

impl Serialize for ClassProbabilities {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(class, probability)| (class.to_string(), probability)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_distribution_over_classes_is_refused() {
        let new = ClassProbabilities::new;
        assert!(matches!(new(&[1, 2], &[1.0]), Err(Error::ParameterCount { expected: 2, found: 1, .. })));
        assert!(matches!(new(&[2, 2], &[0.5, 0.5]), Err(Error::ClassOrder { before: 2, after: 2 })));
        assert!(matches!(new(&[1, 2], &[0.5, 1.5]), Err(Error::InvalidParameter { index: 1, .. })));
        assert!(matches!(new(&[1, 2], &[f64::NAN, 0.5]), Err(Error::InvalidParameter { index: 0, .. })));
        assert_eq!(new(&[-1, 1], &[0.25, 0.75]).unwrap().iter().collect::<Vec<_>>(), [(-1, 0.25), (1, 0.75)]);
    }
}
