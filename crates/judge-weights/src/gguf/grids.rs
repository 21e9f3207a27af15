//! Types whose numbers are looked up in grids: IQ1, IQ2 and IQ3.
//!
//! A grid is a list of points with four or eight coordinates, each one of a few magnitudes. A block
//! names points by their index, and gives signs and scales beside them:
//!
//! ```text
//!  type      bytes of a block                            a point is    index                 sign
//!  IQ2_XXS   d, 8 x (4 bytes, u32 w)                     8 numbers     a byte                7 bits of w and their parity
//!  IQ2_XS    d, 32 x u16 q, 8 bytes s                    8             9 bits of q           7 bits of q and their parity
//!  IQ2_S     d, 32 bytes q, 32 bytes of signs, 8 h, 8 s  8             q, two bits of h      8 bits
//!  IQ3_XXS   d, 64 bytes q, 8 x u32 w                    4             q                     7 bits of w and their parity
//!  IQ3_S     d, 64 bytes q, 8 h, 32 of signs, 4 s        4             q, a bit of h         8 bits
//!  IQ1_S     d, 32 bytes q, 8 x u16 w                    8             q, 3 bits of w        none: w says whether 1/8 is
//!  IQ1_M     32 bytes q, 16 h, 4 x u16 s with d in it    8             q, 3 bits of h        added or taken off (h in IQ1_M)
//! ```
//!
//! The grids are those of `ggml-common.h` of llama.cpp (MIT licence), as its package gguf 0.19.0 packs them;
//! `scripts/parity/make_gguf_block_fixtures.py` writes them into `grids.bin`: two bits for each number, or
//! four where there are eight magnitudes, the lowest bits first.
//!
//! Codes are four bits, so that these weights take no more memory than those of Q4_0: which of the
//! magnitudes, and in the highest bit the sign (or the way of IQ1's shift).

use super::bits::{half, nibble};
use super::kind::Kind;

/// All grids, one behind another.
static GRIDS: &[u8; 9216] = include_bytes!("grids.bin");

/// The highest bit of a code.
const SIGN: u8 = 8;

/// What codes of IQ2 stand for.
pub(crate) const TWO_BITS: [f32; 16] =
    [8.0, 25.0, 43.0, 0.0, 0.0, 0.0, 0.0, 0.0, -8.0, -25.0, -43.0, 0.0, 0.0, 0.0, 0.0, 0.0];

/// What codes of IQ3_XXS stand for.
pub(crate) const THREE_BITS_XXS: [f32; 16] =
    [4.0, 12.0, 20.0, 28.0, 36.0, 44.0, 52.0, 62.0, -4.0, -12.0, -20.0, -28.0, -36.0, -44.0, -52.0, -62.0];

/// What codes of IQ3_S stand for.
pub(crate) const THREE_BITS: [f32; 16] =
    [1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0, -1.0, -3.0, -5.0, -7.0, -9.0, -11.0, -13.0, -15.0];

/// What codes of IQ1 stand for: −1, 0 or 1, and 1/8 added or taken off.
pub(crate) const SHIFTED: [f32; 16] =
    [-0.875, 0.125, 1.125, 0.0, 0.0, 0.0, 0.0, 0.0, -1.125, -0.125, 0.875, 0.0, 0.0, 0.0, 0.0, 0.0];

/// A grid, as a part of [`GRIDS`].
struct Grid {
    /// Where its bytes begin.
    start: usize,
    /// Bits of a number.
    bits: usize,
    /// Numbers of a point.
    size: usize,
}

impl Grid {
    /// The grid of a type.
    const fn of(kind: Kind) -> Self {
        let (start, bits, size) = match kind {
            Kind::IQ2_XXS => (0, 2, 8),
            Kind::IQ2_XS => (512, 2, 8),
            Kind::IQ2_S => (1536, 2, 8),
            Kind::IQ3_XXS => (3584, 4, 4),
            Kind::IQ3_S => (4096, 4, 4),
            _ => (5120, 2, 8),
        };
        Self { start, bits, size }
    }

    /// Writes the numbers of a point, with [`SIGN`] where the bit of the same place in `signs` is set.
    fn point(&self, index: usize, signs: u8, codes: &mut [u8]) {
        let in_a_byte = 8 / self.bits;
        for (place, code) in codes.iter_mut().enumerate() {
            let number = index * self.size + place;
            let magnitude = GRIDS[self.start + number / in_a_byte] >> (self.bits * (number % in_a_byte));
            let sign = if signs >> place & 1 == 1 { SIGN } else { 0 };
            *code = magnitude & ((1 << self.bits) - 1) | sign;
        }
    }
}

/// Eight signs from seven bits: the eighth makes their number even.
fn with_parity(bits: u32) -> u8 {
    let seven = (bits & 127) as u8;
    seven | (seven.count_ones() as u8 & 1) << 7
}

/// As `take_apart` of `blocks.rs`, for the types of this file alone.
pub(crate) fn take_apart(kind: Kind, block: &[u8], codes: &mut [u8], scales: &mut [f32]) {
    let grid = Grid::of(kind);
    let scale = half(block, 0);
    let word = |at: usize| u16::from_le_bytes([block[at], block[at + 1]]);
    let wide = |at: usize| u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]);
    let points = codes.chunks_exact_mut(grid.size).enumerate();
    match kind {
        Kind::IQ2_XXS => {
            for (part, scale_of) in scales.iter_mut().enumerate() {
                *scale_of = scale * (0.5 + (wide(2 + 8 * part + 4) >> 28) as f32) * 0.25;
            }
            for (number, codes) in points {
                let (part, place) = (2 + 8 * (number / 4), number % 4);
                let signs = with_parity(wide(part + 4) >> (7 * place));
                grid.point(block[part + place].into(), signs, codes);
            }
        }
        Kind::IQ2_XS | Kind::IQ2_S => {
            let parts = &block[block.len() - 8..];
            for (part, scale_of) in scales.iter_mut().enumerate() {
                *scale_of = scale * (0.5 + f32::from(nibble(parts, part))) * 0.25;
            }
            for (number, codes) in points {
                if kind == Kind::IQ2_XS {
                    let word = word(2 + 2 * number);
                    grid.point((word & 511).into(), with_parity((word >> 9).into()), codes);
                } else {
                    let high = block[66 + number / 4] >> (2 * (number % 4)) & 3;
                    grid.point(usize::from(block[2 + number]) | usize::from(high) << 8, block[34 + number], codes);
                }
            }
        }
        Kind::IQ3_XXS => {
            for (part, scale_of) in scales.iter_mut().enumerate() {
                *scale_of = scale * (0.5 + (wide(66 + 4 * part) >> 28) as f32) * 0.5;
            }
            for (number, codes) in points {
                let (part, place) = (number / 8, number % 8);
                let signs = with_parity(wide(66 + 4 * part) >> (7 * (place / 2)));
                grid.point(block[2 + number].into(), signs >> (4 * (place % 2)), codes);
            }
        }
        Kind::IQ3_S => {
            for (part, scale_of) in scales.iter_mut().enumerate() {
                *scale_of = scale * (1.0 + 2.0 * f32::from(nibble(&block[106..], part)));
            }
            for (number, codes) in points {
                let high = block[66 + number / 8] >> (number % 8) & 1;
                let signs = block[74 + number / 2] >> (4 * (number % 2));
                grid.point(usize::from(block[2 + number]) | usize::from(high) << 8, signs, codes);
            }
        }
        Kind::IQ1_S => {
            for (part, scale_of) in scales.iter_mut().enumerate() {
                *scale_of = scale * (2.0 * f32::from(word(34 + 2 * part) >> 12 & 7) + 1.0);
            }
            for (number, codes) in points {
                let word = word(34 + 2 * (number / 4));
                let high = word >> (3 * (number % 4)) & 7;
                let shift = if word >> 15 == 1 { 255 } else { 0 };
                grid.point(usize::from(block[number + 2]) | usize::from(high) << 8, shift, codes);
            }
        }
        _ => {
            // The scale's 16 bits are the highest four of each word.
            let bits = (0..4).fold(0, |bits, number| bits | (word(48 + 2 * number) >> 12) << (4 * number));
            let scale = half::f16::from_bits(bits).to_f32();
            for (part, scale_of) in scales.iter_mut().enumerate() {
                *scale_of = scale * (2.0 * f32::from(word(48 + 2 * (part / 4)) >> (3 * (part % 4)) & 7) + 1.0);
            }
            for (number, codes) in points {
                let high = nibble(&block[32..48], number);
                let shift = if high >> 3 == 1 { 255 } else { 0 };
                grid.point(usize::from(block[number]) | usize::from(high & 7) << 8, shift, codes);
            }
        }
    }
}
