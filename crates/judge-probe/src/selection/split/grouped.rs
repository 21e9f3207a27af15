//! Folds in which no group is on both sides.

use crate::Error;
use crate::numpy::numpy_random::NumpyRandom;
use crate::selection::split::k_fold::nearly_equal_parts;
use crate::selection::split::{Distinct, Split, check_n_splits, one_split_per_fold};

/// Folds that keep the rows of a group together, `sklearn.model_selection.GroupKFold` of release 1.9 and later: no question is both learnt
/// from and tested on. Earlier releases part groups of equal size in an order that depends on NumPy and the processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GroupKFold {
    /// Number of folds, at least 2.
    pub n_splits: usize,
    /// Without a seed, groups are dealt out from the largest on, each to the fold with the fewest rows. With one, the folds are nearly
    /// equal numbers of shuffled groups.
    pub shuffle: Option<u32>,
}

impl Default for GroupKFold {
    /// Five folds, balanced by size.
    fn default() -> Self {
        Self { n_splits: 5, shuffle: None }
    }
}

impl GroupKFold {
    /// One split per fold, from the group of each row. Rows stand in ascending order.
    ///
    /// Which group goes where depends on the groups' order (`Ord`): to get scikit-learn's folds, name groups so that they sort alike.
    ///
    /// # Errors
    ///
    /// [`Error::FewSplits`]; [`Error::ManySplits`] for fewer groups than splits.
    ///
    /// ```
    /// let questions = ["a", "a", "b", "c", "c", "b"];
    /// let folds = judge_probe::GroupKFold { n_splits: 3, ..Default::default() };
    /// for split in folds.split(&questions)? {
    ///     assert!(split.test.iter().all(|&test| split.train.iter().all(|&train| questions[train] != questions[test])));
    /// }
    /// # Ok::<(), judge_probe::Error>(())
    /// ```
    pub fn split<G: Ord>(&self, groups: &[G]) -> Result<Vec<Split>, Error> {
        let groups = Distinct::new(groups);
        let n_groups = groups.counts.len();
        check_n_splits(self.n_splits, "groups", n_groups)?;
        let mut fold_of_group = vec![0; n_groups];
        if let Some(seed) = self.shuffle {
            let shuffled = NumpyRandom::new(seed).permutation(n_groups);
            for (fold, part) in nearly_equal_parts(&shuffled, self.n_splits).enumerate() {
                part.iter().for_each(|&group| fold_of_group[group] = fold);
            }
        } else {
            // Of equal sizes the last comes first, since scikit-learn reverses an ascending order.
            let mut largest_first: Vec<usize> = (0..n_groups).rev().collect();
            largest_first.sort_by_key(|&group| std::cmp::Reverse(groups.counts[group]));
            let mut sizes = vec![0; self.n_splits];
            for group in largest_first {
                // There are two folds or more; the first of the smallest is taken.
                let smallest = (0..self.n_splits).min_by_key(|&fold| sizes[fold]).unwrap_or(0);
                sizes[smallest] += groups.counts[group];
                fold_of_group[group] = smallest;
            }
        }
        let fold_of_row: Vec<usize> = groups.place_of_row.iter().map(|&group| fold_of_group[group]).collect();
        Ok(one_split_per_fold(&fold_of_row, self.n_splits))
    }
}
