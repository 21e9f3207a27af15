//! Rows that belong together, such as the answers to one question, found where nothing says so.
//!
//! It owns the partition of rows into groups and the two ways in which texts show it: passages that few rows share
//! (`shared_text`), and prompts that begin alike (`beginnings`). What is done with the groups is up to the splits; which columns
//! of a file repeat is the program's knowledge.

mod beginnings;
mod shared_text;

use std::collections::HashMap;
use std::hash::Hash;

/// A partition of rows: each row's group is named by the first of its rows.
///
/// A probe that has learnt from one answer to a question knows something of the next one. Rows of one group therefore stay on
/// one side of every split: give [`group_of_row`](Self::group_of_row) to [`GroupKFold`](crate::GroupKFold) or
/// [`TrainTestSplit::grouped`](crate::TrainTestSplit::grouped).
///
/// ```
/// use judge_probe::RowGroups;
///
/// let prompts: Vec<String> = (0..24)
///     .map(|i| format!("Question: How far is city {} from the sea?\nAnswer: {} km", i / 4, 7 * i))
///     .collect();
/// let groups = RowGroups::of_prompts(&prompts.iter().map(|prompt| Some(prompt.as_str())).collect::<Vec<_>>());
/// assert_eq!(groups.group_of_row()[..6], [0, 0, 0, 0, 4, 4]);
/// assert_eq!((groups.n_groups(), groups.n_shared()), (6, 24));
/// ```
#[derive(Debug, Clone)]
pub struct RowGroups {
    /// A row of the group before this one, or itself: following it ends at the first row of the group.
    before: Vec<usize>,
}

impl RowGroups {
    /// Each row in a group of its own.
    pub fn alone(n_rows: usize) -> Self {
        Self { before: (0..n_rows).collect() }
    }

    /// Rows whose texts share more than what nearly all texts say: those that are equal, ignoring case and white space, and those
    /// that have a third of the shorter one's passages in common. `None` is a text that is not known.
    ///
    /// A passage is five words in a row. Those that more than eight rows and a twentieth of all have, such as a template's, do not count, and
    /// four must be shared at the least. Time and memory are in the order of all words; the result
    /// depends on nothing but the texts.
    ///
    /// It finds answers to one question where the question, its reference or its rubric is a good part of the prompt, and a question
    /// asked again in nearly the same words. It does not find paraphrases.
    pub fn of_texts(texts: &[Option<&str>]) -> Self {
        let mut groups = Self::alone(texts.len());
        let words: Vec<Option<Vec<String>>> = texts.iter().map(|text| text.map(|text| words(text).collect())).collect();
        groups.join(words.iter().map(Option::as_ref));
        for (one, other) in shared_text::related(&words) {
            groups.join_two(one, other);
        }
        groups
    }

    /// As [`of_texts`](Self::of_texts), and whole prompts that begin alike up to a mark of their template: a word that nearly all have
    /// once, and that begins a line, ends in a colon or is markup, such as `Answer:` behind the question.
    ///
    /// Of several such marks the first counts by which the prompts begin in at least three ways, none of them that of more than a third
    /// of the rows, with three words or more on average since the mark before. So a short category in front of a question does not count,
    /// and short questions are found that share no passage.
    pub fn of_prompts(prompts: &[Option<&str>]) -> Self {
        Self::of_questions_and_prompts(&prompts.iter().map(|&prompt| (None, prompt)).collect::<Vec<_>>())
    }

    /// Of the question and the prompt of each row: those whose question is known by questions, the others by whole prompts; the two kinds
    /// meet where their texts do.
    pub fn of_questions_and_prompts(rows: &[(Option<&str>, Option<&str>)]) -> Self {
        let texts: Vec<Option<&str>> = rows.iter().map(|(question, prompt)| question.or(*prompt)).collect();
        let mut groups = Self::of_texts(&texts);
        let alone: Vec<Option<&str>> =
            rows.iter().map(|(question, prompt)| prompt.filter(|_| question.is_none())).collect();
        groups.join(beginnings::of(&alone));
        groups
    }

    /// Joins the groups of all rows with the same key; a row without one stays where it is.
    pub fn join<K: Eq + Hash>(&mut self, keys: impl IntoIterator<Item = Option<K>>) {
        let mut first: HashMap<K, usize> = HashMap::new();
        for (row, key) in keys.into_iter().enumerate() {
            if let Some(key) = key {
                let first = *first.entry(key).or_insert(row);
                self.join_two(first, row);
            }
        }
    }

    /// The first row of each row's group, `[n_rows]`.
    pub fn group_of_row(&self) -> Vec<usize> {
        let mut first = self.before.clone();
        // The row before stands before it, so that its first row is known.
        (0..first.len()).for_each(|row| first[row] = first[first[row]]);
        first
    }

    /// How many groups there are.
    pub fn n_groups(&self) -> usize {
        self.before.iter().enumerate().filter(|&(row, &before)| row == before).count()
    }

    /// Rows that are not alone in their group.
    pub fn n_shared(&self) -> usize {
        self.sizes().into_iter().filter(|&size| size > 1).sum()
    }

    /// Rows of the largest group, 0 of none.
    pub fn largest(&self) -> usize {
        self.sizes().into_iter().max().unwrap_or(0)
    }

    /// Rows of the group whose first row this is; 0 of any other row.
    fn sizes(&self) -> Vec<usize> {
        let mut sizes = vec![0; self.before.len()];
        self.group_of_row().into_iter().for_each(|first| sizes[first] += 1);
        sizes
    }

    /// The first row of a row's group. The way there is made shorter for the next time.
    fn first(&mut self, mut row: usize) -> usize {
        while self.before[row] != row {
            self.before[row] = self.before[self.before[row]];
            row = self.before[row];
        }
        row
    }

    fn join_two(&mut self, one: usize, other: usize) {
        let (one, other) = (self.first(one), self.first(other));
        self.before[one.max(other)] = one.min(other);
    }
}

/// The words of a text in lower case, with their punctuation.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split_whitespace().map(str::to_lowercase)
}
