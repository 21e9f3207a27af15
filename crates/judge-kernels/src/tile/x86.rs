//! Entries to the loops of `body.rs` with instructions of x86-64.
//!
//! Each takes a [`Block`] and the number of rows that are left, and works on as many rows as its largest block of registers holds, or on
//! a smaller block. It returns how many it took, and the caller loops.
//!
//! ```text
//! registers of avx512_bf16 with 12 rows      per word:  2 loads of b, 12 broadcasts of a, 24 products
//!   sums   12 rows × 2 × 16 lanes    24
//!   b      2 × 16 lanes               2      sums start at zero or in `out`, and are put there once
//!   a      1 word, broadcast          1
//!                                    27 of 32
//!
//! body                 largest block   registers        sums   b    a   mask
//! avx512_bf16          12 × 32         32 of 512 bits   24     2    1
//! avx512               12 × 32         32 of 512 bits   24     2    1
//! avx512_widening       8 × 32         32 of 512 bits   16     4    2   1
//! avx2                  6 × 16         16 of 256 bits   12     2    1
//! avx2_widening         4 × 16         16 of 256 bits    8     4    2   1
//! ```
//!
//! A row alone takes all 32 lanes at a time with AVX2 too: so lines are read in their order, and there are enough sums which do not
//! wait for one another.
//!
//! To add a body: write it as a [`Body`], name it in `multiply_add`, and let the kernel's detection in `supported.rs` cover its
//! instructions. The tests of `tile.rs` compare it with sums in f64, and rows alone with rows together.

use std::arch::x86_64::{__m512, __m512bh, __m512i, _mm512_dpbf16_ps};
use std::mem::transmute;

use super::body::{Body, Singles, Widened, entry, load, rows, splat};
use super::operands::Block;
use crate::registers::{Avx2, Avx512};

/// Pairs with `VDPBF16PS`, which multiplies and sums pairs of bf16.
struct Pairs;

impl Body for Pairs {
    type Of = Avx512;

    #[inline(always)]
    unsafe fn word<const ROWS: usize, const ACROSS: usize>(
        block: Block,
        word: usize,
        sums: &mut [[__m512; ACROSS]; ROWS],
    ) {
        // SAFETY: the caller's promise; the bits are those of pairs.
        unsafe {
            let b = load::<Avx512, ACROSS>(block, word);
            for (row, sums) in sums.iter_mut().enumerate() {
                let a: __m512bh = transmute(splat::<Avx512>(block, row, word));
                for (sum, b) in sums.iter_mut().zip(b) {
                    *sum = _mm512_dpbf16_ps(*sum, a, transmute::<__m512i, __m512bh>(b));
                }
            }
        }
    }
}

entry!(avx512_bf16, "avx512f,avx512bf16", Pairs, 12: 2, 8: 2, 4: 2, 2: 2, 1: 2);
entry!(avx512_widening, "avx512f", Widened<Avx512>, 8: 2, 4: 2, 2: 2, 1: 2);
entry!(avx512, "avx512f", Singles<Avx512>, 12: 2, 8: 2, 4: 2, 2: 2, 1: 2);
entry!(avx2, "avx2,fma", Singles<Avx2>, 6: 2, 4: 2, 2: 2, 1: 4);
entry!(avx2_widening, "avx2,fma", Widened<Avx2>, 4: 2, 2: 2, 1: 4);
