//! The loops of [`multiply_add`](super::multiply_add) over a [`Block`], written once for all registers.
//!
//! ```text
//! for some lanes of the block, `ACROSS` registers        sums of `ROWS` rows start at zero or in `out`
//!     for each word                                      b: `ACROSS` registers       a: a word of each row, in all lanes
//!         sums[row] += a[row] · b
//!     sums to `out`, once
//! ```
//!
//! Words are summed in their order, whatever the registers and the sizes of blocks are. Widening splits each word into its two f32
//! numbers, the first from the low half, and adds both products with fused multiply-adds in this order. So AVX-512, AVX2 and NEON give
//! the same bits, and the same as single numbers give for pairs that were widened before.

use super::operands::{Before, Block, LANES};
use crate::registers::Register;

/// What is done for a word: its products with some rows are added to their sums.
pub(crate) trait Body {
    /// The registers.
    type Of: Register;

    /// # Safety
    /// The processor must have the body's instructions; word `word` of all rows and registers must be inside the matrices.
    unsafe fn word<const ROWS: usize, const ACROSS: usize>(
        block: Block,
        word: usize,
        sums: &mut [[Floats<Self>; ACROSS]; ROWS],
    );
}

/// A register of sums.
pub(crate) type Floats<B> = <<B as Body>::Of as Register>::Floats;

/// `ROWS` rows of a block by all its lanes, `ACROSS` registers at a time. Returns the number of rows.
///
/// # Safety
/// The processor must have the body's instructions; `ROWS` rows of `block` must be inside its matrices, and those of `out` not aliased.
#[inline(always)]
pub(crate) unsafe fn rows<B: Body, const ROWS: usize, const ACROSS: usize>(block: Block) -> usize {
    const { assert!(LANES.is_multiple_of(ACROSS * B::Of::WIDTH)) }
    for lane in (0..LANES).step_by(ACROSS * B::Of::WIDTH) {
        // SAFETY: the caller's promise.
        unsafe {
            let part = Block { b: block.b.add(lane), out: block.out.add(lane), ..block };
            let out = |row: usize, register: usize| part.out.add(row * part.out_stride + register * B::Of::WIDTH);
            let mut sums = [[B::Of::splat_float(0.0); ACROSS]; ROWS];
            for (row, sums) in sums.iter_mut().enumerate().filter(|_| part.before == Before::Continued) {
                for (register, sum) in sums.iter_mut().enumerate() {
                    *sum = B::Of::load_floats(out(row, register));
                }
            }
            for word in 0..part.words {
                B::word(part, word, &mut sums);
            }
            for (row, sums) in sums.iter().enumerate() {
                for (register, &sum) in sums.iter().enumerate() {
                    let out = out(row, register);
                    let is_added = part.before == Before::Added;
                    B::Of::store_floats(out, if is_added { B::Of::add(B::Of::load_floats(out), sum) } else { sum });
                }
            }
        }
    }
    ROWS
}

/// Loads the registers of a word.
///
/// # Safety
/// The processor must have the instructions; the word must be inside the matrix.
#[inline(always)]
pub(crate) unsafe fn load<R: Register, const ACROSS: usize>(block: Block, word: usize) -> [R::Integers; ACROSS] {
    // SAFETY: the caller's promise.
    unsafe {
        let mut registers = [R::splat(0); ACROSS];
        for (register, loaded) in registers.iter_mut().enumerate() {
            *loaded = R::load(block.b.add(word * block.b_stride + register * R::WIDTH));
        }
        registers
    }
}

/// A word of a row in all lanes.
///
/// # Safety
/// The processor must have the instructions; the word must be inside the row.
#[inline(always)]
pub(crate) unsafe fn splat<R: Register>(block: Block, row: usize, word: usize) -> R::Integers {
    // SAFETY: the caller's promise.
    unsafe { R::splat(*block.a.add(row * block.a_stride + word)) }
}

/// Single numbers.
pub(crate) struct Singles<R>(R);

impl<R: Register> Body for Singles<R> {
    type Of = R;

    #[inline(always)]
    unsafe fn word<const ROWS: usize, const ACROSS: usize>(
        block: Block,
        word: usize,
        sums: &mut [[R::Floats; ACROSS]; ROWS],
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            let b = load::<R, ACROSS>(block, word);
            for (row, sums) in sums.iter_mut().enumerate() {
                let a = R::of_bits(splat::<R>(block, row, word));
                for (sum, b) in sums.iter_mut().zip(b) {
                    *sum = R::mul_add(a, R::of_bits(b), *sum);
                }
            }
        }
    }
}

/// Pairs, widened.
pub(crate) struct Widened<R>(R);

impl<R: Register> Body for Widened<R> {
    type Of = R;

    #[inline(always)]
    unsafe fn word<const ROWS: usize, const ACROSS: usize>(
        block: Block,
        word: usize,
        sums: &mut [[R::Floats; ACROSS]; ROWS],
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            let mut b = [[R::splat_float(0.0); 2]; ACROSS];
            for (b, pairs) in b.iter_mut().zip(load::<R, ACROSS>(block, word)) {
                *b = widen::<R>(pairs);
            }
            for (row, sums) in sums.iter_mut().enumerate() {
                let a = widen::<R>(splat::<R>(block, row, word));
                for (sum, b) in sums.iter_mut().zip(b) {
                    *sum = R::mul_add(a[1], b[1], R::mul_add(a[0], b[0], *sum));
                }
            }
        }
    }
}

/// The two numbers of each lane's pair.
///
/// # Safety
/// The processor must have the instructions.
#[inline(always)]
unsafe fn widen<R: Register>(pairs: R::Integers) -> [R::Floats; 2] {
    // SAFETY: the caller's promise.
    unsafe { [R::of_bits(R::left(pairs, 16)), R::of_bits(R::and(pairs, R::splat(0xffff_0000)))] }
}

/// An entry that enables instructions for blocks of a [`Body`]. Takes as many rows of those that are left as one of the listed blocks
/// has, the largest that there is, and returns how many; registers side by side are listed too.
macro_rules! entry {
    ($name:ident, $features:literal, $body:ty, $most:literal: $most_across:literal $(, $rows:literal: $across:literal)*) => {
        /// Multiplies as many rows of a block as it takes at a time, and returns how many.
        ///
        /// # Safety
        /// The processor must have the instructions. `rows_left` rows, at least one, of `block` must be inside its matrices, and those
        /// of `out` not aliased.
        #[target_feature(enable = $features)]
        pub(crate) unsafe fn $name(block: Block, rows_left: usize) -> usize {
            // SAFETY: the caller's promise covers every size taken.
            unsafe {
                match rows_left {
                    $most.. => rows::<$body, $most, $most_across>(block),
                    $($rows.. => rows::<$body, $rows, $across>(block),)*
                    0 => 0,
                }
            }
        }
    };
}

pub(crate) use entry;
