//! Which ratings are labels, in which order, and what they are worth.
//!
//! Labels are fixed for a whole comparison before any group of rows is looked at, so that macro averages of groups run over the same
//! classes.

use std::collections::BTreeSet;

use super::{ComparedItem, Rating};
use crate::Error;
use crate::input::check_count;

/// Whole numbers and texts are labels up to this many different ones.
const MAX_LABELS: usize = 20;

/// The labels of a scale, in their order.
#[derive(Debug, Clone, PartialEq)]
pub struct Labels {
    ratings: Vec<Rating>,
    /// What the labels are worth: numbers, and texts of numbers, as such; other texts that were named in an order, their places.
    values: Option<Vec<f64>>,
}

impl Labels {
    /// Labels by their names, which are numbers where the ratings are (`numeric`). Texts that are no numbers are then as far apart as their
    /// places here.
    ///
    /// # Errors
    ///
    /// [`Error::TooFewItems`] for fewer than two, [`Error::NotANumber`], [`Error::DuplicateLabel`]: `1` and `1.0` are one number.
    pub fn named(names: &[String], numeric: bool) -> Result<Self, Error> {
        let mut ratings: Vec<Rating> = Vec::new();
        for (index, name) in names.iter().enumerate() {
            let rating = match number(name) {
                Some(value) if numeric => Rating::Number(value),
                None if numeric => {
                    return Err(Error::NotANumber { argument: "labels", index, found: name.clone() });
                }
                _ => Rating::Text(name.clone()),
            };
            if ratings.contains(&rating) {
                return Err(Error::DuplicateLabel { index, label: name.clone() });
            }
            ratings.push(rating);
        }
        check_count(2, ratings.len())?;
        let labels = Self::new(ratings);
        let places = (0..labels.ratings.len()).map(|place| place as f64).collect();
        Ok(Self { values: labels.values.or(Some(places)), ..labels })
    }

    /// Those that occur, numbers ascending and texts in the order of their letters, or why ratings are no labels: fractions are none, nor
    /// are more than 20 different ones.
    pub(super) fn occurring(items: &[ComparedItem]) -> Result<Self, String> {
        let mut names = BTreeSet::new();
        let mut ratings = Vec::new();
        for rating in items.iter().flat_map(|item| item.ratings().chain([&item.predicted])) {
            if rating.number().is_some_and(|value| value.fract() != 0.0) {
                return Err(format!(
                    "{rating} is not a whole number, so scores are no labels unless the labels are named"
                ));
            }
            if names.insert(rating.label()) {
                ratings.push(rating.clone());
            }
            if names.len() > MAX_LABELS {
                return Err(format!(
                    "there are more than {MAX_LABELS} different scores, which are no labels unless the labels are named"
                ));
            }
        }
        if ratings.len() < 2 {
            return Err(format!("only one label occurs: {}", names.into_iter().collect::<String>()));
        }
        let mut labels = Self::new(ratings);
        match &labels.values {
            Some(values) => {
                let mut order: Vec<usize> = (0..values.len()).collect();
                order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
                labels = Self::new(order.iter().map(|&label| labels.ratings[label].clone()).collect());
            }
            None => labels.ratings.sort_by_key(Rating::label),
        }
        Ok(labels)
    }

    fn new(ratings: Vec<Rating>) -> Self {
        let values: Option<Vec<f64>> =
            ratings.iter().map(|rating| rating.number().or_else(|| number(&rating.label()))).collect();
        // "1" and "1.0" are two texts of one value: no distance is then known.
        let apart = |values: &Vec<f64>| (1..values.len()).all(|i| !values[..i].contains(&values[i]));
        Self { values: values.filter(apart), ratings }
    }

    /// Whether they are 0 and 1, so that a mean of them is a share.
    #[must_use]
    pub fn are_decisions(&self) -> bool {
        self.values.as_ref().is_some_and(|values| values.len() == 2 && values.contains(&0.0) && values.contains(&1.0))
    }

    pub(super) fn indices(&self) -> Vec<usize> {
        (0..self.ratings.len()).collect()
    }

    /// What they are worth, where they are numbers, texts of different numbers, or were named in an order.
    pub(super) fn values(&self) -> Option<&[f64]> {
        self.values.as_deref()
    }

    pub(super) fn place(&self, rating: &Rating) -> Result<usize, String> {
        self.ratings.iter().position(|known| known == rating).ok_or_else(|| {
            let known: Vec<String> = self.ratings.iter().map(Rating::to_string).collect();
            format!("a score is {rating}, not one of the labels {}", known.join(", "))
        })
    }

    /// The same of what a second judge says, whose labels need not be among those of the first and of people.
    pub(super) fn place_of_second(&self, rating: &Rating) -> Result<usize, String> {
        self.place(rating).map_err(|reason| format!("of the second judge, {reason}; name all labels if it is one"))
    }
}

/// A number that text spells, with none of the words for infinity and the like.
fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|value: &f64| value.is_finite()).map(|value| value + 0.0)
}
