use rayon::prelude::*;

use crate::{Classifier, Error, FittedClassifier, Matrix, Scoring, Split, SplitScores};

/// Scores of one estimator on each split, as `sklearn.model_selection.cross_val_score`.
///
/// All that the estimator learns, it learns from the split's `train` alone. Splits are worked on in parallel; results do not depend on
/// the number of threads.
///
/// # Errors
///
/// [`Error::LabelCount`]; [`Error::SplitRow`], [`Error::SplitPart`], [`Error::SplitOverlap`] for splits that do not fit the rows;
/// [`Error::InSplit`] with what the estimator reports.
pub fn cross_val_score<C: Classifier>(
    estimator: &C,
    features: &Matrix,
    labels: &[i64],
    splits: &[Split],
    scoring: Scoring,
) -> Result<SplitScores, Error> {
    let by_split = in_each_split(features, labels, splits, |_, data| {
        let predicted = estimator.fit(&data.train, &data.train_labels)?.predict(&data.test)?;
        scoring.score(&data.test_labels, &predicted)
    })?;
    Ok(SplitScores { by_split })
}

/// The class that each row is predicted in the split that tests on it, as `sklearn.model_selection.cross_val_predict`.
///
/// # Errors
///
/// Those of [`cross_val_score`]; [`Error::TestedTimes`] unless each row is tested on in exactly one split.
pub fn cross_val_predict<C: Classifier>(
    estimator: &C,
    features: &Matrix,
    labels: &[i64],
    splits: &[Split],
) -> Result<Vec<i64>, Error> {
    check_partition(splits, features.n_rows())?;
    let predicted = in_each_split(features, labels, splits, |_, data| {
        estimator.fit(&data.train, &data.train_labels)?.predict(&data.test)
    })?;
    Ok(by_row(splits, predicted, features.n_rows()))
}

/// The rows of one split.
pub(crate) struct SplitData {
    pub(crate) train: Matrix,
    pub(crate) train_labels: Vec<i64>,
    pub(crate) test: Matrix,
    pub(crate) test_labels: Vec<i64>,
}

/// What `work` makes of each split, in their order.
pub(crate) fn in_each_split<T: Send>(
    features: &Matrix,
    labels: &[i64],
    splits: &[Split],
    work: impl Fn(&Split, SplitData) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    let n_rows = features.n_rows();
    if labels.len() != n_rows {
        return Err(Error::LabelCount { n_rows, n_labels: labels.len() });
    }
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
pub(crate) fn select<T: Clone>(values: &[T], rows: &[usize]) -> Vec<T> {
    rows.iter().map(|&row| values[row].clone()).collect()
}

/// Values of tested rows brought in the order of rows, for splits that [`check_partition`] has passed.
pub(crate) fn by_row(splits: &[Split], of_splits: Vec<Vec<i64>>, n_rows: usize) -> Vec<i64> {
    let mut values = vec![0; n_rows];
    for (split, of_split) in splits.iter().zip(of_splits) {
        split.test.iter().zip(of_split).for_each(|(&row, value)| values[row] = value);
    }
    values
}

/// Every split must have rows on both sides, all of them among `n_rows` and none on both.
pub(crate) fn check_splits(splits: &[Split], n_rows: usize) -> Result<(), Error> {
    for (index, split) in splits.iter().enumerate() {
        for (part, rows) in [("train", &split.train), ("test", &split.test)] {
            if rows.is_empty() {
                return Err(Error::SplitPart { split: index, part });
            }
            if let Some(&row) = rows.iter().find(|&&row| row >= n_rows) {
                return Err(Error::SplitRow { split: index, row, n_rows });
            }
        }
        let mut learnt = vec![false; n_rows];
        split.train.iter().for_each(|&row| learnt[row] = true);
        if let Some(&row) = split.test.iter().find(|&&row| learnt[row]) {
            return Err(Error::SplitOverlap { split: index, row });
        }
    }
    Ok(())
}

/// Besides, every row must be tested on once.
pub(crate) fn check_partition(splits: &[Split], n_rows: usize) -> Result<(), Error> {
    check_splits(splits, n_rows)?;
    let mut times = vec![0; n_rows];
    splits.iter().flat_map(|split| &split.test).for_each(|&row| times[row] += 1);
    match times.iter().position(|&times| times != 1) {
        Some(row) => Err(Error::TestedTimes { row, times: times[row] }),
        None => Ok(()),
    }
}
