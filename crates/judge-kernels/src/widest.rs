//! [`widest`]: plain loops, compiled for the widest vector instructions that the processor has; and
//! [`rounded`] and [`halved`], which such loops can be made of.
//!
//! Arithmetic along rows is written as plain loops, which the compiler turns into vector
//! instructions. What it may use without a look at the processor is 16 bytes wide on x86-64. This
//! file lets a loop be compiled several times and picks one of them as it runs. No body is fused or
//! reordered by that, so results have the same bits.

use std::ops::AddAssign;

use pulp::{Arch, Simd, WithSimd};

/// Runs `body`, which should be marked `#[inline(always)]`: what is not inlined keeps narrow
/// instructions.
///
/// A closure given to `Arch::dispatch` itself is called through a function of its own, which is
/// often not inlined; this is why there is a type for it here.
#[inline(always)]
pub fn widest<R>(body: impl FnMut() -> R) -> R {
    Arch::new().dispatch(Body(body))
}

/// A body to be compiled several times.
struct Body<F>(F);

impl<R, F: FnMut() -> R> WithSimd for Body<F> {
    type Output = R;

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, _: S) -> R {
        (self.0)()
    }
}

/// The sum of sixteen partial sums: `0..8 += 8..16`, `0..4 += 4..8`, `0..2 += 2..4`, `0 += 1`.
#[inline(always)]
pub fn halved<T: Copy + AddAssign>(mut sums: [T; 16]) -> T {
    for half in [8, 4, 2, 1] {
        let (left, right) = sums.split_at_mut(half);
        left.iter_mut().zip(right).for_each(|(left, right)| *left += *right);
    }
    sums[0]
}

/// The nearest integer, ties to even, in two's complement in the lowest 22 bits; those above are
/// unspecified. For numbers from `-2^21` to `2^21`. Adding `1.5 · 2^23` leaves no bits for a fraction,
/// and unlike a conversion needs no instruction that some processors lack.
#[inline(always)]
pub fn rounded(x: f32) -> u32 {
    (x + 12_582_912.0).to_bits()
}
