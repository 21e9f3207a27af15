//! Says before any model work that human scores are in a column that is not read.

use std::fmt;

use crate::Record;
use crate::rows::grades::{self, Given};

/// Parts of the names of columns that people's grades are often in.
const HINTS: [&str; 7] = ["score", "grade", "rating", "human", "label", "rater", "annotat"];

/// Counts the records with a human score, and notes the fields that might hold one where there is none.
///
/// ```
/// use judge_data::{Dataset, DatasetOptions, HumanScores, write_atomic};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("rows.jsonl");
/// write_atomic(&path, br#"{"id": 1, "question": "2 + 2?", "answer": "4", "gold_rating": 5}"#)?;
/// let mut humans = HumanScores::default();
/// for record in Dataset::open(&path, &DatasetOptions::default())? {
///     humans.see(&record?);
/// }
/// assert_eq!(
///     humans.note().unwrap(),
///     "none of the 1 rows has a human score; \"gold_rating\" looks like one"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct HumanScores {
    rows: usize,
    graded: usize,
    candidates: Vec<Candidate>,
}

#[derive(Clone, Debug)]
struct Candidate {
    name: String,
    /// Whether every value so far is a number, a list of numbers, or `null`.
    numeric: bool,
    /// Whether any value is not `null`.
    given: bool,
}

impl HumanScores {
    /// Takes note of a record.
    pub fn see(&mut self, record: &Record) {
        self.rows += 1;
        self.graded += usize::from(record.human().is_some());
        for (name, json) in record.extra().iter() {
            let lower = name.to_lowercase();
            if !HINTS.iter().any(|hint| lower.contains(hint)) {
                continue;
            }
            let given = json != "null";
            let numeric = !given || Given::of(json, grades::number).odd.is_none();
            match self.candidates.iter_mut().find(|candidate| candidate.name == name) {
                None => self.candidates.push(Candidate { name: name.to_owned(), numeric, given }),
                Some(candidate) => {
                    candidate.numeric &= numeric;
                    candidate.given |= given;
                }
            }
        }
    }

    /// Records seen.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Records with a human score.
    pub fn graded(&self) -> usize {
        self.graded
    }

    /// The fields that look like human scores: numbers or lists of numbers, under a name that has `score`, `grade`,
    /// `rating`, `rater`, `human`, `label` or `annotat` in it, in the order in which they were seen. They are candidates
    /// whether records have a human score or not.
    pub fn candidates(&self) -> impl Iterator<Item = &str> {
        self.candidates.iter().filter(|c| c.numeric && c.given).map(|c| c.name.as_str())
    }

    /// What to tell the user where there are records and none has a human score; `None` otherwise, and where no field looks
    /// like one.
    pub fn note(&self) -> Option<String> {
        let first = self.candidates().next().filter(|_| self.graded == 0)?;
        Some(format!("{self}; {first:?} looks like one"))
    }
}

/// `176 of the 200 rows have a human score`.
impl fmt::Display for HumanScores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.graded {
            0 => write!(f, "none of the {} rows has a human score", self.rows),
            graded => write!(f, "{graded} of the {} rows have a human score", self.rows),
        }
    }
}
