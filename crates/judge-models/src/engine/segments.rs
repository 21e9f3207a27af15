//! Which positions of which sequences are computed together, so that a shared prefix is computed
//! once.
//!
//! Both decoders call [`plan`] once for a group of jobs (`packed/run.rs`, `tensor/schedule.rs`) and
//! say by [`Cuts`] what is worth sharing to them. This file knows tokens and positions alone: no
//! keys, no memory, no model.
//!
//! The plan is a trie of the sequences whose nodes are [`Segment`]s. Segments that are too long for
//! a pass are cut into chains.
//!
//! ```text
//! sequences   A  prefix (70 tokens) + 40 of its own       C  prefix + 90 of its own
//!             B  prefix + 10 of its own                   D  40 tokens, unrelated
//!
//! plan        index   before   positions   of which sequences
//!             0       —        0..70       A, B, C
//!             1       0        70..110     A, which ends here
//!             2       0        70..80      B, which ends here
//!             3       0        70..160     C, which ends here
//!             4       —        0..40       D, which ends here
//! ```
//!
//! Sequences that part go on in the order in which they were asked for, as far as a prefix that they
//! share allows.
//!
//! A prefix becomes a segment of its own only if that saves enough: see [`Cuts`]. Otherwise smaller
//! sets of sequences are tried, which may share more.
//!
//! Invariants: a segment's predecessor has a smaller index. Every sequence ends with a segment of
//! its own, of at least one token. Segments cut from a chain begin at a multiple of
//! [`Cuts::tile`]; others may begin elsewhere. What is shared changes the work, never what is asked.

use std::ops::Range;

use judge_core::request::TokenId;

/// What an engine's segments are to be like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cuts {
    /// Long segments are cut at multiples of it; at least 1.
    pub(crate) tile: usize,
    /// Positions of a segment, at most; it is rounded down to whole tiles, but to at least one.
    pub(crate) longest: usize,
    /// Tokens that a shared segment must save, `(sequences - 1) * length`. It costs a pass over the
    /// weights, which it may have to itself.
    pub(crate) worth_sharing: usize,
    /// The fewest positions of a shared segment.
    pub(crate) shortest_shared: usize,
}

/// Successive positions of one or more sequences that are computed in one go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Index of the segment right before it in the plan, always smaller than its own; `None` at the
    /// beginning of a sequence.
    pub(crate) before: Option<usize>,
    /// Index of a sequence that runs through it, whose tokens it takes. Of several it is the first
    /// in the order of tokens.
    pub(crate) sequence: usize,
    /// Its positions in the sequence, at least one.
    pub(crate) positions: Range<usize>,
    /// Whether `sequence` ends here. If so, no other sequence runs through it.
    pub(crate) is_last: bool,
}

/// Cuts sequences of at least one token into segments. Each sequence is one chain of segments, and
/// its last segment is its own. Equal sequences share all tokens but the last.
pub(crate) fn plan(sequences: &[&[TokenId]], cuts: Cuts) -> Vec<Segment> {
    let mut order: Vec<usize> = (0..sequences.len()).collect();
    order.sort_by_key(|&index| sequences[index]);
    let mut plan = Plan { sequences, cuts, segments: Vec::new() };
    // What is left to split; prefixes may be nested as deep as a sequence is long.
    let mut left = vec![Members { all: &order, start: 0, before: None }];
    while let Some(members) = left.pop() {
        plan.split(members, &mut left);
    }
    plan.segments
}

/// A plan while it is made.
struct Plan<'a> {
    /// The tokens of all sequences.
    sequences: &'a [&'a [TokenId]],
    /// What segments are to be like.
    cuts: Cuts,
    /// The segments so far, predecessors first.
    segments: Vec<Segment>,
}

/// Sequences, in the order of their tokens, that agree in the first `start` tokens.
struct Members<'o> {
    /// Their indices.
    all: &'o [usize],
    /// The first position that is not planned yet.
    start: usize,
    /// The segment that ends at `start`; `None` if `start` is 0.
    before: Option<usize>,
}

impl Plan<'_> {
    /// Plans the prefix that all members share if it is worth a segment, or the whole rest of a
    /// member that is alone. What remains to be split is pushed on `left`, so that the next to be
    /// planned is popped first.
    ///
    /// Otherwise the members are grouped by the token behind the prefix that all share, since those
    /// with the same token share more; a member that ends with that token is a group of its own.
    /// Groups still begin at `start`, so a prefix that was not worth a segment is part of the next
    /// one that is.
    fn split<'o>(&mut self, Members { all, start, before }: Members<'o>, left: &mut Vec<Members<'o>>) {
        match *all {
            [] => {}
            [only] => {
                self.chain(only, start..self.sequences[only].len(), before, true);
            }
            [first, .., last] => {
                // Sorted: what the outer two share, all share. The last token of each stays its own.
                let (a, b) = (self.sequences[first], self.sequences[last]);
                let shared = a.iter().zip(b).take_while(|(a, b)| a == b).count();
                let shortest = all.iter().map(|&member| self.sequences[member].len()).min().unwrap_or(0);
                let shared = shared.min(shortest.saturating_sub(1));
                let saved = (all.len() - 1) * shared.saturating_sub(start);
                if shared >= start + self.cuts.shortest_shared && saved >= self.cuts.worth_sharing {
                    let before = self.chain(first, start..shared, before, false);
                    left.push(Members { all, start: shared, before });
                    return;
                }
                // Fewer of them may share more. A sequence that ends with the next token shares no more.
                let next = |member: &usize| {
                    let ids = self.sequences[*member];
                    ids.get(shared).filter(|_| ids.len() > shared + 1)
                };
                let mut groups: Vec<&[usize]> = all.chunk_by(|a, b| next(a).is_some() && next(a) == next(b)).collect();
                // What was asked first is answered first, so that a run that is interrupted keeps what it has read.
                groups.sort_by_cached_key(|group| group.iter().min().copied());
                left.extend(groups.into_iter().rev().map(|all| Members { all, start, before }));
            }
        }
    }

    /// Appends a sequence's positions as successive segments and returns the index of the last one.
    /// Cuts lie at multiples of the tile, so all segments but the first begin with one.
    /// `is_last` says whether the sequence ends with these positions.
    fn chain(
        &mut self,
        sequence: usize,
        positions: Range<usize>,
        mut before: Option<usize>,
        is_last: bool,
    ) -> Option<usize> {
        let Range { mut start, end } = positions;
        let Cuts { tile, longest, .. } = self.cuts;
        let longest = (longest / tile).max(1) * tile;
        while start < end {
            let cut = end.min((start / tile * tile).saturating_add(longest));
            self.segments.push(Segment { before, sequence, positions: start..cut, is_last: is_last && cut == end });
            before = Some(self.segments.len() - 1);
            start = cut;
        }
        before
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TILE: usize = 32;

    fn cuts(longest: usize) -> Cuts {
        Cuts { tile: TILE, longest, worth_sharing: 4 * TILE, shortest_shared: TILE }
    }

    #[test]
    fn a_shared_beginning_is_computed_once() {
        // A rubric of 70 tokens, three continuations of it, and one prompt that has nothing to do with them.
        let prompt = |tail: u32, len: usize| (0..70).chain((0..len as u32).map(|i| tail + i)).collect::<Vec<TokenId>>();
        let sequences = [prompt(1000, 40), prompt(2000, 10), (500..540).collect(), prompt(3000, 90)];
        let sequences: Vec<&[TokenId]> = sequences.iter().map(Vec::as_slice).collect();
        let segment = |before, sequence, positions, is_last| Segment { before, sequence, positions, is_last };
        assert_eq!(
            plan(&sequences, cuts(1000)),
            [
                segment(None, 0, 0..70, false),
                segment(Some(0), 0, 70..110, true),
                segment(Some(0), 1, 70..80, true),
                segment(Some(0), 3, 70..160, true),
                segment(None, 2, 0..40, true),
            ]
        );
        // Whatever they begin with, those that were asked first come first.
        let turned: Vec<&[TokenId]> = [2, 3, 1, 0].map(|index| sequences[index]).to_vec();
        let ends = plan(&turned, cuts(1000)).into_iter().filter(|segment| segment.is_last);
        assert_eq!(ends.map(|segment| segment.sequence).collect::<Vec<_>>(), [0, 1, 2, 3]);
        // Two of them share too little to be worth a pass of its own.
        assert_eq!(plan(&sequences[..2], cuts(1000)).len(), 2);
    }

    proptest! {
        #[test]
        fn every_sequence_is_a_chain_of_its_own_tokens(
            sequences in prop::collection::vec(
                (0_usize..3, 0_usize..200, prop::collection::vec(0_u32..2, 1..80)), 1..20),
            longest in 1_usize..300,
        ) {
            // Beginnings of one of three texts, then a tail.
            let sequences: Vec<Vec<TokenId>> = sequences
                .into_iter()
                .map(|(text, len, tail)| (0..len).map(|i| (i * (text + 1)) as u32).chain(tail).collect())
                .collect();
            let sequences: Vec<&[TokenId]> = sequences.iter().map(Vec::as_slice).collect();
            let plan = plan(&sequences, cuts(longest));
            let computed: usize = plan.iter().map(|segment| segment.positions.len()).sum();
            prop_assert!(computed <= sequences.iter().map(|ids| ids.len()).sum());
            for (index, ids) in sequences.iter().enumerate() {
                let last: Vec<usize> =
                    (0..plan.len()).filter(|&i| plan[i].is_last && plan[i].sequence == index).collect();
                prop_assert_eq!(last.len(), 1);
                let (mut at, mut end) = (Some(last[0]), ids.len());
                while let Some(here) = at {
                    let Segment { before, sequence, positions, is_last } = &plan[here];
                    prop_assert_eq!(positions.end, end);
                    prop_assert!(!positions.is_empty());
                    prop_assert!(positions.len() <= longest.max(TILE));
                    prop_assert_eq!(&sequences[*sequence][..end], &ids[..end]);
                    prop_assert_eq!(*is_last, here == last[0]);
                    prop_assert!(before.is_none_or(|before| before < here));
                    end = positions.start;
                    at = *before;
                }
                prop_assert_eq!(end, 0);
            }
        }
    }
}
