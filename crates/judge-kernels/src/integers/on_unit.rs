//! Integer products on the matrix unit: tiles of rounded rows by tiles of codes of eight bits.
//!
//! The instructions are `unit.rs`'s; sums of a group come from it exactly, and are scaled and added here, as `body.rs` does.

use std::arch::x86_64::{
    _mm512_add_ps, _mm512_cvtepi32_ps, _mm512_loadu_ps, _mm512_loadu_si512, _mm512_mul_ps, _mm512_set1_ps,
    _mm512_storeu_ps,
};

use super::matrix::{LINE, Matrix, Multiplier, PLACES};
use crate::piece::{CodesOfPanel, Lanes, Sums};
use crate::tile::{LANES, Words};
use crate::unit::{self, ByteUnit, HasByteUnit};

/// Lanes of a register.
const HALF: usize = LANES / 2;

/// The unit, for a matrix and a number of rows that it multiplies.
#[derive(Clone, Copy)]
pub(crate) struct OnUnit(HasByteUnit);

impl OnUnit {
    /// The unit, if there is a whole strip of rows and groups are whole tiles, all of them.
    pub(crate) fn of(unit: HasByteUnit, matrix: &Matrix<'_>, rows: usize) -> Option<Self> {
        let are_tiles = [matrix.group, matrix.d_in].iter().all(|columns| columns.is_multiple_of(PLACES * LINE));
        (rows >= unit::ROWS && matrix.codes.bits == 8 && are_tiles).then_some(Self(unit))
    }
}

impl Multiplier for OnUnit {
    type Held = ByteUnit;

    /// The unit takes whole strips.
    const STRIP: usize = unit::ROWS;

    fn hold(self) -> ByteUnit {
        self.0.hold()
    }

    /// Before the columns of the next step: their sums, 16 KiB, and a panel's columns of one step, at most 8 KiB, stay in the
    /// nearest cache.
    fn rows_at_once(self) -> usize {
        4 * 2 * unit::ROWS
    }

    fn flip(self, _: usize) -> u8 {
        0
    }

    fn multiply(held: &ByteUnit, matrix: &Matrix<'_>, panel: CodesOfPanel<'_>, rows: &[u32], sums: &mut [Sums]) {
        matrix.check(panel, rows, sums);
        let stride = matrix.stride();
        let mut exact = unit::ByteSums::ZERO;
        for group in 0..matrix.groups() {
            let words = matrix.words_of(group);
            let codes = &panel.codes[words.clone()];
            let scales = &panel.scales[group / matrix.groups_of_a_scale];
            for (pair, sums) in sums.chunks_mut(2 * unit::ROWS).enumerate() {
                let rows = &rows[pair * 2 * unit::ROWS * stride..];
                let strip = |strip: usize| Words { data: &rows[strip * unit::ROWS * stride + words.start..], stride };
                let second = (sums.len() > unit::ROWS).then(|| strip(1));
                held.multiply((strip(0), second), codes, &mut exact);
                let steps = Words { data: &rows[matrix.words() + group..], stride };
                // SAFETY: where there is a unit there is AVX-512, and every row has its steps, as `check` says.
                unsafe { add(&exact, scales, steps, sums) };
            }
        }
    }
}

/// Adds exact sums, each times its lane's scale and its row's step, the first word of each row of `steps`.
///
/// # Safety
/// The processor must have AVX-512. `steps` must have as many rows as `sums`, at most as many as `exact`.
#[target_feature(enable = "avx512f")]
unsafe fn add(exact: &unit::ByteSums, scales: &Lanes, steps: Words<'_>, sums: &mut [Sums]) {
    // SAFETY: the caller's promise; a row of each is two registers.
    unsafe {
        let scales = [0, HALF].map(|half| _mm512_loadu_ps(scales.as_ptr().add(half).cast()));
        for (row, (sums, exact)) in sums.iter_mut().zip(&exact.0).enumerate() {
            let step = _mm512_set1_ps(f32::from_bits(*steps.data.get_unchecked(row * steps.stride)));
            for (half, &scale) in scales.iter().enumerate() {
                let exact = _mm512_cvtepi32_ps(_mm512_loadu_si512(exact.as_ptr().add(half * HALF).cast()));
                let sum = sums.as_mut_ptr().add(half * HALF);
                let product = _mm512_mul_ps(exact, _mm512_mul_ps(scale, step));
                _mm512_storeu_ps(sum, _mm512_add_ps(_mm512_loadu_ps(sum), product));
            }
        }
    }
}
