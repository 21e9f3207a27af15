//! Estimators on rows they have not learnt from: the splits' checks, their data and the bringing together of what they give.
//!
//! Where splits come from is `split`'s business, what a score is `scoring`'s. Everything runs through `in_each_split`, so that there is one
//! place in which a row could leak from test to train: a split's `train` and `test` are checked to be disjoint, and an estimator is given
//! copies of its own rows.

use rayon::prelude::*;

use crate::estimators::parameters::check_rows;
use crate::selection::scoring::score_of;
use crate::{Error, Estimator, FittedEstimator, Matrix, Predictions, ProbabilityTable, Scorer, Split, SplitScores};

/// Scores of one estimator on each split, as `sklearn.model_selection.cross_val_score`.
///
/// All that the estimator learns, it learns from the split's `train` alone. Splits are worked on in parallel; results do not depend on
/// the number of threads. Each thread holds a copy of the rows of its split.
///
/// # Errors
///
/// [`Error::RowCount`]; [`Error::Split`] for splits that do not fit the rows;
/// [`Error::InSplit`] with what the estimator reports, or the scorer unless the score [is undefined](Scorer::score).
pub fn cross_val_score<E: Estimator>(
    estimator: &E,
    features: &Matrix,
    labels: &[E::Label],
    splits: &[Split],
    scoring: impl Scorer<E::Label>,
) -> Result<SplitScores, Error> {
    let by_split = in_each_split(features, labels, splits, |_, data| {
        let predicted = estimator.fit(&data.train, &data.train_labels)?.predictions(&data.test)?;
        score_of(&scoring, &data.test_labels, &predicted)
    })?;
    Ok(SplitScores { by_split })
}

/// What is predicted of each row in the split that tests on it, by an estimator that has not learnt from the row: labels, as
/// `sklearn.model_selection.cross_val_predict`, and probabilities where the estimator knows them, as with `method="predict_proba"`. It is
/// what a calibrator is to be fitted to.
///
/// The table of probabilities has a column for each class that some split has learnt. Where a split has not learnt a class, its rows have
/// probability 0 of it, as in scikit-learn.
///
/// # Errors
///
/// Those of [`cross_val_score`]; [`Error::TestedTimes`] unless each row is tested on in exactly one split.
///
/// ```
/// use judge_probe::{LogisticRegression, Matrix, StratifiedKFold, cross_val_predict};
///
/// # fn main() -> Result<(), judge_probe::Error> {
/// let features = Matrix::from_rows((0..20).map(|row| [f64::from(row)]))?;
/// let labels: Vec<i64> = (0..20).map(|row| 1 + row / 10).collect();
/// let splits = StratifiedKFold::default().split(&labels)?;
/// let held_out = cross_val_predict(&LogisticRegression::default(), &features, &labels, &splits)?;
/// assert_eq!((held_out.labels[0], held_out.labels[19]), (1, 2));
/// let expected = held_out.expected_classes().unwrap_or_default();
/// assert!(expected[0] < 1.1 && 1.9 < expected[19]);
/// # Ok(())
/// # }
/// ```
pub fn cross_val_predict<E: Estimator>(
    estimator: &E,
    features: &Matrix,
    labels: &[E::Label],
    splits: &[Split],
) -> Result<Predictions<E::Label>, Error> {
    check_partition(splits, features.n_rows())?;
    let predicted = in_each_split(features, labels, splits, |_, data| {
        estimator.fit(&data.train, &data.train_labels)?.predictions(&data.test)
    })?;
    let (of_splits, tables): (Vec<_>, Vec<_>) =
        predicted.into_iter().map(|Predictions { labels, probabilities }| (labels, probabilities)).unzip();
    let tables: Option<Vec<ProbabilityTable>> = tables.into_iter().collect();
    let probabilities = tables.map(|tables| joined(splits, &tables, features.n_rows())).transpose()?;
    Ok(Predictions { labels: by_row(splits, of_splits), probabilities })
}

/// The rows of one split.
/// Copies, so that an estimator cannot see a row that it was not given; they live as long as the work on the split.
pub(crate) struct SplitData<L> {
    /// `[n_train, n_features]`, in the order of the split's `train`, as are its labels.
    pub(crate) train: Matrix,
    pub(crate) train_labels: Vec<L>,
    /// `[n_test, n_features]`, likewise.
    pub(crate) test: Matrix,
    pub(crate) test_labels: Vec<L>,
}

/// What `work` makes of each split, in their order.
///
/// # Errors
///
/// [`Error::RowCount`], those of [`check_splits`], before anything is done; [`Error::InSplit`] with what `work` returns.
pub(crate) fn in_each_split<L: Copy + Sync, T: Send>(
    features: &Matrix,
    labels: &[L],
    splits: &[Split],
    work: impl Fn(&Split, SplitData<L>) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    let n_rows = features.n_rows();
    check_rows(n_rows, "labels", labels.len())?;
    check_splits(splits, n_rows)?;
    in_parallel(splits, |split| {
        let data = SplitData {
            train: features.select_rows(&split.train)?,
            train_labels: select(labels, &split.train),
            test: features.select_rows(&split.test)?,
            test_labels: select(labels, &split.test),
        };
        work(split, data)
    })
}

/// What `work` makes of each split, in their order; of several errors the first split's, whichever thread was faster.
/// All splits are finished before an error is returned: stopping at the first would make the error depend on the threads.
pub(crate) fn in_parallel<T: Send>(
    splits: &[Split],
    work: impl Fn(&Split) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    let results: Vec<Result<T, Error>> = splits.par_iter().map(&work).collect();
    let named = |(split, result): (usize, Result<T, Error>)| {
        result.map_err(|error| Error::InSplit { split, error: Box::new(error) })
    };
    results.into_iter().enumerate().map(named).collect()
}

/// The values at checked positions.
/// Panics on a position out of range: [`check_splits`] is to come first.
pub(crate) fn select<T: Clone>(values: &[T], rows: &[usize]) -> Vec<T> {
    rows.iter().map(|&row| values[row].clone()).collect()
}

/// Values of tested rows brought in the order of rows, for splits that [`check_partition`] has passed.
/// The sort is O(n log n) of pairs; no value is missing and none is there twice, so positions need not be filled in.
pub(crate) fn by_row<L>(splits: &[Split], of_splits: Vec<Vec<L>>) -> Vec<L> {
    let rows = splits.iter().flat_map(|split| &split.test);
    let mut values: Vec<(&usize, L)> = rows.zip(of_splits.into_iter().flatten()).collect();
    values.sort_by_key(|&(row, _)| row);
    values.into_iter().map(|(_, value)| value).collect()
}

/// One table of all rows and of the classes of all tables, 0 where a table lacks one; the splits as for [`by_row`].
/// A class that no split has learnt has no column. Rows of a table without some class still sum to 1.
fn joined(splits: &[Split], tables: &[ProbabilityTable], n_rows: usize) -> Result<ProbabilityTable, Error> {
    let mut classes: Vec<i64> = tables.iter().flat_map(ProbabilityTable::classes).copied().collect();
    classes.sort_unstable();
    classes.dedup();
    let mut values = vec![0.0; n_rows * classes.len()];
    for (split, table) in splits.iter().zip(tables) {
        let columns: Vec<usize> =
            table.classes().iter().map(|class| classes.partition_point(|other| other < class)).collect();
        for (&row, probabilities) in split.test.iter().zip(table.probabilities().rows()) {
            for (&column, &p) in columns.iter().zip(probabilities) {
                values[row * classes.len() + column] = p;
            }
        }
    }
    let n_classes = classes.len();
    ProbabilityTable::new(classes, Matrix::new(values, n_classes)?)
}

/// Every split must have rows on both sides, all of them among `n_rows` and none on both.
///
/// Rows may be in no part, or several times in one: bootstrap samples are allowed. The first fault by split, then `train`
/// before `test`, is reported.
pub(crate) fn check_splits(splits: &[Split], n_rows: usize) -> Result<(), Error> {
    for (index, split) in splits.iter().enumerate() {
        let wrong = |problem: String| Err(Error::Split { split: index, problem });
        for (part, rows) in [("train", &split.train), ("test", &split.test)] {
            if rows.is_empty() {
                return wrong(format!("has no rows to {part} on"));
            }
            if let Some(&row) = rows.iter().find(|&&row| row >= n_rows) {
                return wrong(format!("names row {row} of {n_rows}"));
            }
        }
        let mut learnt = vec![false; n_rows];
        split.train.iter().for_each(|&row| learnt[row] = true);
        if let Some(&row) = split.test.iter().find(|&&row| learnt[row]) {
            return wrong(format!("both learns from row {row} and tests on it"));
        }
    }
    Ok(())
}

/// Besides, every row must be tested on once.
/// What is predicted out of fold needs it: with a row missing there would be no value, with two no one value.
pub(crate) fn check_partition(splits: &[Split], n_rows: usize) -> Result<(), Error> {
    check_splits(splits, n_rows)?;
    let mut times = vec![0; n_rows];
    splits.iter().flat_map(|split| &split.test).for_each(|&row| times[row] += 1);
    match times.iter().position(|&times| times != 1) {
        Some(row) => Err(Error::TestedTimes { row, times: times[row] }),
        None => Ok(()),
    }
}
