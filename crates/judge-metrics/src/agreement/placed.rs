//! Ratings by the places of their labels: checked once, then counted by whoever needs them.

use std::fmt::Display;

use crate::Error;
use crate::agreement::labels::{check_labels, place};
use crate::input::{check_count, check_lengths};

/// Ratings with labels replaced by their places in the list that the caller pinned, missing ones left out.
pub(crate) struct PlacedRatings {
    pub(crate) n_labels: usize,
    pub(crate) n_raters: usize,
    /// Per subject the ratings given: the rater's column and the label's place, raters ascending.
    pub(crate) subjects: Vec<Vec<(usize, usize)>>,
}

impl PlacedRatings {
    /// One row to a subject, one entry to a rater, at least two raters and labels; `None` where a rater gave none.
    pub(crate) fn new<L, R>(labels: &[L], ratings: &[R]) -> Result<Self, Error>
    where
        L: PartialEq + Display,
        R: AsRef<[Option<L>]>,
    {
        check_labels(labels)?;
        let n_raters = ratings.first().map_or(0, |row| row.as_ref().len());
        check_count(2, n_raters)?;
        let of_row = |(subject, row): (usize, &R)| {
            check_lengths("ratings", row.as_ref().len(), "ratings[0]", n_raters)?;
            let given = row.as_ref().iter().enumerate().filter_map(|(rater, label)| Some((rater, label.as_ref()?)));
            given
                .map(|(rater, label)| Ok((rater, place(labels, "ratings", rater, label)?)))
                .collect::<Result<Vec<_>, Error>>()
                .map_err(Error::in_row(subject))
        };
        let subjects = ratings.iter().enumerate().map(of_row).collect::<Result<_, Error>>()?;
        Ok(Self { n_labels: labels.len(), n_raters, subjects })
    }

    /// That somebody rated each subject.
    pub(crate) fn check_all_rated(&self) -> Result<(), Error> {
        match self.subjects.iter().position(Vec::is_empty) {
            Some(subject) => Err(Error::in_row(subject)(Error::TooFewItems { required: 1, found: 0 })),
            None => Ok(()),
        }
    }

    /// How many raters gave each label, one row to a subject.
    pub(crate) fn counts(&self) -> Vec<Vec<u64>> {
        let of_subject = |given: &Vec<(usize, usize)>| {
            let mut counts = vec![0; self.n_labels];
            given.iter().for_each(|&(_, label)| counts[label] += 1);
            counts
        };
        self.subjects.iter().map(of_subject).collect()
    }
}
