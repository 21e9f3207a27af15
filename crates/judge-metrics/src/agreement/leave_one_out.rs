//! Each annotator in turn beside the judge, both held against what the other annotators said of the same item.

use crate::Error;
use crate::input::{check_finite, check_lengths};

/// An item that the judge and at least two annotators have labelled.
pub(super) struct ScoredItem {
    /// Its row.
    pub(super) item: usize,
    /// One entry to an annotator who labelled it, columns ascending.
    pub(super) left_out: Vec<ScoredAnnotator>,
}

/// How an annotator and the judge score against the others.
#[derive(Clone, Copy)]
pub(super) struct ScoredAnnotator {
    /// The annotator's column.
    pub(super) annotator: usize,
    pub(super) person: f64,
    pub(super) judge: f64,
}

/// Scores by `score`, which is given something said and what the others, at least one, said. `judge` and `annotations` have one entry and
/// one row to an item, a row one entry to an annotator. Returns the number of annotators too.
pub(super) fn leave_one_out<L, R: AsRef<[Option<L>]>>(
    judge: &[Option<L>],
    annotations: &[R],
    score: impl Fn(&L, &[&L]) -> f64,
) -> Result<(usize, Vec<ScoredItem>), Error> {
    check_lengths("annotations", annotations.len(), "judge", judge.len())?;
    let n_annotators = annotations.first().map_or(0, |row| row.as_ref().len());
    for row in annotations {
        check_lengths("annotations", row.as_ref().len(), "annotations[0]", n_annotators)?;
    }
    let mut items = Vec::new();
    for (item, (said, row)) in judge.iter().zip(annotations).enumerate() {
        let Some(said) = said else { continue };
        let labels = row.as_ref().iter().enumerate();
        let given: Vec<(usize, &L)> =
            labels.filter_map(|(annotator, label)| Some((annotator, label.as_ref()?))).collect();
        if given.len() < 2 {
            continue;
        }
        let of_annotator = |&(annotator, own): &(usize, &L)| {
            let others: Vec<&L> =
                given.iter().filter(|(other, _)| *other != annotator).map(|(_, label)| *label).collect();
            let (person, judge) = (score(own, &others), score(said, &others));
            match [person, judge].into_iter().find(|score| score.is_nan()) {
                Some(value) => Err(Error::NonFinite { argument: "score", index: item, value }),
                None => Ok(ScoredAnnotator { annotator, person, judge }),
            }
        };
        items.push(ScoredItem { item, left_out: given.iter().map(of_annotator).collect::<Result<_, Error>>()? });
    }
    Ok((n_annotators, items))
}

/// That all ratings are numbers.
pub(super) fn check_ratings<R: AsRef<[Option<f64>]>>(judge: &[Option<f64>], annotations: &[R]) -> Result<(), Error> {
    let known = |ratings: &[Option<f64>]| ratings.iter().flatten().copied().collect::<Vec<f64>>();
    check_finite("judge", &known(judge))?;
    for (row, ratings) in annotations.iter().enumerate() {
        check_finite("annotations", &known(ratings.as_ref())).map_err(Error::in_row(row))?;
    }
    Ok(())
}
