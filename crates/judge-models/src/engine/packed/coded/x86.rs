//! Expanding codes to pairs of bf16 with AVX-512.
//!
//! One step takes a word of codes of 16 lanes apart and makes 2 or 4 words of pairs of it:
//!
//! ```text
//! word of codes ─► number of each place ─► (number - zero) * scale - minimum ─► two places ─► a pair, in order
//!                  shifts, or a table in a register                             VCVTNE2PS2BF16, VPERMW
//! ```
//!
//! The conversion takes subnormal numbers for zero, and so does the product (`VDPBF16PS`) that the
//! pairs are for; all other numbers are rounded as elsewhere.
//!
//! Pairs are written to memory, for products of many rows, or multiplied as they are made: then
//! sums of few rows stay in registers, and the chain of their additions runs beside the expansion.

use std::arch::x86_64::{
    __m512, __m512bh, __m512i, _mm512_and_si512, _mm512_castps_si512, _mm512_castsi512_ps, _mm512_cvtepi32_ps,
    _mm512_cvtne2ps_pbh, _mm512_dpbf16_ps, _mm512_loadu_ps, _mm512_loadu_si512, _mm512_mul_ps, _mm512_or_si512,
    _mm512_permutexvar_epi16, _mm512_permutexvar_ps, _mm512_set1_epi32, _mm512_set1_ps, _mm512_setzero_ps,
    _mm512_sllv_epi32, _mm512_srai_epi32, _mm512_srlv_epi32, _mm512_storeu_ps, _mm512_storeu_si512, _mm512_sub_ps,
};
use std::mem::transmute;

use super::{AHEAD, Lanes, Piece, Sums, prefetch};
use crate::engine::packed::kernel::{Kernel, Supported};
use crate::engine::packed::tile::{LANES, Words};
use crate::weights::{CodeNumbers, Groups};

/// Lanes of a register.
const HALF: usize = LANES / 2;

/// Rows whose sums stay in registers, beside what expanding needs.
pub(super) const MOST_ROWS: usize = 8;

/// The proof that this processor has the instructions.
#[derive(Clone, Copy)]
pub(super) struct HasThem(());

impl HasThem {
    /// The proof, if pairs are multiplied by instructions that take subnormals for zero.
    pub(super) fn of(kernel: Supported) -> Option<Self> {
        let has_pairs = matches!(kernel.of_floats(), Kernel::Amx | Kernel::Avx512Bf16);
        (has_pairs && is_x86_feature_detected!("avx512bf16") && is_x86_feature_detected!("avx512bw"))
            .then_some(Self(()))
    }

    /// Expands whole words of codes to words of pairs, as many as both have. `false`, and nothing
    /// happens, if no body [suits](Self::suits) the coding.
    pub(super) fn expand(self, piece: &Piece<'_>, out: &mut [Lanes]) -> bool {
        let pairs = super::per_word(&piece.of.coding) / 2;
        let words = (out.len() / pairs).min(piece.codes.len());
        if !self.suits(piece) {
            return false;
        }
        let out = &mut out[..words * pairs];
        // SAFETY: the processor has the instructions, and `out` has as many words as are put.
        unsafe { with_numbers(piece, words, Write(out.as_mut_ptr())) };
        true
    }

    /// Goes on with `sums[row][lane] += Σ a[row][word] · b[word][lane]`, where `b` are the words that
    /// `words` words of codes stand for, without putting them into memory. `a` are rows of pairs, and
    /// `sums` has as many rows as there are, at most [`MOST_ROWS`]. `false`, and nothing happens, if
    /// no body [suits](Self::suits) the coding. The bits are those of products of the expanded words.
    ///
    /// # Panics
    /// If there are too many rows, or too few words.
    pub(super) fn multiply(self, piece: &Piece<'_>, words: usize, a: Words<'_>, sums: &mut [Sums]) -> bool {
        if !self.suits(piece) {
            return false;
        }
        let (rows, pairs) = (sums.len(), words * super::per_word(&piece.of.coding) / 2);
        assert!((1..=MOST_ROWS).contains(&rows) && words <= piece.codes.len() && pairs <= a.stride);
        assert!(a.data.len() >= (rows - 1) * a.stride + pairs);
        // SAFETY: the processor has the instructions; rows and words are there, by the assertions above.
        unsafe {
            match rows {
                1 => with_rows::<1>(piece, words, a, sums),
                2 => with_rows::<2>(piece, words, a, sums),
                3 => with_rows::<3>(piece, words, a, sums),
                4 => with_rows::<4>(piece, words, a, sums),
                5 => with_rows::<5>(piece, words, a, sums),
                6 => with_rows::<6>(piece, words, a, sums),
                7 => with_rows::<7>(piece, words, a, sums),
                _ => with_rows::<8>(piece, words, a, sums),
            }
        }
        true
    }

    /// Whether there is a body for the coding: groups do not end within a word of codes, and there is
    /// no factor.
    fn suits(self, piece: &Piece<'_>) -> bool {
        let coding = &piece.of.coding;
        coding.factor == 1.0
            && matches!(coding.groups, Groups::Even(size) if size.is_multiple_of(super::per_word(coding)))
    }
}

/// What is done with words of pairs as they are made.
trait Take {
    /// Takes half of the lanes of a word, counted from the piece's first.
    ///
    /// # Safety
    /// The processor must have AVX-512 with BF16; the word must be one of those that the value was
    /// made for.
    unsafe fn take(&mut self, word: usize, half: usize, pairs: __m512i);
}

/// Writes words one after another.
struct Write(*mut Lanes);

impl Take for Write {
    #[inline(always)]
    unsafe fn take(&mut self, word: usize, half: usize, pairs: __m512i) {
        // SAFETY: the word is there, by the caller's promise.
        unsafe { _mm512_storeu_si512(self.0.add(word).cast::<u32>().add(half * HALF).cast(), pairs) }
    }
}

/// Adds products with rows of pairs to sums.
struct Multiply<const ROWS: usize> {
    /// The first word of each row.
    a: [*const u32; ROWS],
    /// The sums of each row, in halves.
    sums: [[__m512; 2]; ROWS],
}

impl<const ROWS: usize> Take for Multiply<ROWS> {
    #[inline(always)]
    unsafe fn take(&mut self, word: usize, half: usize, pairs: __m512i) {
        for (a, sums) in self.a.iter().zip(&mut self.sums) {
            // SAFETY: the rows have this word, by the caller's promise.
            unsafe {
                let a: __m512bh = transmute(_mm512_set1_epi32((*a.add(word)).cast_signed()));
                sums[half] = _mm512_dpbf16_ps(sums[half], a, transmute::<__m512i, __m512bh>(pairs));
            }
        }
    }
}

/// [`HasThem::multiply`] for so many rows.
///
/// # Safety
/// The processor must have AVX-512 with BW and BF16; there must be so many rows and words.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
unsafe fn with_rows<const ROWS: usize>(piece: &Piece<'_>, words: usize, a: Words<'_>, sums: &mut [Sums]) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut rows = Multiply { a: [a.data.as_ptr(); ROWS], sums: [[_mm512_setzero_ps(); 2]; ROWS] };
        for (row, sums) in sums.iter().enumerate() {
            rows.a[row] = a.data.as_ptr().add(row * a.stride);
            rows.sums[row] = [_mm512_loadu_ps(sums.as_ptr()), _mm512_loadu_ps(sums.as_ptr().add(HALF))];
        }
        let rows = with_numbers(piece, words, rows);
        for (sums, found) in sums.iter_mut().zip(rows.sums) {
            _mm512_storeu_ps(sums.as_mut_ptr(), found[0]);
            _mm512_storeu_ps(sums.as_mut_ptr().add(HALF), found[1]);
        }
    }
}

/// Picks the body for what codes stand for, and returns what it has done.
///
/// # Safety
/// The processor must have AVX-512 with BW and BF16; there must be so many words of codes, and `to`
/// must take all words of pairs that they make.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
unsafe fn with_numbers<T: Take>(piece: &Piece<'_>, words: usize, to: T) -> T {
    let coding = &piece.of.coding;
    // SAFETY: the caller's promise.
    unsafe {
        match (&coding.numbers, coding.bits) {
            (CodeNumbers::Signed, 8) => with_groups::<4, T>(piece, words, to, |word, at| signed::<24>(word, at)),
            (CodeNumbers::Signed, _) => with_groups::<8, T>(piece, words, to, |word, at| signed::<28>(word, at)),
            (CodeNumbers::Unsigned, 8) => with_groups::<4, T>(piece, words, to, |word, at| unsigned::<8>(word, at)),
            (CodeNumbers::Unsigned, _) => with_groups::<8, T>(piece, words, to, |word, at| unsigned::<4>(word, at)),
            (CodeNumbers::E4m3, _) => with_groups::<4, T>(piece, words, to, |word, at| e4m3(word, at)),
            (CodeNumbers::Table(table), _) => {
                let table = _mm512_loadu_ps(table.as_ptr());
                with_groups::<8, T>(piece, words, to, |word, at| {
                    let index = _mm512_srlv_epi32(word, _mm512_set1_epi32(4 * at as i32));
                    _mm512_permutexvar_ps(index, table)
                })
            }
        }
    }
}

/// The integer of `32 - SHIFT` bits with a sign at this place of each word.
///
/// # Safety
/// The processor must have AVX-512.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn signed<const SHIFT: u32>(word: __m512i, place: usize) -> __m512 {
    let left = SHIFT as i32 - (32 - SHIFT as i32) * place as i32;
    _mm512_cvtepi32_ps(_mm512_srai_epi32::<SHIFT>(_mm512_sllv_epi32(word, _mm512_set1_epi32(left))))
}

/// The integer of `BITS` bits without a sign at this place of each word.
///
/// # Safety
/// The processor must have AVX-512.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn unsigned<const BITS: i32>(word: __m512i, place: usize) -> __m512 {
    let right = _mm512_srlv_epi32(word, _mm512_set1_epi32(BITS * place as i32));
    _mm512_cvtepi32_ps(_mm512_and_si512(right, _mm512_set1_epi32((1 << BITS) - 1)))
}

/// The E4M3 float at this place of each word; see [`e4m3`](super::e4m3).
///
/// # Safety
/// The processor must have AVX-512.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn e4m3(word: __m512i, place: usize) -> __m512 {
    let code = _mm512_srlv_epi32(word, _mm512_set1_epi32(8 * place as i32));
    let magnitude = _mm512_and_si512(_mm512_sllv_epi32(code, _mm512_set1_epi32(20)), _mm512_set1_epi32(0x7f << 20));
    let magnitude = _mm512_mul_ps(_mm512_castsi512_ps(magnitude), _mm512_set1_ps(super::E4M3_BIAS));
    let sign = _mm512_and_si512(_mm512_sllv_epi32(code, _mm512_set1_epi32(24)), _mm512_set1_epi32(i32::MIN));
    _mm512_castsi512_ps(_mm512_or_si512(_mm512_castps_si512(magnitude), sign))
}

/// Picks the body for what groups have.
///
/// # Safety
/// As for [`with_numbers`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
unsafe fn with_groups<const PLACES: usize, T: Take>(
    piece: &Piece<'_>,
    words: usize,
    to: T,
    number: impl Fn(__m512i, usize) -> __m512 + Copy,
) -> T {
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

/// The loops: words of codes, and of each both halves of its lanes. What a group has is loaded once
/// for all of its words.
///
/// # Safety
/// As for [`with_numbers`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
unsafe fn run<const PLACES: usize, const ZEROS: bool, const MINIMA: bool, T: Take>(
    piece: &Piece<'_>,
    words: usize,
    mut to: T,
    number: impl Fn(__m512i, usize) -> __m512 + Copy,
) -> T {
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
    let Groups::Even(size) = piece.of.coding.groups else { return to };
    // SAFETY: every load is of half the lanes of a row that is there, as indices are checked; words are taken up to their
    // number.
    unsafe {
        let in_order = _mm512_loadu_si512(IN_ORDER.as_ptr().cast());
        let halves =
            |lanes: &Lanes| [_mm512_loadu_ps(lanes.as_ptr().cast()), _mm512_loadu_ps(lanes.as_ptr().add(HALF).cast())];
        let none = [_mm512_setzero_ps(); 2];
        let words_of_group = size / PLACES;
        let start = piece.columns.start / PLACES;
        let (mut from, mut group) = (0, start / words_of_group);
        while from < words {
            let end = words.min((group + 1) * words_of_group - start);
            let scales = halves(&piece.scales[group]);
            let zeros = if ZEROS { halves(&piece.zeros[group]) } else { none };
            let minima = if MINIMA { halves(&piece.minima[group]) } else { none };
            for (index, codes) in (from..end).zip(&piece.codes[from..end]) {
                prefetch(codes.as_ptr().wrapping_add(AHEAD));
                prefetch(codes.as_ptr().wrapping_add(AHEAD + HALF));
                for half in 0..2 {
                    let word = _mm512_loadu_si512(codes.as_ptr().add(half * HALF).cast());
                    let value = |place| {
                        let mut x = number(word, place);
                        if ZEROS {
                            x = _mm512_sub_ps(x, zeros[half]);
                        }
                        x = _mm512_mul_ps(x, scales[half]);
                        if MINIMA {
                            x = _mm512_sub_ps(x, minima[half]);
                        }
                        x
                    };
                    for pair in 0..PLACES / 2 {
                        let both = _mm512_cvtne2ps_pbh(value(2 * pair + 1), value(2 * pair));
                        let pairs = _mm512_permutexvar_epi16(in_order, transmute::<__m512bh, __m512i>(both));
                        to.take(index * (PLACES / 2) + pair, half, pairs);
                    }
                }
            }
            (from, group) = (end, group + 1);
        }
    }
    to
}
