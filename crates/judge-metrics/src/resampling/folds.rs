//! Rows cut into folds by chance.

use super::permutation::shuffle;
use super::stream::{Purpose, stream};
use crate::Error;
use crate::groups::clusters;
use crate::input::check_range;

/// At least two folds are asked for.
pub(crate) fn check_folds(folds: usize) -> Result<(), Error> {
    check_range("folds", None, folds as f64, [2.0, usize::MAX as f64])
}

/// The fold of each row, and how many folds there are, where rows of one group are in one fold: groups are cut, whatever their size. Of
/// groups of one row each it is [`folds_of`].
pub(crate) fn folds_of_groups<G: Ord>(groups: &[G], folds: usize, seed: u64) -> (Vec<usize>, usize) {
    let clusters = clusters(groups);
    let mut fold_of = vec![0; groups.len()];
    for (rows, fold) in clusters.iter().zip(folds_of(clusters.len(), folds, seed)) {
        rows.iter().for_each(|&row| fold_of[row] = fold);
    }
    (fold_of, folds.min(clusters.len()))
}

/// The fold of each of n rows: sizes differ by one at most. With as many folds as rows, or more, each row is a fold.
pub(crate) fn folds_of(n: usize, folds: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    shuffle(&mut order, &mut stream(seed, Purpose::Folds, 0));
    let mut fold_of = vec![0; n];
    for (place, row) in order.into_iter().enumerate() {
        fold_of[row] = place % folds.min(n);
    }
    fold_of
}
