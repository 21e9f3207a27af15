//! Integer products with the instructions of x86-64: AVX-512 with VNNI, AVX-VNNI, and AVX2.
//!
//! `VPDPBUSD` sums four products of a byte without sign and one with a sign, to each lane. Rows of eight bits are turned over for it.
//! `VPMADDUBSW` sums two of them in 16 bits, and stops at the largest number there. It never gets there: of codes of four bits
//! the sums are at most `2 · 15 · 127`; and codes of eight bits give it their magnitudes, and their signs to the row, at most
//! `2 · 128 · 127`.

use std::arch::x86_64::{
    __m256, __m256i, __m512, __m512i, _mm256_abs_epi8, _mm256_add_epi16, _mm256_add_epi32, _mm256_add_ps,
    _mm256_and_si256, _mm256_cvtepi32_ps, _mm256_dpbusd_avx_epi32, _mm256_fmadd_ps, _mm256_fnmadd_ps, _mm256_loadu_ps,
    _mm256_loadu_si256, _mm256_madd_epi16, _mm256_maddubs_epi16, _mm256_mul_ps, _mm256_set1_epi16, _mm256_set1_epi32,
    _mm256_set1_ps, _mm256_setzero_si256, _mm256_sign_epi8, _mm256_slli_epi32, _mm256_srli_epi32, _mm256_storeu_ps,
    _mm256_sub_epi32, _mm256_sub_ps, _mm256_xor_si256, _mm512_add_ps, _mm512_cvtepi32_ps, _mm512_dpbusd_epi32,
    _mm512_fmadd_ps, _mm512_fnmadd_ps, _mm512_loadu_ps, _mm512_loadu_si512, _mm512_mul_ps, _mm512_set1_epi32,
    _mm512_set1_ps, _mm512_setzero_si512, _mm512_slli_epi32, _mm512_srli_epi32, _mm512_storeu_ps, _mm512_sub_epi32,
    _mm512_sub_ps, _mm512_ternarylogic_epi32,
};
use std::marker::PhantomData;

use super::body::{Register, bytes, entry, halves, register};
use super::matrix::{Matrix, Multiplier};
use super::on_unit::OnUnit;
use crate::engine::packed::kernel::Kernel;
use crate::engine::packed::piece::{CodesOfPanel, Sums};
use crate::engine::packed::supported::Supported;
use crate::engine::packed::unit::HasByteUnit;

/// The proof that products are to be made in integers, and that this processor has the instructions.
#[derive(Clone, Copy)]
pub(in crate::engine::packed) struct HasIntegers {
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
    pub(in crate::engine::packed) fn of(kernel: Supported) -> Option<Self> {
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
    pub(super) fn and_what_others_use(self) -> impl Iterator<Item = Self> {
        let without = (self.body == Body::AvxVnni).then_some(Self { body: Body::Avx2, ..self });
        [self].into_iter().chain(without)
    }

    /// The unit, for so many rows of a matrix that it multiplies.
    pub(super) fn unit(self, matrix: &Matrix<'_>, rows: usize) -> Option<OnUnit> {
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

entry!(bytes_512, "avx512f,avx512bw,avx512vnni", bytes::<Avx512, 2>, MOST_512, 1 2 3 4 5 6 7 8 9 10 11);
entry!(halves_512, "avx512f,avx512bw,avx512vnni", halves::<Avx512, 2>, MOST_512, 1 2 3 4 5 6 7 8 9 10 11);
entry!(bytes_vnni, "avx2,fma,avxvnni", bytes::<Bits256<AvxVnni>, 2>, MOST_256, 1 2 3);
entry!(halves_vnni, "avx2,fma,avxvnni", halves::<Bits256<AvxVnni>, 2>, MOST_256, 1 2 3);
entry!(bytes_256, "avx2,fma", bytes::<Bits256<Avx2>, 2>, MOST_256, 1 2 3);
entry!(halves_256, "avx2,fma", halves::<Bits256<Avx2>, 2>, MOST_256, 1 2 3);

/// Registers of 512 bits, with VNNI.
struct Avx512;

register! {
    impl Register for Avx512: [__m512i, __m512], 16 lanes, turned over: true;
    fn zero() -> __m512i = _mm512_setzero_si512();
    fn splat(word: u32) -> __m512i = _mm512_set1_epi32(word.cast_signed());
    fn load(words: *const u32) -> __m512i = _mm512_loadu_si512(words.cast());
    fn dot(sum: __m512i, row: __m512i, codes: __m512i) -> __m512i = _mm512_dpbusd_epi32(sum, row, codes);
    fn less_128(sum: __m512i, of_codes: __m512i) -> __m512i = _mm512_sub_epi32(sum, _mm512_slli_epi32::<7>(of_codes));
    fn halves(codes: __m512i, flip: __m512i) -> [__m512i; 2] = {
        /// `(a ^ b) & c`, as a table of its bits.
        const TURNED_OVER: i32 = 0b0010_1000;
        let lowest = _mm512_set1_epi32(0x0f0f_0f0f);
        [codes, _mm512_srli_epi32::<4>(codes)].map(|codes| _mm512_ternarylogic_epi32::<TURNED_OVER>(codes, flip, lowest))
    };
    fn dot_halves(sum: __m512i, codes: [__m512i; 2], row: [__m512i; 2]) -> __m512i =
        _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(sum, codes[0], row[0]), codes[1], row[1]);
    fn floats(integers: __m512i) -> __m512 = _mm512_cvtepi32_ps(integers);
    fn splat_float(x: f32) -> __m512 = _mm512_set1_ps(x);
    fn load_floats(x: *const f32) -> __m512 = _mm512_loadu_ps(x);
    fn store(place: *mut f32, x: __m512) -> () = _mm512_storeu_ps(place, x);
    fn add(a: __m512, b: __m512) -> __m512 = _mm512_add_ps(a, b);
    fn sub(a: __m512, b: __m512) -> __m512 = _mm512_sub_ps(a, b);
    fn mul(a: __m512, b: __m512) -> __m512 = _mm512_mul_ps(a, b);
    fn mul_add(a: __m512, b: __m512, c: __m512) -> __m512 = _mm512_fmadd_ps(a, b, c);
    fn neg_mul_add(a: __m512, b: __m512, c: __m512) -> __m512 = _mm512_fnmadd_ps(a, b, c);
}

/// Registers of 256 bits, with products by `D`.
struct Bits256<D>(PhantomData<D>);

/// How products are made in registers of 256 bits; see [`Register`].
trait Dot {
    const TURNED_OVER: bool;
    unsafe fn dot(sum: __m256i, row: __m256i, codes: __m256i) -> __m256i;
    unsafe fn dot_halves(sum: __m256i, codes: [__m256i; 2], row: [__m256i; 2]) -> __m256i;
}

register! {
    impl<D: Dot> Register for Bits256<D>: [__m256i, __m256], 8 lanes, turned over: D::TURNED_OVER;
    fn zero() -> __m256i = _mm256_setzero_si256();
    fn splat(word: u32) -> __m256i = _mm256_set1_epi32(word.cast_signed());
    fn load(words: *const u32) -> __m256i = _mm256_loadu_si256(words.cast());
    fn dot(sum: __m256i, row: __m256i, codes: __m256i) -> __m256i = D::dot(sum, row, codes);
    fn less_128(sum: __m256i, of_codes: __m256i) -> __m256i = _mm256_sub_epi32(sum, _mm256_slli_epi32::<7>(of_codes));
    fn halves(codes: __m256i, flip: __m256i) -> [__m256i; 2] = {
        let lowest = _mm256_set1_epi32(0x0f0f_0f0f);
        [codes, _mm256_srli_epi32::<4>(codes)].map(|codes| _mm256_xor_si256(_mm256_and_si256(codes, lowest), flip))
    };
    fn dot_halves(sum: __m256i, codes: [__m256i; 2], row: [__m256i; 2]) -> __m256i = D::dot_halves(sum, codes, row);
    fn floats(integers: __m256i) -> __m256 = _mm256_cvtepi32_ps(integers);
    fn splat_float(x: f32) -> __m256 = _mm256_set1_ps(x);
    fn load_floats(x: *const f32) -> __m256 = _mm256_loadu_ps(x);
    fn store(place: *mut f32, x: __m256) -> () = _mm256_storeu_ps(place, x);
    fn add(a: __m256, b: __m256) -> __m256 = _mm256_add_ps(a, b);
    fn sub(a: __m256, b: __m256) -> __m256 = _mm256_sub_ps(a, b);
    fn mul(a: __m256, b: __m256) -> __m256 = _mm256_mul_ps(a, b);
    fn mul_add(a: __m256, b: __m256, c: __m256) -> __m256 = _mm256_fmadd_ps(a, b, c);
    fn neg_mul_add(a: __m256, b: __m256, c: __m256) -> __m256 = _mm256_fnmadd_ps(a, b, c);
}

/// Products by AVX-VNNI.
struct AvxVnni;

impl Dot for AvxVnni {
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
struct Avx2;

impl Dot for Avx2 {
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
