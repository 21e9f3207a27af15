//! Which positions of which sequences are computed together: what several sequences share at their beginning, once.

use std::ops::Range;

use judge_core::TokenId;

use super::keys::TILE;

/// Shared tokens that must be saved for a stretch to be computed on its own: it costs a pass over the weights, alone perhaps.
const WORTH_SHARING: usize = 4 * TILE;

/// The fewest positions of a stretch that several sequences run through: each one that begins within a tile copies that tile, and waits for those
/// before it.
const SHORTEST_SHARED: usize = TILE;

/// Successive positions of one or more sequences that are computed in one go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// What comes before it, an earlier entry of the plan.
    pub(crate) before: Option<usize>,
    /// A sequence that runs through it.
    pub(crate) sequence: usize,
    /// Its positions.
    pub(crate) positions: Range<usize>,
    /// Whether `sequence` ends here; if so, it is the only one that runs through it.
    pub(crate) is_last: bool,
}

/// Cuts sequences of at least one token into stretches of at most `longest` positions. Each sequence is one chain of them; its last
/// stretch is its own. `longest` is rounded down to whole tiles of keys, but is at least one.
pub(crate) fn plan(sequences: &[&[TokenId]], longest: usize) -> Vec<Stretch> {
    let mut order: Vec<usize> = (0..sequences.len()).collect();
    order.sort_by_key(|&index| sequences[index]);
    let mut plan = Plan { sequences, longest: (longest / TILE).max(1) * TILE, stretches: Vec::new() };
    // What is left to split; prefixes may be nested as deep as a sequence is long.
    let mut left = vec![Members { all: &order, start: 0, before: None }];
    while let Some(members) = left.pop() {
        plan.split(members, &mut left);
    }
    plan.stretches
}

struct Plan<'a> {
    sequences: &'a [&'a [TokenId]],
    longest: usize,
    stretches: Vec<Stretch>,
}

/// Sequences, sorted, that agree in what comes before `start`, which is computed by `before`.
struct Members<'o> {
    all: &'o [usize],
    start: usize,
    before: Option<usize>,
}

impl Plan<'_> {
    /// Plans what the members share, or one that is alone, and puts off what comes behind it, the first at the end.
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
                if shared >= start + SHORTEST_SHARED && saved >= WORTH_SHARING {
                    let before = self.chain(first, start..shared, before, false);
                    left.push(Members { all, start: shared, before });
                    return;
                }
                // Fewer of them may share more. Whoever ends with the next token shares no more with anyone.
                let next = |member: &usize| {
                    let ids = self.sequences[*member];
                    ids.get(shared).filter(|_| ids.len() > shared + 1)
                };
                let groups = all.chunk_by(|a, b| next(a).is_some() && next(a) == next(b));
                let put_off = left.len();
                left.extend(groups.map(|all| Members { all, start, before }));
                left[put_off..].reverse();
            }
        }
    }

    /// One sequence's positions as stretches behind one another, which all but the first begin with a tile; returns the last one.
    fn chain(
        &mut self,
        sequence: usize,
        positions: Range<usize>,
        mut before: Option<usize>,
        is_last: bool,
    ) -> Option<usize> {
        let Range { mut start, end } = positions;
        while start < end {
            let cut = end.min(start / TILE * TILE + self.longest);
            self.stretches.push(Stretch { before, sequence, positions: start..cut, is_last: is_last && cut == end });
            before = Some(self.stretches.len() - 1);
            start = cut;
        }
        before
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_shared_beginning_is_computed_once() {
        // A rubric of 70 tokens, three continuations of it, and one prompt that has nothing to do with them.
        let prompt = |tail: u32, len: usize| (0..70).chain((0..len as u32).map(|i| tail + i)).collect::<Vec<TokenId>>();
        let sequences = [prompt(1000, 40), prompt(2000, 10), (500..540).collect(), prompt(3000, 90)];
        let sequences: Vec<&[TokenId]> = sequences.iter().map(Vec::as_slice).collect();
        let stretch = |before, sequence, positions, is_last| Stretch { before, sequence, positions, is_last };
        assert_eq!(
            plan(&sequences, 1000),
            [
                stretch(None, 0, 0..70, false),
                stretch(Some(0), 0, 70..110, true),
                stretch(Some(0), 1, 70..80, true),
                stretch(Some(0), 3, 70..160, true),
                stretch(None, 2, 0..40, true),
            ]
        );
        // Two of them share too little to be worth a pass of its own.
        assert_eq!(plan(&sequences[..2], 1000).len(), 2);
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
            let plan = plan(&sequences, longest);
            let computed: usize = plan.iter().map(|stretch| stretch.positions.len()).sum();
            prop_assert!(computed <= sequences.iter().map(|ids| ids.len()).sum());
            for (index, ids) in sequences.iter().enumerate() {
                let last: Vec<usize> =
                    (0..plan.len()).filter(|&i| plan[i].is_last && plan[i].sequence == index).collect();
                prop_assert_eq!(last.len(), 1);
                let (mut at, mut end) = (Some(last[0]), ids.len());
                while let Some(here) = at {
                    let Stretch { before, sequence, positions, is_last } = &plan[here];
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
