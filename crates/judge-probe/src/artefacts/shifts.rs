//! Whether one list has slipped against another: a permutation test of whose question a response speaks of.
//!
//! It owns the overlaps of words and the statistic; the test's permutations are those of `judge_metrics`. Splits and labels
//! have no part in it, and words are those of `tfidf`: two letters or more, lower case.

use std::collections::{BTreeMap, BTreeSet};

use judge_metrics::resampling::{Alternative, PermutationTest};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::estimators::parameters::check_rows;
use crate::preprocessing::tfidf::words;

/// Whether responses have slipped by a row against their questions, as they do where one of two lists loses an item and the rest moves up.
///
/// A response is held against its own question and against the one beside it, by the share of the question's words that it has; one whose
/// question is unknown, empty that is, is no closer to any other. It shows only in rows that stand as they did where they were put
/// together, and neighbours about the same thing may look alike: see the rows themselves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shift {
    /// Whose question it is that responses are held against.
    pub neighbour: Neighbour,
    /// Rows whose response has a greater share of the words of that question than of its own, ascending. After a slip they are many in a
    /// row.
    pub closer: Vec<usize>,
    /// By how much greater, 0 for all other rows; the mean over rows with such a neighbour, in [0, 1].
    /// That is the mean over rows i of max(0, share(qᵢ₋₁, rᵢ) − share(qᵢ, rᵢ)), with i + 1 for the neighbour after.
    pub excess: f64,
    /// How often the excess is as great where the question of any other row, at random, takes the place of the neighbour's; in (0, 1].
    /// The data as they are count as one arrangement, so it is never 0. The two neighbours are tested separately, without a
    /// correction.
    pub p_value: f64,
}

/// A row beside another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Neighbour {
    /// The one before.
    Before,
    /// The one after.
    After,
}

impl Shift {
    /// For both neighbours, the one before first, among all rows as they are listed; none for a single row. The alternative of `test` is
    /// always the greater.
    ///
    /// Each permutation costs a look at the distinct words of every question: n · words · permutations in all, with no table of
    /// n² shares.
    ///
    /// # Errors
    ///
    /// [`Error::RowCount`] for other than one response a question; [`Error::Metric`] without permutations.
    pub fn both(questions: &[String], responses: &[String], test: PermutationTest) -> Result<Vec<Self>, Error> {
        check_rows(questions.len(), "texts", responses.len())?;
        if questions.len() < 2 {
            return Ok(Vec::new());
        }
        let overlaps = Overlaps::new(questions, responses);
        let test = PermutationTest { alternative: Alternative::Greater, ..test };
        [Neighbour::Before, Neighbour::After]
            .map(|neighbour| Self::new(neighbour, &overlaps, test))
            .into_iter()
            .collect()
    }

    /// A gain is cut off at 0, so that responses which do speak of their own question cannot make up for others that have
    /// slipped.
    fn new(neighbour: Neighbour, overlaps: &Overlaps, test: PermutationTest) -> Result<Self, Error> {
        let last = overlaps.questions.len() - 1;
        let (rows, beside) = match neighbour {
            Neighbour::Before => (1..=last, 0..=last - 1),
            Neighbour::After => (0..=last - 1, 1..=last),
        };
        let own: Vec<f64> = (0..=last).map(|row| overlaps.share(row, row)).collect();
        let gain = |row: usize, other: usize| {
            let known = !overlaps.questions[row].is_empty();
            if known { (overlaps.share(other, row) - own[row]).max(0.0) } else { 0.0 }
        };
        let closer = rows.clone().zip(beside.clone()).filter(|&(row, other)| gain(row, other) > 0.0);
        let closer = closer.map(|(row, _)| row).collect();
        // Positions as the numbers that a test exchanges: exact below 2⁵³.
        let numbers = |rows: std::ops::RangeInclusive<usize>| rows.map(|row| row as f64).collect::<Vec<_>>();
        let result = test.pairing(&numbers(rows), &numbers(beside), |rows, others| {
            let pairs = rows.iter().zip(others);
            Ok(pairs.map(|(&row, &other)| gain(row as usize, other as usize)).sum::<f64>() / rows.len() as f64)
        })?;
        Ok(Self { neighbour, closer, excess: result.estimate, p_value: result.p_value })
    }
}

/// The distinct words of texts, by numbers, ascending.
/// A number for each word makes a comparison one of integers; it has no meaning beyond this struct.
struct Overlaps {
    /// Empty of a question that is unknown or has no words.
    questions: Vec<Vec<usize>>,
    /// Sets, since they are what is looked up in.
    responses: Vec<BTreeSet<usize>>,
}

impl Overlaps {
    fn new(questions: &[String], responses: &[String]) -> Self {
        let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
        let mut numbered = |text: &String| {
            let number = |word| {
                let next = numbers.len();
                *numbers.entry(word).or_insert(next)
            };
            words(text).into_iter().map(number).collect::<BTreeSet<_>>()
        };
        Self {
            questions: questions.iter().map(|text| numbered(text).into_iter().collect()).collect(),
            responses: responses.iter().map(numbered).collect(),
        }
    }

    /// The share of a question's words that a response has; 0 of none.
    /// In [0, 1]: |words of the question ∩ words of the response| / |words of the question|, so that a long response is not
    /// punished for its length.
    fn share(&self, question: usize, response: usize) -> f64 {
        let (asked, said) = (&self.questions[question], &self.responses[response]);
        let shared = asked.iter().filter(|word| said.contains(word)).count();
        if asked.is_empty() { 0.0 } else { shared as f64 / asked.len() as f64 }
    }
}
