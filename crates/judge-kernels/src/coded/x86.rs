//! Expanding codes with instructions of x86-64: entries to the loops of `body.rs`, and what only AVX-512 with BF16 does.
//!
//! ```text
//! kernel                    written as                                    multiplied by few rows as
//! amx                       a pair, by VCVTNE2PS2BF16 and VPERMW          numbers rounded by fused multiply-adds, in the unit's order
//! avx512-bf16               the same                                      the same pair, by VDPBF16PS
//! avx512, avx2              two numbers, rounded by sums of integers      numbers rounded by fused multiply-adds
//! f32, with all of them     two numbers                                   the same numbers
//! ```
//!
//! The conversion takes subnormal numbers for zero, and so do the products of pairs that it is for; all other numbers are rounded as
//! elsewhere. Without the conversion all numbers are.
//!
//! For `amx` one or two rows are multiplied in the order of the matrix unit and to its bits, by fused multiply-adds
//! ([`HasThem::multiply_in_order`]): with few rows most of the unit would wait.

use std::arch::x86_64::{
    __m512, __m512bh, __m512i, _mm512_add_ps, _mm512_cvtne2ps_pbh, _mm512_dpbf16_ps, _mm512_fmadd_ps,
    _mm512_loadu_si512, _mm512_permutexvar_epi16, _mm512_set1_ps, _mm512_setzero_ps, _mm512_setzero_si512,
};
use std::mem::transmute;

use super::body::{
    MultiplyNumbers, Out, RowBlock, Take, WriteNumbers, check_multiply, check_write, expand, multiply_entry,
    rounded_of_moderate, suits, write_entry,
};
use super::moderate::extremes;
use crate::codes::Coding;
use crate::kernel::Kernel;
use crate::piece::{Lanes, Piece, Sums, Written, per_word};
use crate::registers::{Avx2, Avx512, Register};
use crate::supported::Supported;
use crate::tile::{Word, Words};
use crate::unit::PAIRS;

/// Most rows whose products are made in the order of the unit: with more the unit itself is faster.
pub(crate) const MOST_IN_ORDER: usize = 2;

/// The smallest number of a row that is multiplied in the order of the unit, `2^-50`, but for zeros.
const SMALLEST_OF_A_ROW: f32 = f32::from_bits((127 - 50) << 23);

/// Whether numbers, by their bits, are finite and large enough to be multiplied in the order of the unit.
pub(crate) fn are_large(numbers: &[u32]) -> bool {
    let [smallest, largest] = extremes(numbers);
    f32::from_bits(largest).is_finite() && smallest >= SMALLEST_OF_A_ROW.to_bits()
}

/// The proof that this processor has the instructions, and which they are.
#[derive(Clone, Copy)]
pub(crate) struct HasThem(Instructions);

/// How numbers are rounded and multiplied.
#[derive(Clone, Copy)]
enum Instructions {
    /// AVX-512 with BW and BF16: as pairs, by instructions that take subnormals for zero.
    Pairs,
    /// AVX-512: in f32.
    Avx512,
    /// AVX2 with FMA: in f32.
    Avx2,
}

impl HasThem {
    /// The proof, if there are entries for the kernel's products of such words.
    pub(crate) fn of(kernel: Supported, word: Word) -> Option<Self> {
        match (kernel.of_floats(), word) {
            (Kernel::Amx | Kernel::Avx512Bf16, Word::Pair) => (is_x86_feature_detected!("avx512bf16")
                && is_x86_feature_detected!("avx512bw"))
            .then_some(Self(Instructions::Pairs)),
            (Kernel::Amx | Kernel::Avx512Bf16 | Kernel::Avx512, _) => Some(Self(Instructions::Avx512)),
            (Kernel::Avx2, _) => Some(Self(Instructions::Avx2)),
            _ => None,
        }
    }

    /// Expands so many words of codes to what the piece says, and writes that to `out`. `false`, and nothing happens, where there is no
    /// entry for it: kernels that widen have no pairs.
    ///
    /// # Panics
    /// If the coding does not suit, there are fewer words, or `out` has no room for what they make.
    pub(crate) fn write(self, piece: &Piece<'_>, words: usize, out: &mut [Lanes]) -> bool {
        check_write(piece, words, out);
        let out = out.as_mut_ptr();
        // SAFETY: the processor has the instructions; words are there and have room, by the check.
        unsafe {
            match (self.0, piece.written) {
                (Instructions::Pairs, Written::Pairs) => converted_512(piece, words, out),
                (Instructions::Avx512, Written::Rounded) => rounded_512(piece, words, out),
                (Instructions::Avx512, Written::Exact) => exact_512(piece, words, out),
                (Instructions::Avx2, Written::Rounded) => rounded_256(piece, words, out),
                (Instructions::Avx2, Written::Exact) => exact_256(piece, words, out),
                _ => return false,
            }
        }
        true
    }

    /// Goes on with `sums[row][lane] += Σ a[row][column] · b[column][lane]`, where `b` are the numbers that `words` words of codes
    /// stand for, without putting them into memory. What is rounded must be [moderate](super::moderate). `a` are rows of pairs where
    /// products are of pairs, else of numbers, as many as `sums` has. `false`, and nothing happens, where there is no entry for so many.
    /// The bits are those of products of what [`write`](Self::write) writes, but that a sum which is zero may have the other sign.
    ///
    /// # Panics
    /// If the coding does not suit, or there are fewer words.
    pub(crate) fn multiply(self, piece: &Piece<'_>, words: usize, a: Words<'_>, sums: &mut [Sums]) -> bool {
        check_multiply(piece, words, a, sums);
        // SAFETY: the processor has the instructions; rows and words are there, by the check.
        unsafe {
            match (self.0, piece.written) {
                (Instructions::Pairs, Written::Pairs) => multiply_pairs(piece, words, a, sums),
                (Instructions::Avx512, Written::Rounded) => multiply_rounded_512(piece, words, a, sums),
                (Instructions::Avx512, Written::Exact) => multiply_exact_512(piece, words, a, sums),
                (Instructions::Avx2, Written::Rounded) => multiply_rounded_256(piece, words, a, sums),
                (Instructions::Avx2, Written::Exact) => multiply_exact_256(piece, words, a, sums),
                _ => false,
            }
        }
    }

    /// Whether there is a body for [`multiply_in_order`](Self::multiply_in_order) for the coding, and rows are whole steps of the unit.
    pub(crate) fn multiplies_in_order(self, coding: &Coding) -> bool {
        let is_of_pairs = matches!(self.0, Instructions::Pairs);
        is_of_pairs && suits(coding) && !coding.has_zeros && coding.width.is_multiple_of(2 * PAIRS)
    }

    /// [`multiply`](Self::multiply) of whole rows to the bits of the matrix unit: `a` are numbers, two for each word of pairs,
    /// that were rounded to bf16.
    ///
    /// The unit takes subnormal numbers for zeros, and these instructions do not. No sum is subnormal where rows [are large](are_large)
    /// and what the matrix has [is moderate](super::moderate): of numbers of eight bits that are at least `2^-50` and `2^-60` all
    /// products, and with them all their sums, are multiples of `2^-124`.
    ///
    /// # Panics
    /// If there is no body for it, there are too many rows, or too few words.
    pub(crate) fn multiply_in_order(self, piece: &Piece<'_>, words: usize, a: Words<'_>, sums: &mut [Sums]) {
        let (rows, numbers) = (sums.len(), words * per_word(piece.coding));
        assert!(self.multiplies_in_order(piece.coding) && piece.columns.start == 0);
        assert!((1..=MOST_IN_ORDER).contains(&rows) && words <= piece.panel.codes.len() && numbers <= a.stride);
        assert!(a.data.len() >= (rows - 1) * a.stride + numbers);
        // SAFETY: where pairs are multiplied there are the instructions; rows and words are there, by the assertions above.
        unsafe { multiply_in_order(piece, words, a, sums) };
    }
}

write_entry!(converted_512, "avx512f,avx512bw,avx512bf16", Avx512, 2, ConvertPairs::new);
write_entry!(rounded_512, "avx512f", Avx512, 2, WriteNumbers::<true>::new);
write_entry!(exact_512, "avx512f", Avx512, 2, WriteNumbers::<false>::new);
write_entry!(rounded_256, "avx2,fma", Avx2, 4, WriteNumbers::<true>::new);
write_entry!(exact_256, "avx2,fma", Avx2, 4, WriteNumbers::<false>::new);
multiply_entry!(
    multiply_pairs, "avx512f,avx512bw,avx512bf16", Avx512, MultiplyPairs,
    1: 2, 2: 2, 3: 2, 4: 2, 5: 2, 6: 2, 7: 2, 8: 2
);
multiply_entry!(
    multiply_rounded_512, "avx512f", Avx512, MultiplyNumbers::<_, true, _, _>,
    1: 2, 2: 2, 3: 2, 4: 2, 5: 2, 6: 2, 7: 2, 8: 2
);
multiply_entry!(multiply_exact_512, "avx512f", Avx512, MultiplyNumbers::<_, false, _, _>, 1: 2, 2: 2, 3: 2, 4: 2);
multiply_entry!(
    multiply_rounded_256, "avx2,fma", Avx2, MultiplyNumbers::<_, true, _, _>,
    1: 2, 2: 1, 3: 1, 4: 1, 5: 1, 6: 1, 7: 1, 8: 1
);
multiply_entry!(multiply_exact_256, "avx2,fma", Avx2, MultiplyNumbers::<_, false, _, _>, 1: 2, 2: 1, 3: 1, 4: 1);
multiply_entry!(multiply_in_order, "avx512f,avx512bw,avx512bf16", Avx512, MultiplyInOrder::new, 1: 2, 2: 2);

/// Pairs of bf16 by the processor's conversion.
///
/// # Safety
/// The processor must have AVX-512 with BW and BF16.
#[inline(always)]
unsafe fn pairs([first, second]: [__m512; 2]) -> __m512i {
    /// Number `i` of two registers, as the conversion leaves it: all second numbers behind all first.
    const IN_ORDER: [u16; 32] = {
        let mut order = [0; 32];
        let mut i = 0;
        while i < 32 {
            order[i] = (i / 2 + 16 * (i % 2)) as u16;
            i += 1;
        }
        order
    };
    // SAFETY: the caller's promise; the constant is a whole register.
    unsafe {
        let in_order = _mm512_loadu_si512(IN_ORDER.as_ptr().cast());
        _mm512_permutexvar_epi16(in_order, transmute::<__m512bh, __m512i>(_mm512_cvtne2ps_pbh(second, first)))
    }
}

/// Writes pairs, `[pairs][LANES]`, by that conversion.
struct ConvertPairs(Out);

impl ConvertPairs {
    /// Writes to `out`.
    fn new(out: *mut Lanes) -> Self {
        Self(Out::new(out))
    }
}

impl<const ACROSS: usize> Take<Avx512, ACROSS> for ConvertPairs {
    #[inline(always)]
    unsafe fn start(&mut self, lane: usize) {
        self.0.start(lane);
    }

    #[inline(always)]
    unsafe fn take(&mut self, pair: usize, both: [[__m512; 2]; ACROSS]) {
        for (register, both) in both.into_iter().enumerate() {
            // SAFETY: the row is there, by the caller's promise.
            unsafe { self.0.put::<Avx512>(pair, register, pairs(both)) }
        }
    }
}

/// Adds products with rows of pairs to sums, as pairs.
struct MultiplyPairs<'a, const ROWS: usize, const ACROSS: usize>(RowBlock<'a, Avx512, ROWS, ACROSS>);

impl<const ROWS: usize, const ACROSS: usize> Take<Avx512, ACROSS> for MultiplyPairs<'_, ROWS, ACROSS> {
    #[inline(always)]
    unsafe fn start(&mut self, lane: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.0.start(lane) }
    }

    #[inline(always)]
    unsafe fn take(&mut self, pair: usize, both: [[__m512; 2]; ACROSS]) {
        // SAFETY: the rows have this word, by the caller's promise; the bits are those of pairs.
        unsafe {
            let mut b = [_mm512_setzero_si512(); ACROSS];
            for (b, both) in b.iter_mut().zip(both) {
                *b = pairs(both);
            }
            for (a, sums) in self.0.a.iter().zip(&mut self.0.sums) {
                let a: __m512bh = transmute(Avx512::splat(*a.add(pair)));
                for (sum, b) in sums.iter_mut().zip(b) {
                    *sum = _mm512_dpbf16_ps(*sum, a, transmute::<__m512i, __m512bh>(b));
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn end(&mut self) {
        // SAFETY: the caller's promise.
        unsafe { self.0.end() }
    }
}

/// Adds products with rows of numbers to sums, as the matrix unit does: of each sixteen pairs the products of first numbers, and those of
/// second ones, are chains of fused multiply-adds from zero; both chains are added, and then that is to the sum.
struct MultiplyInOrder<'a, const ROWS: usize> {
    /// The rows and sums.
    rows: RowBlock<'a, Avx512, ROWS, 2>,
    /// Of each row the chains of first and second numbers, in halves.
    chains: [[[__m512; 2]; 2]; ROWS],
}

impl<'a, const ROWS: usize> MultiplyInOrder<'a, ROWS> {
    /// Goes on with the sums of these rows.
    ///
    /// # Safety
    /// The processor must have AVX-512.
    #[inline(always)]
    unsafe fn new(rows: RowBlock<'a, Avx512, ROWS, 2>) -> Self {
        // SAFETY: the caller's promise.
        Self { rows, chains: unsafe { [[[_mm512_setzero_ps(); 2]; 2]; ROWS] } }
    }
}

impl<const ROWS: usize> Take<Avx512, 2> for MultiplyInOrder<'_, ROWS> {
    #[inline(always)]
    unsafe fn start(&mut self, lane: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.rows.start(lane) }
    }

    #[inline(always)]
    unsafe fn take(&mut self, pair: usize, mut both: [[__m512; 2]; 2]) {
        // SAFETY: the rows have both numbers of this word, by the caller's promise.
        unsafe {
            for x in both.as_flattened_mut() {
                *x = rounded_of_moderate::<Avx512>(*x);
            }
            for ((a, chains), sums) in self.rows.a.iter().zip(&mut self.chains).zip(&mut self.rows.sums) {
                let a = a.cast::<f32>().add(2 * pair);
                let (first, second) = (_mm512_set1_ps(*a), _mm512_set1_ps(*a.add(1)));
                for (([of_first, of_second], sum), both) in chains.iter_mut().zip(sums).zip(&both) {
                    *of_first = _mm512_fmadd_ps(first, both[0], *of_first);
                    *of_second = _mm512_fmadd_ps(second, both[1], *of_second);
                    if pair % PAIRS == PAIRS - 1 {
                        *sum = _mm512_add_ps(*sum, _mm512_add_ps(*of_first, *of_second));
                        (*of_first, *of_second) = (_mm512_setzero_ps(), _mm512_setzero_ps());
                    }
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn end(&mut self) {
        // SAFETY: the caller's promise.
        unsafe { self.rows.end() }
    }
}
