//! Numbers and matrices that products are tested on. Compiled for tests alone.

use crate::codes::{CodedMemory, Coding};
use crate::pack::PackedLinear;
use crate::section::Section;
use crate::supported::Supported;
use crate::tile::Word;

/// Number `i` of a seed, in [-1, 1).
pub(crate) fn number(seed: u64, i: usize) -> f32 {
    let mixed = (seed ^ i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 40) as f32 / (1 << 23) as f32 - 1.0
}

/// A matrix for rows of codes: how many of each coding, which all have one width.
pub(crate) fn of_codes(kernel: Supported, word: Word, parts: &[(usize, &Coding)]) -> PackedLinear {
    let sections = parts.iter().map(|&(rows, coding)| (rows, Some(coding.clone()))).collect();
    PackedLinear::of(kernel, word, parts[0].1.width, sections, |shape| Ok::<_, ()>(Section::zeros(shape))).unwrap()
}

/// Fills `d_out` rows of a matrix, from `first` on, with codes and numbers that look random, always the same for a
/// seed.
pub(crate) fn fill(matrix: &mut PackedLinear, first: usize, coding: &Coding, d_out: usize, seed: usize) {
    let mut memory = CodedMemory::new(coding, d_out);
    let rows = memory.rows(coding, d_out);
    let number = |i: usize| ((seed + i) * 7919 % 1009) as f32 / 1009.0 - 0.5;
    rows.codes.iter_mut().enumerate().for_each(|(i, code)| *code = ((seed + i) * 31 % (1 << coding.bits)) as u8);
    rows.scales.iter_mut().enumerate().for_each(|(i, x)| *x = number(i));
    if coding.has_minima {
        rows.minima.iter_mut().enumerate().for_each(|(i, x)| *x = number(i + 50));
    }
    matrix.fill_codes(first, &rows);
}

/// `count` numbers in [-2, 2), always the same for a seed.
pub(crate) fn numbers(seed: u64, count: usize) -> Vec<f32> {
    (0..count as u64)
        .map(|i| {
            let mixed = (seed ^ i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xd134_2543_de82_ef95);
            ((mixed >> 40) as f32 / (1 << 23) as f32 - 1.0) * 2.0
        })
        .collect()
}
