//! Whose passes the model takes next, where items come from several sources.
//!
//! A *turn* is what the model takes before it has answered something. While one source alone asks, its turns are large, so that batches
//! are full and beginnings are shared. Once another one asks too, and for some turns after that, turns are small, and sources that have
//! little waiting go together and between two turns of those that have much. So whoever asks little waits for one small turn and its own
//! work, whatever others ask. What is cut here changes no answer, only when it comes.

use std::collections::BTreeMap;

use crate::Prompt;
use crate::prompt::text_bytes;

/// What a pass counts beside its text, in bytes: what a template writes around it, and that there is a pass at all.
pub(super) const PASS: usize = 1 << 8;

/// Bytes of text of a turn while one source alone asks: as much as a local model answers together by default.
const WHOLE: usize = 1 << 19;

/// Bytes of text that a source has waiting at most, and it has little.
const LITTLE: usize = 1 << 12;

/// Bytes of text of a turn of a source that has more while several ask, those that passes of the turn share with the one before them
/// counted once. Its first pass is not counted. Half of [`LITTLE`], so that whoever has little waits for less than it asks itself.
const SMALL: usize = LITTLE / 2;

/// Bytes of text of such a turn, all counted: each is tokenised.
const SMALL_IN_ALL: usize = 1 << 16;

/// So many turns in a row of one source, and it is alone.
const ALONE: usize = 64;

/// The passes of one source, by their number: in the order of their first question.
pub(super) struct Line<Pass> {
    pub(super) passes: BTreeMap<usize, Pass>,
    /// Of all of them.
    pub(super) bytes: usize,
}

impl<Pass> Default for Line<Pass> {
    fn default() -> Self {
        Self { passes: BTreeMap::new(), bytes: 0 }
    }
}

/// The order of passes.
#[derive(Default)]
pub(super) struct Turns {
    /// Whether there may be several sources. If not, nothing is cut.
    of_several: bool,
    turn: Option<Turn>,
    /// The source of the last turn, where no other one waited.
    last: Option<u64>,
    /// Turns in a row that were of one source alone.
    alone: usize,
    /// The source that has much and went last.
    last_much: Option<u64>,
    /// Whether the last turn was that of sources with little.
    was_little: bool,
}

/// A turn that has begun.
struct Turn {
    whose: Whose,
    /// Text taken.
    bytes: usize,
    /// How much of it was not shared with the pass before it; of the first nothing counts.
    apart: usize,
    /// The last prompt, of a source that has much.
    before: Option<Prompt>,
}

enum Whose {
    /// Of a source that is alone.
    All(u64),
    /// Of a source among others that has much.
    Much(u64),
    /// Of all these sources, which have little.
    Little(Vec<u64>),
}

impl Turns {
    pub(super) fn of_several() -> Self {
        // Whoever comes first is alone until somebody else comes.
        Self { of_several: true, alone: ALONE, ..Self::default() }
    }

    /// The source whose first pass is next; none if nothing waits or the turn is over.
    pub(super) fn next<Pass>(&mut self, sources: &BTreeMap<u64, Line<Pass>>) -> Option<u64> {
        if !self.of_several {
            return sources.keys().next().copied();
        }
        if self.turn.is_none() {
            let whose = self.begin(sources)?;
            self.turn = Some(Turn { whose, bytes: 0, apart: 0, before: None });
        }
        let Turn { whose, bytes, apart, .. } = self.turn.as_ref()?;
        let waiting = |source: &u64| sources.contains_key(source).then_some(*source);
        match whose {
            Whose::All(source) => waiting(source).filter(|_| *bytes < WHOLE),
            Whose::Much(source) => waiting(source).filter(|_| *apart < SMALL && *bytes < SMALL_IN_ALL),
            Whose::Little(list) => {
                let first =
                    list.iter().filter_map(|source| Some((*sources.get(source)?.passes.keys().next()?, *source))).min();
                first.map(|(_, source)| source).filter(|_| *bytes < WHOLE)
            }
        }
    }

    /// Whose turn it is.
    fn begin<Pass>(&mut self, sources: &BTreeMap<u64, Line<Pass>>) -> Option<Whose> {
        let only = if sources.len() > 1 { None } else { Some(*sources.keys().next()?) };
        let goes_on = only.is_some() && (self.last.is_none() || self.last == only);
        self.alone = if goes_on { self.alone.saturating_add(1) } else { 0 };
        self.last = only;
        if let Some(source) = only.filter(|_| self.alone > ALONE) {
            return Some(Whose::All(source));
        }
        let (little, much): (Vec<u64>, Vec<u64>) =
            sources.keys().partition(|source| sources.get(source).is_some_and(|line| line.bytes <= LITTLE));
        self.was_little = !little.is_empty() && (much.is_empty() || !self.was_little);
        if self.was_little {
            return Some(Whose::Little(little));
        }
        let after = much.iter().find(|source| Some(**source) > self.last_much).or(much.first());
        self.last_much = after.copied();
        self.last_much.map(Whose::Much)
    }

    /// The pass of [`next`](Self::next) was taken.
    pub(super) fn took(&mut self, prompt: &Prompt, bytes: usize) {
        let Some(turn) = &mut self.turn else { return };
        turn.bytes += bytes;
        if let Whose::Much(_) = turn.whose {
            turn.apart += turn.before.as_ref().map_or(0, |before| bytes.saturating_sub(shared(before, prompt)));
            turn.before = Some(prompt.clone());
        }
    }

    pub(super) fn end(&mut self) {
        self.turn = None;
    }
}

/// Bytes of text that two prompts begin with alike, or for prompts with a template of their own have in common.
fn shared(a: &Prompt, b: &Prompt) -> usize {
    let begin = |a: &str, b: &str| a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    match (a, b) {
        (Prompt::Raw(a), Prompt::Raw(b)) => begin(a, b),
        (Prompt::Chat { messages: a, .. }, Prompt::Chat { messages: b, .. }) => {
            let mut bytes = 0;
            for (a, b) in a.iter().zip(b) {
                bytes += begin(&a.content, &b.content);
                if a != b {
                    break;
                }
            }
            bytes
        }
        (Prompt::Whole(a), Prompt::Whole(b)) => {
            let same = b.values.iter().filter(|(name, value)| a.values.get(*name) == Some(*value));
            same.map(|(_, value)| text_bytes(value)).sum()
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::pass::{Question, Waiting};
    use super::*;
    use crate::Want;

    fn push(waiting: &mut Waiting, source: u64, item: usize, bytes: usize) {
        let question = Question { item, judge: 0, place: 0, want: Want::default() };
        waiting.push(source, question, Prompt::user(format!("{item:08}{}", "x".repeat(bytes - PASS - 8))));
    }

    /// The sources of a turn's passes.
    fn turn(waiting: &mut Waiting) -> Vec<u64> {
        waiting.end_turn();
        std::iter::from_fn(|| waiting.pop()).map(|(source, _)| source).collect()
    }

    #[test]
    fn a_source_alone_has_large_turns_and_others_make_them_small() {
        let mut waiting = Waiting::in_turns();
        (0..600).for_each(|item| push(&mut waiting, 1, item, 1024));
        assert_eq!(turn(&mut waiting).len(), WHOLE / 1024);
        // Somebody else comes, with little: at once in the next turn, alone, and then one small turn of who has much.
        push(&mut waiting, 2, 600, 1000);
        push(&mut waiting, 3, 601, 1000);
        assert_eq!(turn(&mut waiting), [2, 3]);
        // The text of the first is not counted.
        assert!((1 + SMALL / 1024..10).contains(&turn(&mut waiting).len()));
        // They are gone, and turns stay small for a while.
        assert!(turn(&mut waiting).len() < 10);
        push(&mut waiting, 2, 602, 1000);
        assert_eq!(turn(&mut waiting), [2]);
        // Those with little never go twice in a row while who has much waits.
        push(&mut waiting, 2, 603, 1000);
        assert_eq!(turn(&mut waiting)[0], 1);
        assert_eq!(turn(&mut waiting), [2]);
    }

    #[test]
    fn sources_with_much_go_round_by_round() {
        let mut waiting = Waiting::in_turns();
        for item in 0..30 {
            (1..=3).for_each(|source| push(&mut waiting, source, item, 2000 + item));
        }
        let turns: Vec<Vec<u64>> = (0..6).map(|_| turn(&mut waiting)).collect();
        assert_eq!(turns.iter().map(|turn| turn[0]).collect::<Vec<_>>(), [1, 2, 3, 1, 2, 3]);
        assert!(turns.iter().all(|turn| turn.len() < 5 && turn.iter().all(|source| *source == turn[0])));
    }

    #[test]
    fn what_is_alone_long_enough_has_large_turns_again() {
        let mut waiting = Waiting::in_turns();
        (1..=2).for_each(|source| push(&mut waiting, source, 0, 1000));
        assert_eq!(turn(&mut waiting), [1, 2]);
        let mut sizes = Vec::new();
        for number in 0..2 * ALONE {
            (0..100).for_each(|item| push(&mut waiting, 1, 100 * number + item, 1000));
            sizes.push(turn(&mut waiting).len());
        }
        assert!(sizes[0] < 10 && sizes[2 * ALONE - 1] >= 100, "{sizes:?}");
    }
}
