//! Registers of x86-64: those of AVX-512, and those of AVX2 with FMA.

use std::arch::x86_64::{
    __m256, __m256i, __m512, __m512i, _mm256_add_epi32, _mm256_add_ps, _mm256_and_si256, _mm256_blendv_ps,
    _mm256_castps_si256, _mm256_castsi256_ps, _mm256_cvtepi32_ps, _mm256_fmadd_ps, _mm256_fnmadd_ps, _mm256_loadu_ps,
    _mm256_loadu_si256, _mm256_mul_ps, _mm256_or_si256, _mm256_permutevar8x32_ps, _mm256_set1_epi32, _mm256_set1_ps,
    _mm256_sllv_epi32, _mm256_srav_epi32, _mm256_srlv_epi32, _mm256_storeu_ps, _mm256_storeu_si256, _mm256_sub_epi32,
    _mm256_sub_ps, _mm256_xor_si256, _mm512_add_epi32, _mm512_add_ps, _mm512_and_si512, _mm512_castps_si512,
    _mm512_castsi512_ps, _mm512_cvtepi32_ps, _mm512_fmadd_ps, _mm512_fnmadd_ps, _mm512_loadu_ps, _mm512_loadu_si512,
    _mm512_mask_blend_epi32, _mm512_mul_ps, _mm512_or_si512, _mm512_permutexvar_ps, _mm512_set1_epi32, _mm512_set1_ps,
    _mm512_sllv_epi32, _mm512_srav_epi32, _mm512_srlv_epi32, _mm512_storeu_ps, _mm512_storeu_si512, _mm512_sub_epi32,
    _mm512_sub_ps, _mm512_ternarylogic_epi32, _mm512_test_epi32_mask,
};

use super::{Register, register};

/// Registers of 512 bits: AVX-512F.
pub(crate) struct Avx512;

/// Registers of 256 bits: AVX2 and FMA.
pub(crate) struct Avx2;

/// What bf16 keeps of an f32.
const UPPER: i32 = 0xffff_0000_u32.cast_signed();

register! {
    impl Register for Avx512: [__m512i, __m512, __m512], 16 lanes, integers are looked up: true;
    fn splat(word: u32) -> __m512i = _mm512_set1_epi32(word.cast_signed());
    fn load(words: *const u32) -> __m512i = _mm512_loadu_si512(words.cast());
    fn store(place: *mut u32, x: __m512i) = _mm512_storeu_si512(place.cast(), x);
    fn and(a: __m512i, b: __m512i) -> __m512i = _mm512_and_si512(a, b);
    fn or(a: __m512i, b: __m512i) -> __m512i = _mm512_or_si512(a, b);
    fn xor_and(a: __m512i, b: __m512i, c: __m512i) -> __m512i = {
        /// `(a ^ b) & c`, as a table of its bits.
        const XOR_AND: i32 = 0b0010_1000;
        _mm512_ternarylogic_epi32::<XOR_AND>(a, b, c)
    };
    fn sub_integers(a: __m512i, b: __m512i) -> __m512i = _mm512_sub_epi32(a, b);
    fn left(x: __m512i, by: u32) -> __m512i = _mm512_sllv_epi32(x, Self::splat(by));
    fn right(x: __m512i, by: u32) -> __m512i = _mm512_srlv_epi32(x, Self::splat(by));
    fn right_signed(x: __m512i, by: u32) -> __m512i = _mm512_srav_epi32(x, Self::splat(by));
    fn floats(integers: __m512i) -> __m512 = _mm512_cvtepi32_ps(integers);
    fn bits(x: __m512) -> __m512i = _mm512_castps_si512(x);
    fn of_bits(x: __m512i) -> __m512 = _mm512_castsi512_ps(x);
    fn bf16_bits(x: __m512) -> __m512i = {
        let bits = _mm512_castps_si512(x);
        let is_odd = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(1 << 16));
        let half = _mm512_mask_blend_epi32(is_odd, _mm512_set1_epi32(0x7fff), _mm512_set1_epi32(0x8000));
        _mm512_and_si512(_mm512_add_epi32(bits, half), _mm512_set1_epi32(UPPER))
    };
    fn table(entries: &[f32; 16]) -> __m512 = _mm512_loadu_ps(entries.as_ptr());
    fn look_up(table: __m512, places: __m512i) -> __m512 = _mm512_permutexvar_ps(places, table);
    fn splat_float(x: f32) -> __m512 = _mm512_set1_ps(x);
    fn load_floats(x: *const f32) -> __m512 = _mm512_loadu_ps(x);
    fn store_floats(place: *mut f32, x: __m512) = _mm512_storeu_ps(place, x);
    fn add(a: __m512, b: __m512) -> __m512 = _mm512_add_ps(a, b);
    fn sub(a: __m512, b: __m512) -> __m512 = _mm512_sub_ps(a, b);
    fn mul(a: __m512, b: __m512) -> __m512 = _mm512_mul_ps(a, b);
    fn mul_add(a: __m512, b: __m512, c: __m512) -> __m512 = _mm512_fmadd_ps(a, b, c);
    fn neg_mul_add(a: __m512, b: __m512, c: __m512) -> __m512 = _mm512_fnmadd_ps(a, b, c);
}

register! {
    impl Register for Avx2: [__m256i, __m256, [__m256; 2]], 8 lanes, integers are looked up: false;
    fn splat(word: u32) -> __m256i = _mm256_set1_epi32(word.cast_signed());
    fn load(words: *const u32) -> __m256i = _mm256_loadu_si256(words.cast());
    fn store(place: *mut u32, x: __m256i) = _mm256_storeu_si256(place.cast(), x);
    fn and(a: __m256i, b: __m256i) -> __m256i = _mm256_and_si256(a, b);
    fn or(a: __m256i, b: __m256i) -> __m256i = _mm256_or_si256(a, b);
    fn xor_and(a: __m256i, b: __m256i, c: __m256i) -> __m256i = _mm256_and_si256(_mm256_xor_si256(a, b), c);
    fn sub_integers(a: __m256i, b: __m256i) -> __m256i = _mm256_sub_epi32(a, b);
    fn left(x: __m256i, by: u32) -> __m256i = _mm256_sllv_epi32(x, Self::splat(by));
    fn right(x: __m256i, by: u32) -> __m256i = _mm256_srlv_epi32(x, Self::splat(by));
    fn right_signed(x: __m256i, by: u32) -> __m256i = _mm256_srav_epi32(x, Self::splat(by));
    fn floats(integers: __m256i) -> __m256 = _mm256_cvtepi32_ps(integers);
    fn bits(x: __m256) -> __m256i = _mm256_castps_si256(x);
    fn of_bits(x: __m256i) -> __m256 = _mm256_castsi256_ps(x);
    fn bf16_bits(x: __m256) -> __m256i = {
        let bits = _mm256_castps_si256(x);
        let is_odd = Self::and(Self::right(bits, 16), _mm256_set1_epi32(1));
        let half = _mm256_add_epi32(is_odd, _mm256_set1_epi32(0x7fff));
        _mm256_and_si256(_mm256_add_epi32(bits, half), _mm256_set1_epi32(UPPER))
    };
    fn table(entries: &[f32; 16]) -> [__m256; 2] = [0, 8].map(|half| _mm256_loadu_ps(entries.as_ptr().add(half)));
    fn look_up(table: [__m256; 2], places: __m256i) -> __m256 = {
        let [lower, upper] = table.map(|half| _mm256_permutevar8x32_ps(half, places));
        _mm256_blendv_ps(lower, upper, _mm256_castsi256_ps(Self::left(places, 28)))
    };
    fn splat_float(x: f32) -> __m256 = _mm256_set1_ps(x);
    fn load_floats(x: *const f32) -> __m256 = _mm256_loadu_ps(x);
    fn store_floats(place: *mut f32, x: __m256) = _mm256_storeu_ps(place, x);
    fn add(a: __m256, b: __m256) -> __m256 = _mm256_add_ps(a, b);
    fn sub(a: __m256, b: __m256) -> __m256 = _mm256_sub_ps(a, b);
    fn mul(a: __m256, b: __m256) -> __m256 = _mm256_mul_ps(a, b);
    fn mul_add(a: __m256, b: __m256, c: __m256) -> __m256 = _mm256_fmadd_ps(a, b, c);
    fn neg_mul_add(a: __m256, b: __m256, c: __m256) -> __m256 = _mm256_fnmadd_ps(a, b, c);
}
