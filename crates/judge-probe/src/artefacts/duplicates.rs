//! Texts that are both learnt from and tested on. Equality is that of words but for case and white space; near-duplicates are not looked
//! for.
//!
//! It owns the comparison of texts across a split. Duplicates within one side are not its concern, nor whether labels of equal
//! texts agree in general.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::Split;

/// Test rows whose text, ignoring case and white space, also occurs in the training rows of the same split.
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

/// A test row and a training row with the same text.
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
    /// The splits fit the texts. A row without a text is no duplicate of any.
    /// One hash table for each split: linear in the texts' length. The first row learnt from is the first in the order of
    /// `train`.
    pub(super) fn new(texts: &[Option<&String>], labels: &[i64], splits: &[Split]) -> Self {
        let texts: Vec<Option<String>> = texts.iter().map(|text| text.map(|text| normalised(text))).collect();
        let mut found = Vec::new();
        for (index, split) in splits.iter().enumerate() {
            let mut learnt: HashMap<&str, usize> = HashMap::new();
            for &row in &split.train {
                texts[row].as_ref().map(|text| learnt.entry(text).or_insert(row));
            }
            let of_row = |&test: &usize| {
                let train = *learnt.get(texts[test].as_deref()?)?;
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
fn normalised(text: &str) -> String {
    text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}
