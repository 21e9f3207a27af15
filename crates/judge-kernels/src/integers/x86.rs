//! Integer products with the instructions of x86-64: AVX-512 with VNNI, AVX-VNNI, and AVX2.
//!
//! `VPDPBUSD` sums four products of a byte without sign and one with a sign, to each lane. Rows of eight bits are turned over for it.
//! `VPMADDUBSW` sums two of them in 16 bits, and stops at the largest number there. It never gets there: of codes of four bits
//! the sums are at most `2 · 15 · 127`; and codes of eight bits give it their magnitudes, and their signs to the row, at most
//! `2 · 128 · 127`.

use std::arch::x86_64::{
    __m256i, __m512i, _mm256_abs_epi8, _mm256_add_epi16, _mm256_add_epi32, _mm256_dpbusd_avx_epi32, _mm256_madd_epi16,
    _mm256_maddubs_epi16, _mm256_set1_epi16, _mm256_sign_epi8, _mm512_dpbusd_epi32,
};

use super::body::{Dots, bytes, entry, halves};
use super::matrix::{Matrix, Multiplier};
use super::on_unit::OnUnit;
use crate::kernel::Kernel;
use crate::piece::{CodesOfPanel, Sums};
use crate::registers::{Avx2, Avx512};
use crate::supported::Supported;
use crate::unit::HasByteUnit;

/// The proof that products are to be made in integers, and that this processor has the instructions.
#[derive(Clone, Copy)]
pub(crate) struct HasIntegers {
    /// The instructions for rows.
    body: Body,
    /// The matrix unit, where whole tiles are multiplied with it.
    unit: Option<HasByteUnit>,
}

/// Instructions for rows.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Body {
    /// AVX-512 with VNNI.
    Avx512,
    /// AVX-VNNI.
    AvxVnni,
    /// AVX2.
    Avx2,
}

impl HasIntegers {
    /// The proof, if `kernel` is one that multiplies integers. Whatever has a unit for bytes has VNNI.
    pub(crate) fn of(kernel: Supported) -> Option<Self> {
        let body = match kernel.kernel() {
            Kernel::Avx512Vnni | Kernel::AmxInt8 => Body::Avx512,
            Kernel::Avx2Int8 if is_x86_feature_detected!("avxvnni") => Body::AvxVnni,
            Kernel::Avx2Int8 => Body::Avx2,
            _ => return None,
        };
        Some(Self { body, unit: HasByteUnit::of(kernel) })
    }

    /// All bodies that stand for this one: what a processor without AVX-VNNI would use, too.
    #[cfg(test)]
    pub(crate) fn and_what_others_use(self) -> impl Iterator<Item = Self> {
        let without = (self.body == Body::AvxVnni).then_some(Self { body: Body::Avx2, ..self });
        [self].into_iter().chain(without)
    }

    /// The unit, for so many rows of a matrix that it multiplies.
    pub(crate) fn unit(self, matrix: &Matrix<'_>, rows: usize) -> Option<OnUnit> {
        OnUnit::of(self.unit?, matrix, rows)
    }
}

impl Multiplier for HasIntegers {
    type Held = Self;

    const STRIP: usize = 1;

    fn hold(self) -> Self {
        self
    }

    fn rows_at_once(self) -> usize {
        match self.body {
            Body::Avx512 => MOST_512,
            Body::AvxVnni | Body::Avx2 => MOST_256,
        }
    }

    fn flip(self, bits: usize) -> u8 {
        if bits == 8 && self.body != Body::Avx2 { 0x80 } else { 0 }
    }

    fn multiply(held: &Self, matrix: &Matrix<'_>, panel: CodesOfPanel<'_>, rows: &[u32], sums: &mut [Sums]) {
        matrix.check(panel, rows, sums);
        assert!(sums.len() <= held.rows_at_once());
        // SAFETY: the processor has the instructions; rows and panel have all that there must be.
        unsafe {
            match (held.body, matrix.codes.bits) {
                (Body::Avx512, 8) => bytes_512(matrix, panel, rows, sums),
                (Body::Avx512, _) => halves_512(matrix, panel, rows, sums),
                (Body::AvxVnni, 8) => bytes_vnni(matrix, panel, rows, sums),
                (Body::AvxVnni, _) => halves_vnni(matrix, panel, rows, sums),
                (Body::Avx2, 8) => bytes_256(matrix, panel, rows, sums),
                (Body::Avx2, _) => halves_256(matrix, panel, rows, sums),
            }
        }
    }
}

/// Rows whose sums stay in registers of 512 bits: 24 of 32.
const MOST_512: usize = 12;

/// Rows whose sums stay in registers of 256 bits: 8 of 16.
const MOST_256: usize = 4;

entry!(bytes_512, "avx512f,avx512bw,avx512vnni", bytes::<Vnni, 2>, MOST_512, 1 2 3 4 5 6 7 8 9 10 11);
entry!(halves_512, "avx512f,avx512bw,avx512vnni", halves::<Vnni, 2>, MOST_512, 1 2 3 4 5 6 7 8 9 10 11);
entry!(bytes_vnni, "avx2,fma,avxvnni", bytes::<AvxVnni, 2>, MOST_256, 1 2 3);
entry!(halves_vnni, "avx2,fma,avxvnni", halves::<AvxVnni, 2>, MOST_256, 1 2 3);
entry!(bytes_256, "avx2,fma", bytes::<MultiplyAdd, 2>, MOST_256, 1 2 3);
entry!(halves_256, "avx2,fma", halves::<MultiplyAdd, 2>, MOST_256, 1 2 3);

/// Products by VNNI of AVX-512.
struct Vnni;

impl Dots for Vnni {
    type Of = Avx512;

    const TURNED_OVER: bool = true;

    #[inline(always)]
    unsafe fn dot(sum: __m512i, row: __m512i, codes: __m512i) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_dpbusd_epi32(sum, row, codes) }
    }

    #[inline(always)]
    unsafe fn dot_halves(sum: __m512i, codes: [__m512i; 2], row: [__m512i; 2]) -> __m512i {
        // SAFETY: the caller's promise.
        unsafe { _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(sum, codes[0], row[0]), codes[1], row[1]) }
    }
}

/// Products by AVX-VNNI.
struct AvxVnni;

impl Dots for AvxVnni {
    type Of = Avx2;

    const TURNED_OVER: bool = true;

    #[inline(always)]
    unsafe fn dot(sum: __m256i, row: __m256i, codes: __m256i) -> __m256i {
        // SAFETY: the caller's promise.
        unsafe { _mm256_dpbusd_avx_epi32(sum, row, codes) }
    }

    #[inline(always)]
    unsafe fn dot_halves(sum: __m256i, codes: [__m256i; 2], row: [__m256i; 2]) -> __m256i {
        // SAFETY: the caller's promise.
        unsafe { _mm256_dpbusd_avx_epi32(_mm256_dpbusd_avx_epi32(sum, codes[0], row[0]), codes[1], row[1]) }
    }
}

/// Products by AVX2 alone.
struct MultiplyAdd;

impl Dots for MultiplyAdd {
    type Of = Avx2;

    const TURNED_OVER: bool = false;

    #[inline(always)]
    unsafe fn dot(sum: __m256i, row: __m256i, codes: __m256i) -> __m256i {
        // SAFETY: the caller's promise.
        unsafe {
            let pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(codes), _mm256_sign_epi8(row, codes));
            _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
        }
    }

    #[inline(always)]
    unsafe fn dot_halves(sum: __m256i, codes: [__m256i; 2], row: [__m256i; 2]) -> __m256i {
        // SAFETY: the caller's promise.
        unsafe {
            let [even, odd] = [0, 1].map(|half| _mm256_maddubs_epi16(codes[half], row[half]));
            _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_add_epi16(even, odd), _mm256_set1_epi16(1)))
        }
    }
}
