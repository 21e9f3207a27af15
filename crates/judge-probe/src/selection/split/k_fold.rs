//! Folds of rows, with or without regard to classes.

use crate::Error;
use crate::numpy::numpy_random::NumpyRandom;
use crate::selection::split::{Distinct, Split, check_n_splits, one_split_per_fold};

/// Folds of consecutive or shuffled rows, `sklearn.model_selection.KFold`.
///
/// Where rows answer the same question, take [`GroupKFold`](crate::GroupKFold).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KFold {
    /// Number of folds, at least 2.
    pub n_splits: usize,
    /// Whether to shuffle the rows before they are cut into folds, and by which seed.
    #[doc(alias = "random_state")]
    pub shuffle: Option<u32>,
}

impl Default for KFold {
    /// Five folds, not shuffled.
    fn default() -> Self {
        Self { n_splits: 5, shuffle: None }
    }
}

impl KFold {
    /// One split per fold; the first n_rows mod n_splits folds have one row more. Rows stand in ascending order.
    ///
    /// # Errors
    ///
    /// [`Error::FewSplits`]; [`Error::ManySplits`] for fewer rows than splits.
    pub fn split(&self, n_rows: usize) -> Result<Vec<Split>, Error> {
        check_n_splits(self.n_splits, "rows", n_rows)?;
        let mut rows: Vec<usize> = (0..n_rows).collect();
        if let Some(seed) = self.shuffle {
            NumpyRandom::new(seed).shuffle(&mut rows);
        }
        let mut fold_of_row = vec![0; n_rows];
        for (fold, rows) in nearly_equal_parts(&rows, self.n_splits).enumerate() {
            rows.iter().for_each(|&row| fold_of_row[row] = fold);
        }
        Ok(one_split_per_fold(&fold_of_row, self.n_splits))
    }
}

/// Folds in which classes are as frequent as in all rows, `sklearn.model_selection.StratifiedKFold`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StratifiedKFold {
    /// Number of folds, at least 2.
    pub n_splits: usize,
    /// Whether to shuffle the rows of each class before they are dealt to folds, and by which seed.
    pub shuffle: Option<u32>,
}

impl Default for StratifiedKFold {
    /// Five folds, not shuffled: what scikit-learn's grid search does by default.
    fn default() -> Self {
        Self { n_splits: 5, shuffle: None }
    }
}

impl StratifiedKFold {
    /// One split per fold, from the class of each row; fold sizes differ by 1 at most. Rows stand in ascending order.
    ///
    /// A class with fewer rows than folds is absent from some folds: scikit-learn warns, and a score by class of such a fold
    /// means less.
    ///
    /// # Errors
    ///
    /// [`Error::FewSplits`]; [`Error::ManySplits`] where every class has fewer rows than there are splits.
    ///
    /// ```
    /// use judge_probe::{Split, StratifiedKFold};
    ///
    /// let folds = StratifiedKFold { n_splits: 2, ..StratifiedKFold::default() };
    /// let splits = folds.split(&[1, 1, 0, 0])?;
    /// assert_eq!(splits[0], Split { train: vec![1, 3], test: vec![0, 2] });
    /// # Ok::<(), judge_probe::Error>(())
    /// ```
    pub fn split(&self, labels: &[i64]) -> Result<Vec<Split>, Error> {
        let classes = Distinct::new(labels);
        check_n_splits(self.n_splits, "rows of the largest class", classes.counts.iter().copied().max().unwrap_or(0))?;
        // Classes count in the order of their first rows, so that their names do not matter.
        let mut rows_of_classes = classes.rows();
        rows_of_classes.sort_unstable_by_key(|rows| rows[0]);

        let mut random = self.shuffle.map(NumpyRandom::new);
        let mut fold_of_row = vec![0; labels.len()];
        let mut dealt = 0;
        for rows in rows_of_classes {
            // All rows, sorted by class, are dealt to the folds in turn; that says how many of a class a fold gets.
            let mut folds: Vec<usize> = (dealt..dealt + rows.len()).map(|turn| turn % self.n_splits).collect();
            dealt += rows.len();
            folds.sort_unstable();
            if let Some(random) = &mut random {
                random.shuffle(&mut folds);
            }
            rows.into_iter().zip(folds).for_each(|(row, fold)| fold_of_row[row] = fold);
        }
        Ok(one_split_per_fold(&fold_of_row, self.n_splits))
    }
}

/// At most as many parts as there are values, the first ones longer by 1 where they do not divide evenly.
pub(super) fn nearly_equal_parts(values: &[usize], n_parts: usize) -> impl Iterator<Item = &[usize]> {
    let (length, longer) = (values.len() / n_parts, values.len() % n_parts);
    (0..n_parts).map(move |part| {
        let start = part * length + part.min(longer);
        &values[start..start + length + usize::from(part < longer)]
    })
}
