//! One row: what the judge said, what people said, how sure the judge was, and what the row belongs to.

use std::fmt;

use crate::Error;
use crate::input::check_range;
use crate::means::mean_of_raters;
use crate::number::six_digits;

/// A score or a label.
#[derive(Debug, Clone, PartialEq)]
pub enum Rating {
    /// A finite number.
    Number(f64),
    /// A label.
    Text(String),
}

impl Rating {
    /// The number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(_) => None,
        }
    }

    /// As a label: whole numbers without a point.
    pub fn label(&self) -> String {
        match self {
            // -0 is 0.
            Self::Number(number) => (number + 0.0).to_string(),
            Self::Text(text) => text.clone(),
        }
    }
}

/// For people: six significant digits at most.
impl fmt::Display for Rating {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => f.write_str(&six_digits(*number)),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// A row that a judge and people have rated.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedItem {
    /// The judge's rating.
    pub predicted: Rating,
    /// A second judge's.
    pub second: Option<Rating>,
    /// People's: one place for each rater, `None` where one gave no rating; at least one rating. Where raters are told apart (the
    /// alternative annotator test), a place is one person's throughout.
    pub human: Vec<Option<Rating>>,
    /// How sure the judge is of its rating, in any unit: the larger the surer. All rows have one, or none has.
    pub confidence: Option<f64>,
    /// What the row belongs to, such as its question: rows of one cluster are drawn together. All rows have one, or none has.
    pub cluster: Option<String>,
    /// The chance that the row had of being rated by people, in (0, 1], where rows were not drawn with equal chances. All rows have one, or
    /// none has.
    pub sampling_probability: Option<f64>,
}

impl ComparedItem {
    /// A row of one judge's rating and people's, all of which are there.
    pub fn new(predicted: Rating, human: impl IntoIterator<Item = Rating>) -> Self {
        let human = human.into_iter().map(Some).collect();
        Self { predicted, second: None, human, confidence: None, cluster: None, sampling_probability: None }
    }

    /// The ratings that people gave.
    pub fn ratings(&self) -> impl Iterator<Item = &Rating> + Clone {
        self.human.iter().flatten()
    }

    /// The [mean](mean_of_raters) of the human ratings, where they are numbers.
    pub fn mean_human(&self) -> Option<f64> {
        let numbers: Option<Vec<f64>> = self.ratings().map(Rating::number).collect();
        mean_of_raters(&numbers?)
    }

    /// The rating that more than half of the raters gave, if there is one.
    pub fn majority(&self) -> Option<&Rating> {
        let count = |rating: &Rating| self.ratings().filter(|other| *other == rating).count();
        self.ratings().find(|rating| 2 * count(rating) > self.ratings().count())
    }

    pub(super) fn check(&self, numeric: bool) -> Result<(), Error> {
        if self.ratings().next().is_none() {
            return Err(Error::TooFewItems { required: 1, found: 0 });
        }
        let human =
            self.human.iter().enumerate().filter_map(|(index, rating)| Some(("human", index, rating.as_ref()?)));
        let second = self.second.iter().map(|rating| ("second", 0, rating));
        for (argument, index, rating) in human.chain([("predicted", 0, &self.predicted)]).chain(second) {
            match rating {
                Rating::Number(value) if !value.is_finite() => {
                    return Err(Error::NonFinite { argument, index, value: *value });
                }
                rating if rating.number().is_some() != numeric => {
                    return Err(Error::MixedRatings { found: rating.to_string(), numeric });
                }
                _ => {}
            }
        }
        if let Some(p) = self.sampling_probability {
            check_range("sampling_probability", None, p, [f64::MIN_POSITIVE, 1.0])?;
        }
        match self.confidence {
            Some(value) if !value.is_finite() => Err(Error::NonFinite { argument: "confidence", index: 0, value }),
            _ => Ok(()),
        }
    }
}
