//! By what rows are chosen: one number for each, the larger the better.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Result, bail, ensure};
use clap::ValueEnum;
use judge_cli::terminal::options::name_of;
use judge_core::Unscored;
use judge_data::{Error, Row, Rows};
use serde::Serialize;
use tiny_judge::planted::Draw;

use super::pass::Passes;

/// What a row's number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Criterion {
    /// The mean of the aspects' scores
    Score,
    /// The mean of the aspects' largest labels
    Direct,
    /// The mean of the aspects' expected scores at the last layer
    Expected,
    /// Characters of the response
    Longest,
    /// A draw
    Random,
    /// The mean log-probability of the response given the instruction: the smallest perplexity first
    Perplexity,
    /// Instruction-following difficulty, the largest below 1 first;
    /// where it is 1 or more, the instruction does not help, and the row has no number
    Difficulty,
    /// The sum of the probes' expected grades
    Probe,
}

impl Criterion {
    /// Those by which aspects are graded.
    pub const GRADED: [Self; 3] = [Self::Score, Self::Direct, Self::Expected];

    /// Whether a model has to read the rows.
    #[must_use]
    pub fn reads_a_model(self) -> bool {
        !matches!(self, Self::Longest | Self::Random)
    }
}

/// What becomes of a row that lacks the score of an aspect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Missing {
    /// It has no score and is never chosen
    #[default]
    Exclude,
    /// Its score is the mean of those it has
    Mean,
}

/// The files that passes have written.
#[derive(Debug, Default)]
pub struct Files {
    /// Scores of aspects.
    pub aspects: Option<PathBuf>,
    /// Likelihoods.
    pub likelihood: Option<PathBuf>,
    /// Grades by probes.
    pub probe: Option<PathBuf>,
}

impl Files {
    /// All of them.
    pub fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.aspects, &self.likelihood, &self.probe].into_iter().flatten()
    }
}

/// What a row's scores are, in messages.
const NUMBERS: &str = "an object of numbers";

/// The scores of a row of the aspects' file, by aspect: the chosen variant of each.
///
/// # Errors
/// If they are not there, or not what they should be.
pub fn scores(row: &Row) -> Result<BTreeMap<String, f64>, Error> {
    row.required("aspects", NUMBERS)
}

/// The same in another variant; none where no aspect has a score.
fn variant(row: &Row, name: &str) -> Result<BTreeMap<String, f64>, Error> {
    let mut variants: BTreeMap<String, BTreeMap<String, f64>> = row.required("variants", NUMBERS)?;
    Ok(variants.remove(name).unwrap_or_default())
}

/// The mean over aspects, of which there are `all`.
#[must_use]
pub fn mean(scores: &BTreeMap<String, f64>, all: usize, missing: Missing) -> Option<f64> {
    let complete = scores.len() == all || missing == Missing::Mean;
    (complete && !scores.is_empty()).then(|| scores.values().sum::<f64>() / scores.len() as f64)
}

/// One number for each row by any criterion.
pub struct Numbers<'a> {
    /// The examples.
    pub passes: &'a Passes<'a>,
    /// What models say of them.
    pub files: Files,
    /// How many aspects there are.
    pub aspects: usize,
    /// What becomes of rows that lack one.
    pub missing: Missing,
    /// Of the draws.
    pub seed: u64,
    /// Why rows cannot be read, by their place: they have no number by any criterion.
    pub unread: BTreeMap<usize, Unscored>,
}

impl Numbers<'_> {
    /// The numbers by one criterion, `None` where a row has none. 16 bytes for each row.
    ///
    /// # Errors
    /// If a file cannot be read, or has other rows than it should.
    pub fn by(&self, criterion: Criterion) -> Result<Vec<Option<f64>>> {
        let number = |row: &Row, field: &'static str| row.optional::<f64>(field, "a number");
        let mut values: Vec<Option<f64>> = match criterion {
            Criterion::Score => self.graded(scores)?,
            Criterion::Direct => self.graded(|row| variant(row, "direct_score"))?,
            Criterion::Expected => self.graded(|row| variant(row, "e_score"))?,
            Criterion::Longest => {
                self.passes.examples()?.map(|example| Ok(Some(example?.length() as f64))).collect::<Result<_>>()?
            }
            Criterion::Random => (0..self.passes.checked.rows).map(|row| Some(draw(self.seed, row))).collect(),
            Criterion::Perplexity => read(self.files.likelihood.as_ref(), |row| Ok(number(row, "log_prob")?))?,
            Criterion::Difficulty => read(self.files.likelihood.as_ref(), |row| {
                Ok(number(row, "difficulty")?.filter(|difficulty| *difficulty < 1.0))
            })?,
            Criterion::Probe => read(self.files.probe.as_ref(), |row| Ok(number(row, "total")?))?,
        };
        let (expected, found) = (self.passes.checked.rows, values.len());
        let by = name_of(criterion);
        ensure!(expected == found, "{by}: expected {expected} rows, found {found}; the file has changed");
        self.unread.keys().for_each(|&row| values[row] = None);
        Ok(values)
    }

    /// Why rows have no number where no model was asked, which would say so itself: by their place.
    #[must_use]
    pub fn unread_by_no_model(&self) -> Option<&BTreeMap<usize, Unscored>> {
        Some(&self.unread).filter(|_| self.files.paths().next().is_none())
    }

    fn graded(&self, of: impl Fn(&Row) -> Result<BTreeMap<String, f64>, Error>) -> Result<Vec<Option<f64>>> {
        read(self.files.aspects.as_ref(), |row| Ok(mean(&of(row)?, self.aspects, self.missing)))
    }
}

fn read(path: Option<&PathBuf>, of: impl Fn(&Row) -> Result<Option<f64>>) -> Result<Vec<Option<f64>>> {
    let Some(path) = path else { bail!("nothing was read from a model by this criterion") };
    Rows::open(path)?.map(|row| of(&row?)).collect()
}

/// A number in [0, 1) that depends on the seed and the row alone.
fn draw(seed: u64, row: usize) -> f64 {
    Draw::new(seed, row as u64).unit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_aspect_is_never_a_number() {
        let scores: BTreeMap<String, f64> = [("a".to_owned(), 2.0), ("b".to_owned(), 5.0)].into();
        assert_eq!(mean(&scores, 2, Missing::Exclude), Some(3.5));
        assert_eq!((mean(&scores, 3, Missing::Exclude), mean(&scores, 3, Missing::Mean)), (None, Some(3.5)));
        assert_eq!(mean(&BTreeMap::new(), 3, Missing::Mean), None);
    }
}
