use std::collections::HashMap;
use std::fmt::Display;

use crate::agreement::AgreementWeights;
use crate::agreement::influence::over_subjects;
use crate::agreement::placed::PlacedRatings;
use crate::distribution::normal_tail;
use crate::estimate::Missing;
use crate::input::{check_count, check_lengths};
use crate::{Error, Estimate, NullDistribution};

/// How many raters gave each label to each subject.
///
/// Subjects with equal counts are one row with a weight: of twenty thousand subjects with two raters and five labels there are at most
/// fifteen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RatingTable {
    n_labels: usize,
    /// Row-major `[rows, n_labels]`: the different counts, in the order of their first subjects.
    counts: Vec<u64>,
    /// How many subjects have each row of counts.
    weights: Vec<u64>,
}

impl RatingTable {
    /// Counts ratings: one row to a subject, one entry to a rater, `None` where a rater gave none. Subjects that nobody rated are
    /// left out.
    ///
    /// # Errors
    ///
    /// [`Error::TooFewItems`] for fewer than two raters or labels, or no rating at all, [`Error::LengthMismatch`],
    /// [`Error::DuplicateLabel`]; [`Error::InRow`] around [`Error::UnknownLabel`].
    ///
    /// ```
    /// use judge_metrics::agreement::{AgreementWeights, RatingTable};
    ///
    /// let ratings = [[1, 1, 1], [2, 2, 3], [3, 3, 3], [3, 2, 3], [1, 1, 1]].map(|row| row.map(Some));
    /// let table = RatingTable::new(&[1, 2, 3], &ratings)?;
    /// assert!((table.fleiss_kappa()?.estimate - 0.583_333_3).abs() < 1e-7);
    /// assert!(table.gwet(&AgreementWeights::Quadratic)?.estimate > table.gwet(&AgreementWeights::Identity)?.estimate);
    /// # Ok::<(), judge_metrics::Error>(())
    /// ```
    pub fn new<L, R>(labels: &[L], ratings: &[R]) -> Result<Self, Error>
    where
        L: PartialEq + Display,
        R: AsRef<[Option<L>]>,
    {
        let counts = PlacedRatings::new(labels, ratings)?.counts();
        Self::checked(labels.len(), counts.concat())
    }

    /// Takes counts as they are, one row to a subject, one entry to a label: `fleiss_kappa`'s table of statsmodels.
    ///
    /// # Errors
    ///
    /// [`Error::TooFewItems`] for fewer than two labels or no rating at all, [`Error::LengthMismatch`].
    pub fn from_counts<R: AsRef<[u64]>>(counts: &[R]) -> Result<Self, Error> {
        let n_labels = counts.first().map_or(0, |row| row.as_ref().len());
        check_count(2, n_labels)?;
        for row in counts {
            check_lengths("counts", row.as_ref().len(), "counts[0]", n_labels)?;
        }
        Self::checked(n_labels, counts.iter().flat_map(|row| row.as_ref().iter().copied()).collect())
    }

    /// Two raters of each subject, by how often the first gave one label and the second another: row-major `[n_labels, n_labels]`, not all
    /// of them 0.
    pub(super) fn of_two(cells: &[u64], n_labels: usize) -> Self {
        let (mut counts, mut weights) = (Vec::new(), Vec::new());
        for (cell, &weight) in cells.iter().enumerate().filter(|(_, weight)| **weight > 0) {
            let row = counts.len();
            counts.resize(row + n_labels, 0);
            counts[row + cell / n_labels] += 1;
            counts[row + cell % n_labels] += 1;
            weights.push(weight);
        }
        Self { n_labels, counts, weights }
    }

    fn checked(n_labels: usize, counts: Vec<u64>) -> Result<Self, Error> {
        Ok(Self::merged(n_labels, &counts)?.0)
    }

    /// The table, and the row of it that each subject has; `None` where nobody rated it.
    fn merged(n_labels: usize, counts: &[u64]) -> Result<(Self, Vec<Option<usize>>), Error> {
        let mut known: HashMap<&[u64], usize> = HashMap::new();
        let (mut different, mut weights) = (Vec::new(), Vec::new());
        let mut of_subject = |row| {
            let place = *known.entry(row).or_insert(weights.len());
            if place == weights.len() {
                different.extend_from_slice(row);
                weights.push(0);
            }
            weights[place] += 1;
            place
        };
        let rated = |row: &&[u64]| row.iter().any(|&count| count > 0);
        let rows = counts.chunks_exact(n_labels).map(|row| Some(row).filter(rated).map(&mut of_subject)).collect();
        if weights.is_empty() {
            Err(Error::TooFewItems { required: 1, found: 0 })
        } else {
            Ok((Self { n_labels, counts: different, weights }, rows))
        }
    }

    fn rows(&self) -> std::slice::ChunksExact<'_, u64> {
        self.counts.chunks_exact(self.n_labels)
    }

    /// Each different row with its weight.
    fn weighted(&self) -> impl Iterator<Item = (&[u64], f64)> + '_ {
        self.rows().zip(self.weights.iter().map(|&weight| weight as f64))
    }

    /// What belongs to each different row, once for each subject that has it.
    fn of_subjects(&self, of_rows: &[f64]) -> Vec<f64> {
        let repeated = |(&value, &weight)| std::iter::repeat_n(value, weight as usize);
        of_rows.iter().zip(&self.weights).flat_map(repeated).collect()
    }

    fn n_subjects(&self) -> usize {
        self.weights.iter().sum::<u64>() as usize
    }

    /// Fleiss' kappa (1971), at most 1, which is full agreement; 0 is what chance gives: `statsmodels.stats.inter_rater.fleiss_kappa`. The
    /// p-value is that of no agreement beyond chance (Fleiss, Nee and Landis, 1979; R's `irr::kappam.fleiss`), normal. The standard error
    /// is over subjects, the raters being given, whether they agree beyond chance or not (Gwet, 2008; `irrCAC.raw.CAC.fleiss` of Python);
    /// the interval is Student's, cut off at 1, and takes two subjects.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] where subjects have different numbers of ratings, [`Error::TooFewItems`] for fewer than two, and
    /// [`Error::Undefined`] where all ratings are one label.
    pub fn fleiss_kappa(&self) -> Result<Estimate, Error> {
        let totals: Vec<u64> = self.rows().map(|row| row.iter().sum()).collect();
        for &total in &totals {
            let same = "Fleiss' kappa takes the same number of ratings for each row: a row";
            check_lengths(same, total as usize, "the first", totals[0] as usize)?;
        }
        check_count(2, totals[0] as usize)?;
        let (n, m) = (self.n_subjects() as f64, totals[0] as f64);
        let shares = self.label_counts().map(|count| count as f64 / (n * m)).collect::<Vec<_>>();
        // Chance disagreement: pairs of different labels.
        let chance: f64 = shares.iter().map(|p| p * (1.0 - p)).sum();
        if self.label_counts().filter(|&count| count > 0).count() < 2 {
            return Err(Error::Undefined { statistic: "Fleiss' kappa", reason: "all ratings are one label" });
        }
        let agreeing: f64 =
            self.weighted().map(|(row, weight)| weight * pairs_of_equals(row)).sum::<f64>() / (n * m * (m - 1.0));
        let skew: f64 = shares.iter().map(|p| p * (1.0 - p) * (1.0 - 2.0 * p)).sum();
        let null_standard_error = (2.0 / (n * m * (m - 1.0)) * (chance * chance - skew)).sqrt() / chance;
        let estimate = 1.0 - (1.0 - agreeing) / chance;
        let p_value = normal_tail(estimate / null_standard_error);
        let influences: Vec<f64> = self
            .rows()
            .map(|row| {
                let counts = || row.iter().map(|&count| count as f64);
                let disagreeing = 1.0 - pairs_of_equals(row) / (m * (m - 1.0));
                let own_chance = counts().zip(&shares).map(|(count, p)| count * (1.0 - p)).sum::<f64>() / m;
                (1.0 - estimate) * (2.0 * own_chance / chance - 1.0) - disagreeing / chance
            })
            .collect();
        let influences = self.of_subjects(&influences);
        Ok(over_subjects("Fleiss' kappa", estimate, &influences)?.tested(p_value, NullDistribution::Normal))
    }

    fn label_counts(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.n_labels).map(|label| self.rows().zip(&self.weights).map(|(row, weight)| weight * row[label]).sum())
    }

    /// Gwet's AC1 (with [`AgreementWeights::Identity`]) and AC2 (with any other weights), for any number of ratings to a subject: R's
    /// `irrCAC::gwet.ac1.raw` (Gwet, 2008). Where one label is common it does not fall as kappa does. At most 1. The standard error is over
    /// subjects, the raters being given; the interval, cut off at 1, is Student's. There is no test of 0, although irrCAC prints one: a
    /// rater who gives one label only reaches more than 0 wherever that label is common, without having looked.
    ///
    /// # Errors
    ///
    /// [`Error::TooFewItems`] for one subject, [`Error::Undefined`] where no subject has two ratings; those of the weights.
    pub fn gwet(&self, weights: &AgreementWeights) -> Result<Estimate, Error> {
        let weights = weights.matrix(self.n_labels)?;
        let (n, q) = (self.n_subjects(), self.n_labels);
        check_count(2, n)?;
        // Shares of the labels among the ratings of each row, and over subjects.
        let shares: Vec<f64> = self
            .rows()
            .flat_map(|row| {
                let total = row.iter().sum::<u64>() as f64;
                row.iter().map(move |&count| count as f64 / total)
            })
            .collect();
        let subjects = || self.weights.iter().map(|&weight| weight as f64);
        let of_label =
            |label: usize| shares.iter().skip(label).step_by(q).zip(subjects()).map(|(share, count)| share * count);
        let mean: Vec<f64> = (0..q).map(|label| of_label(label).sum::<f64>() / n as f64).collect();
        let weight = weights.iter().sum::<f64>() / (q * (q - 1)) as f64;
        let chance = weight * mean.iter().map(|p| p * (1.0 - p)).sum::<f64>();
        // Weighted share of agreeing pairs of ratings; `None` with a single rating.
        let agreeing: Vec<Option<f64>> = self
            .rows()
            .map(|row| {
                let total = row.iter().sum::<u64>() as f64;
                let pairs: f64 = (0..q)
                    .map(|a| row[a] as f64 * ((0..q).map(|b| weights[a * q + b] * row[b] as f64).sum::<f64>() - 1.0))
                    .sum();
                (total > 1.0).then(|| pairs / (total * (total - 1.0)))
            })
            .collect();
        let known = || agreeing.iter().zip(subjects()).filter_map(|(own, count)| Some((own.as_ref()?, count)));
        let several: f64 = known().map(|(_, count)| count).sum();
        if several == 0.0 {
            return Err(Error::Undefined { statistic: "Gwet's coefficient", reason: "no subject has two ratings" });
        }
        let seen = known().map(|(own, count)| own * count).sum::<f64>() / several;
        let estimate = (seen - chance) / (1.0 - chance);
        let influences: Vec<f64> = agreeing
            .iter()
            .zip(shares.chunks_exact(q))
            .map(|(agreeing, shares)| {
                let own = agreeing.map_or(0.0, |own| n as f64 / several * (own - chance) / (1.0 - chance));
                let own_chance = weight * shares.iter().zip(&mean).map(|(share, p)| share * (1.0 - p)).sum::<f64>();
                own - 2.0 * (1.0 - estimate) * (own_chance - chance) / (1.0 - chance) - estimate
            })
            .collect();
        let no_test = Missing::Because("0 is not what raters without skill reach where one label is common");
        Ok(over_subjects("Gwet's coefficient", estimate, &self.of_subjects(&influences))?.untested(no_test))
    }
}

/// Subjects whose ratings are counted once, for the tables of many resamples.
pub(crate) struct CountedSubjects {
    all: RatingTable,
    /// The row of the table that each subject has; `None` where nobody rated it.
    row_of_subject: Vec<Option<usize>>,
}

impl CountedSubjects {
    /// # Errors
    ///
    /// Those of [`RatingTable::new`].
    pub(crate) fn new<R: AsRef<[Option<usize>]>>(labels: &[usize], ratings: &[R]) -> Result<Self, Error> {
        let counts = PlacedRatings::new(labels, ratings)?.counts();
        let (all, row_of_subject) = RatingTable::merged(labels.len(), &counts.concat())?;
        Ok(Self { all, row_of_subject })
    }

    /// The table of some of the subjects, given by their indices, in any order, with repetition.
    ///
    /// # Errors
    ///
    /// [`Error::TooFewItems`] where nobody rated any of them.
    pub(crate) fn table(&self, subjects: &[usize]) -> Result<RatingTable, Error> {
        let mut drawn = vec![0; self.all.weights.len()];
        subjects.iter().filter_map(|&subject| self.row_of_subject[subject]).for_each(|row| drawn[row] += 1);
        let rows = self.all.rows().zip(drawn).filter(|(_, weight)| *weight > 0);
        let (counts, weights): (Vec<&[u64]>, Vec<u64>) = rows.unzip();
        check_count(1, weights.len())?;
        Ok(RatingTable { n_labels: self.all.n_labels, counts: counts.concat(), weights })
    }
}

/// Ordered pairs of ratings with one label, among the ratings of a subject.
fn pairs_of_equals(row: &[u64]) -> f64 {
    row.iter().map(|&count| count as f64 * (count as f64 - 1.0)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_drawn_subjects_is_that_of_their_ratings() {
        let ratings = [
            [Some(0), Some(0), None],
            [None, None, None],
            [Some(1), Some(2), Some(2)],
            [Some(0), None, Some(0)],
            [Some(2), Some(2), Some(2)],
        ];
        let labels = [0, 1, 2];
        let counted = CountedSubjects::new(&labels, &ratings).unwrap();
        for drawn in [vec![0, 1, 2, 3, 4], vec![2, 2, 2], vec![0, 3, 4, 4, 1], vec![1, 1]] {
            let alone: Vec<_> = drawn.iter().map(|&subject| ratings[subject]).collect();
            assert_eq!(counted.table(&drawn), RatingTable::new(&labels, &alone));
        }
    }
}
