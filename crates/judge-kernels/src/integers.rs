//! Products of weights of eight and of four bits in integers, for the kernels that have their name from it.
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
//! with all of these kernels, to the bit: integers have no order of sums, and floats are added in one.
//!
//! | kernel | instruction | where |
//! |---|---|---|
//! | `avx512-vnni` | `VPDPBUSD`, 16 lanes | `x86.rs` |
//! | `avx2-int8` | `VPDPBUSD` of AVX-VNNI, or else `VPMADDUBSW` and `VPMADDWD`; 8 lanes | `x86.rs` |
//! | `neon-int8` | `SDOT`, 4 lanes | `arm.rs` |
//! | `amx-int8` | `TDPBSSD`: whole tiles of `q` by tiles of codes of eight bits; all else as `avx512-vnni` | `on_unit.rs` |
//!
//! Owns the rounding of activations and the cut into tasks. `matrix.rs` says what is multiplied and how rounded rows lie, `body.rs` has the loops over a panel, written once for all
//! registers. `pack.rs` asks for products, and `coded.rs` says whether codes suit.

#[cfg(target_arch = "aarch64")]
mod arm;
mod body;
mod matrix;
#[cfg(target_arch = "x86_64")]
mod on_unit;
#[cfg(target_arch = "x86_64")]
mod x86;

use rayon::prelude::*;

use super::lines::Lines;
use super::product::{Activations, SharedResults};
use super::tile::LANES;
use crate::widest::{rounded, widest};

#[cfg(target_arch = "aarch64")]
pub(crate) use arm::HasIntegers;
pub(crate) use matrix::Matrix;
use matrix::{MOST_ROWS, Multiplier, ROWS_AT_ONCE};
#[cfg(target_arch = "x86_64")]
pub(crate) use x86::HasIntegers;

/// Tasks for each thread that a product should have at least.
const TASKS_PER_THREAD: usize = 16;

/// The largest code of an activation.
const LARGEST: f32 = 127.0;

impl Matrix<'_> {
    /// Products by the body that the kernel has for so many rows. See `PackedLinear::product`; `out` has the columns of all sections.
    pub(crate) fn product(
        &self,
        has: HasIntegers,
        x: Activations<'_>,
        out: &SharedResults<'_>,
        scratch: &mut Lines<u32>,
    ) {
        #[cfg(target_arch = "x86_64")]
        if let Some(unit) = has.unit(self, x.count()) {
            return self.product_by(unit, x, out, scratch);
        }
        self.product_by(has, x, out, scratch);
    }

    /// [`product`](Self::product) by this body.
    fn product_by<M: Multiplier>(&self, by: M, x: Activations<'_>, out: &SharedResults<'_>, scratch: &mut Lines<u32>) {
        let (rows, d_in, stride) = (x.count(), self.d_in, self.stride());
        let flip = by.flip(self.codes.bits);
        scratch.resize(rows.next_multiple_of(M::STRIP) * stride);
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
        let together = out.together();
        let at_once = (n_panels * blocks / n_tasks).clamp(1, 8).next_multiple_of(together);
        let n_shares = n_panels.div_ceil(at_once);
        let buffers = || [[[0.0; LANES]; MOST_ROWS]; 2];
        (0..blocks * n_shares).into_par_iter().for_each_init(buffers, |sums, task| {
            let (block, share) = (task / n_shares, task % n_shares);
            let of_block = block * ROWS_AT_ONCE..rows.min((block + 1) * ROWS_AT_ONCE);
            let first = share * at_once;
            let held = by.hold();
            for place in (first..n_panels.min(first + at_once)).step_by(together) {
                for row in of_block.clone().step_by(by.rows_at_once()) {
                    let count = by.rows_at_once().min(of_block.end - row);
                    let mut sums = sums.each_mut().map(|sums| &mut sums[..count]);
                    let place = self.panels.start + place;
                    for (at, sums) in sums[..together].iter_mut().enumerate() {
                        sums.fill([0.0; LANES]);
                        let codes = self.coded.codes_of_panel(out.panel(place + at) - self.panels.start);
                        M::multiply(&held, self, codes, &words[row * stride..], sums);
                    }
                    // SAFETY: of each row the results of these panels are this task's alone.
                    unsafe { out.put(row, place, &mut sums[..together]) };
                }
            }
        });
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::matrix::columns_of_a_step;
    use super::*;
    use crate::cases::{fill, numbers, of_codes};
    use crate::codes::{CodeNumbers, CodedMemory, Coding};
    use crate::functions::Activation;
    use crate::kernel::IntegerCodes;
    use crate::pack::Linear;
    use crate::product::{Onto, Results};
    use crate::supported::Supported;
    use crate::tile::Word;
    use crate::vector;

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

    /// A kernel that multiplies integers, if this processor has one.
    #[allow(clippy::print_stderr)] // a test that is skipped says so
    fn of_integers() -> Option<Supported> {
        let found = Supported::all().find(|kernel| kernel.kernel().multiplies_integers());
        if found.is_none() {
            eprintln!("skipped: no kernel of this processor multiplies integers");
        }
        found
    }

    #[test]
    fn sections_of_other_codes_give_what_each_gives_by_itself() {
        const WIDTH: usize = 96;
        let Some(kernel) = of_integers() else { return };
        let four = Coding { has_minima: true, ..Coding::scaled(4, CodeNumbers::Unsigned, WIDTH, 32) };
        let codings = [four, Coding::scaled(8, CodeNumbers::Signed, WIDTH, 16)];
        let (x, d_out) = (numbers(1, 3 * WIDTH), [32, 20]);
        let product = |sections: &[usize]| {
            let parts: Vec<_> = sections.iter().map(|&at| (d_out[at], &codings[at])).collect();
            let mut matrix = of_codes(kernel, Word::Pair, &parts);
            let mut first = 0;
            for &at in sections {
                fill(&mut matrix, first, &codings[at], d_out[at], at);
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

    #[test]
    fn a_gate_in_other_codes_than_what_it_gates_is_applied_all_the_same() {
        const WIDTH: usize = 64;
        let Some(kernel) = of_integers() else { return };
        let codings = [(4, CodeNumbers::Unsigned), (8, CodeNumbers::Signed)]
            .map(|(bits, numbers)| Coding::scaled(bits, numbers, WIDTH, 32));
        let mut weight = of_codes(kernel, Word::Pair, &codings.each_ref().map(|coding| (LANES, coding)));
        for (at, coding) in codings.iter().enumerate() {
            fill(&mut weight, at * LANES, coding, LANES, at);
        }
        assert!(weight.is_of_integers());
        let (x, mut scratch) = (numbers(1, 3 * WIDTH), Lines::default());
        let (mut all, mut expected, mut found) = ([0.0; 6 * LANES], [0.0; 3 * LANES], [f32::NAN; 3 * LANES]);
        weight.apply(&x, 3, &mut all, &mut scratch);
        for (row, out) in all.chunks_exact(2 * LANES).zip(expected.chunks_exact_mut(LANES)) {
            vector::activate_row(row, Activation::Silu, out);
        }
        let linear = Linear { weight, bias: None, factors: Vec::new() };
        linear.activated(Activations::new(&x, WIDTH), Activation::Silu, LANES, &mut found, &mut scratch);
        assert_eq!(found, expected);
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
            let kernels = Supported::all().filter_map(|kernel| Some((kernel, HasIntegers::of(kernel)?)));
            for (kernel, has) in kernels.flat_map(|(kernel, has)| has.and_what_others_use().map(move |has| (kernel, has))) {
                for word in [Word::Pair, Word::Single] {
                    let mut matrix = of_codes(kernel, word, &[(d_out, &coding)]);
                    matrix.fill_codes(0, &coded);
                    prop_assert!(matrix.is_of_integers());
                    let (mut out, mut scratch) = (vec![f32::NAN; rows * d_out], Lines::default());
                    let section = Matrix::new(matrix.sections().of(0), width).unwrap();
                    let results = Results::new(&mut out, None, Onto::Nothing).shared(d_out);
                    section.product(has, Activations::new(&x, width), &results, &mut scratch);
                    let group = section.group;
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
