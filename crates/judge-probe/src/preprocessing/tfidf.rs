//! Words counted and weighed, as a baseline that reads what is said without its order.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Error, SparseMatrix};

/// TF-IDF weights: how often each word occurs in a text, less for common words, as `sklearn.feature_extraction.text.TfidfVectorizer` with
/// its defaults: what a text says without its order or meaning, and so a baseline for anything that claims to understand it.
///
/// Words are the longest runs of two or more letters, digits or underscores of the text in lower case. (In scripts whose vowel signs are
/// combining marks, as in Devanagari, Rust counts these as letters where Python ends the word.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TfidfVectorizer {
    /// Words in fewer texts than this are ignored; 0 is 1.
    pub min_df: usize,
}

impl Default for TfidfVectorizer {
    /// All words.
    fn default() -> Self {
        Self { min_df: 1 }
    }
}

/// A fitted [`TfidfVectorizer`]: its vocabulary and weights.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedTfidfVectorizer {
    /// Ascending by code points.
    words: Vec<String>,
    /// The weight of each.
    idf: Vec<f64>,
}

impl TfidfVectorizer {
    /// Learns words and how common they are: one in df of n texts weighs ln((1 + n)/(1 + df)) + 1.
    ///
    /// # Errors
    ///
    /// [`Error::NoWords`].
    ///
    /// ```
    /// use judge_probe::TfidfVectorizer;
    ///
    /// let words = TfidfVectorizer::default().fit(&["The sum is 12.", "the product"])?;
    /// assert_eq!(words.words(), ["12", "is", "product", "sum", "the"]);
    /// let weights = words.transform(&["Sum the SUM!"])?;
    /// let row: Vec<(usize, f64)> = weights.rows().flatten().collect();
    /// assert_eq!((row[0].0, row[1].0), (3, 4));
    /// assert!((row[0].1 - 0.942_155_6).abs() < 1e-7);
    /// # Ok::<(), judge_probe::Error>(())
    /// ```
    pub fn fit<S: AsRef<str>>(&self, texts: &[S]) -> Result<FittedTfidfVectorizer, Error> {
        let mut texts_with: BTreeMap<String, usize> = BTreeMap::new();
        for text in texts {
            for word in words(text.as_ref()).into_iter().collect::<BTreeSet<_>>() {
                *texts_with.entry(word).or_default() += 1;
            }
        }
        texts_with.retain(|_, count| *count >= self.min_df);
        if texts_with.is_empty() {
            return Err(Error::NoWords { n_texts: texts.len(), min_df: self.min_df });
        }
        let n = texts.len() as f64;
        let (words, idf) =
            texts_with.into_iter().map(|(word, count)| (word, ((1.0 + n) / (1.0 + count as f64)).ln() + 1.0)).unzip();
        Ok(FittedTfidfVectorizer { words, idf })
    }
}

impl FittedTfidfVectorizer {
    /// The words, ascending by code points: what the features mean (`get_feature_names_out`).
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// The weight of each word (`idf_`).
    pub fn idf(&self) -> &[f64] {
        &self.idf
    }

    /// Each text's words, counted and weighted, scaled to length 1: `[n_texts, n_words]`. A text without any known word is
    /// all 0. Memory is that of the texts' distinct words, not of all words for each text.
    ///
    /// # Errors
    ///
    /// [`Error::Empty`] for no texts.
    pub fn transform<S: AsRef<str>>(&self, texts: &[S]) -> Result<SparseMatrix, Error> {
        SparseMatrix::of_unit_rows(texts.iter().map(|text| self.weights(text.as_ref())), self.words.len())
    }

    /// The known words of a text by their places, ascending, and their weights.
    fn weights(&self, text: &str) -> Vec<(u32, f64)> {
        let mut counts: BTreeMap<usize, f64> = BTreeMap::new();
        for word in words(text) {
            if let Ok(place) = self.words.binary_search(&word) {
                *counts.entry(place).or_default() += 1.0;
            }
        }
        let weighted = counts.into_iter().map(|(place, count)| (place as u32, count * self.idf[place]));
        let mut weights: Vec<(u32, f64)> = weighted.collect();
        let length = weights.iter().map(|(_, weight)| weight * weight).sum::<f64>().sqrt();
        weights.iter_mut().for_each(|(_, weight)| *weight /= length);
        weights
    }
}

/// `None` where a split has no words at all: there is then nothing to compare with. That none is in `min_df` texts is an error.
pub(crate) fn if_words<T>(of_splits: Result<T, Error>) -> Result<Option<T>, Error> {
    match of_splits {
        Err(Error::InSplit { error, .. }) if matches!(*error, Error::NoWords { min_df: ..=1, .. }) => Ok(None),
        other => other.map(Some),
    }
}

/// The words of a text in lower case, in order.
pub(crate) fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let runs = lower.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    runs.filter(|run| run.chars().nth(1).is_some()).map(str::to_owned).collect()
}
