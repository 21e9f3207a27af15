//! People among themselves: the ceiling of any judge, and whether the judge may take the place of one of them.
//!
//! A rater is a place in `ComparedItem::human`, the same person in every row. Rows may lack ratings. Intraclass correlations take rows that are complete, so they are
//! left out where one is not; Krippendorff's alpha, the ceiling and the alternative annotator test take what is there.

use super::collector::{Collector, take};
use super::numbers::{alphas, intraclass};
use super::{ComparedItem, Labels, Rating, Reported};
use crate::agreement::{Advantages, AlternativeAnnotatorTest, AlternativeAnnotators, HumanCeiling, RatingTable};
use crate::{Error, Estimate};

/// What says whether the judge may take the place of a rater.
pub(super) const ALTERNATIVE: [&str; 2] = ["alternative_winning_rate", "alternative_advantage"];

/// The judge and each rater against the other raters, by one measure: the mean share of rows with the label of most of them, or the mean distance from their mean.
pub(super) const AGAINST_REST: [&str; 3] = ["against_rest_judge", "against_rest_human", "against_rest_difference"];

/// What several raters define.
pub(super) const OF_RATERS: [&str; 7] = [
    "human_krippendorff_alpha_nominal",
    "human_krippendorff_alpha_ordinal",
    "human_krippendorff_alpha_interval",
    "human_icc_1",
    "human_icc_a1",
    "human_icc_c1",
    "human_fleiss_kappa",
];

/// Nothing is reported of rows with one rater each.
pub(super) fn compare(
    found: &mut Collector<'_>,
    rows: &[&ComparedItem],
    numeric: bool,
    labels: Result<&Labels, &String>,
) {
    let k = rows.iter().map(|row| row.human.len()).max().unwrap_or(0);
    if k < 2 {
        return;
    }
    let n = rows.len();
    let rating = |row: &&ComparedItem, rater: usize| row.human.get(rater).cloned().flatten();
    if numeric {
        let of_row = |row: &&ComparedItem| (0..k).map(|rater| rating(row, rater)?.number()).collect();
        let ratings: Vec<Vec<Option<f64>>> = rows.iter().map(of_row).collect();
        let judge: Vec<Option<f64>> = rows.iter().map(|row| row.predicted.number()).collect();
        alternative(
            found,
            k,
            &judge,
            &ratings,
            (AlternativeAnnotatorTest::of_ratings, AlternativeAnnotatorTest::advantages_of_ratings),
        );
        against_rest(found, &judge, &ratings, HumanCeiling::of_ratings);
        alphas(found, "human_", &ratings, labels.err().map(String::as_str));
        let complete: Option<Vec<Vec<f64>>> = ratings.iter().map(|row| row.iter().copied().collect()).collect();
        if let Some(ratings) = complete {
            intraclass(found, "human_", &ratings);
        }
    } else {
        let mut names: Vec<String> =
            rows.iter().flat_map(|row| row.ratings().chain([&row.predicted])).map(Rating::label).collect();
        names.sort();
        names.dedup();
        let place = |rating: Rating| names.binary_search(&rating.label()).ok();
        let of_row = |row: &&ComparedItem| (0..k).map(|rater| place(rating(row, rater)?)).collect();
        let votes: Vec<Vec<Option<usize>>> = rows.iter().map(of_row).collect();
        let judge: Vec<Option<usize>> = rows.iter().map(|row| place(row.predicted.clone())).collect();
        alternative(
            found,
            k,
            &judge,
            &votes,
            (AlternativeAnnotatorTest::of_labels, AlternativeAnnotatorTest::advantages_of_labels),
        );
        against_rest(found, &judge, &votes, HumanCeiling::of_labels);
        let indices: Vec<usize> = (0..names.len()).collect();
        let fleiss = |drawn: &[usize]| {
            let drawn: Vec<&[Option<usize>]> = drawn.iter().map(|&row| votes[row].as_slice()).collect();
            RatingTable::new(&indices, &drawn)?.fleiss_kappa()
        };
        found.closed("human_fleiss_kappa", fleiss, n);
    }
}

/// A form of the test: a judge's column and a row of ratings for each of its entries.
type Test<T> = fn(&AlternativeAnnotatorTest, &[Option<T>], &[Vec<Option<T>>]) -> Result<AlternativeAnnotators, Error>;

/// What the advantage of resamples follows from.
type Scored<T> = fn(&AlternativeAnnotatorTest, &[Option<T>], &[Vec<Option<T>>]) -> Result<Advantages, Error>;

/// May the judge take the place of a rater? Of three raters or more, as its authors ask.
fn alternative<T: Copy + Sync>(
    found: &mut Collector<'_>,
    k: usize,
    judge: &[Option<T>],
    ratings: &[Vec<Option<T>>],
    (test, scored): (Test<T>, Scored<T>),
) {
    if k < 3 {
        return found.all_undefined(&ALTERNATIVE, "the alternative annotator test asks for three raters or more");
    }
    let [winning_rate, advantage] = ALTERNATIVE;
    let settings = found.alternative;
    if found.has_clusters() {
        found.undefined(winning_rate, "rows come in clusters, and this test takes them as independent");
    } else if found.wants(winning_rate) {
        let known = test(&settings, judge, ratings).and_then(|tested| {
            let share = tested.winning_rate();
            let more = match tested.skipped.len() {
                0 => String::new(),
                few => format!("; {few} more have fewer than {} rows", settings.min_items),
            };
            let (n, won) = (share.n, share.count);
            let method = format!("of {n} raters, {won} by Student t at epsilon {}{more}", settings.epsilon);
            Ok(Reported { estimate: share.estimate()?, interval: None, p: None, method })
        });
        found.add(winning_rate, known);
    }
    if found.wants(advantage) {
        match scored(&settings, judge, ratings) {
            Ok(scored) => found.resample(advantage, None, |rows| scored.advantage(rows), ratings.len()),
            Err(error) => found.add(advantage, Err(error)),
        }
    }
}

/// A form of the ceiling: a judge's column and a row of ratings for each of its entries.
type Ceiling<T> = fn(&[Option<T>], &[Vec<Option<T>>]) -> Result<HumanCeiling, Error>;

/// How far the judge is from what people reach among themselves.
fn against_rest<T: Copy + Sync>(
    found: &mut Collector<'_>,
    judge: &[Option<T>],
    ratings: &[Vec<Option<T>>],
    ceiling: Ceiling<T>,
) {
    let parts: [fn(HumanCeiling) -> Estimate; 3] = [|all| all.judge, |all| all.people, |all| all.difference];
    for (name, part) in AGAINST_REST.into_iter().zip(parts) {
        let of_rows = |rows: &[usize]| {
            let ratings: Vec<Vec<Option<T>>> = rows.iter().map(|&row| ratings[row].clone()).collect();
            Ok(part(ceiling(&take(judge, rows), &ratings)?))
        };
        found.closed(name, of_rows, ratings.len());
    }
}
