//! One split in two, of rows, classes or groups.

use crate::Error;
use crate::numpy::numpy_random::NumpyRandom;
use crate::selection::split::{Distinct, Split};

/// One split into rows to learn from and rows to test on, `sklearn.model_selection.train_test_split`.
///
/// The order of both parts is scikit-learn's: it is random, and folds cut from the training rows depend on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrainTestSplit {
    /// How many rows are tested on; all others are learnt from.
    pub test_size: TestSize,
    /// Chooses them (`random_state`).
    pub seed: u32,
}

/// How many rows, or groups, are tested on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TestSize {
    /// This share of them, in (0, 1), rounded up to a whole number.
    Fraction(f64),
    /// This many.
    Count(usize),
}

impl Default for TrainTestSplit {
    /// A quarter, seed 0.
    fn default() -> Self {
        Self { test_size: TestSize::Fraction(0.25), seed: 0 }
    }
}

impl TrainTestSplit {
    /// Rows drawn at random.
    ///
    /// The first `n_test` of a random permutation are tested on, the rest learnt from, both in the order drawn.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`]; [`Error::TestCount`] where a part would be left without rows.
    pub fn split(&self, n_rows: usize) -> Result<Split, Error> {
        let n_test = self.test_size.of(n_rows)?;
        let mut test = NumpyRandom::new(self.seed).permutation(n_rows);
        let train = test.split_off(n_test);
        Ok(Split { train, test })
    }

    /// Rows drawn at random from each class, in proportion to its size (`stratify=labels`).
    ///
    /// # Errors
    ///
    /// Those of [`split`](Self::split); [`Error::SmallClass`] for a class with one row; [`Error::SmallPart`] where a part has fewer
    /// rows than there are classes.
    ///
    /// ```
    /// use judge_probe::{TestSize, TrainTestSplit};
    ///
    /// let labels = [1, 5, 1, 5, 5, 1, 5, 5, 1, 5];
    /// let split = TrainTestSplit { test_size: TestSize::Fraction(0.5), seed: 731 }.stratified(&labels)?;
    /// assert_eq!(split.test.iter().filter(|&&row| labels[row] == 1).count(), 2);
    /// # Ok::<(), judge_probe::Error>(())
    /// ```
    pub fn stratified(&self, labels: &[i64]) -> Result<Split, Error> {
        self.test_size.stratified(labels, &mut NumpyRandom::new(self.seed))
    }

    /// Whole groups drawn at random, `sklearn.model_selection.GroupShuffleSplit`: `test_size` counts groups. Rows stand in ascending
    /// order.
    ///
    /// # Errors
    ///
    /// Those of [`split`](Self::split), for groups.
    pub fn grouped<G: Ord>(&self, groups: &[G]) -> Result<Split, Error> {
        let groups = Distinct::new(groups);
        let drawn = self.split(groups.counts.len())?;
        let mut tested = vec![false; groups.counts.len()];
        drawn.test.iter().for_each(|&group| tested[group] = true);
        let (test, train) = (0..groups.place_of_row.len()).partition(|&row| tested[groups.place_of_row[row]]);
        Ok(Split { train, test })
    }
}

impl TestSize {
    /// At least 1 and less than n.
    /// Rounded up, as scikit-learn rounds a test share; the training part is what is left.
    fn of(self, n: usize) -> Result<usize, Error> {
        let n_test = match self {
            Self::Fraction(fraction) if fraction > 0.0 && fraction < 1.0 => (fraction * n as f64).ceil() as usize,
            Self::Fraction(found) => {
                let (setting, range) = ("the share tested on", "lie strictly between 0 and 1");
                return Err(Error::OutOfRange { setting, range, found });
            }
            Self::Count(count) => count,
        };
        if n_test == 0 || n_test >= n { Err(Error::TestCount { n_test, n }) } else { Ok(n_test) }
    }

    /// [`TrainTestSplit::stratified`], drawn from a generator that others draw from too.
    /// The order of the draws is scikit-learn's: lots for `train`, lots for `test`, a permutation of each class in turn, and
    /// two shuffles.
    pub(crate) fn stratified(self, labels: &[i64], random: &mut NumpyRandom) -> Result<Split, Error> {
        let n_test = self.of(labels.len())?;
        let n_train = labels.len() - n_test;
        let classes = Distinct::new(labels);
        let rows_of_classes = classes.rows();
        if let Some(rows) = rows_of_classes.iter().find(|rows| rows.len() < 2) {
            return Err(Error::SmallClass { class: labels[rows[0]], n_rows: rows.len(), required: 2 });
        }
        for (part, n_rows) in [("train", n_train), ("test", n_test)] {
            if n_rows < rows_of_classes.len() {
                return Err(Error::SmallPart { part, n_rows, n_classes: rows_of_classes.len() });
            }
        }

        let train_quotas = quotas(&classes.counts, n_train, random);
        let left: Vec<usize> = classes.counts.iter().zip(&train_quotas).map(|(count, quota)| count - quota).collect();
        let test_quotas = quotas(&left, n_test, random);
        let (mut train, mut test) = (Vec::with_capacity(n_train), Vec::with_capacity(n_test));
        for (rows, (to_train, to_test)) in rows_of_classes.iter().zip(train_quotas.into_iter().zip(test_quotas)) {
            let mut shuffled = random.permutation(rows.len()).into_iter().map(|place| rows[place]);
            train.extend(shuffled.by_ref().take(to_train));
            test.extend(shuffled.take(to_test));
        }
        random.shuffle(&mut train);
        random.shuffle(&mut test);
        Ok(Split { train, test })
    }
}

/// How many of `n_draws` ≤ Σ `counts` fall to each class: its share, rounded down, and the rest to the largest remainders, drawing
/// lots between equal ones. scikit-learn compares remainders as computed, rounding and all, and so does this.
/// The approximate mode of the multivariate hypergeometric distribution, `sklearn.utils.extmath._approximate_mode`.
fn quotas(counts: &[usize], n_draws: usize, random: &mut NumpyRandom) -> Vec<usize> {
    let total = counts.iter().sum::<usize>() as f64;
    let shares: Vec<f64> = counts.iter().map(|&count| count as f64 / total * n_draws as f64).collect();
    let mut quotas: Vec<usize> = shares.iter().map(|share| share.floor() as usize).collect();
    let remainders: Vec<f64> = shares.iter().map(|share| share - share.floor()).collect();
    let mut missing = n_draws.saturating_sub(quotas.iter().sum());
    let mut values = remainders.clone();
    values.sort_unstable_by(|a, b| b.total_cmp(a));
    values.dedup();
    for value in values {
        if missing == 0 {
            break;
        }
        let alike: Vec<usize> = (0..remainders.len()).filter(|&class| remainders[class] == value).collect();
        let chosen = random.choice(&alike, missing.min(alike.len()));
        missing -= chosen.len();
        chosen.iter().for_each(|&class| quotas[class] += 1);
    }
    quotas
}
