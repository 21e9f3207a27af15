//! The bodies of [`multiply_add`](super::multiply_add) with NEON.
//!
//! As in `x86.rs`, each entry takes a [`Block`] and the number of rows that are left, and returns how many it took.
//!
//! ```text
//! body             largest block   registers        sums   b    a
//! neon             6 × 16          32 of 128 bits   24     4    1
//! neon_bf16        6 × 16          32 of 128 bits   24     4    1
//! neon_widening    4 × 16          32 of 128 bits   16     8    2
//! ```
//!
//! A row alone takes all 32 lanes at a time, so that there are enough sums which do not wait for one another.
//!
//! Products of single numbers are fused multiply-adds, and pairs are widened and added in their order, so the bits are those of AVX2
//! and AVX-512. `BFDOT` rounds in a way of its own.

use std::arch::aarch64::{
    float32x4_t, uint32x4_t, vaddq_f32, vandq_u32, vdupq_n_f32, vdupq_n_u32, vfmaq_n_f32, vld1q_f32, vld1q_u32,
    vreinterpretq_f32_u32, vshlq_n_u32, vst1q_f32,
};
use std::arch::asm;

use super::operands::{Before, Block, LANES, widen};

/// Lanes of a register.
const WIDTH: usize = 4;

/// What a body does for a word: adds its products with some rows to their sums.
trait Body {
    /// # Safety
    /// The processor must have the body's instructions; word `word` of all rows and registers must be inside the matrices.
    unsafe fn word<const ROWS: usize, const ACROSS: usize>(
        block: Block,
        word: usize,
        sums: &mut [[float32x4_t; ACROSS]; ROWS],
    );
}

/// `ROWS` rows of a block by all its lanes, `ACROSS` registers at a time.
///
/// # Safety
/// The processor must have the body's instructions; `ROWS` rows of `block` must be inside its matrices, and those of `out` not aliased.
#[inline(always)]
unsafe fn rows<B: Body, const ROWS: usize, const ACROSS: usize>(block: Block) -> usize {
    for lane in (0..LANES).step_by(ACROSS * WIDTH) {
        // SAFETY: the caller's promise.
        unsafe {
            let part = Block { b: block.b.add(lane), out: block.out.add(lane), ..block };
            let out = |row: usize, register: usize| part.out.add(row * part.out_stride + register * WIDTH);
            let mut sums = [[vdupq_n_f32(0.0); ACROSS]; ROWS];
            for (row, sums) in sums.iter_mut().enumerate().filter(|_| part.before == Before::Continued) {
                sums.iter_mut().enumerate().for_each(|(register, sum)| *sum = vld1q_f32(out(row, register)));
            }
            for word in 0..part.words {
                B::word(part, word, &mut sums);
            }
            for (row, sums) in sums.iter().enumerate() {
                for (register, &sum) in sums.iter().enumerate() {
                    let out = out(row, register);
                    let is_added = part.before == Before::Added;
                    vst1q_f32(out, if is_added { vaddq_f32(vld1q_f32(out), sum) } else { sum });
                }
            }
        }
    }
    ROWS
}

/// Loads the registers of a word.
///
/// # Safety
/// The word must be inside the matrix.
#[inline(always)]
unsafe fn load<const ACROSS: usize>(block: Block, word: usize) -> [uint32x4_t; ACROSS] {
    // SAFETY: the caller's promise; every processor of this architecture has NEON.
    std::array::from_fn(|register| unsafe { vld1q_u32(block.b.add(word * block.b_stride + register * WIDTH)) })
}

/// Single numbers.
struct Singles;

impl Body for Singles {
    #[inline(always)]
    unsafe fn word<const ROWS: usize, const ACROSS: usize>(
        block: Block,
        word: usize,
        sums: &mut [[float32x4_t; ACROSS]; ROWS],
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            let b = load::<ACROSS>(block, word).map(|b| vreinterpretq_f32_u32(b));
            for (row, sums) in sums.iter_mut().enumerate() {
                let a = f32::from_bits(*block.a.add(row * block.a_stride + word));
                sums.iter_mut().zip(b).for_each(|(sum, b)| *sum = vfmaq_n_f32(*sum, b, a));
            }
        }
    }
}

/// Pairs, widened.
struct Widened;

impl Body for Widened {
    #[inline(always)]
    unsafe fn word<const ROWS: usize, const ACROSS: usize>(
        block: Block,
        word: usize,
        sums: &mut [[float32x4_t; ACROSS]; ROWS],
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            let high = vdupq_n_u32(0xffff_0000);
            let words = load::<ACROSS>(block, word);
            let first = words.map(|words| vreinterpretq_f32_u32(vshlq_n_u32::<16>(words)));
            let second = words.map(|words| vreinterpretq_f32_u32(vandq_u32(words, high)));
            for (row, sums) in sums.iter_mut().enumerate() {
                let [a0, a1] = widen(*block.a.add(row * block.a_stride + word));
                for (register, sum) in sums.iter_mut().enumerate() {
                    *sum = vfmaq_n_f32(vfmaq_n_f32(*sum, first[register], a0), second[register], a1);
                }
            }
        }
    }
}

/// Pairs.
struct Pairs;

impl Body for Pairs {
    #[inline(always)]
    unsafe fn word<const ROWS: usize, const ACROSS: usize>(
        block: Block,
        word: usize,
        sums: &mut [[float32x4_t; ACROSS]; ROWS],
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            let b = load::<ACROSS>(block, word);
            for (row, sums) in sums.iter_mut().enumerate() {
                let a = vdupq_n_u32(*block.a.add(row * block.a_stride + word));
                sums.iter_mut().zip(b).for_each(|(sum, b)| *sum = bfdot(*sum, b, a));
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

/// Rows of single numbers. Takes 6, 4, 2 or 1 of the `rows` rows that are left and returns how many.
///
/// # Safety
/// `rows` rows, at least one, of `block` must be inside its matrices, and those of `out` not aliased.
#[target_feature(enable = "neon")]
pub(super) unsafe fn neon(block: Block, rows: usize) -> usize {
    // SAFETY: the caller's promise covers every size taken.
    unsafe { six_rows_at_most::<Singles>(block, rows) }
}

/// Likewise of pairs, with products of bf16.
///
/// # Safety
/// The same; and the processor must have products of bf16.
#[target_feature(enable = "neon,bf16")]
pub(super) unsafe fn neon_bf16(block: Block, rows: usize) -> usize {
    // SAFETY: the caller's promise covers every size taken.
    unsafe { six_rows_at_most::<Pairs>(block, rows) }
}

/// Rows of pairs, widened to f32 on the way. Takes 4, 2 or 1 of the `rows` rows that are left and returns how many.
///
/// # Safety
/// `rows` rows, at least one, of `block` must be inside its matrices, and those of `out` not aliased.
#[target_feature(enable = "neon")]
pub(super) unsafe fn neon_widening(block: Block, rows_left: usize) -> usize {
    // SAFETY: the caller's promise covers every size taken.
    unsafe {
        match rows_left {
            4.. => rows::<Widened, 4, 4>(block),
            2..4 => rows::<Widened, 2, 4>(block),
            _ => rows::<Widened, 1, 8>(block),
        }
    }
}

/// 6, 4, 2 or 1 rows.
///
/// # Safety
/// As for [`rows`], for as many rows as are left.
#[inline(always)]
unsafe fn six_rows_at_most<B: Body>(block: Block, rows_left: usize) -> usize {
    // SAFETY: the caller's promise covers every size taken.
    unsafe {
        match rows_left {
            6.. => rows::<B, 6, 4>(block),
            4..6 => rows::<B, 4, 4>(block),
            2..4 => rows::<B, 2, 4>(block),
            _ => rows::<B, 1, 8>(block),
        }
    }
}
