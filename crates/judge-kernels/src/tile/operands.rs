//! What small products are made of: words, tiles and the blocks that bodies work on.

use crate::vector::pack_pairs;

/// Lanes of a block of registers. Every tile has a multiple of them.
pub const LANES: usize = 32;

/// A matrix of words, row by row.
#[derive(Clone, Copy)]
pub struct Words<'a> {
    /// The words from the first row on.
    pub data: &'a [u32],
    /// Words from one row to the next.
    pub stride: usize,
}

/// What one 32-bit word of rows and tiles holds. Both operands of a product hold the same.
///
/// ```text
/// Pair      bits 0–15: number 2w      bits 16–31: number 2w + 1      (bf16 each)
/// Single    bits 0–31: number w                                      (f32)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Two bf16 numbers, the first in the low half.
    Pair,
    /// One f32 number: of a model in f32, or one of a pair that was widened. Widening pays where
    /// the kernel multiplies f32, and does not change a bit there.
    Single,
}

impl Word {
    /// Words that a row of so many numbers takes.
    pub fn count(self, numbers: usize) -> usize {
        match self {
            Self::Pair => numbers.div_ceil(2),
            Self::Single => numbers,
        }
    }

    /// Writes a row into words, rounded to bf16 for pairs. An odd last number has a zero beside it.
    /// Words behind the row become zero; numbers that have no room are left out.
    pub fn pack(self, row: &[f32], words: &mut [u32]) {
        match self {
            Self::Pair => pack_pairs(row, words),
            Self::Single => {
                let (taken, rest) = words.split_at_mut(row.len().min(words.len()));
                taken.iter_mut().zip(row).for_each(|(word, x)| *word = x.to_bits());
                rest.fill(0);
            }
        }
    }
}

/// What becomes of what is in `out` when a product is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// It does not matter, and is written over.
    Nothing,
    /// Sums start at zero and are added to it at the end.
    Added,
    /// Sums go on from it, so that several calls for successive words give the bits of one call for all of them.
    Continued,
}

/// Where a body works: some rows of a product, [`LANES`] lanes wide. How many rows is the body's
/// choice.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    /// The first word of the first row.
    pub(crate) a: *const u32,
    /// Words from one row of `a` to the next.
    pub(crate) a_stride: usize,
    /// The first lane of the first row of the tile.
    pub(crate) b: *const u32,
    /// Words from one row of the tile to the next.
    pub(crate) b_stride: usize,
    /// The first lane of the first row of sums.
    pub(crate) out: *mut f32,
    /// Numbers from one row of sums to the next.
    pub(crate) out_stride: usize,
    /// Words to sum over, at least one.
    pub(crate) words: usize,
    /// What becomes of what is in `out`.
    pub(crate) before: Before,
}

/// The two bf16 numbers of a word as bits of f32: a bf16 is the upper half of an f32.
#[inline(always)]
pub(crate) fn halves(word: u32) -> [u32; 2] {
    [word << 16, word & 0xffff_0000]
}

/// The two bf16 numbers of a word as f32.
#[inline(always)]
pub(crate) fn widen(word: u32) -> [f32; 2] {
    halves(word).map(f32::from_bits)
}
