//! Entries to the loops of `body.rs` with NEON; see `x86.rs`.
//!
//! ```text
//! body             largest block   registers        sums   b    a
//! neon             6 × 16          32 of 128 bits   24     4    1
//! neon_bf16        6 × 16          32 of 128 bits   24     4    1
//! neon_widening    4 × 16          32 of 128 bits   16     8    2
//! ```
//!
//! `BFDOT` rounds in a way of its own.

use std::arch::aarch64::{float32x4_t, uint32x4_t};
use std::arch::asm;

use super::body::{Body, Singles, Widened, entry, load, rows, splat};
use super::operands::Block;
use crate::registers::Neon;

/// Pairs with `BFDOT`.
struct Pairs;

impl Body for Pairs {
    type Of = Neon;

    #[inline(always)]
    unsafe fn word<const ROWS: usize, const ACROSS: usize>(
        block: Block,
        word: usize,
        sums: &mut [[float32x4_t; ACROSS]; ROWS],
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            let b = load::<Neon, ACROSS>(block, word);
            for (row, sums) in sums.iter_mut().enumerate() {
                let a = splat::<Neon>(block, row, word);
                for (sum, b) in sums.iter_mut().zip(b) {
                    *sum = bfdot(*sum, b, a);
                }
            }
        }
    }
}

/// `sum + Σ a · b` of each lane's two bf16 numbers. The standard library has no stable function for it.
///
/// # Safety
/// The processor must have products of bf16.
#[inline]
#[target_feature(enable = "neon,bf16")]
unsafe fn bfdot(mut sum: float32x4_t, a: uint32x4_t, b: uint32x4_t) -> float32x4_t {
    // SAFETY: the instruction reads and writes registers alone.
    unsafe {
        asm!(
            "bfdot {sum:v}.4s, {a:v}.8h, {b:v}.8h",
            sum = inout(vreg) sum, a = in(vreg) a, b = in(vreg) b, options(pure, nomem, nostack, preserves_flags),
        );
    }
    sum
}

entry!(neon, "neon", Singles<Neon>, 6: 4, 4: 4, 2: 4, 1: 8);
entry!(neon_bf16, "neon,bf16", Pairs, 6: 4, 4: 4, 2: 4, 1: 8);
entry!(neon_widening, "neon", Widened<Neon>, 4: 4, 2: 4, 1: 8);
