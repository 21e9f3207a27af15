//! Folds that keep groups whole and classes as even as that allows.
//!
//! It owns the greedy search of scikit-learn's splitter and its floating-point order, on which ties depend. Shuffled draws are
//! `numpy_random`'s.

use crate::Error;
use crate::estimators::parameters::check_rows;
use crate::numpy::numpy_random::NumpyRandom;
use crate::numpy::pairwise_sum::pairwise_sum;
use crate::selection::split::{Distinct, Split, check_n_splits, one_split_per_fold};

/// Folds that keep the rows of a group together and classes as frequent as whole groups allow,
/// `sklearn.model_selection.StratifiedGroupKFold`.
///
/// The search is greedy, so folds may differ in size and in classes: with few large groups they do.
///
/// ```
/// use judge_probe::StratifiedGroupKFold;
///
/// let (labels, questions) = ([1, 2, 1, 2, 1, 2, 1, 2], ["a", "a", "b", "b", "c", "c", "d", "d"]);
/// let folds = StratifiedGroupKFold { n_splits: 2, shuffle: None }.split(&labels, &questions)?;
/// let ones = |rows: &[usize]| rows.iter().filter(|&&row| labels[row] == 1).count();
/// assert!(folds.iter().all(|fold| fold.test.len() == 4 && ones(&fold.test) == 2));
/// # Ok::<(), judge_probe::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StratifiedGroupKFold {
    /// Number of folds, at least 2.
    pub n_splits: usize,
    /// Whether to shuffle the groups before they are dealt out, which breaks ties between them, and by which seed.
    pub shuffle: Option<u32>,
}

impl Default for StratifiedGroupKFold {
    /// Five folds, not shuffled.
    fn default() -> Self {
        Self { n_splits: 5, shuffle: None }
    }
}

impl StratifiedGroupKFold {
    /// One split per fold, from the class and the group of each row. Rows stand in ascending order.
    ///
    /// Groups are dealt out from the one with the most uneven classes on, each to the fold where the classes' shares vary least over
    /// folds; of folds that are as good, to the one with the fewest rows. Groups come in their own order (`Ord`) before they are
    /// shuffled or ranked.
    ///
    /// # Errors
    ///
    /// [`Error::RowCount`], [`Error::FewSplits`]; [`Error::ManySplits`] for fewer groups than splits, or where every class has fewer
    /// rows than there are splits.
    pub fn split<G: Ord>(&self, labels: &[i64], groups: &[G]) -> Result<Vec<Split>, Error> {
        check_rows(labels.len(), "groups", groups.len())?;
        let classes = Distinct::new(labels);
        let groups = Distinct::new(groups);
        check_n_splits(self.n_splits, "rows of the largest class", classes.counts.iter().copied().max().unwrap_or(0))?;
        check_n_splits(self.n_splits, "groups", groups.counts.len())?;

        // [n_groups, n_classes], whole numbers in double precision, as NumPy averages them.
        let mut counts = vec![vec![0.0; classes.counts.len()]; groups.counts.len()];
        for (&group, &class) in groups.place_of_row.iter().zip(&classes.place_of_row) {
            counts[group][class] += 1.0;
        }
        let mut order: Vec<usize> = (0..groups.counts.len()).collect();
        if let Some(seed) = self.shuffle {
            NumpyRandom::new(seed).shuffle(&mut order);
        }
        let unevenness: Vec<f64> = counts.iter().map(|counts| deviation_within(counts)).collect();
        // A stable sort, most uneven first: groups that are alike stay in the order of the shuffle, or else in their own.
        order.sort_by(|&a, &b| unevenness[b].total_cmp(&unevenness[a]));

        let class_sizes: Vec<f64> = classes.counts.iter().map(|&count| count as f64).collect();
        let mut folds = vec![vec![0.0; class_sizes.len()]; self.n_splits];
        let mut fold_of_group = vec![0; order.len()];
        for group in order {
            let fold = best_fold(&mut folds, &counts[group], &class_sizes);
            add(&mut folds[fold], &counts[group], 1.0);
            fold_of_group[group] = fold;
        }
        let fold_of_row: Vec<usize> = groups.place_of_row.iter().map(|&group| fold_of_group[group]).collect();
        Ok(one_split_per_fold(&fold_of_row, self.n_splits))
    }
}

/// Where a group's rows leave the shares of the classes most even over the folds. `folds` holds the rows of each class in each fold.
///
/// `folds` is `[n_splits, n_classes]`, `group` and `class_sizes` `[n_classes]`. The unevenness is the mean over classes of the
/// deviation over folds of the share of the class that a fold holds. Each call costs O(n_splits² · n_classes), a whole split
/// O(n_groups · n_splits² · n_classes).
fn best_fold(folds: &mut [Vec<f64>], group: &[f64], class_sizes: &[f64]) -> usize {
    let (mut best, mut least, mut fewest) = (0, f64::INFINITY, f64::INFINITY);
    for fold in 0..folds.len() {
        add(&mut folds[fold], group, 1.0);
        let deviations: Vec<f64> = (0..group.len())
            .map(|class| deviation_over(folds.iter().map(|counts| counts[class] / class_sizes[class])))
            .collect();
        add(&mut folds[fold], group, -1.0);
        let unevenness = pairwise_sum(&deviations) / group.len() as f64;
        let rows: f64 = folds[fold].iter().sum();
        // `numpy.isclose`, which is asymmetric.
        let as_good = (unevenness - least).abs() <= 1e-8 + 1e-5 * least.abs();
        if unevenness < least || (least.is_finite() && as_good && rows < fewest) {
            (best, least, fewest) = (fold, unevenness, rows);
        }
    }
    best
}

/// Counts are whole numbers: adding and taking away leaves no trace.
/// This holds up to 2⁵³ rows.
fn add(counts: &mut [f64], group: &[f64], sign: f64) {
    counts.iter_mut().zip(group).for_each(|(count, rows)| *count += sign * rows);
}

/// `numpy.std` along a row.
/// The population's, `ddof=0`. A contiguous axis is summed pairwise, see `pairwise_sum`.
fn deviation_within(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = pairwise_sum(values) / n;
    let squares: Vec<f64> = values.iter().map(|value| (value - mean) * (value - mean)).collect();
    (pairwise_sum(&squares) / n).sqrt()
}

/// `numpy.std` down a column, where it sums one after another.
fn deviation_over(values: impl ExactSizeIterator<Item = f64> + Clone) -> f64 {
    let n = values.len() as f64;
    let mean = values.clone().sum::<f64>() / n;
    (values.map(|value| (value - mean) * (value - mean)).sum::<f64>() / n).sqrt()
}
