//! The merges of BPE that entries imply where a file has none: one for each way to cut an entry into two entries.
//!
//! SentencePiece joins the two neighbours whose piece has the highest score. With such merges, the best entries first, BPE does the
//! same. In which order merges of one score come is what converters do, and they differ.

use std::collections::{HashMap, HashSet};

/// Bytes of an entry that merges are made for, at most. Vocabularies have none that is nearly as long; damaged files
/// may, and the ways to cut one are many.
const LONGEST_ENTRY: usize = 1 << 10;

/// The two parts of an entry for each way to cut it, the shorter left part first.
fn cuts(entry: &str) -> impl Iterator<Item = (&str, &str)> {
    let cut = entry.char_indices().skip(1).filter(|_| entry.len() <= LONGEST_ENTRY);
    cut.map(|(at, _)| entry.split_at(at))
}

/// Merges in the order of the entries that they make.
pub(crate) fn by_order(entries: &[String]) -> Vec<[&str; 2]> {
    let all: HashSet<&str> = entries.iter().map(String::as_str).collect();
    let cuts = entries.iter().flat_map(|entry| cuts(entry));
    cuts.filter(|(left, right)| all.contains(left) && all.contains(right)).map(|(left, right)| [left, right]).collect()
}

/// Merges in the order of the scores of what they make; those of one score by its number, then by text. `entries` are those that are made
/// and that they are made of, with their numbers and scores.
pub(crate) fn by_score_and_number<'a>(entries: &[(usize, &'a str, f32)]) -> Vec<[&'a str; 2]> {
    let known: HashSet<&str> = entries.iter().map(|(_, entry, _)| *entry).collect();
    let mut merges: Vec<(f32, usize, &str, &str)> = Vec::new();
    for &(id, entry, score) in entries {
        let cuts = cuts(entry).filter(|(left, right)| known.contains(left) && known.contains(right));
        merges.extend(cuts.map(|(left, right)| (score, id, left, right)));
    }
    // Zeros of both signs are one score.
    merges.sort_by(|a, b| (b.0 + 0.0).total_cmp(&(a.0 + 0.0)).then_with(|| (a.1, a.2, a.3).cmp(&(b.1, b.2, b.3))));
    merges.into_iter().map(|(_, _, left, right)| [left, right]).collect()
}

/// Merges in the order of the scores of what they make, the highest first. Those of one score come by the length of their left part, then
/// of their right one, the longer first; and else in the order of the vocabulary, with the cuts of one entry by
/// the numbers of their parts. An entry that appears twice counts as the last of them.
pub(crate) fn by_score<'a, T: AsRef<str>>(entries: &'a [T], scores: &[f64]) -> Vec<(&'a str, &'a str)> {
    let ids: HashMap<&str, usize> = entries.iter().enumerate().map(|(id, entry)| (entry.as_ref(), id)).collect();
    let mut all = Vec::new();
    let last = entries.iter().map(AsRef::as_ref).enumerate().filter(|(id, entry)| ids[entry] == *id);
    for (id, entry) in last {
        let first = all.len();
        for (left, right) in cuts(entry) {
            if let (Some(&l), Some(&r)) = (ids.get(left), ids.get(right)) {
                let lengths = (left.chars().count(), right.chars().count());
                all.push((scores[id], lengths, (l, r), (left, right)));
            }
        }
        all[first..].sort_by_key(|&(_, _, parts, _)| parts);
    }
    // Stable, so that the order from before stays among equals.
    all.sort_by(|one, other| other.0.total_cmp(&one.0).then(other.1.cmp(&one.1)));
    all.into_iter().map(|(.., parts)| parts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against `generate_merges` of transformers 5.23 on the same entries.
    #[test]
    fn merges_follow_scores_then_lengths_then_the_vocabulary() {
        let tokens = ["a", "b", "ab", "abb", "bb", "aab"];
        let scores = [-1.0, -2.0, -3.0, -4.0, -3.0, -4.0];
        assert_eq!(by_score(&tokens, &scores), [("a", "b"), ("b", "b"), ("ab", "b"), ("a", "bb"), ("a", "ab")]);
    }
}
