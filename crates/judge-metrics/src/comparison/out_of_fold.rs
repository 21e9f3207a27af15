//! What is learned of some pairs and used on others.

use crate::resampling::folds_of_groups;

/// Folds of clusters; what is used on a fold is learned on the others.
const FOLDS: usize = 10;

/// For each of `n` rows what `learn` finds of the rows of other folds, which it gets by their numbers. Rows of one cluster are in one fold;
/// without clusters each row is its own. `None` where there are fewer than two clusters, or the others of a fold teach nothing.
pub(super) fn out_of_fold<T: Clone>(
    names: Option<&[&str]>,
    n: usize,
    seed: u64,
    learn: impl Fn(&[usize]) -> Option<T>,
) -> Option<Vec<T>> {
    let rows: Vec<usize> = (0..n).collect();
    let (fold_of, folds) =
        names.map_or_else(|| folds_of_groups(&rows, FOLDS, seed), |names| folds_of_groups(names, FOLDS, seed));
    if folds < 2 {
        return None;
    }
    let others = |fold: usize| (0..n).filter(|&row| fold_of[row] != fold).collect::<Vec<_>>();
    let learned: Vec<T> = (0..folds).map(|fold| learn(&others(fold))).collect::<Option<_>>()?;
    Some(fold_of.into_iter().map(|fold| learned[fold].clone()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_teaches_nothing_of_its_own_cluster() {
        let names: Vec<String> = (0..30).map(|row| (row / 2).to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let learned = out_of_fold(Some(&names), 30, 0, |rows| Some(rows.to_vec())).unwrap();
        for (row, others) in learned.iter().enumerate() {
            assert!(others.len() >= 26 && others.iter().all(|&other| names[other] != names[row]), "{row}: {others:?}");
        }
        assert_eq!(out_of_fold(Some(&["a"; 5]), 5, 0, |_| Some(())), None);
        assert_eq!(out_of_fold(None, 5, 0, |rows| (rows.len() == 4).then_some(())), Some(vec![(); 5]));
        assert_eq!(out_of_fold(None, 5, 0, |rows| (!rows.contains(&3)).then_some(())), None);
    }
}
