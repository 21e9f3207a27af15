//! Expanding codes to pairs of bf16 with AVX-512.
//!
//! One step takes a word of codes of 16 lanes apart and makes 2 or 4 times two numbers of it, which are
//! rounded to bf16:
//!
//! ```text
//! word of codes ─► number of each place ─► (number - zero) * scale - minimum ─► two places ─► both rounded
//!                  shifts, or a table in a register
//!
//! kernel                    rounded by                      written as          multiplied by
//! amx                       VCVTNE2PS2BF16, VPERMW          a pair, in order    the matrix unit; few rows: fused multiply-adds
//! avx512-bf16               VCVTNE2PS2BF16, VPERMW          a pair, in order    VDPBF16PS
//! avx512                    additions of integers           a pair, in order    two fused multiply-adds, in f32
//! ```
//!
//! The conversion takes subnormal numbers for zero, and so do the products of pairs that it is for; all other numbers are rounded as elsewhere. Without the conversion all numbers are.
//!
//! Pairs are written to memory, for products of many rows, or multiplied as they are made: then
//! sums of few rows stay in registers, and the chain of their additions runs beside the expansion. For `amx` they are multiplied in
//! the order of the matrix unit and to its bits, by fused multiply-adds ([`HasThem::multiply_in_order`]): with few rows most of the
//! unit would wait.
//!
//! Loops are written once and inlined into entries that enable the instructions of one kernel, so all
//! functions between are `inline(always)`.

use std::arch::x86_64::{
    __m512, __m512bh, __m512i, _mm512_add_epi32, _mm512_add_ps, _mm512_and_si512, _mm512_castps_si512,
    _mm512_castsi512_ps, _mm512_cvtepi32_ps, _mm512_cvtne2ps_pbh, _mm512_dpbf16_ps, _mm512_fmadd_ps, _mm512_loadu_ps,
    _mm512_loadu_si512, _mm512_mask_blend_epi32, _mm512_mul_ps, _mm512_or_si512, _mm512_permutexvar_epi16,
    _mm512_permutexvar_ps, _mm512_set1_epi32, _mm512_set1_ps, _mm512_setzero_ps, _mm512_slli_epi32, _mm512_sllv_epi32,
    _mm512_srai_epi32, _mm512_srli_epi32, _mm512_srlv_epi32, _mm512_storeu_ps, _mm512_storeu_si512, _mm512_sub_ps,
    _mm512_test_epi32_mask,
};
use std::mem::transmute;

use crate::engine::packed::kernel::Kernel;
use crate::engine::packed::piece::{AHEAD, E4M3_BIAS, Lanes, Piece, Sums, per_word};
use crate::engine::packed::supported::Supported;
use crate::engine::packed::tile::{LANES, Words, prefetch};
use crate::engine::packed::unit::PAIRS;
use crate::weights::{CodeNumbers, Coding, Groups};
use crate::widest::widest;

/// Lanes of a register.
const HALF: usize = LANES / 2;

/// Rows whose sums stay in registers, beside what dequantising needs.
pub(super) const MOST_ROWS: usize = 8;

/// Most rows whose products are made in the order of the unit: with more the unit itself is faster.
pub(in crate::engine::packed) const MOST_IN_ORDER: usize = 2;

/// The smallest number of a row that is multiplied in the order of the unit, `2^-50`, but for zeros.
const SMALLEST_OF_A_ROW: f32 = f32::from_bits((127 - 50) << 23);

/// The smallest number that a code stands for likewise: that of E4M3, `2^-9`.
const SMALLEST_NUMBER: f32 = f32::from_bits((127 - 9) << 23);

/// The smallest scale and minimum likewise, `2^-28`.
const SMALLEST_OF_A_GROUP: f32 = f32::from_bits((127 - 28) << 23);

/// Whether scales or minima, by their bits, are large enough for it.
pub(super) fn are_large_of_groups(numbers: &[u32]) -> bool {
    smallest(numbers) >= SMALLEST_OF_A_GROUP.to_bits()
}

/// The smallest magnitude that is not zero, as its bits, of numbers by their bits; more than those of infinity if all are zero.
fn smallest(numbers: &[u32]) -> u32 {
    let mut smallest = u32::MAX;
    widest(
        #[inline(always)]
        || {
            // Zero, less one, is the largest.
            let less_one = |bits: &u32| (bits & 0x7fff_ffff).wrapping_sub(1);
            smallest = numbers.iter().fold(u32::MAX, |smallest, bits| smallest.min(less_one(bits)));
        },
    );
    smallest.saturating_add(1)
}

/// Whether numbers, by their bits, are finite and large enough to be multiplied in the order of the unit.
pub(in crate::engine::packed) fn are_large(numbers: &[u32]) -> bool {
    let mut largest = 0;
    widest(
        #[inline(always)]
        || largest = numbers.iter().fold(0, |largest, bits| largest.max(bits & 0x7fff_ffff)),
    );
    f32::from_bits(largest).is_finite() && smallest(numbers) >= SMALLEST_OF_A_ROW.to_bits()
}

/// The proof that this processor has the instructions, and which they are.
#[derive(Clone, Copy)]
pub(super) struct HasThem(Instructions);

/// How numbers are rounded and multiplied.
#[derive(Clone, Copy)]
enum Instructions {
    /// AVX-512 with BW and BF16: as pairs, by instructions that take subnormals for zero.
    Pairs,
    /// AVX-512: in f32.
    Widened,
}

impl HasThem {
    /// The proof, if there is a body for the kernel's products of pairs.
    pub(super) fn of(kernel: Supported) -> Option<Self> {
        match kernel.of_floats() {
            Kernel::Amx | Kernel::Avx512Bf16 => (is_x86_feature_detected!("avx512bf16")
                && is_x86_feature_detected!("avx512bw"))
            .then_some(Self(Instructions::Pairs)),
            Kernel::Avx512 => Some(Self(Instructions::Widened)),
            _ => None,
        }
    }

    /// Expands whole words of codes to words of pairs, as many as both have. `false`, and nothing
    /// happens, if no body [suits](Self::suits) the coding.
    pub(super) fn dequantise(self, piece: &Piece<'_>, out: &mut [Lanes]) -> bool {
        let pairs = per_word(piece.coding) / 2;
        let words = (out.len() / pairs).min(piece.codes.len());
        if !Self::suits(piece.coding) {
            return false;
        }
        let out = &mut out[..words * pairs];
        // SAFETY: the processor has the instructions, and `out` has as many words as are put.
        unsafe {
            match self.0 {
                Instructions::Pairs => write_pairs(piece, words, out.as_mut_ptr()),
                Instructions::Widened => write_rounded(piece, words, out.as_mut_ptr()),
            }
        }
        true
    }

    /// Goes on with `sums[row][lane] += Σ a[row][word] · b[word][lane]`, where `b` are the words that
    /// `words` words of codes stand for, without putting them into memory. `a` are rows of pairs, and
    /// `sums` has as many rows as there are, at most [`MOST_ROWS`]. `false`, and nothing happens, if
    /// no body [suits](Self::suits) the coding. The bits are those of products of the dequantised words.
    ///
    /// # Panics
    /// If there are too many rows, or too few words.
    pub(super) fn multiply(self, piece: &Piece<'_>, words: usize, a: Words<'_>, sums: &mut [Sums]) -> bool {
        if !Self::suits(piece.coding) {
            return false;
        }
        let (rows, pairs) = (sums.len(), words * per_word(piece.coding) / 2);
        assert!((1..=MOST_ROWS).contains(&rows) && words <= piece.codes.len() && pairs <= a.stride);
        assert!(a.data.len() >= (rows - 1) * a.stride + pairs);
        // SAFETY: the processor has the instructions; rows and words are there, by the assertions above.
        unsafe {
            match rows {
                1 => self.with_rows::<1>(piece, words, a, sums),
                2 => self.with_rows::<2>(piece, words, a, sums),
                3 => self.with_rows::<3>(piece, words, a, sums),
                4 => self.with_rows::<4>(piece, words, a, sums),
                5 => self.with_rows::<5>(piece, words, a, sums),
                6 => self.with_rows::<6>(piece, words, a, sums),
                7 => self.with_rows::<7>(piece, words, a, sums),
                _ => self.with_rows::<8>(piece, words, a, sums),
            }
        }
        true
    }

    /// Whether there is a body for [`multiply_in_order`](Self::multiply_in_order) for the coding, and rows are whole steps of the unit.
    pub(super) fn multiplies_in_order(self, coding: &Coding) -> bool {
        let is_of_pairs = matches!(self.0, Instructions::Pairs);
        // Tables may come from a file.
        let is_large = |entry: &f32| *entry == 0.0 || entry.abs() >= SMALLEST_NUMBER;
        let are_large = if let CodeNumbers::Table(table) = &coding.numbers { table.iter().all(is_large) } else { true };
        is_of_pairs && are_large && Self::suits(coding) && !coding.has_zeros && coding.width.is_multiple_of(2 * PAIRS)
    }

    /// [`multiply`](Self::multiply) of whole rows to the bits of the matrix unit: `a` are numbers, two for each word of pairs,
    /// that were rounded to bf16.
    ///
    /// The unit takes subnormal numbers for zeros, and these instructions do not. No sum is subnormal where rows [are large](are_large)
    /// and [so are groups](are_large_of_groups): of numbers of eight bits that
    /// are at least `2^-50` and `2^-61` all products, and with them all their sums, are multiples of `2^-125`. A weight is `2^-61` at
    /// least, or zero: a code's number is `2^-9` at least, its scale `2^-28`, and the difference of the product and a
    /// minimum of that size is a multiple of a last place of either, `2^-24` of it.
    ///
    /// # Panics
    /// If there is no body for it, there are too many rows, or too few words.
    pub(super) fn multiply_in_order(self, piece: &Piece<'_>, words: usize, a: Words<'_>, sums: &mut [Sums]) {
        let (rows, numbers) = (sums.len(), words * per_word(piece.coding));
        assert!(self.multiplies_in_order(piece.coding) && piece.columns.start == 0);
        assert!((1..=MOST_IN_ORDER).contains(&rows) && words <= piece.codes.len() && numbers <= a.stride);
        assert!(a.data.len() >= (rows - 1) * a.stride + numbers);
        // SAFETY: where pairs are multiplied there are the instructions; rows and words are there, by the assertions above.
        unsafe {
            match rows {
                1 => multiply_in_order::<1>(piece, words, a, sums),
                _ => multiply_in_order::<2>(piece, words, a, sums),
            }
        }
    }

    /// [`multiply`](Self::multiply) for so many rows.
    ///
    /// # Safety
    /// There must be so many rows and words.
    unsafe fn with_rows<const ROWS: usize>(self, piece: &Piece<'_>, words: usize, a: Words<'_>, sums: &mut [Sums]) {
        // SAFETY: the processor has the instructions; the rest is the caller's promise.
        unsafe {
            match self.0 {
                Instructions::Pairs => multiply_pairs::<ROWS>(piece, words, a, sums),
                Instructions::Widened => multiply_widened::<ROWS>(piece, words, a, sums),
            }
        }
    }

    /// Whether there is a body for the coding: groups do not end within a word of codes, and there is
    /// no factor.
    fn suits(coding: &Coding) -> bool {
        coding.factor == 1.0 && matches!(coding.groups, Groups::Even(size) if size.is_multiple_of(per_word(coding)))
    }
}

/// What is done with the numbers of two columns as they are made.
trait Take {
    /// Takes half of the lanes of a word of pairs, counted from the piece's first: both numbers of each,
    /// which are to be rounded to bf16.
    ///
    /// # Safety
    /// The processor must have the value's instructions; the word must be one of those that the value
    /// was made for.
    unsafe fn take(&mut self, word: usize, half: usize, both: [__m512; 2]);
}

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

/// Numbers rounded to bf16 as [`bf16_bits`](crate::engine::packed::vector::bf16_bits) rounds them, in the
/// upper halves of f32: half a unit of the last place that is kept is added, less the smallest part of it
/// where that place is even, and the rest is cut off. Codes, scales and minima are numbers, so a value is
/// none that a NaN would be made of in this way.
///
/// # Safety
/// The processor must have AVX-512.
#[inline(always)]
unsafe fn rounded(x: __m512) -> __m512i {
    // SAFETY: the caller's promise.
    unsafe {
        let bits = _mm512_castps_si512(x);
        let is_odd = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(1 << 16));
        let half = _mm512_mask_blend_epi32(is_odd, _mm512_set1_epi32(0x7fff), _mm512_set1_epi32(0x8000));
        _mm512_and_si512(_mm512_add_epi32(bits, half), _mm512_set1_epi32(0xffff_0000_u32.cast_signed()))
    }
}

/// Writes words one after another.
struct WritePairs(*mut Lanes);

impl Take for WritePairs {
    #[inline(always)]
    unsafe fn take(&mut self, word: usize, half: usize, both: [__m512; 2]) {
        // SAFETY: the word is there, by the caller's promise.
        unsafe { _mm512_storeu_si512(self.0.add(word).cast::<u32>().add(half * HALF).cast(), pairs(both)) }
    }
}

/// Likewise.
struct WriteRounded(*mut Lanes);

impl Take for WriteRounded {
    #[inline(always)]
    unsafe fn take(&mut self, word: usize, half: usize, both: [__m512; 2]) {
        // SAFETY: the word is there, by the caller's promise.
        unsafe {
            let pairs = _mm512_or_si512(_mm512_srli_epi32::<16>(rounded(both[0])), rounded(both[1]));
            _mm512_storeu_si512(self.0.add(word).cast::<u32>().add(half * HALF).cast(), pairs);
        }
    }
}

/// Some rows of pairs and their sums.
struct RowBlock<const ROWS: usize> {
    /// The first word of each row.
    a: [*const u32; ROWS],
    /// The sums of each row, in halves.
    sums: [[__m512; 2]; ROWS],
}

impl<const ROWS: usize> RowBlock<ROWS> {
    /// The rows `a`, with sums that go on from `sums`.
    ///
    /// # Safety
    /// The processor must have AVX-512; there must be so many rows of both.
    #[inline(always)]
    unsafe fn new(a: Words<'_>, sums: &[Sums]) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            let mut rows = Self { a: [a.data.as_ptr(); ROWS], sums: [[_mm512_setzero_ps(); 2]; ROWS] };
            for (row, sums) in sums.iter().enumerate() {
                rows.a[row] = a.data.as_ptr().add(row * a.stride);
                rows.sums[row] = [_mm512_loadu_ps(sums.as_ptr()), _mm512_loadu_ps(sums.as_ptr().add(HALF))];
            }
            rows
        }
    }

    /// Puts the sums back.
    ///
    /// # Safety
    /// The processor must have AVX-512.
    #[inline(always)]
    unsafe fn put(self, sums: &mut [Sums]) {
        for (sums, found) in sums.iter_mut().zip(self.sums) {
            // SAFETY: a row of sums is two registers.
            unsafe {
                _mm512_storeu_ps(sums.as_mut_ptr(), found[0]);
                _mm512_storeu_ps(sums.as_mut_ptr().add(HALF), found[1]);
            }
        }
    }
}

/// Adds products with rows of pairs to sums, as pairs.
struct MultiplyPairs<const ROWS: usize>(RowBlock<ROWS>);

impl<const ROWS: usize> Take for MultiplyPairs<ROWS> {
    #[inline(always)]
    unsafe fn take(&mut self, word: usize, half: usize, both: [__m512; 2]) {
        // SAFETY: the rows have this word, by the caller's promise.
        unsafe {
            let b: __m512bh = transmute(pairs(both));
            for (a, sums) in self.0.a.iter().zip(&mut self.0.sums) {
                let a: __m512bh = transmute(_mm512_set1_epi32((*a.add(word)).cast_signed()));
                sums[half] = _mm512_dpbf16_ps(sums[half], a, b);
            }
        }
    }
}

/// Likewise in f32, the first product before the second, as `tile/x86.rs` does with pairs that are there.
struct MultiplyWidened<const ROWS: usize>(RowBlock<ROWS>);

impl<const ROWS: usize> Take for MultiplyWidened<ROWS> {
    #[inline(always)]
    unsafe fn take(&mut self, word: usize, half: usize, both: [__m512; 2]) {
        // SAFETY: the rows have this word, by the caller's promise.
        unsafe {
            let [b0, b1] = [_mm512_castsi512_ps(rounded(both[0])), _mm512_castsi512_ps(rounded(both[1]))];
            let high = _mm512_set1_epi32(0xffff_0000_u32.cast_signed());
            for (a, sums) in self.0.a.iter().zip(&mut self.0.sums) {
                let a = _mm512_set1_epi32((*a.add(word)).cast_signed());
                let a0 = _mm512_castsi512_ps(_mm512_slli_epi32::<16>(a));
                let a1 = _mm512_castsi512_ps(_mm512_and_si512(a, high));
                sums[half] = _mm512_fmadd_ps(a0, b0, sums[half]);
                sums[half] = _mm512_fmadd_ps(a1, b1, sums[half]);
            }
        }
    }
}

/// Adds products with rows of numbers to sums, as the matrix unit does: of each sixteen pairs the products of first numbers, and those of
/// second ones, are chains of fused multiply-adds from zero; both chains are added, and then that is to the sum.
struct MultiplyInOrder<const ROWS: usize> {
    /// The rows and sums.
    rows: RowBlock<ROWS>,
    /// Of each row the chains of first and second numbers, in halves.
    chains: [[[__m512; 2]; 2]; ROWS],
}

impl<const ROWS: usize> Take for MultiplyInOrder<ROWS> {
    #[inline(always)]
    unsafe fn take(&mut self, word: usize, half: usize, both: [__m512; 2]) {
        // SAFETY: the rows have both numbers of this word, by the caller's promise.
        unsafe {
            let words = pairs(both);
            let first = _mm512_castsi512_ps(_mm512_slli_epi32::<16>(words));
            let high = _mm512_set1_epi32(0xffff_0000_u32.cast_signed());
            let second = _mm512_castsi512_ps(_mm512_and_si512(words, high));
            for ((a, chains), sums) in self.rows.a.iter().zip(&mut self.chains).zip(&mut self.rows.sums) {
                let a = a.cast::<f32>().add(2 * word);
                let [of_first, of_second] = &mut chains[half];
                *of_first = _mm512_fmadd_ps(_mm512_set1_ps(*a), first, *of_first);
                *of_second = _mm512_fmadd_ps(_mm512_set1_ps(*a.add(1)), second, *of_second);
                if word % PAIRS == PAIRS - 1 {
                    sums[half] = _mm512_add_ps(sums[half], _mm512_add_ps(*of_first, *of_second));
                    chains[half] = [_mm512_setzero_ps(); 2];
                }
            }
        }
    }
}

/// [`HasThem::multiply_in_order`] for so many rows.
///
/// # Safety
/// The processor must have AVX-512 with BW and BF16; there must be so many rows and words, whole steps of the unit.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
unsafe fn multiply_in_order<const ROWS: usize>(piece: &Piece<'_>, words: usize, a: Words<'_>, sums: &mut [Sums]) {
    // SAFETY: the caller's promise.
    unsafe {
        let chains = [[[_mm512_setzero_ps(); 2]; 2]; ROWS];
        let to = MultiplyInOrder { rows: RowBlock::<ROWS>::new(a, sums), chains };
        with_numbers(piece, words, to).rows.put(sums);
    }
}

/// [`HasThem::dequantise`] with BF16.
///
/// # Safety
/// The processor must have AVX-512 with BW and BF16; `out` must have all words that so many words of
/// codes make.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
unsafe fn write_pairs(piece: &Piece<'_>, words: usize, out: *mut Lanes) {
    // SAFETY: the caller's promise.
    unsafe { with_numbers(piece, words, WritePairs(out)) };
}

/// [`HasThem::dequantise`] without BF16.
///
/// # Safety
/// The processor must have AVX-512; as for [`write_pairs`].
#[target_feature(enable = "avx512f")]
unsafe fn write_rounded(piece: &Piece<'_>, words: usize, out: *mut Lanes) {
    // SAFETY: the caller's promise.
    unsafe { with_numbers(piece, words, WriteRounded(out)) };
}

/// [`HasThem::multiply`] with BF16, for so many rows.
///
/// # Safety
/// The processor must have AVX-512 with BW and BF16; there must be so many rows and words.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
unsafe fn multiply_pairs<const ROWS: usize>(piece: &Piece<'_>, words: usize, a: Words<'_>, sums: &mut [Sums]) {
    // SAFETY: the caller's promise.
    unsafe {
        let MultiplyPairs(rows) = with_numbers(piece, words, MultiplyPairs(RowBlock::<ROWS>::new(a, sums)));
        rows.put(sums);
    }
}

/// [`HasThem::multiply`] without BF16, for so many rows.
///
/// # Safety
/// The processor must have AVX-512; there must be so many rows and words.
#[target_feature(enable = "avx512f")]
unsafe fn multiply_widened<const ROWS: usize>(piece: &Piece<'_>, words: usize, a: Words<'_>, sums: &mut [Sums]) {
    // SAFETY: the caller's promise.
    unsafe {
        let MultiplyWidened(rows) = with_numbers(piece, words, MultiplyWidened(RowBlock::<ROWS>::new(a, sums)));
        rows.put(sums);
    }
}

/// What codes stand for.
trait Number: Copy {
    /// The number at this place of each word of codes.
    ///
    /// # Safety
    /// The processor must have AVX-512.
    unsafe fn of(self, word: __m512i, place: usize) -> __m512;
}

/// Integers of eight bits with a sign.
#[derive(Clone, Copy)]
struct Signed;

impl Number for Signed {
    #[inline(always)]
    unsafe fn of(self, word: __m512i, place: usize) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe {
            let left = _mm512_sllv_epi32(word, _mm512_set1_epi32(24 - 8 * place as i32));
            _mm512_cvtepi32_ps(_mm512_srai_epi32::<24>(left))
        }
    }
}

/// Integers of eight bits without a sign.
#[derive(Clone, Copy)]
struct Unsigned;

impl Number for Unsigned {
    #[inline(always)]
    unsafe fn of(self, word: __m512i, place: usize) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe {
            let right = _mm512_srlv_epi32(word, _mm512_set1_epi32(8 * place as i32));
            _mm512_cvtepi32_ps(_mm512_and_si512(right, _mm512_set1_epi32(255)))
        }
    }
}

/// Floats; see [`e4m3`](super::e4m3).
#[derive(Clone, Copy)]
struct E4m3;

impl Number for E4m3 {
    #[inline(always)]
    unsafe fn of(self, word: __m512i, place: usize) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe {
            let code = _mm512_srlv_epi32(word, _mm512_set1_epi32(8 * place as i32));
            let magnitude =
                _mm512_and_si512(_mm512_sllv_epi32(code, _mm512_set1_epi32(20)), _mm512_set1_epi32(0x7f << 20));
            let magnitude = _mm512_mul_ps(_mm512_castsi512_ps(magnitude), _mm512_set1_ps(E4M3_BIAS));
            let sign = _mm512_and_si512(_mm512_sllv_epi32(code, _mm512_set1_epi32(24)), _mm512_set1_epi32(i32::MIN));
            _mm512_castsi512_ps(_mm512_or_si512(_mm512_castps_si512(magnitude), sign))
        }
    }
}

/// Entries of a table, by codes of four bits. Integers are some too: a look into a register takes fewer instructions than a conversion.
#[derive(Clone, Copy)]
struct Table(__m512);

/// The integers of four bits without a sign.
const UNSIGNED: [f32; 16] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0];

/// Those with a sign.
const SIGNED: [f32; 16] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, -8.0, -7.0, -6.0, -5.0, -4.0, -3.0, -2.0, -1.0];

impl Table {
    /// A register of these entries.
    ///
    /// # Safety
    /// The processor must have AVX-512.
    #[inline(always)]
    unsafe fn of(entries: &[f32; 16]) -> Self {
        // SAFETY: the caller's promise; the entries are a register.
        unsafe { Self(_mm512_loadu_ps(entries.as_ptr())) }
    }
}

impl Number for Table {
    #[inline(always)]
    unsafe fn of(self, word: __m512i, place: usize) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe { _mm512_permutexvar_ps(_mm512_srlv_epi32(word, _mm512_set1_epi32(4 * place as i32)), self.0) }
    }
}

/// Picks the body for what codes stand for, and returns what it has done.
///
/// # Safety
/// The processor must have AVX-512 and the instructions of `to`; there must be so many words of codes,
/// and `to` must take all words of pairs that they make.
#[inline(always)]
unsafe fn with_numbers<T: Take>(piece: &Piece<'_>, words: usize, to: T) -> T {
    let coding = piece.coding;
    // SAFETY: the caller's promise.
    unsafe {
        match (&coding.numbers, coding.bits) {
            (CodeNumbers::Signed, 8) => with_groups::<4, T>(piece, words, to, Signed),
            (CodeNumbers::Signed, _) => with_groups::<8, T>(piece, words, to, Table::of(&SIGNED)),
            (CodeNumbers::Unsigned, 8) => with_groups::<4, T>(piece, words, to, Unsigned),
            (CodeNumbers::Unsigned, _) => with_groups::<8, T>(piece, words, to, Table::of(&UNSIGNED)),
            (CodeNumbers::E4m3, _) => with_groups::<4, T>(piece, words, to, E4m3),
            (CodeNumbers::Table(table), _) => with_groups::<8, T>(piece, words, to, Table::of(table)),
        }
    }
}

/// Picks the body for what groups have.
///
/// # Safety
/// As for [`with_numbers`].
#[inline(always)]
unsafe fn with_groups<const PLACES: usize, T: Take>(piece: &Piece<'_>, words: usize, to: T, number: impl Number) -> T {
    // SAFETY: the caller's promise.
    unsafe {
        match (piece.zeros.is_empty(), piece.minima.is_empty()) {
            (true, true) => run::<PLACES, false, false, T>(piece, words, to, number),
            (false, true) => run::<PLACES, true, false, T>(piece, words, to, number),
            (true, false) => run::<PLACES, false, true, T>(piece, words, to, number),
            (false, false) => run::<PLACES, true, true, T>(piece, words, to, number),
        }
    }
}

/// What a group has, in halves of the lanes.
///
/// # Safety
/// The processor must have AVX-512.
#[inline(always)]
unsafe fn halves(lanes: &Lanes) -> [__m512; 2] {
    // SAFETY: both registers are in the lanes; the rest is the caller's promise.
    unsafe { [_mm512_loadu_ps(lanes.as_ptr().cast()), _mm512_loadu_ps(lanes.as_ptr().add(HALF).cast())] }
}

/// What half of the lanes of a group have.
#[derive(Clone, Copy)]
struct OfGroup {
    scales: __m512,
    zeros: __m512,
    minima: __m512,
}

impl OfGroup {
    /// The values of numbers, without what there is none of.
    ///
    /// # Safety
    /// The processor must have AVX-512.
    #[inline(always)]
    unsafe fn value<const ZEROS: bool, const MINIMA: bool>(self, mut x: __m512) -> __m512 {
        // SAFETY: the caller's promise.
        unsafe {
            if ZEROS {
                x = _mm512_sub_ps(x, self.zeros);
            }
            x = _mm512_mul_ps(x, self.scales);
            if MINIMA {
                x = _mm512_sub_ps(x, self.minima);
            }
            x
        }
    }
}

/// The loops: words of codes, and of each both halves of its lanes. What a group has is loaded once
/// for all of its words.
///
/// # Safety
/// As for [`with_numbers`].
#[inline(always)]
unsafe fn run<const PLACES: usize, const ZEROS: bool, const MINIMA: bool, T: Take>(
    piece: &Piece<'_>,
    words: usize,
    mut to: T,
    number: impl Number,
) -> T {
    let Groups::Even(size) = piece.coding.groups else { return to };
    // SAFETY: every load is of half the lanes of a row that is there, as indices are checked; words are taken up to their
    // number.
    unsafe {
        let none = [_mm512_setzero_ps(); 2];
        let words_of_group = size / PLACES;
        let start = piece.columns.start / PLACES;
        let (mut from, mut group) = (0, start / words_of_group);
        while from < words {
            let end = words.min((group + 1) * words_of_group - start);
            let scales = halves(&piece.scales[group]);
            let zeros = if ZEROS { halves(&piece.zeros[group]) } else { none };
            let minima = if MINIMA { halves(&piece.minima[group]) } else { none };
            let of_group =
                [0, 1].map(|half| OfGroup { scales: scales[half], zeros: zeros[half], minima: minima[half] });
            for (index, codes) in (from..end).zip(&piece.codes[from..end]) {
                prefetch(codes.as_ptr().wrapping_add(AHEAD));
                prefetch(codes.as_ptr().wrapping_add(AHEAD + HALF));
                for (half, of_group) in of_group.into_iter().enumerate() {
                    let word = _mm512_loadu_si512(codes.as_ptr().add(half * HALF).cast());
                    for pair in 0..PLACES / 2 {
                        let first = of_group.value::<ZEROS, MINIMA>(number.of(word, 2 * pair));
                        let second = of_group.value::<ZEROS, MINIMA>(number.of(word, 2 * pair + 1));
                        to.take(index * (PLACES / 2) + pair, half, [first, second]);
                    }
                }
            }
            (from, group) = (end, group + 1);
        }
    }
    to
}
