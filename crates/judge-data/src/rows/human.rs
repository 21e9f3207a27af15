//! What people said of an item.

use serde::{Serialize, Serializer};

use crate::PairVerdict;

/// What people said of an item, as a row has it in `human`. Each rater keeps the place, `None` for one who said nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum Human {
    /// A number of each rater; one stands without a list.
    Numbers(Vec<Option<f64>>),
    /// What each rater prefers, 1 for the first response, 0 for the second, ½ for a tie, written in letters; one stands without a list.
    Preferences(Vec<Option<f64>>),
    /// A number, or none, for each of several responses: always a list.
    Grades(Vec<Option<f64>>),
}

impl Human {
    /// Whether nobody said anything.
    pub fn is_empty(&self) -> bool {
        let (Self::Numbers(all) | Self::Preferences(all) | Self::Grades(all)) = self;
        all.iter().all(Option::is_none)
    }
}

/// One thing by itself, several as a list.
fn one_or_many<T: Serialize, S: Serializer>(all: &[T], serializer: S) -> Result<S::Ok, S::Error> {
    match all {
        [one] => one.serialize(serializer),
        all => all.serialize(serializer),
    }
}

impl Serialize for Human {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Numbers(all) => one_or_many(all, serializer),
            Self::Preferences(all) => {
                let letters: Vec<Option<PairVerdict>> =
                    all.iter().map(|preference| preference.map(PairVerdict::of_preference)).collect();
                one_or_many(&letters, serializer)
            }
            Self::Grades(all) => all.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rater_keeps_the_place() {
        let written = |human: Human| (human.is_empty(), serde_json::to_string(&human).unwrap());
        let (one, second) = (vec![Some(1.0)], vec![None, Some(0.5)]);
        assert_eq!(written(Human::Numbers(one.clone())), (false, "1.0".to_owned()));
        assert_eq!(written(Human::Numbers(second.clone())), (false, "[null,0.5]".to_owned()));
        assert_eq!(written(Human::Preferences(one)), (false, r#""A""#.to_owned()));
        assert_eq!(written(Human::Preferences(second)), (false, r#"[null,"tie"]"#.to_owned()));
        assert!([Human::Numbers, Human::Preferences, Human::Grades].iter().all(|human| human(vec![None]).is_empty()));
    }
}
