//! `Piece`: some columns of a panel of codes, and how they are dequantised to the words that they stand for.
//!
//! Portable loops, written once for all codings; `coded/body.rs` has those with a processor's own instructions.

use std::ops::Range;

use super::tile::{LANES, Word, prefetch};
use super::vector::bf16_bits_of_number;
use crate::codes::{Coding, Groups, value};
use crate::widest::widest;

/// The lanes of one word of a panel.
pub(crate) type Lanes = [u32; LANES];

/// A panel of codes, and what its groups have.
#[derive(Clone, Copy)]
pub(crate) struct CodesOfPanel<'a> {
    /// Words of codes, in the order of the columns.
    pub(crate) codes: &'a [Lanes],
    /// Scales, as bits of f32.
    pub(crate) scales: &'a [Lanes],
    /// Zeros likewise; empty if there are none.
    pub(crate) zeros: &'a [Lanes],
    /// Minima likewise; empty if there are none.
    pub(crate) minima: &'a [Lanes],
}

/// How many words before they are needed codes are fetched: 4 KiB. Expanding takes so many
/// instructions that the processor by itself does not look far enough ahead to keep the memory busy.
pub(crate) const AHEAD: usize = 1024;

/// The sums of one row.
pub(crate) type Sums = [f32; LANES];

/// Codes in a word.
pub(crate) fn per_word(coding: &Coding) -> usize {
    32 / coding.bits
}

/// Two numbers as a pair of bf16. Codes, scales and minima are numbers, so no value is a NaN.
#[inline(always)]
pub(crate) fn pair(first: f32, second: f32) -> u32 {
    bf16_bits_of_number(first) | bf16_bits_of_number(second) << 16
}

/// What is made of the numbers that codes stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// Pairs rounded to bf16: a row of words for two columns.
    Pairs,
    /// Numbers rounded to bf16, in f32: a row for each column.
    Rounded,
    /// Numbers in f32 as they are, likewise.
    Exact,
}

impl Written {
    /// What words of products hold.
    pub(crate) fn of(word: Word) -> Self {
        match word {
            Word::Pair => Self::Pairs,
            Word::Single => Self::Exact,
        }
    }

    /// Rows of words that so many columns make.
    pub(crate) fn rows(self, columns: usize) -> usize {
        if self == Self::Pairs { columns.div_ceil(2) } else { columns }
    }
}

/// Some columns of a panel, to be dequantised.
pub(crate) struct Piece<'a> {
    /// How values follow from codes.
    pub(crate) coding: &'a Coding,
    /// What is made of them.
    pub(crate) written: Written,
    /// The panel, whose codes are those from the first column on.
    pub(crate) panel: CodesOfPanel<'a>,
    /// The columns.
    pub(crate) columns: Range<usize>,
}

impl Piece<'_> {
    /// Expands the columns, by a body for what the coding has; `number` is what the code at some
    /// place of a word stands for.
    #[inline(always)]
    pub(crate) fn dequantise(&self, out: &mut [Lanes], number: impl Fn(u32, usize) -> f32 + Copy) {
        let factor = self.coding.factor;
        match (self.panel.zeros.is_empty(), self.panel.minima.is_empty(), factor == 1.0) {
            (true, true, true) => self.dispatch(out, number, |x, [_, scale, _]| x * scale),
            (false, true, true) => self.dispatch(out, number, |x, [zero, scale, _]| (x - zero) * scale),
            (true, false, true) => self.dispatch(out, number, |x, [_, scale, minimum]| x * scale - minimum),
            _ => self.dispatch(out, number, |x, of_group| value(x, of_group, factor)),
        }
    }

    /// Runs the loops with the widest instructions that the processor has.
    #[inline(always)]
    fn dispatch(
        &self,
        out: &mut [Lanes],
        number: impl Fn(u32, usize) -> f32 + Copy,
        value: impl Fn(f32, [f32; 3]) -> f32 + Copy,
    ) {
        match self.written {
            Written::Pairs => widest(
                #[inline(always)]
                || self.run::<true>(out, number, value, f32::to_bits),
            ),
            Written::Rounded => widest(
                #[inline(always)]
                || self.run::<false>(out, number, value, |x| bf16_bits_of_number(x) << 16),
            ),
            Written::Exact => widest(
                #[inline(always)]
                || self.run::<false>(out, number, value, f32::to_bits),
            ),
        }
    }

    /// The loops: two columns of all lanes at a time, which are one word of pairs or two of `single` numbers.
    #[inline(always)]
    fn run<const PAIRS: bool>(
        &self,
        out: &mut [Lanes],
        number: impl Fn(u32, usize) -> f32 + Copy,
        value: impl Fn(f32, [f32; 3]) -> f32 + Copy,
        single: impl Fn(f32) -> u32,
    ) {
        let Coding { ref groups, .. } = *self.coding;
        let each = per_word(self.coding);
        let whole = matches!(groups, Groups::Even(size) if size.is_multiple_of(each));
        let mut out = out.iter_mut();
        for (codes, from) in self.panel.codes.iter().zip(self.columns.clone().step_by(each)) {
            prefetch(codes.as_ptr().wrapping_add(AHEAD));
            prefetch(codes.as_ptr().wrapping_add(AHEAD + LANES / 2));
            let of_word = groups.of(from);
            for at in (0..each).step_by(2) {
                let column = from + at;
                if column >= self.columns.end {
                    break;
                }
                let has_second = column + 1 < self.columns.end;
                let group = |column| self.group(if whole { of_word } else { groups.of(column) });
                let first = group(column);
                let second = if has_second { group(column + 1) } else { first };
                let both = |lane: usize| {
                    let of =
                        |[zeros, scales, minima]: [&Lanes; 3]| [zeros, scales, minima].map(|x| f32::from_bits(x[lane]));
                    let x = value(number(codes[lane], at), of(first));
                    let y = if has_second { value(number(codes[lane], at + 1), of(second)) } else { 0.0 };
                    (x, y)
                };
                if PAIRS {
                    let Some(row) = out.next() else { return };
                    for (lane, word) in row.iter_mut().enumerate() {
                        let (x, y) = both(lane);
                        *word = pair(x, y);
                    }
                } else {
                    let (Some(row), below) = (out.next(), if has_second { out.next() } else { None }) else { return };
                    for (lane, word) in row.iter_mut().enumerate() {
                        *word = single(both(lane).0);
                    }
                    for (lane, word) in below.into_iter().flatten().enumerate() {
                        *word = single(both(lane).1);
                    }
                }
            }
        }
        out.for_each(|row| row.fill(0));
    }

    /// Zeros, scales and minima of a group; 0 where there are none.
    #[inline(always)]
    fn group(&self, group: usize) -> [&Lanes; 3] {
        /// What a group without zeros or minima has.
        const NONE: &Lanes = &[0; LANES];
        let CodesOfPanel { scales, zeros, minima, .. } = self.panel;
        [zeros.get(group).unwrap_or(NONE), &scales[group], minima.get(group).unwrap_or(NONE)]
    }
}
