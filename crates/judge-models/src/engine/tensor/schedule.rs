//! The passes of a group in their order: batches of prompts, and before them the prefixes that they
//! share. Pure arithmetic on tokens and lengths; `run.rs` works the list off.
//!
//! `segments.rs` finds what sequences begin with, `plan.rs` makes batches of what is behind:
//!
//! ```text
//! sequences    rubric a, rubric b, rubric c x, rubric c y, other
//!
//! depth 0      Prefix   rubric                 one row; its keys and memories are kept
//! depth 1      Batch    a, b                   attend to the rubric's keys, which all rows share
//! depth 1      Prefix   c
//! depth 2      Batch    x, y                   attend to the keys of rubric and c
//! depth 0      Batch    other
//! ```
//!
//! A prefix ends at a multiple of [`Shapes::step`], so it has no padding; the few tokens behind
//! that are computed with the rest of each sequence. It is worth a pass if it saves as many
//! positions as two passes cost: its own, and that of the batch that has to be one of its own.
//!
//! Memory is bounded by `max_tokens`: kept prefixes have at most half of it, and batches behind them
//! what is left. All rows of a batch read the keys of a prefix where they lie. Masks are not counted: those of
//! texts have a number for each column, the prefix's too, of each row and key head.
//!
//! Only positions of which nothing is read are shared (`Sequence::shareable`): states that are pooled
//! over all positions, attention entropies and log-probabilities of a prompt are reduced in one pass
//! over the whole prompt.

use std::ops::Range;

use judge_core::request::TokenId;

use super::plan::{Batch, Length, Shapes, plan};
use crate::engine::segments::{Cuts, plan as segments};

/// A sequence, as far as its passes go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sequence<'a> {
    /// The prompt's tokens, at least one.
    pub(crate) ids: &'a [TokenId],
    /// Most tokens that are written behind it; `None` if it is only read.
    pub(crate) new: Option<usize>,
    /// Leading positions of which nothing is read; fewer than there are tokens.
    pub(crate) shareable: usize,
}

/// One pass over positions of prompts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    /// How many prefixes are before it: those that were planned last with depths 0, 1, … below
    /// this one. Others are not needed any more.
    pub(crate) depth: usize,
    /// What it feeds.
    pub(crate) feeds: Feeds,
}

/// What a pass feeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Feeds {
    /// Positions that several sequences have in common, as one row.
    Prefix {
        /// One of the sequences.
        sequence: usize,
        /// The positions, none of which is padding.
        positions: Range<usize>,
    },
    /// Sequences, from the end of the prefixes before them to their own.
    Batch {
        /// The members, and what they are padded to. `seq` counts from `start`.
        batch: Batch,
        /// The first position: where the prefixes before end.
        start: usize,
        /// Whether text is written behind all members, or behind none.
        writes: bool,
    },
}

/// A prefix in the tree of those that are worth a pass.
struct Node {
    /// The prefix that it begins with.
    before: Option<usize>,
    /// A sequence that has it.
    sequence: usize,
    /// Where it ends.
    end: usize,
    /// Positions that are kept when it is done: its own end, and that of each prefix before it,
    /// whose keys are kept beside it.
    kept: usize,
}

/// The passes of all sequences, each of which is in exactly one batch.
pub(crate) fn schedule(sequences: &[Sequence<'_>], shapes: Shapes, max_tokens: usize) -> Vec<Planned> {
    // A sequence shares no position of which something is read: as far as sharing goes it ends there.
    let views: Vec<&[TokenId]> = sequences.iter().map(|sequence| &sequence.ids[..=sequence.shareable]).collect();
    let cuts =
        Cuts { tile: 1, longest: usize::MAX, worth_sharing: 2 * shapes.pass, shortest_shared: 2 * shapes.step.max(1) };
    let mut nodes: Vec<Node> = Vec::new();
    // For each segment, the node that it is part of or comes behind.
    let mut node_of_segment: Vec<Option<usize>> = Vec::new();
    // Sequences, with the last node that each has.
    let mut ends_behind: Vec<(Option<usize>, usize)> = Vec::new();
    for segment in segments(&views, cuts) {
        let before = segment.before.and_then(|before| node_of_segment[before]);
        if segment.is_last {
            ends_behind.push((before, segment.sequence));
            node_of_segment.push(before);
            continue;
        }
        let end = segment.positions.end / shapes.step.max(1) * shapes.step.max(1);
        let (start, kept) = before.map_or((0, 0), |before| (nodes[before].end, nodes[before].kept));
        let is_node = end > start && kept + end <= max_tokens / 2;
        node_of_segment.push(if is_node {
            nodes.push(Node { before, sequence: segment.sequence, end, kept: kept + end });
            Some(nodes.len() - 1)
        } else {
            before
        });
    }
    let mut planned = Vec::new();
    // What is left to plan, the next at the end: a node with its depth, or the beginning of all.
    let mut left = vec![(None, 0)];
    while let Some((node, depth)) = left.pop() {
        let (start, kept) = node.map_or((0, 0), |node: usize| (nodes[node].end, nodes[node].kept));
        let mut inner = depth;
        if let Some(node) = node {
            let Node { before, sequence, end, .. } = nodes[node];
            let begin = before.map_or(0, |before| nodes[before].end);
            planned.push(Planned { depth, feeds: Feeds::Prefix { sequence, positions: begin..end } });
            inner += 1;
        }
        let here = || ends_behind.iter().filter(|(behind, _)| *behind == node).map(|&(_, sequence)| sequence);
        for writes in [false, true] {
            let mut members: Vec<usize> = here().filter(|&index| sequences[index].new.is_some() == writes).collect();
            members.sort_unstable(); // in the order of requests, as far as lengths allow
            let length = |&index: &usize| {
                let Sequence { ids, new, .. } = sequences[index];
                Length { prompt: ids.len() - start, new: new.unwrap_or(0) }
            };
            let lengths: Vec<Length> = members.iter().map(length).collect();
            for mut batch in plan(&lengths, shapes, max_tokens.saturating_sub(kept)) {
                batch.members.iter_mut().for_each(|member| *member = members[*member]);
                planned.push(Planned { depth: inner, feeds: Feeds::Batch { batch, start, writes } });
            }
        }
        let children = (0..nodes.len()).rev().filter(|&child| nodes[child].before == node);
        left.extend(children.map(|child| (Some(child), inner)));
    }
    planned
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SHAPES: Shapes = Shapes { step: 4, pass: 8 };

    fn read(ids: &[TokenId]) -> Sequence<'_> {
        Sequence { ids, new: None, shareable: ids.len() - 1 }
    }

    fn batch(depth: usize, members: &[usize], start: usize, seq: usize) -> Planned {
        let batch = Batch { members: members.to_vec(), seq };
        Planned { depth, feeds: Feeds::Batch { batch, start, writes: false } }
    }

    #[test]
    fn a_rubric_is_computed_once_and_what_is_behind_it_in_batches() {
        let prompt =
            |parts: &[(u32, u32)]| -> Vec<TokenId> { parts.iter().flat_map(|&(from, len)| from..from + len).collect() };
        let (rubric, c) = ((0, 21), (100, 16));
        let all = [
            prompt(&[rubric, (200, 5)]),
            prompt(&[rubric, (300, 3)]),
            prompt(&[rubric, c, (400, 6)]),
            prompt(&[rubric, c, (500, 7)]),
            prompt(&[(600, 9)]),
        ];
        let sequences: Vec<Sequence<'_>> = all.iter().map(|ids| read(ids)).collect();
        let prefix = |depth, sequence, positions| Planned { depth, feeds: Feeds::Prefix { sequence, positions } };
        assert_eq!(
            schedule(&sequences, SHAPES, 1000),
            [
                batch(0, &[4], 0, 12),
                prefix(0, 2, 0..20), // 21, rounded down to the step; the first in the order of tokens
                batch(1, &[0, 1], 20, 8),
                prefix(1, 2, 20..36),
                batch(2, &[3, 2], 36, 8),
            ]
        );
        // With less room the inner prefix is not kept beside the outer one, then none is.
        let prefixes = |max_tokens| {
            let planned = schedule(&sequences, SHAPES, max_tokens);
            planned.iter().filter(|planned| matches!(planned.feeds, Feeds::Prefix { .. })).count()
        };
        assert_eq!([112, 111, 40, 39].map(prefixes), [2, 1, 1, 0]);
    }

    #[test]
    fn positions_that_are_read_are_not_shared() {
        let ids: Vec<TokenId> = (0..40).collect();
        let sequence = |shareable| Sequence { ids: &ids, new: None, shareable };
        // One is read from position 9 on, one everywhere.
        let planned = schedule(&[sequence(39), sequence(9), sequence(39), sequence(9), sequence(0)], SHAPES, 1000);
        let prefixes: Vec<_> = planned
            .iter()
            .filter_map(|planned| match &planned.feeds {
                Feeds::Prefix { positions, .. } => Some(positions.clone()),
                Feeds::Batch { .. } => None,
            })
            .collect();
        assert_eq!(prefixes, [0..8, 8..36]);
        assert_eq!(planned[0], batch(0, &[4], 0, 40));
    }

    proptest! {
        #[test]
        fn every_sequence_is_fed_once_from_its_beginning_to_its_end(
            drawn in prop::collection::vec(
                (0_usize..3, 0_usize..60, prop::collection::vec(0_u32..2, 1..30), 0_usize..3, 0_usize..100), 1..20),
            step in 1_usize..9,
            pass in 0_usize..40,
            max_tokens in 1_usize..300,
        ) {
            let ids: Vec<Vec<TokenId>> = drawn
                .iter()
                .map(|(text, len, tail, ..)| (0..*len).map(|i| (i * (text + 1)) as u32).chain(tail.clone()).collect())
                .collect();
            let sequences: Vec<Sequence<'_>> = ids
                .iter()
                .zip(&drawn)
                .map(|(ids, &(.., new, shareable))| Sequence {
                    ids,
                    new: (new > 0).then_some(new * 7),
                    shareable: shareable.min(ids.len() - 1),
                })
                .collect();
            let mut seen = vec![0; sequences.len()];
            let mut path: Vec<Vec<TokenId>> = Vec::new();
            for Planned { depth, feeds } in schedule(&sequences, Shapes { step, pass }, max_tokens) {
                prop_assert!(depth <= path.len());
                path.truncate(depth);
                let before = path.concat();
                let kept: usize = (1..=depth).map(|depth| path[..depth].concat().len()).sum();
                prop_assert!(2 * kept <= max_tokens);
                match feeds {
                    Feeds::Prefix { sequence, positions } => {
                        prop_assert_eq!(positions.start, before.len());
                        prop_assert_eq!(positions.len() % step, 0);
                        prop_assert!(!positions.is_empty() && positions.end <= sequences[sequence].shareable);
                        prop_assert_eq!(&before, &ids[sequence][..positions.start]);
                        path.push(ids[sequence][positions].to_vec());
                    }
                    Feeds::Batch { batch, start, writes } => {
                        prop_assert_eq!(start, before.len());
                        for &member in &batch.members {
                            let Sequence { ids, new, shareable } = sequences[member];
                            seen[member] += 1;
                            prop_assert_eq!(&before, &ids[..start]);
                            prop_assert!(start <= shareable && ids.len() <= start + batch.seq);
                            prop_assert_eq!(new.is_some(), writes);
                        }
                        let new = batch.members.iter().filter_map(|&member| sequences[member].new).max().unwrap_or(0);
                        let positions = batch.members.len() * (batch.seq + Shapes { step, pass }.up(new));
                        prop_assert!(positions + kept <= max_tokens || batch.members.len() == 1);
                    }
                }
            }
            prop_assert_eq!(seen, vec![1; sequences.len()]);
        }
    }
}
