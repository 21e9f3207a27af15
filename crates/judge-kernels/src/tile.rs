//! Small products: rows times one tile of weights, keys or values, in bf16 or f32, with f32 sums.
//!
//! `pack.rs` (weights), `attention.rs` (scores) and `gather.rs` (values) cut their work into calls
//! of [`multiply_add`]. This file owns the choice of the body for a kernel. `tile/any.rs` has the
//! portable bodies, `tile/body.rs` the loops for all registers, `tile/x86.rs` and `tile/arm.rs` the entries to them. The matrix unit has
//! its own, in `unit.rs`.
//!
//! Numbers lie in words, see [`Word`]:
//!
//! ```text
//! a    [rows][words]      row by row, a_stride apart          out[row][lane] += Σ_word a[row][word] · b[word][lane]
//! b    [words][lanes]     a tile: one row for each word       where the product of two pairs is the sum of the
//! out  [rows][lanes]      f32, out_stride apart               products of their first and of their second numbers
//! ```
//!
//! The work is cut into blocks of some rows by 32 lanes, whose sums stay in registers over all
//! words:
//!
//! | kernel | pairs: rows in a block | single numbers: rows in a block |
//! |---|---|---|
//! | `amx`, `avx512-bf16` | `VDPBF16PS`: 12 | fused multiply-add: 12 |
//! | `avx512` | widened to f32, fused: 8 | fused: 12 |
//! | `avx2` | widened to f32, fused: 4, 16 lanes at a time | fused: 6, 16 lanes at a time |
//! | `neon-bf16` | `BFDOT`: 6, 16 lanes at a time | fused: 6, likewise |
//! | `neon` | widened to f32, fused: 4, 16 lanes at a time | fused: 6, likewise |
//! | `portable` | widened to f32, not fused: 6, two registers at a time | not fused: 6, likewise |
//!
//! Words are summed in their order, and the sum is put into `out`, added to it, or goes on from it
//! ([`Before`]). A row's result therefore depends on the row, the tile and the kernel alone,
//! whatever rows share the call. Kernels that widen give the same bits if pairs were widened before
//! the call, by `widen_row` and `widen_tile`.

mod any;
#[cfg(target_arch = "aarch64")]
mod arm;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod body;
mod operands;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use super::kernel::Kernel;
use super::supported::Supported;
use crate::widest::widest;
pub use operands::{Before, LANES, Word, Words};
use operands::{Block, halves};

/// The size of a product.
#[derive(Clone, Copy)]
pub struct Shape {
    /// Rows of `a` and `out`.
    pub rows: usize,
    /// Words of a row of `a`, and rows of `b`: what is summed over.
    pub words: usize,
    /// Columns of `b` and `out`, a multiple of [`LANES`].
    pub lanes: usize,
    /// What becomes of what is in `out`.
    pub before: Before,
}

impl Shape {
    /// A product that is added to `out`.
    pub fn added(rows: usize, words: usize, lanes: usize) -> Self {
        Self { rows, words, lanes, before: Before::Added }
    }
}

/// `out += a · b`, or what [`Before`] says: `out` `[rows][lanes]`, `a` `[rows][words]`, `b` `[words][lanes]`. Nothing
/// happens if a size is 0.
///
/// - `kernel` and `word` choose the body; `word` says what both operands hold.
/// - `shape` is what is computed. `a`, `b` and `out` may be parts of larger matrices: their strides
///   are distances between rows, in words or numbers.
/// - `out` comes with what is added to, if anything is.
///
/// Blocks of lanes are the outer loop: a tile of 32 lanes is met by all rows before the next one.
/// The checks here are all that the bodies rely on, which work with plain pointers.
///
/// # Panics
/// If `lanes` is no multiple of [`LANES`], or a slice or stride is too short for the shape.
pub fn multiply_add(
    kernel: Supported,
    word: Word,
    shape: Shape,
    a: Words<'_>,
    b: Words<'_>,
    out: &mut [f32],
    out_stride: usize,
) {
    let Shape { rows, words, lanes, before } = shape;
    if rows == 0 || words == 0 || lanes == 0 {
        return;
    }
    assert!(lanes.is_multiple_of(LANES) && lanes <= b.stride && lanes <= out_stride && words <= a.stride);
    assert!(a.data.len() >= (rows - 1) * a.stride + words);
    assert!(b.data.len() >= (words - 1) * b.stride + lanes);
    assert!(out.len() >= (rows - 1) * out_stride + lanes);
    for lane in (0..lanes).step_by(LANES) {
        let mut row = 0;
        while row < rows {
            // SAFETY: `row` and `lane` are inside the slices, by the assertions above.
            let block = unsafe {
                Block {
                    a: a.data.as_ptr().add(row * a.stride),
                    a_stride: a.stride,
                    b: b.data.as_ptr().add(lane),
                    b_stride: b.stride,
                    out: out.as_mut_ptr().add(row * out_stride + lane),
                    out_stride,
                    words,
                    before,
                }
            };
            // SAFETY: as many rows as are left are inside the slices, and `kernel` is the proof that the processor has the
            // instructions; on x86-64 all that have bf16 products have AVX-512.
            row += unsafe {
                match (kernel.of_floats(), word) {
                    #[cfg(target_arch = "x86_64")]
                    (Kernel::Amx | Kernel::Avx512Bf16, Word::Pair) => x86::avx512_bf16(block, rows - row),
                    #[cfg(target_arch = "x86_64")]
                    (Kernel::Avx512, Word::Pair) => x86::avx512_widening(block, rows - row),
                    #[cfg(target_arch = "x86_64")]
                    (Kernel::Amx | Kernel::Avx512Bf16 | Kernel::Avx512, Word::Single) => x86::avx512(block, rows - row),
                    #[cfg(target_arch = "x86_64")]
                    (Kernel::Avx2, Word::Pair) => x86::avx2_widening(block, rows - row),
                    #[cfg(target_arch = "x86_64")]
                    (Kernel::Avx2, Word::Single) => x86::avx2(block, rows - row),
                    #[cfg(target_arch = "aarch64")]
                    (Kernel::NeonBf16, Word::Pair) => arm::neon_bf16(block, rows - row),
                    #[cfg(target_arch = "aarch64")]
                    (Kernel::Neon, Word::Pair) => arm::neon_widening(block, rows - row),
                    #[cfg(target_arch = "aarch64")]
                    (Kernel::NeonBf16 | Kernel::Neon, Word::Single) => arm::neon(block, rows - row),
                    (_, word) => any::rows(block, rows - row, word),
                }
            };
        }
    }
}

/// Asks the processor to bring a word's cache line into its second-level cache; the address may be
/// any. Does nothing on other architectures.
#[inline(always)]
pub(crate) fn prefetch(word: *const u32) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction changes nothing but what the caches hold, whatever the address is.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(word.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: likewise.
    unsafe {
        std::arch::asm!("prfm pldl2keep, [{word}]", word = in(reg) word, options(readonly, nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = word;
}

/// Widens a row of pairs, `[pairs]`, to single numbers, `[2 * pairs]`, in the same order.
pub(crate) fn widen_row(words: &[u32], out: &mut [u32]) {
    widest(
        #[inline(always)]
        || {
            for (pair, &word) in out.as_chunks_mut::<2>().0.iter_mut().zip(words) {
                *pair = halves(word);
            }
        },
    );
}

/// Widens a tile of pairs, `[pairs][LANES]`, to single numbers, `[2 * pairs][LANES]`: each row of
/// words becomes two, one of all first numbers and one of all second numbers.
pub(crate) fn widen_tile(words: &[u32], out: &mut [u32]) {
    widest(
        #[inline(always)]
        || {
            let lanes = words.as_chunks::<LANES>().0;
            for (rows, lanes) in out.as_chunks_mut::<LANES>().0.as_chunks_mut::<2>().0.iter_mut().zip(lanes) {
                for (lane, &word) in lanes.iter().enumerate() {
                    [rows[0][lane], rows[1][lane]] = halves(word);
                }
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use half::bf16;
    use proptest::prelude::*;

    use super::*;
    use crate::vector::pack_pairs;

    /// The same sums in f64.
    fn expected(a: &[f32], b: &[f32], (rows, width, lanes): (usize, usize, usize)) -> Vec<f64> {
        let round = |x: f32| f64::from(bf16::from_f32(x).to_f32());
        (0..rows * lanes)
            .map(|i| {
                let (row, lane) = (i / lanes, i % lanes);
                (0..width).map(|k| round(a[row * width + k]) * round(b[k * lanes + lane])).sum()
            })
            .collect()
    }

    proptest! {
        #[test]
        fn products_are_right_and_a_row_depends_on_itself_alone(
            rows in 1_usize..30, pairs in 1_usize..70, tiles in 1_usize..4, seed in any::<u64>()
        ) {
            let (width, lanes) = (2 * pairs, tiles * LANES);
            let number = |i: usize| crate::cases::number(seed, i);
            let a: Vec<f32> = (0..rows * width).map(number).collect();
            let b: Vec<f32> = (0..width * lanes).map(|i| number(i + 1_000_003)).collect();
            let mut a_words = vec![0; rows * pairs];
            a.chunks_exact(width).zip(a_words.chunks_exact_mut(pairs)).for_each(|(row, words)| pack_pairs(row, words));
            let word = |low: f32, high: f32| {
                u32::from(bf16::from_f32(low).to_bits()) | u32::from(bf16::from_f32(high).to_bits()) << 16
            };
            let b_words: Vec<u32> = (0..pairs * lanes)
                .map(|i| (i / lanes, i % lanes))
                .map(|(pair, lane)| word(b[2 * pair * lanes + lane], b[(2 * pair + 1) * lanes + lane]))
                .collect();
            let b_words = Words { data: &b_words, stride: lanes };
            let expected = expected(&a, &b, (rows, width, lanes));
            for kernel in Supported::all() {
                let a_words = Words { data: &a_words, stride: pairs };
                let mut out = vec![0.5; rows * lanes];
                let shape = Shape::added(rows, pairs, lanes);
                multiply_add(kernel, Word::Pair, shape, a_words, b_words, &mut out, lanes);
                let mut new = vec![f32::NAN; rows * lanes];
                let shape = Shape { before: Before::Nothing, ..shape };
                multiply_add(kernel, Word::Pair, shape, a_words, b_words, &mut new, lanes);
                prop_assert!(new.iter().zip(&out).all(|(new, out)| (new + 0.5).to_bits() == out.to_bits()), "{kernel:?}");
                for (found, expected) in out.iter().zip(&expected) {
                    prop_assert!((f64::from(*found) - 0.5 - expected).abs() < 1e-4, "{kernel:?}: {found}, {expected}");
                }
                // Widened before, the same bits.
                if kernel.kernel().multiplies_f32() || kernel == Supported::PORTABLE {
                    let mut a_wide = vec![0; rows * width];
                    a_wide.chunks_exact_mut(width).zip(a_words.data.chunks_exact(pairs)).for_each(|(wide, row)| widen_row(row, wide));
                    let a_wide = Words { data: &a_wide, stride: width };
                    for tile in 0..tiles {
                        let of_tile = b_words.data.chunks_exact(lanes).flat_map(|row| &row[tile * LANES..][..LANES]);
                        let words: Vec<u32> = of_tile.copied().collect();
                        let mut b_wide = vec![0; width * LANES];
                        widen_tile(&words, &mut b_wide);
                        let b_wide = Words { data: &b_wide, stride: LANES };
                        let mut again = vec![0.5; rows * LANES];
                        multiply_add(kernel, Word::Single, Shape::added(rows, width, LANES), a_wide, b_wide, &mut again, LANES);
                        for (again, out) in again.chunks_exact(LANES).zip(out.chunks_exact(lanes)) {
                            prop_assert!(again.iter().zip(&out[tile * LANES..]).all(|(a, b)| a.to_bits() == b.to_bits()), "{kernel:?}");
                        }
                    }
                }
                for (row, together) in out.chunks_exact(lanes).enumerate() {
                    let mut alone = vec![0.5; lanes];
                    let a_row = Words { data: &a_words.data[row * pairs..], stride: pairs };
                    multiply_add(kernel, Word::Pair, Shape::added(1, pairs, lanes), a_row, b_words, &mut alone, lanes);
                    prop_assert!(alone.iter().zip(together).all(|(a, b)| a.to_bits() == b.to_bits()), "{kernel:?}");
                }
            }
        }
    }
}
