//! What is both learnt from and tested on: equal texts, which are those of the same words but for case and white space, or
//! related ones, as `row_groups` finds them.
//!
//! It owns the comparison of texts across a split. Duplicates within one side are not its concern, nor whether labels of equal
//! texts agree in general.

use std::collections::HashMap;
use std::hash::Hash;

use serde::{Deserialize, Serialize};

use crate::Split;

/// Test rows whose text, ignoring case and white space, also occurs in the training rows of the same split, or is related to one there.
///
/// A baseline can be right about these by heart. Where many have another label than their duplicate, people disagreed or rows
/// were mixed up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Duplicates {
    /// Rows tested on, those of all splits together.
    pub n_tested: usize,
    /// Those among them with a duplicate, each with the first one; by split, then in the order tested.
    pub found: Vec<Duplicate>,
    /// How many of these duplicates have the label of the row tested on.
    /// Between 0 and the length of [`found`](Self::found).
    pub n_same_label: usize,
}

/// A test row and a training row with the same text, or related ones.
/// Rows are positions among all, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Duplicate {
    /// Position of the split.
    pub split: usize,
    /// The row tested on.
    pub test: usize,
    /// The first row learnt from.
    pub train: usize,
}

impl Duplicates {
    /// The splits fit the rows, of which each has a key, such as its text. A row without one is no duplicate of any.
    /// One hash table for each split: linear in the keys' length. The first row learnt from is the first in the order of
    /// `train`.
    pub(super) fn new<K: Eq + Hash>(keys: &[Option<K>], labels: &[i64], splits: &[Split]) -> Self {
        let mut found = Vec::new();
        for (index, split) in splits.iter().enumerate() {
            let mut learnt: HashMap<&K, usize> = HashMap::new();
            for &row in &split.train {
                keys[row].as_ref().map(|key| learnt.entry(key).or_insert(row));
            }
            let of_row = |&test: &usize| {
                let train = *learnt.get(keys[test].as_ref()?)?;
                Some(Duplicate { split: index, test, train })
            };
            found.extend(split.test.iter().filter_map(of_row));
        }
        let n_same_label = found.iter().filter(|pair| labels[pair.test] == labels[pair.train]).count();
        Self { n_tested: splits.iter().map(|split| split.test.len()).sum(), found, n_same_label }
    }
}

/// Unicode's lower case, and one space for each run of white space. Accents and punctuation are kept; nothing is composed or
/// decomposed.
pub(super) fn normalised(text: &str) -> String {
    text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}
