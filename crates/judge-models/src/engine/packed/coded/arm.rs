//! Expanding codes with NEON: entries to the loops of `body.rs`.
//!
//! Numbers are rounded by additions of integers. Few rows are multiplied as they are made by `neon`, and in f32; products of pairs
//! (`neon-bf16`) are of pairs in memory.

use super::body::{MultiplyNumbers, RowBlock, WriteNumbers, WritePairs, expand, multiply, suits, write};
use crate::engine::packed::kernel::Kernel;
use crate::engine::packed::piece::{Lanes, Piece, Sums, Written, per_word};
use crate::engine::packed::registers::Neon;
use crate::engine::packed::supported::Supported;
use crate::engine::packed::tile::{Word, Words};

/// The proof that the kernel is one of NEON, whose instructions every processor of this architecture has.
#[derive(Clone, Copy)]
pub(super) struct HasThem(());

impl HasThem {
    /// The proof. Tables are looked up in the order of the bytes of a word, the lowest first.
    pub(super) fn of(kernel: Supported, _: Word) -> Option<Self> {
        let is_neon = matches!(kernel.of_floats(), Kernel::Neon | Kernel::NeonBf16);
        (is_neon && cfg!(target_endian = "little")).then_some(Self(()))
    }

    /// Expands so many words of codes to what the piece says, and writes that to `out`.
    ///
    /// # Panics
    /// If the coding does not suit, there are fewer words, or `out` has no room for them.
    pub(super) fn write(self, piece: &Piece<'_>, words: usize, out: &mut [Lanes]) {
        assert!(suits(piece.coding) && words <= piece.codes.len());
        assert!(out.len() >= piece.written.rows(words * per_word(piece.coding)));
        let out = out.as_mut_ptr();
        // SAFETY: words are there and have room, by the assertions above.
        unsafe {
            match piece.written {
                Written::Pairs => pairs(piece, words, out),
                Written::Rounded => rounded(piece, words, out),
                Written::Exact => exact(piece, words, out),
            }
        }
    }

    /// Goes on with the products of rows of numbers, as many as `sums` has, with what so many words of codes stand for, without putting
    /// that into memory. What is rounded must be [moderate](super::moderate). `false`, and nothing happens, where products are of pairs or there are too many rows for an entry. The bits are
    /// those of products of what [`write`](Self::write) writes.
    ///
    /// # Panics
    /// If the coding does not suit, or there are too few words.
    pub(super) fn multiply(self, piece: &Piece<'_>, words: usize, a: Words<'_>, sums: &mut [Sums]) -> bool {
        let width = piece.written.rows(words * per_word(piece.coding));
        assert!(suits(piece.coding) && words <= piece.codes.len() && width <= a.stride && !sums.is_empty());
        assert!(a.data.len() >= (sums.len() - 1) * a.stride + width);
        // SAFETY: rows and words are there, by the assertions above.
        unsafe {
            match piece.written {
                Written::Pairs => false,
                Written::Rounded => multiply_rounded(piece, words, a, sums),
                Written::Exact => multiply_exact(piece, words, a, sums),
            }
        }
    }
}

write!(pairs, "neon", Neon, 4, WritePairs::new);
write!(rounded, "neon", Neon, 4, WriteNumbers::<true>::new);
write!(exact, "neon", Neon, 4, WriteNumbers::<false>::new);
multiply!(multiply_rounded, "neon", Neon, MultiplyNumbers::<_, true, _, _>, 1: 4, 2: 4, 3: 4, 4: 4);
multiply!(multiply_exact, "neon", Neon, MultiplyNumbers::<_, false, _, _>, 1: 4, 2: 4, 3: 4, 4: 4);
