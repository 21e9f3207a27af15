//! Walks over a row of logits that the compiler can make with vector instructions: the largest of
//! them, and a sum over all. `sampling` and `next_token` are built of these two.
//!
//! Numbers are taken [`SIDE_BY_SIDE`] at a time, each into a sum of its own, and what does not fill
//! the last such piece is added at the end. So a result has the same bits on every machine, whatever
//! instructions it has.
use judge_kernels::widest::widest;

/// Numbers that are compared or added side by side. Another number makes other last bits.
const SIDE_BY_SIDE: usize = 16;

/// The largest of some numbers, none of which is NaN; minus infinity of none.
pub(super) fn highest(numbers: &[f32]) -> f32 {
    widest(
        #[inline(always)]
        || {
            let mut best = [f32::NEG_INFINITY; SIDE_BY_SIDE];
            let (chunks, rest) = numbers.as_chunks::<SIDE_BY_SIDE>();
            for chunk in chunks {
                best.iter_mut().zip(chunk).for_each(|(best, &x)| *best = if x > *best { x } else { *best });
            }
            best.iter().chain(rest).copied().fold(f32::NEG_INFINITY, f32::max)
        },
    )
}

/// The sum of `term` over some numbers.
#[inline(always)]
pub(super) fn sum(numbers: &[f32], term: impl Fn(f32) -> f64) -> f64 {
    widest(
        #[inline(always)]
        || {
            let mut sums = [0.0_f64; SIDE_BY_SIDE];
            let (chunks, rest) = numbers.as_chunks::<SIDE_BY_SIDE>();
            for chunk in chunks {
                sums.iter_mut().zip(chunk).for_each(|(sum, &x)| *sum += term(x));
            }
            sums.iter().sum::<f64>() + rest.iter().map(|&x| term(x)).sum::<f64>()
        },
    )
}
