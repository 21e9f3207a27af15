//! Prompts that begin alike, up to a mark of their template.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Ways to begin, at the least.
const LEAST: usize = 3;

/// Mean words between two marks, at the least.
const WORDS: usize = 3;

/// A word of a prompt.
struct Word<'a> {
    text: &'a str,
    /// Whether it stands where templates put their marks.
    is_mark: bool,
}

/// The beginning of each prompt as a hash; `None` for all where no mark parts them as [`of_prompts`](super::RowGroups::of_prompts) says,
/// and for a prompt that lacks the mark.
pub(super) fn of(prompts: &[Option<&str>]) -> Vec<Option<u64>> {
    let prompts: Vec<Vec<Word<'_>>> = prompts.iter().map(|prompt| prompt.map(words).unwrap_or_default()).collect();
    let known = prompts.iter().filter(|words| !words.is_empty()).count();
    let places: Vec<HashMap<&str, usize>> = prompts.iter().map(|words| places(words)).collect();
    let mut marks: HashMap<&str, (usize, usize)> = HashMap::new();
    for (&mark, &place) in places.iter().flatten() {
        let (rows, sum) = marks.entry(mark).or_default();
        *rows += 1;
        *sum += place;
    }
    // In the order of their mean place: in a template each stands behind the one before.
    let mut marks: Vec<(&str, (usize, usize))> =
        marks.into_iter().filter(|(_, (rows, _))| 20 * rows >= 19 * known).collect();
    marks.sort_by(|(one, (n, sum)), (other, (m, total))| (sum * m).cmp(&(total * n)).then(one.cmp(other)));
    let mut start = vec![0; prompts.len()];
    for (mark, _) in marks {
        let ends: Vec<Option<usize>> = places.iter().map(|places| places.get(mark).copied()).collect();
        let beginning = |(words, end): (&Vec<Word<'_>>, &Option<usize>)| {
            let mut hasher = DefaultHasher::new();
            words[..(*end)?].iter().for_each(|word| word.text.to_lowercase().hash(&mut hasher));
            Some(hasher.finish())
        };
        let beginnings: Vec<Option<u64>> = prompts.iter().zip(&ends).map(beginning).collect();
        let length: usize =
            start.iter().zip(&ends).map(|(start, end)| end.map_or(0, |end| end.saturating_sub(*start))).sum();
        if length >= WORDS * known && are_several(&beginnings, known) {
            return beginnings;
        }
        start.iter_mut().zip(ends).for_each(|(start, end)| *start = end.map_or(*start, |end| end + 1));
    }
    vec![None; prompts.len()]
}

/// Whether there are enough beginnings, and no row in three has the same.
fn are_several(beginnings: &[Option<u64>], known: usize) -> bool {
    let mut counts: HashMap<u64, usize> = HashMap::new();
    beginnings.iter().flatten().for_each(|&beginning| *counts.entry(beginning).or_default() += 1);
    counts.len() >= LEAST && counts.values().all(|&count| 3 * count <= known)
}

/// Where each mark is that occurs once.
fn places<'a>(words: &[Word<'a>]) -> HashMap<&'a str, usize> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    words.iter().for_each(|word| *counts.entry(word.text).or_default() += 1);
    let once = words.iter().enumerate().filter(|(_, word)| word.is_mark && counts[word.text] == 1);
    once.map(|(place, word)| (word.text, place)).collect()
}

fn words(prompt: &str) -> Vec<Word<'_>> {
    prompt
        .lines()
        .flat_map(|line| line.split_whitespace().enumerate())
        .map(|(place, text)| {
            let is_markup = text.starts_with(|first: char| !first.is_alphanumeric());
            Word { text, is_mark: place == 0 || text.ends_with(':') || is_markup }
        })
        .collect()
}
