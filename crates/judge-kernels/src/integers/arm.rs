//! Integer products with NEON's dot products, `SDOT`, whose bytes both have signs.

use std::arch::aarch64::uint32x4_t;
use std::arch::asm;

use super::body::{Dots, bytes, entry, halves};
use super::matrix::{Matrix, Multiplier};
use crate::kernel::Kernel;
use crate::piece::{CodesOfPanel, Sums};
use crate::registers::Neon;
use crate::supported::Supported;

/// The proof that products are to be made in integers, and that this processor has the instructions.
#[derive(Clone, Copy)]
pub(crate) struct HasIntegers(());

impl HasIntegers {
    /// The proof, if `kernel` is one that multiplies integers.
    pub(crate) fn of(kernel: Supported) -> Option<Self> {
        (kernel.kernel() == Kernel::NeonInt8).then_some(Self(()))
    }

    /// All bodies that stand for this one.
    #[cfg(test)]
    pub(crate) fn and_what_others_use(self) -> impl Iterator<Item = Self> {
        [self].into_iter()
    }
}

impl Multiplier for HasIntegers {
    type Held = Self;

    const STRIP: usize = 1;

    fn hold(self) -> Self {
        self
    }

    fn rows_at_once(self) -> usize {
        MOST
    }

    fn flip(self, _: usize) -> u8 {
        0
    }

    fn multiply(held: &Self, matrix: &Matrix<'_>, panel: CodesOfPanel<'_>, rows: &[u32], sums: &mut [Sums]) {
        matrix.check(panel, rows, sums);
        assert!(sums.len() <= held.rows_at_once());
        // SAFETY: the processor has the instructions; rows and panel have all that there must be.
        unsafe {
            match matrix.codes.bits {
                8 => bytes_of_rows(matrix, panel, rows, sums),
                _ => halves_of_rows(matrix, panel, rows, sums),
            }
        }
    }
}

/// Rows whose sums stay in registers, four of each: 24 of 32.
const MOST: usize = 6;

entry!(bytes_of_rows, "neon,dotprod", bytes::<DotProd, 4>, MOST, 1 2 3 4 5);
entry!(halves_of_rows, "neon,dotprod", halves::<DotProd, 4>, MOST, 1 2 3 4 5);

/// Products by `SDOT`.
struct DotProd;

impl Dots for DotProd {
    type Of = Neon;

    const TURNED_OVER: bool = false;

    #[inline(always)]
    unsafe fn dot(sum: uint32x4_t, row: uint32x4_t, codes: uint32x4_t) -> uint32x4_t {
        // SAFETY: the caller's promise.
        unsafe { sdot(sum, row, codes) }
    }

    #[inline(always)]
    unsafe fn dot_halves(sum: uint32x4_t, codes: [uint32x4_t; 2], row: [uint32x4_t; 2]) -> uint32x4_t {
        // SAFETY: the caller's promise.
        unsafe { sdot(sdot(sum, codes[0], row[0]), codes[1], row[1]) }
    }
}

/// `sum + Σ a · b` of each lane's four bytes, which have signs. The standard library has no stable function for it.
///
/// # Safety
/// The processor must have NEON with dot products.
#[inline]
#[target_feature(enable = "neon,dotprod")]
unsafe fn sdot(mut sum: uint32x4_t, a: uint32x4_t, b: uint32x4_t) -> uint32x4_t {
    // SAFETY: the instruction reads and writes registers alone.
    unsafe {
        asm!(
            "sdot {sum:v}.4s, {a:v}.16b, {b:v}.16b",
            sum = inout(vreg) sum, a = in(vreg) a, b = in(vreg) b, options(pure, nomem, nostack, preserves_flags),
        );
    }
    sum
}
