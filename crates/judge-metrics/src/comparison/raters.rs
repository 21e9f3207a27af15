//! People among themselves: the ceiling of any judge.

use super::collector::Collector;
use super::numbers::{alphas, intraclass};
use super::{ComparedItem, Labels, Rating};
use crate::agreement::RatingTable;

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
    if numeric {
        let of_row = |row: &&ComparedItem| (0..k).map(|rater| row.human.get(rater).and_then(Rating::number)).collect();
        let ratings: Vec<Vec<Option<f64>>> = rows.iter().map(of_row).collect();
        alphas(found, "human_", &ratings, labels.err().map(String::as_str));
        let complete: Option<Vec<Vec<f64>>> = rows
            .iter()
            .map(|row| (row.human.len() == k).then(|| row.human.iter().filter_map(Rating::number).collect()))
            .collect();
        if let Some(ratings) = complete {
            intraclass(found, "human_", &ratings);
        }
    } else {
        let mut names: Vec<String> = rows.iter().flat_map(|row| &row.human).map(Rating::label).collect();
        names.sort();
        names.dedup();
        let place = |rating: &Rating| names.binary_search(&rating.label()).ok();
        let of_row = |row: &&ComparedItem| (0..k).map(|rater| place(row.human.get(rater)?)).collect();
        let votes: Vec<Vec<Option<usize>>> = rows.iter().map(of_row).collect();
        let indices: Vec<usize> = (0..names.len()).collect();
        let fleiss = |drawn: &[usize]| {
            let drawn: Vec<&[Option<usize>]> = drawn.iter().map(|&row| votes[row].as_slice()).collect();
            RatingTable::new(&indices, &drawn)?.fleiss_kappa()
        };
        found.closed("human_fleiss_kappa", fleiss, n);
    }
}
