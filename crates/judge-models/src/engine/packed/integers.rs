//! Products of weights of eight bits in integers, for the kernel `avx512-vnni`.
//!
//! Other kernels make floats of codes and multiply those. This one rounds activations to 16 bits and
//! multiplies codes as they are: `VPDPBUSD` sums four products of bytes exactly in 32 bits.
//!
//! ```text
//! x         ≈ step · q             q from -32,767 to 32,767; step of a row's group of columns
//! q + 2^15  = 256 · high + low     two bytes without sign, as the instruction wants them
//!
//! Σ code · q = 256 · Σ code · high + Σ code · low - 2^15 · Σ code         in i32, exact: groups have at most 256 columns
//! y         += Σ code · q · (scale · step)                                in f32, group by group, in order
//! ```
//!
//! Weights are the numbers that `scale · code` stands for, not rounded to bf16, and activations keep
//! twice the bits of bf16, relative to the largest of their group. A row's result depends on the row
//! and the matrix alone.
//!
//! Owns the rounding of activations, the cut into tasks and the body. `pack.rs` asks for it, and
//! `coded.rs` says whether codes suit.

use std::arch::x86_64::{
    __m512i, _mm512_add_epi32, _mm512_add_ps, _mm512_cvtepi32_ps, _mm512_dpbusd_epi32, _mm512_loadu_ps,
    _mm512_loadu_si512, _mm512_mul_ps, _mm512_set1_epi32, _mm512_set1_ps, _mm512_setzero_si512, _mm512_slli_epi32,
    _mm512_storeu_ps, _mm512_sub_epi32,
};

use rayon::prelude::*;

use super::coded::{AHEAD, Lanes};
use super::kernel::{Kernel, Supported};
use super::lines::Lines;
use super::pack::PackedLinear;
use super::product::{Activations, Results};
use super::tile::{LANES, prefetch};
use crate::widest::{rounded, widest};

/// Columns in a word of codes.
const PLACES: usize = 4;

/// Lanes of a register.
const HALF: usize = LANES / 2;

/// Rows whose sums stay in registers.
const ROWS: usize = 6;

/// Rows of one task, at most.
const ROWS_AT_ONCE: usize = 32 * ROWS;

/// Tasks for each thread that a product should have at least.
const TASKS_PER_THREAD: usize = 16;

/// The most columns of a group whose sums are exact in 32 bits.
pub(super) const MOST_COLUMNS: usize = 256;

/// The proof that products are to be made here, and that this processor has the instructions.
#[derive(Clone, Copy)]
pub(super) struct HasVnni(());

impl HasVnni {
    /// The proof, if `kernel` is the one that multiplies integers.
    pub(super) fn of(kernel: Supported) -> Option<Self> {
        (kernel.kernel() == Kernel::Avx512Vnni).then_some(Self(()))
    }
}

/// A panel of signed codes of eight bits.
#[derive(Clone, Copy)]
pub(super) struct CodesOfPanel<'a> {
    /// Words of codes, in the order of the columns.
    pub(super) codes: &'a [Lanes],
    /// Scales of each group, as bits of f32.
    pub(super) scales: &'a [Lanes],
}

/// A matrix of such panels.
pub(super) struct Matrix<'a> {
    /// Whose panels they are.
    pub(super) matrix: &'a PackedLinear,
    /// Columns that share a scale: a multiple of [`PLACES`], at most [`MOST_COLUMNS`]. The last group
    /// may have fewer.
    pub(super) group: usize,
    /// Columns of the matrix, a multiple of [`PLACES`].
    pub(super) d_in: usize,
    /// Rows of the matrix.
    pub(super) d_out: usize,
}

impl Matrix<'_> {
    /// See `PackedLinear::product`. `out` is not empty.
    pub(super) fn product(&self, has: HasVnni, x: Activations<'_>, out: Results<'_>, scratch: &mut Lines<u32>) {
        let (rows, d_in) = (x.count(), self.d_in);
        let (n_words, n_groups) = (d_in / PLACES, d_in.div_ceil(self.group));
        let stride = 2 * n_words + n_groups;
        scratch.resize(rows * stride);
        let rounded = scratch.par_chunks_exact_mut(stride).enumerate().with_min_len(x.worth_a_task(d_in));
        rounded.for_each(|(row, words)| {
            let (words, steps) = words.split_at_mut(2 * n_words);
            x.with(row..row + 1, d_in, |x| {
                let groups = x.chunks(self.group).zip(bytes_of(words).chunks_mut(2 * self.group));
                groups.zip(steps).for_each(|((x, bytes), step)| *step = round(x, bytes).to_bits());
            });
        });
        let words = &**scratch;
        let n_tasks = TASKS_PER_THREAD * rayon::current_num_threads();
        let blocks = rows.div_ceil(ROWS_AT_ONCE);
        let n_panels = self.d_out.div_ceil(LANES);
        let at_once = (n_panels * blocks / n_tasks).clamp(1, 8);
        let n_shares = n_panels.div_ceil(at_once);
        let out = out.shared(self.d_out);
        (0..blocks * n_shares).into_par_iter().for_each(|task| {
            let (block, share) = (task / n_shares, task % n_shares);
            let of_block = block * ROWS_AT_ONCE..rows.min((block + 1) * ROWS_AT_ONCE);
            let first = share * at_once;
            for panel in first..n_panels.min(first + at_once) {
                // Every panel is codes: `group_of_integers` has looked.
                let Some(codes) = self.matrix.codes_of_panel(panel) else { continue };
                for row in of_block.clone().step_by(ROWS) {
                    let count = ROWS.min(of_block.end - row);
                    let mut sums = [[0.0; LANES]; ROWS];
                    self.multiply(has, codes, &words[row * stride..][..count * stride], &mut sums[..count]);
                    for (index, sums) in sums[..count].iter_mut().enumerate() {
                        // SAFETY: of each row the lanes of this panel are this task's alone.
                        unsafe { out.put(row + index, panel * LANES, sums) };
                    }
                }
            }
        });
    }

    /// Products of some rounded rows, as many as `sums` has, with a panel.
    fn multiply(&self, _: HasVnni, panel: CodesOfPanel<'_>, rows: &[u32], sums: &mut [[f32; LANES]]) {
        let stride = rows.len() / sums.len();
        let (n_words, words_of_group) = (self.d_in / PLACES, self.group / PLACES);
        assert!(panel.codes.len() == n_words && panel.scales.len() == n_words.div_ceil(words_of_group));
        assert_eq!(stride, 2 * n_words + panel.scales.len());
        // SAFETY: the processor has the instructions, and rows and panel have all words and groups, by the assertions.
        unsafe {
            match sums.len() {
                1 => body::<1>(panel, words_of_group, rows, stride, sums),
                2 => body::<2>(panel, words_of_group, rows, stride, sums),
                3 => body::<3>(panel, words_of_group, rows, stride, sums),
                4 => body::<4>(panel, words_of_group, rows, stride, sums),
                5 => body::<5>(panel, words_of_group, rows, stride, sums),
                _ => body::<ROWS>(panel, words_of_group, rows, stride, sums),
            }
        }
    }
}

/// Words as the bytes that they have in memory.
fn bytes_of(words: &mut [u32]) -> &mut [u8] {
    // SAFETY: a word is four bytes, of which any value is one.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), 4 * words.len()) }
}

/// Rounds a group of a row to 16 bits, and returns the step. The bytes are those of the group's
/// columns: all high ones, then all low ones. A group with a number that is not finite has the step
/// NaN, and numbers so small that a step has no reciprocal become 0.
fn round(x: &[f32], bytes: &mut [u8]) -> f32 {
    let mut largest = 0;
    widest(
        #[inline(always)]
        || {
            // Magnitudes are in the order of their bits, and NaN is behind them all.
            largest = x.iter().fold(0, |largest, x| largest.max(x.to_bits() & 0x7fff_ffff));
            let inverse = 32_767.0 / f32::from_bits(largest);
            let inverse = if inverse.is_finite() { inverse } else { 0.0 };
            let (high, low) = bytes.split_at_mut(x.len());
            for ((x, high), low) in x.iter().zip(high).zip(low) {
                let code = rounded(x * inverse) ^ 0x8000;
                (*high, *low) = ((code >> 8) as u8, code as u8);
            }
        },
    );
    let largest = f32::from_bits(largest);
    if largest.is_finite() { largest / 32_767.0 } else { f32::NAN }
}

/// Adds the products of `COUNT` rows, `stride` words apart, with a panel to `sums`.
///
/// # Safety
/// The processor must have AVX-512 with VNNI. Rows must have two words for each word of codes, as
/// [`round`] leaves them group by group, and then a step for each group of the panel; `sums` has as
/// many rows.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn body<const COUNT: usize>(
    panel: CodesOfPanel<'_>,
    words_of_group: usize,
    rows: &[u32],
    stride: usize,
    sums: &mut [[f32; LANES]],
) {
    let n_words = panel.codes.len();
    // SAFETY: the caller's promise.
    unsafe {
        let ones = _mm512_set1_epi32(0x0101_0101);
        let rows: [*const u32; COUNT] = std::array::from_fn(|row| rows.as_ptr().add(row * stride));
        for (group, scales) in panel.scales.iter().enumerate() {
            let from = group * words_of_group;
            let to = n_words.min(from + words_of_group);
            let mut high: [[__m512i; 2]; COUNT] = [[_mm512_setzero_si512(); 2]; COUNT];
            let (mut low, mut of_codes) = (high, [_mm512_setzero_si512(); 2]);
            for index in from..to {
                let codes = panel.codes.get_unchecked(index).as_ptr();
                if COUNT < ROWS {
                    prefetch(codes.wrapping_add(AHEAD));
                    prefetch(codes.wrapping_add(AHEAD + HALF));
                }
                let codes = [_mm512_loadu_si512(codes.cast()), _mm512_loadu_si512(codes.add(HALF).cast())];
                for half in 0..2 {
                    of_codes[half] = _mm512_dpbusd_epi32(of_codes[half], ones, codes[half]);
                }
                for row in 0..COUNT {
                    let word = |at: usize| _mm512_set1_epi32((*rows[row].add(at)).cast_signed());
                    // All high words of the group come before its low ones.
                    let (upper, lower) = (word(from + index), word(to + index));
                    for half in 0..2 {
                        high[row][half] = _mm512_dpbusd_epi32(high[row][half], upper, codes[half]);
                        low[row][half] = _mm512_dpbusd_epi32(low[row][half], lower, codes[half]);
                    }
                }
            }
            for (row, sums) in sums.iter_mut().enumerate().take(COUNT) {
                let step = _mm512_set1_ps(f32::from_bits(*rows[row].add(2 * n_words + group)));
                for half in 0..2 {
                    let exact = _mm512_add_epi32(_mm512_slli_epi32::<8>(high[row][half]), low[row][half]);
                    let exact = _mm512_sub_epi32(exact, _mm512_slli_epi32::<15>(of_codes[half]));
                    let scale = _mm512_mul_ps(_mm512_loadu_ps(scales.as_ptr().add(half * HALF).cast()), step);
                    let sum = sums.as_mut_ptr().add(half * HALF);
                    let product = _mm512_mul_ps(_mm512_cvtepi32_ps(exact), scale);
                    _mm512_storeu_ps(sum, _mm512_add_ps(_mm512_loadu_ps(sum), product));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engine::packed::stored::Section;
    use crate::engine::packed::tile::Word;
    use crate::weights::{CodeNumbers, CodedMemory, Coding};

    #[test]
    fn rounded_rows_are_within_half_a_step_and_numbers_that_are_none_show() {
        let x: Vec<f32> = (0..32).map(|i| (i as f32 - 11.0) / 7.0).collect();
        let mut bytes = [0; 64];
        let step = round(&x, &mut bytes);
        assert_eq!(step, (31.0 - 11.0) / 7.0 / 32_767.0);
        for (place, x) in x.iter().enumerate() {
            let code = 256 * i32::from(bytes[place]) + i32::from(bytes[32 + place]) - 32_768;
            assert!((code as f32 * step - x).abs() <= 0.501 * step, "{code} {x}");
        }
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert!(round(&[1.0, bad, 0.0, 2.0], &mut [0; 8]).is_nan());
        }
        assert_eq!(round(&[0.0; 4], &mut [0; 8]), 0.0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(50))]

        #[test]
        fn products_are_those_of_the_numbers_and_the_same_bits_in_any_company(
            rows in prop::sample::select(vec![1_usize, 2, 5, 6, 7, 40, 200]),
            width in prop::sample::select(vec![4_usize, 64, 132, 700, 1500]),
            size in prop::sample::select(vec![4_usize, 32, 128, 256]),
            d_out in prop::sample::select(vec![1_usize, 32, 33, 100]),
            seed in any::<u64>(),
        ) {
            let Ok(kernel) = Supported::choose(Some(Kernel::Avx512Vnni)) else { return Ok(()) };
            let random = |i: usize| (seed ^ i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
            let number = |i: usize| random(i) as f32 / (1_u64 << 31) as f32 - 0.5;
            let coding = Coding::scaled(8, CodeNumbers::Signed, width, size);
            let mut memory = CodedMemory::new(&coding, d_out);
            let coded = memory.rows(&coding, d_out);
            coded.codes.iter_mut().enumerate().for_each(|(i, code)| *code = random(i) as u8);
            coded.scales.iter_mut().enumerate().for_each(|(i, x)| *x = number(i + 1000) / 16.0);
            let mut values = vec![f32::NAN; d_out * width];
            coding.expand(&coded, &mut values);
            for word in [Word::Pair, Word::Single] {
                let parts = vec![(d_out, Some(coding.clone()))];
                let make = |shape| Ok::<_, ()>(Section::zeros(shape));
                let mut matrix = PackedLinear::of(kernel, word, width, parts, make).unwrap();
                matrix.fill_codes(0, &coded);
                let x: Vec<f32> = (0..rows * width).map(|i| number(i + 4000)).collect();
                let (mut out, mut scratch) = (vec![f32::NAN; rows * d_out], Lines::default());
                matrix.apply(&x, rows, &mut out, &mut scratch);
                for (x, found) in x.chunks_exact(width).zip(out.chunks_exact(d_out)) {
                    let mut alone = vec![f32::NAN; d_out];
                    matrix.apply(x, 1, &mut alone, &mut scratch);
                    prop_assert!(alone.iter().zip(found).all(|(a, b)| a.to_bits() == b.to_bits()));
                    for (found, row) in found.iter().zip(values.chunks_exact(width)) {
                        let product = |(x, w): (&f32, &f32)| f64::from(*x) * f64::from(*w);
                        let expected: f64 = x.iter().zip(row).map(product).sum();
                        let most: f64 = row.iter().map(|w| f64::from(w.abs())).sum();
                        // Half a step of numbers up to a half, and sums in f32.
                        prop_assert!((f64::from(*found) - expected).abs() < 1.2e-5 * most, "{found} {expected}");
                    }
                }
            }
        }
    }
}
