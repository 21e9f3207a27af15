//! Products of weights of eight and of four bits in integers, for the kernels `avx512-vnni` and `amx-int8`.
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
//! Codes of four bits may have zeros and minima, which are of all columns of a group alike. So with `sum = Σ q`, exact too,
//!
//! ```text
//! y     += (exact − 8 · sum − zero · sum) · (scale · step)     a fused multiply-add
//! y     −= minimum · (step · sum)                              likewise
//! ```
//!
//! where signed codes are made positive by 8, and only terms that a matrix has are there.
//!
//! Weights are the numbers that `scale · code` stands for, not rounded to bf16. Activations lose more
//! than to bf16: half a step is 0.4 % of the largest number of 256 at most. `docs/benchmarks.md` has what
//! that does to states, of weights in eight bits. A row's result depends on the row and the matrix alone, and is the same
//! with both kernels, to the bit: integers have no order of sums, and floats are added in one.
//!
//! | kernel | instruction | what it multiplies |
//! |---|---|---|
//! | `avx512-vnni` | `VPDPBUSD` | bytes without sign, `q + 128`, by codes; 128 · Σ code is taken away |
//! | `avx512-vnni` | `VPDPBUSD` | codes of four bits, eight of a word in two halves, by `q`: even columns of eight, then odd ones |
//! | `amx-int8` | `TDPBSSD` | whole tiles of `q` by tiles of codes of eight bits; all else as `avx512-vnni` |
//!
//! Owns the rounding of activations, the cut into tasks and the body for VNNI; `unit.rs` has that of
//! the matrix unit. `pack.rs` asks for products, and `coded.rs` says whether codes suit.

use std::arch::x86_64::{
    __m512, __m512i, _mm512_add_ps, _mm512_cvtepi32_ps, _mm512_dpbusd_epi32, _mm512_fmadd_ps, _mm512_fnmadd_ps,
    _mm512_loadu_ps, _mm512_loadu_si512, _mm512_mul_ps, _mm512_set1_epi32, _mm512_set1_ps, _mm512_setzero_si512,
    _mm512_slli_epi32, _mm512_srli_epi32, _mm512_storeu_ps, _mm512_sub_epi32, _mm512_sub_ps, _mm512_ternarylogic_epi32,
};
use std::ops::Range;

use rayon::prelude::*;

use super::coded::CodedPanels;
use super::kernel::{IntegerCodes, Kernel};
use super::lines::Lines;
use super::piece::{AHEAD, CodesOfPanel, Lanes};
use super::product::{Activations, SharedResults};
use super::section::Section;
use super::supported::Supported;
use super::tile::{LANES, Words, prefetch};
use super::unit::{self, ByteUnit, HasByteUnit};
use crate::widest::{rounded, widest};

/// Columns in a word of a rounded row, and of codes of eight bits.
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

/// A matrix of panels of codes: one section of a matrix that is stacked from tensors, or all of it.
pub(super) struct Matrix<'a> {
    /// The codes.
    coded: &'a CodedPanels,
    /// Which panels they are of the whole.
    panels: Range<usize>,
    /// How they are multiplied.
    codes: IntegerCodes,
    /// Columns of the matrix, whole words of codes.
    d_in: usize,
    /// Columns that share a step: whole words of codes, at most [`MOST_COLUMNS`]. The last group may
    /// have fewer.
    group: usize,
    /// Groups that share a scale.
    groups_of_a_scale: usize,
}

impl<'a> Matrix<'a> {
    /// A section of a matrix with `d_in` columns, if its codes may be multiplied as integers.
    pub(super) fn new(section: &'a Section, d_in: usize) -> Option<Self> {
        let (coded, codes) = (section.coded()?, section.integers()?);
        let group = columns_of_a_step(codes);
        Some(Self {
            coded,
            panels: section.panels.clone(),
            codes,
            d_in,
            group,
            groups_of_a_scale: codes.scaled / group,
        })
    }

    /// Words of the codes of a rounded row.
    fn words(&self) -> usize {
        self.d_in / PLACES
    }

    /// Words of a rounded row: its codes, a step for each group, and beside codes of four bits the sum of each group's codes.
    fn row_words(&self) -> usize {
        self.words() + self.groups() * if self.codes.bits == 4 { 2 } else { 1 }
    }

    /// Groups of a row.
    fn groups(&self) -> usize {
        self.d_in.div_ceil(self.group)
    }

    /// The words of a rounded row that are of a group.
    fn words_of(&self, group: usize) -> Range<usize> {
        let words = self.group / PLACES;
        group * words..self.words().min((group + 1) * words)
    }

    /// Words from one rounded row to the next. An odd number of lines, so that rows which are multiplied
    /// together do not fall into the same sets of a cache.
    fn stride(&self) -> usize {
        (self.row_words().div_ceil(LINE) | 1) * LINE
    }

    /// Whether groups are whole tiles of the unit, all of them.
    fn has_whole_tiles(&self) -> bool {
        [self.group, self.d_in].iter().all(|columns| columns.is_multiple_of(PLACES * LINE))
    }

    /// See `PackedLinear::product`; `out` has the columns of all sections.
    pub(super) fn product(
        &self,
        has: HasIntegers,
        x: Activations<'_>,
        out: &SharedResults<'_>,
        scratch: &mut Lines<u32>,
    ) {
        let (rows, d_in, stride) = (x.count(), self.d_in, self.stride());
        let unit = has.unit.filter(|_| rows >= unit::ROWS && self.codes.bits == 8 && self.has_whole_tiles());
        let flip = if unit.is_some() || self.codes.bits == 4 { 0 } else { 0x80 };
        // The unit takes whole strips; what lies in rows behind the last one does not matter.
        scratch.resize(rows.next_multiple_of(unit::ROWS) * stride);
        let rounded = scratch.par_chunks_exact_mut(stride).take(rows).enumerate().with_min_len(x.worth_a_task(d_in));
        rounded.for_each(|(row, words)| {
            let (words, of_groups) = words.split_at_mut(self.words());
            let (steps, sums) = of_groups.split_at_mut(self.groups());
            x.with(row..row + 1, d_in, |x| {
                let groups = x.chunks(self.group).zip(bytes_of(words).chunks_mut(self.group));
                groups.zip(steps).for_each(|((x, bytes), step)| *step = round(x, bytes, flip).to_bits());
                if self.codes.bits == 4 {
                    let groups = bytes_of(words).chunks_mut(self.group).zip(sums);
                    groups.for_each(|(bytes, sum)| *sum = even_before_odd(bytes).to_bits());
                }
            });
        });
        let words = &**scratch;
        let n_tasks = TASKS_PER_THREAD * rayon::current_num_threads();
        let blocks = rows.div_ceil(ROWS_AT_ONCE);
        let n_panels = self.panels.len();
        let at_once = (n_panels * blocks / n_tasks).clamp(1, 8);
        let n_shares = n_panels.div_ceil(at_once);
        (0..blocks * n_shares).into_par_iter().for_each(|task| {
            let (block, share) = (task / n_shares, task % n_shares);
            let of_block = block * ROWS_AT_ONCE..rows.min((block + 1) * ROWS_AT_ONCE);
            let first = share * at_once;
            let unit = unit.map(HasByteUnit::hold);
            let mut sums = [[0.0; LANES]; ROWS_ON_UNIT];
            let together = if unit.is_some() { ROWS_ON_UNIT } else { ROWS };
            for panel in first..n_panels.min(first + at_once) {
                let codes = self.coded.codes_of_panel(panel);
                let lane = (self.panels.start + panel) * LANES;
                for row in of_block.clone().step_by(together) {
                    let sums = &mut sums[..together.min(of_block.end - row)];
                    sums.fill([0.0; LANES]);
                    match &unit {
                        Some(unit) => self.multiply_tiles(unit, codes, &words[row * stride..], sums),
                        None => self.multiply(has, codes, &words[row * stride..], sums),
                    }
                    for (index, sums) in sums.iter_mut().enumerate() {
                        // SAFETY: of each row the lanes of this panel are this task's alone.
                        unsafe { out.put(row + index, lane, sums) };
                    }
                }
            }
        });
    }

    /// Adds the products of some rounded rows, as many as `sums` has, with a panel.
    fn multiply(&self, _: HasIntegers, panel: CodesOfPanel<'_>, rows: &[u32], sums: &mut [[f32; LANES]]) {
        assert!((1..=ROWS).contains(&sums.len()) && rows.len() >= (sums.len() - 1) * self.stride() + self.row_words());
        let n_scales = self.groups().div_ceil(self.groups_of_a_scale);
        let is_there = |lanes: &[Lanes]| lanes.is_empty() || lanes.len() == n_scales;
        assert!(panel.codes.len() == self.d_in * self.codes.bits / 32 && panel.scales.len() == n_scales);
        assert!(is_there(panel.zeros) && is_there(panel.minima));
        const BODIES: [[Body; ROWS]; 2] = [
            [
                bytes::<1>,
                bytes::<2>,
                bytes::<3>,
                bytes::<4>,
                bytes::<5>,
                bytes::<6>,
                bytes::<7>,
                bytes::<8>,
                bytes::<9>,
                bytes::<10>,
                bytes::<11>,
                bytes::<12>,
            ],
            [
                halves::<1>,
                halves::<2>,
                halves::<3>,
                halves::<4>,
                halves::<5>,
                halves::<6>,
                halves::<7>,
                halves::<8>,
                halves::<9>,
                halves::<10>,
                halves::<11>,
                halves::<12>,
            ],
        ];
        let bodies = BODIES[usize::from(self.codes.bits == 4)];
        // SAFETY: the processor has the instructions, and rows and panel have all words and groups, by the assertions.
        unsafe { bodies[sums.len() - 1](self, panel, rows, sums) };
    }

    /// The same on the matrix unit, for rows that were rounded to signed bytes, in whole strips.
    fn multiply_tiles(&self, unit: &ByteUnit, panel: CodesOfPanel<'_>, rows: &[u32], sums: &mut [[f32; LANES]]) {
        let stride = self.stride();
        assert!(rows.len() >= (sums.len() - 1) * stride + self.row_words());
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

/// Columns that share a step: all that share a scale, or else as many as divide them, in whole tiles of the unit if there are any.
fn columns_of_a_step(codes: IntegerCodes) -> usize {
    let (scaled, places) = (codes.scaled, 32 / codes.bits);
    let whole = (1..=MOST_COLUMNS / (PLACES * LINE)).rev().map(|tiles| tiles * PLACES * LINE);
    let any = (1..=MOST_COLUMNS / places).rev().map(|words| words * places);
    let mut sizes = Some(scaled).filter(|&size| size <= MOST_COLUMNS).into_iter().chain(whole).chain(any);
    sizes.find(|&size| scaled.is_multiple_of(size)).unwrap_or(places)
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

/// Puts the even ones of each eight bytes of a group before the odd ones, as a word of codes of four bits gives them, and returns
/// their sum, with signs: exact, since it is less than 2^24.
fn even_before_odd(bytes: &mut [u8]) -> f32 {
    let mut sum = 0;
    widest(
        #[inline(always)]
        || {
            sum = bytes.iter().map(|byte| i32::from(byte.cast_signed())).sum();
            for eight in bytes.as_chunks_mut().0 {
                let [a, b, c, d, e, f, g, h] = *eight;
                *eight = [a, c, e, g, b, d, f, h];
            }
        },
    );
    sum as f32
}

/// [`bytes`] or [`halves`] for some number of rows.
type Body = unsafe fn(&Matrix<'_>, CodesOfPanel<'_>, &[u32], &mut [[f32; LANES]]);

/// Adds the products of `COUNT` rows with a panel of codes of eight bits to `sums`.
///
/// # Safety
/// The processor must have AVX-512 with VNNI. There must be as many rows, a stride apart, with words of codes
/// that [`round`] has turned over and a step for each group; the panel must have all words and scales of the
/// matrix, and `sums` as many rows.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn bytes<const COUNT: usize>(
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

/// What the lanes of half a panel have of a group.
#[derive(Clone, Copy)]
struct OfGroup {
    scale: __m512,
    zero: Option<__m512>,
    minimum: Option<__m512>,
}

/// Adds the products of `COUNT` rows with a panel of codes of four bits to `sums`.
///
/// # Safety
/// The processor must have AVX-512 with VNNI. There must be as many rows, a stride apart, with words of codes
/// in the order of [`even_before_odd`], and a step and a sum for each group; the panel must have all words and scales of the
/// matrix, and zeros and minima as many or none, and `sums` as many rows.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn halves<const COUNT: usize>(
    matrix: &Matrix<'_>,
    panel: CodesOfPanel<'_>,
    rows: &[u32],
    sums: &mut [[f32; LANES]],
) {
    /// `(a ^ b) & c`, as a table of its bits.
    const TURNED_OVER: i32 = 0b0010_1000;
    // SAFETY: the caller's promise.
    unsafe {
        let lowest = _mm512_set1_epi32(0x0f0f_0f0f);
        // A signed code `c` of four bits is `(c ^ 8) - 8`.
        let flip = _mm512_set1_epi32(if matrix.codes.is_signed { 0x0808_0808 } else { 0 });
        let rows: [*const u32; COUNT] = std::array::from_fn(|row| rows.as_ptr().add(row * matrix.stride()));
        let float = |word: *const u32| _mm512_set1_ps(f32::from_bits(*word));
        for group in 0..matrix.groups() {
            let mut exact: [[__m512i; 2]; COUNT] = [[_mm512_setzero_si512(); 2]; COUNT];
            let words = matrix.words_of(group);
            for index in words.start / 2..words.end / 2 {
                let codes = panel.codes.get_unchecked(index).as_ptr();
                if COUNT < ROWS {
                    prefetch(codes.wrapping_add(AHEAD));
                    prefetch(codes.wrapping_add(AHEAD + HALF));
                }
                for half in 0..2 {
                    let word = _mm512_loadu_si512(codes.add(half * HALF).cast());
                    let even = _mm512_ternarylogic_epi32::<TURNED_OVER>(word, flip, lowest);
                    let odd = _mm512_ternarylogic_epi32::<TURNED_OVER>(_mm512_srli_epi32::<4>(word), flip, lowest);
                    for (exact, row) in exact.iter_mut().zip(&rows) {
                        let of_row = |place: usize| _mm512_set1_epi32((*row.add(2 * index + place)).cast_signed());
                        exact[half] = _mm512_dpbusd_epi32(exact[half], even, of_row(0));
                        exact[half] = _mm512_dpbusd_epi32(exact[half], odd, of_row(1));
                    }
                }
            }
            let of = |lanes: &Lanes, half: usize| _mm512_loadu_ps(lanes.as_ptr().add(half * HALF).cast());
            let scale = group / matrix.groups_of_a_scale;
            let of_group = [0, 1].map(|half| OfGroup {
                scale: of(panel.scales.get_unchecked(scale), half),
                zero: panel.zeros.get(scale).map(|lanes| of(lanes, half)),
                minimum: panel.minima.get(scale).map(|lanes| of(lanes, half)),
            });
            for (row, sums) in sums.iter_mut().enumerate().take(COUNT) {
                let step = float(rows[row].add(matrix.words() + group));
                let sum_of_row = float(rows[row].add(matrix.words() + matrix.groups() + group));
                for (half, OfGroup { scale, zero, minimum }) in of_group.into_iter().enumerate() {
                    let mut number = _mm512_cvtepi32_ps(exact[row][half]);
                    if matrix.codes.is_signed {
                        number = _mm512_sub_ps(number, _mm512_mul_ps(_mm512_set1_ps(8.0), sum_of_row));
                    }
                    if let Some(zero) = zero {
                        number = _mm512_sub_ps(number, _mm512_mul_ps(zero, sum_of_row));
                    }
                    let sum = sums.as_mut_ptr().add(half * HALF);
                    let mut y = _mm512_fmadd_ps(number, _mm512_mul_ps(scale, step), _mm512_loadu_ps(sum));
                    if let Some(minimum) = minimum {
                        y = _mm512_fnmadd_ps(minimum, _mm512_mul_ps(step, sum_of_row), y);
                    }
                    _mm512_storeu_ps(sum, y);
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
        let group = |bits: usize, scaled: usize| {
            let group = columns_of_a_step(IntegerCodes { scaled, bits, is_signed: true });
            (group, scaled / group)
        };
        let found = [4, 128, 200, 256, 1024, 2880, 896, 300].map(|scaled| group(8, scaled));
        assert_eq!(found, [(4, 1), (128, 1), (200, 1), (256, 1), (256, 4), (192, 15), (128, 7), (100, 3)]);
        let found = [8, 32, 256, 1024, 296, 600].map(|scaled| group(4, scaled));
        assert_eq!(found, [(8, 1), (32, 1), (256, 1), (256, 4), (8, 37), (200, 3)]);
    }

    /// The product of a row with a row of the matrix by its formula, in `groups` of columns. The latter are codes, as numbers, and what
    /// each group of `scaled` columns has: zeros, scales and minima.
    fn expected(x: &[f32], codes: &[f32], of_groups: [&[f32]; 3], coding: &Coding, scaled: usize, group: usize) -> f32 {
        let shift = if (coding.bits, &coding.numbers) == (4, &CodeNumbers::Signed) { 8.0 } else { 0.0 };
        let mut y = 0.0;
        for (index, (x, codes)) in x.chunks(group).zip(codes.chunks(group)).enumerate() {
            let mut bytes = vec![0; x.len()];
            let step = round(x, &mut bytes, 0);
            let q: Vec<f32> = bytes.iter().map(|byte| f32::from(byte.cast_signed())).collect();
            let [zero, scale, minimum] = of_groups.map(|numbers| numbers[index * group / scaled]);
            // Whole numbers below 2^24, in any order.
            let exact = q.iter().zip(codes).map(|(q, code)| q * (code + shift)).sum::<f32>();
            let sum = q.iter().sum::<f32>();
            let number = exact - shift * sum - if coding.has_zeros { zero * sum } else { 0.0 };
            y = if coding.bits == 8 { y + number * (scale * step) } else { number.mul_add(scale * step, y) };
            if coding.has_minima {
                y = (-minimum).mul_add(step * sum, y);
            }
        }
        y
    }

    /// Codes for so many rows, with numbers that look random.
    fn coded(coding: &Coding, d_out: usize, seed: usize) -> CodedMemory {
        let mut memory = CodedMemory::new(coding, d_out);
        let rows = memory.rows(coding, d_out);
        let number = |i: usize| ((seed + i) * 7919 % 1009) as f32 / 1009.0 - 0.5;
        rows.codes.iter_mut().enumerate().for_each(|(i, code)| *code = ((seed + i) * 31 % (1 << coding.bits)) as u8);
        rows.scales.iter_mut().enumerate().for_each(|(i, x)| *x = number(i));
        if coding.has_minima {
            rows.minima.iter_mut().enumerate().for_each(|(i, x)| *x = number(i + 50));
        }
        memory
    }

    #[test]
    fn sections_of_other_codes_give_what_each_gives_by_itself() {
        const WIDTH: usize = 96;
        let Ok(kernel) = Supported::choose(Some(Kernel::Avx512Vnni)) else { return };
        let four = Coding { has_minima: true, ..Coding::scaled(4, CodeNumbers::Unsigned, WIDTH, 32) };
        let codings = [four, Coding::scaled(8, CodeNumbers::Signed, WIDTH, 16)];
        let (x, d_out) = (crate::engine::packed::cases::numbers(1, 3 * WIDTH), [32, 20]);
        let product = |sections: &[usize]| {
            let parts = sections.iter().map(|&at| (d_out[at], Some(codings[at].clone()))).collect();
            let make = |shape| Ok::<_, ()>(Section::zeros(shape));
            let mut matrix = PackedLinear::of(kernel, Word::Pair, WIDTH, parts, make).unwrap();
            let mut first = 0;
            for &at in sections {
                matrix.fill_codes(first, &coded(&codings[at], d_out[at], at).rows(&codings[at], d_out[at]));
                first += d_out[at];
            }
            assert!(matrix.is_of_integers());
            let mut out = vec![f32::NAN; 3 * first];
            matrix.apply(&x, 3, &mut out, &mut Lines::default());
            out
        };
        let (both, first, second) = (product(&[0, 1]), product(&[0]), product(&[1]));
        for row in 0..3 {
            let apart = [&first[row * 32..][..32], &second[row * 20..][..20]].concat();
            assert_eq!(both[row * 52..][..52], apart);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn products_are_those_of_the_formula_to_the_bit_in_any_company(
            kind in 0..12_usize,
            rows in prop::sample::select(vec![1_usize, 2, 5, 11, 12, 13, 16, 31, 33, 40, 400]),
            words in prop::sample::select(vec![1_usize, 8, 17, 72, 88, 175, 192]),
            size in prop::sample::select(vec![1_usize, 4, 16, 32, 64, 192]),
            d_out in prop::sample::select(vec![1_usize, 32, 33, 100]),
            seed in any::<u64>(),
        ) {
            let random = |i: usize| (seed ^ i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
            let number = |i: usize| random(i) as f32 / (1_u64 << 31) as f32 - 0.5;
            let (bits, numbers) = match kind {
                0..4 => (8, CodeNumbers::Signed),
                4..8 => (4, CodeNumbers::Signed),
                _ => (4, CodeNumbers::Unsigned),
            };
            let (has_zeros, has_minima) = (bits == 4 && kind % 2 == 1, bits == 4 && kind % 4 > 1);
            let (width, size) = (words * 32 / bits, size * 32 / bits);
            let coding = Coding { has_zeros, has_minima, ..Coding::scaled(bits, numbers, width, size) };
            let mut memory = CodedMemory::new(&coding, d_out);
            let coded = memory.rows(&coding, d_out);
            let mask = if bits == 4 { 15 } else { 255 };
            coded.codes.iter_mut().enumerate().for_each(|(i, code)| *code = random(i) as u8 & mask);
            coded.scales.iter_mut().enumerate().for_each(|(i, x)| *x = number(i + 1000) / 16.0);
            if has_zeros {
                coded.zeros.iter_mut().enumerate().for_each(|(i, x)| *x = (random(i + 2000) % 64) as f32 / 4.0);
            }
            if has_minima {
                coded.minima.iter_mut().enumerate().for_each(|(i, x)| *x = number(i + 3000));
            }
            let table = coding.table();
            let codes: Vec<f32> = coded.codes.iter().map(|&code| table[usize::from(code)]).collect();
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
                    let group = Matrix::new(matrix.sections().of(0), width).unwrap().group;
                    for (x, found) in x.chunks_exact(width).zip(out.chunks_exact(d_out)) {
                        for (row, (found, codes)) in found.iter().zip(codes.chunks_exact(width)).enumerate() {
                            let of_row = row * coding.n_groups..(row + 1) * coding.n_groups;
                            let of_groups = [&coded.zeros, &coded.scales, &coded.minima].map(|all| &all[of_row.clone()]);
                            let expected = expected(x, codes, of_groups, &coding, size.min(width), group);
                            prop_assert_eq!(found.to_bits(), expected.to_bits(), "{:?} {} {}", kernel, found, expected);
                        }
                    }
                }
            }
        }
    }
}
