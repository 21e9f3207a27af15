//! Products of weights of eight bits in integers, for the kernels `avx512-vnni` and `amx-int8`.
//!
//! Other kernels make floats of codes and multiply those. These round activations to eight bits too
//! and multiply codes as they are, summing exactly in 32 bits:
//!
//! ```text
//! x     ≈ step · q                     q from -127 to 127; a step for each group of a row's columns: its largest magnitude / 127
//! exact = Σ code · q                   in i32, over the columns of a group, at most 256
//! y     += exact · (scale · step)      in f32, group by group, in order
//! ```
//!
//! Weights are the numbers that `scale · code` stands for, not rounded to bf16. Activations lose more
//! than to bf16: half a step is 0.4 % of the largest number of 256 at most. `docs/benchmarks.md` has what
//! that does to states. A row's result depends on the row and the matrix alone, and is the same
//! with both kernels, to the bit: integers have no order of sums, and floats are added in one.
//!
//! | kernel | instruction | what it multiplies |
//! |---|---|---|
//! | `avx512-vnni` | `VPDPBUSD` | bytes without sign, `q + 128`, by codes; 128 · Σ code is taken away |
//! | `amx-int8` | `TDPBSSD` | whole tiles of `q` by tiles of codes; few rows and odd widths as `avx512-vnni` |
//!
//! Owns the rounding of activations, the cut into tasks and the body for VNNI; `unit.rs` has that of
//! the matrix unit. `pack.rs` asks for products, and `coded.rs` says whether codes suit.

use std::arch::x86_64::{
    __m512i, _mm512_add_ps, _mm512_cvtepi32_ps, _mm512_dpbusd_epi32, _mm512_loadu_ps, _mm512_loadu_si512,
    _mm512_mul_ps, _mm512_set1_epi32, _mm512_set1_ps, _mm512_setzero_si512, _mm512_slli_epi32, _mm512_storeu_ps,
    _mm512_sub_epi32,
};
use std::ops::Range;

use rayon::prelude::*;

use super::kernel::Kernel;
use super::lines::Lines;
use super::piece::{AHEAD, CodesOfPanel, Lanes};
use super::product::{Activations, Results};
use super::section::Sections;
use super::supported::Supported;
use super::tile::{LANES, Words, prefetch};
use super::unit::{self, ByteUnit, HasByteUnit};
use crate::widest::{rounded, widest};

/// Columns in a word of codes.
const PLACES: usize = 4;

/// Lanes of a register.
const HALF: usize = LANES / 2;

/// Rows whose sums stay in registers.
const ROWS: usize = 12;

/// Rows of one task, at most: a multiple of [`ROWS`] and of two strips of the unit.
const ROWS_AT_ONCE: usize = 32 * ROWS;

/// Rows that a panel's columns of one step are multiplied with on the unit before those of the next: their sums, 16 KiB, and
/// these columns, at most 8 KiB, stay in the nearest cache. Divides [`ROWS_AT_ONCE`].
const ROWS_ON_UNIT: usize = 4 * 2 * unit::ROWS;

/// Tasks for each thread that a product should have at least.
const TASKS_PER_THREAD: usize = 16;

/// 32-bit words in a cache line, and in a row of one of the unit's registers.
const LINE: usize = unit::PAIRS;

/// The most columns that share a step.
const MOST_COLUMNS: usize = 256;

/// The largest code of an activation.
const LARGEST: f32 = 127.0;

/// The proof that products are to be made here, and that this processor has the instructions.
#[derive(Clone, Copy)]
pub(super) struct HasIntegers {
    /// The matrix unit, where products are made with it.
    unit: Option<HasByteUnit>,
}

impl HasIntegers {
    /// The proof, if `kernel` is one that multiplies integers. Whatever has a unit for bytes has VNNI.
    pub(super) fn of(kernel: Supported) -> Option<Self> {
        let unit = HasByteUnit::of(kernel);
        (unit.is_some() || kernel.kernel() == Kernel::Avx512Vnni).then_some(Self { unit })
    }
}

/// A matrix of panels of signed codes of eight bits.
pub(super) struct Matrix<'a> {
    /// The panels.
    panels: &'a Sections,
    /// Columns of the matrix, a multiple of [`PLACES`].
    d_in: usize,
    /// Rows of the matrix.
    d_out: usize,
    /// Columns that share a step: a multiple of [`PLACES`], at most [`MOST_COLUMNS`]. The last group
    /// may have fewer.
    group: usize,
    /// Groups that share a scale.
    groups_of_a_scale: usize,
}

impl<'a> Matrix<'a> {
    /// A matrix `[d_out, d_in]` of panels in which `scaled` columns, a multiple of [`PLACES`], share a
    /// scale. These are cut into groups that whole tiles of the unit can have, if there are any.
    pub(super) fn new(panels: &'a Sections, d_out: usize, d_in: usize, scaled: usize) -> Self {
        let whole = (1..=MOST_COLUMNS / (PLACES * LINE)).rev().map(|tiles| tiles * PLACES * LINE);
        let any = (1..=MOST_COLUMNS / PLACES).rev().map(|words| words * PLACES);
        let mut sizes = Some(scaled).filter(|&size| size <= MOST_COLUMNS).into_iter().chain(whole).chain(any);
        let group = sizes.find(|&size| scaled.is_multiple_of(size)).unwrap_or(PLACES);
        Self { panels, d_in, d_out, group, groups_of_a_scale: scaled / group }
    }

    /// Words of codes of a row.
    fn words(&self) -> usize {
        self.d_in / PLACES
    }

    /// Groups of a row.
    fn groups(&self) -> usize {
        self.d_in.div_ceil(self.group)
    }

    /// The words of a group.
    fn words_of(&self, group: usize) -> Range<usize> {
        let words = self.group / PLACES;
        group * words..self.words().min((group + 1) * words)
    }

    /// Words from one rounded row to the next: its codes, then a step for each group. An odd number of
    /// lines, so that rows which are multiplied together do not fall into the same sets of a cache.
    fn stride(&self) -> usize {
        ((self.words() + self.groups()).div_ceil(LINE) | 1) * LINE
    }

    /// Whether groups are whole tiles of the unit, all of them.
    fn has_whole_tiles(&self) -> bool {
        [self.group, self.d_in].iter().all(|columns| columns.is_multiple_of(PLACES * LINE))
    }

    /// See `PackedLinear::product`. `out` is not empty.
    pub(super) fn product(&self, has: HasIntegers, x: Activations<'_>, out: Results<'_>, scratch: &mut Lines<u32>) {
        let (rows, d_in, stride) = (x.count(), self.d_in, self.stride());
        let unit = has.unit.filter(|_| rows >= unit::ROWS && self.has_whole_tiles());
        let flip = if unit.is_some() { 0 } else { 0x80 };
        // The unit takes whole strips; what lies in rows behind the last one does not matter.
        scratch.resize(rows.next_multiple_of(unit::ROWS) * stride);
        let rounded = scratch.par_chunks_exact_mut(stride).take(rows).enumerate().with_min_len(x.worth_a_task(d_in));
        rounded.for_each(|(row, words)| {
            let (words, steps) = words.split_at_mut(self.words());
            x.with(row..row + 1, d_in, |x| {
                let groups = x.chunks(self.group).zip(bytes_of(words).chunks_mut(self.group));
                groups.zip(steps).for_each(|((x, bytes), step)| *step = round(x, bytes, flip).to_bits());
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
            let unit = unit.map(HasByteUnit::hold);
            let mut sums = [[0.0; LANES]; ROWS_ON_UNIT];
            let together = if unit.is_some() { ROWS_ON_UNIT } else { ROWS };
            for panel in first..n_panels.min(first + at_once) {
                // Every panel is codes: `columns_of_a_scale` has looked.
                let Some(codes) = self.panels.codes_of_panel(panel) else { continue };
                for row in of_block.clone().step_by(together) {
                    let sums = &mut sums[..together.min(of_block.end - row)];
                    sums.fill([0.0; LANES]);
                    match &unit {
                        Some(unit) => self.multiply_tiles(unit, codes, &words[row * stride..], sums),
                        None => self.multiply(has, codes, &words[row * stride..], sums),
                    }
                    for (index, sums) in sums.iter_mut().enumerate() {
                        // SAFETY: of each row the lanes of this panel are this task's alone.
                        unsafe { out.put(row + index, panel * LANES, sums) };
                    }
                }
            }
        });
    }

    /// Adds the products of some rounded rows, as many as `sums` has, with a panel.
    fn multiply(&self, _: HasIntegers, panel: CodesOfPanel<'_>, rows: &[u32], sums: &mut [[f32; LANES]]) {
        assert!(
            (1..=ROWS).contains(&sums.len())
                && rows.len() >= (sums.len() - 1) * self.stride() + self.words() + self.groups()
        );
        assert!(
            panel.codes.len() == self.words() && panel.scales.len() == self.groups().div_ceil(self.groups_of_a_scale)
        );
        const BODIES: [Body; ROWS] = [
            body::<1>, body::<2>, body::<3>, body::<4>, body::<5>, body::<6>, body::<7>, body::<8>, body::<9>,
            body::<10>, body::<11>, body::<12>,
        ];
        // SAFETY: the processor has the instructions, and rows and panel have all words and groups, by the assertions.
        unsafe { BODIES[sums.len() - 1](self, panel, rows, sums) };
    }

    /// The same on the matrix unit, for rows that were rounded to signed bytes, in whole strips.
    fn multiply_tiles(&self, unit: &ByteUnit, panel: CodesOfPanel<'_>, rows: &[u32], sums: &mut [[f32; LANES]]) {
        let stride = self.stride();
        assert!(rows.len() >= (sums.len() - 1) * stride + self.words() + self.groups());
        let mut exact = unit::ByteSums::ZERO;
        for group in 0..self.groups() {
            let words = self.words_of(group);
            let codes = &panel.codes[words.clone()];
            let scales = &panel.scales[group / self.groups_of_a_scale];
            for (pair, sums) in sums.chunks_mut(2 * unit::ROWS).enumerate() {
                let rows = &rows[pair * 2 * unit::ROWS * stride..];
                let strip = |strip: usize| Words { data: &rows[strip * unit::ROWS * stride + words.start..], stride };
                let second = (sums.len() > unit::ROWS).then(|| strip(1));
                unit.multiply((strip(0), second), codes, &mut exact);
                let steps = Words { data: &rows[self.words() + group..], stride };
                // SAFETY: where there is a unit there is AVX-512, and every row has its steps, by the assertion.
                unsafe { add(&exact, scales, steps, sums) };
            }
        }
    }
}

/// Adds exact sums, each times its lane's scale and its row's step, the first word of each row of `steps`.
///
/// # Safety
/// The processor must have AVX-512. `steps` must have as many rows as `sums`, at most as many as `exact`.
#[target_feature(enable = "avx512f")]
unsafe fn add(exact: &unit::ByteSums, scales: &Lanes, steps: Words<'_>, sums: &mut [[f32; LANES]]) {
    // SAFETY: the caller's promise; a row of each is two registers.
    unsafe {
        let scales = [0, HALF].map(|half| _mm512_loadu_ps(scales.as_ptr().add(half).cast()));
        for (row, (sums, exact)) in sums.iter_mut().zip(&exact.0).enumerate() {
            let step = _mm512_set1_ps(f32::from_bits(*steps.data.get_unchecked(row * steps.stride)));
            for (half, &scale) in scales.iter().enumerate() {
                let exact = _mm512_cvtepi32_ps(_mm512_loadu_si512(exact.as_ptr().add(half * HALF).cast()));
                let sum = sums.as_mut_ptr().add(half * HALF);
                let product = _mm512_mul_ps(exact, _mm512_mul_ps(scale, step));
                _mm512_storeu_ps(sum, _mm512_add_ps(_mm512_loadu_ps(sum), product));
            }
        }
    }
}

/// Words as the bytes that they have in memory.
fn bytes_of(words: &mut [u32]) -> &mut [u8] {
    // SAFETY: a word is four bytes, of which any value is one.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), 4 * words.len()) }
}

/// Rounds a group of a row to eight bits, and returns the step. Bits of `flip` are turned over in each
/// code: 0x80 makes `q + 128` of it. A group with a number that is not finite has the step NaN, and
/// numbers so small that a step has no reciprocal become 0.
fn round(x: &[f32], bytes: &mut [u8], flip: u8) -> f32 {
    let mut largest = 0;
    widest(
        #[inline(always)]
        || {
            // Magnitudes are in the order of their bits, and NaN is behind them all.
            largest = x.iter().fold(0, |largest, x| largest.max(x.to_bits() & 0x7fff_ffff));
            let inverse = LARGEST / f32::from_bits(largest);
            let inverse = if inverse.is_finite() { inverse } else { 0.0 };
            x.iter().zip(&mut *bytes).for_each(|(x, byte)| *byte = rounded(x * inverse) as u8 ^ flip);
        },
    );
    let largest = f32::from_bits(largest);
    if largest.is_finite() { largest / LARGEST } else { f32::NAN }
}

/// [`body`] for some number of rows.
type Body = unsafe fn(&Matrix<'_>, CodesOfPanel<'_>, &[u32], &mut [[f32; LANES]]);

/// Adds the products of `COUNT` rows with a panel to `sums`.
///
/// # Safety
/// The processor must have AVX-512 with VNNI. There must be as many rows, a stride apart, with words of codes
/// that [`round`] has turned over and a step for each group; the panel must have all words and scales of the
/// matrix, and `sums` as many rows.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn body<const COUNT: usize>(
    matrix: &Matrix<'_>,
    panel: CodesOfPanel<'_>,
    rows: &[u32],
    sums: &mut [[f32; LANES]],
) {
    // SAFETY: the caller's promise.
    unsafe {
        let ones = _mm512_set1_epi32(0x0101_0101);
        let rows: [*const u32; COUNT] = std::array::from_fn(|row| rows.as_ptr().add(row * matrix.stride()));
        for group in 0..matrix.groups() {
            let mut exact: [[__m512i; 2]; COUNT] = [[_mm512_setzero_si512(); 2]; COUNT];
            let mut of_codes = [_mm512_setzero_si512(); 2];
            for index in matrix.words_of(group) {
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
                    let word = _mm512_set1_epi32((*rows[row].add(index)).cast_signed());
                    for half in 0..2 {
                        exact[row][half] = _mm512_dpbusd_epi32(exact[row][half], word, codes[half]);
                    }
                }
            }
            let scales = panel.scales.get_unchecked(group / matrix.groups_of_a_scale);
            for (row, sums) in sums.iter_mut().enumerate().take(COUNT) {
                let step = _mm512_set1_ps(f32::from_bits(*rows[row].add(matrix.words() + group)));
                for half in 0..2 {
                    let exact = _mm512_sub_epi32(exact[row][half], _mm512_slli_epi32::<7>(of_codes[half]));
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
    use crate::engine::packed::pack::PackedLinear;
    use crate::engine::packed::section::Section;
    use crate::engine::packed::tile::Word;
    use crate::weights::{CodeNumbers, CodedMemory, Coding};

    #[test]
    fn rounded_rows_are_within_half_a_step_and_numbers_that_are_none_show() {
        let x: Vec<f32> = (0..32).map(|i| (i as f32 - 11.0) / 7.0).collect();
        for flip in [0, 0x80] {
            let mut bytes = [0; 32];
            let step = round(&x, &mut bytes, flip);
            assert_eq!(step, (31.0 - 11.0) / 7.0 / 127.0);
            for (byte, x) in bytes.iter().zip(&x) {
                let code = (byte ^ flip).cast_signed();
                assert!((f32::from(code) * step - x).abs() <= 0.501 * step, "{code} {x}");
            }
        }
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert!(round(&[1.0, bad, 0.0, 2.0], &mut [0; 4], 0).is_nan());
        }
        assert_eq!(round(&[0.0; 4], &mut [0; 4], 0), 0.0);
    }

    #[test]
    fn columns_of_one_scale_are_cut_into_groups_of_equal_size() {
        let matrix = PackedLinear::zeros(Supported::PORTABLE, Word::Single, 1, 4);
        let group = |scaled: usize| {
            let matrix = Matrix::new(matrix.sections(), 1, 4, scaled);
            (matrix.group, matrix.groups_of_a_scale)
        };
        let found = [4, 128, 200, 256, 1024, 2880, 896, 300].map(group);
        assert_eq!(found, [(4, 1), (128, 1), (200, 1), (256, 1), (256, 4), (192, 15), (128, 7), (100, 3)]);
    }

    /// The product by its formula, with the groups that `matrix` makes.
    fn expected(x: &[f32], codes: &[u8], scales: &[f32], scaled: usize, group: usize) -> f32 {
        let mut sum = 0.0;
        for (index, (x, codes)) in x.chunks(group).zip(codes.chunks(group)).enumerate() {
            let mut bytes = vec![0; x.len()];
            let step = round(x, &mut bytes, 0);
            let products =
                bytes.iter().zip(codes).map(|(q, code)| i32::from(q.cast_signed()) * i32::from(code.cast_signed()));
            sum += products.sum::<i32>() as f32 * (scales[index * group / scaled] * step);
        }
        sum
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(50))]

        #[test]
        fn products_are_those_of_the_formula_to_the_bit_in_any_company(
            rows in prop::sample::select(vec![1_usize, 2, 5, 11, 12, 13, 16, 31, 33, 40, 400]),
            width in prop::sample::select(vec![4_usize, 64, 132, 576, 700, 1536]),
            size in prop::sample::select(vec![4_usize, 32, 128, 256, 512, 1536]),
            d_out in prop::sample::select(vec![1_usize, 32, 33, 100]),
            seed in any::<u64>(),
        ) {
            let random = |i: usize| (seed ^ i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
            let number = |i: usize| random(i) as f32 / (1_u64 << 31) as f32 - 0.5;
            let coding = Coding::scaled(8, CodeNumbers::Signed, width, size);
            let mut memory = CodedMemory::new(&coding, d_out);
            let coded = memory.rows(&coding, d_out);
            coded.codes.iter_mut().enumerate().for_each(|(i, code)| *code = random(i) as u8);
            coded.scales.iter_mut().enumerate().for_each(|(i, x)| *x = number(i + 1000) / 16.0);
            let x: Vec<f32> = (0..rows * width).map(|i| number(i + 4000)).collect();
            for kernel in [Kernel::Avx512Vnni, Kernel::AmxInt8] {
                let Ok(kernel) = Supported::choose(Some(kernel)) else { continue };
                for word in [Word::Pair, Word::Single] {
                    let parts = vec![(d_out, Some(coding.clone()))];
                    let make = |shape| Ok::<_, ()>(Section::zeros(shape));
                    let mut matrix = PackedLinear::of(kernel, word, width, parts, make).unwrap();
                    matrix.fill_codes(0, &coded);
                    let (mut out, mut scratch) = (vec![f32::NAN; rows * d_out], Lines::default());
                    matrix.apply(&x, rows, &mut out, &mut scratch);
                    let group = Matrix::new(matrix.sections(), d_out, width, size.min(width)).group;
                    for (x, found) in x.chunks_exact(width).zip(out.chunks_exact(d_out)) {
                        let weights = coded.codes.chunks_exact(width).zip(coded.scales.chunks_exact(coding.n_groups));
                        for (found, (codes, scales)) in found.iter().zip(weights) {
                            let expected = expected(x, codes, scales, size, group);
                            prop_assert_eq!(found.to_bits(), expected.to_bits(), "{:?} {} {}", kernel, found, expected);
                        }
                    }
                }
            }
        }
    }
}
