//! Small products: rows against one tile of weights, keys or values, in bf16 or f32, with f32 sums.
//!
//! Numbers lie in words: a row is `[words]`, a tile `[words][lanes]`, and `out[row][lane] += Σ_word row[word] · tile[word][lane]` in the
//! order of the words. What a row becomes depends on that row and on the tile alone, whatever rows share the call, and whether they
//! were widened beforehand.

#[cfg(target_arch = "x86_64")]
mod x86;

use pulp::Arch;

use super::kernel::{Kernel, Supported};
use super::vector::pack_pairs;

/// Lanes that are worked on at once; every tile has a multiple of them.
pub(crate) const LANES: usize = 32;

/// Words row by row, with the distance between rows.
#[derive(Clone, Copy)]
pub(crate) struct Words<'a> {
    pub(crate) data: &'a [u32],
    pub(crate) stride: usize,
}

/// What a word of rows and tile holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// Two bf16 numbers, the first in the low half.
    Pair,
    /// One f32 number: of weights that are f32, or of pairs that were widened beforehand. This pays where the kernel
    /// [multiplies f32](Kernel::multiplies_f32), whose sums have the same bits then.
    Single,
}

impl Word {
    /// Words that so many numbers take.
    pub(crate) fn count(self, numbers: usize) -> usize {
        match self {
            Self::Pair => numbers.div_ceil(2),
            Self::Single => numbers,
        }
    }

    /// Puts a row into words, rounded to bf16 where a word holds two of them. What is left of `words` becomes zero.
    pub(crate) fn pack(self, row: &[f32], words: &mut [u32]) {
        match self {
            Self::Pair => pack_pairs(row, words),
            Self::Single => {
                let (taken, rest) = words.split_at_mut(row.len().min(words.len()));
                taken.iter_mut().zip(row).for_each(|(word, x)| *word = x.to_bits());
                rest.fill(0);
            }
        }
    }
}

/// Rows, words along which is summed, and lanes of a product.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) rows: usize,
    pub(crate) words: usize,
    pub(crate) lanes: usize,
}

/// `out[rows][lanes] += a[rows][words] · b[words][lanes]`; rows of `out` are `out_stride` apart, `lanes` is a multiple of
/// [`LANES`].
///
/// # Panics
/// If a slice or a stride is shorter than that.
pub(crate) fn multiply_add(
    kernel: Supported,
    word: Word,
    shape: Shape,
    a: Words<'_>,
    b: Words<'_>,
    out: &mut [f32],
    out_stride: usize,
) {
    let Shape { rows, words, lanes } = shape;
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
                }
            };
            // SAFETY: as many rows as are left are inside the slices, and `kernel` is the proof that the processor has the
            // instructions; all that have bf16 products have AVX-512.
            row += unsafe {
                match (kernel.kernel(), word) {
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
                    (_, Word::Pair) => portable_widening(block),
                    (_, Word::Single) => portable(block),
                }
            };
        }
    }
}

/// Widens words `[pairs]` of a row to `[2 * pairs]`, a number each.
pub(crate) fn widen_row(words: &[u32], out: &mut [u32]) {
    Arch::new().dispatch(
        #[inline(always)]
        || {
            for (pair, &word) in out.as_chunks_mut::<2>().0.iter_mut().zip(words) {
                *pair = halves(word);
            }
        },
    );
}

/// Widens a tile `[pairs][LANES]` to `[2 * pairs][LANES]`.
pub(crate) fn widen_tile(words: &[u32], out: &mut [u32]) {
    Arch::new().dispatch(
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

/// Some rows of a product, [`LANES`] lanes wide.
#[derive(Clone, Copy)]
struct Block {
    a: *const u32,
    a_stride: usize,
    b: *const u32,
    b_stride: usize,
    out: *mut f32,
    out_stride: usize,
    words: usize,
}

/// The two numbers of a pair, as bits of f32.
#[inline(always)]
fn halves(word: u32) -> [u32; 2] {
    [word << 16, word & 0xffff_0000]
}

/// The two numbers of a pair.
#[inline(always)]
fn widen(word: u32) -> [f32; 2] {
    halves(word).map(f32::from_bits)
}

/// One row of pairs.
///
/// # Safety
/// One row, all words and [`LANES`] lanes of `block` must be readable, those of `out` writable.
unsafe fn portable_widening(block: Block) -> usize {
    // SAFETY: the caller's promise.
    unsafe {
        let out = &mut *block.out.cast::<[f32; LANES]>();
        let mut sums = *out;
        for word in 0..block.words {
            let [a0, a1] = widen(*block.a.add(word));
            let b = &*block.b.add(word * block.b_stride).cast::<[u32; LANES]>();
            for (sum, &b) in sums.iter_mut().zip(b) {
                let [b0, b1] = widen(b);
                *sum += a0 * b0;
                *sum += a1 * b1;
            }
        }
        *out = sums;
    }
    1
}

/// One row of single numbers.
///
/// # Safety
/// One row, all words and [`LANES`] lanes of `block` must be readable, those of `out` writable.
unsafe fn portable(block: Block) -> usize {
    // SAFETY: the caller's promise.
    unsafe {
        let out = &mut *block.out.cast::<[f32; LANES]>();
        let mut sums = *out;
        for word in 0..block.words {
            let a = f32::from_bits(*block.a.add(word));
            let b = &*block.b.add(word * block.b_stride).cast::<[f32; LANES]>();
            sums.iter_mut().zip(b).for_each(|(sum, &b)| *sum += a * b);
        }
        *out = sums;
    }
    1
}

#[cfg(test)]
mod tests {
    use half::bf16;
    use proptest::prelude::*;

    use super::*;

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
            let number = |i: usize| {
                let mixed = (seed ^ i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                (mixed >> 40) as f32 / (1 << 23) as f32 - 1.0
            };
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
                multiply_add(kernel, Word::Pair, Shape { rows, words: pairs, lanes }, a_words, b_words, &mut out, lanes);
                for (found, expected) in out.iter().zip(&expected) {
                    prop_assert!((f64::from(*found) - 0.5 - expected).abs() < 1e-4, "{kernel:?}: {found}, {expected}");
                }
                // Widened before, the same bits.
                if kernel.kernel().multiplies_f32() || kernel == Supported::PORTABLE {
                    let mut a_wide = vec![0; rows * width];
                    a_wide.chunks_exact_mut(width).zip(a_words.data.chunks_exact(pairs)).for_each(|(wide, row)| widen_row(row, wide));
                    let a_wide = Words { data: &a_wide, stride: width };
                    for tile in 0..tiles {
                        let words: Vec<u32> = b_words.data.chunks_exact(lanes).flat_map(|row| row[tile * LANES..][..LANES].to_vec()).collect();
                        let mut b_wide = vec![0; width * LANES];
                        widen_tile(&words, &mut b_wide);
                        let b_wide = Words { data: &b_wide, stride: LANES };
                        let mut again = vec![0.5; rows * LANES];
                        multiply_add(kernel, Word::Single, Shape { rows, words: width, lanes: LANES }, a_wide, b_wide, &mut again, LANES);
                        for (again, out) in again.chunks_exact(LANES).zip(out.chunks_exact(lanes)) {
                            prop_assert!(again.iter().zip(&out[tile * LANES..]).all(|(a, b)| a.to_bits() == b.to_bits()), "{kernel:?}");
                        }
                    }
                }
                for (row, together) in out.chunks_exact(lanes).enumerate() {
                    let mut alone = vec![0.5; lanes];
                    let a_row = Words { data: &a_words.data[row * pairs..], stride: pairs };
                    multiply_add(kernel, Word::Pair, Shape { rows: 1, words: pairs, lanes }, a_row, b_words, &mut alone, lanes);
                    prop_assert!(alone.iter().zip(together).all(|(a, b)| a.to_bits() == b.to_bits()), "{kernel:?}");
                }
            }
        }
    }
}
