//! Integer products with NEON's dot products, `SDOT`, whose bytes both have signs.

use std::arch::aarch64::{
    float32x4_t, uint32x4_t, vaddq_f32, vandq_u32, vcvtq_f32_s32, vdupq_n_f32, vdupq_n_u32, veorq_u32, vfmaq_f32,
    vfmsq_f32, vld1q_f32, vld1q_u32, vmulq_f32, vreinterpretq_s32_u32, vshlq_n_u32, vshrq_n_u32, vst1q_f32, vsubq_f32,
    vsubq_u32,
};
use std::arch::asm;

use super::body::{Register, bytes, entry, halves, register};
use super::matrix::{Matrix, Multiplier};
use crate::engine::packed::kernel::Kernel;
use crate::engine::packed::piece::{CodesOfPanel, Sums};
use crate::engine::packed::supported::Supported;

/// The proof that products are to be made in integers, and that this processor has the instructions.
#[derive(Clone, Copy)]
pub(in crate::engine::packed) struct HasIntegers(());

impl HasIntegers {
    /// The proof, if `kernel` is one that multiplies integers.
    pub(in crate::engine::packed) fn of(kernel: Supported) -> Option<Self> {
        (kernel.kernel() == Kernel::NeonInt8).then_some(Self(()))
    }

    /// All bodies that stand for this one.
    #[cfg(test)]
    pub(super) fn and_what_others_use(self) -> impl Iterator<Item = Self> {
        [self].into_iter()
    }
}

impl Multiplier for HasIntegers {
    type Held = Self;

    const STRIP: usize = 1;

    fn hold(self) -> Self {
        self
    }

    fn rows_at_once(self) -> usize {
        MOST
    }

    fn flip(self, _: usize) -> u8 {
        0
    }

    fn multiply(held: &Self, matrix: &Matrix<'_>, panel: CodesOfPanel<'_>, rows: &[u32], sums: &mut [Sums]) {
        matrix.check(panel, rows, sums);
        assert!(sums.len() <= held.rows_at_once());
        // SAFETY: the processor has the instructions; rows and panel have all that there must be.
        unsafe {
            match matrix.codes.bits {
                8 => bytes_of_rows(matrix, panel, rows, sums),
                _ => halves_of_rows(matrix, panel, rows, sums),
            }
        }
    }
}

/// Rows whose sums stay in registers, four of each: 24 of 32.
const MOST: usize = 6;

entry!(bytes_of_rows, "neon,dotprod", bytes::<Neon, 4>, MOST, 1 2 3 4 5);
entry!(halves_of_rows, "neon,dotprod", halves::<Neon, 4>, MOST, 1 2 3 4 5);

/// Registers of 128 bits.
struct Neon;

register! {
    impl Register for Neon: [uint32x4_t, float32x4_t], 4 lanes, turned over: false;
    fn zero() -> uint32x4_t = vdupq_n_u32(0);
    fn splat(word: u32) -> uint32x4_t = vdupq_n_u32(word);
    fn load(words: *const u32) -> uint32x4_t = vld1q_u32(words);
    fn dot(sum: uint32x4_t, row: uint32x4_t, codes: uint32x4_t) -> uint32x4_t = sdot(sum, row, codes);
    fn less_128(sum: uint32x4_t, of_codes: uint32x4_t) -> uint32x4_t = vsubq_u32(sum, vshlq_n_u32::<7>(of_codes));
    fn halves(codes: uint32x4_t, flip: uint32x4_t) -> [uint32x4_t; 2] = {
        let lowest = vdupq_n_u32(0x0f0f_0f0f);
        [codes, vshrq_n_u32::<4>(codes)].map(|codes| veorq_u32(vandq_u32(codes, lowest), flip))
    };
    fn dot_halves(sum: uint32x4_t, codes: [uint32x4_t; 2], row: [uint32x4_t; 2]) -> uint32x4_t =
        sdot(sdot(sum, codes[0], row[0]), codes[1], row[1]);
    fn floats(integers: uint32x4_t) -> float32x4_t = vcvtq_f32_s32(vreinterpretq_s32_u32(integers));
    fn splat_float(x: f32) -> float32x4_t = vdupq_n_f32(x);
    fn load_floats(x: *const f32) -> float32x4_t = vld1q_f32(x);
    fn store(place: *mut f32, x: float32x4_t) -> () = vst1q_f32(place, x);
    fn add(a: float32x4_t, b: float32x4_t) -> float32x4_t = vaddq_f32(a, b);
    fn sub(a: float32x4_t, b: float32x4_t) -> float32x4_t = vsubq_f32(a, b);
    fn mul(a: float32x4_t, b: float32x4_t) -> float32x4_t = vmulq_f32(a, b);
    fn mul_add(a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t = vfmaq_f32(c, a, b);
    fn neg_mul_add(a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t = vfmsq_f32(c, a, b);
}

/// `sum + Σ a · b` of each lane's four bytes, which have signs. The standard library has no stable function for it.
///
/// # Safety
/// The processor must have NEON with dot products.
#[inline]
#[target_feature(enable = "neon,dotprod")]
unsafe fn sdot(mut sum: uint32x4_t, a: uint32x4_t, b: uint32x4_t) -> uint32x4_t {
    // SAFETY: the instruction reads and writes registers alone.
    unsafe {
        asm!(
            "sdot {sum:v}.4s, {a:v}.16b, {b:v}.16b",
            sum = inout(vreg) sum, a = in(vreg) a, b = in(vreg) b, options(pure, nomem, nostack, preserves_flags),
        );
    }
    sum
}
