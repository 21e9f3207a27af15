//! Expanding codes with NEON: entries to the loops of `body.rs`.
//!
//! What is written is rounded by additions of integers. Few rows are multiplied as they are made by `neon`, and in f32; products of
//! pairs (`neon-bf16`) are of pairs in memory.

use std::arch::aarch64::float32x4_t;

use super::body::{
    MultiplyNumbers, Out, RowBlock, Take, WriteNumbers, check_multiply, check_write, expand, multiply_entry,
    write_entry,
};
use crate::kernel::Kernel;
use crate::piece::{Lanes, Piece, Sums, Written};
use crate::registers::{Neon, Register};
use crate::supported::Supported;
use crate::tile::{Word, Words};

/// The proof that the kernel is one of NEON, whose instructions every processor of this architecture has.
#[derive(Clone, Copy)]
pub(crate) struct HasThem(());

impl HasThem {
    /// The proof. Tables are looked up in the order of the bytes of a word, the lowest first.
    pub(crate) fn of(kernel: Supported, _: Word) -> Option<Self> {
        let is_neon = matches!(kernel.of_floats(), Kernel::Neon | Kernel::NeonBf16);
        (is_neon && cfg!(target_endian = "little")).then_some(Self(()))
    }

    /// Expands so many words of codes to what the piece says, and writes that to `out`: always `true`.
    ///
    /// # Panics
    /// If the coding does not suit, there are fewer words, or `out` has no room for what they make.
    pub(crate) fn write(self, piece: &Piece<'_>, words: usize, out: &mut [Lanes]) -> bool {
        check_write(piece, words, out);
        let out = out.as_mut_ptr();
        // SAFETY: words are there and have room, by the check.
        unsafe {
            match piece.written {
                Written::Pairs => write_pairs(piece, words, out),
                Written::Rounded => write_rounded(piece, words, out),
                Written::Exact => write_exact(piece, words, out),
            }
        }
        true
    }

    /// Goes on with the products of rows of numbers, as many as `sums` has, with what so many words of codes stand for, without
    /// putting that into memory. What is rounded must be [moderate](super::moderate). `false`, and nothing happens, where products are
    /// of pairs or there is no entry for so many rows. The bits are those of products of what [`write`](Self::write) writes, but that
    /// a sum which is zero may have the other sign.
    ///
    /// # Panics
    /// If the coding does not suit, or there are fewer words.
    pub(crate) fn multiply(self, piece: &Piece<'_>, words: usize, a: Words<'_>, sums: &mut [Sums]) -> bool {
        check_multiply(piece, words, a, sums);
        // SAFETY: rows and words are there, by the check.
        unsafe {
            match piece.written {
                Written::Pairs => false,
                Written::Rounded => multiply_rounded(piece, words, a, sums),
                Written::Exact => multiply_exact(piece, words, a, sums),
            }
        }
    }
}

write_entry!(write_pairs, "neon", Neon, 4, WritePairs::new);
write_entry!(write_rounded, "neon", Neon, 4, WriteNumbers::<true>::new);
write_entry!(write_exact, "neon", Neon, 4, WriteNumbers::<false>::new);
multiply_entry!(multiply_rounded, "neon", Neon, MultiplyNumbers::<_, true, _, _>, 1: 4, 2: 4, 3: 4, 4: 4);
multiply_entry!(multiply_exact, "neon", Neon, MultiplyNumbers::<_, false, _, _>, 1: 4, 2: 4, 3: 4, 4: 4);

/// Writes pairs of bf16, `[pairs][LANES]`.
struct WritePairs(Out);

impl WritePairs {
    /// Writes to `out`.
    fn new(out: *mut Lanes) -> Self {
        Self(Out::new(out))
    }
}

impl<const ACROSS: usize> Take<Neon, ACROSS> for WritePairs {
    #[inline(always)]
    unsafe fn start(&mut self, lane: usize) {
        self.0.start(lane);
    }

    #[inline(always)]
    unsafe fn take(&mut self, pair: usize, both: [[float32x4_t; 2]; ACROSS]) {
        for (register, [first, second]) in both.into_iter().enumerate() {
            // SAFETY: the row is there, by the caller's promise.
            unsafe {
                let [first, second] = [Neon::bf16_bits(first), Neon::bf16_bits(second)];
                self.0.put::<Neon>(pair, register, Neon::or(Neon::right(first, 16), second));
            }
        }
    }
}
