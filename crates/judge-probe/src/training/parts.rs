//! Which rows are trained on, which are tested on, and the folds among the former.
//!
//! It owns every split of a training, and the rule that a group is never on both sides while
//! [`grouped`](ProbeTraining::grouped) says so. Which rows the model could read is decided by the caller. Nothing here reads
//! features.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::{GradedRow, ProbeTraining, TrainingError};
use crate::{Error, Split, StratifiedGroupKFold, StratifiedKFold, TestSize, TrainTestSplit};

/// The split that is trained on.
/// By name, as published data sets have it; all other names are tested on, also `validation`.
const TRAIN: &str = "train";

/// Rows by what becomes of them, as positions among all.
/// No position is in two lists. `train` and each list of `tests` have at least one row.
pub(super) struct Parts {
    /// Rows to learn from.
    pub(super) train: Vec<usize>,
    /// Rows to test on, by the name of their split.
    /// `test` where rows name no split. Sorted by name, which is the order of the report.
    pub(super) tests: BTreeMap<String, Vec<usize>>,
}

impl Parts {
    /// Parts the rows in `read`: as they say themselves, or else with one part held out.
    ///
    /// `read` are positions in `rows`, ascending; the parts hold such positions as well. Where rows name their splits, groups
    /// are not checked: the data's own split is followed even if a group is on both sides. The artefact report counts questions
    /// and responses on both sides.
    ///
    /// # Errors
    ///
    /// [`TrainingError::NothingRead`], [`TrainingError::NoSplit`], [`TrainingError::NoTrainRows`],
    /// [`TrainingError::NoTestRows`]; those of the split that is drawn.
    pub(super) fn new(training: &ProbeTraining, rows: &[GradedRow], read: &[usize]) -> Result<Self, Error> {
        if read.is_empty() {
            return Err(TrainingError::NothingRead { n_rows: rows.len() }.into());
        }
        if read.iter().all(|&row| rows[row].split.is_none()) {
            return Self::held_out(training, rows, read);
        }
        let mut tests: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for &row in read {
            let split = rows[row].split.clone().ok_or_else(|| TrainingError::NoSplit { id: rows[row].id.clone() })?;
            tests.entry(split).or_default().push(row);
        }
        let found = || tests.keys().cloned().collect();
        let no_train = TrainingError::NoTrainRows { found: found() };
        let train = tests.remove(TRAIN).ok_or(no_train)?;
        if tests.is_empty() { Err(TrainingError::NoTestRows.into()) } else { Ok(Self { train, tests }) }
    }

    /// One part held out: whole groups where rows share them, else rows with classes as frequent on both sides.
    /// Groups are drawn without regard to classes: a part may lack a rare class. A class of a single row cannot be as frequent on both
    /// sides: that row is trained on. Positions from the splitter are among `drawn`.
    fn held_out(training: &ProbeTraining, rows: &[GradedRow], read: &[usize]) -> Result<Self, Error> {
        let split = TrainTestSplit { test_size: TestSize::Fraction(training.test_share), seed: training.split_seed };
        let (drawn, single, Split { train, test }) = if is_grouped(training, rows, read) {
            (read.to_vec(), Vec::new(), split.grouped(&groups(rows, read))?)
        } else {
            let (single, drawn) = single_rows(training, rows, read);
            let split = split.stratified(&classes(training, rows, &drawn))?;
            (drawn, single, split)
        };
        let pick = |part: Vec<usize>| part.into_iter().map(|row| drawn[row]);
        let (train, test) = (pick(train).chain(single).collect(), pick(test).collect());
        Ok(Self { train, tests: BTreeMap::from([("test".to_owned(), test)]) })
    }

    /// The classes that rows trained on have and no row tested on, ascending.
    pub(super) fn untested(&self, training: &ProbeTraining, rows: &[GradedRow]) -> Vec<i64> {
        let tested: BTreeSet<i64> = self.tests.values().flat_map(|of| classes(training, rows, of)).collect();
        let trained: BTreeSet<i64> = classes(training, rows, &self.train).into_iter().collect();
        trained.difference(&tested).copied().collect()
    }

    /// Folds of the rows trained on, as positions among these, which have these classes.
    /// Not shuffled, as scikit-learn's grid search cuts them; rows that were drawn at random come in random order, whole groups
    /// in ascending order.
    ///
    /// # Errors
    ///
    /// [`TrainingError::OneClassFold`]; those of the folds.
    pub(super) fn folds(
        &self,
        training: &ProbeTraining,
        rows: &[GradedRow],
        classes: &[i64],
    ) -> Result<Vec<Split>, Error> {
        let n_splits = training.folds;
        let folds = if is_grouped(training, rows, &self.train) {
            StratifiedGroupKFold { n_splits, shuffle: None }.split(classes, &groups(rows, &self.train))?
        } else {
            StratifiedKFold { n_splits, shuffle: None }.split(classes)?
        };
        for fold in &folds {
            let class = fold.train.first().map(|&row| classes[row]);
            if let Some(class) = class.filter(|class| fold.train.iter().all(|&row| classes[row] == *class)) {
                let others = classes.iter().zip(&self.train).filter(|(other, _)| **other != class);
                let ids = others.map(|(_, &row)| rows[row].id.clone()).collect();
                return Err(TrainingError::OneClassFold { class, ids }.into());
            }
        }
        Ok(folds)
    }

    /// Of each row trained on the position, among these, of the first one that stays on its side of every split.
    pub(super) fn kept_together(&self, training: &ProbeTraining, rows: &[GradedRow]) -> Vec<usize> {
        if !is_grouped(training, rows, &self.train) {
            return (0..self.train.len()).collect();
        }
        let mut first = HashMap::new();
        let groups = groups(rows, &self.train).into_iter().enumerate();
        groups.map(|(place, group)| *first.entry(group).or_insert(place)).collect()
    }
}

/// Of these rows those that are the only one of their class, and the others. Where every class has one row alone there is nothing to draw
/// from, and all are among the others, which no split takes.
fn single_rows(training: &ProbeTraining, rows: &[GradedRow], of: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let mut counts: BTreeMap<i64, usize> = BTreeMap::new();
    let class = |row: usize| training.grading.class(rows[row].grade);
    of.iter().for_each(|&row| *counts.entry(class(row)).or_default() += 1);
    let is_several = counts.values().any(|&n| n > 1);
    of.iter().partition(|&&row| is_several && counts[&class(row)] == 1)
}

/// The class of each of these rows.
pub(super) fn classes(training: &ProbeTraining, rows: &[GradedRow], of: &[usize]) -> Vec<i64> {
    of.iter().map(|&row| training.grading.class(rows[row].grade)).collect()
}

/// The grade of each of these rows, as people gave it.
pub(super) fn grades(rows: &[GradedRow], of: &[usize]) -> Vec<f64> {
    of.iter().map(|&row| rows[row].grade).collect()
}

/// The group of each of these rows.
pub(super) fn groups<'r>(rows: &'r [GradedRow], of: &[usize]) -> Vec<&'r str> {
    of.iter().map(|&row| rows[row].group.as_str()).collect()
}

/// Whether several rows share a group, and that matters.
/// Without a shared group the stratified splits are taken, so that such data are cut as the published protocol cuts them.
fn is_grouped(training: &ProbeTraining, rows: &[GradedRow], of: &[usize]) -> bool {
    let groups = groups(rows, of);
    training.grouped && groups.iter().collect::<HashSet<_>>().len() < groups.len()
}
