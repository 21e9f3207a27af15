//! Rows parted into those to learn from and those to test on, index for index as scikit-learn parts them.
//!
//! Each splitter is a struct of settings with public fields and a default. The same settings and the same rows give the same
//! splits on every machine; `shuffle` or a seed is scikit-learn's `random_state`, drawn from as NumPy's `RandomState` draws.
//! Which rows share a question is the caller's knowledge: it is given as groups. That splits fit the features they are used
//! with is checked where they are used, in `cross_validation`.

mod grouped;
mod k_fold;
mod stratified_group;
mod train_test;

pub use grouped::GroupKFold;
pub use k_fold::{KFold, StratifiedKFold};
pub use stratified_group::StratifiedGroupKFold;
pub use train_test::{TestSize, TrainTestSplit};

use crate::Error;

/// Rows to learn from and rows to test on, by their positions.
///
/// Any two lists of positions can be one, from these splitters or from a file. Nothing is checked here; what takes splits
/// refuses those that have an empty part, a row out of range or a row on both sides.
///
/// ```
/// use judge_probe::{KFold, Split};
///
/// let folds = KFold { n_splits: 2, shuffle: None }.split(5)?;
/// assert_eq!(folds[1], Split { train: vec![0, 1, 2], test: vec![3, 4] });
/// # Ok::<(), judge_probe::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Split {
    /// Rows to learn from.
    pub train: Vec<usize>,
    /// Rows to test on.
    pub test: Vec<usize>,
}

/// One split per fold, which is tested on while all others are learnt from; both in ascending order.
/// `fold_of_row` is `[n_rows]`, each below `n_splits`. O(n_rows · n_splits), and as much memory for all splits together.
fn one_split_per_fold(fold_of_row: &[usize], n_splits: usize) -> Vec<Split> {
    let part = |fold| {
        let (test, train) = (0..fold_of_row.len()).partition(|&row| fold_of_row[row] == fold);
        Split { train, test }
    };
    (0..n_splits).map(part).collect()
}

/// Refuses fewer than two splits, and more than there are `units` to spread over them.
/// `unit` names what is spread, for the message: rows, groups, or rows of the largest class.
fn check_n_splits(n_splits: usize, unit: &'static str, n_units: usize) -> Result<(), Error> {
    if n_splits < 2 {
        return Err(Error::FewSplits { n_splits });
    }
    if n_units < n_splits { Err(Error::ManySplits { n_splits, unit, n_units }) } else { Ok(()) }
}

/// Values by the position of each among the distinct ones in ascending order, as `numpy.unique` with `return_inverse` and
/// `return_counts`.
pub(crate) struct Distinct<'a, T> {
    /// The distinct values, ascending.
    pub(crate) values: Vec<&'a T>,
    /// Of each row, the position of its value.
    pub(crate) place_of_row: Vec<usize>,
    /// How many rows have each value.
    pub(crate) counts: Vec<usize>,
}

impl<'a, T: Ord> Distinct<'a, T> {
    /// By sorting, O(n log n), so that values need no hash, and positions do not depend on the order of rows.
    pub(crate) fn new(values: &'a [T]) -> Self {
        let mut distinct: Vec<&T> = values.iter().collect();
        distinct.sort_unstable();
        distinct.dedup();
        let mut counts = vec![0; distinct.len()];
        // Each value is among the distinct ones, where the search ends at its position.
        let place_of_row: Vec<usize> =
            values.iter().map(|value| distinct.partition_point(|&other| other < value)).collect();
        place_of_row.iter().for_each(|&place| counts[place] += 1);
        Self { values: distinct, place_of_row, counts }
    }

    /// The rows of each distinct value, ascending.
    fn rows(&self) -> Vec<Vec<usize>> {
        let mut rows = vec![Vec::new(); self.counts.len()];
        self.place_of_row.iter().enumerate().for_each(|(row, &place)| rows[place].push(row));
        rows
    }
}
