//! Passages that few rows share.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Words of a passage.
const PASSAGE: usize = 5;

/// Passages that two texts must share, at the least.
const LEAST: usize = 4;

/// A passage of more rows than this, and than a twentieth of all, is the template's or a common phrase.
const COMMON: usize = 8;

/// Pairs of rows that have a third of the shorter text's passages in common: by way of them, all that do are joined. Texts are in words.
pub(super) fn related(texts: &[Option<Vec<String>>]) -> Vec<(usize, usize)> {
    let mut places: Vec<(u64, usize)> = Vec::new();
    for (row, words) in texts.iter().enumerate() {
        let passages = words.iter().flat_map(|words| words.windows(PASSAGE));
        places.extend(passages.map(|passage| (hash(passage), row)));
    }
    places.sort_unstable();
    places.dedup();

    // Sorted by passage: the rows of each stand together, ascending.
    let common = COMMON.max(texts.len() / 20);
    let rows_of_passages: Vec<&[(u64, usize)]> =
        places.chunk_by(|one, other| one.0 == other.0).filter(|rows| rows.len() <= common).collect();
    let mut passages: Vec<Vec<u64>> = vec![Vec::new(); texts.len()];
    for &(passage, row) in rows_of_passages.iter().copied().flatten() {
        passages[row].push(passage);
    }
    let (mut compared, mut found) = (HashSet::new(), Vec::new());
    for rows in rows_of_passages {
        // With the first and with the one before: others are joined through these, or by another passage.
        let pairs = rows.windows(2).map(|pair| (pair[0].1, pair[1].1));
        for (one, other) in pairs.chain(rows[1..].iter().map(|place| (rows[0].1, place.1))) {
            if compared.insert((one, other)) && are_related(&passages[one], &passages[other]) {
                found.push((one, other));
            }
        }
    }
    found
}

/// Of two ascending lists.
fn are_related(one: &[u64], other: &[u64]) -> bool {
    let shared = one.iter().filter(|passage| other.binary_search(passage).is_ok()).count();
    shared >= LEAST && 3 * shared >= one.len().min(other.len())
}

/// Only its equality counts.
fn hash(passage: &[String]) -> u64 {
    let mut hasher = DefaultHasher::new();
    passage.hash(&mut hasher);
    hasher.finish()
}
