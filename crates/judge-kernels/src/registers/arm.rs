//! Registers of ARM processors of 64 bits: those of NEON.

use std::arch::aarch64::{
    float32x4_t, uint8x16x4_t, uint32x4_t, vaddq_f32, vaddq_u32, vandq_u32, vcvtq_f32_s32, vdupq_n_f32, vdupq_n_s32,
    vdupq_n_u32, veorq_u32, vfmaq_f32, vfmsq_f32, vld1q_f32, vld1q_u8_x4, vld1q_u32, vmulq_f32, vmulq_u32, vorrq_u32,
    vqtbl4q_u8, vreinterpretq_f32_u8, vreinterpretq_f32_u32, vreinterpretq_s32_u32, vreinterpretq_u8_u32,
    vreinterpretq_u32_f32, vreinterpretq_u32_s32, vshlq_s32, vshlq_u32, vst1q_f32, vst1q_u32, vsubq_f32, vsubq_u32,
};

use super::{Register, register};

/// Registers of 128 bits.
pub(crate) struct Neon;

register! {
    impl Register for Neon: [uint32x4_t, float32x4_t, uint8x16x4_t], 4 lanes, integers are looked up: false;
    fn splat(word: u32) -> uint32x4_t = vdupq_n_u32(word);
    fn load(words: *const u32) -> uint32x4_t = vld1q_u32(words);
    fn store(place: *mut u32, x: uint32x4_t) = vst1q_u32(place, x);
    fn and(a: uint32x4_t, b: uint32x4_t) -> uint32x4_t = vandq_u32(a, b);
    fn or(a: uint32x4_t, b: uint32x4_t) -> uint32x4_t = vorrq_u32(a, b);
    fn xor_and(a: uint32x4_t, b: uint32x4_t, c: uint32x4_t) -> uint32x4_t = vandq_u32(veorq_u32(a, b), c);
    fn sub_integers(a: uint32x4_t, b: uint32x4_t) -> uint32x4_t = vsubq_u32(a, b);
    fn left(x: uint32x4_t, by: u32) -> uint32x4_t = vshlq_u32(x, vdupq_n_s32(by.cast_signed()));
    fn right(x: uint32x4_t, by: u32) -> uint32x4_t = vshlq_u32(x, vdupq_n_s32(-by.cast_signed()));
    fn right_signed(x: uint32x4_t, by: u32) -> uint32x4_t =
        vreinterpretq_u32_s32(vshlq_s32(vreinterpretq_s32_u32(x), vdupq_n_s32(-by.cast_signed())));
    fn floats(integers: uint32x4_t) -> float32x4_t = vcvtq_f32_s32(vreinterpretq_s32_u32(integers));
    fn bits(x: float32x4_t) -> uint32x4_t = vreinterpretq_u32_f32(x);
    fn of_bits(x: uint32x4_t) -> float32x4_t = vreinterpretq_f32_u32(x);
    fn bf16_bits(x: float32x4_t) -> uint32x4_t = {
        let bits = vreinterpretq_u32_f32(x);
        let is_odd = vandq_u32(Self::right(bits, 16), vdupq_n_u32(1));
        let half = vaddq_u32(is_odd, vdupq_n_u32(0x7fff));
        vandq_u32(vaddq_u32(bits, half), vdupq_n_u32(0xffff_0000))
    };
    fn table(entries: &[f32; 16]) -> uint8x16x4_t = vld1q_u8_x4(entries.as_ptr().cast());
    fn look_up(table: uint8x16x4_t, places: uint32x4_t) -> float32x4_t = {
        // The four bytes of a float, the lowest first.
        let first = vmulq_u32(vandq_u32(places, vdupq_n_u32(15)), vdupq_n_u32(0x0404_0404));
        let bytes = vaddq_u32(first, vdupq_n_u32(0x0302_0100));
        vreinterpretq_f32_u8(vqtbl4q_u8(table, vreinterpretq_u8_u32(bytes)))
    };
    fn splat_float(x: f32) -> float32x4_t = vdupq_n_f32(x);
    fn load_floats(x: *const f32) -> float32x4_t = vld1q_f32(x);
    fn store_floats(place: *mut f32, x: float32x4_t) = vst1q_f32(place, x);
    fn add(a: float32x4_t, b: float32x4_t) -> float32x4_t = vaddq_f32(a, b);
    fn sub(a: float32x4_t, b: float32x4_t) -> float32x4_t = vsubq_f32(a, b);
    fn mul(a: float32x4_t, b: float32x4_t) -> float32x4_t = vmulq_f32(a, b);
    fn mul_add(a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t = vfmaq_f32(c, a, b);
    fn neg_mul_add(a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t = vfmsq_f32(c, a, b);
}
